//! A volume whose changes come with their numbers: what its log holds is what its owners ordered,
//! over takeovers and crashes, and what is not the next change of the owner that is followed is
//! refused. The oracle is a list of what the owners ordered, by number.

use super::world::{Target, World};
use crate::*;
use std::collections::BTreeMap;
use units::{BlockSize, Buf, Lba, LbaRange};

const VOLUME: VolumeId = VolumeId(4);
/// Its changes get their numbers here, and are committed at once.
const ALONE: VolumeId = VolumeId(5);

/// What an owner has ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ordered {
    Write(u64),
    Epoch(u64),
}

#[derive(Default, Debug)]
struct Seen {
    taken: u64,
    refused: u64,
    given_up: u64,
    /// Where the owner has no epoch that begins there.
    goes_on: u64,
    given_out: u64,
    void: u64,
    renewed: u64,
    /// Numbers that a renewed log has passed over.
    passed: u64,
}

struct Replica {
    world: World,
    log: Log,
    /// What the owner's log has, by number, and its epoch.
    owner: Vec<Ordered>,
    epoch: u64,
    /// So many numbers are committed.
    committed: u64,
    /// Where this copy was made anew last.
    anew: u64,
    stamps: u64,
    tokens: u64,
    seen: Seen,
}

impl Replica {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed, 600);
        let mut ring = world.open();
        world.settle(&mut ring);
        let mut replica = Self {
            world,
            log: Log::new(ring),
            owner: Vec::new(),
            epoch: 0,
            committed: 0,
            anew: 0,
            stamps: 0,
            tokens: 0,
            seen: Seen::default(),
        };
        replica.serve(Sequence(0));
        replica
    }

    fn serve(&mut self, next: Sequence) {
        self.log.serve(VOLUME, next);
        self.log.commits(VOLUME, Commit::Later);
        self.log.serve(ALONE, Sequence(0));
    }

    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    /// The owner orders one change more.
    fn order(&mut self) {
        self.stamps += 1;
        self.owner.push(Ordered::Write(self.stamps));
    }

    /// Another owner, which lacks some of what is not committed, and this log may lack some of its.
    fn takeover(&mut self) {
        let most = self.owner.len() as u64;
        let has = self.committed + self.world.random.below(most - self.committed + 1);
        self.owner.truncate(usize::try_from(has).unwrap());
        for _ in 0..self.world.random.below(4) {
            self.order();
        }
        self.epoch += 1 + self.world.random.below(2);
        self.owner.push(Ordered::Epoch(self.epoch));
    }

    /// The first number from which on this log may differ from the owner's: nothing that it holds
    /// is compared, but what it has ever taken.
    fn follow(&mut self, taken: &[Ordered]) {
        let same = taken.iter().zip(&self.owner);
        let from = same.take_while(|(ours, theirs)| ours == theirs).count() as u64;
        if self.log.epoch_begins(VOLUME) {
            let (epoch, token) = (self.epoch, self.token());
            let again = self.log.follow(token, (VOLUME, epoch), Sequence(from));
            return assert_eq!(again, Err(EpochRefused::Begins));
        }
        self.log.withdraw(|_| true);
        let own = self.log.next_sequence(VOLUME).unwrap();
        let token = self.token();
        let followed = self
            .log
            .follow(token, (VOLUME, self.epoch), Sequence(from))
            .unwrap();
        assert_eq!(followed.next.0, from.min(own.0));
        assert_eq!(followed.gives_up, from < own.0);
        self.seen.given_up += own.0.saturating_sub(from);
        let is_epoch = matches!(
            self.owner.get(usize::try_from(from).unwrap()),
            Some(Ordered::Epoch(_))
        );
        self.seen.goes_on += u64::from(followed.gives_up && !is_epoch);
    }

    /// The copy is made anew: the owner has all that is committed, and goes on from there.
    fn renew(&mut self, taken: &mut Vec<Ordered>) {
        if self.log.epoch_begins(VOLUME) || self.epoch_of() > self.epoch {
            return;
        }
        self.log.withdraw(|_| true);
        // The others went on without it.
        for _ in 0..self.world.random.below(8) {
            self.order();
        }
        let more = self.owner.len() as u64 - self.committed;
        self.committed += self.world.random.below(more + 1);
        let (first, own) = (self.committed, self.log.next_sequence(VOLUME).unwrap().0);
        let (epoch, token) = (self.epoch, self.token());
        self.log
            .renew(token, (VOLUME, epoch), Sequence(first))
            .unwrap();
        let next = Sequence(first);
        assert_eq!(self.log.role(VOLUME), Role::Replica { epoch, next });
        *taken = self.owner[..usize::try_from(first).unwrap()].to_vec();
        self.anew = first;
        self.seen.renewed += 1;
        self.seen.passed += first.saturating_sub(own);
    }

    /// Nothing is known of the epochs before the copy was made anew.
    fn knows_no_epoch_before(&self) {
        let mut epochs = self.log.epochs(VOLUME);
        let all: Vec<Epoch> = self.log.epochs(VOLUME).collect();
        assert!(epochs.all(|it| it.first.0 >= self.anew), "{all:?}");
    }

    fn change(&mut self, number: u64) -> (Change, Buf) {
        let ordered = self.owner[usize::try_from(number).unwrap()];
        let (kind, range, data) = match ordered {
            Ordered::Epoch(epoch) => {
                let none = LbaRange::between(Lba(epoch), Lba(epoch)).unwrap();
                (Kind::Epoch, none, Buf::empty())
            }
            Ordered::Write(stamp) => {
                let wanted = self.world.write(VOLUME, stamp);
                (Kind::Write, wanted.range, wanted.data)
            }
        };
        let change = Change {
            volume: VOLUME,
            sequence: Sequence(number),
            range,
            block_size: BlockSize::B512,
            kind,
            commit: Commit::Later,
        };
        (change, data)
    }

    /// The next change, and before it what must not be taken.
    fn append(&mut self, taken: &mut Vec<Ordered>) {
        let Role::Replica { epoch, next } = self.log.role(VOLUME) else {
            return;
        };
        if epoch != self.epoch || next.0 >= self.owner.len() as u64 {
            return;
        }
        let token = self.token();
        let (change, data) = self.change(next.0);
        for wrong in [next.0 + 1, next.0.wrapping_sub(1)] {
            let sequence = Sequence(wrong);
            let gap = Change { sequence, ..change };
            let refused = self.log.append(token, (epoch, &gap), data.clone());
            assert_eq!(refused, Err(AppendRefused::Expected { next }));
        }
        let late = self.log.append(token, (epoch - 1, &change), data.clone());
        assert_eq!(late, Err(AppendRefused::Late { newest: epoch }));
        let other = self.log.append(token, (epoch + 1, &change), data.clone());
        assert_eq!(other, Err(AppendRefused::NotFollowed));
        let kind = Kind::Gone;
        let own = self
            .log
            .append(token, (epoch, &Change { kind, ..change }), Buf::empty());
        assert_eq!(own, Err(AppendRefused::Unfit));
        self.seen.refused += 5;
        self.log.append(token, (epoch, &change), data).unwrap();
        let number = usize::try_from(next.0).unwrap();
        taken.truncate(number);
        taken.push(self.owner[number]);
        self.seen.taken += 1;
    }

    fn alone(&mut self) {
        let token = self.token();
        let wanted = self.world.write(ALONE, 7);
        self.log.submit(token, wanted).unwrap();
    }

    fn push(&mut self) {
        self.world.takes(&mut self.log, |write| {
            assert!(write.carried.is_empty(), "others have them already");
        });
    }

    fn complete(&mut self) {
        let Some(ended) = self.world.ends_one(&mut self.log) else {
            return;
        };
        assert!(ended.held.is_empty(), "nobody here waits for what is held");
        self.seen.void += ended.void.len() as u64;
        let given_out = ended.committed.iter();
        for it in given_out.filter(|it| it.change.volume == VOLUME && !it.change.goes_on()) {
            self.is_right(it);
        }
        for (_, below) in ended.stable {
            assert_eq!(self.log.known(VOLUME).0, below);
        }
        if !self.log.epoch_begins(VOLUME) {
            self.knows_no_epoch_before();
        }
    }

    /// What is given out is what an owner ordered with this number.
    fn is_right(&mut self, it: &Stable) {
        assert_eq!(it.token, None);
        let number = it.change.sequence.0;
        assert!(number < self.committed, "{it:?} is not committed");
        let wanted = self.owner[usize::try_from(number).unwrap()];
        assert_eq!(self.read(it), wanted, "number {number}");
        self.seen.given_out += 1;
    }

    fn read(&self, it: &Stable) -> Ordered {
        if it.change.kind == Kind::Epoch {
            return Ordered::Epoch(it.change.range.start().0);
        }
        let at = usize::try_from(it.data_at).unwrap();
        Ordered::Write(u64::from_le_bytes(
            self.world.log[at..at + 8].try_into().unwrap(),
        ))
    }

    /// The owner says that all that is stable here is committed, or a part of it.
    fn commit(&mut self) {
        if self.log.role(VOLUME) == Role::None || self.epoch_of() != self.epoch {
            return;
        }
        let stable = self.log.known(VOLUME).0.0;
        let more = stable.saturating_sub(self.committed);
        self.committed += self.world.random.below(more + 1);
        let below = Sequence(self.committed);
        for epoch in [self.epoch - 1, self.epoch + 1] {
            let late = self.log.commit(VOLUME, (epoch, Sequence(u64::MAX)));
            assert_eq!(late, [], "of another epoch");
        }
        for it in self.log.commit(VOLUME, (self.epoch, below)) {
            self.is_right(&it);
        }
    }

    fn epoch_of(&self) -> u64 {
        match self.log.role(VOLUME) {
            Role::Replica { epoch, .. } | Role::Owner { epoch } => epoch,
            Role::None => 0,
        }
    }

    /// The power fails; what is found is what was taken, without what was given up.
    fn crash(&mut self, taken: &mut Vec<Ordered>) {
        let begins = self.log.epoch_begins(VOLUME);
        let stable = match begins {
            true => 0,
            false => self.log.known(VOLUME).0.0,
        };
        self.world.crash();
        let (found, ring) = self.world.replay();
        let mut ring = ring.unwrap();
        let mut uncommitted = Uncommitted::default();
        let mut given_out = Vec::new();
        for batch in &found {
            given_out.extend(uncommitted.found(batch, self.world.blocks));
        }
        let opening = ring.opening().unwrap();
        let slot = Target::Slot(opening.slot.into());
        self.world.put(&slot, &opening.bytes, |_| true);
        ring.checkpoint_written(true);
        let mut known = BTreeMap::new();
        sequences(&found, &mut known);
        let next = known.get(&VOLUME).copied().unwrap_or_default();
        assert!(next.0 >= stable, "{next:?}: {stable} were stable");
        self.log = Log::with_uncommitted(ring, uncommitted);
        self.serve(next);
        if begins {
            self.anew = 0;
        }
        self.knows_no_epoch_before();
        let of_owner = |it: &&Stable| it.change.volume == VOLUME && !it.change.goes_on();
        for it in given_out.iter().filter(of_owner) {
            assert!(it.change.sequence.0 < self.committed, "{it:?}");
            self.is_right(it);
        }
        // What may be another epoch's, which this log had given up, was not stable.
        let held = (0..next.0).flat_map(|it| self.log.held_as(VOLUME, Sequence(it)));
        let mut now = taken.clone();
        now.truncate(usize::try_from(next.0).unwrap());
        for it in held.collect::<Vec<Stable>>() {
            let number = usize::try_from(it.change.sequence.0).unwrap();
            if now.len() <= number {
                now.resize(number + 1, Ordered::Epoch(u64::MAX));
            }
            now[number] = self.read(&it);
        }
        *taken = now;
    }
}

