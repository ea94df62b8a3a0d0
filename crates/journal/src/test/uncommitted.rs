//! Volumes of several copies: what is given out is committed, in order and once, over crashes; what
//! a later epoch made void is not, and what is not committed is never forgotten.

use super::world::{OF, Pending, Target, World};
use crate::*;
use std::collections::BTreeMap;
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};

/// Two of several copies, and one of one.
const COPIES: [VolumeId; 2] = [VolumeId(0), VolumeId(1)];
const ALONE: VolumeId = VolumeId(2);

/// Set in the stamps of records that begin an epoch.
const OF_EPOCH: u64 = 1 << 63;

/// A record, in the order of the log.
#[derive(Clone, Copy)]
struct Entry {
    volume: VolumeId,
    /// What its data says, or its epoch.
    stamp: u64,
    /// Of an epoch: its first number.
    first: Option<u64>,
}

/// How often what happened that the test is about.
#[derive(Default, Debug)]
struct Seen {
    given: u64,
    found_committed: u64,
    found_held: u64,
    void: u64,
    ahead: u64,
    epochs_lost: u64,
    released: u64,
}

struct Office {
    world: World,
    log: Log,
    entries: Vec<Entry>,
    stamps: u64,
    /// What was said to be committed, and the number that is given out next.
    committed: BTreeMap<VolumeId, u64>,
    given: BTreeMap<VolumeId, Option<u64>>,
    /// The newest epoch that began since the log was opened, and its first number.
    begun: BTreeMap<VolumeId, (u64, u64)>,
    seen: Seen,
}

/// The stamps of a volume by the numbers of its changes, after these records.
fn numbers(entries: &[Entry], volume: VolumeId) -> Vec<u64> {
    let mut numbers = Vec::new();
    for it in entries.iter().filter(|it| it.volume == volume) {
        if let Some(first) = it.first {
            numbers.truncate(usize::try_from(first).unwrap());
        }
        numbers.push(it.stamp);
    }
    numbers
}

