//! What a restart hits, and what lies in a pool: pure.

use super::SessionBrief;
use crate::objects::{Lun, Objects};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// How many LUNs are named in a line.
const NAMED_MAX: usize = 5;

/// A host that is hit: what it has in flight waits until it has logged in again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct HostHit {
    /// The host's name.
    pub host: String,
    /// Discoveries are among them.
    pub sessions: Vec<SessionBrief>,
    /// LUNs that it reaches over them.
    pub luns: Vec<String>,
}

impl fmt::Display for HostHit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<String> = self.sessions.iter().map(|it| it.id.to_string()).collect();
        let word = if ids.len() == 1 {
            "session"
        } else {
            "sessions"
        };
        write!(f, "host {}: {word} {}", self.host, ids.join(", "))?;
        if self.luns.is_empty() {
            return write!(f, ", no LUN");
        }
        let named = self.luns.iter().take(NAMED_MAX).map(String::as_str);
        let named = named.collect::<Vec<&str>>().join(", ");
        let word = if self.luns.len() == 1 { "LUN" } else { "LUNs" };
        write!(f, ", {word} {named}")?;
        match self.luns.len().saturating_sub(NAMED_MAX) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// By host: what the end of all sessions hits.
#[must_use]
pub fn hosts_hit(objects: &Objects, sessions: &[SessionBrief]) -> Vec<HostHit> {
    let mut hosts: BTreeMap<&str, (Vec<SessionBrief>, BTreeSet<&str>)> = BTreeMap::new();
    for session in sessions {
        let (theirs, luns) = hosts.entry(&session.host).or_default();
        theirs.push(session.clone());
        let target = session.target.as_deref();
        let grants = objects.grants.keys();
        let grants =
            grants.filter(|key| key.host == session.host && Some(key.target.as_str()) == target);
        luns.extend(grants.map(|key| key.lun.as_str()));
    }
    let hit = |(host, (mut sessions, luns)): (&str, (Vec<SessionBrief>, BTreeSet<&str>))| {
        sessions.sort();
        HostHit {
            host: host.to_owned(),
            sessions,
            luns: luns.into_iter().map(str::to_owned).collect(),
        }
    };
    hosts.into_iter().map(hit).collect()
}

/// What lies in a pool and would be served no longer without it, a line each.
#[must_use]
pub fn lies_in(objects: &Objects, pool: &str, sessions: &[SessionBrief]) -> Vec<String> {
    let of_pool = |lun: &&(&String, &Lun)| lun.1.backing.pool() == Some(pool);
    let hosts = hosts_hit(objects, sessions);
    let served = objects.luns.iter();
    let served = served.collect::<Vec<_>>();
    let served = served.iter().filter(of_pool).map(|(name, lun)| {
        let using = hosts.iter().filter(|it| it.luns.contains(name));
        let using: Vec<&str> = using.map(|it| it.host.as_str()).collect();
        let using = match using.as_slice() {
            [] => "no host is logged in".to_owned(),
            hosts => format!("logged in: {}", hosts.join(", ")),
        };
        format!("LUN {name}, {}: {using}", lun.size)
    });
    let removed = objects.removed.iter().collect::<Vec<_>>();
    let removed = removed.iter().filter(of_pool).map(|(name, lun)| {
        let size = lun.size;
        format!("LUN {name}, {size}: it was deleted, and keeps its data until `causeway lun purge {name}`")
    });
    served.chain(removed).collect()
}
