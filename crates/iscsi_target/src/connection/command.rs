//! SCSI commands between the machine and the logical units.

use super::awaited::Granted;
use super::commands::{Running, Waiting};
use super::driver::Driver;
use super::ending::End;
use super::memory::{Begun, Need, Others};
use super::unmapped;
use env::Answer;
use iscsi::DataFault;
use iscsi::bhs::Attribute as WireAttribute;
use iscsi::target_side::{Response as WireResponse, TargetCommand};
use iscsi::{Itt, Lun};
use logical_unit::{Arrival, Attribute, NexusError, Outcome, Request, Response, Room, Task};
use scsi::lun::LunAddress;
use scsi::{AdditionalSense, Sense, SenseKey};
use std::collections::btree_map::Entry;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Context;
use std::time::Duration;
use units::{Buf, Now, Pool};

/// How long until memory is asked for again, where there was none.
const MEMORY_RETRY: Duration = Duration::from_millis(2);

/// A timer that rings so much late shows that the whole process was stopped.
const STOPPED: Duration = Duration::from_secs(1);

/// Commands ended without an answer that are remembered.
const TAKEN_AWAY_MAX: usize = 1024;

/// Operation code of REPORT LUNS.
const REPORT_LUNS: u8 = 0xa0;

impl Driver {
    pub(super) fn command(&mut self, command: &TargetCommand) {
        self.count(|counters| {
            counters.commands.set(counters.commands.get() + 1);
            counters.in_progress.set(counters.in_progress.get() + 1);
        });
        self.commands.taken_away.remove(&command.itt);
        let address = unmapped::address(command.lun);
        let reports_luns = command.cdb.first() == Some(&REPORT_LUNS);
        let Some(units) = self.phase.units().cloned().filter(|_| !reports_luns) else {
            return self.without_unit(command);
        };
        let nexus = match address {
            LunAddress::Unit(lun) => units.nexus(lun),
            LunAddress::ReportLuns | LunAddress::Incorrect => Err(NexusError::NoSuchUnit),
        };
        let nexus = match nexus {
            Ok(nexus) => nexus,
            Err(NexusError::NoSuchUnit) => return self.without_unit(command),
            Err(NexusError::TooMany) => {
                let busy = Response {
                    status: scsi::Status::Busy,
                    sense: None,
                    data_in: Buf::empty(),
                    latency_trace: None,
                };
                return self.respond(command.itt, 0, busy);
            }
        };
        let announced = if command.writes {
            command.expected_data_transfer_length
        } else {
            0
        };
        let request = Request {
            cdb: &command.cdb,
            attribute: attribute(command.attribute),
            tag: command.itt.get(),
            data_out: u64::from(announced),
            first_byte: self.incoming.at.0,
            whole: self.incoming.at.1,
        };
        match nexus.arrive(request) {
            Arrival::Ended { response, data_out } => self.respond(command.itt, data_out, response),
            Arrival::Task { task, data_out } => self.begin(command, announced, task, data_out),
        }
    }

    fn without_unit(&mut self, command: &TargetCommand) {
        let luns = self
            .phase
            .units()
            .map(|units| units.luns())
            .unwrap_or_default();
        let response = unmapped::respond(unmapped::address(command.lun), &command.cdb, &luns);
        if let Some(units) = self
            .phase
            .units()
            .filter(|_| command.cdb.first() == Some(&REPORT_LUNS))
        {
            units.luns_reported();
        }
        self.respond(command.itt, 0, response);
    }

