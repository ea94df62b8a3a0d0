//! Blocks of the map: what they say, and what is none.

use crate::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use units::{BlockSize, Buf};

const OF: MapId = MapId([9; 16]);

const BLOCK: usize = 4096;

fn superblock() -> Superblock {
    let mut regions = Box::new([0; REGIONS_MAX]);
    regions[..64].fill(3);
    Superblock {
        map: OF,
        volume: [4; 16],
        block_size: BlockSize::B512,
        covers: BlockSize::B4096,
        blocks: 1 << 21,
        blank: Blank::Zeroes,
        clean: true,
        count: 6,
        regions,
        with_checksum: 0,
    }
}

fn page(generation: u64) -> Page {
    let mut entries = Box::new([0; FAN]);
    for (entry, value) in entries.iter_mut().zip(77..) {
        *entry = value;
    }
    Page {
        level: Level::Checksums,
        index: 3,
        generation: Generation(generation),
        entries,
    }
}

#[test]
fn a_block_says_what_was_written_and_with_any_bit_changed_nothing() {
    let known = Superblock {
        blank: Blank::Anything,
        with_checksum: 1 << 40 | 7,
        ..superblock()
    };
    assert_eq!(Superblock::read(&known.write()), Ok(known.clone()));
    let wrong = Superblock {
        blank: Blank::Zeroes,
        ..known.clone()
    };
    assert_eq!(
        Superblock::read(&wrong.write()),
        Err(Damage::Contradiction("every block of it has a checksum"))
    );
    let (map, page) = (superblock(), page(8));
    let (map_block, page_block) = (map.write(), page.write(OF));
    assert_eq!(Superblock::read(&map_block), Ok(map));
    assert_eq!(Page::read(&page_block, OF), Ok(page));
    assert_eq!(
        Page::read(&page_block, MapId([1; 16])),
        Err(Damage::Foreign)
    );
    for bit in 0..PAGE * 8 {
        let flip = |block: &[u8]| {
            let mut block = block.to_vec();
            block[bit / 8] ^= 1 << (bit % 8);
            block
        };
        let wanted = if bit < 64 {
            Damage::Foreign
        } else {
            Damage::Checksum
        };
        assert_eq!(Superblock::read(&flip(&map_block)), Err(wanted));
        assert_eq!(Page::read(&flip(&page_block), OF), Err(wanted));
    }
}

#[test]
fn checksums_of_sectors_have_a_version_that_older_programs_refuse_and_room_for_as_much() {
    let of_pages = superblock();
    let mut of_sectors = Superblock {
        covers: BlockSize::B512,
        blocks: checksums_max(BlockSize::B512),
        ..superblock()
    };
    of_sectors.regions.fill(9);
    let [pages, sectors] = [&of_pages, &of_sectors].map(Superblock::write);
    assert_eq!([pages[12], sectors[12]], [1, 2]);
    assert_eq!(Superblock::read(&sectors), Ok(of_sectors.clone()));
    let bytes = |covers: BlockSize| checksums_max(covers) * u64::from(covers.bytes());
    assert_eq!(bytes(BlockSize::B512), bytes(BlockSize::B4096));
    for wrong in [
        Superblock {
            blocks: of_sectors.blocks + 1,
            ..of_sectors.clone()
        },
        Superblock {
            block_size: BlockSize::B4096,
            ..of_sectors.clone()
        },
        Superblock {
            covers: BlockSize::B4096,
            ..of_sectors
        },
    ] {
        let read = Superblock::read(&wrong.write());
        assert!(matches!(read, Err(Damage::Contradiction(_))), "{read:?}");
    }
}

