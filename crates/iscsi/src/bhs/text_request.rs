//! Text Request.
//!
//! Spec: RFC 7143 11.10 "Text Request".

use crate::bhs::{Bhs, IMMEDIATE, Opcode, flag, from_u24, required_itt, to_u24};
use crate::ids::{Itt, Lun, Ttt};
use crate::serial::{CmdSn, StatSn};
use crate::violation::Violation;
use zerocopy::big_endian::U32;

raw! {
    struct RawTextRequest {
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

/// Asks for something in key=value pairs, such as SendTargets (RFC 7143 11.10).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextRequest {
    /// Delivery bit I: act on it at once, outside CmdSN order.
    pub immediate: bool,
    /// F: the initiator has nothing more to say.
    pub last: bool,
    /// C: the text goes on in the next request.
    pub continues: bool,
    /// Bytes of data segment that follow, without padding.
    pub data_segment_length: u32,
    /// Logical unit.
    pub lun: Lun,
    /// Task that the PDU belongs to.
    pub itt: Itt,
    /// Continues the exchange of this tag.
    pub ttt: Option<Ttt>,
    /// Command sequence number.
    pub cmd_sn: CmdSn,
    /// Next status number that the initiator expects.
    pub exp_stat_sn: StatSn,
}

impl TextRequest {
    /// Reads the header.
    ///
    /// # Errors
    /// A field with a value that it may not have.
    pub fn parse(bhs: &Bhs) -> Result<Self, Violation> {
        let raw: &RawTextRequest = zerocopy::transmute_ref!(bhs);
        Ok(Self {
            immediate: raw.opcode & IMMEDIATE != 0,
            last: raw.flags & 0x80 != 0,
            continues: raw.flags & 0x40 != 0,
            data_segment_length: from_u24(raw.data_segment_length),
            lun: Lun(raw.lun),
            itt: required_itt(raw.itt)?,
            ttt: Ttt::from_wire(raw.ttt.get()),
            cmd_sn: CmdSn(raw.cmd_sn.get()),
            exp_stat_sn: StatSn(raw.exp_stat_sn.get()),
        })
    }

    /// The header's bytes.
    #[must_use]
    pub fn write(&self) -> Bhs {
        let raw = RawTextRequest {
            opcode: Opcode::TextRequest as u8 | flag(self.immediate, IMMEDIATE),
            flags: flag(self.continues, 0x40) | flag(self.last, 0x80),
            reserved_2: [0; 2],
            total_ahs_length: 0,
            data_segment_length: to_u24(self.data_segment_length),
            lun: self.lun.0,
            itt: self.itt.get().into(),
            ttt: Ttt::to_wire(self.ttt).into(),
            cmd_sn: self.cmd_sn.0.into(),
            exp_stat_sn: self.exp_stat_sn.0.into(),
            reserved_32: [0; 16],
        };
        zerocopy::transmute!(raw)
    }
}
