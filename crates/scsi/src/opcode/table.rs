//! The rows. One line says what of a CDB is evaluated, the next what it needs.
//!
//! Usage masks: fields that are ignored (GROUP NUMBER, FUA_NV, obsolete LBA of READ CAPACITY) and
//! fields that must be zero (RDPROTECT) are zero; the control byte has NACA, which is evaluated.

use super::{Accessible, Attention, Conflict, Opcode, Usage};
use crate::cdb::{self, CdbError, Command};

type Decode = fn(&[u8]) -> Result<Command, CdbError>;

/// The control byte: only NACA is evaluated.
const NACA: u8 = 0x04;

#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "evaluated at compile time, where a fault stops the build"
)]
const fn usage<const N: usize>(mask: [u8; N]) -> Usage {
    let mut bytes = [0; 16];
    let mut at = 0;
    while at < N {
        bytes[at] = mask[at];
        at += 1;
    }
    Usage {
        bytes,
        len: N as u8,
    }
}

/// A 6-byte CDB: bytes 1 to 4.
const fn u6(op: u8, [b1, b2, b3, b4]: [u8; 4]) -> Usage {
    usage([op, b1, b2, b3, b4, NACA])
}

/// A 10-byte CDB with the LBA in bytes 2 to 5 and the length in 7 and 8.
const fn u10(op: u8, b1: u8) -> Usage {
    usage([op, b1, 0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, NACA])
}

/// A 12-byte CDB with the LBA in bytes 2 to 5 and the length in 6 to 9.
const fn u12(op: u8, b1: u8) -> Usage {
    let f = 0xff;
    usage([op, b1, f, f, f, f, f, f, f, f, 0, NACA])
}

/// A 16-byte CDB with the LBA in bytes 2 to 9 and the length in 10 to 13.
const fn u16(op: u8, b1: u8) -> Usage {
    let f = 0xff;
    usage([op, b1, f, f, f, f, f, f, f, f, f, f, f, f, 0, NACA])
}

/// A command that reads the medium; the builder methods below say what differs.
const fn row(name: &'static str, usage: Usage, decode: Decode) -> Opcode {
    Opcode {
        opcode: usage.bytes[0],
        service_action: None,
        name,
        usage,
        conflict: Conflict::Reads,
        accessible: Accessible::Active,
        attention: Attention::Reports,
        needs_ready: true,
        writes_medium: false,
        timeout_seconds: 30,
        decode,
    }
}

impl Opcode {
    const fn action(mut self, service_action: u16) -> Self {
        self.service_action = Some(service_action);
        self
    }

    const fn writes(mut self) -> Self {
        self.conflict = Conflict::Writes;
        self.writes_medium = true;
        self
    }

    const fn conflict_class(mut self, conflict: Conflict) -> Self {
        self.conflict = conflict;
        self
    }

    /// Served while the unit is not ready.
    const fn unready(mut self) -> Self {
        self.needs_ready = false;
        self
    }

    const fn standby(mut self) -> Self {
        self.needs_ready = false;
        self.accessible = Accessible::Standby;
        self
    }

    const fn everywhere(mut self) -> Self {
        self.needs_ready = false;
        self.accessible = Accessible::Always;
        self
    }

    const fn attention(mut self, attention: Attention) -> Self {
        self.attention = attention;
        self
    }

    const fn seconds(mut self, timeout_seconds: u32) -> Self {
        self.timeout_seconds = timeout_seconds;
        self
    }
}

/// Every command, sorted by operation code and service action.
#[rustfmt::skip]
pub static TABLE: &[Opcode] = &ROWS;

