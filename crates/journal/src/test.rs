//! Rings on a disk that forgets, tears and flips, against a list of what was written and told.

use super::*;
use std::collections::{BTreeMap, VecDeque};
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};

const OF: (JournalId, u32) = (JournalId([7; 16]), 3);

/// A generator of numbers that a seed repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

/// What was put into a batch.
type Contents = Vec<(Change, Vec<u8>)>;

enum Target {
    Slot(usize),
    Log(u64),
}

/// A write that the disk has and has not answered.
struct Pending {
    target: Target,
    bytes: Vec<u8>,
    /// `None` for a checkpoint.
    number: Option<u64>,
}

/// A disk with one ring, and what is known of it.
struct World {
    random: Random,
    blocks: u64,
    slots: [Vec<u8>; 2],
    log: Vec<u8>,
    pending: Vec<Pending>,
    /// What each batch holds that was handed to the disk last under its number.
    issued: BTreeMap<u64, Contents>,
    /// What each one may need: batches below are released, in a checkpoint or not yet.
    told: u64,
    released: u64,
    sequence: u64,
}

impl World {
    fn new(seed: u64, blocks: u64) -> Self {
        let first = Checkpoint::FIRST.write(OF.0, OF.1);
        let size = usize::try_from(blocks).unwrap() * BLOCK;
        Self {
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            blocks,
            slots: [first, vec![0; BLOCK]],
            log: vec![0; size],
            pending: Vec::new(),
            issued: BTreeMap::new(),
            told: 0,
            released: 1,
            sequence: 0,
        }
    }

    fn checkpoint(&self) -> Checkpoint {
        let slots = [&self.slots[0][..], &self.slots[1][..]];
        Checkpoint::newest(slots, OF.0, OF.1).unwrap()
    }

    fn replay(&self) -> (Vec<Found>, Result<Ring, Stop>) {
        let mut replay = Replay::new(OF, self.blocks, self.checkpoint());
        let mut found = Vec::new();
        loop {
            match replay.step() {
                Step::Read { at, bytes } => {
                    let from = usize::try_from(at).unwrap();
                    replay.fill(at, self.log[from..from + bytes].to_vec());
                }
                Step::Found(batch) => found.push(batch),
                Step::End => return (found, replay.into_ring()),
            }
        }
    }

    /// Data of a record, as it lies on the disk.
    fn data(&self, place: Place, record: &Record) -> &[u8] {
        let from = place.position % self.blocks * BLOCK as u64 + u64::from(record.data_at);
        let from = usize::try_from(from).unwrap();
        &self.log[from..from + record.change.data_bytes().unwrap()]
    }

    /// A batch says what was put into it.
    fn holds(&self, found: &Found) {
        let issued = &self.issued[&found.place.number];
        assert_eq!(found.damaged, [], "nothing was damaged");
        assert_eq!(found.records.len(), issued.len());
        for (record, (change, data)) in found.records.iter().zip(issued) {
            assert_eq!(record.change, *change);
            assert_eq!(self.data(found.place, record), data);
        }
    }

    /// Opens the ring after whatever happened, and looks at what it finds.
    fn open(&mut self) -> Ring {
        let tail = self.checkpoint().tail.number;
        let (found, ring) = self.replay();
        let numbers: Vec<u64> = found.iter().map(|it| it.place.number).collect();
        let last = numbers.last().map_or(tail - 1, |&last| last);
        assert_eq!(numbers, (tail..=last).collect::<Vec<u64>>(), "no gap");
        assert!(
            last >= self.told,
            "{last}: {} was told as stable",
            self.told
        );
        assert!(tail <= self.released, "only what was released is forgotten");
        for batch in &found {
            self.holds(batch);
        }
        (self.told, self.released) = (last, tail);
        let ring = ring.unwrap();
        let opening = ring.opening().unwrap();
        self.pending.push(Pending {
            target: Target::Slot(opening.slot.into()),
            bytes: opening.bytes,
            number: None,
        });
        ring
    }

    /// A few changes, each with data that nothing else has.
    fn changes(&mut self, most: u64) -> Contents {
        let count = self.random.below(most + 1);
        let change = |_| {
            self.sequence += 1;
            let blocks = 1 + self.random.below(24);
            let kind = [Kind::Write, Kind::Write, Kind::Zeroes, Kind::Direct]
                [usize::try_from(self.random.below(4)).unwrap()];
            let change = Change {
                volume: VolumeId(self.random.below(3)),
                sequence: Sequence(self.sequence),
                range: LbaRange::new(Lba(self.random.below(1000)), BlockCount(blocks)).unwrap(),
                block_size: BlockSize::B512,
                kind,
            };
            let stamp = self.sequence.to_le_bytes();
            let bytes = change.data_bytes().unwrap();
            let data: Vec<u8> = stamp.into_iter().cycle().take(bytes).collect();
            (change, data)
        };
        (0..count).map(change).collect()
    }

