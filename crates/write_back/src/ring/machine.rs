//! The state of one ring: its log, where the newest data is, the volumes whose addresses belong to
//! it, who waits.
//!
//! ```text
//!   Event --> apply --> Effects: what to write, whom to answer, whom to wake
//! ```
//!
//! **Contract.** [`Machine::apply`] is the only thing that changes the state. It waits for nothing,
//! asks no clock, no device and no memory that others share; what it wants done it says in order,
//! and its driver does that in the same poll.
//!
//! **What is not here, and why.**
//! - Requests that wait for room: they have no effect on the log yet. The machine says whether a
//!   volume [has its share](Machine::has_share), and the driver has its requests wait.
//!   [Permits](crate::admission::Permits) bound memory, and come back wherever they are dropped.
//! - Who still reads from the log or from a backing volume ([`Grace`](super::grace::Grace)): that
//!   ends with a future that is dropped, and delays only the driver.
//! - Modes and fences: other cores change them. Events say how they are.
//! - Histories: files with I/O of their own. Effects say what they have to know.
//! - Lanes of backing volumes: the driver has them, where the machine knows that a volume is open.
//!
//! **Invariants.**
//! - A change is acknowledged after its batch, and all before it, are stable; changes are
//!   acknowledged in the order in which they came. Where the volume has several copies, it is when
//!   [`Event::Commit`] says that they have it, and in the order of the volume's changes.
//! - What is acknowledged is found in the index from then on.
//! - Every change that was taken is answered once: it is stable, withdrawn, or given up with a log
//!   that has failed.
//! - No host's change begins while its volume is held or exchanged, and nothing else that hosts ask
//!   while it is exchanged.
//! - A write goes around the log only where the log has nothing of its blocks, none that waits
//!   touches them, and none that is under way.

mod epochs;
mod held;
mod hosts;
mod reads;
mod share;

pub(crate) use reads::ReadFrom;

