//! Task Management Function Response.
//!
//! Spec: RFC 7143 11.6 "Task Management Function Response".

use crate::bhs::{Bhs, Numbers, Opcode, required_itt};
use crate::ids::Itt;
use crate::violation::Violation;
use zerocopy::big_endian::U32;

raw! {
    struct RawTaskManagementResponse {
        opcode: u8,
        flags: u8,
        response: u8,
        reserved_3: u8,
        total_ahs_length: u8,
        data_segment_length: [u8; 3],
        reserved_8: [u8; 8],
        itt: U32,
        reserved_20: [u8; 4],
        stat_sn: U32,
        exp_cmd_sn: U32,
        max_cmd_sn: U32,
        reserved_36: [u8; 12],
    }
}

/// Task Management Function Response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskManagementResponse {
    /// 0: function complete; see `TaskManagementAnswer`.
    pub response: u8,
    /// Task that the PDU belongs to.
    pub itt: Itt,
    /// StatSN, ExpCmdSN and MaxCmdSN.
    pub numbers: Numbers,
}

impl TaskManagementResponse {
    /// Reads the header.
    ///
    /// # Errors
    /// A field with a value that it may not have.
    pub fn parse(bhs: &Bhs) -> Result<Self, Violation> {
        let raw: &RawTaskManagementResponse = zerocopy::transmute_ref!(bhs);
        Ok(Self {
            response: raw.response,
            itt: required_itt(raw.itt)?,
            numbers: Numbers::parse(raw.stat_sn, raw.exp_cmd_sn, raw.max_cmd_sn),
        })
    }

    /// The header's bytes.
    #[must_use]
    pub fn write(&self) -> Bhs {
        let raw = RawTaskManagementResponse {
            opcode: Opcode::TaskManagementResponse as u8,
            flags: 0x80,
            response: self.response,
            reserved_3: 0,
            total_ahs_length: 0,
            data_segment_length: [0; 3],
            reserved_8: [0; 8],
            itt: self.itt.get().into(),
            reserved_20: [0; 4],
            stat_sn: self.numbers.stat_sn.0.into(),
            exp_cmd_sn: self.numbers.exp_cmd_sn.0.into(),
            max_cmd_sn: self.numbers.max_cmd_sn.0.into(),
            reserved_36: [0; 12],
        };
        zerocopy::transmute!(raw)
    }
}
