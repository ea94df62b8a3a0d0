//! A segment of a ring that is read again while the ring is in use: its batches with their records.

use crate::batch::{BATCH_BLOCKS_MAX, Header, Record, data_at};
use crate::index::SECTOR;
use crate::layout::{BLOCK, BatchPosition, JournalId};
use formats::crc32c_of;
use std::ops::Range;
use units::Buf;

/// Batches of a ring that are stable and lie one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    pub(crate) of: (JournalId, u32),
    /// Blocks of the ring.
    pub(crate) blocks: u64,
    /// The first batch, or the end of the ring before it.
    pub(crate) from: BatchPosition,
    /// Right after each.
    pub(crate) ends: Vec<u64>,
}

/// A batch that is read again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Again {
    /// What it holds.
    Found {
        /// Which batch, and where.
        place: BatchPosition,
        /// Its changes whose data is right.
        records: Vec<Record>,
        /// Its changes whose data is damaged.
        damaged: Vec<Record>,
    },
    /// Its header is damaged: what the index has in these sectors of the log is gone.
    Damaged {
        /// From its first to its last one.
        sectors: Range<u32>,
    },
}

impl Segment {
    /// The first batch's number.
    #[must_use]
    pub const fn first(&self) -> u64 {
        self.from.number
    }

    /// The number after the last batch's.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.from.number + self.ends.len() as u64
    }

    /// Blocks that its batches before this one take.
    #[must_use]
    pub fn blocks_before(&self, number: u64) -> u64 {
        let count = usize::try_from(number - self.from.number).expect("in memory");
        self.positions(count) - self.from.position
    }

    /// Where so many of its batches end.
    fn positions(&self, count: usize) -> u64 {
        count
            .checked_sub(1)
            .map_or(self.from.position, |last| self.ends[last])
    }

    /// The same in parts of so many blocks at the most, and of one batch at least.
    #[must_use]
    pub fn parts(&self, blocks_max: u64) -> Vec<Self> {
        let mut parts = Vec::new();
        let (mut from, mut ends) = (self.from, Vec::new());
        for &end in &self.ends {
            if let Some(&last) = ends.last()
                && end - from.position > blocks_max
            {
                let next = BatchPosition {
                    number: from.number + ends.len() as u64,
                    position: last,
                };
                parts.push(self.part(from, std::mem::take(&mut ends)));
                from = next;
            }
            ends.push(end);
        }
        if !ends.is_empty() {
            parts.push(self.part(from, ends));
        }
        parts
    }

    fn part(&self, from: BatchPosition, ends: Vec<u64>) -> Self {
        Self {
            of: self.of,
            blocks: self.blocks,
            from,
            ends,
        }
    }

    /// Bytes that it takes in the ring.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let blocks = self.blocks_before(self.end());
        usize::try_from(blocks).expect("a segment is in memory") * BLOCK
    }

    /// What to read, one after the other: where, in bytes from the ring's first one, and how much.
    #[must_use]
    pub fn reads(&self) -> Vec<(u64, usize)> {
        let at = self.from.position % self.blocks;
        let total = self.blocks_before(self.end());
        let first = total.min(self.blocks - at);
        let bytes = |blocks: u64| usize::try_from(blocks).expect("in memory") * BLOCK;
        let mut reads = vec![(at * BLOCK as u64, bytes(first))];
        if total > first {
            reads.push((0, bytes(total - first)));
        }
        reads
    }

    /// The batches in `bytes`, which are what [`Segment::reads`] says.
    ///
    /// # Panics
    /// If there are fewer bytes than that.
    #[must_use]
    pub fn batches(&self, bytes: &Buf) -> Vec<Again> {
        assert_eq!(bytes.len(), self.bytes(), "all of it was read");
        (0..self.ends.len())
            .map(|which| self.again(bytes, which))
            .collect()
    }

    fn again(&self, bytes: &Buf, which: usize) -> Again {
        let number = self.from.number + which as u64;
        let (begin, end) = (self.positions(which), self.ends[which]);
        let turned = begin.next_multiple_of(self.blocks);
        // Where it lies is known from its length: nothing else would reach over the ring's end.
        // What an earlier opening gave up may still lie at the other place, with the same number.
        let first = if end > turned { turned } else { begin };
        let Some((header, batch)) = self.batch_at(bytes, number, first) else {
            let sector = |block: u64| {
                let sector = block * (BLOCK as u64 / SECTOR);
                u32::try_from(sector).expect("a ring has 2 TiB at most")
            };
            let at = first % self.blocks;
            let sectors = sector(at)..sector(at + (end - first));
            return Again::Damaged { sectors };
        };
        let damaged = header.damaged(|range| {
            let inside = range.end <= batch.len();
            inside.then(|| crc32c_of(batch.slice(range).segments()))
        });
        let right = |it: &Record| !damaged.contains(&it.change);
        let (records, damaged) = header.records.into_iter().partition(right);
        Again::Found {
            place: header.place,
            records,
            damaged,
        }
    }

    /// The batch with this number, if it is at this position.
    fn batch_at(&self, bytes: &Buf, number: u64, position: u64) -> Option<(Header, Buf)> {
        let at = self.offset(position);
        let part = |blocks: usize| {
            let end = at.checked_add(blocks * BLOCK)?;
            (end <= bytes.len()).then(|| bytes.slice(at..end))
        };
        let own = Header::blocks_at(&part(1)?.to_vec(), self.of.0, self.of.1)?;
        let header = Header::read(&part(own)?.to_vec(), self.of.0, self.of.1).ok()?;
        let right = header.place == BatchPosition { number, position };
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
        assert!(ahead < self.bytes(), "a sector of the segment");
        ahead
    }

    /// The sector of the ring's log where a record's data begins.
    ///
    /// # Panics
    /// If the ring had more than 2 TiB.
    #[must_use]
    pub fn sector_of(&self, place: BatchPosition, record: &Record) -> u32 {
        let byte = data_at(place, record, self.blocks);
        u32::try_from(byte / SECTOR).expect("a ring has 2 TiB at most")
    }

    /// Where a record's data is among the bytes that were read.
    #[must_use]
    pub fn data_at(&self, place: BatchPosition, record: &Record) -> usize {
        self.offset(place.position) + record.data_at as usize
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn parts_are_the_whole_in_pieces_that_are_no_larger_than_asked_or_one_batch() {
        let whole = Segment {
            of: (JournalId([1; 16]), 0),
            blocks: 100,
            from: BatchPosition {
                number: 3,
                position: 40,
            },
            ends: vec![45, 60, 61, 90, 130, 131],
        };
        for most in 1..100 {
            let parts = whole.parts(most);
            let mut at = whole.from;
            let mut ends: Vec<u64> = Vec::new();
            for part in &parts {
                assert_eq!(part.from, at);
                let blocks = part.blocks_before(part.end());
                assert!(blocks <= most || part.ends.len() == 1, "{part:?}");
                ends.extend(&part.ends);
                at = BatchPosition {
                    number: part.end(),
                    position: at.position + blocks,
                };
            }
            assert_eq!(ends, whole.ends);
        }
        assert_eq!(whole.parts(91), [whole]);
    }
}
