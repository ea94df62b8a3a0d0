//! `lab bars`: what the path layer has to reach, each figure held against its own reference in the
//! same run.
//!
//! Every quantity is measured in rounds, its reference right beside it, and a bar is the median of
//! the rounds' quotients.

use crate::bed::Topology;
use crate::error::LabError;
use crate::faults;
use crate::mpio::{self, hand_made, limit, one_path, sequential};
use crate::port::Port;
use crate::rate::Rate;
use crate::rig::{Disk, Rig, Use};
use crate::round_robin;
use crate::tool::missing;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;
use tokio::process::{Child, Command};

/// How it is measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct BarsOptions {
    /// Rate of a link where the bar does not say another.
    pub rate: Rate,
    /// Rate of each of four links: the processors of a small machine cannot carry four of 1 Gb/s.
    pub rate_of_four: Rate,
    /// Buffer of a port of the switch, in KiB.
    pub buffer_kib: u32,
    /// Seconds for each measurement.
    pub seconds: u32,
    /// How often.
    pub rounds: u32,
    /// Of the groups, only these; empty: all.
    pub groups: Vec<String>,
}

impl Default for BarsOptions {
    fn default() -> Self {
        Self {
            rate: Rate::GIGABIT,
            rate_of_four: Rate::megabits(250),
            buffer_kib: 64,
            seconds: 3,
            rounds: 2,
            groups: Vec::new(),
        }
    }
}

/// The groups of bars.
pub const GROUPS: [&str; 6] = [
    "two-paths",
    "mesh",
    "forced-mesh",
    "four-links",
    "unequal",
    "cut",
];

/// Programs beside the lab that never rest, where a bar asks for other work: as many as the small
/// machine has processors.
const BUSY: usize = 2;

/// Rounds at least where a machine is busy: single ones lie far apart.
const BUSY_ROUNDS: u32 = 5;

/// What `causeway lab bars` measured, beside what is asked.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BarsReport {
    /// Its name.
    pub lab: &'static str,
    /// How it was measured.
    pub options: BarsOptions,
    /// The bars.
    pub rows: Vec<Bar>,
}

/// A figure, what is asked of it, and the rounds that it is the median of.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Bar {
    /// What it is about; `--groups` chooses by it.
    pub group: &'static str,
    /// What it says.
    pub what: String,
    /// What was measured: a quotient, or milliseconds.
    pub value: f64,
    /// The figure of each round, in order.
    pub rounds: Vec<f64>,
    /// What is asked.
    pub bar: f64,
    /// Less is better.
    pub at_most: bool,
    /// It is reached.
    pub met: bool,
    /// MB/s or IOPS of the reference and of ours in the last round.
    pub last: Option<(f64, f64)>,
}

/// A run of the bench that a quantity comes from.
#[derive(Clone)]
struct Run {
    how: Use,
    unit: Unit,
}

#[derive(Clone, Copy)]
enum Unit {
    Megabytes,
    Iops,
}

impl Run {
    fn sequential(how: Use, write: bool, depth: u32, seconds: u32) -> Self {
        Self {
            how: how.with(&sequential(write, depth, seconds)),
            unit: Unit::Megabytes,
        }
    }

    fn random(how: Use, block: &str, depth: u32, write: bool, seconds: u32, unit: Unit) -> Self {
        let w = if write { 100 } else { 0 };
        let words = format!("-b{block} -t1 -o{depth} -r -w{w} -f256M -d{seconds} -W1 -C0");
        let words: Vec<&str> = words.split(' ').collect();
        Self {
            how: how.with(&words),
            unit,
        }
    }

    async fn measure(&self, rig: &Rig, seconds: u32) -> Result<f64, LabError> {
        let figures = rig.bench(&self.how, limit(seconds)).await?;
        if figures.errors > 0 {
            return Err(LabError::new(
                format!(
                    "{} operations failed in a run without a fault",
                    figures.errors
                ),
                "run it by hand with `causeway lab up`",
            ));
        }
        let total = figures.total.unwrap_or_default();
        Ok(match self.unit {
            Unit::Megabytes => total.megabytes(),
            Unit::Iops => total.iops,
        })
    }
}

