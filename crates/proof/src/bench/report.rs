//! The report: `table.md` for people, `table.json` for programs, charts.

use super::bar::{Bar, Limit};
use super::chart::{self, Group};
use super::load::Figures;
use super::rounds::{Effort, Row};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Everything that was measured.
pub struct Report {
    /// On what.
    pub machine: Vec<(&'static str, String)>,
    /// How much.
    pub effort: Effort,
    /// Bytes of the units.
    pub unit_bytes: u64,
    /// What is to be reached.
    pub bars: Vec<Bar>,
    /// The cases with every server.
    pub peers: Vec<Row>,
    /// Comparisons of Causeway with itself and with fio.
    pub special: Vec<Row>,
    /// Their charts.
    pub charts: Vec<(&'static str, String)>,
    /// What could not be measured, and why.
    pub left_out: Vec<String>,
}

/// Commands of this length and more are told in MB/s.
const LARGE: usize = 64 << 10;

#[expect(clippy::cast_precision_loss, reason = "lengths of commands are small")]
fn megabytes(row: &Row, server: usize) -> f64 {
    row.of(server, Figures::iops) * row.case.bytes as f64 / 1e6
}

fn cell(row: &Row, server: usize) -> String {
    let of = |figure: fn(&Figures) -> f64| row.of(server, figure);
    let shown = if row.case.bytes >= LARGE {
        format!("{:.0} MB/s", megabytes(row, server))
    } else {
        format!("{:.1}k", of(Figures::iops) / 1e3)
    };
    format!(
        "{shown} / {:.0} / {:.0} / {:.2} / {:.2}",
        of(|f| f.p50),
        of(|f| f.p99),
        of(|f| f.server),
        of(|f| f.client)
    )
}

/// One line of a table, with ratios of Causeway to every other server, and what others did on the
/// machine.
#[must_use]
pub fn line(row: &Row) -> String {
    let mut out = format!("| {} |", row.case.name);
    for server in 0..row.servers.len() {
        // Writing to a String cannot fail.
        let _ = write!(out, " {} |", cell(row, server));
    }
    if let Some(ours) = row.server("causeway") {
        for other in (0..row.servers.len()).filter(|&server| server != ours) {
            let _ = write!(
                out,
                " {:.2} / {:.2} / {:.2} |",
                row.ratio(ours, other, Figures::iops),
                row.ratio(ours, other, |f| f.p50),
                row.ratio(ours, other, |f| f.server)
            );
        }
    }
    let loads: Vec<String> = row.loads.iter().map(|load| format!("{load:.1}")).collect();
    let _ = write!(out, " {:.0} %, {} |", row.others() * 100.0, loads.join(" "));
    out
}

/// The table's head for these servers.
#[must_use]
pub fn head(servers: &[String]) -> String {
    let mut out = "| case |".to_owned();
    for name in servers {
        // Writing to a String cannot fail.
        let _ = write!(out, " {name} |");
    }
    let others: Vec<&String> = servers.iter().filter(|name| *name != "causeway").collect();
    let compared = others.len() < servers.len();
    for name in others.iter().filter(|_| compared) {
        let _ = write!(out, " causeway : {name} |");
    }
    out.push_str(" others, load |");
    let columns = out.matches('|').count() - 1;
    format!("{out}\n|{}", "---|".repeat(columns))
}

/// One line of the table of bars.
#[must_use]
pub fn bar_line(bar: &Bar) -> String {
    let met = if bar.is_met() { "met" } else { "**not met**" };
    let limit = bar.limit.text();
    format!(
        "| {} | {limit} | {:.2} | {met} | {} |",
        bar.what, bar.value, bar.detail
    )
}

/// Which cases must reach what, against whom.
type Demand = (
    &'static [&'static str],
    &'static str,
    &'static str,
    fn(&Figures) -> f64,
    Limit,
);

const DEMANDS: [Demand; 9] = [
    (
        &["r4k32", "r4k32x4"],
        "null",
        "processor time",
        |f| f.server,
        Limit::AtMost(1.5),
    ),
    (
        &["w4k32", "w4k32x4"],
        "null",
        "processor time",
        |f| f.server,
        Limit::AtMost(1.6),
    ),
    (
        &["r4k32", "w4k32"],
        "tgt",
        "processor time",
        |f| f.server,
        Limit::AtMost(0.2),
    ),
    (
        &["r4k32", "w4k32"],
        "tgt",
        "IOPS",
        Figures::iops,
        Limit::AtLeast(4.0),
    ),
    (
        &["r64k16", "w64k16"],
        "null",
        "throughput",
        Figures::iops,
        Limit::AtLeast(0.9),
    ),
    (
        &["r1m8", "w1m8"],
        "null",
        "throughput",
        Figures::iops,
        Limit::AtLeast(0.9),
    ),
    (
        &["plain-r4k32", "libiscsi-r4k32", "whole-r4k32"],
        "tgt",
        "processor time",
        |f| f.server,
        Limit::AtMost(0.15),
    ),
    (
        &[
            "plain-w4k32",
            "libiscsi-w4k32",
            "whole-w4k32",
            "asked-w4k32",
        ],
        "tgt",
        "processor time",
        |f| f.server,
        Limit::AtMost(0.25),
    ),
    (
        &["r4k1", "w4k1"],
        "null",
        "p50",
        |f| f.p50,
        Limit::AtMost(1.25),
    ),
];

/// The bars that rows with peers have.
#[must_use]
pub fn bars(rows: &[Row]) -> Vec<Bar> {
    let mut bars = Vec::new();
    for (cases, other, what, figure, limit) in DEMANDS {
        for row in rows.iter().filter(|row| cases.contains(&row.case.id)) {
            let (Some(ours), Some(theirs)) = (row.server("causeway"), row.server(other)) else {
                continue;
            };
            bars.push(Bar {
                what: format!("causeway : {other}, {}, {what}", row.case.name),
                value: row.ratio(ours, theirs, figure),
                limit,
                detail: format!(
                    "{:.2} : {:.2}",
                    row.of(ours, figure),
                    row.of(theirs, figure)
                ),
            });
        }
    }
    bars
}

fn row_json(row: &Row) -> Value {
    let rounds = row.rounds.iter().map(|round| {
        let figures = round.iter().zip(&row.servers).map(|(figures, server)| {
            json!({
                "server": server, "commands": figures.commands, "seconds": figures.seconds,
                "iops": figures.iops(), "p50_us": figures.p50, "p99_us": figures.p99,
                "server_us_per_io": figures.server, "client_us_per_io": figures.client,
                "others_share": figures.others,
            })
        });
        figures.collect::<Vec<_>>()
    });
    json!({
        "id": row.case.id, "name": row.case.name, "bytes": row.case.bytes, "depth": row.case.depth,
        "sessions": row.case.sessions, "read_percent": row.case.read_percent, "random": row.case.random,
        "load": row.loads, "rounds": rounds.collect::<Vec<_>>(),
    })
}

impl Report {
    /// Writes everything into a directory.
    ///
    /// # Errors
    /// Where that fails.
    pub fn write(&self, to: &Path) -> Result<(), String> {
        let put = |name: &str, text: &str| {
            let path = to.join(name);
            fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
        };
        fs::create_dir_all(to).map_err(|error| format!("{}: {error}", to.display()))?;
        put("table.md", &self.markdown())?;
        put("table.json", &format!("{:#}\n", self.json()))?;
        for (name, svg) in self.charts().iter().chain(&self.charts) {
            put(name, svg)?;
        }
        Ok(())
    }

