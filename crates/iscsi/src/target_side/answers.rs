//! The owner's answers become PDUs: responses with data and residuals, functions, logout, messages.
//!
//! Spec: RFC 7143 11.4 "SCSI Response", 11.5 "Task Management Function Request", 11.7 "SCSI
//! Data-Out and SCSI Data-In", 11.9 "Asynchronous Message", 11.14 "Logout Request".

use super::event::{
    AsyncEvent, LogoutAnswer, LogoutReason, ReferencedTask, Response, TargetEvent, TaskFunction,
    TaskManagement, TaskManagementAnswer,
};
use super::output::Output;
use super::state::{Exchange, ExchangeKind, FullFeature};
use super::task::Task;
use crate::bhs::{
    AsyncMessage, DataIn, LogoutRequest, LogoutResponse, NopIn, ScsiResponse,
    TaskManagementRequest, TaskManagementResponse,
};
use crate::data_sequence::{Residual, cut};
use crate::ids::{Itt, Lun};
use crate::serial::{CmdSn, DataSn};
use units::Buf;

/// SCSI status GOOD.
const GOOD: u8 = 0;

/// Longest sense data that a response carries, in bytes: what every initiator can receive.
const SENSE_BYTES_MAX: usize = 252;

impl FullFeature {
    pub(super) fn respond(&mut self, itt: Itt, response: Response, output: &mut Output) {
        let Some(task) = self.tasks.remove_if(itt, |task| task.announced) else {
            return;
        };
        task.parked.leave(&mut self.parking.bytes);
        self.release(task.command.immediate, task.command.window_bytes());
        let residuals = Residuals::of(&task, &response);
        let collapsed = response.status == GOOD
            && !response.target_failure
            && response.sense.is_none()
            && residuals.read_half == Residual::None
            && !task.command.writes;
        let data_in = fit(response.data_in, task.command.expected_in());
        let with_status = collapsed.then_some(residuals.whole);
        let sent = match data_in.is_empty() {
            true => 0,
            false => self.send_data_in(itt, task.command.lun, data_in, with_status, output),
        };
        if collapsed && sent > 0 {
            return;
        }
        let (overflow, underflow, residual_count) = residuals.whole.fields();
        let (bidirectional_overflow, bidirectional_underflow, bidirectional_read_residual) =
            residuals.read_half.fields();
        let window = self.window();
        let pdu = ScsiResponse {
            bidirectional_overflow,
            bidirectional_underflow,
            overflow,
            underflow,
            response: u8::from(response.target_failure),
            status: response.status,
            data_segment_length: 0,
            itt,
            numbers: output.numbers(window),
            exp_data_sn: task.r2t_count.saturating_add(sent),
            bidirectional_read_residual,
            residual_count,
        };
        output.ledger.owed.answered();
        output.send(pdu.write(), sense_segment(response.sense));
    }

    /// Sends data-in; its last PDU carries GOOD status where `with_status` is there. Answers the
    /// number of PDUs.
    #[inline]
    fn send_data_in(
        &mut self,
        itt: Itt,
        lun: Lun,
        mut data: Buf,
        with_status: Option<Residual>,
        output: &mut Output,
    ) -> u32 {
        let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let segment_max = self.parameters.peer_max_recv_data_segment_length;
        let window = self.window();
        let mut data_sn = DataSn(0);
        for segment in cut(bytes, segment_max, self.parameters.max_burst_length) {
            let end = segment.offset.saturating_add(segment.length);
            let status = with_status.filter(|_| end == bytes);
            let (overflow, underflow, residual_count) = status.unwrap_or_default().fields();
            let numbers = match status {
                Some(_) => {
                    output.ledger.owed.answered();
                    output.numbers(window)
                }
                None => output.numbers_without_status(window),
            };
            let pdu = DataIn {
                last: segment.last,
                acknowledge: false,
                overflow,
                underflow,
                has_status: status.is_some(),
                status: GOOD,
                data_segment_length: segment.length,
                lun,
                itt,
                ttt: None,
                numbers,
                data_sn,
                buffer_offset: segment.offset,
                residual_count,
            };
            // The usual answer is one PDU: no clone of its segments then.
            let part = match (segment.offset, end == bytes) {
                (0, true) => core::mem::take(&mut data),
                _ => data.slice(segment.offset as usize..end as usize),
            };
            output.send(pdu.write(), part);
            data_sn = data_sn.next();
        }
        data_sn.0
    }

