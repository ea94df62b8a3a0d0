//! Task Management Function Request.
//!
//! Spec: RFC 7143 11.5 "Task Management Function Request".

use crate::bhs::{Bhs, IMMEDIATE, Opcode, flag, required_itt};
use crate::ids::{Itt, Lun};
use crate::serial::{CmdSn, StatSn};
use crate::violation::Violation;
use zerocopy::big_endian::U32;

raw! {
    struct RawTaskManagementRequest {
        opcode: u8,
        flags: u8,
        reserved_2: [u8; 2],
        total_ahs_length: u8,
        data_segment_length: [u8; 3],
        lun: [u8; 8],
        itt: U32,
        referenced_itt: U32,
        cmd_sn: U32,
        exp_stat_sn: U32,
        ref_cmd_sn: U32,
        exp_data_sn: U32,
        reserved_40: [u8; 8],
    }
}

/// Task Management Function Request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskManagementRequest {
    /// Delivery bit I: act on it at once, outside CmdSN order.
    pub immediate: bool,
    /// Function code, 1 to 8; others are answered "not supported".
    pub function: u8,
    /// Logical unit.
    pub lun: Lun,
    /// Task that the PDU belongs to.
    pub itt: Itt,
    /// Task to abort or reassign.
    pub referenced_itt: Option<Itt>,
    /// Command sequence number.
    pub cmd_sn: CmdSn,
    /// Next status number that the initiator expects.
    pub exp_stat_sn: StatSn,
    /// CmdSN of the task to abort.
    pub ref_cmd_sn: CmdSn,
    /// For TASK REASSIGN.
    pub exp_data_sn: u32,
}

impl TaskManagementRequest {
    /// Reads the header.
    ///
    /// # Errors
    /// A field with a value that it may not have.
    pub fn parse(bhs: &Bhs) -> Result<Self, Violation> {
        let raw: &RawTaskManagementRequest = zerocopy::transmute_ref!(bhs);
        Ok(Self {
            immediate: raw.opcode & IMMEDIATE != 0,
            function: raw.flags & 0x7F,
            lun: Lun(raw.lun),
            itt: required_itt(raw.itt)?,
            referenced_itt: Itt::from_wire(raw.referenced_itt.get()),
            cmd_sn: CmdSn(raw.cmd_sn.get()),
            exp_stat_sn: StatSn(raw.exp_stat_sn.get()),
            ref_cmd_sn: CmdSn(raw.ref_cmd_sn.get()),
            exp_data_sn: raw.exp_data_sn.get(),
        })
    }

    /// The header's bytes.
    #[must_use]
    pub fn write(&self) -> Bhs {
        let raw = RawTaskManagementRequest {
            opcode: Opcode::TaskManagementRequest as u8 | flag(self.immediate, IMMEDIATE),
            flags: 0x80 | (self.function & 0x7F),
            reserved_2: [0; 2],
            total_ahs_length: 0,
            data_segment_length: [0; 3],
            lun: self.lun.0,
            itt: self.itt.get().into(),
            referenced_itt: Itt::to_wire(self.referenced_itt).into(),
            cmd_sn: self.cmd_sn.0.into(),
            exp_stat_sn: self.exp_stat_sn.0.into(),
            ref_cmd_sn: self.ref_cmd_sn.0.into(),
            exp_data_sn: self.exp_data_sn.into(),
            reserved_40: [0; 8],
        };
        zerocopy::transmute!(raw)
    }
}
