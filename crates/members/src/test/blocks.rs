//! What is written is read, and nothing else is.

use super::{STRIPE, lun, pool};
use crate::LunId;
use crate::fuzz;
use crate::run::Run;
use crate::superblock::{AREA_BYTES, Layout, MEMBERS_MAX, Superblock, find, offset_of};
use formats::{Damage, crc32c_of};
use proptest::prelude::*;

fn sample(event: u64) -> Superblock {
    let mut block = pool(STRIPE, &[100, 120, 100]);
    block.resize(lun(1), 7 << 20).unwrap();
    block.resize(lun(2), 30 << 20).unwrap();
    block.event = event;
    for member in &mut block.members {
        (member.last_event, member.before) = (event, event - 1);
    }
    block
}

#[test]
fn records_stand_behind_the_luns_and_without_them_a_superblock_is_what_it_was() {
    let mut block = sample(5);
    let bare = block.encode().unwrap();
    let lun = *block.luns.keys().next().unwrap();
    block.records.insert(lun, b"what it is".to_vec());
    block.records.insert(LunId::POOL, b"of the pool".to_vec());
    let bytes = block.encode().unwrap();
    assert_eq!((bare[16], bytes[16]), (1, 2), "version");
    assert_eq!(bytes[bare.len()..][..4], [2, 0, 0, 0], "how many");
    assert_eq!(
        bytes[bare.len() + 8..][..16],
        [0; 16],
        "the pool's is first"
    );
    assert_eq!(bytes.len(), bare.len() + 8 + 2 * 24 + 10 + 11);
    assert_eq!(Superblock::decode(&bytes), Ok(block.clone()));
    for end in 0..bytes.len() {
        assert!(Superblock::decode(&bytes[..end]).is_err(), "{end} bytes");
    }
    block.release(lun);
    assert_eq!(block.records.len(), 1, "a record goes with its LUN");
    block.records.insert(lun, Vec::new());
    assert!(block.check().is_err(), "a record of no LUN");
    block.records.clear();
    block.records.insert(LunId::POOL, vec![0; 4097]);
    assert!(block.check().is_err(), "one that is too long");
}

#[test]
fn what_stands_next_to_a_lun_is_hidden_from_earlier_programs_also_where_no_record_is_left() {
    let mut block = sample(5);
    let bare = block.encode().unwrap();
    let checksums = LunId([0x86; 16]);
    block.resize(checksums, 1).unwrap();
    assert!(checksums.as_sidecar().is_some() && block.records.is_empty());
    let bytes = block.encode().unwrap();
    assert_eq!((bare[16], bytes[16]), (1, 2), "version");
    assert_eq!(bytes[bytes.len() - 8..], [0; 8], "no records");
    assert_eq!(Superblock::decode(&bytes), Ok(block.clone()));
    // One that says it has records, and has none, is none of ours.
    block.release(checksums);
    let mut reported = block.encode().unwrap();
    reported[16] = 2;
    reported.extend([0; 8]);
    let length = u32::try_from(reported.len()).unwrap().to_le_bytes();
    reported[12..16].copy_from_slice(&length);
    let sum = crc32c_of([&length[..], &reported[16..]]).to_le_bytes();
    reported[8..12].copy_from_slice(&sum);
    assert!(matches!(
        Superblock::decode(&reported),
        Err(Damage::Contradiction(_))
    ));
}

#[test]
fn a_superblock_has_the_bytes_that_the_document_says() {
    let bytes = sample(5).encode().unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!(&bytes[..8], b"CWPOOLMB");
    assert_eq!(usize::try_from(word(12)).unwrap(), bytes.len());
    assert_eq!((word(16), word(20)), (1, 0), "version, flags");
    let with_journal = Superblock {
        has_journal: true,
        ..sample(5)
    };
    let flagged = with_journal.encode().unwrap();
    assert_eq!(flagged[20], 1, "it has a journal");
    assert_eq!(Superblock::decode(&flagged), Ok(with_journal));
    assert_eq!(&bytes[24..40], &[9; 16], "pool");
    assert_eq!(word(40), 5, "event");
    assert_eq!(
        (word(48) & 0xffff, word(48) >> 16),
        (0, 3),
        "member and their number"
    );
    assert_eq!((word(52), word(56)), (2, 64 << 10), "layout and unit");
    assert_eq!(
        (word(60), word(64)),
        (4096, 1 << 20),
        "physical block, chunk"
    );
    assert_eq!(word(72), 2, "LUNs");
    assert_eq!(
        (&bytes[96..112], word(112)),
        (&[1; 16][..], 100),
        "the first member"
    );
    assert_eq!(word(120), 5, "its event");
    let table = 96 + 3 * 40;
    assert_eq!(
        (&bytes[table..table + 16], word(table + 16)),
        (&[1; 16][..], 1)
    );
    assert_eq!(
        (word(table + 24), word(table + 28)),
        (0, 3),
        "seven mebibytes in chunks of three"
    );
    assert_eq!((offset_of(5), offset_of(6)), (1 << 20, 0));
}

#[test]
fn every_flipped_bit_and_every_cut_is_found() {
    let block = sample(4);
    let bytes = block.encode().unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(Superblock::decode(&damaged).is_err(), "bit {bit}");
    }
    for end in 0..bytes.len() {
        assert!(Superblock::decode(&bytes[..end]).is_err(), "{end} bytes");
    }
    assert_eq!(Superblock::decode(&bytes), Ok(block));
}