/// A quantity against the sum of its references.
struct Pairing {
    what: String,
    bar: f64,
    at_most: bool,
    ours: Run,
    references: Vec<Run>,
}

struct Lab<'a> {
    program: &'a Path,
    options: &'a BarsOptions,
    rows: Vec<Bar>,
    report: &'a mut dyn FnMut(&str),
}

/// Runs them; `report` is called with what is done.
///
/// # Errors
/// Where the lab cannot be built, or a run fails.
pub async fn run(
    program: &Path,
    options: BarsOptions,
    mut report: impl FnMut(&str),
) -> Result<BarsReport, LabError> {
    if let Some(name) = options
        .groups
        .iter()
        .find(|it| !GROUPS.contains(&it.as_str()))
    {
        return Err(LabError::usage(
            format!("there is no group {name}"),
            format!("the groups are {}", GROUPS.join(", ")),
        ));
    }
    let mut lab = Lab {
        program,
        options: &options,
        rows: Vec::new(),
        report: &mut report,
    };
    for group in GROUPS {
        if !options.groups.is_empty() && !options.groups.iter().any(|it| it == group) {
            continue;
        }
        match group {
            "two-paths" => lab.two_paths().await?,
            "mesh" => lab.mesh().await?,
            "forced-mesh" => lab.forced_mesh().await?,
            "four-links" => lab.four_links().await?,
            "unequal" => lab.unequal().await?,
            _ => lab.cut().await?,
        }
    }
    let rows = lab.rows;
    Ok(BarsReport {
        lab: "bars",
        options,
        rows,
    })
}

/// Programs that only use the processor; they end when they are dropped.
fn busy_programs(count: usize) -> Result<Vec<Child>, LabError> {
    let start = |_| {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command.spawn().map_err(|error| missing("sh", &error))
    };
    (0..count).map(start).collect()
}

fn word(write: bool) -> &'static str {
    if write { "write" } else { "read" }
}

