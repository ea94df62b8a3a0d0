//! NOP-In.
//!
//! Spec: RFC 7143 11.19 "NOP-In".

use crate::bhs::{Bhs, Numbers, Opcode, from_u24, to_u24};
use crate::ids::{Itt, Lun, Ttt};
use zerocopy::big_endian::U32;

raw! {
    struct RawNopIn {
        opcode: u8,
        flags: u8,
        reserved_2: [u8; 2],
        total_ahs_length: u8,
        data_segment_length: [u8; 3],
        lun: [u8; 8],
        itt: U32,
        ttt: U32,
        stat_sn: U32,
        exp_cmd_sn: U32,
        max_cmd_sn: U32,
        reserved_36: [u8; 12],
    }
}

/// The target's ping, or its answer to one (RFC 7143 11.19).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NopIn {
    /// Bytes of data segment that follow, without padding.
    pub data_segment_length: u32,
    /// Logical unit.
    pub lun: Lun,
    /// Ping of the initiator that this answers.
    pub itt: Option<Itt>,
    /// Tag of a ping of the target; `None` where no answer is wanted.
    pub ttt: Option<Ttt>,
    /// StatSN, ExpCmdSN and MaxCmdSN.
    pub numbers: Numbers,
}

impl NopIn {
    /// Reads the header.
    #[must_use]
    pub fn parse(bhs: &Bhs) -> Self {
        let raw: &RawNopIn = zerocopy::transmute_ref!(bhs);
        Self {
            data_segment_length: from_u24(raw.data_segment_length),
            lun: Lun(raw.lun),
            itt: Itt::from_wire(raw.itt.get()),
            ttt: Ttt::from_wire(raw.ttt.get()),
            numbers: Numbers::parse(raw.stat_sn, raw.exp_cmd_sn, raw.max_cmd_sn),
        }
    }

    /// The header's bytes.
    #[must_use]
    pub fn write(&self) -> Bhs {
        let raw = RawNopIn {
            opcode: Opcode::NopIn as u8,
            flags: 0x80,
            reserved_2: [0; 2],
            total_ahs_length: 0,
            data_segment_length: to_u24(self.data_segment_length),
            lun: self.lun.0,
            itt: Itt::to_wire(self.itt).into(),
            ttt: Ttt::to_wire(self.ttt).into(),
            stat_sn: self.numbers.stat_sn.0.into(),
            exp_cmd_sn: self.numbers.exp_cmd_sn.0.into(),
            max_cmd_sn: self.numbers.max_cmd_sn.0.into(),
            reserved_36: [0; 12],
        };
        zerocopy::transmute!(raw)
    }
}
