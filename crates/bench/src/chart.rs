//! Charts as SVG, readable on light and dark ground.

use std::fmt::Write as _;

/// Colours of the series, which are distinct also for those who see few colours, and on both
/// grounds.
pub const COLOURS: [&str; 6] = [
    "#2f81f7", "#d29922", "#8c8c8c", "#a371f7", "#3fb950", "#f778ba",
];

const WIDTH: f64 = 860.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 24.0;
/// Room for the name of a moment.
const MOMENT: f64 = 120.0;
const TOP: f64 = 58.0;
const PLOT: f64 = 200.0;
const FOOT: f64 = 44.0;
const BAR: f64 = 14.0;
const GAP: f64 = 12.0;
const NAMES: f64 = 250.0;
const VALUES: f64 = 96.0;

/// Text that may stand in XML and HTML.
#[must_use]
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A figure as short as it can be without lying: three digits.
#[must_use]
pub fn shown(value: f64) -> String {
    match value {
        v if v >= 999_500.0 => format!("{:.2}M", v / 1e6),
        v if v >= 9_999.5 => format!("{:.1}k", v / 1e3),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        0.0 => "0".to_owned(),
        v => format!("{v:.2}"),
    }
}

/// A figure of an axis, without needless zeroes.
fn mark(value: f64) -> String {
    let text = shown(value);
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = &text[..text.len() - unit.len()];
    if !number.contains('.') {
        return text;
    }
    format!(
        "{}{unit}",
        number.trim_end_matches('0').trim_end_matches('.')
    )
}

/// A step of an axis that gives at most about five lines: 1, 2 or 5 times a power of ten.
fn step(largest: f64) -> f64 {
    let rough = (largest / 5.0).max(1e-9);
    let power = 10f64.powf(rough.log10().floor());
    let fits = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|times| times * power >= rough);
    fits.unwrap_or(10.0) * power
}

#[expect(clippy::cast_precision_loss, reason = "a chart has few parts")]
fn count(n: usize) -> f64 {
    n as f64
}

/// One line of a chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// What it shows.
    pub name: String,
    /// Points from left to right.
    pub points: Vec<(f64, f64)>,
}

/// A moment that is marked.
#[derive(Clone, PartialEq, Debug)]
pub struct Moment {
    /// What happened.
    pub name: String,
    /// When, on the axis.
    pub at: f64,
}

fn head(out: &mut String, height: f64, title: &str) {
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#8c8c8c\">\n\
         <text x=\"12\" y=\"22\" font-size=\"15\" font-weight=\"bold\">{}</text>",
        escaped(title)
    );
}

fn legend(out: &mut String, names: &[&str]) {
    let mut x = LEFT;
    for (name, colour) in names.iter().zip(COLOURS.iter().cycle()) {
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"34\" width=\"11\" height=\"11\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"44\">{}</text>",
            x + 16.0,
            escaped(name)
        );
        x += 34.0 + 7.0 * count(name.chars().count());
    }
}

/// The ground that lines are drawn on.
struct Plot {
    first: f64,
    last: f64,
    top: f64,
    rise: f64,
}

impl Plot {
    fn of(all: &[Line]) -> Self {
        let points = || all.iter().flat_map(|line| line.points.iter());
        let first = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
        let first = if first.is_finite() { first } else { 0.0 };
        let last = points().map(|point| point.0).fold(first + 1e-9, f64::max);
        let largest = points().map(|point| point.1).fold(1e-9, f64::max);
        let rise = step(largest);
        let top = (largest / rise).ceil() * rise;
        Self {
            first,
            last,
            top,
            rise,
        }
    }

    fn x(&self, at: f64) -> f64 {
        LEFT + (at - self.first) / (self.last - self.first) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        TOP + PLOT - value / self.top * PLOT
    }

    fn axes(&self, out: &mut String, axis: &str) {
        let mut grid = 0.0;
        while grid <= self.top * 1.000_001 {
            let at = self.y(grid);
            let _ = writeln!(
                out,
                "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#8c8c8c\" stroke-opacity=\"0.3\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                at + 4.0,
                mark(grid)
            );
            grid += self.rise;
        }
        let pace = step(self.last - self.first);
        let mut tick = (self.first / pace).ceil() * pace;
        while tick <= self.last * 1.000_001 {
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                self.x(tick),
                TOP + PLOT + 18.0,
                mark(tick)
            );
            tick += pace;
        }
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            TOP + PLOT + 36.0,
            escaped(axis)
        );
    }
}

