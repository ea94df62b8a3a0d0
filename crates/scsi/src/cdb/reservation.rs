//! PERSISTENT RESERVE IN and OUT, RESERVE and RELEASE.
//!
//! Spec: SPC-4 6.15 "PERSISTENT RESERVE IN command", 6.16 "PERSISTENT RESERVE OUT command"; SPC-2
//! 7.20 and 7.21 "RESERVE", 7.16 and 7.17 "RELEASE".

use super::raw::{Raw6, Raw10, view};
use super::{CdbError, Command};

/// Service actions of PERSISTENT RESERVE IN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PrInAction {
    /// 00h READ KEYS.
    ReadKeys,
    /// 01h READ RESERVATION.
    ReadReservation,
    /// 02h REPORT CAPABILITIES.
    ReportCapabilities,
    /// 03h READ FULL STATUS.
    ReadFullStatus,
}

/// Service actions of PERSISTENT RESERVE OUT.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PrOutAction {
    /// 00h REGISTER.
    Register,
    /// 01h RESERVE.
    Reserve,
    /// 02h RELEASE.
    Release,
    /// 03h CLEAR.
    Clear,
    /// 04h PREEMPT.
    Preempt,
    /// 05h PREEMPT AND ABORT.
    PreemptAndAbort,
    /// 06h REGISTER AND IGNORE EXISTING KEY.
    RegisterAndIgnoreExistingKey,
    /// 07h REGISTER AND MOVE.
    RegisterAndMove,
}

/// The CDB of PERSISTENT RESERVE OUT.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PrOut {
    /// SERVICE ACTION.
    pub action: PrOutAction,
    /// SCOPE as sent; zero for actions that ignore it.
    pub scope: u8,
    /// TYPE as sent; zero for actions that ignore it.
    pub kind: u8,
    /// PARAMETER LIST LENGTH in bytes.
    pub parameter_list_length: u32,
}

pub(crate) fn persistent_reserve_in(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw10 = view(cdb)?;
    let action = match raw.byte1 & 0x1f {
        0x00 => PrInAction::ReadKeys,
        0x01 => PrInAction::ReadReservation,
        0x02 => PrInAction::ReportCapabilities,
        0x03 => PrInAction::ReadFullStatus,
        _ => return Err(CdbError::field(1, 4)),
    };
    Ok(Command::PersistentReserveIn {
        action,
        allocation_length: raw.length.get(),
    })
}

pub(crate) fn persistent_reserve_out(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw10 = view(cdb)?;
    let action = match raw.byte1 & 0x1f {
        0x00 => PrOutAction::Register,
        0x01 => PrOutAction::Reserve,
        0x02 => PrOutAction::Release,
        0x03 => PrOutAction::Clear,
        0x04 => PrOutAction::Preempt,
        0x05 => PrOutAction::PreemptAndAbort,
        0x06 => PrOutAction::RegisterAndIgnoreExistingKey,
        0x07 => PrOutAction::RegisterAndMove,
        _ => return Err(CdbError::field(1, 4)),
    };
    let [byte2, _, _, b5] = raw.logical_block_address.get().to_be_bytes();
    let [b7, b8] = raw.length.get().to_be_bytes();
    // spec: SPC-4 6.16.2: SCOPE and TYPE are ignored for these; a move keeps those that are held.
    let ignored = matches!(
        action,
        PrOutAction::Register
            | PrOutAction::Clear
            | PrOutAction::RegisterAndIgnoreExistingKey
            | PrOutAction::RegisterAndMove
    );
    let scope_and_type = if ignored { 0 } else { byte2 };
    Ok(Command::PersistentReserveOut(PrOut {
        action,
        scope: scope_and_type >> 4,
        kind: scope_and_type & 0x0f,
        parameter_list_length: u32::from_be_bytes([b5, raw.byte6, b7, b8]),
    }))
}

/// Third-party and extent reservations are obsolete since SPC-2 and never were ours.
const fn whole_unit(byte1: u8, command: Command) -> Result<Command, CdbError> {
    if byte1 & 0x10 != 0 {
        return Err(CdbError::field(1, 4));
    }
    if byte1 & 0x01 != 0 {
        return Err(CdbError::field(1, 0));
    }
    Ok(command)
}

pub(crate) fn reserve_6(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw6 = view(cdb)?;
    whole_unit(raw.byte1, Command::Reserve)
}

pub(crate) fn release_6(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw6 = view(cdb)?;
    whole_unit(raw.byte1, Command::Release)
}

pub(crate) fn reserve_10(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw10 = view(cdb)?;
    whole_unit(raw.byte1, Command::Reserve)
}

pub(crate) fn release_10(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw10 = view(cdb)?;
    whole_unit(raw.byte1, Command::Release)
}
