//! Reject.
//!
//! Spec: RFC 7143 11.17 "Reject".

use crate::bhs::{Bhs, Numbers, Opcode, from_u24, to_u24};
use zerocopy::big_endian::U32;

raw! {
    struct RawReject {
        opcode: u8,
        flags: u8,
        reason: u8,
        reserved_3: u8,
        total_ahs_length: u8,
        data_segment_length: [u8; 3],
        reserved_8: [u8; 8],
        reserved_tag: U32,
        reserved_20: [u8; 4],
        stat_sn: U32,
        exp_cmd_sn: U32,
        max_cmd_sn: U32,
        data_sn: U32,
        reserved_40: [u8; 8],
    }
}

/// Refuses a PDU and gives its header back (RFC 7143 11.17).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reject {
    /// Reason code; see `RejectReason`.
    pub reason: u8,
    /// Bytes of data segment that follow, without padding.
    pub data_segment_length: u32,
    /// StatSN, ExpCmdSN and MaxCmdSN.
    pub numbers: Numbers,
    /// DataSN or R2TSN, for SNACK.
    pub data_sn: u32,
}

impl Reject {
    /// Reads the header.
    #[must_use]
    pub fn parse(bhs: &Bhs) -> Self {
        let raw: &RawReject = zerocopy::transmute_ref!(bhs);
        Self {
            reason: raw.reason,
            data_segment_length: from_u24(raw.data_segment_length),
            numbers: Numbers::parse(raw.stat_sn, raw.exp_cmd_sn, raw.max_cmd_sn),
            data_sn: raw.data_sn.get(),
        }
    }

    /// The header's bytes.
    #[must_use]
    pub fn write(&self) -> Bhs {
        let raw = RawReject {
            opcode: Opcode::Reject as u8,
            flags: 0x80,
            reason: self.reason,
            reserved_3: 0,
            total_ahs_length: 0,
            data_segment_length: to_u24(self.data_segment_length),
            reserved_8: [0; 8],
            reserved_tag: u32::MAX.into(),
            reserved_20: [0; 4],
            stat_sn: self.numbers.stat_sn.0.into(),
            exp_cmd_sn: self.numbers.exp_cmd_sn.0.into(),
            max_cmd_sn: self.numbers.max_cmd_sn.0.into(),
            data_sn: self.data_sn.into(),
            reserved_40: [0; 8],
        };
        zerocopy::transmute!(raw)
    }
}
