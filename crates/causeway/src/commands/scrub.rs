//! `causeway scrub ...`.

use super::context::{Context, object_path};
use crate::completion::{CompletedArgument, Kind};
use crate::listed::{Listed, When};
use clap::Subcommand;
use hyper::Method;
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::scrub::{JournalScrub, ScrubFacts, ScrubOp, ScrubState};
use manifest::view::LunView;
use output::{Columns, Table, properties, rounded};
use serde::Serialize;
use serde_json::json;

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["scrub", "start"], "lun", Kind::Name("lun")),
    (&["scrub", "status"], "lun", Kind::Name("lun")),
    (&["scrub", "stop"], "lun", Kind::Name("lun")),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["scrub", "status"], When::Without("lun"), COLUMNS)];

/// What to do about a scrub.
#[derive(Subcommand, Debug)]
pub(crate) enum ScrubVerb {
    /// Begin, or go on where it was stopped; it gives way to hosts
    #[command(aliases = ["create", "add"])]
    Start {
        /// The LUN
        lun: String,
    },
    /// How far it is, and what it has found; without a LUN: of all
    #[command(aliases = ["ls", "list", "show"])]
    Status {
        /// The LUN
        lun: Option<String>,
    },
    /// Stop, and keep how far it is
    #[command(aliases = ["delete", "rm"])]
    Stop {
        /// The LUN
        lun: String,
    },
}

pub(crate) fn run(context: &Context<'_>, verb: &ScrubVerb) -> Result<(), Problem> {
    let (lun, operation) = match verb {
        ScrubVerb::Status { lun: None } => return all(context),
        ScrubVerb::Status { lun: Some(lun) } => (lun, None),
        ScrubVerb::Start { lun } => (lun, Some(ScrubOp::Start)),
        ScrubVerb::Stop { lun } => (lun, Some(ScrubOp::Stop)),
    };
    let path = format!("{}/scrub", object_path("lun", lun));
    let facts: ScrubFacts = match operation.filter(|_| !context.is_dry_run()) {
        None => context.client.get(&path)?,
        Some(operation) => {
            context
                .client
                .send(Method::POST, &path, &json!({ "operation": operation }))?
        }
    };
    context.output.show(&facts, |facts| page(lun, facts));
    Ok(())
}

const COLUMNS: Columns = Columns::new(&[
    "LUN",
    "SCRUB",
    "DONE",
    "BAD BLOCKS",
    "BEGAN",
    "ENDED",
    "READ WHOLE",
    "NEXT",
]);

/// A LUN and its scrub.
#[derive(Serialize)]
struct LunScrub<'a> {
    lun: &'a str,
    scrub: &'a Option<ScrubFacts>,
}

/// The scrub of every LUN.
fn all(context: &Context<'_>) -> Result<(), Problem> {
    let luns: Vec<LunView> = context.client.get("/api/v1/luns")?;
    let mut found: Vec<(String, Option<ScrubFacts>)> = Vec::new();
    for lun in luns {
        let path = format!("{}/scrub", object_path("lun", &lun.name));
        let facts = match context.client.get::<ScrubFacts>(&path) {
            Ok(facts) => Some(facts),
            // Never scrubbed, or gone since the list was made.
            Err(problem) if problem.code == Code::NotFound => None,
            Err(problem) => return Err(problem),
        };
        found.push((lun.name, facts));
    }
    let documents: Vec<LunScrub<'_>> = found
        .iter()
        .map(|(lun, scrub)| LunScrub { lun, scrub })
        .collect();
    context.output.list(&documents, |_| {
        let rows = found.iter().map(|(lun, facts)| row(lun, facts));
        Table::new(COLUMNS, rows.collect())
    });
    Ok(())
}

fn row(lun: &str, facts: &Option<ScrubFacts>) -> Vec<String> {
    let Some(facts) = facts else {
        return vec![lun.to_owned(), "never".to_owned()];
    };
    vec![
        lun.to_owned(),
        state(facts),
        format!("{} %", percent(facts)),
        (facts.unreadable_blocks + facts.mismatched_blocks).to_string(),
        facts.started.clone(),
        facts.ended.clone().unwrap_or_default(),
        facts.last_verified().unwrap_or("never").to_owned(),
        facts.next.clone().unwrap_or_default(),
    ]
}

fn percent(facts: &ScrubFacts) -> u128 {
    let share = (u128::from(facts.done_bytes) * 100).checked_div(u128::from(facts.total_bytes));
    share.unwrap_or(100)
}

fn state(facts: &ScrubFacts) -> String {
    match (facts.state, &facts.reason) {
        (ScrubState::Running, _) if facts.yields => "running, yielding to hosts".to_owned(),
        (ScrubState::Running, _) => "running".to_owned(),
        (ScrubState::Stopped, _) => "stopped; start goes on from here".to_owned(),
        (ScrubState::Finished, _) => "finished".to_owned(),
        (ScrubState::GivenUp, why) => format!(
            "given up: {}",
            why.as_deref().unwrap_or("no reason was kept")
        ),
    }
}

/// What it found in the pool's journal.
fn of_journal(journal: &JournalScrub) -> String {
    if let Some(why) = &journal.problem {
        return format!("could not be read: {why}");
    }
    format!(
        "{} changes right, {} damaged; {} blocks lost; damaged: {} of 2 superblocks, {} checkpoints",
        journal.changes,
        journal.damaged_changes,
        journal.lost_blocks,
        journal.damaged_superblocks,
        journal.damaged_checkpoints
    )
}

fn page(lun: &str, facts: &ScrubFacts) -> String {
    let mut rows = vec![
        ("lun", lun.to_owned()),
        ("scrub", state(facts)),
        ("started", facts.started.clone()),
    ];
    rows.extend(facts.ended.clone().map(|ended| ("ended", ended)));
    let verified = facts.last_verified().unwrap_or("never").to_owned();
    rows.push(("read whole last", verified));
    let done = format!(
        "{} of {} ({} %)",
        rounded(facts.done_bytes),
        rounded(facts.total_bytes),
        percent(facts)
    );
    rows.push(("done", done));
    if facts.state == ScrubState::Running {
        rows.push(("rate", format!("{}/s", rounded(facts.bytes_per_second))));
        let left = facts.seconds_left.map(|seconds| format!("{seconds} s"));
        rows.push((
            "time left",
            left.unwrap_or_else(|| "not known yet".to_owned()),
        ));
    }
    rows.push(("unreadable blocks", facts.unreadable_blocks.to_string()));
    rows.push(("mismatched blocks", facts.mismatched_blocks.to_string()));
    rows.push(("damaged pages of checksums", facts.map_pages.to_string()));
    if let Some(journal) = &facts.journal {
        rows.push(("journal", of_journal(journal)));
    }
    let metadata = match facts.metadata.as_slice() {
        [] => "nothing wrong".to_owned(),
        all => all.join("\n"),
    };
    rows.push(("other metadata", metadata));
    rows.extend(facts.next.clone().map(|next| ("next", next)));
    let places: Vec<String> = facts.places.iter().map(ToString::to_string).collect();
    if !places.is_empty() {
        rows.push(("where", places.join("\n")));
    }
    properties(&rows)
}
