//! `causeway history`: figures over time.

use super::context::Context;
use super::recorded::{Asked, moment};
use crate::completion::CompletedArgument;
use manifest::problem::Problem;
use manifest::time::{parse, rfc3339};
use output::{rounded, table};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use units::WallClock;

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[];

/// Rows of a table where nobody says how far they are apart.
const ROWS: u64 = 60;

const SECOND: u64 = 1_000_000_000;

#[derive(clap::Args, Debug)]
pub(crate) struct HistoryFlags {
    /// node, or KIND:NAME with lun, host, target, pool or nic: lun:vm01
    object: String,
    /// What to show, such as read_ops write_ops read_latency_p99; a wrong one lists them all
    #[arg(required_unless_present = "map")]
    metric: Vec<String>,
    /// Show how many commands took how long instead, of node or a LUN
    #[arg(long, conflicts_with = "metric")]
    map: bool,
    /// Where to begin: a time, or so long ago: 2026-11-26T10:00:00Z, 30m, 2d, 1y
    #[arg(long, value_name = "TIME", default_value = "1h")]
    from: String,
    /// Where to end; without it, now
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Seconds of a row, at least
    #[arg(long, value_name = "SECONDS")]
    step: Option<u64>,
}

/// The document of `/api/v1/history`.
#[derive(Serialize, Deserialize)]
struct History {
    from: String,
    step: u64,
    resolution: u64,
    lines: Vec<Line>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    kind: String,
    name: String,
    metric: String,
    unit: String,
    mean: Vec<Option<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min: Option<Vec<Option<f64>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max: Option<Vec<Option<f64>>>,
}

/// The document of `/api/v1/history/latency`.
#[derive(Serialize, Deserialize)]
struct LatencyMap {
    from: String,
    step: u64,
    resolution: u64,
    columns: usize,
    bounds_us: Vec<u64>,
    read: Vec<(usize, usize, u64)>,
    write: Vec<(usize, usize, u64)>,
}

pub(crate) fn run(context: &Context<'_>, flags: &HistoryFlags) -> Result<(), Problem> {
    let path = match flags.map {
        true => "/api/v1/history/latency",
        false => "/api/v1/history",
    };
    let mut asked = Asked::new(path);
    asked.add("object", &flags.object);
    if !flags.map {
        asked.add("metric", &flags.metric.join(","));
    }
    asked.add("from", &moment(&flags.from));
    asked.maybe("to", flags.to.as_deref().map(moment).as_deref());
    let step = flags.step.or_else(|| {
        let span = seconds(&flags.from).filter(|_| !context.output.is_document());
        span.map(|span| span.div_ceil(ROWS).max(1))
    });
    asked.maybe("step", step.map(|step| step.to_string()).as_deref());
    if flags.map {
        let map: LatencyMap = context.client.get(asked.path())?;
        context.output.show(&map, show_map);
        return Ok(());
    }
    let history: History = context.client.get(asked.path())?;
    context.output.show(&history, show);
    Ok(())
}

/// The time of a row.
fn time(begin: &str, step: u64, at: usize) -> String {
    let begin = parse(begin).unwrap_or(WallClock(0));
    let after = step.saturating_mul(SECOND).saturating_mul(at as u64);
    rfc3339(WallClock(begin.0.saturating_add(after)))
}

