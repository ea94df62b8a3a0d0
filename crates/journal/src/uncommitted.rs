//! Changes that are stable and not committed: other copies of their volume may not have them yet.
//!
//! ```text
//!   a batch is stable, or is found --> held, by volume, in the order of numbers
//!   commit, or a later batch's mark --> given out in this order: read, destaged, acknowledged
//!   record of a later epoch         --> void from its number on
//!   record that the volume is gone  --> void, all of it
//!   the volume has one copy from now on --> given out, all of it
//! ```
//!
//! **Contract.** What is given out was committed, in the order of its numbers, each change once.
//! What is void is never given out. The oldest batch with something that is held is known, so that
//! nothing of it is released.

use crate::batch::{Change, Commit, Kind, Sequence, VolumeId, data_at};
use crate::replay::Found;
use crate::stable::{Ended, Stable};
use std::collections::{BTreeMap, VecDeque};
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
    /// From the oldest on.
    held: VecDeque<Stable>,
    /// All with lower numbers are stable,
    stable: Sequence,
    /// and those with numbers lower than this one are committed.
    committed: Sequence,
    /// The record of a later epoch is on its way: what is held from its number on will be void.
    begins: Option<Epoch>,
    epochs: Vec<Epoch>,
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

/// Of one ring.
#[derive(Clone, Default)]
pub struct Uncommitted {
    volumes: BTreeMap<VolumeId, OfVolume>,
    /// Batches, each with how many of its changes are held.
    batches: VecDeque<(u64, usize)>,
    voids: Vec<Void>,
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
            self.end(it, &mut ended);
        }
        ended.committed
    }

    /// A change is stable: it is committed with that, or held.
    pub(crate) fn end(&mut self, it: Stable, ended: &mut Ended) {
        if it.change.kind == Kind::Gone {
            self.forget(it.change.volume, it.batch, ended);
        }
        match it.change.commit {
            Commit::AtOnce => ended.committed.push(it),
            Commit::Later => self.add(it, ended),
        }
    }

    /// The volume is no more, as this batch says: what is held of it will never be committed.
    fn forget(&mut self, volume: VolumeId, batch: u64, ended: &mut Ended) {
        let Some(of) = self.volumes.remove(&volume) else {
            return;
        };
        let first = Sequence(0);
        self.make_void(
            of.held,
            Void {
                volume,
                first,
                below: batch,
            },
            ended,
        );
    }

    fn make_void(&mut self, held: VecDeque<Stable>, what: Void, ended: &mut Ended) {
        if held.is_empty() {
            return;
        }
        self.voids.push(what);
        held.iter().for_each(|it| self.leaves(it.batch));
        ended.void.extend(held);
    }

    /// Batches up to this one are committed.
    fn commit_batches(&mut self, last: u64, committed: &mut Vec<Stable>) {
        if self.batches.front().is_none_or(|it| it.0 > last) {
            return;
        }
        for of in self.volumes.values_mut() {
            while of.held.front().is_some_and(|it| it.batch <= last) {
                let it = of.held.pop_front().expect("it is there");
                of.committed = Sequence(it.change.sequence.0 + 1);
                committed.push(it);
            }
        }
        self.batches.retain(|it| it.0 > last);
        committed.sort_by_key(|it| it.batch);
    }

    /// Takes a volume in whose next change gets this number: what the log no longer has of it was
    /// committed.
    pub(crate) fn serve(&mut self, volume: VolumeId, next: Sequence) {
        let of = self.volumes.entry(volume).or_default();
        if of.held.is_empty() {
            (of.stable, of.committed) = (of.stable.max(next), of.committed.max(next));
        }
    }

    /// One more is stable.
    fn add(&mut self, it: Stable, ended: &mut Ended) {
        let (volume, sequence) = (it.change.volume, it.change.sequence);
        if it.change.kind == Kind::Epoch {
            self.begin(&it, ended);
        }
        let next = Sequence(sequence.0 + 1);
        match ended.stable.iter_mut().find(|it| it.0 == volume) {
            Some(of) => of.1 = next,
            None => ended.stable.push((volume, next)),
        }
        let of = self.volumes.entry(volume).or_default();
        of.stable = next;
        let will_be_void = of.begins.is_some_and(|it| sequence >= it.first);
        if sequence < of.committed && !will_be_void {
            ended.committed.push(it);
            return;
        }
        ended.held.extend(it.token);
        of.held.push_back(it);
        match self.batches.back_mut() {
            Some(last) if last.0 == it.batch => last.1 += 1,
            _ => self.batches.push_back((it.batch, 1)),
        }
    }

    /// A later epoch begins: what is held from its number on is void.
    fn begin(&mut self, record: &Stable, ended: &mut Ended) {
        let Change {
            volume,
            range,
            sequence: first,
            ..
        } = record.change;
        let of = self.volumes.entry(volume).or_default();
        of.begins = None;
        let kept = of.held.partition_point(|it| it.change.sequence < first);
        let void = of.held.split_off(kept);
        of.epochs.retain(|it| it.first < first);
        of.epochs.push(Epoch {
            epoch: range.start().0,
            first,
        });
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
    /// be void.
    pub(crate) fn begins(&mut self, volume: VolumeId, epoch: Epoch) {
        self.volumes.entry(volume).or_default().begins = Some(epoch);
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
        of.committed = of.committed.max(below);
        let below = of.begins.map_or(below, |it| below.min(it.first));
        let count = of.held.partition_point(|it| it.change.sequence < below);
        let committed: Vec<Stable> = of.held.drain(..count).collect();
        committed.iter().for_each(|it| self.leaves(it.batch));
        committed
    }

    /// Something was said of the volume, or found of it.
    pub(crate) fn knows(&self, volume: VolumeId) -> bool {
        self.volumes.contains_key(&volume)
    }

    /// All changes of the volume below the first number are stable, and all below the second one
    /// are committed.
    pub(crate) fn known(&self, volume: VolumeId) -> (Sequence, Sequence) {
        let of = self.volumes.get(&volume);
        of.map_or_else(Default::default, |of| (of.stable, of.committed))
    }

    /// How many changes of the volume are held.
    pub(crate) fn held(&self, volume: VolumeId) -> usize {
        self.volumes.get(&volume).map_or(0, |it| it.held.len())
    }

    pub(crate) fn epochs(&self, volume: VolumeId) -> impl Iterator<Item = Epoch> {
        let of = self.volumes.get(&volume).into_iter();
        of.flat_map(|it| it.epochs.iter().copied())
    }

    /// The oldest batch that has something which is held.
    pub(crate) fn oldest_batch(&self) -> Option<u64> {
        self.batches.front().map(|it| it.0)
    }

    /// Some of these sectors are changed by what is held.
    pub(crate) fn touch(&self, volume: VolumeId, sectors: &Range<u64>) -> bool {
        let of = self.volumes.get(&volume);
        of.is_some_and(|of| of.held.iter().any(|it| it.touches(sectors)))
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
        let mut all: Vec<Stable> = held.flat_map(|of| of.held.drain(..)).collect();
        all.sort_by_key(|it| (it.batch, it.token));
        all
    }

    /// Batches below this one are no longer needed.
    pub(crate) fn release(&mut self, number: u64) {
        self.voids.retain(|it| it.below > number);
    }
}