use super::changes::{Changes, Waiting};
use super::destaging::{BareChange, Blocked, Destaging, Job, Outcome};
use super::event::{
    Destage, Effect, Effects, Event, Extent, Failure, IsCurrent, KnownByHistory, Note, Wait,
};
use super::relocated::Relocated;
use super::volumes::{NotNow, OpenFacts, VolumeState, Volumes};
use super::watches::{Watched, Watches};
use super::write_arounds::{WriteAroundId, WriteArounds};
use crate::addresses::sectors;
use journal::{
    BatchWrite, Change, Index, Kind, Log, Lying, Next, Refused, Sequence, Slot, Source, Stable,
    Token, VolumeId, Wanted,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use units::{BlockSize, Buf, Lba, LbaRange, Now};
use volume::{Fence, IoError};

/// What is put into the log.
struct Record {
    slot: Slot,
    range: LbaRange,
    block_size: BlockSize,
    kind: Kind,
    data: Buf,
    /// Who asks for it.
    fence: Fence,
}

/// One ring.
#[derive(Clone)]
pub(crate) struct Machine {
    log: Log,
    index: Index,
    volumes: Volumes,
    changes: Changes,
    watches: Watches,
    write_arounds: WriteArounds,
    relocated: Relocated,
    destaging: Destaging,
    /// When the last change came.
    changed_at: Now,
    /// Changes wait for room.
    is_full: bool,
    /// The newest batch that has more than what went around the log: until the log has given it
    /// up, a replay may bring back what it holds.
    newest_data: u64,
    /// Why the log has failed, where it has.
    failure: Option<Failure>,
    /// Somebody waits for a batch of what is relocated.
    awaits_relocation: bool,
    is_closing: bool,
}

impl Machine {
    /// What was found in a log; `unverified`: volumes of which it says that blocks may be half-way
    /// written.
    pub(crate) fn new<'a>(
        log: Log,
        index: Index,
        slots: BTreeMap<VolumeId, Slot>,
        unverified: impl Iterator<Item = &'a VolumeId>,
        now: Now,
    ) -> Self {
        let mut volumes = Volumes::found(slots);
        for id in unverified {
            if let Some(slot) = volumes.slot(*id) {
                volumes.of_mut(slot).is_unverified = true;
            }
        }
        let newest_data = log.ring().stable();
        Self {
            log,
            index,
            volumes,
            changes: Changes::default(),
            watches: Watches::default(),
            write_arounds: WriteArounds::default(),
            relocated: Relocated::default(),
            destaging: Destaging::default(),
            changed_at: now,
            is_full: false,
            newest_data,
            failure: None,
            awaits_relocation: false,
            is_closing: false,
        }
    }

    /// Something has happened: what is to be done is added to `effects`.
    pub(crate) fn apply(&mut self, event: Event<'_>, effects: &mut Effects) {
        match event {
            Event::Change(it) => self.change(it, effects),
            Event::Note(it) => self.note(&it, effects),
            Event::BeginEpoch(it) => self.begin_epoch(&it, effects),
            Event::Follow(it) => self.follow(&it, effects),
            Event::Append(it) => self.append(it, effects),
            Event::Resign(slot) => self.resign(slot, effects),
            Event::Commit { slot, epoch, below } => self.commit(slot, (epoch, below), effects),
            Event::Watch(slot, sectors) => {
                effects.push(Effect::Watched(self.watches.begin(slot, sectors)));
            }
            Event::EndWatch(number) => self.watches.end(number),
            Event::Flush(slot) => self.flush(slot, effects),
            Event::EndWriteAround(id) => {
                self.write_arounds.end(id);
                effects.push(Effect::WakeOthers);
            }
            Event::WriteNext(is_current) => self.write_next(is_current, effects),
            Event::Seal => self.seal(effects),
            Event::BatchEnded { number, result } => self.batch_ended(number, result, effects),
            Event::CheckpointEnded(result) => {
                self.log.checkpoint_written(result.is_ok());
                self.write_ended(result, effects);
            }
            Event::Open { id, facts, history } => self.open(id, facts, history, effects),
            Event::Leave(id) => self.leave(id),
            Event::Wait(slot, wait) => self.wait(slot, wait, effects),
            Event::Destage(it) => self.destage(it, effects),
            Event::RecordLost { lying, by } => {
                for part in journal::newest(&self.index, lying) {
                    self.index.lose(part.slot, part.sectors, by);
                }
            }
            Event::HeldLost(it) => self.log.lose_held(it),
            Event::BatchLost(lying) => self.lose_batch(lying),
            Event::Relocate(changes) => self.relocate(changes, effects),
            Event::AwaitRelocation(awaits) => self.awaits_relocation = awaits,
            Event::Relocated(all) => {
                for (lying, to) in all {
                    let (slot, sectors) = (lying.slot, lying.sectors.clone());
                    self.index.relocate(slot, sectors, lying.at, *to);
                }
            }
            Event::Close => {
                self.is_closing = true;
                effects.extend([Effect::WakeWriter, Effect::WakeDestager]);
            }
        }
    }

    /// What of these sectors may be written again, which are watched under this number.
    pub(crate) fn watched(&self, number: u64, slot: Slot, sectors: Range<u64>) -> Watched {
        // What was found in the log waits for other copies as well, and nobody here for it.
        let held = self.log.held_sectors_of(self.volumes.of(slot).id);
        let waiting = self.changes.of(slot).chain(held);
        self.watches.watched(number, sectors, waiting)
    }

    /// What was committed of the sectors that are watched under this number; `None`: they are not.
    pub(crate) fn committed(&self, number: u64) -> Option<&[Range<u64>]> {
        self.watches.of(number)
    }

    /// The ring says something of its own in its log, which is of no host's blocks.
    fn note(&mut self, note: &Note, effects: &mut Effects) {
        let Note {
            slot,
            range,
            kind,
            now,
        } = *note;
        assert!(
            matches!(kind, Kind::Cut | Kind::Gone),
            "{kind:?} is a host's"
        );
        if self.log.ring().has_failed() {
            return effects.push(Effect::Refused(self.refused_write()));
        }
        // Cuts come with their numbers where another node orders the volume.
        if kind == Kind::Cut && !self.may_order(slot) {
            return effects.push(Effect::Refused(IoError::Transition));
        }
        let put = self.put(Record {
            slot,
            range,
            // What its range begins with is no address; the volume may have left.
            block_size: BlockSize::B512,
            kind,
            data: Buf::empty(),
            fence: Fence::default(),
        });
        self.changed_at = now;
        effects.extend([put, Effect::WakeWriter]);
    }

    /// Has a change wait for the log, which takes it.
    fn put(&mut self, it: Record) -> Effect {
        let bytes = it.data.len();
        let waiting = Waiting {
            slot: it.slot,
            sectors: sectors(it.range, it.block_size),
            fence: it.fence,
            bytes,
        };
        let wanted = Wanted {
            volume: self.volumes.of(it.slot).id,
            range: it.range,
            block_size: it.block_size,
            kind: it.kind,
            data: it.data,
        };
        let submitted = self.log.submit(self.changes.next_token(), wanted);
        submitted.expect("what a log that has failed is asked for is refused before");
        let token = self.changes.push(waiting);
        Effect::Submitted { token, bytes }
    }

    fn write_next(&mut self, is_current: IsCurrent<'_>, effects: &mut Effects) {
        if self.is_closing {
            return;
        }
        // In the same step as what follows: whoever has lost the right gets nothing into a batch.
        self.withdraw_fenced(is_current, effects);
        let next = self.log.next_step();
        self.is_full = matches!(next, Some(Next::Full));
        match next {
            Some(Next::Write(write)) => effects.push(Effect::WriteBatch(write)),
            Some(Next::Checkpoint(write)) => effects.push(Effect::WriteCheckpoint(write)),
            Some(Next::Full) => effects.push(Effect::WakeDestager),
            None => {}
        }
    }

    /// Such a batch is nothing that came from hosts.
    fn seal(&mut self, effects: &mut Effects) {
        let before = self.log.ring().unreleased_blocks();
        if let Some(write) = self.log.seal() {
            self.has_relocated(&write, before);
            effects.push(Effect::WriteBatch(write));
        }
    }

    fn has_relocated(&mut self, write: &BatchWrite, before: u64) {
        let blocks = self.log.ring().unreleased_blocks() - before;
        self.relocated.add(write.number, blocks);
    }

    fn batch_ended(&mut self, number: u64, result: Result<(), Failure>, effects: &mut Effects) {
        let ended = self.log.written(number, result.is_ok());
        for stable in &ended.committed {
            if stable.change.kind != Kind::WriteAround {
                self.newest_data = self.newest_data.max(stable.batch);
            }
            self.adopt(stable, effects);
        }
        effects.extend(ended.held.into_iter().map(Effect::Held));
        self.are_taken(&ended.taken, effects);
        self.are_void(&ended.void, effects);
        if !ended.stable.is_empty() {
            // An epoch may have begun.
            effects.push(Effect::WakeOthers);
        }
        for (volume, below) in ended.stable {
            self.newest_data = self.newest_data.max(self.log.ring().stable());
            let slot = self
                .volumes
                .slot(volume)
                .expect("the log knows its volumes");
            effects.push(Effect::Stable { slot, below });
        }
        self.write_ended(result, effects);
    }

    fn write_ended(&mut self, result: Result<(), Failure>, effects: &mut Effects) {
        let failed = result.is_err();
        if let Err(failure) = result {
            // The first reason is the one to report.
            self.failure.get_or_insert(failure);
            self.give_up(effects);
        }
        if failed || self.awaits_relocation {
            effects.push(Effect::WakeOthers);
        }
        effects.push(Effect::WakeWriter);
        if self.destaging.rests() {
            effects.push(Effect::WakeDestager);
        }
    }

    /// A change is committed: from now on it is what is read.
    fn adopt(&mut self, stable: &Stable, effects: &mut Effects) {
        if let Some(token) = stable.token
            && self.take(token, effects).is_none()
        {
            return;
        }
        let change = stable.change;
        let slot = self.volumes.slot(change.volume);
        let slot = slot.expect("the log knows its volumes");
        if !self.watches.is_empty() {
            self.watches.committed(slot, &change.sectors());
        }
        match change.kind {
            Kind::Write if !stable.is_damaged => {
                let at = stable.data_at / journal::SECTOR;
                let at = u32::try_from(at).expect("a ring has 2 TiB at most");
                self.index.put(slot, change.sectors(), at);
            }
            Kind::Write | Kind::Lost => self.index.lose(slot, change.sectors(), change.sequence),
            Kind::Zeroes | Kind::Deallocate | Kind::Anchor => {
                let (by, kind) = (change.sequence, change.kind);
                self.index.zero(slot, change.sectors(), by, kind);
            }
            // Only where the log had nothing of it; what came after it stays.
            Kind::WriteAround => {}
            Kind::Gone => self.forget(slot, effects),
            Kind::Cut | Kind::Epoch => {}
            Kind::Touched | Kind::RelocatedEpoch => unreachable!("nobody asks for it"),
        }
        let volume = self.volumes.of(slot);
        if volume.has_history || volume.open.is_none() {
            effects.push(Effect::RecordHistory { slot, change });
        }
        if let Some(token) = stable.token {
            let result = Ok(());
            effects.push(Effect::Answer { token, result });
        }
    }

    fn forget(&mut self, slot: Slot, effects: &mut Effects) {
        self.index.forget(slot);
        let volume = self.volumes.of_mut(slot);
        (volume.is_unverified, volume.has_history) = (false, false);
        volume.destage_error = None;
        effects.push(Effect::ForgetHistory(slot));
    }

    /// The log has failed: whoever waits is answered that nobody knows. Of what was on its way the
    /// next replay may find the new or the old data: until then it cannot be read, so that nobody
    /// sees the old and then the new.
    fn give_up(&mut self, effects: &mut Effects) {
        for (token, change) in self.log.given_up() {
            let Some(waiting) = self.take(token, effects) else {
                continue;
            };
            if let Some(change) = change.filter(|it| it.kind != Kind::WriteAround) {
                let sectors = waiting.sectors.clone();
                self.index.lose(waiting.slot, sectors, change.sequence);
            }
            let result = Err(self.lost_write(self.first_block(&waiting)));
            effects.push(Effect::Answer { token, result });
        }
    }

    /// A change is about to be answered: those who wait for all before it come first.
    fn take(&mut self, token: Token, effects: &mut Effects) -> Option<Waiting> {
        let (waiting, passed) = self.changes.take(token)?;
        if !passed.is_empty() {
            effects.extend(passed.into_iter().map(Effect::PassSyncPoint));
        }
        Some(waiting)
    }

    fn first_block(&self, waiting: &Waiting) -> Lba {
        let open = self.volumes.of(waiting.slot).open.as_ref();
        let block = open.map_or(BlockSize::B512, |it| it.block_size);
        let by = u64::from(block.bytes()) / journal::SECTOR;
        Lba(waiting.sectors.start / by)
    }

    /// Changes that wait for a batch whose writer has lost its right: they get into none.
    fn withdraw_fenced(&mut self, is_current: IsCurrent<'_>, effects: &mut Effects) {
        let fenced = |it: &Waiting, volume: &VolumeState| {
            // What has no blocks is asked for by no host.
            !it.sectors.is_empty() && (volume.open.is_none() || !is_current(it.slot, it.fence))
        };
        self.withdraw(fenced, effects, |_, _| IoError::Fenced);
    }

    /// Writes that wait for a batch, and are refused by now, are answered so: they keep nobody
    /// behind them waiting.
    fn withdraw_refused(&mut self, effects: &mut Effects) {
        if !self.refuses_some() {
            return;
        }
        let refused =
            |it: &Waiting, volume: &VolumeState| it.bytes > 0 && volume.destage_error.is_some();
        let some = self.withdraw(refused, effects, |this, waiting| {
            let error = this.volumes.of(waiting.slot).destage_error.as_ref();
            let error = error.expect("those were asked for").error;
            error.map_lba(|_| this.first_block(waiting))
        });
        if some {
            effects.push(Effect::WakeWriter);
        }
    }

    /// Takes those who wait for a batch out of the log's queue that are `gone`, by themselves or by
    /// their volume, and answers each with an error. `true`: there were some.
    fn withdraw(
        &mut self,
        gone: impl Fn(&Waiting, &VolumeState) -> bool,
        effects: &mut Effects,
        error: impl Fn(&Self, &Waiting) -> IoError,
    ) -> bool {
        let (changes, volumes) = (&self.changes, &self.volumes);
        let withdrawn = self.log.withdraw(|token| {
            let waiting = changes.get(token);
            waiting.is_some_and(|it| gone(it, volumes.of(it.slot)))
        });
        for token in &withdrawn {
            if let Some(waiting) = self.take(*token, effects) {
                let (token, result) = (*token, Err(error(self, &waiting)));
                effects.push(Effect::Answer { token, result });
            }
        }
        !withdrawn.is_empty()
    }

    /// Takes a volume in, or in again with another backing volume.
    fn open(
        &mut self,
        id: VolumeId,
        facts: OpenFacts,
        history: Option<KnownByHistory>,
        effects: &mut Effects,
    ) {
        let Ok((slot, is_new)) = self.volumes.slot_or_new(id) else {
            return effects.push(Effect::Refused(IoError::Busy));
        };
        if is_new {
            // The log knows nothing of it.
            self.log.serve(id, Sequence(0));
        }
        let held = self.log.commits(id, facts.commit);
        let volume = self.volumes.of_mut(slot);
        if let Some(KnownByHistory { next, epoch }) = history {
            assert!(!volume.has_history, "a history is opened once");
            volume.has_history = true;
            if let Some(epoch) = epoch {
                self.log.knows_epoch(id, epoch);
            }
            if self.log.next_sequence(id).is_none_or(|it| it < next) {
                self.log.serve(id, next);
            }
        }
        volume.open = Some(facts);
        (volume.destage_error, volume.is_unverified) = (None, false);
        effects.extend([Effect::Opened(slot), Effect::WakeDestager]);
        self.are_committed(&held, effects);
    }

    fn leave(&mut self, id: VolumeId) {
        if let Some(slot) = self.volumes.slot(id) {
            let volume = self.volumes.of_mut(slot);
            (volume.open, volume.destage_error) = (None, None);
            self.watches.leave(slot);
        }
    }

    fn wait(&mut self, slot: Slot, wait: Wait, effects: &mut Effects) {
        let volume = self.volumes.of_mut(slot);
        match wait {
            Wait::Hold => {
                assert!(!volume.is_held, "cuts wait for each other");
                volume.is_held = true;
            }
            Wait::EndHold => {
                volume.is_held = false;
                effects.push(Effect::WakeOthers);
            }
            Wait::BeginExchange => volume.is_exchanged = true,
            Wait::Pause => self.destaging.pause(slot),
            Wait::EndExchange(to) => {
                assert!(volume.is_exchanged, "an exchange ends once");
                volume.is_exchanged = false;
                if to.is_some() {
                    (volume.open, volume.destage_error) = (to, None);
                }
                self.destaging.go_on(slot);
                effects.extend([Effect::WakeOthers, Effect::WakeDestager]);
            }
        }
    }

    fn destage(&mut self, event: Destage<'_>, effects: &mut Effects) {
        match event {
            Destage::BeginDrain => self.destaging.begin_drain(),
            Destage::EndDrain => self.destaging.end_drain(),
            Destage::Rest(rests) => {
                self.destaging.rest(rests);
                if rests {
                    effects.push(Effect::WakeOthers);
                }
            }
            Destage::BeginRound => self.destaging.begin_round(),
            Destage::EndRound(blocked) => {
                self.destaging.end_round(blocked);
                effects.push(Effect::WakeOthers);
                // What waits for room may be refused by now.
                self.withdraw_refused(effects);
            }
            Destage::Written(outcome) => self.destaged(outcome),
            Destage::Release(number) => {
                self.log.release(number);
                self.relocated.release(number);
                effects.push(Effect::WakeWriter);
            }
        }
    }

    /// What is in the backing volume and stable there is forgotten here; of the volumes that are
    /// unstable nothing is.
    fn destaged(&mut self, outcome: &Outcome) {
        for (which, job) in outcome.jobs.iter().enumerate() {
            if outcome.failed.contains(&which) {
                continue;
            }
            match job {
                Job::Run(run) => {
                    for part in &run.parts {
                        let sectors = part.sectors.clone();
                        self.index.settle(part.slot, sectors, part.at);
                    }
                }
                Job::Bare(it) => self.index.settle_bare(it.slot, it.sectors.clone(), it.by),
            }
        }
        for slot in &outcome.touched {
            self.volumes.of_mut(*slot).destage_error = None;
        }
        // Perhaps nothing else is to be destaged for it.
        for slot in &outcome.saved {
            let volume = self.volumes.of_mut(*slot);
            volume.destage_error = volume.destage_error.take().filter(|it| !it.of_history);
        }
        // What failed may have been destaged all the same, as another change of the same blocks.
        let failed = outcome.failed.iter().map(|which| &outcome.jobs[*which]);
        let left = failed.filter(|job| !self.index.is_clear(job.slot(), job.sectors()));
        let unstable = outcome.unstable.iter().copied();
        let not_there: BTreeSet<Slot> = left.map(Job::slot).chain(unstable).collect();
        for (slot, error) in &outcome.errors {
            let error = not_there.contains(slot).then(|| error.clone());
            self.volumes.of_mut(*slot).destage_error = error;
        }
    }

    /// A batch is damaged, with the list of what it held: what the index has there is lost.
    fn lose_batch(&mut self, lying: &Range<u32>) {
        let (volumes, log) = (&self.volumes, &self.log);
        // The latest number of the volume: it is newer than whatever was there. Where other copies
        // have to have a change first, that of the latest one that is committed: what says that it
        // is lost is committed at once, and all before it with that.
        self.index.lose_at(lying, |slot: Slot| {
            let id = volumes.of(slot).id;
            let next = match log.known(id).1 {
                Sequence(0) => log.next_sequence(id).unwrap_or_default(),
                committed => committed,
            };
            Sequence(next.0.saturating_sub(1))
        });
    }

    fn relocate(&mut self, changes: &[(Change, Buf)], effects: &mut Effects) {
        let before = self.log.ring().unreleased_blocks();
        effects.push(match self.log.relocate(changes) {
            Ok(write) => {
                self.has_relocated(&write, before);
                self.newest_data = self.newest_data.max(write.number);
                Effect::WriteBatch(write)
            }
            Err(Refused::Full) => Effect::Blocked(Blocked::Room),
            Err(Refused::Failed) => Effect::Blocked(Blocked::Log),
        });
    }
}

