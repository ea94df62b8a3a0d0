//! What one core does for one ring: the machine's state has no I/O and no waiting, this has all of
//! it.
//!
//! ```text
//!   request, end of an I/O, timer --> Event --> machine --> Effects --> I/O, answers, who is woken
//! ```

use super::age::Ages;
use super::answers::Answers;
use super::backings::{Backings, OpenBacking};
use super::counts::RingCounts;
use super::event::{Effect, Effects, Event, Extent, Failure};
use super::grace::Grace;
use super::machine::Machine;
use super::waiting::{Condition, Waiters};
use crate::admission::Permits;
use env::{CoreHandle, Durable, File, FileOp};
use futures_util::future::select;
use journal::{BLOCK, BatchWrite, Change, CheckpointWrite, Slot, VolumeId};
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;
use units::{Buf, Now};
use volume::Fence;

/// Names an open journal among all of this process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct JournalKey(pub(crate) u64);

/// The rings that a core has, by journal and number.
#[derive(Default)]
pub(crate) struct OnCore(pub(crate) RefCell<BTreeMap<(JournalKey, u32), Rc<Ring>>>);

/// A ring of this core.
pub(crate) fn ring_of(core: &CoreHandle, key: (JournalKey, u32)) -> Option<Rc<Ring>> {
    core.locals().get::<OnCore>().0.borrow().get(&key).cloned()
}

/// Where a ring lies.
pub(crate) struct Device {
    pub(crate) file: Rc<dyn File>,
    /// The first byte of the ring's log.
    pub(crate) log_at: u64,
    /// The first bytes of both checkpoints.
    pub(crate) checkpoints_at: [u64; 2],
}

impl Device {
    /// The byte where a sector of the log lies.
    pub(crate) fn byte(&self, sector: u32) -> u64 {
        self.log_at + u64::from(sector) * journal::SECTOR
    }
}

/// One ring on its core.
pub(crate) struct Ring {
    pub(crate) core: CoreHandle,
    pub(crate) device: Device,
    machine: RefCell<Machine>,
    /// What the machine wants done: memory that is used again.
    effects: Cell<Effects>,
    answers: RefCell<Answers>,
    backings: RefCell<Backings>,
    /// Who reads from the log now.
    pub(super) log_reads: Rc<Grace>,
    /// What changes take that wait for the log.
    pub(crate) permits: Rc<Permits>,
    /// Who waits for the machine's state.
    waiters: Waiters,
    pub(crate) counts: RefCell<RingCounts>,
    pub(crate) ages: RefCell<Ages>,
}

impl Ring {
    /// What serves a ring that was opened: its machine, and what it does not know.
    pub(crate) fn new(
        core: &CoreHandle,
        device: Device,
        machine: Machine,
        backings: Backings,
        opened_at: Now,
    ) -> Rc<Self> {
        let room = machine.ring().room_blocks() * BLOCK as u64;
        let mut ages = Ages::default();
        ages.written(machine.ring().released().number, opened_at);
        Rc::new(Self {
            core: Rc::clone(core),
            device,
            machine: RefCell::new(machine),
            effects: Cell::default(),
            answers: RefCell::default(),
            backings: RefCell::new(backings),
            log_reads: Rc::default(),
            permits: Permits::of_log(room),
            waiters: Waiters::default(),
            counts: RefCell::default(),
            ages: RefCell::new(ages),
        })
    }