    fn markdown(&self) -> String {
        let mut out = "# Figures\n\n".to_owned();
        for (name, value) in &self.machine {
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(out, "- {name}: {value}");
        }
        let (rounds, time) = (self.effort.rounds, self.effort.time.as_secs_f64());
        let _ = writeln!(
            out,
            "- {rounds} alternating rounds of {time} s (after {:.1} s of warm-up); units of {} MiB in memory with \
             512-byte blocks where nothing else is said; client on processor 0, servers on processor 1\n",
            time / 5.0,
            self.unit_bytes >> 20
        );
        if !self.bars.is_empty() {
            out.push_str("| bar | limit | reached | | figures |\n|---|---|---|---|---|\n");
            for bar in &self.bars {
                let _ = writeln!(out, "{}", bar_line(bar));
            }
        }
        for why in &self.left_out {
            let _ = writeln!(out, "\nNot measured: {why}");
        }
        if let Some(first) = self.peers.first() {
            let _ = writeln!(
                out,
                "\nCells: IOPS or MB/s / p50 us / p99 us / server's processor time per I/O in us / client's; ratios: \
                 IOPS / p50 / server's processor time; medians over the rounds. Last column: the largest share of the \
                 machine that other programs had in a round, and the load before each round and after the last.\n\n{}",
                head(&first.servers)
            );
            self.peers.iter().for_each(|row| {
                let _ = writeln!(out, "{}", line(row));
            });
        }
        let mut servers: &[String] = &[];
        for row in &self.special {
            if row.servers != servers {
                servers = &row.servers;
                let _ = writeln!(out, "\n{}", head(servers));
            }
            let _ = writeln!(out, "{}", line(row));
        }
        out
    }

