//! Time as a value that is handed in, never asked for.

use core::time::Duration;

/// Monotonic time in nanoseconds since an arbitrary start that is fixed for one process (or one
/// simulation). Only differences mean anything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Now(pub u64);

impl Now {
    /// The start of time.
    pub const ZERO: Self = Self(0);

    /// The moment `span` later; saturates at the end of time (584 years).
    #[must_use]
    pub const fn after(self, span: Duration) -> Self {
        let nanos = span.as_nanos();
        if nanos >= u64::MAX as u128 {
            return Self(u64::MAX);
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "compared with u64::MAX just above"
        )]
        Self(self.0.saturating_add(nanos as u64))
    }

    /// How long ago `earlier` was; zero if it is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Wall-clock time in nanoseconds since 1970-01-01T00:00:00Z. For logs and stored events only: it
/// may jump, so nothing is ever scheduled by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct WallClock(pub u64);

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn time_saturates_instead_of_wrapping() {
        assert_eq!(Now(u64::MAX).after(Duration::from_secs(1)), Now(u64::MAX));
        assert_eq!(Now(5).since(Now(9)), Duration::ZERO);
        assert_eq!(Now(9).since(Now(5)), Duration::from_nanos(4));
    }
}
