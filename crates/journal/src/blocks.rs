//! The checksums of the log's blocks as they were written: whoever reads a part of a batch can hold
//! it against them.
//!
//! A record's own checksum needs all of its data, and its header. A block's is enough for any part
//! of it, and costs nothing where records are whole blocks, because a record's then follows from
//! those of its blocks.

use crate::batch::Change;
use crate::layout::BLOCK;
use formats::{JOINED_BYTES, crc32c, crc32c_of, crc32c_with_block};
use std::collections::VecDeque;
use std::ops::Range;
use units::Buf;

const _: () = assert!(JOINED_BYTES == BLOCK);

/// The checksums of what a batch holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataChecksums {
    /// CRC-32C of each record's data.
    pub records: Vec<u32>,
    /// CRC-32C of each block of data, from the header's end on.
    pub blocks: Vec<u32>,
}

impl DataChecksums {
    /// Of these changes, whose data lies one after the other with each beginning at a multiple of
    /// 512 bytes.
    #[must_use]
    pub fn of(changes: &[(Change, Buf)]) -> Self {
        let whole = |data: &Buf| data.len().is_multiple_of(BLOCK);
        if !changes.iter().all(|(_, data)| whole(data)) {
            return Self::of_parts(changes);
        }
        let mut blocks = Vec::new();
        let record = |(_, data): &(Change, Buf)| {
            let first = blocks.len();
            blocks.extend(blocks_of(data));
            joined(&blocks[first..])
        };
        Self {
            records: changes.iter().map(record).collect(),
            blocks,
        }
    }

    /// Where blocks hold parts of several records.
    fn of_parts(changes: &[(Change, Buf)]) -> Self {
        let mut all = Buf::empty();
        for (_, data) in changes {
            all.append(data);
            all.append_owned(padding(data.len(), crate::batch::DATA_ALIGNMENT));
        }
        all.append_owned(padding(all.len(), BLOCK));
        let crc = |(_, data): &(Change, Buf)| crc32c_of(data.segments());
        Self {
            records: changes.iter().map(crc).collect(),
            blocks: blocks_of(&all).collect(),
        }
    }
}

/// Zeroes from so many bytes to the next multiple.
pub(crate) fn padding(bytes: usize, multiple: usize) -> Buf {
    Buf::zeroes(bytes.next_multiple_of(multiple) - bytes)
}

/// The checksum of a block of the log, as [`crate::Ring::checksum_of`] returns it.
#[must_use]
pub fn block_checksum(block: &Buf) -> u32 {
    match block.as_contiguous() {
        Some(bytes) => crc32c(bytes),
        None => crc32c_of(block.segments()),
    }
}

fn blocks_of(data: &Buf) -> impl Iterator<Item = u32> {
    let starts = (0..data.len()).step_by(BLOCK);
    starts.map(|at| block_checksum(&data.slice(at..at + BLOCK)))
}

/// The checksum of whole blocks, from theirs.
fn joined(blocks: &[u32]) -> u32 {
    let all = blocks.iter().copied().reduce(crc32c_with_block);
    all.unwrap_or(0)
}

/// The checksum of these bytes of a batch, from those of its blocks where they are whole ones.
pub(crate) fn checksum_of(
    batch: &[u8],
    first: usize,
    blocks: &[u32],
    bytes: Range<usize>,
) -> Option<u32> {
    let whole = bytes.start.is_multiple_of(BLOCK) && bytes.end.is_multiple_of(BLOCK);
    if whole && !bytes.is_empty() {
        let from = (bytes.start / BLOCK).checked_sub(first)?;
        let to = (bytes.end / BLOCK).checked_sub(first)?;
        return blocks.get(from..to).map(joined);
    }
    batch.get(bytes).map(crc32c)
}

/// Checksums in a piece.
const PIECE: usize = 1024;

/// The checksums of the blocks of a ring's log that are in use, by position: four bytes for each.
#[derive(Clone, Default)]
pub(crate) struct BlockChecksums {
    /// Which piece is the first.
    first: u64,
    pieces: VecDeque<Box<[u32; PIECE]>>,
}

/// The piece of a position, and its place there.
fn place(position: u64) -> (u64, usize) {
    let each = PIECE as u64;
    let at = usize::try_from(position % each).expect("a small number");
    (position / each, at)
}