    fn json(&self) -> Value {
        let machine = self
            .machine
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        let bars = self.bars.iter().map(|bar| {
            json!({
                "what": bar.what, "limit": bar.limit.text(), "value": bar.value, "met": bar.is_met(),
                "detail": bar.detail,
            })
        });
        json!({
            "machine": machine.collect::<std::collections::BTreeMap<_, _>>(),
            "bars": bars.collect::<Vec<_>>(),
            "peers": self.peers.iter().map(row_json).collect::<Vec<_>>(),
            "special": self.special.iter().map(row_json).collect::<Vec<_>>(),
            "left_out": self.left_out,
        })
    }

    fn charts(&self) -> Vec<(&'static str, String)> {
        let Some(first) = self.peers.first() else {
            return Vec::new();
        };
        let groups = |wanted: fn(&Row) -> bool, figure: &dyn Fn(&Row, usize) -> f64| {
            let rows = self.peers.iter().filter(|row| wanted(row));
            rows.map(|row| Group {
                name: row.case.name.to_owned(),
                values: (0..row.servers.len())
                    .map(|server| figure(row, server))
                    .collect(),
            })
            .collect::<Vec<_>>()
        };
        let small = |row: &Row| row.case.bytes < LARGE;
        let large = |row: &Row| row.case.bytes >= LARGE;
        let cost = |row: &Row, server| row.of(server, |f: &Figures| f.server);
        let draw =
            |title, unit, groups: Vec<Group>| chart::bars(title, unit, &first.servers, &groups);
        let all = [
            (
                "cost-small.svg",
                draw(
                    "Server's processor time per I/O (less is better)",
                    "us",
                    groups(small, &cost),
                ),
            ),
            (
                "cost-large.svg",
                draw(
                    "Server's processor time per I/O (less is better)",
                    "us",
                    groups(large, &cost),
                ),
            ),
            (
                "iops.svg",
                draw(
                    "Commands a second, one core (more is better)",
                    "thousand IOPS",
                    groups(small, &|row, server| row.of(server, Figures::iops) / 1e3),
                ),
            ),
            (
                "throughput.svg",
                draw(
                    "Throughput, one core (more is better)",
                    "MB/s",
                    groups(large, &megabytes),
                ),
            ),
            (
                "latency.svg",
                draw(
                    "Median latency (less is better)",
                    "us",
                    groups(|row| row.case.depth == 1, &|row, server| {
                        row.of(server, |f| f.p50)
                    }),
                ),
            ),
        ];
        all.into()
    }
}
