//! What the rules are asked about: how the node is at one moment.

use crate::object::Object;
use crate::severity::Severity;
use manifest::facts::{PoolFacts, StallFacts};
use manifest::scrub::ScrubFacts;
use units::WallClock;

/// How the node is.
#[derive(Clone, Default, Debug)]
pub struct Facts {
    /// The hosts that the objects name.
    pub hosts: Vec<HostSeen>,
    /// Sessions that ended since the facts before, in the order in which they did.
    pub ended: Vec<EndedSeen>,
    /// More ended than anybody knows.
    pub ended_lost: bool,
    /// The targets that the objects name.
    pub targets: Vec<TargetSeen>,
    /// The LUNs in service, offline ones included.
    pub luns: Vec<LunSeen>,
    /// The pools, with their journals.
    pub pools: Vec<PoolFacts>,
    /// Where the node is to listen.
    pub portals: Vec<PortalSeen>,
    /// What the objects name and hosts do not find.
    pub unserved: Vec<Finding>,
    /// What has an end.
    pub certificates: Vec<Ending>,
    /// What is wrong with disks.
    pub disks: Vec<Finding>,
    /// What is wrong with files that the node keeps of itself.
    pub records: Vec<Finding>,
    /// How often each LUN is scrubbed by itself, in days.
    pub scrub_every_days: Option<u32>,
}

/// A host with the sessions that it has.
#[derive(Clone, Default, Debug)]
pub struct HostSeen {
    /// The host's name.
    pub name: String,
    /// It may use some LUN.
    pub is_granted: bool,
    /// Its sessions with targets; none for discovery.
    pub paths: Vec<Path>,
}

/// A session with a target that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndedSeen {
    /// The host that it belonged to.
    pub host: String,
    /// The host wanted it to end.
    pub logged_out: bool,
}

/// A session, as a path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Path {
    /// The number of the session.
    pub session: u64,
    /// The initiator's name: several machines may be one host.
    pub initiator: String,
    /// The target's name.
    pub target: String,
    /// The initiator's address, without its port.
    pub from: String,
    /// The portal's address.
    pub portal: String,
}

/// A target, and where it can be reached.
#[derive(Clone, Default, Debug)]
pub struct TargetSeen {
    /// The target's name.
    pub name: String,
    /// Addresses that listen.
    pub portals: Vec<String>,
}

/// Operations of a kind since the daemon started.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Done {
    /// How many have ended.
    pub count: u64,
    /// How long these took together, in microseconds.
    pub us_sum: u64,
    /// How many have not.
    pub under_way: u64,
}

/// A LUN in service, offline ones included.
#[derive(Clone, Default, Debug)]
pub struct LunSeen {
    /// The LUN's name.
    pub name: String,
    /// What stays when it is renamed: its NAA identifier.
    pub key: String,
    /// What it stands on, for people.
    pub below: String,
    /// Why it is offline, where it is.
    pub offline: Option<String>,
    /// Its storage has stopped answering.
    pub stalled: Option<StallFacts>,
    /// Reads, the time from the first byte until the answer.
    pub read: Done,
    /// Writes, the same.
    pub write: Done,
    /// The scrub that runs, or the last one.
    pub scrub: Option<ScrubFacts>,
    /// What is known to be damaged, one sentence each.
    pub damage: Vec<String>,
    /// What is not as it should be of its copies on several nodes.
    pub copies: Option<String>,
}

/// A place where the node is to listen.
#[derive(Clone, Default, Debug)]
pub struct PortalSeen {
    /// With the port.
    pub address: String,
    /// The portal group that it belongs to.
    pub group: String,
    /// Why it does not listen, where it does not.
    pub problem: Option<String>,
}

/// Something that has an end.
#[derive(Clone, Debug)]
pub struct Ending {
    /// What it is, such as `api`.
    pub name: String,
    /// Where it is, for people.
    pub place: String,
    /// When it ends.
    pub at: WallClock,
    /// What is done about it.
    pub next_step: String,
}

/// What somebody else has found to be wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What the finding is of.
    pub object: Object,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in a sentence with figures.
    pub cause: String,
    /// The next step for the administrator.
    pub next_step: String,
}