impl BlockChecksums {
    /// These blocks lie from a position on that is behind all before.
    pub(crate) fn put(&mut self, position: u64, checksums: &[u32]) {
        for (position, checksum) in (position..).zip(checksums) {
            let (piece, at) = place(position);
            if self.pieces.is_empty() {
                self.first = piece;
            }
            let behind = usize::try_from(piece - self.first).expect("pieces are in memory");
            while self.pieces.len() <= behind {
                self.pieces.push_back(Box::new([0; PIECE]));
            }
            self.pieces[behind][at] = *checksum;
        }
    }

    /// What lies before this position is given up.
    pub(crate) fn forget_before(&mut self, position: u64) {
        let (piece, _) = place(position);
        while self.first < piece && !self.pieces.is_empty() {
            self.pieces.pop_front();
            self.first += 1;
        }
    }

    /// The checksum of the block at a position; `None` where it is not known.
    pub(crate) fn get(&self, position: u64) -> Option<u32> {
        let (piece, at) = place(position);
        let behind = usize::try_from(piece.checked_sub(self.first)?).ok()?;
        // One block of four thousand million has this one, and is not checked.
        self.pieces
            .get(behind)
            .map(|piece| piece[at])
            .filter(|checksum| *checksum != 0)
    }

    /// Memory in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.pieces.len() * PIECE * size_of::<u32>()
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::batch::{Commit, Kind, Sequence, VolumeId};
    use units::{BlockCount, BlockSize, Lba, LbaRange};

    fn change(blocks: u64, seed: u8) -> (Change, Buf) {
        let bytes: Vec<u8> = (0..blocks * 512)
            .map(|at| u8::try_from((at * 31 + at / 511) % 256).unwrap() ^ seed)
            .collect();
        let change = Change {
            volume: VolumeId(1),
            sequence: Sequence(seed.into()),
            range: LbaRange::new(Lba(0), BlockCount(blocks)).unwrap(),
            block_size: BlockSize::B512,
            kind: Kind::Write,
            commit: Commit::AtOnce,
        };
        (change, Buf::copy_of(&bytes))
    }

    #[test]
    fn checksums_are_those_of_the_bytes_whether_records_are_whole_blocks_or_not() {
        for sizes in [&[8, 8, 24][..], &[1, 8, 3, 16], &[80], &[8, 7], &[]] {
            let changes: Vec<_> = (1..)
                .zip(sizes)
                .map(|(seed, it)| change(*it, seed))
                .collect();
            let checksums = DataChecksums::of(&changes);
            let mut all = Vec::new();
            for ((_, data), crc) in changes.iter().zip(&checksums.records) {
                assert_eq!(*crc, crc32c(&data.to_vec()), "{sizes:?}");
                all.extend(data.to_vec());
            }
            all.resize(all.len().next_multiple_of(BLOCK), 0);
            let wanted: Vec<u32> = all.chunks(BLOCK).map(crc32c).collect();
            assert_eq!(checksums.blocks, wanted, "{sizes:?}");
        }
    }

    #[test]
    fn checksums_are_known_from_when_they_are_put_to_when_they_are_forgotten() {
        let mut checksums = BlockChecksums::default();
        // A gap, where the ring began anew.
        for (from, count) in [(5_000_u64, 700_u32), (5_800, 3_000)] {
            let all: Vec<u32> = (1..=count).collect();
            checksums.put(from, &all);
        }
        assert_eq!(
            (checksums.get(4_999), checksums.get(5_000)),
            (None, Some(1))
        );
        assert_eq!(
            (checksums.get(5_699), checksums.get(5_700)),
            (Some(700), None)
        );
        assert_eq!(
            (checksums.get(8_799), checksums.get(8_800)),
            (Some(3_000), None)
        );
        assert_eq!(checksums.bytes(), 5 * 4096);
        checksums.forget_before(8_000);
        assert_eq!(
            (checksums.get(6_000), checksums.get(8_001)),
            (None, Some(2_202))
        );
        assert_eq!(checksums.bytes(), 2 * 4096);
        checksums.forget_before(50_000);
        checksums.put(60_000, &[9]);
        assert_eq!((checksums.get(60_000), checksums.bytes()), (Some(9), 4096));
    }
}
