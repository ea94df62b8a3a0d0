//! Group commit: changes wait while batches are on their way, and go together in the next one.
//!
//! ```text
//!   submit --> waiting --> batch (at most two on their way)
//!         --> stable: acknowledged in order, with the place in the log
//! ```
//!
//! **Contract.** Changes become stable in the order in which they were submitted, and those of a
//! volume are committed in this order: with their batch where the volume has one copy, and else
//! when [`Log::commit`] says so. Each gets the next number of its volume when it is put into a
//! batch, so that numbers have no gap however many batches are lost with a crash. A change that was
//! refused, or is answered as failed, has no number that anyone will see again.
//!
//! **Failure.** After a write that failed everything that waits or is on its way has failed: nobody
//! knows what the device holds.

use crate::batch::{
    Change, Commit, DATA_ALIGNMENT, DATA_BYTES_MAX, Kind, RECORDS_MAX, Record, Sequence, VolumeId,
};
use crate::replay::Found;
use crate::ring::{BatchWrite, CheckpointWrite, Refused, Ring};
use crate::segment::Segment;
use crate::stable::{Ended, Stable, Token};
use crate::uncommitted::{Epoch, Uncommitted};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use units::{BlockSize, Buf, Lba, LbaRange};

mod follow;

pub use follow::{AppendRefused, Followed, Role};

/// Batches on their way at once. With one, the device rests while the next is put together; with
/// more, each holds fewer changes, and a flush is paid for each.
const BATCHES_MAX: usize = 2;

/// A change that is to be made stable.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The volume that is changed.
    pub volume: VolumeId,
    /// Of which blocks.
    pub range: LbaRange,
    /// How large a block is.
    pub block_size: BlockSize,
    /// Whether blocks are written, zeroed or given back, or only noted.
    pub kind: Kind,
    /// The data of a write, as long as its blocks; else nothing.
    pub data: Buf,
}

/// What to do next.
#[derive(Debug)]
pub enum Next {
    /// Write a batch, past every volatile cache, and say how it ended by [`Log::written`].
    Write(BatchWrite),
    /// Write a checkpoint likewise, and say how it ended by [`Log::checkpoint_written`].
    Checkpoint(CheckpointWrite),
    /// Changes wait, but the ring has no room: something must be released.
    Full,
}

#[derive(Clone)]
struct OnItsWay {
    number: u64,
    holds: Vec<Stable>,
    /// What is held, and is relocated.
    moves: Vec<Stable>,
    /// Who waits for what came with its number: they are answered when it is stable.
    taken: Vec<Token>,
}

/// Why an epoch does not begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EpochRefused {
    /// A write has failed.
    Failed,
    /// The record of another one is on its way: ask again when that is stable.
    Begins,
    /// This one, or a later one, is known here.
    Late {
        /// The newest.
        newest: u64,
    },
    /// It would make void what is committed: all below this number.
    Committed {
        /// The first number that it may have.
        below: Sequence,
    },
    /// Numbers before it would be those of no change.
    Beyond {
        /// The number that comes next.
        next: Sequence,
    },
}

/// What the log knows of a volume.
#[derive(Clone, Copy)]
struct Served {
    /// The number that its next change gets.
    next: Sequence,
    /// When its changes are committed.
    commit: Commit,
    /// Who gives them their numbers, where it has several copies.
    role: Role,
}

/// A ring with what waits for it.
#[derive(Clone)]
pub struct Log {
    ring: Ring,
    waiting: VecDeque<(Token, Wanted)>,
    /// Epochs that begin: their records go ahead of all that waits.
    epochs: VecDeque<(Token, Change)>,
    on_their_way: VecDeque<OnItsWay>,
    served: BTreeMap<VolumeId, Served>,
    uncommitted: Uncommitted,
}

impl Log {
    /// A log that goes on where a ring was opened; the volumes that it serves are added by
    /// [`Log::serve`].
    #[must_use]
    pub fn new(ring: Ring) -> Self {
        Self {
            ring,
            waiting: VecDeque::new(),
            epochs: VecDeque::new(),
            on_their_way: VecDeque::new(),
            served: BTreeMap::new(),
            uncommitted: Uncommitted::default(),
        }
    }

    /// The same, with what was found in the ring and is not known to be committed.
    #[must_use]
    pub fn with_uncommitted(ring: Ring, uncommitted: Uncommitted) -> Self {
        let mut log = Self::new(ring);
        log.uncommitted = uncommitted;
        log.mark();
        log
    }

