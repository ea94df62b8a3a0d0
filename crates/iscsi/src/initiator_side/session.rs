//! The initiator's side of a session: its command numbers, its tasks, and the PDUs that follow from
//! both.
//!
//! Spec: RFC 7143 4.2 "Operation Overview", 11.7 "SCSI Data-Out and SCSI Data-In", 11.8 "Ready To
//! Transfer".

use super::event::{Completion, InitiatorCommand, InitiatorEvent};
use crate::bhs::{
    Bhs, DataIn, DataOut, LogoutRequest, NopOut, Numbers, ReadyToTransfer, ScsiCommand,
    ScsiResponse, TaskManagementRequest, TextRequest,
};
use crate::data_sequence::{Residual, cut};
use crate::ids::{Cid, Itt, Lun, Ttt};
use crate::parameters::Parameters;
use crate::r2t::Coverage;
use crate::serial::{CmdSn, DataSn, StatSn};
use crate::task_table::TaskTable;
use crate::transmit::Transmit;
use crate::violation::{Violation, ViolationKind};
use std::collections::VecDeque;
use units::{Buf, BufMut};

/// One command between `submit` and its response.
pub(super) struct Task {
    pub(super) command: InitiatorCommand,
    pub(super) data_out: Buf,
    pub(super) data_in: Option<BufMut>,
    pub(super) coverage: Coverage,
    next_data_sn: DataSn,
    /// Where the command's PDU stands in the stream of what is sent; `None`: it waits for the
    /// window.
    position: Option<u64>,
}

/// The numbers of a session, and its tasks.
pub(super) struct Session {
    pub(super) parameters: Parameters,
    pub(super) cmd_sn: CmdSn,
    pub(super) max_cmd_sn: CmdSn,
    pub(super) exp_stat_sn: StatSn,
    next_itt: u32,
    pub(super) tasks: TaskTable<Task>,
    /// Commands that wait for the window to open.
    waiting: VecDeque<Itt>,
}

fn wrong(clause: &'static str, what: &'static str) -> Violation {
    Violation::new(ViolationKind::IncorrectAmountOfData, clause, what)
}

impl Session {
    pub(super) fn new(parameters: Parameters, cmd_sn: CmdSn, exp_stat_sn: StatSn) -> Self {
        Self {
            parameters,
            cmd_sn,
            max_cmd_sn: cmd_sn,
            exp_stat_sn,
            next_itt: 0,
            tasks: TaskTable::new(),
            waiting: VecDeque::new(),
        }
    }

    pub(super) fn new_itt(&mut self) -> Itt {
        loop {
            self.next_itt = self.next_itt.wrapping_add(1);
            if let Some(itt) = Itt::from_wire(self.next_itt)
                && !self.tasks.contains(itt)
            {
                return itt;
            }
        }
    }

    /// The numbers of a PDU of the target; `status`: it uses up a StatSN.
    pub(super) fn on_numbers(&mut self, numbers: Numbers, status: bool, transmit: &mut Transmit) {
        if self.max_cmd_sn.precedes(numbers.max_cmd_sn) {
            self.max_cmd_sn = numbers.max_cmd_sn;
        }
        if status {
            self.exp_stat_sn = numbers.stat_sn.next();
        }
        self.send_waiting(transmit);
    }

    pub(super) fn submit(
        &mut self,
        command: InitiatorCommand,
        data_out: Buf,
        data_in: Option<BufMut>,
        transmit: &mut Transmit,
    ) -> Itt {
        let itt = self.new_itt();
        let immediate = command.immediate;
        let coverage = Coverage::default();
        let task = Task {
            command,
            data_out,
            data_in,
            coverage,
            next_data_sn: DataSn(0),
            position: None,
        };
        self.tasks.insert(itt, task);
        if immediate {
            self.send_command(itt, transmit);
        } else {
            self.waiting.push_back(itt);
            self.send_waiting(transmit);
        }
        itt
    }

    fn send_waiting(&mut self, transmit: &mut Transmit) {
        while !self.max_cmd_sn.precedes(self.cmd_sn) {
            let Some(itt) = self.waiting.pop_front() else {
                return;
            };
            // A task that was given up while it waited has no number yet.
            if self.tasks.contains(itt) {
                self.send_command(itt, transmit);
            }
        }
    }