/// A row for each time in which something came, a column for each time that something took.
fn show_map(map: &LatencyMap) -> String {
    let cells = || map.read.iter().chain(&map.write);
    let used = |of: fn(&(usize, usize, u64)) -> usize| {
        let used: BTreeSet<usize> = cells().map(of).collect();
        used
    };
    let (times, bounds) = (used(|cell| cell.0), used(|cell| cell.1));
    if times.is_empty() {
        return "no command came in this time\n".to_owned();
    }
    let head: Vec<String> = bounds
        .iter()
        .map(|row| {
            let us = map.bounds_us.get(*row).copied().unwrap_or(0);
            format!("<={us}us")
        })
        .collect();
    let head = ["FROM", "OP"]
        .into_iter()
        .chain(head.iter().map(String::as_str));
    let head: Vec<&str> = head.collect();
    let mut rows = Vec::new();
    for at in times {
        for (op, cells) in [("read", &map.read), ("write", &map.write)] {
            let of_time = cells.iter().filter(|cell| cell.0 == at);
            let counts: BTreeMap<usize, u64> =
                of_time.map(|(_, row, count)| (*row, *count)).collect();
            if counts.is_empty() {
                continue;
            }
            let count = |row: &usize| counts.get(row).map_or("-".to_owned(), u64::to_string);
            let mut row = vec![time(&map.from, map.step, at), op.to_owned()];
            row.extend(bounds.iter().map(count));
            rows.push(row);
        }
    }
    table(&head, &rows)
}

/// So long ago, in seconds.
fn seconds(span: &str) -> Option<u64> {
    let unit = span.chars().last()?;
    let number: u64 = span
        .trim_start_matches('-')
        .strip_suffix(unit)?
        .parse()
        .ok()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        'y' => 365 * 86_400,
        _ => return None,
    };
    number.checked_mul(seconds)
}

fn figure(figure: Option<f64>, unit: &str) -> String {
    let Some(figure) = figure else {
        return "-".to_owned();
    };
    match unit {
        "byte" | "byte/s" => {
            // Figures of bytes are whole.
            let bytes = format!("{figure:.0}").parse().unwrap_or(u64::MAX);
            rounded(bytes)
        }
        _ if figure < 10.0 => format!("{figure:.2}"),
        _ => format!("{figure:.0}"),
    }
}

fn show(history: &History) -> String {
    let metrics = history.lines.iter().map(|line| line.metric.to_uppercase());
    let head: Vec<String> = std::iter::once("FROM".to_owned()).chain(metrics).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let count = history.lines.iter().map(|line| line.mean.len()).max();
    let rows = (0..count.unwrap_or(0)).map(|at| {
        let time = time(&history.from, history.step, at);
        let cells = history.lines.iter().map(|line| {
            let mean = line.mean.get(at).copied().flatten();
            figure(mean, &line.unit)
        });
        std::iter::once(time).chain(cells).collect::<Vec<String>>()
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let mut text = table(&head, &rows);
    let units = history
        .lines
        .iter()
        .map(|line| format!("{} in {}", line.metric, line.unit));
    text.push_str(&format!("\n{}\n", units.collect::<Vec<_>>().join(", ")));
    text
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_map_has_a_row_where_something_came_and_a_column_for_what_it_took() {
        let map = LatencyMap {
            from: "2027-01-15T08:00:00.000Z".to_owned(),
            step: 10,
            resolution: 10,
            columns: 3,
            bounds_us: vec![1, 2, 4],
            read: vec![(0, 0, 5), (2, 2, 7)],
            write: vec![(2, 0, 1)],
        };
        let text = show_map(&map);
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let (first, last) = ("2027-01-15T08:00:00.000Z", "2027-01-15T08:00:20.000Z");
        let wanted = [
            vec!["FROM", "OP", "<=1us", "<=4us"],
            vec![first, "read", "5", "-"],
            vec![last, "read", "-", "7"],
            vec![last, "write", "1", "-"],
        ];
        assert_eq!(rows, wanted);
    }

    #[test]
    fn a_gap_is_no_zero_and_bytes_are_for_people() {
        assert_eq!(figure(None, "1/s"), "-");
        assert_eq!(figure(Some(0.0), "1/s"), "0.00");
        assert_eq!(figure(Some(12_345.4), "us"), "12345");
        assert_eq!(figure(Some(1_048_576.0), "byte/s"), rounded(1 << 20));
        assert_eq!(
            (seconds("2h"), seconds("-3d"), seconds("x")),
            (Some(7_200), Some(259_200), None)
        );
    }
}
