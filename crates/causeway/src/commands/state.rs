//! `causeway state ls|show|rollback|accept`: the kept generations of the objects.

use super::context::{Context, Step, Tolerate};
use crate::completion::{CompletedArgument, Kind};
use crate::listed::{Listed, When};
use clap::Subcommand;
use hyper::Method;
use manifest::objects::{ObjectSet, to_toml};
use manifest::problem::Problem;
use manifest::view::Kept;
use output::{Columns, Table, print};

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["state", "show"], "generation", Kind::Generation),
    (&["state", "rollback"], "generation", Kind::Generation),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["state", "ls"], When::Always, COLUMNS)];

/// What to do with the kept generations of the objects.
#[derive(Subcommand, Debug)]
pub(crate) enum StateVerb {
    /// List the generations of the objects that are kept, newest first
    #[command(alias = "list")]
    Ls,
    /// Print the objects of a kept generation in the form that `export` has, without secrets
    Show {
        /// Its number, as `state ls` shows it
        generation: u64,
    },
    /// Go back to the objects of a kept generation; no data is lost: LUNs that were not there then
    /// are deleted and keep it
    Rollback {
        /// Its number, as `state ls` shows it
        generation: u64,
    },
    /// Say that the objects are meant although pools have seen newer ones: after a restore of
    /// state_dir
    Accept,
}

pub(crate) fn run(context: &Context<'_>, verb: &StateVerb) -> Result<(), Problem> {
    let post = |path: String| {
        let step = Step::new(Method::POST, path, &());
        context.change(Tolerate::Nothing, &step)
    };
    match verb {
        StateVerb::Ls => {
            let kept: Vec<Kept> = context.client.get("/api/v1/generations")?;
            context.output.list(&kept, |kept| list(kept));
            Ok(())
        }
        StateVerb::Show { generation } => {
            let path = format!("/api/v1/generations/{generation}");
            let set: ObjectSet = context.client.get(&path)?;
            context.output.show(&set, to_toml);
            Ok(())
        }
        StateVerb::Rollback { generation } => {
            post(format!("/api/v1/generations/{generation}/rollback"))
        }
        StateVerb::Accept => accept(context),
    }
}

fn accept(context: &Context<'_>) -> Result<(), Problem> {
    let done: manifest::view::Outcome =
        context.request(Method::POST, "/api/v1/generations/accept", &())?;
    if !done.changed && done.refusal.is_none() {
        let nothing = "no pool has seen newer objects: nothing to do\n";
        context.output.show(&done, |_| nothing.to_owned());
        return Ok(());
    }
    context.print(&done);
    if done.changed && !context.output.is_document() {
        let generation = done.generation;
        print(&format!(
            "the objects here are generation {generation} now, the newest\n"
        ));
    }
    Ok(())
}

const COLUMNS: Columns = Columns::new(&[
    "GENERATION",
    "WRITTEN",
    "LUNS",
    "DELETED",
    "TARGETS",
    "HOSTS",
    "GRANTS",
    "STATE",
]);

fn list(kept: &[Kept]) -> Table {
    let row = |it: &Kept| {
        let state = match (&it.problem, it.in_force) {
            (Some(problem), _) => problem.clone(),
            (None, true) => "in force".to_owned(),
            (None, false) => String::new(),
        };
        let mut row = vec![it.generation.to_string(), it.written.clone()];
        row.extend([it.luns, it.removed, it.targets, it.hosts, it.grants].map(|it| it.to_string()));
        row.push(state);
        row
    };
    let rows: Vec<Vec<String>> = kept.iter().map(row).collect();
    Table::new(COLUMNS, rows)
}
