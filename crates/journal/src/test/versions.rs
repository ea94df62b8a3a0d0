//! What another version of the program has written is refused by its name, wherever it stands, and
//! never taken for a torn end.

use super::world::{OF, Pending, Target, World};
use crate::*;

/// Of a superblock or a checkpoint; batches have had two versions.
const LATER: Damage = Damage::Version { found: 3, read: 1 };
const LATER_BATCH: Damage = Damage::Version { found: 3, read: 2 };

/// The same block, written by a later version of the program.
fn later(block: &mut [u8]) {
    block[12] = 3;
    formats::seal(block);
}

#[test]
fn a_later_superblock_or_checkpoint_is_refused_even_next_to_one_of_ours() {
    let bytes = 64 << 20;
    let superblock = Superblock {
        journal: OF.0,
        pool: [9; 16],
        layout: Layout::of_device(bytes, 2).unwrap(),
        shard_bytes: 1 << 30,
    };
    let ours = superblock.write();
    let mut other = ours.clone();
    later(&mut other);
    let mut torn = other.clone();
    torn[4000] ^= 1;
    let read = |copies: [&Vec<u8>; 2]| Superblock::of_copies(copies.map(Vec::as_slice), bytes);
    for (copies, wanted) in [
        ([&ours, &ours], Ok(superblock)),
        ([&ours, &torn], Ok(superblock)),
        ([&torn, &ours], Ok(superblock)),
        ([&torn, &torn], Err(Damage::Checksum)),
        ([&ours, &other], Err(LATER)),
        ([&other, &ours], Err(LATER)),
        ([&torn, &other], Err(LATER)),
    ] {
        assert_eq!(read(copies), wanted);
    }
    let ours = Checkpoint::FIRST.write(OF.0, OF.1);
    let mut other = ours.clone();
    later(&mut other);
    for slots in [[&ours, &other], [&other, &ours], [&other, &other]] {
        let newest = Checkpoint::newest(slots.map(Vec::as_slice), OF.0, OF.1);
        assert_eq!(newest, Err(LATER));
    }
}

/// A ring with so many batches that are stable, the last one of them not sealed, and where each of
/// them lies, in bytes.
fn ring_of(seed: u64, batches: usize) -> (World, Vec<usize>) {
    let mut world = World::new(seed, 600);
    let mut ring = world.open();
    world.settle(&mut ring);
    let mut places = Vec::new();
    for _ in 0..batches {
        world.append(&mut ring, 6).unwrap();
        let Some(Pending {
            target: Target::Log(at),
            ..
        }) = world.pending.last()
        else {
            panic!("a batch goes to the log")
        };
        places.push(usize::try_from(*at).unwrap());
        world.settle(&mut ring);
    }
    (world, places)
}

/// Makes the batch at `at` one of a later version, with a header of so many blocks.
fn later_batch(world: &mut World, at: usize, blocks: u8) {
    world.log[at + 14] = blocks;
    later(&mut world.log[at..at + usize::from(blocks) * BLOCK]);
}

#[test]
fn a_batch_of_a_later_version_stops_the_ring_and_is_no_torn_end() {
    for seed in 1..=200 {
        let (mut world, places) = ring_of(seed, 6);
        // The last one was acknowledged, and nothing in the log says so but itself.
        let which = usize::try_from(world.random.below(6)).unwrap();
        let blocks = if seed % 3 == 0 { 7 } else { 1 };
        later_batch(&mut world, places[which], blocks);
        let (found, ring) = world.replay();
        assert_eq!(
            ring.err(),
            Some(Stop::Version(LATER_BATCH)),
            "batch {which}"
        );
        assert!(found.len() <= which);
        for batch in &found {
            world.holds(batch);
        }
        let reported = Stop::Version(LATER_BATCH).to_string();
        assert!(reported.contains("version 3") && reported.contains("reads version 2"));
    }
}

#[test]
fn a_batch_of_a_later_version_is_found_behind_a_torn_one() {
    let (mut world, places) = ring_of(3, 6);
    world.log[places[4] + 9] ^= 4;
    later_batch(&mut world, places[5], 1);
    assert_eq!(world.replay().1.err(), Some(Stop::Version(LATER_BATCH)));
}

#[test]
fn what_only_resembles_a_later_version_is_a_torn_end_as_before() {
    for seed in 1..=200 {
        let (mut world, places) = ring_of(seed, 6);
        let last = places[5];
        match seed % 4 {
            // The version alone was torn, so that the checksum does not fit.
            0 => world.log[last + 12] = 2,
            // Of another journal, which was here before.
            1 => {
                world.log[last + 16] ^= 1;
                later_batch(&mut world, last, 1);
            }
            // Of another ring.
            2 => {
                world.log[last + 32] ^= 1;
                later_batch(&mut world, last, 1);
            }
            _ => {
                later_batch(&mut world, last, 1);
                world.log[last + 14] = 0;
            }
        }
        let (found, ring) = world.replay();
        assert_eq!(found.len(), 5, "seed {seed}");
        assert_eq!(ring.ok().map(|it| it.next_number()), Some(6));
    }
}