    fn remove(&mut self, itt: Itt) -> Option<Task> {
        let task = self.tasks.remove(itt);
        if let Some(task) = &task {
            task.parked.leave(&mut self.parking.bytes);
        }
        task
    }

    pub(super) fn forget(&mut self, itt: Itt) {
        let Some(task) = self.remove(itt) else {
            return;
        };
        if task.announced {
            self.release(task.command.immediate, task.command.window_bytes());
        } else {
            self.session.window.withdraw(task.command.cmd_sn);
        }
    }

    /// Says that the window is open again, where it was closed and no answer will say so: a command
    /// was ended without one (RFC 7143 11.19 "NOP-In").
    pub(super) fn report_window(&mut self, output: &mut Output) {
        if !self.session.window.is_closed() {
            return;
        }
        let window = self.window();
        if self.session.window.is_closed() {
            return;
        }
        let nop = NopIn {
            data_segment_length: 0,
            lun: Lun::default(),
            itt: None,
            ttt: None,
            numbers: output.numbers_without_status(window),
        };
        output.send(nop.write(), Buf::empty());
    }

    pub(super) fn open_exchange(&mut self, itt: Itt, kind: ExchangeKind, immediate: bool) {
        self.exchanges.push(Exchange {
            itt,
            kind,
            immediate,
        });
    }

    /// Ends an exchange; false if there is none of this kind.
    pub(super) fn close_exchange(&mut self, itt: Itt, kind: ExchangeKind) -> bool {
        let place = self
            .exchanges
            .iter()
            .position(|open| open.itt == itt && open.kind == kind);
        let Some(place) = place else { return false };
        let exchange = self.exchanges.swap_remove(place);
        self.release(exchange.immediate, 0);
        true
    }

    pub(super) fn task_management(&mut self, request: &TaskManagementRequest, output: &mut Output) {
        let function = TaskFunction::from_code(request.function);
        let here = request
            .referenced_itt
            .filter(|itt| self.tasks.contains(*itt));
        let referenced = match here {
            _ if function != TaskFunction::AbortTask => ReferencedTask::None,
            Some(itt) => ReferencedTask::Here(itt),
            None => self.never_arrived(request, output),
        };
        self.open_exchange(request.itt, ExchangeKind::TaskManagement, request.immediate);
        output.event(TargetEvent::TaskManagement(TaskManagement {
            itt: request.itt,
            function,
            lun: request.lun,
            cmd_sn: request.cmd_sn,
            immediate: request.immediate,
            referenced,
        }));
    }

    /// 11.6.1, case b: a task that is still to come counts as received and never runs.
    fn never_arrived(
        &mut self,
        request: &TaskManagementRequest,
        output: &mut Output,
    ) -> ReferencedTask {
        let before: CmdSn = request.cmd_sn;
        if request.ref_cmd_sn.precedes(before) && self.session.window.plug(request.ref_cmd_sn) {
            self.deliver_ready(output);
            return ReferencedTask::NeverArrived;
        }
        ReferencedTask::Unknown(request.referenced_itt)
    }

    pub(super) fn task_management_response(
        &mut self,
        itt: Itt,
        answer: TaskManagementAnswer,
        output: &mut Output,
    ) {
        if !self.close_exchange(itt, ExchangeKind::TaskManagement) {
            return;
        }
        let window = self.window();
        let numbers = output.numbers(window);
        let pdu = TaskManagementResponse {
            response: answer as u8,
            itt,
            numbers,
        };
        output.send(pdu.write(), Buf::empty());
    }

