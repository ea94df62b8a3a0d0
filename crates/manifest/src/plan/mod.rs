//! From what is, and what is wanted, to what will be done: a pure function, so that `--dry-run` and
//! the real thing are one.
//!
//! ```text
//!   Objects + Edit --wanted--> Objects after --compare--> actions, each with class and hits
//! ```
//!
//! **Contract.** A plan is all or nothing. Each action says whether it works live, for new sessions
//! only, or disturbs sessions, and which. Actions that disturb sessions or lose data are refused
//! unless forced ([`Plan::refusal`]).

mod adopt;
mod choice;
mod compare;
mod elsewhere;
mod going;
mod losing;
mod only;
mod removed;
mod rollback;
mod single;
mod wanted;

pub use losing::{HostHit, hosts_hit, lies_in};

use crate::code::Code;
use crate::objects::{ObjectSet, Objects, Patch, PoolBrief, Redirect};
use crate::problem::Problem;
use crate::size::{Size, rounded};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use units::text::counted;

pub use adopt::Adopted;
pub use compare::{LunChanges, lun_changes};
pub use elsewhere::{Elsewhere, ElsewhereWhat};
pub use going::none_in;
pub use only::export_only;

/// A change that someone asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Edit {
    /// Bring the objects to what the set says; with `prune`, remove all others. A removed LUN that
    /// it names comes back, without `prune` with the grants that waited for it.
    Apply {
        /// What is wanted.
        set: ObjectSet,
        /// Whether what is not in it goes away.
        prune: bool,
    },
    /// The same for a part of the set: some objects, their grants, and what these name and is not
    /// there. With `prune`, what goes is of that part, too.
    ApplyOnly {
        /// What is wanted.
        set: ObjectSet,
        /// Which of it is meant; not empty.
        only: Vec<Subject>,
        /// Whether those that are not in it go away, and grants of theirs that are not in it.
        prune: bool,
    },
    /// Make objects that must not exist yet.
    Create(ObjectSet),
    /// Change objects that must exist.
    Set(ObjectSet),
    /// Change a part of one object; the rest is what it is then.
    Patch(Patch),
    /// Remove one object; a LUN or host or target goes with its grants, and a LUN keeps its data.
    Remove(Subject),
    /// Bring a removed LUN back into service.
    Restore(String),
    /// Destroy a removed LUN's data.
    Purge(String),
    /// Take storage of LUNs into service that no object names.
    Adopt {
        /// What they are.
        adopted: Vec<Adopted>,
        /// What is to be known of it, one sentence each.
        notices: Vec<String>,
    },
    /// Make the copy here of a LUN that another node of the cluster has made.
    Copy(Box<Adopted>),
    /// Do with a LUN what the nodes of the cluster have agreed.
    Elsewhere(Box<Elsewhere>),
    /// Go back to the objects of an earlier generation, without losing data.
    RollBack(Box<Objects>),
    /// Give an object another name; nothing that hosts see changes.
    Rename {
        /// Which object.
        subject: Subject,
        /// Its new name.
        to: String,
    },
}

/// One object, by kind and name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subject {
    /// `lun`, `target`, `host` or `grant`.
    pub section: Section,
    /// Its name; of a grant `host:target:lun`.
    pub name: String,
}

/// The kinds of objects.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Debug,
)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// A LUN.
    Lun,
    /// A target.
    Target,
    /// A host.
    Host,
    /// A grant.
    Grant,
}

impl Section {
    /// What it is called everywhere.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lun => crate::objects::SECTION_LUN,
            Self::Target => crate::objects::SECTION_TARGET,
            Self::Host => crate::objects::SECTION_HOST,
            Self::Grant => crate::objects::SECTION_GRANT,
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the plan must know of the world besides the objects.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Surroundings {
    /// The names of the node's pools.
    pub pools: Vec<String>,
    /// Those of them that have a journal.
    pub journals: Vec<String>,
    /// Those that make stable whatever they acknowledge, without one.
    pub stable: Vec<String>,
    /// The names of the node's portal groups.
    pub portal_groups: Vec<String>,
    /// The node's own addresses, each with its portal group.
    pub portals: Vec<(String, SocketAddr)>,
    /// The sessions that are logged in.
    pub sessions: Vec<SessionBrief>,
    /// LUNs that their pools have seen larger than they are, by NAA identifier, and how large.
    pub seen_larger: BTreeMap<String, Size>,
}

impl Surroundings {
    /// What storage fields need to know of the pool of this name.
    pub(crate) fn pool<'a>(&self, name: &'a str) -> PoolBrief<'a> {
        PoolBrief {
            name,
            has_journal: self.journals.iter().any(|it| it == name),
            is_stable: self.stable.iter().any(|it| it == name),
        }
    }
}

