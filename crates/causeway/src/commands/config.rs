//! `causeway config ...`: the settings of `node.toml`, in force and as the file says by now.

use super::context::Context;
use crate::args::{Deleted, NODE_TOML};
use crate::completion::{CompletedArgument, Kind};
use crate::listed::{Listed, When};
use clap::{ArgGroup, Args, Subcommand};
use client::Tag;
use hyper::Method;
use manifest::code::Code;
use manifest::config::{
    ConfigOutcome, ConfigView, RestartView, SettingChange, SettingValue, SettingView, TakesEffect,
};
use manifest::field::is_of_new_connections;
use manifest::plan::HostHit;
use manifest::problem::Problem;
use output::{Columns, Output, Table};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use units::text::counted;

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["config", "set"], "values", Kind::Assignment(VALUES)),
    (&["config", "remove-pool"], "name", Kind::Name("pool")),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["config", "show"], When::Always, COLUMNS)];

pub(super) const VALUES: &[&str] = &[
    "api.token_for_reads=true",
    "health.every_minutes=",
    "history.max_bytes=",
    "log.format=json",
    "log.format=text",
    "runtime.coalesce_us=",
    "runtime.poll_us=",
    "session.data_seconds=",
    "session.login_seconds=",
    "session.ping_after_seconds=",
    "session.ping_timeout_seconds=",
];

/// As the API takes it.
#[derive(Args, Serialize, Debug)]
pub(crate) struct NewPool {
    /// By which LUNs name it
    name: String,
    /// A directory, or a block device
    #[arg(long, value_name = "PATH")]
    path: String,
    /// A file that is not there yet, or a block device
    #[arg(long, value_name = "PATH")]
    journal: Option<String>,
    /// How large the journal's file is made
    #[arg(long, value_name = "SIZE", requires = "journal")]
    journal_size: Option<String>,
    /// Succeed where a pool of this name exists
    #[arg(long)]
    #[serde(skip)]
    if_not_exists: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum ConfigVerb {
    /// Read a node.toml as the daemon would at its start, and say every mistake in it; needs no
    /// daemon
    Check {
        /// The file
        #[arg(long, short, value_name = "FILE", default_value = NODE_TOML)]
        config: PathBuf,
    },
    /// Print the JSON Schema of node.toml, for editors and whoever makes such files: each key with
    /// its meaning and the class of its changes; needs no daemon
    Schema,
    /// Show what the daemon runs with: each setting, its value, and where it is written
    Show {
        /// Also those that are not written, with their defaults
        #[arg(long)]
        all: bool,
    },
    /// Show what the daemon's file says by now and is not in force, and what a restart would end
    Diff,
    /// Change settings of the daemon; the file stays as it is, and a later change of it counts
    #[command(group = ArgGroup::new("what").args(["name", "portals", "scrub_every", "values"]).required(true).multiple(true))]
    Set {
        /// The node's name
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// All portals of a portal group: addresses or interfaces, such as 192.0.2.1,eth1
        #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
        portals: Vec<String>,
        /// The portal group that gets them, where it is not the first one
        #[arg(long, value_name = "NAME", requires = "portals")]
        portal_group: Option<String>,
        /// Scrub each LUN so often, in days; 0: when somebody asks
        #[arg(long, value_name = "DAYS")]
        scrub_every: Option<u32>,
        /// Others by their key, such as history.max_bytes=2GiB; without a value: as node.toml says
        #[arg(value_name = "KEY=VALUE", value_parser = pair)]
        values: Vec<(String, Option<SettingValue>)>,
    },
    /// Add a pool to the daemon's settings
    AddPool(NewPool),
    /// Remove a pool from the daemon's settings; refused while a LUN lies in it, and nothing on
    /// disk is deleted
    RemovePool(Deleted),
    /// Have the daemon read its file and its certificate again, as SIGHUP does, and say what came
    /// of it
    Reload,
    /// End the daemon in order and begin it anew, with what its settings say by now; hosts log in
    /// again
    Restart,
}

/// A setting and its value.
pub(super) fn pair(text: &str) -> Result<(String, Option<SettingValue>), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or("write KEY=VALUE, such as history.max_bytes=2GiB")?;
    let value = match value {
        "" => None,
        "true" => Some(SettingValue::Flag(true)),
        "false" => Some(SettingValue::Flag(false)),
        number if number.bytes().all(|it| it.is_ascii_digit()) => {
            let number = number
                .parse()
                .map_err(|_| format!("{number} is too large"))?;
            Some(SettingValue::Number(number))
        }
        text => Some(SettingValue::Text(text.to_owned())),
    };
    Ok((key.to_owned(), value))
}

