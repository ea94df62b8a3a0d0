//! `lab fault`: what a verified load sees while something breaks.
//!
//! Each fault has a bed of its own: two cards with two NICs in the host, two controllers with two ports in the target, one
//! network, the planner's choice of paths. The load reads and writes at random and verifies what it reads.

use crate::bed::{Port, Side, Topology};
use crate::error::LabError;
use crate::fault::Harm;
use crate::figures::Figures;
use crate::rate::Rate;
use crate::rig::{Disk, Rig, Use, read_figures};
use serde::Serialize;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How it is measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Options {
    /// Rate of every link.
    pub rate: Rate,
    /// Buffer of a port of the switch, in KiB.
    pub buffer_kib: u32,
    /// Seconds before the fault; twice as many follow its end.
    pub before: u32,
    /// Of the faults, only these; empty: all.
    pub faults: Vec<String>,
    /// Words for the initiator and the bench.
    pub words: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rate: Rate::megabits(250),
            buffer_kib: 64,
            before: 2,
            faults: Vec::new(),
            words: Vec::new(),
        }
    }
}

/// What breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Break {
    /// Links of NICs of the host.
    Host(&'static [usize], Harm),
    /// Links of ports of the target.
    Target(&'static [usize], Harm),
    /// The target's process, without a warning; it is started again.
    Kill,
    /// A NIC's cable, again and again.
    Flap(usize),
}

/// A fault.
struct Fault {
    name: &'static str,
    title: &'static str,
    what: Break,
    /// How long it lasts.
    lasts: Duration,
    /// The longest operation that is well, in milliseconds.
    bar_ms: f64,
}

/// A link that loses its carrier is told at once; everything else must first be missed for 1 s, asked for 1 s more, and fenced.
const TOLD: f64 = 200.0;
const UNTOLD: f64 = 3000.0;
const FLAPS: u32 = 4;

const FAULTS: &[Fault] = &[
    Fault {
        name: "cable",
        title: "the cable of one NIC is pulled",
        what: Break::Host(&[0], Harm::Cut),
        lasts: Duration::from_secs(3),
        bar_ms: TOLD,
    },
    Fault {
        name: "black-hole",
        title: "the switch silently forwards nothing for one NIC",
        what: Break::Host(&[0], Harm::BlackHole),
        lasts: Duration::from_secs(5),
        bar_ms: UNTOLD,
    },
    Fault {
        name: "brown-out",
        title: "one link goes down to 10 Mb/s",
        what: Break::Host(&[0], Harm::Slow(Rate::megabits(10))),
        lasts: Duration::from_secs(4),
        bar_ms: UNTOLD,
    },
    Fault {
        name: "card",
        title: "a card of the host fails with both its NICs",
        what: Break::Host(&[0, 1], Harm::Cut),
        lasts: Duration::from_secs(3),
        bar_ms: TOLD,
    },
    Fault {
        name: "controller",
        title: "a controller of the target fails with both its ports",
        what: Break::Target(&[0, 1], Harm::Cut),
        lasts: Duration::from_secs(5),
        bar_ms: UNTOLD,
    },
    Fault {
        name: "target",
        title: "the target is killed and started again",
        what: Break::Kill,
        lasts: Duration::from_secs(2),
        // What it was away, a start, and a first login.
        bar_ms: 2000.0 + UNTOLD,
    },
    Fault {
        name: "flapping",
        title: "the cable of one NIC goes out and in four times",
        what: Break::Flap(0),
        lasts: Duration::from_secs(4),
        bar_ms: TOLD,
    },
];

/// A report of all faults.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// Its name.
    pub lab: &'static str,
    /// How it was measured.
    pub options: Options,
    /// On what.
    pub topology: Topology,
    /// The faults.
    pub rows: Vec<Row>,
}

/// A fault, and what the load saw.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub fault: &'static str,
    /// What it is.
    pub title: &'static str,
    /// When it began, in seconds from the first bytes of the load.
    pub from_seconds: f64,
    /// When it ended.
    pub to_seconds: f64,
    /// The longest time in which nothing came back, in milliseconds.
    pub stall_ms: f64,
    /// The longest that any operation took, in milliseconds.
    pub longest_ms: f64,
    /// What is well for that.
    pub bar_ms: f64,
    /// Operations that failed.
    pub errors: u64,
    /// Blocks that were verified.
    pub checked: u64,
    /// Blocks that were wrong.
    pub bad: u64,
    /// All of it is well: the longest operation, errors, data.
    pub met: bool,
    /// Seconds, and MB/s of every NIC in the order of the topology.
    pub nics: Vec<(f64, Vec<f64>)>,
    /// What the bench said.
    pub figures: Figures,
}

