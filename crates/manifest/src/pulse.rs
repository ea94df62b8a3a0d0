//! What somebody needs who reads a node every second: far less work for it than the whole facts.
//!
//! **Contract.** Figures are those of [`activity`](crate::activity). Sessions that ended are listed
//! one after the other: a session shorter than the time between two samples is none the less there,
//! unless more than [`Ended::lost`] says ended in between.

use crate::activity::{LunActivity, SessionActivity};
use crate::facts::LunState;
use crate::latency::Latency;
use crate::objects::ReadCacheFacts;
use crate::scrub::ScrubFacts;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::Histogram;

/// What is wanted of a pulse.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Asked {
    /// Where to go on with the sessions that ended: 0, or what the last pulse named.
    pub ended_since: u64,
    /// How long each stage took as well, with its buckets. It costs as much as all the rest.
    pub stages: bool,
}

/// How long the stages of one kind of commands took, as they are counted.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StageTimes {
    /// From the first byte until the socket had the answer.
    pub total: Histogram,
    /// Waiting for the host's bytes, and for the socket to take the answer.
    pub network: Histogram,
    /// Waiting for admission, holds, memory.
    pub queue: Histogram,
    /// What the storage took.
    pub backend: Histogram,
}

/// How long the stages of a LUN's reads and writes took.
pub type LunStages = [StageTimes; 2];

/// How long the commands of a session took, since it began.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Transfers {
    /// From the command's first byte to the answer's last.
    pub read: Latency,
    /// The same, with the time that the data took to come.
    pub write: Latency,
}

/// How a LUN is, and what it does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LunPulse {
    /// What it does, with its name: that of the pulse before where nothing changed.
    pub activity: Arc<LunActivity>,
    /// Whether it serves.
    pub state: LunState,
    /// Its scrub, where it ever had one.
    pub scrub: Option<ScrubFacts>,
    /// What its read cache did, where it has one.
    pub cached: Option<ReadCacheFacts>,
}

/// A session that is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndedSession {
    /// Its number.
    pub id: u64,
    /// The host that it belonged to; empty where there is none any more.
    pub host: String,
    /// The initiator's iSCSI name.
    pub initiator: String,
    /// The target; absent where it was a discovery.
    pub target: Option<String>,
    /// The initiator's address.
    pub from: String,
    /// Why it ended, in words.
    pub reason: String,
}

/// Sessions that are over.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Ended {
    /// In the order in which they ended.
    pub sessions: Vec<EndedSession>,
    /// Where to go on: what the next question names.
    pub next: u64,
    /// How many ended in between and are not known any more.
    pub lost: u64,
}

/// What the data plane says to whoever watches every second.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Pulse {
    /// The LUNs in service, by name.
    pub luns: Vec<LunPulse>,
    /// How long the stages of their commands took, in their order; empty unless asked for.
    pub stages: Vec<LunStages>,
    /// The sessions, by number.
    pub sessions: Vec<SessionActivity>,
    /// How long their commands took, by the session's number.
    pub transfers: BTreeMap<u64, Transfers>,
    /// Sessions that ended since the place that was named.
    pub ended: Ended,
}
