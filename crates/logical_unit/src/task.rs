//! One command's life in the task set, from arrival to its outcome.
//!
//! ```text
//!   arrive --> [waiting for data] --run--> [waiting] --admitted--> [in the backend] --> ended
//!                    |                         |                          |
//!                    +---- aborted: ended -----+      aborted: the answer is dropped; the blocks
//!                                                     are out of reach until the backend returns
//! ```
//!
//! **Contract.** A task that was aborted hands nothing more to the backend: the flag is tested
//! in the same poll that submits. Whoever runs a task drives its future to the end, also after an
//! abort and after the connection is gone: the future is what knows when the backend has let go of
//! the blocks.
//!
//! **Spec.** SAM-5 "Command and task management models", "Aborting commands".

use crate::admission::{HoldKind, TaskId};
use crate::attribute::Attribute;
use crate::forwarder::ToForward;
use crate::in_flight::{Room, WaitsForRoom};
use crate::latency_trace::LatencyTrace;
use crate::outcome::{Outcome, Refusal, Response};
use crate::share::CoreUnit;
use crate::share::control::{AbortedBy, Stage, TaskControl};
use crate::share::hold::HoldGuard;
use crate::share::nexus::Nexus;
use crate::state::UnitState;
use crate::times::Stopwatch;
use env::Answer;
use scsi::cdb::Command;
use scsi::{Sense, Status};
use std::rc::Rc;
use units::LbaRange;
use volume::{Class, Done, Fence, Io, Op, Origin};

/// How a task is, from outside.
pub struct TaskWatch {
    nexus: Rc<Nexus>,
    control: Rc<TaskControl>,
}

impl TaskWatch {
    /// Its own I_T nexus aborted the task: no answer of it is sent.
    #[must_use]
    pub fn is_aborted_by_its_own(&self) -> bool {
        self.control.aborted() == Some(AbortedBy::Own)
    }

    /// What to do about it now, where it was not aborted by its own I_T nexus and
    /// [`crate::Peers::released`] was called: the session forgets the command, however long the
    /// backend keeps it. From then on the task's future says nothing; a future that ends before its
    /// session has asked here says it itself, so that one of the two always does.
    #[must_use]
    pub fn take_released(&self) -> Option<Outcome> {
        let by = self.control.aborted()?;
        if by == AbortedBy::Own || !self.control.take_answer() {
            return None;
        }
        let response = match by {
            AbortedBy::Own | AbortedBy::Other { reported: false } => return Some(Outcome::Silent),
            AbortedBy::GivenUp => return Some(Outcome::Disconnect),
            // Of one that never began nothing was written.
            AbortedBy::ReadOnly if self.control.has_ended() => self.nexus.write_protected(),
            AbortedBy::Other { reported: true } | AbortedBy::ReadOnly => {
                self.nexus
                    .unit()
                    .statuses()
                    .count(Status::TaskAborted, None);
                Response::task_aborted()
            }
        };
        Some(Outcome::Respond(response))
    }
}

/// A command that has arrived and not ended. Dropping it before it ran ends it; after [`Task::run`]
/// its future must be driven to the end.
pub struct Task {
    pub(crate) nexus: Rc<Nexus>,
    pub(crate) command: Command,
    pub(crate) control: Rc<TaskControl>,
    /// Its place among the tasks of its nexus.
    place: usize,
    attribute: Attribute,
    fence: Fence,
    order: Option<HoldGuard>,
    /// Another node is to do it.
    pub(crate) to_forward: Option<Box<ToForward>>,
}

impl Task {
    pub(crate) fn new(
        nexus: &Rc<Nexus>,
        (command, writes): (Command, bool),
        (task_id, tag): (TaskId, u64),
        attribute: Attribute,
        stopwatch: Stopwatch,
        to_forward: Option<Box<ToForward>>,
    ) -> Self {
        let what = (writes, to_forward.is_some());
        let control = TaskControl::new((task_id, tag), what, stopwatch);
        let place = nexus.task_begins(Rc::clone(&control));
        let unit = nexus.unit();
        // Later tasks of this core stop here from this moment on.
        let order = (attribute == Attribute::Ordered)
            .then(|| unit.begin_hold(HoldKind::Order, Some(task_id)));
        Self {
            nexus: Rc::clone(nexus),
            command,
            control,
            place,
            attribute,
            fence: nexus.fence(),
            order,
            to_forward,
        }
    }

    pub(crate) fn unit(&self) -> &Rc<CoreUnit> {
        self.nexus.unit()
    }

    /// A task that this one makes at a nexus of its session; it is aborted together with it, and
    /// does not wait for the order that this one may have taken.
    pub(crate) fn child(&self, nexus: &Rc<Nexus>, command: Command) -> Self {
        let unit = nexus.unit();
        let tag = (1 << 32) | unit.next_trace().0;
        let now = unit.core().recent();
        let stopwatch = Stopwatch::new(None, 0, (now, now));
        let head = Attribute::HeadOfQueue;
        let writes = matches!(command, Command::Write(_));
        let command = (command, writes);
        let task = (unit.arrive(), tag);
        let child = Self::new(nexus, command, task, head, stopwatch, None);
        if let Some(by) = self.control.aborted() {
            // What is made after the abort does nothing: nobody waits for it, or puts its blocks
            // out of reach.
            child.control.abort(unit, by);
        }
        self.control.add_child(unit, &child.control);
        child
    }

