//! The full feature phase of a target: PDUs in, events out, in CmdSN order.
//!
//! **Contract.** A command is announced when its header has come and its turn is there; its data
//! follows. Data goes straight into the owner's buffer once there is one, and is parked before.
//!
//! **Invariants.** I1: no byte reaches a buffer that its task's sequences did not allow. I2: a
//! task's data is delivered only when every byte has come in PDUs whose digest was right. I3:
//! parked data of a task is at most FirstBurstLength, and of all tasks together what the
//! configuration and the owner say.
//!
//! **Failure model.** Data of unknown tasks (answered early, aborted) is swallowed without a word.
//! Every other breach goes through [`crate::ViolationKind::reaction`].
//!
//! Spec: RFC 7143 4.2 "Operation Overview", 11.3 to 11.19.

use super::event::{SessionType, TargetCommand, TargetEvent};
use super::output::Output;
use super::parked::Parked;
use super::state::{Current, FullFeature, Queued, SINK_BYTES};
use super::task::{Gathering, Task, TaskFacts, Unsolicited};
use crate::bhs::{
    self, Bhs, DataOut, LogoutRequest, NopIn, NopOut, Opcode, ReadyToTransfer, ScsiCommand,
    TaskManagementRequest, TextRequest,
};
use crate::command_window::Offered;
use crate::connection::{check_length, damaged_data, wrong_phase};
use crate::ids::{Itt, Lun, Ttt};
use crate::r2t::{Sequence, Solicited};
use crate::receive::Receiver;
use crate::serial::CmdSn;
use crate::violation::{DataFault, Reaction, Violation, ViolationKind};
use core::ops::Range;
use units::Buf;

impl FullFeature {
    /// A header is whole; its data segment follows.
    pub(super) fn begin(
        &mut self,
        receiver: &Receiver,
        output: &mut Output,
    ) -> Result<(), Violation> {
        let (header, additional) = (receiver.bhs(), receiver.additional());
        let length = receiver.data_length();
        self.current = Current::Discard;
        let limit = self.parameters.own_max_recv_data_segment_length as usize;
        check_length(length, limit)?;
        match self.classify(header, additional, length, output) {
            Ok(()) => {
                self.scratch.clear();
                let keeps = matches!(self.current, Current::Nop(_) | Current::Text(_));
                if keeps {
                    self.scratch.resize(length, 0);
                }
                Ok(())
            }
            Err(violation) => self.react(violation, header, output),
        }
    }

    fn classify(
        &mut self,
        header: &Bhs,
        additional: &[u8],
        length: usize,
        output: &mut Output,
    ) -> Result<(), Violation> {
        let unknown =
            |what| Violation::new(ViolationKind::UnknownOpcode, "11.2.1.2 \"Opcode\"", what);
        let opcode = Opcode::of(header[0]).ok_or(unknown("an opcode that does not exist"))?;
        if self.logging_out && opcode == Opcode::ScsiCommand {
            return Err(Violation::new(
                ViolationKind::WaitingForLogout,
                "11.14 \"Logout Request\"",
                "a command after Logout",
            ));
        }
        let discovery = self.session.session_type == SessionType::Discovery;
        if discovery
            && matches!(
                opcode,
                Opcode::ScsiCommand | Opcode::DataOut | Opcode::TaskManagementRequest
            )
        {
            return Err(Violation::new(
                ViolationKind::WrongPhase,
                "4.3 \"iSCSI Session Types\"",
                "a SCSI request in a discovery session",
            ));
        }
        match opcode {
            Opcode::ScsiCommand => {
                output.ledger.owed.command_came(length);
                self.begin_command(header, additional, length, output)?;
            }
            Opcode::DataOut => {
                output.ledger.owed.data_came(length);
                self.begin_data(header, output)?;
            }
            Opcode::NopOut => self.current = Current::Nop(NopOut::parse(header)),
            Opcode::TextRequest => self.current = Current::Text(TextRequest::parse(header)?),
            Opcode::TaskManagementRequest => {
                self.current = Current::TaskManagement(TaskManagementRequest::parse(header)?);
            }
            Opcode::LogoutRequest => self.current = Current::Logout(LogoutRequest::parse(header)?),
            Opcode::LoginRequest => {
                return Err(wrong_phase("a Login Request in full feature phase"));
            }
            Opcode::SnackRequest => {
                return Err(Violation::new(
                    ViolationKind::SnackNotSupported,
                    "11.16 \"SNACK Request\"",
                    "SNACK with ErrorRecoveryLevel 0",
                ));
            }
            Opcode::NopIn
            | Opcode::ScsiResponse
            | Opcode::TaskManagementResponse
            | Opcode::LoginResponse
            | Opcode::TextResponse
            | Opcode::DataIn
            | Opcode::LogoutResponse
            | Opcode::ReadyToTransfer
            | Opcode::AsyncMessage
            | Opcode::Reject => return Err(unknown("a PDU that only targets send")),
        }
        Ok(())
    }

