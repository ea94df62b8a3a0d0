//! Whether bytes are what their sums say.

use super::map::Map;
use super::page::Sums;
use std::ops::Range;
use sums::{Blank, Sum};
use units::Buf;

/// What a block turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It is what was written there.
    Fits,
    /// Nobody knows what it should be: its sum is to be taken from what it is.
    Take,
    /// It is not.
    Differs,
}

impl Map {
    /// Judges one block.
    pub(super) fn judge(&self, sum: Sum, block: u64, bytes: &Buf) -> Verdict {
        match (sum, self.blank()) {
            (Sum::BLANK, Blank::Anything) | (Sum::OPEN, _) => Verdict::Take,
            (Sum::LOST, _) => Verdict::Differs,
            (Sum::BLANK, Blank::Zeroes) => fits(bytes.is_zero()),
            (sum, _) => fits(Sum::of_buf(self.salt, block, bytes) == sum),
        }
    }

    /// All blocks of `data` fit their sums, beyond doubt.
    pub(super) fn all_fit(&self, sums: &[Sum], first: u64, data: &Buf) -> bool {
        if let Some(bytes) = data.as_contiguous()
            && sums.iter().all(|sum| sum.is_sum())
        {
            let pieces = bytes.chunks(self.covered_bytes).zip(sums);
            return (first..)
                .zip(pieces)
                .all(|(block, (piece, sum))| Sum::of(self.salt, block, piece) == *sum);
        }
        let blocks = (first..).zip(sums).enumerate();
        blocks.into_iter().all(|(place, (block, sum))| {
            self.judge(*sum, block, &data.slice(self.bytes_of(place, data.len()))) == Verdict::Fits
        })
    }

    /// The sum of what is about to be there.
    pub(super) fn sum_of(&self, block: u64, bytes: &Buf) -> Sum {
        if self.blank() == Blank::Zeroes && bytes.is_zero() {
            return Sum::BLANK;
        }
        Sum::of_buf(self.salt, block, bytes)
    }

    /// The sums of all blocks of `data`.
    pub(super) fn sums_of(&self, first: u64, data: &Buf) -> Sums {
        if let Some(bytes) = data.as_contiguous() {
            let pieces = (first..).zip(bytes.chunks(self.covered_bytes));
            return pieces
                .map(|(block, piece)| Sum::of(self.salt, block, piece))
                .collect();
        }
        let places = (first..).zip(0..data.len().div_ceil(self.covered_bytes));
        places
            .map(|(block, place)| {
                Sum::of_buf(
                    self.salt,
                    block,
                    &data.slice(self.bytes_of(place, data.len())),
                )
            })
            .collect()
    }

    /// The bytes of the block at a place; the volume's last one may be shorter.
    pub(super) fn bytes_of(&self, place: usize, len: usize) -> Range<usize> {
        place * self.covered_bytes..((place + 1) * self.covered_bytes).min(len)
    }
}

const fn fits(yes: bool) -> Verdict {
    if yes { Verdict::Fits } else { Verdict::Differs }
}