    fn append(&mut self, ring: &mut Ring, most: u64) -> Result<(), Refused> {
        let contents = self.changes(most);
        let changes: Vec<(Change, Buf)> = contents
            .iter()
            .map(|(change, data)| (*change, Buf::copy_of(data)))
            .collect();
        let write = ring.append(&changes)?;
        for ((_, data), at) in contents.iter().zip(&write.data_at) {
            let at = *at as usize;
            assert_eq!(write.bytes.slice(at..at + data.len()).to_vec(), *data);
        }
        self.issued.insert(write.number, contents);
        self.pending.push(Pending {
            target: Target::Log(write.at),
            bytes: write.bytes.to_vec(),
            number: Some(write.number),
        });
        Ok(())
    }

    fn put(&mut self, target: &Target, bytes: &[u8], sectors: impl Fn(usize) -> bool) {
        let into = match *target {
            Target::Slot(slot) => &mut self.slots[slot][..],
            Target::Log(at) => &mut self.log[usize::try_from(at).unwrap()..],
        };
        for (sector, part) in bytes.chunks(512).enumerate() {
            if sectors(sector) {
                into[sector * 512..][..part.len()].copy_from_slice(part);
            }
        }
    }

    /// The disk answers one write, whichever.
    fn complete(&mut self, ring: &mut Ring) {
        if self.pending.is_empty() {
            return;
        }
        let which = self.random.below(self.pending.len() as u64);
        let write = self.pending.swap_remove(usize::try_from(which).unwrap());
        self.put(&write.target, &write.bytes, |_| true);
        match write.number {
            Some(number) => ring.written(number, true),
            None => ring.checkpoint_written(true),
        }
        let stable = ring.stable();
        assert!(stable >= self.told, "what was told stays told");
        self.told = stable;
    }

    /// Of each write that was not answered, all, nothing, or any of its sectors is there.
    fn crash(&mut self) {
        for write in std::mem::take(&mut self.pending) {
            let kept: Vec<bool> = match self.random.below(3) {
                0 => continue,
                1 => vec![true; write.bytes.len() / 512],
                _ => (0..write.bytes.len() / 512)
                    .map(|_| self.random.one_in(2))
                    .collect(),
            };
            self.put(&write.target, &write.bytes, |sector| kept[sector]);
        }
    }

    fn release(&mut self, ring: &mut Ring) {
        let stable = ring.stable();
        if stable < self.released {
            return;
        }
        self.released += self.random.below(stable + 2 - self.released);
        ring.release(self.released);
        if let Some(write) = ring.checkpoint() {
            self.pending.push(Pending {
                target: Target::Slot(write.slot.into()),
                bytes: write.bytes,
                number: None,
            });
        }
    }

    /// Answers everything, so that all is stable, and the ring is at rest.
    fn settle(&mut self, ring: &mut Ring) {
        while !self.pending.is_empty() {
            self.complete(ring);
        }
    }
}

#[test]
fn what_was_told_as_stable_survives_every_crash_and_nothing_else_is_invented() {
    let (mut crashes, mut full, mut turns, mut torn) = (0, 0, 0, 0);
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
    assert!(crashes == 9000 && full > 500 && turns > 10_000 && torn > 500);
}

/// A ring at rest, with nothing on its way.
fn at_rest(seed: u64, sealed: bool) -> (World, Ring) {
    let mut world = World::new(seed, 200);
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
            assert_eq!(
                (&hit.damaged, hit.records.len()),
                (&all, 0),
                "the whole batch"
            );
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
        // This header, and the next one that could tell of it.
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
            Ok(_) => other += 1,
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
    // Two batches on their way; the second one is whole on the disk, the first one is not there at all.
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
fn after_a_failed_write_nothing_is_taken_or_told() {
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
fn a_journal_says_what_it_is_or_why_it_is_not() {
    let layout = Layout::of_device(64 << 20, 2).unwrap();
    assert_eq!(layout.ring_blocks, (16384 - 2) / 2 - 2);
    let superblock = Superblock {
        journal: OF.0,
        pool: [9; 16],
        layout,
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
        begun: Place {
            number: 9,
            position: 77,
        },
        tail: Place {
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

#[test]
fn headers_say_what_was_put_into_them_and_nothing_else_is_a_header() {
    let mut world = World::new(77, 400);
    for _ in 0..300 {
        let contents: Vec<(Change, Buf)> = world
            .changes(20)
            .into_iter()
            .map(|(change, data)| (change, Buf::copy_of(&data)))
            .collect();
        let before = world
            .changes(128)
            .into_iter()
            .map(|(change, _)| change)
            .collect();
        let place = Place {
            number: 5,
            position: 600,
        };
        let header = Header::over(place, 2, 4, &contents, before);
        let mut bytes = header.write(OF.0, OF.1);
        assert_eq!(Header::read(&bytes, OF.0, OF.1).as_ref(), Some(&header));
        assert_eq!(Header::read(&bytes, OF.0, OF.1 + 1), None);
        assert_eq!(Header::read(&bytes, JournalId([8; 16]), OF.1), None);
        let at = usize::try_from(world.random.below(bytes.len() as u64)).unwrap();
        bytes[at] ^= 1 << world.random.below(8);
        assert_eq!(Header::read(&bytes, OF.0, OF.1), None, "bit of byte {at}");
    }
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