/// Reads the file as a start would.
fn check(file: &Path, output: &Output) -> Result<(), Problem> {
    #[derive(Serialize)]
    struct Checked {
        file: String,
        settings: Vec<SettingView>,
    }
    let config = settings::read_config(file)?;
    let checked = Checked {
        file: file.display().to_string(),
        settings: config.settings(),
    };
    output.show(&checked, |checked| {
        let is_written = |it: &&SettingView| it.value.is_some();
        let many = checked.settings.iter().filter(is_written).count();
        let many = counted(many as u64, "setting");
        format!(
            "{}: no mistakes, {many} written; whether disks and addresses are there is found out by the start\n",
            checked.file
        )
    });
    Ok(())
}

/// Carries it out; `context`: how the daemon is asked, where it has to be.
pub(crate) fn run<'a>(
    context: &dyn Fn() -> Result<Context<'a>, Problem>,
    verb: &ConfigVerb,
    output: &Output,
) -> Result<(), Problem> {
    let view = || context()?.client.get::<ConfigView>("/api/v1/config");
    match verb {
        ConfigVerb::Check { config } => check(config, output),
        ConfigVerb::Schema => {
            output.show(&settings::schema(), schema);
            Ok(())
        }
        ConfigVerb::Show { all } => {
            output.list(&view()?, |view| settings(view, *all));
            Ok(())
        }
        ConfigVerb::Diff => diff(&view()?, output),
        ConfigVerb::RemovePool(deleted) => remove_pool(&context()?, deleted),
        ConfigVerb::Reload => reload(&context()?),
        ConfigVerb::Restart => restart(&context()?),
        ConfigVerb::AddPool(pool) => add_pool(&context()?, pool),
        ConfigVerb::Set {
            name,
            portals,
            portal_group,
            scrub_every,
            values,
        } => {
            let listens =
                (!portals.is_empty()).then(|| json!({ "group": portal_group, "listen": portals }));
            let values: BTreeMap<_, _> = values.iter().cloned().collect();
            let body = json!({
                "node_name": name, "portals": listens, "scrub_every_days": scrub_every, "values": values,
            });
            let context = context()?;
            change(&context, &Started::read(&context)?, &body)
        }
    }
}

/// The settings that a change starts from: what another one changes meanwhile is not lost.
pub(super) struct Started {
    view: ConfigView,
    tag: Tag,
}

impl Started {
    pub(super) fn read(context: &Context<'_>) -> Result<Self, Problem> {
        let (view, tag) = context.client.tagged("/api/v1/config")?;
        Ok(Self { view, tag })
    }

    /// What is said of a key from the next start on.
    pub(super) fn value(&self, key: &str) -> Option<String> {
        let changed = self.view.changes.iter().find(|it| it.key == key);
        let setting = || self.view.settings.iter().find(|it| it.key == key);
        match changed {
            Some(changed) => changed.in_file.clone(),
            None => setting()?.value.clone(),
        }
    }

    /// A key of the sections of a kind, each with its section, as `pool[0]`, from the next start
    /// on.
    pub(super) fn of_sections(&self, kind: &str, key: &str) -> Vec<(String, String)> {
        let settings = self.view.settings.iter().map(|it| it.key.as_str());
        let changes = self.view.changes.iter().map(|it| it.key.as_str());
        let sections = settings.chain(changes).filter_map(|it| {
            let section = it.strip_suffix(key)?.strip_suffix('.')?;
            section.starts_with(&format!("{kind}[")).then_some(section)
        });
        let sections: BTreeSet<&str> = sections.collect();
        let found = sections.into_iter().filter_map(|section| {
            let value = self.value(&format!("{section}.{key}"))?;
            Some((section.to_owned(), value.trim_matches('"').to_owned()))
        });
        found.collect()
    }

