//! The clock and the randomness of the API's thread, which is no core.

use accounts::Moment;
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::time::{ClockId, clock_gettime};
use units::{Now, WallClock};

/// Now, by both clocks.
pub(crate) fn now() -> Moment {
    let nanoseconds = |clock| {
        let at = clock_gettime(clock);
        let (seconds, rest) = (u64::try_from(at.tv_sec), u64::try_from(at.tv_nsec));
        let seconds = seconds.unwrap_or(0).saturating_mul(1_000_000_000);
        seconds.saturating_add(rest.unwrap_or(0))
    };
    Moment {
        steady: Now(nanoseconds(ClockId::Monotonic)),
        wall: WallClock(nanoseconds(ClockId::Realtime)),
    }
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
