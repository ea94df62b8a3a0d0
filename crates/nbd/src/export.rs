//! What is reported of the volume: size, abilities, block sizes.

use crate::wire::TRANSFER_MAX;
use volume::{Shape, Support};

const HAS_FLAGS: u16 = 1 << 0;
const READ_ONLY: u16 = 1 << 1;
const SEND_FLUSH: u16 = 1 << 2;
const SEND_FUA: u16 = 1 << 3;
const SEND_TRIM: u16 = 1 << 5;
const SEND_WRITE_ZEROES: u16 = 1 << 6;
const SEND_DF: u16 = 1 << 7;
const CAN_MULTI_CONN: u16 = 1 << 8;
const SEND_FAST_ZERO: u16 = 1 << 11;

/// What clients prefer where a volume has smaller blocks.
const PREFERRED: u32 = 4096;

/// A volume as its clients see it. There is one, and its name is empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    pub(crate) shape: Shape,
    /// What it is, in words.
    pub(crate) description: String,
    pub(crate) read_only: bool,
}

impl Export {
    /// The export of a volume of this shape.
    #[must_use]
    pub fn new(shape: Shape, description: impl Into<String>, read_only: bool) -> Self {
        let mut description: String = description.into();
        // A string of the protocol has at most 4096 bytes.
        while description.len() > 4096 {
            description.pop();
        }
        let read_only = read_only || !shape.caps.writable;
        Self {
            shape,
            description,
            read_only,
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.shape.byte_count().0
    }

    /// Transmission flags. DF costs nothing: a read is always answered in one chunk.
    pub(crate) fn flags(&self, structured: bool) -> u16 {
        let caps = &self.shape.caps;
        let mut flags = HAS_FLAGS | SEND_FLUSH | CAN_MULTI_CONN;
        if structured {
            flags |= SEND_DF;
        }
        if self.read_only {
            return flags | READ_ONLY;
        }
        flags |= SEND_FUA | SEND_WRITE_ZEROES;
        if caps.discard != Support::Absent {
            flags |= SEND_TRIM;
        }
        // A request for fast zeroes is refused where it cannot be fast; that we refuse is what this
        // flag says.
        flags | SEND_FAST_ZERO
    }

    /// Smallest, preferred and largest request in bytes.
    pub(crate) fn block_sizes(&self) -> [u32; 3] {
        let least = self.shape.block_size.bytes();
        let physical = least << self.shape.physical_block_exponent.min(8);
        [least, physical.max(PREFERRED), TRANSFER_MAX]
    }
}
