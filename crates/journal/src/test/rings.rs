//! Rings after crashes, flipped bits and failures.

use super::world::{OF, Pending, Target, World};
use crate::*;
use std::collections::VecDeque;
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};

#[test]
fn what_was_reported_as_stable_survives_every_crash_and_nothing_else_is_invented() {
    let (mut crashes, mut full, mut turns, mut torn, mut moved) = (0, 0, 0, 0, 0);
    for seed in 1..=1500 {
        let mut world = World::new(seed, 40 + seed % 60);
        for _ in 0..6 {
            let mut ring = world.open();
            let steps = world.random.below(120);
            for _ in 0..steps {
                match world.random.below(8) {
                    0..=2 => match world.append(&mut ring, 4) {
                        Err(Refused::Full) => full += 1,
                        Err(Refused::Failed) => {
                            assert!(ring.opening().is_some(), "only before it is open");
                        }
                        Ok(()) => {}
                    },
                    3 => world.release(&mut ring),
                    4 if world.relocate(&mut ring).is_ok() => moved += 1,
                    _ => world.complete(&mut ring),
                }
            }
            turns += ring.next_number();
            let issued = ring.next_number() - 1;
            world.crash();
            crashes += 1;
            torn += u64::from(world.replay().0.last().map_or(0, |it| it.place.number) < issued);
        }
    }
    // The cases that matter have all come up.
    assert!(crashes == 9000 && full > 500 && turns > 10_000 && torn > 500 && moved > 1000);
}

/// A ring at rest, with nothing on its way.
fn at_rest(seed: u64, sealed: bool) -> (World, Ring) {
    let mut world = World::new(seed, 600);
    let mut ring = world.open();
    world.settle(&mut ring);
    let batches = 3 + world.random.below(12);
    for _ in 0..batches {
        world.append(&mut ring, 6).unwrap();
        world.settle(&mut ring);
    }
    if sealed && ring.wants_seal() {
        let write = ring.append(&[]).unwrap();
        world.issued.insert(write.number, Vec::new());
        world.pending.push(Pending {
            target: Target::Log(write.at),
            bytes: write.bytes.to_vec(),
            number: Some(write.number),
        });
        world.settle(&mut ring);
    }
    (world, ring)
}

/// Where a batch lies: bytes from the first to one past the last, and where its data begins.
fn lies(world: &World, number: u64) -> (usize, usize, usize) {
    let (found, _) = world.replay();
    let batch = found.iter().find(|it| it.place.number == number).unwrap();
    let from = usize::try_from(batch.place.position).unwrap() * BLOCK;
    let header = Header::read(&world.log[from..], OF.0, OF.1).unwrap();
    let data = header.records.iter().map(|it| it.data_at as usize).min();
    let end = from + header.blocks as usize * BLOCK;
    (
        from,
        end,
        from + data.unwrap_or(header.blocks as usize * BLOCK),
    )
}

#[test]
fn batches_of_which_nothing_says_that_they_were_stable_are_reported() {
    let mut sealed = 0;
    for seed in 1..=200 {
        let seal = seed % 2 == 0;
        let (world, _) = at_rest(seed, seal);
        let (found, replay) = world.read();
        let lying = |number| {
            let (from, end, _) = lies(&world, number);
            from as u64..end as u64
        };
        let headers = found.iter().map(|it| {
            let from = usize::try_from(it.place.position).unwrap() * BLOCK;
            Header::read(&world.log[from..], OF.0, OF.1).unwrap().stable
        });
        let begun = world.checkpoint().begun.number - 1;
        let sure = headers.max().unwrap_or(0).max(begun);
        let last = found.iter().map(|it| it.place.number);
        let wanted: Vec<_> = last.filter(|it| *it > sure).map(lying).collect();
        assert_eq!(replay.unsure(), wanted, "seed {seed}");
        assert!(!wanted.is_empty(), "the last one at least");
        sealed += usize::from(found.last().unwrap().records.is_empty());
    }
    assert!(sealed >= 50, "{sealed}");
}

