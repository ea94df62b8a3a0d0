//! Logout Response.
//!
//! Spec: RFC 7143 11.15 "Logout Response".

use crate::bhs::{Bhs, Numbers, Opcode, required_itt};
use crate::ids::Itt;
use crate::violation::Violation;
use zerocopy::big_endian::{U16, U32};

raw! {
    struct RawLogoutResponse {
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
        reserved_36: [u8; 4],
        time2wait: U16,
        time2retain: U16,
        reserved_44: [u8; 4],
    }
}

/// Answers a Logout Request (RFC 7143 11.15).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogoutResponse {
    /// 0: closed; see `LogoutAnswer`.
    pub response: u8,
    /// Task that the PDU belongs to.
    pub itt: Itt,
    /// StatSN, ExpCmdSN and MaxCmdSN.
    pub numbers: Numbers,
    /// Seconds to wait before reconnecting.
    pub time2wait: u16,
    /// Seconds that tasks are kept.
    pub time2retain: u16,
}

impl LogoutResponse {
    /// Reads the header.
    ///
    /// # Errors
    /// A field with a value that it may not have.
    pub fn parse(bhs: &Bhs) -> Result<Self, Violation> {
        let raw: &RawLogoutResponse = zerocopy::transmute_ref!(bhs);
        Ok(Self {
            response: raw.response,
            itt: required_itt(raw.itt)?,
            numbers: Numbers::parse(raw.stat_sn, raw.exp_cmd_sn, raw.max_cmd_sn),
            time2wait: raw.time2wait.get(),
            time2retain: raw.time2retain.get(),
        })
    }

    /// The header's bytes.
    #[must_use]
    pub fn write(&self) -> Bhs {
        let raw = RawLogoutResponse {
            opcode: Opcode::LogoutResponse as u8,
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
            reserved_36: [0; 4],
            time2wait: self.time2wait.into(),
            time2retain: self.time2retain.into(),
            reserved_44: [0; 4],
        };
        zerocopy::transmute!(raw)
    }
}
