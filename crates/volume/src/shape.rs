//! What a volume is: the facts that VPD pages, mode pages and layers above are derived from.

use crate::io::Op;
use units::{BlockCount, BlockSize, ByteCount, Lba, LbaRange};

/// Whether a volume can do something, and whether by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Support {
    /// It cannot.
    Absent,
    /// A layer does it by other means.
    Emulated,
    /// The backend does it.
    Native,
}

/// What a volume can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caps {
    /// It may be written.
    pub writable: bool,
    /// What is acknowledged without [`crate::Durability::Stable`] may be lost by a power cut (WCE).
    pub volatile_cache: bool,
    /// [`crate::Durability::Stable`].
    pub stable_write: Support,
    /// [`crate::Op::Discard`].
    pub discard: Support,
    /// Discarded blocks read as zeroes (LBPRZ).
    pub discard_reads_zero: bool,
    /// [`crate::Provision::Anchored`] (ANC_SUP).
    pub anchor: Support,
    /// [`crate::Op::WriteZeroes`].
    pub write_zeroes: Support,
    /// [`crate::Op::CompareAndWrite`].
    pub compare_and_write: Support,
    /// [`crate::Op::Extents`] without `since`.
    pub extents: Support,
    /// [`crate::Op::Extents`] with `since`.
    pub changed_blocks: Support,
}

/// How much a volume can do at once. A limit of 0 blocks means: not at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Largest read, write or compare.
    pub transfer_blocks_max: BlockCount,
    /// Largest discard.
    pub discard_blocks_max: BlockCount,
    /// Unit of discards; at least 1.
    pub discard_granularity: BlockCount,
    /// Address of the first whole unit of discards.
    pub discard_alignment: BlockCount,
    /// Largest write of zeroes.
    pub write_zeroes_blocks_max: BlockCount,
    /// Largest compare-and-write.
    pub compare_and_write_blocks_max: BlockCount,
    /// Largest aligned write that a power cut leaves whole; 0 or 1 promises nothing beyond a block.
    pub atomic_blocks_max: BlockCount,
    /// Requests that may be in flight on one lane.
    pub in_flight_max: u32,
    /// Alignment of payload memory that saves a copy, in bytes.
    pub memory_alignment: u32,
    /// Payload of writes is best in contiguous pieces of this many bytes, aligned with the blocks
    /// that they are for: the volume then keeps them without a copy. 0: any.
    pub payload_piece_bytes: u32,
}

impl Limits {
    /// The most blocks that an operation of this kind may touch; `None` where only the volume's
    /// size bounds it. Whoever cuts an operation asks with what it hands down, not with what it was
    /// asked for: zeroes and discards of one volume differ.
    #[must_use]
    pub const fn most_at_once(&self, op: &Op) -> Option<BlockCount> {
        match op {
            Op::Read { .. } | Op::Write { .. } => Some(self.transfer_blocks_max),
            Op::WriteZeroes { .. } => Some(self.write_zeroes_blocks_max),
            Op::Discard { .. } => Some(self.discard_blocks_max),
            Op::CompareAndWrite { .. } => Some(self.compare_and_write_blocks_max),
            Op::Extents { .. } | Op::Flush => None,
        }
    }
}

/// Counts the changes of a volume's facts. A lane works with the epoch it was opened in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Epoch(pub u64);

/// The facts of a volume. Immutable while a lane is open: a change is a new epoch and a new lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Bytes in a logical block.
    pub block_size: BlockSize,
    /// Logical blocks.
    pub block_count: BlockCount,
    /// Logical blocks in a physical one, as a power of two.
    pub physical_block_exponent: u8,
    /// How much one operation may cover.
    pub limits: Limits,
    /// Which operations it can do.
    pub caps: Caps,
    /// Which change of the facts this is.
    pub epoch: Epoch,
}

impl Shape {
    /// A volume as memory would be, to begin with: every operation natively and as large as the
    /// volume, but for compare-and-write, anchored and changed blocks; behind a volatile cache,
    /// without a promise beyond a block.
    #[must_use]
    pub fn of_memory(block_size: BlockSize, block_count: BlockCount) -> Self {
        Self {
            block_size,
            block_count,
            physical_block_exponent: 0,
            limits: Limits {
                transfer_blocks_max: block_count,
                discard_blocks_max: block_count,
                discard_granularity: BlockCount(1),
                discard_alignment: BlockCount(0),
                write_zeroes_blocks_max: block_count,
                compare_and_write_blocks_max: BlockCount(0),
                atomic_blocks_max: BlockCount(0),
                in_flight_max: 64,
                memory_alignment: 1,
                payload_piece_bytes: 0,
            },
            caps: Caps {
                writable: true,
                volatile_cache: true,
                stable_write: Support::Native,
                discard: Support::Native,
                discard_reads_zero: true,
                anchor: Support::Absent,
                write_zeroes: Support::Native,
                compare_and_write: Support::Absent,
                extents: Support::Native,
                changed_blocks: Support::Absent,
            },
            epoch: Epoch(0),
        }
    }

    /// Size in bytes.
    ///
    /// # Panics
    /// If it is over 2^64 - 1, which no volume is opened with.
    #[must_use]
    pub fn byte_count(&self) -> ByteCount {
        self.block_count
            .bytes(self.block_size)
            .expect("a volume is opened only with a size that fits")
    }

    /// All blocks.
    ///
    /// # Panics
    /// Never: a range from 0 on cannot wrap.
    #[must_use]
    pub fn whole(&self) -> LbaRange {
        LbaRange::new(Lba(0), self.block_count).expect("a range from 0 on cannot wrap")
    }

    /// Bytes in `range`, which lies inside the volume.
    ///
    /// # Panics
    /// If the range is not inside the volume.
    #[must_use]
    pub fn bytes_in(&self, range: LbaRange) -> usize {
        assert!(
            self.whole().contains(range),
            "{range:?} is not inside {:?}",
            self.whole()
        );
        let bytes = range
            .len()
            .bytes(self.block_size)
            .expect("inside a volume whose size fits");
        usize::try_from(bytes.0).expect("64-bit machines only")
    }
}
