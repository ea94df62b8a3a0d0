//! How quick a path is, by its own measures.

use std::time::Duration;
use units::Now;

/// From so many bytes on a command is large.
const LARGE: u64 = 32 << 10;
const STALL: Duration = Duration::from_millis(100);
const STALL_FACTOR: u32 = 8;
const QUICK: Duration = Duration::from_millis(50);
/// Stalls closer to each other are one.
const STALLS_APART: Duration = Duration::from_secs(2);
const SLOW_FACTOR: u128 = 10;
const SLOW_MIN: Duration = Duration::from_millis(5);
/// So many commands say what a path is like, and so many that it is suspect.
const MANY: u32 = 8;
const SOME: u32 = 4;
/// So many segments say what share of them is sent again.
const SEGMENTS: u64 = 20;
/// Four classes of latency for each power of two of microseconds.
const BUCKETS: usize = 4 * 32;

/// What the system counts of a path's TCP segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segments {
    /// Sent, since the session began.
    pub sent: u64,
    /// Sent again.
    pub again: u64,
}

/// Latencies of a window.
#[derive(Debug)]
pub(super) struct Window {
    buckets: Box<[u32; BUCKETS]>,
    pub(super) count: u32,
    /// The median of the last window that had enough.
    usual: Option<Duration>,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            buckets: Box::new([0; BUCKETS]),
            count: 0,
            usual: None,
        }
    }
}

/// The class of a latency: its power of two, and the two bits after it.
fn bucket(took: Duration) -> usize {
    let micros = took.as_micros().clamp(4, u128::from(u32::MAX));
    let log = micros.ilog2();
    let fine = (micros >> (log - 2)) & 3;
    usize::try_from(u128::from(log) * 4 + fine).unwrap_or(BUCKETS - 1)
}

/// Where a class ends.
fn end_of(bucket: usize) -> Duration {
    let (log, fine) = (bucket / 4, bucket % 4);
    let micros = (5 + u64::try_from(fine).unwrap_or(0)) << log >> 2;
    Duration::from_micros(micros)
}

impl Window {
    fn add(&mut self, took: Duration) {
        self.buckets[bucket(took)] += 1;
        self.count += 1;
    }

    /// The latency that this share of the commands, in hundredths, did not exceed.
    fn percentile(&self, share: u32) -> Duration {
        let mut left = self.count.saturating_mul(share).div_ceil(100);
        for (at, count) in self.buckets.iter().enumerate() {
            if *count >= left {
                return end_of(at);
            }
            left -= count;
        }
        end_of(BUCKETS - 1)
    }

    pub(super) fn next(&mut self) {
        if self.count >= MANY {
            self.usual = Some(self.percentile(50));
        }
        if self.count > 0 {
            self.buckets.fill(0);
            self.count = 0;
        }
    }
}

/// What was measured of one path.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    pub(super) small: Window,
    pub(super) large: Window,
    pub(super) stalled: Option<Now>,
    /// When something was quick last, and the last long time without.
    pub(super) quick: Option<Now>,
    pub(super) gap: Option<(Now, Now)>,
    pub(super) segments: Segments,
    pub(super) was_slow: bool,
    pub(super) was_retransmitting: bool,
}

impl Gauge {
    /// A session begins.
    pub(super) fn begin(&mut self) {
        self.segments = Segments::default();
    }

    /// A command ended; whether it took so long that it speaks against the path, unless all are
    /// like that.
    pub(super) fn ended(&mut self, bytes: u64, took: Duration, now: Now) -> bool {
        let window = if bytes >= LARGE {
            &mut self.large
        } else {
            &mut self.small
        };
        window.add(took);
        if took < QUICK
            && let Some(before) = self.quick.replace(now)
            && now.since(before) > QUICK
        {
            self.gap = Some((before, now));
        }
        let usual = window.usual;
        took > STALL
            && usual.is_some_and(|usual| took > usual.saturating_mul(STALL_FACTOR))
            && self.stalled.is_none_or(|at| now.since(at) >= STALLS_APART)
    }

    /// It was quick for most of the time between these two.
    pub(super) fn was_quick(&self, begun: Now, ended: Now) -> bool {
        let missing = self.gap.map_or(Duration::ZERO, |(from, to)| {
            to.min(ended).since(from.max(begun).min(to.min(ended)))
        });
        let half = ended.since(begun) / 2;
        let till_now = self.quick.filter(|at| *at > begun);
        till_now.is_some_and(|at| missing < half && ended.since(at.min(ended)) < half)
    }

    pub(super) fn retransmits(&mut self, now: Option<Segments>) -> bool {
        let Some(now) = now else { return false };
        let before = std::mem::replace(&mut self.segments, now);
        let sent = now.sent.saturating_sub(before.sent);
        let again = now.again.saturating_sub(before.again);
        sent >= SEGMENTS && again.saturating_mul(100) > sent
    }
}

/// A latency as it would be on a link of unit speed.
fn scaled(latency: Duration, speed: u64) -> u128 {
    latency.as_micros().saturating_mul(u128::from(speed))
}

/// Whether the first path is slow beside any of the others; each with its speed.
pub(super) fn is_slow(own: (&Window, u64), others: &[(&Window, u64)]) -> bool {
    let (window, speed) = own;
    if window.count < SOME {
        return false;
    }
    let latency = window.percentile(99);
    let best = others.iter().filter(|(it, _)| it.count >= MANY);
    let best = best
        .map(|(it, speed)| scaled(it.percentile(99), *speed))
        .min();
    latency >= SLOW_MIN
        && best.is_some_and(|best| scaled(latency, speed) > best.saturating_mul(SLOW_FACTOR))
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn classes_hold_their_latencies_and_percentiles_are_no_more_than_a_quarter_off() {
        let mut window = Window::default();
        for micros in 1..=1000_u64 {
            let took = Duration::from_micros(micros * 10);
            assert!(took < end_of(bucket(took)) || micros == 1000);
            window.add(took);
        }
        for (share, exact) in [(50, 5_000), (99, 9_900), (100, 10_000)] {
            let reported = window.percentile(share).as_micros();
            assert!(
                (exact..=exact * 5 / 4).contains(&reported),
                "{share}: {reported}"
            );
        }
        assert!(bucket(Duration::from_secs(1 << 40)) < BUCKETS);
        assert!(bucket(Duration::ZERO) < BUCKETS);
    }

    #[test]
    fn a_path_as_slow_as_its_link_is_not_slow() {
        let of = |millis: u64, count: u32| {
            let mut window = Window::default();
            (0..count).for_each(|_| window.add(Duration::from_millis(millis)));
            window
        };
        let (quick, ten) = (of(6, 20), of(70, 20));
        assert!(is_slow((&ten, 100), &[(&quick, 100)]));
        assert!(
            !is_slow((&ten, 10), &[(&quick, 100)]),
            "a tenth of the speed"
        );
        assert!(!is_slow((&ten, 100), &[(&of(6, 7), 100)]), "too few to say");
        assert!(
            !is_slow((&of(4, 20), 100), &[(&of(0, 20), 100)]),
            "fast enough"
        );
    }
}
