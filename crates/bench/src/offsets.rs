//! Where the next operation goes.
//!
//! Offsets are relative to the region of the target that a run uses. As in diskspd a sequential
//! stream that cannot place another whole block before the end begins again at the start.

use crate::options::{Access, Zone, ZoneExtent};
use crate::random::Random;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A zone with its part of the region.
#[derive(Clone, Copy, Debug)]
struct Band {
    /// Operations of a hundred that go here or before.
    upto: u64,
    /// First offset.
    first: u64,
    /// Blocks that begin in it.
    places: u64,
}

/// The offsets of one thread's operations on one target.
pub(crate) struct Offsets {
    block: u64,
    /// Bytes of the region.
    length: u64,
    access: Access,
    bands: Vec<Band>,
    next: u64,
    /// How often the same offset is still to be given (`-p`).
    repeat: (u32, u32),
    shared: Option<Arc<AtomicU64>>,
}

impl Offsets {
    /// `start` is where a sequential stream begins; `outstanding` how many operations share an
    /// offset with `-p`.
    pub(crate) fn new(
        access: Access,
        zones: &[Zone],
        (block, length): (u64, u64),
        start: u64,
        outstanding: u32,
        shared: Arc<AtomicU64>,
    ) -> Self {
        assert!(block > 0 && block <= length, "a region holds a block");
        let (interlocked, alignment) = match access {
            Access::Sequential { interlocked, .. } => (interlocked, block),
            Access::Random { alignment, .. } => (false, alignment),
        };
        let fits = start % length;
        Self {
            block,
            length,
            access,
            bands: bands(zones, block, length, alignment),
            next: if fits + block <= length { fits } else { 0 },
            repeat: (outstanding, 0),
            shared: interlocked.then_some(shared),
        }
    }

    /// The next offset.
    pub(crate) fn next(&mut self, random: &mut Random) -> u64 {
        match self.access {
            Access::Sequential {
                stride, parallel, ..
            } => self.sequential(stride, parallel),
            Access::Random { alignment, percent } => {
                let at = if percent == 100 || random.below(100) < u64::from(percent) {
                    self.random(alignment, random)
                } else {
                    self.next
                };
                self.next = at + self.block;
                if self.next + self.block > self.length {
                    self.next = 0;
                }
                at
            }
        }
    }

    fn sequential(&mut self, stride: u64, parallel: bool) -> u64 {
        if let Some(shared) = &self.shared {
            let turns = (self.length - self.block) / stride + 1;
            return shared.fetch_add(1, Ordering::Relaxed) % turns * stride;
        }
        let at = self.next;
        if parallel {
            self.repeat.1 += 1;
            if self.repeat.1 < self.repeat.0 {
                return at;
            }
            self.repeat.1 = 0;
        }
        self.next = at + stride;
        if self.next + self.block > self.length {
            self.next = 0;
        }
        at
    }

    fn random(&self, alignment: u64, random: &mut Random) -> u64 {
        if self.bands.is_empty() {
            let places = (self.length - self.block) / alignment + 1;
            return random.below(places) * alignment;
        }
        let dice = random.below(100);
        let band = self.bands.iter().find(|band| dice < band.upto);
        let band = band.or(self.bands.last()).expect("there are bands");
        band.first + random.below(band.places) * alignment
    }
}

fn bands(zones: &[Zone], block: u64, length: u64, alignment: u64) -> Vec<Band> {
    let (mut at, mut upto) = (0u64, 0u64);
    let mut bands = Vec::new();
    for zone in zones {
        let bytes = match zone.extent {
            ZoneExtent::Percent(percent) => share(length, percent),
            ZoneExtent::Bytes(bytes) => bytes,
            ZoneExtent::Rest => length.saturating_sub(at),
        };
        upto += u64::from(zone.io_percent);
        let first = at.div_ceil(alignment) * alignment;
        let end = at.saturating_add(bytes).min(length);
        at = end;
        // An operation begins in its zone, and may reach over its end, but not over the region's.
        let last = end.min((length - block) + 1);
        if first < last && zone.io_percent > 0 {
            let places = (last - 1 - first) / alignment + 1;
            bands.push(Band {
                upto,
                first,
                places,
            });
        }
    }
    bands
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a hundredth times at most a hundred"
)]
fn share(length: u64, percent: u8) -> u64 {
    (u128::from(length) * u128::from(percent) / 100) as u64
}

