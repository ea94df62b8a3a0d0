//! Volumes that wait for other copies while their neighbours go on: what is held is relocated, and
//! what hosts read is what was committed last, whenever the power fails. A destager, a backing
//! volume that now and then takes nothing, and a disk that forgets and tears.

use super::world::{Pending, Target, World};
use crate::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};

/// Two of several copies, and one of one.
const COPIES: [VolumeId; 2] = [VolumeId(0), VolumeId(1)];
const VOLUMES: u64 = 3;

/// Sectors of each volume.
const SECTORS: u64 = 64;

/// Kinds of which something is said of blocks.
const KINDS: [Kind; 4] = [Kind::Write, Kind::Write, Kind::Write, Kind::Zeroes];

/// Somebody's power has failed: what was under way is over.
struct Crashed;

/// A change as it was put into a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Made {
    change: Change,
    stamp: u64,
    batch: u64,
}

/// What stands at a sector: the stamp of what was written there, 0 for zeroes.
type Contents = BTreeMap<(VolumeId, u64), u64>;

/// How often what happened that the tests are about.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Seen {
    moved: u64,
    moved_epochs: u64,
    overtaken: u64,
    laps: u64,
    crashes: u64,
    in_relocation: u64,
    twice: u64,
    given: u64,
    void: u64,
}

struct Store {
    world: World,
    log: Log,
    index: Index,
    backing: Contents,
    /// Volumes that cannot be destaged.
    broken: BTreeSet<VolumeId>,
    stamps: u64,
    waiting: BTreeMap<Token, u64>,
    /// All batches that were handed to the disk and are not lost, by number: what was new in them.
    batches: BTreeMap<u64, Vec<Made>>,
    /// What the volumes are made of, by numbers: what a later epoch made void has left.
    live: BTreeMap<VolumeId, Vec<Made>>,
    /// All below is committed, by volume.
    committed: BTreeMap<VolumeId, u64>,
    /// What hosts have to read.
    contents: Contents,
    is_relocating: bool,
    /// The power fails when so many more writes were handed to the disk.
    left: Option<u64>,
    seen: Seen,
}

fn volume_slot(volume: VolumeId) -> Slot {
    Slot(u16::try_from(volume.0).unwrap())
}

fn volume_of(slot: Slot) -> VolumeId {
    VolumeId(slot.0.into())
}

/// Puts records where they belong among those that there are.
fn follow(live: &mut BTreeMap<VolumeId, Vec<Made>>, made: &[Made]) {
    for it in made {
        let of = live.entry(it.change.volume).or_default();
        of.truncate(usize::try_from(it.change.sequence.0).unwrap());
        assert_eq!(of.len() as u64, it.change.sequence.0, "without a gap");
        of.push(it.clone());
    }
}

impl Store {
    fn new(seed: u64, blocks: u64) -> Self {
        let mut world = World::new(seed, blocks);
        let mut ring = world.open();
        world.settle(&mut ring);
        let mut store = Self {
            world,
            log: Log::new(ring),
            index: Index::default(),
            backing: Contents::new(),
            broken: BTreeSet::new(),
            stamps: 0,
            waiting: BTreeMap::new(),
            batches: BTreeMap::new(),
            live: BTreeMap::new(),
            committed: COPIES.map(|it| (it, 0)).into(),
            contents: Contents::new(),
            is_relocating: false,
            left: None,
            seen: Seen::default(),
        };
        store.serve();
        store
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.world.random.below(limit)
    }

    fn serve(&mut self) {
        for volume in (0..VOLUMES).map(VolumeId) {
            let next = self.live.get(&volume).map_or(0, Vec::len);
            self.log.serve(volume, Sequence(next as u64));
        }
        for volume in COPIES {
            self.log.commits(volume, Commit::Later);
        }
    }

