//! The documents of the API, as daemon and command line share them. Sizes are bytes, times RFC
//! 3339.

use crate::document::Document;
use crate::facts::{LunState, NodeNic, OpFacts, PoolFacts, PortalFacts, StallFacts};
use crate::journal::LunJournal;
use crate::not_safe::NotSafe;
use crate::objects::{
    BackendSpec, ChapSpec, LayerFacts, Lun, Objects, Redirect, SecretSpec, Storage, TargetSpec,
    read_among_others,
};
use crate::plan::Action;
use crate::redundancy::Redundancy;
use crate::size::{Size, rounded};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// More than this share of the memory is more than there is: the rest of the program and the
/// machine need some, too.
const MEMORY_PERCENT: u64 = 80;

/// Names of LUNs in a row of members.
const NAMES_SHOWN: usize = 4;

/// How the node is.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// Everything serves.
    Ok,
    /// Something needs attention; the rest serves.
    Degraded,
    /// Nothing is exported.
    Damaged,
}

/// The answer of `status`: how the node is, what is wrong, and counts of what there is.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct StatusView {
    /// How the node is.
    pub health: Health,
    /// What needs attention, one sentence each.
    pub problems: Vec<String>,
    /// The node's name.
    pub node: String,
    /// The node's identity.
    pub node_id: String,
    /// The daemon's version.
    pub version: String,
    /// When it started.
    pub started: String,
    /// The generation of the stored objects.
    pub generation: u64,
    /// Where targets can be reached.
    pub portals: Vec<PortalFacts>,
    /// The node's NICs that have an address; the loopback interface is none.
    #[serde(default)]
    pub nics: Vec<NodeNic>,
    /// Where the API can be reached.
    pub api: Vec<String>,
    /// What memory LUNs and read caches may take of the node's memory.
    #[serde(default)]
    pub memory: MemoryView,
    /// One entry for each `[[pool]]`, in the order of the file.
    pub pools: Vec<PoolFacts>,
    /// What is no problem and still worth knowing, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// LUNs of which something is lost that others would keep; none: what they have is safe.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_safe: Vec<NotSafe>,
    /// How many objects there are.
    pub counts: Counts,
    /// How many alerts there are.
    #[serde(default)]
    pub alerts: AlertCounts,
}

impl StatusView {
    /// That other machines reach the node, where its first password is still in force.
    #[must_use]
    pub fn open_early(&self) -> Option<String> {
        let api = self.api.iter().map(|at| at.trim_start_matches("https://"));
        let api = api.map(|at| at.trim_start_matches("http://"));
        let portals = self.portals.iter().filter(|it| it.problem.is_none());
        let portals = portals.map(|it| it.address.as_str());
        let is_open = |at: &&str| {
            let at = at.parse::<SocketAddr>();
            at.is_ok_and(|at| !at.ip().to_canonical().is_loopback())
        };
        let open: Vec<&str> = portals.chain(api).filter(is_open).collect();
        let (at, are) = (open.join(", "), if open.len() == 1 { "is" } else { "are" });
        (!open.is_empty()).then(|| {
            format!(
                "{at} {are} reached by other machines, and nobody has changed the first password: log in at the page as admin, or \
                 run `causeway user set admin --password`"
            )
        })
    }
}

/// How many alerts there are that are not over.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct AlertCounts {
    /// Critical ones that nobody has acknowledged or silenced.
    pub critical: u64,
    /// Warnings that nobody has acknowledged or silenced.
    pub warning: u64,
    /// Those that are worth knowing, and that nobody has acknowledged or silenced.
    pub info: u64,
    /// Of any severity, acknowledged.
    pub acknowledged: u64,
    /// Of any severity, silenced.
    pub silenced: u64,
}

/// What memory LUNs and read caches may take of the node's memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct MemoryView {
    /// What the node may use, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// The sizes of memory LUNs, those that were removed included.
    pub lun_bytes: u64,
    /// The most that read caches hold.
    pub read_cache_bytes: u64,
}

