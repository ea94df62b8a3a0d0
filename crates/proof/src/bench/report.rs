//! The report: `table.md` for people, `table.json` for programs, charts.

use super::bar::{Bar, Limit};
use super::chart::{self, Group};
use super::figures::Figures;
use super::rounds::{Effort, Row};
use markdown::{MarkdownTable, paragraph, with_block};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Everything that was measured.
pub struct BenchReport {
    /// Facts of the machine, each with its name.
    pub machine: Vec<(&'static str, String)>,
    /// How much.
    pub effort: Effort,
    /// Size of each server's unit, in bytes.
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

/// Commands of this length and more are reported in MB/s.
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

/// A row for each case and server.
fn each_server(rows: &[Row]) -> String {
    let mut table = MarkdownTable::new(&[
        "case",
        "server",
        "rate",
        "p50 us",
        "p99 us",
        "server us",
        "client us",
    ]);
    for row in rows {
        for (server, name) in row.servers.iter().enumerate() {
            let of = |figure: fn(&Figures) -> f64| row.of(server, figure);
            let rate = if row.case.bytes >= LARGE {
                format!("{:.0} MB/s", megabytes(row, server))
            } else {
                format!("{:.1}k IOPS", of(Figures::iops) / 1e3)
            };
            let figures = [
                rate,
                format!("{:.0}", of(|f| f.p50)),
                format!("{:.0}", of(|f| f.p99)),
                format!("{:.2}", of(|f| f.server)),
                format!("{:.2}", of(|f| f.client)),
            ];
            let mut cells = vec![row.case.name, name.as_str()];
            cells.extend(figures.iter().map(String::as_str));
            table.row(&cells);
        }
    }
    table.into_text()
}

/// A row for each case and other server; empty where nothing is compared with Causeway.
fn compared(rows: &[Row]) -> String {
    let mut table = MarkdownTable::new(&[
        "case",
        "causeway :",
        "rate",
        "p50",
        "server us",
        "others, load",
    ]);
    let mut is_empty = true;
    for row in rows {
        let Some(ours) = row.server("causeway") else {
            continue;
        };
        let loads: Vec<String> = row.loads.iter().map(|load| format!("{load:.1}")).collect();
        let others = format!("{:.0} %, {}", row.others() * 100.0, loads.join(" "));
        for (other, name) in row.servers.iter().enumerate().filter(|(at, _)| *at != ours) {
            let ratios = [
                row.ratio(ours, other, Figures::iops),
                row.ratio(ours, other, |f| f.p50),
                row.ratio(ours, other, |f| f.server),
            ];
            let [rate, p50, server] = ratios.map(|ratio| format!("{ratio:.2}"));
            table.row(&[row.case.name, name, &rate, &p50, &server, &others]);
            is_empty = false;
        }
    }
    if is_empty {
        String::new()
    } else {
        table.into_text()
    }
}

/// Puts the tables of `table`, a file that a run has written, into their place in a document.
///
/// # Errors
/// Where one of them cannot be read or written, or the document has no such place.
pub fn publish(table: &Path, document: &Path) -> Result<(), String> {
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let text = read(table)?;
    let text = text.trim_start_matches("# Figures\n\n");
    let page = with_block(&read(document)?, "bench", text)
        .ok_or_else(|| format!("{} has no place for the tables", document.display()))?;
    fs::write(document, page).map_err(|error| format!("{}: {error}", document.display()))
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

impl BenchReport {
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

    /// All tables, with lines that a document may have.
    fn markdown(&self) -> String {
        let mut out = "# Figures\n\n".to_owned();
        for (name, value) in &self.machine {
            out.push_str(&paragraph(&format!("- {name}: {value}"), "  "));
        }
        let (rounds, time) = (self.effort.rounds, self.effort.time.as_secs_f64());
        let effort = format!(
            "- {rounds} alternating rounds of {time} s (after {:.1} s of warm-up); units of {} MiB in memory with 512-byte \
             blocks where nothing else is said; client on processor 0, servers on processor 1",
            time / 5.0,
            self.unit_bytes >> 20
        );
        out.push_str(&paragraph(&effort, "  "));
        if !self.bars.is_empty() {
            out.push('\n');
            let mut table = MarkdownTable::new(&["bar", "limit", "reached", "", "figures"]);
            for bar in &self.bars {
                let met = if bar.is_met() { "met" } else { "**not met**" };
                let value = format!("{:.2}", bar.value);
                table.row(&[&bar.what, &bar.limit.text(), &value, met, &bar.detail]);
            }
            out.push_str(&table.into_text());
        }
        for why in &self.left_out {
            out.push('\n');
            out.push_str(&paragraph(&format!("Not measured: {why}"), ""));
        }
        for (rows, what) in [
            (
                &self.peers,
                "Every server by itself: commands or bytes a second, latencies, and processor time per I/O of server and \
                 client. Medians over the rounds.",
            ),
            (
                &self.special,
                "Comparisons with ourselves and with fio, in the same form.",
            ),
        ] {
            if rows.is_empty() {
                continue;
            }
            let _ = write!(out, "\n{}\n{}", paragraph(what, ""), each_server(rows));
            let text = "Causeway against each other server. The last column says the largest share of the machine that \
                        other programs had in a round, and the load before each round and after the last.";
            let compared = compared(rows);
            if !compared.is_empty() {
                let _ = write!(out, "\n{}\n{compared}", paragraph(text, ""));
            }
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

#[cfg(test)]
mod test {
    use super::*;
    use crate::bench::case::PEER_CASES;
    use std::time::Duration;

    fn figures(server: f64) -> Figures {
        Figures {
            commands: 1000.0,
            seconds: 1.0,
            p50: 80.0,
            p99: 130.0,
            server,
            ..Figures::default()
        }
    }

    #[test]
    fn the_tables_have_a_row_for_each_server_and_fit_into_the_document() {
        let row = Row {
            case: PEER_CASES[0],
            servers: ["null", "causeway"].map(str::to_owned).to_vec(),
            rounds: vec![vec![figures(2.0), figures(3.0)]],
            loads: vec![1.0, 2.0],
        };
        let report = BenchReport {
            machine: vec![("processors", "2 x such".to_owned())],
            effort: Effort {
                rounds: 1,
                time: Duration::from_secs(1),
                again: false,
            },
            unit_bytes: 1 << 30,
            bars: bars(std::slice::from_ref(&row)),
            peers: vec![row],
            special: Vec::new(),
            charts: Vec::new(),
            left_out: vec!["tgt: is not here".to_owned()],
        };
        let text = report.markdown();
        assert!(
            text.lines().all(|line| line.chars().count() <= 120),
            "{text}"
        );
        let name = PEER_CASES[0].name;
        for server in [
            "null | 1.0k IOPS | 80 | 130 | 2.00",
            "causeway | 1.0k IOPS | 80 | 130 | 3.00",
        ] {
            assert!(text.contains(&format!("| {name} | {server} |")), "{text}");
        }
        assert!(
            text.contains(&format!("| {name} | null | 1.00 | 1.00 | 1.50 | ")),
            "{text}"
        );

        let to = std::env::temp_dir().join(format!("causeway-bench-page-{}", std::process::id()));
        fs::create_dir_all(&to).unwrap();
        let (table, document) = (to.join("table.md"), to.join("page.md"));
        fs::write(&table, &text).unwrap();
        fs::write(
            &document,
            "before\n<!-- generated: bench -->\nold\n<!-- end -->\nafter\n",
        )
        .unwrap();
        publish(&table, &document).unwrap();
        let page = fs::read_to_string(&document).unwrap();
        assert!(page.starts_with("before\n") && page.ends_with("<!-- end -->\nafter\n"));
        assert!(page.contains(&format!("| {name} | null |")) && !page.contains("old"));
        fs::remove_dir_all(&to).unwrap();
    }

    #[test]
    fn the_page_of_performance_has_a_place_for_the_tables() {
        let page = include_str!("../../../../docs/performance.md");
        assert!(with_block(page, "bench", "").is_some());
    }
}
