//! NOP-Out.
//!
//! Spec: RFC 7143 11.18 "NOP-Out".

use crate::bhs::{Bhs, IMMEDIATE, Opcode, flag, from_u24, to_u24};
use crate::ids::{Itt, Lun, Ttt};
use crate::serial::{CmdSn, StatSn};
use zerocopy::big_endian::U32;

raw! {
    struct RawNopOut {
        opcode: u8,
        flags: u8,
        reserved_2: [u8; 2],
        total_ahs_length: u8,
        data_segment_length: [u8; 3],
        lun: [u8; 8],
        itt: U32,
        ttt: U32,
        cmd_sn: U32,
        exp_stat_sn: U32,
        reserved_32: [u8; 16],
    }
}

/// The initiator's ping, or its answer to one (RFC 7143 11.18).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NopOut {
    /// Delivery bit I: act on it at once, outside CmdSN order.
    pub immediate: bool,
    /// Bytes of data segment that follow, without padding.
    pub data_segment_length: u32,
    /// Logical unit.
    pub lun: Lun,
    /// Tag of a ping of the initiator; `None` where no answer is wanted.
    pub itt: Option<Itt>,
    /// Ping of the target that this answers.
    pub ttt: Option<Ttt>,
    /// Command sequence number.
    pub cmd_sn: CmdSn,
    /// Next status number that the initiator expects.
    pub exp_stat_sn: StatSn,
}

impl NopOut {
    /// Reads the header.
    #[must_use]
    pub fn parse(bhs: &Bhs) -> Self {
        let raw: &RawNopOut = zerocopy::transmute_ref!(bhs);
        Self {
            immediate: raw.opcode & IMMEDIATE != 0,
            data_segment_length: from_u24(raw.data_segment_length),
            lun: Lun(raw.lun),
            itt: Itt::from_wire(raw.itt.get()),
            ttt: Ttt::from_wire(raw.ttt.get()),
            cmd_sn: CmdSn(raw.cmd_sn.get()),
            exp_stat_sn: StatSn(raw.exp_stat_sn.get()),
        }
    }

    /// The header's bytes.
    #[must_use]
    pub fn write(&self) -> Bhs {
        let raw = RawNopOut {
            opcode: Opcode::NopOut as u8 | flag(self.immediate, IMMEDIATE),
            flags: 0x80,
            reserved_2: [0; 2],
            total_ahs_length: 0,
            data_segment_length: to_u24(self.data_segment_length),
            lun: self.lun.0,
            itt: Itt::to_wire(self.itt).into(),
            ttt: Ttt::to_wire(self.ttt).into(),
            cmd_sn: self.cmd_sn.0.into(),
            exp_stat_sn: self.exp_stat_sn.0.into(),
            reserved_32: [0; 16],
        };
        zerocopy::transmute!(raw)
    }
}
