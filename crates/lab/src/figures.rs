//! What `causeway bench -R json` reports, as far as a lab reads it.

use serde::{Deserialize, Serialize};

/// A run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Measured time.
    pub seconds: f64,
    /// What was read; absent where nothing was.
    #[serde(default)]
    pub read: Option<Direction>,
    /// What was written; absent where nothing was.
    #[serde(default)]
    pub write: Option<Direction>,
    /// Both.
    #[serde(default)]
    pub total: Option<Direction>,
    /// Operations that failed.
    pub errors: u64,
    /// Operations that nobody has answered.
    #[serde(default)]
    pub never_returned: u64,
    /// Verification, where asked for.
    #[serde(default)]
    pub verify: Option<Verified>,
    /// The longest time in which nothing came back.
    pub stall_ms_max: f64,
    /// One entry for each path; empty where the initiator cannot say.
    #[serde(default)]
    pub paths: Vec<PathFigures>,
    /// Over time, where asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Interval>,
    /// Segments sent again on both sides, as the kernel counts them.
    #[serde(default)]
    pub segments_again: u64,
}

/// A short time of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Interval {
    /// When it began, in milliseconds from the beginning of the measured time.
    pub ms: f64,
    /// Bytes that came back.
    pub bytes: u64,
    /// The longest latency of what came back, in microseconds.
    pub max_us: f64,
}

/// One direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Direction {
    /// Operations.
    pub ios: u64,
    /// Bytes of operations that ended well.
    pub bytes: u64,
    /// Operations per second.
    pub iops: f64,
    /// Mean over the measured time.
    pub bytes_per_second: f64,
    /// Latency in microseconds.
    pub latency_us: Latency,
}

impl Direction {
    /// MB/s.
    #[must_use]
    pub fn megabytes(&self) -> f64 {
        self.bytes_per_second / 1e6
    }
}

/// Latency in microseconds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Latency {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99 of 100 are faster.
    pub p99: f64,
    /// 999 of 1000 are faster.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// Verification.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Verified {
    /// Blocks that were compared.
    pub checked: u64,
    /// Blocks that were wrong.
    pub bad: u64,
}

/// One path.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PathFigures {
    /// The host's port.
    pub from: String,
    /// The target's portal.
    pub portal: String,
    /// How it was when the run ended.
    pub state: PathState,
    /// Operations.
    pub ios: u64,
    /// Bytes that its operations moved, reads and writes together.
    pub bytes: u64,
    /// Segments that were sent again, where the initiator can say.
    #[serde(default)]
    pub retransmits: u64,
}

/// How a path is, in the words that the initiator reports. A word that is not known fails the run:
/// a diagram must not draw a path as idle because nobody knew its state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathState {
    /// It carries I/O.
    Active,
    /// It is logged in and idle.
    Standby,
    /// It works, and worse than others.
    Marginal,
    /// It is tried before I/O goes over it again.
    Proving,
    /// It logs in.
    Connecting,
    /// Nothing is logged in there.
    #[default]
    Cold,
    /// It failed.
    Down,
    /// It showed another logical unit.
    Quarantined,
    /// An administrator has switched it off.
    Disabled,
}
