//! Each verb with the operation of the API that it goes through, or why it needs none.

use crate::cli::Cli;
use clap::{Command, CommandFactory};
use std::collections::BTreeSet;

const WITHOUT: &str = "local: it has to work without a daemon";
const HERE: &str = "local: it is about the machine where it runs";
const SOCKET: &str = "local: it is for whoever may open the node's state directory";
const PROGRAM: &str = "local: the program itself knows it";

/// Verbs below others stand with these.
const VERBS: &[(&str, &str)] = &[
    ("serve", WITHOUT),
    ("cluster init", SOCKET),
    ("cluster token", SOCKET),
    ("cluster join", SOCKET),
    ("cluster status", SOCKET),
    ("cluster leave", SOCKET),
    ("config check", WITHOUT),
    ("config schema", PROGRAM),
    ("config show", "GET /api/v1/config"),
    ("config diff", "GET /api/v1/config"),
    ("config set", "PATCH /api/v1/config"),
    ("config add-pool", "PATCH /api/v1/config"),
    ("config remove-pool", "PATCH /api/v1/config"),
    ("config reload", "POST /api/v1/config/reload"),
    ("config restart", "POST /api/v1/restart"),
    ("status", "GET /api/v1/status"),
    ("node ls", "GET /api/v1/status"),
    ("node show", "GET /api/v1/status"),
    ("node set", "PATCH /api/v1/config"),
    ("node drain", "POST /api/v1/node/drain"),
    ("portal ls", "GET /api/v1/status"),
    ("portal show", "GET /api/v1/status"),
    ("portal create", "PATCH /api/v1/config"),
    ("portal delete", "PATCH /api/v1/config"),
    ("pool create", "PATCH /api/v1/config"),
    ("pool delete", "PATCH /api/v1/config"),
    ("journal ls", "GET /api/v1/pools"),
    ("journal show", "GET /api/v1/pools/{name}"),
    ("token show", "GET /api/v1/tokens"),
    ("alert rule ls", "GET /api/v1/alerts/rules"),
    ("lun create", "POST /api/v1/luns"),
    ("lun ls", "GET /api/v1/luns"),
    ("lun show", "GET /api/v1/luns/{name}"),
    ("lun set", "PATCH /api/v1/luns/{name}"),
    ("lun resize", "POST /api/v1/luns/{name}/resize"),
    ("lun rename", "POST /api/v1/luns/{name}/rename"),
    ("lun delete", "DELETE /api/v1/luns/{name}"),
    ("lun restore", "POST /api/v1/luns/{name}/restore"),
    ("lun purge", "POST /api/v1/luns/{name}/purge"),
    ("lun mirror add", "POST /api/v1/luns/{name}/mirror"),
    ("lun mirror remove", "POST /api/v1/luns/{name}/mirror"),
    ("lun mirror promote", "POST /api/v1/luns/{name}/mirror"),
    ("lun adopt", "POST /api/v1/orphans/adopt"),
    ("target create", "POST /api/v1/targets"),
    ("target ls", "GET /api/v1/targets"),
    ("target show", "GET /api/v1/targets/{name}"),
    ("target set", "PATCH /api/v1/targets/{name}"),
    ("target rename", "POST /api/v1/targets/{name}/rename"),
    ("target delete", "DELETE /api/v1/targets/{name}"),
    ("host create", "POST /api/v1/hosts"),
    ("host ls", "GET /api/v1/hosts"),
    ("host show", "GET /api/v1/hosts/{name}"),
    ("host set", "PATCH /api/v1/hosts/{name}"),
    ("host rename", "POST /api/v1/hosts/{name}/rename"),
    ("host delete", "DELETE /api/v1/hosts/{name}"),
    ("grant create", "POST /api/v1/grants"),
    ("grant ls", "GET /api/v1/grants"),
    ("grant show", "GET /api/v1/grants/{name}"),
    ("grant set", "PATCH /api/v1/grants/{name}"),
    ("grant delete", "DELETE /api/v1/grants/{name}"),
    ("session ls", "GET /api/v1/sessions"),
    ("session show", "GET /api/v1/sessions/{id}"),
    ("user end-sessions", "DELETE /api/v1/users/{name}/sessions"),
    ("session drop", "DELETE /api/v1/sessions/{id}"),
    ("scrub start", "POST /api/v1/luns/{name}/scrub"),
    ("scrub status", "GET /api/v1/luns/{name}/scrub"),
    ("scrub stop", "POST /api/v1/luns/{name}/scrub"),
    ("top", "GET /api/v1/activity"),
    ("event ls", "GET /api/v1/events/log"),
    ("audit ls", "GET /api/v1/audit"),
    ("audit export", "GET /api/v1/audit/export"),
    ("history", "GET /api/v1/history"),
    ("share create", "POST /api/v1/objects"),
    ("share ls", "GET /api/v1/grants"),
    ("share show", "GET /api/v1/grants"),
    ("share delete", "DELETE /api/v1/grants/{name}"),
    ("attach", HERE),
    ("bench", HERE),
    ("pool ls", "GET /api/v1/pools"),
    ("pool show", "GET /api/v1/pools/{name}"),
    ("pool check", WITHOUT),
    ("disk ls", "GET /api/v1/disk_report"),
    ("disk show", "GET /api/v1/disks/{id}"),
    ("disk scan", WITHOUT),
    ("disk forget", "DELETE /api/v1/disks/{id}"),
    ("state ls", "GET /api/v1/generations"),
    ("state show", "GET /api/v1/generations/{number}"),
    (
        "state rollback",
        "POST /api/v1/generations/{number}/rollback",
    ),
    ("state accept", "POST /api/v1/generations/accept"),
    ("journal reopen", "POST /api/v1/pools/{name}/journal"),
    ("journal discard", "POST /api/v1/pools/{name}/journal"),
    ("user create", "POST /api/v1/users"),
    ("user ls", "GET /api/v1/users"),
    ("user show", "GET /api/v1/users/{name}"),
    ("user set", "PATCH /api/v1/users/{name}"),
    ("user delete", "DELETE /api/v1/users/{name}"),
    ("token create", "POST /api/v1/tokens"),
    ("token ls", "GET /api/v1/tokens"),
    ("token delete", "DELETE /api/v1/tokens/{id}"),
    ("alert ls", "GET /api/v1/alerts"),
    ("alert show", "GET /api/v1/alerts/{id}"),
    ("alert ack", "POST /api/v1/alerts/{id}/acknowledge"),
    ("alert unack", "DELETE /api/v1/alerts/{id}/acknowledge"),
    ("alert silence", "POST /api/v1/alerts/silences"),
    ("alert unsilence", "DELETE /api/v1/alerts/silences/{id}"),
    ("alert silences", "GET /api/v1/alerts/silences"),
    ("alert rules", "GET /api/v1/alerts/rules"),
    ("alert rule show", "GET /api/v1/alerts/rules/{id}"),
    ("alert rule set", "PUT /api/v1/alerts/rules/{id}"),
    ("alert rule reset", "PUT /api/v1/alerts/rules/{id}"),
    ("alert receiver ls", "GET /api/v1/alerts/receivers"),
    ("alert receiver show", "GET /api/v1/alerts/receivers/{name}"),
    ("alert receiver create", "POST /api/v1/alerts/receivers"),
    (
        "alert receiver set",
        "PATCH /api/v1/alerts/receivers/{name}",
    ),
    (
        "alert receiver delete",
        "DELETE /api/v1/alerts/receivers/{name}",
    ),
    (
        "alert receiver test",
        "POST /api/v1/alerts/receivers/{name}/test",
    ),
    ("job ls", "GET /api/v1/jobs"),
    ("job show", "GET /api/v1/jobs/{id}"),
    ("job cancel", "POST /api/v1/jobs/{id}/cancel"),
    ("job wait", "GET /api/v1/jobs/{id}"),
    ("image create", HERE),
    ("image info", HERE),
    ("image check", HERE),
    ("image convert", HERE),
    ("image compact", HERE),
    ("image merge", HERE),
    ("image resize", HERE),
    ("doctor", "GET /api/v1/doctor"),
    ("support bundle", "GET /api/v1/support/bundle"),
    ("lab mpio", HERE),
    ("lab round-robin", HERE),
    ("lab sector-size", HERE),
    ("lab fault", HERE),
    ("lab bars", HERE),
    ("lab clean", HERE),
    ("lab cluster fault", HERE),
    ("lab cluster kills", HERE),
    ("lab cluster up", HERE),
    ("lab cluster status", HERE),
    ("lab cluster order", HERE),
    ("lab cluster down", HERE),
    ("lab up", HERE),
    ("apply", "POST /api/v1/apply"),
    ("export", "GET /api/v1/export"),
    ("api", "GET /api/v1/openapi.json"),
    ("path plan", HERE),
    ("path ls", HERE),
    ("path explain", HERE),
    ("path release", HERE),
    ("path policy", HERE),
    ("explain", PROGRAM),
    ("completions", PROGRAM),
    ("man", PROGRAM),
];