#[rustfmt::skip]
const ROWS: [Opcode; 66] = [
    row("TEST UNIT READY", u6(0x00, [0, 0, 0, 0]), cdb::test_unit_ready)
        .conflict_class(Conflict::OnlySpc2),
    row("REQUEST SENSE", u6(0x03, [0x01, 0, 0, 0xff]), cdb::request_sense)
        .conflict_class(Conflict::Never).everywhere().attention(Attention::Returns),
    row("READ (6)", u6(0x08, [0x1f, 0xff, 0xff, 0xff]), cdb::read_6),
    row("WRITE (6)", u6(0x0a, [0x1f, 0xff, 0xff, 0xff]), cdb::write_6).writes(),
    row("INQUIRY", u6(0x12, [0x01, 0xff, 0xff, 0xff]), cdb::inquiry)
        .conflict_class(Conflict::Never).everywhere().attention(Attention::Ignores),
    row("MODE SELECT (6)", u6(0x15, [0x11, 0, 0, 0xff]), cdb::mode_select_6)
        .conflict_class(Conflict::Writes).standby(),
    row("RESERVE (6)", u6(0x16, [0, 0, 0, 0]), cdb::reserve_6)
        .conflict_class(Conflict::Spc2Reserve).unready(),
    row("RELEASE (6)", u6(0x17, [0, 0, 0, 0]), cdb::release_6)
        .conflict_class(Conflict::Spc2Reserve).unready(),
    row("MODE SENSE (6)", u6(0x1a, [0x08, 0xff, 0xff, 0xff]), cdb::mode_sense_6).standby(),
    row("START STOP UNIT", u6(0x1b, [0x01, 0, 0, 0xf7]), cdb::start_stop_unit)
        .conflict_class(Conflict::Writes).unready().seconds(60),
    row("RECEIVE DIAGNOSTIC RESULTS", u6(0x1c, [0x01, 0xff, 0xff, 0xff]), cdb::receive_diagnostic_results).standby(),
    row("SEND DIAGNOSTIC", u6(0x1d, [0x04, 0, 0xff, 0xff]), cdb::send_diagnostic)
        .conflict_class(Conflict::Writes).standby(),
    row("PREVENT ALLOW MEDIUM REMOVAL", u6(0x1e, [0, 0, 0, 0x03]), cdb::prevent_allow_medium_removal)
        .conflict_class(Conflict::Writes).unready(),
    row("READ CAPACITY (10)", usage([0x25, 0, 0, 0, 0, 0, 0, 0, 0, NACA]), cdb::read_capacity_10)
        .conflict_class(Conflict::Never),
    row("READ (10)", u10(0x28, 0x18), cdb::read_10),
    row("WRITE (10)", u10(0x2a, 0x18), cdb::write_10).writes(),
    row("WRITE AND VERIFY (10)", u10(0x2e, 0x16), cdb::write_and_verify_10).writes(),
    row("VERIFY (10)", u10(0x2f, 0x16), cdb::verify_10),
    row("PRE-FETCH (10)", u10(0x34, 0x02), cdb::pre_fetch_10),
    row("SYNCHRONIZE CACHE (10)", u10(0x35, 0x02), cdb::synchronize_cache_10)
        .conflict_class(Conflict::Writes).seconds(60),
    row("READ DEFECT DATA (10)", usage([0x37, 0, 0x1f, 0, 0, 0, 0, 0xff, 0xff, NACA]), cdb::read_defect_data_10),
    row("WRITE SAME (10)", u10(0x41, 0x18), cdb::write_same_10).writes().seconds(60),
    row("UNMAP", usage([0x42, 0x01, 0, 0, 0, 0, 0, 0xff, 0xff, NACA]), cdb::unmap).writes().seconds(60),
    row("LOG SENSE", usage([0x4d, 0x03, 0xff, 0xff, 0, 0xff, 0xff, 0xff, 0xff, NACA]), cdb::log_sense)
        .conflict_class(Conflict::Never).standby(),
    row("MODE SELECT (10)", usage([0x55, 0x11, 0, 0, 0, 0, 0, 0xff, 0xff, NACA]), cdb::mode_select_10)
        .conflict_class(Conflict::Writes).standby(),
    row("RESERVE (10)", usage([0x56, 0, 0, 0, 0, 0, 0, 0, 0, NACA]), cdb::reserve_10)
        .conflict_class(Conflict::Spc2Reserve).unready(),
    row("RELEASE (10)", usage([0x57, 0, 0, 0, 0, 0, 0, 0, 0, NACA]), cdb::release_10)
        .conflict_class(Conflict::Spc2Reserve).unready(),
    row("MODE SENSE (10)", usage([0x5a, 0x18, 0xff, 0xff, 0, 0, 0, 0xff, 0xff, NACA]), cdb::mode_sense_10)
        .standby(),
    pr_in("PERSISTENT RESERVE IN, READ KEYS", 0x00),
    pr_in("PERSISTENT RESERVE IN, READ RESERVATION", 0x01),
    pr_in("PERSISTENT RESERVE IN, REPORT CAPABILITIES", 0x02),
    pr_in("PERSISTENT RESERVE IN, READ FULL STATUS", 0x03),
    pr_out("PERSISTENT RESERVE OUT, REGISTER", 0x00, 0x00),
    pr_out("PERSISTENT RESERVE OUT, RESERVE", 0x01, 0xff),
    pr_out("PERSISTENT RESERVE OUT, RELEASE", 0x02, 0xff),
    pr_out("PERSISTENT RESERVE OUT, CLEAR", 0x03, 0x00),
    pr_out("PERSISTENT RESERVE OUT, PREEMPT", 0x04, 0xff),
    pr_out("PERSISTENT RESERVE OUT, PREEMPT AND ABORT", 0x05, 0xff),
    pr_out("PERSISTENT RESERVE OUT, REGISTER AND IGNORE EXISTING KEY", 0x06, 0x00),
    pr_out("PERSISTENT RESERVE OUT, REGISTER AND MOVE", 0x07, 0x00),
    row("EXTENDED COPY (LID1)", usage([0x83, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, NACA]), cdb::extended_copy)
        .action(0x00).writes().seconds(60),
    receive_copy("RECEIVE COPY RESULTS, COPY STATUS", 0x00, 0xff),
    receive_copy("RECEIVE COPY RESULTS, RECEIVE DATA", 0x01, 0xff),
    receive_copy("RECEIVE COPY RESULTS, OPERATING PARAMETERS", 0x03, 0x00),
    receive_copy("RECEIVE COPY RESULTS, FAILED SEGMENT DETAILS", 0x04, 0xff),
    row("READ (16)", u16(0x88, 0x18), cdb::read_16),
    row("COMPARE AND WRITE", usage([0x89, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0xff, 0, NACA]), cdb::compare_and_write).writes(),
    row("WRITE (16)", u16(0x8a, 0x18), cdb::write_16).writes(),
    row("ORWRITE (16)", u16(0x8b, 0x18), cdb::or_write).writes(),
    row("WRITE AND VERIFY (16)", u16(0x8e, 0x16), cdb::write_and_verify_16).writes(),
    row("VERIFY (16)", u16(0x8f, 0x16), cdb::verify_16),
    row("PRE-FETCH (16)", u16(0x90, 0x02), cdb::pre_fetch_16),
    row("SYNCHRONIZE CACHE (16)", u16(0x91, 0x02), cdb::synchronize_cache_16)
        .conflict_class(Conflict::Writes).seconds(60),
    row("WRITE SAME (16)", u16(0x93, 0x19), cdb::write_same_16).writes().seconds(60),
    row("WRITE ATOMIC (16)", u16(0x9c, 0x18), cdb::write_atomic_16).writes(),
    row("READ CAPACITY (16)", usage([0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, NACA]), cdb::read_capacity_16)
        .action(0x10).conflict_class(Conflict::Never),
    row("GET LBA STATUS (16)", u16(0x9e, 0x12), cdb::get_lba_status).action(0x12),
    row("REPORT LUNS", usage([0xa0, 0, 0xff, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, NACA]), cdb::report_luns)
        .conflict_class(Conflict::Never).everywhere().attention(Attention::Ignores),
    row("REPORT TARGET PORT GROUPS", usage([0xa3, 0xea, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, NACA]), cdb::report_target_port_groups)
        .action(0x0a).conflict_class(Conflict::OnlySpc2).everywhere(),
    row("REPORT SUPPORTED OPERATION CODES", usage([0xa3, 0x0c, 0x87, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, NACA]), cdb::report_supported_operation_codes)
        .action(0x0c).standby(),
    row("REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS", usage([0xa3, 0x0d, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, NACA]), cdb::report_supported_task_management_functions)
        .action(0x0d).standby(),
    row("READ (12)", u12(0xa8, 0x18), cdb::read_12),
    row("WRITE (12)", u12(0xaa, 0x18), cdb::write_12).writes(),
    row("WRITE AND VERIFY (12)", u12(0xae, 0x16), cdb::write_and_verify_12).writes(),
    row("VERIFY (12)", u12(0xaf, 0x16), cdb::verify_12),
    row("READ DEFECT DATA (12)", usage([0xb7, 0x1f, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, NACA]), cdb::read_defect_data_12),
];

#[rustfmt::skip]
const fn pr_in(name: &'static str, action: u8) -> Opcode {
    row(name, usage([0x5e, action, 0, 0, 0, 0, 0, 0xff, 0xff, NACA]), cdb::persistent_reserve_in)
        .action(action as u16).conflict_class(Conflict::PersistentReserve).standby()
}

#[rustfmt::skip]
const fn pr_out(name: &'static str, action: u8, scope_and_type: u8) -> Opcode {
    row(name, usage([0x5f, action, scope_and_type, 0, 0, 0xff, 0xff, 0xff, 0xff, NACA]), cdb::persistent_reserve_out)
        .action(action as u16).conflict_class(Conflict::PersistentReserve).standby()
}

#[rustfmt::skip]
const fn receive_copy(name: &'static str, action: u8, list_identifier: u8) -> Opcode {
    row(name, usage([0x84, action, list_identifier, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, NACA]), cdb::receive_copy_results)
        .action(action as u16).conflict_class(Conflict::Writes).unready()
}
