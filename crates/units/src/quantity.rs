//! Blocks, bytes, and ranges of blocks.

use core::fmt;

/// Logical block address: a 0-based *index*.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Lba(pub u64);

/// A *count* of logical blocks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct BlockCount(pub u64);

/// A *size* in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ByteCount(pub u64);

/// The logical block sizes that a volume may have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BlockSize {
    /// 512 bytes.
    B512,
    /// 4096 bytes.
    B4096,
}

impl BlockSize {
    /// Bytes in one block.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Self::B512 => 512,
            Self::B4096 => 4096,
        }
    }

    /// The block size of `bytes` bytes, if there is one.
    #[must_use]
    pub const fn from_bytes(bytes: u64) -> Option<Self> {
        match bytes {
            512 => Some(Self::B512),
            4096 => Some(Self::B4096),
            _ => None,
        }
    }
}

impl BlockCount {
    /// The only way from a count to a size; `None` on overflow.
    #[must_use]
    pub const fn bytes(self, block_size: BlockSize) -> Option<ByteCount> {
        match self.0.checked_mul(block_size.bytes() as u64) {
            Some(bytes) => Some(ByteCount(bytes)),
            None => None,
        }
    }
}

impl ByteCount {
    /// Whole blocks that fit into this size.
    #[must_use]
    pub const fn blocks_floor(self, block_size: BlockSize) -> BlockCount {
        BlockCount(self.0 / block_size.bytes() as u64)
    }
}

/// Half-open range of blocks `[start, end)`; `start <= end` by construction.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LbaRange {
    start: Lba,
    end: Lba,
}

impl LbaRange {
    /// The `len` blocks from `start` on; `None` if the end is past 2^64 - 1.
    #[must_use]
    pub const fn new(start: Lba, len: BlockCount) -> Option<Self> {
        match start.0.checked_add(len.0) {
            Some(end) => Some(Self {
                start,
                end: Lba(end),
            }),
            None => None,
        }
    }

    /// `[start, end)`; `None` if `end` is before `start`.
    #[must_use]
    pub const fn between(start: Lba, end: Lba) -> Option<Self> {
        if start.0 <= end.0 {
            Some(Self { start, end })
        } else {
            None
        }
    }

    /// First block.
    #[must_use]
    pub const fn start(self) -> Lba {
        self.start
    }

    /// The block after the last one.
    #[must_use]
    pub const fn end(self) -> Lba {
        self.end
    }

    /// Number of blocks.
    #[must_use]
    pub const fn len(self) -> BlockCount {
        BlockCount(self.end.0 - self.start.0)
    }

    /// No block at all.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.start.0 == self.end.0
    }

    /// The same number of blocks, `by` further on; `None` on overflow.
    #[must_use]
    pub const fn shift(self, by: BlockCount) -> Option<Self> {
        match self.start.0.checked_add(by.0) {
            Some(start) => Self::new(Lba(start), self.len()),
            None => None,
        }
    }

    /// At least one block is in both. An empty range overlaps nothing.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        !self.is_empty()
            && !other.is_empty()
            && self.start.0 < other.end.0
            && other.start.0 < self.end.0
    }

    /// Every block of `other` is in this range.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.start.0 <= other.start.0 && other.end.0 <= self.end.0
    }
}

impl fmt::Debug for LbaRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.start.0, self.end.0)
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_range_never_wraps() {
        assert!(LbaRange::new(Lba(u64::MAX), BlockCount(1)).is_none());
        assert!(LbaRange::new(Lba(u64::MAX), BlockCount(0)).is_some());
        let range = LbaRange::new(Lba(8), BlockCount(8)).unwrap();
        assert!(range.shift(BlockCount(u64::MAX - 15)).is_none());
        assert_eq!(range.shift(BlockCount(8)).unwrap().start(), Lba(16));
    }

    #[test]
    fn overlap_is_symmetric_and_excludes_touching_ranges() {
        for a in 0..6 {
            for b in 0..6 {
                for (len_a, len_b) in [(0, 0), (0, 2), (2, 0), (2, 2), (1, 3)] {
                    let x = LbaRange::new(Lba(a), BlockCount(len_a)).unwrap();
                    let y = LbaRange::new(Lba(b), BlockCount(len_b)).unwrap();
                    let shared = (a..a + len_a).any(|block| (b..b + len_b).contains(&block));
                    assert_eq!(x.overlaps(y), shared, "{x:?} {y:?}");
                    assert_eq!(y.overlaps(x), shared);
                }
            }
        }
    }

    #[test]
    fn a_size_beyond_64_bits_is_refused() {
        assert_eq!(BlockCount(1 << 53).bytes(BlockSize::B4096), None);
        assert_eq!(BlockCount(3).bytes(BlockSize::B512), Some(ByteCount(1536)));
    }
}
