//! Volumes of several copies: what is given out is committed, in order and once, over crashes; what
//! a later epoch made void is not, and what is not committed is never forgotten.

use super::world::{OF, Target, World};
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
    overtaken: u64,
}

struct Office {
    world: World,
    log: Log,
    entries: Vec<Entry>,
    /// How many of them were there when the log was opened, and how many each batch since holds.
    found: usize,
    batches: Vec<(u64, usize)>,
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
            found: 0,
            batches: Vec::new(),
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

    /// A later epoch that makes some of what is not committed void, ahead of all that waits.
    fn begin_epoch(&mut self) {
        let volume = COPIES[usize::try_from(self.world.random.below(2)).unwrap()];
        let of = |entries: &[Entry], token: Token| {
            let entry = entries.iter().find(|it| it.stamp == token.0);
            entry.is_some_and(|it| it.volume == volume)
        };
        let gone = self.log.withdraw(|token| of(&self.entries, token));
        self.entries.retain(|it| !gone.contains(&Token(it.stamp)));
        let (from, to) = (self.committed[&volume], self.log.next_sequence(volume));
        let to = to.unwrap().0;
        let first = from + self.world.random.below(to - from + 1);
        self.stamps += 1;
        let (token, epoch) = (Token(self.stamps), self.stamps);
        let waiting = self.log.waiting();
        let begun = self
            .log
            .begin_epoch(token, (volume, epoch), Sequence(first));
        if self.beginning(volume).is_some() {
            return assert_eq!(begun, Err(EpochRefused::Begins));
        }
        begun.unwrap();
        self.begun.insert(volume, (epoch, first));
        let of_hosts = self
            .entries
            .iter()
            .rev()
            .take_while(|it| it.first.is_none());
        let overtaken = of_hosts.count().min(waiting);
        self.seen.overtaken += overtaken as u64;
        let place = self.entries.len() - overtaken;
        let entry = Entry {
            volume,
            stamp: epoch | OF_EPOCH,
            first: Some(first),
        };
        self.entries.insert(place, entry);
    }

    fn push(&mut self) {
        self.world.takes(&mut self.log, |write| {
            let batch = (write.number, write.data_at.len());
            self.batches.push(batch);
        });
    }

    fn complete(&mut self) {
        let Some(ended) = self.world.ends_one(&mut self.log) else {
            return;
        };
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
            // What waits has no number yet, and no other copy has it.
            self.log.next_sequence(volume).unwrap().0
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
        let epoch = self.log.epoch(volume);
        for it in self.log.commit(volume, (epoch, Sequence(below))) {
            self.take(&it);
        }
        for other in [epoch.wrapping_sub(1), epoch + 1] {
            let late = self.log.commit(volume, (other, Sequence(u64::MAX)));
            assert_eq!(late, [], "it names another epoch");
        }
        let next = self.given.get(&volume).copied().flatten();
        let most = self.log.known(volume).0.0;
        let most = self.beginning(volume).map_or(most, |first| most.min(first));
        assert!(next.is_none_or(|it| it == below.min(most)), "all of them");
        let held = COPIES.map(|it| self.log.held_sectors(it));
        assert_eq!(self.log.all_held_sectors(), held.iter().sum::<u64>());
    }

    fn release(&mut self) {
        let (from, to) = (self.log.ring().released().number, self.log.ring().unheld());
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
        let stable = self.log.ring().stable();
        let stable = self.batches.drain(..).filter(|it| it.0 <= stable);
        let stable = self.found + stable.map(|it| it.1).sum::<usize>();
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
        } else {
            // All that was stable had been released.
            self.entries.truncate(stable);
        }
        self.found = self.entries.len();
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
        all.overtaken += seen.overtaken;
    }
    println!("{all:?}");
    assert!(all.given > 10_000 && all.found_committed > 1_000, "{all:?}");
    assert!(all.found_held > 1_000 && all.void > 1_000, "{all:?}");
    assert!(
        all.epochs_lost > 20 && all.ahead > 100 && all.released > 1_000 && all.overtaken > 100,
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
            assert_eq!(office.log.commit(COPIES[0], (0, Sequence(1))).len(), 1);
        }
    }
    // The third batch repeats what the second one changed, and does not commit it.
    assert_eq!(versions, [1, 2, 2, 1]);
}

impl Office {
    /// Puts changes of a volume into the log until it is full, all of them stable.
    fn fill(&mut self, volume: VolumeId) {
        loop {
            self.stamps += 1;
            let wanted = self.world.write(volume, self.stamps);
            self.log.submit(Token(self.stamps), wanted).unwrap();
            match self.log.next_step() {
                Some(Next::Write(write)) => {
                    self.log.written(write.number, true);
                }
                Some(Next::Full) => return,
                other => panic!("{other:?}"),
            }
        }
    }

    fn is_held(&self, volume: VolumeId) -> bool {
        let (stable, committed) = self.log.known(volume);
        committed < stable
    }
}

