//! Changes that are stable and not committed: other copies of their volume may not have them yet.
//!
//! ```text
//!   a batch is stable, or is found --> held, by volume, in the order of numbers
//!   commit, or a later batch's mark --> given out in this order: read, destaged, acknowledged
//!   record of a later epoch         --> void from its number on
//!   record that the volume is gone  --> void, all of it
//!   the volume has one copy from now on --> given out, all of it
//!   it was relocated                --> held, at its new place
//! ```
//!
//! **Contract.** What is given out was committed, in the order of its numbers, each change once.
//! What is void is never given out. The oldest batch with something that is held is known, so that
//! nothing of it is released; and the oldest one where a replay may find what is not known to be
//! committed, so that no header says that it is.
//!
//! **Relocation.** What is held keeps its number at another place. A replay that finds both takes
//! the later one. It stands in the log behind newer changes of its volume then, also of its blocks:
//! where those leave the log first, a replay would take it for the newest. So they are known, and
//! are relocated as well ([`Uncommitted::is_overtaken`]).

use crate::batch::{Change, Commit, Kind, Sequence, VolumeId, data_at};
use crate::replay::Found;
use crate::stable::{Ended, Stable};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// The begin of an epoch among the changes of a volume in one ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Epoch {
    /// It rises with each new owner, and each new start of the same one.
    pub epoch: u64,
    /// The number of its own record: those before it are of earlier ones.
    pub first: Sequence,
}

#[derive(Clone, Default)]
struct OfVolume {
    /// In the order of their numbers. One that was relocated may be in several parts.
    held: VecDeque<Stable>,
    /// Sectors of their data.
    sectors: u64,
    /// All with lower numbers are stable,
    stable: Sequence,
    /// and those with numbers lower than this one are committed.
    committed: Sequence,
    /// The record of a later epoch is on its way: what is held from its number on will be void.
    begins: Option<Epoch>,
    epochs: Vec<Epoch>,
    /// That record has the copy be made anew.
    begins_anew: bool,
    /// The copy was made anew from this number on: of epochs before nothing is known.
    anew: Sequence,
}

/// Records that the log still has and that were never committed.
#[derive(Clone, Copy)]
struct Void {
    volume: VolumeId,
    /// From this number on,
    first: Sequence,
    /// in batches before this one.
    below: u64,
}

/// A record that lies in the log behind newer changes of its volume.
#[derive(Clone)]
struct Behind {
    sequence: Sequence,
    sectors: Range<u64>,
    batch: u64,
}

/// Of one ring.
#[derive(Clone, Default)]
pub struct Uncommitted {
    volumes: BTreeMap<VolumeId, OfVolume>,
    /// Sectors of the data of all of them: asked at each change where room is scarce.
    sectors: u64,
    /// Batches, each with how many of its changes are held.
    batches: VecDeque<(u64, usize)>,
    /// Batches that had something which is held elsewhere by now: a replay may still find it there.
    left: BTreeSet<u64>,
    behind: BTreeMap<VolumeId, Vec<Behind>>,
    voids: Vec<Void>,
}

impl OfVolume {
    /// Takes these out, by their places; `all_sectors` has the sum of all volumes.
    fn take(&mut self, all_sectors: &mut u64, places: Range<usize>) -> Vec<Stable> {
        let taken: Vec<Stable> = self.held.drain(places).collect();
        let sectors = taken.iter().map(data_sectors).sum::<u64>();
        self.sectors -= sectors;
        *all_sectors -= sectors;
        taken
    }

    fn take_all(&mut self, all_sectors: &mut u64) -> Vec<Stable> {
        self.take(all_sectors, 0..self.held.len())
    }

    fn hold(&mut self, all_sectors: &mut u64, it: Stable) {
        let sectors = data_sectors(&it);
        self.sectors += sectors;
        *all_sectors += sectors;
        let place = self.below(Sequence(it.change.sequence.0 + 1));
        self.held.insert(place, it);
    }

