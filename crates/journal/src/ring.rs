//! The writing half of a ring: gives batches their places, says when they are stable, and uses room
//! again.
//!
//! ```text
//!     free    | tail .. released .. committed .. stable .. | in flight |    free
//!             ^ in the checkpoint                          ^ here       ^ head
//! ```
//!
//! **Contract.** A batch is stable when its write, which must bypass every volatile cache, and all
//! before it have succeeded: that is when its changes may be acknowledged, if nobody else has to
//! have them ([`Commit`](crate::Commit)). A batch is committed when all that it and those before it
//! hold is. Its room may be released when nothing of it is held any more: it is committed, void, or
//! was relocated. Room is written again only after a checkpoint that leaves it out is stable; so
//! nothing is written twice within one flush window, and a crash finds either the old or the new
//! beginning of the log with everything after it.
//!
//! **Failure.** After a write that failed nobody knows what the device holds: the ring takes
//! nothing more, acknowledges nothing that was not yet, and must be opened again.

use crate::batch::header_blocks;
use crate::batch::{BATCH_BLOCKS_MAX, Change, DATA_ALIGNMENT, DATA_BYTES_MAX, Header, RECORDS_MAX};
use crate::blocks::{BlockChecksums, DataChecksums, padding};
use crate::layout::{BLOCK, BatchPosition, Checkpoint, JournalId};
use crate::segment::Segment;
use std::collections::VecDeque;
use units::Buf;

/// Blocks that only what is relocated may take, but no more than half of a ring: the largest batch
/// in halves, and what one of them leaves free before the ring begins anew. So the oldest batch can
/// always be relocated, and its room used again.
const KEPT_BLOCKS: u64 = 2 * BATCH_BLOCKS_MAX;

/// Blocks that records of epochs may take in a ring that is full for hosts, but no more than this
/// part of it: as many batches of them. A ring that is not so many times as large as what is kept
/// for relocation has them out of that: hosts need their half for the largest batch.
const EPOCH_BLOCKS: u64 = 16;
const EPOCH_PART: u64 = 32;
const EPOCH_LARGE: u64 = 4;

/// Why changes are not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// There is no room until something is released and a checkpoint is stable.
    Full,
    /// A write has failed.
    Failed,
}

/// A batch as it goes to the journal's device.
#[derive(Debug)]
pub struct BatchWrite {
    /// Which, for [`Ring::written`].
    pub number: u64,
    /// Where, in bytes from the first one of the ring's log.
    pub at: u64,
    /// Whole blocks.
    pub bytes: Buf,
    /// Where the data of each change lies, in bytes from `at`; where it has none, where it would.
    pub data_at: Vec<u32>,
    /// What of it this node has given numbers to, of volumes of several copies: other nodes get it.
    pub carried: Vec<(Change, Buf)>,
}

/// The block that says from where a replay has to read, and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckpointWrite {
    /// The slot, 0 or 1.
    pub slot: u8,
    /// The block.
    pub bytes: Vec<u8>,
}

#[derive(Clone)]
struct InFlight {
    number: u64,
    written: bool,
}

/// A ring that is open for writing.
#[derive(Clone)]
pub struct Ring {
    journal: JournalId,
    ring: u32,
    blocks: u64,
    /// The last checkpoint that is stable.
    checkpoint: Checkpoint,
    /// The tail of the one before, in the other slot: its room is used again only when both slots
    /// know that it is free, so that either of them finds the whole log.
    floor: BatchPosition,
    /// The one that is being written.
    writing: Option<Checkpoint>,
    /// The first checkpoint of this opening is stable.
    open: bool,
    /// Where the next batch goes at the earliest.
    head: BatchPosition,
    /// From each batch's place to the next one's, from the checkpoint's tail on.
    lengths: VecDeque<u32>,
    in_flight: VecDeque<InFlight>,
    /// The oldest batch that has something which is not committed though it may be stable, and is
    /// needed there,
    held: Option<u64>,
    /// and the oldest one where a replay may find such.
    uncommitted: Option<u64>,
    /// All batches below are in the backing volume.
    released: BatchPosition,
    /// What the newest batch changed.
    before: Vec<Change>,
    /// Of the blocks from the checkpoint's tail on.
    checksums: BlockChecksums,
    failed: bool,
}

