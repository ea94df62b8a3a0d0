//! One core's handle: reads, and what else only passes through.

use super::Finding;
use super::map::{Known, Map, Part, Tally, parts};
use super::map_file::MapFile;
use super::page::{Checksums, Hold, Resident};
use super::verdict::Verdict;
use checksums::Checksum;
use env::{Answer, CoreHandle, File, detach};
use smallvec::SmallVec;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::{BlockCount, Buf, Lba, LbaRange};
use volume::{Done, Durability, Io, IoError, IoFuture, IoResult, Lane, Op, Origin, Shape};

/// A lane of a volume with checksums.
pub struct IntegrityLane(pub(super) Rc<Inside>);

/// What tasks of a lane share.
pub(super) struct Inside {
    pub(super) below: Rc<dyn Lane>,
    pub(super) map: Arc<Map>,
    pub(super) from: MapFile,
    pub(super) shape: Shape,
    pub(super) below_shape: Shape,
}

/// Held blocks, with everything that is needed to judge what is read of them.
pub(super) struct Held {
    pub(super) holds: SmallVec<[Hold; 1]>,
    pub(super) blocks: Range<u64>,
}

impl IntegrityLane {
    pub(super) fn new(
        core: &CoreHandle,
        below: Rc<dyn Lane>,
        file: Rc<dyn File>,
        map: Arc<Map>,
        [below_shape, shape]: [Shape; 2],
    ) -> Self {
        let core = Rc::clone(core);
        Self(Rc::new(Inside {
            below,
            map,
            from: MapFile { core, file },
            shape,
            below_shape,
        }))
    }

    /// Adopts the checksums of a range from what is there, whatever they were: after a crash, of
    /// what was written around the journal; or when somebody decides to live with what is left.
    ///
    /// # Errors
    /// The range cannot be read, or its checksums not be kept. Checksums are stable after the next
    /// flush.
    ///
    /// # Panics
    /// If the range is not inside the volume.
    pub async fn adopt(&self, range: LbaRange) -> Result<(), IoError> {
        assert!(
            self.0.shape.whole().contains(range),
            "a range of the volume"
        );
        let inside = Rc::clone(&self.0);
        detach(&self.0.from.core, async move { inside.adopt(range).await }).await
    }

    /// Bytes that one checksum covers.
    #[must_use]
    pub fn covered_bytes(&self) -> u32 {
        self.0.map.bytes_per_checksum()
    }

    /// The range has the first block of a page of checksums.
    #[must_use]
    pub fn begins_a_page(&self, range: LbaRange) -> bool {
        let blocks = self.0.blocks_of(range);
        blocks.start.next_multiple_of(checksums::FAN as u64) < blocks.end
    }

    /// Compares what the map's file holds above its pages of checksums, its superblock included,
    /// with what it must: for scrubs. What is damaged there is written anew. Answers how much that
    /// was.
    pub async fn check_above(&self) -> u64 {
        self.0.map.check_above(&self.0.from).await
    }

    /// Compares what the map's file holds of the pages that begin in a range with what it must: for
    /// scrubs. A page that is in memory and damaged in the file is written anew. Answers how many
    /// were damaged.
    ///
    /// # Errors
    /// The map cannot be read or written.
    pub async fn check_map(&self, range: LbaRange) -> Result<u64, IoError> {
        let mut damaged = 0;
        let begun = parts(self.0.blocks_of(range)).filter(|part| part.entries.start == 0);
        for part in begun {
            damaged += u64::from(self.0.check_page(part.page).await?);
        }
        Ok(damaged)
    }
}

impl Lane for IntegrityLane {
    fn submit(&self, io: Io) -> IoFuture {
        let origin = io.origin();
        match io.op() {
            Op::Read { range, into: None } => {
                let range = *range;
                self.read(io, range)
            }
            Op::Extents { .. } => self.0.below.submit(io),
            Op::Write { .. } => match self.0.write_at_once(io) {
                Ok(answer) => answer,
                Err(io) => {
                    let (op, _) = io.into_parts();
                    detach(&self.0.from.core, Rc::clone(&self.0).run(op, origin))
                }
            },
            Op::Read { .. }
            | Op::WriteZeroes { .. }
            | Op::Discard { .. }
            | Op::CompareAndWrite { .. }
            | Op::Flush => {
                let inside = Rc::clone(&self.0);
                let (op, _) = io.into_parts();
                detach(&self.0.from.core, inside.run(op, origin))
            }
        }
    }
}