    /// Takes a volume in, whose next change gets the number `next`.
    pub fn serve(&mut self, volume: VolumeId, next: Sequence) {
        let known = self.served.get(&volume);
        let (commit, role) = known.map_or_else(Default::default, |it| (it.commit, it.role));
        self.served.insert(volume, Served { next, commit, role });
        if commit == Commit::Later {
            // What the log has no longer was committed.
            self.uncommitted.serve(volume, next);
        }
    }

    /// The number of a volume's next change; `None` where it is not served.
    #[must_use]
    pub fn next_sequence(&self, volume: VolumeId) -> Option<Sequence> {
        self.served.get(&volume).map(|it| it.next)
    }

    /// When the changes of a volume are committed that are submitted from now on. From the moment
    /// where it has one copy, all that is held of it is committed, and what is on its way with its
    /// batch.
    ///
    /// # Panics
    /// If the volume is not served, some of its changes wait for a batch, or an epoch of it begins.
    pub fn commits(&mut self, volume: VolumeId, commit: Commit) -> Vec<Stable> {
        let waits = self.waits_of(volume);
        let served = self.served.get_mut(&volume);
        let served = served.expect("volumes are served first");
        assert!(served.commit == commit || !waits, "none waits for a batch");
        let was = std::mem::replace(&mut served.commit, commit);
        let next = served.next;
        if commit == Commit::AtOnce {
            served.role = Role::None;
        }
        match (was, commit) {
            // Nothing is known of what is on its way where it was so before.
            (Commit::AtOnce, Commit::Later) => self.uncommitted.serve(volume, next),
            (Commit::Later, Commit::Later) => {}
            (_, Commit::AtOnce) if self.uncommitted.knows(volume) => {
                assert!(self.uncommitted.beginning(volume).is_none(), "none begins");
                return self.commit_all(volume, next);
            }
            (_, Commit::AtOnce) => {}
        }
        Vec::new()
    }

    fn waits_of(&self, volume: VolumeId) -> bool {
        self.waiting.iter().any(|(_, it)| it.volume == volume)
    }

    /// All changes of the volume with numbers below this one are committed, as the owner of this
    /// epoch says: those of them that are stable here, and were not given out before, in their
    /// order. The others are given out with their batches. What is said of another epoch than the
    /// newest one, or than the one that is [followed](Log::follow), changes nothing: its numbers
    /// may be those of other changes.
    pub fn commit(&mut self, volume: VolumeId, (epoch, below): (u64, Sequence)) -> Vec<Stable> {
        let said_of = match self.role(volume) {
            Role::Replica { epoch, .. } => epoch,
            Role::None | Role::Owner { .. } => self.uncommitted.epoch(volume),
        };
        if epoch != said_of {
            return Vec::new();
        }
        self.commit_all(volume, below)
    }

    fn commit_all(&mut self, volume: VolumeId, below: Sequence) -> Vec<Stable> {
        let committed = self.uncommitted.commit(volume, below);
        self.mark();
        committed
    }

    /// Of a volume of several copies: all changes below the first number are stable here, and no
    /// epoch that is on its way makes them void; all below the second one are known to be
    /// committed.
    #[must_use]
    pub fn known(&self, volume: VolumeId) -> (Sequence, Sequence) {
        self.uncommitted.known(volume)
    }

    /// The epochs of a volume that its log knows, from the oldest on.
    pub fn epochs(&self, volume: VolumeId) -> impl Iterator<Item = Epoch> {
        self.uncommitted.epochs(volume)
    }

    /// The newest epoch of a volume that is known here, one that begins included; 0: none.
    #[must_use]
    pub fn epoch(&self, volume: VolumeId) -> u64 {
        self.uncommitted.epoch(volume)
    }

    /// The volume has had this epoch, whose record the log may have given up since: its history
    /// says so. What an older one says or begins from now on is late.
    pub fn knows_epoch(&mut self, volume: VolumeId, epoch: Epoch) {
        self.uncommitted.knows_epoch(volume, epoch);
    }

    /// An epoch of the volume begins, and its record is not stable yet.
    #[must_use]
    pub fn epoch_begins(&self, volume: VolumeId) -> bool {
        self.uncommitted.beginning(volume).is_some()
    }