    fn begin_command(
        &mut self,
        header: &Bhs,
        additional: &[u8],
        length: usize,
        output: &mut Output,
    ) -> Result<(), Violation> {
        let pdu = ScsiCommand::parse(header)?;
        let (cdb_extension, bidirectional_read_length) = if additional.is_empty() {
            (None, None)
        } else {
            additional_segments(additional)?
        };
        let immediate_length = u32::try_from(length).unwrap_or(u32::MAX);
        let command = TargetCommand {
            itt: pdu.itt,
            lun: pdu.lun,
            cdb: pdu.cdb,
            cdb_extension,
            attribute: pdu.attribute,
            reads: pdu.reads,
            writes: pdu.writes,
            expected_data_transfer_length: pdu.expected_data_transfer_length,
            bidirectional_read_length,
            immediate: pdu.immediate,
            cmd_sn: pdu.cmd_sn,
        };
        let in_use = self.tasks.contains(pdu.itt);
        let in_use_violation = Violation::new(
            ViolationKind::TaskTagInUse,
            "11.2.1.8 \"Initiator Task Tag\"",
            "a task tag that is in use",
        );
        if pdu.immediate {
            if in_use {
                return Err(in_use_violation);
            }
            self.admit_immediate()?;
            self.add_task(&command, &pdu, immediate_length);
            self.announce(command, output);
            return Ok(());
        }
        let task = TaskFacts::of(&command);
        match self
            .session
            .window
            .offer(pdu.cmd_sn, Queued::Command(command))
        {
            Offered::Ignored => {}
            Offered::Held if in_use => {
                self.session.window.withdraw(task.cmd_sn);
                return Err(in_use_violation);
            }
            Offered::Held => self.add_facts(task, &pdu, immediate_length),
            Offered::Deliver(_) if in_use => {
                self.deliver_ready(output);
                return Err(in_use_violation);
            }
            Offered::Deliver(queued) => {
                self.add_facts(task, &pdu, immediate_length);
                self.deliver(queued, output);
                self.deliver_ready(output);
            }
        }
        Ok(())
    }

    pub(super) fn admit_immediate(&mut self) -> Result<(), Violation> {
        if self.immediate >= self.immediate_max {
            return Err(Violation::new(
                ViolationKind::TooManyImmediate,
                "4.2.2.1 \"Command Numbering and Acknowledging\"",
                "too many immediate requests at once",
            ));
        }
        self.immediate = self.immediate.saturating_add(1);
        Ok(())
    }

    /// A request that was in progress is answered or dropped.
    pub(super) fn release(&mut self, immediate: bool, bytes: u64) {
        if immediate {
            self.immediate = self.immediate.saturating_sub(1);
        } else {
            self.session.window.end(bytes);
        }
    }

    fn add_task(&mut self, command: &TargetCommand, pdu: &ScsiCommand, immediate_length: u32) {
        self.add_facts(TaskFacts::of(command), pdu, immediate_length);
    }

