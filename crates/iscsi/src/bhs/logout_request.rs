//! Logout Request.
//!
//! Spec: RFC 7143 11.14 "Logout Request".

use crate::bhs::{Bhs, IMMEDIATE, Opcode, flag, required_itt};
use crate::ids::{Cid, Itt};
use crate::serial::{CmdSn, StatSn};
use crate::violation::Violation;
use zerocopy::big_endian::{U16, U32};

raw! {
    struct RawLogoutRequest {
        opcode: u8,
        flags: u8,
        reserved_2: [u8; 2],
        total_ahs_length: u8,
        data_segment_length: [u8; 3],
        reserved_8: [u8; 8],
        itt: U32,
        cid: U16,
        reserved_22: [u8; 2],
        cmd_sn: U32,
        exp_stat_sn: U32,
        reserved_32: [u8; 16],
    }
}

/// Ends a session or a connection (RFC 7143 11.14).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogoutRequest {
    /// Delivery bit I: act on it at once, outside CmdSN order.
    pub immediate: bool,
    /// 0 close the session, 1 close the connection, 2 remove it for recovery.
    pub reason: u8,
    /// Task that the PDU belongs to.
    pub itt: Itt,
    /// Connection.
    pub cid: Cid,
    /// Command sequence number.
    pub cmd_sn: CmdSn,
    /// Next status number that the initiator expects.
    pub exp_stat_sn: StatSn,
}

impl LogoutRequest {
    /// Reads the header.
    ///
    /// # Errors
    /// A field with a value that it may not have.
    pub fn parse(bhs: &Bhs) -> Result<Self, Violation> {
        let raw: &RawLogoutRequest = zerocopy::transmute_ref!(bhs);
        Ok(Self {
            immediate: raw.opcode & IMMEDIATE != 0,
            reason: raw.flags & 0x7F,
            itt: required_itt(raw.itt)?,
            cid: Cid(raw.cid.get()),
            cmd_sn: CmdSn(raw.cmd_sn.get()),
            exp_stat_sn: StatSn(raw.exp_stat_sn.get()),
        })
    }

    /// The header's bytes.
    #[must_use]
    pub fn write(&self) -> Bhs {
        let raw = RawLogoutRequest {
            opcode: Opcode::LogoutRequest as u8 | flag(self.immediate, IMMEDIATE),
            flags: 0x80 | (self.reason & 0x7F),
            reserved_2: [0; 2],
            total_ahs_length: 0,
            data_segment_length: [0; 3],
            reserved_8: [0; 8],
            itt: self.itt.get().into(),
            cid: self.cid.0.into(),
            reserved_22: [0; 2],
            cmd_sn: self.cmd_sn.0.into(),
            exp_stat_sn: self.exp_stat_sn.0.into(),
            reserved_32: [0; 16],
        };
        zerocopy::transmute!(raw)
    }
}
