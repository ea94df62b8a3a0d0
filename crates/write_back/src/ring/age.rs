//! How long the oldest change has been in the log.

use std::collections::VecDeque;
use std::time::Duration;
use units::Now;

/// Batches that are written within this time have one age.
const GRAIN: Duration = Duration::from_millis(100);

/// Marks that are kept; more are thinned out.
const MARKS_MAX: usize = 1024;

/// When batches were written, from the oldest that is still in the log on.
#[derive(Default)]
pub(crate) struct Ages(VecDeque<(u64, Now)>);

impl Ages {
    /// Batches from this number on are written now, or were before the log was opened.
    pub(crate) fn written(&mut self, number: u64, now: Now) {
        if self.0.back().is_some_and(|(_, at)| now.since(*at) < GRAIN) {
            return;
        }
        if self.0.len() >= MARKS_MAX {
            let mut keep = false;
            self.0.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.0.push_back((number, now));
    }

    /// The age of this batch, a little more at the most.
    pub(crate) fn of(&mut self, number: u64, now: Now) -> Option<Duration> {
        while self.0.get(1).is_some_and(|(next, _)| *next <= number) {
            self.0.pop_front();
        }
        self.0.front().map(|(_, at)| now.since(*at))
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn the_age_of_a_batch_is_right_to_the_grain_and_memory_is_bounded() {
        let at = |ms: u64| Now(0).after(Duration::from_millis(ms));
        let mut ages = Ages::default();
        assert_eq!(ages.of(1, at(0)), None);
        for number in 1..100 {
            ages.written(number, at(number * 10));
        }
        for number in 1..100 {
            let age = ages.of(number, at(2000)).unwrap();
            let real = Duration::from_millis(2000 - number * 10);
            assert!(age >= real && age < real + GRAIN, "{number}: {age:?}");
        }
        // Days in which nothing is destaged.
        for number in 100..20_000 {
            ages.written(number, at(number * 1000));
        }
        assert!(ages.0.len() <= MARKS_MAX, "{}", ages.0.len());
        let age = ages.of(100, at(20_000_000)).unwrap();
        assert!(age >= Duration::from_secs(19_900), "{age:?}");
    }
}
