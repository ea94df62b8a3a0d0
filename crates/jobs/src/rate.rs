//! How fast something goes, and how long it will take.

use std::time::Duration;
use units::Now;

/// So long a step of the measurement takes at least.
const STEP: Duration = Duration::from_millis(500);

/// What of the rate is the last step's, in percent: a few steps after a change the new rate shows.
const NEW_PERCENT: u64 = 30;

/// How fast something goes: a moving mean.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Rate {
    last: Option<(Now, u64)>,
    per_second: u64,
}

impl Rate {
    /// So much was done at a moment.
    pub fn take(&mut self, at: Now, done: u64) {
        let Some((before, had)) = self.last else {
            self.last = Some((at, done));
            return;
        };
        let millis = at.0.saturating_sub(before.0) / 1_000_000;
        if u128::from(millis) < STEP.as_millis() {
            return;
        }
        let now = done.saturating_sub(had).saturating_mul(1_000) / millis;
        self.per_second = if self.per_second == 0 {
            now
        } else {
            let parts = |rate: u64, percent: u64| rate / 100 * percent + rate % 100 * percent / 100;
            parts(self.per_second, 100 - NEW_PERCENT) + parts(now, NEW_PERCENT)
        };
        self.last = Some((at, done));
    }

    /// So much a second.
    #[must_use]
    pub fn per_second(&self) -> u64 {
        self.per_second
    }

    /// Seconds until `left` is done at this rate; `None`: nobody can say.
    #[must_use]
    pub fn seconds_left(&self, left: u64) -> Option<u64> {
        let whole = left.checked_div(self.per_second)?;
        Some(whole + u64::from(!left.is_multiple_of(self.per_second)))
    }
}