    fn begin(&mut self, command: &TargetCommand, announced: u32, task: Task, data_out: u64) {
        let (itt, lun) = (command.itt, command.lun);
        let bytes = u32::try_from(data_out.min(u64::from(announced))).unwrap_or(announced);
        let need = match (bytes, task.medium_data_in()) {
            (0, 0) => return self.run_task(itt, task, data_out, Buf::empty(), None),
            (0, reads) => Need::DataIn(usize::try_from(reads).unwrap_or(usize::MAX)),
            (bytes, _) => Need::DataOut(bytes),
        };
        let held = need.bytes();
        let begins = self.memory.share.is_idle(lun)
            && self.has_room(lun, held, &task)
            && self.takes_room(lun, held, &task) == Room::Taken;
        if begins {
            // The usual read, and the usual small write: they wait for nothing.
            let data = match need {
                Need::DataIn(_) => Some(Buf::empty()),
                Need::DataOut(bytes) => self.at_hand(itt, bytes, &task),
            };
            if let Some(data) = data {
                return self.run_task(itt, task, data_out, data, Some((lun, held)));
            }
        }
        let waiting = Waiting {
            task,
            wanted: data_out,
            granted: None,
        };
        self.commands.waiting.insert(itt, waiting);
        let is_first = self.memory.share.is_idle(lun);
        self.memory.share.wait(lun, itt, need);
        if is_first {
            self.begin_those_of(lun);
        }
    }

    /// The data of a write where it was received, if all of it was, and its volume takes it at any
    /// address.
    fn at_hand(&mut self, itt: Itt, bytes: u32, task: &Task) -> Option<Buf> {
        let lent = || {
            self.incoming
                .receive
                .lend_immediate(&mut self.machine, itt, bytes)
        };
        let data = task.takes_any_memory().then(lent).flatten()?;
        self.count_written(data.len());
        Some(data)
    }

    fn has_room(&self, lun: Lun, bytes: usize, task: &Task) -> bool {
        let unsent = self.machine.transmit().bytes();
        let awaited = self.phase.awaited();
        let others = Others {
            of_host: awaited.map_or(0, |awaited| awaited.others_hold()),
            of_unit: usize::try_from(task.unit_holds()).unwrap_or(usize::MAX),
        };
        self.memory
            .share
            .has_room(lun, bytes, unsent, others, self.core.pool())
    }

    /// Takes room under the limit of the command's unit.
    fn takes_room(&self, lun: Lun, bytes: usize, task: &Task) -> Room {
        let holds = self.memory.share.holds(lun) as u64;
        task.take_room(bytes as u64, holds, self.memory.share.for_room(lun))
    }

    /// The same for a command that may have to wait: whoever waits has a place in the unit's queue.
    fn finds_room(&mut self, lun: Lun, itt: Itt, bytes: usize) -> Room {
        let Some(Waiting { task, .. }) = self.commands.waiting.get(&itt) else {
            return Room::Taken;
        };
        let found = self.takes_room(lun, bytes, task);
        if found == Room::Taken || self.memory.share.for_room(lun).is_some() {
            return found;
        }
        let place = task.waits_for_room(bytes as u64);
        self.memory.share.enters(lun, place);
        // What was given back meanwhile woke nobody.
        self.commands
            .waiting
            .get(&itt)
            .map_or(found, |waiting| self.takes_room(lun, bytes, &waiting.task))
    }

    /// Begins a command if there is memory for it: asks the host for its data, or runs it.
    fn begin_with_memory(&mut self, lun: Lun, itt: Itt, need: Need) -> Begun {
        let Some(Waiting { task, .. }) = self.commands.waiting.get(&itt) else {
            return Begun::Yes;
        };
        let piece = task.payload_piece_bytes();
        if !self.has_room(lun, need.bytes(), task) {
            task.waits_for_memory();
            return Begun::WaitsForMemory;
        }
        match need {
            Need::DataOut(bytes) => {
                let length = bytes as usize;
                let piece = if piece == 0 { usize::MAX } else { piece };
                let Some(granted) = self.grant(Pool::taken_for(length, piece)) else {
                    return Begun::WaitsForMemory;
                };
                match self.finds_room(lun, itt, length) {
                    Room::Taken => {}
                    Room::TooLittle => return Begun::WaitsForRoom,
                    Room::HasItsPart => return Begun::WaitsForItsOwn,
                }
                let Ok(buffer) = self.core.pool().alloc_pieces(length, piece) else {
                    return Begun::WaitsForMemory;
                };
                if let Some(waiting) = self.commands.waiting.get_mut(&itt) {
                    waiting.task.asks_for_data();
                    waiting.granted = Some(granted);
                }
                self.memory.share.take(lun, itt, length);
                self.machine.accept_data(itt, bytes, buffer);
            }
            Need::DataIn(bytes) => {
                match self.finds_room(lun, itt, bytes) {
                    Room::Taken => {}
                    Room::TooLittle => return Begun::WaitsForRoom,
                    Room::HasItsPart => return Begun::WaitsForItsOwn,
                }
                if let Some(Waiting { task, wanted, .. }) = self.commands.waiting.remove(&itt) {
                    let held = Some((lun, bytes));
                    self.run_task(itt, task, wanted, Buf::empty(), held);
                }
            }
        }
        Begun::Yes
    }