impl Ring {
    /// Opens a ring of `blocks` blocks after what was found in it: its checkpoint, the distances
    /// from batch to batch from the checkpoint's tail on with the checksums of their blocks, and
    /// what the last one changed. Nothing may be written before [`Ring::checkpoint`] has been and
    /// is stable.
    pub(crate) fn open(
        (journal, ring): (JournalId, u32),
        blocks: u64,
        found: Checkpoint,
        (lengths, checksums): (VecDeque<u32>, BlockChecksums),
        before: Vec<Change>,
    ) -> Self {
        let ahead: u64 = lengths.iter().map(|&blocks| u64::from(blocks)).sum();
        let head = BatchPosition {
            number: found.tail.number + lengths.len() as u64,
            position: found.tail.position + ahead,
        };
        let opening = Checkpoint {
            count: found.count + 1,
            epoch: found.epoch + 1,
            begun: head,
            tail: found.tail,
        };
        Self {
            journal,
            ring,
            blocks,
            checkpoint: found,
            floor: found.tail,
            writing: Some(opening),
            open: false,
            head,
            lengths,
            in_flight: VecDeque::new(),
            held: None,
            uncommitted: None,
            released: found.tail,
            before,
            checksums,
            failed: false,
        }
    }

    /// The checkpoint of the opening, to be written first, after a flush of the device: what was
    /// read may still lie in its cache only.
    #[must_use]
    pub fn opening(&self) -> Option<CheckpointWrite> {
        self.writing.map(|checkpoint| self.block_of(checkpoint))
    }

    fn block_of(&self, checkpoint: Checkpoint) -> CheckpointWrite {
        CheckpointWrite {
            slot: checkpoint.slot(),
            bytes: checkpoint.write(self.journal, self.ring),
        }
    }

    /// How often it was opened, this time included once the checkpoint of the opening is stable.
    #[must_use]
    pub fn openings(&self) -> u64 {
        self.checkpoint.epoch
    }

    /// Blocks that are in use, from the checkpoint's tail to the head.
    #[must_use]
    pub fn used_blocks(&self) -> u64 {
        self.head.position - self.checkpoint.tail.position
    }

    /// The oldest batch that a replay would find.
    #[must_use]
    pub const fn tail(&self) -> BatchPosition {
        self.checkpoint.tail
    }

    /// Blocks from the first batch that has not been released to the head.
    #[must_use]
    pub fn unreleased_blocks(&self) -> u64 {
        self.head.position - self.released.position
    }

    /// The first batch that has not been released.
    #[must_use]
    pub const fn released(&self) -> BatchPosition {
        self.released
    }

    /// The oldest batches of which nothing is held, and that are not released, as many as fit into
    /// `blocks_max` blocks, but one at least.
    #[must_use]
    pub fn oldest(&self, blocks_max: u64) -> Option<Segment> {
        self.oldest_until(self.unheld(), blocks_max)
    }

    /// The same of all that is stable, whether something of it is held or not.
    #[must_use]
    pub fn oldest_stable(&self, blocks_max: u64) -> Option<Segment> {
        self.oldest_until(self.stable(), blocks_max)
    }

    fn oldest_until(&self, last: u64, blocks_max: u64) -> Option<Segment> {
        self.until_blocks(self.released, last, blocks_max)
    }

