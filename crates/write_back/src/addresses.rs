//! Which ring an address belongs to.

use journal::{SECTOR, VolumeId};
use smallvec::SmallVec;
use std::ops::Range;
use units::{BlockCount, BlockSize, Lba, LbaRange};
use volume::Op;

/// A part of a range that lies in one ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub(crate) ring: u32,
    pub(crate) range: LbaRange,
}

/// Neighbours go to rings by turns, and volumes do not all begin with the same one.
fn ring_of(volume: VolumeId, byte: u64, (shard_bytes, rings): (u64, u32)) -> u32 {
    let ring = (byte / shard_bytes).wrapping_add(volume.0) % u64::from(rings);
    u32::try_from(ring).expect("less than the rings")
}

/// Cuts a range where it goes on in another ring.
pub(crate) fn parts(
    volume: VolumeId,
    range: LbaRange,
    block_size: BlockSize,
    (shard_bytes, rings): (u64, u32),
) -> SmallVec<[Part; 1]> {
    let shard = shard_bytes / u64::from(block_size.bytes());
    let mut parts = SmallVec::new();
    let mut at = range.start().0;
    while at < range.end().0 {
        let end = ((at / shard + 1) * shard).min(range.end().0);
        let end = if rings == 1 { range.end().0 } else { end };
        let byte = at * u64::from(block_size.bytes());
        parts.push(Part {
            ring: ring_of(volume, byte, (shard_bytes, rings)),
            range: LbaRange::between(Lba(at), Lba(end)).expect("`at` is before the end"),
        });
        at = end;
    }
    parts
}

/// Cuts a range into pieces of at most so many blocks.
pub(crate) fn chunks(range: LbaRange, blocks_max: u64) -> impl Iterator<Item = LbaRange> {
    let mut at = range.start().0;
    std::iter::from_fn(move || {
        let left = range.end().0 - at;
        let len = BlockCount(left.min(blocks_max));
        let chunk = LbaRange::new(Lba(at), len).expect("inside of the range");
        at += len.0;
        (left > 0).then_some(chunk)
    })
}

/// The next part of an operation: what it carries goes with it.
pub(crate) fn next_piece(op: &mut Op, part: LbaRange, bytes: usize) -> Op {
    let mut piece = match op {
        Op::Write {
            range,
            data,
            durability,
        } => Op::Write {
            range: *range,
            data: data.split_front(bytes),
            durability: *durability,
        },
        Op::Read { .. }
        | Op::WriteZeroes { .. }
        | Op::Discard { .. }
        | Op::CompareAndWrite { .. }
        | Op::Extents { .. }
        | Op::Flush => op.again(),
    };
    if let Some(range) = piece.range_mut() {
        *range = part;
    }
    piece
}

/// The sectors of a range.
pub(crate) fn sectors(range: LbaRange, block_size: BlockSize) -> Range<u64> {
    let by = u64::from(block_size.bytes()) / SECTOR;
    range.start().0 * by..range.end().0 * by
}

/// The blocks of sectors, which are whole blocks.
pub(crate) fn blocks(sectors: &Range<u64>, block_size: BlockSize) -> LbaRange {
    let by = u64::from(block_size.bytes()) / SECTOR;
    assert!(
        sectors.start.is_multiple_of(by) && sectors.end.is_multiple_of(by),
        "changes are of whole blocks"
    );
    LbaRange::between(Lba(sectors.start / by), Lba(sectors.end / by)).expect("in order")
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn parts_cover_the_range_and_neighbours_change_rings() {
        let shard = 1 << 11;
        let range = LbaRange::between(Lba(shard - 3), Lba(2 * shard + 5)).unwrap();
        let found = parts(VolumeId(7), range, BlockSize::B512, (1 << 20, 3));
        let of: Vec<(u32, u64, u64)> = found
            .iter()
            .map(|it| (it.ring, it.range.start().0, it.range.end().0))
            .collect();
        assert_eq!(
            of,
            [
                (1, shard - 3, shard),
                (2, shard, 2 * shard),
                (0, 2 * shard, 2 * shard + 5)
            ]
        );
        assert_eq!(
            parts(VolumeId(7), range, BlockSize::B512, (1 << 20, 1)).len(),
            1
        );
    }

    #[test]
    fn chunks_follow_each_other() {
        let range = LbaRange::between(Lba(10), Lba(35)).unwrap();
        let found: Vec<(u64, u64)> = chunks(range, 10)
            .map(|it| (it.start().0, it.end().0))
            .collect();
        assert_eq!(found, [(10, 20), (20, 30), (30, 35)]);
        assert_eq!(sectors(range, BlockSize::B4096), 80..280);
        assert_eq!(blocks(&(80..280), BlockSize::B4096), range);
    }
}
