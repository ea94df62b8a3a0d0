//! Completions that know the words of the command line and the names of objects, which the daemon
//! is asked for.
//!
//! The shell calls this program for each candidate (`CAUSEWAY_COMPLETE` in the environment); what
//! the script for it is, clap_complete's engine knows. A daemon that is away, or slow, costs names
//! only.

use crate::args::API_DEFAULT;
use crate::asked;
use crate::cli;
use crate::completion::Kind;
use crate::parse;
use clap::Command;
use clap_complete::env::{CompleteEnv, Shells};
use clap_complete::{ArgValueCompleter, CompletionCandidate};
use client::{Client, Proofs};
use manifest::code::{CATALOGUE, Code};
use manifest::disks::DiskView;
use manifest::facts::{PortalFacts, SessionFacts};
use manifest::orphan::Orphan;
use manifest::problem::Problem;
use manifest::view::{Kept, LunView, StatusView, TargetView};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::ffi::OsStr;
use std::time::Duration;

/// Names the shell that asks; the rest of the protocol is the engine's.
const ASKED: &str = "CAUSEWAY_COMPLETE";

/// Which columns of a list are wanted.
const COLUMNS: &str = "columns";

/// Whoever presses a key does not wait longer.
const ANSWER_MAX: Duration = Duration::from_millis(800);

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
        output::print(include_str!("complete.bash"));
        return Ok(());
    }
    let name = shell.to_string();
    let shells = Shells::builtins();
    let known = shells.completer(&name);
    let known = known.ok_or_else(|| Problem::new(Code::CommandLine, format!("no shell {name}")))?;
    let mut text = Vec::new();
    let written = known.write_registration(ASKED, "causeway", "causeway", "causeway", &mut text);
    written.map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    output::print(&String::from_utf8_lossy(&text));
    Ok(())
}

/// The commands, each argument with what may stand there.
fn command() -> Command {
    let mut command = parse::command();
    for (verbs, argument, kind) in cli::COMPLETED.iter().copied().flatten().copied() {
        command = completed(command, verbs, argument, kind);
    }
    with_columns(command)
}

