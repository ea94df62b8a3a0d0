//! The table, the parser and the report are one thing.

use super::*;
use crate::cdb::ReportedCommands;
use std::vec::Vec;

#[test]
fn every_row_is_found_by_its_own_usage_mask_and_decodes_a_zero_cdb() {
    for row in TABLE {
        let mut cdb = [0u8; 16];
        cdb[0] = row.opcode;
        cdb[1] = row
            .service_action
            .map_or(0, |action| u8::try_from(action).unwrap());
        let found = lookup(&cdb).unwrap();
        assert_eq!(found.name, row.name);
        assert_eq!(row.usage.bytes()[0], row.opcode);
        assert_eq!(row.usage.bytes().len(), row.cdb_length());
        assert!((row.decode)(&cdb).is_ok(), "{}", row.name);
        for short in 1..row.cdb_length() {
            assert_eq!(
                Command::parse(&cdb[..short]),
                Err(CdbError::Truncated),
                "{}",
                row.name
            );
        }
    }
}

#[test]
fn cdb_lengths_follow_the_group_of_the_operation_code() {
    for row in TABLE {
        let expected = match row.opcode >> 5 {
            0 => 6,
            1 | 2 => 10,
            4 => 16,
            5 => 12,
            group => panic!("group {group}"),
        };
        assert_eq!(row.cdb_length(), expected, "{}", row.name);
    }
}

#[test]
fn a_bit_outside_the_usage_mask_changes_nothing_or_is_refused() {
    for row in TABLE {
        let mut cdb = [0u8; 16];
        cdb[0] = row.opcode;
        cdb[1] = row
            .service_action
            .map_or(0, |action| u8::try_from(action).unwrap());
        let plain = Command::parse(&cdb).unwrap();
        for (byte, mask) in row.usage.bytes().iter().enumerate().skip(1) {
            for bit in 0..8 {
                let service_action_bits = byte == 1 && row.service_action.is_some() && bit < 5;
                if mask & (1 << bit) != 0 || service_action_bits {
                    continue;
                }
                let mut changed = cdb;
                changed[byte] |= 1 << bit;
                if let Ok(command) = Command::parse(&changed) {
                    assert_eq!(command, plain, "{} byte {byte} bit {bit}", row.name);
                }
            }
        }
    }
}

/// Some fields only matter together with another one: the CDB with that one set.
fn with_company(row: &Opcode, mut cdb: [u8; 16], byte: usize) -> [u8; 16] {
    match row.name {
        "WRITE SAME (10)" | "WRITE SAME (16)" => cdb[1] |= 0x08,
        "REPORT SUPPORTED OPERATION CODES" if byte > 2 => cdb[2] |= 0x03,
        "INQUIRY" | "RECEIVE DIAGNOSTIC RESULTS" if byte > 1 => cdb[1] |= 0x01,
        "MODE SELECT (6)" | "MODE SELECT (10)" if byte == 1 => cdb[4] |= 0x01,
        _ => {}
    }
    cdb
}

#[test]
fn a_bit_inside_the_usage_mask_matters_or_is_refused() {
    for row in TABLE {
        let action = row
            .service_action
            .map(|action| u8::try_from(action).unwrap());
        let mut base = [0u8; 16];
        base[0] = row.opcode;
        base[1] = action.unwrap_or(0);
        for (byte, mask) in row.usage.bytes().iter().enumerate().skip(1) {
            for bit in (0..8).filter(|bit| mask & (1 << bit) != 0) {
                if byte == 1 && action.is_some() && bit < 5 {
                    continue;
                }
                let matters = [base, with_company(row, base, byte)].iter().any(|cdb| {
                    let mut flipped = *cdb;
                    flipped[byte] ^= 1 << bit;
                    Command::parse(cdb) != Command::parse(&flipped)
                });
                assert!(matters, "{} byte {byte} bit {bit}", row.name);
            }
        }
    }
}

fn descriptors(timeouts: bool) -> Vec<(u8, u16, u8, u16)> {
    let data = report_supported_operation_codes(ReportedCommands::All, timeouts, |_| true).unwrap();
    let length = u32::from_be_bytes(data[..4].try_into().unwrap()) as usize;
    assert_eq!(length, data.len() - 4);
    data[4..]
        .chunks_exact(if timeouts { 20 } else { 8 })
        .map(|d| {
            if timeouts {
                assert_eq!(d[8..10], [0, 10]);
            }
            let action = u16::from_be_bytes([d[2], d[3]]);
            (d[0], action, d[5], u16::from_be_bytes([d[6], d[7]]))
        })
        .collect()
}

#[test]
fn the_report_of_all_commands_lists_every_row_once() {
    for timeouts in [false, true] {
        let listed = descriptors(timeouts);
        assert_eq!(listed.len(), TABLE.len());
        for (row, (opcode, action, flags, length)) in TABLE.iter().zip(listed) {
            assert_eq!(row.opcode, opcode);
            assert_eq!(row.service_action.unwrap_or(0), action);
            assert_eq!(flags & 1 == 1, row.service_action.is_some());
            assert_eq!(flags & 2 == 2, timeouts);
            assert_eq!(usize::from(length), row.cdb_length());
        }
    }
}

#[test]
fn one_command_is_reported_with_its_usage_mask_and_only_in_the_right_format() {
    for row in TABLE {
        let opcode = row.opcode;
        let service_action = row.service_action.unwrap_or(0);
        let plain = ReportedCommands::Opcode { opcode };
        let acted = ReportedCommands::ServiceAction {
            opcode,
            service_action,
        };
        let either = ReportedCommands::Either {
            opcode,
            service_action,
        };
        let ask = |which| report_supported_operation_codes(which, false, |_| true);
        let (right, wrong) = if row.service_action.is_some() {
            (ask(acted), ask(plain))
        } else {
            (ask(plain), ask(acted))
        };
        assert_eq!(wrong, Err(CdbError::field(2, 2)), "{}", row.name);
        let data = right.unwrap();
        assert_eq!(data[1], 0x03);
        assert_eq!(usize::from(data[3]), row.cdb_length());
        assert_eq!(&data[4..], row.usage.bytes());
        assert_eq!(ask(either).unwrap(), data);
        let hidden = report_supported_operation_codes(either, false, |_| false).unwrap();
        assert_eq!(hidden, [0, 1, 0, 0]);
        let timed = report_supported_operation_codes(either, true, |_| true).unwrap();
        assert_eq!(timed[1], 0x83);
        assert_eq!(timed.len(), data.len() + 12);
    }
}

#[test]
fn an_unknown_operation_code_is_reported_as_not_supported() {
    let which = ReportedCommands::Opcode { opcode: 0xff };
    assert_eq!(
        report_supported_operation_codes(which, false, |_| true).unwrap(),
        [0, 1, 0, 0]
    );
}