impl IntegrityLane {
    /// Reads whole blocks whose checksums are in memory without a task; everything else with one.
    fn read(&self, io: Io, range: LbaRange) -> IoFuture {
        let inside = Rc::clone(&self.0);
        let origin = io.origin();
        let blocks = inside.blocks_of(range);
        let whole = inside.range_of(&blocks) == range
            && range.len() <= inside.below_shape.limits.transfer_blocks_max;
        // What they are now, or become while it is read: what fits neither is read again while
        // nobody can write.
        let Some(Known::Checksums(checksums)) = whole.then(|| inside.map.peek(blocks.clone()))
        else {
            return Answer::wait(async move { inside.read(range, origin).await.map(Done::Data) });
        };
        match inside.below.submit(io).now() {
            Ok(Ok(Done::Data(data))) if inside.map.all_fit(&checksums, blocks.start, &data) => {
                Answer::ready(Ok(Done::Data(data)))
            }
            Ok(Ok(_)) => {
                Answer::wait(
                    async move { inside.second_read(blocks, origin).await.map(Done::Data) },
                )
            }
            Ok(Err(error)) => Answer::ready(Err(error)),
            Err(waiting) => Answer::wait(async move {
                match waiting.await? {
                    Done::Data(data) if inside.map.all_fit(&checksums, blocks.start, &data) => {
                        Ok(Done::Data(data))
                    }
                    Done::Data(_) | Done::Nothing | Done::Logged | Done::Extents(_) => {
                        inside.second_read(blocks, origin).await.map(Done::Data)
                    }
                }
            }),
        }
    }
}

impl Inside {
    async fn run(self: Rc<Self>, op: Op, origin: Origin) -> IoResult {
        if op.mutates() && self.map.refuses() {
            return Err(IoError::WriteProtected);
        }
        if op.mutates() && self.map.is_full() {
            self.map.stable(&self.from).await?;
        }
        match op {
            Op::Read { range, into } => {
                let data = self.read(range, origin).await?;
                let Some(mut into) = into else {
                    return Ok(Done::Data(data));
                };
                into.copy_all(&data);
                Ok(Done::Data(into.freeze()))
            }
            Op::Write {
                range,
                data,
                durability,
            } => {
                let written = self.write(range, data, durability, origin).await;
                self.known(written.map_err(|error| within(error, range)))
                    .await?;
                self.after(durability, range.start()).await
            }
            Op::WriteZeroes {
                range,
                zeroing,
                durability,
            } => {
                let written = self.zeroes(range, zeroing, durability, origin).await;
                self.known(written.map_err(|error| within(error, range)))
                    .await?;
                self.after(durability, range.start()).await
            }
            Op::Discard {
                range,
                to,
                durability,
            } => {
                let written = self.discard(range, to, durability, origin).await;
                self.known(written).await?;
                self.after(durability, range.start()).await
            }
            Op::Flush => self.flush(origin).await,
            Op::CompareAndWrite { .. } => unreachable!("announced as absent"),
            Op::Extents { .. } => unreachable!("passed through"),
        }
    }

    /// Of a mutation that failed it is made stable which blocks nobody knows any more: nobody
    /// writes them again after a crash.
    pub(super) async fn known(&self, result: Result<(), IoError>) -> Result<(), IoError> {
        if result.is_err_and(|error| !error.leaves_nothing_done()) {
            // Where the map cannot be written any more, that is reported, and every later mutation
            // is refused.
            let _ = self.map.stable(&self.from).await;
        }
        result
    }

    /// What a mutation waits for before it is answered.
    async fn after(&self, durability: Durability, lba: Lba) -> IoResult {
        // Where many pages have changed they are written anyway, so that memory stays bounded.
        let full = || self.map.dirty_pages() >= self.map.cache.pages_max();
        let now = durability == Durability::Stable && !self.map.covered;
        if now || full() {
            let stable = self.map.stable(&self.from).await;
            stable.map_err(|error| error.map_lba(|_| lba))?;
        }
        Ok(Done::Nothing)
    }

    /// The blocks of checksums that a range touches.
    pub(super) fn blocks_of(&self, range: LbaRange) -> Range<u64> {
        range.start().0 / self.map.per_checksum..range.end().0.div_ceil(self.map.per_checksum)
    }

    /// The range of such blocks; the volume's last one may be shorter.
    pub(super) fn range_of(&self, blocks: &Range<u64>) -> LbaRange {
        let per_checksum = self.map.per_checksum;
        let end = (blocks.end * per_checksum).min(self.shape.block_count.0);
        LbaRange::between(Lba(blocks.start * per_checksum), Lba(end)).expect("in order")
    }

    fn fits(&self, blocks: &Range<u64>, data: &Buf) -> bool {
        match self.map.peek(blocks.clone()) {
            Known::Checksums(checksums) => self.map.all_fit(&checksums, blocks.start, data),
            Known::NotHere => false,
        }
    }

