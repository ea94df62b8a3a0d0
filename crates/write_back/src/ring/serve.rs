//! Volumes come to a ring, and leave it.

use super::backings::OpenBacking;
use super::driver::Ring;
use super::event::{Effect, Event, KnownByHistory, Wait};
use super::volumes::TooManyVolumes;
use crate::history::HistoryFile;
use env::Answer;
use journal::{Kind, Slot, VolumeId};
use std::rc::Rc;
use units::{Lba, LbaRange};
use volume::{Done, IoFuture};

impl Ring {
    /// Takes a volume in, or in again with another backing volume; `history`: where it is kept, and
    /// was not open here.
    pub(crate) fn serve(
        self: &Rc<Self>,
        id: VolumeId,
        open: OpenBacking,
        history: Option<HistoryFile>,
    ) -> Result<Slot, TooManyVolumes> {
        // Somebody else may have opened it meanwhile.
        let history = history.filter(|_| !self.keeps_history(id));
        let found = self.backings_mut().take_found(id);
        if let Some(history) = &history {
            history.absorb(found);
        }
        let opened = Event::Open {
            id,
            facts: open.facts(),
            history: history.as_ref().map(|it| {
                let history = it.history.borrow();
                KnownByHistory {
                    next: history.next(),
                    epoch: history.epoch(),
                }
            }),
        };
        let slot = self.ask(opened, |effects| {
            if let Some(Effect::Opened(slot)) = effects.first() {
                Ok(*slot)
            } else {
                Err(TooManyVolumes)
            }
        })?;
        let mut backings = self.backings_mut();
        let backing = backings.of_mut(slot);
        backing.open = Some(open);
        if let Some(history) = history {
            backing.history = Some(Rc::new(history));
        }
        drop(backings);
        self.agrees(slot);
        Ok(slot)
    }

    /// What is kept of a volume here is open where it is in the machine.
    fn agrees(&self, slot: Slot) {
        let (machine, backings) = (self.machine(), self.backings());
        let (volume, backing) = (machine.volume(slot), backings.of(slot));
        assert_eq!(volume.open.is_some(), backing.open.is_some());
        assert_eq!(volume.has_history, backing.history.is_some());
        assert_eq!(volume.is_exchanged, backing.next.is_some());
    }

    /// The volume's history is kept here already.
    pub(crate) fn keeps_history(&self, id: VolumeId) -> bool {
        let slot = self.slot(id);
        slot.is_some_and(|slot| self.backings().of(slot).history.is_some())
    }

    /// Nobody uses the volume any more.
    pub(crate) fn leave(self: &Rc<Self>, id: VolumeId) {
        self.apply(Event::Leave(id));
        if let Some(slot) = self.slot(id) {
            self.backings_mut().of_mut(slot).open = None;
            self.agrees(slot);
        }
    }

    /// Says in the log that the volume is no more.
    pub(crate) fn forget(self: &Rc<Self>, id: VolumeId) -> IoFuture {
        let Some(slot) = self.slot(id) else {
            return Answer::ready(Ok(Done::Nothing));
        };
        let nothing = LbaRange::between(Lba(0), Lba(0)).expect("in order");
        self.note(slot, nothing, Kind::Gone)
    }

    /// Says in the log that its last batch was stable, where nothing does and nothing else is on
    /// its way.
    pub(crate) fn seal(self: &Rc<Self>) {
        self.apply(Event::Seal);
    }

    /// Ends what works for it, as soon as it has nothing in hand.
    pub(crate) fn close(self: &Rc<Self>) {
        self.apply(Event::Close);
    }

    /// Has everything of the volume wait that is asked for from now on, until another backing
    /// volume has taken the place of its own.
    pub(crate) fn begin_exchange(self: &Rc<Self>, slot: Slot, next: OpenBacking) {
        self.apply(Event::Wait(slot, Wait::BeginExchange));
        self.backings_mut().of_mut(slot).next = Some(next);
    }

    /// Ends what [`Ring::begin_exchange`] began, where it did; `done`: with the other one.
    pub(crate) fn end_exchange(self: &Rc<Self>, slot: Slot, done: bool) {
        let next = self.backings_mut().of_mut(slot).next.take();
        let Some(next) = next else { return };
        let facts = done.then(|| next.facts());
        if done {
            self.backings_mut().of_mut(slot).open = Some(next);
        }
        self.apply(Event::Wait(slot, Wait::EndExchange(facts)));
        self.agrees(slot);
    }
}