    /// The initiator's tag; above 32 bits for tasks that a command made.
    #[must_use]
    pub fn tag(&self) -> u64 {
        self.control.tag()
    }

    /// Bytes that it reads from the medium to send them to the host.
    #[must_use]
    pub fn medium_data_in(&self) -> u64 {
        let shape = self.unit().with_state(|state| state.shape);
        let reads = self.command.blocks().and(shape);
        let bytes = reads.and_then(|shape| self.command.data_in_limit(shape.block_size));
        bytes.map_or(0, |bytes| bytes.0)
    }

    /// What is answered once it was aborted, and did nothing more: nothing, TASK ABORTED, why it
    /// may not write, or the end of the connection.
    pub(crate) fn outcome_of_abort(&self, by: AbortedBy) -> Outcome {
        match by {
            AbortedBy::Own | AbortedBy::Other { reported: false } => Outcome::Silent,
            AbortedBy::Other { reported: true } | AbortedBy::ReadOnly | AbortedBy::GivenUp
                if self.control.is_answered() =>
            {
                Outcome::Silent
            }
            AbortedBy::Other { reported: true } => {
                self.unit().statuses().count(Status::TaskAborted, None);
                Outcome::Respond(Response::task_aborted())
            }
            AbortedBy::ReadOnly => Outcome::Respond(self.nexus.write_protected()),
            AbortedBy::GivenUp => Outcome::Disconnect,
        }
    }

    /// The volume takes the data of a write at any address.
    #[must_use]
    pub fn takes_any_memory(&self) -> bool {
        let shape = self.unit().with_state(|state| state.shape);
        shape.is_some_and(|shape| shape.limits.memory_alignment <= 1)
    }

    /// The pieces in which the volume likes the data of a write, in bytes; 0: any.
    #[must_use]
    pub fn payload_piece_bytes(&self) -> usize {
        let shape = self.unit().with_state(|state| state.shape);
        shape.map_or(0, |shape| shape.limits.payload_piece_bytes as usize)
    }

    /// Data-In or nothing of it may still be of use.
    pub(crate) fn check_aborted(&self) -> Result<(), Refusal> {
        match self.control.aborted() {
            Some(_) => Err(Refusal::Aborted),
            None => Ok(()),
        }
    }

    /// Waits for older tasks where the task is ordered.
    pub(crate) async fn wait_for_order(&self) -> Result<(), Refusal> {
        self.control.enter(Stage::Waiting);
        self.check_aborted()?;
        if let Some(guard) = &self.order {
            let unit = self.unit();
            let standing = unit.finish_hold(guard, HoldKind::Order, Some(self.control.task_id()));
            self.unless_aborted(standing).await?;
        }
        Ok(())
    }

    pub(crate) fn is_ordered(&self) -> bool {
        self.order.is_some()
    }

    /// Admits the task now, or says that it must wait.
    pub(crate) fn try_admit(&self, touches: Option<LbaRange>) -> bool {
        let head_of_queue = self.attribute == Attribute::HeadOfQueue;
        self.control.enter(Stage::Waiting);
        self.control.aborted().is_none()
            && self
                .unit()
                .admit(self.control.task_id(), touches, head_of_queue)
    }

    /// Waits until the task may touch `touches`.
    pub(crate) async fn admit(&self, touches: Option<LbaRange>) -> Result<(), Refusal> {
        self.control.enter(Stage::Waiting);
        let (unit, task_id) = (self.unit(), self.control.task_id());
        let head_of_queue = self.attribute == Attribute::HeadOfQueue;
        unit.changed()
            .until(|| {
                self.control.aborted().is_some() || unit.admit(task_id, touches, head_of_queue)
            })
            .await;
        self.check_aborted()
    }

    /// Takes an exclusive hold; an abort gives up waiting for it.
    pub(crate) async fn hold(&self, kind: HoldKind) -> Result<HoldGuard, Refusal> {
        self.control.enter(Stage::Waiting);
        self.check_aborted()?;
        let unit = Rc::clone(self.unit());
        let task_id = Some(self.control.task_id());
        self.unless_aborted(async move { unit.hold(kind, task_id).await })
            .await
    }

    /// Takes a hold for a change of the unit's state; an abort gives up waiting for it.
    pub(crate) async fn hold_for_change(&self, kind: HoldKind) -> Result<HoldGuard, Refusal> {
        self.control.enter(Stage::Waiting);
        self.check_aborted()?;
        let unit = Rc::clone(self.unit());
        let task_id = Some(self.control.task_id());
        self.unless_aborted(async move { unit.hold_for_change(kind, task_id).await })
            .await
    }

