//! What is remembered of what a receiver was sent.

use crate::severity::Severity;
use crate::time::moment;
use serde::{Deserialize, Serialize};
use units::WallClock;

/// When a receiver was sent an alert last.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Mark {
    /// The moment by the wall clock: it outlives the daemon.
    #[serde(with = "moment")]
    pub at: WallClock,
    /// How bad it was then.
    pub severity: Severity,
}