impl Office {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed, 600);
        let mut ring = world.open();
        world.settle(&mut ring);
        let mut office = Self {
            world,
            log: Log::new(ring),
            entries: Vec::new(),
            stamps: 0,
            committed: COPIES.map(|it| (it, 0)).into(),
            given: BTreeMap::new(),
            begun: BTreeMap::new(),
            seen: Seen::default(),
        };
        office.serve();
        office
    }

    fn serve(&mut self) {
        for volume in COPIES.into_iter().chain([ALONE]) {
            let next = numbers(&self.entries, volume).len() as u64;
            self.log.serve(volume, Sequence(next));
        }
        for volume in COPIES {
            self.log.commits(volume, Commit::Later);
        }
    }

    fn submit(&mut self) {
        let volume = VolumeId(self.world.random.below(3));
        self.stamps += 1;
        let wanted = self.world.write(volume, self.stamps);
        self.log.submit(Token(self.stamps), wanted).unwrap();
        self.entries.push(Entry {
            volume,
            stamp: self.stamps,
            first: None,
        });
    }

    /// A later epoch that makes some of what is not committed void.
    fn begin_epoch(&mut self) {
        let volume = COPIES[usize::try_from(self.world.random.below(2)).unwrap()];
        if self.log.waiting() > 0 || self.beginning(volume).is_some() {
            return;
        }
        let (from, to) = (self.committed[&volume], self.log.next_sequence(volume));
        let first = from + self.world.random.below(to.unwrap().0 - from + 1);
        self.stamps += 1;
        let (token, epoch) = (Token(self.stamps), self.stamps);
        let begun = self
            .log
            .begin_epoch(token, (volume, epoch), Sequence(first));
        begun.unwrap();
        self.begun.insert(volume, (epoch, first));
        self.entries.push(Entry {
            volume,
            stamp: epoch | OF_EPOCH,
            first: Some(first),
        });
    }

    fn push(&mut self) {
        while let Some(next) = self.log.next_step() {
            let pending = match next {
                Next::Write(write) => Pending {
                    target: Target::Log(write.at),
                    bytes: write.bytes.to_vec(),
                    number: Some(write.number),
                },
                Next::Checkpoint(write) => Pending {
                    target: Target::Slot(write.slot.into()),
                    bytes: write.bytes,
                    number: None,
                },
                Next::Full => return,
            };
            self.world.pending.push(pending);
        }
    }

    fn complete(&mut self) {
        let count = self.world.pending.len() as u64;
        if count == 0 {
            return;
        }
        let which = usize::try_from(self.world.random.below(count)).unwrap();
        let write = self.world.pending.swap_remove(which);
        self.world.put(&write.target, &write.bytes, |_| true);
        let Some(number) = write.number else {
            return self.log.checkpoint_written(true);
        };
        let ended = self.log.written(number, true);
        for it in ended
            .committed
            .iter()
            .filter(|it| it.change.volume != ALONE)
        {
            // Said before it was stable here.
            self.take(it);
            self.seen.ahead += 1;
        }
        for it in &ended.void {
            let live = numbers(&self.entries, it.change.volume);
            assert!(!live.contains(&self.stamp_of(it)), "{it:?} is void");
            assert!(self.log.is_void(&it.change, it.batch));
            self.seen.void += 1;
        }
        for (volume, below) in ended.stable {
            assert_eq!(self.log.known(volume).0, below);
        }
    }

    /// What lies in the log where it is said to.
    fn stamp_of(&self, it: &Stable) -> u64 {
        if it.change.kind == Kind::Epoch {
            return it.change.range.start().0 | OF_EPOCH;
        }
        let at = usize::try_from(it.data_at).unwrap();
        u64::from_le_bytes(self.world.log[at..at + 8].try_into().unwrap())
    }

    /// Of a volume of several copies: it is the next one, and what was put there.
    fn take(&mut self, it: &Stable) {
        let (volume, number) = (it.change.volume, it.change.sequence.0);
        let next = self.given.entry(volume).or_default();
        assert_eq!(number, next.unwrap_or(number), "in order, and once");
        *next = Some(number + 1);
        assert!(number < self.committed[&volume], "{it:?} is not committed");
        let live = numbers(&self.entries, volume);
        assert_eq!(self.stamp_of(it), live[usize::try_from(number).unwrap()]);
        assert!(!self.log.is_void(&it.change, it.batch));
        self.seen.given += 1;
    }

    fn commit(&mut self) {
        let volume = COPIES[usize::try_from(self.world.random.below(2)).unwrap()];
        let most = if self.beginning(volume).is_some() {
            numbers(&self.entries, volume).len() as u64
        } else {
            self.log.known(volume).0.0
        };
        let committed = self.committed[&volume];
        let below = committed + self.world.random.below(most.max(committed) - committed + 1);
        self.commit_to(volume, below);
    }

    /// The first number of an epoch whose record is not stable yet.
    fn beginning(&self, volume: VolumeId) -> Option<u64> {
        let (epoch, first) = *self.begun.get(&volume)?;
        let known = self.log.epochs(volume).any(|it| it.epoch == epoch);
        (!known).then_some(first)
    }

    fn commit_to(&mut self, volume: VolumeId, below: u64) {
        self.committed.insert(volume, below);
        for it in self.log.commit(volume, Sequence(below)) {
            self.take(&it);
        }
        let next = self.given.get(&volume).copied().flatten();
        let most = self.log.known(volume).0.0;
        let most = self.beginning(volume).map_or(most, |first| most.min(first));
        assert!(next.is_none_or(|it| it == below.min(most)), "all of them");
    }

    fn release(&mut self) {
        let (from, to) = (
            self.log.ring().released().number,
            self.log.ring().committed(),
        );
        let number = from + self.world.random.below(to + 2 - from);
        self.log.release(number);
        self.seen.released += number - from;
    }

    fn crash(&mut self) {
        for volume in COPIES {
            // What only others have is not found here.
            let stable = self.log.known(volume).0.0;
            let stable = self
                .beginning(volume)
                .map_or(stable, |first| stable.min(first));
            let committed = self.committed.get_mut(&volume).unwrap();
            *committed = stable.min(*committed);
        }
        self.world.crash();
        let (found, ring) = self.world.replay();
        let mut ring = ring.unwrap();
        let (mut uncommitted, mut committed, mut last) = (Uncommitted::default(), Vec::new(), None);
        for batch in &found {
            assert_eq!(batch.damaged, []);
            last = batch.records.last().map(|it| (batch.place, *it)).or(last);
            committed.extend(uncommitted.found(batch, self.world.blocks));
        }
        // What is behind the last one that was found is lost.
        if let Some((place, record)) = last {
            let it = Stable {
                token: None,
                change: record.change,
                batch: place.number,
                data_at: data_at(place, &record, self.world.blocks),
                is_damaged: false,
            };
            let stamp = self.stamp_of(&it);
            let count = self.entries.iter().position(|it| it.stamp == stamp);
            let lost = self.entries.split_off(count.unwrap() + 1);
            self.seen.epochs_lost += lost.iter().filter(|it| it.first.is_some()).count() as u64;
        } else if self.world.checkpoint().tail.number == 1 {
            self.entries.clear();
        }
        let opening = ring.opening().unwrap();
        let slot = Target::Slot(opening.slot.into());
        self.world.put(&slot, &opening.bytes, |_| true);
        ring.checkpoint_written(true);
        self.log = Log::with_uncommitted(ring, uncommitted);
        self.serve();
        self.given.clear();
        self.begun.clear();
        let of_copies = committed.iter().filter(|it| it.change.volume != ALONE);
        for it in of_copies {
            self.take(it);
            self.seen.found_committed += 1;
        }
        let mut known = BTreeMap::new();
        sequences(&found, &mut known);
        for (volume, next) in known {
            let live = numbers(&self.entries, volume);
            assert_eq!(next.0, live.len() as u64, "{volume:?}");
        }
        for volume in COPIES {
            let (stable, below) = (self.log.known(volume).0.0, self.committed[&volume]);
            self.seen.found_held += stable.saturating_sub(below);
            self.commit_to(volume, below);
        }
    }
}