/// The bed: two cards, two controllers.
#[must_use]
pub fn topology(rate: Rate, buffer_kib: u32) -> Topology {
    let host = [
        ("eth0", "one"),
        ("eth1", "one"),
        ("eth2", "two"),
        ("eth3", "two"),
    ];
    let target = [("p0", "A"), ("p1", "A"), ("p2", "B"), ("p3", "B")];
    Topology {
        host: host
            .map(|(name, card)| Port::new(name, card).rate(rate))
            .to_vec(),
        target: target
            .map(|(name, on)| Port::new(name, on).controller(on).rate(rate))
            .to_vec(),
        buffer_kib,
        mtu: 9000,
    }
}

/// Runs the faults; `tell` hears what is done.
///
/// # Errors
/// Where the lab cannot be built, or a load cannot run.
pub async fn run(
    program: &Path,
    options: Options,
    mut tell: impl FnMut(&str),
) -> Result<Report, LabError> {
    for name in &options.faults {
        if !FAULTS.iter().any(|fault| fault.name == name) {
            let known: Vec<&str> = FAULTS.iter().map(|fault| fault.name).collect();
            return Err(LabError::usage(
                format!("there is no fault {name}"),
                format!("the faults are {}", known.join(", ")),
            ));
        }
    }
    let topology = topology(options.rate, options.buffer_kib);
    let mut rows = Vec::new();
    for fault in FAULTS {
        if !options.faults.is_empty() && !options.faults.iter().any(|name| name == fault.name) {
            continue;
        }
        let row = one(program, &options, &topology, fault).await?;
        tell(&format!(
            "{:<11} longest operation {:6.0} ms, {} errors, {} of {} blocks wrong   {}",
            row.fault, row.longest_ms, row.errors, row.bad, row.checked, row.title
        ));
        rows.push(row);
    }
    Ok(Report {
        lab: "fault",
        options,
        topology,
        rows,
    })
}

/// A fault on two NICs of two cards with one active path each.
pub(crate) async fn one_of_two(
    program: &Path,
    options: &Options,
    name: &str,
) -> Result<Row, LabError> {
    let mut topology = topology(options.rate, options.buffer_kib);
    topology.host = vec![topology.host[0].clone(), topology.host[2].clone()];
    topology.target = vec![topology.target[0].clone(), topology.target[2].clone()];
    let fault = FAULTS.iter().find(|fault| fault.name == name);
    one(program, options, &topology, fault.expect("one of ours")).await
}

async fn one(
    program: &Path,
    options: &Options,
    topology: &Topology,
    fault: &Fault,
) -> Result<Row, LabError> {
    let disk = Disk {
        mebibytes: 256,
        // What is in memory would be gone with the target.
        in_memory: fault.what != Break::Kill,
        ..Disk::default()
    };
    let mut rig = Rig::start(program, topology.clone(), &disk).await?;
    let before = Duration::from_secs(u64::from(options.before));
    let all = before * 3 + fault.lasts;
    let load = format!(
        "-b64K -t1 -o8 -r -w50 -f128M -W0 -C0 -D100 -L --verify -d{}",
        all.as_secs()
    );
    let load: Vec<&str> = load.split(' ').collect();
    let child = rig.spawn_bench(&Use::all(&load).with(&options.words))?;
    let names = topology.host.iter().map(|port| port.name.clone()).collect();
    let counters = Counters::of(&rig, child.id(), names);
    let began = counters.began().await?;
    let watching = tokio::task::spawn_local(counters.follow(began));
    sleep_until(began + before).await;
    let from = began.elapsed();
    break_it(&mut rig, fault).await?;
    let to = began.elapsed();
    let output = timeout(all + Duration::from_secs(90), child.wait_with_output()).await;
    let output = output.map_err(|_| {
        LabError::new(
            format!("the load did not end after the fault {}", fault.name),
            "look at the initiator: a run must end",
        )
    })?;
    let output = output.map_err(|error| LabError::system("the bench", &error))?;
    let nics = watching.await.unwrap_or_default();
    let figures = read_figures(&output.stdout, &output.stderr, output.status)?;
    let verified = figures.verify.clone().unwrap_or_default();
    let stall_ms = figures.stall_ms_max;
    let total = figures.total.as_ref();
    let longest_ms = total
        .map_or(0.0, |it| it.latency_us.max / 1e3)
        .max(stall_ms);
    Ok(Row {
        fault: fault.name,
        title: fault.title,
        from_seconds: from.as_secs_f64(),
        to_seconds: to.as_secs_f64(),
        stall_ms,
        longest_ms,
        bar_ms: fault.bar_ms,
        errors: figures.errors,
        checked: verified.checked,
        bad: verified.bad,
        met: longest_ms <= fault.bar_ms
            && figures.errors == 0
            && verified.bad == 0
            && verified.checked > 0,
        nics,
        figures,
    })
}

