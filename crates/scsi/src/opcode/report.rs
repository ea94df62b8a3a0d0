//! REPORT SUPPORTED OPERATION CODES parameter data, generated from the table.
//!
//! Spec: SPC-4 6.35 "REPORT SUPPORTED OPERATION CODES command".

use alloc::vec::Vec;

use super::{Opcode, TABLE, rows};
use crate::bytes::Writer;
use crate::cdb::{CdbError, ReportedCommands};

/// The parameter data, before it is cut to the allocation length. `supported` says which rows this
/// logical unit has (for example UNMAP only on a thin one); it must be what dispatch asks too.
///
/// # Errors
/// INVALID FIELD IN CDB where a service action is named for an operation code without them, or the
/// reverse.
pub fn report_supported_operation_codes(
    which: ReportedCommands,
    timeouts: bool,
    supported: impl Fn(&Opcode) -> bool,
) -> Result<Vec<u8>, CdbError> {
    match which {
        ReportedCommands::All => Ok(all_commands(timeouts, supported)),
        ReportedCommands::Opcode { opcode } => {
            let row = rows(opcode).first();
            // spec: 001b with an operation code that has service actions: INVALID FIELD IN CDB.
            if row.is_some_and(|row| row.service_action.is_some()) {
                return Err(CdbError::field(2, 2));
            }
            Ok(one_command(row.filter(|row| supported(row)), timeouts))
        }
        ReportedCommands::ServiceAction {
            opcode,
            service_action,
        } => {
            let rows = rows(opcode);
            // spec: 010b with an operation code that has none: INVALID FIELD IN CDB.
            if rows.first().is_some_and(|row| row.service_action.is_none()) {
                return Err(CdbError::field(2, 2));
            }
            let row = rows
                .iter()
                .find(|row| row.service_action == Some(service_action));
            Ok(one_command(row.filter(|row| supported(row)), timeouts))
        }
        ReportedCommands::Either {
            opcode,
            service_action,
        } => {
            // spec: 011b: without service actions the requested one has to be zero.
            let row = rows(opcode)
                .iter()
                .find(|row| row.service_action.unwrap_or(0) == service_action);
            Ok(one_command(row.filter(|row| supported(row)), timeouts))
        }
    }
}

fn timeouts_descriptor(out: &mut Writer, row: &Opcode) {
    // DESCRIPTOR LENGTH, reserved, command specific, nominal (zero: not given), recommended.
    out.be16(0x000a).u8(0).u8(0);
    out.be32(0).be32(row.timeout_seconds);
}

fn all_commands(timeouts: bool, supported: impl Fn(&Opcode) -> bool) -> Vec<u8> {
    let mut out = Writer::new();
    out.counted32(|out| {
        for row in TABLE.iter().filter(|row| supported(row)) {
            out.u8(row.opcode).u8(0);
            out.be16(row.service_action.unwrap_or(0)).u8(0);
            let action = u8::from(row.service_action.is_some());
            out.u8(action | if timeouts { 0x02 } else { 0 });
            out.be16(u16::try_from(row.cdb_length()).unwrap_or(0));
            if timeouts {
                timeouts_descriptor(out, row);
            }
        }
    });
    out.finish()
}

fn one_command(row: Option<&Opcode>, timeouts: bool) -> Vec<u8> {
    let mut out = Writer::new();
    let Some(row) = row else {
        // SUPPORT 001b: not supported, no usage data, no timeouts.
        out.u8(0).u8(0x01).be16(0);
        return out.finish();
    };
    // CTDP and SUPPORT 011b: supported as the standard has it.
    out.u8(0).u8(if timeouts { 0x83 } else { 0x03 });
    out.counted16(|out| {
        out.bytes(row.usage.bytes());
    });
    if timeouts {
        timeouts_descriptor(&mut out, row);
    }
    out.finish()
}
