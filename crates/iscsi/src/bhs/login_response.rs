//! Login Response.
//!
//! Spec: RFC 7143 11.13 "Login Response".

use crate::bhs::login_request::StageBits;
use crate::bhs::{Bhs, Numbers, Opcode, flag, from_u24, required_itt, to_u24};
use crate::ids::{Isid, Itt, Tsih};
use crate::violation::Violation;
use zerocopy::big_endian::{U16, U32};

raw! {
    struct RawLoginResponse {
        opcode: u8,
        flags: u8,
        version_max: u8,
        version_active: u8,
        total_ahs_length: u8,
        data_segment_length: [u8; 3],
        isid: [u8; 6],
        tsih: U16,
        itt: U32,
        reserved_20: [u8; 4],
        stat_sn: U32,
        exp_cmd_sn: U32,
        max_cmd_sn: U32,
        status_class: u8,
        status_detail: u8,
        reserved_38: [u8; 10],
    }
}

/// Answers a Login Request (RFC 7143 11.13).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoginResponse {
    /// T: the stage changes.
    pub transit: bool,
    /// C: the text goes on in the next response.
    pub continues: bool,
    /// Current stage.
    pub stage: StageBits,
    /// Stage to go to, if `transit`.
    pub next_stage: StageBits,
    /// Highest protocol version of the target.
    pub version_max: u8,
    /// Version in use.
    pub version_active: u8,
    /// Bytes of data segment that follow, without padding.
    pub data_segment_length: u32,
    /// Initiator part of the session identifier.
    pub isid: Isid,
    /// Session handle.
    pub tsih: Tsih,
    /// Task that the PDU belongs to.
    pub itt: Itt,
    /// StatSN, ExpCmdSN and MaxCmdSN.
    pub numbers: Numbers,
    /// 0 success, 1 redirection, 2 initiator error, 3 target error.
    pub status_class: u8,
    /// Detail within the class.
    pub status_detail: u8,
}

impl LoginResponse {
    /// Reads the header.
    ///
    /// # Errors
    /// A field with a value that it may not have.
    pub fn parse(bhs: &Bhs) -> Result<Self, Violation> {
        let raw: &RawLoginResponse = zerocopy::transmute_ref!(bhs);
        Ok(Self {
            transit: raw.flags & 0x80 != 0,
            continues: raw.flags & 0x40 != 0,
            stage: StageBits((raw.flags >> 2) & 0x03),
            next_stage: StageBits(raw.flags & 0x03),
            version_max: raw.version_max,
            version_active: raw.version_active,
            data_segment_length: from_u24(raw.data_segment_length),
            isid: Isid(raw.isid),
            tsih: Tsih(raw.tsih.get()),
            itt: required_itt(raw.itt)?,
            numbers: Numbers::parse(raw.stat_sn, raw.exp_cmd_sn, raw.max_cmd_sn),
            status_class: raw.status_class,
            status_detail: raw.status_detail,
        })
    }

    /// The header's bytes.
    #[must_use]
    pub fn write(&self) -> Bhs {
        let raw = RawLoginResponse {
            opcode: Opcode::LoginResponse as u8,
            flags: flag(self.continues, 0x40)
                | flag(self.transit, 0x80)
                | (self.stage.0 & 0x03) << 2
                | (self.next_stage.0 & 0x03),
            version_max: self.version_max,
            version_active: self.version_active,
            total_ahs_length: 0,
            data_segment_length: to_u24(self.data_segment_length),
            isid: self.isid.0,
            tsih: self.tsih.0.into(),
            itt: self.itt.get().into(),
            reserved_20: [0; 4],
            stat_sn: self.numbers.stat_sn.0.into(),
            exp_cmd_sn: self.numbers.exp_cmd_sn.0.into(),
            max_cmd_sn: self.numbers.max_cmd_sn.0.into(),
            status_class: self.status_class,
            status_detail: self.status_detail,
            reserved_38: [0; 10],
        };
        zerocopy::transmute!(raw)
    }
}
