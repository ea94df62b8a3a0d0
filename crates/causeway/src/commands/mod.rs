//! The commands that ask the daemon, a file per noun.

mod apply;
mod grant;
mod host;
mod lun;
mod session;
mod share;
mod status;
mod target;

use crate::cli::{Cli, Command};
use crate::client::Client;
use crate::output::Output;
use control::code::Code;
use control::problem::Problem;
use control::view::Outcome;
use hyper::Method;
use serde::Serialize;

/// What every command has at hand.
pub(crate) struct Context<'a> {
    pub(crate) client: Client,
    pub(crate) output: &'a Output,
    yes: bool,
    dry_run: bool,
}

/// Runs a command of the daemon's.
pub(crate) fn run(cli: &Cli, output: &Output) -> Result<(), Problem> {
    let context = Context {
        client: Client::new(&cli.api, cli.token_file.as_deref())?,
        output,
        yes: cli.yes,
        dry_run: cli.dry_run,
    };
    match &cli.command {
        Command::Status => status::run(&context),
        Command::Lun { verb } => lun::run(&context, verb),
        Command::Target { verb } => target::run(&context, verb),
        Command::Host { verb } => host::run(&context, verb),
        Command::Grant { verb } => grant::run(&context, verb),
        Command::Session { verb } => session::run(&context, verb),
        Command::Share { verb } => share::run(&context, verb),
        Command::Apply { file, prune } => apply::apply(&context, file, *prune),
        Command::Export => apply::export(&context),
        Command::Serve { .. }
        | Command::Explain { .. }
        | Command::Completions { .. }
        | Command::Man { .. } => unreachable!("main runs these without a daemon"),
    }
}

/// What to do where the object is there already, or is not there any more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tolerate {
    /// It is an error.
    Nothing,
    /// It is fine.
    Code(Code),
}

impl Tolerate {
    pub(crate) fn when(flag: bool, code: Code) -> Self {
        if flag {
            Self::Code(code)
        } else {
            Self::Nothing
        }
    }
}

impl Context<'_> {
    /// Only to be told what would be done.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Asks for a change and prints what was done.
    pub(crate) fn change(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<(), Problem> {
        let outcome = self.request(method, path, body)?;
        self.print(&outcome);
        Ok(())
    }

    /// As [`Context::change`]; where the error is tolerated nothing is printed.
    pub(crate) fn change_unless(
        &self,
        tolerate: Tolerate,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<(), Problem> {
        match self.change(method, path, body) {
            Err(problem) if tolerate == Tolerate::Code(problem.code) => Ok(()),
            done => done,
        }
    }

    /// Asks for a change.
    pub(crate) fn request(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<Outcome, Problem> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let path = format!(
            "{path}{separator}force={}&dry_run={}",
            self.yes, self.dry_run
        );
        self.client.send(method, &path, body)
    }

    /// Prints what a change did or would do.
    pub(crate) fn print(&self, outcome: &Outcome) {
        self.output.show(outcome, |outcome| {
            let mut out = String::new();
            if outcome.actions.is_empty() {
                out.push_str("nothing to change\n");
            }
            for action in &outcome.actions {
                out.push_str(&format!("{action}\n"));
                for hit in &action.hits {
                    out.push_str(&format!("  hits {hit}\n"));
                }
            }
            for notice in &outcome.notices {
                out.push_str(&format!("note: {notice}\n"));
            }
            if let Some(refusal) = &outcome.refusal {
                out.push_str(&format!("without --yes it would be refused:\n{refusal}\n"));
            }
            if self.dry_run {
                out.push_str("(dry run: nothing was changed)\n");
            }
            out
        });
    }
}
