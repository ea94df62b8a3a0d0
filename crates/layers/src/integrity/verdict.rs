//! Whether bytes are what their checksums say.

use super::map::Map;
use super::page::Checksums;
use checksums::{Blank, Checksum};
use std::ops::Range;
use units::Buf;

/// What a block turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It is what was written there.
    Fits,
    /// Nobody knows what it should be: its checksum is to be adopted from what it is.
    Adopt,
    /// It is not.
    Differs,
}

impl Map {
    /// Judges one block.
    pub(super) fn judge(&self, checksum: Checksum, block: u64, bytes: &Buf) -> Verdict {
        match (checksum, self.blank()) {
            (Checksum::BLANK, Blank::Anything) | (Checksum::OPEN, _) => Verdict::Adopt,
            (Checksum::LOST, _) => Verdict::Differs,
            (Checksum::BLANK, Blank::Zeroes) => fits(bytes.is_zero()),
            (checksum, _) => fits(Checksum::of_buf(self.salt, block, bytes) == checksum),
        }
    }

    /// All blocks of `data` fit their checksums, for certain.
    pub(super) fn all_fit(&self, checksums: &[Checksum], first: u64, data: &Buf) -> bool {
        if let Some(bytes) = data.as_contiguous()
            && checksums.iter().all(|checksum| checksum.is_checksum())
        {
            let pieces = bytes.chunks(self.covered_bytes).zip(checksums);
            return (first..).zip(pieces).all(|(block, (piece, checksum))| {
                Checksum::of(self.salt, block, piece) == *checksum
            });
        }
        let blocks = (first..).zip(checksums).enumerate();
        blocks.into_iter().all(|(place, (block, checksum))| {
            self.judge(
                *checksum,
                block,
                &data.slice(self.bytes_of(place, data.len())),
            ) == Verdict::Fits
        })
    }

    /// The checksum of what is about to be there.
    pub(super) fn checksum_of(&self, block: u64, bytes: &Buf) -> Checksum {
        if self.blank() == Blank::Zeroes && bytes.is_zero() {
            return Checksum::BLANK;
        }
        Checksum::of_buf(self.salt, block, bytes)
    }

    /// The checksums of all blocks of `data`.
    pub(super) fn checksums_of(&self, first: u64, data: &Buf) -> Checksums {
        if let Some(bytes) = data.as_contiguous() {
            let pieces = (first..).zip(bytes.chunks(self.covered_bytes));
            return pieces
                .map(|(block, piece)| Checksum::of(self.salt, block, piece))
                .collect();
        }
        let places = (first..).zip(0..data.len().div_ceil(self.covered_bytes));
        places
            .map(|(block, place)| {
                Checksum::of_buf(
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
