//! SCSI Response.
//!
//! Spec: RFC 7143 11.4 "SCSI Response".

use crate::bhs::{Bhs, Numbers, Opcode, flag, from_u24, required_itt, to_u24};
use crate::ids::Itt;
use crate::violation::Violation;
use zerocopy::big_endian::U32;

raw! {
    struct RawScsiResponse {
        opcode: u8,
        flags: u8,
        response: u8,
        status: u8,
        total_ahs_length: u8,
        data_segment_length: [u8; 3],
        reserved_8: [u8; 8],
        itt: U32,
        snack_tag: U32,
        stat_sn: U32,
        exp_cmd_sn: U32,
        max_cmd_sn: U32,
        exp_data_sn: U32,
        bidirectional_read_residual: U32,
        residual_count: U32,
    }
}

/// Status and sense data of a command (RFC 7143 11.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScsiResponse {
    /// o: the same for the read half.
    pub bidirectional_overflow: bool,
    /// u: the same for the read half.
    pub bidirectional_underflow: bool,
    /// O: more bytes than expected.
    pub overflow: bool,
    /// U: fewer bytes than expected.
    pub underflow: bool,
    /// 0: command completed at target; 1: target failure.
    pub response: u8,
    /// SCSI status, if completed.
    pub status: u8,
    /// Bytes of data segment that follow, without padding.
    pub data_segment_length: u32,
    /// Task that the PDU belongs to.
    pub itt: Itt,
    /// StatSN, ExpCmdSN and MaxCmdSN.
    pub numbers: Numbers,
    /// R2T and Data-In PDUs that were sent for the command.
    pub exp_data_sn: u32,
    /// Residual of the read half of a bidirectional command.
    pub bidirectional_read_residual: u32,
    /// Bytes that were not moved, or would have been moved beyond.
    pub residual_count: u32,
}

impl ScsiResponse {
    /// Reads the header.
    ///
    /// # Errors
    /// A field with a value that it may not have.
    pub fn parse(bhs: &Bhs) -> Result<Self, Violation> {
        let raw: &RawScsiResponse = zerocopy::transmute_ref!(bhs);
        Ok(Self {
            bidirectional_overflow: raw.flags & 0x10 != 0,
            bidirectional_underflow: raw.flags & 0x08 != 0,
            overflow: raw.flags & 0x04 != 0,
            underflow: raw.flags & 0x02 != 0,
            response: raw.response,
            status: raw.status,
            data_segment_length: from_u24(raw.data_segment_length),
            itt: required_itt(raw.itt)?,
            numbers: Numbers::parse(raw.stat_sn, raw.exp_cmd_sn, raw.max_cmd_sn),
            exp_data_sn: raw.exp_data_sn.get(),
            bidirectional_read_residual: raw.bidirectional_read_residual.get(),
            residual_count: raw.residual_count.get(),
        })
    }

    /// The header's bytes.
    #[must_use]
    pub fn write(&self) -> Bhs {
        let raw = RawScsiResponse {
            opcode: Opcode::ScsiResponse as u8,
            flags: 0x80
                | flag(self.underflow, 0x02)
                | flag(self.overflow, 0x04)
                | flag(self.bidirectional_underflow, 0x08)
                | flag(self.bidirectional_overflow, 0x10),
            response: self.response,
            status: self.status,
            total_ahs_length: 0,
            data_segment_length: to_u24(self.data_segment_length),
            reserved_8: [0; 8],
            itt: self.itt.get().into(),
            snack_tag: U32::ZERO,
            stat_sn: self.numbers.stat_sn.0.into(),
            exp_cmd_sn: self.numbers.exp_cmd_sn.0.into(),
            max_cmd_sn: self.numbers.max_cmd_sn.0.into(),
            exp_data_sn: self.exp_data_sn.into(),
            bidirectional_read_residual: self.bidirectional_read_residual.into(),
            residual_count: self.residual_count.into(),
        };
        zerocopy::transmute!(raw)
    }
}
