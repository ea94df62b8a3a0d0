//! Entries that we write.

use super::{
    CONTENT, DATA, DESCRIPTOR_BYTES, ENTRY, HEAD_BYTES, LEADING, SECTOR, TRAILING, ZERO,
    descriptor_sectors,
};
use crate::checked::seal;
use crate::guid::Guid;
use formats::Writer;

/// The most pages that an entry may hold in a log of so many bytes: an entry and the one before it
/// have room side by side, so the older one is whole until the newer one is.
pub(crate) fn pages_of_an_entry(log_bytes: u64) -> usize {
    let sectors = usize::try_from(log_bytes / 2).unwrap_or(usize::MAX) / SECTOR;
    let mut pages = sectors.saturating_sub(1);
    while pages + descriptor_sectors(pages) > sectors {
        pages -= 1;
    }
    pages.min(1024)
}

/// Changed pages that become true together.
pub(crate) struct LogEntry<'a> {
    pub(crate) log: Guid,
    pub(crate) sequence: u64,
    /// Where it is in the log; its tail is itself, as all before it is applied.
    pub(crate) place: u32,
    /// The file's length, which is on the disk.
    pub(crate) flushed: u64,
    /// The file's length.
    pub(crate) last: u64,
    /// Pages of the file.
    pub(crate) pages: &'a [(u64, Vec<u8>)],
}

fn is_zero(page: &[u8]) -> bool {
    page.iter().all(|byte| *byte == 0)
}

impl LogEntry<'_> {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let with_data = self.pages.iter().filter(|(_, page)| !is_zero(page)).count();
        let head = SECTOR * descriptor_sectors(self.pages.len());
        let length = u32::try_from(head + SECTOR * with_data).expect("an entry is a part of a log");
        let count = u32::try_from(self.pages.len()).expect("an entry has few pages");
        let mut bytes = Writer::with_capacity(head);
        bytes.bytes(ENTRY).u32(0).u32(length).u32(self.place);
        bytes
            .u64(self.sequence)
            .u32(count)
            .u32(0)
            .bytes(&self.log.0);
        bytes.u64(self.flushed).u64(self.last);
        for (at, page) in self.pages {
            if is_zero(page) {
                bytes.bytes(ZERO).u32(0).u64(4096);
            } else {
                bytes.bytes(DATA).bytes(&page[SECTOR - TRAILING..]);
                bytes.bytes(&page[..LEADING]);
            }
            bytes.u64(*at).u64(self.sequence);
        }
        debug_assert_eq!(head % SECTOR, 0);
        debug_assert!(HEAD_BYTES + DESCRIPTOR_BYTES * self.pages.len() <= head);
        let mut bytes = bytes.padded(head);
        let [low, high] = split(self.sequence);
        for (_, page) in self.pages.iter().filter(|(_, page)| !is_zero(page)) {
            bytes.extend(CONTENT);
            bytes.extend(high.to_le_bytes());
            bytes.extend(&page[LEADING..SECTOR - TRAILING]);
            bytes.extend(low.to_le_bytes());
        }
        seal(&mut bytes);
        bytes
    }
}

/// The low and the high half.
pub(super) fn split(number: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = number.to_le_bytes();
    [
        u32::from_le_bytes([a, b, c, d]),
        u32::from_le_bytes([e, f, g, h]),
    ]
}