#[test]
fn an_epoch_gets_into_a_full_log_and_what_it_makes_void_is_room_again() {
    let mut office = Office::new(3);
    office.fill(COPIES[0]);
    assert_eq!(office.log.ring().oldest(u64::MAX).map(|it| it.end()), None);
    let gone = office.log.withdraw(|_| true);
    assert_eq!(gone.len(), 1);
    // A neighbour waits, and the epoch overtakes it.
    let wanted = office.world.write(ALONE, 7);
    office.log.submit(Token(7), wanted).unwrap();
    assert!(matches!(office.log.next_step(), Some(Next::Full)));
    let begun = office
        .log
        .begin_epoch(Token(8), (COPIES[0], 1), Sequence(0));
    assert_eq!(begun, Ok(()));
    let late = office
        .log
        .begin_epoch(Token(9), (COPIES[0], 2), Sequence(0));
    assert_eq!(late, Err(EpochRefused::Begins));
    let Some(Next::Write(write)) = office.log.next_step() else {
        panic!("there is room for it")
    };
    let ended = office.log.written(write.number, true);
    assert!(ended.void.len() > 10, "{}", ended.void.len());
    let late = office
        .log
        .begin_epoch(Token(9), (COPIES[0], 1), Sequence(0));
    assert_eq!(late, Err(EpochRefused::Late { newest: 1 }));
    let committed = office.log.commit(COPIES[0], (1, Sequence(1)));
    assert_eq!(committed.len(), 1, "the epoch itself");
    let below = Sequence(1);
    let over = office
        .log
        .begin_epoch(Token(9), (COPIES[0], 2), Sequence(0));
    assert_eq!(over, Err(EpochRefused::Committed { below }));
    let gap = office
        .log
        .begin_epoch(Token(9), (COPIES[0], 2), Sequence(2));
    let next = Sequence(1);
    assert_eq!(
        gap,
        Err(EpochRefused::Beyond { next }),
        "no number is left out"
    );
    let end = office.log.ring().oldest(u64::MAX).unwrap().end();
    assert_eq!(end, office.log.ring().next_number(), "all may be released");
    office.log.release(end);
    for _ in 0..2 {
        let Some(Next::Checkpoint(_)) = office.log.next_step() else {
            panic!("in both slots")
        };
        office.log.checkpoint_written(true);
    }
    assert!(matches!(office.log.next_step(), Some(Next::Write(_))));
}

#[test]
fn a_volume_that_is_gone_lets_go_and_one_copy_gives_out_also_after_a_crash() {
    for crashes in [false, true] {
        let mut office = Office::new(5);
        for volume in COPIES {
            for _ in 0..3 {
                office.stamps += 1;
                let wanted = office.world.write(volume, office.stamps);
                office.log.submit(Token(office.stamps), wanted).unwrap();
            }
        }
        let gone = Wanted {
            volume: COPIES[0],
            range: LbaRange::new(Lba(0), BlockCount(1)).unwrap(),
            block_size: BlockSize::B512,
            kind: Kind::Gone,
            data: Buf::empty(),
        };
        office.push();
        office.log.submit(Token(100), gone).unwrap();
        office.push();
        let mut void = Vec::new();
        while let Some(write) =
            (!office.world.pending.is_empty()).then(|| office.world.pending.remove(0))
        {
            office.world.put(&write.target, &write.bytes, |_| true);
            void.extend(office.log.written(write.number.unwrap(), true).void);
        }
        assert_eq!(void.iter().filter_map(|it| it.token).count(), 3);
        assert!(
            void.iter()
                .all(|it| office.log.is_void(&it.change, it.batch))
        );
        if crashes {
            let (found, ring) = office.world.replay();
            let mut uncommitted = Uncommitted::default();
            let committed: Vec<Stable> = found
                .iter()
                .flat_map(|batch| uncommitted.found(batch, office.world.blocks))
                .collect();
            let kinds: Vec<Kind> = committed.iter().map(|it| it.change.kind).collect();
            assert_eq!(kinds, [Kind::Gone], "without what it made void");
            office.log = Log::with_uncommitted(ring.unwrap(), uncommitted);
            office.log.serve(COPIES[1], Sequence(3));
        }
        assert!(!office.is_held(COPIES[0]) && office.is_held(COPIES[1]));
        let given = office.log.commits(COPIES[1], Commit::AtOnce);
        let numbers: Vec<u64> = given.iter().map(|it| it.change.sequence.0).collect();
        assert_eq!(numbers, [0, 1, 2], "in their order");
        assert_eq!(office.log.ring().committed(), office.log.ring().stable());
        assert_eq!(office.log.commits(COPIES[1], Commit::AtOnce), [], "once");
    }
}

#[test]
fn a_change_of_one_copy_comes_after_what_its_volume_held_also_where_no_header_says_so() {
    one_copy_after_several();
}

pub(super) fn one_copy_after_several() {
    let mut office = Office::new(7);
    for commit in [Commit::Later, Commit::AtOnce] {
        // The first one is on its way when its volume has one copy again.
        assert_eq!(office.log.commits(COPIES[0], commit), []);
        office.stamps += 1;
        let wanted = office.world.write(COPIES[0], office.stamps);
        office.log.submit(Token(office.stamps), wanted).unwrap();
        office.push();
    }
    for write in std::mem::take(&mut office.world.pending) {
        office.world.put(&write.target, &write.bytes, |_| true);
    }
    let (found, _) = office.world.replay();
    assert_eq!(found.len(), 2);
    assert_eq!(found[1].committed, 0, "it was not stable yet");
    let mut uncommitted = Uncommitted::default();
    let given = found
        .iter()
        .flat_map(|batch| uncommitted.found(batch, office.world.blocks));
    let numbers: Vec<u64> = given.map(|it| it.change.sequence.0).collect();
    assert_eq!(numbers, [0, 1]);
}
