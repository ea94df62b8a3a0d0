//! `lab mpio`: seven published ways to connect a host with several NICs, and ours with the planner,
//! on one mesh.
//!
//! The bed has the published shape: two cards with two NICs each, two ports on one controller, one
//! subnet, switches with shallow buffers. D, one NIC and one path, is the control.

use crate::bed::{Side, Topology};
use crate::error::LabError;
use crate::figures::{Direction, Figures, PathFigures};
use crate::port::Port;
use crate::published::{Pair, published};
use crate::rate::Rate;
use crate::rig::{Disk, Rig, Use};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// How it is measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MpioOptions {
    /// Rate of every link.
    pub rate: Rate,
    /// Buffer of a port of the switch, in KiB.
    pub buffer_kib: u32,
    /// Seconds for each measurement.
    pub seconds: u32,
    /// Of the tests, only these; empty: all.
    pub tests: Vec<String>,
}

impl Default for MpioOptions {
    fn default() -> Self {
        Self {
            rate: Rate::GIGABIT,
            buffer_kib: 64,
            seconds: 4,
            tests: Vec::new(),
        }
    }
}

/// What a test is.
struct Test {
    name: &'static str,
    title: &'static str,
    /// What the model leaves out, where the test is one.
    model: Option<&'static str>,
    how: fn() -> Use,
}

const TEAM: &str =
    "a team as one session over a route hashed by connection: this kernel may have no bonding";
const BLIND: &str =
    "a manager blind to cards as the first two ports found: the vendor's own is not to be had";

/// In the order of the published table; ours last.
const TESTS: &[Test] = &[
    Test {
        name: "A",
        title: "4 NICs in one team, no multipath",
        model: Some(TEAM),
        how: || Use::all(&["--policy", "failover"]).from(&["team0"]),
    },
    Test {
        name: "B",
        title: "4 NICs, full mesh of 8 active paths, round robin",
        model: None,
        how: || Use::all(&["--policy", "round-robin", "--no-plan"]),
    },
    Test {
        name: "C",
        title: "2 NICs, 1:1 paths made by hand, round robin",
        model: None,
        how: hand_made,
    },
    Test {
        name: "D",
        title: "1 NIC, 1 path (control)",
        model: None,
        how: one_path,
    },
    Test {
        name: "E",
        title: "4 NICs, full mesh of 8 active paths, least queue depth",
        model: None,
        how: || Use::all(&["--policy", "least-queue-depth", "--no-plan"]),
    },
    Test {
        name: "F",
        title: "4 NICs, partial mesh of 4 active paths, round robin",
        model: None,
        how: || {
            Use::all(&["--policy", "round-robin", "--no-plan"]).wired(&[
                (0, 0),
                (1, 1),
                (2, 0),
                (3, 1),
            ])
        },
    },
    Test {
        name: "G",
        title: "2 NICs of one card, 1:1 paths, least queue depth",
        model: Some(BLIND),
        how: || Use::all(&["--policy", "least-queue-depth"]).from(&["eth0", "eth1"]),
    },
    Test {
        name: "ours",
        title: "4 NICs, full mesh found by discovery, planner and adaptive policy",
        model: None,
        how: || Use::all(&[]),
    },
];

/// Two pairs of NIC and port, each on a wire of its own, all of them active.
pub(crate) fn hand_made() -> Use {
    Use::all(&["--policy", "round-robin", "--no-plan"])
        .from(&["eth0", "eth1"])
        .wired(&[(0, 0), (1, 1)])
}

/// One NIC, one port.
pub(crate) fn one_path() -> Use {
    Use::all(&["--policy", "round-robin", "--no-plan"])
        .from(&["eth0"])
        .wired(&[(0, 0)])
}

/// The published tests as beds: name, title, how the paths are used.
pub(crate) fn tests() -> impl Iterator<Item = (&'static str, &'static str, Use)> {
    TESTS
        .iter()
        .map(|test| (test.name, test.title, (test.how)()))
}

/// A report of all tests.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MpioReport {
    /// Its name.
    pub lab: &'static str,
    /// How it was measured.
    pub options: MpioOptions,
    /// Hosts, switches and cards of the run.
    pub topology: Topology,
    /// The machines and links that the published figures are of.
    pub published_rig: String,
    /// What was asked of them.
    pub published_workload: String,
    /// Where it was published.
    pub published_source: String,
    /// The tests.
    pub rows: Vec<MpioRow>,
}

/// A test.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MpioRow {
    /// Its letter, or `ours`.
    pub test: &'static str,
    /// One line about the test, for people.
    pub title: &'static str,
    /// What the model leaves out, where it is one.
    pub model: Option<&'static str>,
    /// The test with reads alone.
    pub read: Measured,
    /// The test with writes alone.
    pub write: Measured,
}

