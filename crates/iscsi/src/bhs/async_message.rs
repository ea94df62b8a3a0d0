//! Asynchronous Message.
//!
//! Spec: RFC 7143 11.9 "Asynchronous Message".

use crate::bhs::{Bhs, Numbers, Opcode, from_u24, to_u24};
use crate::ids::Lun;
use zerocopy::big_endian::{U16, U32};

raw! {
    struct RawAsyncMessage {
        opcode: u8,
        flags: u8,
        reserved_2: [u8; 2],
        total_ahs_length: u8,
        data_segment_length: [u8; 3],
        lun: [u8; 8],
        reserved_tag: U32,
        reserved_20: [u8; 4],
        stat_sn: U32,
        exp_cmd_sn: U32,
        max_cmd_sn: U32,
        event: u8,
        vendor_code: u8,
        parameter_1: U16,
        parameter_2: U16,
        parameter_3: U16,
        reserved_44: [u8; 4],
    }
}

/// Asynchronous Message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AsyncMessage {
    /// Bytes of data segment that follow, without padding.
    pub data_segment_length: u32,
    /// Logical unit.
    pub lun: Lun,
    /// StatSN, ExpCmdSN and MaxCmdSN.
    pub numbers: Numbers,
    /// Which event; see `AsyncEvent`.
    pub event: u8,
    /// Vendor specific code.
    pub vendor_code: u8,
    /// First parameter.
    pub parameter_1: u16,
    /// Second parameter.
    pub parameter_2: u16,
    /// Third parameter.
    pub parameter_3: u16,
}

impl AsyncMessage {
    /// Reads the header.
    #[must_use]
    pub fn parse(bhs: &Bhs) -> Self {
        let raw: &RawAsyncMessage = zerocopy::transmute_ref!(bhs);
        Self {
            data_segment_length: from_u24(raw.data_segment_length),
            lun: Lun(raw.lun),
            numbers: Numbers::parse(raw.stat_sn, raw.exp_cmd_sn, raw.max_cmd_sn),
            event: raw.event,
            vendor_code: raw.vendor_code,
            parameter_1: raw.parameter_1.get(),
            parameter_2: raw.parameter_2.get(),
            parameter_3: raw.parameter_3.get(),
        }
    }

    /// The header's bytes.
    #[must_use]
    pub fn write(&self) -> Bhs {
        let raw = RawAsyncMessage {
            opcode: Opcode::AsyncMessage as u8,
            flags: 0x80,
            reserved_2: [0; 2],
            total_ahs_length: 0,
            data_segment_length: to_u24(self.data_segment_length),
            lun: self.lun.0,
            reserved_tag: u32::MAX.into(),
            reserved_20: [0; 4],
            stat_sn: self.numbers.stat_sn.0.into(),
            exp_cmd_sn: self.numbers.exp_cmd_sn.0.into(),
            max_cmd_sn: self.numbers.max_cmd_sn.0.into(),
            event: self.event,
            vendor_code: self.vendor_code,
            parameter_1: self.parameter_1.into(),
            parameter_2: self.parameter_2.into(),
            parameter_3: self.parameter_3.into(),
            reserved_44: [0; 4],
        };
        zerocopy::transmute!(raw)
    }
}
