//! The clock and the randomness of a thread that is no core.

use manifest::time::rfc3339;
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::time::{ClockId, clock_gettime};
use units::WallClock;

/// Now (RFC 3339).
pub(crate) fn now() -> String {
    let at = clock_gettime(ClockId::Realtime);
    let seconds = u64::try_from(at.tv_sec).unwrap_or(0);
    let rest = u64::try_from(at.tv_nsec).unwrap_or(0);
    rfc3339(WallClock(
        seconds.saturating_mul(1_000_000_000).saturating_add(rest),
    ))
}

/// Fills `bytes` from the system's generator.
///
/// # Panics
/// The system has no randomness: nothing of what would be made would be secret.
pub(crate) fn random(bytes: &mut [u8]) {
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match getrandom(rest, GetRandomFlags::empty()) {
            Ok(more) => filled += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("the system's generator of randomness: {error}"),
        }
    }
}