    /// The state, to read.
    pub(crate) fn machine(&self) -> Ref<'_, Machine> {
        self.machine.borrow()
    }

    pub(crate) fn backings(&self) -> Ref<'_, Backings> {
        self.backings.borrow()
    }

    pub(crate) fn backings_mut(&self) -> RefMut<'_, Backings> {
        self.backings.borrow_mut()
    }

    /// The volume of a slot that requests come for.
    pub(crate) fn backing_of(&self, slot: Slot) -> OpenBacking {
        self.backings().opened(slot).clone()
    }

    /// The writer has not lost its right to write; where the volume is gone, the machine knows.
    pub(super) fn is_current(&self, slot: Slot, fence: Fence) -> bool {
        let backings = self.backings();
        let open = backings.of(slot).open.as_ref();
        open.is_none_or(|it| it.fences.is_current(fence))
    }

    /// The volume's place here, once it was taken in.
    pub(crate) fn slot(&self, id: VolumeId) -> Option<Slot> {
        self.machine().slot(id)
    }

    /// Something has happened.
    pub(crate) fn apply(self: &Rc<Self>, event: Event<'_>) {
        self.ask(event, |_| ());
    }

    /// Something has happened, and what is done about it is also for whoever says so to see.
    pub(crate) fn ask<T>(self: &Rc<Self>, event: Event<'_>, see: impl FnOnce(&[Effect]) -> T) -> T {
        let mut effects = self.effects.take();
        self.machine.borrow_mut().apply(event, &mut effects);
        let seen = see(&effects);
        for effect in effects.drain(..) {
            self.perform(effect);
        }
        self.effects.set(effects);
        seen
    }

    fn perform(self: &Rc<Self>, effect: Effect) {
        match effect {
            // For whoever has asked.
            Effect::Submitted { .. }
            | Effect::Refused(_)
            | Effect::EpochRefused(_)
            | Effect::Followed(_)
            | Effect::AppendRefused(_)
            | Effect::Begun(..)
            | Effect::Watched(_)
            | Effect::Opened(_)
            | Effect::Waits
            | Effect::AwaitsSyncPoint
            | Effect::Blocked(_) => {}
            Effect::WriteBatch(write) => self.write_batch(write),
            Effect::WriteCheckpoint(write) => self.write_checkpoint(write),
            Effect::Stable { slot, below } => {
                let carrier = self.backings().of(slot).carrier.clone();
                if let Some(carrier) = carrier {
                    carrier.stable(below);
                }
            }
            Effect::RecordHistory { slot, change } => {
                let history = self.backings().of(slot).history.clone();
                match history {
                    Some(history) => history.record(&change),
                    None => self.backings_mut().add_found(&change),
                }
            }
            Effect::TouchHistory { slot, sectors } => {
                if let Some(history) = &self.backings().of(slot).history {
                    history.touch(&sectors);
                }
            }
            Effect::ForgetHistory(slot) => self.forget_history(slot),
            Effect::PassSyncPoint(place) => self.answers.borrow_mut().pass_sync_point(place),
            Effect::Held(token) => self.answers.borrow_mut().held(token),
            Effect::Answer { token, result } => self.answers.borrow_mut().answer(token, result),
            Effect::WakeWriter => self.waiters.wake_writer(),
            Effect::WakeDestager => self.waiters.wake_destager(),
            Effect::WakeOthers => self.waiters.wake_others(),
        }
    }

    /// Hands a batch to the device.
    fn write_batch(self: &Rc<Self>, write: BatchWrite) {
        {
            let mut counts = self.counts.borrow_mut();
            counts.batches += 1;
            counts.records += write.data_at.len() as u64;
            counts.written_bytes += write.bytes.len() as u64;
        }
        let now = self.core.recent();
        self.ages.borrow_mut().written(write.number, now);
        let place = Extent {
            offset: self.device.log_at + write.at,
            len: write.bytes.len(),
        };
        let number = write.number;
        self.write_log(place, write.bytes, move |result| Event::BatchEnded {
            number,
            result,
        });
        if !write.carried.is_empty() {
            self.carry(write.carried);
        }
    }

    /// Hands what is on its way to the log to who brings it to other nodes.
    fn carry(&self, changes: Vec<(Change, Buf)>) {
        let mut of_volumes: BTreeMap<VolumeId, Vec<(Change, Buf)>> = BTreeMap::new();
        for it in changes {
            of_volumes.entry(it.0.volume).or_default().push(it);
        }
        for (volume, changes) in of_volumes {
            let slot = self.slot(volume);
            let carrier = slot.and_then(|slot| self.backings().of(slot).carrier.clone());
            if let Some(carrier) = carrier {
                carrier.submitted(changes);
            }
        }
    }

    fn write_checkpoint(self: &Rc<Self>, write: CheckpointWrite) {
        let place = Extent {
            offset: self.device.checkpoints_at[usize::from(write.slot)],
            len: write.bytes.len(),
        };
        self.write_log(place, Buf::from(write.bytes), Event::CheckpointEnded);
    }

    fn write_log(
        self: &Rc<Self>,
        place: Extent,
        data: Buf,
        ended: impl FnOnce(Result<(), Failure>) -> Event<'static> + 'static,
    ) {
        let answer = self.device.file.submit(FileOp::Write {
            offset: place.offset,
            data,
            durable: Durable::Yes,
        });
        let ring = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            let result = answer.await.map(|_| ());
            let result = result.map_err(|error| Failure::of_write(place, &error));
            ring.apply(ended(result));
        }));
    }

    fn forget_history(&self, slot: Slot) {
        let id = self.machine().volume(slot).id;
        let mut backings = self.backings_mut();
        backings.take_found(id);
        backings.of_mut(slot).history = None;
    }

    /// Somebody waits for an answer to the change with this token.
    pub(super) fn answers(&self) -> RefMut<'_, Answers> {
        self.answers.borrow_mut()
    }

    /// Somebody waits for the next sync point, which the machine has.
    pub(super) fn sync_point(&self) -> oneshot::Receiver<()> {
        self.answers.borrow_mut().expect_sync_point()
    }

    /// Waits until something may be written to the log.
    pub(super) async fn writer_is_woken(&self) {
        self.waiters.writer_is_woken().await;
    }

    /// Waits until something may be destaged.
    pub(crate) async fn destager_is_woken(&self) {
        self.waiters.destager_is_woken().await;
    }

    /// The same, for so long at most.
    pub(crate) async fn destager_is_woken_within(&self, time: Duration) {
        let timer = self.core.sleep_until(self.core.now().after(time));
        select(timer, pin!(self.destager_is_woken())).await;
    }

    /// Waits until it is so: the machine's state is as it says when this answers.
    pub(crate) async fn wait_until(&self, condition: Condition) {
        self.waiters.until(&self.machine, condition).await;
    }

    /// Waits until all have read who have looked up before now where in the log something lies.
    pub(crate) async fn log_reads_end(&self) {
        self.log_reads.wait().await;
    }

    /// Waits until all reads of a backing volume have ended that have begun before.
    pub(crate) async fn backing_reads_end(&self, slot: Slot) {
        let reads = Rc::clone(&self.backings().of(slot).reads);
        reads.wait().await;
    }
}
