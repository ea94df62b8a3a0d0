//! `causeway lab`: test beds of network namespaces, and published tests on them.

use super::lab_cluster::{self, ClusterVerb};
use super::lab_common::{Common, problem, progress, set, show};
use super::lab_drive::{self, Drive};
use clap::Subcommand;
use lab::Rate;
use manifest::code::Code;
use manifest::problem::Problem;
use output::{Output, print};
use std::future::Future;
use std::path::Path;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Subcommand, Debug)]
pub(crate) enum LabVerb {
    /// Eight ways to connect a host with four NICs, beside published figures
    Mpio {
        #[command(flatten)]
        common: Common,
        /// Only these: A to G, ours
        #[arg(long, value_delimiter = ',', value_name = "TEST")]
        tests: Vec<String>,
    },
    /// Four links: how many commands go to a path before the next is taken
    RoundRobin {
        #[command(flatten)]
        common: Common,
    },
    /// The same I/O on blocks of 512 and of 4096 bytes
    SectorSize {
        #[command(flatten)]
        common: Common,
        /// Keep the LUN in a file, not in memory
        #[arg(long)]
        file: bool,
    },
    /// What a verified load sees while something breaks
    Fault {
        #[command(flatten)]
        common: Common,
        /// How often each fault is made
        #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u32).range(1..=99))]
        rounds: Option<u32>,
        /// Only these: cable, black-hole, brown-out, card, controller, target, flapping
        #[arg(value_name = "FAULT")]
        faults: Vec<String>,
    },
    /// What the path layer has to reach, each figure beside its reference
    Bars {
        #[command(flatten)]
        common: Common,
        /// How often each is measured
        #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u32).range(1..=99))]
        rounds: Option<u32>,
        /// Only these: two-paths, mesh, forced-mesh, four-links, unequal, cut
        #[arg(value_name = "GROUP")]
        groups: Vec<String>,
    },
    /// Two nodes, three members of etcd, a host: what a verified load sees while something breaks
    #[command(subcommand)]
    Cluster(ClusterVerb),
    /// Remove what labs that were killed have left
    Clean,
    /// A bed with a load that a program drives: lines in, lines out
    #[command(hide = true)]
    Drive(Drive),
    /// Build the mesh, start a target in it, say how to use it, and stay until interrupted
    Up {
        #[command(flatten)]
        common: Common,
    },
}

impl LabVerb {
    fn common(&self) -> Option<&Common> {
        let common = match self {
            Self::Clean | Self::Drive(_) => return None,
            Self::Cluster(verb) => return verb.common(),
            Self::Mpio { common, .. }
            | Self::RoundRobin { common }
            | Self::SectorSize { common, .. }
            | Self::Fault { common, .. }
            | Self::Bars { common, .. }
            | Self::Up { common } => common,
        };
        Some(common)
    }
}

