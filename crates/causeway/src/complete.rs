//! Completions that know the words of the command line and the names of objects, which the daemon is asked for.
//!
//! The shell calls this program for each candidate (`CAUSEWAY_COMPLETE` in the environment); what the script for it is, clap_complete's engine
//! knows. A daemon that is away, or slow, costs names only.

use crate::cli::Cli;
use crate::client::Client;
use crate::parse;
use clap::Command;
use clap_complete::env::{CompleteEnv, Shells};
use clap_complete::{ArgValueCompleter, CompletionCandidate};
use control::code::{CATALOGUE, Code};
use control::problem::Problem;
use serde_json::Value;
use std::ffi::OsStr;
use std::time::Duration;

/// Names the shell that asks; the rest of the protocol is the engine's.
const ASKED: &str = "CAUSEWAY_COMPLETE";

/// Whoever presses a key does not wait longer.
const ANSWER_MAX: Duration = Duration::from_millis(800);

/// What a word may be.
#[derive(Clone, Copy)]
enum Kind {
    /// The name of an object of this noun.
    Name(&'static str),
    /// A LUN that was deleted and keeps its data.
    Removed,
    /// A session's number.
    Session,
    /// An error's code.
    Code,
    /// `KEY=VALUE` of a noun.
    Assignment(&'static str),
    /// A host by name, or every initiator.
    Hosts,
}

/// Command, argument, what may stand there.
const PLACES: &[(&[&str], &str, Kind)] = &[
    (&["lun", "show"], "name", Kind::Name("lun")),
    (&["lun", "set"], "name", Kind::Name("lun")),
    (&["lun", "set"], "values", Kind::Assignment("lun")),
    (&["lun", "resize"], "name", Kind::Name("lun")),
    (&["lun", "rename"], "name", Kind::Name("lun")),
    (&["lun", "delete"], "name", Kind::Name("lun")),
    (&["lun", "restore"], "name", Kind::Removed),
    (&["lun", "purge"], "name", Kind::Removed),
    (&["lun", "create"], "pool", Kind::Name("pool")),
    (&["lun", "adopt"], "pool", Kind::Name("pool")),
    (&["target", "show"], "name", Kind::Name("target")),
    (&["target", "set"], "name", Kind::Name("target")),
    (&["target", "set"], "values", Kind::Assignment("target")),
    (&["target", "rename"], "name", Kind::Name("target")),
    (&["target", "delete"], "name", Kind::Name("target")),
    (&["host", "show"], "name", Kind::Name("host")),
    (&["host", "set"], "name", Kind::Name("host")),
    (&["host", "set"], "values", Kind::Assignment("host")),
    (&["host", "rename"], "name", Kind::Name("host")),
    (&["host", "delete"], "name", Kind::Name("host")),
    (&["grant", "create"], "what", Kind::Name("host")),
    (&["grant", "create"], "host", Kind::Name("host")),
    (&["grant", "create"], "lun", Kind::Name("lun")),
    (&["grant", "create"], "target", Kind::Name("target")),
    (&["grant", "show"], "name", Kind::Name("grant")),
    (&["grant", "set"], "name", Kind::Name("grant")),
    (&["grant", "set"], "values", Kind::Assignment("grant")),
    (&["grant", "delete"], "what", Kind::Name("grant")),
    (&["grant", "delete"], "target", Kind::Name("target")),
    (&["session", "show"], "id", Kind::Session),
    (&["session", "drop"], "id", Kind::Session),
    (&["scrub", "start"], "lun", Kind::Name("lun")),
    (&["scrub", "status"], "lun", Kind::Name("lun")),
    (&["scrub", "stop"], "lun", Kind::Name("lun")),
    (&["share", "show"], "name", Kind::Name("lun")),
    (&["share", "delete"], "name", Kind::Name("lun")),
    (&["share", "create"], "hosts", Kind::Hosts),
    (&["share", "create"], "target", Kind::Name("target")),
    (&["share", "create"], "pool", Kind::Name("pool")),
    (&["pool", "show"], "name", Kind::Name("pool")),
    (&["journal", "reopen"], "pool", Kind::Name("pool")),
    (&["journal", "discard"], "pool", Kind::Name("pool")),
    (&["journal", "discard"], "confirm", Kind::Name("pool")),
    (&["explain"], "code", Kind::Code),
];

/// What can be assigned, with the values where they are few; a key that ends with = takes any.
const ASSIGNMENTS: &[(&str, &[&str])] = &[
    (
        "lun",
        &[
            "size=",
            "name=",
            "cache=write-back",
            "cache=write-through",
            "cache=volatile",
            "integrity=true",
            "integrity=false",
            "read_cache=",
            "bytes_in_flight_max=",
            "limit.iops=",
            "limit.bytes_per_second=",
            "limit.burst_seconds=",
            "limit=none",
            "shares=",
            "task_aborted_status=on",
            "task_aborted_status=off",
            "task_aborted_status=host",
        ],
    ),
    (
        "target",
        &[
            "iqn=",
            "portal_group=",
            "redirect=",
            "maintenance=true",
            "maintenance=false",
            "maintenance_grace_seconds=",
            "name=",
        ],
    ),
    (
        "host",
        &[
            "iqn=",
            "chap.user=",
            "chap.secret_file=",
            "chap.mutual_user=",
            "chap.mutual_secret_file=",
            "chap=none",
            "chap.mutual=none",
            "bytes_in_flight_max=",
            "name=",
        ],
    ),
    ("grant", &["lun_id=", "read_only=true", "read_only=false"]),
];

/// Answers a shell that asks for candidates, where one does; the process ends then.
pub(crate) fn answer() {
    CompleteEnv::with_factory(command)
        .var(ASKED)
        .bin("causeway")
        .complete();
}

/// Prints what a shell runs to have completions.
pub(crate) fn script(shell: clap_complete::Shell) -> Result<(), Problem> {
    if shell == clap_complete::Shell::Bash {
        crate::output::print(include_str!("complete.bash"));
        return Ok(());
    }
    let name = shell.to_string();
    let shells = Shells::builtins();
    let known = shells.completer(&name);
    let known = known.ok_or_else(|| Problem::new(Code::CommandLine, format!("no shell {name}")))?;
    let mut text = Vec::new();
    let written = known.write_registration(ASKED, "causeway", "causeway", "causeway", &mut text);
    written.map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    crate::output::print(&String::from_utf8_lossy(&text));
    Ok(())
}

/// The commands, each argument with what may stand there.
fn command() -> Command {
    let mut command = parse::command();
    for (verbs, argument, kind) in PLACES {
        command = completed(command, verbs, argument, *kind);
    }
    command
}

fn completed(command: Command, verbs: &[&str], argument: &'static str, kind: Kind) -> Command {
    let Some((verb, rest)) = verbs.split_first() else {
        return command.mut_arg(argument, |argument| {
            argument.add(ArgValueCompleter::new(move |typed: &OsStr| {
                candidates(kind, typed)
            }))
        });
    };
    command.mut_subcommand(*verb, |command| completed(command, rest, argument, kind))
}

fn candidates(kind: Kind, typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let all: Vec<(String, Option<String>)> = match kind {
        Kind::Name(noun) => names(&format!("/api/v1/{noun}s"), "name"),
        Kind::Removed => names("/api/v1/luns?removed=true", "name"),
        Kind::Session => names("/api/v1/sessions", "id"),
        Kind::Hosts => {
            let mut all = names("/api/v1/hosts", "name");
            all.push(("*".to_owned(), Some("every initiator".to_owned())));
            all
        }
        Kind::Code => CATALOGUE
            .iter()
            .map(|entry| (entry.code.to_string(), Some(entry.title.to_owned())))
            .collect(),
        Kind::Assignment(noun) => {
            let of = ASSIGNMENTS.iter().find(|(known, _)| *known == noun);
            let all = of.map_or(&[][..], |(_, all)| all);
            all.iter().map(|word| ((*word).to_owned(), None)).collect()
        }
    };
    let fits = all
        .into_iter()
        .filter(|(word, _)| word.starts_with(typed.as_ref()));
    fits.map(|(word, help)| CompletionCandidate::new(word).help(help.map(Into::into)))
        .collect()
}

/// What the daemon has there.
fn names(path: &str, key: &str) -> Vec<(String, Option<String>)> {
    let client = Client::new(&address(), None);
    let asked = client.and_then(|client| client.within(ANSWER_MAX).get::<Value>(path));
    let Ok(Value::Array(all)) = asked else {
        return Vec::new();
    };
    all.iter()
        .filter_map(|one| {
            let name = match &one[key] {
                Value::String(name) => name.clone(),
                Value::Number(number) => number.to_string(),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
            };
            let help = [&one["iqn"], &one["initiator"]];
            let help = help.into_iter().find_map(Value::as_str).map(str::to_owned);
            Some((name, help))
        })
        .collect()
}

/// The API's address: as in the words that are completed, else as in the environment.
fn address() -> String {
    let words: Vec<String> = std::env::args().collect();
    let given = words.iter().enumerate().find_map(|(at, word)| {
        let next = || words.get(at + 1).cloned();
        match word.strip_prefix("--api") {
            Some("") => next(),
            Some(rest) => rest.strip_prefix('=').map(str::to_owned),
            None => None,
        }
    });
    given
        .or_else(|| std::env::var("CAUSEWAY_API").ok())
        .unwrap_or_else(|| Cli::API_DEFAULT.to_owned())
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn every_place_is_one_of_the_commands_and_every_name_has_one() {
        // `mut_arg` panics where there is no such argument.
        let mut command = command();
        command.build();
        let mut missing = Vec::new();
        for noun in [
            "lun", "target", "host", "grant", "scrub", "share", "pool", "journal",
        ] {
            let verbs = command.find_subcommand(noun).expect("it is a command");
            for verb in verbs.get_subcommands() {
                let makes = ["create", "ls", "check", "help"].contains(&verb.get_name());
                let known = PLACES
                    .iter()
                    .any(|(words, _, _)| *words == [noun, verb.get_name()]);
                let takes = verb.get_positionals().next().is_some();
                if !makes && takes && !known {
                    missing.push(format!("{noun} {}", verb.get_name()));
                }
            }
        }
        assert_eq!(missing, [""; 0]);
    }

    #[test]
    fn words_that_need_no_daemon_are_known() {
        let words = |kind, typed: &str| -> Vec<String> {
            candidates(kind, OsStr::new(typed))
                .iter()
                .map(|it| it.get_value().to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(
            words(Kind::Assignment("lun"), "cache=w"),
            ["cache=write-back", "cache=write-through"]
        );
        assert_eq!(words(Kind::Code, "CWY2003"), ["CWY2003"]);
        let told = |value: &str| format!("task_aborted_status={value}");
        assert_eq!(
            words(Kind::Assignment("lun"), "task"),
            ["on", "off", "host"].map(told)
        );
    }
}