#[test]
fn a_flipped_bit_is_named_by_exactly_its_blocks_and_never_read_as_data() {
    let mut named = [0; 3];
    for seed in 1..=800 {
        let (mut world, ring) = at_rest(seed, true);
        let last = ring.next_number() - 1;
        let number = 1 + world.random.below(last);
        let (from, end, data) = lies(&world, number);
        let at = from + usize::try_from(world.random.below((end - from) as u64)).unwrap();
        world.log[at] ^= 1 << world.random.below(8);
        let (found, ring) = world.replay();
        let issued = &world.issued[&number];
        let hit = found.iter().find(|it| it.place.number == number);
        // What any other batch says is still right.
        for batch in found.iter().filter(|it| it.place.number != number) {
            world.holds(batch);
        }
        let Some(hit) = hit else {
            // Nothing says that the very last batch, which is empty, ever was stable.
            assert!(number == last && issued.is_empty() && at < data);
            named[0] += 1;
            continue;
        };
        assert!(ring.is_ok());
        let all: Vec<Change> = issued.iter().map(|(change, _)| *change).collect();
        if at < data {
            let (writes, bare): (Vec<Change>, Vec<Change>) =
                all.iter().partition(|it| it.kind == Kind::Write);
            assert_eq!(hit.damaged, writes, "the whole batch");
            let known: Vec<Change> = hit.records.iter().map(|it| it.change).collect();
            assert_eq!(known, bare, "what has no data is not lost");
            named[1] += 1;
            continue;
        }
        for record in &hit.records {
            let wanted = issued.iter().find(|(change, _)| *change == record.change);
            assert_eq!(world.data(hit.place, record), wanted.unwrap().1);
        }
        assert!(
            hit.damaged.len() <= 1,
            "one bit is in one record, or between them"
        );
        assert_eq!(hit.damaged.len() + hit.records.len(), all.len());
        named[2] += hit.damaged.len();
    }
    assert!(named[1] > 50 && named[2] > 200, "{named:?}");
}

#[test]
fn damage_that_takes_the_record_of_what_changed_stops_the_ring_by_name() {
    let (mut stopped, mut other) = (0, 0);
    for seed in 1..=300 {
        let (mut world, ring) = at_rest(seed, true);
        let last = ring.next_number() - 1;
        let number = 1 + world.random.below(last - 2);
        // This header, and the next one that could show it.
        for number in [number, number + 1] {
            let (from, _, _) = lies(&world, number);
            world.log[from] ^= 1;
            if number == last {
                break;
            }
        }
        let (found, ring) = world.replay();
        assert!(found.iter().all(|it| it.place.number < number));
        for batch in &found {
            world.holds(batch);
        }
        match ring {
            Err(Stop::Lost { number: lost }) => {
                assert_eq!(lost, number);
                stopped += 1;
            }
            Ok(_) | Err(Stop::Version(_)) => other += 1,
        }
    }
    assert_eq!((stopped, other), (300, 0));
}

#[test]
fn without_a_seal_the_last_batch_is_the_only_one_that_damage_can_take_unnoticed() {
    for seed in 1..=200 {
        let (mut world, ring) = at_rest(seed, false);
        let last = ring.next_number() - 1;
        let (from, _, _) = lies(&world, last);
        world.log[from + 9] ^= 4;
        let (found, ring) = world.replay();
        assert_eq!(found.len() as u64, last - 1);
        assert_eq!(ring.ok().map(|it| it.next_number()), Some(last));
    }
}

#[test]
fn what_an_earlier_opening_gave_up_never_comes_back() {
    // Two batches on their way; the second one is whole on the disk, the first one is not there at
    // all.
    let mut world = World::new(5, 200);
    let mut ring = world.open();
    world.settle(&mut ring);
    let contents = |stamp: u8| {
        let change = Change {
            volume: VolumeId(1),
            sequence: Sequence(stamp.into()),
            range: LbaRange::new(Lba(8), BlockCount(8)).unwrap(),
            block_size: BlockSize::B512,
            kind: Kind::Write,
            commit: Commit::AtOnce,
        };
        vec![(change, vec![stamp; 4096])]
    };
    let append = |ring: &mut Ring, stamp| {
        let one = contents(stamp);
        ring.append(&[(one[0].0, Buf::copy_of(&one[0].1))]).unwrap()
    };
    append(&mut ring, 1);
    let second = append(&mut ring, 2);
    let at = usize::try_from(second.at).unwrap();
    world.log[at..at + second.bytes.len()].copy_from_slice(&second.bytes.to_vec());
    // The next opening finds nothing, and writes one batch of the same size.
    let mut ring = world.open();
    assert_eq!(ring.next_number(), 1);
    world.settle(&mut ring);
    let third = append(&mut ring, 3);
    let from = usize::try_from(third.at).unwrap();
    world.log[from..from + third.bytes.len()].copy_from_slice(&third.bytes.to_vec());
    assert_eq!(
        from + third.bytes.len(),
        at,
        "the old one lies right behind it"
    );
    world.issued.insert(1, contents(3));
    let (found, _) = world.replay();
    assert_eq!(found.len(), 1);
    world.holds(&found[0]);
}