    /// So many, and the other parts of the last one of them: a change is committed as a whole.
    fn whole(&self, count: usize) -> usize {
        let last = count
            .checked_sub(1)
            .map(|last| self.held[last].change.sequence);
        match last {
            Some(last) if holds!(AChangeIsCommittedAsAWhole) => self.below(Sequence(last.0 + 1)),
            Some(_) | None => count,
        }
    }

    /// All with lower numbers are stable, and no epoch that is on its way makes them void.
    fn lasting(&self) -> Sequence {
        let begins = self.begins.map(|it| it.first);
        begins.map_or(self.stable, |first| first.min(self.stable))
    }

    /// How many have lower numbers.
    fn below(&self, sequence: Sequence) -> usize {
        self.held
            .partition_point(|it| it.change.sequence < sequence)
    }
}

fn data_sectors(it: &Stable) -> u64 {
    let sectors = it.change.sectors();
    if it.change.kind == Kind::Write {
        sectors.end - sectors.start
    } else {
        0
    }
}

impl Uncommitted {
    /// A batch was found in the log, after all those before it: what is committed by now. What is
    /// found damaged says so.
    #[must_use]
    pub fn found(&mut self, batch: &Found, ring_blocks: u64) -> Vec<Stable> {
        let mut ended = Ended::default();
        self.commit_batches(batch.committed, &mut ended.committed);
        let right = batch.records.iter().map(|it| Stable {
            token: None,
            change: it.change,
            batch: batch.place.number,
            data_at: data_at(batch.place, it, ring_blocks),
            is_damaged: false,
        });
        let damaged = batch.damaged.iter().map(|change| Stable {
            token: None,
            change: *change,
            batch: batch.place.number,
            data_at: 0,
            is_damaged: true,
        });
        let mut all: Vec<Stable> = right.chain(damaged).collect();
        // As they were made: what came after a damaged one holds.
        all.sort_by_key(|it| it.change.sequence);
        for it in all {
            self.find(it, &mut ended);
        }
        ended.committed
    }

    /// No volume has several copies: what is stable is committed.
    pub(crate) fn is_of_one_copy(&self) -> bool {
        self.volumes.is_empty()
    }

    /// The same of one change: what was relocated may be found twice, and not in order.
    fn find(&mut self, mut it: Stable, ended: &mut Ended) {
        let Change {
            volume,
            sequence,
            range,
            ..
        } = it.change;
        if let Some(of) = self.volumes.get(&volume)
            && sequence < of.stable
            && it.change.kind != Kind::Epoch
            && holds!(WhatLiesBehindIsFound)
        {
            self.add_behind(&it.change, it.batch);
        }
        if it.change.kind == Kind::RelocatedEpoch {
            let epoch = range.start().0;
            let first = sequence;
            self.knows_epoch(volume, Epoch { epoch, first });
        }
        if it.change.commit == Commit::AtOnce || it.change.kind == Kind::Epoch {
            return self.end(it, ended);
        }
        it.change = it.change.where_it_began();
        let of = self.volumes.get(&volume);
        let is_over = of.is_some_and(|of| sequence < of.committed)
            || (!holds!(LaterPlaceWins) && !self.held_as(volume, sequence).is_empty());
        if !is_over && !self.moved(&it) {
            self.hold(it, ended);
        }
    }

    /// A change is stable: it is committed with that, or held.
    pub(crate) fn end(&mut self, it: Stable, ended: &mut Ended) {
        if it.change.kind == Kind::Gone {
            self.forget(it.change.volume, it.batch, ended);
        }
        if it.change.goes_on() {
            return self.go_on(&it, ended);
        }
        match it.change.commit {
            Commit::AtOnce => {
                if holds!(OneCopyCommitsWhatIsBefore) {
                    self.commit_until(&it.change, ended);
                }
                ended.committed.push(it);
            }
            Commit::Later => self.add(it, ended),
        }
    }

