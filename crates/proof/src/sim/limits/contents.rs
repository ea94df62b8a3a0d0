//! What the blocks of a large, mostly empty disk must hold: the changes, one after the other.

use std::ops::Range;
use units::{BlockSize, Buf};

/// What a change leaves in its blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fill {
    /// Zeroes.
    Zero,
    /// Each block another one, of this number.
    Each(u64),
    /// All blocks the same, of this number.
    Same(u64),
    /// What was there before, and the bits of [`Fill::Each`].
    Or(u64),
    /// What blocks that begin so far before, or behind, held when the change was made.
    Copy { from: u64, changes: usize },
}

/// The disk that a unit is compared with.
pub(super) struct Contents {
    block_size: BlockSize,
    changes: Vec<(Range<u64>, Fill)>,
}

fn mixed(number: u64, block: u64) -> u64 {
    let mut word =
        number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ block.wrapping_mul(0xD1B5_4A32_D192_ED03);
    word ^= word >> 29;
    word = word.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    // Never zero.
    word ^ (word >> 32) | 1
}

impl Contents {
    pub(super) fn new(block_size: BlockSize) -> Self {
        Self {
            block_size,
            changes: Vec::new(),
        }
    }

    pub(super) fn change(&mut self, blocks: Range<u64>, fill: Fill) {
        self.changes.push((blocks, fill));
    }

    pub(super) fn copy(&mut self, from: u64, to: Range<u64>) {
        let changes = self.changes.len();
        self.change(to, Fill::Copy { from, changes });
    }

    /// The word that fills a block, as the first so many changes leave it.
    fn word(&self, block: u64, changes: usize) -> u64 {
        let mut bits = 0;
        for (number, (blocks, fill)) in self.changes[..changes].iter().enumerate().rev() {
            if !blocks.contains(&block) {
                continue;
            }
            return bits
                | match fill {
                    Fill::Zero => 0,
                    Fill::Each(of) => mixed(*of, block),
                    Fill::Same(of) => mixed(*of, 0),
                    Fill::Or(of) => {
                        bits |= mixed(*of, block);
                        continue;
                    }
                    Fill::Copy { from, changes } => {
                        debug_assert!(*changes <= number);
                        self.word(from + (block - blocks.start), *changes)
                    }
                };
        }
        bits
    }

    fn filled(&self, words: impl Iterator<Item = u64>) -> Vec<u8> {
        let lines = usize::try_from(self.block_size.bytes() / 8).expect("small");
        let mut bytes = Vec::new();
        for word in words {
            let line = word.to_le_bytes();
            bytes.extend(std::iter::repeat_n(line, lines).flatten());
        }
        bytes
    }

    /// What these blocks hold.
    pub(super) fn bytes(&self, blocks: Range<u64>) -> Vec<u8> {
        let all = self.changes.len();
        self.filled(blocks.map(|block| self.word(block, all)))
    }

    /// What a write with this fill sends.
    pub(super) fn payload(&self, blocks: Range<u64>, fill: Fill) -> Buf {
        let words = blocks.map(|block| match fill {
            Fill::Each(of) | Fill::Or(of) => mixed(of, block),
            Fill::Same(of) => mixed(of, 0),
            Fill::Zero | Fill::Copy { .. } => 0,
        });
        Buf::copy_of(&self.filled(words))
    }

    pub(super) fn is_zero(&self, block: u64) -> bool {
        self.word(block, self.changes.len()) == 0
    }

    /// Blocks at both sides of each edge that the last so many changes made, and around these
    /// distances from their starts, inside a disk of so many.
    pub(super) fn probes(&self, changes: usize, distances: &[u64], blocks: u64) -> Vec<u64> {
        let mut all: Vec<u64> = Vec::new();
        for (range, _) in self.changes.iter().rev().take(changes) {
            let inside = distances.iter().map(|it| range.start + it);
            let inside = inside.filter(|it| *it < range.end);
            for edge in [range.start, range.end].into_iter().chain(inside) {
                all.extend(edge.saturating_sub(1)..=edge);
            }
        }
        all.sort_unstable();
        all.dedup();
        all.retain(|it| *it < blocks);
        all
    }
}
