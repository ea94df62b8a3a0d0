//! The report of drills: lines for a terminal, and a page with a chart over time for each.

use super::net::NODES;
use super::rows::{ClusterReport, ClusterRow, StepRow};
use super::seen::SILENT;
use crate::svg::{self, Line, Marks, escape};
use std::fmt::Write as _;

const WHAT: &str = "Verified 16 KiB reads and writes at random, 4 at a time and 250 a second, by one host with two paths \
                    to each of two nodes; three members of etcd";

impl ClusterReport {
    /// As a page of HTML that needs no other file.
    #[must_use]
    pub fn page(&self) -> String {
        let mut body = format!(
            "<p>{WHAT}; links of {}. The shaded time is from the first step to the last; the dashed line is where both \
             nodes had all of the LUN again. The bar of a step is for the operations that were under way then, or began \
             before the next step.</p>{}",
            self.options.rate,
            self.table()
        );
        for row in &self.rows {
            let again = if row.round > 1 { " (again)" } else { "" };
            let (name, title) = (escape(&row.drill), escape(&row.title));
            let _fits = write!(
                body,
                "<h2>{name}: {title}{again}</h2>{}{}{}{}",
                step_table(&row.steps),
                throughput(row),
                latency(row),
                states(row)
            );
        }
        svg::page(
            "Causeway lab: what hosts of a cluster see of its faults",
            &body,
        )
    }

    fn table(&self) -> String {
        let mut out = String::from(
            "<table><tr><th class=\"text\">drill</th><th class=\"text\"></th><th>longest stall</th><th>longest \
             operation</th><th>bar</th><th>both copies whole after</th><th>errors</th><th>blocks verified</th>\
             <th>wrong</th><th></th></tr>",
        );
        for row in &self.rows {
            let (class, word) = verdict(row.met);
            let _fits = write!(
                out,
                "<tr><td class=\"text\">{}</td><td class=\"text long\">{}</td><td>{:.0} ms</td><td>{:.0} ms</td>\
                 <td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"{class}\">{word}</td></tr>",
                escape(&row.drill),
                escape(&row.title),
                row.stall_ms,
                row.longest_ms,
                bar(row.bar_ms()),
                row.whole(),
                row.errors,
                row.checked,
                row.bad
            );
        }
        out + "</table>"
    }

    /// The report as lines for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!(
            "{WHAT}; links of {}\n\n\
             drill               stall ms  longest ms       bar     whole   errors    verified    wrong\n",
            self.options.rate
        );
        for row in &self.rows {
            let _fits = writeln!(
                out,
                "{:<18}{:>10.0}{:>12.0}{:>10}{:>10}{:>9}{:>12}{:>9}  {:<8} {}",
                row.drill,
                row.stall_ms,
                row.longest_ms,
                row.bar_ms()
                    .map_or_else(|| "-".to_owned(), |it| format!("{it:.0}")),
                row.whole(),
                row.errors,
                row.checked,
                row.bad,
                if row.met { "met" } else { "NOT MET" },
                row.title
            );
        }
        for row in &self.rows {
            let _fits = writeln!(out, "\n{}", row.drill);
            out += &events(row);
        }
        out
    }
}

/// What was done, and what became of the copies, by time.
fn events(row: &ClusterRow) -> String {
    let steps = row.steps.iter().map(|step| {
        let bar = step.bar_ms.map(|bar| {
            let word = if step.met() { "within" } else { "NOT WITHIN" };
            format!(" {word} {bar:.0} ms")
        });
        let (order, longest) = (&step.order, step.longest_ms);
        let bar = bar.unwrap_or_default();
        let line = format!("{order:<24} longest operation {longest:.0} ms{bar}");
        (step.seconds, line)
    });
    let states = row.states.iter().map(|(at, both)| {
        let each = NODES.iter().zip(both);
        let each: Vec<String> = each
            .map(|(node, state)| format!("{node} {state}"))
            .collect();
        (*at, format!("  {}", each.join(", ")))
    });
    let mut all: Vec<(f64, String)> = steps.chain(states).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let lines = all
        .iter()
        .map(|(at, line)| format!("{at:>8.1} s  {line}\n"));
    lines.collect()
}

impl ClusterRow {
    /// The bar of the drill: its step's, the longest where there are several.
    fn bar_ms(&self) -> Option<f64> {
        let bars = self.steps.iter().filter_map(|step| step.bar_ms);
        bars.reduce(f64::max)
    }

    fn whole(&self) -> String {
        let whole = self.whole_seconds;
        whole.map_or_else(|| "-".to_owned(), |it| format!("{it:.1} s"))
    }

    fn seconds(&self) -> f64 {
        let last = self.nics.last().map_or(1.0, |it| it.0);
        last.max(1.0)
    }

    fn marks(&self) -> Marks {
        let first = self.steps.first().map_or(0.0, |it| it.seconds);
        let last = self.steps.last().map_or(0.0, |it| it.seconds);
        Marks {
            fault: (first, last),
            healed: self.whole_seconds.map(|after| last + after),
        }
    }
}

fn verdict(met: bool) -> (&'static str, &'static str) {
    if met {
        ("good", "met")
    } else {
        ("bad", "not met")
    }
}

fn bar(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".to_owned(), |it| format!("{it:.0} ms"))
}