impl MemoryView {
    /// What the objects may take.
    #[must_use]
    pub fn of(objects: &Objects, total_bytes: Option<u64>) -> Self {
        let sum = |each: &dyn Fn(&Lun) -> Option<u64>, all: Vec<&Lun>| {
            let all = all.into_iter().filter_map(each);
            all.fold(0_u64, u64::saturating_add)
        };
        let in_memory = |lun: &Lun| lun.backing.is_memory().then(|| lun.size.bytes());
        let in_layers = |lun: &Lun| Some(lun.storage.memory());
        let served: Vec<&Lun> = objects.luns.values().collect();
        let all = objects.luns.values().chain(objects.removed.values());
        Self {
            total_bytes,
            lun_bytes: sum(&in_memory, all.collect()),
            read_cache_bytes: sum(&in_layers, served),
        }
    }

    /// Bytes that they may take together.
    #[must_use]
    pub fn promised(&self) -> u64 {
        self.lun_bytes.saturating_add(self.read_cache_bytes)
    }

    /// That they may take more than there is, where they may.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let total = self.total_bytes?;
        let most = total / 100 * MEMORY_PERCENT;
        (self.promised() > most).then(|| {
            format!(
                "memory: memory LUNs may take {} and read caches {}, and the node has {}: when they do, the system ends the daemon \
                 for want of memory",
                rounded(self.lun_bytes),
                rounded(self.read_cache_bytes),
                rounded(total)
            )
        })
    }
}

/// How many there are.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Counts {
    /// LUNs in service, offline ones included.
    pub luns: usize,
    /// Of these, offline.
    pub luns_offline: usize,
    /// Removed LUNs that keep their data.
    pub luns_removed: usize,
    /// All of them, whether they serve or not.
    pub targets: usize,
    /// Of these, in maintenance.
    #[serde(default)]
    pub targets_in_maintenance: usize,
    /// Of these, whose logins are sent elsewhere.
    #[serde(default)]
    pub targets_redirected: usize,
    /// Hosts that objects name, connected or not.
    pub hosts: usize,
    /// Grants that objects name.
    pub grants: usize,
    /// iSCSI sessions now, discovery included.
    pub sessions: usize,
}

/// A LUN as it was asked for and as it is, with what it did.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct LunView {
    /// Unique among LUNs; a rename changes it and nothing else.
    pub name: String,
    /// `online`, `offline` or `removed`.
    pub state: String,
    /// Why it is offline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Bytes that hosts see.
    pub size: Size,
    /// Bytes in a logical block.
    pub block_size: u32,
    /// Bytes in a physical block.
    pub physical_block_size: u32,
    /// Space is taken when blocks are first written.
    pub thin: bool,
    /// `memory`, `pool NAME` or `block PATH`.
    pub backing: String,
    /// The pool that holds it, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The members of its pool on which a part of it lies, by number: it is lost with any of them.
    /// Absent in a pool that has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<u16>,
    /// What holds it instead of a pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendSpec>,
    /// The NAA identifier.
    pub naa: String,
    /// The unit serial number.
    pub serial: String,
    /// Bytes that its storage takes, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated: Option<u64>,
    /// What its administrator should know, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Who may use it.
    pub grants: Vec<String>,
    /// The most bytes that its commands may hold at a time, where there is a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_in_flight_max: Option<Size>,
    /// How its writes are kept and its blocks checked, and what it may use: what is in force.
    #[serde(flatten, deserialize_with = "read_among_others")]
    pub storage: Storage,
    /// What its layers did.
    #[serde(flatten)]
    pub layers: LayerFacts,
    /// Its pool's journal, where that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<LunJournal>,
    /// When a scrub that has read all of it ended last (RFC 3339); absent: none ever did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<String>,
    /// Commands in flight.
    pub in_flight: u64,
    /// Bytes that commands hold now.
    #[serde(default)]
    pub bytes_in_flight: u64,
    /// Its storage has stopped answering; absent: it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled: Option<StallFacts>,
    /// What is wrong with its data, one sentence each: what its checksums know to be bad, and what
    /// its last scrub has found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Operations since the daemon started.
    pub ops: BTreeMap<String, OpFacts>,
}

