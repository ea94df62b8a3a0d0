//! `lab fault`: what a verified load sees while something breaks.
//!
//! Each fault has a bed of its own: two cards with two NICs in the host, two controllers with two
//! ports in the target, one network, the planner's choice of paths. The load reads and writes at
//! random and verifies what it reads.

use crate::bed::{Side, Topology};
use crate::counters::{Counters, PROBE_INTERVAL, Samples, interrupt};
use crate::error::LabError;
use crate::figures::Figures;
use crate::port::Harm;
use crate::port::Port;
use crate::rate::Rate;
use crate::rig::{Disk, Rig, Use, read_figures};
use serde::Serialize;
use std::path::Path;
use std::process::Output;
use std::rc::Rc;
use std::time::Duration;
use tokio::process::Child;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How it is measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FaultsOptions {
    /// Rate of every link.
    pub rate: Rate,
    /// Buffer of a port of the switch, in KiB.
    pub buffer_kib: u32,
    /// Seconds before the fault; at least twice as many follow its end.
    pub before: u32,
    /// How often each fault is made, each time on a bed of its own.
    pub rounds: u32,
    /// Of the faults, only these; empty: all.
    pub faults: Vec<String>,
    /// Words for the initiator and the bench.
    pub words: Vec<String>,
}

impl Default for FaultsOptions {
    fn default() -> Self {
        Self {
            rate: Rate::megabits(250),
            buffer_kib: 64,
            before: 2,
            rounds: 1,
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

/// A link that loses its carrier is reported at once; everything else must first be missed for 1 s,
/// asked for 1 s more, and fenced.
const REPORTED: f64 = 200.0;
const UNREPORTED: f64 = 3000.0;
const FLAPS: u32 = 4;

/// Half of it writes, all of it is verified.
const LOAD: &str = "-b64K -t1 -o8 -r -w50 -f128M -W0 -C0 -D100 -L --verify";

/// How long a load goes on for paths to come back: a path is watched before it is trusted, longer
/// where it has failed often.
const FAILBACK_MAX: Duration = Duration::from_secs(40);
/// Samples of [`PROBE_INTERVAL`] that have to agree.
const STEADY: usize = 5;

const FAULTS: &[Fault] = &[
    Fault {
        name: "cable",
        title: "the cable of one NIC is pulled",
        what: Break::Host(&[0], Harm::Cut),
        lasts: Duration::from_secs(3),
        bar_ms: REPORTED,
    },
    Fault {
        name: "black-hole",
        title: "the switch silently forwards nothing for one NIC",
        what: Break::Host(&[0], Harm::BlackHole),
        lasts: Duration::from_secs(5),
        bar_ms: UNREPORTED,
    },
    Fault {
        name: "brown-out",
        title: "one link goes down to 10 Mb/s",
        what: Break::Host(&[0], Harm::Slow(Rate::megabits(10))),
        lasts: Duration::from_secs(4),
        bar_ms: UNREPORTED,
    },
    Fault {
        name: "card",
        title: "a card of the host fails with both its NICs",
        what: Break::Host(&[0, 1], Harm::Cut),
        lasts: Duration::from_secs(3),
        bar_ms: REPORTED,
    },
    Fault {
        name: "controller",
        title: "a controller of the target fails with both its ports",
        what: Break::Target(&[0, 1], Harm::Cut),
        lasts: Duration::from_secs(5),
        bar_ms: UNREPORTED,
    },
    Fault {
        name: "target",
        title: "the target is killed and started again",
        what: Break::Kill,
        lasts: Duration::from_secs(2),
        // What it was away, a start, and a first login.
        bar_ms: 2000.0 + UNREPORTED,
    },
    Fault {
        name: "flapping",
        title: "the cable of one NIC goes out and in four times",
        what: Break::Flap(0),
        lasts: Duration::from_secs(4),
        bar_ms: REPORTED,
    },
];

/// A report of all faults.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FaultsReport {
    /// Its name.
    pub lab: &'static str,
    /// How it was measured.
    pub options: FaultsOptions,
    /// Hosts, switches and cards of the run.
    pub topology: Topology,
    /// The faults.
    pub rows: Vec<FaultsRow>,
}

/// A fault, and what the load saw.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FaultsRow {
    /// Its name.
    pub fault: &'static str,
    /// Which time, from 1.
    pub round: u32,
    /// One line about the fault, for people.
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
    /// From the end of the fault until every NIC that had carried a share carried it again, in
    /// seconds; `None`: not as long as was waited for it.
    pub failback_seconds: Option<f64>,
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

/// Runs the faults; `report` is called with what is done.
///
/// # Errors
/// Where the lab cannot be built, or a load cannot run.
pub async fn run(
    program: &Path,
    options: FaultsOptions,
    mut report: impl FnMut(&str),
) -> Result<FaultsReport, LabError> {
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
        for round in 1..=options.rounds.max(1) {
            let row = one(program, &options, &topology, fault, FAILBACK_MAX).await?;
            report(&format!(
                "{:<11} longest operation {:6.0} ms, {} errors, {} of {} blocks wrong, all as before after {}   {}",
                row.fault,
                row.longest_ms,
                row.errors,
                row.bad,
                row.checked,
                row.failback(),
                row.title
            ));
            rows.push(FaultsRow { round, ..row });
        }
    }
    Ok(FaultsReport {
        lab: "fault",
        options,
        topology,
        rows,
    })
}

/// A fault on two NICs of two cards with one active path each.
pub(crate) async fn one_of_two(
    program: &Path,
    options: &FaultsOptions,
    name: &str,
) -> Result<FaultsRow, LabError> {
    let mut topology = topology(options.rate, options.buffer_kib);
    topology.host = vec![topology.host[0].clone(), topology.host[2].clone()];
    topology.target = vec![topology.target[0].clone(), topology.target[2].clone()];
    let fault = FAULTS.iter().find(|fault| fault.name == name);
    let fault = fault.expect("one of ours");
    one(program, options, &topology, fault, Duration::ZERO).await
}

async fn one(
    program: &Path,
    options: &FaultsOptions,
    topology: &Topology,
    fault: &Fault,
    failback_max: Duration,
) -> Result<FaultsRow, LabError> {
    let disk = Disk {
        mebibytes: 256,
        // What is in memory would be gone with the target.
        in_memory: fault.what != Break::Kill,
        ..Disk::default()
    };
    let mut rig = Rig::start(program, topology.clone(), &disk).await?;
    let before = Duration::from_secs(u64::from(options.before));
    let all = before * 3 + fault.lasts + failback_max;
    let length = format!("-d{}", all.as_secs());
    let load: Vec<&str> = LOAD.split(' ').chain([length.as_str()]).collect();
    let child = rig.spawn_bench(&Use::all(&load).with(&options.words))?;
    let names = topology.host.iter().map(|port| port.name.clone()).collect();
    let process = child.id();
    let counters = Counters::of(&rig.bed().namespace(Side::Host), process, names);
    let began = counters.began().await?;
    let seen: Samples = Rc::default();
    let watching = tokio::task::spawn_local(counters.follow(began, Rc::clone(&seen)));
    sleep_until(began + before).await;
    let from = began.elapsed();
    break_it(&mut rig, fault).await?;
    let to = began.elapsed();
    let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
    let mut load_ends = all;
    if !failback_max.is_zero() {
        let until = Instant::now() + failback_max;
        while failback(&seen.borrow(), from, to).is_none() && Instant::now() < until {
            sleep(PROBE_INTERVAL).await;
        }
        sleep(before * 2).await;
        load_ends = began.elapsed();
        interrupt(process);
    }
    let output = ended(child, all, fault).await?;
    // It ends with the process.
    let _ended = watching.await;
    let mut nics = seen.take();
    // What follows the load only reads: the last pass of the verification.
    nics.retain(|(at, _)| *at <= load_ends.as_secs_f64());
    let figures = read_figures(&output.stdout, &output.stderr, output.status)?;
    let verified = figures.verify.clone().unwrap_or_default();
    let stall_ms = figures.stall_ms_max;
    let total = figures.total.as_ref();
    let longest_ms = total
        .map_or(0.0, |it| it.latency_us.max / 1e3)
        .max(stall_ms);
    Ok(FaultsRow {
        fault: fault.name,
        round: 1,
        title: fault.title,
        from_seconds: from,
        to_seconds: to,
        failback_seconds: failback(&nics, from, to),
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

impl FaultsRow {
    /// How long it took until all was as before, in words.
    #[must_use]
    pub fn failback(&self) -> String {
        match self.failback_seconds {
            Some(seconds) => format!("{seconds:.1} s"),
            None => format!("more than {} s", FAILBACK_MAX.as_secs()),
        }
    }
}

/// Seconds from `to` until, over [`STEADY`] samples, every NIC that carried its share before `from`
/// carries at least half of that again, and all together four fifths.
fn failback(samples: &[(f64, Vec<f64>)], from: f64, to: f64) -> Option<f64> {
    let before = samples
        .iter()
        .filter(|it| (from - 1.0..from).contains(&it.0));
    let before = mean(before.map(|it| it.1.as_slice()));
    let most = before.iter().copied().fold(0.0, f64::max);
    let whole: f64 = before.iter().sum();
    let after: Vec<_> = samples.iter().filter(|it| it.0 > to).collect();
    let as_before = |window: &&[&(f64, Vec<f64>)]| {
        let now = mean(window.iter().map(|it| it.1.as_slice()));
        let carries = |(now, before): (&f64, &f64)| *before < most / 5.0 || *now >= before / 2.0;
        now.len() == before.len()
            && now.iter().zip(&before).all(carries)
            && now.iter().sum::<f64>() >= whole * 0.8
    };
    let first = after.windows(STEADY).find(as_before)?.first()?.0;
    (whole > 0.0).then_some(first - to)
}

/// The mean of each column.
fn mean<'a>(rows: impl Iterator<Item = &'a [f64]>) -> Vec<f64> {
    let (mut sums, mut count) = (Vec::new(), 0_u32);
    for row in rows {
        sums.resize(row.len().max(sums.len()), 0.0);
        sums.iter_mut().zip(row).for_each(|(sum, it)| *sum += it);
        count += 1;
    }
    sums.iter_mut().for_each(|sum| *sum /= f64::from(count));
    sums
}

/// What the load has said when it has come to its end.
async fn ended(child: Child, most: Duration, fault: &Fault) -> Result<Output, LabError> {
    let output = timeout(most + Duration::from_secs(90), child.wait_with_output()).await;
    let output = output.map_err(|_| {
        LabError::new(
            format!("the load did not end after the fault {}", fault.name),
            "check the initiator: a run must end",
        )
    })?;
    output.map_err(|error| LabError::system("the bench", &error))
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

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_failback_is_when_every_nic_carries_its_share_again_and_not_before() {
        let at = |tenths: u32| f64::from(tenths) / 10.0;
        let rates = |tenths: u32| match tenths {
            0..20 => vec![30.0, 31.0, 0.1],
            20..50 => vec![0.0, 32.0, 0.0],
            // Others carry all of it: that is no failback.
            50..70 => vec![0.0, 60.0, 0.0],
            // A moment is none either.
            70..72 => vec![30.0, 30.0, 0.0],
            72..90 => vec![1.0, 60.0, 0.0],
            _ => vec![29.0, 30.0, 0.0],
        };
        let samples: Vec<_> = (0..120).map(|tenths| (at(tenths), rates(tenths))).collect();
        let found = failback(&samples, 2.0, 5.0).unwrap();
        assert!((3.8..=4.0).contains(&found), "{found}");
        assert_eq!(failback(&samples[..90], 2.0, 5.0), None);
        assert_eq!(failback(&[], 2.0, 5.0), None);
    }
}
