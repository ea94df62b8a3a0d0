//! `node.toml`: what is local to one node and only its administrator writes.
//!
//! **Contract.** Unknown keys are refused, relative paths resolve against the file, and every
//! mistake is reported with file, line and key.

pub use alert_commands::AlertCommand;
pub use api::{ApiAddress, ApiSettings, CertificateFiles};
pub use cluster::{ClusterSettings, EtcdFiles};
pub use live::live_keys;
pub use own::{
    ConfigPatch, NewPool, NewPortals, OwnSettings, SETTINGS_FILE, SettingValue, parse_with, portal,
    portals,
};
pub(crate) use place::pool_fields;
pub use place::{Layout, Place, RbdPlace};

use crate::code::Code;
use crate::name::check_object_name;
use crate::problem::Problem;
use crate::size::Size;
use crate::toml_table::{Mistake, Source, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::de::{DeArray, DeTable, DeValue};

pub use change::{SettingChange, TakesEffect};
pub use health::HealthSettings;
pub use history::HistorySettings;
pub use sessions::SessionTimes;
pub use settings::{ConfigOutcome, ConfigView, RestartView, SettingView};
pub use written::Written;

/// The iSCSI port where none is written.
pub const ISCSI_PORT: u16 = 3260;

/// The longest time of busy polling, in microseconds: no disk is worth more.
const POLL_US_MAX: u64 = 10_000;
/// The longest that a connection waits for several PDUs, in microseconds.
const COALESCE_US_MAX: u64 = 1000;

/// What `node.toml` says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Where it was read; errors name it, and relative paths start at its directory.
    pub file: PathBuf,
    /// `node.name`: what people call it; generations know the node by its identifier.
    pub node_name: String,
    /// Where the node keeps its state.
    pub state_dir: PathBuf,
    /// Where targets can be reached.
    pub portal_groups: Vec<PortalGroup>,
    /// Where LUNs keep their blocks.
    pub pools: Vec<Pool>,
    /// Where the API listens.
    pub api: Vec<ApiAddress>,
    /// What else is said of it.
    pub api_settings: ApiSettings,
    /// How it is in a cluster, or may be.
    pub cluster: Option<ClusterSettings>,
    /// Programs that may be run with alerts.
    pub alert_commands: Vec<AlertCommand>,
    /// Which processors are used.
    pub cores: Cores,
    /// How disks are driven.
    pub driver: Driver,
    /// How long a core looks for more before it sleeps, after bytes came or went, in microseconds;
    /// 0: not at all.
    pub poll_us: u32,
    /// How long a connection waits for several PDUs at most, while its host has other work; zero:
    /// each is taken as it comes.
    pub coalesce: Duration,
    /// Each LUN is scrubbed so often, in days; `None`: when somebody asks.
    pub scrub_every_days: Option<u32>,
    /// How the health of disks is watched.
    pub health: HealthSettings,
    /// How much is kept of what the node did.
    pub history: HistorySettings,
    /// How long hosts may take, and be silent.
    pub session: SessionTimes,
    /// The format of log lines.
    pub log: LogFormat,
    /// For tests and benches only.
    pub store: Store,
    /// For tests only: a directory whose `sys`, `proc` and `dev` stand for the machine's where
    /// disks are read.
    pub machine: Option<PathBuf>,
    /// The lines of keys whose values the machine may turn out not to have.
    pub(crate) lines: BTreeMap<String, usize>,
    /// All keys that are written.
    pub(crate) written: BTreeMap<String, Written>,
    /// The file of changes that were made through the API.
    pub(crate) own_file: PathBuf,
    /// The keys that are such changes; those of whole sections end with a dot.
    pub(crate) own_keys: BTreeSet<String>,
    /// Such changes that the file has overtaken: it says something else by now.
    pub(crate) overtaken: BTreeSet<String>,
}

impl Config {
    /// What is to be known of addresses of the API that other machines reach in plain text.
    #[must_use]
    pub fn open_api(&self) -> Vec<String> {
        api::in_plain_text(&self.api)
    }