#[test]
fn after_a_failed_write_nothing_is_taken_or_reported() {
    let mut world = World::new(9, 200);
    let mut ring = world.open();
    assert_eq!(
        ring.append(&[]).err(),
        Some(Refused::Failed),
        "not open yet"
    );
    world.settle(&mut ring);
    for _ in 0..3 {
        world.append(&mut ring, 2).unwrap();
    }
    let numbers: Vec<u64> = world.pending.iter().filter_map(|it| it.number).collect();
    ring.written(numbers[1], false);
    ring.written(numbers[2], true);
    ring.written(numbers[0], true);
    assert_eq!(
        ring.stable(),
        numbers[0],
        "the failed one, and all after it, are not"
    );
    assert_eq!(ring.append(&[]).err(), Some(Refused::Failed));
    assert!(ring.checkpoint().is_none() && !ring.wants_seal());
}

#[test]
fn lengths_are_kept_in_order_over_many_turns_of_the_ring() {
    let mut world = World::new(21, 64);
    let mut ring = world.open();
    world.settle(&mut ring);
    let mut places = VecDeque::new();
    for _ in 0..2000 {
        let most = world.random.below(4);
        if world.append(&mut ring, most) == Err(Refused::Full) {
            ring.release(ring.stable());
            let write = ring.checkpoint().expect("something was released");
            world.put(&Target::Slot(write.slot.into()), &write.bytes, |_| true);
            ring.checkpoint_written(true);
            world.released = ring.released().number;
            continue;
        }
        places.push_back(ring.next_number());
        world.settle(&mut ring);
        assert!(ring.used_blocks() <= 64);
    }
    assert!(places.len() > 1000);
    let next = ring.next_number();
    let again = world.open();
    assert_eq!(again.next_number(), next);
}

#[test]
fn a_ring_larger_than_a_window_is_read_in_as_many_steps_as_it_has_windows() {
    let mut world = World::new(35, 5000);
    let mut ring = world.open();
    world.settle(&mut ring);
    // Past the end of the ring, and on; the tail is kept half a ring behind.
    while ring.next_number() < 3000 {
        if world.append(&mut ring, 6) == Err(Refused::Full) {
            ring.release(ring.released().number + 200);
            let write = ring.checkpoint().expect("something was released");
            world.put(&Target::Slot(write.slot.into()), &write.bytes, |_| true);
            ring.checkpoint_written(true);
            world.released = ring.released().number;
        }
        world.settle(&mut ring);
    }
    let checkpoint = world.checkpoint();
    let mut replay = Replay::new(OF, world.blocks, checkpoint);
    let (mut reads, mut next) = (0, checkpoint.tail.number);
    loop {
        match replay.step() {
            Step::Read { at, bytes } => {
                reads += 1;
                assert!(reads < 40, "the same windows again and again");
                let from = usize::try_from(at).unwrap();
                replay.fill(at, Buf::copy_of(&world.log[from..from + bytes]));
            }
            Step::Found(batch) => {
                assert_eq!(batch.place.number, next);
                next += 1;
            }
            Step::End => break,
        }
    }
    assert_eq!(next, ring.next_number());
    assert!(replay.into_ring().is_ok());
}

/// What lies there.
fn bytes_of(world: &World, segment: &Segment) -> Vec<u8> {
    let reads = segment.reads().into_iter();
    let bytes = reads.flat_map(|(at, len)| &world.log[usize::try_from(at).unwrap()..][..len]);
    bytes.copied().collect()
}

#[test]
fn the_oldest_batches_are_read_again_over_many_turns_of_the_ring() {
    let mut world = World::new(33, 600);
    let mut ring = world.open();
    world.settle(&mut ring);
    let (mut batches, mut split) = (0, 0);
    for _ in 0..3000 {
        let most = 1 + world.random.below(6);
        // Where it is full it goes on after the next release.
        if world.append(&mut ring, most) != Err(Refused::Failed) && world.random.one_in(2) {
            world.complete(&mut ring);
            world.complete(&mut ring);
        }
        if !world.random.one_in(6) {
            continue;
        }
        let most = 1 + world.random.below(300);
        let Some(segment) = ring.oldest(most) else {
            assert!(ring.released().number > ring.stable());
            continue;
        };
        assert_eq!(segment.first(), ring.released().number);
        assert!(segment.end() <= ring.stable() + 1);
        split += segment.reads().len() - 1;
        let bytes = bytes_of(&world, &segment);
        let found = all_found(&segment, &bytes);
        assert!((segment.first()..segment.end()).eq(found.iter().map(|it| it.place.number)));
        assert!(found.len() == 1 || segment.bytes() as u64 <= most * BLOCK as u64);
        for batch in &found {
            world.holds(batch);
            for record in &batch.records {
                let from = segment.data_at(batch.place, record);
                let data = world.data(batch.place, record);
                assert_eq!(&bytes[from..from + data.len()], data);
            }
        }
        batches += found.len();
        ring.release(segment.end());
        if let Some(write) = ring.checkpoint() {
            world.put(&Target::Slot(write.slot.into()), &write.bytes, |_| true);
            ring.checkpoint_written(true);
            world.released = ring.released().number;
        }
    }
    assert!(
        batches > 1000 && split >= 10,
        "{batches} batches, {split} split"
    );
}

