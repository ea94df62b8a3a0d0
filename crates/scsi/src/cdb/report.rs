//! REPORT LUNS and the reports of MAINTENANCE IN.
//!
//! Spec: SPC-4 6.33 "REPORT LUNS", 6.35 "REPORT SUPPORTED OPERATION CODES", 6.36 "REPORT SUPPORTED
//! TASK MANAGEMENT FUNCTIONS", 6.37 "REPORT TARGET PORT GROUPS".

use super::raw::{Raw12, view};
use super::{CdbError, Command};
use crate::bytes::is_set;

/// Which logical units an initiator wants to see (SPC-4 6.33).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReportLunsSelect {
    /// 00h: logical units with peripheral, flat or logical unit addressing.
    Addressable,
    /// 01h: well-known logical units only.
    WellKnown,
    /// 02h: all.
    All,
    /// 10h: administrative logical units; we have none.
    Administrative,
    /// 11h: like 10h with all of their subsidiaries; we have none.
    AllAdministrative,
    /// 12h: subsidiaries of the addressed one; we have none.
    Subsidiary,
}

/// REPORTING OPTIONS of REPORT SUPPORTED OPERATION CODES.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReportedCommands {
    /// 000b: all.
    All,
    /// 001b: one operation code that has no service actions.
    Opcode {
        /// REQUESTED OPERATION CODE.
        opcode: u8,
    },
    /// 010b: one service action of an operation code that has them.
    ServiceAction {
        /// REQUESTED OPERATION CODE.
        opcode: u8,
        /// REQUESTED SERVICE ACTION.
        service_action: u16,
    },
    /// 011b: one command, service action or not.
    Either {
        /// REQUESTED OPERATION CODE.
        opcode: u8,
        /// REQUESTED SERVICE ACTION.
        service_action: u16,
    },
}

pub(crate) fn report_luns(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw12 = view(cdb)?;
    let [select, ..] = raw.logical_block_address.get().to_be_bytes();
    let select = match select {
        0x00 => ReportLunsSelect::Addressable,
        0x01 => ReportLunsSelect::WellKnown,
        0x02 => ReportLunsSelect::All,
        0x10 => ReportLunsSelect::Administrative,
        0x11 => ReportLunsSelect::AllAdministrative,
        0x12 => ReportLunsSelect::Subsidiary,
        _ => return Err(CdbError::bytes(2)),
    };
    Ok(Command::ReportLuns {
        select,
        allocation_length: raw.length.get(),
    })
}

pub(crate) fn report_target_port_groups(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw12 = view(cdb)?;
    let extended = match raw.byte1 >> 5 {
        0 => false,
        1 => true,
        _ => return Err(CdbError::field(1, 7)),
    };
    Ok(Command::ReportTargetPortGroups {
        extended,
        allocation_length: raw.length.get(),
    })
}

pub(crate) fn report_supported_operation_codes(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw12 = view(cdb)?;
    let [byte2, opcode, high, low] = raw.logical_block_address.get().to_be_bytes();
    let service_action = u16::from_be_bytes([high, low]);
    let which = match byte2 & 0x07 {
        0 => ReportedCommands::All,
        1 => ReportedCommands::Opcode { opcode },
        2 => ReportedCommands::ServiceAction {
            opcode,
            service_action,
        },
        3 => ReportedCommands::Either {
            opcode,
            service_action,
        },
        _ => return Err(CdbError::field(2, 2)),
    };
    Ok(Command::ReportSupportedOperationCodes {
        which,
        timeouts: is_set(byte2, 7),
        allocation_length: raw.length.get(),
    })
}

pub(crate) fn report_supported_task_management_functions(cdb: &[u8]) -> Result<Command, CdbError> {
    let raw: &Raw12 = view(cdb)?;
    let [byte2, ..] = raw.logical_block_address.get().to_be_bytes();
    Ok(Command::ReportSupportedTaskManagementFunctions {
        extended: is_set(byte2, 7),
        allocation_length: raw.length.get(),
    })
}