    fn send_command(&mut self, itt: Itt, transmit: &mut Transmit) {
        let Some(task) = self.tasks.get_mut(itt) else {
            return;
        };
        task.position = Some(transmit.end());
        let parameters = &self.parameters;
        let total = u32::try_from(task.data_out.len()).unwrap_or(u32::MAX);
        let expected_in = task.data_in.as_ref().map_or(0, BufMut::len);
        let segment_max = parameters.peer_max_recv_data_segment_length;
        let burst = total.min(parameters.first_burst_length);
        let immediate = if parameters.immediate_data {
            burst.min(segment_max)
        } else {
            0
        };
        let unsolicited = if parameters.initial_r2t {
            immediate
        } else {
            burst
        };
        let pdu = ScsiCommand {
            immediate: task.command.immediate,
            last: unsolicited == immediate,
            reads: expected_in > 0,
            writes: total > 0,
            attribute: task.command.attribute,
            total_ahs_length: 0,
            data_segment_length: 0,
            lun: task.command.lun,
            itt,
            expected_data_transfer_length: match total {
                0 => u32::try_from(expected_in).unwrap_or(u32::MAX),
                total => total,
            },
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            cdb: task.command.cdb,
        };
        transmit.push(pdu.write(), task.data_out.slice(0..immediate as usize));
        self.send_data(
            itt,
            None,
            immediate,
            unsolicited.saturating_sub(immediate),
            transmit,
        );
        if !pdu.immediate {
            self.cmd_sn = self.cmd_sn.next();
        }
    }

    /// One sequence of Data-Out PDUs.
    fn send_data(
        &self,
        itt: Itt,
        ttt: Option<Ttt>,
        from: u32,
        length: u32,
        transmit: &mut Transmit,
    ) {
        let Some(task) = self.tasks.get(itt) else {
            return;
        };
        let segment_max = self.parameters.peer_max_recv_data_segment_length;
        let mut data_sn = DataSn(0);
        for segment in cut(length, segment_max, u32::MAX) {
            let offset = from.saturating_add(segment.offset);
            let pdu = DataOut {
                last: segment.last,
                data_segment_length: 0,
                lun: task.command.lun,
                itt,
                ttt,
                exp_stat_sn: self.exp_stat_sn,
                data_sn,
                buffer_offset: offset,
            };
            let end = offset.saturating_add(segment.length);
            transmit.push(
                pdu.write(),
                task.data_out.slice(offset as usize..end as usize),
            );
            data_sn = data_sn.next();
        }
    }

    pub(super) fn ready_to_transfer(
        &mut self,
        r2t: &ReadyToTransfer,
        transmit: &mut Transmit,
    ) -> Result<(), Violation> {
        self.on_numbers(r2t.numbers, false, transmit);
        // A task that was given up: nothing is owed to it.
        let Some(task) = self.tasks.get(r2t.itt) else {
            return Ok(());
        };
        let end = r2t
            .buffer_offset
            .checked_add(r2t.desired_data_transfer_length);
        let inside = end.is_some_and(|end| end as usize <= task.data_out.len());
        if !inside || r2t.desired_data_transfer_length == 0 || r2t.ttt.is_none() {
            return Err(wrong(
                "11.8 \"Ready To Transfer (R2T)\"",
                "an R2T for data that is not there",
            ));
        }
        let (offset, length) = (r2t.buffer_offset, r2t.desired_data_transfer_length);
        self.send_data(r2t.itt, r2t.ttt, offset, length, transmit);
        Ok(())
    }

    /// A Data-In header: its payload fits into its task's buffer. False: there is no such task.
    pub(super) fn check_data_in(&mut self, pdu: &DataIn) -> Result<bool, Violation> {
        let Some(task) = self.tasks.get_mut(pdu.itt) else {
            return Ok(false);
        };
        let end = pdu.buffer_offset.checked_add(pdu.data_segment_length);
        let room = task.data_in.as_ref().map_or(0, BufMut::len);
        if end.is_none_or(|end| end as usize > room) {
            return Err(wrong(
                "11.7.6 \"Buffer Offset\"",
                "data-in outside the command's buffer",
            ));
        }
        if pdu.data_sn != task.next_data_sn {
            return Err(wrong("11.7.5 \"DataSN\"", "a Data-In out of its number"));
        }
        task.next_data_sn = pdu.data_sn.next();
        Ok(true)
    }