    /// Has the volume go on with number `first` in a later epoch: what is stable here with this
    /// number or a higher one, and not committed, is void as soon as the record of that is stable.
    /// A copy gives so up what only it has of an owner that is none any more. The record goes
    /// ahead of all that waits, and into a log that is full: what it makes void may be what fills
    /// it.
    ///
    /// # Errors
    /// [`EpochRefused`]; nothing has changed then.
    ///
    /// # Panics
    /// If the volume is not served, has one copy, or changes of it wait for a batch.
    pub fn begin_epoch(
        &mut self,
        token: Token,
        (volume, epoch): (VolumeId, u64),
        first: Sequence,
    ) -> Result<(), EpochRefused> {
        assert!(!self.waits_of(volume), "none waits for a batch");
        self.may_begin((volume, epoch), first)?;
        let served = self.served.get_mut(&volume);
        let served = served.expect("volumes are served first");
        assert_eq!(served.commit, Commit::Later, "one of several copies");
        served.next = Sequence(first.0 + 1);
        served.role = Role::Owner { epoch };
        let it = (volume, Epoch { epoch, first });
        self.goes_ahead((token, Commit::Later), it, of_epoch(epoch));
        Ok(())
    }

    /// A record that makes void what the volume has from the epoch's first number on, or all of
    /// it, goes ahead of all that waits.
    fn goes_ahead(
        &mut self,
        (token, commit): (Token, Commit),
        (volume, it): (VolumeId, Epoch),
        range: LbaRange,
    ) {
        let record = Change {
            volume,
            sequence: it.first,
            range,
            block_size: BlockSize::B512,
            kind: Kind::Epoch,
            commit,
        };
        self.epochs.push_back((token, record));
        let anew = record.begins_anew();
        self.uncommitted.begins(volume, it, anew);
    }

    /// Whether [`Log::begin_epoch`] would be taken.
    ///
    /// # Errors
    /// [`EpochRefused`], as it would answer.
    pub fn may_begin(
        &self,
        (volume, epoch): (VolumeId, u64),
        first: Sequence,
    ) -> Result<(), EpochRefused> {
        self.may_go_on(volume, first, |newest| epoch <= newest)?;
        let next = self.next_sequence(volume).unwrap_or_default();
        if first > next {
            return Err(EpochRefused::Beyond { next });
        }
        Ok(())
    }

    /// Whether the volume may go on with this number, in an epoch that is not late: `is_late` says
    /// of the newest one that is known here.
    fn may_go_on(
        &self,
        volume: VolumeId,
        first: Sequence,
        is_late: impl Fn(u64) -> bool,
    ) -> Result<(), EpochRefused> {
        if self.ring.has_failed() {
            return Err(EpochRefused::Failed);
        }
        if self.epoch_begins(volume) {
            return Err(EpochRefused::Begins);
        }
        let (newest, below) = (self.newest_epoch(volume), self.known(volume).1);
        if is_late(newest) {
            return Err(EpochRefused::Late { newest });
        }
        if first < below {
            return Err(EpochRefused::Committed { below });
        }
        Ok(())
    }

    /// How many changes of the volume are held: stable, and not committed.
    #[must_use]
    pub fn held(&self, volume: VolumeId) -> usize {
        self.uncommitted.held(volume)
    }

    /// The sectors of all changes of the volume that are held.
    pub fn held_sectors_of(&self, volume: VolumeId) -> impl Iterator<Item = Range<u64>> {
        self.uncommitted.held_sectors_of(volume)
    }

    /// Sectors of the data of what is held of the volume.
    #[must_use]
    pub fn held_sectors(&self, volume: VolumeId) -> u64 {
        self.uncommitted.held_sectors(volume)
    }

    /// The ring knows which batch is the oldest that is not committed.
    fn mark(&mut self) {
        let held = self.uncommitted.oldest_batch();
        let found = self.uncommitted.oldest_found();
        self.ring.set_uncommitted(held, found);
    }