/// The verbs that have none below them.
fn leaves(command: &Command, before: &str, found: &mut BTreeSet<String>) {
    let below = command.get_subcommands();
    let below: Vec<&Command> = below
        .filter(|it| !it.is_hide_set() && it.get_name() != "help")
        .collect();
    if below.is_empty() {
        found.insert(before.trim().to_owned());
    }
    for it in below {
        leaves(it, &format!("{before} {}", it.get_name()), found);
    }
}

#[test]
fn each_verb_goes_through_an_operation_of_the_interface_or_says_why_not() {
    let mut root = Cli::command();
    root.build();
    let mut known = BTreeSet::new();
    leaves(&root, "", &mut known);
    let named: BTreeSet<String> = VERBS.iter().map(|(verb, _)| (*verb).to_owned()).collect();
    assert_eq!(known, named);
    let operations = include_str!("../../../docs/reference/rest.md");
    let interface = include_str!("../../../docs/interface.md");
    let local = interface.split("## REST").nth(1).unwrap();
    let local = local.split("| Point |").next().unwrap();
    for (verb, through) in VERBS {
        match through.split_once(' ').unwrap() {
            ("local:", _) => {
                let noun = verb.split(' ').next().unwrap();
                let is_said = [*verb, noun]
                    .iter()
                    .any(|it| local.contains(&format!("`{it}`")));
                assert!(
                    is_said,
                    "docs/interface.md does not say that {verb} is local"
                );
            }
            (method, path) => {
                let row = format!("| {method} | `{path}` |");
                assert!(operations.contains(&row), "{verb}: there is no {through}");
            }
        }
    }
}