#[test]
fn a_later_version_is_refused_by_name_even_next_to_one_of_ours() {
    let mut later = superblock().write();
    later[12] = 3;
    formats::seal(&mut later);
    let wanted = Damage::Version { found: 3, read: 2 };
    assert_eq!(Superblock::read(&later), Err(wanted));
    let ours = superblock().write();
    assert_eq!(Superblock::newest([&ours, &later]), Err(wanted));
    let reported = Damage::Version { found: 2, read: 1 }.to_string();
    assert!(reported.contains("version 2") && reported.contains("reads version 1"));
    let mut block = page(8).write(OF);
    block[12] = 2;
    formats::seal(&mut block);
    let place = PageId {
        level: Level::Checksums,
        index: 3,
    };
    let recorded = Recorded {
        generation: 7,
        exact: false,
    };
    let before = page(7).write(OF);
    let mut torn = before.clone();
    torn[100] ^= 1;
    for slots in [[&block, &before], [&torn, &block]] {
        let judged = judge(recorded, place, OF, slots.map(Vec::as_slice));
        assert_eq!(
            judged.unwrap_err().why,
            Damage::Version { found: 2, read: 1 }
        );
    }
}

#[test]
fn of_two_superblocks_the_later_whole_one_counts() {
    let older = superblock();
    let newer = Superblock {
        count: 7,
        clean: false,
        ..superblock()
    };
    assert_eq!((older.slot(), newer.slot()), (0, 1));
    let (old, new) = (older.write(), newer.write());
    assert_eq!(Superblock::newest([&old, &new]), Ok(newer));
    let mut torn = new.clone();
    torn[..512].fill(0);
    assert_eq!(Superblock::newest([&old, &torn]), Ok(older));
    assert_eq!(Superblock::newest([&torn, &torn]), Err(Damage::Foreign));
}

#[test]
fn generations_take_turns_and_are_never_zero_above() {
    let mut generation = Generation((1 << 32) - 5);
    for _ in 0..10 {
        let next = generation.next();
        assert_ne!(next.slot(), generation.slot());
        assert_ne!(next.low(), 0);
        assert!(next > generation);
        generation = next;
    }
}

#[test]
fn every_page_has_a_place_of_its_own_and_one_above() {
    let fan = FAN as u64;
    let mut taken: BTreeSet<u64> = SUPERBLOCKS_AT.into();
    let checksums = (0..3 * fan).chain(fan * fan - 2..fan * fan + 2);
    let groups = (0..4).chain(fan - 1..fan + 2);
    let places = checksums
        .map(|index| (Level::Checksums, index))
        .chain(groups.map(|index| (Level::Groups, index)))
        .chain((0..REGIONS_MAX as u64).map(|index| (Level::Regions, index)));
    for (level, index) in places {
        let place = PageId { level, index };
        for slot in [0, PAGE as u64] {
            assert!(taken.insert(place.pair_at() + slot), "{place:?}");
        }
        let (above, entry) = place.above();
        let above_index = above.map_or(0, |above| above.index);
        if level != Level::Regions {
            assert_eq!(above_index * fan + entry as u64, index);
        }
    }
    let last = PageId::of_block(checksums_max(BlockSize::B512) - 1);
    assert_eq!(last.1, FAN - 1);
    assert!(last.0.pair_at() > 0);
}

proptest! {
    #[test]
    fn checksums_depend_on_bytes_address_and_map_and_not_on_pieces(
        bytes in prop::collection::vec(any::<u8>(), BLOCK),
        block in any::<u64>(),
        other in any::<u64>(),
        bit in 0..BLOCK * 8,
        cut in 1..BLOCK,
    ) {
        prop_assume!(block != other);
        let salt = Salt::of(OF);
        let checksum = Checksum::of(salt, block, &bytes);
        prop_assert!(checksum.is_checksum());
        let mut pieces = Buf::copy_of(&bytes[..cut]);
        pieces.append(&Buf::copy_of(&bytes[cut..]));
        prop_assert_eq!(Checksum::of_buf(salt, block, &pieces), checksum);
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        prop_assert_ne!(Checksum::of(salt, block, &flipped), checksum);
        prop_assert_ne!(Checksum::of(salt, other, &bytes), checksum);
        prop_assert_ne!(Checksum::of(Salt::of(MapId([8; 16])), block, &bytes), checksum);
    }
}

#[test]
fn the_seeds_of_the_fuzzer_are_accepted() {
    for (name, bytes) in fuzz::seeds() {
        match name {
            "map_page" => fuzz::map_page(&bytes),
            _ => fuzz::map_superblock(&bytes),
        }
    }
}