/// What is asked of it.
impl Machine {
    pub(crate) const fn index(&self) -> &Index {
        &self.index
    }

    /// The ring of the log.
    pub(crate) const fn ring(&self) -> &journal::Ring {
        self.log.ring()
    }

    pub(crate) const fn volumes(&self) -> &Volumes {
        &self.volumes
    }

    pub(crate) const fn destaging(&self) -> &Destaging {
        &self.destaging
    }

    pub(crate) fn volume(&self, slot: Slot) -> &VolumeState {
        self.volumes.of(slot)
    }

    /// A change of the volume has to wait.
    pub(crate) fn makes_wait(&self, slot: Slot) -> bool {
        matches!(self.volumes.of(slot).admits(true), Err(NotNow::Later))
    }

    pub(crate) fn slot(&self, id: VolumeId) -> Option<Slot> {
        self.volumes.slot(id)
    }

    /// The number of a volume's next change.
    pub(crate) fn next_sequence(&self, slot: Slot) -> Sequence {
        let next = self.log.next_sequence(self.volumes.of(slot).id);
        next.unwrap_or(Sequence(0))
    }

    /// Nothing new is begun.
    pub(crate) const fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// When the last change came.
    pub(crate) const fn changed_at(&self) -> Now {
        self.changed_at
    }

