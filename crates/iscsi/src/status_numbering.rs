//! StatSN of one connection.
//!
//! What the initiator acknowledges is kept for show only: a peer that never advances ExpStatSN
//! keeps working (field lesson 44). What is not acknowledged is not kept, as ErrorRecoveryLevel 0
//! never resends status.
//!
//! Spec: RFC 7143 4.2.2.2 "Response/Status Numbering and Acknowledging".

use crate::serial::StatSn;

/// The numbers of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StatusNumbering {
    next: StatSn,
}

impl StatusNumbering {
    pub(crate) fn starting_at(next: StatSn) -> Self {
        Self { next }
    }

    /// The number of the next status, which is not used up.
    pub(crate) fn peek(self) -> StatSn {
        self.next
    }

    /// Uses up the next number.
    pub(crate) fn take(&mut self) -> StatSn {
        let taken = self.next;
        self.next = taken.next();
        taken
    }
}