    /// A key with its place, for messages: `node.toml:12: pool[0].path`.
    #[must_use]
    pub fn place(&self, key: &str) -> String {
        if written::is_own(&self.own_keys, key) {
            return format!("{}: {key}", self.own_file.display());
        }
        let file = self.file.display();
        match self.lines.get(key) {
            Some(line) => format!("{file}:{line}: {key}"),
            None => format!("{file}: {key}"),
        }
    }
}

/// Addresses that share a target portal group tag.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortalGroup {
    /// Unique in the file; targets name it.
    pub name: String,
    /// Its target portal group tag.
    pub tag: u16,
    /// Its addresses.
    pub listen: Vec<Listen>,
    /// The numbers of the only cores that serve its connections, counted from 0 in the order of the
    /// runtime's; none: all do.
    pub cores: Vec<u16>,
}

/// An address, or an interface whose addresses are followed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Listen {
    /// A fixed address.
    Address(SocketAddr),
    /// All addresses that the interface has at any time.
    Interface {
        /// Its name, such as `eth1`.
        name: String,
        /// The TCP port.
        port: u16,
    },
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Interface { name, port } => write!(f, "{name}:{port}"),
        }
    }
}

/// A place for LUNs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pool {
    /// Unique in the file; LUNs name it.
    pub name: String,
    /// What holds them.
    pub place: Place,
    /// A file or block device for what is acknowledged before it is at its place; without, the pool
    /// has no write-back.
    pub journal: Option<PathBuf>,
    /// How large the journal's file is made; a device is used whole.
    pub journal_size: Size,
}

/// The size of a journal's file where none is written.
const JOURNAL_SIZE: u64 = 1 << 30;

/// The smallest journal.
const JOURNAL_SIZE_MIN: u64 = 16 << 20;

/// Which processors are used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cores {
    /// All that the process may run on.
    Auto,
    /// These.
    List(Vec<usize>),
}

/// How disks are driven.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Driver {
    /// io_uring where the kernel allows it.
    Auto,
    /// io_uring, or no start.
    Uring,
    /// Threads that call the kernel.
    Poll,
}

/// What the files of the store do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Store {
    /// What files do.
    Ordinary,
    /// What was never synced is gone when the process ends.
    ForgetUnsynced,
    /// Each flush takes a millisecond more.
    SlowFlush,
}

/// The format of log lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Reads the text of `file`.
///
/// # Errors
/// Every mistake that was found.
pub fn parse(file: &Path, text: &str) -> Result<Config, Vec<Mistake>> {
    parse_more(file, text, &InPlace::default())
}

/// What holds in place of what a text says.
#[derive(Default)]
struct InPlace {
    /// Values, as TOML.
    values: String,
    /// Pools that are not there.
    no_pools: BTreeSet<String>,
}

/// As [`parse`], with what holds in place of what `text` says.
fn parse_more(file: &Path, text: &str, instead: &InPlace) -> Result<Config, Vec<Mistake>> {
    let source = Source::new(&file.display().to_string(), text);
    let others = Source::new("", &instead.values);
    let config = source.parse().and_then(|mut table| {
        drop_pools(&mut table, &instead.no_pools);
        let mut written = written::written(text, |at| source.line(at), &table);
        if let Some(others) = others.parse() {
            written.extend(written::written(&instead.values, |_| 0, &others));
            put(&mut table, others);
        }
        let config = read(file, &source, &Table::top(&source, &table))?;
        Some(Config { written, ..config })
    });
    let mistakes = source.into_mistakes();
    match config {
        Some(config) if mistakes.is_empty() => Ok(config),
        _ => Err(mistakes),
    }
}

/// Takes pools away.
fn drop_pools(table: &mut DeTable<'_>, names: &BTreeSet<String>) {
    let pools = table.get_mut("pool").map(toml::Spanned::get_mut);
    let Some(DeValue::Array(pools)) = pools else {
        return;
    };
    let stays = |pool: &toml::Spanned<DeValue<'_>>| {
        let name = pool.get_ref().get("name");
        let name = name.and_then(|name| name.get_ref().as_str());
        name.is_none_or(|name| !names.contains(name))
    };
    let all = std::mem::replace(pools, DeArray::new());
    *pools = all.into_iter().filter(stays).collect();
}

