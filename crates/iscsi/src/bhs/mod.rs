//! Basic header segments: one file per PDU.
//!
//! Each file has a private `Raw…` struct that mirrors the standard's byte table line by line, and
//! the semantic type with `parse` and `write`. Reserved bytes are ignored when read and zero when
//! written.
//!
//! Spec: RFC 7143 11.2 "PDU Template, Header, and Opcodes".

use crate::ids::Itt;
use crate::serial::{CmdSn, StatSn};
use crate::violation::{Violation, ViolationKind};
use zerocopy::big_endian::U32;

/// A raw header struct of exactly one basic header segment.
macro_rules! raw {
    (struct $name:ident { $($field:ident: $ty:ty,)* }) => {
        #[derive(
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::KnownLayout, zerocopy::Immutable,
            zerocopy::Unaligned,
        )]
        #[repr(C)]
        struct $name { $($field: $ty,)* }
        const _: () = assert!(core::mem::size_of::<$name>() == crate::bhs::BHS_BYTES);
    };
}

mod async_message;
mod data_in;
mod data_out;
mod login_request;
mod login_response;
mod logout_request;
mod logout_response;
mod nop_in;
mod nop_out;
mod ready_to_transfer;
mod reject;
mod scsi_command;
mod scsi_response;
mod task_management_request;
mod task_management_response;
mod text_request;
mod text_response;

pub use async_message::AsyncMessage;
pub use data_in::DataIn;
pub use data_out::DataOut;
pub use login_request::{LoginRequest, StageBits};
pub use login_response::LoginResponse;
pub use logout_request::LogoutRequest;
pub use logout_response::LogoutResponse;
pub use nop_in::NopIn;
pub use nop_out::NopOut;
pub use ready_to_transfer::ReadyToTransfer;
pub use reject::Reject;
pub use scsi_command::{Attribute, ScsiCommand};
pub use scsi_response::ScsiResponse;
pub use task_management_request::TaskManagementRequest;
pub use task_management_response::TaskManagementResponse;
pub use text_request::TextRequest;
pub use text_response::TextResponse;

/// Bytes of a basic header segment.
pub const BHS_BYTES: usize = 48;
/// The bytes of one basic header segment.
pub type Bhs = [u8; BHS_BYTES];
/// The immediate delivery bit of the opcode byte.
pub(crate) const IMMEDIATE: u8 = 0x40;

/// Operation codes (RFC 7143 11.2.1.2 "Opcode").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Opcode {
    /// NOP-Out.
    NopOut = 0x00,
    /// SCSI Command.
    ScsiCommand = 0x01,
    /// Task Management Function Request.
    TaskManagementRequest = 0x02,
    /// Login Request.
    LoginRequest = 0x03,
    /// Text Request.
    TextRequest = 0x04,
    /// SCSI Data-Out.
    DataOut = 0x05,
    /// Logout Request.
    LogoutRequest = 0x06,
    /// SNACK Request; ErrorRecoveryLevel 0 has none.
    SnackRequest = 0x10,
    /// NOP-In.
    NopIn = 0x20,
    /// SCSI Response.
    ScsiResponse = 0x21,
    /// Task Management Function Response.
    TaskManagementResponse = 0x22,
    /// Login Response.
    LoginResponse = 0x23,
    /// Text Response.
    TextResponse = 0x24,
    /// SCSI Data-In.
    DataIn = 0x25,
    /// Logout Response.
    LogoutResponse = 0x26,
    /// Ready To Transfer.
    ReadyToTransfer = 0x31,
    /// Asynchronous Message.
    AsyncMessage = 0x32,
    /// Reject.
    Reject = 0x3F,
}

impl Opcode {
    /// The operation of a header's first byte, whatever its immediate bit says.
    #[must_use]
    pub const fn of(first_byte: u8) -> Option<Self> {
        Some(match first_byte & 0x3F {
            0x00 => Self::NopOut,
            0x01 => Self::ScsiCommand,
            0x02 => Self::TaskManagementRequest,
            0x03 => Self::LoginRequest,
            0x04 => Self::TextRequest,
            0x05 => Self::DataOut,
            0x06 => Self::LogoutRequest,
            0x10 => Self::SnackRequest,
            0x20 => Self::NopIn,
            0x21 => Self::ScsiResponse,
            0x22 => Self::TaskManagementResponse,
            0x23 => Self::LoginResponse,
            0x24 => Self::TextResponse,
            0x25 => Self::DataIn,
            0x26 => Self::LogoutResponse,
            0x31 => Self::ReadyToTransfer,
            0x32 => Self::AsyncMessage,
            0x3F => Self::Reject,
            _ => return None,
        })
    }
}

/// The numbers that every PDU of the target carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Numbers {
    /// Status sequence number of the connection.
    pub stat_sn: StatSn,
    /// Next command number that the target expects.
    pub exp_cmd_sn: CmdSn,
    /// Highest command number that the target takes now.
    pub max_cmd_sn: CmdSn,
}

impl Numbers {
    fn parse(stat_sn: U32, exp_cmd_sn: U32, max_cmd_sn: U32) -> Self {
        Self {
            stat_sn: StatSn(stat_sn.get()),
            exp_cmd_sn: CmdSn(exp_cmd_sn.get()),
            max_cmd_sn: CmdSn(max_cmd_sn.get()),
        }
    }
}

/// Bytes of additional header segments that a header announces.
pub(crate) fn ahs_bytes(bhs: &Bhs) -> usize {
    usize::from(bhs[4]).saturating_mul(4)
}

/// Bytes of data segment that a header announces, without padding.
pub(crate) fn data_segment_length(bhs: &Bhs) -> u32 {
    from_u24([bhs[5], bhs[6], bhs[7]])
}

/// Overwrites the announced length of the data segment.
pub(crate) fn set_data_segment_length(bhs: &mut Bhs, length: u32) {
    [bhs[5], bhs[6], bhs[7]] = to_u24(length);
}

const fn from_u24([a, b, c]: [u8; 3]) -> u32 {
    u32::from_be_bytes([0, a, b, c])
}

const fn to_u24(value: u32) -> [u8; 3] {
    let [_, a, b, c] = value.to_be_bytes();
    [a, b, c]
}

const fn flag(set: bool, mask: u8) -> u8 {
    if set { mask } else { 0 }
}

fn required_itt(field: U32) -> Result<Itt, Violation> {
    Itt::from_wire(field.get()).ok_or(Violation::new(
        ViolationKind::InvalidField,
        "11.2.1.8 \"Initiator Task Tag\"",
        "the reserved task tag where a task must be named",
    ))
}

#[cfg(test)]
mod test;