    fn submit(&mut self) {
        let volume = VolumeId(self.below(VOLUMES));
        let kind = KINDS[usize::try_from(self.below(4)).unwrap()];
        let start = self.below(SECTORS);
        let blocks = 1 + self.below(16.min(SECTORS - start));
        self.stamps += 1;
        let stamp = self.stamps.to_le_bytes();
        let bytes = if kind == Kind::Write { blocks * 512 } else { 0 };
        let data: Vec<u8> = stamp
            .into_iter()
            .cycle()
            .take(usize::try_from(bytes).unwrap())
            .collect();
        let wanted = Wanted {
            volume,
            range: LbaRange::new(Lba(start), BlockCount(blocks)).unwrap(),
            block_size: BlockSize::B512,
            kind,
            data: Buf::copy_of(&data),
        };
        self.waiting.insert(Token(self.stamps), volume.0);
        self.log.submit(Token(self.stamps), wanted).unwrap();
    }

    fn begin_epoch(&mut self) {
        let volume = COPIES[usize::try_from(self.below(2)).unwrap()];
        if self.log.epoch_begins(volume) {
            return;
        }
        let waiting = &self.waiting;
        self.log
            .withdraw(|token| waiting.get(&token) == Some(&volume.0));
        let (from, to) = (self.committed[&volume], self.log.next_sequence(volume));
        let first = from + self.below(to.unwrap().0 - from + 1);
        self.stamps += 1;
        let epoch = (volume, self.stamps);
        let begun = self
            .log
            .begin_epoch(Token(self.stamps), epoch, Sequence(first));
        begun.unwrap();
    }

    /// Hands what there is to the disk.
    fn push(&mut self) -> Result<(), Crashed> {
        while let Some(next) = self.log.next_step() {
            match next {
                Next::Write(write) => self.hand_over(&write, true)?,
                Next::Checkpoint(write) => {
                    let target = Target::Slot(write.slot.into());
                    self.pend(target, write.bytes, None)?;
                }
                Next::Full => break,
            }
        }
        Ok(())
    }

    /// A batch goes to the disk, of changes that are new or were relocated.
    fn hand_over(&mut self, write: &BatchWrite, is_new: bool) -> Result<(), Crashed> {
        let bytes = write.bytes.to_vec();
        let header = Header::read(&bytes, super::world::OF.0, super::world::OF.1).unwrap();
        let mut made = Vec::new();
        for record in header.records.iter().filter(|_| is_new) {
            let at = record.data_at as usize;
            let stamp = if record.change.kind == Kind::Write {
                u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
            } else {
                0
            };
            made.push(Made {
                change: record.change,
                stamp,
                batch: write.number,
            });
        }
        follow(&mut self.live, &made);
        self.batches.insert(write.number, made);
        self.pend(Target::Log(write.at), bytes, Some(write.number))
    }

    fn pend(&mut self, target: Target, bytes: Vec<u8>, number: Option<u64>) -> Result<(), Crashed> {
        self.world.pending.push(Pending {
            target,
            bytes,
            number,
        });
        self.left = self.left.map(|left| left.saturating_sub(1));
        if self.left == Some(0) {
            return Err(Crashed);
        }
        Ok(())
    }

    /// The disk answers one write, whichever.
    fn complete(&mut self) {
        let count = self.world.pending.len() as u64;
        if count == 0 {
            return;
        }
        let which = usize::try_from(self.below(count)).unwrap();
        let write = self.world.pending.swap_remove(which);
        self.world.put(&write.target, &write.bytes, |_| true);
        let Some(number) = write.number else {
            return self.log.checkpoint_written(true);
        };
        let ended = self.log.written(number, true);
        for it in &ended.committed {
            self.adopt(it);
        }
        for it in &ended.void {
            let live = self.live[&it.change.volume].iter();
            let mut same = live.filter(|made| made.change == it.change);
            assert!(same.all(|made| made.stamp != self.stamp_of(it)), "{it:?}");
            self.seen.void += 1;
        }
    }

    /// What lies at a sector of the log.
    fn stamp_at(&self, sector: u32) -> u64 {
        let at = sector as usize * 512;
        u64::from_le_bytes(self.world.log[at..at + 8].try_into().unwrap())
    }

    fn stamp_of(&self, it: &Stable) -> u64 {
        if it.change.kind == Kind::Write {
            self.stamp_at(u32::try_from(it.data_at / SECTOR).unwrap())
        } else {
            0
        }
    }