    pub(super) fn logout_request(&mut self, request: &LogoutRequest, output: &mut Output) {
        self.open_exchange(request.itt, ExchangeKind::Logout, request.immediate);
        let reason = match request.reason {
            0 => LogoutReason::Session,
            1 if request.cid == self.cid => LogoutReason::Connection,
            1 => {
                self.logout_response(request.itt, LogoutAnswer::CidNotFound, output);
                return;
            }
            _ => {
                self.logout_response(request.itt, LogoutAnswer::RecoveryNotSupported, output);
                return;
            }
        };
        self.logging_out = true;
        output.event(TargetEvent::Logout {
            itt: request.itt,
            reason,
        });
    }

    /// False: there is no such exchange.
    pub(super) fn logout_response(
        &mut self,
        itt: Itt,
        answer: LogoutAnswer,
        output: &mut Output,
    ) -> bool {
        if !self.close_exchange(itt, ExchangeKind::Logout) {
            return false;
        }
        self.logging_out = false;
        let window = self.window();
        let pdu = LogoutResponse {
            response: answer as u8,
            itt,
            numbers: output.numbers(window),
            time2wait: self.parameters.default_time2wait,
            time2retain: self.parameters.default_time2retain,
        };
        output.send(pdu.write(), Buf::empty());
        true
    }

    pub(super) fn async_message(&mut self, event: AsyncEvent, output: &mut Output) {
        let (code, parameters) = match event {
            AsyncEvent::LogoutRequested { seconds } => (1, [0, 0, seconds]),
            AsyncEvent::ConnectionDropped {
                cid,
                time2wait,
                time2retain,
            } => (2, [cid.0, time2wait, time2retain]),
            AsyncEvent::SessionDropped {
                time2wait,
                time2retain,
            } => (3, [0, time2wait, time2retain]),
            AsyncEvent::NegotiationRequested { seconds } => (4, [0, 0, seconds]),
        };
        let [parameter_1, parameter_2, parameter_3] = parameters;
        let window = self.window();
        let pdu = AsyncMessage {
            data_segment_length: 0,
            lun: Lun::default(),
            numbers: output.numbers(window),
            event: code,
            vendor_code: 0,
            parameter_1,
            parameter_2,
            parameter_3,
        };
        output.send(pdu.write(), Buf::empty());
    }
}

/// The residuals of a response.
struct Residuals {
    /// Of a read or a write; of the write half of a bidirectional command.
    whole: Residual,
    /// Of the read half of a bidirectional command.
    read_half: Residual,
}

impl Residuals {
    /// A command without R and W bits expects nothing, so that whatever it moves is overflow.
    fn of(task: &Task, response: &Response) -> Self {
        if response.target_failure {
            return Self {
                whole: Residual::None,
                read_half: Residual::None,
            };
        }
        let facts = &task.command;
        let bytes_in = response.data_in.len() as u64;
        let read = Residual::of(bytes_in, facts.expected_in());
        let write = Residual::of(response.data_out_wanted, facts.expected_out());
        match (facts.reads, facts.writes) {
            (true, true) => Self {
                whole: write,
                read_half: read,
            },
            (true, false) => Self {
                whole: read,
                read_half: Residual::None,
            },
            (false, true) => Self {
                whole: write,
                read_half: Residual::None,
            },
            (false, false) => {
                let moved = bytes_in.max(response.data_out_wanted);
                Self {
                    whole: Residual::of(moved, 0),
                    read_half: Residual::None,
                }
            }
        }
    }
}

/// The data that the initiator has room for.
fn fit(data: Buf, expected: u32) -> Buf {
    let expected = expected as usize;
    if data.len() > expected {
        data.slice(0..expected)
    } else {
        data
    }
}

/// Sense data with its length in front.
fn sense_segment(sense: Option<Buf>) -> Buf {
    let Some(sense) = sense.filter(|sense| !sense.is_empty()) else {
        return Buf::empty();
    };
    let bytes = sense.len().min(SENSE_BYTES_MAX);
    let mut segment = vec![0; bytes.saturating_add(2)];
    let length = u16::try_from(bytes).unwrap_or_default();
    if let Some((head, body)) = segment.split_first_chunk_mut::<2>() {
        *head = length.to_be_bytes();
        sense.copy_to(0, body);
    }
    Buf::copy_of(&segment)
}