#[test]
fn a_later_version_is_refused_by_name_even_next_to_one_of_ours() {
    let ours = sample(4).encode().unwrap();
    let mut later = sample(5).encode().unwrap();
    later[16] = 3;
    let sealed = formats::crc32c_of([&later[12..16], &later[16..]]);
    later[8..12].copy_from_slice(&sealed.to_le_bytes());
    let version = Damage::Version { found: 3, read: 2 };
    assert_eq!(Superblock::decode(&later), Err(version));
    assert_eq!(find(&ours, &later), Err(version));
    assert_eq!(find(&later, &ours), Err(version));
    // Torn, it is what a crash has left.
    later[16] = 4;
    assert_eq!(find(&ours, &later).map(|it| it.superblock), Ok(sample(4)));
}

/// The two places of a member, 512-byte sector by sector.
fn area(blocks: &[&Superblock]) -> [Vec<u8>; 2] {
    let mut places = [vec![0; AREA_BYTES], vec![0; AREA_BYTES]];
    for block in blocks {
        let bytes = block.encode().unwrap();
        places[usize::from(block.event % 2 == 1)][..bytes.len()].copy_from_slice(&bytes);
    }
    places
}

#[test]
fn a_write_that_a_crash_cuts_anywhere_leaves_old_or_new() {
    let (old, new) = (sample(6), {
        let mut new = sample(7);
        for number in 3..60 {
            new.resize(lun(number), 3 << 20).unwrap();
        }
        new
    });
    // What stood in the place before is the event before the old one.
    let mut before = sample(5);
    before.resize(lun(9), 1 << 20).unwrap();
    let written = new.encode().unwrap();
    let sectors = written.len().div_ceil(512);
    assert!(sectors > 3);
    for kept in 0..1_u32 << sectors.min(8) {
        let [even, mut odd] = area(&[&before, &old]);
        for sector in 0..sectors {
            if sector >= 8 || kept >> sector & 1 == 1 {
                let end = written.len().min(sector * 512 + 512);
                odd[sector * 512..end].copy_from_slice(&written[sector * 512..end]);
            }
        }
        let found = find(&even, &odd).unwrap();
        let whole = kept.count_ones() as usize == sectors.min(8);
        let wanted = if whole { &new } else { &old };
        assert_eq!(found.superblock, *wanted, "sectors {kept:b}");
    }
}

#[test]
fn the_newer_of_two_holds_and_one_in_the_wrong_place_does_not() {
    let (older, newer) = (sample(6), sample(7));
    let [even, odd] = area(&[&older, &newer]);
    let found = find(&even, &odd).unwrap();
    assert_eq!((found.superblock, found.other), (newer.clone(), None));
    assert!(matches!(find(&odd, &even), Err(Damage::Contradiction(_))));
    let empty = vec![0; 4096];
    assert_eq!(find(&empty, &empty), Err(Damage::Foreign));
    let mut damaged = even.clone();
    damaged[40] ^= 1;
    assert_eq!(find(&damaged, &empty), Err(Damage::Checksum));
    let found = find(&damaged, &odd).unwrap();
    assert_eq!(
        (found.superblock, found.other),
        (newer, Some(Damage::Checksum))
    );
}

#[test]
fn rules_that_a_table_breaks_are_named() {
    type Break = fn(&mut Superblock);
    let broken: [(&str, Break); 8] = [
        ("the number of members", |block| block.members.clear()),
        ("which member it is", |block| block.member = 3),
        ("the size of chunks", |block| block.chunk_bytes += 1),
        ("two members of one number", |block| {
            block.members[1].id = block.members[0].id;
        }),
        ("a member's event is in the future", |block| {
            block.members[1].last_event = 9;
        }),
        (
            "it is written to a member that it does not expect",
            |block| (block.members[0].last_event, block.members[0].before) = (3, 2),
        ),
        ("a chunk belongs to two LUNs", |block| {
            block.luns.insert(lun(7), vec![Run { first: 2, count: 2 }]);
        }),
        ("a chunk beyond the end", |block| {
            block.luns.insert(
                lun(7),
                vec![Run {
                    first: 99,
                    count: 2,
                }],
            );
        }),
    ];
    for (rule, breaks) in broken {
        let mut block = sample(4);
        assert_eq!(block.check(), Ok(()));
        breaks(&mut block);
        assert_eq!(block.check(), Err(rule));
    }
}

#[test]
fn the_largest_table_fits_and_a_larger_one_is_refused() {
    let mut block = pool(Layout::Span, &[u32::MAX / 64; MEMBERS_MAX]);
    let free = |at: u32| Run {
        first: at * 2,
        count: 1,
    };
    block.luns.insert(lun(1), (0..130_000).map(free).collect());
    assert!(block.encode().unwrap().len() <= AREA_BYTES);
    block.luns.insert(lun(1), (0..131_000).map(free).collect());
    assert_eq!(block.encode(), None);
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_refused_or_mean_one_thing(
        flips in prop::collection::vec((0..400_usize, any::<u8>()), 0..6),
        event in 1..9_u64,
        seal: bool,
    ) {
        let mut bytes = sample(event).encode().unwrap();
        for (at, value) in flips {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        let length = u32::from_le_bytes(bytes[12..16].try_into().unwrap());
        if seal && let Some(sealed) = bytes.get(16..usize::try_from(length).unwrap()) {
            // As a writer with a fault would: the checksum fits what it says.
            let sum = formats::crc32c_of([&length.to_le_bytes()[..], sealed]);
            bytes[8..12].copy_from_slice(&sum.to_le_bytes());
        }
        let mut both = vec![0; 2 * bytes.len()];
        let at = if event % 2 == 0 { 0 } else { bytes.len() };
        both[at..at + bytes.len()].copy_from_slice(&bytes);
        fuzz::superblocks(&both);
    }
}
