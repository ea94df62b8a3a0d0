//! Figures: what a hop at the waist costs, and what an I/O costs beside another target, always in one run.

pub mod client;
pub mod compare;
pub mod waist;

use std::time::Instant;

/// The real clock.
#[expect(clippy::disallowed_methods, reason = "figures are about real time")]
pub(crate) fn clock() -> Instant {
    Instant::now()
}
