//! Pictures of a lab: its topology, bars, and what happened over time. Plain SVG that takes the
//! page's colours.

use crate::bed::Topology;
use crate::port::Port;
use std::fmt::Write as _;

/// Text as XML wants it.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A place in a picture.
#[expect(clippy::cast_precision_loss, reason = "a picture's coordinates")]
fn at(count: usize, step: f64) -> f64 {
    count as f64 * step
}

/// A host with its cards on the left, the target with its controllers on the right, and lines for
/// the paths: host port, target port, whether it is in use.
pub(crate) fn topology(topology: &Topology, lines: &[(usize, usize, bool)]) -> String {
    const STEP: f64 = 38.0;
    const TOP: f64 = 30.0;
    let most = topology.host.len().max(topology.target.len());
    let height = TOP + at(most, STEP) + 8.0;
    let y = |side: &[Port], number: usize| {
        TOP + (at(most, STEP) - at(side.len(), STEP)) / 2.0 + at(number, STEP) + STEP / 2.0
    };
    let mut out = format!("<svg viewBox=\"0 0 420 {height}\" role=\"img\" class=\"topology\">");
    let _fits = write!(
        out,
        "<text x=\"50\" y=\"16\" class=\"head\">host</text><text x=\"370\" y=\"16\" class=\"head\">target</text>"
    );
    boxes(
        &mut out,
        &topology.host,
        6.0,
        |number| y(&topology.host, number),
        |port| port.card.clone(),
    );
    boxes(
        &mut out,
        &topology.target,
        326.0,
        |number| y(&topology.target, number),
        |port| port.controller.clone().unwrap_or_else(|| port.card.clone()),
    );
    // What waits lies below what is in use.
    for in_use in [false, true] {
        for (host, target, _) in lines.iter().filter(|line| line.2 == in_use) {
            if *host >= topology.host.len() || *target >= topology.target.len() {
                continue;
            }
            let (from, to) = (y(&topology.host, *host), y(&topology.target, *target));
            let class = if in_use { "active" } else { "idle" };
            let _fits = write!(
                out,
                "<path class=\"{class}\" d=\"M94 {from} C 190 {from} 230 {to} 326 {to}\"/>"
            );
        }
    }
    out.push_str("</svg>");
    out
}

fn boxes(
    out: &mut String,
    ports: &[Port],
    x: f64,
    y: impl Fn(usize) -> f64,
    group: impl Fn(&Port) -> String,
) {
    let mut start = 0;
    while start < ports.len() {
        let name = group(&ports[start]);
        let more = ports[start..].iter().take_while(|port| group(port) == name);
        let end = start + more.count();
        let (top, bottom) = (y(start) - 16.0, y(end - 1) + 16.0);
        let _fits = write!(
            out,
            "<rect class=\"card\" x=\"{x}\" y=\"{top}\" width=\"88\" height=\"{}\" rx=\"4\"><title>{}</title></rect>",
            bottom - top,
            escape(&name)
        );
        for (number, port) in ports.iter().enumerate().take(end).skip(start) {
            let (middle, line) = (x + 44.0, y(number));
            let _fits = write!(
                out,
                "<text x=\"{middle}\" y=\"{}\">{}</text><text class=\"small\" x=\"{middle}\" y=\"{}\">{} {}</text>",
                line - 1.0,
                escape(&port.name),
                line + 11.0,
                escape(&name),
                port.rate
            );
        }
        start = end;
    }
}

/// One group of bars.
pub(crate) struct Group {
    pub(crate) label: String,
    /// Class and value of each; nothing is drawn where there is none.
    pub(crate) bars: Vec<(&'static str, Option<f64>)>,
}

/// Horizontal bars in groups, each with its value, on one scale.
pub(crate) fn bars(groups: &[Group], unit: &str) -> String {
    const BAR: f64 = 13.0;
    // Room for the longest label, and for a value behind the longest bar.
    let longest = groups.iter().map(|group| group.label.chars().count());
    let left = at(longest.max().unwrap_or(0), 6.6).max(54.0) + 16.0;
    let wide = 590.0 - left;
    let values = groups
        .iter()
        .flat_map(|group| group.bars.iter().filter_map(|bar| bar.1));
    let most = values.fold(1e-9, f64::max);
    let rows: usize = groups.iter().map(|group| group.bars.len()).sum();
    let height = at(rows, BAR + 2.0) + at(groups.len(), 10.0) + 6.0;
    let mut out = format!("<svg viewBox=\"0 0 680 {height}\" role=\"img\" class=\"bars\">");
    let mut y = 4.0;
    for group in groups {
        let _fits = write!(
            out,
            "<text class=\"label\" x=\"{}\" y=\"{}\">{}</text>",
            left - 8.0,
            y + at(group.bars.len(), BAR + 2.0) / 2.0 + 4.0,
            escape(&group.label)
        );
        for (class, value) in &group.bars {
            if let Some(value) = value {
                let width = (value / most * wide).max(1.0);
                let _fits = write!(
                    out,
                    "<rect class=\"{class}\" x=\"{left}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"2\"/>\
                     <text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{value:.1} {unit}</text>",
                    left + width + 5.0,
                    y + 10.5
                );
            }
            y += BAR + 2.0;
        }
        y += 10.0;
    }
    out.push_str("</svg>");
    out
}

/// A line over time.
pub(crate) struct Line<'a> {
    pub(crate) class: &'static str,
    pub(crate) label: &'a str,
    /// Seconds and value.
    pub(crate) points: Vec<(f64, f64)>,
}

