//! Commands on the state of the unit or its medium that carry no user data.
//!
//! Spec: SBC-3 5.5 "GET LBA STATUS", 5.7 and 5.8 "PRE-FETCH", 5.13 "PREVENT ALLOW MEDIUM REMOVAL",
//! 5.15 and 5.16 "READ CAPACITY", 5.17 and 5.18 "READ DEFECT DATA", 5.24 "START STOP UNIT", 5.25
//! and 5.26 "SYNCHRONIZE CACHE", 5.27 "UNMAP"; SPC-4 6.47 "TEST UNIT READY", 6.28 "RECEIVE
//! DIAGNOSTIC RESULTS", 6.42 "SEND DIAGNOSTIC".

use super::raw::{Raw6, Raw10, Raw12, Raw16, view};
use super::{BlockRange, CdbError, Command};
use crate::bytes::is_set;

/// READ DEFECT DATA: which lists, in which form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DefectList {
    /// REQ_PLIST.
    pub primary: bool,
    /// REQ_GLIST.
    pub grown: bool,
    /// DEFECT LIST FORMAT.
    pub format: u8,
    /// ALLOCATION LENGTH in bytes.
    pub allocation_length: u32,
}

/// START STOP UNIT.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StartStop {
    /// IMMED: answer before it is done.
    pub immediate: bool,
    /// POWER CONDITION; zero means that START and LOEJ count.
    pub power_condition: u8,
    /// NO_FLUSH: do not write the cache first.
    pub no_flush: bool,
    /// LOEJ.
    pub load_eject: bool,
    /// The medium shall be ready; else it shall be stopped.
    pub start: bool,
}

impl StartStop {
    /// The medium is left: to the stopped power condition, or to idle or standby. Caches are
    /// written first (SBC-3 5.25 "START STOP UNIT command", NO_FLUSH).
    #[must_use]
    pub const fn flushes(&self) -> bool {
        let leaves = match self.power_condition {
            0 => !self.start,
            // 1h active, 7h LU_CONTROL.
            1 | 7 => false,
            _ => true,
        };
        leaves && !self.no_flush
    }
}

pub(crate) fn test_unit_ready(_cdb: &[u8]) -> Result<Command, CdbError> {
    Ok(Command::TestUnitReady)
}

pub(crate) fn start_stop_unit(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw6 = view(cdb)?;
    Ok(Command::StartStopUnit(StartStop {
        immediate: is_set(raw.byte1, 0),
        power_condition: raw.byte4 >> 4,
        no_flush: is_set(raw.byte4, 2),
        load_eject: is_set(raw.byte4, 1),
        start: is_set(raw.byte4, 0),
    }))
}

pub(crate) fn prevent_allow_medium_removal(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw6 = view(cdb)?;
    match raw.byte4 & 0x03 {
        0 => Ok(Command::PreventAllowMediumRemoval { prevent: false }),
        1 => Ok(Command::PreventAllowMediumRemoval { prevent: true }),
        // 10b and 11b are obsolete.
        _ => Err(CdbError::field(4, 1)),
    }
}

pub(crate) fn receive_diagnostic_results(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw6 = view(cdb)?;
    let page_code_valid = is_set(raw.byte1, 0);
    Ok(Command::ReceiveDiagnosticResults {
        page: page_code_valid.then_some(raw.byte2),
        allocation_length: u16::from_be_bytes([raw.byte3, raw.byte4]),
    })
}

/// Only the default self-test: no pages, no background tests.
pub(crate) fn send_diagnostic(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw6 = view(cdb)?;
    if raw.byte1 & 0xe0 != 0 {
        return Err(CdbError::field(1, 7));
    }
    let parameter_list_length = u16::from_be_bytes([raw.byte3, raw.byte4]);
    if parameter_list_length != 0 {
        return Err(CdbError::bytes(3));
    }
    Ok(Command::SendDiagnostic {
        self_test: is_set(raw.byte1, 2),
        parameter_list_length,
    })
}

fn range_10(cdb: &[u8]) -> Result<(BlockRange, bool), CdbError> {
    let raw: &Raw10 = view(cdb)?;
    let range = BlockRange::new(
        raw.logical_block_address.get().into(),
        raw.length.get().into(),
    );
    Ok((range, is_set(raw.byte1, 1)))
}

fn range_16(cdb: &[u8]) -> Result<(BlockRange, bool), CdbError> {
    let raw: &Raw16 = view(cdb)?;
    let range = BlockRange::new(raw.logical_block_address.get(), raw.length.get().into());
    Ok((range, is_set(raw.byte1, 1)))
}

pub(crate) fn synchronize_cache_10(cdb: &[u8]) -> Result<Command, CdbError> {
    let (range, immediate) = range_10(cdb)?;
    Ok(Command::SynchronizeCache { range, immediate })
}

pub(crate) fn synchronize_cache_16(cdb: &[u8]) -> Result<Command, CdbError> {
    let (range, immediate) = range_16(cdb)?;
    Ok(Command::SynchronizeCache { range, immediate })
}

pub(crate) fn pre_fetch_10(cdb: &[u8]) -> Result<Command, CdbError> {
    let (range, immediate) = range_10(cdb)?;
    Ok(Command::PreFetch { range, immediate })
}

pub(crate) fn pre_fetch_16(cdb: &[u8]) -> Result<Command, CdbError> {
    let (range, immediate) = range_16(cdb)?;
    Ok(Command::PreFetch { range, immediate })
}

/// LOGICAL BLOCK ADDRESS and PMI are obsolete and ignored.
pub(crate) fn read_capacity_10(_cdb: &[u8]) -> Result<Command, CdbError> {
    Ok(Command::ReadCapacity10)
}

pub(crate) fn read_capacity_16(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw16 = view(cdb)?;
    Ok(Command::ReadCapacity16 {
        allocation_length: raw.length.get(),
    })
}

pub(crate) fn get_lba_status(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw16 = view(cdb)?;
    Ok(Command::GetLbaStatus {
        starting_lba: raw.logical_block_address.get(),
        allocation_length: raw.length.get(),
    })
}

fn defect_list(byte: u8, allocation_length: u32) -> DefectList {
    DefectList {
        primary: is_set(byte, 4),
        grown: is_set(byte, 3),
        format: byte & 0x07,
        allocation_length,
    }
}

pub(crate) fn read_defect_data_10(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw10 = view(cdb)?;
    let [byte2, ..] = raw.logical_block_address.get().to_be_bytes();
    let list = defect_list(byte2, raw.length.get().into());
    Ok(Command::ReadDefectData10(list))
}

pub(crate) fn read_defect_data_12(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw12 = view(cdb)?;
    let list = defect_list(raw.byte1, raw.length.get());
    Ok(Command::ReadDefectData12(list))
}

pub(crate) fn unmap(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw10 = view(cdb)?;
    Ok(Command::Unmap {
        anchor: is_set(raw.byte1, 0),
        parameter_list_length: raw.length.get(),
    })
}