    fn add_facts(&mut self, facts: TaskFacts, pdu: &ScsiCommand, immediate_length: u32) {
        let limit = facts.expected_out().min(self.parameters.first_burst_length);
        let unwanted = immediate_length > 0 && !self.parameters.immediate_data;
        let fault =
            (unwanted || immediate_length > limit).then_some(DataFault::UnexpectedUnsolicitedData);
        let follows = facts.writes && !pdu.last && !self.parameters.initial_r2t;
        let immediate = immediate_length > 0 && fault.is_none();
        // Immediate data that is still coming in is unsolicited data like any other: the owner may
        // accept the command before its payload is here, and must not ask for what is on its way.
        let open = follows || immediate;
        let task = Task {
            command: facts,
            announced: false,
            fault,
            unsolicited: Unsolicited {
                sequence: Sequence::new(0..limit),
                open,
            },
            parked: Parked::default(),
            gathering: if fault.is_some() {
                Gathering::Over
            } else {
                Gathering::Undecided
            },
            r2t_count: 0,
        };
        self.tasks.insert(pdu.itt, task);
        if immediate {
            self.current = Current::Immediate {
                itt: pdu.itt,
                length: immediate_length,
                follows,
            };
        }
    }

    /// The turn of a command has come.
    fn announce(&mut self, command: TargetCommand, output: &mut Output) {
        let itt = command.itt;
        let Some(task) = self.tasks.get_mut(itt) else {
            return;
        };
        task.announced = true;
        let (bytes, fault) = (task.command.window_bytes(), task.fault);
        if !command.immediate {
            self.session.window.begin(bytes);
        }
        output.event(TargetEvent::Command(command));
        if let Some(fault) = fault {
            output.event(TargetEvent::DataFault { itt, fault });
        }
    }

    fn deliver(&mut self, queued: Queued, output: &mut Output) {
        match queued {
            Queued::Command(command) => self.announce(command, output),
            Queued::Nop(nop, data) => self.echo(&nop, data, output),
            Queued::TaskManagement(request) => {
                self.session.window.begin(0);
                self.task_management(&request, output);
            }
            Queued::Text(request, text) => {
                self.session.window.begin(0);
                self.text_request(&request, &text, output);
            }
            Queued::Logout(request) => {
                self.session.window.begin(0);
                self.logout_request(&request, output);
            }
        }
    }

    pub(super) fn deliver_ready(&mut self, output: &mut Output) {
        while let Some(queued) = self.session.window.pop_ready() {
            self.deliver(queued, output);
        }
    }

    fn begin_data(&mut self, header: &Bhs, output: &mut Output) -> Result<(), Violation> {
        let pdu = DataOut::parse(header)?;
        let end = pdu.buffer_offset.saturating_add(pdu.data_segment_length);
        let range = pdu.buffer_offset..end;
        let Some(task) = self.tasks.get_mut(pdu.itt) else {
            return Ok(());
        };
        if matches!(task.gathering, Gathering::Over) {
            return Ok(());
        }
        let in_order = self.parameters.data_pdu_in_order;
        let checked = match pdu.ttt {
            None if !task.unsolicited.open => Err(Violation::new(
                ViolationKind::UnexpectedUnsolicitedData,
                "11.7.4 \"Target Transfer Tag and LUN\"",
                "unsolicited data where none may come",
            )),
            None if end > task.unsolicited.sequence.end() => Err(Violation::new(
                ViolationKind::UnexpectedUnsolicitedData,
                "13.14 \"FirstBurstLength\"",
                "more unsolicited data than FirstBurstLength or than the command has",
            )),
            None => task
                .unsolicited
                .sequence
                .check(pdu.data_sn, &range, in_order),
            Some(ttt) => match &mut task.gathering {
                Gathering::Into {
                    solicited: Some(solicited),
                    ..
                } => match solicited.burst(ttt) {
                    Some(burst) => burst.check(pdu.data_sn, &range, in_order),
                    None => Err(unknown_transfer_tag()),
                },
                Gathering::Into {
                    solicited: None, ..
                }
                | Gathering::Undecided => Err(unknown_transfer_tag()),
                Gathering::Over => Ok(()),
            },
        };
        match checked {
            Ok(()) => {
                self.current = Current::Data {
                    itt: pdu.itt,
                    header: pdu,
                    range,
                }
            }
            Err(violation) => match violation.kind.reaction() {
                Reaction::EndTask(fault) => self.fail(pdu.itt, fault, output),
                Reaction::Reject(_) | Reaction::Drop => return Err(violation),
            },
        }
        Ok(())
    }

