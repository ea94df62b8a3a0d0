//! The sending side of a target connection: events for the owner, PDUs for the initiator.

use super::event::{CloseReason, Event};
use super::owed::Owed;
use crate::bhs::{Bhs, Numbers, Reject};
use crate::serial::CmdSn;
use crate::status_numbering::StatusNumbering;
use crate::transmit::Transmit;
use crate::violation::{RejectReason, Violation};
use std::collections::VecDeque;
use units::Buf;

/// Where both outputs of the machine go.
#[derive(Default)]
pub(super) struct Link {
    pub(super) transmit: Transmit,
    pub(super) events: VecDeque<Event>,
    pub(super) status: StatusNumbering,
    pub(super) owed: Owed,
}

/// ExpCmdSN and MaxCmdSN at the moment of sending.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub(super) exp: CmdSn,
    pub(super) max: CmdSn,
}

impl Link {
    /// Numbers of a PDU that carries status.
    pub(super) fn numbers(&mut self, window: Window) -> Numbers {
        Numbers {
            stat_sn: self.status.take(),
            exp_cmd_sn: window.exp,
            max_cmd_sn: window.max,
        }
    }

    /// Numbers of a PDU that carries none.
    pub(super) fn numbers_without_status(&self, window: Window) -> Numbers {
        Numbers {
            stat_sn: self.status.peek(),
            exp_cmd_sn: window.exp,
            max_cmd_sn: window.max,
        }
    }

    pub(super) fn send(&mut self, bhs: Bhs, data: Buf) {
        self.transmit.push(bhs, data);
    }

    pub(super) fn event(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Answers a PDU with Reject, and tells the owner.
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
        self.event(Event::Rejected { reason, violation });
    }

    pub(super) fn closed(&mut self, reason: CloseReason) {
        self.event(Event::Closed(reason));
    }
}
