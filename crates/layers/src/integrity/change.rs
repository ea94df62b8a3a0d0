//! What changes blocks: each change holds them, writes whole ones, and sets their checksums.

use super::lane::{Held, Inside, pieces};
use super::map::Tally;
use super::page::Hold;
use checksums::{Blank, Checksum, FAN};
use env::detach;
use smallvec::SmallVec;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use units::{Buf, Lba, LbaRange};
use volume::{Done, Durability, Io, IoError, IoFuture, Op, Origin, Provision, Zeroing};

/// Blocks that are held and zeroed together: 16 pages' worth, 63 MiB where a checksum covers 4 KiB.
const ZEROED_TOGETHER: u64 = 16 * FAN as u64;

/// Bytes that are adopted together.
const ADOPTED_TOGETHER: u64 = 1 << 20;

impl Inside {
    /// Hands a write down in this poll: of whole blocks that nobody holds, whose checksums are in
    /// memory and in one page. What comes after it is done whether somebody waits or not. Gives the
    /// write back where that is not so.
    pub(super) fn write_at_once(self: &Rc<Self>, io: Io) -> Result<IoFuture, Io> {
        let Op::Write {
            range,
            data,
            durability,
        } = io.op()
        else {
            return Err(io);
        };
        let (range, blocks) = (*range, self.blocks_of(*range));
        let waits = *durability == Durability::Stable && !self.map.covered;
        if waits
            || self.range_of(&blocks) != range
            || range.len() > self.below_shape.limits.transfer_blocks_max
            || self.map.dirty_pages() >= self.map.cache.pages_max()
        {
            return Err(io);
        }
        let (place, entry) = checksums::PageId::of_block(blocks.start);
        let count = blocks.end - blocks.start;
        let entries = entry..entry + usize::try_from(count).unwrap_or(FAN);
        let hold = (entries.end <= FAN).then(|| self.map.cache.peek(place.index));
        let hold = hold.flatten().and_then(|page| Hold::at_once(page, entries));
        let Some(hold) = hold.filter(|_| !self.map.refuses()) else {
            return Err(io);
        };
        let held = Held {
            holds: SmallVec::from_buf([hold]),
            blocks: blocks.clone(),
        };
        let checksums = self.map.checksums_of(blocks.start, data);
        let (durability, failed) = (*durability, self.map.failed_flushes());
        let answer = self.below.submit(io);
        let inside = Rc::clone(self);
        Ok(detach(&self.from.core, async move {
            let done = inside.settle(&held, answer.await.map(drop), false);
            if done.is_err() {
                let known = inside.known(done.map_err(|error| super::lane::within(error, range)));
                Box::pin(known).await?;
            }
            inside.is_written(&held, &checksums, durability, failed);
            Ok(Done::Nothing)
        }))
    }

    pub(super) async fn write(
        self: &Rc<Self>,
        range: LbaRange,
        data: Buf,
        durability: Durability,
        origin: Origin,
    ) -> Result<(), IoError> {
        let blocks = self.blocks_of(range);
        let whole = self.range_of(&blocks);
        let held = self.hold_to_write(blocks.clone()).await?;
        let data = if whole == range {
            data
        } else {
            self.completed(range, data, &held, origin).await?
        };
        let checksums = self.map.checksums_of(blocks.start, &data);
        let (mut at, failed) = (0, self.map.failed_flushes());
        for piece in pieces(whole, self.below_shape.limits.transfer_blocks_max) {
            let bytes = self.shape.bytes_in(piece);
            let op = Op::Write {
                range: piece,
                data: data.slice(at..at + bytes),
                durability,
            };
            let done = self.below.submit(Io::new(op, origin)).await;
            self.settle(&held, done.map(drop), at > 0)?;
            at += bytes;
        }
        self.is_written(&held, &checksums, durability, failed);
        Ok(())
    }

    /// Held blocks were written since so many flushes had failed, and have these checksums now.
    fn is_written(&self, held: &Held, checksums: &[Checksum], durability: Durability, failed: u64) {
        let (map, blocks) = (&self.map, &held.blocks);
        let mut is_known = false;
        map.is_written(blocks, durability, failed, |is_there| {
            if is_there {
                held.set(self, blocks.start, checksums);
            } else {
                self.nobody_knows(held);
            }
            is_known = is_there;
        });
        if is_known {
            map.is_good(blocks.clone());
        }
    }

    /// Whoever reads held blocks adopts their checksums.
    fn nobody_knows(&self, held: &Held) {
        let count = usize::try_from(held.blocks.end - held.blocks.start).expect("in memory");
        held.set(self, held.blocks.start, &vec![Checksum::OPEN; count]);
    }

    /// What a failure leaves of held blocks: nobody knows, unless it says that nothing was done.
    fn settle(&self, held: &Held, done: Result<(), IoError>, begun: bool) -> Result<(), IoError> {
        let Err(error) = done else { return Ok(()) };
        if begun || !error.leaves_nothing_done() {
            self.nobody_knows(held);
        }
        Err(if begun { error.of_a_part() } else { error })
    }

    /// The payload with the rest of the blocks that it begins and ends in.
    async fn completed(
        self: &Rc<Self>,
        range: LbaRange,
        data: Buf,
        held: &Held,
        origin: Origin,
    ) -> Result<Buf, IoError> {
        let whole = self.range_of(&held.blocks);
        let mut all = Buf::empty();
        if whole.start() < range.start() {
            let before = LbaRange::between(whole.start(), range.start()).expect("in order");
            let first = self.verified(held, held.blocks.start, origin).await?;
            all.append_owned(first.slice(0..self.shape.bytes_in(before)));
        }
        all.append_owned(data);
        if range.end() < whole.end() {
            let after = LbaRange::between(range.end(), whole.end()).expect("in order");
            let last = self.verified(held, held.blocks.end - 1, origin).await?;
            all.append_owned(last.slice(last.len() - self.shape.bytes_in(after)..last.len()));
        }
        Ok(all)
    }

