//! SCSI Data-In.
//!
//! Spec: RFC 7143 11.7 "SCSI Data-Out and SCSI Data-In".

use crate::bhs::{Bhs, Numbers, Opcode, flag, from_u24, required_itt, to_u24};
use crate::ids::{Itt, Lun, Ttt};
use crate::serial::DataSn;
use crate::violation::Violation;
use zerocopy::big_endian::U32;

raw! {
    struct RawDataIn {
        opcode: u8,
        flags: u8,
        reserved_2: u8,
        status: u8,
        total_ahs_length: u8,
        data_segment_length: [u8; 3],
        lun: [u8; 8],
        itt: U32,
        ttt: U32,
        stat_sn: U32,
        exp_cmd_sn: U32,
        max_cmd_sn: U32,
        data_sn: U32,
        buffer_offset: U32,
        residual_count: U32,
    }
}

/// SCSI Data-In.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataIn {
    /// F: last PDU of the sequence.
    pub last: bool,
    /// A: asks for an acknowledgement (ErrorRecoveryLevel 1 and up).
    pub acknowledge: bool,
    /// O: more bytes than expected.
    pub overflow: bool,
    /// U: fewer bytes than expected.
    pub underflow: bool,
    /// S: status is here and no SCSI Response follows.
    pub has_status: bool,
    /// SCSI status, if `has_status`.
    pub status: u8,
    /// Bytes of data segment that follow, without padding.
    pub data_segment_length: u32,
    /// Logical unit.
    pub lun: Lun,
    /// Task that the PDU belongs to.
    pub itt: Itt,
    /// Target transfer tag, or `None`.
    pub ttt: Option<Ttt>,
    /// StatSN, ExpCmdSN and MaxCmdSN.
    pub numbers: Numbers,
    /// Number within the command.
    pub data_sn: DataSn,
    /// Where the data lies in the command's buffer, in bytes.
    pub buffer_offset: u32,
    /// Bytes not moved, if `has_status`.
    pub residual_count: u32,
}

impl DataIn {
    /// Reads the header.
    ///
    /// # Errors
    /// A field with a value that it may not have.
    pub fn parse(bhs: &Bhs) -> Result<Self, Violation> {
        let raw: &RawDataIn = zerocopy::transmute_ref!(bhs);
        Ok(Self {
            last: raw.flags & 0x80 != 0,
            acknowledge: raw.flags & 0x40 != 0,
            overflow: raw.flags & 0x04 != 0,
            underflow: raw.flags & 0x02 != 0,
            has_status: raw.flags & 0x01 != 0,
            status: raw.status,
            data_segment_length: from_u24(raw.data_segment_length),
            lun: Lun(raw.lun),
            itt: required_itt(raw.itt)?,
            ttt: Ttt::from_wire(raw.ttt.get()),
            numbers: Numbers::parse(raw.stat_sn, raw.exp_cmd_sn, raw.max_cmd_sn),
            data_sn: DataSn(raw.data_sn.get()),
            buffer_offset: raw.buffer_offset.get(),
            residual_count: raw.residual_count.get(),
        })
    }

    /// The header's bytes.
    #[must_use]
    pub fn write(&self) -> Bhs {
        let raw = RawDataIn {
            opcode: Opcode::DataIn as u8,
            flags: flag(self.has_status, 0x01)
                | flag(self.underflow, 0x02)
                | flag(self.overflow, 0x04)
                | flag(self.acknowledge, 0x40)
                | flag(self.last, 0x80),
            reserved_2: 0,
            status: self.status,
            total_ahs_length: 0,
            data_segment_length: to_u24(self.data_segment_length),
            lun: self.lun.0,
            itt: self.itt.get().into(),
            ttt: Ttt::to_wire(self.ttt).into(),
            stat_sn: self.numbers.stat_sn.0.into(),
            exp_cmd_sn: self.numbers.exp_cmd_sn.0.into(),
            max_cmd_sn: self.numbers.max_cmd_sn.0.into(),
            data_sn: self.data_sn.0.into(),
            buffer_offset: self.buffer_offset.into(),
            residual_count: self.residual_count.into(),
        };
        zerocopy::transmute!(raw)
    }
}
