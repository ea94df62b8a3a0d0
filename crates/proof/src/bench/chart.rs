//! Bar charts as SVG, readable on light and dark ground.

use std::fmt::Write as _;

/// Colours of the series, which are distinct also for those who see few colours, and on both
/// grounds.
const COLOURS: [&str; 4] = ["#8c8c8c", "#2f81f7", "#d29922", "#a371f7"];

const WIDTH: f64 = 860.0;
const LEFT: f64 = 270.0;
const RIGHT: f64 = 80.0;
const BAR: f64 = 13.0;
const GAP: f64 = 12.0;
const TOP: f64 = 78.0;

/// One group of bars.
pub struct Group {
    /// What they have in common.
    pub name: String,
    /// One value a series.
    pub values: Vec<f64>,
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn shown(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// A step of the axis that gives at most about five lines: 1, 2 or 5 times a power of ten.
fn step(largest: f64) -> f64 {
    let rough = (largest / 5.0).max(1e-9);
    let power = 10f64.powf(rough.log10().floor());
    let times = [1.0, 2.0, 5.0, 10.0];
    let fits = times.into_iter().find(|times| times * power >= rough);
    fits.unwrap_or(10.0) * power
}

#[expect(clippy::cast_precision_loss, reason = "a chart has few bars")]
fn count(n: usize) -> f64 {
    n as f64
}

/// A chart of horizontal bars: groups from top to bottom, in each a bar for every series.
#[must_use]
pub fn bars(title: &str, unit: &str, series: &[String], groups: &[Group]) -> String {
    let each = BAR * count(series.len()) + GAP;
    let height = TOP + each * count(groups.len()) + 28.0;
    let values = groups.iter().flat_map(|group| group.values.iter().copied());
    let largest = values.fold(0.0, f64::max).max(1e-9);
    let scale = (WIDTH - LEFT - RIGHT) / largest;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n<title>{}</title>\n<style>\n\
         text {{ font: 12px system-ui, sans-serif; fill: #1f2328; }} .title {{ font-size: 15px; font-weight: 600; }}\n\
         .ground {{ fill: #ffffff; }} .line {{ stroke: #d0d7de; }} .small {{ font-size: 11px; }}\n\
         @media (prefers-color-scheme: dark) {{ text {{ fill: #e6edf3; }} .ground {{ fill: #0d1117; }} \
         .line {{ stroke: #30363d; }} }}\n</style>\n\
         <rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n\
         <text class=\"title\" x=\"16\" y=\"26\">{}</text>\n",
        escaped(title),
        escaped(title)
    );
    // Writing to a String cannot fail, here and below.
    for (number, name) in series.iter().enumerate() {
        let x = LEFT + 120.0 * count(number);
        let colour = COLOURS[number % COLOURS.len()];
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"38\" width=\"11\" height=\"11\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"48\">{}</text>",
            x + 16.0,
            escaped(name)
        );
    }
    axis(&mut out, unit, largest, scale, height);
    for (number, group) in groups.iter().enumerate() {
        let top = TOP + each * count(number);
        let middle = top + (each - GAP) / 2.0 + 4.0;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            escaped(&group.name)
        );
        for (bar, value) in group.values.iter().enumerate() {
            let y = top + BAR * count(bar);
            let width = (value * scale).max(1.0);
            let colour = COLOURS[bar % COLOURS.len()];
            let _ = writeln!(
                out,
                "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"{}\" fill=\"{colour}\"/>\
                 <text class=\"small\" x=\"{:.1}\" y=\"{}\">{}</text>",
                BAR - 2.0,
                LEFT + width + 5.0,
                y + BAR - 3.5,
                shown(*value)
            );
        }
    }
    out.push_str("</svg>\n");
    out
}

fn axis(out: &mut String, unit: &str, largest: f64, scale: f64, height: f64) {
    let step = step(largest);
    let bottom = height - 24.0;
    for number in 0..=10 {
        let value = step * f64::from(number);
        if value > largest {
            break;
        }
        let x = LEFT + value * scale;
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "<line class=\"line\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{}\" y2=\"{bottom}\"/>\
             <text class=\"small\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            TOP - 8.0,
            bottom + 14.0,
            if value >= 1.0 {
                format!("{value:.0}")
            } else {
                shown(value)
            }
        );
    }
    let _ = writeln!(
        out,
        "<text class=\"small\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
        LEFT - 24.0,
        bottom + 14.0,
        escaped(unit)
    );
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn every_value_has_a_bar_with_its_number_and_the_longest_fills_the_width() {
        let groups = [Group {
            name: "a < b".to_owned(),
            values: vec![1.5, 300.0],
        }];
        let names = ["null".to_owned(), "causeway".to_owned()];
        let svg = bars("t", "us", &names, &groups);
        assert!(svg.contains("a &lt; b") && svg.contains(">1.50<") && svg.contains(">300<"));
        assert!(svg.contains(&format!("width=\"{:.1}\"", WIDTH - LEFT - RIGHT)));
        assert_eq!(step(300.0), 100.0);
    }
}
