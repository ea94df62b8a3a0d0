//! `causeway lab cluster`: a cluster on this machine, and what breaks in it.

use super::lab_common::{Common, problem, progress, set, show};
use clap::Subcommand;
use lab::LabError;
use lab::cluster::{
    self, ClusterOptions, ClusterStatus, KillsOptions, kill_loop, run as run_drills, steps,
};
use manifest::problem::Problem;
use output::{Output, print};
use std::path::{Path, PathBuf};

#[derive(Subcommand, Debug)]
pub(crate) enum ClusterVerb {
    /// Each row of the table of failures, with its bar: builds a cluster, breaks it, and measures
    Fault {
        #[command(flatten)]
        common: Common,
        /// How often each drill is made
        #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u32).range(1..=99))]
        rounds: Option<u32>,
        /// Steps in place of the drills: lines of SECONDS ORDER [within SECONDS]; - is stdin
        #[arg(long, value_name = "FILE", conflicts_with = "drills")]
        list: Option<PathBuf>,
        /// Only these drills
        #[arg(value_name = "DRILL")]
        drills: Vec<String>,
    },
    /// Kill nodes and members of etcd in turn, again and again, under one verified load
    Kills {
        #[command(flatten)]
        common: Common,
        /// How many kills
        #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        rounds: Option<u32>,
        /// Which times are drawn
        #[arg(long, value_name = "NUMBER")]
        seed: Option<u64>,
    },
    /// Build a cluster, say how to use it, and stay until `down` or an interrupt
    Up {
        #[command(flatten)]
        common: Common,
        /// A host works all the time, and verifies what it reads
        #[arg(long)]
        load: bool,
    },
    /// How the cluster is that stands here
    Status {
        /// Which one, where several stand
        #[arg(long, value_name = "NAME")]
        lab: Option<String>,
    },
    /// Break something of the cluster that stands here, or mend it: kill owner, start all
    Order {
        /// The order: kill, stop, start, pause, resume, drain; cut, hole, deaf, mute, slow, mend
        #[arg(value_name = "WORD", required = true, num_args = 2)]
        words: Vec<String>,
        /// Which one, where several stand
        #[arg(long, value_name = "NAME")]
        lab: Option<String>,
    },
    /// End the cluster that stands here, and remove it
    Down {
        /// Which one, where several stand
        #[arg(long, value_name = "NAME")]
        lab: Option<String>,
    },
}

impl ClusterVerb {
    pub(super) fn common(&self) -> Option<&Common> {
        match self {
            Self::Fault { common, .. } | Self::Kills { common, .. } | Self::Up { common, .. } => {
                Some(common)
            }
            Self::Status { .. } | Self::Order { .. } | Self::Down { .. } => None,
        }
    }
}

pub(super) async fn run(
    program: &Path,
    verb: &ClusterVerb,
    output: &Output,
) -> Result<(), Problem> {
    match verb {
        ClusterVerb::Fault {
            common,
            rounds,
            list,
            drills,
        } => {
            let mut options = ClusterOptions {
                drills: drills.clone(),
                ..Default::default()
            };
            if let Some(file) = list {
                options.list = steps(&read(file)?).map_err(problem)?;
            }
            set(&mut options.rate, common.rate);
            set(&mut options.buffer_kib, common.buffer);
            set(&mut options.before, common.seconds);
            set(&mut options.rounds, *rounds);
            let report = run_drills(program, options, progress).await;
            let report = report.map_err(problem)?;
            show(output, common, &report, report.page(), report.text())
        }
        ClusterVerb::Kills {
            common,
            rounds,
            seed,
        } => {
            let mut options = KillsOptions::default();
            set(&mut options.rate, common.rate);
            set(&mut options.buffer_kib, common.buffer);
            set(&mut options.rounds, *rounds);
            set(&mut options.seed, *seed);
            let report = kill_loop(program, options, progress).await;
            let report = report.map_err(problem)?;
            output.show(&report, |it| it.text());
            Ok(())
        }
        ClusterVerb::Up { common, load } => {
            let rate = common.rate.unwrap_or(ClusterOptions::default().rate);
            let medium = (rate, common.buffer.unwrap_or(64));
            cluster::up(program, medium, *load, print)
                .await
                .map_err(problem)
        }
        ClusterVerb::Status { lab } => shown(output, cluster::standing(lab.as_deref()).await),
        ClusterVerb::Order { words, lab } => {
            let text = words.join(" ");
            shown(output, cluster::order(lab.as_deref(), &text).await)
        }
        ClusterVerb::Down { lab } => shown(output, cluster::down(lab.as_deref()).await),
    }
}

fn shown(output: &Output, status: Result<ClusterStatus, LabError>) -> Result<(), Problem> {
    output.show(&status.map_err(problem)?, ClusterStatus::text);
    Ok(())
}

fn read(file: &Path) -> Result<String, Problem> {
    let text = if file.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    text.map_err(|error| {
        let what = format!("{}: {error}", file.display());
        problem(LabError::usage(what, "name a file that can be read"))
    })
}
