//! How fast copies are brought up, by what hosts notice of it.
//!
//! ```text
//!   pause: as soon as hosts work, and now and then: how long do they wait without it? --> base
//!   work:  p99 above what may be --> slower;  below --> faster
//!          nobody works here     --> as fast as it goes
//! ```
//!
//! Never below a floor: it comes to its end whatever hosts do. Pure: time and what hosts waited
//! are said to it.

use crate::latency::Waited;
use std::time::Duration;
use units::Now;

/// How often it is said what hosts waited.
pub(crate) const SPAN: Duration = Duration::from_millis(250);

/// So many operations say what hosts wait;
const ENOUGH: u64 = 300;

/// where there are fewer, those of so long do.
const LONG_ENOUGH: Duration = Duration::from_secs(1);

/// With fewer in that time nobody notices anything.
const NOBODY: u64 = 20;

/// How long a pause is,
const PAUSE: Duration = Duration::from_millis(500);

/// and how long it works between them.
const WORK: Duration = Duration::from_secs(15);

/// Hundredths of the base from which on it slows down, and up to which it gets faster.
const TOO_LONG: u32 = 115;
const SHORT: u32 = 108;

/// Bytes in a second: at least, to begin with where hosts work, and without a limit.
const FLOOR: u64 = 4 << 20;
const BEGINS: u64 = 32 << 20;
const FASTEST: u64 = 1 << 40;

/// It never gets slower than this part of what it was at its fastest.
const FLOOR_PART: u64 = 20;

/// How long hosts wait without it, by what was known and what a pause has shown: single pauses
/// scatter, but what is far off is another work of hosts.
fn base(before: Duration, shown: Duration) -> Duration {
    if shown * 10 > before * 13 || shown * 13 < before * 10 {
        return shown;
    }
    (before * 3 + shown) / 4
}

enum Phase {
    /// Nothing is done, to learn how long hosts wait.
    Pause {
        until: Now,
    },
    Work {
        until: Now,
    },
}

pub(crate) struct Throttle {
    phase: Phase,
    /// How long hosts wait without it.
    base: Option<Duration>,
    /// Bytes in a second that may be done.
    rate: u64,
    /// When the next ones may be.
    next: Now,
    /// What hosts waited since something was decided, how long that is, and bytes done in it.
    since: Now,
    waited: Waited,
    done: u64,
    /// The most that was done in a second.
    best: u64,
}

impl Throttle {
    /// It begins at once: where there is little to do, it is done before anybody notices.
    pub(crate) fn new(now: Now) -> Self {
        Self {
            phase: Phase::Work {
                until: now.after(WORK),
            },
            base: None,
            rate: BEGINS,
            next: now,
            since: now,
            waited: Waited::default(),
            done: 0,
            best: 0,
        }
    }

    /// When so many bytes more may be done, if not now: it is asked again then.
    pub(crate) fn may(&mut self, now: Now, bytes: u64) -> Option<Now> {
        if let Phase::Pause { until } = self.phase
            && now < until
        {
            return Some(until);
        }
        if now < self.next {
            return Some(self.next);
        }
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.rate);
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        self.next = self.next.max(now).after(Duration::from_nanos(nanos));
        self.done += bytes;
        None
    }

    /// What hosts waited since that was said last.
    pub(crate) fn hosts_waited(&mut self, now: Now, waited: Waited) {
        // The longest of several spans: what one of them shows is not hidden by the others.
        self.waited.operations += waited.operations;
        self.waited.p99 = self.waited.p99.max(waited.p99);
        match self.phase {
            Phase::Pause { until } if now >= until => {
                let all = self.waited;
                if all.operations >= NOBODY {
                    self.base = Some(self.base.map_or(all.p99, |it| base(it, all.p99)));
                }
                let until = now.after(WORK);
                self.goes_on(now, Phase::Work { until });
            }
            Phase::Pause { .. } => {}
            Phase::Work { until } => self.works(now, until),
        }
    }

    fn works(&mut self, now: Now, until: Now) {
        let span = now.since(self.since);
        let is_known = self.waited.operations >= ENOUGH || span >= LONG_ENOUGH;
        if !is_known {
            return;
        }
        let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX).max(1);
        self.best = self.best.max(self.done * 1000 / millis);
        let nobody = self.waited.operations < NOBODY;
        self.rate = match self.base {
            _ if nobody => self.rate.saturating_mul(2),
            // Hosts have begun to work: what they wait without it is to be learned first.
            None => {
                let until = now.after(PAUSE);
                return self.goes_on(now, Phase::Pause { until });
            }
            Some(base) if self.waited.p99 * 100 > base * TOO_LONG => self.rate * 7 / 10,
            Some(base) if self.waited.p99 * 100 <= base * SHORT => self.rate * 11 / 10,
            Some(_) => self.rate,
        };
        let floor = FLOOR.max(self.best / FLOOR_PART);
        self.rate = self.rate.clamp(floor, FASTEST);
        let pauses = now >= until && !nobody;
        let next = match pauses {
            true => Phase::Pause {
                until: now.after(PAUSE),
            },
            false => Phase::Work { until },
        };
        self.goes_on(now, next);
    }

    fn goes_on(&mut self, now: Now, next: Phase) {
        self.phase = next;
        (self.since, self.waited, self.done) = (now, Waited::default(), 0);
    }
}

