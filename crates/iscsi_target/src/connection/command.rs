//! SCSI commands between the machine and the logical units.

use super::commands::Waiting;
use super::driver::Driver;
use super::ending::End;
use super::memory::{Begun, Need};
use super::unmapped;
use crate::session::Counters;
use env::Answer;
use iscsi::DataFault;
use iscsi::bhs::Attribute as WireAttribute;
use iscsi::target_side::{Response as WireResponse, TargetCommand};
use iscsi::{Itt, Lun};
use logical_unit::{Arrival, Attribute, NexusError, Outcome, Request, Response, Room, Task};
use scsi::lun::LunAddress;
use scsi::{AdditionalSense, Sense, SenseKey};
use std::task::Context;
use units::{Buf, Now, Pool};

/// Operation code of REPORT LUNS.
const REPORT_LUNS: u8 = 0xa0;

impl Driver {
    pub(super) fn command(&mut self, command: &TargetCommand) {
        // There are none in other phases.
        let Some(full) = self.phase.full_feature_mut() else {
            return;
        };
        full.count(|counters| {
            counters.commands.set(counters.commands.get() + 1);
            counters.in_progress.set(counters.in_progress.get() + 1);
        });
        let stands_for = full.session.sample.next();
        full.commands.taken_away.remove(&command.itt);
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
            stands_for,
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
        if self.begins_at_once(lun, held, &task) {
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
        if let Some(full) = self.phase.full_feature_mut()
            && full.waits(lun, itt, need, waiting)
        {
            self.begin_those_of(lun);
        }
    }

    /// Nothing of its LUN waits, and there is room for it.
    fn begins_at_once(&self, lun: Lun, bytes: usize, task: &Task) -> bool {
        let unsent = self.machine.transmit().bytes();
        self.phase.full_feature().is_some_and(|full| {
            full.memory.share.is_idle(lun)
                && full.has_room(lun, bytes, unsent, task, self.core.pool())
                && full.takes_room(lun, bytes, task) == Room::Taken
        })
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

    /// Begins a command if there is memory for it: asks the host for its data, or runs it.
    fn begin_with_memory(&mut self, lun: Lun, itt: Itt, need: Need) -> Begun {
        let Some(full) = self.phase.full_feature_mut() else {
            return Begun::Yes;
        };
        let Some(Waiting { task, .. }) = full.commands.waiting.get(&itt) else {
            return Begun::Yes;
        };
        let piece = task.payload_piece_bytes();
        let (unsent, pool) = (self.machine.transmit().bytes(), self.core.pool());
        if !full.has_room(lun, need.bytes(), unsent, task, pool) {
            task.waits_for_memory();
            return Begun::WaitsForMemory;
        }
        match need {
            Need::DataOut(bytes) => {
                let length = bytes as usize;
                let piece = if piece == 0 { usize::MAX } else { piece };
                let (memory, time) = (
                    Pool::taken_for(length, piece),
                    self.export.settings.data_timeout,
                );
                let Some(granted) = full.grant(&self.core, memory, time) else {
                    return Begun::WaitsForMemory;
                };
                match full.finds_room(lun, itt, length) {
                    Room::Taken => {}
                    Room::TooLittle => return Begun::WaitsForRoom,
                    Room::HasItsPart => return Begun::WaitsForItsOwn,
                }
                let Ok(buffer) = pool.alloc_pieces(length, piece) else {
                    return Begun::WaitsForMemory;
                };
                if let Some(waiting) = full.commands.waiting.get_mut(&itt) {
                    waiting.task.asks_for_data();
                    waiting.granted = Some(granted);
                }
                full.memory.share.take(lun, itt, length);
                self.machine.accept_data(itt, bytes, buffer);
            }
            Need::DataIn(bytes) => {
                match full.finds_room(lun, itt, bytes) {
                    Room::Taken => {}
                    Room::TooLittle => return Begun::WaitsForRoom,
                    Room::HasItsPart => return Begun::WaitsForItsOwn,
                }
                if let Some(Waiting { task, wanted, .. }) = full.commands.waiting.remove(&itt) {
                    let held = Some((lun, bytes));
                    self.run_task(itt, task, wanted, Buf::empty(), held);
                }
            }
        }
        Begun::Yes
    }

    /// Ends the writes whose data is not there in its time.
    pub(super) fn end_late_writes(&mut self, now: Now) {
        let Some(full) = self.phase.full_feature_mut() else {
            return;
        };
        let time = self.export.settings.data_timeout;
        let late = full.late_writes(now, time);
        if !late.is_empty() {
            let (writes, seconds) = (late.len(), time.as_secs());
            tracing::warn!(peer = %self.stream.peer(), writes, "the data of writes did not come within {seconds} s: they are ended");
        }
        for itt in late {
            self.data_fault(itt, DataFault::TimedOut);
        }
    }

    /// Tries again for memory, and for room under the limits of units, when there may be some.
    pub(super) fn poll_memory(&mut self, cx: &mut Context<'_>) -> bool {
        let full = self.phase.full_feature_mut();
        let retries = full.is_some_and(|full| full.poll_retry(cx));
        if retries {
            self.begin_waiting();
        }
        retries
    }

    pub(super) fn begin_waiting(&mut self) {
        let full = self.phase.full_feature();
        let luns = full.map(|full| full.memory.share.luns_that_wait());
        for lun in luns.into_iter().flatten() {
            self.begin_those_of(lun);
        }
    }

    /// Begins what waits of a LUN, the oldest first, as far as there is memory and room for it.
    fn begin_those_of(&mut self, lun: Lun) {
        let mut begun = false;
        while let Some((itt, need)) = self.first_that_waits(lun) {
            let now = self.begin_with_memory(lun, itt, need);
            let Some(full) = self.phase.full_feature_mut() else {
                return;
            };
            if now != Begun::Yes {
                full.memory.share.has_tried(lun, need.bytes(), begun, now);
                if now == Begun::WaitsForMemory {
                    full.retry_later(&self.core);
                }
                return;
            }
            begun = true;
            full.memory.share.first_has_begun(lun);
        }
    }

    fn first_that_waits(&self, lun: Lun) -> Option<(Itt, Need)> {
        self.phase.full_feature()?.memory.share.first(lun)
    }

    pub(super) fn data_out(&mut self, itt: Itt, data: Buf) {
        self.count_written(data.len());
        if let Some(Waiting {
            task,
            wanted,
            granted,
        }) = self.no_longer_waits(itt)
        {
            if let Some(granted) = granted {
                granted.delivered(self.core.recent());
            }
            self.run_task(itt, task, wanted, data, None);
        }
        // The next may send while this one is written.
        self.begin_waiting();
    }

    fn no_longer_waits(&mut self, itt: Itt) -> Option<Waiting> {
        self.phase.full_feature_mut()?.commands.waiting.remove(&itt)
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
        let Some(full) = self.phase.full_feature_mut() else {
            return;
        };
        let Some(Waiting { task, wanted, .. }) = full.commands.waiting.remove(&itt) else {
            return;
        };
        full.memory.share.forget(itt);
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
                let Some(full) = self.phase.full_feature_mut() else {
                    return;
                };
                if let Some((lun, bytes)) = held {
                    full.memory.share.take(lun, itt, bytes);
                }
                full.commands.run(itt, watch, wanted, rest);
            }
        }
    }

