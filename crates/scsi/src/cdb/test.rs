//! Golden CDBs and the rules for fields that are refused.

use super::*;
use proptest::prelude::*;
use units::{BlockCount, BlockSize, ByteCount, Lba};

fn parse(bytes: &[u8]) -> Result<Command, CdbError> {
    let mut cdb = [0u8; 16];
    cdb[..bytes.len()].copy_from_slice(bytes);
    Command::parse(&cdb)
}

fn blocks(lba: u64, blocks: u64) -> BlockRange {
    BlockRange {
        lba: Lba(lba),
        blocks: BlockCount(blocks),
        fua: false,
        dpo: false,
    }
}

// spec: SBC-3 5.9 "READ (6) command", 5.10 "READ (10) command".
#[test]
fn read_and_write_of_every_length_name_their_blocks() {
    let cases: [(&[u8], BlockRange); 8] = [
        (&[0x08, 0xff, 2, 3, 4, 0], blocks(0x1f_0203, 4)),
        (&[0x08, 0, 0, 9, 0, 0], blocks(9, 256)),
        (&[0x0a, 0, 0, 9, 0, 0], blocks(9, 256)),
        (
            &[0x28, 0, 1, 2, 3, 4, 0x1f, 5, 6, 0],
            blocks(0x0102_0304, 0x0506),
        ),
        (&[0x28, 0, 0, 0, 0, 1, 0, 0, 0, 0], blocks(1, 0)),
        (
            &[0xa8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0],
            blocks(0x0102_0304, 0x0506_0708),
        ),
        (
            &[0x88, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0],
            blocks(0x0102_0304_0506_0708, 0x090a_0b0c),
        ),
        (
            &[0x8a, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0],
            blocks(0x0102_0304_0506_0708, 0x090a_0b0c),
        ),
    ];
    for (cdb, expected) in cases {
        assert_eq!(parse(cdb).unwrap().blocks().unwrap().0, expected);
    }
}

// spec: SBC-3 5.10 "READ (10) command".
#[test]
fn fua_and_dpo_are_seen_and_fua_nv_is_ignored() {
    for opcode in [0x28, 0x2a, 0xa8, 0xaa, 0x88, 0x8a, 0x8b, 0x89, 0x9c] {
        for byte1 in 0..0x20u8 {
            let (range, _) = parse(&[opcode, byte1]).unwrap().blocks().unwrap();
            assert_eq!(range.fua, byte1 & 0x08 != 0);
            assert_eq!(range.dpo, byte1 & 0x10 != 0);
        }
    }
}

#[test]
fn protection_fields_that_are_not_zero_are_invalid_fields() {
    let protected = [
        0x28, 0x2a, 0x2e, 0x2f, 0xa8, 0xaa, 0xae, 0xaf, 0x88, 0x8a, 0x8b, 0x89, 0x8e, 0x8f, 0x41,
        0x93, 0x9c,
    ];
    for opcode in protected {
        for protect in 1..8u8 {
            let refused = parse(&[opcode, protect << 5]);
            assert_eq!(refused, Err(CdbError::field(1, 7)), "{opcode:02x}");
        }
    }
}

// spec: SAM-5 5.2 "Command descriptor block (CDB)".
#[test]
fn naca_is_refused_with_a_pointer_to_the_control_byte_of_each_length() {
    for (opcode, control) in [(0x00, 5), (0x28, 9), (0xa8, 11), (0x88, 15)] {
        let mut cdb = [0u8; 16];
        cdb[0] = opcode;
        cdb[control] = 0x04;
        let at = u16::try_from(control).unwrap();
        assert_eq!(Command::parse(&cdb), Err(CdbError::field(at, 2)));
        cdb[control] = 0xfb;
        assert!(Command::parse(&cdb).is_ok());
    }
}

// spec: SBC-3 5.33 "VERIFY (10) command".
#[test]
fn byte_check_of_verify_decides_the_data_out() {
    let size = |cdb: &[u8]| parse(cdb).unwrap().data_out_bytes(BlockSize::B512);
    let mut cdb = [0x2f, 0, 0, 0, 0, 0, 0, 0, 3, 0];
    assert_eq!(size(&cdb), Some(ByteCount(0)));
    cdb[1] = 0x02;
    assert_eq!(size(&cdb), Some(ByteCount(1536)));
    cdb[1] = 0x06;
    assert_eq!(size(&cdb), Some(ByteCount(512)));
    cdb[8] = 0;
    assert_eq!(size(&cdb), Some(ByteCount(0)));
    cdb[1] = 0x04;
    assert_eq!(parse(&cdb), Err(CdbError::field(1, 2)));
    for byte1 in [0x04, 0x06] {
        assert_eq!(parse(&[0x2e, byte1]), Err(CdbError::field(1, 2)));
    }
}

// spec: SBC-3 5.46 "WRITE SAME (10) command".
#[test]
fn write_same_refuses_anchor_alone_and_obsolete_data_forms() {
    assert_eq!(parse(&[0x41, 0x10]), Err(CdbError::field(1, 4)));
    assert_eq!(parse(&[0x41, 0x02]), Err(CdbError::field(1, 1)));
    assert_eq!(parse(&[0x93, 0x04]), Err(CdbError::field(1, 2)));
    let command = parse(&[0x93, 0x19, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 7]).unwrap();
    let expected = WriteSame {
        range: blocks(5, 7),
        unmap: true,
        anchor: true,
        no_data_out: true,
        sixteen: true,
    };
    assert_eq!(command, Command::WriteSame(expected));
    assert_eq!(command.transfer(BlockSize::B4096), Some(Transfer::None));
    let with_data = parse(&[0x93, 0x08]).unwrap();
    assert_eq!(
        with_data.data_out_bytes(BlockSize::B4096),
        Some(ByteCount(4096))
    );
}