/// Puts the values of sections in place of others.
fn put<'a>(table: &mut DeTable<'a>, others: DeTable<'a>) {
    for (section, values) in others {
        let known = table.get_mut(&section).map(toml::Spanned::get_mut);
        match (known, values.into_inner()) {
            (Some(DeValue::Table(known)), DeValue::Table(values)) => known.extend(values),
            (_, values) => drop(table.insert(section, toml::Spanned::new(0..0, values))),
        }
    }
}

fn read(file: &Path, source: &Source<'_>, top: &Table<'_, '_>) -> Option<Config> {
    let base = file.parent().unwrap_or_else(|| Path::new(""));
    if let Some(schema) = top.integer("schema", 0, u64::MAX)
        && schema.value != 1
    {
        top.wrong("schema", "this version reads schema = 1");
    }
    let node = top.table("node");
    if node.is_none() && !top.keys().any(|key| key == "node") {
        top.missing(
            "node",
            "[node] with name = \"san-a\" and state_dir = \"data\"",
        );
    }
    let mut lines = noted(top);
    let (node_name, state_dir) = node.map(|node| read_node(&node, base)).unwrap_or_default();
    let portal_groups = read_portal_groups(top);
    // An optional key: a group before may be without it.
    for index in 0..portal_groups.len() {
        if let Some(line) = top.line_inside("portal_group", Some(index), "cores") {
            lines.insert(format!("portal_group[{index}].cores"), line);
        }
    }
    let pools = read_pools(top, base);
    let (api, api_settings) = api::read(source, top, base);
    let cluster = cluster::read(top, base);
    let alert_commands = alert_commands::read(top);
    let (runtime, scrub_every_days) = (read_runtime(top), read_scrub(top));
    let (health, session) = (health::read(top, base), sessions::read(top));
    let history = history::read(top);
    let (log, (store, machine)) = (read_log(top), read_testing(top, base));
    top.finish(&["mirror", "arbiter", "tls", "site"]);
    Some(Config {
        file: file.to_owned(),
        node_name: node_name?,
        state_dir: state_dir?,
        portal_groups,
        pools,
        api,
        api_settings,
        cluster,
        alert_commands,
        cores: runtime.cores,
        driver: runtime.driver,
        poll_us: runtime.poll_us,
        coalesce: runtime.coalesce,
        scrub_every_days,
        health,
        history,
        session,
        log,
        store,
        machine,
        lines,
        written: BTreeMap::new(),
        own_file: PathBuf::new(),
        own_keys: BTreeSet::new(),
        overtaken: BTreeSet::new(),
    })
}

/// The lines of keys whose values the machine may turn out not to have.
fn noted(top: &Table<'_, '_>) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    let mut note = |path: String, line| lines.insert(path, line);
    for (section, key) in [
        ("node", "state_dir"),
        ("api", "listen"),
        ("cluster", "etcd"),
        ("cluster", "prefix"),
        ("runtime", "driver"),
        ("runtime", "cores"),
    ] {
        if let Some(line) = top.line_inside(section, None, key) {
            note(format!("{section}.{key}"), line);
        }
    }
    for (section, key) in [
        ("portal_group", "listen"),
        ("pool", "path"),
        ("pool", "journal"),
        ("pool", "members"),
    ] {
        let found =
            (0..).map_while(|index| Some((index, top.line_inside(section, Some(index), key)?)));
        for (index, line) in found {
            note(format!("{section}[{index}].{key}"), line);
        }
    }
    lines
}

fn read_node(node: &Table<'_, '_>, base: &Path) -> (Option<String>, Option<PathBuf>) {
    let name = node.required_text("name", "name = \"san-a\"");
    if let Some(name) = &name
        && let Err(rule) = check_object_name(&name.value)
    {
        node.wrong("name", rule);
    }
    let state_dir = node.required_text("state_dir", "state_dir = \"data\"");
    if state_dir.as_ref().is_some_and(|dir| dir.value.is_empty()) {
        node.wrong("state_dir", "an empty path");
    }
    node.finish(&["site"]);
    (
        name.map(|name| name.value),
        state_dir.map(|dir| base.join(dir.value)),
    )
}

