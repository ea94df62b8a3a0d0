//! SCSI Command.
//!
//! Spec: RFC 7143 11.3 "SCSI Command".

use crate::bhs::{Bhs, IMMEDIATE, Opcode, flag, from_u24, required_itt, to_u24};
use crate::ids::{Itt, Lun};
use crate::serial::{CmdSn, StatSn};
use crate::violation::{Violation, ViolationKind};
use zerocopy::big_endian::U32;

raw! {
    struct RawScsiCommand {
        opcode: u8,
        flags: u8,
        reserved_2: [u8; 2],
        total_ahs_length: u8,
        data_segment_length: [u8; 3],
        lun: [u8; 8],
        itt: U32,
        expected_data_transfer_length: U32,
        cmd_sn: U32,
        exp_stat_sn: U32,
        cdb: [u8; 16],
    }
}

/// Task attribute (SAM-5 8.6 "Task attributes").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Attribute {
    /// No attribute given; treated as SIMPLE by most.
    Untagged = 0,
    /// SIMPLE.
    Simple = 1,
    /// ORDERED.
    Ordered = 2,
    /// HEAD OF QUEUE.
    HeadOfQueue = 3,
    /// ACA.
    Aca = 4,
}

impl Attribute {
    fn from_bits(flags: u8) -> Result<Self, Violation> {
        Ok(match flags & 0x07 {
            0 => Self::Untagged,
            1 => Self::Simple,
            2 => Self::Ordered,
            3 => Self::HeadOfQueue,
            4 => Self::Aca,
            _ => {
                return Err(Violation::new(
                    ViolationKind::InvalidField,
                    "11.3.1 \"Flags and Task Attributes\"",
                    "reserved task attribute",
                ));
            }
        })
    }
}

/// Carries a CDB to a logical unit (RFC 7143 11.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScsiCommand {
    /// Delivery bit I: act on it at once, outside CmdSN order.
    pub immediate: bool,
    /// F: no unsolicited Data-Out follows.
    pub last: bool,
    /// R: the initiator expects data.
    pub reads: bool,
    /// W: the initiator has data for the command.
    pub writes: bool,
    /// Task attribute.
    pub attribute: Attribute,
    /// Additional header segments, in four-byte words.
    pub total_ahs_length: u8,
    /// Bytes of data segment that follow, without padding.
    pub data_segment_length: u32,
    /// Logical unit.
    pub lun: Lun,
    /// Task that the PDU belongs to.
    pub itt: Itt,
    /// Bytes that the initiator expects to move.
    pub expected_data_transfer_length: u32,
    /// Command sequence number.
    pub cmd_sn: CmdSn,
    /// Next status number that the initiator expects.
    pub exp_stat_sn: StatSn,
    /// Command descriptor block.
    pub cdb: [u8; 16],
}

impl ScsiCommand {
    /// Reads the header.
    ///
    /// # Errors
    /// A field with a value that it may not have.
    pub fn parse(bhs: &Bhs) -> Result<Self, Violation> {
        let raw: &RawScsiCommand = zerocopy::transmute_ref!(bhs);
        Ok(Self {
            immediate: raw.opcode & IMMEDIATE != 0,
            last: raw.flags & 0x80 != 0,
            reads: raw.flags & 0x40 != 0,
            writes: raw.flags & 0x20 != 0,
            attribute: Attribute::from_bits(raw.flags)?,
            total_ahs_length: raw.total_ahs_length,
            data_segment_length: from_u24(raw.data_segment_length),
            lun: Lun(raw.lun),
            itt: required_itt(raw.itt)?,
            expected_data_transfer_length: raw.expected_data_transfer_length.get(),
            cmd_sn: CmdSn(raw.cmd_sn.get()),
            exp_stat_sn: StatSn(raw.exp_stat_sn.get()),
            cdb: raw.cdb,
        })
    }

    /// The header's bytes.
    #[must_use]
    pub fn write(&self) -> Bhs {
        let raw = RawScsiCommand {
            opcode: Opcode::ScsiCommand as u8 | flag(self.immediate, IMMEDIATE),
            flags: flag(self.writes, 0x20)
                | flag(self.reads, 0x40)
                | flag(self.last, 0x80)
                | self.attribute as u8,
            reserved_2: [0; 2],
            total_ahs_length: self.total_ahs_length,
            data_segment_length: to_u24(self.data_segment_length),
            lun: self.lun.0,
            itt: self.itt.get().into(),
            expected_data_transfer_length: self.expected_data_transfer_length.into(),
            cmd_sn: self.cmd_sn.0.into(),
            exp_stat_sn: self.exp_stat_sn.0.into(),
            cdb: self.cdb,
        };
        zerocopy::transmute!(raw)
    }
}