    /// It is committed: hosts read it from now on.
    fn adopt(&mut self, it: &Stable) {
        let (change, slot) = (it.change, volume_slot(it.change.volume));
        assert!(!it.is_damaged, "{it:?}");
        match change.kind {
            Kind::Write => {
                let at = u32::try_from(it.data_at / SECTOR).unwrap();
                self.index.put(slot, change.sectors(), at);
            }
            Kind::Zeroes => {
                let by = change.sequence;
                self.index.zero(slot, change.sectors(), by, Kind::Zeroes);
            }
            Kind::Epoch | Kind::RelocatedEpoch => {}
            Kind::Deallocate
            | Kind::Anchor
            | Kind::WriteAround
            | Kind::Lost
            | Kind::Gone
            | Kind::Cut
            | Kind::Touched => panic!("{it:?} was not asked for"),
        }
        self.seen.given += 1;
    }

    /// The same of one that was not found in the log: hosts have never heard of it before.
    fn commit_to(&mut self, volume: VolumeId, below: u64) {
        let epoch = self.log.epoch(volume);
        for it in self.log.commit(volume, (epoch, Sequence(below))) {
            assert!(it.change.sequence.0 < below);
            self.adopt(&it);
        }
        self.committed.insert(volume, below);
    }

    /// How far a volume can be committed.
    fn most(&self, volume: VolumeId) -> u64 {
        let stable = self.log.known(volume).0.0;
        if !self.log.epoch_begins(volume) {
            return stable;
        }
        // What has its number may be of the owner before.
        self.committed[&volume]
    }

    fn commit(&mut self) {
        let volume = COPIES[usize::try_from(self.below(2)).unwrap()];
        let (from, to) = (self.committed[&volume], self.most(volume));
        let below = from + self.below(to.max(from) - from + 1);
        self.commit_to(volume, below);
    }

    /// What hosts have to read now: of one copy all that is stable.
    fn wanted(&self) -> Contents {
        let stable = self.log.ring().stable();
        let mut contents = Contents::new();
        for made in self.live.values().flatten() {
            let change = &made.change;
            let is_there = match self.committed.get(&change.volume) {
                Some(below) => change.sequence.0 < *below,
                None => made.batch <= stable,
            };
            if is_there && matches!(change.kind, Kind::Write | Kind::Zeroes) {
                for sector in change.sectors() {
                    contents.insert((change.volume, sector), made.stamp);
                }
            }
        }
        contents
    }

    /// Hosts read what was committed last.
    fn check(&mut self, when: &str) {
        self.contents = self.wanted();
        for volume in (0..VOLUMES).map(VolumeId) {
            for piece in self.index.find(volume_slot(volume), 0..SECTORS + 16) {
                for (ahead, sector) in (0..).zip(piece.sectors.clone()) {
                    let key = (volume, sector);
                    let read = match piece.source {
                        Source::Backing => self.backing.get(&key).copied().unwrap_or(0),
                        Source::Log(at) => self.stamp_at(at + ahead),
                        Source::Zeroes(_) => 0,
                        Source::Lost => panic!("nothing was damaged"),
                    };
                    let wanted = self.contents.get(&key).copied().unwrap_or(0);
                    assert_eq!(read, wanted, "{when}: {key:?} by {:?}", piece.source);
                }
            }
        }
    }

    /// Others go on meanwhile.
    fn others(&mut self, most: u64) -> Result<(), Crashed> {
        for _ in 0..self.below(most + 1) {
            match self.below(20) {
                0..=7 => self.submit(),
                8..=14 => self.complete(),
                15..=17 => self.commit(),
                18 => self.begin_epoch(),
                _ => {
                    let volume = VolumeId(self.below(VOLUMES));
                    if !self.broken.remove(&volume) {
                        self.broken.insert(volume);
                    }
                }
            }
            self.push()?;
        }
        Ok(())
    }

