//! How a pool fills up: how much room it has, and when it will be full at the rate of late.
//!
//! Figures and times come in, and nothing is asked here.

use std::collections::VecDeque;
use std::time::Duration;
use units::Now;

/// Below this share of free space a pool is low: one part in so many. Above the other one it no
/// longer is.
const LOW: u64 = 10;
const LOW_OVER: u64 = 8;

/// Below this share of free space a pool is as good as full: one part in so many. Above the other
/// one it no longer is.
const FULL: u64 = 100;
const FULL_OVER: u64 = 50;

/// The time over which the rate is measured.
const SPAN_MAX: Duration = Duration::from_secs(3600);

/// A rate of less time is none.
const SPAN_MIN: Duration = Duration::from_secs(60);

/// Samples that are closer are one.
const APART_MIN: Duration = Duration::from_secs(10);

/// A forecast beyond this is none.
const FORECAST_MAX: Duration = Duration::from_secs(365 * 86_400);

/// How much room there is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) enum Level {
    /// Enough.
    #[default]
    Roomy,
    /// Less than a tenth.
    Low,
    /// Less than a hundredth.
    Full,
}

impl Level {
    /// Of a pool of which so many bytes are used and so many may still be, as `df` counts: what
    /// the file system keeps for root is neither.
    pub(crate) fn of(used: u64, free: u64) -> Self {
        let total = used.saturating_add(free);
        if total == 0 || free >= total / LOW {
            Self::Roomy
        } else if free >= total / FULL {
            Self::Low
        } else {
            Self::Full
        }
    }

    /// The same for one that was at `self` before: it leaves a level only when it is well out of
    /// it.
    fn then(self, used: u64, free: u64) -> Self {
        let (now, total) = (Self::of(used, free), used.saturating_add(free));
        match self {
            Self::Full if now < self && free < total / FULL_OVER => self,
            Self::Low if now < self && free < total / LOW_OVER => self,
            Self::Full | Self::Low | Self::Roomy => now,
        }
    }
}

/// What is known of one pool's filling up.
#[derive(Default)]
pub(crate) struct Fill {
    /// When so many bytes were used, oldest first.
    samples: VecDeque<(Now, u64)>,
    level: Level,
}

impl Fill {
    /// So much is used and free now; the new level, where it is another one.
    pub(crate) fn sample(&mut self, now: Now, used: u64, free: u64) -> Option<Level> {
        let newest = self.samples.back().map(|(at, _)| now.since(*at));
        if newest.is_none_or(|age| age >= APART_MIN) {
            self.samples.push_back((now, used));
        }
        // One that is older than the span stays, so that the rest spans it.
        while let Some((second, _)) = self.samples.get(1)
            && now.since(*second) >= SPAN_MAX
        {
            self.samples.pop_front();
        }
        let level = self.level.then(used, free);
        let before = std::mem::replace(&mut self.level, level);
        (before != level).then_some(level)
    }

    /// When the room that is free now is used at the rate of late.
    pub(crate) fn full_in(&self, now: Now, used: u64, free: u64) -> Option<Duration> {
        let (since, before) = self.samples.front()?;
        let span = now.since(*since);
        let grown = used.checked_sub(*before).filter(|grown| *grown > 0)?;
        if span < SPAN_MIN {
            return None;
        }
        let seconds = u128::from(free) * span.as_millis() / u128::from(grown) / 1000;
        let seconds = u64::try_from(seconds).ok()?;
        Some(Duration::from_secs(seconds)).filter(|it| *it <= FORECAST_MAX)
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn at(seconds: u64) -> Now {
        Now::ZERO.after(Duration::from_secs(seconds))
    }

    #[test]
    fn a_pool_is_low_and_full_by_its_free_share_and_reported_once_in_each_direction() {
        let mut fill = Fill::default();
        let reported: Vec<Option<Level>> = [500, 101, 99, 101, 120, 130, 9, 11, 15, 21, 500]
            .iter()
            .map(|free| fill.sample(at(0), 1000 - free, *free))
            .collect();
        let (roomy, low, full) = (Some(Level::Roomy), Some(Level::Low), Some(Level::Full));
        assert_eq!(
            reported,
            [
                None, None, low, None, None, roomy, full, None, None, low, roomy
            ]
        );
        assert_eq!(Level::of(0, 0), Level::Roomy, "nobody knows");
        let of_1000_with_600_for_root = Level::of(340, 60);
        assert_eq!(of_1000_with_600_for_root, Level::Roomy, "df says 85 %");
    }

    #[test]
    fn the_forecast_is_of_the_last_hour_and_of_nothing_that_shrinks_or_rests() {
        let mut fill = Fill::default();
        assert_eq!(fill.full_in(at(0), 0, 100), None);
        // 10 bytes a second for two hours, then 1.
        for second in (0..7200).step_by(10) {
            fill.sample(at(second), second * 10, 0);
        }
        let full = |fill: &Fill, second, used, free| {
            let left = fill.full_in(at(second), used, free);
            left.map(|left| left.as_secs())
        };
        assert_eq!(full(&fill, 7200, 72_000, 9_000), Some(900));
        for second in (7200..14_400).step_by(10) {
            fill.sample(at(second), 72_000 + second - 7200, 0);
        }
        let left = full(&fill, 14_400, 79_200, 9_000).unwrap();
        assert!((8_900..=9_000).contains(&left), "{left}");
        assert_eq!(full(&fill, 14_400, 70_000, 9_000), None, "it shrinks");
        let mut young = Fill::default();
        young.sample(at(0), 0, 1000);
        assert_eq!(
            young.full_in(at(59), 500, 500),
            None,
            "too short for a forecast"
        );
        assert_eq!(full(&young, 60, 500, 500), Some(60));
        assert_eq!(full(&young, 3_600, 1, u64::MAX), None, "not in a year");
    }
}
