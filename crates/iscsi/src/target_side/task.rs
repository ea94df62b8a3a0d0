//! One task of the target: its command, and the data that comes for it.

use super::event::TargetCommand;
use super::parked::Parked;
use crate::r2t::{Sequence, Solicited};
use crate::violation::DataFault;
use units::BufMut;

/// A task between its command and its response.
pub(super) struct Task {
    pub(super) command: TaskFacts,
    /// `TargetEvent::Command` was raised: its turn in CmdSN order has come.
    pub(super) announced: bool,
    pub(super) fault: Option<DataFault>,
    pub(super) unsolicited: Unsolicited,
    pub(super) parked: Parked,
    pub(super) gathering: Gathering,
    pub(super) r2t_count: u32,
}

/// What a task keeps of its command.
pub(super) struct TaskFacts {
    pub(super) lun: crate::ids::Lun,
    pub(super) cmd_sn: crate::serial::CmdSn,
    pub(super) immediate: bool,
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) expected: u32,
    pub(super) bidirectional_read: Option<u32>,
}

impl TaskFacts {
    pub(super) fn of(command: &TargetCommand) -> Self {
        Self {
            lun: command.lun,
            cmd_sn: command.cmd_sn,
            immediate: command.immediate,
            reads: command.reads,
            writes: command.writes,
            expected: command.expected_data_transfer_length,
            bidirectional_read: command.bidirectional_read_length,
        }
    }

    /// Bytes that the task has of the window's allowance.
    pub(super) fn window_bytes(&self) -> u64 {
        if self.writes { self.expected.into() } else { 0 }
    }

    /// Bytes of data-in that the initiator expects.
    pub(super) fn expected_in(&self) -> u32 {
        match (self.reads, self.writes) {
            (false, _) => 0,
            (true, false) => self.expected,
            (true, true) => self.bidirectional_read.unwrap_or(0),
        }
    }

    /// Bytes of data-out that the initiator expects.
    pub(super) fn expected_out(&self) -> u32 {
        if self.writes { self.expected } else { 0 }
    }
}

/// What the owner said about the data.
pub(super) enum Gathering {
    /// Nothing yet.
    Undecided,
    /// It wants the first `bytes` bytes.
    Into {
        buffer: BufMut,
        bytes: u32,
        /// `None` while unsolicited data may still come.
        solicited: Option<Solicited>,
    },
    /// It has them, or nobody wants them.
    Over,
}

/// The unsolicited part: immediate data and the Data-Out PDUs that follow it unasked.
pub(super) struct Unsolicited {
    pub(super) sequence: Sequence,
    /// More may come: F was not seen.
    pub(super) open: bool,
}

impl Unsolicited {
    /// Bytes that it has at most.
    pub(super) fn most(&self) -> usize {
        self.sequence.end() as usize
    }
}