impl LunView {
    /// What is wrong with it, and what else its administrator should know, where there is some.
    pub fn sentences(&self) -> impl Iterator<Item = (&'static str, String)> {
        let all = [("findings", &self.findings), ("notices", &self.notices)];
        let some = all.into_iter().filter(|(_, said)| !said.is_empty());
        some.map(|(what, said)| (what, said.join("\n")))
    }

    /// On which members of its pool it lies, where that has some.
    #[must_use]
    pub fn lies_on(&self) -> Option<String> {
        let numbers: Vec<String> = self.members.iter().map(u16::to_string).collect();
        match numbers.as_slice() {
            [] => None,
            [one] => Some(format!("{one} of its pool: it is lost with that one alone")),
            all => Some(format!(
                "{} of its pool: it is lost with any of them",
                all.join(", ")
            )),
        }
    }

    /// The first names of those that are lost with a member, and how many more they are.
    #[must_use]
    pub fn names_on(member: Option<u16>, all: &[Self]) -> String {
        let lies = |lun: &&Self| member.is_some_and(|member| lun.members.contains(&member));
        let names = all.iter().filter(lies).map(|lun| lun.name.as_str());
        let names: Vec<&str> = names.collect();
        match names.split_at_checked(NAMES_SHOWN) {
            Some((first, rest)) if !rest.is_empty() => {
                format!("{} and {} more", first.join(", "), rest.len())
            }
            _ => names.join(", "),
        }
    }

    /// State and reason of an online or offline LUN.
    #[must_use]
    pub fn state_of(state: &LunState) -> (String, Option<String>) {
        match state {
            LunState::Online => ("online".to_owned(), None),
            LunState::Offline(reason) => ("offline".to_owned(), Some(reason.clone())),
        }
    }
}

/// A target as it was asked for, and where hosts reach it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct TargetView {
    /// Unique among targets; a rename changes it and not the iSCSI name.
    pub name: String,
    /// Its iSCSI name.
    pub iqn: String,
    /// The name of the group in `node.toml`.
    pub portal_group: String,
    /// Where it can be reached now.
    pub portals: Vec<String>,
    /// Where logins are sent instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Redirect>,
    /// Logins are refused for now, and sessions are asked to log out.
    #[serde(default)]
    pub maintenance: bool,
    /// How long sessions have to log out when it goes into maintenance, in seconds.
    pub maintenance_grace_seconds: u16,
    /// How many sessions it has.
    pub sessions: usize,
}

impl TargetView {
    /// As a request that changes nothing.
    #[must_use]
    pub fn to_spec(&self) -> TargetSpec {
        TargetSpec {
            name: self.name.clone(),
            iqn: Some(self.iqn.clone()),
            portal_group: Some(self.portal_group.clone()),
            redirect: self.redirect.clone(),
            maintenance: self.maintenance,
            maintenance_grace_seconds: Some(self.maintenance_grace_seconds),
        }
    }
}

/// A host: its initiators, how they prove themselves, and their sessions.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct HostView {
    /// Unique among hosts.
    pub name: String,
    /// Its initiators' names.
    pub iqn: Vec<String>,
    /// Its CHAP, without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap: Option<ChapView>,
    /// The most bytes that the commands of each of its sessions may hold at a time, where there is
    /// a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_in_flight_max: Option<Size>,
    /// How many sessions it has.
    pub sessions: usize,
    /// Whether it is connected, and by how many paths: as the alert `host_single_path` counts.
    #[serde(default)]
    pub redundancy: Redundancy,
}

