//! Text Response.
//!
//! Spec: RFC 7143 11.11 "Text Response".

use crate::bhs::{Bhs, Numbers, Opcode, flag, from_u24, required_itt, to_u24};
use crate::ids::{Itt, Lun, Ttt};
use crate::violation::Violation;
use zerocopy::big_endian::U32;

raw! {
    struct RawTextResponse {
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

/// Answers a Text Request, in parts where it is long (RFC 7143 11.11).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TextResponse {
    /// F: the exchange is over.
    pub last: bool,
    /// C: the text goes on in the next response.
    pub continues: bool,
    /// Bytes of data segment that follow, without padding.
    pub data_segment_length: u32,
    /// Logical unit.
    pub lun: Lun,
    /// Task that the PDU belongs to.
    pub itt: Itt,
    /// Tag for the next request of the exchange.
    pub ttt: Option<Ttt>,
    /// StatSN, ExpCmdSN and MaxCmdSN.
    pub numbers: Numbers,
}

impl TextResponse {
    /// Reads the header.
    ///
    /// # Errors
    /// A field with a value that it may not have.
    pub fn parse(bhs: &Bhs) -> Result<Self, Violation> {
        let raw: &RawTextResponse = zerocopy::transmute_ref!(bhs);
        Ok(Self {
            last: raw.flags & 0x80 != 0,
            continues: raw.flags & 0x40 != 0,
            data_segment_length: from_u24(raw.data_segment_length),
            lun: Lun(raw.lun),
            itt: required_itt(raw.itt)?,
            ttt: Ttt::from_wire(raw.ttt.get()),
            numbers: Numbers::parse(raw.stat_sn, raw.exp_cmd_sn, raw.max_cmd_sn),
        })
    }

    /// The header's bytes.
    #[must_use]
    pub fn write(&self) -> Bhs {
        let raw = RawTextResponse {
            opcode: Opcode::TextResponse as u8,
            flags: flag(self.continues, 0x40) | flag(self.last, 0x80),
            reserved_2: [0; 2],
            total_ahs_length: 0,
            data_segment_length: to_u24(self.data_segment_length),
            lun: self.lun.0,
            itt: self.itt.get().into(),
            ttt: Ttt::to_wire(self.ttt).into(),
            stat_sn: self.numbers.stat_sn.0.into(),
            exp_cmd_sn: self.numbers.exp_cmd_sn.0.into(),
            max_cmd_sn: self.numbers.max_cmd_sn.0.into(),
            reserved_36: [0; 12],
        };
        zerocopy::transmute!(raw)
    }
}