    fn has_pool(&self, name: &str) -> bool {
        let pools = self.of_sections("pool", "name");
        pools.iter().any(|(_, it)| it == name)
    }

    /// Says why nothing was changed.
    pub(super) fn nothing(&self, context: &Context<'_>, why: String) {
        let done = ConfigOutcome {
            dry_run: context.is_dry_run(),
            notices: vec![why],
            sessions: self.view.sessions,
            ..ConfigOutcome::default()
        };
        context.output.show(&done, outcome);
    }
}

/// Unless there is one of this name, where that is fine.
fn add_pool(context: &Context<'_>, pool: &NewPool) -> Result<(), Problem> {
    let started = Started::read(context)?;
    if pool.if_not_exists && started.has_pool(&pool.name) {
        started.nothing(context, format!("there is a pool \"{}\"", pool.name));
        return Ok(());
    }
    change(context, &started, &json!({ "add_pool": pool }))
}

/// Unless there is none of this name, where that is fine.
fn remove_pool(context: &Context<'_>, deleted: &Deleted) -> Result<(), Problem> {
    let started = Started::read(context)?;
    if deleted.if_exists && !started.has_pool(&deleted.name) {
        started.nothing(context, format!("there is no pool \"{}\"", deleted.name));
        return Ok(());
    }
    change(context, &started, &json!({ "remove_pool": deleted.name }))
}

/// As [`add_pool`], with the exit code that all nouns have where there is one already.
pub(super) fn create_pool(context: &Context<'_>, pool: &NewPool) -> Result<(), Problem> {
    let name = &pool.name;
    if !pool.if_not_exists && Started::read(context)?.has_pool(name) {
        let detail = format!("there is a pool \"{name}\" already");
        return Err(Problem::new(Code::AlreadyExists, detail));
    }
    add_pool(context, pool)
}

/// As [`remove_pool`], with the exit code that all nouns have where there is none.
pub(super) fn delete_pool(context: &Context<'_>, deleted: &Deleted) -> Result<(), Problem> {
    if !deleted.if_exists && !Started::read(context)?.has_pool(&deleted.name) {
        return Err(Problem::not_found("pool", &deleted.name));
    }
    remove_pool(context, deleted)
}

pub(super) fn change(
    context: &Context<'_>,
    started: &Started,
    body: &Value,
) -> Result<(), Problem> {
    let path = format!("/api/v1/config?dry_run={}", context.is_dry_run());
    let asked = (Method::PATCH, path.as_str());
    let done: ConfigOutcome = context.client.send_to(&started.tag, asked, body)?;
    context.output.show(&done, outcome);
    Ok(())
}

/// What was changed, and when it comes into force.
fn outcome(done: &ConfigOutcome) -> String {
    let mut out = listed_of(done);
    if done.changes.is_empty() {
        out.push_str("it is so already\n");
    }
    for notice in &done.notices {
        out.push_str(&format!("{notice}\n"));
    }
    out.push_str(&waits(&done.waiting, done.sessions));
    out
}

fn listed_of(done: &ConfigOutcome) -> String {
    let would = if done.dry_run {
        "at once"
    } else {
        "in effect now"
    };
    listed(&done.changes, ["before", "now"], would)
}

fn reload(context: &Context<'_>) -> Result<(), Problem> {
    let path = format!("/api/v1/config/reload?dry_run={}", context.is_dry_run());
    let done: ConfigOutcome = context.client.send(Method::POST, &path, &())?;
    context.output.show(&done, |done| {
        if done.changes.is_empty() {
            return "what the file says was in force already\n".to_owned();
        }
        listed_of(done) + &waits(&done.waiting, done.sessions)
    });
    Ok(())
}

fn restart(context: &Context<'_>) -> Result<(), Problem> {
    let path = format!("/api/v1/restart?dry_run={}", context.is_dry_run());
    let begun: RestartView = context.client.send(Method::POST, &path, &())?;
    context.output.show(&begun, |begun| {
        let word = if begun.dry_run {
            "would restart"
        } else {
            "restarts"
        };
        let ends = ended(begun.sessions);
        let all = listed(&begun.waiting, ["in force", "from then on"], "restart");
        let hit = |it: &HostHit| format!("hits {it}\n");
        let hits: String = begun.hits.iter().map(hit).collect();
        format!("the daemon {word}; {ends}\n{hits}{all}")
    });
    Ok(())
}

