//! Results as charts and pages.

use super::figures::{Machine, date, mebibytes_per_second, per_second, whole_intervals};
use super::text::text;
use crate::chart::{Line, escaped, lines};
use crate::meter::Side;
use crate::options::Options;
use crate::result::RunResult;
use std::fmt::Write as _;

const STYLE: &str = "\
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 900px; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem; margin-bottom: 0 } h2 { font-size: 1.1rem; margin-top: 2rem }
code, pre { font: 13px/1.4 ui-monospace, monospace } pre { overflow-x: auto }
table { border-collapse: collapse } td, th { padding: .25rem .9rem .25rem 0; text-align: right }
td:first-child, th:first-child { text-align: left } tr { border-bottom: 1px solid #8c8c8c55 }
.bad { color: #f85149; font-weight: bold } .good { color: #3fb950; font-weight: bold } svg { max-width: 100%; height: auto }
p.note { color: #8c8c8c }";

/// A page around a body.
#[must_use]
pub fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>\n{STYLE}\n</style></head>\n\
         <body>\n{body}</body>\n</html>\n",
        title = escaped(title)
    )
}

#[expect(clippy::cast_precision_loss, reason = "figures for a chart")]
fn over_time(
    result: &RunResult,
    value: impl Fn(&crate::meter::Interval) -> f64,
) -> Vec<(f64, f64)> {
    let interval = result.interval.as_secs_f64();
    let series = result.series();
    let whole = whole_intervals(result).max(1).min(series.len());
    let point = |(number, at): (usize, &crate::meter::Interval)| {
        ((number as f64 + 1.0) * interval, value(at))
    };
    series[..whole].iter().enumerate().map(point).collect()
}

/// Operations a second over time.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "figures for a chart")]
pub fn iops_chart(result: &RunResult) -> String {
    let interval = result.interval.as_secs_f64();
    let line = |name: &str, count: fn(&crate::meter::Interval) -> u64| Line {
        name: name.to_owned(),
        points: over_time(result, |at| count(at) as f64 / interval),
    };
    let all = [
        line("reads", |at| at.read.count),
        line("writes", |at| at.write.count),
    ];
    let used: Vec<Line> = all
        .into_iter()
        .filter(|line| line.points.iter().any(|point| point.1 > 0.0))
        .collect();
    lines("Operations a second", "IOPS", "seconds", &used, &[])
}

/// The longest latency of each interval over time.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "figures for a chart")]
pub fn latency_chart(result: &RunResult) -> String {
    let points = over_time(result, |at| at.longest() as f64 / 1e6);
    let line = Line {
        name: "longest of each interval".to_owned(),
        points,
    };
    lines("Latency", "ms", "seconds", &[line], &[])
}

/// Latency by percentile; the axis counts nines.
#[must_use]
pub fn percentile_chart(result: &RunResult) -> String {
    let curve = |name: &str, side: &Side| Line {
        name: name.to_owned(),
        points: (0..=50)
            .map(|tenth| f64::from(tenth) / 10.0)
            .filter_map(|nines| {
                let percentile = 100.0 - 100.0 / 10f64.powf(nines);
                side.percentile(percentile).map(|value| (nines, value))
            })
            .collect(),
    };
    let all = [
        curve("reads", &result.read()),
        curve("writes", &result.write()),
    ];
    let used: Vec<Line> = all
        .into_iter()
        .filter(|line| !line.points.is_empty())
        .collect();
    lines(
        "Latency by percentile",
        "ms",
        "nines: 1 = 90%, 2 = 99%, 3 = 99.9%, 4 = 99.99%",
        &used,
        &[],
    )
}

fn row(out: &mut String, name: &str, side: &Side, seconds: f64) {
    if side.ios == 0 {
        return;
    }
    // Milliseconds are too coarse for memory and for fast paths.
    let us = |millis: Option<f64>| millis.unwrap_or(0.0) * 1000.0;
    let at = |percentile| us(side.percentile(percentile));
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        "<tr><td>{name}</td><td>{}</td><td>{:.0}</td><td>{:.1}</td><td>{:.1}</td><td>{:.1}</td><td>{:.1}</td><td>{:.1}</td><td>{:.1}</td></tr>",
        side.ios,
        per_second(side.ios, seconds),
        mebibytes_per_second(side, seconds),
        us(side.mean()),
        at(50.0),
        at(99.0),
        at(99.9),
        at(100.0)
    );
}

/// A page of one run.
#[must_use]
pub fn html(options: &Options, result: &RunResult, machine: &Machine) -> String {
    let mut out = format!(
        "<h1>causeway bench</h1>\n<p class=\"note\">{} on {}</p>\n<p><code>{}</code></p>\n",
        date(result.started),
        escaped(&machine.name),
        escaped(&options.command_line)
    );
    out.push_str("<table><tr><th></th><th>I/Os</th><th>IOPS</th><th>MiB/s</th><th>mean us</th><th>50% us</th><th>99% us</th><th>99.9% us</th><th>longest us</th></tr>\n");
    row(&mut out, "read", &result.read(), result.seconds);
    row(&mut out, "write", &result.write(), result.seconds);
    row(&mut out, "total", &result.total(), result.seconds);
    out.push_str("</table>\n");
    let class = if result.errors() > 0 { "bad" } else { "good" };
    let _ = write!(
        out,
        "<p>Mean queue depth {:.2}, longest stall {:.1} ms, <span class=\"{class}\">{} errors</span>",
        result.mean_queue_depth(),
        result.stall().as_secs_f64() * 1000.0,
        result.errors()
    );
    if let Some(tally) = &result.verify {
        let class = if tally.bad > 0 { "bad" } else { "good" };
        let _ = write!(
            out,
            ", {} blocks of 512 bytes verified, <span class=\"{class}\">{} bad</span>",
            tally.checked, tally.bad
        );
    }
    out.push_str(".</p>\n");
    out.push_str(&iops_chart(result));
    out.push_str(&latency_chart(result));
    out.push_str(&percentile_chart(result));
    if !result.paths.is_empty() {
        paths(&mut out, result);
    }
    let _ = write!(
        out,
        "<h2>As diskspd prints it</h2>\n<pre>{}</pre>\n",
        escaped(&text(options, result, machine))
    );
    page("causeway bench", &out)
}

fn paths(out: &mut String, result: &RunResult) {
    out.push_str("<h2>Paths</h2>\n<table><tr><th>from</th><th>portal</th><th>state</th><th>I/Os</th><th>MiB/s</th><th>retransmits</th></tr>\n");
    for path in &result.paths {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.1}</td><td>{}</td></tr>",
            escaped(&path.from),
            escaped(&path.portal),
            escaped(&path.state),
            path.ios,
            per_second(path.bytes, result.seconds) / f64::from(1 << 20),
            path.retransmits
        );
    }
    out.push_str("</table>\n");
}

/// The series as lines for a spreadsheet.
#[must_use]
pub fn csv(result: &RunResult) -> String {
    let mut out = String::from("ms,reads,writes,bytes,longest_us\n");
    for (number, at) in result.series().iter().enumerate() {
        let millis = result.interval.as_millis() * number as u128;
        let _ = writeln!(
            out,
            "{millis},{},{},{},{}",
            at.read.count,
            at.write.count,
            at.bytes,
            at.longest() / 1000
        );
    }
    out
}