/// A measurement.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measured {
    /// MB/s.
    pub mbps: f64,
    /// Mean response time in milliseconds.
    pub ms: f64,
    /// Against the control's MB/s, in percent.
    pub vs_control_pct: Option<f64>,
    /// Segments that TCP sent again, both sides together.
    pub retransmits: u64,
    /// Operations that failed.
    pub errors: u64,
    /// What each path carried of it.
    pub paths: Vec<PathFigures>,
    /// What was published.
    pub published: Option<Pair>,
    /// Against the control's, as published, in percent.
    pub published_vs_control_pct: Option<f64>,
}

/// The published host: two NICs on each of two cards; two ports on one controller.
#[must_use]
pub fn topology(rate: Rate, buffer_kib: u32) -> Topology {
    let host = [
        ("eth0", "intel"),
        ("eth1", "intel"),
        ("eth2", "broadcom"),
        ("eth3", "broadcom"),
    ];
    let host = host.map(|(name, card)| Port::new(name, card).rate(rate));
    let target = ["p0", "p1"].map(|name| Port::new(name, "array").controller("A").rate(rate));
    Topology {
        host: host.to_vec(),
        target: target.to_vec(),
        buffer_kib,
        mtu: 9000,
    }
}

/// Words for sequential I/O of 4 MiB, one at a time.
pub(crate) fn sequential(write: bool, depth: u32, seconds: u32) -> Vec<String> {
    let words = format!(
        "-b4M -t1 -o{depth} -w{} -d{seconds} -W1 -C0",
        if write { 100 } else { 0 }
    );
    words.split(' ').map(str::to_owned).collect()
}

/// What a run may take: its time, and a minute for a slow machine.
pub(crate) fn limit(seconds: u32) -> Duration {
    Duration::from_secs(u64::from(seconds) + 60)
}

/// Runs the tests; `report` is called with what is done.
///
/// # Errors
/// Where the lab cannot be built, or a run fails.
pub async fn run(
    program: &Path,
    options: MpioOptions,
    mut report: impl FnMut(&str),
) -> Result<MpioReport, LabError> {
    let chosen = choose(&options.tests)?;
    let topology = topology(options.rate, options.buffer_kib);
    let mut rows = Vec::new();
    for test in chosen {
        // A bed of its own: a team is set up otherwise, and nothing is carried over from the test
        // before.
        let rig = Rig::start(program, topology.clone(), &Disk::default()).await?;
        let how = (test.how)();
        if how.from.iter().any(|nic| nic == "team0") {
            rig.bed().team().await?;
        }
        let mut cells = Vec::new();
        for write in [false, true] {
            let how = how.clone().with(&sequential(write, 1, options.seconds));
            let figures = rig.bench(&how, limit(options.seconds)).await?;
            cells.push(cell(&figures, write));
        }
        let (write, read) = (
            cells.pop().expect("two runs"),
            cells.pop().expect("two runs"),
        );
        report(&format!(
            "{:<5} read {:6.1} MB/s, write {:6.1} MB/s, {} and {} segments sent again   {}",
            test.name, read.mbps, write.mbps, read.retransmits, write.retransmits, test.title
        ));
        rows.push(MpioRow {
            test: test.name,
            title: test.title,
            model: test.model,
            read,
            write,
        });
    }
    compare(&mut rows);
    let known = published().mpio_topologies;
    Ok(MpioReport {
        lab: "mpio",
        options,
        topology,
        published_rig: known.rig,
        published_workload: known.workload,
        published_source: known.source,
        rows,
    })
}

fn choose(names: &[String]) -> Result<Vec<&'static Test>, LabError> {
    for name in names {
        if !TESTS
            .iter()
            .any(|test| test.name.eq_ignore_ascii_case(name))
        {
            let known: Vec<&str> = TESTS.iter().map(|test| test.name).collect();
            return Err(LabError::usage(
                format!("there is no test {name}"),
                format!("the tests are {}", known.join(", ")),
            ));
        }
    }
    let asked = |test: &&Test| {
        names.is_empty()
            || names
                .iter()
                .any(|name| test.name.eq_ignore_ascii_case(name))
    };
    Ok(TESTS.iter().filter(asked).collect())
}

fn cell(figures: &Figures, write: bool) -> Measured {
    let side = if write { &figures.write } else { &figures.read };
    let nothing = Direction::default();
    let side = side.as_ref().unwrap_or(&nothing);
    Measured {
        mbps: side.megabytes(),
        ms: side.latency_us.mean / 1e3,
        vs_control_pct: None,
        retransmits: figures.segments_again,
        errors: figures.errors,
        paths: figures.paths.clone(),
        published: None,
        published_vs_control_pct: None,
    }
}

