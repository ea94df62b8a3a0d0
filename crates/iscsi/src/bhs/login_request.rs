//! Login Request.
//!
//! Spec: RFC 7143 11.12 "Login Request".

use crate::bhs::{Bhs, IMMEDIATE, Opcode, flag, from_u24, required_itt, to_u24};
use crate::ids::{Cid, Isid, Itt, Tsih};
use crate::serial::{CmdSn, StatSn};
use crate::violation::Violation;
use zerocopy::big_endian::{U16, U32};

raw! {
    struct RawLoginRequest {
        opcode: u8,
        flags: u8,
        version_max: u8,
        version_min: u8,
        total_ahs_length: u8,
        data_segment_length: [u8; 3],
        isid: [u8; 6],
        tsih: U16,
        itt: U32,
        cid: U16,
        reserved_22: [u8; 2],
        cmd_sn: U32,
        exp_stat_sn: U32,
        reserved_32: [u8; 16],
    }
}

/// Stage of a login: 0 security negotiation, 1 operational negotiation, 3 full feature phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StageBits(pub u8);

impl StageBits {
    /// Security negotiation.
    pub const SECURITY: Self = Self(0);
    /// Login operational negotiation.
    pub const OPERATIONAL: Self = Self(1);
    /// Full feature phase.
    pub const FULL_FEATURE: Self = Self(3);
}

/// Begins a session or a connection (RFC 7143 11.12).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoginRequest {
    /// Delivery bit I: act on it at once, outside CmdSN order.
    pub immediate: bool,
    /// T: ready for the next stage.
    pub transit: bool,
    /// C: the text goes on in the next request.
    pub continues: bool,
    /// Current stage.
    pub stage: StageBits,
    /// Stage to go to, if `transit`.
    pub next_stage: StageBits,
    /// Highest protocol version; 0 is RFC 7143.
    pub version_max: u8,
    /// Lowest protocol version.
    pub version_min: u8,
    /// Bytes of data segment that follow, without padding.
    pub data_segment_length: u32,
    /// Initiator part of the session identifier.
    pub isid: Isid,
    /// Session handle.
    pub tsih: Tsih,
    /// Task that the PDU belongs to.
    pub itt: Itt,
    /// Connection.
    pub cid: Cid,
    /// Command sequence number.
    pub cmd_sn: CmdSn,
    /// Next status number that the initiator expects.
    pub exp_stat_sn: StatSn,
}

impl LoginRequest {
    /// Reads the header.
    ///
    /// # Errors
    /// A field with a value that it may not have.
    pub fn parse(bhs: &Bhs) -> Result<Self, Violation> {
        let raw: &RawLoginRequest = zerocopy::transmute_ref!(bhs);
        Ok(Self {
            immediate: raw.opcode & IMMEDIATE != 0,
            transit: raw.flags & 0x80 != 0,
            continues: raw.flags & 0x40 != 0,
            stage: StageBits((raw.flags >> 2) & 0x03),
            next_stage: StageBits(raw.flags & 0x03),
            version_max: raw.version_max,
            version_min: raw.version_min,
            data_segment_length: from_u24(raw.data_segment_length),
            isid: Isid(raw.isid),
            tsih: Tsih(raw.tsih.get()),
            itt: required_itt(raw.itt)?,
            cid: Cid(raw.cid.get()),
            cmd_sn: CmdSn(raw.cmd_sn.get()),
            exp_stat_sn: StatSn(raw.exp_stat_sn.get()),
        })
    }

    /// The header's bytes.
    #[must_use]
    pub fn write(&self) -> Bhs {
        let raw = RawLoginRequest {
            opcode: Opcode::LoginRequest as u8 | flag(self.immediate, IMMEDIATE),
            flags: flag(self.continues, 0x40)
                | flag(self.transit, 0x80)
                | (self.stage.0 & 0x03) << 2
                | (self.next_stage.0 & 0x03),
            version_max: self.version_max,
            version_min: self.version_min,
            total_ahs_length: 0,
            data_segment_length: to_u24(self.data_segment_length),
            isid: self.isid.0,
            tsih: self.tsih.0.into(),
            itt: self.itt.get().into(),
            cid: self.cid.0.into(),
            reserved_22: [0; 2],
            cmd_sn: self.cmd_sn.0.into(),
            exp_stat_sn: self.exp_stat_sn.0.into(),
            reserved_32: [0; 16],
        };
        zerocopy::transmute!(raw)
    }
}
