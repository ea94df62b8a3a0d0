//! Blocks of commands in flight that change something.
//!
//! They never overlap each other. Whether others overlap them is mostly known without comparing
//! one of them: short ranges count themselves at their places in a small table, and where nothing
//! is counted nothing is held. Else all are compared.

use std::ops::RangeInclusive;
use units::{Lba, LbaRange};

/// Blocks that share a place of the table.
const PLACE_BLOCKS: u64 = 8;
/// Places that a short range has at most.
const SHORT: u64 = 4;
/// Power of two.
const PLACES: u64 = 1024;

/// Blocks that are held. It goes back to [`Held::release`].
#[derive(Debug)]
#[must_use = "the blocks stay held until it comes back"]
pub(super) struct Hold(u32);

#[derive(Clone, Copy, Debug)]
struct Blocks {
    start: u64,
    /// Not before `start`; an empty range is a free place.
    end: u64,
}

const FREE: Blocks = Blocks { start: 0, end: 0 };

#[derive(Clone, Debug)]
pub(super) struct Held {
    blocks: Vec<Blocks>,
    free: Vec<u32>,
    /// How many short ranges are at each place.
    counts: Box<[u32]>,
    /// Ranges that are not in the table.
    long: u32,
}

/// The places of a range, numbered on and on; `None` for a long one.
fn numbers(range: LbaRange) -> Option<RangeInclusive<u64>> {
    let (start, end) = (range.start().0, range.end().0);
    let first = start / PLACE_BLOCKS;
    let last = end.saturating_sub(1) / PLACE_BLOCKS;
    (last.saturating_sub(first) < SHORT).then_some(first..=last)
}

impl Held {
    pub(super) fn new() -> Self {
        Self {
            blocks: Vec::new(),
            free: Vec::new(),
            counts: vec![0; usize::try_from(PLACES).unwrap_or(0)].into_boxed_slice(),
            long: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.len() == self.free.len() && self.long == 0
    }

    fn count_at(&mut self, number: u64) -> &mut u32 {
        // Folded, so that what is far apart by a power of two has another place.
        let folded = (number ^ (number >> 10) ^ (number >> 20)) % PLACES;
        &mut self.counts[usize::try_from(folded).unwrap_or(0)]
    }

    pub(super) fn overlaps(&self, range: LbaRange) -> bool {
        let (start, end) = (range.start().0, range.end().0);
        let mut blocks = self.blocks.iter();
        blocks.any(|it| it.start < it.end && it.start < end && start < it.end)
    }

    /// Holds a range, unless something that is held overlaps it.
    pub(super) fn hold(&mut self, range: LbaRange) -> Option<Hold> {
        let mut apart = self.long == 0;
        match numbers(range) {
            Some(numbers) => {
                for number in numbers {
                    let count = self.count_at(number);
                    *count += 1;
                    apart &= *count == 1;
                }
            }
            None => {
                self.long += 1;
                apart = self.blocks.len() == self.free.len();
            }
        }
        if !apart && self.overlaps(range) {
            self.uncount(range);
            return None;
        }
        let blocks = Blocks {
            start: range.start().0,
            end: range.end().0,
        };
        if let Some(at) = self.free.pop() {
            self.blocks[at as usize] = blocks;
            return Some(Hold(at));
        }
        self.blocks.push(blocks);
        let at = u32::try_from(self.blocks.len() - 1);
        Some(Hold(at.expect("commands in flight fit 32 bits")))
    }

    /// What is held.
    pub(super) fn range(&self, hold: &Hold) -> Option<LbaRange> {
        let Blocks { start, end } = self.blocks[hold.0 as usize];
        LbaRange::between(Lba(start), Lba(end))
    }

    /// Lets go what was held.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "a hold ends once: it is used up"
    )]
    pub(super) fn release(&mut self, hold: Hold) {
        let range = self.range(&hold);
        self.blocks[hold.0 as usize] = FREE;
        self.free.push(hold.0);
        if let Some(range) = range {
            self.uncount(range);
        }
    }

    fn uncount(&mut self, range: LbaRange) {
        match numbers(range) {
            Some(numbers) => numbers.for_each(|number| *self.count_at(number) -= 1),
            None => self.long -= 1,
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use proptest::prelude::*;
    use units::BlockCount;

    fn any_range() -> impl Strategy<Value = LbaRange> {
        let start = prop_oneof![0..64_u64, (0..64_u64).prop_map(|at| at << 13)];
        let len = prop_oneof![1..9_u64, 1..80_u64];
        (start, len).prop_map(|(start, len)| LbaRange::new(Lba(start), BlockCount(len)).unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn what_is_held_is_what_a_plain_list_holds(
            steps in proptest::collection::vec((any_range(), any::<u8>(), any::<bool>()), 1..120)
        ) {
            let mut held = Held::new();
            let mut list: Vec<(LbaRange, Hold)> = Vec::new();
            for (range, which, ends) in steps {
                let overlaps = |it: &(LbaRange, Hold)| {
                    it.0.start() < range.end() && range.start() < it.0.end()
                };
                let expected = list.iter().any(overlaps);
                if ends && !list.is_empty() {
                    let (range, hold) = list.swap_remove(usize::from(which) % list.len());
                    prop_assert_eq!(held.range(&hold), Some(range));
                    held.release(hold);
                } else {
                    let hold = held.hold(range);
                    prop_assert_eq!(hold.is_none(), expected);
                    list.extend(hold.map(|hold| (range, hold)));
                }
            }
            for (_, hold) in list {
                held.release(hold);
            }
            prop_assert!(held.long == 0 && held.counts.iter().all(|it| *it == 0));
        }
    }
}
