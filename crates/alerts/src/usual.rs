//! What is usual for a LUN: how long its reads and its writes take in busy minutes.
//!
//! Each busy minute adds the mean of its operations to a histogram of a quarter of an octave a
//! bucket; the usual latency is its median. So single bad minutes move nothing, quiet ones are not
//! counted, and it forgets by busy minutes only: a LUN that slept for a fortnight is known as it
//! was before. Old minutes count half after three busy days; a LUN that has become slower for good
//! is usual so after about as long.
//!
//! A minute is busy by many operations, or by few that hosts waited for through half of it: one
//! host that does one after the other gets no more done than the LUN is fast. What has not ended
//! counts with its age, so that a LUN where nothing ends at all is no quiet one.

use crate::facts::Done;
use crate::time::Moment;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use units::Now;

/// What a minute weighs when it comes.
const WEIGHT: u32 = 16;

/// At so many minutes all of them count half from then on.
const MINUTES_MAX: u32 = 2 * 3 * 1_440;

/// A minute.
const MINUTE: Duration = Duration::from_secs(60);

/// As long as operations of a minute together, at least, where they are few.
const WAITED: Duration = Duration::from_secs(30);

/// The longest pause after which what came since is still a minute of its own.
const PAUSE_MAX: Duration = Duration::from_secs(180);

/// So many minutes are the present.
const PRESENT: usize = 5;

/// Of which so many have to be busy.
const BUSY_MIN: usize = 3;

/// The bucket of a latency in microseconds: four an octave.
fn bucket(us: u64) -> u8 {
    let us = us.max(1);
    let octave = 63 - us.leading_zeros();
    let part = if octave >= 2 {
        (us >> (octave - 2)) & 3
    } else {
        (us << (2 - octave)) & 3
    };
    u8::try_from(u64::from(octave) * 4 + part).unwrap_or(u8::MAX)
}

/// The middle of a bucket, in microseconds.
fn middle(bucket: u8) -> u64 {
    let (octave, part) = (u64::from(bucket) / 4, u64::from(bucket) % 4);
    // (4 + part + 1/2) / 4 octaves up.
    ((9 + 2 * part) << octave) / 8
}

/// How long operations take in busy minutes.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(transparent)]
pub(crate) struct Usual(BTreeMap<u8, u32>);

impl Usual {
    fn learn(&mut self, mean_us: u64) {
        *self.0.entry(bucket(mean_us)).or_default() += WEIGHT;
        if self.minutes() >= MINUTES_MAX {
            self.0.values_mut().for_each(|weight| *weight /= 2);
            self.0.retain(|_, weight| *weight > 0);
        }
    }

    /// Of so many busy minutes it is known.
    pub(crate) fn minutes(&self) -> u32 {
        let all = self
            .0
            .values()
            .fold(0, |all: u32, it| all.saturating_add(*it));
        all / WEIGHT
    }

    /// The usual latency in microseconds, where something is known.
    pub(crate) fn median(&self) -> Option<u64> {
        let all: u64 = self.0.values().map(|it| u64::from(*it)).sum();
        let mut seen = 0;
        let half = self.0.iter().find(|(_, weight)| {
            seen += u64::from(**weight);
            seen * 2 >= all
        });
        half.map(|(bucket, _)| middle(*bucket))
    }

    /// It may be one: what a file has is not believed.
    pub(crate) fn is_whole(&self) -> bool {
        let good = |(bucket, weight): (&u8, &u32)| *bucket < 200 && *weight < u32::MAX / 1_000;
        self.0.iter().all(good)
    }
}

/// The operations of one kind of a LUN, minute by minute.
#[derive(Default, Debug)]
pub(crate) struct Series {
    pub(crate) usual: Usual,
    /// What was seen last.
    last: Option<Done>,
    /// The minute that is under way: since when, and what it has.
    minute: Option<(Now, Done)>,
    /// Since when nothing has ended while something was under way.
    hanging: Option<Now>,
    /// The means of the last minutes in microseconds; `None`: a quiet one.
    recent: VecDeque<Option<u64>>,
}

impl Series {
    /// One with what was learned before.
    pub(crate) fn of(usual: Usual) -> Self {
        Self {
            usual,
            ..Self::default()
        }
    }

    /// Takes what was counted so far. A minute with fewer operations than `busy` is a quiet one,
    /// unless they took long.
    pub(crate) fn take(&mut self, done: Done, busy: u64, at: Moment) {
        let since = match self.last.replace(done) {
            // What went back counts from zero: the LUN was opened anew.
            Some(last) if last.count <= done.count && last.us_sum <= done.us_sum => Done {
                count: done.count - last.count,
                us_sum: done.us_sum - last.us_sum,
                ..done
            },
            Some(_) => done,
            None => Done::default(),
        };
        if since.count > 0 || done.under_way == 0 {
            self.hanging = None;
        }
        if done.under_way > 0 {
            // What is under way now began before now.
            self.hanging.get_or_insert(at.steady);
        }
        let Some((begun, sum)) = &mut self.minute else {
            self.minute = Some((at.steady, Done::default()));
            return;
        };
        sum.count += since.count;
        sum.us_sum += since.us_sum;
        let span = at.since(*begun);
        if span < MINUTE {
            return;
        }
        let sum = *sum;
        self.minute = Some((at.steady, Done::default()));
        if span > PAUSE_MAX {
            self.recent.clear();
            self.hanging = self.hanging.map(|_| at.steady);
            return;
        }
        // What has not ended is no knowledge yet of how long it takes.
        if let Some(mean) = mean_of_busy(sum, busy) {
            self.usual.learn(mean);
        }
        // What is younger than that says nothing.
        let age = self.hanging_us(at);
        let is_older = age > sum.us_sum.checked_div(sum.count).unwrap_or(0);
        let all = Done {
            count: sum.count + u64::from(is_older),
            us_sum: sum.us_sum + if is_older { age } else { 0 },
            ..sum
        };
        self.recent.push_back(mean_of_busy(all, busy));
        if self.recent.len() > PRESENT {
            self.recent.pop_front();
        }
    }

