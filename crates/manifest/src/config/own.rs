//! What was changed of `node.toml` through the API: pure.
//!
//! The daemon never writes `node.toml`, which is its administrator's. What an admin changes through
//! the API is kept in a file of the state directory (`docs/adr/0027-own-settings.md`).
//!
//! **Invariants.** I1: a change stands in place of what `node.toml` says for as long as that says
//! what it said then, so whoever wrote last decides. I2: both together go through the very checks
//! of `node.toml` ([`parse_with`]). I3: only what [`OwnSettings`] has members for can be changed:
//! no program, no secret, no certificate, no address of the API.

mod pools;
mod values;

pub use values::SettingValue;

use super::written::{is_own, written};
use super::{Config, ISCSI_PORT, InPlace, Listen, Written, parse, parse_more};
use crate::problem::FieldFault;
use crate::toml_table::{Mistake, Source, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use toml::de::DeTable;

/// The file of the state directory that they are in.
pub const SETTINGS_FILE: &str = "settings.json";

/// A value, and what `node.toml` said when it was given.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Instead<T> {
    value: T,
    /// As it is written there; absent: nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<String>,
}

/// The changes that were made.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct OwnSettings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node_name: Option<Instead<String>>,
    /// By portal group.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    portals: BTreeMap<String, Instead<Vec<String>>>,
    /// Pools that `node.toml` does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pools: Vec<NewPool>,
    /// Pools that it has and the node does not, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    removed_pools: BTreeMap<String, pools::PoolText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scrub_every_days: Option<Instead<u32>>,
    /// By key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    values: values::Values,
}

/// Changes of the node's settings: what is absent stays.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct ConfigPatch {
    /// By which people and browsers call it, from the next start on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Where a portal group listens from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub portals: Option<NewPortals>,
    /// A pool that is not there yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_pool: Option<NewPool>,
    /// A pool that no LUN lies in. What is in its place stays there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove_pool: Option<String>,
    /// Each LUN is scrubbed so often by itself; 0: when somebody asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scrub_every_days: Option<u32>,
    /// Other settings by their key, such as `history.max_bytes`; `null`: what `node.toml` says.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, Option<SettingValue>>,
}

/// The portals of a portal group.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct NewPortals {
    /// The portal group's name; absent: the first one of `node.toml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// All its addresses, or interfaces whose addresses are followed, each with or without a port:
    /// `192.0.2.1`, `[2001:db8::1]:3260`, `eth1`.
    pub listen: Vec<String>,
}

/// A pool that is to be made.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct NewPool {
    /// By which LUNs name it.
    pub name: String,
    /// A directory, made where it is missing, or a block device: its whole path.
    pub path: String,
    /// A file that is not there yet, or a block device: its whole path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<String>,
    /// How large the journal's file is made, such as `4GiB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal_size: Option<String>,
}

impl ConfigPatch {
    /// The first of the portals that other machines could reach.
    #[must_use]
    pub fn opens(&self) -> Option<&str> {
        let words = self.portals.iter().flat_map(|it| &it.listen);
        let is_open = |word: &&String| match listen(word) {
            Ok(Listen::Address(at)) => !at.ip().to_canonical().is_loopback(),
            Ok(Listen::Interface { name, .. }) => name != "lo",
            // It is refused for what it is.
            Err(_) => false,
        };
        { words }.find(is_open).map(String::as_str)
    }
}

/// An address or interface as people write it.
///
/// # Errors
/// It is neither.
fn listen(text: &str) -> Result<Listen, String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(Listen::Address(address));
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(Listen::Address(SocketAddr::new(ip, ISCSI_PORT)));
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => (name, port.parse().map_err(|_| wrong(text))?),
        None => (text, ISCSI_PORT),
    };
    let is_name = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_' | '@');
    // What is made of digits and dots alone was meant as an address.
    let is_number = name.chars().all(|it| it.is_ascii_digit() || it == '.');
    if name.is_empty() || name.len() > 15 || is_number || !name.chars().all(is_name) {
        return Err(wrong(text));
    }
    let name = name.to_owned();
    Ok(Listen::Interface { name, port })
}