fn step_table(steps: &[StepRow]) -> String {
    let mut out = String::from(
        "<table><tr><th>at</th><th class=\"text\">what was done</th><th>longest operation</th><th>bar</th><th></th></tr>",
    );
    for step in steps {
        let (class, word) = match step.bar_ms {
            Some(_) => verdict(step.met()),
            None => ("", ""),
        };
        let _fits = write!(
            out,
            "<tr><td>{:.1} s</td><td class=\"text\">{}</td><td>{:.0} ms</td><td>{}</td><td class=\"{class}\">{word}</td></tr>",
            step.seconds,
            escape(&step.order),
            step.longest_ms,
            bar(step.bar_ms)
        );
    }
    out + "</table>"
}

/// Throughput of the host's NICs, in both directions.
fn throughput(row: &ClusterRow) -> String {
    let of = |pick: &dyn Fn(&[f64]) -> f64| {
        let all = row.nics.iter();
        all.map(|(at, nics)| (*at, pick(nics))).collect()
    };
    let lines = [
        Line {
            class: "theirs",
            label: "both NICs",
            points: of(&|nics| nics.iter().sum()),
        },
        Line {
            class: "read",
            label: "eth0",
            points: of(&|nics| nics.first().copied().unwrap_or(0.0)),
        },
        Line {
            class: "write",
            label: "eth1",
            points: of(&|nics| nics.get(1).copied().unwrap_or(0.0)),
        },
    ];
    svg::timeline(&lines, row.seconds(), row.marks(), "MB/s")
}

/// The longest latency of each interval.
fn latency(row: &ClusterRow) -> String {
    // In the last interval, which is cut, often nothing ends.
    let whole = row.figures.series.len().saturating_sub(1);
    let points = row.figures.series.iter().take(whole);
    let line = Line {
        class: "write",
        label: "longest latency",
        points: points.map(|it| (it.ms / 1e3, it.max_us / 1e3)).collect(),
    };
    svg::timeline(&[line], row.seconds(), row.marks(), "ms")
}

/// A strip for each node, with its copy's state over time.
fn states(row: &ClusterRow) -> String {
    const LEFT: f64 = 52.0;
    const WIDE: f64 = 620.0;
    let seconds = row.seconds();
    let x = |second: f64| LEFT + (second / seconds).clamp(0.0, 1.0) * WIDE;
    let mut out = String::from("<svg viewBox=\"0 0 690 60\" role=\"img\" class=\"timeline\">");
    for (node, name) in NODES.iter().enumerate() {
        let (top, line) = if node == 0 { (6, 22) } else { (32, 48) };
        let _fits = write!(
            out,
            "<text class=\"label\" x=\"46\" y=\"{line}\">{name}</text>"
        );
        let mut begin = 0;
        while begin < row.states.len() {
            let state = &row.states[begin].1[node];
            let same = row.states[begin..].iter();
            let end = begin + same.take_while(|it| it.1[node] == *state).count();
            let from = x(row.states[begin].0);
            let to = row.states.get(end).map_or(LEFT + WIDE, |it| x(it.0));
            let class = match state.as_str() {
                "owner" | "solo" => "read",
                "replica" => "theirs",
                SILENT => "fault",
                _ => "write",
            };
            let state = escape(state);
            let _fits = write!(
                out,
                "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{top}\" width=\"{:.1}\" height=\"22\"><title>{state}</title></rect>",
                (to - from).max(0.5)
            );
            if to - from > 30.0 {
                let _fits = write!(
                    out,
                    "<text class=\"small\" x=\"{:.1}\" y=\"{line}\">{state}</text>",
                    (from + to) / 2.0
                );
            }
            begin = end;
        }
    }
    out + "</svg>"
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::cluster::ClusterOptions;
    use crate::figures::Figures;

    fn report() -> ClusterReport {
        let step = |seconds, order: &str, longest_ms, bar_ms| StepRow {
            seconds,
            order: order.to_owned(),
            longest_ms,
            bar_ms,
        };
        let both = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        ClusterReport {
            lab: "cluster",
            options: ClusterOptions::default(),
            rows: vec![ClusterRow {
                drill: "owner-dies".to_owned(),
                round: 1,
                title: "a <b>".to_owned(),
                steps: vec![
                    step(2.0, "kill owner", 5200.0, Some(5000.0)),
                    step(9.0, "start all", 3.0, None),
                ],
                stall_ms: 5100.0,
                longest_ms: 5200.0,
                whole_seconds: Some(1.5),
                errors: 0,
                checked: 1000,
                bad: 0,
                met: false,
                nics: vec![(0.1, vec![1.0, 2.0]), (12.0, vec![0.0, 0.0])],
                states: vec![
                    (0.0, both("owner", "replica")),
                    (2.0, both("silent", "replica")),
                    (6.1, both("silent", "solo")),
                ],
                figures: Figures::default(),
            }],
        }
    }

    #[test]
    fn a_report_names_each_step_with_its_bar_and_what_became_of_the_copies() {
        let text = report().text();
        for words in [
            "NOT MET",
            "2.0 s  kill owner               longest operation 5200 ms NOT WITHIN 5000 ms",
            "6.1 s    a silent, b solo",
            "9.0 s  start all                longest operation 3 ms\n",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let page = report().page();
        assert!(page.contains("owner-dies: a &lt;b&gt;"), "{page}");
        assert_eq!(page.matches("<title>silent</title>").count(), 1);
        assert_eq!(page.matches("<title>solo</title>").count(), 1);
        assert_eq!(page.matches("<svg").count(), 3);
    }
}