/// Nouns that stand for something which is not kept: their verbs are what can be done.
const ACTS: &[&str] = &["cluster", "config", "support", "lab", "path"];

#[test]
fn each_noun_has_the_verbs_that_all_have_or_its_help_says_why_not() {
    let mut root = Cli::command();
    root.build();
    for noun in root.get_subcommands().filter(|it| it.has_subcommands()) {
        let name = noun.get_name();
        if ACTS.contains(&name) || name == "help" {
            continue;
        }
        let said = noun.get_after_help().map(ToString::to_string);
        let said = said.unwrap_or_default();
        for verb in ["ls", "show", "create", "set", "delete"] {
            let is_there = noun.find_subcommand(verb).is_some();
            assert!(
                is_there || said.contains(&format!("`{verb}`")),
                "{name} {verb}"
            );
        }
        for (alias, verb) in [("rm", "delete"), ("add", "create"), ("list", "ls")] {
            let of = |word: &str| noun.find_subcommand(word).map(Command::get_name);
            assert!(
                of(verb).is_none() || of(alias) == of(verb),
                "{name} {alias}"
            );
        }
    }
}

#[test]
fn whatever_makes_or_deletes_one_object_can_be_asked_for_twice() {
    fn ask(command: &Command, before: &str) {
        for verb in command.get_subcommands() {
            let name = verb.get_name();
            let wanted = match name {
                "create" | "add-pool" => "if_not_exists",
                "delete" | "remove-pool" | "forget" | "drop" | "purge" | "cancel" | "unsilence" => {
                    "if_exists"
                }
                _ => "",
            };
            let mut all = verb.get_arguments();
            let has = wanted.is_empty() || all.any(|arg| arg.get_id() == wanted);
            assert!(has, "{before} {name}");
            ask(verb, &format!("{before} {name}"));
        }
    }
    ask(&Cli::command(), "");
}
