//! Sizes, and where in the block allocation table a block's entry is.
//!
//! spec: MS-VHDX 2.4 "Blocks", 2.5 "BAT"

use crate::error::{Error, Part, contradiction};

/// 2^20 bytes.
pub(crate) const MIB: u64 = 1 << 20;
/// The largest disk.
pub const DISK_BYTES_MAX: u64 = 64 << 40;
/// Bytes of the pages in which tables are read and logged.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// Bytes of a sector bitmap, which is one block of its own.
pub(crate) const BITMAP_BYTES: u64 = MIB;
/// Sectors that a bitmap speaks of.
const BITMAP_SECTORS: u64 = BITMAP_BYTES * 8;
/// Bytes of an entry of the table.
const ENTRY_BYTES: u64 = 8;

/// Sizes of a disk in an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// As hosts see it: whole sectors, 64 TiB at most.
    pub disk_bytes: u64,
    /// A power of two from 1 to 256 MiB.
    pub block_bytes: u64,
    /// Bytes of a logical sector: 512 or 4096.
    pub sector_bytes: u64,
}

impl Geometry {
    /// Of sizes that the format allows.
    ///
    /// # Errors
    /// If it does not.
    pub fn new(disk_bytes: u64, block_bytes: u64, sector_bytes: u64) -> Result<Self, Error> {
        let wrong = |what| Err(contradiction(Part::Metadata, what));
        if sector_bytes != 512 && sector_bytes != 4096 {
            return wrong("logical sectors have 512 or 4096 bytes");
        }
        if !block_bytes.is_power_of_two() || !(MIB..=256 * MIB).contains(&block_bytes) {
            return wrong("blocks have a power of two of 1 to 256 MiB");
        }
        if disk_bytes == 0
            || disk_bytes > DISK_BYTES_MAX
            || !disk_bytes.is_multiple_of(sector_bytes)
        {
            return wrong("a disk has whole sectors, and at most 64 TiB");
        }
        Ok(Self {
            disk_bytes,
            block_bytes,
            sector_bytes,
        })
    }

    /// Payload blocks that one bitmap speaks of.
    #[must_use]
    pub const fn ratio(&self) -> u64 {
        BITMAP_SECTORS * self.sector_bytes / self.block_bytes
    }

    /// Payload blocks.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.disk_bytes.div_ceil(self.block_bytes)
    }

    /// Bitmaps that all blocks have.
    #[must_use]
    pub const fn bitmaps(&self) -> u64 {
        self.blocks().div_ceil(self.ratio())
    }

    /// The least number of entries that a table has: with the last bitmap where there is a parent.
    #[must_use]
    pub const fn entries(&self, has_parent: bool) -> u64 {
        if has_parent {
            self.bitmaps() * (self.ratio() + 1)
        } else {
            self.blocks() + (self.blocks() - 1) / self.ratio()
        }
    }

    /// Bytes that we give to a table, in whole MiB: with all bitmaps, and where blocks are large
    /// enough with room for the largest disk.
    #[must_use]
    pub const fn table_bytes(&self) -> u64 {
        let blocks = if self.block_bytes >= 32 * MIB {
            DISK_BYTES_MAX.div_ceil(self.block_bytes)
        } else {
            self.blocks()
        };
        let entries = blocks.div_ceil(self.ratio()) * (self.ratio() + 1);
        (entries * ENTRY_BYTES).next_multiple_of(MIB)
    }

    /// Where in the table the entry of a payload block is, in bytes.
    #[must_use]
    pub const fn payload_entry(&self, block: u64) -> u64 {
        (block + block / self.ratio()) * ENTRY_BYTES
    }

    /// Where in the table the entry of a payload block's bitmap is, in bytes.
    #[must_use]
    pub const fn bitmap_entry(&self, block: u64) -> u64 {
        ((block / self.ratio() + 1) * (self.ratio() + 1) - 1) * ENTRY_BYTES
    }

    /// What the entry with this number is of.
    #[must_use]
    pub const fn entry_of(&self, number: u64) -> EntryOf {
        let (chunk, within) = (number / (self.ratio() + 1), number % (self.ratio() + 1));
        if within == self.ratio() {
            EntryOf::Bitmap(chunk)
        } else {
            EntryOf::Block(chunk * self.ratio() + within)
        }
    }

    /// The first bit of a block in its bitmap.
    #[must_use]
    pub const fn first_bit(&self, block: u64) -> u64 {
        block % self.ratio() * self.sectors_of_block()
    }

    /// Also where the disk ends in the middle of the last one.
    #[must_use]
    pub const fn sectors_of_block(&self) -> u64 {
        self.block_bytes / self.sector_bytes
    }

    /// Bytes of a block that are within the disk.
    #[must_use]
    pub const fn bytes_of(&self, block: u64) -> u64 {
        let rest = self.disk_bytes - block * self.block_bytes;
        if rest < self.block_bytes {
            rest
        } else {
            self.block_bytes
        }
    }

    /// The parts of a range in each block: block, where in it, how many bytes.
    pub(crate) fn pieces(
        &self,
        at: u64,
        bytes: u64,
    ) -> impl Iterator<Item = (u64, u64, u64)> + use<> {
        let (size, end) = (self.block_bytes, at + bytes);
        let mut next = at;
        std::iter::from_fn(move || {
            let (block, within) = (next / size, next % size);
            let bytes = (size - within).min(end - next);
            next += bytes;
            (bytes > 0).then_some((block, within, bytes))
        })
    }

    /// The range is of whole sectors within the disk.
    pub(crate) fn check(&self, at: u64, bytes: u64) -> Result<(), Error> {
        let end = at.checked_add(bytes).filter(|end| *end <= self.disk_bytes);
        let whole = at.is_multiple_of(self.sector_bytes) && bytes.is_multiple_of(self.sector_bytes);
        end.filter(|_| whole).map(|_| ()).ok_or(Error::OutOfRange)
    }
}

