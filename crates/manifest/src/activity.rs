//! What the node does: figures that only grow, for whoever samples them again and again and shows
//! the difference.
//!
//! **Contract.** All figures count from the daemon's start. `started` distinguishes one daemon from
//! the next; `at_us` is the daemon's own clock, so that a rate does not depend on how long an
//! answer is on its way.

use crate::facts::{CoreFacts, LunFacts, LunState, OpFacts, SessionFacts};
use crate::latency::{Latency, Stages};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A list whose members others have as well: in documents it is a list as any other.
mod shared {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::sync::Arc;

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        list: &[Arc<T>],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(list.iter().map(AsRef::as_ref))
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Arc<T>>, D::Error> {
        let list = Vec::deserialize(deserializer)?;
        Ok(list.into_iter().map(Arc::new).collect())
    }
}

/// All that the node does.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct ActivityView {
    /// The node's name.
    pub node: String,
    /// When the daemon started.
    pub started: String,
    /// When these figures were taken, in microseconds of the daemon's own clock.
    pub at_us: u64,
    /// The cores, by number.
    pub cores: Vec<CoreFacts>,
    /// The LUNs in service, by name. One that did nothing may be the same in two moments.
    #[serde(with = "shared")]
    #[schemars(with = "Vec<LunActivity>")]
    pub luns: Vec<Arc<LunActivity>>,
    /// The sessions, by number.
    pub sessions: Vec<SessionActivity>,
}

/// What the node does as a whole, in one document of a size that does not grow with it.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct OverviewView {
    /// The node's name.
    pub node: String,
    /// When the daemon started.
    pub started: String,
    /// When these figures were taken, in microseconds of the daemon's own clock.
    pub at_us: u64,
    /// The cores, by number.
    pub cores: Vec<CoreFacts>,
    /// How many sessions there are.
    pub sessions: u64,
    /// How many LUNs are in service.
    pub luns: u64,
    /// Commands in flight.
    pub in_flight: u64,
    /// Reads of all LUNs in service.
    pub read: OverviewOp,
    /// Their writes.
    pub write: OverviewOp,
    /// Operations that are neither. As all counts it goes back when a LUN goes.
    pub other_ops: u64,
}

/// What operations of a kind do, of all LUNs together.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct OverviewOp {
    /// How many since the daemon started.
    pub ops: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long half of them took at most that ended in the last second; absent: none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_us: Option<u64>,
    /// The same of 99 of 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<u64>,
}

/// What a LUN does.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct LunActivity {
    /// The LUN's name, by which its counters of two moments are compared.
    pub name: String,
    /// It serves.
    pub online: bool,
    /// Commands in flight.
    pub in_flight: u64,
    /// Its reads since the daemon started.
    pub read: OpActivity,
    /// Its writes since the daemon started.
    pub write: OpActivity,
    /// Operations that are neither.
    pub other_ops: u64,
}

/// What operations of a kind do.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct OpActivity {
    /// How many.
    pub ops: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long they took; only the total has buckets.
    pub latency: Stages,
}

impl OpActivity {
    fn of(facts: &OpFacts) -> Self {
        Self {
            ops: facts.ops,
            bytes: facts.bytes,
            latency: Stages {
                total: facts.latency.total.clone(),
                ..facts.latency.summary()
            },
        }
    }
}

/// What a session does.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct SessionActivity {
    /// Its number.
    pub id: u64,
    /// The host that it belongs to.
    pub host: String,
    /// The initiator's iSCSI name.
    pub initiator: String,
    /// The target; absent in a discovery session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The initiator's address.
    pub from: String,
    /// The portal's address.
    #[serde(default)]
    pub portal: String,
    /// The core that serves it.
    pub core: u16,
    /// How much of its core's time goes to it now, in thousandths.
    pub load_permille: u16,
    /// Commands in flight.
    pub in_flight: u64,
    /// Commands so far.
    pub commands: u64,
    /// Bytes from the initiator.
    pub bytes_in: u64,
    /// Bytes to the initiator.
    pub bytes_out: u64,
    /// How long its reads and writes took.
    pub latency: Latency,
}

impl LunActivity {
    /// What a LUN of this name did.
    #[must_use]
    pub fn of(name: &str, facts: &LunFacts) -> Self {
        let op = |name: &str| facts.ops.get(name).map(OpActivity::of).unwrap_or_default();
        let others = facts
            .ops
            .iter()
            .filter(|(op, _)| !["read", "write"].contains(&op.as_str()));
        Self {
            name: name.to_owned(),
            online: facts.state == LunState::Online,
            in_flight: facts.in_flight,
            read: op("read"),
            write: op("write"),
            other_ops: others.map(|(_, facts)| facts.ops).sum(),
        }
    }
}

impl SessionActivity {
    /// What a session did.
    #[must_use]
    pub fn of(facts: SessionFacts) -> Self {
        Self {
            id: facts.id,
            host: facts.host,
            initiator: facts.initiator,
            target: facts.target,
            from: facts.from,
            portal: facts.portal,
            core: facts.core,
            load_permille: facts.load_permille,
            in_flight: facts.in_flight,
            commands: facts.commands,
            bytes_in: facts.bytes_in,
            bytes_out: facts.bytes_out,
            latency: facts.latency,
        }
    }
}