    /// Takes a part of what hosts may announce, for memory of so many bytes that this one is to
    /// fill.
    fn grant(&mut self, bytes: usize) -> Option<Granted> {
        let memory = self.core.pool().limit_bytes();
        let now = self.core.recent();
        let granted = self.phase.awaited()?.grant(bytes, memory, now)?;
        if self.memory.data_due.is_none() {
            let time = self.export.settings.data_timeout;
            self.memory.data_due = Some(granted.due(time, self.memory.on_time_since));
        }
        Some(granted)
    }

    /// Ends the writes whose data is not there in its time.
    pub(super) fn end_late_writes(&mut self, now: Now) {
        let Some(due) = self.memory.data_due.filter(|due| *due <= now) else {
            return;
        };
        if now.since(due) > STOPPED {
            // We were stopped, not the host: what it sent has not been looked at.
            self.memory.on_time_since = now;
        }
        let (time, since) = (self.export.settings.data_timeout, self.memory.on_time_since);
        let mut next: Option<Now> = None;
        let mut late = Vec::new();
        for (itt, waiting) in &self.commands.waiting {
            match waiting.granted.as_ref().map(|it| it.due(time, since)) {
                Some(due) if due <= now => late.push(*itt),
                Some(due) => next = Some(next.map_or(due, |next| next.min(due))),
                None => {}
            }
        }
        self.memory.data_due = next;
        if !late.is_empty() {
            let (writes, seconds) = (late.len(), time.as_secs());
            tracing::warn!(peer = %self.stream.peer(), writes, "the data of writes did not come within {seconds} s: they are ended");
        }
        for itt in late {
            self.data_fault(itt, DataFault::TimedOut);
        }
    }

    /// Memory comes back on other sessions, too: who waits for it tries again when that is
    /// reported, and not more often than at intervals.
    fn retry_later(&mut self) {
        if self.memory.retry.is_some() {
            return;
        }
        let core = Rc::clone(&self.core);
        let awaited = self.phase.awaited().cloned();
        let soon = core.now().after(MEMORY_RETRY);
        let seen = (
            core.pool().freed(),
            awaited.as_ref().map_or(0, |it| it.freed()),
        );
        self.memory.retry = Some(Box::pin(async move {
            // Not at each slab: who waits would do nothing else.
            core.sleep_until(soon).await;
            let Some(awaited) = awaited else { return };
            poll_fn(|cx| {
                let memory = core.pool().poll_freed(cx, seen.0);
                let shares = awaited.poll_freed(cx, seen.1);
                if memory.is_ready() { memory } else { shares }
            })
            .await;
        }));
    }

    /// Tries again for memory, and for room under the limits of units, when there may be some.
    pub(super) fn poll_memory(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.memory.share.has_waiting() {
            self.memory.retry = None;
            return false;
        }
        let mut retries = self.memory.share.poll(cx);
        let retry = self.memory.retry.as_mut();
        if retry.is_some_and(|retry| retry.as_mut().poll(cx).is_ready()) {
            self.memory.retry = None;
            retries = true;
        }
        if retries {
            self.begin_waiting();
        }
        retries
    }

