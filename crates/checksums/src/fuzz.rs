//! Entry points for fuzzers: arbitrary bytes in, and a panic if an oracle is broken.

use crate::checksum::MapId;
use crate::page::{Generation, Level, MAGIC as PAGE_MAGIC, PAGE, Page};
use crate::place::PageId;
use crate::superblock::{Blank, MAGIC as MAP_MAGIC, Superblock};
use crate::tree::{Found, Recorded, judge};
use formats::seal;
use units::BlockSize;

const OF: MapId = MapId(*b"the map of fuzz!");

/// `bytes` as a whole block that says it is one and has the right checksum, or none where the first
/// byte is odd.
fn block_of(bytes: &[u8], magic: [u8; 8]) -> Vec<u8> {
    let mut block = bytes.to_vec();
    block.resize(PAGE, 0);
    if bytes.first().is_none_or(|first| first.is_multiple_of(2)) {
        block[..8].copy_from_slice(&magic);
        seal(&mut block);
    }
    block
}

/// A page, and both places of it. Oracles: what is accepted is written as the same bytes; what
/// counts fits what is recorded and is one of both; with one bit changed it is refused.
///
/// # Panics
/// If not.
pub fn map_page(bytes: &[u8]) {
    let mut block = block_of(bytes, *PAGE_MAGIC);
    block[16..32].copy_from_slice(&OF.0);
    seal(&mut block);
    let Ok(page) = Page::read(&block, OF) else {
        return;
    };
    assert_eq!(page.write(OF), block, "a second form of the same page");
    let bit =
        usize::from(bytes.len().is_multiple_of(7)) + page.entries[5] as usize % (PAGE * 8 - 1);
    let mut hurt = block.clone();
    hurt[bit / 8] ^= 1 << (bit % 8);
    assert!(Page::read(&hurt, OF).is_err(), "bit {bit} is not covered");
    let place = PageId {
        level: page.level,
        index: page.index,
    };
    let nothing = vec![0; PAGE];
    let slots = match page.generation.slot() {
        0 => [&block[..], &nothing[..]],
        _ => [&nothing[..], &block[..]],
    };
    for recorded in [
        page.generation.low(),
        page.generation.low().wrapping_add(1),
        page.entries[0],
    ] {
        for exact in [false, true] {
            let judged = judge(
                Recorded {
                    generation: recorded,
                    exact,
                },
                place,
                OF,
                slots,
            );
            let ahead = page.generation.low().wrapping_sub(recorded).cast_signed();
            let fits = if exact { ahead == 0 } else { ahead >= 0 };
            assert_eq!(
                judged == Ok(Found::Page(page.clone())),
                fits,
                "{ahead} ahead"
            );
        }
    }
}

/// Superblocks. Oracles: as for a page; of two the later one counts.
///
/// # Panics
/// If not.
pub fn map_superblock(bytes: &[u8]) {
    let block = block_of(bytes, *MAP_MAGIC);
    let Ok(found) = Superblock::read(&block) else {
        return;
    };
    assert_eq!(found.write(), block, "a second form of the same superblock");
    let later = Superblock {
        count: found.count.saturating_add(1),
        ..found.clone()
    };
    let both = later.write();
    assert_eq!(Superblock::newest([&block, &both]), Ok(later.clone()));
    assert_eq!(
        Superblock::newest([&both, &block]).map(|it| it.count),
        Ok(later.count)
    );
    let torn = [&both[..512], &[0xA5; PAGE - 512][..]].concat();
    assert_eq!(Superblock::newest([&torn, &block]), Ok(found));
}

/// Good inputs, by the name of their target.
#[must_use]
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let page = |level, generation, index| {
        let mut entries = Box::new([0; crate::FAN]);
        for (at, entry) in (0u32..).zip(entries.iter_mut()) {
            *entry = at.wrapping_mul(0x0101_0101);
        }
        Page {
            level,
            index,
            generation: Generation(generation),
            entries,
        }
        .write(OF)
    };
    let superblock = |block_size, covers, blank, clean| {
        let mut regions = Box::new([0; crate::REGIONS_MAX]);
        regions[..64].fill(5);
        Superblock {
            map: OF,
            volume: [3; 16],
            block_size,
            covers,
            blocks: 1 << 20,
            blank,
            clean,
            count: 8,
            regions,
            with_checksum: if blank == Blank::Anything { 77 } else { 0 },
        }
        .write()
    };
    // The first byte says whether the checksum is made to fit; the magic is put in anyway.
    let even = |mut block: Vec<u8>| {
        block[0] = 0;
        block
    };
    [
        ("map_page", page(Level::Checksums, 7, 12)),
        ("map_page", page(Level::Groups, u64::from(u32::MAX), 0)),
        (
            "map_superblock",
            superblock(BlockSize::B512, BlockSize::B4096, Blank::Zeroes, true),
        ),
        (
            "map_superblock",
            superblock(BlockSize::B4096, BlockSize::B4096, Blank::Anything, false),
        ),
        (
            "map_superblock",
            superblock(BlockSize::B512, BlockSize::B512, Blank::Anything, true),
        ),
    ]
    .into_iter()
    .map(|(name, block)| (name, even(block)))
    .collect()
}