    /// This one is committed, and so is what is held of its volume from before.
    fn commit_until(&mut self, change: &Change, ended: &mut Ended) {
        if self.volumes.contains_key(&change.volume) {
            let below = Sequence(change.sequence.0 + 1);
            let of = self.volumes.entry(change.volume).or_default();
            of.stable = of.stable.max(below);
            ended.committed.extend(self.commit(change.volume, below));
        }
    }

    /// The volume is no more, as this batch says: what is held of it will never be committed.
    fn forget(&mut self, volume: VolumeId, batch: u64, ended: &mut Ended) {
        let Some(mut of) = self.volumes.remove(&volume) else {
            return;
        };
        let first = Sequence(0);
        let held = of.take_all(&mut self.sectors);
        self.make_void(
            held,
            Void {
                volume,
                first,
                below: batch,
            },
            ended,
        );
    }

    fn make_void(&mut self, held: Vec<Stable>, what: Void, ended: &mut Ended) {
        if held.is_empty() {
            return;
        }
        self.voids.push(what);
        held.iter().for_each(|it| self.leaves(it.batch));
        ended.void.extend(held);
    }

    /// Batches up to this one are committed, and with each change those of its volume before it.
    fn commit_batches(&mut self, last: u64, committed: &mut Vec<Stable>) {
        if self.batches.front().is_none_or(|it| it.0 > last) {
            return;
        }
        let from = committed.len();
        let in_order = self.left.is_empty();
        for of in self.volumes.values_mut() {
            if !holds!(GivenOutByNumber) {
                of.held.make_contiguous().sort_by_key(|it| it.batch);
            }
            let count = if in_order {
                of.held.partition_point(|it| it.batch <= last)
            } else {
                let covered = of.held.iter().rposition(|it| it.batch <= last);
                covered.map_or(0, |place| place + 1)
            };
            let taken = of.take(&mut self.sectors, 0..of.whole(count));
            if let Some(newest) = taken.last() {
                of.committed = Sequence(newest.change.sequence.0 + 1);
            }
            committed.extend(taken);
        }
        for it in &committed[from..] {
            self.leaves(it.batch);
        }
    }

    /// Takes a volume in whose next change gets this number: what the log no longer has of it was
    /// committed, and that is all before what is held.
    pub(crate) fn serve(&mut self, volume: VolumeId, next: Sequence) {
        let of = self.volumes.entry(volume).or_default();
        if of.held.is_empty() {
            of.stable = of.stable.max(next);
        }
        let held = of.held.front().map(|it| it.change.sequence);
        of.committed = of.committed.max(held.unwrap_or(next));
    }

    /// One more is stable.
    fn add(&mut self, it: Stable, ended: &mut Ended) {
        if it.change.kind == Kind::Epoch {
            self.begin(&it, ended);
        }
        self.hold(it, ended);
    }

    /// It is held, if it is not known to be committed already.
    fn hold(&mut self, it: Stable, ended: &mut Ended) {
        let (volume, sequence) = (it.change.volume, it.change.sequence);
        let of = self.volumes.entry(volume).or_default();
        of.stable = of.stable.max(Sequence(sequence.0 + 1));
        ended.is_stable(volume, of.lasting());
        let will_be_void = of.begins.is_some_and(|it| sequence >= it.first);
        if sequence < of.committed && !will_be_void {
            ended.committed.push(it);
            return;
        }
        ended.held.extend(it.token);
        of.hold(&mut self.sectors, it);
        self.enters(it.batch);
    }

    /// A later epoch begins: what is held from its number on is void.
    fn begin(&mut self, record: &Stable, ended: &mut Ended) {
        let Change {
            volume,
            range,
            sequence: first,
            ..
        } = record.change;
        self.void_from(record, ended);
        let of = self.volumes.entry(volume).or_default();
        of.epochs.push(Epoch {
            epoch: range.start().0,
            first,
        });
    }

    /// The log goes on with this number, and nobody has it yet.
    fn go_on(&mut self, record: &Stable, ended: &mut Ended) {
        let Change {
            volume, sequence, ..
        } = record.change;
        if record.change.begins_anew() {
            self.begin_anew(record, ended);
        } else {
            self.void_from(record, ended);
        }
        ended.is_stable(volume, sequence);
    }