    /// For so many microseconds nothing has ended while something was under way: what is under way
    /// is older than that.
    pub(crate) fn hanging_us(&self, at: Moment) -> u64 {
        let age = self.hanging.map(|since| at.since(since).as_micros());
        age.map_or(0, |age| u64::try_from(age).unwrap_or(u64::MAX))
    }

    /// How long operations take now, in microseconds: the median of the last busy minutes; `None`:
    /// too little is done to say so.
    pub(crate) fn present(&self) -> Option<u64> {
        let mut means: Vec<u64> = self.recent.iter().flatten().copied().collect();
        if means.len() < BUSY_MIN {
            return None;
        }
        means.sort_unstable();
        means.get(means.len() / 2).copied()
    }
}

/// The mean of a minute, unless it is a quiet one.
fn mean_of_busy(minute: Done, busy: u64) -> Option<u64> {
    let is_waited_for = u128::from(minute.us_sum) >= WAITED.as_micros();
    let is_busy = minute.count >= busy || is_waited_for;
    let mean = minute.us_sum.checked_div(minute.count);
    mean.filter(|_| is_busy)
}

#[cfg(test)]
mod test {
    use super::*;
    use units::WallClock;

    #[test]
    fn each_latency_has_a_bucket_whose_middle_is_within_an_eighth() {
        for us in (1..5_000).chain([100_000, 1_000_000, 33_000_000]) {
            let middle = middle(bucket(us));
            assert!(
                middle * 8 >= us * 6 && middle * 7 <= us * 9,
                "{us}: {middle}"
            );
        }
        let mut last = 0;
        for us in 1..10_000 {
            assert!(bucket(us) >= last, "{us}");
            last = bucket(us);
        }
    }

    /// Minutes of so many operations with this mean.
    fn run(series: &mut Series, at: &mut u64, done: &mut Done, minutes: u64, count: u64, us: u64) {
        for _ in 0..minutes * 6 {
            *at += 10;
            done.count += count / 6;
            done.us_sum += count / 6 * us;
            let steady = Now(*at * 1_000_000_000);
            let wall = WallClock(steady.0);
            series.take(*done, 60, Moment { steady, wall });
        }
    }

    #[test]
    fn quiet_times_and_single_bad_minutes_change_nothing_of_what_is_usual() {
        let (mut series, mut at, mut done) = (Series::default(), 0, Done::default());
        run(&mut series, &mut at, &mut done, 600, 600, 500);
        let usual = series.usual.median().unwrap();
        assert!((440..=560).contains(&usual), "{usual}");
        run(&mut series, &mut at, &mut done, 2, 0, 0);
        let known = series.usual.clone();
        // A fortnight with a slow operation now and then.
        run(&mut series, &mut at, &mut done, 20_000, 6, 90_000);
        assert_eq!(series.usual, known);
        assert_eq!(series.present(), None, "too little to say anything");
        run(&mut series, &mut at, &mut done, 60, 600, 50_000);
        assert_eq!(series.usual.median(), Some(usual));
        assert_eq!(series.present(), Some(50_000));
        // Two minutes of five say nothing.
        run(&mut series, &mut at, &mut done, 6, 600, 500);
        run(&mut series, &mut at, &mut done, 2, 600, 90_000);
        assert_eq!(series.present(), Some(500));
    }

    #[test]
    fn what_is_slower_for_good_becomes_usual_after_days_and_memory_is_bounded() {
        let (mut series, mut at, mut done) = (Series::default(), 0, Done::default());
        run(&mut series, &mut at, &mut done, 30 * 1_440, 600, 500);
        run(&mut series, &mut at, &mut done, 1_440, 600, 8_000);
        let usual = series.usual.median().unwrap();
        assert!(usual < 600, "a day is not enough: {usual}");
        run(&mut series, &mut at, &mut done, 9 * 1_440, 600, 8_000);
        let usual = series.usual.median().unwrap();
        assert!(usual > 7_000, "ten days are: {usual}");
        assert!(series.usual.minutes() < MINUTES_MAX);
        assert!(series.usual.0.len() <= 8 && series.recent.len() <= PRESENT);
    }

    #[test]
    fn counters_that_begin_anew_and_long_pauses_make_no_minute_that_never_was() {
        let (mut series, mut at, mut done) = (Series::default(), 0, Done::default());
        run(&mut series, &mut at, &mut done, 10, 600, 500);
        done = Done::default();
        run(&mut series, &mut at, &mut done, 10, 600, 500);
        let usual = series.usual.median().unwrap();
        assert!((440..=560).contains(&usual), "{usual}");
        at += 86_400;
        done.count += 1_000_000;
        done.us_sum += 1_000_000 * 90_000;
        run(&mut series, &mut at, &mut done, 1, 600, 500);
        assert_eq!(
            series.present(),
            None,
            "what came before a pause is not the present"
        );
    }
}