    fn until_blocks(&self, from: BatchPosition, last: u64, blocks_max: u64) -> Option<Segment> {
        let before = from.number - self.checkpoint.tail.number;
        let count = (last + 1).saturating_sub(from.number);
        let before = usize::try_from(before).expect("batches are in memory");
        let count = usize::try_from(count).expect("batches are in memory");
        let mut end = from;
        let mut ends = Vec::new();
        for &length in self.lengths.iter().skip(before).take(count) {
            let next = end.position + u64::from(length);
            if end.number > from.number && next - from.position > blocks_max {
                break;
            }
            end = BatchPosition {
                number: end.number + 1,
                position: next,
            };
            ends.push(next);
        }
        (end.number > from.number).then_some(Segment {
            of: (self.journal, self.ring),
            blocks: self.blocks,
            from,
            ends,
        })
    }

    /// The batches from this one on that are stable and not released, as many as fit into
    /// `blocks_max` blocks, but one at least; from the oldest one on that is not released, where
    /// that is a later one. `None`: there are none yet.
    #[must_use]
    pub fn stable_from(&self, number: u64, blocks_max: u64) -> Option<Segment> {
        let number = number.max(self.released.number);
        let before = usize::try_from(number - self.checkpoint.tail.number);
        let ahead = self
            .lengths
            .iter()
            .take(before.expect("batches are in memory"));
        let ahead: u64 = ahead.map(|&it| u64::from(it)).sum();
        let position = self.checkpoint.tail.position + ahead;
        let from = BatchPosition { number, position };
        self.until_blocks(from, self.stable(), blocks_max)
    }

    /// The first batch of this opening.
    #[must_use]
    pub const fn begun(&self) -> u64 {
        self.checkpoint.begun.number
    }

    /// The batch in use that has this block of the ring.
    #[must_use]
    pub fn batch_at(&self, block: u64) -> Option<Segment> {
        let position = self.position(block);
        let mut from = self.checkpoint.tail;
        for &length in &self.lengths {
            let end = from.position + u64::from(length);
            if position < end {
                return Some(Segment {
                    of: (self.journal, self.ring),
                    blocks: self.blocks,
                    from,
                    ends: vec![end],
                });
            }
            from = BatchPosition {
                number: from.number + 1,
                position: end,
            };
        }
        None
    }

    /// The position of a block of the ring, from the checkpoint's tail on.
    const fn position(&self, block: u64) -> u64 {
        let tail = self.checkpoint.tail.position;
        let position = tail - tail % self.blocks + block;
        let lap = if position < tail { self.blocks } else { 0 };
        position + lap
    }

    /// Blocks of the log.
    #[must_use]
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The checksum of a block of the log as it was written, by its place in the ring; `None` where
    /// nothing in use lies there, or it is not known.
    #[must_use]
    pub fn checksum_of(&self, block: u64) -> Option<u32> {
        self.checksums.get(self.position(block))
    }

    /// Memory for checksums of blocks, in bytes.
    #[must_use]
    pub fn checksums_bytes(&self) -> usize {
        self.checksums.bytes()
    }

    /// Blocks that changes of hosts may take: the rest is kept for what is relocated, and for
    /// records of epochs.
    #[must_use]
    pub fn room_blocks(&self) -> u64 {
        let is_large = self.blocks >= EPOCH_LARGE * KEPT_BLOCKS;
        let of_epochs = if is_large { self.epoch_blocks() } else { 0 };
        self.blocks - KEPT_BLOCKS.min(self.blocks / 2) - of_epochs
    }

    /// Blocks that records of epochs may take where hosts find no room.
    fn epoch_blocks(&self) -> u64 {
        EPOCH_BLOCKS.min(self.blocks / EPOCH_PART)
    }

    /// The number that the next batch gets.
    #[must_use]
    pub const fn next_number(&self) -> u64 {
        self.head.number
    }

    /// The last batch that is stable with all before it.
    #[must_use]
    pub fn stable(&self) -> u64 {
        let oldest = self.in_flight.front();
        oldest.map_or(self.head.number, |it| it.number) - 1
    }

    /// The last batch that is committed with all before it, as its header or a later one may say.
    #[must_use]
    pub fn committed(&self) -> u64 {
        self.until(self.uncommitted)
    }