/// Lines over a common axis, with moments marked.
#[must_use]
pub fn lines(title: &str, unit: &str, axis: &str, all: &[Line], moments: &[Moment]) -> String {
    let plot = Plot::of(all);
    let mut out = String::new();
    head(&mut out, TOP + PLOT + FOOT, &format!("{title} ({unit})"));
    legend(
        &mut out,
        &all.iter()
            .map(|line| line.name.as_str())
            .collect::<Vec<_>>(),
    );
    plot.axes(&mut out, axis);
    for moment in moments {
        let at = plot.x(moment.at);
        // To the left of its line, where it would leave the picture on the right.
        let (aside, anchor) = if at > WIDTH - RIGHT - MOMENT {
            (at - 4.0, "end")
        } else {
            (at + 4.0, "start")
        };
        let _ = writeln!(
            out,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{}\" stroke=\"#f85149\" stroke-dasharray=\"4 3\"/>\
             <text x=\"{aside:.1}\" y=\"{}\" text-anchor=\"{anchor}\" fill=\"#f85149\">{}</text>",
            TOP + PLOT,
            TOP + 12.0,
            escaped(&moment.name)
        );
    }
    for (line, colour) in all.iter().zip(COLOURS.iter().cycle()) {
        let point = |(at, value): &(f64, f64)| format!("{:.1},{:.1}", plot.x(*at), plot.y(*value));
        let path: Vec<String> = line.points.iter().map(point).collect();
        let _ = writeln!(
            out,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\" points=\"{}\"/>",
            path.join(" ")
        );
    }
    out.push_str("</svg>\n");
    out
}

/// One group of bars.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// What they have in common.
    pub name: String,
    /// One value a series; none where there is none.
    pub values: Vec<Option<f64>>,
}

/// Horizontal bars: groups from top to bottom, in each a bar for every series. Each group has its
/// own scale, since what is compared stands in one group.
#[must_use]
pub fn bars(title: &str, unit: &str, series: &[&str], groups: &[Group]) -> String {
    let each = BAR * count(series.len()) + GAP;
    let mut out = String::new();
    head(
        &mut out,
        TOP + each * count(groups.len()) + 12.0,
        &format!("{title} ({unit}; each group has its own scale)"),
    );
    legend(&mut out, series);
    for (number, group) in groups.iter().enumerate() {
        let top = TOP + each * count(number);
        let largest = group.values.iter().flatten().copied().fold(1e-9, f64::max);
        let scale = (WIDTH - NAMES - VALUES) / largest;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            NAMES - 10.0,
            top + BAR * count(series.len()) / 2.0 + 4.0,
            escaped(&group.name)
        );
        for (place, (value, colour)) in group.values.iter().zip(COLOURS.iter().cycle()).enumerate()
        {
            let Some(value) = value else { continue };
            let (at, length) = (top + BAR * count(place), (value * scale).max(1.0));
            let _ = writeln!(
                out,
                "<rect x=\"{NAMES}\" y=\"{at:.1}\" width=\"{length:.1}\" height=\"{}\" fill=\"{colour}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"11\">{}</text>",
                BAR - 2.0,
                NAMES + length + 6.0,
                at + BAR - 4.0,
                shown(*value)
            );
        }
    }
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn points_lie_where_their_values_say() {
        let line = Line {
            name: "a<b".into(),
            points: vec![(0.0, 0.0), (5.0, 50.0), (10.0, 100.0)],
        };
        let cut = Moment {
            name: "cut".into(),
            at: 5.0,
        };
        let svg = lines("t", "IOPS", "s", &[line], &[cut]);
        // The middle of both axes.
        let middle = LEFT + (WIDTH - LEFT - RIGHT) / 2.0;
        let expected = format!(
            "{LEFT:.1},{:.1} {middle:.1},{:.1} {:.1},{TOP:.1}",
            TOP + PLOT,
            TOP + PLOT / 2.0,
            WIDTH - RIGHT
        );
        assert!(svg.contains(&expected), "{svg}");
        assert!(svg.contains("a&lt;b") && svg.contains(&format!("x1=\"{middle:.1}\"")));
        assert!(lines("t", "u", "s", &[], &[]).ends_with("</svg>\n"));
    }

    #[test]
    fn a_bar_is_as_long_as_its_share_of_the_longest_in_its_group() {
        let group = Group {
            name: "g".into(),
            values: vec![Some(50.0), None, Some(100.0)],
        };
        let svg = bars("t", "u", &["a", "b", "c"], &[group]);
        let room = WIDTH - NAMES - VALUES;
        assert!(
            svg.contains(&format!("width=\"{room:.1}\""))
                && svg.contains(&format!("width=\"{:.1}\"", room / 2.0))
        );
        assert_eq!(svg.matches("<rect").count(), 3 + 2);
    }

    #[test]
    fn figures_have_three_digits() {
        let all = [0.0, 0.123, 9.99, 12.34, 123.4, 12345.0, 2_345_678.0].map(shown);
        assert_eq!(all, ["0", "0.12", "9.99", "12.3", "123", "12.3k", "2.35M"]);
        let all = [800_000.0, 2.0, 0.5, 12.5, 200.0, 0.0].map(mark);
        assert_eq!(all, ["800k", "2", "0.5", "12.5", "200", "0"]);
        assert_eq!((step(100.0), step(7.0), step(0.9)), (20.0, 2.0, 0.2));
    }
}