    async fn read(self: &Rc<Self>, range: LbaRange, origin: Origin) -> Result<Buf, IoError> {
        let blocks = self.blocks_of(range);
        for part in parts(blocks.clone()) {
            self.map
                .page(&self.from.core, &self.from.file, part.page, false)
                .await?;
        }
        let whole = self.range_of(&blocks);
        let data = self.read_below(whole, origin).await?;
        let data = if self.fits(&blocks, &data) {
            data
        } else {
            let inspected = self.second_read(blocks, origin).await;
            inspected.map_err(|error| within(error, range))?
        };
        if range == whole {
            return Ok(data);
        }
        let before = self
            .shape
            .bytes_in(LbaRange::between(whole.start(), range.start()).expect("in order"));
        Ok(data.slice(before..before + self.shape.bytes_in(range)))
    }

    /// Reads while nobody can write: what does not fit now, is wrong.
    async fn second_read(
        self: &Rc<Self>,
        blocks: Range<u64>,
        origin: Origin,
    ) -> Result<Buf, IoError> {
        Tally::add(&self.map.tally.second_reads, 1);
        let inside = Rc::clone(self);
        // A task of its own: what it repairs or adopts must not stop half-way.
        detach(&self.from.core, async move {
            let held = inside.hold(blocks).await?;
            let read = inside.read_held(&held, held.blocks.clone(), origin).await;
            drop(held);
            // Of checksums that were adopted no more are kept in memory than of those of writes.
            if inside.map.dirty_pages() >= inside.map.cache.pages_max() {
                // Where the map cannot be written any more, that is reported.
                let _ = inside.map.stable(&inside.from).await;
            }
            read
        })
        .await
    }

    /// Holds blocks to write them.
    pub(super) async fn hold_to_write(&self, blocks: Range<u64>) -> Result<Held, IoError> {
        let held = self.hold(blocks).await?;
        // Whoever closes the map looks for holders after it has said so.
        if self.map.refuses() {
            return Err(IoError::WriteProtected);
        }
        Ok(held)
    }

    /// Holds blocks, in the order of addresses.
    pub(super) async fn hold(&self, blocks: Range<u64>) -> Result<Held, IoError> {
        let mut holds = SmallVec::new();
        for part in parts(blocks.clone()) {
            let page = self
                .map
                .page(&self.from.core, &self.from.file, part.page, true)
                .await?;
            let page = page.expect("wanted anyway");
            holds.push(Hold::take(page, part.entries).await);
        }
        Ok(Held { holds, blocks })
    }

    /// Reads held blocks, repairs those of which there is another copy, and adopts the checksums
    /// that nobody knows.
    pub(super) async fn read_held(
        &self,
        held: &Held,
        blocks: Range<u64>,
        origin: Origin,
    ) -> Result<Buf, IoError> {
        let range = self.range_of(&blocks);
        let mut failed = self.map.failed_flushes();
        let mut data = self.read_below(range, origin).await?;
        let mut checksums = held.checksums(blocks.clone());
        if self.map.all_fit(&checksums, blocks.start, &data) {
            return Ok(data);
        }
        if self.differ(&checksums, blocks.start, &data) && self.learns_what_is_lost(&blocks).await {
            failed = self.map.failed_flushes();
            data = self.read_below(range, origin).await?;
            checksums = held.checksums(blocks.clone());
        }
        let mut mended = Buf::empty();
        let mut wrong = None;
        for (place, (block, checksum)) in blocks.zip(checksums).enumerate() {
            let found = data.slice(self.map.bytes_of(place, data.len()));
            match self.map.judge(checksum, block, &found) {
                Verdict::Fits => mended.append_owned(found),
                Verdict::Adopt => {
                    self.adopt_one(held, block, &found, failed);
                    mended.append_owned(found);
                }
                Verdict::Differs => match self.repaired(block, checksum, origin).await {
                    Some(copy) => mended.append_owned(copy),
                    None => {
                        wrong = wrong.or(Some(block));
                        mended.append_owned(found);
                    }
                },
            }
        }
        match wrong {
            None => Ok(mended),
            Some(block) => Err(IoError::Integrity {
                lba: self.range_of(&(block..block + 1)).start(),
            }),
        }
    }

    /// Adopts the checksum of a held block that was read after so many flushes had failed.
    fn adopt_one(&self, held: &Held, block: u64, found: &Buf, failed: u64) {
        let (map, cached) = (&self.map, Durability::Cached);
        map.is_written(&(block..block + 1), cached, failed, |is_there| {
            // Else its next reader adopts it.
            if is_there {
                held.set(self, block, &[map.checksum_of(block, found)]);
            }
        });
        Tally::add(&map.tally.adopted, 1);
    }

    /// Some of the blocks of `data` are not what was written there.
    fn differ(&self, checksums: &[Checksum], first: u64, data: &Buf) -> bool {
        let mut blocks = (first..).zip(checksums).enumerate();
        blocks.any(|(place, (block, checksum))| {
            let found = data.slice(self.map.bytes_of(place, data.len()));
            self.map.judge(*checksum, block, &found) == Verdict::Differs
        })
    }

