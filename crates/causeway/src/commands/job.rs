//! `causeway job ...`: work that takes long.

use super::context::Context;
use super::user::{if_there, send};
use crate::completion::{CompletedArgument, Kind};
use crate::listed::{Listed, When};
use clap::Subcommand;
use hyper::Method;
use manifest::code::Code;
use manifest::job::{JobState, JobUnit, JobView};
use manifest::problem::Problem;
use manifest::time::about;
use output::{Columns, Table, properties, rounded};
use std::time::Duration;

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["job", "show"], "id", Kind::Job),
    (&["job", "cancel"], "id", Kind::Job),
    (&["job", "wait"], "id", Kind::Job),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["job", "ls"], When::Always, COLUMNS)];

/// How often a job is asked for that somebody waits for.
const EVERY: Duration = Duration::from_secs(1);

/// What to do about jobs.
#[derive(Subcommand, Debug)]
pub(crate) enum JobVerb {
    /// List jobs, the newest first
    #[command(alias = "list")]
    Ls {
        /// Only those that run
        #[arg(long)]
        running: bool,
    },
    /// Show all of a job, with its log
    Show {
        /// Its number
        id: u64,
    },
    /// Have a job stop where it is; what was made of a LUN is undone, a scrub can go on later
    #[command(aliases = ["delete", "rm"])]
    Cancel {
        /// Its number
        id: u64,
        /// Succeed where there is none, or it has ended
        #[arg(long)]
        if_exists: bool,
    },
    /// Wait for a job's end; exit code 0 where it has finished
    Wait {
        /// Its number
        id: u64,
    },
}

fn path(id: u64) -> String {
    format!("/api/v1/jobs/{id}")
}

pub(crate) fn run(context: &Context<'_>, verb: &JobVerb) -> Result<(), Problem> {
    match verb {
        JobVerb::Ls { running } => {
            let filter = if *running {
                "?filter=state:running"
            } else {
                ""
            };
            let jobs: Vec<JobView> = context.client.get(&format!("/api/v1/jobs{filter}"))?;
            context.output.list(&jobs, |jobs| list(jobs));
            Ok(())
        }
        JobVerb::Show { id } => {
            let job: JobView = context.client.get(&path(*id))?;
            context.output.show(&job, page);
            Ok(())
        }
        JobVerb::Cancel { id, if_exists } => {
            let path = format!("{}/cancel", path(*id));
            let sent = send(context, Method::POST, &path, &());
            if let Some(job) = if_there::<JobView>(context, *if_exists, sent)? {
                context.output.show(&job, page);
            }
            Ok(())
        }
        JobVerb::Wait { id } => wait(context, *id),
    }
}

fn wait(context: &Context<'_>, id: u64) -> Result<(), Problem> {
    let job = loop {
        let job: JobView = context.client.get(&path(id))?;
        if job.state != JobState::Running {
            break job;
        }
        context.client.pause(EVERY);
    };
    context.output.show(&job, page);
    if job.state == JobState::Finished {
        return Ok(());
    }
    let why = job
        .reason
        .map_or_else(String::new, |why| format!(": {why}"));
    let detail = format!("job {id} was not finished: {}{why}", job.state);
    Err(Problem::new(Code::PartlyDone, detail).hint(format!("causeway job show {id}")))
}

/// What is done, in words.
fn what(job: &JobView) -> String {
    let what = match job.kind.as_str() {
        "scrub" => "scrub of",
        "lun_create" => "making",
        "lun_grow" => "growing",
        other => other,
    };
    format!("{what} {}", job.object)
}

fn state(job: &JobView) -> String {
    if job.cancelling {
        return "being cancelled".to_owned();
    }
    job.state.to_string()
}

fn left(job: &JobView) -> String {
    job.seconds_left.map(about).unwrap_or_default()
}

/// So many of what it counts.
fn amount(job: &JobView, count: u64) -> String {
    match job.unit {
        JobUnit::Bytes => rounded(count),
        JobUnit::Seconds => format!("{count} s"),
        JobUnit::Steps => format!("{count} steps"),
    }
}

fn done(job: &JobView) -> String {
    if job.total == 0 {
        return "not known".to_owned();
    }
    let (done, total) = (amount(job, job.done), amount(job, job.total));
    format!("{done} of {total} ({} %)", job.percent)
}

fn percent(job: &JobView) -> String {
    if job.total == 0 && job.state != JobState::Finished {
        return String::new();
    }
    format!("{} %", job.percent)
}

const COLUMNS: Columns =
    Columns::new(&["ID", "JOB", "STATE", "DONE", "LEFT", "BEGAN", "BY"]).wide(&["ENDED", "REASON"]);

fn list(jobs: &[JobView]) -> Table {
    let row = |job: &JobView| {
        vec![
            job.id.to_string(),
            what(job),
            state(job),
            percent(job),
            left(job),
            job.started.clone(),
            job.by.clone(),
            job.ended.clone().unwrap_or_default(),
            job.reason.clone().unwrap_or_default(),
        ]
    };
    let rows: Vec<Vec<String>> = jobs.iter().map(row).collect();
    Table::new(COLUMNS, rows)
}

fn page(job: &JobView) -> String {
    let mut rows = vec![
        ("job", job.id.to_string()),
        ("what", what(job)),
        ("state", state(job)),
        ("done", done(job)),
    ];
    if job.state == JobState::Running {
        rows.push(("rate", format!("{}/s", amount(job, job.rate))));
        let left = left(job);
        rows.push((
            "time left",
            if left.is_empty() {
                "not known yet".to_owned()
            } else {
                left
            },
        ));
    }
    rows.push(("began", job.started.clone()));
    rows.extend(job.ended.clone().map(|at| ("ended", at)));
    rows.push(("by", job.by.clone()));
    rows.extend(job.reason.clone().map(|why| ("reason", why)));
    let log: Vec<String> = job
        .log
        .iter()
        .map(|line| format!("{} {}", line.at, line.text))
        .collect();
    rows.push(("log", log.join("\n")));
    properties(&rows)
}
