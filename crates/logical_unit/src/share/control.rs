//! What task management sees of a task, and does to it.

use super::CoreUnit;
use super::hold::HoldGuard;
use crate::admission::{HoldKind, TaskId};
use crate::in_flight::Held;
use crate::times::Stopwatch;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

/// Who aborted a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AbortedBy {
    /// Its own I_T nexus: no answer is sent.
    Own,
    /// Another one.
    Other {
        /// TAS was one: TASK ABORTED is answered. Otherwise nothing is.
        reported: bool,
    },
    /// The right to write was taken from its nexus: what the backend has is carried out and
    /// answered as it ends, the rest is refused as write protected.
    ReadOnly,
    /// Nobody knows how it will end: its connection ends, and what the backend has is carried out.
    GivenUp,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    WaitingForData,
    Waiting,
    InBackend { writes: bool },
    Ended,
}

/// What task management sees of a task.
pub(crate) struct TaskControl {
    task_id: TaskId,
    tag: u64,
    /// It changes the medium.
    writes: bool,
    stage: Cell<Stage>,
    aborted: Cell<Option<AbortedBy>>,
    /// Another nexus aborted it, and what the backend still has of it is out of reach: its session
    /// need not keep a place for it any more.
    released: Cell<bool>,
    /// Its session has taken what is to be said about it, and its future has nothing to say any
    /// more.
    answered: Cell<bool>,
    stopwatch: Stopwatch,
    held: Held,
    /// Another node does it: it is over when that says so, and not before.
    is_forwarded: bool,
    /// The way to that node was lost, and nobody knows what became of it.
    is_lost: Cell<bool>,
    rare: OnceCell<Box<Rare>>,
}

/// What few tasks have. Those that have none of it, which are nearly all, carry one pointer for it.
#[derive(Default)]
struct Rare {
    /// Tasks that this one made on other units or its own (EXTENDED COPY): aborted with it.
    children: RefCell<Vec<(Rc<CoreUnit>, Rc<TaskControl>)>>,
    /// The hold that keeps everybody from the blocks of an aborted write until the backend returns.
    quarantine: RefCell<Option<HoldGuard>>,
}

impl TaskControl {
    pub(crate) fn new(
        (task_id, tag): (TaskId, u64),
        (writes, is_forwarded): (bool, bool),
        stopwatch: Stopwatch,
    ) -> Rc<Self> {
        Rc::new(Self {
            task_id,
            tag,
            writes,
            stage: Cell::new(Stage::WaitingForData),
            aborted: Cell::new(None),
            released: Cell::new(false),
            answered: Cell::new(false),
            stopwatch,
            held: Held::default(),
            is_forwarded,
            is_lost: Cell::new(false),
            rare: OnceCell::new(),
        })
    }

    fn rare(&self) -> &Rare {
        self.rare.get_or_init(Box::default)
    }

    fn for_each_child(&self, mut act: impl FnMut(&Rc<CoreUnit>, &Rc<Self>)) {
        if let Some(rare) = self.rare.get() {
            for (unit, child) in rare.children.borrow().iter() {
                act(unit, child);
            }
        }
    }

    pub(crate) fn stopwatch(&self) -> &Stopwatch {
        &self.stopwatch
    }

    /// What it holds of the unit's bytes in flight.
    pub(crate) fn held(&self) -> &Held {
        &self.held
    }

    /// The session takes what is to be said about it. `true` the first time, and once the unit has
    /// let go of it.
    pub(crate) fn take_answer(&self) -> bool {
        self.released.get() && !self.answered.replace(true)
    }

    /// Another task was made by this one.
    pub(crate) fn add_child(&self, unit: &Rc<CoreUnit>, child: &Rc<Self>) {
        let mut children = self.rare().children.borrow_mut();
        children.retain(|(_, child)| !child.has_ended());
        children.push((Rc::clone(unit), Rc::clone(child)));
    }

    pub(crate) fn task_id(&self) -> TaskId {
        self.task_id
    }

    /// The initiator's tag; above 32 bits for tasks that a command made.
    pub(crate) fn tag(&self) -> u64 {
        self.tag
    }

    pub(crate) fn aborted(&self) -> Option<AbortedBy> {
        self.aborted.get()
    }

    /// It changes the medium.
    pub(crate) fn writes(&self) -> bool {
        self.writes
    }

    pub(crate) fn is_released(&self) -> bool {
        self.released.get()
    }