/// The portal of this node where a redirect ends, which would send the initiator away again for
/// ever.
#[must_use]
pub fn leads_back<'a>(
    redirect: &Redirect,
    portals: &'a [(String, SocketAddr)],
) -> Option<&'a (String, SocketAddr)> {
    let (host, port) = redirect.to.rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    let address: Option<IpAddr> = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse()
        .ok();
    // A domain name is the initiator's to resolve; one is known everywhere (RFC 6761 6.3 "Domain
    // Name Reservation Considerations for 'localhost.'").
    let near = address.map_or(host.eq_ignore_ascii_case("localhost"), |ip| {
        ip.is_loopback()
    });
    portals.iter().find(|(_, portal)| {
        let ip = portal.ip();
        let same = address == Some(ip)
            || near && (ip.is_unspecified() || address.is_none() && ip.is_loopback());
        same && portal.port() == port
    })
}

/// A session, as far as a plan needs it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Debug)]
pub struct SessionBrief {
    /// Its number.
    pub id: u64,
    /// The host that it belongs to.
    pub host: String,
    /// The initiator's iSCSI name.
    pub initiator: String,
    /// The target; absent in a discovery session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Bytes that went over it in the last second, in both directions, where that was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
}

impl fmt::Display for SessionBrief {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = self.target.as_deref().unwrap_or("discovery");
        let (id, host, initiator) = (self.id, &self.host, &self.initiator);
        write!(
            f,
            "session {id}: host {host} ({initiator}) on target {target}"
        )?;
        match self.bytes_per_second {
            None => Ok(()),
            Some(0) => f.write_str(", idle now"),
            Some(bytes) => write!(f, ", {}/s now", rounded(bytes)),
        }
    }
}

/// When a change comes into force.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Debug,
)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// At once, no session notices more than a unit attention.
    Live,
    /// With the next login; sessions go on as they are.
    NewSessions,
    /// At once, and sessions lose something.
    Disruptive,
}

/// What is done to an object.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// It is made.
    Create,
    /// It comes back into service.
    Restore,
    /// Its storage was there, and no object named it.
    Adopt,
    /// Properties change.
    Change,
    /// Its name changes.
    Rename,
    /// It is removed.
    Remove,
    /// Its data is destroyed.
    Purge,
}

/// One step of a plan.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Action {
    /// Whether the object is made, changed, removed and so on.
    pub verb: Verb,
    /// To which kind of object.
    pub section: Section,
    /// The object's name.
    pub name: String,
    /// The properties, in words; may be empty.
    pub detail: String,
    /// When it comes into force.
    pub class: Class,
    /// The sessions that it hits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hits: Vec<SessionBrief>,
    /// It destroys data that may still be wanted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loses_data: bool,
    /// It gives up a promise that writes are safe; the detail names the risk.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub risks_data: bool,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.verb {
            Verb::Create => "create",
            Verb::Restore => "restore",
            Verb::Adopt => "adopt",
            Verb::Change => "change",
            Verb::Rename => "rename",
            Verb::Remove => "remove",
            Verb::Purge => "purge",
        };
        write!(f, "{verb} {} {}", self.section, self.name)?;
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        match self.class {
            Class::Live => Ok(()),
            Class::NewSessions => write!(f, " [new sessions]"),
            Class::Disruptive => write!(f, " [disruptive]"),
        }
    }
}

/// What will be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The steps, in order.
    pub actions: Vec<Action>,
    /// What else is to be known of it, one sentence each.
    pub notices: Vec<String>,
    /// The objects afterwards.
    pub after: Objects,
}

