//! Group commit: who waits is answered in order, and what is found after a crash is what was
//! submitted first.

use super::world::{Target, World};
use crate::*;
use std::collections::{BTreeMap, VecDeque};
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};

/// A log, with all that was ever submitted to it and is not known to be lost.
struct Office {
    world: World,
    log: Log,
    /// Submitted and not acknowledged: number of the token, volume, and data.
    open: VecDeque<(u64, VolumeId, Vec<u8>)>,
    /// What each volume's changes were, by number.
    changes: BTreeMap<(VolumeId, Sequence), Vec<u8>>,
    next: BTreeMap<VolumeId, Sequence>,
    tokens: u64,
    acknowledged: u64,
    together: u64,
}

impl Office {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed, 600);
        let mut ring = world.open();
        world.settle(&mut ring);
        let mut office = Self {
            world,
            log: Log::new(ring),
            open: VecDeque::new(),
            changes: BTreeMap::new(),
            next: (0..3).map(|it| (VolumeId(it), Sequence(0))).collect(),
            tokens: 0,
            acknowledged: 0,
            together: 0,
        };
        office.serve();
        office
    }

    fn serve(&mut self) {
        for (volume, next) in &self.next {
            self.log.serve(*volume, *next);
        }
    }

    fn submit(&mut self) {
        let volume = VolumeId(self.world.random.below(3));
        self.tokens += 1;
        let wanted = self.world.write(volume, self.tokens);
        let data = wanted.data.to_vec();
        self.log.submit(Token(self.tokens), wanted).unwrap();
        self.open.push_back((self.tokens, volume, data));
    }

    fn push(&mut self) {
        let has_room = self.world.takes(&mut self.log, |write| {
            self.together = self.together.max(write.data_at.len() as u64);
        });
        if !has_room {
            let stable = self.log.ring().stable();
            self.log.release(stable);
        }
    }

    /// The disk answers one write, whichever; those that waited are answered in the order in which
    /// they came.
    fn complete(&mut self) {
        let Some(ended) = self.world.ends_one(&mut self.log) else {
            return;
        };
        for stable in ended.committed {
            let (token, volume, data) = self.open.pop_front().unwrap();
            assert_eq!(
                (stable.token, stable.change.volume),
                (Some(Token(token)), volume)
            );
            self.learn(stable.change, &data, stable.data_at);
            self.acknowledged += 1;
        }
    }

    /// A change has the next number of its volume, and its data lies where it is said to.
    fn learn(&mut self, change: Change, data: &[u8], at: u64) {
        let next = self.next.get_mut(&change.volume).unwrap();
        assert_eq!(change.sequence, *next, "no gap");
        *next = Sequence(next.0 + 1);
        let at = usize::try_from(at).unwrap();
        assert_eq!(&self.world.log[at..at + data.len()], data);
        self.changes
            .insert((change.volume, change.sequence), data.to_vec());
    }

    /// Everything that was acknowledged is there; after it comes, in order, what was submitted
    /// next, as far as it got.
    fn crash(&mut self) {
        self.world.crash();
        let (found, ring) = self.world.replay();
        for batch in &found {
            assert_eq!(batch.damaged, []);
            for record in &batch.records {
                let at = data_at(batch.place, record, self.world.blocks);
                let change = record.change;
                let known = self.changes.get(&(change.volume, change.sequence)).cloned();
                let data = known.unwrap_or_else(|| {
                    let (_, volume, data) = self.open.pop_front().unwrap();
                    assert_eq!(volume, change.volume, "in the order of submission");
                    self.learn(change, &data, at);
                    data
                });
                assert_eq!(self.world.data(batch.place, record), data);
            }
        }
        let mut known = self.next.clone();
        sequences(&found, &mut known);
        assert_eq!(
            known, self.next,
            "numbers go on after the last one that is there"
        );
        self.open.clear();
        let mut ring = ring.unwrap();
        let opening = ring.opening().unwrap();
        self.world
            .put(&Target::Slot(opening.slot.into()), &opening.bytes, |_| true);
        ring.checkpoint_written(true);
        self.log = Log::new(ring);
        self.serve();
    }
}

