//! Blocks of a volume of which a journal cannot say, after a crash, whether they are old, new or
//! between: those that were written around the log, and those of which the log has a part. All
//! others are in the log as a whole, or in the backing volume and stable there.

use journal::{Change, Kind, SECTOR};
use volume::UnverifiedBlocks;

const BLOCK: u64 = UnverifiedBlocks::BLOCK;

/// A change that was found in the log.
pub(crate) fn add(to: &mut UnverifiedBlocks, change: &Change) {
    let bytes = u64::from(change.block_size.bytes());
    assert!(bytes.is_multiple_of(SECTOR), "blocks are of whole sectors");
    let start = change.range.start().0 * bytes;
    let end = change.range.end().0 * bytes;
    match change.kind {
        Kind::Cut | Kind::Epoch | Kind::RelocatedEpoch => {}
        Kind::WriteAround | Kind::Touched => to.insert(start / BLOCK..end.div_ceil(BLOCK)),
        Kind::Gone => to.clear(),
        Kind::Write | Kind::Zeroes | Kind::Deallocate | Kind::Anchor | Kind::Lost => {
            for edge in [start, end] {
                if !edge.is_multiple_of(BLOCK) {
                    to.insert(edge / BLOCK..edge / BLOCK + 1);
                }
            }
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use journal::{Commit, Sequence, VolumeId};
    use std::collections::BTreeSet;
    use units::{BlockCount, BlockSize, Lba, LbaRange};

    #[test]
    fn parts_of_blocks_and_what_went_around_the_log_are_unverified_and_whole_blocks_are_not() {
        let kinds = [
            Kind::Write,
            Kind::Zeroes,
            Kind::Deallocate,
            Kind::Anchor,
            Kind::Lost,
            Kind::WriteAround,
            Kind::Touched,
        ];
        let mut draw = volume_test::draw::Draw::new(5);
        for block_size in [BlockSize::B512, BlockSize::B4096] {
            let unit = 4096 / u64::from(block_size.bytes());
            let (mut one, mut other) = (UnverifiedBlocks::default(), UnverifiedBlocks::default());
            let mut wanted = BTreeSet::new();
            for _ in 0..200 {
                let (start, len) = (draw.below(40_000), 1 + draw.below(40));
                let kind = kinds[usize::try_from(draw.below(7)).unwrap()];
                let change = Change {
                    volume: VolumeId(1),
                    sequence: Sequence(0),
                    range: LbaRange::new(Lba(start), BlockCount(len)).unwrap(),
                    block_size,
                    kind,
                    commit: Commit::AtOnce,
                };
                let of = if draw.below(2) == 0 {
                    &mut one
                } else {
                    &mut other
                };
                add(of, &change);
                let is_unverified = |block: &u64| {
                    let whole = start <= block * unit && (block + 1) * unit <= start + len;
                    matches!(kind, Kind::WriteAround | Kind::Touched) || !whole
                };
                wanted.extend((start / unit..(start + len).div_ceil(unit)).filter(is_unverified));
            }
            one.merge(other);
            let found: Vec<u64> = one.ranges().flatten().collect();
            assert_eq!(found, wanted.into_iter().collect::<Vec<u64>>());
            let of_all = |kind| Change {
                volume: VolumeId(1),
                sequence: Sequence(0),
                range: LbaRange::new(Lba(3), BlockCount(9)).unwrap(),
                block_size,
                kind,
                commit: Commit::AtOnce,
            };
            add(&mut one, &of_all(Kind::Cut));
            assert!(one.ranges().flatten().eq(found), "a cut changes nothing");
            add(&mut one, &of_all(Kind::Gone));
            assert!(one.is_empty(), "of a volume that is gone nothing is left");
        }
    }
}