    /// The last batch of which, and of all before it, nothing is held: it may be released.
    #[must_use]
    pub fn unheld(&self) -> u64 {
        self.until(self.held)
    }

    /// The last one that is stable with all before it, and older than this one.
    fn until(&self, oldest: Option<u64>) -> u64 {
        let stable = self.stable();
        oldest.map_or(stable, |oldest| stable.min(oldest - 1))
    }

    /// The oldest batch that holds something which is not committed, once it is stable, and the
    /// oldest one where a replay may find such; `None`: what is stable is committed.
    pub(crate) fn set_uncommitted(&mut self, held: Option<u64>, found: Option<u64>) {
        (self.held, self.uncommitted) = (held, found);
    }

    /// The oldest batch that a replay may find, from whichever checkpoint.
    pub(crate) const fn floor(&self) -> BatchPosition {
        self.floor
    }

    /// A write has failed: it takes nothing more.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        self.failed
    }

    /// The last batch is stable, and nothing in the log says so yet: an empty batch would, so that
    /// damage to it is known for what it is. Also where damage was found when the ring was opened:
    /// the empty batch then says again what the last one changed.
    #[must_use]
    pub fn wants_seal(&self) -> bool {
        self.in_flight.is_empty() && !self.before.is_empty() && !self.failed
    }

    /// Puts `changes` with their data into a batch; with none of them it only says what is stable.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    ///
    /// # Panics
    /// If there are more than [`RECORDS_MAX`], more data than [`DATA_BYTES_MAX`], or data that is
    /// not as long as its change says: whoever puts batches together cuts them.
    pub fn append(&mut self, changes: &[(Change, Buf)]) -> Result<BatchWrite, Refused> {
        self.append_but(self.blocks - self.room_blocks(), changes)
    }

    /// As [`Ring::append`], for records of epochs: they may take the room that is kept for them.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    ///
    /// # Panics
    /// As [`Ring::append`].
    pub fn append_epochs(&mut self, changes: &[(Change, Buf)]) -> Result<BatchWrite, Refused> {
        let kept = self.blocks - self.room_blocks();
        self.append_but(kept - self.epoch_blocks(), changes)
    }

    /// As [`Ring::append`], for what lies in the oldest batches and cannot be given up: it may take
    /// the room that is kept for it.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    ///
    /// # Panics
    /// As [`Ring::append`].
    pub fn relocate(&mut self, changes: &[(Change, Buf)]) -> Result<BatchWrite, Refused> {
        self.append_but(0, changes)
    }

    /// With so many blocks left free.
    fn append_but(&mut self, kept: u64, changes: &[(Change, Buf)]) -> Result<BatchWrite, Refused> {
        if self.failed || !self.open {
            return Err(Refused::Failed);
        }
        assert!(changes.len() <= RECORDS_MAX, "batches are cut to size");
        let data: usize = changes
            .iter()
            .map(|(change, data)| {
                assert_eq!(
                    Some(data.len()),
                    change.data_bytes(),
                    "data fits its change"
                );
                data.len().next_multiple_of(DATA_ALIGNMENT)
            })
            .sum();
        assert!(data <= DATA_BYTES_MAX, "batches are cut to size");
        let own = header_blocks(changes.len(), self.before.len());
        let blocks = (own + data.div_ceil(BLOCK)) as u64;
        let place = self.place_for(blocks, kept).ok_or(Refused::Full)?;
        let before = std::mem::replace(
            &mut self.before,
            changes.iter().map(|(change, _)| *change).collect(),
        );
        let marks = (self.checkpoint.epoch, self.stable(), self.committed());
        let checksums = DataChecksums::of(changes);
        let header = Header::over(place, marks, changes, &checksums.records, before);
        self.checksums
            .put(place.position + own as u64, &checksums.blocks);
        debug_assert_eq!(u64::from(header.blocks), blocks);
        let length = place.position + blocks - self.head.position;
        self.lengths
            .push_back(u32::try_from(length).expect("no more than a ring's end and a batch"));
        self.head = BatchPosition {
            number: place.number + 1,
            position: place.position + blocks,
        };
        self.in_flight.push_back(InFlight {
            number: place.number,
            written: false,
        });
        Ok(self.write_of(&header, changes))
    }

    /// Where a batch of so many blocks goes: at the head, or where the ring begins anew.
    fn place_for(&self, blocks: u64, kept: u64) -> Option<BatchPosition> {
        debug_assert!(blocks <= BATCH_BLOCKS_MAX);
        let BatchPosition { number, position } = self.head;
        let left = self.blocks - position % self.blocks;
        let position = if blocks <= left {
            position
        } else {
            position + left
        };
        let used = position + blocks - self.floor.position;
        (used + kept <= self.blocks).then_some(BatchPosition { number, position })
    }

    fn write_of(&self, header: &Header, changes: &[(Change, Buf)]) -> BatchWrite {
        let mut bytes = Buf::copy_of(&header.write(self.journal, self.ring));
        let mut data_at = Vec::with_capacity(changes.len());
        for (record, (_, data)) in header.records.iter().zip(changes) {
            data_at.push(record.data_at);
            bytes.append(data);
            bytes.append_owned(padding(data.len(), DATA_ALIGNMENT));
        }
        bytes.append_owned(padding(bytes.len(), BLOCK));
        debug_assert_eq!(bytes.len(), header.blocks as usize * BLOCK);
        BatchWrite {
            number: header.place.number,
            at: header.place.position % self.blocks * BLOCK as u64,
            bytes,
            data_at,
            carried: Vec::new(),
        }
    }

    /// A batch's write has ended. What is stable then is said by [`Ring::stable`].
    pub fn written(&mut self, number: u64, succeeded: bool) {
        if !succeeded {
            self.failed = true;
            return;
        }
        if let Some(batch) = self.in_flight.iter_mut().find(|it| it.number == number) {
            batch.written = true;
        }
        // What comes after a failure stays unacknowledged: the failed one is never taken out.
        while self.in_flight.front().is_some_and(|it| it.written) {
            self.in_flight.pop_front();
        }
    }

    /// Everything that the batches before `number` changed is in the backing volume and stable
    /// there, or is superseded by batches that are stable here.
    ///
    /// # Panics
    /// If something of them is held.
    pub fn release(&mut self, number: u64) {
        let most = self.unheld() + 1;
        assert!(number <= most, "what is held is not released");
        let count = number.saturating_sub(self.checkpoint.tail.number);
        let count = usize::try_from(count).expect("batches are in memory");
        let ahead: u64 = self
            .lengths
            .iter()
            .take(count)
            .map(|&it| u64::from(it))
            .sum();
        if number > self.released.number {
            self.released = BatchPosition {
                number,
                position: self.checkpoint.tail.position + ahead,
            };
        }
    }

    /// A checkpoint to write, where something was released since the last one and none is being
    /// written; then the same again for the other slot.
    pub fn checkpoint(&mut self) -> Option<CheckpointWrite> {
        let news = self.released != self.checkpoint.tail;
        let again = self.floor != self.checkpoint.tail;
        if self.failed || self.writing.is_some() || !(news || again) {
            return None;
        }
        let next = Checkpoint {
            count: self.checkpoint.count + 1,
            tail: self.released,
            ..self.checkpoint
        };
        self.writing = Some(next);
        Some(self.block_of(next))
    }

    /// The write of a checkpoint has ended. The room that the one before gave back is free now.
    pub fn checkpoint_written(&mut self, succeeded: bool) {
        let Some(written) = self.writing.take() else {
            return;
        };
        if !succeeded {
            self.failed = true;
            return;
        }
        self.open = true;
        let count = written.tail.number - self.checkpoint.tail.number;
        for _ in 0..count {
            self.lengths.pop_front();
        }
        self.checksums.forget_before(written.tail.position);
        (self.floor, self.checkpoint) = (self.checkpoint.tail, written);
    }
}
