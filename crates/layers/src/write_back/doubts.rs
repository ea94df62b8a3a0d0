//! Blocks at home of which a journal cannot say, after a crash, whether they are old, new or
//! between.

use journal::{Change, Kind, SECTOR};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a block here: what a layer below may look at as one.
const BLOCK: u64 = 4096;

/// Blocks of one entry.
const CHUNK: u64 = 1024;

/// Blocks of 4096 bytes of one volume that may have been half-way home: those that were written
/// past the log, and those of which the log has a part. All others are in the log as a whole, or at
/// home and stable there.
///
/// A bit for each block, in chunks of 4 MiB: 1 GiB of the log can name many millions of blocks.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Doubts(BTreeMap<u64, Box<[u64; 16]>>);

impl Doubts {
    /// A change that was found in the log.
    pub(super) fn add(&mut self, change: &Change) {
        let bytes = u64::from(change.block_size.bytes());
        assert!(bytes.is_multiple_of(SECTOR), "blocks are of whole sectors");
        let start = change.range.start().0 * bytes;
        let end = change.range.end().0 * bytes;
        match change.kind {
            Kind::Cut => {}
            Kind::Direct | Kind::Touched => self.insert(start / BLOCK..end.div_ceil(BLOCK)),
            Kind::Gone => self.0.clear(),
            Kind::Write | Kind::Zeroes | Kind::Deallocate | Kind::Anchor | Kind::Lost => {
                for edge in [start, end] {
                    if !edge.is_multiple_of(BLOCK) {
                        self.insert(edge / BLOCK..edge / BLOCK + 1);
                    }
                }
            }
        }
    }

    /// Blocks, by their numbers.
    pub(crate) fn insert(&mut self, blocks: Range<u64>) {
        let mut at = blocks.start;
        while at < blocks.end {
            let bits = self.0.entry(at / CHUNK).or_default();
            let end = blocks.end.min((at / CHUNK + 1) * CHUNK);
            for block in at..end {
                let (word, bit) = place(block);
                bits[word] |= bit;
            }
            at = end;
        }
    }

    /// Those of another ring as well.
    pub(super) fn merge(&mut self, other: Self) {
        for (chunk, bits) in other.0 {
            let mine = self.0.entry(chunk).or_default();
            for (mine, other) in mine.iter_mut().zip(*bits) {
                *mine |= other;
            }
        }
    }

    /// There is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Them, in order, by numbers of blocks of 4096 bytes; neighbours may come in several ranges.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().flat_map(|(chunk, bits)| {
            let first = chunk * CHUNK;
            let is_in = |block: &u64| {
                let (word, bit) = place(*block);
                bits[word] & bit != 0
            };
            let mut at = first;
            std::iter::from_fn(move || {
                let start = (at..first + CHUNK).find(is_in)?;
                let end = (start..first + CHUNK).find(|block| !is_in(block));
                at = end.unwrap_or(first + CHUNK);
                Some(start..at)
            })
        })
    }
}

fn place(block: u64) -> (usize, u64) {
    let word = usize::try_from(block % CHUNK / 64).expect("a small number");
    (word, 1 << (block % 64))
}

#[cfg(test)]
mod test {
    use super::*;
    use journal::{Sequence, VolumeId};
    use std::collections::BTreeSet;
    use units::{BlockCount, BlockSize, Lba, LbaRange};

    #[test]
    fn parts_of_blocks_and_what_went_past_the_log_are_in_doubt_and_whole_blocks_are_not() {
        let kinds = [
            Kind::Write,
            Kind::Zeroes,
            Kind::Deallocate,
            Kind::Anchor,
            Kind::Direct,
        ];
        let mut draw = volume_test::draw::Draw::new(5);
        for block_size in [BlockSize::B512, BlockSize::B4096] {
            let unit = 4096 / u64::from(block_size.bytes());
            let (mut one, mut other) = (Doubts::default(), Doubts::default());
            let mut wanted = BTreeSet::new();
            for _ in 0..200 {
                let (start, len) = (draw.below(40_000), 1 + draw.below(40));
                let kind = kinds[usize::try_from(draw.below(5)).unwrap()];
                let change = Change {
                    volume: VolumeId(1),
                    sequence: Sequence(0),
                    range: LbaRange::new(Lba(start), BlockCount(len)).unwrap(),
                    block_size,
                    kind,
                };
                let of = if draw.below(2) == 0 {
                    &mut one
                } else {
                    &mut other
                };
                of.add(&change);
                let in_doubt = |block: &u64| {
                    let whole = start <= block * unit && (block + 1) * unit <= start + len;
                    kind == Kind::Direct || !whole
                };
                wanted.extend((start / unit..(start + len).div_ceil(unit)).filter(in_doubt));
            }
            one.merge(other);
            let found: Vec<u64> = one.ranges().flatten().collect();
            assert_eq!(found, wanted.into_iter().collect::<Vec<u64>>());
        }
    }
}