/// Each list has columns of its own.
fn with_columns(mut command: Command) -> Command {
    for verb in command.get_subcommands_mut() {
        *verb = with_columns(std::mem::take(verb));
    }
    let has = command.get_arguments().any(|arg| arg.get_id() == COLUMNS);
    if has {
        return completed(command, &[], COLUMNS, Kind::Columns);
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
    let all: Vec<Word> = match kind {
        Kind::Name(noun) => names(noun),
        Kind::Removed => list("luns?removed=true", |it: LunView| (it.name, None)),
        Kind::Session => list("sessions", |it: SessionFacts| {
            (it.id.to_string(), Some(it.initiator))
        }),
        Kind::Alert => list("alerts", |it: alerts::AlertView| {
            (it.id.to_string(), Some(it.cause))
        }),
        Kind::Job => list("jobs", |it: manifest::job::JobView| {
            (it.id.to_string(), Some(it.object))
        }),
        Kind::Orphan => list("orphans", |it: Orphan| (it.name.unwrap_or(it.naa), None)),
        Kind::Generation => list("generations", |it: Kept| {
            (it.generation.to_string(), Some(it.written))
        }),
        Kind::PortalGroup => portal_groups(),
        Kind::Portal => portals().map(|it| (it.address, Some(it.group))).collect(),
        Kind::HostAndLun | Kind::GrantOrHostAndLun => of_grant(kind, &words_before()),
        Kind::Words(all) => all.iter().map(|word| ((*word).to_owned(), None)).collect(),
        Kind::Hosts => {
            let mut all = names("host");
            all.push(("*".to_owned(), Some("every initiator".to_owned())));
            all
        }
        Kind::Columns => columns().into_iter().map(|word| (word, None)).collect(),
        Kind::Code => CATALOGUE
            .iter()
            .map(|entry| (entry.code.to_string(), Some(entry.title.to_owned())))
            .collect(),
        Kind::AssignmentOf(all) => all().into_iter().map(|word| (word, None)).collect(),
        Kind::Assignment(all) => {
            let has_groups = all.contains(&"portal_group=");
            let mut all: Vec<Word> = all.iter().map(|word| ((*word).to_owned(), None)).collect();
            if has_groups && typed.starts_with("portal_group=") {
                let group = |(name, help)| (format!("portal_group={name}"), help);
                all.extend(portal_groups().into_iter().map(group));
            }
            all
        }
    };
    let fits = all
        .into_iter()
        .filter(|(word, _)| word.starts_with(typed.as_ref()));
    fits.map(|(word, help)| CompletionCandidate::new(word).help(help.map(Into::into)))
        .collect()
}

/// A word that may stand there, and what is said of it.
type Word = (String, Option<String>);

/// What the daemon answers, where it does in time.
fn asked<T: DeserializeOwned>(path: &str) -> Option<T> {
    let client = Client::new(&address(), Proofs::default()).ok()?;
    client
        .within(ANSWER_MAX)
        .get(&format!("/api/v1/{path}"))
        .ok()
}

/// What the daemon has of a kind.
fn list<T: DeserializeOwned>(path: &str, word: fn(T) -> Word) -> Vec<Word> {
    let all: Vec<T> = asked(path).unwrap_or_default();
    all.into_iter().map(word).collect()
}

/// An object, as far as its name shows.
#[derive(Deserialize)]
struct Named {
    name: String,
}

/// The names of the objects of a kind.
fn names(noun: &str) -> Vec<Word> {
    if noun == "target" {
        return list("targets", |it: TargetView| (it.name, Some(it.iqn)));
    }
    if noun == "disk" {
        return list("disks", |it: DiskView| (it.id, it.names.into_iter().next()));
    }
    list(&format!("{noun}s"), |it: Named| (it.name, None))
}

fn portals() -> impl Iterator<Item = PortalFacts> {
    let status: Option<StatusView> = asked("status");
    let portals = status.map(|status| status.portals).unwrap_or_default();
    portals.into_iter()
}

/// The groups of the portals, each once.
fn portal_groups() -> Vec<Word> {
    let groups = portals().map(|portal| portal.group);
    let groups: std::collections::BTreeSet<String> = groups.collect();
    groups.into_iter().map(|it| (it, None)).collect()
}

/// What may stand for a grant, behind the words that stand there already.
fn of_grant(kind: Kind, before: &[String]) -> Vec<Word> {
    if positionals(before) > 0 {
        return names("lun");
    }
    let mut all = names("host");
    if matches!(kind, Kind::GrantOrHostAndLun) {
        all.extend(names("grant"));
    }
    all
}

/// The columns of the list that the words before ask for.
fn columns() -> Vec<String> {
    let words = words_before();
    let mut command = parse::command();
    command.build();
    let (mut at, mut verb) = (&command, Vec::new());
    for word in words.iter().skip(2) {
        if let Some(below) = at.find_subcommand(word) {
            verb.push(below.get_name());
            at = below;
        }
    }
    asked::all_columns(&verb)
}

/// The words before the one that is completed.
fn words_before() -> Vec<String> {
    let mut words: Vec<String> = std::env::args().skip_while(|word| word != "--").collect();
    let index = std::env::var("_CLAP_COMPLETE_INDEX");
    let index: Option<usize> = index.ok().and_then(|index| index.parse().ok());
    // The first is the one that parts them from the program's own.
    words.truncate(index.map_or(words.len().saturating_sub(1), |index| index + 1));
    words
}

/// How many arguments without a name the verb has been given; options take their values along.
fn positionals(before: &[String]) -> usize {
    let mut command = parse::command();
    command.build();
    let (mut at, mut count) = (&command, 0);
    let mut words = before.iter().skip(2);
    while let Some(word) = words.next() {
        if let Some(name) = word.strip_prefix('-') {
            let of = |arg: &&clap::Arg| {
                arg.get_long() == name.strip_prefix('-')
                    || name.len() == 1 && arg.get_short() == name.chars().next()
            };
            let option = at.get_arguments().find(of);
            if option.is_some_and(|arg| arg.get_action().takes_values()) {
                words.next();
            }
        } else if let Some(verb) = at.find_subcommand(word) {
            at = verb;
        } else {
            count += 1;
        }
    }
    count
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
        .unwrap_or_else(|| API_DEFAULT.to_owned())
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::completion::{BLOCK_SIZES, POLICIES};
    use crate::storage_args::options;
    use manifest::objects::Storage;

    /// Of a host's connections: addresses, names, times.
    const PATHS: &[&str] = &[
        "chap",
        "command_timeout",
        "from",
        "initiator_name",
        "mutual_chap",
        "no_path_timeout",
        "rediscover",
        "reservation_key",
    ];
    const BED: &[&str] = &["buffer", "rate", "seconds"];
    /// Of what makes a LUN, beside its storage fields.
    const LUN: &[&str] = &["bytes_in_flight_max", "name", "size"];

    /// Of a receiver of alerts: addresses, times, names in node.toml.
    const RECEIVER: &[&str] = &[
        "command",
        "from",
        "group_seconds",
        "port",
        "remind_hours",
        "server",
        "to",
        "user",
    ];

    /// What nobody can know before it is typed: new names, sizes, numbers, addresses, and what a
    /// bed of namespaces is made of.
    const FREE: &[(&str, &[&[&str]])] = &[
        ("alert ack", &[&["note"]]),
        ("alert receiver create", &[RECEIVER, &["name"]]),
        ("alert receiver set", &[RECEIVER]),
        ("alert rule set", &[&["bounds", "clear", "hold"]]),
        ("alert silence", &[&["hours", "note", "object", "until"]]),
        ("alert unsilence", &[&["silence"]]),
        ("api", &[&["headers", "path"]]),
        ("apply", &[&["only"]]),
        ("attach", &[PATHS, &["export", "volume"]]),
        ("audit export", &[&["since"]]),
        ("audit ls", &[&["limit", "object", "since", "who"]]),
        ("bench", &[&["words"]]),
        ("cluster init", &[&["name"]]),
        ("cluster leave", &[&["node"]]),
        ("cluster token", &[&["minutes"]]),
        (
            "config add-pool",
            &[&["journal", "journal_size", "name", "path"]],
        ),
        (
            "config set",
            &[&["name", "portal_group", "portals", "scrub_every"]],
        ),
        ("doctor", &[PATHS, &["url"]]),
        ("event ls", &[&["code", "limit", "object", "since"]]),
        ("export", &[&["only"]]),
        ("grant create", &[&["lun_id"]]),
        ("history", &[&["from", "metric", "object", "step", "to"]]),
        (
            "host create",
            &[&["chap_user", "iqn", "mutual_user", "name"]],
        ),
        ("host rename", &[&["to"]]),
        ("lab bars", &[BED, &["groups", "rounds"]]),
        ("lab cluster down", &[&["lab"]]),
        ("lab cluster fault", &[BED, &["drills", "rounds"]]),
        ("lab cluster kills", &[BED, &["rounds", "seed"]]),
        ("lab cluster order", &[&["lab", "words"]]),
        ("lab cluster status", &[&["lab"]]),
        ("lab cluster up", &[BED]),
        (
            "lab drive",
            &[&[
                "block",
                "outstanding",
                "rate",
                "seconds",
                "topology",
                "write_percent",
            ]],
        ),
        ("lab fault", &[BED, &["faults", "rounds"]]),
        ("lab mpio", &[BED, &["tests"]]),
        ("lab round-robin", &[BED]),
        ("lab sector-size", &[BED]),
        ("lab up", &[BED]),
        ("lun adopt", &[&["name"]]),
        ("lun create", &[LUN]),
        ("lun mirror add", &[&["node"]]),
        ("lun mirror remove", &[&["node"]]),
        ("lun rename", &[&["to"]]),
        ("lun resize", &[&["size"]]),
        ("node drain", &[&["name"]]),
        ("image convert", &[&["block_size"]]),
        ("image create", &[&["block_size", "sector_size", "size"]]),
        ("image resize", &[&["size"]]),
        ("node show", &[&["name"]]),
        ("path explain", &[PATHS, &["path", "url"]]),
        ("path ls", &[&["url"]]),
        ("path plan", &[PATHS, &["url", "what_if"]]),
        ("path policy", &[&["url"]]),
        ("path release", &[&["path", "url"]]),
        (
            "pool create",
            &[&["journal", "journal_size", "name", "path"]],
        ),
        ("portal create", &[&["iface", "ip", "port", "portal"]]),
        ("portal delete", &[&["iface", "ip", "port"]]),
        ("share create", &[LUN]),
        ("target create", &[&["iqn", "name"]]),
        ("target rename", &[&["to"]]),
        ("token create", &[&["days", "expires", "name"]]),
        ("top", &[&["count", "interval"]]),
        ("user create", &[&["name"]]),
    ];

    /// Arguments that take a value which neither the daemon, nor a list, nor the file system knows.
    fn unknown(command: &clap::Command, path: &str, all: &mut Vec<String>) {
        for verb in command.get_subcommands() {
            if verb.get_name() != "help" {
                unknown(verb, &format!("{path} {}", verb.get_name()), all);
            }
        }
        for arg in command.get_arguments() {
            let known = !arg.get_action().takes_values()
                || arg.get::<ArgValueCompleter>().is_some()
                || !arg.get_possible_values().is_empty()
                || arg.get_value_hint() != clap::ValueHint::Unknown;
            if !known && !arg.is_global_set() {
                all.push(format!("{} {}", path.trim_start(), arg.get_id()));
            }
        }
    }

    #[test]
    fn every_argument_is_completed_or_can_be_anything() {
        // `mut_arg` panics where there is no such argument.
        let command = command();
        let mut all = Vec::new();
        unknown(&command, "", &mut all);
        let mut free: Vec<String> = Vec::new();
        for (path, names) in FREE {
            let names = names.iter().copied().flatten();
            free.extend(names.map(|name| format!("{path} {name}")));
        }
        for (option, ..) in options().filter(|(.., part)| part.words.is_empty()) {
            free.extend(["lun create", "share create"].map(|path| format!("{path} {option}")));
        }
        all.sort();
        free.sort();
        assert_eq!(all, free);
    }

    #[test]
    fn what_is_offered_for_an_option_is_what_it_takes() {
        for (option, field, part) in options() {
            for word in part.words {
                let read = field.parse(part, word, &mut Storage::default());
                assert_eq!(read, Ok(()), "{option}");
            }
        }
        for word in POLICIES {
            assert!(word.parse::<paths::Policy>().is_ok(), "{word}");
        }
        let sizes = manifest::objects::BLOCK_SIZES.map(|it| it.to_string());
        assert_eq!(BLOCK_SIZES, sizes);
    }

    #[test]
    fn words_of_options_are_no_arguments_of_a_grant() {
        let count = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            positionals(&words)
        };
        for (line, wanted) in [
            ("-- causeway grant create", 0),
            ("-- causeway grant create esx01", 1),
            ("-- causeway grant add --lun-id 3 --read-only", 0),
            ("-- causeway -o json grant create --target t esx01", 1),
            ("-- causeway grant create --target=t esx01 vm01", 2),
        ] {
            assert_eq!(count(line), wanted, "{line}");
        }
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
            words(
                Kind::AssignmentOf(crate::commands::lun::all_assignments),
                "cache=w"
            ),
            ["cache=write-back", "cache=write-through"]
        );
        assert_eq!(words(Kind::Code, "CWY2003"), ["CWY2003"]);
        let pair = |value: &str| format!("task_aborted_status={value}");
        assert_eq!(
            words(
                Kind::AssignmentOf(crate::commands::lun::all_assignments),
                "task"
            ),
            ["on", "off", "host"].map(pair)
        );
    }
}
