//! The page of `lab fault`: a chart over time for each fault.

use crate::faults::{Report, Row};
use crate::svg::{self, Line, escape};
use std::fmt::Write as _;

impl Report {
    /// The page.
    #[must_use]
    pub fn page(&self) -> String {
        let mut body = format!(
            "<p>A verified load of 64 KiB reads and writes at random, 8 at a time, over links of {}; the planner chooses the \
             paths. The shaded time is the fault's. In a stall nothing came back at all; the bar is for the longest operation of all. After the fault the load goes on until \
             every NIC carries its share again: a path that came back is watched before it is trusted.</p>{}",
            self.options.rate,
            svg::topology(&self.topology, &[])
        );
        body.push_str(&self.table());
        for row in &self.rows {
            let _fits = write!(
                body,
                "<h2>{}: {}</h2>{}{}",
                row.fault,
                escape(row.title),
                self.nics(row),
                latency(row)
            );
        }
        svg::page("Causeway lab: what a load sees of a fault", &body)
    }

    fn table(&self) -> String {
        let mut out = String::from(
            "<table><tr><th class=\"text\">fault</th><th class=\"text\"></th><th>longest stall</th><th>longest operation</th><th>bar</th><th>all as before after</th><th>errors</th>\
             <th>blocks verified</th><th>wrong</th><th></th></tr>",
        );
        for row in &self.rows {
            let (class, word) = if row.met {
                ("good", "met")
            } else {
                ("bad", "not met")
            };
            let _fits = write!(
                out,
                "<tr><td class=\"text\">{}</td><td class=\"text long\">{}</td><td>{:.0} ms</td><td>{:.0} ms</td><td>{:.0} ms</td><td>{}</td><td>{}</td><td>{}</td>\
                 <td>{}</td><td class=\"{class}\">{word}</td></tr>",
                row.fault,
                escape(row.title),
                row.stall_ms,
                row.longest_ms,
                row.bar_ms,
                row.failback(),
                row.errors,
                row.checked,
                row.bad
            );
        }
        out + "</table>"
    }

    /// Throughput of every card, in both directions.
    fn nics(&self, row: &Row) -> String {
        let mut cards: Vec<&str> = self
            .topology
            .host
            .iter()
            .map(|port| port.card.as_str())
            .collect();
        cards.dedup();
        let classes = ["read", "write", "theirs"];
        let total = Line {
            class: "theirs",
            label: "all NICs",
            points: rates(row, |nics| nics.iter().sum()),
        };
        let labels: Vec<String> = cards.iter().map(|card| format!("card {card}")).collect();
        let mut lines = vec![total];
        for ((card, label), class) in cards.iter().zip(&labels).zip(classes) {
            let of = |nics: &[f64]| {
                let ports = self.topology.host.iter().zip(nics);
                ports
                    .filter(|(port, _)| port.card == *card)
                    .map(|(_, rate)| rate)
                    .sum()
            };
            lines.push(Line {
                class,
                label,
                points: rates(row, of),
            });
        }
        let fault = (row.from_seconds, row.to_seconds);
        svg::timeline(&lines, seconds(row), fault, "MB/s")
    }

    /// The report as lines for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!(
            "Verified 64 KiB reads and writes at random, 8 at a time; links {}\n\n\
             fault         stall ms  longest ms       bar    failback   errors    verified    wrong\n",
            self.options.rate
        );
        for row in &self.rows {
            let _fits = writeln!(
                out,
                "{:<12}{:>10.0}{:>12.0}{:>10.0}{:>12}{:>9}{:>12}{:>9}  {:<8} {}",
                row.fault,
                row.stall_ms,
                row.longest_ms,
                row.bar_ms,
                row.failback_seconds
                    .map_or_else(|| "-".to_owned(), |it| format!("{it:.1} s")),
                row.errors,
                row.checked,
                row.bad,
                if row.met { "met" } else { "NOT MET" },
                row.title
            );
        }
        out
    }
}

/// A sum over NICs, while the load runs.
fn rates(row: &Row, of: impl Fn(&[f64]) -> f64) -> Vec<(f64, f64)> {
    let until = seconds(row);
    let during = row.nics.iter().filter(|(at, _)| *at <= until);
    during.map(|(at, nics)| (*at, of(nics))).collect()
}

fn seconds(row: &Row) -> f64 {
    // Behind the load comes the verification of everything that it wrote.
    row.figures.seconds.max(row.to_seconds).max(1.0)
}

/// The longest latency of each interval.
fn latency(row: &Row) -> String {
    if row.figures.series.is_empty() {
        return String::new();
    }
    let points = row
        .figures
        .series
        .iter()
        .map(|it| (it.ms / 1e3, it.max_us / 1e3));
    let line = Line {
        class: "write",
        label: "longest latency",
        points: points.collect(),
    };
    svg::timeline(
        &[line],
        seconds(row),
        (row.from_seconds, row.to_seconds),
        "ms",
    )
}
