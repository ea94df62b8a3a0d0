//! MODE SENSE, MODE SELECT, LOG SENSE.
//!
//! Spec: SPC-4 6.8 to 6.11 "MODE SELECT", "MODE SENSE", 6.13 "LOG SENSE".

use super::raw::{Raw6, Raw10, view};
use super::{CdbError, Command};
use crate::bytes::is_set;

/// Which of the two forms of MODE SENSE or MODE SELECT.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ModeForm {
    /// 6-byte CDB, 4-byte header.
    Six,
    /// 10-byte CDB, 8-byte header.
    Ten,
}

/// PAGE CONTROL of MODE SENSE and LOG SENSE.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PageControl {
    /// 00b: current values (LOG SENSE: threshold values).
    Current,
    /// 01b: what MODE SELECT may change (LOG SENSE: cumulative values).
    Changeable,
    /// 10b: default values (LOG SENSE: default threshold values).
    Default,
    /// 11b: saved values (LOG SENSE: default cumulative values).
    Saved,
}

impl PageControl {
    const fn from_bits(byte2: u8) -> Self {
        match byte2 >> 6 {
            0 => Self::Current,
            1 => Self::Changeable,
            2 => Self::Default,
            _ => Self::Saved,
        }
    }
}

/// MODE SENSE (6), (10).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ModeSense {
    /// The command of 6 bytes or the one of 10.
    pub form: ModeForm,
    /// DBD: no block descriptor.
    pub disable_block_descriptors: bool,
    /// LLBAA: a long block descriptor is acceptable (only in the 10-byte form).
    pub long_lba_accepted: bool,
    /// PC.
    pub page_control: PageControl,
    /// PAGE CODE; 3Fh means all.
    pub page: u8,
    /// SUBPAGE CODE; FFh means all.
    pub subpage: u8,
    /// ALLOCATION LENGTH in bytes.
    pub allocation_length: u16,
}

/// MODE SELECT (6), (10).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ModeSelect {
    /// The command of 6 bytes or the one of 10.
    pub form: ModeForm,
    /// PF: the parameters are pages of the standard.
    pub page_format: bool,
    /// SP: keep them through power loss.
    pub save_pages: bool,
    /// PARAMETER LIST LENGTH in bytes.
    pub parameter_list_length: u16,
}

/// Asks for a log page (SPC-4 6.8).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LogSense {
    /// PC.
    pub page_control: PageControl,
    /// PAGE CODE.
    pub page: u8,
    /// SUBPAGE CODE.
    pub subpage: u8,
    /// PARAMETER POINTER: start with this parameter.
    pub parameter_pointer: u16,
    /// ALLOCATION LENGTH in bytes.
    pub allocation_length: u16,
}

pub(crate) fn mode_sense_6(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw6 = view(cdb)?;
    Ok(Command::ModeSense(ModeSense {
        form: ModeForm::Six,
        disable_block_descriptors: is_set(raw.byte1, 3),
        long_lba_accepted: false,
        page_control: PageControl::from_bits(raw.byte2),
        page: raw.byte2 & 0x3f,
        subpage: raw.byte3,
        allocation_length: raw.byte4.into(),
    }))
}

pub(crate) fn mode_sense_10(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw10 = view(cdb)?;
    let [byte2, subpage, ..] = raw.logical_block_address.get().to_be_bytes();
    Ok(Command::ModeSense(ModeSense {
        form: ModeForm::Ten,
        disable_block_descriptors: is_set(raw.byte1, 3),
        long_lba_accepted: is_set(raw.byte1, 4),
        page_control: PageControl::from_bits(byte2),
        page: byte2 & 0x3f,
        subpage,
        allocation_length: raw.length.get(),
    }))
}

pub(crate) fn mode_select_6(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw6 = view(cdb)?;
    mode_select(ModeForm::Six, raw.byte1, raw.byte4.into())
}

pub(crate) fn mode_select_10(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw10 = view(cdb)?;
    mode_select(ModeForm::Ten, raw.byte1, raw.length.get())
}

fn mode_select(form: ModeForm, byte1: u8, parameter_list_length: u16) -> Result<Command, CdbError> {
    // RTD would revert to defaults; page B0h and extended INQUIRY data do not announce it.
    if is_set(byte1, 1) {
        return Err(CdbError::field(1, 1));
    }
    // spec: SPC-4 6.11 "MODE SELECT (6)": PF zero means vendor specific parameters, which we have
    // not.
    if !is_set(byte1, 4) && parameter_list_length != 0 {
        return Err(CdbError::field(1, 4));
    }
    Ok(Command::ModeSelect(ModeSelect {
        form,
        page_format: is_set(byte1, 4),
        save_pages: is_set(byte1, 0),
        parameter_list_length,
    }))
}

pub(crate) fn log_sense(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw10 = view(cdb)?;
    // SP asks to save log parameters, PPC (obsolete) for changed ones only: neither is kept.
    if is_set(raw.byte1, 0) {
        return Err(CdbError::field(1, 0));
    }
    if is_set(raw.byte1, 1) {
        return Err(CdbError::field(1, 1));
    }
    let [byte2, subpage, _, pointer_high] = raw.logical_block_address.get().to_be_bytes();
    Ok(Command::LogSense(LogSense {
        page_control: PageControl::from_bits(byte2),
        page: byte2 & 0x3f,
        subpage,
        parameter_pointer: u16::from_be_bytes([pointer_high, raw.byte6]),
        allocation_length: raw.length.get(),
    }))
}