    /// The copy is made anew: all that is held is void, whatever its number, and what lies before
    /// this one is nobody's business any more.
    fn begin_anew(&mut self, record: &Stable, ended: &mut Ended) {
        let Change {
            volume,
            range,
            sequence: first,
            ..
        } = record.change;
        let it = Epoch {
            epoch: range.start().0,
            first,
        };
        let of = self.volumes.entry(volume).or_default();
        if of.begins == Some(it) {
            (of.begins, of.begins_anew) = (None, false);
        }
        let void = Void {
            volume,
            first: of.committed,
            below: record.batch,
        };
        (of.stable, of.committed, of.anew) = (first, first, first);
        of.epochs = vec![it];
        let held = of.take_all(&mut self.sectors);
        self.make_void(held, void, ended);
        // The volume's history has to know it: the log may give this record up.
        ended.committed.push(*record);
    }

    /// What is held from the number of this record on is void.
    fn void_from(&mut self, record: &Stable, ended: &mut Ended) {
        let Change {
            volume,
            range,
            sequence: first,
            ..
        } = record.change;
        let of = self.volumes.entry(volume).or_default();
        // One that came from an owner before may be stable while the next one is on its way.
        let epoch = range.start().0;
        let is_this = |it: &Epoch| *it == Epoch { epoch, first } && !of.begins_anew;
        of.begins = of.begins.filter(|it| !is_this(it));
        // The numbers from its own on are given again.
        of.stable = first;
        let from = of.below(first);
        let void = of.take(&mut self.sectors, from..of.held.len());
        of.epochs.retain(|it| it.first < first);
        let below = record.batch;
        self.make_void(
            void,
            Void {
                volume,
                first,
                below,
            },
            ended,
        );
    }

    /// The volume has had this epoch.
    pub(crate) fn knows_epoch(&mut self, volume: VolumeId, epoch: Epoch) {
        let of = self.volumes.entry(volume).or_default();
        if epoch.first < of.anew {
            return;
        }
        let place = of.epochs.partition_point(|it| it.epoch < epoch.epoch);
        if of.epochs.get(place).is_none_or(|it| *it != epoch) {
            of.epochs.insert(place, epoch);
        }
    }

    /// What is held of this change, or a part of it, lies there from now on; `false`: nothing of it
    /// is held.
    pub(crate) fn moved(&mut self, to: &Stable) -> bool {
        let (volume, sequence) = (to.change.volume, to.change.sequence);
        let Some(of) = self.volumes.get_mut(&volume) else {
            return false;
        };
        let places = of.below(sequence)..of.below(Sequence(sequence.0 + 1));
        let is_moved = |it: &Stable| it.touches(&to.change.sectors()) || it.is_same_note(to);
        let mut same = of.held.range(places.clone()).filter(|it| is_moved(it));
        let Some(first) = same.next() else {
            return false;
        };
        // Where the new place is damaged, the one before is not given up.
        let is_worse = to.is_damaged && !(first.is_damaged && same.all(|it| it.is_damaged));
        if is_worse && holds!(UnlessItIsDamaged) {
            return true;
        }
        let before = of.take(&mut self.sectors, places);
        let token = before.iter().find_map(|it| it.token);
        let mut parts = vec![*to];
        for it in &before {
            self.leaves(it.batch);
            if is_moved(it) {
                if holds!(MarkStaysBeforeTheOldPlace) {
                    self.left.insert(it.batch);
                }
                parts.extend(it.without(&to.change.sectors()));
            } else {
                parts.push(*it);
            }
        }
        parts.sort_by_key(|it| it.change.sectors().start);
        parts.iter_mut().for_each(|it| it.token = None);
        // Whoever waits for it is answered with the last part.
        parts.last_mut().expect("the one that moved").token = token;
        for it in parts {
            let of = self.volumes.entry(volume).or_default();
            of.hold(&mut self.sectors, it);
            self.enters(it.batch);
        }
        true
    }

