//! The page of `lab fault`: a chart over time for each fault.

use crate::bed::Side;
use crate::faults::{FaultsReport, FaultsRow};
use crate::figures::PathState;
use crate::svg::{self, Line, Marks, escape};
use std::fmt::Write as _;

impl FaultsReport {
    /// As a page of HTML that needs no other file.
    #[must_use]
    pub fn page(&self) -> String {
        let mut body = format!(
            "<p>A verified load of 64 KiB reads and writes at random, 8 at a time, over links of {}; the planner chooses the \
             paths (drawn are those of the first fault). The shaded time is the fault's, the dashed line is where all was as before. In a stall nothing came back at all; the bar is for the longest operation of all. After the fault the load goes on until \
             every NIC carries its share again: a path that came back is watched before it is trusted.</p>{}",
            self.options.rate,
            svg::topology(&self.topology, &self.lines())
        );
        body.push_str(&self.table());
        for row in &self.rows {
            let _fits = write!(
                body,
                "<h2>{}: {}{}</h2>{}{}",
                row.fault,
                escape(row.title),
                if row.round > 1 { " (again)" } else { "" },
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

    /// The paths of the first load, as far as their ends have names.
    fn lines(&self) -> Vec<(usize, usize, bool)> {
        let paths = self.rows.first().map(|row| &row.figures.paths);
        let lines = paths.into_iter().flatten().filter_map(|path| {
            let portal = path.portal.rsplit_once(':').map(|it| it.0)?;
            let host = self.topology.find_address(Side::Host, &path.from)?;
            let target = self.topology.find_address(Side::Target, portal)?;
            Some((host, target, path.state == PathState::Active))
        });
        lines.collect()
    }

    /// Throughput of every card, in both directions.
    fn nics(&self, row: &FaultsRow) -> String {
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
        svg::timeline(&lines, seconds(row), marks(row), "MB/s")
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
fn rates(row: &FaultsRow, of: impl Fn(&[f64]) -> f64) -> Vec<(f64, f64)> {
    let until = seconds(row);
    let during = row.nics.iter().filter(|(at, _)| *at <= until);
    during.map(|(at, nics)| (*at, of(nics))).collect()
}

fn seconds(row: &FaultsRow) -> f64 {
    // Behind the load comes the verification of everything that it wrote.
    row.figures.seconds.max(row.to_seconds).max(1.0)
}

fn marks(row: &FaultsRow) -> Marks {
    Marks {
        fault: (row.from_seconds, row.to_seconds),
        healed: row.failback_seconds.map(|after| row.to_seconds + after),
    }
}

/// The longest latency of each interval.
fn latency(row: &FaultsRow) -> String {
    if row.figures.series.is_empty() {
        return String::new();
    }
    // In the last interval, which is cut, often nothing ends.
    let whole = row.figures.series.len().saturating_sub(1);
    let points = row
        .figures
        .series
        .iter()
        .take(whole)
        .map(|it| (it.ms / 1e3, it.max_us / 1e3));
    let line = Line {
        class: "write",
        label: "longest latency",
        points: points.collect(),
    };
    svg::timeline(&[line], seconds(row), marks(row), "ms")
}
