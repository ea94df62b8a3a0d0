//! Blocks of the journal: what they say, and what is none.

use super::world::{OF, World};
use crate::*;
use units::Buf;

#[test]
fn a_journal_says_what_it_is_or_why_it_is_not() {
    let layout = Layout::of_device(64 << 20, 2).unwrap();
    assert_eq!(layout.ring_blocks, (16384 - 2) / 2 - 2);
    let superblock = Superblock {
        journal: OF.0,
        pool: [9; 16],
        layout,
        shard_bytes: 1 << 30,
    };
    let block = superblock.write();
    assert_eq!(Superblock::read(&block, 64 << 20), Ok(superblock));
    let refused = |change: &dyn Fn(&mut Vec<u8>), bytes| {
        let mut block = block.clone();
        change(&mut block);
        Superblock::read(&block, bytes).err()
    };
    assert_eq!(
        refused(&|block| block[0] ^= 1, 64 << 20),
        Some(Damage::Foreign)
    );
    for at in 12..BLOCK {
        assert_eq!(
            refused(&|block| block[at] ^= 1, 64 << 20),
            Some(Damage::Checksum)
        );
    }
    let small = Damage::Contradiction("the device is smaller than the journal");
    assert_eq!(refused(&|_| {}, 32 << 20), Some(small));
    assert_eq!(Layout::of_device(1 << 20, 2), None);
    let least = Layout::bytes_min(2);
    assert_eq!(
        Layout::of_device(least, 2).unwrap().ring_blocks,
        RING_BLOCKS_MIN
    );
    assert_eq!(Layout::of_device(least - 1, 2), None);
    for shard_bytes in [0, 2048, 6000] {
        let odd = Superblock {
            shard_bytes,
            ..superblock
        };
        let wrong = Damage::Contradiction("its shards have no size");
        assert_eq!(Superblock::read(&odd.write(), 64 << 20), Err(wrong));
    }
    // Everything has a place of its own.
    let mut places: Vec<(u64, u64)> = vec![(0, 2 * BLOCK as u64)];
    for ring in 0..layout.rings {
        places.push((layout.checkpoint_at(ring, 0), BLOCK as u64));
        places.push((layout.checkpoint_at(ring, 1), BLOCK as u64));
        places.push((layout.ring_at(ring), layout.ring_blocks * BLOCK as u64));
    }
    assert!(places.windows(2).all(|two| two[0].0 + two[0].1 == two[1].0));
    let (at, bytes) = places.last().unwrap();
    assert!(at + bytes <= 64 << 20);
}

#[test]
fn the_newer_checkpoint_counts_and_a_torn_one_does_not() {
    let older = Checkpoint {
        count: 4,
        ..Checkpoint::FIRST
    };
    let newer = Checkpoint {
        count: 5,
        epoch: 2,
        begun: BatchPosition {
            number: 9,
            position: 77,
        },
        tail: BatchPosition {
            number: 3,
            position: 20,
        },
    };
    assert_eq!((older.slot(), newer.slot()), (0, 1));
    let (old, new) = (older.write(OF.0, OF.1), newer.write(OF.0, OF.1));
    let newest = |slots: [&Vec<u8>; 2]| Checkpoint::newest(slots.map(Vec::as_slice), OF.0, OF.1);
    assert_eq!(newest([&old, &new]), Ok(newer));
    for bytes in 0..BLOCK / 512 {
        let mut torn = new.clone();
        torn[bytes * 512..].fill(0);
        let found = newest([&old, &torn]).unwrap();
        // Zeroes at its end are what it has there anyway.
        assert_eq!(found, if bytes == 0 { older } else { newer });
    }
    let mut flipped = new.clone();
    flipped[60] ^= 1;
    assert_eq!(newest([&old, &flipped]), Ok(older));
    assert_eq!(newest([&flipped, &flipped]), Err(Damage::Checksum));
    let other = newer.write(OF.0, OF.1 + 1);
    assert_eq!(newest([&old, &other]), Ok(older), "of another ring");
}

/// The change, of a volume of several copies where `later`.
fn of_copies(change: Change, later: bool) -> Change {
    let commit = if later { Commit::Later } else { Commit::AtOnce };
    Change { commit, ..change }
}

#[test]
fn headers_say_what_was_put_into_them_and_nothing_else_is_a_header() {
    let mut world = World::new(77, 400);
    for _ in 0..300 {
        let (committed, later) = (world.random.below(5), world.random.one_in(2));
        let contents: Vec<(Change, Buf)> = world
            .changes(20)
            .into_iter()
            .map(|(change, data)| (of_copies(change, later), Buf::copy_of(&data)))
            .collect();
        let before = world
            .changes(128)
            .into_iter()
            .map(|(change, _)| of_copies(change, later))
            .collect();
        let place = BatchPosition {
            number: 5,
            position: 600,
        };
        let checksums = crate::blocks::DataChecksums::of(&contents);
        let header = Header::over(
            place,
            (2, 4, committed),
            &contents,
            &checksums.records,
            before,
        );
        let mut bytes = header.write(OF.0, OF.1);
        assert_eq!(Header::read(&bytes, OF.0, OF.1).as_ref(), Ok(&header));
        let foreign = Err(Damage::Foreign);
        assert_eq!(Header::read(&bytes, OF.0, OF.1 + 1), foreign);
        assert_eq!(Header::read(&bytes, JournalId([8; 16]), OF.1), foreign);
        let at = usize::try_from(world.random.below(bytes.len() as u64)).unwrap();
        bytes[at] ^= 1 << world.random.below(8);
        let hurt = Header::read(&bytes, OF.0, OF.1);
        assert!(
            matches!(hurt, Err(Damage::Foreign | Damage::Checksum)),
            "bit of byte {at}: {hurt:?}"
        );
    }
}