fn read_portal_groups(top: &Table<'_, '_>) -> Vec<PortalGroup> {
    let tables = top.tables("portal_group");
    if tables.is_empty() && !top.keys().any(|key| key == "portal_group") {
        let example = "[[portal_group]] with name = \"default\", tag = 1, \
                       listen = [ { ip = \"127.0.0.1\", port = 3260 } ]";
        top.missing("portal_group", example);
    }
    let mut groups: Vec<PortalGroup> = Vec::new();
    let mut taken = BTreeSet::new();
    for table in tables {
        let name = read_name(&table, "name = \"default\"");
        let tag = table.integer("tag", 1, u64::from(u16::MAX));
        if tag.is_none() && !table.keys().any(|key| key == "tag") {
            table.missing(
                "tag",
                "tag = 1 (stable, unique across nodes that share a target)",
            );
        }
        let listen = read_listens(&table, &mut taken);
        let cores = read_pins(&table);
        table.finish(&["redirect"]);
        let (Some(name), Some(tag)) = (name, tag) else {
            continue;
        };
        let tag = u16::try_from(tag.value).expect("read with u16::MAX as its limit");
        if let Some(other) = groups.iter().find(|group| group.tag == tag) {
            table.wrong(
                "tag",
                format!("tag {tag} is portal group \"{}\"'s", other.name),
            );
        }
        if groups.iter().any(|group| group.name == name) {
            table.wrong("name", format!("a second portal group \"{name}\""));
        }
        groups.push(PortalGroup {
            name,
            tag,
            listen,
            cores,
        });
    }
    groups
}

fn read_listens(group: &Table<'_, '_>, taken: &mut BTreeSet<Listen>) -> Vec<Listen> {
    let tables = group.tables("listen");
    if tables.is_empty() {
        group.missing("listen", "listen = [ { ip = \"127.0.0.1\", port = 3260 } ]");
    }
    let mut out = Vec::new();
    for table in tables {
        let listen = read_listen(&table);
        table.finish(&[]);
        let Some(listen) = listen else { continue };
        // Port 0 means any free port, so two of them are not the same place.
        let fixed = !matches!(&listen, Listen::Address(address) if address.port() == 0);
        if fixed && !taken.insert(listen.clone()) {
            table.wrong("", format!("{listen} is listened at already"));
        }
        out.push(listen);
    }
    out
}

fn read_listen(table: &Table<'_, '_>) -> Option<Listen> {
    let ip = table.text("ip");
    let iface = table.text("iface");
    let port = table.integer("port", 0, u64::from(u16::MAX));
    let port = port.map_or(ISCSI_PORT, |port| {
        u16::try_from(port.value).expect("read with u16::MAX as its limit")
    });
    match (ip, iface) {
        (Some(ip), None) => {
            let parsed = ip.value.parse::<IpAddr>();
            if parsed.is_err() {
                let shown = &ip.value;
                table.wrong("ip", format!("\"{shown}\" is no IPv4 or IPv6 address"));
            }
            Some(Listen::Address(SocketAddr::new(parsed.ok()?, port)))
        }
        (None, Some(iface)) => {
            let name = iface.value;
            if name.is_empty() || name.len() > 15 || name.contains(['/', ' ']) {
                table.wrong("iface", format!("\"{name}\" cannot be an interface's name"));
                return None;
            }
            Some(Listen::Interface { name, port })
        }
        (Some(_), Some(_)) => {
            table.wrong("iface", "write either ip or iface");
            None
        }
        (None, None) => {
            if !table.keys().any(|key| key == "ip" || key == "iface") {
                table.missing("ip", "ip = \"127.0.0.1\", or iface = \"eth1\"");
            }
            None
        }
    }
}

fn read_name(table: &Table<'_, '_>, example: &str) -> Option<String> {
    let name = table.required_text("name", example)?;
    if let Err(rule) = check_object_name(&name.value) {
        table.wrong("name", rule);
        return None;
    }
    Some(name.value)
}

