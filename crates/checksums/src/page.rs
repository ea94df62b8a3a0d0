//! A page of the map: 1008 checksums, or 1008 generations of pages below.

use crate::VERSION;
use crate::checksum::MapId;
use formats::{Damage, open, seal};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// Entries of a page.
pub const FAN: usize = 1008;

pub(crate) const MAGIC: &[u8; 8] = b"CWSUMPAG";

/// What a page's entries are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Checksums of blocks.
    Checksums,
    /// Generations of pages of checksums.
    Groups,
    /// Generations of groups.
    Regions,
}

impl Level {
    const fn raw(self) -> u8 {
        match self {
            Self::Checksums => 0,
            Self::Groups => 1,
            Self::Regions => 2,
        }
    }

    const fn from_raw(raw: u8) -> Option<Self> {
        match raw {
            0 => Some(Self::Checksums),
            1 => Some(Self::Groups),
            2 => Some(Self::Regions),
            3.. => None,
        }
    }
}

/// Which of the versions of a page, from 1; 0 stands for none. The page above keeps the lower 32
/// bits, so those are never 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Generation(pub u64);

impl Generation {
    /// What is written next. It has the other place of the two.
    #[must_use]
    pub const fn next(self) -> Self {
        let next = self.0.wrapping_add(1);
        Self(if next & 0xFFFF_FFFF == 0 {
            next.wrapping_add(2)
        } else {
            next
        })
    }

    /// A generation whose next one this is.
    #[must_use]
    pub const fn before(self) -> Self {
        let before = Self(self.0.wrapping_sub(1));
        if before.next().0 == self.0 {
            before
        } else {
            Self(self.0.wrapping_sub(3))
        }
    }

    /// Which of both places it is written to.
    #[must_use]
    pub const fn slot(self) -> u8 {
        if self.0.is_multiple_of(2) { 0 } else { 1 }
    }

    /// What the page above keeps of it.
    #[must_use]
    pub const fn low(self) -> u32 {
        let [a, b, c, d, ..] = self.0.to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }
}

/// 4096 bytes of the map: entries, and what shows that they are these and the newest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// What its entries are.
    pub level: Level,
    /// Which one of its level.
    pub index: u64,
    /// Which version of it.
    pub generation: Generation,
    /// Checksums, or generations.
    pub entries: Box<[u32; FAN]>,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawPage {
    magic: [u8; 8],
    checksum: U32,
    version: U16,
    level: u8,
    zero: u8,
    map: [u8; 16],
    index: U64,
    generation: U64,
    rest: [u8; 16],
    entries: [U32; FAN],
}

const _: () = assert!(size_of::<RawPage>() == PAGE);
const _: () = assert!(std::mem::offset_of!(RawPage, version) == 12);
const _: () = assert!(std::mem::offset_of!(RawPage, index) == 32);
const _: () = assert!(std::mem::offset_of!(RawPage, entries) == 64);

impl Page {
    /// The block that says it.
    #[must_use]
    pub fn write(&self, map: MapId) -> Vec<u8> {
        let raw = RawPage {
            magic: *MAGIC,
            checksum: U32::ZERO,
            version: U16::new(VERSION),
            level: self.level.raw(),
            zero: 0,
            map: map.0,
            index: U64::new(self.index),
            generation: U64::new(self.generation.0),
            rest: [0; 16],
            entries: self.entries.map(U32::new),
        };
        let mut block = raw.as_bytes().to_vec();
        seal(&mut block);
        block
    }

    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with it, whoever's it is.
    pub fn read(block: &[u8], map: MapId) -> Result<Self, Damage> {
        open(block, MAGIC, VERSION)?;
        let raw = RawPage::ref_from_bytes(block).map_err(|_| Damage::Foreign)?;
        if raw.map != map.0 {
            return Err(Damage::Foreign);
        }
        if raw.zero != 0 || raw.rest != [0; 16] {
            return Err(Damage::Contradiction("what must be zero is not"));
        }
        let level = Level::from_raw(raw.level).ok_or(Damage::Contradiction("no such level"))?;
        let generation = Generation(raw.generation.get());
        if generation.low() == 0 {
            return Err(Damage::Contradiction("generations are not zero"));
        }
        Ok(Self {
            level,
            index: raw.index.get(),
            generation,
            entries: Box::new(raw.entries.map(U32::get)),
        })
    }
}