/// Breaks it, waits as long as it lasts, and mends it.
async fn break_it(rig: &mut Rig, fault: &Fault) -> Result<(), LabError> {
    match fault.what {
        Break::Host(ports, harm) => hold(rig, Side::Host, ports, harm, fault.lasts).await,
        Break::Target(ports, harm) => hold(rig, Side::Target, ports, harm, fault.lasts).await,
        Break::Kill => {
            rig.kill_target().await?;
            sleep(fault.lasts).await;
            rig.start_target().await
        }
        Break::Flap(port) => {
            let half = fault.lasts / (FLAPS * 2);
            for _ in 0..FLAPS {
                hold(rig, Side::Host, &[port], Harm::Cut, half).await?;
                sleep(half).await;
            }
            Ok(())
        }
    }
}

async fn hold(
    rig: &Rig,
    side: Side,
    ports: &[usize],
    harm: Harm,
    lasts: Duration,
) -> Result<(), LabError> {
    rig.bed().harm(side, ports, harm).await?;
    sleep(lasts).await;
    rig.bed().mend(side, ports, harm).await
}

/// What NICs have carried, as a process in their namespace sees it.
struct Counters {
    process: PathBuf,
    /// The namespace's inode.
    namespace: u64,
    names: Vec<String>,
}

/// How often the counters are looked at.
const LOOK: Duration = Duration::from_millis(100);

impl Counters {
    fn of(rig: &Rig, process: Option<u32>, names: Vec<String>) -> Self {
        let namespace = format!("/run/netns/{}", rig.bed().namespace(Side::Host));
        Self {
            process: format!("/proc/{}", process.unwrap_or(0)).into(),
            namespace: fs::metadata(namespace).map_or(0, |it| it.ino()),
            names,
        }
    }

    /// Bytes in both directions by NIC; `None` where the process is not in the namespace, or is gone.
    fn read(&self) -> Option<Vec<u64>> {
        let inside = fs::metadata(self.process.join("ns/net")).ok()?.ino();
        let told = fs::read_to_string(self.process.join("net/dev")).ok()?;
        (inside == self.namespace).then(|| carried(&told, &self.names))
    }

    /// Waits until the load moves data: more than logins do.
    async fn began(&self) -> Result<Instant, LabError> {
        let until = Instant::now() + Duration::from_secs(30);
        let mut first = None;
        while Instant::now() < until {
            if let Some(now) = self.read() {
                let sum: u64 = now.iter().sum();
                if sum > *first.get_or_insert(sum) + (1 << 20) {
                    return Ok(Instant::now());
                }
            }
            sleep(Duration::from_millis(5)).await;
        }
        Err(LabError::new(
            "the load moved no data within 30 s",
            "run the bench by hand in the lab's host namespace",
        ))
    }

    /// MB/s of every NIC over time, until the process ends.
    async fn follow(self, began: Instant) -> Vec<(f64, Vec<f64>)> {
        let mut found = Vec::new();
        let (mut last, mut last_at) = (self.read().unwrap_or_default(), began);
        loop {
            sleep(LOOK).await;
            let Some(now) = self.read() else {
                return found;
            };
            let at = Instant::now();
            let seconds = (at - last_at).as_secs_f64();
            let rates = now
                .iter()
                .zip(&last)
                .map(|(now, last)| rate(now - last.min(now), seconds));
            found.push(((at - began).as_secs_f64(), rates.collect()));
            (last, last_at) = (now, at);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn rate(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 / seconds / 1e6
}

/// Received and sent bytes of each of `names` in the text of `/proc/net/dev`.
fn carried(text: &str, names: &[String]) -> Vec<u64> {
    let one = |name: &String| {
        let line = text.lines().find_map(|line| {
            line.trim_start()
                .strip_prefix(name.as_str())?
                .strip_prefix(':')
        });
        let words: Vec<u64> = line
            .unwrap_or("")
            .split_whitespace()
            .map(|word| word.parse().unwrap_or(0))
            .collect();
        words.first().copied().unwrap_or(0) + words.get(8).copied().unwrap_or(0)
    };
    names.iter().map(one).collect()
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn bytes_of_both_directions_are_found_by_the_name_of_the_nic() {
        let text = "Inter-|   Receive\n face |bytes packets\n    lo: 5 1 0 0 0 0 0 0 5 1\n  eth1: 10 1 0 0 0 0 0 0 7 1 0\n eth10: 1000 1\n";
        let names = ["eth1", "eth9"].map(str::to_owned);
        assert_eq!(carried(text, &names), [17, 0]);
    }
}