/// Runs a lab.
pub(crate) fn run(verb: &LabVerb, output: &Output) -> Result<(), Problem> {
    let given = verb.common().and_then(|common| common.program.clone());
    let program = given.map_or_else(std::env::current_exe, std::fs::canonicalize);
    let program = program.map_err(|error| {
        Problem::new(Code::LabUsage, format!("the program for the lab: {error}"))
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime =
        runtime.map_err(|error| Problem::new(Code::LabFailed, format!("event loop: {error}")))?;
    let local = tokio::task::LocalSet::new();
    let done = local.block_on(&runtime, interruptible(choose(&program, verb, output)));
    if let (LabVerb::Drive(_), Err(problem)) = (verb, &done) {
        lab_drive::failed(problem);
    }
    done
}

/// Ends `work` at SIGINT and SIGTERM: what it has built goes with it.
async fn interruptible(work: impl Future<Output = Result<(), Problem>>) -> Result<(), Problem> {
    let failed = |error| Problem::new(Code::LabFailed, format!("signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    tokio::select! {
        done = work => done,
        _ = interrupt.recv() => Err(interrupted()),
        _ = terminate.recv() => Err(interrupted()),
    }
}

fn interrupted() -> Problem {
    let problem = Problem::new(
        Code::LabFailed,
        "interrupted; what the lab had built is removed",
    );
    problem.hint("run it again")
}

async fn choose(program: &Path, verb: &LabVerb, output: &Output) -> Result<(), Problem> {
    match verb {
        LabVerb::Mpio { common, tests } => mpio(program, common, tests, output).await,
        LabVerb::RoundRobin { common } => round_robin(program, common, output).await,
        LabVerb::SectorSize { common, file } => sectors(program, common, *file, output).await,
        LabVerb::Fault {
            common,
            rounds,
            faults,
        } => fault(program, common, *rounds, faults, output).await,
        LabVerb::Bars {
            common,
            rounds,
            groups,
        } => bars(program, common, *rounds, groups, output).await,
        LabVerb::Cluster(verb) => lab_cluster::run(program, verb, output).await,
        LabVerb::Up { common } => up(program, common).await,
        LabVerb::Clean => lab::clean().map_err(problem),
        LabVerb::Drive(drive) => lab_drive::run(program, drive).await.map_err(problem),
    }
}

async fn mpio(
    program: &Path,
    common: &Common,
    tests: &[String],
    output: &Output,
) -> Result<(), Problem> {
    let mut options = lab::mpio::MpioOptions {
        tests: tests.to_vec(),
        ..Default::default()
    };
    set(&mut options.rate, common.rate);
    set(&mut options.buffer_kib, common.buffer);
    set(&mut options.seconds, common.seconds);
    let report = lab::mpio::run(program, options, progress).await;
    let report = report.map_err(problem)?;
    show(output, common, &report, report.page(), report.text())
}

async fn round_robin(program: &Path, common: &Common, output: &Output) -> Result<(), Problem> {
    let mut options = lab::round_robin::RoundRobinOptions::default();
    set(&mut options.rate, common.rate);
    set(&mut options.buffer_kib, common.buffer);
    set(&mut options.seconds, common.seconds);
    let report = lab::round_robin::run(program, options, progress).await;
    let report = report.map_err(problem)?;
    show(output, common, &report, report.page(), report.text())
}

async fn sectors(
    program: &Path,
    common: &Common,
    file: bool,
    output: &Output,
) -> Result<(), Problem> {
    let mut options = lab::sectors::SectorsOptions {
        in_memory: !file,
        ..Default::default()
    };
    set(&mut options.rate, common.rate);
    set(&mut options.seconds, common.seconds);
    let report = lab::sectors::run(program, options, progress).await;
    let report = report.map_err(problem)?;
    show(output, common, &report, report.page(), report.text())
}

async fn fault(
    program: &Path,
    common: &Common,
    rounds: Option<u32>,
    faults: &[String],
    output: &Output,
) -> Result<(), Problem> {
    let mut options = lab::faults::FaultsOptions {
        faults: faults.to_vec(),
        ..Default::default()
    };
    set(&mut options.rate, common.rate);
    set(&mut options.buffer_kib, common.buffer);
    set(&mut options.before, common.seconds);
    set(&mut options.rounds, rounds);
    let report = lab::faults::run(program, options, progress).await;
    let report = report.map_err(problem)?;
    show(output, common, &report, report.page(), report.text())
}

async fn bars(
    program: &Path,
    common: &Common,
    rounds: Option<u32>,
    groups: &[String],
    output: &Output,
) -> Result<(), Problem> {
    let mut options = lab::bars::BarsOptions {
        groups: groups.to_vec(),
        ..Default::default()
    };
    set(&mut options.rate, common.rate);
    set(&mut options.buffer_kib, common.buffer);
    set(&mut options.seconds, common.seconds);
    set(&mut options.rounds, rounds);
    let report = lab::bars::run(program, options, progress).await;
    let report = report.map_err(problem)?;
    show(output, common, &report, report.page(), report.text())
}

/// Stays until it is interrupted.
async fn up(program: &Path, common: &Common) -> Result<(), Problem> {
    let rate = common.rate.unwrap_or(Rate::GIGABIT);
    let topology = lab::mpio::topology(rate, common.buffer.unwrap_or(64));
    let rig = lab::Rig::start(program, topology, &lab::Disk::default()).await;
    let rig = rig.map_err(problem)?;
    let facts = rig.facts(&lab::Use::default()).map_err(problem)?;
    let host = rig.bed().namespace(lab::Side::Host);
    print(&format!(
        "A host with four NICs on two cards, and a target with two ports, links of {rate}.\n\n  \
         ip netns exec {host} {} bench -b4M -o1 -w100 --destroy --facts {facts} {}\n  \
         ip netns exec {host} ip -brief address\n  \
         ip -n {} link set h0 down        pulls the cable of eth0\n  \
         ip -n {} link set h0 nomaster    makes it a black hole\n\nCtrl-C removes everything.\n",
        program.display(),
        rig.url(),
        rig.bed().switch(),
        rig.bed().switch(),
    ));
    std::future::pending::<()>().await;
    Ok(())
}

#[cfg(test)]
mod test {
    use serde_json::json;

    /// A lab reads what `bench` reports, of which the states of paths are the host's words.
    #[test]
    fn a_lab_knows_every_state_of_a_path_that_a_host_reports() {
        for state in host::PATH_STATES {
            let read: lab::PathState = serde_json::from_value(json!(state)).unwrap();
            assert_eq!(json!(read), json!(state));
        }
        serde_json::from_value::<lab::PathState>(json!("idle")).unwrap_err();
    }
}