    /// The data of what is held there is damaged.
    pub(crate) fn is_damaged(&mut self, it: &Stable) {
        let of = self.volumes.get_mut(&it.change.volume);
        let held = of.into_iter().flat_map(|of| &mut of.held);
        for held in held.filter(|held| *held == it) {
            held.is_damaged = true;
        }
    }

    /// A record of the volume lies in this batch from now on, and may lie behind newer ones.
    pub(crate) fn add_behind(&mut self, change: &Change, batch: u64) {
        let sectors = change.sectors();
        if !sectors.is_empty() && self.knows(change.volume) {
            self.behind.entry(change.volume).or_default().push(Behind {
                sequence: change.sequence,
                sectors,
                batch,
            });
        }
    }

    /// An older change of these sectors lies in the log behind this batch, which has the change of
    /// this number: once that has left the log, a replay would take the older one for the newest.
    pub(crate) fn is_overtaken(
        &self,
        (volume, sequence): (VolumeId, Sequence),
        sectors: &Range<u64>,
        batch: u64,
    ) -> bool {
        let overtakes = |it: &Behind| {
            it.batch > batch
                && it.sequence < sequence
                && it.sectors.start < sectors.end
                && sectors.start < it.sectors.end
        };
        let behind = self.behind.get(&volume);
        behind.is_some_and(|all| all.iter().any(overtakes))
    }

    /// One more of this batch is held.
    fn enters(&mut self, batch: u64) {
        let place = self.batches.partition_point(|it| it.0 < batch);
        match self.batches.get_mut(place) {
            Some(of) if of.0 == batch => of.1 += 1,
            _ => self.batches.insert(place, (batch, 1)),
        }
    }

    /// One of this batch is held no more.
    fn leaves(&mut self, batch: u64) {
        let place = self.batches.partition_point(|it| it.0 < batch);
        if let Some(of) = self.batches.get_mut(place).filter(|it| it.0 == batch) {
            of.1 -= 1;
        }
        while self.batches.front().is_some_and(|it| it.1 == 0) {
            self.batches.pop_front();
        }
    }

    /// The record of this epoch is on its way: what is held of the volume from its number on will
    /// be void, or all of it where the copy is made anew.
    pub(crate) fn begins(&mut self, volume: VolumeId, epoch: Epoch, anew: bool) {
        let of = self.volumes.entry(volume).or_default();
        (of.begins, of.begins_anew) = (Some(epoch), anew);
    }

    /// The record that makes it void, if it is held, is on its way.
    pub(crate) fn will_be_void(&self, change: &Change) -> bool {
        let of = self.volumes.get(&change.volume);
        of.is_some_and(|of| {
            let begins = of.begins;
            begins.is_some_and(|it| of.begins_anew || change.sequence >= it.first)
        })
    }

    /// The epoch of the volume whose record is on its way.
    pub(crate) fn beginning(&self, volume: VolumeId) -> Option<Epoch> {
        self.volumes.get(&volume).and_then(|it| it.begins)
    }

    /// The newest epoch of the volume that is known here, one that begins included; 0: none.
    pub(crate) fn epoch(&self, volume: VolumeId) -> u64 {
        let begins = self.beginning(volume);
        let newest = begins.or_else(|| self.epochs(volume).last());
        newest.map_or(0, |it| it.epoch)
    }

    /// All changes of the volume below this number are committed: those that were held. Where a
    /// later epoch begins, higher numbers are those of its own changes.
    pub(crate) fn commit(&mut self, volume: VolumeId, below: Sequence) -> Vec<Stable> {
        let of = self.volumes.entry(volume).or_default();
        // These numbers name the owner's changes, and what is held may be others.
        if of.begins_anew {
            return Vec::new();
        }
        of.committed = of.committed.max(below);
        let below = of.begins.map_or(below, |it| below.min(it.first));
        let committed = of.take(&mut self.sectors, 0..of.below(below));
        committed.iter().for_each(|it| self.leaves(it.batch));
        committed
    }