    pub(super) fn begin_waiting(&mut self) {
        for lun in self.memory.share.luns_that_wait() {
            self.begin_those_of(lun);
        }
    }

    /// Begins what waits of a LUN, the oldest first, as far as there is memory and room for it.
    fn begin_those_of(&mut self, lun: Lun) {
        let mut begun = false;
        while let Some((itt, need)) = self.memory.share.first(lun) {
            let now = self.begin_with_memory(lun, itt, need);
            if now != Begun::Yes {
                self.memory.share.has_tried(lun, need.bytes(), begun, now);
                if now == Begun::WaitsForMemory {
                    self.retry_later();
                }
                return;
            }
            begun = true;
            self.memory.share.first_has_begun(lun);
        }
    }

    pub(super) fn data_out(&mut self, itt: Itt, data: Buf) {
        self.count_written(data.len());
        let waiting = self.commands.waiting.remove(&itt);
        if let Some(Waiting {
            task,
            wanted,
            granted,
        }) = waiting
        {
            if let Some(granted) = granted {
                granted.delivered(self.core.recent());
            }
            self.run_task(itt, task, wanted, data, None);
        }
        if self.memory.share.has_waiting() {
            // The next may send while this one is written.
            self.begin_waiting();
        }
    }

    fn count_written(&self, bytes: usize) {
        self.count(|counters| {
            counters
                .bytes_written
                .set(counters.bytes_written.get() + bytes as u64);
        });
    }

    /// The data of a write cannot be had: the task ends without having touched anything.
    pub(super) fn data_fault(&mut self, itt: Itt, fault: DataFault) {
        let Some(Waiting { task, wanted, .. }) = self.commands.waiting.remove(&itt) else {
            return;
        };
        self.memory.share.forget(itt);
        let response = match fault.additional_sense() {
            Some((asc, ascq)) => {
                let code = AdditionalSense { asc, ascq };
                task.refuse(Sense::new(SenseKey::AbortedCommand, code))
            }
            None => task.refuse_for_lack_of_memory(),
        };
        drop(task);
        self.respond(itt, wanted, response);
    }

    /// Runs a command; `held`: what it takes of the memory of its LUN's share, where that was not
    /// taken yet.
    fn run_task(
        &mut self,
        itt: Itt,
        task: Task,
        wanted: u64,
        data: Buf,
        held: Option<(Lun, usize)>,
    ) {
        let watch = task.watch();
        match task.run(data) {
            Answer::Ready(Some(outcome)) => self.task_ended(itt, wanted, outcome),
            Answer::Ready(None) => {}
            Answer::Waiting(rest) => {
                if let Some((lun, bytes)) = held {
                    self.memory.share.take(lun, itt, bytes);
                }
                self.commands.runs += 1;
                let run = self.commands.runs;
                let running = Running { run, watch, wanted };
                self.commands.watched.insert(itt, running);
                self.commands
                    .running
                    .push(Box::pin(async move { (itt, run, rest.await) }));
            }
        }
    }

    /// A task that had to be waited for has ended. Its ITT may stand for another one by now.
    pub(super) fn run_ended(&mut self, itt: Itt, run: u64, outcome: Outcome) {
        if let Entry::Occupied(now) = self.commands.watched.entry(itt)
            && now.get().run == run
        {
            let wanted = now.remove().wanted;
            self.task_ended(itt, wanted, outcome);
        } else {
            self.memory.share.aborted_has_ended(run);
            self.begin_waiting();
        }
    }

    /// One that ends without an answer was aborted by another host, or by a PREEMPT AND ABORT of
    /// its own: its host may not know that, and ask for it.
    fn task_ended(&mut self, itt: Itt, wanted: u64, outcome: Outcome) {
        if matches!(outcome, Outcome::Silent) {
            self.remember_taken_away(itt);
        }
        self.outcome(itt, wanted, outcome);
    }