/// The portals that a value of `portal_group.listen` names, each with its port as [`portal`] has
/// it.
#[must_use]
pub fn portals(listen: &str) -> Vec<String> {
    let text = format!("listen = {listen}");
    let source = Source::new("", &text);
    let Some(table) = source.parse() else {
        return Vec::new();
    };
    let group = Table::top(&source, &table);
    let all = super::read_listens(&group, &mut BTreeSet::new());
    all.iter().map(Listen::to_string).collect()
}

/// A portal as people write it, with its port.
///
/// # Errors
/// It is neither an address nor an interface.
pub fn portal(text: &str) -> Result<String, String> {
    listen(text).map(|it| it.to_string())
}

fn wrong(text: &str) -> String {
    format!(
        "\"{text}\" is neither an address nor an interface: write 192.0.2.1, [2001:db8::1]:3260 or eth1"
    )
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// As it stands in `listen` of a portal group.
fn listener(listen: &Listen) -> String {
    match listen {
        Listen::Address(at) => {
            let ip = quoted(&at.ip().to_string());
            format!("{{ ip = {ip}, port = {} }}", at.port())
        }
        Listen::Interface { name, port } => {
            format!("{{ iface = {}, port = {port} }}", quoted(name))
        }
    }
}

fn listeners(words: &[String]) -> String {
    let all = words.iter().filter_map(|word| listen(word).ok());
    let all: Vec<String> = all.map(|it| listener(&it)).collect();
    format!("[{}]", all.join(", "))
}

impl NewPool {
    fn section(&self) -> String {
        let mut out = String::from("[[pool]]\n");
        let keys = [
            ("name", Some(&self.name)),
            ("path", Some(&self.path)),
            ("journal", self.journal.as_ref()),
            ("journal_size", self.journal_size.as_ref()),
        ];
        for (key, value) in keys {
            if let Some(value) = value {
                // Writing to a String cannot fail.
                let _ = writeln!(out, "{key} = {}", quoted(value));
            }
        }
        out
    }
}

/// Where the keys of `node.toml` are that can be changed, and what they say.
struct Places {
    written: BTreeMap<String, Written>,
    /// By key: where the value stands.
    spans: BTreeMap<String, std::ops::Range<usize>>,
    /// The names of portal groups, in their order, and of pools.
    groups: Vec<String>,
    pools: Vec<String>,
}

impl Places {
    /// Of a file without mistakes.
    fn of(text: &str) -> Option<Self> {
        let source = Source::new("", text);
        let top = source.parse()?;
        let mut spans = BTreeMap::new();
        for (section, key) in [("node", "name"), ("scrub", "every_days")] {
            let value = top.get(section).and_then(|it| it.get_ref().as_table());
            if let Some(value) = value.and_then(|section| section.get(key)) {
                spans.insert(format!("{section}.{key}"), value.span());
            }
        }
        let groups = names(&top, "portal_group");
        for (at, group) in sections(&top, "portal_group").into_iter().enumerate() {
            if let Some(value) = group.get("listen") {
                spans.insert(format!("portal_group[{at}].listen"), value.span());
            }
        }
        Some(Self {
            written: written(text, |at| source.line(at), &top),
            spans,
            groups,
            pools: names(&top, "pool"),
        })
    }

    /// What is written there.
    fn says(&self, key: &str) -> Option<String> {
        self.written.get(key).map(|it| it.value.clone())
    }

    fn listen_of(&self, group: &str) -> Option<String> {
        let at = self.groups.iter().position(|name| name == group)?;
        Some(format!("portal_group[{at}].listen"))
    }
}

fn sections<'t, 'a>(top: &'t DeTable<'a>, name: &str) -> Vec<&'t DeTable<'a>> {
    let all = top.get(name).and_then(|it| it.get_ref().as_array());
    let all = all.into_iter().flat_map(|it| it.iter());
    all.filter_map(|it| it.get_ref().as_table()).collect()
}

fn names(top: &DeTable<'_>, section: &str) -> Vec<String> {
    let name = |it: &DeTable<'_>| {
        let name = it.get("name").and_then(|it| it.get_ref().as_str());
        name.unwrap_or_default().to_owned()
    };
    sections(top, section).into_iter().map(name).collect()
}

/// `node.toml` with the changes in it.
struct Merged {
    text: String,
    /// What stands in place of what that text says.
    instead: InPlace,
    /// The keys that are changes; those of whole sections end with a dot.
    keys: BTreeSet<String>,
    /// Changes that `node.toml` has overtaken.
    overtaken: BTreeSet<String>,
}

