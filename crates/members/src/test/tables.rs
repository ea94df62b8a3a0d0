//! Every chunk has one owner, and a LUN keeps its place.

use super::{CHUNK, STRIPE, lun, pool};
use crate::superblock::{DATA_OFFSET, Layout, Superblock};
use crate::table::Extent;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Chunks of each member that a LUN has, in order.
fn places(block: &Superblock, number: u8) -> Vec<(u16, u64)> {
    let extents = block.extents(lun(number)).unwrap_or_default();
    let chunks = extents.into_iter().flat_map(|extent: Extent| {
        let first = (extent.offset - DATA_OFFSET) / CHUNK;
        let count = extent.bytes / CHUNK;
        (first..first + count).flat_map(move |chunk| {
            let members = extent.members.clone();
            members.into_iter().map(move |member| (member, chunk))
        })
    });
    chunks.collect()
}

proptest! {
    #[test]
    fn after_any_changes_no_chunk_is_two_luns_and_what_a_lun_keeps_stays_where_it_is(
        stripe: bool,
        steps in prop::collection::vec((1..6_u8, 0..40_u64, any::<bool>()), 1..40),
    ) {
        let layout = if stripe { STRIPE } else { Layout::Span };
        let mut block = pool(layout, &[20, 31, 25]);
        let all = if stripe { 20 } else { 76 };
        prop_assert_eq!(block.chunk_count(), all);
        let mut sizes: BTreeMap<u8, u64> = BTreeMap::new();
        for (number, chunks, release) in steps {
            let before = places(&block, number);
            if release {
                block.release(lun(number));
                sizes.remove(&number);
                prop_assert!(block.extents(lun(number)).is_none());
                continue;
            }
            let taken: u64 = sizes.iter().filter(|(of, _)| **of != number).map(|(_, size)| size).sum();
            let fits = taken + chunks <= all;
            let done = block.resize(lun(number), chunks * block.bytes_per_chunk());
            prop_assert_eq!(done.is_ok(), fits, "{} free of {}", all - taken, all);
            if !fits {
                prop_assert_eq!(places(&block, number), before);
                continue;
            }
            sizes.insert(number, chunks);
            let after = places(&block, number);
            let stays = before.len().min(after.len());
            prop_assert_eq!(&before[..stays], &after[..stays]);
            let mut seen = BTreeSet::new();
            for number in sizes.keys() {
                for place in places(&block, *number) {
                    let member = &block.members[usize::from(place.0)];
                    prop_assert!(place.1 < u64::from(member.chunks));
                    prop_assert!(seen.insert(place), "{:?} twice", place);
                }
            }
            let each = if stripe { 3 } else { 1 };
            prop_assert_eq!(seen.len() as u64, each * sizes.values().sum::<u64>());
            let free = block.room().1 / block.bytes_per_chunk();
            prop_assert_eq!(free, all - sizes.values().sum::<u64>());
            prop_assert_eq!(block.check(), Ok(()));
        }
    }
}

#[test]
fn a_lun_lies_in_one_run_where_that_is_possible_and_says_which_members_it_needs() {
    let mut block = pool(Layout::Span, &[10, 10, 10]);
    block.resize(lun(1), 4 * CHUNK).unwrap();
    block.resize(lun(2), 3 * CHUNK).unwrap();
    block.resize(lun(3), 13 * CHUNK).unwrap();
    block.release(lun(2));
    block.resize(lun(4), 3 * CHUNK).unwrap();
    assert_eq!(block.luns[&lun(4)].len(), 1, "the gap that fits");
    assert_eq!(block.members_of(lun(1)), [0]);
    assert_eq!(block.members_of(lun(3)), [0, 1]);
    assert_eq!(block.taken(), [10 * CHUNK, 10 * CHUNK, 0]);
    assert_eq!(block.extents(lun(3)).unwrap().len(), 2);
    assert_eq!(
        block.resize(lun(5), 11 * CHUNK).unwrap_err().free_bytes,
        10 * CHUNK
    );
    let mut block = pool(STRIPE, &[10, 12]);
    block.resize(lun(1), 1).unwrap();
    let extents = block.extents(lun(1)).unwrap();
    assert_eq!(
        extents,
        [Extent {
            members: vec![0, 1],
            offset: DATA_OFFSET,
            bytes: CHUNK
        }]
    );
}

#[test]
fn what_grows_next_to_a_lun_has_its_new_chunks_only_when_they_have_come() {
    let mut block = pool(Layout::Span, &[10, 10]);
    let (checksums, coming) = (lun(0x82), lun(0xA2));
    block.resize(checksums, 2 * CHUNK).unwrap();
    block.resize(lun(3), 3 * CHUNK).unwrap();
    let before = block.extents(checksums);
    block.resize(coming, 4 * CHUNK).unwrap();
    let new = block.extents(coming).unwrap();
    assert_eq!(
        block.extents(checksums),
        before,
        "they may hold what somebody else wrote until they are zeroes"
    );
    block.join(coming, checksums);
    assert_eq!(
        block.extents(checksums).unwrap(),
        [before.unwrap(), new].concat(),
        "behind what it had"
    );
    assert_eq!((block.bytes_of(coming), block.check()), (None, Ok(())));
    block.join(coming, checksums);
    assert_eq!(block.bytes_of(checksums), Some(6 * CHUNK), "nothing came");
    // What meets is one run.
    block.release(lun(3));
    block.resize(coming, CHUNK).unwrap();
    block.join(coming, checksums);
    assert_eq!(block.bytes_of(checksums), Some(7 * CHUNK));
    assert_eq!(block.check(), Ok(()));
}