/// CHAP without secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct ChapView {
    /// The user that the initiator names.
    pub user: String,
    /// The user that the target names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutual_user: Option<String>,
}

impl ChapView {
    /// As a request that keeps the stored secrets.
    #[must_use]
    pub fn to_spec(&self) -> ChapSpec {
        ChapSpec {
            user: self.user.clone(),
            secret: SecretSpec::Stored,
            mutual_user: self.mutual_user.clone(),
            mutual_secret: self.mutual_user.as_ref().map(|_| SecretSpec::Stored),
        }
    }
}

/// Which host may use which LUN through which target.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct GrantView {
    /// Its name: `host:target:lun`.
    pub name: String,
    /// Who may.
    pub host: String,
    /// Through which target.
    pub target: String,
    /// The name of the LUN that may be used.
    pub lun: String,
    /// The number by which the host knows the LUN.
    pub lun_id: u16,
    /// The host may not write.
    pub read_only: bool,
}

/// What a change did, or would do.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Outcome {
    /// It was done; `false` for a dry run, and where nothing had to change.
    pub changed: bool,
    /// The generation that is in force.
    pub generation: u64,
    /// The steps.
    pub actions: Vec<Action>,
    /// What the administrator should know of what was made, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// A dry run: why it would be refused unless forced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

/// A generation of the objects that is kept.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Kept {
    /// Its number.
    pub generation: u64,
    /// When it was stored.
    pub written: String,
    /// The node serves it now.
    pub in_force: bool,
    /// LUNs in service.
    pub luns: usize,
    /// Removed LUNs that keep their data.
    pub removed: usize,
    /// How many targets it has.
    pub targets: usize,
    /// How many hosts it has.
    pub hosts: usize,
    /// How many grants it has.
    pub grants: usize,
    /// Why it cannot be used, where it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Kept {
    /// What a stored generation holds.
    #[must_use]
    pub fn of(document: &Document, in_force: bool) -> Self {
        let objects = &document.objects;
        Self {
            generation: document.generation,
            written: document.written.clone(),
            in_force,
            luns: objects.luns.len(),
            removed: objects.removed.len(),
            targets: objects.targets.len(),
            hosts: objects.hosts.len(),
            grants: objects.grants.len(),
            problem: None,
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use serde_json::json;

    #[test]
    fn addresses_that_other_machines_reach_are_named_before_the_first_password_is_changed() {
        let status = |portals: &[&str], api: &[&str]| -> StatusView {
            let portal = |at: &&str| json!({ "group": "g", "tag": 1, "address": at });
            let portals: Vec<_> = portals.iter().map(portal).collect();
            serde_json::from_value(json!({
                "health": "ok", "problems": [], "node": "n", "node_id": "", "version": "", "started": "", "generation": 1,
                "portals": portals, "api": api, "pools": [],
                "counts": { "luns": 0, "luns_offline": 0, "luns_removed": 0, "targets": 0, "hosts": 0, "grants": 0, "sessions": 0 },
            }))
            .expect("a status")
        };
        let closed = status(
            &["127.0.0.1:3260", "[::1]:3260"],
            &[
                "unix:/run/a.sock",
                "http://127.0.0.1:8480",
                "https://[::1]:1",
            ],
        );
        assert_eq!(closed.open_early(), None);
        let open = status(&["192.0.2.2:3260"], &["https://0.0.0.0:8443"]);
        let said = open.open_early().expect("both are");
        assert!(
            said.starts_with("192.0.2.2:3260, 0.0.0.0:8443 are reached by other machines"),
            "{said}"
        );
        assert!(
            said.contains("causeway user set admin --password"),
            "{said}"
        );
        let mut away = status(&["192.0.2.2:3260"], &[]);
        assert!(away.open_early().expect("it is").contains(" is reached "));
        away.portals[0].problem = Some("not there".to_owned());
        assert_eq!(away.open_early(), None, "nothing listens there");
    }
}