    /// Where its blocks lie in the journal's file, and which are free.
    #[must_use]
    pub const fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Changes, and epochs that begin, that wait for a batch.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len() + self.epochs.len()
    }

    /// A change that is to be made stable. Ask [`Log::next_step`] afterwards.
    ///
    /// # Errors
    /// [`Refused::Failed`] after a write has failed.
    ///
    /// # Panics
    /// If the volume is not served, or its changes come with their numbers, or the data is not as
    /// long as its blocks, or more than a batch holds.
    pub fn submit(&mut self, token: Token, wanted: Wanted) -> Result<(), Refused> {
        let served = self.served.get_mut(&wanted.volume);
        let served = served.expect("volumes are served first");
        if wanted.kind == Kind::Gone {
            served.role = Role::None;
        }
        let is_replica = matches!(served.role, Role::Replica { .. });
        assert!(!is_replica, "its changes come with their numbers");
        let bytes = wanted.change(Sequence(0), Commit::AtOnce).data_bytes();
        assert_eq!(bytes, Some(wanted.data.len()), "changes are cut to size");
        if self.ring.has_failed() {
            return Err(Refused::Failed);
        }
        self.waiting.push_back((token, wanted));
        Ok(())
    }

    /// Takes those back that wait for a batch and must not get into one any more.
    pub fn withdraw(&mut self, mut gone: impl FnMut(Token) -> bool) -> Vec<Token> {
        let (mut withdrawn, mut volumes) = (Vec::new(), Vec::new());
        self.waiting.retain(|(token, wanted)| {
            let gone = gone(*token);
            if gone {
                withdrawn.push(*token);
                volumes.push(wanted.volume);
            }
            !gone
        });
        self.are_withdrawn(volumes);
        withdrawn
    }

    /// What is to be done now; call it until it says `None` or [`Next::Full`].
    pub fn next_step(&mut self) -> Option<Next> {
        if let Some(write) = self.ring.checkpoint() {
            return Some(Next::Checkpoint(write));
        }
        if self.waiting() == 0 || self.on_their_way.len() >= BATCHES_MAX {
            return None;
        }
        if !self.epochs.is_empty() {
            return self.epochs_step();
        }
        let mut count = self.fit();
        loop {
            let (tokens, changes) = self.take_numbered(count);
            let refused = match self.ring.append(&changes) {
                Ok(write) => {
                    let holds = held_by(&write, tokens.into_iter(), &changes);
                    return Some(Next::Write(self.put_on_its_way(write, holds, changes)));
                }
                Err(refused) => refused,
            };
            self.put_back(tokens, changes);
            match refused {
                // Fewer of them may find room, and what they are waiting for may be these.
                Refused::Full if count > 1 => count /= 2,
                Refused::Full => return Some(Next::Full),
                Refused::Failed => return None,
            }
        }
    }

    /// The epochs that begin, as many as a batch takes.
    fn epochs_step(&mut self) -> Option<Next> {
        let first = self.epochs.iter().take(RECORDS_MAX);
        let changes: Vec<(Change, Buf)> = first.map(|it| (it.1, Buf::empty())).collect();
        match self.ring.append_epochs(&changes) {
            Ok(write) => {
                let tokens = self.epochs.drain(..changes.len()).map(|it| it.0);
                let holds = held_by(&write, tokens, &changes);
                Some(Next::Write(self.put_on_its_way(write, holds, changes)))
            }
            Err(Refused::Full) => Some(Next::Full),
            Err(Refused::Failed) => None,
        }
    }

    /// A batch of what lies in the oldest ones and cannot be given up, with the numbers that it
    /// has: it goes ahead of all that waits. Of what is committed nothing that is on its way may
    /// touch it, see [`Log::is_on_its_way`]; what is committed later is held there as soon as the
    /// batch is stable. It is stable as soon as [`Ring::stable`] says so.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    ///
    /// # Panics
    /// As [`Ring::append`].
    pub fn relocate(&mut self, relocated: &[(Change, Buf)]) -> Result<BatchWrite, Refused> {
        let write = self.ring.relocate(relocated)?;
        let mut moves = Vec::new();
        for ((change, _), data_at) in relocated.iter().zip(&write.data_at) {
            self.uncommitted.add_behind(change, write.number);
            if change.commit == Commit::Later {
                moves.push(Stable {
                    token: None,
                    change: change.where_it_began(),
                    batch: write.number,
                    data_at: write.at + u64::from(*data_at),
                    is_damaged: false,
                });
            }
        }
        self.on_their_way.push_back(OnItsWay {
            number: write.number,
            holds: Vec::new(),
            moves,
            taken: Vec::new(),
        });
        Ok(write)
    }

    /// What is held in the batches of this segment.
    #[must_use]
    pub fn held_in(&self, segment: &Segment) -> Vec<Stable> {
        self.uncommitted.held_in(&(segment.first()..segment.end()))
    }

    /// What is held of a change: at its place, or where it was relocated to, in parts perhaps.
    #[must_use]
    pub fn held_as(&self, volume: VolumeId, sequence: Sequence) -> Vec<Stable> {
        self.uncommitted.held_as(volume, sequence)
    }

    /// What is held there can no longer be read: it is lost as soon as it is committed.
    pub fn lose_held(&mut self, it: &Stable) {
        self.uncommitted.is_damaged(it);
    }

    /// Sectors of the data of all that is held.
    #[must_use]
    pub fn all_held_sectors(&self) -> u64 {
        self.uncommitted.all_held_sectors()
    }

    /// What is held may be relocated: no epoch that makes it void is on its way to a place before
    /// the one that it would get.
    #[must_use]
    pub fn may_relocate(&self, change: &Change) -> bool {
        let waits = || self.epochs.iter().any(|it| it.1.volume == change.volume);
        let is_ahead = !self.uncommitted.will_be_void(change) || waits();
        is_ahead || !holds!(NotBehindAnEpochOnItsWay)
    }

    /// This batch has this change, and an older one of the same blocks lies behind it, because it
    /// was relocated: before the batch is given up, the change is to be relocated as well.
    #[must_use]
    pub fn is_overtaken(&self, change: &Change, batch: u64) -> bool {
        let of = (change.volume, change.sequence);
        let sectors = change.sectors();
        self.uncommitted.is_overtaken(of, &sectors, batch) && holds!(WhatIsOvertakenIsRelocated)
    }

    /// A change of the same blocks is in a batch that is not stable yet.
    #[must_use]
    pub fn is_on_its_way(&self, change: &Change) -> bool {
        let sectors = change.sectors();
        let mut changes = self.on_their_way.iter().flat_map(|it| &it.holds);
        changes.any(|it| it.change.volume == change.volume && it.touches(&sectors))
    }

    /// What this batch has of this change was never committed, and never will be.
    #[must_use]
    pub fn is_void(&self, change: &Change, batch: u64) -> bool {
        self.uncommitted.is_void(change, batch)
    }

    /// How many of those that wait fit into one batch.
    fn fit(&self) -> usize {
        let mut bytes = 0;
        let fits = self
            .waiting
            .iter()
            .take(RECORDS_MAX)
            .take_while(|(_, wanted)| {
                bytes += wanted.data.len().next_multiple_of(DATA_ALIGNMENT);
                bytes <= DATA_BYTES_MAX
            });
        fits.count()
    }

    /// Takes the first of those that wait, with the numbers that they get.
    fn take_numbered(&mut self, count: usize) -> (Vec<Token>, Vec<(Change, Buf)>) {
        let mut tokens = Vec::with_capacity(count);
        let mut changes = Vec::with_capacity(count);
        for (token, wanted) in self.waiting.drain(..count) {
            let served = self.served.get_mut(&wanted.volume);
            let served = served.expect("volumes are served first");
            let next = served.next;
            served.next = Sequence(next.0 + 1);
            tokens.push(token);
            changes.push((wanted.change(next, served.commit), wanted.data));
        }
        (tokens, changes)
    }

    /// They got into no batch: they wait again, and nobody has their numbers.
    fn put_back(&mut self, tokens: Vec<Token>, changes: Vec<(Change, Buf)>) {
        for (token, (change, data)) in tokens.into_iter().zip(changes).rev() {
            let served = self.served.get_mut(&change.volume);
            served.expect("volumes are served first").next = change.sequence;
            let wanted = Wanted {
                volume: change.volume,
                range: change.range,
                block_size: change.block_size,
                kind: change.kind,
                data,
            };
            self.waiting.push_front((token, wanted));
        }
    }

    fn put_on_its_way(
        &mut self,
        mut write: BatchWrite,
        mut holds: Vec<Stable>,
        changes: Vec<(Change, Buf)>,
    ) -> BatchWrite {
        let mut taken = Vec::new();
        if !self.uncommitted.is_of_one_copy() {
            taken = self.taken_of(&mut holds);
            write.carried = self.carried_of(changes);
        }
        self.on_their_way.push_back(OnItsWay {
            number: write.number,
            holds,
            moves: Vec::new(),
            taken,
        });
        write
    }

    /// A batch's write has ended: this is stable now, and this is committed.
    pub fn written(&mut self, number: u64, succeeded: bool) -> Ended {
        self.ring.written(number, succeeded);
        let stable = self.ring.stable();
        let mut ended = Ended::default();
        while self
            .on_their_way
            .front()
            .is_some_and(|it| it.number <= stable)
        {
            let Some(batch) = self.on_their_way.pop_front() else {
                break;
            };
            if ended.committed.is_empty() && self.uncommitted.is_of_one_copy() {
                ended.committed = batch.holds;
                continue;
            }
            ended.committed.reserve(batch.holds.len());
            for it in batch.holds {
                self.uncommitted.end(it, &mut ended);
            }
            for it in batch.moves {
                self.uncommitted.moved(&it);
            }
            ended.taken.extend(batch.taken);
        }
        self.mark();
        ended
    }

    /// Where the ring has failed: everyone who waits for something that will never be known to be
    /// stable or committed, and for what was on its way the change, which the next replay may find.
    pub fn given_up(&mut self) -> Vec<(Token, Option<Change>)> {
        if !self.ring.has_failed() {
            return Vec::new();
        }
        let uncommitted = self.uncommitted.give_up();
        let taken = self.on_their_way.iter_mut();
        let taken: Vec<Token> = taken.flat_map(|it| it.taken.drain(..)).collect();
        let on_their_way = self.on_their_way.drain(..).flat_map(|it| it.holds);
        let with_change = |it: Stable| Some((it.token?, Some(it.change)));
        let given_up = uncommitted.into_iter().chain(on_their_way);
        let mut given_up: Vec<_> = given_up.filter_map(with_change).collect();
        let waiting = self.waiting.drain(..).map(|it| it.0);
        let waiting = waiting.chain(self.epochs.drain(..).map(|it| it.0));
        let waiting = waiting.chain(taken);
        given_up.extend(waiting.map(|token| (token, None)));
        given_up
    }

    /// A checkpoint's write has ended.
    pub fn checkpoint_written(&mut self, succeeded: bool) {
        self.ring.checkpoint_written(succeeded);
        let found_from = if holds!(UntilNeitherCheckpointLeadsThere) {
            self.ring.floor()
        } else {
            self.ring.tail()
        };
        self.uncommitted.not_found(found_from.number);
        self.mark();
    }

    /// As [`Ring::release`].
    pub fn release(&mut self, number: u64) {
        self.ring.release(number);
        self.uncommitted.release(number);
    }

    /// The log is at rest, and its last batch should be sealed: an empty batch to write, if there
    /// is room.
    pub fn seal(&mut self) -> Option<BatchWrite> {
        if self.waiting() > 0 || !self.ring.wants_seal() {
            return None;
        }
        let write = self.ring.append(&[]).ok()?;
        Some(self.put_on_its_way(write, Vec::new(), Vec::new()))
    }
}

