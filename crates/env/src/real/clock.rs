//! The clocks of the system, and what steers the wall clock.

#![expect(unsafe_code, reason = "adjtimex fills a structure by pointer")]

use rustix::time::ClockId;
use units::WallClock;

/// adjtimex(2): nobody steers it.
const STA_UNSYNC: libc::c_int = 0x40;

/// See [`crate::Core::clock_is_steered`].
pub(super) fn is_steered() -> Option<bool> {
    // SAFETY: all bytes zero are a valid `timex`, which is made of integers; `modes` 0 only asks.
    let mut reported: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `reported` is exclusively ours and has the layout that the call fills.
    let state = unsafe { libc::adjtimex(&raw mut reported) };
    (state >= 0).then_some(reported.status & STA_UNSYNC == 0)
}

/// The time, for threads that are no core's.
#[must_use]
pub fn wall_clock() -> WallClock {
    WallClock(clock(ClockId::Realtime))
}

/// The clock of [`crate::Core::now`]. Promises to other machines are counted by it, so it goes on
/// while this one sleeps: the others did not.
pub(super) const STEADY: ClockId = ClockId::Boottime;

/// What a clock says, in nanoseconds.
pub(super) fn clock(id: ClockId) -> u64 {
    let time = rustix::time::clock_gettime(id);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}
