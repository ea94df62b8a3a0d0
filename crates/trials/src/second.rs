//! What a load does in a second, and how links are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Paths of a second that are kept.
pub(crate) const PATHS_MAX: usize = 64;

/// Which part of a run it is.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Its target is opened, and filled where that was asked for.
    Starting,
    /// It runs, and nothing counts yet.
    WarmUp,
    /// It counts.
    Measuring,
    /// It runs, and nothing counts any more.
    CoolDown,
    /// What was measured is put together.
    Ending,
}

/// One path in one second.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct PathSecond {
    /// Host port and target port.
    pub path: String,
    /// The address that it goes out from.
    pub from: String,
    /// The target's.
    pub portal: String,
    /// `active`, `standby`, `down` and so on, as `causeway path ls` has it.
    pub state: String,
    /// Why it is so, where that is worth a word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Operations a second.
    pub iops: f64,
    /// Bytes a second, reads and writes together.
    pub bytes_per_second: f64,
    /// Segments that TCP sent again in this second.
    pub retransmits: u64,
}

/// What was done in one second.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Second {
    /// Counted from the start, from 1.
    pub second: u64,
    /// What it belongs to.
    pub phase: Phase,
    /// Seconds from the start to its end.
    pub elapsed: f64,
    /// Seconds from the start to the end of the run.
    pub whole: f64,
    /// Operations a second.
    pub iops: f64,
    /// Reads a second; absent while nothing counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_iops: Option<f64>,
    /// Writes a second; absent while nothing counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_iops: Option<f64>,
    /// Bytes a second, reads and writes together.
    pub bytes_per_second: f64,
    /// Operations that failed since the start.
    pub errors: u64,
    /// The median of latencies in microseconds; absent where nothing ended that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_us: Option<f64>,
    /// 99 of 100 were not longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<f64>,
    /// The longest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_us: Option<f64>,
    /// Each path, where the target has some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathSecond>,
}

/// What a link is made to be.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct LinkOrder {
    /// Which one, as the bed lists it.
    pub link: String,
    /// How it shall be.
    pub state: LinkState,
}

/// How a link is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// As it was built.
    #[default]
    Up,
    /// The cable is pulled: both ends lose the carrier.
    Cut,
    /// The switch forwards nothing, and neither end is notified.
    BlackHole,
    /// It carries 10 Mb/s.
    Slow,
}

impl LinkState {
    /// The word for people.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Cut => "cut",
            Self::BlackHole => "a black hole",
            Self::Slow => "slow",
        }
    }
}