/// Against the control, and beside what was published.
fn compare(rows: &mut [MpioRow]) {
    let off = |one: f64, other: f64| (other > 0.0).then(|| (one / other - 1.0) * 100.0);
    let known = published().mpio_topologies;
    let control = rows.iter().find(|row| row.test == "D");
    let control = control.map(|row| (row.read.mbps, row.write.mbps));
    let known_control = known.row("D").map(|row| (row.read, row.write));
    for row in rows {
        if let Some((read, write)) = control {
            row.read.vs_control_pct = off(row.read.mbps, read);
            row.write.vs_control_pct = off(row.write.mbps, write);
        }
        let there = known.row(row.test);
        row.read.published = there.map(|it| it.read);
        row.write.published = there.map(|it| it.write);
        if let (Some(there), Some((read, write))) = (there, known_control) {
            row.read.published_vs_control_pct = off(there.read.mbps, read.mbps);
            row.write.published_vs_control_pct = off(there.write.mbps, write.mbps);
        }
    }
}

impl MpioReport {
    /// The paths of a test as lines between ports: host port, target port, active.
    #[must_use]
    pub fn lines(&self, row: &MpioRow) -> Vec<(usize, usize, bool)> {
        let mut lines = Vec::new();
        for path in &row.write.paths {
            let target = self.port(Side::Target, |it| {
                path.portal.starts_with(&format!("{it}:"))
            });
            let host = self.port(Side::Host, |it| path.from == it);
            let named = || self.topology.find(Side::Host, &path.from);
            // Of paths that could be used, those that were.
            let in_use = path.bytes > 0;
            match (host.or_else(named), target) {
                (Some(host), Some(target)) => lines.push((host, target, in_use)),
                // A team's address is none of a single NIC.
                (None, Some(target)) => {
                    let nics = 0..self.topology.host.len();
                    lines.extend(nics.map(|host| (host, target, in_use)));
                }
                (_, None) => {}
            }
        }
        lines
    }

    /// The first port of a side whose address fits.
    fn port(&self, side: Side, fits: impl Fn(&str) -> bool) -> Option<usize> {
        let mut all = 0..self.topology.ports(side).len();
        all.find(|number| fits(&self.topology.address(side, *number).to_string()))
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::figures::PathState;

    fn row(test: &'static str, read: f64, write: f64) -> MpioRow {
        let cell = |mbps| Measured {
            mbps,
            ..cell(&Figures::default(), false)
        };
        MpioRow {
            test,
            title: "",
            model: None,
            read: cell(read),
            write: cell(write),
        }
    }

    #[test]
    fn each_row_is_held_against_the_control_of_the_same_run() {
        let mut rows = [
            row("B", 50.0, 10.0),
            row("D", 100.0, 80.0),
            row("ours", 200.0, 160.0),
        ];
        compare(&mut rows);
        assert_eq!(rows[0].read.vs_control_pct, Some(-50.0));
        assert_eq!(rows[0].write.vs_control_pct, Some(-87.5));
        assert_eq!(rows[2].write.vs_control_pct, Some(100.0));
        assert!(rows[0].write.published_vs_control_pct.unwrap() < -96.0);
        assert_eq!(rows[2].read.published, None);
    }

    #[test]
    fn paths_are_drawn_between_the_ports_whose_addresses_they_have() {
        let mut row = row("ours", 0.0, 0.0);
        let path = |from: &str, portal: &str, state: PathState| PathFigures {
            from: from.to_owned(),
            portal: portal.to_owned(),
            bytes: u64::from(state == PathState::Active),
            state,
            ..PathFigures::default()
        };
        row.write.paths = vec![
            path("10.77.0.4", "10.77.0.102:3260", PathState::Active),
            path("eth1", "10.77.0.101:3260", PathState::Standby),
            path("10.77.0.1", "10.9.9.9:3260", PathState::Active),
        ];
        let report = MpioReport {
            lab: "mpio",
            options: MpioOptions::default(),
            topology: topology(Rate::GIGABIT, 64),
            published_rig: String::new(),
            published_workload: String::new(),
            published_source: String::new(),
            rows: Vec::new(),
        };
        assert_eq!(report.lines(&row), [(3, 1, true), (1, 0, false)]);
    }

    #[test]
    fn tests_are_chosen_by_letter_and_others_are_refused() {
        let choose = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
            choose(&names).map(|tests| tests.iter().map(|it| it.name).collect::<Vec<_>>())
        };
        assert_eq!(choose(&["d", "OURS"]).unwrap(), ["D", "ours"]);
        assert_eq!(choose(&[]).unwrap().len(), 8);
        assert!(choose(&["H"]).unwrap_err().next.contains("A, B, C"));
    }
}
