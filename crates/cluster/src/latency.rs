//! How long hosts of a node's LUNs wait, while something asks.
//!
//! Each power of two of nanoseconds has sixteen counts, so that a figure is a sixteenth too high at
//! most: what is read from it is compared with itself, a fifth more or less.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Counts of each power of two, as a power of two.
const EACH_BITS: u32 = 4;

/// Shorter times count as this power of two of nanoseconds,
const SHORTEST: u32 = 10;

/// and longer ones as this one: 17 s.
const LONGEST: u32 = 34;

const COUNTS: usize = ((LONGEST - SHORTEST) as usize) << EACH_BITS;

/// What hosts have waited in a span of time.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Waited {
    /// How many operations were answered.
    pub(crate) operations: u64,
    /// All but a hundredth took no longer.
    pub(crate) p99: Duration,
}

/// Counts of how long operations took, of all cores.
pub(crate) struct Latencies {
    is_on: AtomicBool,
    counts: Box<[AtomicU32]>,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            is_on: AtomicBool::new(false),
            counts: (0..COUNTS).map(|_| AtomicU32::new(0)).collect(),
        }
    }
}

fn place(took: Duration) -> usize {
    let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    let nanos = nanos.clamp(1 << SHORTEST, (1 << LONGEST) - 1);
    let power = nanos.ilog2();
    let within = (nanos >> (power - EACH_BITS)) & ((1 << EACH_BITS) - 1);
    let within = usize::try_from(within).expect("it is below 16");
    (((power - SHORTEST) as usize) << EACH_BITS) + within
}

/// What belongs to a place took no longer.
fn bound(place: usize) -> Duration {
    let (power, within) = (place >> EACH_BITS, place & ((1 << EACH_BITS) - 1));
    let width = 1_u64 << (power + (SHORTEST - EACH_BITS) as usize);
    Duration::from_nanos(((1 << EACH_BITS) + within as u64 + 1) * width)
}

impl Latencies {
    /// Somebody asks from now on, or nobody any more.
    pub(crate) fn turn(&self, is_on: bool) {
        self.take();
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// An operation took so long.
    pub(crate) fn add(&self, took: Duration) {
        self.counts[place(took)].fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted since this was asked last.
    pub(crate) fn take(&self) -> Waited {
        let counts = self.counts.iter().map(|it| it.swap(0, Ordering::Relaxed));
        let counts: Vec<u64> = counts.map(u64::from).collect();
        let operations: u64 = counts.iter().sum();
        let most = operations - operations / 100;
        let mut below = 0;
        let at = counts.iter().position(|it| {
            below += it;
            *it > 0 && below >= most
        });
        Waited {
            operations,
            p99: at.map_or(Duration::ZERO, bound),
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_hundredth_took_longer_than_what_is_answered_and_it_is_a_sixteenth_too_high_at_most() {
        let latencies = Latencies::default();
        assert_eq!(latencies.take(), Waited::default());
        for scale in [3, 1_000, 77_777] {
            for it in 1..=1000_u64 {
                latencies.add(Duration::from_micros(it * scale));
            }
            let waited = latencies.take();
            assert_eq!(waited.operations, 1000);
            let right = Duration::from_micros(990 * scale);
            if right < Duration::from_secs(17) {
                let most = right + right / 16;
                assert!(waited.p99 >= right && waited.p99 <= most, "{waited:?}");
            }
        }
        assert_eq!(latencies.take().operations, 0, "they count once");
        latencies.add(Duration::ZERO);
        latencies.add(Duration::from_secs(1000));
        assert_eq!(latencies.take().operations, 2, "nothing is beyond the ends");
    }

    #[test]
    fn every_time_lies_below_the_bound_of_its_place_and_not_below_that_of_the_one_before() {
        for nanos in (1024..2_000_000).step_by(331) {
            let took = Duration::from_nanos(nanos);
            let at = place(took);
            assert!(took < bound(at), "{took:?}");
            assert!(at == 0 || took >= bound(at - 1), "{took:?}");
        }
    }
}
