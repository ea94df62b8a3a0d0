//! One path as policies see it.

use super::estimate::Estimate;
use super::model::Settings;
use std::time::Duration;
use units::Now;

/// One path's bookings.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) settings: Settings,
    pub(crate) in_flight: u32,
    /// Commands whose time was taken that have ended, however, and the time that they took
    /// together.
    pub(crate) ended: u64,
    pub(crate) took: Duration,
    pub(crate) bytes: u64,
    pub(crate) bytes_reading: u64,
    pub(crate) bytes_writing: u64,
    pub(crate) estimate: Estimate,
    /// Since when it has had something in flight.
    pub(crate) begun: Now,
    /// Adaptive: seconds of silence with something in flight, if they are many.
    pub(crate) silent: f64,
    /// Adaptive: what this decision's command would cost here.
    pub(crate) cost: f64,
    /// When it was last used: a count of commands, not time.
    pub(crate) last_used: u64,
    /// weighted-share: what it is owed.
    pub(crate) credit: i64,
    /// Additive increase, multiplicative decrease: commands in flight, in thousandths.
    pub(crate) window: u64,
}

impl Slot {
    pub(crate) fn is_full(&self) -> bool {
        (u64::from(self.in_flight) + 1) * 1000 > self.window
    }

    pub(crate) fn most(&self) -> u64 {
        u64::from(self.settings.window.max(1)) * 1000
    }
}
