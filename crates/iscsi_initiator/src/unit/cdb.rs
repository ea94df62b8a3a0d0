//! CDBs that this initiator sends.
//!
//! Spec: SPC-4 6 "Commands for all device types", SBC-3 5 "Commands for direct access block
//! devices".

use units::{Buf, LbaRange};

/// A CDB, padded to 16 bytes.
pub(super) type Cdb = [u8; 16];

/// Bytes of an UNMAP parameter list with one descriptor (SBC-3 5.28.2 "UNMAP parameter list").
const UNMAP_BYTES: u8 = 24;

/// FUA in byte 1 of READ, WRITE and their kin.
const FUA: u8 = 0x08;

fn blocks(operation: u8, flags: u8, range: LbaRange) -> Cdb {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (operation, flags);
    cdb[2..10].copy_from_slice(&range.start().0.to_be_bytes());
    // Callers cut ranges to the unit's limits, which are 32-bit numbers.
    let count = u32::try_from(range.len().0).unwrap_or(u32::MAX);
    cdb[10..14].copy_from_slice(&count.to_be_bytes());
    cdb
}

/// Whether the unit serves commands (SPC-4 6.47).
pub(super) fn test_unit_ready() -> Cdb {
    [0; 16]
}

/// INQUIRY: the standard data, or a vital product data page.
pub(super) fn inquiry(page: Option<u8>, bytes: u16) -> Cdb {
    let mut cdb = [0; 16];
    cdb[0] = 0x12;
    cdb[1] = u8::from(page.is_some());
    cdb[2] = page.unwrap_or(0);
    cdb[3..5].copy_from_slice(&bytes.to_be_bytes());
    cdb
}

/// PERSISTENT RESERVE IN: READ KEYS.
pub(super) fn read_keys(bytes: u16) -> Cdb {
    let mut cdb = [0; 16];
    cdb[0] = 0x5e;
    cdb[7..9].copy_from_slice(&bytes.to_be_bytes());
    cdb
}

/// PERSISTENT RESERVE OUT with a parameter list of so many bytes.
pub(super) fn persistent_reserve_out(action: u8, bytes: usize) -> Cdb {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (0x5f, action);
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    cdb[5..9].copy_from_slice(&bytes.to_be_bytes());
    cdb
}

/// Size and block length of units below 2^32 blocks.
pub(super) fn read_capacity_10() -> Cdb {
    let mut cdb = [0; 16];
    cdb[0] = 0x25;
    cdb
}

/// Size, block lengths and provisioning, in an answer of at most `bytes`.
pub(super) fn read_capacity_16(bytes: u32) -> Cdb {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (0x9e, 0x10);
    cdb[10..14].copy_from_slice(&bytes.to_be_bytes());
    cdb
}

/// MODE SENSE (6) of a page's current values, without block descriptors.
pub(super) fn mode_sense_6(page: u8, bytes: u8) -> Cdb {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[2], cdb[4]) = (0x1a, 0x08, page, bytes);
    cdb
}

/// REPORT SUPPORTED OPERATION CODES: is this one supported?
pub(super) fn report_supported(operation: u8, bytes: u32) -> Cdb {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[2], cdb[3]) = (0xa3, 0x0c, 0x01, operation);
    cdb[6..10].copy_from_slice(&bytes.to_be_bytes());
    cdb
}

/// REPORT TARGET PORT GROUPS, with the length-only header.
pub(super) fn report_target_port_groups(bytes: u32) -> Cdb {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (0xa3, 0x0a);
    cdb[6..10].copy_from_slice(&bytes.to_be_bytes());
    cdb
}

/// Reads these blocks, with 64-bit addresses.
pub(super) fn read_16(range: LbaRange) -> Cdb {
    blocks(0x88, 0, range)
}

/// Writes these blocks; `fua`: stable before it is answered.
pub(super) fn write_16(range: LbaRange, fua: bool) -> Cdb {
    blocks(0x8a, if fua { FUA } else { 0 }, range)
}

/// COMPARE AND WRITE; its number of blocks is one byte.
pub(super) fn compare_and_write(range: LbaRange, fua: bool) -> Cdb {
    let mut cdb = blocks(0x89, if fua { FUA } else { 0 }, range);
    cdb[10..14].fill(0);
    cdb[13] = u8::try_from(range.len().0).unwrap_or(u8::MAX);
    cdb
}

/// Writes one block to the whole range, or unmaps or anchors it (SBC-3 5.47).
pub(super) fn write_same_16(range: LbaRange, unmap: bool, anchor: bool) -> Cdb {
    blocks(
        0x93,
        (u8::from(anchor) << 4) | (u8::from(unmap) << 3),
        range,
    )
}

/// UNMAP of one range, and its parameter list.
pub(super) fn unmap(range: LbaRange, anchor: bool) -> (Cdb, Buf) {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[8]) = (0x42, u8::from(anchor), UNMAP_BYTES);
    let mut list = [0; UNMAP_BYTES as usize];
    (list[1], list[3]) = (UNMAP_BYTES - 2, UNMAP_BYTES - 8);
    list[8..16].copy_from_slice(&range.start().0.to_be_bytes());
    let count = u32::try_from(range.len().0).unwrap_or(u32::MAX);
    list[16..20].copy_from_slice(&count.to_be_bytes());
    (cdb, Buf::copy_of(&list))
}