impl Plan {
    /// Why the plan needs to be forced; `None` where it does not.
    #[must_use]
    pub fn refusal(&self) -> Option<Problem> {
        let refused = |action: &&Action| {
            action.loses_data
                || action.risks_data
                || (action.class == Class::Disruptive && !action.hits.is_empty())
        };
        let refused: Vec<&Action> = self.actions.iter().filter(refused).collect();
        let first = refused.first()?;
        let mut hits: Vec<&SessionBrief> = refused.iter().flat_map(|action| &action.hits).collect();
        hits.sort();
        hits.dedup();
        let code = if !hits.is_empty() {
            Code::InUse
        } else if refused.iter().any(|action| action.loses_data) {
            Code::WouldLoseData
        } else {
            Code::WouldRiskData
        };
        let more = match refused.len() {
            1 => String::new(),
            many => format!(" and {} more", many - 1),
        };
        let sessions = match hits.len() {
            0 => String::new(),
            many => format!(", {}", counted(many as u64, "session")),
        };
        let rates = hits.iter().map(|hit| hit.bytes_per_second);
        let rate: Option<u64> = rates.sum();
        let rate = rate.filter(|bytes| *bytes > 0);
        let rate = rate.map_or_else(String::new, |bytes| {
            format!(" with {}/s now", rounded(bytes))
        });
        let problem = Problem::new(code, format!("not done: {first}{more}{sessions}{rate}"));
        let problem = problem.hits(hits.iter().map(ToString::to_string).collect());
        let losing: Vec<&&Action> = refused.iter().filter(|it| it.loses_data).collect();
        Some(match losing.as_slice() {
            [] => problem,
            [only] => problem.confirm(&only.name, vec![only.to_string()]),
            [_, ..] => problem.confirm(
                CONFIRM_MANY,
                losing.iter().map(ToString::to_string).collect(),
            ),
        })
    }
}

/// What is typed where several things lose data at once.
pub const CONFIRM_MANY: &str = "lose all of this";

/// Fills memory with random bytes.
pub type Random<'r> = &'r mut dyn FnMut(&mut [u8]);

/// What `edit` will do to `current`.
///
/// # Errors
/// Rules that the result would break, names that do not exist or exist already. Refusals for safety
/// are not errors here: see [`Plan::refusal`].
pub fn plan(
    current: &Objects,
    edit: &Edit,
    around: &Surroundings,
    random: Random<'_>,
) -> Result<Plan, Problem> {
    let after = wanted::wanted(current, edit, around, random)?;
    let mut notices = removed::lost(current, edit, &after);
    let mut actions = if let Edit::RollBack(then) = edit {
        notices.extend(rollback::roll_back(current, then).1);
        let before = rollback::renamed(current, &after);
        compare::compare(&before, &after, around)
    } else if let Edit::Elsewhere(_) = edit {
        compare::compare(&rollback::renamed(current, &after), &after, around)
    } else {
        compare::compare(current, &after, around)
    };
    if let Edit::Adopt {
        notices: reported, ..
    } = edit
    {
        notices.extend(reported.iter().cloned());
        for action in &mut actions {
            action.verb = Verb::Adopt;
            // What it is was chosen before.
            action.risks_data = false;
        }
    }
    if let Edit::Rename { subject, to } = edit {
        // By content nothing changed but names, which a comparison would read as remove and create.
        actions = vec![Action {
            verb: Verb::Rename,
            section: subject.section,
            name: subject.name.clone(),
            detail: format!("to {to}"),
            class: Class::Live,
            hits: Vec::new(),
            loses_data: false,
            risks_data: false,
        }];
    }
    Ok(Plan {
        actions,
        notices,
        after,
    })
}

/// A new LUN's identity: NAA type 6h with a locally administered company identifier, then 100
/// random bits; and a serial number of 64 random bits.
///
/// spec: SPC-4 7.8.6.6.6 "NAA IEEE Registered Extended designator format". The second-lowest bit of
/// the company identifier's first octet is set, so no registered vendor's identifier can ever be
/// equal, and hosts that key on vendors' prefixes see none.
fn new_identity(random: Random<'_>) -> (String, String) {
    let mut bytes = [0_u8; 21];
    random(&mut bytes);
    let hex = units::hex(&bytes);
    let (naa, serial) = hex.split_at(26);
    (local_naa(&naa[..25]), serial.to_owned())
}

/// The identifier of a LUN with these 25 hexadecimal digits behind the locally administered company
/// identifier.
#[must_use]
pub fn local_naa(digits: &str) -> String {
    format!("6{LOCAL_COMPANY}{digits}")
}

const LOCAL_COMPANY: &str = "02ca5e";

#[cfg(test)]
mod test;