#[cfg(test)]
mod test {
    use super::*;

    /// Hosts that wait longer the more is copied, and somebody who copies as much as may be.
    struct Plant {
        now: Now,
        throttle: Throttle,
        copied: u64,
        /// How long hosts waited in each span of work, in hundredths of the base.
        seen: Vec<u32>,
    }

    const PIECE: u64 = 256 << 10;

    impl Plant {
        fn new() -> Self {
            let now = Now(1_000_000_000);
            let throttle = Throttle::new(now);
            Self {
                now,
                throttle,
                copied: 0,
                seen: Vec::new(),
            }
        }

        /// A span: `hosts` operations that take `base` alone, and more by `slowed` of the rate.
        fn span(&mut self, hosts: u64, base: Duration, slowed: impl Fn(u64) -> u32, most: u64) {
            let ends = self.now.after(SPAN);
            let mut copied = 0;
            while self.now < ends {
                match self.throttle.may(self.now, PIECE) {
                    Some(at) => self.now = at.min(ends),
                    None => {
                        copied += PIECE;
                        let nanos = PIECE * 1_000_000_000 / most;
                        self.now = self.now.after(Duration::from_nanos(nanos));
                    }
                }
            }
            self.copied += copied;
            let slowed = slowed(copied * 4);
            let p99 = base * (100 + slowed) / 100;
            if copied > 0 {
                self.seen.push(100 + slowed);
            }
            let operations = hosts;
            self.throttle
                .hosts_waited(self.now, Waited { operations, p99 });
        }
    }

    /// Twice as long at so many bytes a second.
    fn linear(per_second: u64) -> impl Fn(u64) -> u32 {
        move |rate| u32::try_from(rate * 100 / per_second).unwrap()
    }

    #[test]
    fn hosts_wait_a_fifth_longer_at_most_and_nearly_as_much_is_copied_as_may_be() {
        let base = Duration::from_micros(800);
        // A tenth more at so many bytes a second: from slow disks to fast ones.
        for tenth in [8 << 20, 100 << 20, 1 << 30_u64] {
            let mut plant = Plant::new();
            for _ in 0..1200 {
                plant.span(2000, base, linear(tenth * 10), 4 << 30);
            }
            let settled = &plant.seen[plant.seen.len() / 4..];
            let too_long = settled.iter().filter(|it| **it > 120).count();
            assert!(too_long * 100 < settled.len(), "{tenth}: {too_long}");
            // 300 s.
            let could = tenth * 300;
            assert!(plant.copied * 10 > could * 7, "{tenth}: {}", plant.copied);
        }
    }

    #[test]
    fn it_goes_as_fast_as_it_can_where_nobody_works_and_slows_down_when_somebody_does() {
        let mut plant = Plant::new();
        for _ in 0..60 {
            plant.span(0, Duration::ZERO, |_| 0, 2 << 30);
        }
        let alone = plant.copied / 15;
        assert!(alone > 1 << 30, "{alone} bytes in a second");
        plant.seen.clear();
        for _ in 0..400 {
            plant.span(500, Duration::from_millis(1), linear(200 << 20), 2 << 30);
        }
        let late = &plant.seen[plant.seen.len() / 2..];
        // The floor is a twentieth of what it can.
        let most = late.iter().copied().max().unwrap();
        assert!(most < 160, "{most}");
    }

    #[test]
    fn it_comes_to_its_end_however_long_hosts_wait() {
        let mut plant = Plant::new();
        let slow = Duration::from_secs(5);
        for _ in 0..400 {
            plant.span(2000, slow, |rate| if rate > 0 { 900 } else { 0 }, 4 << 30);
        }
        let least = FLOOR * 100 * 9 / 10;
        assert!(plant.copied >= least, "{}", plant.copied);
    }

    #[test]
    fn what_hosts_wait_by_themselves_is_not_taken_for_its_own_doing() {
        let mut plant = Plant::new();
        let tenth = 100 << 20;
        for _ in 0..400 {
            plant.span(
                2000,
                Duration::from_micros(500),
                linear(tenth * 10),
                4 << 30,
            );
        }
        // They work on something slower from now on.
        let before = plant.copied;
        for _ in 0..1200 {
            plant.span(2000, Duration::from_millis(4), linear(tenth * 10), 4 << 30);
        }
        let then = plant.copied - before;
        assert!(then * 2 > tenth * 300, "{then}");
    }
}