    /// Its session has answered for it.
    pub(crate) fn is_answered(&self) -> bool {
        self.answered.get()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.stage.get() == Stage::Ended
    }

    /// It has ended, or all that the backend has of it is a read: nothing of it can reach the
    /// medium.
    pub(crate) fn is_harmless(&self) -> bool {
        let own = matches!(
            self.stage.get(),
            Stage::Ended | Stage::InBackend { writes: false }
        );
        let harmless = |rare: &Rare| {
            let children = rare.children.borrow();
            children.iter().all(|(_, child)| child.is_harmless())
        };
        own && self.rare.get().map(Box::as_ref).is_none_or(harmless)
    }

    /// Another node does it.
    pub(crate) fn is_forwarded(&self) -> bool {
        self.is_forwarded
    }

    /// Nothing of it can reach the medium, or what can is with a backend of this node, which may
    /// hang.
    pub(crate) fn may_be_quarantined(&self) -> bool {
        !self.is_forwarded || self.is_harmless()
    }

    /// Nobody knows what became of it: no function may say that it is over.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.get()
    }

    /// The way to the node that does it was lost.
    pub(crate) fn lose(&self) {
        self.is_lost.set(true);
    }

    /// The unit has let go of a task that was not aborted by its own nexus. `true` the first time.
    pub(crate) fn release(&self) -> bool {
        match self.aborted.get() {
            Some(AbortedBy::Other { .. } | AbortedBy::ReadOnly | AbortedBy::GivenUp) => {
                !self.released.replace(true)
            }
            Some(AbortedBy::Own) | None => false,
        }
    }

    /// Marks the task. From here on it submits nothing. One that has not begun ends here.
    pub(crate) fn abort(&self, unit: &CoreUnit, by: AbortedBy) {
        if self.aborted.get().is_none() {
            self.aborted.set(Some(by));
        }
        self.for_each_child(|unit, child| {
            child.abort(unit, by);
            unit.changed().wake_all();
        });
        if self.stage.get() == Stage::WaitingForData {
            self.end(unit);
        }
    }

    /// Goes on to another stage, unless it has ended: one that was aborted while its data was on
    /// the way is run all the same when the data comes, and must not live again.
    pub(crate) fn enter(&self, stage: Stage) {
        if !self.has_ended() {
            self.stage.set(stage);
        }
    }

    /// Leaves the task set, once.
    pub(crate) fn end(&self, unit: &CoreUnit) {
        if self.stage.replace(Stage::Ended) != Stage::Ended {
            unit.leave(self.task_id);
            if let Some(rare) = self.rare.get() {
                drop(rare.quarantine.borrow_mut().take());
            }
            unit.changed().wake_all();
        }
    }

    /// Writes that the backend still has of it, and of the tasks that it made.
    pub(crate) fn writes_in_backend(
        self: &Rc<Self>,
        unit: &Rc<CoreUnit>,
        found: &mut Vec<(Rc<CoreUnit>, Rc<Self>)>,
    ) {
        self.for_each_child(|unit, child| child.writes_in_backend(unit, found));
        if self.stage.get() == (Stage::InBackend { writes: true }) {
            found.push((Rc::clone(unit), Rc::clone(self)));
        }
    }

    /// Puts the blocks of an aborted write that the backend still has out of reach on every core,
    /// until it returns: nothing that comes later may run before it, and be overwritten by it.
    pub(crate) async fn seclude(&self, unit: &Rc<CoreUnit>) {
        let Some(range) = unit.touches(self.task_id) else {
            return;
        };
        let guard = unit
            .quarantine_hold(HoldKind::Range(range), self.task_id)
            .await;
        if !self.has_ended() {
            *self.rare().quarantine.borrow_mut() = Some(guard);
        }
    }

    /// The backend does not return in time: what waits for everything in flight no longer waits for
    /// this.
    pub(crate) fn quarantine(&self, unit: &CoreUnit) {
        self.for_each_child(|unit, child| child.quarantine(unit));
        let Stage::InBackend { writes } = self.stage.get() else {
            return;
        };
        let Some(range) = unit.quarantine(self.task_id).filter(|_| writes) else {
            return;
        };
        tracing::warn!(
            lun = &*unit.shared().name(),
            first_block = range.start().0,
            blocks = range.len().0,
            "an aborted write is still with the backend: later commands on its blocks wait for it"
        );
    }
}
