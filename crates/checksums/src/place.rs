//! Where things lie in the map's file.
//!
//! ```text
//!   superblock, superblock | region 0: its page twice | group 0: its page twice | 1008 pages
//!         of checksums, each twice | group 1 ...
//! ```
//!
//! Everything has its place whatever the size of the volume, so a volume can grow; what was never
//! written is a hole.

use crate::page::{FAN, Generation, Level, PAGE};
use units::BlockSize;

/// Where both superblocks lie, in bytes.
pub const SUPERBLOCKS_AT: [u64; 2] = [0, PAGE as u64];

/// Regions of a map at most, where checksums cover 4 KiB each.
pub(crate) const REGIONS_OF_PAGES: usize = 64;

/// Regions of a map at most.
pub const REGIONS_MAX: usize = 512;

/// Regions of a map at most, whose checksums cover so much each.
pub(crate) const fn regions_max(covers: BlockSize) -> usize {
    match covers {
        BlockSize::B512 => REGIONS_MAX,
        BlockSize::B4096 => REGIONS_OF_PAGES,
    }
}

/// Checksums of a map at most, that cover so much each: 244 TiB of a volume either way.
#[must_use]
pub const fn checksums_max(covers: BlockSize) -> u64 {
    regions_max(covers) as u64 * FAN64 * FAN64 * FAN64
}

/// Bytes of the map of so many checksums: where the last of its pages ends.
#[must_use]
pub fn map_bytes(checksums: u64) -> u64 {
    let level = Level::Checksums;
    let index = checksums.div_ceil(FAN64).max(1) - 1;
    PageId { level, index }.pair_at() + PAIR
}

const FAN64: u64 = FAN as u64;
const PAIR: u64 = 2 * PAGE as u64;
const GROUP_PAIRS: u64 = 1 + FAN64;
const REGION_PAIRS: u64 = 1 + FAN64 * GROUP_PAIRS;

/// Which page of the map it is: that says where it lies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PageId {
    /// What its entries are.
    pub level: Level,
    /// Which one of its level.
    pub index: u64,
}

impl PageId {
    /// The page with the checksum of a block, and which entry it is.
    #[must_use]
    pub fn of_block(block: u64) -> (Self, usize) {
        let level = Level::Checksums;
        let index = block / FAN64;
        (Self { level, index }, entry(block))
    }

    /// The first byte of both its places, which are [`PAGE`] bytes each.
    ///
    /// # Panics
    /// If there is no such page: a map has an end.
    #[must_use]
    pub fn pair_at(self) -> u64 {
        let (region, group) = match self.level {
            Level::Checksums => (self.index / FAN64 / FAN64, self.index / FAN64),
            Level::Groups => (self.index / FAN64, self.index),
            Level::Regions => (self.index, 0),
        };
        assert!(region < REGIONS_MAX as u64, "a map has an end");
        let of_region = region * REGION_PAIRS;
        let of_group = of_region + 1 + group % FAN64 * GROUP_PAIRS;
        let pair = match self.level {
            Level::Checksums => of_group + 1 + self.index % FAN64,
            Level::Groups => of_group,
            Level::Regions => of_region,
        };
        PAIR + pair * PAIR
    }

    /// The first byte of the place of one generation.
    #[must_use]
    pub fn at(self, generation: Generation) -> u64 {
        self.pair_at() + u64::from(generation.slot()) * PAGE as u64
    }

    /// The page above, and which entry of it this one is; `None` where that is the superblock.
    #[must_use]
    pub fn above(self) -> (Option<Self>, usize) {
        let level = match self.level {
            Level::Checksums => Level::Groups,
            Level::Groups => Level::Regions,
            Level::Regions => return (None, whole(self.index)),
        };
        let index = self.index / FAN64;
        (Some(Self { level, index }), entry(self.index))
    }
}

fn entry(of: u64) -> usize {
    whole(of % FAN64)
}

fn whole(value: u64) -> usize {
    usize::try_from(value).expect("64-bit machines only")
}