    /// Changes wait for room, or somebody until all is destaged.
    pub(crate) const fn is_pressed(&self) -> bool {
        self.is_full || self.destaging.is_drained_for()
    }

    /// The part of the log that is in use.
    pub(crate) fn fill(&self) -> f64 {
        let ring = self.log.ring();
        #[expect(clippy::cast_precision_loss, reason = "a share, not a count")]
        let fill = ring.used_blocks() as f64 / ring.room_blocks() as f64;
        fill
    }

    /// Writes around the log that are under way.
    pub(crate) const fn write_arounds(&self) -> &WriteArounds {
        &self.write_arounds
    }

    /// The newest write around the log that what is destaged has to wait for: the log knows of it.
    /// One whose record still waits may wait for room, which comes only of destaging. It touches
    /// nothing that is stable in the log, whose changes came before its record and were not of its
    /// blocks, or stand behind it.
    pub(crate) fn newest_write_around(&self) -> Option<WriteAroundId> {
        self.write_arounds
            .newest_known(|record| self.changes.get(record).is_some())
    }

    /// Why the log has failed, in words.
    pub(crate) fn why_failed(&self) -> Option<&str> {
        let failed = self.log.ring().has_failed();
        failed.then(|| self.failure.as_ref().map_or("", |it| &it.why))
    }

