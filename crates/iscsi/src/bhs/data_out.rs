//! SCSI Data-Out.
//!
//! Spec: RFC 7143 11.7 "SCSI Data-Out and SCSI Data-In".

use crate::bhs::{Bhs, Opcode, flag, from_u24, required_itt, to_u24};
use crate::ids::{Itt, Lun, Ttt};
use crate::serial::{DataSn, StatSn};
use crate::violation::Violation;
use zerocopy::big_endian::U32;

raw! {
    struct RawDataOut {
        opcode: u8,
        flags: u8,
        reserved_2: [u8; 2],
        total_ahs_length: u8,
        data_segment_length: [u8; 3],
        lun: [u8; 8],
        itt: U32,
        ttt: U32,
        reserved_24: [u8; 4],
        exp_stat_sn: U32,
        reserved_32: [u8; 4],
        data_sn: U32,
        buffer_offset: U32,
        reserved_44: [u8; 4],
    }
}

/// SCSI Data-Out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataOut {
    /// F: last PDU of the sequence.
    pub last: bool,
    /// Bytes of data segment that follow, without padding.
    pub data_segment_length: u32,
    /// Logical unit.
    pub lun: Lun,
    /// Task that the PDU belongs to.
    pub itt: Itt,
    /// The R2T that this answers; `None` for unsolicited data.
    pub ttt: Option<Ttt>,
    /// Next status number that the initiator expects.
    pub exp_stat_sn: StatSn,
    /// Number within the sequence.
    pub data_sn: DataSn,
    /// Where the data lies in the command's buffer, in bytes.
    pub buffer_offset: u32,
}

impl DataOut {
    /// Reads the header.
    ///
    /// # Errors
    /// A field with a value that it may not have.
    pub fn parse(bhs: &Bhs) -> Result<Self, Violation> {
        let raw: &RawDataOut = zerocopy::transmute_ref!(bhs);
        Ok(Self {
            last: raw.flags & 0x80 != 0,
            data_segment_length: from_u24(raw.data_segment_length),
            lun: Lun(raw.lun),
            itt: required_itt(raw.itt)?,
            ttt: Ttt::from_wire(raw.ttt.get()),
            exp_stat_sn: StatSn(raw.exp_stat_sn.get()),
            data_sn: DataSn(raw.data_sn.get()),
            buffer_offset: raw.buffer_offset.get(),
        })
    }

    /// The header's bytes.
    #[must_use]
    pub fn write(&self) -> Bhs {
        let raw = RawDataOut {
            opcode: Opcode::DataOut as u8,
            flags: flag(self.last, 0x80),
            reserved_2: [0; 2],
            total_ahs_length: 0,
            data_segment_length: to_u24(self.data_segment_length),
            lun: self.lun.0,
            itt: self.itt.get().into(),
            ttt: Ttt::to_wire(self.ttt).into(),
            reserved_24: [0; 4],
            exp_stat_sn: self.exp_stat_sn.0.into(),
            reserved_32: [0; 4],
            data_sn: self.data_sn.0.into(),
            buffer_offset: self.buffer_offset.into(),
            reserved_44: [0; 4],
        };
        zerocopy::transmute!(raw)
    }
}
