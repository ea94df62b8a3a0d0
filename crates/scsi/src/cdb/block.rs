//! The range of blocks that a block command names.

use units::{BlockCount, BlockSize, ByteCount, Lba, LbaRange};

use super::CdbError;
use crate::bytes::is_set;

/// Which blocks, and how they are to be cached.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlockRange {
    /// LOGICAL BLOCK ADDRESS.
    pub lba: Lba,
    /// TRANSFER LENGTH or NUMBER OF LOGICAL BLOCKS, as the CDB says it; READ (6) and WRITE (6)
    /// already have 256 for zero.
    pub blocks: BlockCount,
    /// FUA: to or from the medium.
    pub fua: bool,
    /// DPO: the blocks are not worth keeping in a cache.
    pub dpo: bool,
}

impl BlockRange {
    /// The same as a range; `None` if its end is past 2^64 - 1.
    #[must_use]
    pub const fn range(&self) -> Option<LbaRange> {
        LbaRange::new(self.lba, self.blocks)
    }

    /// Bytes in the range; `None` if that is past 2^64 - 1.
    #[must_use]
    pub const fn bytes(&self, block_size: BlockSize) -> Option<ByteCount> {
        self.blocks.bytes(block_size)
    }

    pub(super) const fn new(lba: u64, blocks: u64) -> Self {
        Self {
            lba: Lba(lba),
            blocks: BlockCount(blocks),
            fua: false,
            dpo: false,
        }
    }

    /// Byte 1 of READ, WRITE and their kin: RDPROTECT or WRPROTECT, DPO, FUA.
    ///
    /// spec: SBC-3 5.10 "READ (10) command": without protection information a field that is not
    /// zero is an invalid field. FUA_NV (bit 1) is obsolete and ignored.
    pub(super) const fn with_flags(mut self, byte1: u8) -> Result<Self, CdbError> {
        if byte1 & 0xe0 != 0 {
            return Err(CdbError::field(1, 7));
        }
        self.dpo = is_set(byte1, 4);
        self.fua = is_set(byte1, 3);
        Ok(self)
    }

    /// Byte 1 of commands with protection and DPO, but no FUA.
    pub(super) const fn with_dpo(self, byte1: u8) -> Result<Self, CdbError> {
        self.with_flags(byte1 & 0xf0)
    }
}