    /// The write that found no space, where the log has failed for want of it.
    pub(crate) fn refused_extent(&self) -> Option<Extent> {
        self.failure.as_ref()?.refused
    }

    /// What a write is answered whose log has failed while it waited.
    pub(crate) fn lost_write(&self, lba: Lba) -> IoError {
        match self.refused_extent() {
            Some(_) => IoError::SpaceExhausted,
            None => IoError::MediumError { lba },
        }
    }

    /// What a write is answered that comes after the log has failed: nothing of it was tried.
    pub(crate) fn refused_write(&self) -> IoError {
        match self.refused_extent() {
            Some(_) => IoError::SpaceExhausted,
            None => IoError::WriteProtected,
        }
    }

    /// Blocks of the log that came from hosts.
    pub(crate) fn fresh_blocks(&self) -> u64 {
        let all = self.log.ring().unreleased_blocks();
        all.saturating_sub(self.relocated.blocks())
    }

    /// Blocks of the log that were relocated.
    pub(crate) fn relocated_blocks(&self) -> u64 {
        self.relocated.blocks()
    }

    /// A change of the same blocks is in a batch that is not stable yet.
    pub(crate) fn is_on_its_way(&self, change: &Change) -> bool {
        self.log.is_on_its_way(change)
    }

    /// All that is known without data.
    pub(crate) fn all_bare(&self) -> Vec<BareChange> {
        let all = self.index.all_bare();
        let all = all.filter_map(|(slot, sectors, by, source)| {
            let kind = match source {
                Source::Zeroes(kind) => kind,
                Source::Lost => Kind::Lost,
                Source::Backing | Source::Log(_) => return None,
            };
            Some(BareChange {
                slot,
                sectors,
                by,
                kind,
            })
        });
        all.collect()
    }

