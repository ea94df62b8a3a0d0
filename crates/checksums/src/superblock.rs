//! What is said of a whole map, and which generation of each region is the newest.

use crate::checksum::MapId;
use crate::page::PAGE;
use crate::place::{REGIONS_MAX, REGIONS_OF_PAGES, checksums_max, regions_max};
use crate::{VERSION, VERSION_SECTORS};
use formats::{CopiesState, Damage, open, seal};
use units::BlockSize;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub(crate) const MAGIC: &[u8; 8] = b"CWSUMMAP";

/// What a block without a checksum holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blank {
    /// Zeroes, and anything else is damage: the volume was made with its map.
    Zeroes,
    /// Anything: the map was made for a volume with contents. The next one who reads it adopts its
    /// checksum.
    Anything,
}

/// What is said of a map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// Its number.
    pub map: MapId,
    /// The volume that it belongs to, in whatever way its owner numbers volumes.
    pub volume: [u8; 16],
    /// Bytes in a logical block of the volume.
    pub block_size: BlockSize,
    /// Bytes that one checksum covers: a physical block, and no less than a logical one.
    pub covers: BlockSize,
    /// Logical blocks of the volume.
    pub blocks: u64,
    /// What a block without a checksum holds.
    pub blank: Blank,
    /// The generations are the newest ones, not only the newest ones that were known: nothing was
    /// written since.
    pub clean: bool,
    /// Rises by one with each superblock; slot 0 has the even ones.
    pub count: u64,
    /// Of each region's page the generation (lower 32 bits), 0 for none.
    pub regions: Box<[u32; REGIONS_MAX]>,
    /// Blocks that have a checksum, where those that have none may hold anything; after a crash not
    /// exactly. Else 0.
    pub with_checksum: u64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawSuperblock {
    magic: [u8; 8],
    checksum: U32,
    version: U16,
    block_exponent: u8,
    flags: u8,
    map: [u8; 16],
    volume: [u8; 16],
    blocks: U64,
    count: U64,
    regions: [U32; REGIONS_OF_PAGES],
    with_checksum: U64,
    zero: [u8; 8],
    more_regions: [U32; REGIONS_MAX - REGIONS_OF_PAGES],
    rest: [u8; PAGE - 80 - 4 * REGIONS_MAX],
}

const _: () = assert!(size_of::<RawSuperblock>() == PAGE);
const _: () = assert!(std::mem::offset_of!(RawSuperblock, map) == 16);
const _: () = assert!(std::mem::offset_of!(RawSuperblock, regions) == 64);
const _: () = assert!(std::mem::offset_of!(RawSuperblock, with_checksum) == 320);
const _: () = assert!(std::mem::offset_of!(RawSuperblock, more_regions) == 336);

const CLEAN: u8 = 1;
const ANYTHING: u8 = 2;

impl Superblock {
    /// The slot that it is written to.
    #[must_use]
    pub const fn slot(&self) -> usize {
        if self.count.is_multiple_of(2) { 0 } else { 1 }
    }

    /// Logical blocks that one checksum covers.
    #[must_use]
    pub const fn per_checksum(&self) -> u64 {
        (self.covers.bytes() / self.block_size.bytes()) as u64
    }

    /// Blocks with a checksum each; the last one may be shorter.
    #[must_use]
    pub const fn checksums(&self) -> u64 {
        self.blocks.div_ceil(self.per_checksum())
    }

    const fn version(&self) -> u16 {
        match self.covers {
            BlockSize::B512 => VERSION_SECTORS,
            BlockSize::B4096 => VERSION,
        }
    }

    /// The block that says it.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let clean = if self.clean { CLEAN } else { 0 };
        let anything = match self.blank {
            Blank::Zeroes => 0,
            Blank::Anything => ANYTHING,
        };
        let raw = RawSuperblock {
            magic: *MAGIC,
            checksum: U32::ZERO,
            version: U16::new(self.version()),
            block_exponent: match self.block_size {
                BlockSize::B512 => 9,
                BlockSize::B4096 => 12,
            },
            flags: clean | anything,
            map: self.map.0,
            volume: self.volume,
            blocks: U64::new(self.blocks),
            count: U64::new(self.count),
            regions: std::array::from_fn(|at| U32::new(self.regions[at])),
            with_checksum: U64::new(self.with_checksum),
            zero: [0; 8],
            more_regions: std::array::from_fn(|at| U32::new(self.regions[REGIONS_OF_PAGES + at])),
            rest: [0; PAGE - 80 - 4 * REGIONS_MAX],
        };
        let mut block = raw.as_bytes().to_vec();
        seal(&mut block);
        block
    }

    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(block: &[u8]) -> Result<Self, Damage> {
        let covers = if open(block, MAGIC, VERSION).is_ok() {
            BlockSize::B4096
        } else {
            open(block, MAGIC, VERSION_SECTORS)?;
            BlockSize::B512
        };
        let raw = RawSuperblock::ref_from_bytes(block).map_err(|_| Damage::Foreign)?;
        let block_size = match raw.block_exponent {
            9 => BlockSize::B512,
            12 => BlockSize::B4096,
            _ => return Err(Damage::Contradiction("no such block size")),
        };
        if covers.bytes() < block_size.bytes() {
            return Err(Damage::Contradiction("a checksum covers a block at least"));
        }
        let mut regions = Box::new([0; REGIONS_MAX]);
        for (region, raw) in regions
            .iter_mut()
            .zip(raw.regions.iter().chain(&raw.more_regions))
        {
            *region = raw.get();
        }
        let zeroes = raw.zero.iter().chain(&raw.rest).all(|&byte| byte == 0)
            && regions[regions_max(covers)..]
                .iter()
                .all(|&region| region == 0);
        if raw.flags & !(CLEAN | ANYTHING) != 0 || !zeroes {
            return Err(Damage::Contradiction("what must be zero is not"));
        }
        let found = Self {
            map: MapId(raw.map),
            volume: raw.volume,
            block_size,
            covers,
            blocks: raw.blocks.get(),
            blank: if raw.flags & ANYTHING == 0 {
                Blank::Zeroes
            } else {
                Blank::Anything
            },
            clean: raw.flags & CLEAN != 0,
            count: raw.count.get(),
            regions,
            with_checksum: raw.with_checksum.get(),
        };
        if found.blank == Blank::Zeroes && found.with_checksum != 0 {
            return Err(Damage::Contradiction("every block of it has a checksum"));
        }
        if !(1..=checksums_max(covers)).contains(&found.checksums()) {
            return Err(Damage::Contradiction("no volume has that size"));
        }
        Ok(found)
    }

    /// How both slots are. The first one that is written goes to the first of them.
    #[must_use]
    pub fn copies_state(slots: [&[u8]; 2]) -> CopiesState {
        CopiesState::of(slots, 0, |block| Self::read(block).map(|it| it.count))
    }

    /// The newer one of both slots.
    ///
    /// # Errors
    /// What is wrong with the first slot, where neither can be read; a version that is not ours in
    /// either is reported first.
    pub fn newest(slots: [&[u8]; 2]) -> Result<Self, Damage> {
        let [first, second] = slots.map(Self::read);
        match (first, second) {
            (Err(version @ Damage::Version { .. }), _)
            | (_, Err(version @ Damage::Version { .. })) => Err(version),
            (Ok(first), Ok(second)) if second.count > first.count => Ok(second),
            (Ok(first), _) => Ok(first),
            (Err(_), Ok(second)) => Ok(second),
            (Err(error), Err(_)) => Err(error),
        }
    }
}