/// SYNCHRONIZE CACHE (16) of everything, or (10) where that is all that the unit has.
pub(super) fn synchronize_cache(sixteen: bool) -> Cdb {
    let mut cdb = [0; 16];
    cdb[0] = if sixteen { 0x91 } else { 0x35 };
    cdb
}

/// GET LBA STATUS from the start of the range on.
pub(super) fn get_lba_status(range: LbaRange, bytes: u32) -> Cdb {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (0x9e, 0x12);
    cdb[2..10].copy_from_slice(&range.start().0.to_be_bytes());
    cdb[10..14].copy_from_slice(&bytes.to_be_bytes());
    cdb
}

#[cfg(test)]
mod test {
    use super::*;
    use scsi::Command;
    use scsi::cdb::{ModeForm, PageControl, ReportedCommands};
    use units::{BlockCount, Lba};

    fn range(start: u64, blocks: u64) -> LbaRange {
        LbaRange::new(Lba(start), BlockCount(blocks)).unwrap()
    }

    fn parsed(cdb: Cdb) -> Command {
        Command::parse(&cdb).unwrap()
    }

    /// The oracle is the target's own parser, which was written from the standard for the other
    /// side.
    #[test]
    fn block_commands_are_what_the_targets_parser_reads() {
        let at = range(0x0123_4567_89ab, 0x1234);
        let Command::Read(read) = parsed(read_16(at)) else {
            panic!("no read")
        };
        assert_eq!((read.range(), read.fua, read.dpo), (Some(at), false, false));
        for fua in [false, true] {
            let Command::Write(write) = parsed(write_16(at, fua)) else {
                panic!("no write")
            };
            assert_eq!((write.range(), write.fua), (Some(at), fua));
            let few = range(77, 200);
            let Command::CompareAndWrite(both) = parsed(compare_and_write(few, fua)) else {
                panic!("no compare and write")
            };
            assert_eq!((both.range(), both.fua), (Some(few), fua));
        }
        for (unmap, anchor) in [(false, false), (true, false), (true, true)] {
            let Command::WriteSame(same) = parsed(write_same_16(at, unmap, anchor)) else {
                panic!("no write same")
            };
            assert_eq!(same.range.range(), Some(at));
            assert_eq!(
                (same.unmap, same.anchor, same.no_data_out),
                (unmap, anchor, false)
            );
        }
        for sixteen in [false, true] {
            let Command::SynchronizeCache { range, immediate } = parsed(synchronize_cache(sixteen))
            else {
                panic!("no synchronize cache")
            };
            assert_eq!((range.lba, range.blocks.0, immediate), (Lba(0), 0, false));
        }
        let asked = Command::GetLbaStatus {
            starting_lba: at.start().0,
            allocation_length: 520,
        };
        assert_eq!(parsed(get_lba_status(at, 520)), asked);
    }

    #[test]
    fn questions_are_what_the_targets_parser_reads() {
        assert_eq!(parsed(test_unit_ready()), Command::TestUnitReady);
        for page in [None, Some(0x83)] {
            let allocation_length = 0x1234;
            let inquiry = parsed(inquiry(page, allocation_length));
            let expected = Command::Inquiry {
                page,
                allocation_length,
            };
            assert_eq!(inquiry, expected);
        }
        assert_eq!(parsed(read_capacity_10()), Command::ReadCapacity10);
        let allocation_length = 32;
        assert_eq!(
            parsed(read_capacity_16(32)),
            Command::ReadCapacity16 { allocation_length }
        );
        let Command::ModeSense(sense) = parsed(mode_sense_6(0x08, 64)) else {
            panic!("no mode sense")
        };
        assert_eq!(
            (sense.form, sense.page, sense.allocation_length),
            (ModeForm::Six, 0x08, 64)
        );
        assert_eq!(sense.page_control, PageControl::Current);
        let Command::ReportSupportedOperationCodes { which, .. } =
            parsed(report_supported(0x93, 64))
        else {
            panic!("no report")
        };
        assert!(
            matches!(which, ReportedCommands::Opcode { opcode: 0x93 }),
            "{which:?}"
        );
        let groups = parsed(report_target_port_groups(512));
        let expected = Command::ReportTargetPortGroups {
            extended: false,
            allocation_length: 512,
        };
        assert_eq!(groups, expected);
    }

    #[test]
    fn an_unmap_list_names_the_range() {
        let at = range(0x77_0000_0000, 0x8000_0001);
        let (cdb, list) = unmap(at, true);
        let Command::Unmap {
            anchor,
            parameter_list_length,
        } = parsed(cdb)
        else {
            panic!("no unmap")
        };
        assert!(anchor && usize::from(parameter_list_length) == list.len());
        let bytes = list.to_vec();
        // SBC-3 5.28.2: data length, descriptor data length, then address and number of blocks.
        assert_eq!(bytes[..8], [0, 22, 0, 16, 0, 0, 0, 0]);
        assert_eq!(bytes[8..16], at.start().0.to_be_bytes());
        assert_eq!(bytes[16..20], 0x8000_0001_u32.to_be_bytes());
    }
}
