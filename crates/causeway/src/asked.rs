//! What the options of every command that are about its output mean to a verb: what it does not
//! have is refused before anything is asked.

use crate::args::Common;
use crate::cli::LISTED;
use crate::listed::{Listed, When};
use clap::ArgMatches;
use clap::parser::ValueSource;
use manifest::code::Code;
use manifest::problem::Problem;
use output::{Columns, Format, Output};
use std::collections::BTreeSet;

/// Verbs that show something and change nothing.
const SHOWING: &[&str] = &["ls", "show", "status", "diff", "silences", "rules"];

/// Of commands that have no names to print.
const NAMELESS: &[&str] = &[
    "audit", "bench", "cluster", "config", "doctor", "export", "history", "lab", "status",
    "support", "top",
];

/// The verb that was typed, and its own arguments.
fn verb(matches: &ArgMatches) -> (Vec<&str>, &ArgMatches) {
    let (mut words, mut at) = (Vec::new(), matches);
    while let Some((word, below)) = at.subcommand() {
        words.push(word);
        at = below;
    }
    (words, at)
}

/// Whether an argument was typed.
fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches!(matches.try_contains_id(id), Ok(true))
        && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// The columns that a verb's table has, with these arguments.
fn columns_of(words: &[&str], own: &ArgMatches) -> Option<Columns> {
    let fits = |(verb, when, _): &&Listed| {
        *verb == words
            && match when {
                When::Always => true,
                When::With(id) => is_given(own, id),
                When::Without(id) => !is_given(own, id),
            }
    };
    let mut all = LISTED.iter().copied().flatten();
    // What an option makes of it stands before what it is without.
    all.find(fits).map(|(.., columns)| *columns)
}

/// All columns that a verb's tables have, for completions.
pub(crate) fn all_columns(words: &[&str]) -> Vec<String> {
    let of_verb = LISTED.iter().copied().flatten();
    let of_verb = of_verb.filter(|(verb, ..)| *verb == words);
    let all = of_verb.flat_map(|(.., columns)| columns.typed());
    let all: BTreeSet<String> = all.collect();
    all.into_iter().collect()
}

fn refused(detail: String, hint: &str) -> Problem {
    Problem::new(Code::CommandLine, detail).hint(hint)
}

/// Where the answers of the command go that was typed.
pub(crate) fn output(common: &Common, matches: &ArgMatches, line: &str) -> Result<Output, Problem> {
    let (words, own) = verb(matches);
    let named = format!("causeway {}", words.join(" "));
    let columns = columns_of(&words, own);
    let option = match (common.columns.is_empty(), common.no_headers) {
        (false, _) => Some("--columns"),
        (true, true) => Some("--no-headers"),
        (true, false) => None,
    };
    if let Some(option) = option {
        let is_table = matches!(common.output, Format::Table | Format::Wide);
        if !is_table && option == "--columns" {
            let detail = "--columns is of tables, and no table was asked for".to_owned();
            return Err(refused(detail, "leave out --columns, or -o"));
        }
        let Some(columns) = columns else {
            let detail = format!("{named} prints no list, and {option} is of lists");
            return Err(refused(
                detail,
                "such as causeway lun ls --columns name,size",
            ));
        };
        columns.check(&common.columns)?;
    }
    if common.output == Format::Name && words.first().is_some_and(|it| NAMELESS.contains(it)) {
        let detail = format!("{named} prints nothing that has a name");
        return Err(refused(detail, "-o json or -o yaml prints all of it"));
    }
    let output = Output::new(common.output)
        .columns(common.columns.clone())
        .head(!common.no_headers);
    let Some(every) = common.watch else {
        return Ok(output);
    };
    let shows = words.last().is_some_and(|it| SHOWING.contains(it));
    if !shows || is_given(own, "follow") {
        let detail = format!("{named} cannot be watched");
        return Err(refused(
            detail,
            "--watch is of what only shows something: ls, show, status",
        ));
    }
    Ok(output.rounds(every.title(line)))
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::cli::Cli;
    use crate::parse::command;
    use clap::FromArgMatches as _;

    fn asked(line: &str) -> Result<Output, Problem> {
        let matches = command().try_get_matches_from(line.split(' ')).unwrap();
        let cli = Cli::from_arg_matches(&matches).unwrap();
        output(&cli.common, &matches, line)
    }

    #[test]
    fn what_a_verb_does_not_have_is_refused_before_anything_is_asked() {
        for (line, wanted) in [
            ("causeway lun ls --columns nme", "did you mean \"name\"?"),
            ("causeway lun show a --columns name", "prints no list"),
            (
                "causeway lun create a --size 1M --no-headers",
                "prints no list",
            ),
            (
                "causeway lun ls -o json --columns name",
                "--columns is of tables",
            ),
            (
                "causeway lun ls --orphans --columns grants",
                "there is no column",
            ),
            ("causeway session ls --columns reason", "there is no column"),
            ("causeway lun delete a --watch", "cannot be watched"),
            ("causeway event ls --follow --watch", "cannot be watched"),
            ("causeway status -o name", "nothing that has a name"),
        ] {
            let refused = asked(line).err().unwrap_or_else(|| panic!("{line}"));
            assert!(refused.detail.contains(wanted), "{line}: {refused}");
            assert_eq!(refused.exit() as u8, 2, "{line}");
        }
        for line in [
            "causeway lun ls --columns NAME,size,naa --no-headers",
            "causeway lun list --columns name",
            "causeway session ls --refused --columns reason",
            "causeway scrub status --columns lun",
            "causeway lun show a --watch",
            "causeway status --watch=0.5",
            "causeway lun create a --size 1M -o name",
            "causeway pool ls -o yaml --watch",
        ] {
            assert!(asked(line).is_ok(), "{line}: {:?}", asked(line).err());
        }
    }

    #[test]
    fn each_list_is_of_a_verb_that_there_is_and_has_each_column_once() {
        for (verb, when, columns) in LISTED.iter().copied().flatten() {
            let mut at = &command();
            for word in *verb {
                at = at
                    .find_subcommand(word)
                    .unwrap_or_else(|| panic!("{verb:?}"));
            }
            if let When::With(id) | When::Without(id) = when {
                let mut all = at.get_arguments();
                assert!(all.any(|arg| arg.get_id() == id), "{verb:?}: {id}");
            }
            let typed: Vec<String> = columns.typed().collect();
            let mut once = typed.clone();
            once.sort();
            once.dedup();
            assert_eq!(once.len(), typed.len(), "{verb:?}: {typed:?}");
        }
    }
}
