//! `causeway journal reopen|discard`: what may be asked of a pool's journal.

use super::context::{Context, object_path};
use super::pool;
use crate::completion::{CompletedArgument, Kind};
use crate::listed::{Listed, When};
use clap::Subcommand;
use hyper::Method;
use manifest::code::Code;
use manifest::journal::{JournalLoss, JournalOp, JournalOutcome, JournalRequest};
use manifest::problem::Problem;
use output::{print, rounded, table};
use std::io::{IsTerminal as _, stdin};

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["journal", "show"], "pool", Kind::Name("pool")),
    (&["journal", "reopen"], "pool", Kind::Name("pool")),
    (&["journal", "discard"], "pool", Kind::Name("pool")),
    (&["journal", "discard"], "confirm", Kind::Name("pool")),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["journal", "ls"], When::Always, pool::JOURNALS)];

/// What to do about a pool's journal.
#[derive(Subcommand, Debug)]
pub(crate) enum JournalVerb {
    /// List the journals of all pools
    #[command(alias = "list")]
    Ls,
    /// Show all that is known of one
    Show {
        /// The pool
        pool: String,
    },
    /// Open one that has failed or is missing; its LUNs then serve again
    Reopen {
        /// The pool
        pool: String,
    },
    /// Give up what one holds that cannot be used any more, and make a new one; reports first what
    /// is lost
    #[command(aliases = ["delete", "rm"])]
    Discard {
        /// The pool
        pool: String,
        /// The pool's name once more, instead of typing it
        #[arg(long, value_name = "POOL")]
        confirm: Option<String>,
    },
}

pub(crate) fn run(context: &Context<'_>, verb: &JournalVerb) -> Result<(), Problem> {
    match verb {
        JournalVerb::Ls => pool::journals(context),
        JournalVerb::Show { pool } => pool::journal(context, pool),
        JournalVerb::Reopen { pool } => {
            let dry_run = context.is_dry_run();
            let outcome = ask(context, pool, JournalOp::Reopen, None, dry_run)?;
            context
                .output
                .show(&outcome, |outcome| match outcome.changed {
                    true => format!("the journal of pool {pool} is open again\n"),
                    false if dry_run => {
                        format!("the journal of pool {pool} would be opened anew\n")
                    }
                    false => format!("the journal of pool {pool} is open: nothing to do\n"),
                });
            Ok(())
        }
        JournalVerb::Discard { pool, confirm } => discard(context, pool, confirm.as_deref()),
    }
}

fn ask(
    context: &Context<'_>,
    pool: &str,
    operation: JournalOp,
    confirm: Option<String>,
    dry_run: bool,
) -> Result<JournalOutcome, Problem> {
    let path = format!("{}/journal", object_path("pool", pool));
    let request = JournalRequest {
        operation,
        confirm,
        dry_run,
    };
    context.client.send(Method::POST, &path, &request)
}

/// Reports first what is lost, and does it when the pool's name was typed.
fn discard(context: &Context<'_>, pool: &str, confirm: Option<&str>) -> Result<(), Problem> {
    let discarded = ask(context, pool, JournalOp::Discard, None, true)?;
    if context.is_dry_run() {
        context.output.show(&discarded, losses);
        return Ok(());
    }
    if !context.output.is_document() {
        print(&losses(&discarded));
    }
    let typed = match confirm {
        Some(typed) => typed.to_owned(),
        None if stdin().is_terminal() => {
            print("Type the pool's name to give the journal up: ");
            let mut line = String::new();
            let read = stdin().read_line(&mut line);
            read.map_err(|error| Problem::new(Code::BadRequest, error.to_string()))?;
            line.trim().to_owned()
        }
        None => String::new(),
    };
    let outcome = ask(context, pool, JournalOp::Discard, Some(typed), false)?;
    context.output.show(&outcome, |outcome| {
        let next = match &outcome.journal {
            Some(journal) => format!("a new one is open: {}", journal.path),
            None => "the pool has none any more".to_owned(),
        };
        format!("what the journal of pool {pool} held was given up; {next}\n")
    });
    Ok(())
}

/// What would be lost, as a table.
fn losses(outcome: &JournalOutcome) -> String {
    let known = |number: Option<u64>, shown: fn(u64) -> String| {
        number.map_or_else(|| "unknown".to_owned(), shown)
    };
    let row = |loss: &JournalLoss| {
        vec![
            loss.lun.clone(),
            known(loss.changes, |changes| changes.to_string()),
            known(loss.bytes, rounded),
        ]
    };
    if outcome.losses.is_empty() && outcome.unknown.is_none() {
        let pool = &outcome.pool;
        return format!(
            "nothing is lost with the journal of pool {pool}: all that it held is destaged\n"
        );
    }
    let rows: Vec<Vec<String>> = outcome.losses.iter().map(row).collect();
    let mut out = format!(
        "given up with the journal of pool {}, as far as it is not destaged already:\n\n{}",
        outcome.pool,
        table(&["LUN", "CHANGES", "AT MOST"], &rows)
    );
    if let Some(why) = &outcome.unknown {
        out.push_str(&format!("\nnot all of it is known: {why}\n"));
    }
    out.push('\n');
    out
}