    /// What fails without warning, and what is found then.
    fn crash(&mut self) {
        self.seen.crashes += 1;
        self.seen.in_relocation += u64::from(self.is_relocating);
        self.is_relocating = false;
        self.waiting.clear();
        self.world.crash();
        let (found, ring) = self.world.replay();
        let mut ring = ring.unwrap();
        let last = ring.next_number() - 1;
        self.batches.retain(|number, _| *number <= last);
        self.live.clear();
        for made in self.batches.values() {
            follow(&mut self.live, made);
        }
        let (mut uncommitted, mut committed) = (Uncommitted::default(), Vec::new());
        let mut numbers = BTreeSet::new();
        for batch in &found {
            assert_eq!(batch.damaged, []);
            for record in &batch.records {
                let of = (record.change.volume, record.change.sequence);
                let is_new = numbers.insert(of) || record.change.commit == Commit::AtOnce;
                self.seen.twice += u64::from(!is_new);
            }
            committed.extend(uncommitted.found(batch, self.world.blocks));
        }
        let opening = ring.opening().unwrap();
        let slot = Target::Slot(opening.slot.into());
        self.world.put(&slot, &opening.bytes, |_| true);
        ring.checkpoint_written(true);
        self.log = Log::with_uncommitted(ring, uncommitted);
        self.index = Index::default();
        self.serve();
        for it in &committed {
            let below = self.committed.get(&it.change.volume);
            let is_right = below.is_none_or(|below| it.change.sequence.0 < *below);
            assert!(is_right, "{it:?} was never committed");
            self.adopt(it);
        }
        for volume in COPIES {
            self.commit_to(volume, self.committed[&volume]);
        }
        self.check("after a crash");
    }
}

/// What a round has of a segment.
#[derive(Default)]
struct Contained {
    lying: Vec<Lying>,
    bare: Vec<(Slot, Range<u64>, Sequence)>,
    /// What is not destaged, and only relocated.
    kept: Vec<(Lying, Sequence)>,
    kept_bare: Vec<(Slot, Range<u64>, Sequence)>,
    by: Vec<Sequence>,
    held: Vec<Stable>,
}

impl Contained {
    fn take(&mut self, at: u32, change: Change, is_overtaken: bool) {
        let (slot, sectors) = (volume_slot(change.volume), change.sectors());
        let by = change.sequence;
        if change.kind == Kind::Zeroes {
            let bare = (slot, sectors, by);
            if is_overtaken {
                self.kept_bare.push(bare);
            } else {
                self.bare.push(bare);
            }
        } else if change.kind == Kind::Write {
            let lying = Lying { slot, sectors, at };
            if is_overtaken {
                self.kept.push((lying, by));
            } else {
                self.lying.push(lying);
                self.by.push(by);
            }
        }
    }
}

impl Store {
    fn bytes_of(&self, segment: &Segment) -> Buf {
        let mut bytes = Vec::new();
        for (at, len) in segment.reads() {
            let at = usize::try_from(at).unwrap();
            bytes.extend_from_slice(&self.world.log[at..at + len]);
        }
        Buf::copy_of(&bytes)
    }

    /// As the destager reads it.
    fn contained(&mut self, segment: &Segment) -> Contained {
        let mut contained = Contained {
            held: self.log.held_in(segment),
            ..Contained::default()
        };
        for again in segment.batches(&self.bytes_of(segment)) {
            let Again::Found { place, records, .. } = again else {
                panic!("nothing is damaged")
            };
            for record in records {
                let change = record.change;
                let is_held = !self.log.held_as(change.volume, change.sequence).is_empty();
                let is_later = change.commit == Commit::Later;
                let is_gone = self.log.is_void(&change, place.number) || (is_later && is_held);
                if !is_gone {
                    let overtaken = self.log.is_overtaken(&change, place.number);
                    self.seen.overtaken += u64::from(overtaken);
                    contained.take(segment.sector_of(place, &record), change, overtaken);
                }
            }
        }
        contained
    }