fn read_pools(top: &Table<'_, '_>, base: &Path) -> Vec<Pool> {
    let mut pools: Vec<Pool> = Vec::new();
    let mut taken: BTreeMap<PathBuf, String> = BTreeMap::new();
    for table in top.tables("pool") {
        let name = read_name(&table, "name = \"default\"");
        let place = Place::read(&table, base);
        let (journal, journal_size) = read_journal(&table, base);
        table.finish(&[]);
        let (Some(name), Some(place)) = (name, place) else {
            continue;
        };
        if pools.iter().any(|pool| pool.name == name) {
            table.wrong("name", format!("a second pool \"{name}\""));
        }
        if let Some(same) = pools
            .iter()
            .find(|pool| pool.place == place && place.paths().is_empty())
        {
            table.wrong(place.key(), format!("it is pool \"{}\"'s", same.name));
        }
        if journal.is_some() && place.is_stable() {
            table.wrong(
                "journal",
                format!(
                    "a pool with {} has none: what it acknowledges is stable where it lies",
                    place.key()
                ),
            );
        }
        let (key, paths) = (place.key(), place.paths());
        let journal_of = journal.iter().map(|path| ("journal", path));
        for (key, path) in paths.iter().map(|path| (key, path)).chain(journal_of) {
            if let Some(other) = taken.insert(path.clone(), name.clone()) {
                let rule = if *key == *"path" {
                    format!("it is pool \"{other}\"'s path")
                } else {
                    format!("{} stands already in pool \"{other}\"", path.display())
                };
                table.wrong(key, rule);
            }
        }
        pools.push(Pool {
            name,
            place,
            journal,
            journal_size,
        });
    }
    pools
}

fn read_journal(table: &Table<'_, '_>, base: &Path) -> (Option<PathBuf>, Size) {
    let journal = table.text("journal");
    if journal.as_ref().is_some_and(|path| path.value.is_empty()) {
        table.wrong("journal", "an empty path");
    }
    let size = table.size("journal_size");
    if size.is_some() && journal.is_none() {
        table.wrong(
            "journal_size",
            "it is the size of a journal, and there is none",
        );
    } else if size
        .as_ref()
        .is_some_and(|size| size.value.bytes() < JOURNAL_SIZE_MIN)
    {
        table.wrong("journal_size", "a journal has 16MiB at least");
    }
    let default = Size::from_bytes(JOURNAL_SIZE).expect("a GiB is a size");
    (
        journal.map(|path| base.join(path.value)),
        size.map_or(default, |size| size.value),
    )
}

/// How long a connection waits for several PDUs where nothing else is said: the front's own time.
pub const COALESCE: Duration = Duration::from_micros(150);

/// `[runtime]`.
struct Runtime {
    cores: Cores,
    driver: Driver,
    poll_us: u32,
    coalesce: Duration,
}

fn read_runtime(top: &Table<'_, '_>) -> Runtime {
    let Some(table) = top.table("runtime") else {
        return Runtime {
            cores: Cores::Auto,
            driver: Driver::Auto,
            poll_us: 0,
            coalesce: COALESCE,
        };
    };
    let cores = read_cores(&table);
    let driver = match table
        .text("driver")
        .as_ref()
        .map(|text| text.value.as_str())
    {
        None | Some("auto") => Driver::Auto,
        Some("uring") => Driver::Uring,
        Some("poll") => Driver::Poll,
        Some(other) => {
            let rule = format!("\"{other}\" is none of \"auto\", \"uring\", \"poll\"");
            table.wrong("driver", rule);
            Driver::Auto
        }
    };
    let poll_us = table.integer("poll_us", 0, POLL_US_MAX);
    let poll_us = poll_us.map_or(0, |poll| {
        u32::try_from(poll.value).expect("read with a small limit")
    });
    let coalesce = table.integer("coalesce_us", 0, COALESCE_US_MAX);
    let coalesce = coalesce.map_or(COALESCE, |wait| Duration::from_micros(wait.value));
    table.finish(&[]);
    Runtime {
        cores,
        driver,
        poll_us,
        coalesce,
    }
}

fn read_cores(table: &Table<'_, '_>) -> Cores {
    let rule = "write \"auto\", or a list of processor numbers such as [0, 1]";
    match table.value("cores") {
        None => Cores::Auto,
        Some(value) if value.as_str() == Some("auto") => Cores::Auto,
        Some(value) => match read_numbers(table, value, "processor", rule) {
            Some(list) => Cores::List(list),
            None => Cores::Auto,
        },
    }
}