#[test]
fn what_is_given_out_is_committed_in_order_and_what_is_not_is_kept_over_crashes() {
    let mut all = Seen::default();
    for seed in 1..=300 {
        let mut office = Office::new(seed);
        for _ in 0..4 {
            for _ in 0..50 + office.world.random.below(150) {
                match office.world.random.below(20) {
                    0..=7 => office.submit(),
                    8..=13 => office.complete(),
                    14..=16 => office.commit(),
                    17 | 18 => office.release(),
                    _ => office.begin_epoch(),
                }
                office.push();
            }
            office.crash();
        }
        // Nothing that was not committed was forgotten: all of it can be.
        for volume in COPIES {
            let all = numbers(&office.entries, volume).len() as u64;
            if office.committed[&volume] < all {
                office.commit_to(volume, all);
                assert_eq!(office.given[&volume], Some(all));
            }
            let first = office.log.epochs(volume).map(|it| it.first.0);
            let live = numbers(&office.entries, volume);
            let epochs = (0..)
                .zip(&live)
                .filter(|(_, stamp)| **stamp & OF_EPOCH != 0);
            let known: Vec<u64> = first.collect();
            let epochs: Vec<u64> = epochs.map(|(number, _)| number).collect();
            assert!(epochs.ends_with(&known), "{known:?} of {epochs:?}");
        }
        let seen = &office.seen;
        all.given += seen.given;
        all.found_committed += seen.found_committed;
        all.found_held += seen.found_held;
        all.void += seen.void;
        all.ahead += seen.ahead;
        all.epochs_lost += seen.epochs_lost;
        all.released += seen.released;
    }
    println!("{all:?}");
    assert!(all.given > 10_000 && all.found_committed > 1_000, "{all:?}");
    assert!(all.found_held > 1_000 && all.void > 1_000, "{all:?}");
    assert!(
        all.epochs_lost > 20 && all.ahead > 100 && all.released > 1_000,
        "{all:?}"
    );
}

#[test]
fn what_one_copy_alone_needs_is_written_as_before_and_is_read_by_the_program_before() {
    let mut office = Office::new(9);
    let mut versions = Vec::new();
    for volume in [ALONE, COPIES[0], ALONE, ALONE] {
        let wanted = Wanted {
            volume,
            range: LbaRange::new(Lba(1), BlockCount(1)).unwrap(),
            block_size: BlockSize::B512,
            kind: Kind::Zeroes,
            data: Buf::empty(),
        };
        office.log.submit(Token(7), wanted).unwrap();
        let Some(Next::Write(write)) = office.log.next_step() else {
            panic!("there is room")
        };
        let bytes = write.bytes.to_vec();
        versions.push(bytes[12]);
        let header = Header::read(&bytes, OF.0, OF.1).unwrap();
        assert_eq!(header.committed, office.log.ring().committed());
        office.log.written(write.number, true);
        if versions.len() == 3 {
            assert_eq!(office.log.commit(COPIES[0], Sequence(1)).len(), 1);
        }
    }
    // The third batch repeats what the second one changed, and does not commit it.
    assert_eq!(versions, [1, 2, 2, 1]);
}