#[cfg(test)]
mod test {
    use super::*;

    fn places(access: Access, zones: &[Zone], block: u64, length: u64) -> Offsets {
        Offsets::new(access, zones, (block, length), 0, 2, Arc::default())
    }

    fn take(places: &mut Offsets, count: usize) -> Vec<u64> {
        let mut random = Random::new(1);
        (0..count).map(|_| places.next(&mut random)).collect()
    }

    #[test]
    fn a_sequential_stream_strides_and_begins_again_before_it_would_reach_over_the_end() {
        let access = |stride, parallel| Access::Sequential {
            stride,
            interlocked: false,
            parallel,
        };
        let mut plain = places(access(4, false), &[], 4, 10);
        assert_eq!(take(&mut plain, 4), [0, 4, 0, 4]);
        let mut strided = places(access(3, false), &[], 2, 9);
        assert_eq!(take(&mut strided, 5), [0, 3, 6, 0, 3]);
        let mut parallel = places(access(4, true), &[], 4, 12);
        assert_eq!(take(&mut parallel, 7), [0, 0, 4, 4, 8, 8, 0]);
    }

    #[test]
    fn interlocked_threads_share_one_stream() {
        let shared = Arc::new(AtomicU64::new(0));
        let access = Access::Sequential {
            stride: 4,
            interlocked: true,
            parallel: false,
        };
        let make = || Offsets::new(access, &[], (4, 16), 0, 1, Arc::clone(&shared));
        let (mut one, mut other) = (make(), make());
        let mut random = Random::new(1);
        let taken = [
            one.next(&mut random),
            other.next(&mut random),
            one.next(&mut random),
        ];
        assert_eq!(taken, [0, 4, 8]);
        assert_eq!(take(&mut other, 2), [12, 0]);
    }

    #[test]
    fn random_places_are_aligned_inside_and_all_of_them_come() {
        let access = Access::Random {
            alignment: 4,
            percent: 100,
        };
        let mut all = take(&mut places(access, &[], 8, 40), 1000);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all, [0, 4, 8, 12, 16, 20, 24, 28, 32]);
    }

    #[test]
    fn a_mixture_goes_on_from_the_last_place_as_often_as_was_asked() {
        let access = Access::Random {
            alignment: 4,
            percent: 30,
        };
        let taken = take(&mut places(access, &[], 4, 4 << 20), 100_000);
        let follows = taken
            .windows(2)
            .filter(|pair| pair[1] == pair[0] + 4)
            .count();
        // 70 000 expected, standard deviation 145.
        assert!((69_000..71_000).contains(&follows), "{follows}");
    }

    #[test]
    fn zones_get_their_share_of_operations() {
        let zones = [
            Zone {
                io_percent: 90,
                extent: ZoneExtent::Percent(10),
            },
            Zone {
                io_percent: 0,
                extent: ZoneExtent::Percent(10),
            },
            Zone {
                io_percent: 10,
                extent: ZoneExtent::Rest,
            },
        ];
        let access = Access::Random {
            alignment: 1,
            percent: 100,
        };
        let taken = take(&mut places(access, &zones, 1, 1000), 100_000);
        let in_first = taken.iter().filter(|at| **at < 100).count();
        let in_second = taken.iter().filter(|at| (100..200).contains(*at)).count();
        assert!((89_000..91_000).contains(&in_first), "{in_first}");
        assert_eq!(in_second, 0);
        assert!(taken.iter().all(|at| *at < 1000));
    }
}