impl Lab<'_> {
    async fn two_paths(&mut self) -> Result<(), LabError> {
        let seconds = self.options.seconds;
        let topology = mpio::topology(self.options.rate, self.options.buffer_kib);
        let mut pairings = Vec::new();
        for (depth, bar) in [(1, 1.8), (4, 1.9)] {
            for write in [false, true] {
                let ours = Use::all(&[])
                    .from(&["eth0", "eth1"])
                    .wired(&[(0, 0), (1, 1)]);
                pairings.push(Pairing {
                    what: format!(
                        "two planned paths against one, sequential 4 MiB {}, depth {depth}",
                        word(write)
                    ),
                    bar,
                    at_most: false,
                    ours: Run::sequential(ours, write, depth, seconds),
                    references: vec![Run::sequential(one_path(), write, depth, seconds)],
                });
            }
        }
        self.pairings("two-paths", topology, pairings).await
    }

    async fn mesh(&mut self) -> Result<(), LabError> {
        let seconds = self.options.seconds;
        let topology = mpio::topology(self.options.rate, self.options.buffer_kib);
        let mut pairings = Vec::new();
        for write in [false, true] {
            pairings.push(Pairing {
                what: format!(
                    "full mesh with defaults against 1:1 by hand, {}",
                    word(write)
                ),
                bar: 0.95,
                at_most: false,
                ours: Run::sequential(Use::all(&[]), write, 1, seconds),
                references: vec![Run::sequential(hand_made(), write, 1, seconds)],
            });
            pairings.push(Pairing {
                what: format!(
                    "all 8 paths active, adaptive against planned, {}",
                    word(write)
                ),
                bar: 0.85,
                at_most: false,
                ours: Run::sequential(Use::all(&["--no-plan"]), write, 1, seconds),
                references: vec![Run::sequential(Use::all(&[]), write, 1, seconds)],
            });
        }
        let plain = Use::all(&["--no-plan", "--policy", "round-robin"]);
        pairings.push(Pairing {
            what: "all 8 paths active, plain round robin against planned, write (the lab is real)"
                .to_owned(),
            bar: 0.4,
            at_most: true,
            ours: Run::sequential(plain, true, 1, seconds),
            references: vec![Run::sequential(Use::all(&[]), true, 1, seconds)],
        });
        self.pairings("mesh", topology, pairings).await
    }

    /// All eight paths, of which the initiator does not know how fast they are, with blocks of
    /// several sizes, on a machine that does nothing else and on one that others use.
    async fn forced_mesh(&mut self) -> Result<(), LabError> {
        let seconds = self.options.seconds;
        for busy in [0, BUSY] {
            let topology = mpio::topology(self.options.rate, self.options.buffer_kib);
            let with = match busy {
                0 => String::new(),
                some => format!(", beside {some} busy programs"),
            };
            let mut pairings = Vec::new();
            for (block, depth) in [("64K", 32), ("512K", 4), ("4M", 1)] {
                let random = |how| Run::random(how, block, depth, true, seconds, Unit::Megabytes);
                pairings.push(Pairing {
                    what: format!(
                        "all 8 paths active, their rates not reported, {block} depth {depth}, adaptive against planned, write{with}"
                    ),
                    bar: 0.85,
                    at_most: false,
                    ours: random(Use::all(&["--no-plan"]).unreported()),
                    references: vec![random(Use::all(&[]).unreported())],
                });
            }
            let _ends_with_this = busy_programs(busy)?;
            self.pairings("forced-mesh", topology, pairings).await?;
        }
        Ok(())
    }

    async fn four_links(&mut self) -> Result<(), LabError> {
        let (rate, seconds) = (self.options.rate_of_four, self.options.seconds);
        let topology = round_robin::topology(rate, self.options.buffer_kib);
        let one = Use::all(&["--no-plan", "--policy", "round-robin"]).from(&["eth0"]);
        let pairing = Pairing {
            what: format!("four links of {rate}, one stream, sequential 4 MiB write, against one"),
            bar: 3.7,
            at_most: false,
            ours: Run::sequential(Use::all(&[]), true, 1, seconds),
            references: vec![Run::sequential(one, true, 1, seconds)],
        };
        self.pairings("four-links", topology, vec![pairing]).await
    }

    async fn unequal(&mut self) -> Result<(), LabError> {
        let (options, seconds) = (self.options, self.options.seconds);
        let slow = Rate::megabits(options.rate.bits() / 10_000_000);
        let pair = |name: &str, rate, network| Port::new(name, name).rate(rate).network(network);
        let topology = Topology {
            host: vec![pair("eth0", options.rate, 0), pair("eth1", slow, 1)],
            target: vec![pair("p0", options.rate, 0), pair("p1", slow, 1)],
            buffer_kib: options.buffer_kib,
            mtu: 9000,
        };
        // Both links active: the planner would keep to one speed class.
        let both = || Use::all(&["--no-plan"]);
        let alone = |nic: &str| Use::all(&["--no-plan"]).from(&[nic]);
        let least = || Use::all(&["--no-plan", "--policy", "least-queue-depth"]);
        let mut pairings = Vec::new();
        for write in [false, true] {
            let large = |how| Run::random(how, "64K", 32, write, seconds, Unit::Megabytes);
            let small = |how| Run::random(how, "4K", 16, write, seconds, Unit::Iops);
            let mut pairing = |what: &str, bar, ours, references| {
                pairings.push(Pairing {
                    what: format!("{} + {slow}, {what}, {}", options.rate, word(write)),
                    bar,
                    at_most: false,
                    ours,
                    references,
                });
            };
            pairing(
                "64 KiB depth 32 against the sum of the links",
                0.9,
                large(both()),
                vec![large(alone("eth0")), large(alone("eth1"))],
            );
            pairing(
                "4 KiB depth 16 against least queue depth",
                0.95,
                small(both()),
                vec![small(least())],
            );
            pairing(
                "4 MiB depth 1 against the fast link",
                0.7,
                Run::sequential(both(), write, 1, seconds),
                vec![Run::sequential(alone("eth0"), write, 1, seconds)],
            );
        }
        self.pairings("unequal", topology, pairings).await
    }

    async fn cut(&mut self) -> Result<(), LabError> {
        let options = faults::FaultsOptions {
            rate: self.options.rate,
            buffer_kib: self.options.buffer_kib,
            ..faults::FaultsOptions::default()
        };
        for (name, what) in [
            (
                "cable",
                "one of two paths cut under load, carrier lost: longest operation in ms",
            ),
            (
                "black-hole",
                "one of two paths cut under load, silently: longest operation in ms",
            ),
        ] {
            let (mut stalls, mut lost, mut bar) = (Vec::new(), 0.0, 0.0);
            for _ in 0..self.options.rounds {
                let row = faults::one_of_two(self.program, &options, name).await?;
                stalls.push(row.longest_ms);
                bar = row.bar_ms;
                lost += f64::from(u32::try_from(row.errors + row.bad).unwrap_or(u32::MAX));
            }
            let worst = stalls.iter().copied().fold(0.0, f64::max);
            self.add("cut", what.to_owned(), (worst, stalls), (bar, true), None);
            let what =
                format!("the same ({name}): operations that failed and blocks that were wrong");
            self.add("cut", what, (lost, Vec::new()), (0.0, true), None);
        }
        Ok(())
    }

    async fn pairings(
        &mut self,
        group: &'static str,
        topology: Topology,
        pairings: Vec<Pairing>,
    ) -> Result<(), LabError> {
        let rig = Rig::start(self.program, topology, &Disk::default()).await?;
        let seconds = self.options.seconds;
        let least = match group {
            "forced-mesh" => BUSY_ROUNDS,
            _ => 1,
        };
        let turns = self.options.rounds.max(least);
        for pairing in pairings {
            let (mut rounds, mut last) = (Vec::new(), None);
            for _ in 0..turns {
                let mut reference = 0.0;
                for run in &pairing.references {
                    reference += run.measure(&rig, seconds).await?;
                }
                let ours = pairing.ours.measure(&rig, seconds).await?;
                rounds.push(ours / reference.max(1e-9));
                last = Some((reference, ours));
            }
            let value = median(&rounds);
            let bar = (pairing.bar, pairing.at_most);
            self.add(group, pairing.what, (value, rounds), bar, last);
        }
        Ok(())
    }

    fn add(
        &mut self,
        group: &'static str,
        what: String,
        (value, rounds): (f64, Vec<f64>),
        (bar, at_most): (f64, bool),
        last: Option<(f64, f64)>,
    ) {
        let bar = Bar {
            group,
            what,
            value,
            rounds,
            bar,
            at_most,
            met: if at_most { value <= bar } else { value >= bar },
            last,
        };
        (self.report)(&bar.line());
        self.rows.push(bar);
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        len if len % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

impl Bar {
    fn line(&self) -> String {
        let sign = if self.at_most { "<=" } else { ">=" };
        let last = self.last.map_or(String::new(), |(reference, ours)| {
            format!("  [{reference:.1}, ours {ours:.1}]")
        });
        format!(
            "{:<8} {:>8.2} {sign} {:<6} {}{last}",
            if self.met { "met" } else { "NOT MET" },
            self.value,
            self.bar,
            self.what
        )
    }
}

impl BarsReport {
    /// The report as lines for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!(
            "Median of {} rounds of {} s, each beside its reference; links {}\n\n",
            self.options.rounds, self.options.seconds, self.options.rate
        );
        for bar in &self.rows {
            let _fits = writeln!(out, "{}", bar.line());
        }
        out
    }

    /// As a page of HTML that needs no other file.
    #[must_use]
    pub fn page(&self) -> String {
        let body = format!("<pre>{}</pre>", crate::svg::escape(&self.text()));
        crate::svg::page("Causeway lab: what the path layer has to reach", &body)
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_median_is_the_middle_and_a_bar_says_which_side_is_good() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
        let bar = Bar {
            group: "cut",
            what: "stall".to_owned(),
            value: 150.0,
            rounds: vec![150.0],
            bar: 200.0,
            at_most: true,
            met: true,
            last: None,
        };
        assert!(bar.line().starts_with("met") && bar.line().contains("<= 200"));
    }
}
