//! Ready To Transfer (R2T).
//!
//! Spec: RFC 7143 11.8 "Ready To Transfer (R2T)".

use crate::bhs::{Bhs, Numbers, Opcode, required_itt};
use crate::ids::{Itt, Lun, Ttt};
use crate::serial::R2tSn;
use crate::violation::Violation;
use zerocopy::big_endian::U32;

raw! {
    struct RawReadyToTransfer {
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
        r2t_sn: U32,
        buffer_offset: U32,
        desired_data_transfer_length: U32,
    }
}

/// Ready To Transfer (R2T).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadyToTransfer {
    /// Logical unit.
    pub lun: Lun,
    /// Task that the PDU belongs to.
    pub itt: Itt,
    /// Tag that the data must carry.
    pub ttt: Option<Ttt>,
    /// StatSN, ExpCmdSN and MaxCmdSN.
    pub numbers: Numbers,
    /// Number within the command.
    pub r2t_sn: R2tSn,
    /// Where the data lies in the command's buffer, in bytes.
    pub buffer_offset: u32,
    /// Bytes that are asked for; not 0.
    pub desired_data_transfer_length: u32,
}

impl ReadyToTransfer {
    /// Reads the header.
    ///
    /// # Errors
    /// A field with a value that it may not have.
    pub fn parse(bhs: &Bhs) -> Result<Self, Violation> {
        let raw: &RawReadyToTransfer = zerocopy::transmute_ref!(bhs);
        Ok(Self {
            lun: Lun(raw.lun),
            itt: required_itt(raw.itt)?,
            ttt: Ttt::from_wire(raw.ttt.get()),
            numbers: Numbers::parse(raw.stat_sn, raw.exp_cmd_sn, raw.max_cmd_sn),
            r2t_sn: R2tSn(raw.r2t_sn.get()),
            buffer_offset: raw.buffer_offset.get(),
            desired_data_transfer_length: raw.desired_data_transfer_length.get(),
        })
    }

    /// The header's bytes.
    #[must_use]
    pub fn write(&self) -> Bhs {
        let raw = RawReadyToTransfer {
            opcode: Opcode::ReadyToTransfer as u8,
            flags: 0x80,
            reserved_2: [0; 2],
            total_ahs_length: 0,
            data_segment_length: [0; 3],
            lun: self.lun.0,
            itt: self.itt.get().into(),
            ttt: Ttt::to_wire(self.ttt).into(),
            stat_sn: self.numbers.stat_sn.0.into(),
            exp_cmd_sn: self.numbers.exp_cmd_sn.0.into(),
            max_cmd_sn: self.numbers.max_cmd_sn.0.into(),
            r2t_sn: self.r2t_sn.0.into(),
            buffer_offset: self.buffer_offset.into(),
            desired_data_transfer_length: self.desired_data_transfer_length.into(),
        };
        zerocopy::transmute!(raw)
    }
}