    /// The data of a task cannot be had.
    pub(super) fn fail(&mut self, itt: Itt, fault: DataFault, output: &mut Output) {
        let Some(task) = self.tasks.get_mut(itt) else {
            return;
        };
        if task.fault.is_some() || matches!(task.gathering, Gathering::Over) {
            return;
        }
        task.fault = Some(fault);
        task.gathering = Gathering::Over;
        task.parked.take(&mut self.parking.bytes);
        if task.announced {
            output.event(TargetEvent::DataFault { itt, fault });
        }
    }

    /// The current PDU is whole; `intact`: its data segment matches its digest.
    pub(super) fn finish(
        &mut self,
        header: &Bhs,
        intact: bool,
        output: &mut Output,
    ) -> Result<(), Violation> {
        let current = core::mem::replace(&mut self.current, Current::Discard);
        self.report_crowded(output);
        if !intact {
            return self.damaged(&current, header, output);
        }
        let scratch = core::mem::take(&mut self.scratch);
        let finished = match current {
            Current::Discard => Ok(()),
            Current::Immediate {
                itt,
                length,
                follows,
            } => self.finish_immediate(itt, length, follows, output),
            Current::Data { itt, header, range } => self.finish_data(itt, &header, &range, output),
            Current::Nop(nop) => self.finish_nop(nop, &scratch, output),
            Current::TaskManagement(request) => {
                let queued = Queued::TaskManagement(request);
                self.finish_request(request.immediate, request.cmd_sn, queued, output)
            }
            Current::Text(request) => {
                let queued = Queued::Text(request, scratch.clone());
                self.finish_request(request.immediate, request.cmd_sn, queued, output)
            }
            Current::Logout(request) => {
                let queued = Queued::Logout(request);
                self.finish_request(request.immediate, request.cmd_sn, queued, output)
            }
        };
        // Keep the memory for the next PDU, unless it was an unusual one.
        if scratch.capacity() <= SINK_BYTES {
            self.scratch = scratch;
        }
        match finished {
            Ok(()) => Ok(()),
            Err(violation) => self.react(violation, header, output),
        }
    }

    /// A request that is acted upon when it is whole: in its turn, or at once.
    fn finish_request(
        &mut self,
        immediate: bool,
        cmd_sn: CmdSn,
        queued: Queued,
        output: &mut Output,
    ) -> Result<(), Violation> {
        if immediate {
            self.admit_immediate()?;
            match queued {
                Queued::TaskManagement(request) => self.task_management(&request, output),
                Queued::Text(request, text) => self.text_request(&request, &text, output),
                Queued::Logout(request) => self.logout_request(&request, output),
                Queued::Command(_) | Queued::Nop(..) => {}
            }
            return Ok(());
        }
        if let Offered::Deliver(queued) = self.session.window.offer(cmd_sn, queued) {
            self.deliver(queued, output);
            self.deliver_ready(output);
        }
        Ok(())
    }

    fn finish_nop(
        &mut self,
        nop: NopOut,
        data: &[u8],
        output: &mut Output,
    ) -> Result<(), Violation> {
        if nop.itt.is_none() {
            // The answer to a ping of ours, which the keepalive has counted already. It carries a
            // CmdSN that counts only if it is not immediate, which it should be.
            if !nop.immediate && self.session.window.plug(nop.cmd_sn) {
                self.deliver_ready(output);
            }
            return Ok(());
        }
        let limit = self.parameters.peer_max_recv_data_segment_length as usize;
        let data = Buf::copy_of(data.get(..data.len().min(limit)).unwrap_or_default());
        if nop.immediate {
            self.echo(&nop, data, output);
        } else if let Offered::Deliver(queued) = self
            .session
            .window
            .offer(nop.cmd_sn, Queued::Nop(nop, data))
        {
            self.deliver(queued, output);
            self.deliver_ready(output);
        }
        Ok(())
    }