#[test]
fn who_waits_is_reported_in_order_and_numbers_have_no_gap_over_crashes() {
    let (mut acknowledged, mut together) = (0, 0);
    for seed in 1..=200 {
        let mut office = Office::new(seed);
        for _ in 0..4 {
            let steps = 50 + office.world.random.below(200);
            for _ in 0..steps {
                if office.world.random.one_in(2) {
                    office.submit();
                } else {
                    office.complete();
                }
                office.push();
            }
            office.crash();
        }
        (acknowledged, together) = (
            acknowledged + office.acknowledged,
            together.max(office.together),
        );
    }
    assert!(
        acknowledged > 20_000 && together > 10,
        "{acknowledged} acknowledged, {together} together"
    );
}

#[test]
fn after_a_failed_write_everyone_who_waits_hears_of_it_once() {
    for seed in 1..=100 {
        let mut office = Office::new(seed);
        for _ in 0..20 {
            office.submit();
            office.push();
        }
        let fails = office.world.random.below(2);
        let numbers: Vec<u64> = office
            .world
            .pending
            .iter()
            .filter_map(|it| it.number)
            .collect();
        let mut received = Vec::new();
        for (at, number) in (0..).zip(numbers) {
            let acknowledged = office.log.written(number, at != fails);
            received.extend(acknowledged.committed.into_iter().filter_map(|it| it.token));
        }
        let in_time = received.len();
        let given_up = office.log.given_up();
        // Two batches at the most were on their way; what waited has no change yet.
        let on_their_way = given_up.iter().take_while(|(_, change)| change.is_some());
        let waited = given_up.iter().filter(|(_, change)| change.is_none());
        assert_eq!(on_their_way.count() + waited.count(), given_up.len());
        received.extend(given_up.into_iter().map(|(token, _)| token));
        assert!(
            received.iter().copied().eq((1..=20).map(Token)),
            "{received:?}"
        );
        assert!(in_time < 20);
        assert!(office.log.next_step().is_none() && office.log.given_up().is_empty());
        let wanted = Wanted {
            volume: VolumeId(1),
            range: LbaRange::new(Lba(0), BlockCount(1)).unwrap(),
            block_size: BlockSize::B4096,
            kind: Kind::Deallocate,
            data: Buf::empty(),
        };
        assert_eq!(office.log.submit(Token(99), wanted), Err(Refused::Failed));
    }
}

#[test]
fn at_rest_the_last_batch_is_sealed_once() {
    let mut office = Office::new(4);
    assert!(office.log.seal().is_none(), "there is nothing to seal");
    office.submit();
    office.push();
    assert!(office.log.seal().is_none(), "it is on its way");
    office.complete();
    let write = office.log.seal().expect("a batch without changes");
    assert!(office.log.seal().is_none());
    assert_eq!(office.log.written(write.number, true), Ended::default());
    assert!(office.log.seal().is_none(), "a seal needs none");
}

#[test]
fn what_does_not_fit_as_a_whole_fills_the_room_that_is_left() {
    let mut office = Office::new(5);
    for token in 0..500 {
        let wanted = Wanted {
            volume: VolumeId(1),
            range: LbaRange::new(Lba(token), BlockCount(1)).unwrap(),
            block_size: BlockSize::B4096,
            kind: Kind::Write,
            data: Buf::zeroes(4096),
        };
        office.log.submit(Token(1000 + token), wanted).unwrap();
    }
    let mut batches = Vec::new();
    loop {
        match office.log.next_step().expect("they wait") {
            Next::Write(write) => {
                batches.push(office.log.written(write.number, true).committed.len());
            }
            Next::Checkpoint(_) => office.log.checkpoint_written(true),
            Next::Full => break,
        }
    }
    let ring = office.log.ring();
    let left = ring.room_blocks() - ring.used_blocks();
    // A batch of one has two blocks, or three where its header repeats a long list.
    assert!(left < 3, "{left} blocks are left: {batches:?}");
    assert_eq!(batches.first(), Some(&RECORDS_MAX));
    assert!(batches.iter().sum::<usize>() > 270, "{batches:?}");
}