// spec: SBC-3 5.2 "COMPARE AND WRITE command".
#[test]
fn compare_and_write_takes_both_halves() {
    let command = parse(&[0x89, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0xff, 0xff, 0xff, 3]).unwrap();
    assert_eq!(command, Command::CompareAndWrite(blocks(9, 3)));
    assert_eq!(
        command.data_out_bytes(BlockSize::B512),
        Some(ByteCount(3072))
    );
}

#[test]
fn write_atomic_has_a_boundary_and_sixteen_bits_of_length() {
    let command = parse(&[0x9c, 0x08, 0, 0, 0, 0, 0, 0, 0, 9, 1, 2, 3, 4]).unwrap();
    let range = BlockRange {
        fua: true,
        ..blocks(9, 0x0304)
    };
    assert_eq!(
        command,
        Command::WriteAtomic {
            range,
            boundary: 0x0102
        }
    );
}

#[test]
fn unknown_operation_codes_and_service_actions_differ() {
    assert_eq!(parse(&[0x48]), Err(CdbError::InvalidOperationCode));
    assert_eq!(parse(&[0x4c]), Err(CdbError::InvalidOperationCode));
    assert_eq!(parse(&[0x5e, 4]), Err(CdbError::field(1, 4)));
    assert_eq!(parse(&[0x9e, 0x11]), Err(CdbError::field(1, 4)));
    assert_eq!(Command::parse(&[]), Err(CdbError::Truncated));
}

// spec: SPC-4 6.16 "PERSISTENT RESERVE OUT command".
#[test]
fn persistent_reserve_out_has_a_32_bit_parameter_list_length() {
    let command = parse(&[0x5f, 0x04, 0x15, 0, 0, 1, 2, 3, 4, 0]).unwrap();
    let expected = PrOut {
        action: PrOutAction::Preempt,
        scope: 1,
        kind: 5,
        parameter_list_length: 0x0102_0304,
    };
    assert_eq!(command, Command::PersistentReserveOut(expected));
}

// spec: SPC-4 6.6.1 "INQUIRY command introduction".
#[test]
fn inquiry_with_a_page_code_but_without_evpd_is_invalid() {
    assert_eq!(parse(&[0x12, 0, 0x80]), Err(CdbError::bytes(2)));
    assert_eq!(
        parse(&[0x12, 1, 0x83, 1, 2]),
        Ok(Command::Inquiry {
            page: Some(0x83),
            allocation_length: 0x0102
        })
    );
}

#[test]
fn start_and_allow_never_conflict_but_stop_and_prevent_do() {
    let class = |cdb: &[u8]| {
        let mut padded = [0u8; 16];
        padded[..cdb.len()].copy_from_slice(cdb);
        let (command, row) = Command::parse_with_opcode(&padded).unwrap();
        command.conflict(row)
    };
    use crate::opcode::Conflict;
    assert_eq!(class(&[0x1b, 0, 0, 0, 1]), Conflict::Never);
    assert_eq!(class(&[0x1b, 0, 0, 0, 0]), Conflict::Writes);
    assert_eq!(class(&[0x1b, 0, 0, 0, 0x21]), Conflict::Writes);
    assert_eq!(class(&[0x1e, 0, 0, 0, 0]), Conflict::Never);
    assert_eq!(class(&[0x1e, 0, 0, 0, 1]), Conflict::Writes);
}

proptest! {
    #[test]
    fn any_cdb_parses_without_a_panic_and_padding_is_ignored(
        cdb in proptest::collection::vec(any::<u8>(), 0..40),
        table_row in proptest::option::of(0..crate::opcode::TABLE.len()),
    ) {
        let mut cdb = cdb;
        if let (Some(row), Some(first)) = (table_row, cdb.first_mut()) {
            *first = crate::opcode::TABLE[row].opcode;
        }
        let parsed = Command::parse_with_opcode(&cdb);
        if let Ok((command, row)) = parsed {
            prop_assert_eq!(Command::parse(&cdb[..row.cdb_length()]), Ok(command));
            let _ = command.transfer(BlockSize::B4096);
        }
    }

    #[test]
    fn every_command_that_parses_is_written_and_parsed_again(
        bytes in any::<[u8; 16]>(), row in 0..crate::opcode::TABLE.len(), zeros in any::<u16>(),
    ) {
        let row = &crate::opcode::TABLE[row];
        let mut cdb = bytes;
        for (at, byte) in cdb.iter_mut().enumerate() {
            if zeros & (1 << at) != 0 {
                *byte = 0;
            }
        }
        cdb[0] = row.opcode;
        if let Some(action) = row.service_action {
            cdb[1] = (cdb[1] & 0xe0) | u8::try_from(action).unwrap();
        }
        cdb[row.cdb_length() - 1] = 0;
        if let Ok(command) = Command::parse(&cdb) {
            let written = command.to_cdb().unwrap();
            prop_assert_eq!(Command::parse(&written), Ok(command), "{}", row.name);
        }
    }
}
