//! What of `node.toml` is in force, and what the file says by now: pure.

use super::Config;
use super::change::{SettingChange, TakesEffect};
use super::changeable::is_changeable;
use super::live::takes_effect;
use super::written::{Written, is_own, plain};
use crate::field::Field;
use crate::fields::node_fields;
use crate::plan::HostHit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Its arguments may hold what is not for everybody, such as an address with a password.
const PROGRAM: &str = "alert_command.argv";

/// The settings of the node, and what the file says by now.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct ConfigView {
    /// The file that was read at the start.
    pub file: String,
    /// All settings that there are, in the order of the reference.
    pub settings: Vec<SettingView>,
    /// What the file says by now, and what is in force instead.
    pub changes: Vec<SettingChange>,
    /// Why the daemon could not start with what the file says by now; none where it could.
    pub mistakes: Vec<String>,
    /// Sessions that a restart ends; hosts log in again by themselves.
    pub sessions: u64,
    /// Where changes that are made through the API are kept.
    #[serde(default)]
    pub own_file: String,
    /// Why nothing can be changed through the API; absent where it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<String>,
    /// Changes that were made through the API, and in place of which the file says something else
    /// by now, which holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overtaken: Vec<String>,
}

/// What a change of settings did, or would do.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct ConfigOutcome {
    /// Nothing was done: it was only asked.
    pub dry_run: bool,
    /// What was said before (`in_force`) and is now (`in_file`).
    pub changes: Vec<SettingChange>,
    /// What waits for a restart then, this change and earlier ones.
    pub waiting: Vec<SettingChange>,
    /// What the administrator should know of it, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Sessions that a restart ends; hosts log in again by themselves.
    pub sessions: u64,
}

/// A restart that begins, or would begin.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct RestartView {
    /// Nothing is done: it was only asked.
    pub dry_run: bool,
    /// Since when the daemon runs that ends (RFC 3339): the next one has a later time in `status`.
    pub started: String,
    /// Sessions that end; hosts log in again by themselves.
    pub sessions: u64,
    /// Whose they are, by host, with the LUNs that the host reaches over them.
    #[serde(default)]
    pub hits: Vec<HostHit>,
    /// What comes into force.
    pub waiting: Vec<SettingChange>,
}

/// One setting, as the daemon runs with it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct SettingView {
    /// Its key, such as `pool[0].journal`.
    pub key: String,
    /// Its value in TOML; absent where nothing is written and the default holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The line of the file where it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// It was changed through the API, and stands in place of what the file says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed_here: bool,
    /// It can be changed through the API by this key, in `values`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changeable: bool,
    /// What may stand there.
    pub values: String,
    /// What holds where nothing is written.
    pub default: String,
    /// What it means.
    pub meaning: String,
    /// When a change of it comes into force.
    pub takes_effect: TakesEffect,
}

/// What everybody who may read settings is shown of a value.
fn shown(key: &str, value: &str) -> String {
    if plain(key) != PROGRAM {
        return value.to_owned();
    }
    let program = value.split(',').next().unwrap_or_default();
    let program = program.trim_start_matches('[').trim_end_matches(']');
    if value.contains(',') {
        format!("[{program}, ...]")
    } else {
        value.to_owned()
    }
}

impl Config {
    /// Changes that were made through the API, and in place of which the file says something else.
    #[must_use]
    pub fn overtaken(&self) -> Vec<String> {
        self.overtaken.iter().cloned().collect()
    }

    /// All settings that there are, with those that are written.
    #[must_use]
    pub fn settings(&self) -> Vec<SettingView> {
        let fields = node_fields();
        let mut all: Vec<SettingView> = fields
            .iter()
            .flat_map(|field| self.settings_of(field))
            .collect();
        // What the reference does not have: for tests.
        let rest = self.written.iter();
        let rest = rest.filter(|(key, _)| fields.iter().all(|field| field.key != plain(key)));
        all.extend(rest.map(|(key, written)| {
            view(key, Some(written), ("", "", "for tests and measurements"))
        }));
        all
    }

    /// The setting, or one for each section that there is of its kind.
    fn settings_of(&self, field: &Field) -> Vec<SettingView> {
        let words = (field.values, field.default, field.meaning);
        let view = |key: &str| SettingView {
            changed_here: is_own(&self.own_keys, key),
            ..view(key, self.written.get(key), words)
        };
        let view = |key: &str| {
            let it = view(key);
            let line = it.line.filter(|_| !it.changed_here);
            SettingView { line, ..it }
        };
        let Some((section, name)) = field.key.split_once('.') else {
            return vec![view(field.key)];
        };
        let numbered = format!("{section}[");
        let sections: BTreeSet<&str> = self
            .written
            .keys()
            .filter(|key| key.starts_with(&numbered))
            .filter_map(|key| key.split_once('.').map(|(section, _)| section))
            .collect();
        if sections.is_empty() {
            return vec![view(field.key)];
        }
        let keys = sections
            .into_iter()
            .map(|section| format!("{section}.{name}"));
        keys.map(|key| view(&key)).collect()
    }

    /// What `file`, read by now, changes against what is in force.
    #[must_use]
    pub fn changes_to(&self, file: &Self) -> Vec<SettingChange> {
        let theirs = self.numbered_here(file);
        let keys: BTreeSet<&String> = self.written.keys().chain(theirs.keys()).collect();
        let change = |key: &&String| {
            let before = self.written.get(*key).map(|it| it.value.clone());
            let after = theirs.get(*key).map(|it| it.value.clone());
            (before != after).then(|| SettingChange {
                key: (*key).clone(),
                in_force: before.map(|value| shown(key, &value)),
                in_file: after.map(|value| shown(key, &value)),
                takes_effect: self.effect(file, key),
            })
        };
        keys.iter().filter_map(change).collect()
    }