    /// Writes what still is the newest, flushes, and forgets it; of each write a crash in between
    /// leaves anything.
    fn destage(&mut self, contained: &Contained) -> Result<(), Crashed> {
        let runs = runs(&self.index, &contained.lying, 64);
        let mut settled = Vec::new();
        for part in runs.into_iter().flat_map(|it| it.parts) {
            let volume = volume_of(part.slot);
            if self.broken.contains(&volume) {
                continue;
            }
            for (at, sector) in (part.at..).zip(part.sectors.clone()) {
                self.backing.insert((volume, sector), self.stamp_at(at));
            }
            self.others(1)?;
            settled.push(part);
        }
        let mut zeroed = Vec::new();
        for (slot, sectors, by) in &contained.bare {
            if self.broken.contains(&volume_of(*slot)) {
                continue;
            }
            for part in self.index.bare(*slot, sectors.clone(), *by) {
                for sector in part.clone() {
                    self.backing.insert((volume_of(*slot), sector), 0);
                }
                zeroed.push((*slot, part, *by));
            }
        }
        for part in settled {
            self.index.settle(part.slot, part.sectors, part.at);
        }
        for (slot, sectors, by) in zeroed {
            self.index.settle_bare(slot, sectors, by);
        }
        self.others(1)
    }

    /// What the segment still has, as one change for each.
    fn left(&self, contained: &Contained) -> Vec<(Change, Option<Lying>)> {
        let mut left = Vec::new();
        let change = |slot, sectors: &Range<u64>, sequence, kind| Change {
            volume: volume_of(slot),
            sequence,
            range: LbaRange::between(Lba(sectors.start), Lba(sectors.end)).unwrap(),
            block_size: BlockSize::B512,
            kind,
            commit: Commit::AtOnce,
        };
        let of_held = contained
            .held
            .iter()
            .filter(|it| it.change.kind == Kind::Write);
        let of_held = of_held.map(|it| (lying_of(it), it.change.sequence));
        let lying = contained
            .lying
            .iter()
            .cloned()
            .zip(contained.by.iter().copied());
        for (lying, by) in lying.chain(contained.kept.iter().cloned()).chain(of_held) {
            for part in newest(&self.index, &lying) {
                let of = change(part.slot, &part.sectors, by, Kind::Write);
                left.push((of, Some(part)));
            }
        }
        let of_held = contained
            .held
            .iter()
            .filter(|it| it.change.kind == Kind::Zeroes);
        let of_held = of_held.map(|it| {
            let slot = volume_slot(it.change.volume);
            (slot, it.change.sectors(), it.change.sequence)
        });
        let bare = contained.bare.iter().chain(&contained.kept_bare).cloned();
        for (slot, sectors, by) in bare.chain(of_held) {
            for part in self.index.bare(slot, sectors, by) {
                left.push((change(slot, &part, by, Kind::Zeroes), None));
            }
        }
        left
    }

    /// Relocates what is left, a few changes at a time, as long as there is room.
    fn relocate(&mut self, segment: &Segment, contained: &Contained) -> Result<bool, Crashed> {
        loop {
            let mut together = Vec::new();
            let mut places = Vec::new();
            let mut waits = false;
            let held = self.log.held_in(segment);
            for it in held.iter().take(6) {
                if !self.log.may_relocate(&it.change) {
                    waits = true;
                    continue;
                }
                self.seen.moved_epochs += u64::from(it.change.kind == Kind::Epoch);
                // In halves, now and then.
                let all = it.change.sectors();
                let middle = (all.start + all.end) / 2;
                let halves = [all.start..middle, middle..all.end];
                let is_long = it.change.kind == Kind::Write && middle > all.start;
                let parts = if is_long && it.change.sequence.0 % 2 == 0 {
                    halves.map(|half| it.part(&half)).to_vec()
                } else {
                    vec![*it]
                };
                for part in parts {
                    let lying = (part.change.kind == Kind::Write).then(|| lying_of(&part));
                    together.push((part.change.relocated(), lying));
                }
            }
            for (change, lying) in self.left(contained).into_iter().take(6) {
                if self.log.is_on_its_way(&change) {
                    waits = true;
                    continue;
                }
                together.push((change, lying));
            }
            if together.is_empty() && !waits {
                return Ok(true);
            }
            if !together.is_empty() {
                let changes: Vec<(Change, Buf)> = together
                    .iter()
                    .map(|(change, lying)| (*change, self.data_of(lying.as_ref())))
                    .collect();
                let Ok(write) = self.log.relocate(&changes) else {
                    return Ok(false);
                };
                places.extend(write.data_at.iter().map(|it| write.at + u64::from(*it)));
                self.seen.moved += held.len().min(6) as u64;
                self.hand_over(&write, false)?;
            }
            let last = self.log.ring().next_number() - 1;
            while self.log.ring().stable() < last {
                self.complete();
                self.others(1)?;
                if self.log.ring().stable() >= last {
                    break;
                }
            }
            for ((_, lying), to) in together.into_iter().zip(places) {
                if let Some(it) = lying {
                    let to = u32::try_from(to / SECTOR).unwrap();
                    self.index.relocate(it.slot, it.sectors, it.at, to);
                }
            }
            self.check("after a relocation");
        }
    }