    fn echo(&mut self, nop: &NopOut, data: Buf, output: &mut Output) {
        let window = self.window();
        let numbers = output.numbers(window);
        let pong = NopIn {
            data_segment_length: 0,
            lun: nop.lun,
            itt: nop.itt,
            ttt: None,
            numbers,
        };
        output.send(pong.write(), data);
    }

    /// Pings the initiator.
    pub(super) fn ping(&mut self, output: &mut Output) {
        let window = self.window();
        let numbers = output.numbers_without_status(window);
        let ttt = Some(self.new_ttt());
        let ping = NopIn {
            data_segment_length: 0,
            lun: Lun::default(),
            itt: None,
            ttt,
            numbers,
        };
        output.send(ping.write(), Buf::empty());
    }

    pub(super) fn new_ttt(&mut self) -> Ttt {
        loop {
            self.next_ttt = self.next_ttt.wrapping_add(1);
            if let Some(ttt) = Ttt::from_wire(self.next_ttt) {
                return ttt;
            }
        }
    }

    fn finish_immediate(
        &mut self,
        itt: Itt,
        length: u32,
        follows: bool,
        output: &mut Output,
    ) -> Result<(), Violation> {
        let Some(task) = self.tasks.get_mut(itt) else {
            return Ok(());
        };
        let whole = task.unsolicited.sequence.add_immediate(length);
        task.unsolicited.open = follows && !task.unsolicited.sequence.is_complete();
        self.after_data(itt, whole, output)
    }

    fn finish_data(
        &mut self,
        itt: Itt,
        header: &DataOut,
        range: &Range<u32>,
        output: &mut Output,
    ) -> Result<(), Violation> {
        let Some(task) = self.tasks.get_mut(itt) else {
            return Ok(());
        };
        let added = match header.ttt {
            None => {
                let added = task.unsolicited.sequence.add(range);
                if header.last || task.unsolicited.sequence.is_complete() {
                    task.unsolicited.open = false;
                }
                added
            }
            Some(ttt) => match &mut task.gathering {
                Gathering::Into {
                    solicited: Some(solicited),
                    ..
                } => solicited.take(ttt, range, header.last),
                Gathering::Into { .. } | Gathering::Undecided | Gathering::Over => Ok(()),
            },
        };
        self.after_data(itt, added, output)
    }

    fn after_data(
        &mut self,
        itt: Itt,
        added: Result<(), Violation>,
        output: &mut Output,
    ) -> Result<(), Violation> {
        match added {
            Ok(()) => self.progress(itt, output),
            Err(violation) => match violation.kind.reaction() {
                Reaction::EndTask(fault) => self.fail(itt, fault, output),
                Reaction::Reject(_) | Reaction::Drop => return Err(violation),
            },
        }
        Ok(())
    }

    /// Asks for what may be asked for, and delivers what is whole.
    pub(super) fn progress(&mut self, itt: Itt, output: &mut Output) {
        let window = self.window();
        // The command's own data segment is still coming in: whether more is needed is not known
        // yet.
        let arriving = matches!(&self.current, Current::Immediate { itt: of, .. } if *of == itt);
        let Some(task) = self.tasks.get_mut(itt) else {
            return;
        };
        let Gathering::Into {
            bytes, solicited, ..
        } = &mut task.gathering
        else {
            return;
        };
        let bytes = *bytes;
        let unsolicited = &task.unsolicited;
        let mut whole = unsolicited.sequence.covers(bytes);
        if !whole && !unsolicited.open && !arriving {
            if unsolicited.sequence.has_hole() {
                self.fail(itt, DataFault::IncorrectAmountOfData, output);
                return;
            }
            let from = unsolicited.sequence.contiguous().min(bytes);
            let solicited = solicited.get_or_insert_with(|| Solicited::new(from, bytes));
            let limits = (
                self.parameters.max_burst_length,
                self.parameters.max_outstanding_r2t,
            );
            loop {
                let candidate = Ttt::from_wire(self.next_ttt.wrapping_add(1));
                let Some(ttt) = candidate else {
                    self.next_ttt = self.next_ttt.wrapping_add(1);
                    continue;
                };
                let Some(ask) = solicited.ask(limits.0, limits.1, ttt) else {
                    break;
                };
                self.next_ttt = ttt.get();
                let r2t = ReadyToTransfer {
                    lun: task.command.lun,
                    itt,
                    ttt: Some(ask.ttt),
                    numbers: output.numbers_without_status(window),
                    r2t_sn: ask.r2t_sn,
                    buffer_offset: ask.offset,
                    desired_data_transfer_length: ask.length,
                };
                output.ledger.owed.asked(ask.length as usize);
                output.send(r2t.write(), Buf::empty());
            }
            task.r2t_count = solicited.r2t_count();
            whole = solicited.is_complete();
        }
        if !whole {
            return;
        }
        let gathering = core::mem::replace(&mut task.gathering, Gathering::Over);
        if let Gathering::Into { buffer, bytes, .. } = gathering {
            let data = buffer.freeze();
            let data = if data.len() > bytes as usize {
                data.slice(0..bytes as usize)
            } else {
                data
            };
            output.event(TargetEvent::DataOut { itt, data });
        }
    }

