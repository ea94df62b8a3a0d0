//! The sending side of a target connection: events for the owner, PDUs for the initiator.

use super::event::TargetEvent;
use super::owed::Owed;
use crate::bhs::{Bhs, Numbers, Reject};
use crate::connection;
use crate::serial::CmdSn;
use crate::status_numbering::StatusNumbering;
use crate::violation::{RejectReason, Violation};
use units::Buf;

/// Where both outputs of the machine go.
pub(super) type Output = connection::Output<TargetEvent, Ledger>;

/// What a target remembers of what it has sent.
#[derive(Default)]
pub struct Ledger {
    pub(super) status: StatusNumbering,
    pub(super) owed: Owed,
}

/// ExpCmdSN and MaxCmdSN at the moment of sending.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub(super) exp: CmdSn,
    pub(super) max: CmdSn,
}

impl connection::Output<TargetEvent, Ledger> {
    /// Numbers of a PDU that carries status.
    #[inline]
    pub(super) fn numbers(&mut self, window: Window) -> Numbers {
        Numbers {
            stat_sn: self.ledger.status.take(),
            exp_cmd_sn: window.exp,
            max_cmd_sn: window.max,
        }
    }

    /// Numbers of a PDU that carries none.
    #[inline]
    pub(super) fn numbers_without_status(&self, window: Window) -> Numbers {
        Numbers {
            stat_sn: self.ledger.status.peek(),
            exp_cmd_sn: window.exp,
            max_cmd_sn: window.max,
        }
    }

    #[inline]
    pub(super) fn send(&mut self, bhs: Bhs, data: Buf) {
        self.transmit.push(bhs, data);
    }

    #[inline]
    pub(super) fn event(&mut self, event: TargetEvent) {
        self.events.push_back(event);
    }

    /// Answers a PDU with Reject, and notifies the owner.
    pub(super) fn reject(
        &mut self,
        reason: RejectReason,
        violation: Violation,
        bad: &Bhs,
        window: Window,
    ) {
        let numbers = self.numbers(window);
        let header = Reject {
            reason: reason as u8,
            data_segment_length: 0,
            numbers,
            data_sn: 0,
        };
        self.send(header.write(), Buf::copy_of(bad));
        self.event(TargetEvent::Rejected { reason, violation });
    }
}