    /// A held block as it must be.
    async fn verified(
        self: &Rc<Self>,
        held: &Held,
        block: u64,
        origin: Origin,
    ) -> Result<Buf, IoError> {
        if self.map.state.replaying.load(Ordering::Acquire) {
            // The crash may have left any of its parts old or new; the journal writes those that it
            // knows of.
            let data = self
                .read_below(self.range_of(&(block..block + 1)), origin)
                .await?;
            let checksums = held.checksums(block..block + 1);
            if !self.map.all_fit(&checksums, block, &data) {
                Tally::add(&self.map.tally.adopted, 1);
            }
            return Ok(data);
        }
        let read = self.read_held(held, block..block + 1, origin).await;
        if matches!(read, Err(IoError::Integrity { .. })) && self.map.repair.is_none() {
            // After a crash it must not be taken for a block that this write left half-way.
            held.set(self, block, &[Checksum::LOST]);
        }
        read
    }

    pub(super) async fn zeroes(
        self: &Rc<Self>,
        range: LbaRange,
        zeroing: Zeroing,
        durability: Durability,
        origin: Origin,
    ) -> Result<(), IoError> {
        let (start, end) = (range.start().0, range.end().0);
        let last = end == self.shape.block_count.0;
        let blocks = start.div_ceil(self.map.per_checksum)..if last {
            end.div_ceil(self.map.per_checksum)
        } else {
            end / self.map.per_checksum
        };
        if blocks.is_empty() {
            let data = Buf::zeroes(self.shape.bytes_in(range));
            return self.write(range, data, durability, origin).await;
        }
        let middle = self.range_of(&blocks);
        for edge in [
            LbaRange::between(range.start(), middle.start()),
            LbaRange::between(middle.end(), range.end()),
        ] {
            let edge = edge.expect("the middle is inside");
            if !edge.is_empty() {
                let data = Buf::zeroes(self.shape.bytes_in(edge));
                self.write(edge, data, durability, origin).await?;
            }
        }
        let mut at = blocks.start;
        while at < blocks.end {
            let to = blocks
                .end
                .min((at / FAN as u64 * FAN as u64) + ZEROED_TOGETHER);
            self.zero_blocks(at..to, zeroing, durability, origin)
                .await?;
            at = to;
        }
        Ok(())
    }

    /// What is whole blocks of the range becomes zeroes; the rest stays.
    pub(super) async fn discard(
        self: &Rc<Self>,
        range: LbaRange,
        to: Provision,
        durability: Durability,
        origin: Origin,
    ) -> Result<(), IoError> {
        let zeroing = match to {
            Provision::Deallocated => Zeroing::MayUnmap,
            Provision::Anchored => Zeroing::KeepAllocated,
        };
        let unit = self.map.per_checksum;
        let end = range.end().0;
        let last = end == self.shape.block_count.0;
        let end = if last { end } else { end - end % unit };
        let start = range.start().0.next_multiple_of(unit);
        match LbaRange::between(Lba(start), Lba(end)) {
            Some(whole) if !whole.is_empty() => {
                self.zeroes(whole, zeroing, durability, origin).await
            }
            Some(_) | None => Ok(()),
        }
    }

    async fn zero_blocks(
        self: &Rc<Self>,
        blocks: Range<u64>,
        zeroing: Zeroing,
        durability: Durability,
        origin: Origin,
    ) -> Result<(), IoError> {
        let whole = self.range_of(&blocks);
        let held = self.hold_to_write(blocks.clone()).await?;
        let (mut begun, failed) = (false, self.map.failed_flushes());
        for range in pieces(whole, self.below_shape.limits.write_zeroes_blocks_max) {
            let op = Op::WriteZeroes {
                range,
                zeroing,
                durability,
            };
            let done = self.below.submit(Io::new(op, origin)).await;
            self.settle(&held, done.map(drop), begun)?;
            begun = true;
        }
        self.is_written(&held, &self.zero_checksums(&blocks), durability, failed);
        Ok(())
    }

    fn zero_checksums(&self, blocks: &Range<u64>) -> Vec<Checksum> {
        if self.map.blank() == Blank::Zeroes {
            let count = usize::try_from(blocks.end - blocks.start).expect("in memory");
            return vec![Checksum::BLANK; count];
        }
        let checksum = |block: u64| {
            let bytes = self.shape.bytes_in(self.range_of(&(block..block + 1)));
            self.map.checksum_of(block, &Buf::zeroes(bytes))
        };
        blocks.clone().map(checksum).collect()
    }

    pub(super) async fn adopt(self: &Rc<Self>, range: LbaRange) -> Result<(), IoError> {
        let blocks = self.blocks_of(range);
        let together = ADOPTED_TOGETHER / self.map.covered_bytes as u64;
        let mut at = blocks.start;
        while at < blocks.end {
            let to = blocks.end.min(at + together);
            let held = self.hold_to_write(at..to).await?;
            let failed = self.map.failed_flushes();
            let data = self
                .read_below(self.range_of(&(at..to)), Origin::default())
                .await?;
            let count = usize::try_from(to - at).expect("a small number");
            let checksum = |place: usize| {
                let bytes = self.map.bytes_of(place, data.len());
                self.map.checksum_of(at + place as u64, &data.slice(bytes))
            };
            let checksums: Vec<Checksum> = (0..count).map(checksum).collect();
            self.is_written(&held, &checksums, Durability::Cached, failed);
            Tally::add(&self.map.tally.adopted, count as u64);
            at = to;
        }
        Ok(())
    }
}