#[test]
fn what_comes_with_its_number_is_held_as_it_was_ordered_over_takeovers_and_crashes() {
    let mut all = Seen::default();
    for seed in 1..=300 {
        let mut replica = Replica::new(seed);
        let mut taken = Vec::new();
        replica.takeover();
        for _ in 0..4 {
            replica.follow(&taken);
            for _ in 0..60 + replica.world.random.below(60) {
                match replica.world.random.below(24) {
                    0..=3 => replica.order(),
                    4..=9 => replica.append(&mut taken),
                    10..=15 => replica.complete(),
                    16..=18 => replica.commit(),
                    19 | 20 => replica.alone(),
                    21 => replica.takeover(),
                    22 if replica.world.random.below(4) == 0 => replica.renew(&mut taken),
                    _ => replica.follow(&taken),
                }
                replica.push();
            }
            replica.crash(&mut taken);
        }
        // Its owner brings it up, whatever it had.
        while !replica.world.pending.is_empty() {
            replica.complete();
        }
        replica.follow(&taken);
        for _ in 0..replica.owner.len() + 1 {
            replica.append(&mut taken);
            replica.push();
            while !replica.world.pending.is_empty() {
                replica.complete();
            }
            replica.push();
        }
        assert_eq!(taken, replica.owner, "seed {seed}");
        let stable = replica.log.known(VOLUME).0.0;
        assert_eq!(stable, replica.owner.len() as u64);
        replica.committed = stable;
        let epoch = replica.epoch;
        for it in replica.log.commit(VOLUME, (epoch, Sequence(stable))) {
            replica.is_right(&it);
        }
        assert_eq!(replica.log.held(VOLUME), 0);
        let seen = &replica.seen;
        all.taken += seen.taken;
        all.refused += seen.refused;
        all.given_up += seen.given_up;
        all.goes_on += seen.goes_on;
        all.given_out += seen.given_out;
        all.void += seen.void;
        all.renewed += seen.renewed;
        all.passed += seen.passed;
    }
    println!("{all:?}");
    assert!(all.taken > 5_000 && all.given_out > 3_000, "{all:?}");
    assert!(
        all.given_up > 500 && all.goes_on > 100 && all.void > 300,
        "{all:?}"
    );
    assert!(all.renewed > 500 && all.passed > 50, "{all:?}");
}

#[test]
fn what_an_owner_does_not_send_or_another_one_sends_is_not_taken() {
    let mut replica = Replica::new(3);
    replica.takeover();
    replica.order();
    let (change, data) = replica.change(0);
    let token = replica.token();
    let none = replica.log.append(token, (1, &change), data.clone());
    assert_eq!(none, Err(AppendRefused::NotFollowed), "nobody is followed");
    replica.epoch = 5;
    replica.follow(&[]);
    replica.log.append(token, (5, &change), data).unwrap();
    let (late, committed) = ((VOLUME, 4), (VOLUME, 6));
    let newest = 5;
    assert_eq!(
        replica.log.may_follow(late, Sequence(0)),
        Err(EpochRefused::Late { newest })
    );
    assert_eq!(
        replica.log.may_begin(late, Sequence(0)),
        Err(EpochRefused::Late { newest })
    );
    replica.push();
    replica.complete();
    replica.committed = 1;
    assert_eq!(replica.log.commit(VOLUME, (5, Sequence(1))).len(), 1);
    let below = Sequence(1);
    assert_eq!(
        replica.log.may_follow(committed, Sequence(0)),
        Err(EpochRefused::Committed { below })
    );
}
