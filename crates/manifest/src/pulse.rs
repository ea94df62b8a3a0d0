//! What somebody needs who reads a node every second: far less work for it than the whole facts.
//!
//! **Contract.** Figures are those of [`activity`](crate::activity). Sessions that ended are listed
//! one after the other: a session shorter than the time between two samples is none the less there,
//! unless more than [`Ended::lost`] says ended in between.

use crate::activity::{LunActivity, SessionActivity};
use crate::facts::{LunState, StallFacts};
use crate::latency::Latency;
use crate::objects::{MirrorFacts, ReadCacheFacts};
use crate::scrub::ScrubFacts;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use units::Histogram;
use units::histogram::{BUCKETS, Counts};

/// Of which LUNs somebody watches what they do.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Watched {
    /// Of none.
    #[default]
    Nothing,
    /// Of those of these names.
    Some(Arc<BTreeSet<String>>),
    /// Of all.
    All,
}

impl Watched {
    /// Somebody watches the LUN of this name, or all.
    #[must_use]
    pub fn has(&self, lun: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Some(names) => names.contains(lun),
            Self::All => true,
        }
    }
}

/// What is wanted of a pulse.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Asked {
    /// Where to go on with the sessions that ended: 0, or what the last pulse named.
    pub ended_since: u64,
    /// How long each stage took as well, of what came since this was asked for last.
    pub stages: bool,
    /// The figures of the second: [`Pulse::luns`]. What has come since the pulse before is news for
    /// one alone who asks again and again.
    pub figures: bool,
    /// What these LUNs do as a document has it: [`Pulse::documents`], for whoever watches.
    pub documents: Watched,
}

/// What the commands of one kind did. All but `took` counts from the daemon's start.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct OpFigures {
    /// Operations that the storage was given.
    pub ops: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What the storage took for them, in microseconds, but for those that a journal answered.
    pub backend_us: u64,
    /// What a journal took for those that it answered, in microseconds.
    pub journal_us: u64,
    /// What hosts asked for, which may be several operations each or none.
    pub commands: u64,
    /// What they waited for bytes to come or to go, in microseconds.
    pub network_us: u64,
    /// What they waited for their turn, in microseconds.
    pub queue_us: u64,
    /// p50 and p99 in microseconds of the commands since the pulse before; `None` where none came.
    pub took: Option<[u64; 2]>,
}

/// What a LUN did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LunFigures {
    /// Commands in flight.
    pub in_flight: u64,
    /// READ, and the operations of that kind.
    pub read: OpFigures,
    /// WRITE and WRITE ATOMIC, and the operations of that kind.
    pub write: OpFigures,
    /// Operations that are neither.
    pub other_ops: u64,
}

/// How long the stages of one kind of commands took that came since this was asked for last: p50
/// and p99 in microseconds, `None` where none did.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StageFigures {
    /// From the first byte until the socket had the answer: how many, by bucket.
    pub total: Counts,
    /// Waiting for the host's bytes, and for the socket to take the answer.
    pub network: Option<[u64; 2]>,
    /// Waiting for admission, holds, memory.
    pub queue: Option<[u64; 2]>,
    /// What a journal took for writes that it answered.
    pub journal: Option<[u64; 2]>,
    /// What the storage took for all others.
    pub backend: Option<[u64; 2]>,
}

/// How long the stages of a LUN's reads and writes took.
pub type LunStages = [StageFigures; 2];

/// How long the stages of a session's reads and writes took that came since this was asked for
/// last: how many of each bucket, of network, queue, journal and backend. Of many commands a part
/// was counted, each for several.
pub type SampledStages = [Option<Box<[[u32; BUCKETS]; 4]>>; 2];

/// A session that did something, which may be over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionStages {
    /// The host that it belongs to; empty where there is none any more.
    pub host: String,
    /// The name of the one that it logged in to; empty where that is gone.
    pub target: Option<String>,
    /// How long its stages took.
    pub stages: SampledStages,
}

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
    /// Its name: the very same as in the pulse before, mostly.
    pub name: Arc<str>,
    /// Its NAA identifier: another LUN that gets the same name has another one.
    pub naa: Arc<str>,
    /// Counted by all cores together.
    pub figures: LunFigures,
    /// Whether it serves.
    pub state: LunState,
    /// Its scrub, where it ever had one.
    pub scrub: Option<Box<ScrubFacts>>,
    /// What its read cache did, where it has one.
    pub cached: Option<ReadCacheFacts>,
    /// Its storage has stopped answering.
    pub stalled: Option<StallFacts>,
    /// How its copies are, where it has some on several nodes.
    pub mirror: Option<Box<MirrorFacts>>,
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
    /// The LUNs in service, by name; empty unless figures were asked for.
    pub luns: Vec<LunPulse>,
    /// How long reads and writes of all of them took that came since the pulse before. The sums are
    /// not known.
    pub together: [Histogram; 2],
    /// What the LUNs do that were asked for, in their order. One is that of the pulse before where
    /// nothing changed.
    pub documents: Vec<Arc<LunActivity>>,
    /// How long the stages of their commands took, in their order; empty unless asked for.
    pub stages: Vec<LunStages>,
    /// The same of all of them together: total, network, queue, journal and backend. The sums are
    /// not known.
    pub stages_together: [[Histogram; 5]; 2],
    /// The sessions, by number.
    pub sessions: Vec<SessionActivity>,
    /// How long their commands took, by the session's number.
    pub transfers: BTreeMap<u64, Transfers>,
    /// How long the stages of sessions' commands took, of those that had some; empty unless asked
    /// for.
    pub session_stages: Vec<SessionStages>,
    /// Sessions that ended since the place that was named.
    pub ended: Ended,
}