    /// A Data-In is whole.
    pub(super) fn data_in(
        &mut self,
        pdu: &DataIn,
        transmit: &mut Transmit,
    ) -> Result<Option<InitiatorEvent>, Violation> {
        self.on_numbers(pdu.numbers, pdu.has_status, transmit);
        let Some(task) = self.tasks.get_mut(pdu.itt) else {
            return Ok(None);
        };
        let end = pdu.buffer_offset.saturating_add(pdu.data_segment_length);
        task.coverage.add(&(pdu.buffer_offset..end))?;
        if !pdu.has_status {
            return Ok(None);
        }
        let residual = Residual::from_fields(pdu.overflow, pdu.underflow, pdu.residual_count);
        Ok(self.complete(pdu.itt, pdu.status, false, Buf::empty(), residual))
    }

    pub(super) fn response(
        &mut self,
        pdu: &ScsiResponse,
        segment: &[u8],
        transmit: &mut Transmit,
    ) -> Option<InitiatorEvent> {
        self.on_numbers(pdu.numbers, true, transmit);
        let sense = segment.split_first_chunk::<2>().and_then(|(length, rest)| {
            let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
            rest.get(..length)
        });
        let sense = Buf::copy_of(sense.unwrap_or_default());
        let residual = Residual::from_fields(pdu.overflow, pdu.underflow, pdu.residual_count);
        self.complete(pdu.itt, pdu.status, pdu.response != 0, sense, residual)
    }

    fn complete(
        &mut self,
        itt: Itt,
        status: u8,
        target_failure: bool,
        sense: Buf,
        residual: Residual,
    ) -> Option<InitiatorEvent> {
        let task = self.tasks.remove(itt)?;
        let come = task.coverage.contiguous() as usize;
        let data_in = task
            .data_in
            .map_or(Buf::empty(), |buffer| buffer.freeze().slice(0..come));
        let completion = Completion {
            status,
            target_failure,
            sense,
            data_in,
            residual,
        };
        Some(InitiatorEvent::Response { itt, completion })
    }

    pub(super) fn task_management(
        &mut self,
        function: u8,
        lun: Lun,
        referenced: Option<Itt>,
    ) -> (Itt, Bhs) {
        let itt = self.new_itt();
        let pdu = TaskManagementRequest {
            immediate: true,
            function,
            lun,
            itt,
            referenced_itt: referenced,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
            // Commands go out in order on one connection, so the task has arrived if it exists at
            // all.
            ref_cmd_sn: self.cmd_sn,
            exp_data_sn: 0,
        };
        (itt, pdu.write())
    }

    /// See [`crate::initiator_side::InitiatorConnection::is_unsent`].
    pub(super) fn is_unsent(&self, itt: Itt, transmit: &Transmit) -> bool {
        let task = self.tasks.get(itt);
        task.is_some_and(|task| task.position.is_none_or(|at| transmit.position() <= at))
    }

    /// See [`crate::initiator_side::InitiatorConnection::withdraw`].
    pub(super) fn withdraw(&mut self, itt: Itt) -> bool {
        let waits = self
            .tasks
            .get(itt)
            .is_some_and(|task| task.position.is_none());
        waits && self.tasks.remove(itt).is_some()
    }

    pub(super) fn text(&mut self, itt: Itt, ttt: Option<Ttt>) -> Bhs {
        TextRequest {
            immediate: true,
            last: true,
            continues: false,
            data_segment_length: 0,
            lun: Lun::default(),
            itt,
            ttt,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
        }
        .write()
    }

    pub(super) fn logout(&mut self, cid: Cid) -> Bhs {
        LogoutRequest {
            immediate: true,
            reason: 0,
            itt: self.new_itt(),
            cid,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
        }
        .write()
    }

    /// A ping of ours (`ttt` is `None`), or the answer to the target's.
    pub(super) fn nop_out(&mut self, lun: Lun, ttt: Option<Ttt>) -> Bhs {
        let itt = ttt.is_none().then(|| self.new_itt());
        self.nop_out_with(lun, itt, ttt)
    }

    /// A ping of the owner's, and its tag.
    pub(super) fn ping(&mut self) -> (Itt, Bhs) {
        let itt = self.new_itt();
        (itt, self.nop_out_with(Lun::default(), Some(itt), None))
    }

    fn nop_out_with(&self, lun: Lun, itt: Option<Itt>, ttt: Option<Ttt>) -> Bhs {
        NopOut {
            immediate: true,
            data_segment_length: 0,
            lun,
            itt,
            ttt,
            cmd_sn: self.cmd_sn,
            exp_stat_sn: self.exp_stat_sn,
        }
        .write()
    }
}