    /// Everything that a task management function of this session has aborted is forgotten before
    /// the function is answered: the initiator may use the ITTs again from then on. What others
    /// have aborted is theirs to report.
    pub(super) fn forget_aborted(&mut self) {
        let running = self
            .commands
            .watched
            .iter()
            .filter(|(_, running)| running.watch.is_aborted_by_its_own())
            .map(|(itt, _)| *itt);
        let waiting = self
            .commands
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.task.watch().is_aborted_by_its_own())
            .map(|(itt, _)| *itt);
        let aborted: Vec<Itt> = running.chain(waiting).collect();
        for itt in aborted {
            self.end_early(itt, Outcome::Silent);
        }
    }

    /// Other hosts have aborted commands of this one, and the units have let go of them: what the
    /// backend still has of them takes no place in the window.
    pub(super) fn forget_released(&mut self) {
        let running = self
            .commands
            .watched
            .iter()
            .map(|(itt, running)| (*itt, running.watch.take_released()));
        let waiting = self
            .commands
            .waiting
            .iter()
            .map(|(itt, waiting)| (*itt, waiting.task.watch().take_released()));
        let released: Vec<(Itt, Outcome)> = running
            .chain(waiting)
            .filter_map(|(itt, outcome)| Some((itt, outcome?)))
            .collect();
        for (itt, outcome) in released {
            if matches!(outcome, Outcome::Silent) {
                self.remember_taken_away(itt);
            }
            self.end_early(itt, outcome);
        }
    }

    fn remember_taken_away(&mut self, itt: Itt) {
        if self.commands.taken_away.len() >= TAKEN_AWAY_MAX {
            self.commands.taken_away.pop_first();
        }
        self.commands.taken_away.insert(itt);
    }

    /// Ends a command whose task is left to itself.
    fn end_early(&mut self, itt: Itt, outcome: Outcome) {
        let running = self.commands.watched.remove(&itt).map(|running| {
            self.memory.share.abort(itt, running.run);
            running.wanted
        });
        let waiting = self.commands.waiting.remove(&itt);
        let waiting = waiting.map(|waiting| waiting.wanted);
        let wanted = running.or(waiting).unwrap_or_default();
        self.memory.share.forget(itt);
        self.outcome(itt, wanted, outcome);
    }

    pub(super) fn outcome(&mut self, itt: Itt, wanted: u64, outcome: Outcome) {
        match outcome {
            Outcome::Respond(response) => self.respond(itt, wanted, response),
            Outcome::Silent => {
                self.memory.share.give_back(itt);
                self.machine.forget(itt);
                self.ended();
            }
            Outcome::Disconnect => self.end_with(End::RightLost),
        }
    }

    fn respond(&mut self, itt: Itt, data_out_wanted: u64, response: Response) {
        let bytes = response.data_in.len() as u64;
        self.count(|counters| counters.bytes_read.set(counters.bytes_read.get() + bytes));
        self.ended();
        self.memory.share.give_back(itt);
        self.machine.respond(
            itt,
            WireResponse {
                status: response.status.code(),
                sense: response.sense,
                data_in: response.data_in,
                data_out_wanted,
                target_failure: false,
            },
        );
        if let Some(latency_trace) = response.latency_trace {
            self.outgoing
                .answered
                .push(latency_trace, self.machine.transmit().bytes());
        }
    }

    fn ended(&self) {
        self.count(|counters| {
            counters
                .in_progress
                .set(counters.in_progress.get().saturating_sub(1));
        });
    }

    fn count(&self, count: impl FnOnce(&crate::session::Counters)) {
        if let Some(session) = self.phase.session() {
            count(&session.counters);
        }
    }
}

fn attribute(wire: WireAttribute) -> Attribute {
    match wire {
        WireAttribute::Untagged | WireAttribute::Simple | WireAttribute::Aca => Attribute::Simple,
        WireAttribute::Ordered => Attribute::Ordered,
        WireAttribute::HeadOfQueue => Attribute::HeadOfQueue,
    }
}
