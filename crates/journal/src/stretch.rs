//! A stretch of a ring that is read again while the ring is in use: its batches with their records.

use crate::batch::{BATCH_BLOCKS_MAX, Header, Record};
use crate::index::SECTOR;
use crate::layout::{BLOCK, JournalId, Place};
use crate::log::data_at;
use crate::replay::{Found, Stop};
use formats::crc32c_of;
use units::Buf;

/// Batches of a ring that are stable and lie one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    pub(crate) of: (JournalId, u32),
    /// Blocks of the ring.
    pub(crate) blocks: u64,
    /// The first batch, or the end of the ring before it.
    pub(crate) from: Place,
    /// Right after the last one.
    pub(crate) end: Place,
}

impl Stretch {
    /// The first batch's number.
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.from.number
    }

    /// The number after the last batch's.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end.number
    }

    /// Bytes that it takes in the ring.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let blocks = self.end.position - self.from.position;
        usize::try_from(blocks).expect("a stretch is in memory") * BLOCK
    }

    /// What to read, one after the other: where, in bytes from the ring's first one, and how much.
    #[must_use]
    pub fn reads(&self) -> Vec<(u64, usize)> {
        let at = self.from.position % self.blocks;
        let total = self.end.position - self.from.position;
        let first = total.min(self.blocks - at);
        let bytes = |blocks: u64| usize::try_from(blocks).expect("in memory") * BLOCK;
        let mut reads = vec![(at * BLOCK as u64, bytes(first))];
        if total > first {
            reads.push((0, bytes(total - first)));
        }
        reads
    }

    /// The batches in `bytes`, which are what [`Stretch::reads`] says.
    ///
    /// # Errors
    /// A batch whose header is damaged.
    ///
    /// # Panics
    /// If there are fewer bytes than that.
    pub fn batches(&self, bytes: &Buf) -> Result<Vec<Found>, Stop> {
        assert_eq!(bytes.len(), self.bytes(), "all of it was read");
        let mut found = Vec::new();
        let mut next = self.from;
        while next.number < self.end.number {
            let turned = next.position.next_multiple_of(self.blocks);
            let batch = [next.position, turned]
                .into_iter()
                .find_map(|position| self.batch_at(bytes, next.number, position));
            let (header, batch) = batch.ok_or(Stop::Lost {
                number: next.number,
            })?;
            next = Place {
                number: next.number + 1,
                position: header.place.position + u64::from(header.blocks),
            };
            let damaged = header.damaged(|range| {
                let inside = range.end <= batch.len();
                inside.then(|| crc32c_of(batch.slice(range).segments()))
            });
            let right = |it: &Record| !damaged.contains(&it.change);
            found.push(Found {
                place: header.place,
                records: header.records.into_iter().filter(right).collect(),
                damaged,
            });
        }
        Ok(found)
    }

    /// The batch with this number, if it is at this position.
    fn batch_at(&self, bytes: &Buf, number: u64, position: u64) -> Option<(Header, Buf)> {
        let at = self.offset(position);
        let part = |blocks: usize| {
            let end = at.checked_add(blocks * BLOCK)?;
            (end <= bytes.len()).then(|| bytes.slice(at..end))
        };
        let own = Header::blocks_at(&part(1)?.to_vec(), self.of.0, self.of.1)?;
        let header = Header::read(&part(own)?.to_vec(), self.of.0, self.of.1)?;
        let right = header.place == Place { number, position };
        debug_assert!(u64::from(header.blocks) <= BATCH_BLOCKS_MAX);
        let batch = part(header.blocks as usize)?;
        right.then_some((header, batch))
    }

    /// Where a position's bytes are among those that were read.
    fn offset(&self, position: u64) -> usize {
        let blocks = position - self.from.position;
        usize::try_from(blocks)
            .expect("in memory")
            .saturating_mul(BLOCK)
    }

    /// Where a sector of the ring's log is among the bytes that were read.
    ///
    /// # Panics
    /// If it was not read.
    #[must_use]
    pub fn sector_at(&self, sector: u32) -> usize {
        let ring = self.blocks * BLOCK as u64;
        let from = self.from.position % self.blocks * BLOCK as u64;
        let byte = u64::from(sector) * SECTOR;
        let ahead = if byte >= from {
            byte - from
        } else {
            byte + ring - from
        };
        let ahead = usize::try_from(ahead).expect("in memory");
        assert!(ahead < self.bytes(), "a sector of the stretch");
        ahead
    }

    /// The sector of the ring's log where a record's data begins.
    ///
    /// # Panics
    /// If the ring had more than 2 TiB.
    #[must_use]
    pub fn sector_of(&self, place: Place, record: &Record) -> u32 {
        let byte = data_at(place, record, self.blocks);
        u32::try_from(byte / SECTOR).expect("a ring has 2 TiB at most")
    }

    /// Where a record's data is among the bytes that were read.
    #[must_use]
    pub fn data_at(&self, place: Place, record: &Record) -> usize {
        self.offset(place.position) + record.data_at as usize
    }
}