    /// A block does not fit: says so, and writes another copy of it where there is one.
    async fn repaired(&self, block: u64, checksum: Checksum, origin: Origin) -> Option<Buf> {
        let range = self.range_of(&(block..block + 1));
        if self.map.is_bad(block) {
            self.map.report_finding(&Finding::Mismatch(range));
        }
        let repair = Arc::clone(self.map.repair.as_ref()?);
        let copy = repair.copy_of(&self.from.core, range).await?;
        let fits = copy.len() == self.shape.bytes_in(range)
            && self.map.judge(checksum, block, &copy) == Verdict::Fits;
        if !fits {
            return None;
        }
        let op = Op::Write {
            range,
            data: copy.clone(),
            durability: Durability::Stable,
        };
        self.below.submit(Io::new(op, origin)).await.ok()?;
        self.map.not_bad(block..block + 1);
        Tally::add(&self.map.tally.repaired, 1);
        self.map.report_finding(&Finding::Repaired(range));
        Some(copy)
    }

    /// Reads any range, in as many pieces as the volume below wants.
    pub(super) async fn read_below(&self, range: LbaRange, origin: Origin) -> Result<Buf, IoError> {
        let mut all = Buf::empty();
        for range in pieces(range, self.below_shape.limits.transfer_blocks_max) {
            let op = Op::Read { range, into: None };
            match self.below.submit(Io::new(op, origin)).await? {
                Done::Data(data) => all.append_owned(data),
                Done::Nothing | Done::Logged | Done::Extents(_) => {
                    unreachable!("a read answers data")
                }
            }
        }
        Ok(all)
    }

    async fn check_page(&self, index: u64) -> Result<bool, IoError> {
        let map = &self.map;
        for last in [false, true] {
            let before = super::page::lock(&map.tree).recorded(super::map::place(index));
            let page = map.cache.peek(index);
            if before.is_absent() {
                return Ok(false);
            }
            let Some(page) = page else {
                // Reading it is the check.
                let lost = map.tally.pages_lost.load(Ordering::Relaxed);
                map.page(&self.from.core, &self.from.file, index, false)
                    .await?;
                return Ok(map.tally.pages_lost.load(Ordering::Relaxed) != lost);
            };
            let slots = map
                .read_pair(&self.from.core, &self.from.file, index)
                .await?;
            let both = [&slots[..checksums::PAGE], &slots[checksums::PAGE..]];
            if checksums::judge(before, super::map::place(index), map.id, both).is_ok() {
                return Ok(false);
            }
            if last {
                // The version before is left as it is until this one is there again.
                map.changed(&page, page.mark_unverified());
            }
            // It may have been written meanwhile; and what is damaged is written anew.
            map.stable(&self.from).await?;
        }
        map.report_finding(&Finding::MapDamaged {
            blocks: map.blocks_of(index),
            why: "it was damaged in the file, and has been written anew from memory".to_owned(),
        });
        Ok(true)
    }
}

impl Held {
    fn page(&self, index: u64) -> &Arc<Resident> {
        let hold = self.holds.iter().find(|hold| hold.page.index() == index);
        &hold.expect("it is held").page
    }

    /// The checksums of some of the held blocks.
    pub(super) fn checksums(&self, blocks: Range<u64>) -> Checksums {
        let mut checksums = Checksums::new();
        for part in parts(blocks) {
            self.page(part.page).copy(part.entries, &mut checksums);
        }
        checksums
    }

    /// Sets the checksums of held blocks from `first` on.
    pub(super) fn set(&self, inside: &Inside, first: u64, checksums: &[Checksum]) {
        let mut left = checksums;
        for Part { page, entries, .. } in parts(first..first + checksums.len() as u64) {
            let (here, rest) = left.split_at(entries.len());
            left = rest;
            let page = self.page(page);
            inside.map.changed(page, page.set(entries.start, here));
        }
    }
}

/// The error with a block of what was asked for: a checksum may cover several of them, and none of
/// them is known to be the wrong one.
pub(super) fn within(error: IoError, range: LbaRange) -> IoError {
    error.map_lba(|lba| lba.max(range.start()))
}

/// A range in pieces of at most `max`.
pub(super) fn pieces(range: LbaRange, max: BlockCount) -> impl Iterator<Item = LbaRange> {
    let mut at = range.start();
    std::iter::from_fn(move || {
        (at < range.end()).then(|| {
            let end = Lba(range.end().0.min(at.0.saturating_add(max.0)));
            let piece = LbaRange::between(at, end).expect("in order");
            at = end;
            piece
        })
    })
}