    /// What `file` says, its pools with the numbers that those of the same name have here: one that
    /// goes is no change of those behind it.
    fn numbered_here<'f>(&self, file: &'f Self) -> BTreeMap<String, &'f Written> {
        let names = |config: &Self| -> Vec<String> {
            let pools = config.pools.iter();
            pools.map(|pool| pool.name.clone()).collect()
        };
        let (ours, theirs) = (names(self), names(file));
        let mut behind = ours.len()..;
        let numbers = theirs.iter().enumerate().map(|(at, name)| {
            let known = ours.iter().position(|it| it == name);
            // In the place of one that is gone it has another name.
            let renamed = || ours.get(at).filter(|it| !theirs.contains(it)).map(|_| at);
            let number = known.or_else(renamed).or_else(|| behind.next());
            number.unwrap_or_default()
        });
        let numbers: Vec<usize> = numbers.collect();
        let numbered = |key: &String| {
            let (at, rest) = key.strip_prefix("pool[")?.split_once(']')?;
            let at = numbers.get(at.parse::<usize>().ok()?)?;
            Some(format!("pool[{at}]{rest}"))
        };
        let all = file.written.iter();
        let all = all.map(|(key, it)| (numbered(key).unwrap_or_else(|| key.clone()), it));
        all.collect()
    }
}

fn view(
    key: &str,
    written: Option<&Written>,
    (values, default, meaning): (&str, &str, &str),
) -> SettingView {
    SettingView {
        key: key.to_owned(),
        value: written.map(|it| shown(key, &it.value)),
        line: written.map(|it| it.line),
        changed_here: false,
        changeable: is_changeable(key),
        values: values.to_owned(),
        default: default.to_owned(),
        meaning: meaning.to_owned(),
        takes_effect: takes_effect(&plain(key)),
    }
}

#[cfg(test)]
mod test {
    use super::super::parse;
    use super::*;
    use std::path::Path;

    const FILE: &str = r#"schema = 1
[node]
name = "san-a"      # a remark
state_dir = "data"
[[portal_group]]
name = "default"
tag = 1
listen = [
  { ip = "127.0.0.1", port = 3260 }, # the first
  { iface = "eth1" },
]
[[pool]]
name = "fast"
path = "/a"
[[pool]]
name = "slow"
path = "/b"
journal = "/j"
[api]
listen = ["unix:api.sock"]
[[alert_command]]
name = "page"
argv = ["/usr/bin/page", "--token", "hunter2"]
"#;

    fn config(text: &str) -> Config {
        parse(Path::new("node.toml"), text).unwrap()
    }

    fn one<'a>(all: &'a [SettingView], key: &str) -> &'a SettingView {
        let found = all.iter().find(|it| it.key == key);
        found.unwrap_or_else(|| panic!("{key}"))
    }

    #[test]
    fn each_key_of_the_reference_is_a_setting_with_what_is_written_or_its_default() {
        let all = config(FILE).settings();
        let listen = one(&all, "portal_group[0].listen");
        let value = "[{ ip = \"127.0.0.1\", port = 3260 }, { iface = \"eth1\" }]";
        assert_eq!(
            (listen.value.as_deref(), listen.line),
            (Some(value), Some(8))
        );
        assert_eq!(
            one(&all, "node.name").value.as_deref(),
            Some("\"san-a\""),
            "no remark"
        );
        let journals = ["pool[0].journal", "pool[1].journal"];
        let journals = journals.map(|key| one(&all, key).value.as_deref());
        assert_eq!(journals, [None, Some("\"/j\"")]);
        let driver = one(&all, "runtime.driver");
        assert_eq!(
            (driver.value.as_deref(), driver.line, &*driver.default),
            (None, None, "`\"auto\"`")
        );
        for field in node_fields() {
            assert!(
                all.iter().any(|it| plain(&it.key) == field.key),
                "{}",
                field.key
            );
        }
    }

    #[test]
    fn a_change_is_of_a_value_and_not_of_how_it_is_written() {
        let before = config(FILE);
        let same = FILE
            .replace("# a remark", "")
            .replace("tag = 1", "tag   =   1");
        assert_eq!(before.changes_to(&config(&same)), []);
        let after = FILE
            .replace("journal = \"/j\"\n", "")
            .replace("tag = 1", "tag = 2")
            .replace("[api]", "[log]\nformat = \"json\"\n[api]");
        let changes = before.changes_to(&config(&after));
        let changes: Vec<_> = changes
            .iter()
            .map(|it| (&*it.key, it.in_force.as_deref(), it.in_file.as_deref()))
            .collect();
        assert_eq!(
            changes,
            [
                ("log.format", None, Some("\"json\"")),
                ("pool[1].journal", Some("\"/j\""), None),
                ("portal_group[0].tag", Some("1"), Some("2")),
            ]
        );
    }

    #[test]
    fn arguments_of_programs_are_not_shown_and_a_change_of_them_is() {
        let config = config(FILE);
        let all = config.settings();
        let argv = one(&all, "alert_command[0].argv");
        assert_eq!(argv.value.as_deref(), Some("[\"/usr/bin/page\", ...]"));
        let after = parse(Path::new("x"), &FILE.replace("hunter2", "hunter3")).unwrap();
        let changes = config.changes_to(&after);
        assert_eq!(changes.len(), 1);
        let all = format!("{all:?} {changes:?}");
        assert!(!all.contains("hunter"), "{all}");
    }
}