/// What happened when, on a [`timeline`].
#[derive(Clone, Copy)]
pub(crate) struct Marks {
    /// From when to when the fault was there.
    pub(crate) fault: (f64, f64),
    /// When all was as before again.
    pub(crate) healed: Option<f64>,
}

/// Lines over `seconds`, with what happened marked.
pub(crate) fn timeline(lines: &[Line<'_>], seconds: f64, marks: Marks, unit: &str) -> String {
    const LEFT: f64 = 52.0;
    const WIDE: f64 = 620.0;
    const HIGH: f64 = 110.0;
    let all = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|it| it.1));
    let most = all.fold(1e-9, f64::max) * 1.05;
    let x = |second: f64| LEFT + (second / seconds).clamp(0.0, 1.0) * WIDE;
    let y = |value: f64| 8.0 + HIGH - (value / most).clamp(0.0, 1.0) * HIGH;
    let mut out = String::from("<svg viewBox=\"0 0 690 156\" role=\"img\" class=\"timeline\">");
    let fault = marks.fault;
    let (from, to) = (x(fault.0), x(fault.1.max(fault.0 + seconds / 200.0)));
    let _fits = write!(
        out,
        "<rect class=\"fault\" x=\"{from:.1}\" y=\"8\" width=\"{:.1}\" height=\"{HIGH}\"/>",
        to - from
    );
    if let Some(healed) = marks.healed.map(x) {
        let _fits = write!(
            out,
            "<line class=\"healed\" x1=\"{healed:.1}\" x2=\"{healed:.1}\" y1=\"8\" y2=\"{0}\"><title>all as before</title></line>",
            8.0 + HIGH
        );
    }
    for part in [0.0, 0.5, 1.0] {
        let value = most * part;
        let _fits = write!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{1:.1}\" y2=\"{1:.1}\"/>\
             <text class=\"label\" x=\"{2}\" y=\"{3:.1}\">{value:.0}</text>",
            LEFT + WIDE,
            y(value),
            LEFT - 6.0,
            y(value) + 4.0
        );
    }
    let step = if seconds > 16.0 { 5.0 } else { 2.0 };
    let mut second = 0.0;
    while second <= seconds {
        let _fits = write!(
            out,
            "<text class=\"tick\" x=\"{:.1}\" y=\"132\">{second:.0} s</text>",
            x(second)
        );
        second += step;
    }
    let _fits = write!(
        out,
        "<text class=\"tick\" x=\"{}\" y=\"150\">{unit}</text>",
        LEFT - 30.0
    );
    for (number, line) in lines.iter().enumerate() {
        let points = line
            .points
            .iter()
            .map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value)));
        let points: Vec<String> = points.collect();
        let _fits = write!(
            out,
            "<polyline class=\"{}\" points=\"{}\"/><text class=\"key {}\" x=\"{:.1}\" y=\"150\">{}</text>",
            line.class,
            points.join(" "),
            line.class,
            LEFT + 60.0 + at(number, 130.0),
            escape(line.label)
        );
    }
    out.push_str("</svg>");
    out
}

/// A page of its own, that loads nothing else.
pub(crate) fn page(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style></head>\n<body><main><h1>{title}</h1>\n{body}</main></body></html>\n"
    )
}

