//! The log: all changes of tables, metadata and bitmaps go through it, payload never does.
//!
//! spec: MS-VHDX 2.3 "Log"

mod overlay;
mod replay;
mod write;

pub(crate) use overlay::Overlay;
pub(crate) use replay::{Sequence, find};
pub(crate) use write::{LogEntry, pages_of_an_entry};

/// Bytes of a sector of the log, and of a page that an entry holds.
pub(crate) const SECTOR: usize = 4096;

const ENTRY: &[u8; 4] = b"loge";
const ZERO: &[u8; 4] = b"zero";
const DATA: &[u8; 4] = b"desc";
const CONTENT: &[u8; 4] = b"data";
const HEAD_BYTES: usize = 64;
const DESCRIPTOR_BYTES: usize = 32;
/// Bytes of a page that stand in its descriptor: where the sector has its signature and number.
const LEADING: usize = 8;
const TRAILING: usize = 4;

/// Sectors that so many descriptors take, with the entry's head.
const fn descriptor_sectors(descriptors: usize) -> usize {
    (HEAD_BYTES + descriptors * DESCRIPTOR_BYTES).div_ceil(SECTOR)
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "sizes in tests are small")]
mod test;