    /// A task that had to be waited for has ended. Its ITT may stand for another one by now.
    pub(super) fn run_ended(&mut self, itt: Itt, run: u64, outcome: Outcome) {
        let Some(full) = self.phase.full_feature_mut() else {
            return;
        };
        if let Some(running) = full.commands.ended(itt, run) {
            self.task_ended(itt, running.wanted, outcome);
        } else {
            full.memory.share.aborted_has_ended(run);
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
        let full = self.phase.full_feature();
        let aborted = full.map(|full| full.commands.aborted_by_its_own());
        for itt in aborted.into_iter().flatten() {
            self.end_early(itt, Outcome::Silent);
        }
    }

    /// Other hosts have aborted commands of this one, and the units have let go of them: what the
    /// backend still has of them takes no place in the window.
    pub(super) fn forget_released(&mut self) {
        let full = self.phase.full_feature();
        let released = full.map(|full| full.commands.take_released());
        for (itt, outcome) in released.into_iter().flatten() {
            if matches!(outcome, Outcome::Silent) {
                self.remember_taken_away(itt);
            }
            self.end_early(itt, outcome);
        }
    }

    fn remember_taken_away(&mut self, itt: Itt) {
        if let Some(full) = self.phase.full_feature_mut() {
            full.commands.remember_taken_away(itt);
        }
    }

    /// Ends a command whose task is left to itself.
    fn end_early(&mut self, itt: Itt, outcome: Outcome) {
        let Some(full) = self.phase.full_feature_mut() else {
            return;
        };
        let running = full.commands.watched.remove(&itt).map(|running| {
            full.memory.share.abort(itt, running.run);
            running.wanted
        });
        let waiting = full.commands.waiting.remove(&itt);
        let waiting = waiting.map(|waiting| waiting.wanted);
        let wanted = running.or(waiting).unwrap_or_default();
        full.memory.share.forget(itt);
        self.outcome(itt, wanted, outcome);
    }

    pub(super) fn outcome(&mut self, itt: Itt, wanted: u64, outcome: Outcome) {
        match outcome {
            Outcome::Respond(response) => self.respond(itt, wanted, response),
            Outcome::Silent => {
                self.ended(itt);
                self.machine.forget(itt);
            }
            Outcome::Disconnect => self.end_with(End::RightLost),
        }
    }

    fn respond(&mut self, itt: Itt, data_out_wanted: u64, response: Response) {
        let bytes = response.data_in.len() as u64;
        self.count(|counters| counters.bytes_read.set(counters.bytes_read.get() + bytes));
        self.ended(itt);
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

    fn ended(&mut self, itt: Itt) {
        if let Some(full) = self.phase.full_feature_mut() {
            let in_progress = &full.session.counters.in_progress;
            in_progress.set(in_progress.get().saturating_sub(1));
            full.memory.share.give_back(itt);
        }
    }

    fn count(&self, count: impl FnOnce(&Counters)) {
        if let Some(full) = self.phase.full_feature() {
            full.count(count);
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
