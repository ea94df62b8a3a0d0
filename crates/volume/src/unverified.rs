//! Blocks of which nobody can say, after a crash or a flush that failed, whether they are old, new
//! or between.

use std::collections::BTreeMap;
use std::ops::Range;

/// Blocks of one entry.
const CHUNK: u64 = 1024;

/// Blocks of 4096 bytes of one volume that may be half-way written. A journal reports them to a
/// layer below it that compares data with checksums that it keeps; that layer keeps its own of
/// what no flush has covered.
///
/// A bit for each block, in chunks of 4 MiB: 1 GiB of a journal can name many millions of blocks.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct UnverifiedBlocks(BTreeMap<u64, Box<[u64; 16]>>);

impl UnverifiedBlocks {
    /// Bytes of a block here: what a layer below may treat as one.
    pub const BLOCK: u64 = 4096;

    /// Blocks, by their numbers.
    pub fn insert(&mut self, blocks: Range<u64>) {
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

    /// Those of another one as well.
    pub fn merge(&mut self, other: Self) {
        for (chunk, bits) in other.0 {
            let mine = self.0.entry(chunk).or_default();
            for (mine, other) in mine.iter_mut().zip(*bits) {
                *mine |= other;
            }
        }
    }

    /// There is none any more.
    pub fn clear(&mut self) {
        self.0.clear();
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