    /// Something was said of the volume, or found of it.
    pub(crate) fn knows(&self, volume: VolumeId) -> bool {
        self.volumes.contains_key(&volume)
    }

    /// All changes of the volume below the first number are stable and no epoch that is on its way
    /// makes them void, and all below the second one are committed.
    pub(crate) fn known(&self, volume: VolumeId) -> (Sequence, Sequence) {
        let of = self.volumes.get(&volume);
        of.map_or_else(Default::default, |of| (of.lasting(), of.committed))
    }

    /// How many changes of the volume are held.
    pub(crate) fn held(&self, volume: VolumeId) -> usize {
        self.volumes.get(&volume).map_or(0, |it| it.held.len())
    }

    pub(crate) fn epochs(&self, volume: VolumeId) -> impl Iterator<Item = Epoch> {
        let of = self.volumes.get(&volume).into_iter();
        of.flat_map(|it| it.epochs.iter().copied())
    }

    /// Sectors of the data of the volume that is held.
    pub(crate) fn held_sectors(&self, volume: VolumeId) -> u64 {
        self.volumes.get(&volume).map_or(0, |it| it.sectors)
    }

    /// The same of all volumes.
    pub(crate) fn all_held_sectors(&self) -> u64 {
        self.sectors
    }

    /// The sectors of all that is held of the volume.
    pub(crate) fn held_sectors_of(&self, volume: VolumeId) -> impl Iterator<Item = Range<u64>> {
        let of = self.volumes.get(&volume).into_iter();
        of.flat_map(|of| of.held.iter().map(|it| it.change.sectors()))
    }

    /// What is held in these batches, by volume and number.
    pub(crate) fn held_in(&self, batches: &Range<u64>) -> Vec<Stable> {
        if self.batches.front().is_none_or(|it| it.0 >= batches.end) {
            return Vec::new();
        }
        let all = self.volumes.values().flat_map(|of| &of.held);
        all.filter(|it| batches.contains(&it.batch))
            .copied()
            .collect()
    }

    /// What is held of this number of the volume.
    pub(crate) fn held_as(&self, volume: VolumeId, sequence: Sequence) -> Vec<Stable> {
        let of = self.volumes.get(&volume);
        let places = |of: &OfVolume| of.below(sequence)..of.below(Sequence(sequence.0 + 1));
        of.map_or_else(Vec::new, |of| of.held.range(places(of)).copied().collect())
    }

    /// The oldest batch that has something which is held.
    pub(crate) fn oldest_batch(&self) -> Option<u64> {
        self.batches.front().map(|it| it.0)
    }

    /// The oldest batch where a replay may find something that is held, there or elsewhere.
    pub(crate) fn oldest_found(&self) -> Option<u64> {
        let (held, left) = (self.oldest_batch(), self.left.first().copied());
        held.into_iter().chain(left).min()
    }

    /// No replay finds batches below this one any more.
    pub(crate) fn not_found(&mut self, below: u64) {
        self.left = self.left.split_off(&below);
    }

    pub(crate) fn is_void(&self, change: &Change, batch: u64) -> bool {
        let is_of = |it: &Void| {
            it.volume == change.volume && change.sequence >= it.first && batch < it.below
        };
        change.commit == Commit::Later && self.voids.iter().any(is_of)
    }

    /// Takes all that is held: nobody will know any more whether it is committed.
    pub(crate) fn give_up(&mut self) -> Vec<Stable> {
        let held = self.volumes.values_mut();
        let held = held.flat_map(|of| of.take_all(&mut self.sectors));
        let mut all: Vec<Stable> = held.collect();
        all.sort_by_key(|it| (it.batch, it.token));
        all
    }

    /// Batches below this one are no longer needed.
    pub(crate) fn release(&mut self, number: u64) {
        self.voids.retain(|it| it.below > number);
        self.behind.retain(|_, all| {
            all.retain(|it| it.batch >= number);
            !all.is_empty()
        });
    }
}