/// What an entry of the table is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryOf {
    /// Of a payload block.
    Block(u64),
    /// Of the bitmap of a chunk.
    Bitmap(u64),
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_document() {
        let disk = Geometry::new(64 << 40, 32 << 20, 512).unwrap();
        assert_eq!(
            (disk.ratio(), disk.blocks(), disk.table_bytes()),
            (128, 2 << 20, 17 << 20)
        );
        let small = Geometry::new(64 << 40, 1 << 20, 512).unwrap();
        assert_eq!(small.table_bytes(), 513 << 20);
        let one = Geometry::new(1 << 20, 256 << 20, 4096).unwrap();
        assert_eq!(
            (one.ratio(), one.entries(false), one.entries(true)),
            (128, 1, 129)
        );
        for (bytes, block, sector) in [
            (0, 1 << 20, 512),
            (100, 1 << 20, 512),
            (512, 1 << 20, 4096),
            (4096, 3 << 20, 512),
            (4096, 1 << 19, 512),
            (4096, 1 << 29, 512),
            (4096, 1 << 20, 1024),
            ((64 << 40) + 512, 1 << 20, 512),
        ] {
            assert!(
                Geometry::new(bytes, block, sector).is_err(),
                "{bytes} {block} {sector}"
            );
        }
    }

    #[test]
    fn entries_are_in_order_and_each_is_of_one_thing() {
        for (block_bytes, sector) in [(256 << 20, 512), (2 << 20, 4096), (1 << 20, 512)] {
            let disk = Geometry::new(1 << 44, block_bytes, sector).unwrap();
            for block in [0, 1, disk.ratio() - 1, disk.ratio(), 3 * disk.ratio() + 7] {
                let entry = disk.payload_entry(block) / 8;
                assert_eq!(disk.entry_of(entry), EntryOf::Block(block));
                let bitmap = disk.bitmap_entry(block) / 8;
                assert_eq!(disk.entry_of(bitmap), EntryOf::Bitmap(block / disk.ratio()));
                assert!(bitmap > entry && bitmap - entry <= disk.ratio());
            }
            let last = disk.payload_entry(disk.blocks() - 1) / 8;
            assert_eq!(disk.entries(false), last + 1);
            assert_eq!(
                disk.entries(true),
                disk.bitmap_entry(disk.blocks() - 1) / 8 + 1
            );
        }
        let disk = Geometry::new(10 << 20, 4 << 20, 512).unwrap();
        let pieces: Vec<_> = disk.pieces((4 << 20) - 512, (4 << 20) + 1024).collect();
        let block = 4 << 20;
        assert_eq!(pieces, [(0, block - 512, 512), (1, 0, block), (2, 0, 512)]);
        assert_eq!((disk.bytes_of(1), disk.bytes_of(2)), (block, 2 << 20));
    }
}
