//! Every block of the format, byte by byte against the tables of `docs/formats/journal.md`. They
//! are copied from there and share nothing with the code that writes: whoever moves a field has to
//! change both, and the version.

use super::world::OF;
use crate::blocks::DataChecksums;
use crate::*;
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};

/// Fields at their offsets, zeroes elsewhere, and the checksum of it.
fn block(blocks: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; blocks * 4096];
    let mut end = 0;
    for &(at, field) in fields {
        assert!(at >= end, "fields in order, none over another one");
        end = at + field.len();
        bytes[at..end].copy_from_slice(field);
    }
    let checksum = formats::crc32c(&bytes[12..]).to_le_bytes();
    bytes[8..12].copy_from_slice(&checksum);
    bytes
}

/// Where they differ, which a dump of two blocks would not show.
fn same(written: &[u8], by_hand: &[u8]) {
    assert_eq!(written.len(), by_hand.len());
    let differs = (0..written.len()).find(|at| written[*at] != by_hand[*at]);
    assert_eq!(differs, None, "the first byte that differs");
}

const ONE: [u8; 2] = 1_u16.to_le_bytes();

#[test]
fn a_superblock_is_as_described() {
    let superblock = Superblock {
        journal: JournalId([7; 16]),
        pool: [9; 16],
        layout: Layout {
            rings: 3,
            ring_blocks: 0x0102_0304,
        },
        shard_bytes: 1 << 30,
    };
    let by_hand = block(
        1,
        &[
            (0, b"CWJOURNL"),
            (12, &ONE),
            (16, &[7; 16]),
            (32, &[9; 16]),
            (48, &3_u32.to_le_bytes()),
            (52, &0x0102_0304_u64.to_le_bytes()),
            (60, &(1_u64 << 30).to_le_bytes()),
        ],
    );
    same(&superblock.write(), &by_hand);
    // Blocks 0 and 1 are superblocks; each ring has two for checkpoints before its log.
    let layout = superblock.layout;
    let ring = (2 + 0x0102_0304) * 4096;
    assert_eq!(layout.checkpoint_at(0, 0), 2 * 4096);
    assert_eq!(layout.checkpoint_at(0, 1), 3 * 4096);
    assert_eq!(layout.ring_at(0), 4 * 4096);
    assert_eq!(layout.checkpoint_at(2, 1), 2 * ring + 3 * 4096);
}

#[test]
fn a_checkpoint_is_as_described() {
    let checkpoint = Checkpoint {
        count: 0x0203,
        epoch: 5,
        begun: BatchPosition {
            number: 0x11,
            position: 0x12,
        },
        tail: BatchPosition {
            number: 0x13,
            position: 0x14,
        },
    };
    let number = |value: u64| value.to_le_bytes();
    let by_hand = block(
        1,
        &[
            (0, b"CWJCHECK"),
            (12, &ONE),
            (16, &OF.0.0),
            (32, &OF.1.to_le_bytes()),
            (36, &number(0x0203)),
            (44, &number(5)),
            (52, &number(0x11)),
            (60, &number(0x12)),
            (68, &number(0x13)),
            (76, &number(0x14)),
        ],
    );
    same(&checkpoint.write(OF.0, OF.1), &by_hand);
    assert_eq!(checkpoint.slot(), 1, "slot 0 has the even ones");
}

fn change(kind: Kind, block_size: BlockSize) -> Change {
    Change {
        volume: VolumeId(0x2122_2324_2526_2728),
        sequence: Sequence(0x31),
        range: LbaRange::new(Lba(0x41), BlockCount(3)).unwrap(),
        block_size,
        kind,
        commit: Commit::AtOnce,
    }
}

/// A change as the table has it: 32 bytes.
fn change_by_hand(code: u8, shift: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(0x2122_2324_2526_2728_u64.to_le_bytes());
    bytes.extend(0x31_u64.to_le_bytes());
    bytes.extend(0x41_u64.to_le_bytes());
    bytes.extend(3_u32.to_le_bytes());
    bytes.extend([code, shift, 0, 0]);
    bytes
}

#[test]
fn a_batch_is_as_described_and_so_is_every_kind_of_change() {
    let data = Buf::copy_of(&[0xab; 3 * 512]);
    let contents = vec![
        (change(Kind::Write, BlockSize::B512), data),
        (change(Kind::Zeroes, BlockSize::B4096), Buf::empty()),
    ];
    let kinds = [
        (Kind::Write, 1),
        (Kind::Zeroes, 2),
        (Kind::Deallocate, 3),
        (Kind::Anchor, 4),
        (Kind::WriteAround, 5),
        (Kind::Lost, 6),
        (Kind::Gone, 7),
        (Kind::Cut, 8),
        (Kind::Touched, 9),
    ];
    let before: Vec<Change> = kinds
        .iter()
        .map(|(kind, _)| change(*kind, BlockSize::B4096))
        .collect();
    let place = BatchPosition {
        number: 0x51,
        position: 0x61,
    };
    let checksums = DataChecksums::of(&contents);
    let header = Header::over(
        place,
        (0x71, 0x50, 0x50),
        &contents,
        &checksums.records,
        before,
    );
    let mut fields: Vec<(usize, Vec<u8>)> = vec![
        (0, b"CWJBATCH".to_vec()),
        (12, ONE.to_vec()),
        (14, ONE.to_vec()),
        (16, OF.0.0.to_vec()),
        (32, OF.1.to_le_bytes().to_vec()),
        // A block for the header and one for the data.
        (36, 2_u32.to_le_bytes().to_vec()),
        (40, 0x51_u64.to_le_bytes().to_vec()),
        (48, 0x61_u64.to_le_bytes().to_vec()),
        (56, 0x71_u64.to_le_bytes().to_vec()),
        (64, 0x50_u64.to_le_bytes().to_vec()),
        (72, 2_u16.to_le_bytes().to_vec()),
        (74, 9_u16.to_le_bytes().to_vec()),
    ];
    // Records of 40 bytes: the change, where its data begins, and its checksum.
    fields.push((96, change_by_hand(1, 9)));
    fields.push((128, 4096_u32.to_le_bytes().to_vec()));
    let checksum = formats::crc32c(&[0xab; 3 * 512]).to_le_bytes();
    fields.push((132, checksum.to_vec()));
    fields.push((136, change_by_hand(2, 12)));
    let after = 4096_u32 + 3 * 512;
    fields.push((168, after.to_le_bytes().to_vec()));
    fields.push((172, formats::crc32c(&[]).to_le_bytes().to_vec()));
    for (at, (_, code)) in (176..).step_by(32).zip(kinds) {
        fields.push((at, change_by_hand(code, 12)));
    }
    let fields: Vec<(usize, &[u8])> = fields.iter().map(|(at, it)| (*at, &it[..])).collect();
    same(&header.write(OF.0, OF.1), &block(1, &fields));
}