impl OwnSettings {
    /// Reads their file.
    ///
    /// # Errors
    /// It is not what this version writes.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }

    /// As the file has them.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// The values that stand in place of others, by key as `node.toml` has it: what they are now,
    /// and what they stand for.
    fn values(&self, places: &Places) -> Vec<(String, String, Option<&String>)> {
        let mut all = Vec::new();
        if let Some(name) = &self.node_name {
            let value = quoted(&name.value);
            all.push(("node.name".to_owned(), value, name.of.as_ref()));
        }
        for (group, portals) in &self.portals {
            // A group that is gone has nothing that could be changed.
            let gone = || format!("portal_group.{group}.listen");
            let key = places.listen_of(group).unwrap_or_else(gone);
            all.push((key, listeners(&portals.value), portals.of.as_ref()));
        }
        if let Some(days) = &self.scrub_every_days {
            let value = days.value.to_string();
            all.push(("scrub.every_days".to_owned(), value, days.of.as_ref()));
        }
        all
    }

    fn merge(&self, text: &str) -> Merged {
        let unchanged = || Merged {
            text: text.to_owned(),
            instead: InPlace::default(),
            keys: BTreeSet::new(),
            overtaken: BTreeSet::new(),
        };
        let Some(places) = Places::of(text) else {
            return unchanged();
        };
        let mut merged = unchanged();
        let mut behind = String::new();
        let mut edits = Vec::new();
        for (key, value, of) in self.values(&places) {
            if places.says(&key).as_ref() != of {
                merged.overtaken.insert(key);
                continue;
            }
            match places.spans.get(&key) {
                Some(span) => edits.push((span.clone(), value)),
                None if key == "scrub.every_days" => {
                    behind.push_str(&format!("[scrub]\nevery_days = {value}\n"));
                }
                None => continue,
            }
            merged.keys.insert(key);
        }
        self.merge_pools(&places, &mut merged, &mut behind);
        let mut instead = Vec::new();
        for (key, it) in &self.values {
            if places.says(key) != it.of {
                merged.overtaken.insert(key.clone());
                continue;
            }
            instead.push((key.clone(), it.value.toml()));
            merged.keys.insert(key.clone());
        }
        merged.instead.values = values::lines(&instead);
        edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
        for (span, value) in edits {
            let lines = text
                .get(span.clone())
                .map_or(0, |it| it.matches('\n').count());
            let value = spread(&value, lines);
            merged.text.replace_range(span, &value);
        }
        if !behind.is_empty() {
            merged.text.push('\n');
            merged.text.push_str(&behind);
        }
        merged
    }

    /// Without what `node.toml`, whose text it is, has overtaken.
    fn in_force(&self, places: &Places) -> Self {
        let is = |key: &str, of: &Option<String>| places.says(key) == *of;
        let listens = |group: &str, of: &Option<String>| {
            places.listen_of(group).is_some_and(|key| is(&key, of))
        };
        let portals = self.portals.iter();
        let portals = portals.filter(|(group, it)| listens(group, &it.of));
        let name = self.node_name.as_ref();
        let scrub = self.scrub_every_days.as_ref();
        Self {
            node_name: name.filter(|it| is("node.name", &it.of)).cloned(),
            portals: portals.map(|(k, v)| (k.clone(), v.clone())).collect(),
            pools: self.pools_more(places).cloned().collect(),
            removed_pools: self
                .pools_less(places)
                .map(|(name, of)| (name.clone(), of.clone()))
                .collect(),
            scrub_every_days: scrub.filter(|it| is("scrub.every_days", &it.of)).cloned(),
            values: self
                .values
                .iter()
                .filter(|(key, it)| is(key, &it.of))
                .map(|(key, it)| (key.clone(), it.clone()))
                .collect(),
        }
    }

