//! `causeway explain`: what the codes of errors mean.

use crate::completion::{CompletedArgument, Kind};
use crate::listed::{Listed, When};
use manifest::code::{CATALOGUE, Code, Entry};
use manifest::problem::Problem;
use output::{Columns, Output, Table};
use serde::Serialize;

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[(&["explain"], "code", Kind::Code)];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["explain"], When::Without("code"), COLUMNS)];

const COLUMNS: Columns = Columns::new(&["CODE", "EXIT", "WHAT"]);

/// An error's code.
#[derive(Serialize)]
struct CodeView {
    code: Code,
    title: &'static str,
    exit: u8,
    #[serde(flatten)]
    why: Option<WhyView>,
}

/// What there is to say of it.
#[derive(Serialize)]
struct WhyView {
    cause: &'static str,
    next_step: &'static str,
    status: u16,
}

/// Every code with its title.
pub(crate) fn codes(output: &Output) {
    let view = |entry: &Entry| CodeView {
        code: entry.code,
        title: entry.title,
        exit: entry.exit as u8,
        why: None,
    };
    let all: Vec<CodeView> = CATALOGUE.iter().map(view).collect();
    output.list(&all, |_| {
        let row = |entry: &Entry| {
            let exit = (entry.exit as u8).to_string();
            vec![entry.code.to_string(), exit, entry.title.to_owned()]
        };
        let rows: Vec<Vec<String>> = CATALOGUE.iter().map(row).collect();
        Table::new(COLUMNS, rows)
            .above("\n`causeway explain CODE` says why, and what to do\n".to_owned())
    });
}

pub(crate) fn run(output: &Output, text: &str) -> Result<(), Problem> {
    let Some(code) = Code::parse(text) else {
        let detail = format!("there is no code \"{text}\"");
        return Err(Problem::new(Code::NotFound, detail)
            .hint("codes look like CWY2003; `causeway explain` lists them"));
    };
    let entry = code.entry();
    let document = CodeView {
        code,
        title: entry.title,
        exit: entry.exit as u8,
        why: Some(WhyView {
            cause: entry.cause,
            next_step: entry.next_step,
            status: entry.status,
        }),
    };
    output.show(&document, |_| {
        format!(
            "{code}: {}\n\nWhy:  {}\nNext: {}\n\nExit code {}.\n",
            entry.title, entry.cause, entry.next_step, entry.exit as u8
        )
    });
    Ok(())
}