/// The cores that connections of a portal group are pinned to. How many there are, the start knows.
fn read_pins(table: &Table<'_, '_>) -> Vec<u16> {
    let rule = "write a list of cores as `session ls` numbers them, such as [0, 1]";
    let list = (table.value("cores")).and_then(|value| read_numbers(table, value, "core", rule));
    let small = list.into_iter().flatten().map(u16::try_from);
    small
        .filter_map(|number| {
            if number.is_err() {
                table.wrong("cores", rule);
            }
            number.ok()
        })
        .collect()
}

/// `cores` as a list of different numbers.
fn read_numbers(
    table: &Table<'_, '_>,
    value: &DeValue<'_>,
    what: &str,
    rule: &str,
) -> Option<Vec<usize>> {
    let Some(array) = value.as_array() else {
        table.wrong("cores", rule);
        return None;
    };
    let mut out: Vec<usize> = Vec::new();
    for item in array.iter() {
        let DeValue::Integer(number) = item.get_ref() else {
            table.wrong("cores", rule);
            continue;
        };
        let Ok(number) = number.as_str().parse() else {
            table.wrong("cores", rule);
            continue;
        };
        if out.contains(&number) {
            table.wrong("cores", format!("{what} {number} stands twice"));
        }
        out.push(number);
    }
    if array.is_empty() {
        table.wrong(
            "cores",
            format!("an empty list names no {what}; leave the key out for all"),
        );
    }
    Some(out)
}

/// The longest time between two scrubs of a LUN, in days.
const SCRUB_DAYS_MAX: u64 = 3650;

fn read_scrub(top: &Table<'_, '_>) -> Option<u32> {
    let table = top.table("scrub")?;
    let days = table.integer("every_days", 0, SCRUB_DAYS_MAX);
    if days.is_none() && !table.keys().any(|key| key == "every_days") {
        table.missing("every_days", "every_days = 30");
    }
    table.finish(&[]);
    let days = days.map(|days| u32::try_from(days.value).expect("read with a small limit"));
    days.filter(|days| *days > 0)
}

fn read_log(top: &Table<'_, '_>) -> LogFormat {
    let Some(table) = top.table("log") else {
        return LogFormat::Text;
    };
    let format = match table
        .text("format")
        .as_ref()
        .map(|text| text.value.as_str())
    {
        None | Some("text") => LogFormat::Text,
        Some("json") => LogFormat::Json,
        Some(other) => {
            table.wrong(
                "format",
                format!("\"{other}\" is neither \"text\" nor \"json\""),
            );
            LogFormat::Text
        }
    };
    table.finish(&["level"]);
    format
}

/// Not part of the promised interface: proofs of durability run the daemon on a forgetful store,
/// benches on a slow one.
fn read_testing(top: &Table<'_, '_>, base: &Path) -> (Store, Option<PathBuf>) {
    let Some(table) = top.table("testing") else {
        return (Store::Ordinary, None);
    };
    let machine = table.text("machine").map(|path| base.join(path.value));
    let files = table.text("files");
    let store = match files.as_ref().map(|text| text.value.as_str()) {
        None => Store::Ordinary,
        Some("forget-unsynced") => Store::ForgetUnsynced,
        Some("slow-flush") => Store::SlowFlush,
        Some(other) => {
            table.wrong(
                "files",
                format!("\"{other}\" is neither \"forget-unsynced\" nor \"slow-flush\""),
            );
            Store::Ordinary
        }
    };
    table.finish(&[]);
    (store, machine)
}

/// What stands in a file of ours, which is text.
///
/// # Errors
/// The line where it is none.
pub fn text(file: &Path, bytes: Vec<u8>) -> Result<String, Problem> {
    units::text::utf8(bytes).map_err(|wrong| {
        let detail = format!("{}:{}: {wrong}", file.display(), wrong.line);
        Problem::new(Code::ConfigSyntax, detail).hint(
            "save the file as UTF-8 (the editor's encoding is another one), or correct that line",
        )
    })
}

/// The first of the mistakes decides the code of the whole.
#[must_use]
pub fn code_of(mistakes: &[Mistake]) -> Code {
    mistakes
        .first()
        .map_or(Code::ConfigValue, |mistake| mistake.code)
}

mod alert_commands;
mod api;
mod change;
mod changeable;
mod cluster;
mod health;
mod history;
mod live;
mod own;
mod place;
mod sessions;
mod settings;
#[cfg(test)]
mod test;
mod written;
