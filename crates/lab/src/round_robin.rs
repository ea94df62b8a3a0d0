//! `lab round-robin`: four links, and how many commands go to a path before round robin takes the
//! next.

use crate::bed::Topology;
use crate::error::LabError;
use crate::mpio::limit;
use crate::port::Port;
use crate::published::{Switching, published};
use crate::rate::Rate;
use crate::rig::{Disk, Rig, Use};
use crate::svg::{self, Group};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;

/// How it is measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RoundRobinOptions {
    /// Rate of every link.
    pub rate: Rate,
    /// Buffer of a port of the switch, in KiB.
    pub buffer_kib: u32,
    /// Seconds for each measurement.
    pub seconds: u32,
}

impl Default for RoundRobinOptions {
    fn default() -> Self {
        Self {
            rate: Rate::megabits(250),
            buffer_kib: 64,
            seconds: 4,
        }
    }
}

const COMMANDS: [u32; 6] = [1, 4, 16, 64, 256, 1000];

/// What `causeway lab round-robin` measured, beside what was published.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RoundRobinReport {
    /// Its name.
    pub lab: &'static str,
    /// How it was measured.
    pub options: RoundRobinOptions,
    /// Hosts, switches and cards of the run.
    pub topology: Topology,
    /// One link alone, MB/s.
    pub one_link_mbps: f64,
    /// By commands per path.
    pub rows: Vec<RoundRobinRow>,
    /// What was published.
    pub published: Switching,
}

/// A number of commands.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RoundRobinRow {
    /// Commands per path.
    pub commands: u32,
    /// MB/s.
    pub mbps: f64,
    /// `mbps` as a multiple of what one link carries alone.
    pub links: f64,
    /// Mean response time in milliseconds.
    pub ms: f64,
}

/// Four NICs on two cards, four ports on two controllers, each pair on a wire of its own.
#[must_use]
pub fn topology(rate: Rate, buffer_kib: u32) -> Topology {
    let pairs = [
        ("eth0", "one"),
        ("eth1", "one"),
        ("eth2", "two"),
        ("eth3", "two"),
    ];
    let host = (0..)
        .zip(pairs)
        .map(|(network, (name, card))| Port::new(name, card).rate(rate).network(network));
    let ports = [("p0", "A"), ("p1", "A"), ("p2", "B"), ("p3", "B")];
    let target = (0..).zip(ports).map(|(network, (name, on))| {
        Port::new(name, on)
            .controller(on)
            .rate(rate)
            .network(network)
    });
    Topology {
        host: host.collect(),
        target: target.collect(),
        buffer_kib,
        mtu: 9000,
    }
}

/// Runs it; `report` is called with what is done.
///
/// # Errors
/// Where the lab cannot be built, or a run fails.
pub async fn run(
    program: &Path,
    options: RoundRobinOptions,
    mut report: impl FnMut(&str),
) -> Result<RoundRobinReport, LabError> {
    let topology = topology(options.rate, options.buffer_kib);
    let rig = Rig::start(program, topology.clone(), &Disk::default()).await?;
    let time = format!("-d{}", options.seconds);
    let load = [
        "-b64K", "-t1", "-o16", "-w100", "-f128M", "-W1", "-C0", &time,
    ];
    let wait = limit(options.seconds);
    let alone = Use::all(&["--policy", "failover", "--no-plan"]).from(&["eth0"]);
    let alone = rig.bench(&alone.with(&load), wait).await?;
    let one_link_mbps = alone.write.map_or(0.0, |it| it.megabytes());
    report(&format!("one link     {one_link_mbps:7.1} MB/s"));
    let mut rows = Vec::new();
    for commands in COMMANDS {
        let policy = format!("round-robin:{commands}");
        let how = Use::all(&["--policy", &policy, "--no-plan"]).with(&load);
        let write = rig.bench(&how, wait).await?.write.unwrap_or_default();
        let mbps = write.megabytes();
        let row = RoundRobinRow {
            commands,
            mbps,
            links: mbps / one_link_mbps.max(1e-9),
            ms: write.latency_us.mean / 1e3,
        };
        report(&format!(
            "{commands:>5} commands {mbps:7.1} MB/s, {:.2} links",
            row.links
        ));
        rows.push(row);
    }
    Ok(RoundRobinReport {
        lab: "round-robin",
        options,
        topology,
        one_link_mbps,
        rows,
        published: published().round_robin_switching,
    })
}

impl RoundRobinReport {
    /// The report as lines for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!(
            "Sequential 64 KiB writes, 16 at a time, over four links of {}; one link alone {:.1} MB/s\n\n\
             commands per path     MB/s    links       ms\n",
            self.options.rate, self.one_link_mbps
        );
        for row in &self.rows {
            let _fits = writeln!(
                out,
                "{:>17}{:>9.1}{:>9.2}{:>9.1}",
                row.commands, row.mbps, row.links, row.ms
            );
        }
        let known = &self.published;
        let _fits = writeln!(
            out,
            "\npublished, four links of 1 Gb/s: {} commands per path below {:.0} MB/s, {} command {:.0} MB/s\n({}; {})",
            known.default_commands_per_path,
            known.default_mbps_below,
            known.tuned_commands_per_path,
            known.tuned_mbps,
            known.rig,
            known.workload
        );
        out
    }

    /// As a page of HTML that needs no other file.
    #[must_use]
    pub fn page(&self) -> String {
        let group = |label: String, class, value| Group {
            label,
            bars: vec![(class, Some(value))],
        };
        let one = group("one link".to_owned(), "theirs", self.one_link_mbps);
        let rows = self
            .rows
            .iter()
            .map(|row| group(row.commands.to_string(), "write", row.mbps));
        let groups: Vec<Group> = std::iter::once(one).chain(rows).collect();
        let lines: Vec<(usize, usize, bool)> = (0..self.topology.host.len())
            .map(|at| (at, at, true))
            .collect();
        let body = format!(
            "<p>Sequential writes of 64 KiB, 16 at a time, over four links of {}, by the number of commands that round robin \
             gives to a path before it takes the next.</p>{}{}<pre>{}</pre>",
            self.options.rate,
            svg::topology(&self.topology, &lines),
            svg::bars(&groups, "MB/s"),
            svg::escape(&self.text())
        );
        svg::page("Causeway lab: commands per path", &body)
    }
}