#[test]
fn a_batch_of_a_volume_with_copies_is_as_described() {
    let later = Change {
        commit: Commit::Later,
        ..change(Kind::Epoch, BlockSize::B512)
    };
    let place = BatchPosition {
        number: 0x51,
        position: 0x61,
    };
    let contents = [(later, Buf::empty())];
    let checksums = DataChecksums::of(&contents);
    let marks = (0x71, 0x50, 0x4f);
    let header = Header::over(place, marks, &contents, &checksums.records, vec![later]);
    let record: Vec<u8> = change_by_hand(10, 9).into_iter().rev().collect();
    let record: Vec<u8> = [&[0, 1][..], &record[2..]]
        .concat()
        .into_iter()
        .rev()
        .collect();
    let crc = formats::crc32c(&[]).to_le_bytes();
    let fields: Vec<(usize, &[u8])> = vec![
        (0, b"CWJBATCH"),
        (12, &[2, 0]),
        (14, &ONE),
        (16, &OF.0.0),
        (32, &[3, 0, 0, 0, 1, 0, 0, 0]),
        (40, &[0x51]),
        (48, &[0x61]),
        (56, &[0x71]),
        (64, &[0x50]),
        (72, &[1, 0, 1, 0]),
        (76, &[0x4f]),
        (96, &record),
        (128, &[0, 16, 0, 0]),
        (132, &crc),
        (136, &record),
    ];
    same(&header.write(OF.0, OF.1), &block(1, &fields));
    // A program for version 1 has no such record.
    let mut of_one = header.write(OF.0, OF.1);
    of_one[12] = 1;
    formats::seal(&mut of_one);
    assert!(Header::read(&of_one, OF.0, OF.1).is_err());
}

#[test]
fn the_blocks_of_a_history_are_as_described() {
    let id = HistoryId {
        journal: JournalId([7; 16]),
        volume: VolumeId(0x81),
        ring: 1,
        rings: 2,
    };
    let mut history = History::open(id, &[0; 4 * BLOCK], 0x0900).unwrap();
    history.begin_cut(0x0901, Sequence(0xa1));
    history.begin_cut(0x0905, Sequence(0xa2));
    // Parts of 64 KiB: the third one of the first page, and the last one of it.
    history.mark(&(2 * 65_536..2 * 65_536 + 1), 0x0901);
    history.mark(&(4031 * 65_536..4031 * 65_536 + 1), 0x0905);
    history.fill(0, &[0; 2 * BLOCK]).unwrap();
    let writes = history.writes(Sequence(0xa3));
    let number = |value: u64| value.to_le_bytes();
    let header = block(
        1,
        &[
            (0, b"CWJHISTO"),
            (12, &ONE),
            (14, &2_u16.to_le_bytes()),
            (16, &[7; 16]),
            (32, &number(0x81)),
            (40, &1_u32.to_le_bytes()),
            (44, &2_u32.to_le_bytes()),
            (48, &number(1)),
            (56, &number(0x0900)),
            (64, &number(0xa3)),
            (72, &number(0x0901)),
            (80, &number(0xa1)),
            (88, &number(0x0905)),
            (96, &number(0xa2)),
        ],
    );
    let page = block(
        1,
        &[
            (0, b"CWJPARTS"),
            (12, &ONE),
            (16, &number(0x81)),
            (24, &1_u32.to_le_bytes()),
            // An entry of 1 stands for the cut 0x0901, one after *made*.
            (28, &1_u32.to_le_bytes()),
            (32, &number(0)),
            (40, &number(0x0900)),
            (48, &number(1)),
            (64 + 2, &[1]),
            (64 + 4031, &[5]),
        ],
    );
    let [page_write, header_write] = &writes[..] else {
        panic!("a page and the header differ: {}", writes.len())
    };
    // Generation 1 goes to the second place: of ring 1's header after four blocks of ring 0's, of
    // page 0 after 4 x rings blocks and those of ring 0.
    assert_eq!(header_write.at, (4 + 2) * 4096);
    same(&header_write.bytes, &header.repeat(2));
    assert_eq!(page_write.at, (4 * 2 + 2 + 1) * 4096);
    same(&page_write.bytes, &page);
}

#[test]
fn what_has_a_number_in_the_place_of_a_range_has_sectors_whatever_it_is() {
    let change = Change {
        volume: VolumeId(1),
        sequence: Sequence(1),
        range: LbaRange::between(Lba(u64::MAX), Lba(u64::MAX)).unwrap(),
        block_size: BlockSize::B4096,
        kind: Kind::Cut,
        commit: Commit::Later,
    };
    assert!(change.sectors().is_empty());
}