    /// A data segment does not match its digest.
    fn damaged(
        &mut self,
        current: &Current,
        header: &Bhs,
        output: &mut Output,
    ) -> Result<(), Violation> {
        if let Current::Immediate { itt, .. } | Current::Data { itt, .. } = current {
            self.fail(*itt, DataFault::ProtocolServiceCrcError, output);
        }
        self.react(damaged_data(), header, output)
    }

    /// The one place where breaches are answered.
    fn react(
        &mut self,
        violation: Violation,
        bad: &Bhs,
        output: &mut Output,
    ) -> Result<(), Violation> {
        match violation.kind.reaction() {
            Reaction::Drop | Reaction::EndTask(_) => Err(violation),
            Reaction::Reject(reason) => {
                self.count_rejected(bad, violation.kind, output);
                let window = self.window();
                output.reject(reason, violation, bad, window);
                Ok(())
            }
        }
    }

    /// A rejected request still uses up its CmdSN, or the window would wait for it for ever. One
    /// with a wrong digest does not: the initiator sends it again.
    fn count_rejected(&mut self, bad: &Bhs, kind: ViolationKind, output: &mut Output) {
        let numbered = matches!(
            Opcode::of(bad[0]),
            Some(
                Opcode::ScsiCommand
                    | Opcode::TaskManagementRequest
                    | Opcode::TextRequest
                    | Opcode::LogoutRequest
            )
        );
        if numbered && bad[0] & bhs::IMMEDIATE == 0 && kind != ViolationKind::DataDigest {
            let cmd_sn = CmdSn(u32::from_be_bytes([bad[24], bad[25], bad[26], bad[27]]));
            if self.session.window.plug(cmd_sn) {
                self.deliver_ready(output);
            }
        }
    }
}

fn unknown_transfer_tag() -> Violation {
    Violation::new(
        ViolationKind::InvalidField,
        "11.7.4 \"Target Transfer Tag and LUN\"",
        "data for a transfer tag that is not outstanding",
    )
}

/// What the additional header segments of a command say.
type Additional = (Option<Box<[u8]>>, Option<u32>);

/// Reads AHS type 1 "Extended CDB" and 2 "Bidirectional Read Expected Data Transfer Length".
fn additional_segments(mut rest: &[u8]) -> Result<Additional, Violation> {
    let broken = Violation::new(
        ViolationKind::InvalidField,
        "11.2.2 \"Additional Header Segment (AHS)\"",
        "an additional header segment of wrong length",
    );
    let (mut extension, mut read_length) = (None, None);
    while let [high, low, kind, after @ ..] = rest {
        // The length counts from the byte after the type, and each segment is padded to four bytes.
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let body = after.get(..length).ok_or(broken)?;
        match kind & 0x3F {
            1 => extension = Some(body.get(1..).ok_or(broken)?.into()),
            2 => {
                let bytes = body
                    .get(1..5)
                    .and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
                read_length = Some(u32::from_be_bytes(bytes.ok_or(broken)?));
            }
            _ => {}
        }
        let whole = length.saturating_add(3).next_multiple_of(4);
        rest = rest.get(whole..).unwrap_or_default();
    }
    Ok((extension, read_length))
}