/// The batches, of which none is damaged.
fn all_found(segment: &Segment, bytes: &[u8]) -> Vec<Found> {
    let again = segment.batches(&Buf::copy_of(bytes)).into_iter();
    let found = again.map(|batch| match batch {
        Again::Found {
            place,
            records,
            damaged,
        } => {
            assert_eq!(damaged, []);
            let damaged = Vec::new();
            Found {
                place,
                records,
                damaged,
                // Of those that found it: what lies there is committed.
                committed: place.number - 1,
            }
        }
        Again::Damaged { sectors } => panic!("nothing was damaged, yet {sectors:?}"),
    });
    found.collect()
}

#[test]
fn damage_that_is_found_meanwhile_is_reported_by_its_place_and_the_rest_is_read() {
    for seed in 1..=60 {
        let mut world = World::new(seed, 600);
        let mut ring = world.open();
        world.settle(&mut ring);
        // So that some seeds have a batch where the ring begins anew.
        for _ in 0..world.random.below(40) {
            if world.append(&mut ring, 4).is_err() {
                break;
            }
            world.settle(&mut ring);
            ring.release(ring.stable());
            if let Some(write) = ring.checkpoint() {
                world.put(&Target::Slot(write.slot.into()), &write.bytes, |_| true);
                ring.checkpoint_written(true);
                world.released = ring.released().number;
            }
        }
        for _ in 0..3 {
            world.append(&mut ring, 4).unwrap();
        }
        world.settle(&mut ring);
        let segment = ring.oldest(u64::MAX).unwrap();
        let bytes = bytes_of(&world, &segment);
        let right = all_found(&segment, &bytes);
        let hit = usize::try_from(world.random.below(right.len() as u64)).unwrap();
        let headers = (0..bytes.len()).step_by(BLOCK);
        let mut headers = headers.filter(|&at| bytes[at..].starts_with(b"CWJBATCH"));
        let at = headers.nth(hit).unwrap();
        let mut broken = bytes.clone();
        broken[at + 50] ^= 1;
        let again = segment.batches(&Buf::copy_of(&broken));
        for (which, (again, right)) in again.iter().zip(&right).enumerate() {
            match again {
                Again::Found { place, records, .. } => {
                    assert_ne!(which, hit);
                    assert_eq!((place, records), (&right.place, &right.records));
                }
                Again::Damaged { sectors } => {
                    assert_eq!(which, hit);
                    let first = right.place.position % 600 * (BLOCK as u64 / SECTOR);
                    assert_eq!(u64::from(sectors.start), first, "from its first sector on");
                    for record in &right.records {
                        let at = segment.sector_of(right.place, record);
                        let data = record.change.data_bytes().unwrap() as u64;
                        let end = at + u32::try_from(data / SECTOR).unwrap();
                        assert!(sectors.contains(&at) && end <= sectors.end || data == 0);
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_relocated_finds_room_in_a_ring_that_is_full() {
    for seed in 1..=40 {
        let mut world = World::new(seed, 600);
        let mut ring = world.open();
        world.settle(&mut ring);
        let mut moved = 0;
        for _ in 0..60 {
            while world.append(&mut ring, 5).is_ok() {}
            world.settle(&mut ring);
            // The oldest half of the room that is kept, as it is, and once around the ring.
            for _ in 0..12 {
                let segment = ring.oldest(1).unwrap();
                world.relocate(&mut ring).expect("room was kept");
                world.settle(&mut ring);
                ring.release(segment.end());
                let write = ring.checkpoint().unwrap();
                world.put(&Target::Slot(write.slot.into()), &write.bytes, |_| true);
                ring.checkpoint_written(true);
                world.released = ring.released().number;
                moved += 1;
            }
        }
        assert!(moved == 720 && ring.next_number() > 700);
    }
}