    /// Waits, unless the task was aborted.
    pub(crate) async fn unless_aborted<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, Refusal> {
        let mut work = std::pin::pin!(work);
        let unit = self.unit();
        std::future::poll_fn(|cx| {
            if self.control.aborted().is_some() {
                return std::task::Poll::Ready(Err(Refusal::Aborted));
            }
            unit.changed().register(cx.waker());
            work.as_mut().poll(cx).map(Ok)
        })
        .await
    }

    /// Hands an operation to the lane, unless the task was aborted.
    pub(crate) fn start(&self, op: Op) -> Result<Answer<volume::IoResult>, Refusal> {
        self.check_aborted()?;
        let unit = self.unit();
        let Some(lane) = unit.lane() else {
            return Err(Refusal::offline());
        };
        // Blocks that were there when the command came may be cut while it waits, and between two
        // pieces of it.
        if let Some(range) = op.range() {
            let end = unit.with_state(UnitState::block_count);
            if range.end().0 > end.0 {
                return Err(Sense::lba_out_of_range(range.start().0).into());
            }
        }
        self.control.enter(Stage::InBackend {
            writes: op.mutates(),
        });
        self.control.stopwatch().is_handed_down(unit.core());
        Ok(lane.submit(Io::new(op, self.origin())))
    }

    /// Hands an operation to the lane and waits for it.
    pub(crate) async fn submit(&self, op: Op) -> Result<Done, Refusal> {
        let writes = op.mutates();
        let answer = self.start(op)?.await;
        self.control.enter(Stage::Waiting);
        match answer {
            Ok(done) => {
                if matches!(done, Done::Logged) {
                    self.control.stopwatch().is_logged();
                }
                Ok(done)
            }
            Err(error) => Err(Refusal::of(error, writes)),
        }
    }

    fn origin(&self) -> Origin {
        Origin {
            trace: self.unit().next_trace(),
            deadline: None,
            class: Class::Foreground,
            fence: self.fence,
        }
    }

    /// Takes room for `bytes` under the unit's limit, for a session that holds `holds` of this unit
    /// already and may be among those that wait. What is taken is given back when the task is over,
    /// and the backend has let go.
    #[must_use]
    pub fn take_room(&self, bytes: u64, holds: u64, waits: Option<&WaitsForRoom>) -> Room {
        let unit = self.unit();
        let (limit, here) = (unit.shared().in_flight_limit(), unit.bytes_in_flight());
        let held = self.control.held();
        held.take(limit, here, bytes, holds, waits)
    }

    /// Bytes that commands of all sessions hold at the unit, on this core.
    #[must_use]
    pub fn unit_holds(&self) -> u64 {
        self.unit().bytes_in_flight().get()
    }

    /// The command waits for memory, and perhaps until others of its unit hold less: that is
    /// reported to those who wait for the core's pool.
    pub fn waits_for_memory(&self) {
        self.unit().wait_for_less_in_flight();
    }

    /// The session waits for room for `bytes` at the unit, for as long as this is kept.
    #[must_use]
    pub fn waits_for_room(&self, bytes: u64) -> WaitsForRoom {
        WaitsForRoom::new(self.unit().shared().in_flight_limit(), bytes)
    }

    /// The host may send the data: what it takes for that is no waiting of ours.
    pub fn asks_for_data(&self) {
        self.control.stopwatch().asks_for_data(self.unit().core());
    }

    /// How long it took, where that is reported.
    pub(crate) fn latency_trace(&self) -> Option<LatencyTrace> {
        let unit = self.unit();
        self.control
            .stopwatch()
            .answered(unit.core())
            .then(|| LatencyTrace {
                unit: Rc::clone(unit),
                control: Rc::clone(&self.control),
            })
    }

    /// What shows, also while the command runs, whether it was aborted.
    #[must_use]
    pub fn watch(&self) -> TaskWatch {
        TaskWatch {
            nexus: Rc::clone(&self.nexus),
            control: Rc::clone(&self.control),
        }
    }

    /// Ends the command before it ran, with CHECK CONDITION.
    #[must_use]
    pub fn refuse(&self, sense: scsi::Sense) -> crate::outcome::Response {
        self.nexus.response_of(&sense.into())
    }

    /// Refuses the command before it ran, for lack of memory: the host sends fewer, or again (SAM-5
    /// 5.3.1 "Status codes": TASK SET FULL where the nexus has other commands here, BUSY where it
    /// has none).
    #[must_use]
    pub fn refuse_for_lack_of_memory(&self) -> Response {
        let status = if self.nexus.live_tasks() > 1 {
            Status::TaskSetFull
        } else {
            Status::Busy
        };
        self.nexus.response_of(&Refusal::Status(status))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let unit = self.nexus.unit();
        self.control.end(unit);
        let limit = unit.shared().in_flight_limit();
        self.control.held().give_back(limit, unit.bytes_in_flight());
        unit.has_less_in_flight();
        self.nexus.task_ends(self.place);
    }
}