/// The range of an epoch's record: it has no blocks.
fn of_epoch(epoch: u64) -> LbaRange {
    LbaRange::between(Lba(epoch), Lba(epoch)).expect("in order")
}

/// What a batch holds, once it is stable.
fn held_by(
    write: &BatchWrite,
    tokens: impl Iterator<Item = Token>,
    changes: &[(Change, Buf)],
) -> Vec<Stable> {
    let holds = tokens.zip(changes).zip(&write.data_at);
    let holds = holds.map(|((token, (change, _)), data_at)| Stable {
        token: Some(token),
        change: *change,
        batch: write.number,
        data_at: write.at + u64::from(*data_at),
        is_damaged: false,
    });
    holds.collect()
}

impl Wanted {
    const fn change(&self, sequence: Sequence, commit: Commit) -> Change {
        // Of this node alone: no other copy is asked.
        let is_own = matches!(self.kind, Kind::Gone);
        Change {
            volume: self.volume,
            sequence,
            range: self.range,
            block_size: self.block_size,
            kind: self.kind,
            commit: if is_own { Commit::AtOnce } else { commit },
        }
    }
}

/// What a volume's changes say after a replay: the number of its next one.
pub fn sequences<'a>(
    found: impl IntoIterator<Item = &'a Found>,
    known: &mut BTreeMap<VolumeId, Sequence>,
) {
    for batch in found {
        let right = batch.records.iter().map(|record: &Record| record.change);
        for change in right.chain(batch.damaged.iter().copied()) {
            let (after, next) = (Sequence(change.sequence.0 + 1), known.entry(change.volume));
            let next = next.or_insert(Sequence(0));
            // What had the numbers behind it before is void.
            *next = if change.goes_on() {
                change.sequence
            } else if change.kind == Kind::Epoch {
                after
            } else {
                after.max(*next)
            };
        }
    }
}