    fn data_of(&self, lying: Option<&Lying>) -> Buf {
        let Some(lying) = lying else {
            return Buf::empty();
        };
        let sectors = usize::try_from(lying.sectors.end - lying.sectors.start).unwrap();
        let at = lying.at as usize * 512;
        Buf::copy_of(&self.world.log[at..at + sectors * 512])
    }

    /// One of the destager: of what nothing is held of, or of all that is stable.
    fn round(&mut self) -> Result<(), Crashed> {
        let blocks = 1 + self.below(60);
        let ring = self.log.ring();
        let segment = if self.world.random.one_in(2) {
            ring.oldest_stable(blocks)
        } else {
            ring.oldest(blocks)
        };
        let Some(segment) = segment else {
            return Ok(());
        };
        let contained = self.contained(&segment);
        self.destage(&contained)?;
        self.check("after a round");
        self.is_relocating = true;
        let all = self.relocate(&segment, &contained);
        self.is_relocating = all.is_err();
        if all? {
            self.log.release(segment.end());
            self.seen.laps += 1;
        }
        self.others(2)
    }

    /// So many steps, until the power fails.
    fn run(&mut self, steps: u64) -> Result<(), Crashed> {
        for _ in 0..steps {
            if self.world.random.one_in(5) {
                self.round()?;
            } else {
                self.others(3)?;
            }
        }
        Ok(())
    }
}

fn lying_of(it: &Stable) -> Lying {
    Lying {
        slot: volume_slot(it.change.volume),
        sectors: it.change.sectors(),
        at: u32::try_from(it.data_at / SECTOR).unwrap(),
    }
}

fn add(all: &mut Seen, seen: Seen) {
    all.moved += seen.moved;
    all.moved_epochs += seen.moved_epochs;
    all.overtaken += seen.overtaken;
    all.laps += seen.laps;
    all.crashes += seen.crashes;
    all.in_relocation += seen.in_relocation;
    all.twice += seen.twice;
    all.given += seen.given;
    all.void += seen.void;
}

/// Five lives of a store, each of which ends in the middle of anything, or at rest.
pub(super) fn lives(seed: u64) -> Seen {
    let mut store = Store::new(seed, 600);
    for _ in 0..5 {
        let steps = 20 + store.below(120);
        store.left = store.world.random.one_in(2).then(|| 1 + seed % 90);
        let _ = store.run(steps);
        store.left = None;
        store.crash();
    }
    for volume in COPIES {
        store.commit_to(volume, store.most(volume));
    }
    store.check("when all is committed");
    store.seen
}

#[test]
fn hosts_read_what_was_committed_last_however_often_what_is_held_was_relocated() {
    let mut all = Seen::default();
    for seed in 1..=50 {
        add(&mut all, lives(seed));
    }
    println!("{all:?}");
    assert!(all.moved > 800 && all.moved_epochs > 80, "{all:?}");
    assert!(all.overtaken > 800 && all.twice > 400, "{all:?}");
    assert!(
        all.in_relocation > 40 && all.laps > 600 && all.void > 300,
        "{all:?}"
    );
}

#[test]
fn whatever_write_the_power_fails_at_no_commit_is_lost_and_none_is_made_up() {
    let mut all = Seen::default();
    for seed in 1..=8 {
        for left in 1..=80 {
            let mut store = Store::new(seed, 400);
            store.left = Some(left);
            let _ = store.run(1_000);
            store.left = None;
            store.crash();
            store.left = Some(40);
            let _ = store.run(1_000);
            store.left = None;
            store.crash();
            add(&mut all, store.seen);
        }
    }
    println!("{all:?}");
    assert!(all.in_relocation > 100 && all.moved > 300, "{all:?}");
}