const STYLE: &str = "
:root{--ink:#1c2330;--soft:#5c6675;--line:#d9dee6;--page:#fff;--box:#f5f7fa;--ours:#1769c2;--read:#1769c2;--write:#c05a12;
--theirs:#b6bfcc;--fault:#f7d9d5;--good:#217a3c;--bad:#b3261e}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#9aa5b4;--line:#39424f;--page:#14181f;--box:#1d232c;--ours:#5aa5f0;
--read:#5aa5f0;--write:#f0924a;--theirs:#5b6574;--fault:#4a2522;--good:#63c384;--bad:#f2837a}}
body{margin:0;background:var(--page);color:var(--ink);font:14px/1.5 system-ui,sans-serif}
main{max-width:1060px;margin:0 auto;padding:24px 20px 60px}
h1{font-size:24px;margin:0 0 8px}h2{font-size:17px;margin:34px 0 6px}p{max-width:78ch;margin:6px 0}
.soft,small{color:var(--soft)}
table{border-collapse:collapse;margin:12px 0;font-variant-numeric:tabular-nums}
th,td{padding:4px 10px;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{color:var(--soft);font-weight:600;white-space:normal;vertical-align:bottom}td.text,th.text{text-align:left;white-space:normal;min-width:5em}td.long{min-width:16em}
td.good{color:var(--good);font-weight:600}td.bad{color:var(--bad);font-weight:600}tr.ours td{font-weight:600}
pre{white-space:pre-wrap}
svg{display:block;max-width:100%;height:auto;font:11px system-ui,sans-serif;fill:var(--ink)}
svg.topology{width:420px}svg.bars{width:680px}svg.timeline{width:760px}
svg text{text-anchor:middle}svg .label{text-anchor:end;font-weight:600}svg .value,svg .key{text-anchor:start}
svg .small,svg .tick{fill:var(--soft);font-size:9px}svg .head{font-weight:600}
rect.card{fill:var(--box);stroke:var(--line)}
path{fill:none;stroke-width:1.2;stroke:var(--line)}path.active{stroke:var(--ours);stroke-width:2.2}path.idle{stroke-dasharray:4 3}
rect.read{fill:var(--read)}rect.write{fill:var(--write)}rect.theirs{fill:var(--theirs)}rect.fault{fill:var(--fault)}
line.healed{stroke:var(--good);stroke-width:1.4;stroke-dasharray:5 3}
line.grid{stroke:var(--line);stroke-width:.7}
polyline{fill:none;stroke-width:1.6}polyline.read{stroke:var(--read)}polyline.write{stroke:var(--write)}polyline.theirs{stroke:var(--theirs)}
text.key.read{fill:var(--read)}text.key.write{fill:var(--write)}text.key.theirs{fill:var(--soft)}
.tests{display:grid;grid-template-columns:repeat(auto-fill,minmax(310px,1fr));gap:18px}
.tests figure{margin:0;border:1px solid var(--line);border-radius:6px;padding:10px}figcaption{font-size:13px}
.legend span{margin-right:18px}.legend i{display:inline-block;width:11px;height:11px;border-radius:2px;margin-right:5px}
";

#[cfg(test)]
mod test {
    use super::*;
    use crate::mpio;
    use crate::rate::Rate;

    /// Every element that is opened is closed: enough for a browser to draw all of it.
    fn is_balanced(svg: &str) -> bool {
        let mut open = Vec::new();
        for part in svg.split('<').skip(1) {
            let (tag, _) = part.split_once('>').unwrap();
            if let Some(name) = tag.strip_prefix('/') {
                if open.pop() != Some(name.to_owned()) {
                    return false;
                }
            } else if !tag.ends_with('/') {
                open.push(tag.split(' ').next().unwrap().to_owned());
            }
        }
        open.is_empty()
    }

    #[test]
    fn pictures_are_whole_and_names_cannot_break_them() {
        let mut bed = mpio::topology(Rate::GIGABIT, 64);
        bed.host[0].card = "<x&\"".to_owned();
        let drawn = topology(&bed, &[(0, 0, true), (3, 1, false), (9, 9, true)]);
        assert!(is_balanced(&drawn), "{drawn}");
        assert_eq!(drawn.matches("class=\"active\"").count(), 1);
        assert!(drawn.contains("&lt;x&amp;&quot;") && !drawn.contains("<x"));
        let groups = [Group {
            label: "A".to_owned(),
            bars: vec![("read", Some(1.0)), ("theirs", None)],
        }];
        let drawn = bars(&groups, "MB/s");
        assert!(
            drawn.contains("x=\"62\""),
            "a short label has the usual room: {drawn}"
        );
        assert!(is_balanced(&drawn) && drawn.matches("<rect").count() == 1);
        let lines = [Line {
            class: "read",
            label: "eth0",
            points: vec![(0.0, 0.0), (1.0, 5.0)],
        }];
        let marks = Marks {
            fault: (3.0, 3.0),
            healed: Some(4.0),
        };
        assert!(is_balanced(&timeline(&lines, 10.0, marks, "MB/s")));
        assert!(page("t", "<p>x</p>").contains("<h1>t</h1>"));
    }
}