    /// What still holds of changes without data.
    pub(crate) fn live_bare(&self, all: &[BareChange]) -> Vec<BareChange> {
        let live = all.iter().flat_map(|it| {
            let ranges = self.index.bare(it.slot, it.sectors.clone(), it.by);
            ranges.into_iter().map(|sectors| BareChange {
                sectors,
                ..it.clone()
            })
        });
        live.collect()
    }

    /// All is destaged, or what is not has been tried, until so many rounds have ended.
    pub(crate) fn is_drained(&self, rounds: u64) -> bool {
        let ring = self.log.ring();
        let enough = self.destaging.rounds() >= rounds;
        let tried = match self.destaging.blocked() {
            // Whatever could be destaged was: the rest was relocated behind it.
            Some(Blocked::Backing) => enough && self.fresh_blocks() == 0,
            Some(Blocked::Log) => enough,
            Some(Blocked::Room) | None => false,
        };
        // What is on its way counts: it may be what was relocated.
        let is_empty = self.log.waiting() == 0 && ring.unreleased_blocks() == 0;
        is_empty || tried || self.holds_all_that_is_left() || ring.has_failed()
    }

    /// All that is committed is destaged. What is left waits for other copies, or behind what does.
    fn holds_all_that_is_left(&self) -> bool {
        let ring = self.log.ring();
        let is_held = ring.unheld() < ring.stable() && ring.released().number > ring.unheld();
        is_held && (self.log.waiting() == 0 || self.is_full)
    }

    /// Changes of the volume that wait for other copies.
    fn held(&self, slot: Slot) -> usize {
        self.log.held(self.volumes.of(slot).id)
    }

    /// Where a record's data lies that this segment holds.
    pub(crate) fn lying(&self, change: &Change, at: u32) -> Lying {
        let slot = self.volumes.slot(change.volume);
        Lying {
            slot: slot.expect("the log knows its volumes"),
            sectors: change.sectors(),
            at,
        }
    }
}