    /// With these changes of what `text`, that of `node.toml`, and they say.
    ///
    /// # Errors
    /// What cannot be meant; what else is wrong [`parse_with`] says.
    pub fn patched(&self, text: &str, patch: &ConfigPatch) -> Result<Self, Vec<FieldFault>> {
        let places = Places::of(text);
        let places = places.ok_or_else(|| fault("", "node.toml is no TOML".to_owned()))?;
        let mut own = self.in_force(&places);
        if let Some(name) = &patch.node_name {
            let of = places.says("node.name");
            let value = name.clone();
            own.node_name = Some(Instead { value, of }).filter(|it| {
                let value = quoted(&it.value);
                it.of.as_ref() != Some(&value)
            });
        }
        if let Some(days) = patch.scrub_every_days {
            let of = places.says("scrub.every_days");
            let same = of.clone().unwrap_or_else(|| "0".to_owned()) == days.to_string();
            own.scrub_every_days = (!same).then_some(Instead { value: days, of });
        }
        if let Some(portals) = &patch.portals {
            own.listen_at(&places, portals)?;
        }
        if let Some(pool) = &patch.add_pool {
            own.add_pool(&places, pool)?;
        }
        if let Some(name) = &patch.remove_pool {
            own.remove_pool(&places, name)?;
        }
        for (key, value) in &patch.values {
            values::change(&mut own.values, &places, key, value.as_ref())
                .map_err(|fault| vec![fault])?;
        }
        Ok(own)
    }

    fn listen_at(&mut self, places: &Places, portals: &NewPortals) -> Result<(), Vec<FieldFault>> {
        let first = || places.groups.first().cloned().unwrap_or_default();
        let group = portals.group.clone().unwrap_or_else(first);
        let Some(key) = places.listen_of(&group) else {
            let known = places.groups.join(", ");
            let message = format!("there is no portal group \"{group}\"; there is {known}");
            return Err(fault("portals.group", message));
        };
        if portals.listen.is_empty() {
            let message = "hosts would reach nothing: name an address or an interface";
            return Err(fault("portals.listen", message.to_owned()));
        }
        for (at, word) in portals.listen.iter().enumerate() {
            listen(word).map_err(|why| fault(&format!("portals.listen[{at}]"), why))?;
        }
        let of = places.says(&key);
        if of.as_deref() == Some(&listeners(&portals.listen)) {
            self.portals.remove(&group);
        } else {
            let value = portals.listen.clone();
            self.portals.insert(group, Instead { value, of });
        }
        Ok(())
    }

    fn add_pool(&mut self, places: &Places, pool: &NewPool) -> Result<(), Vec<FieldFault>> {
        if self.is_back(places, pool)? {
            return Ok(());
        }
        let paths = [
            ("path", Some(&pool.path)),
            ("journal", pool.journal.as_ref()),
        ];
        for (key, path) in paths {
            let Some(path) = path else { continue };
            if !path.starts_with('/') || path.contains(char::is_control) {
                let message = format!(
                    "\"{}\": write a whole path, such as /srv/fast",
                    path.escape_debug()
                );
                return Err(fault(&format!("add_pool.{key}"), message));
            }
        }
        self.pools.push(pool.clone());
        Ok(())
    }
}

fn fault(field: &str, message: String) -> Vec<FieldFault> {
    vec![FieldFault {
        field: field.to_owned(),
        message,
    }]
}

/// A list on so many lines more, so that all that follows stands on the line that it has.
fn spread(value: &str, lines: usize) -> String {
    match value.strip_suffix(']') {
        Some(list) if lines > 0 => format!("{list}{}]", "\n".repeat(lines)),
        Some(_) | None => value.to_owned(),
    }
}

/// Reads the text of `file` with the changes that were made, which are in `own_file`.
///
/// # Errors
/// Every mistake that was found.
pub fn parse_with(
    file: &Path,
    text: &str,
    own_file: &Path,
    own: &OwnSettings,
) -> Result<Config, Vec<Mistake>> {
    // What is wrong in node.toml itself is said of it.
    parse(file, text)?;
    let merged = own.merge(text);
    let lines = text.matches('\n').count() + 1;
    let parsed = parse_more(file, &merged.text, &merged.instead);
    let config = parsed.map_err(|mistakes| {
        let blame = |mistake: Mistake| {
            if mistake.line <= lines && !is_own(&merged.keys, &mistake.key) {
                return mistake;
            }
            Mistake {
                file: own_file.display().to_string(),
                line: 0,
                ..mistake
            }
        };
        mistakes.into_iter().map(blame).collect::<Vec<Mistake>>()
    })?;
    Ok(Config {
        own_file: own_file.to_owned(),
        own_keys: merged.keys,
        overtaken: merged.overtaken,
        ..config
    })
}

#[cfg(test)]
mod test;