/// How what waits comes into force.
fn waits(waiting: &[SettingChange], sessions: u64) -> String {
    let any = |when| waiting.iter().any(|it| it.takes_effect == when);
    if any(TakesEffect::Restart) {
        let ends = ended(sessions);
        format!("a restart brings it into force: causeway config restart; {ends}\n")
    } else if any(TakesEffect::Now) {
        "a reload brings it into force, and ends no session: causeway config reload\n".to_owned()
    } else {
        String::new()
    }
}

/// What a restart means for hosts.
fn ended(sessions: u64) -> String {
    match sessions {
        0 => "no host is logged in".to_owned(),
        some => format!(
            "it ends {}, and hosts log in again",
            counted(some, "session")
        ),
    }
}

/// People who ask for it keep it in a file.
fn schema(schema: &Value) -> String {
    format!("{schema:#}\n")
}

/// What changes, a line each.
fn listed(changes: &[SettingChange], words: [&str; 2], live: &str) -> String {
    let lines = changes.iter().map(|it| {
        // Where its whole section comes or goes there is no default either.
        let section = it.key.rsplit_once('.').map_or("", |(section, _)| section);
        let name = changes
            .iter()
            .find(|name| name.key.strip_suffix(".name") == Some(section) && section.ends_with(']'));
        let word = |value: &Option<String>, of: fn(&SettingChange) -> &Option<String>| {
            let is_away = name.is_some_and(|name| of(name).is_none());
            let none = if is_away { "not there" } else { "default" };
            value.as_deref().unwrap_or(none).to_owned()
        };
        let (before, now) = (
            word(&it.in_force, |it| &it.in_force),
            word(&it.in_file, |it| &it.in_file),
        );
        let when = match it.takes_effect {
            TakesEffect::Now if is_of_new_connections(&it.key) => {
                format!("{live}, for new connections")
            }
            TakesEffect::Now => live.to_owned(),
            TakesEffect::Restart => "after a restart".to_owned(),
        };
        let [was, is] = words;
        format!("{}: {before} {was}, {now} {is} [{when}]\n", it.key)
    });
    lines.collect()
}

fn diff(view: &ConfigView, output: &Output) -> Result<(), Problem> {
    output.show(view, changes);
    if view.mistakes.is_empty() {
        return Ok(());
    }
    let mistakes = view.mistakes.join("\n  ");
    let detail = format!("the daemon could not start with what the file says: {mistakes}");
    let hint = "it runs on with what it has; correct the file before a restart";
    Err(Problem::new(Code::ConfigValue, detail).hint(hint))
}

const COLUMNS: Columns = Columns::new(&["KEY", "VALUE", "WRITTEN"]).wide(&["EFFECT", "MEANING"]);

fn settings(view: &ConfigView, all: bool) -> Table {
    let wanted = view.settings.iter().filter(|it| all || it.value.is_some());
    let rows: Vec<Vec<String>> = wanted
        .map(|it| {
            let (value, place) = match (&it.value, it.line) {
                (Some(value), Some(line)) => (value.clone(), format!("line {line}")),
                (Some(value), None) if it.changed_here => {
                    (value.clone(), "by config set".to_owned())
                }
                (Some(value), None) => (value.clone(), String::new()),
                (None, _) => (it.default.replace('`', ""), "default".to_owned()),
            };
            let effect = match it.takes_effect {
                TakesEffect::Now => "live",
                TakesEffect::Restart => "restart",
            };
            let meaning = it.meaning.replace('`', "");
            vec![it.key.clone(), value, place, effect.to_owned(), meaning]
        })
        .collect();
    Table::new(COLUMNS, rows).below(format!("{}\n", view.file))
}

fn changes(view: &ConfigView) -> String {
    if view.changes.is_empty() {
        return if view.mistakes.is_empty() {
            format!("what {} says is in force\n", view.file)
        } else {
            String::new()
        };
    }
    let mut out = listed(&view.changes, ["in force", "in the file"], "after a reload");
    out.push_str(&waits(&view.changes, view.sessions));
    out
}
