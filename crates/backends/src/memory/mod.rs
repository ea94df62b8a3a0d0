//! A volume in memory.
//!
//! ```text
//!   volume: [shard 0 | shard 1 | ...]     shard, 4 MiB: nothing, or 64 regions with a lock each
//! ```
//!
//! **Invariants.** What was read never changes: whoever has it (to send it, to digest it) keeps
//! what was read (see [`region`]). A region's lock is held while it is copied into, never longer;
//! all cores work on different regions at once. A payload that is a whole region in one slab is
//! kept as it is, without a copy.
//!
//! **Failure model.** Nothing survives the process. The volume says so the only way a disk can: its
//! cache is volatile. A flush has nothing to do.

mod region;

use env::{Answer, CoreHandle, LocalFuture};
use region::{PAGE, REGION, Region};
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::sync::{RwLockReadGuard, RwLockWriteGuard};
use units::{BlockCount, BlockSize, Buf, BufMut, ByteCount, Lba, LbaRange, Pool, Slab};
use volume::{
    Done, Epoch, Extent, ExtentKind, ExtentList, Fence, Fences, Followers, Io, IoError, IoFuture,
    IoResult, Lane, Limits, Op, OpenError, Shape, Volume, VolumeEvent, VolumeEvents, Zeroing,
};

const REGIONS_IN_SHARD: usize = 64;

const REGION_BYTES: u32 = 64 << 10;

const _: () = assert!(REGION_BYTES as usize == REGION);

/// Bytes of a shard.
const SHARD: usize = REGIONS_IN_SHARD * REGION;

/// What one operation makes zeroes or gives up at most: a few milliseconds of a core.
const ZEROED_BYTES_MAX: u64 = 16 << 20;

/// What one answer reports the allocation of at most: a walk over 16,384 regions.
const REPORTED_BYTES_MAX: u64 = 1 << 30;

/// Runs of an extents answer.
const EXTENTS_MAX: usize = 256;

/// One shard: its regions from the first write on.
#[derive(Default)]
struct Shard(OnceLock<Box<[RwLock<Region>]>>);

type Shards = Arc<[Arc<Shard>]>;

/// A volume in memory, shared by all cores.
pub struct MemoryVolume {
    facts: Mutex<Facts>,
    /// The size now, for lanes that are older than a change.
    block_count: AtomicU64,
    fences: Fences,
    events: Followers,
}

struct Facts {
    shape: Shape,
    shards: Shards,
}

struct MemoryLane {
    shards: Shards,
    /// The core's pool: memory that a write brings is exchanged for what it replaces.
    pool: Pool,
    volume: Arc<MemoryVolume>,
    shape: Shape,
}

/// A part of a region that an operation touches.
struct Part {
    shard: usize,
    /// Which region of the shard.
    region: usize,
    /// Which bytes of the region.
    bytes: Range<usize>,
}

impl MemoryVolume {
    /// A volume of zeroes that takes no memory yet.
    ///
    /// # Panics
    /// If `block_count` is 0 or the size does not fit into 64 bits.
    #[must_use]
    pub fn new(
        block_size: BlockSize,
        block_count: BlockCount,
        physical_block_exponent: u8,
        fences: Fences,
    ) -> Arc<Self> {
        assert!(block_count > BlockCount(0), "a volume has blocks");
        let bytes = block_count.bytes(block_size).expect("the size fits");
        let shape = shape(block_size, block_count, physical_block_exponent);
        Arc::new(Self {
            facts: Mutex::new(Facts {
                shape,
                shards: resized(&[], bytes),
            }),
            block_count: AtomicU64::new(block_count.0),
            fences,
            events: Followers::default(),
        })
    }

    /// Changes the size. Lanes that are open go on within the smaller of both.
    ///
    /// # Panics
    /// As [`MemoryVolume::new`].
    pub fn resize(&self, block_count: BlockCount) -> Epoch {
        assert!(block_count > BlockCount(0), "a volume has blocks");
        let mut facts = self.facts();
        let block_size = facts.shape.block_size;
        let bytes = block_count.bytes(block_size).expect("the size fits");
        facts.shards = resized(&facts.shards, bytes);
        facts.shape.block_count = block_count;
        self.block_count.store(block_count.0, Ordering::Release);
        facts.shape.epoch = Epoch(facts.shape.epoch.0 + 1);
        let epoch = facts.shape.epoch;
        // What is cut off must read as zeroes if the volume grows again.
        if let Some(last) = facts.shards.last() {
            let before = (facts.shards.len() as u64 - 1) * SHARD as u64;
            last.forget_from(usize::try_from(bytes.0 - before).expect("inside the last shard"));
        }
        drop(facts);
        self.events.notify(&VolumeEvent::Reshaped(epoch));
        epoch
    }

    /// Memory that holds contents.
    #[must_use]
    pub fn allocated(&self) -> ByteCount {
        let shards = Arc::clone(&self.facts().shards);
        let pages: usize = shards.iter().map(|shard| shard.pages()).sum();
        ByteCount((pages * PAGE) as u64)
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn resized(old: &[Arc<Shard>], bytes: ByteCount) -> Shards {
    let count = bytes.0.div_ceil(SHARD as u64);
    let count = usize::try_from(count).expect("memory is smaller than the address space");
    (0..count)
        .map(|index| old.get(index).cloned().unwrap_or_default())
        .collect()
}

fn shape(block_size: BlockSize, block_count: BlockCount, exponent: u8) -> Shape {
    let block = u64::from(block_size.bytes());
    let many = BlockCount(ZEROED_BYTES_MAX / block);
    let mut shape = Shape::of_memory(block_size, block_count);
    shape.physical_block_exponent = exponent;
    shape.limits = Limits {
        transfer_blocks_max: BlockCount((16 << 20) / block),
        discard_blocks_max: many,
        discard_granularity: BlockCount(PAGE as u64 / block),
        write_zeroes_blocks_max: many,
        in_flight_max: 1024,
        payload_piece_bytes: REGION_BYTES,
        ..shape.limits
    };
    shape
}

impl Volume for MemoryVolume {
    fn shape(&self) -> Shape {
        self.facts().shape
    }

    fn open(self: Arc<Self>, core: &CoreHandle) -> LocalFuture<Result<Rc<dyn Lane>, OpenError>> {
        let (shape, shards) = {
            let facts = self.facts();
            (facts.shape, Arc::clone(&facts.shards))
        };
        let lane: Rc<dyn Lane> = Rc::new(MemoryLane {
            shards,
            pool: core.pool().clone(),
            volume: Arc::clone(&self),
            shape,
        });
        Box::pin(async move { Ok(lane) })
    }

    fn events(self: Arc<Self>, _core: &CoreHandle) -> Rc<dyn VolumeEvents> {
        self.events.follow()
    }
}

fn read_lock(region: &RwLock<Region>) -> RwLockReadGuard<'_, Region> {
    region.read().unwrap_or_else(PoisonError::into_inner)
}

fn write_lock(region: &RwLock<Region>) -> RwLockWriteGuard<'_, Region> {
    region.write().unwrap_or_else(PoisonError::into_inner)
}

impl Shard {
    /// A region, if anything of the shard was ever written.
    fn region(&self, index: usize) -> Option<&RwLock<Region>> {
        self.0.get().map(|regions| &regions[index])
    }

    fn region_to_write(&self, index: usize) -> &RwLock<Region> {
        let regions = || (0..REGIONS_IN_SHARD).map(|_| RwLock::default()).collect();
        &self.0.get_or_init(regions)[index]
    }

    fn pages(&self) -> usize {
        let regions = self.0.get().into_iter().flatten();
        regions.map(|region| read_lock(region).page_count()).sum()
    }

    /// Makes zeroes of everything from this byte on.
    fn forget_from(&self, byte: usize) {
        let regions = self.0.get().into_iter().flatten();
        for (index, region) in regions.enumerate().skip(byte / REGION) {
            let from = byte.saturating_sub(index * REGION);
            drop(write_lock(region).zero(from..REGION, false, false));
        }
    }
}

/// What an operation does to the regions that it touches.
enum Change {
    Write(Buf),
    Zero { keep: bool, whole_only: bool },
}

impl MemoryLane {
    /// The parts of regions that `range` touches, in order.
    fn parts(&self, range: LbaRange) -> impl Iterator<Item = Part> + use<> {
        let block = u64::from(self.shape.block_size.bytes());
        let index = |value: u64| usize::try_from(value).expect("memory is addressable");
        let (mut at, end) = (index(range.start().0 * block), index(range.end().0 * block));
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let first = at / REGION * REGION;
                let to = end.min(first + REGION);
                let part = Part {
                    shard: at / SHARD,
                    region: at % SHARD / REGION,
                    bytes: at - first..to - first,
                };
                at = to;
                part
            })
        })
    }

    fn read(&self, range: LbaRange, into: Option<BufMut>) -> IoResult {
        let mut out = Buf::empty();
        for part in self.parts(range) {
            match self.shards[part.shard].region(part.region) {
                Some(region) => read_lock(region).lend(part.bytes, &mut out),
                None => out.append_owned(Buf::zeroes(part.bytes.len())),
            }
        }
        let Some(mut into) = into else {
            return Ok(Done::Data(out));
        };
        let mut at = 0;
        for piece in into.pieces_mut() {
            out.copy_to(at, piece);
            at += piece.len();
        }
        Ok(Done::Data(into.freeze()))
    }

    fn change(&self, range: LbaRange, change: Change, fence: Fence) -> IoResult {
        if !self.volume.fences.is_current(fence) {
            return Err(IoError::Fenced);
        }
        match change {
            Change::Write(data) => self.write(range, data),
            Change::Zero { keep, whole_only } => self.zero(range, keep, whole_only),
        }
        Ok(Done::Nothing)
    }

    fn write(&self, range: LbaRange, mut data: Buf) {
        let mut done = 0;
        for part in self.parts(range) {
            let region = self.shards[part.shard].region_to_write(part.region);
            let len = part.bytes.len();
            let mut from = done;
            done += len;
            let mut whole = None;
            if len == REGION {
                // What came before was taken off the front.
                drop(data.split_front(from));
                let piece = data.split_front(REGION);
                (from, done) = (0, 0);
                match Slab::keep(piece, REGION) {
                    Ok(slab) => {
                        let before = write_lock(region).replace(slab);
                        before.into_iter().for_each(|slab| self.pool.give(slab));
                        continue;
                    }
                    Err(piece) => whole = Some(piece),
                }
            }
            let source = whole.as_ref().unwrap_or(&data);
            write_lock(region).write(part.bytes, |memory| {
                source.copy_past_cache_to(from, memory);
                from += memory.len();
            });
        }
    }

    fn zero(&self, range: LbaRange, keep: bool, whole_only: bool) {
        for part in self.parts(range) {
            let shard = &self.shards[part.shard];
            let region = match shard.region(part.region) {
                Some(region) => region,
                None if keep => shard.region_to_write(part.region),
                None => continue,
            };
            let needless = write_lock(region).zero(part.bytes, keep, whole_only);
            drop(needless);
        }
    }

    fn extents(&self, range: LbaRange) -> IoResult {
        let block = u64::from(self.shape.block_size.bytes());
        let most = BlockCount((REPORTED_BYTES_MAX / block).min(range.len().0));
        let range = LbaRange::new(range.start(), most).expect("inside the request");
        let mut found = ExtentList::new();
        let mut at = range.start();
        for part in self.parts(range) {
            let region = self.shards[part.shard].region(part.region).map(read_lock);
            let Some(region) = region else {
                let end = Lba(at.0 + part.bytes.len() as u64 / block);
                if !push_extent(&mut found, at, end, ExtentKind::Deallocated) {
                    return Ok(Done::Extents(found));
                }
                at = end;
                continue;
            };
            for page in part.bytes.start / PAGE..part.bytes.end.div_ceil(PAGE) {
                let kind = if region.is_mapped(page) {
                    ExtentKind::Mapped
                } else {
                    ExtentKind::Deallocated
                };
                let to = part.bytes.end.min((page + 1) * PAGE);
                let from = part.bytes.start.max(page * PAGE);
                let end = Lba(at.0 + (to - from) as u64 / block);
                if !push_extent(&mut found, at, end, kind) {
                    return Ok(Done::Extents(found));
                }
                at = end;
            }
        }
        Ok(Done::Extents(found))
    }

    fn run(&self, op: Op, fence: Fence) -> IoResult {
        if let Some(range) = op.range()
            && range.end().0 > self.volume.block_count.load(Ordering::Acquire)
        {
            // The volume has shrunk under this lane.
            return Err(IoError::Unavailable);
        }
        match op {
            Op::Read { range, into } => self.read(range, into),
            Op::Write { range, data, .. } => self.change(range, Change::Write(data), fence),
            Op::WriteZeroes { range, zeroing, .. } => {
                let keep = zeroing == Zeroing::KeepAllocated;
                let whole_only = false;
                self.change(range, Change::Zero { keep, whole_only }, fence)
            }
            Op::Discard { range, .. } => {
                let (keep, whole_only) = (false, true);
                self.change(range, Change::Zero { keep, whole_only }, fence)
            }
            Op::CompareAndWrite { .. } => unreachable!("announced as absent"),
            Op::Extents { range, .. } => self.extents(range),
            Op::Flush => Ok(Done::Nothing),
        }
    }
}

/// Adds a run, joined to the last one where both are of a kind; answers whether there was room.
pub(crate) fn push_extent(found: &mut ExtentList, start: Lba, end: Lba, kind: ExtentKind) -> bool {
    if let Some(last) = found.last_mut()
        && last.kind == kind
    {
        last.range = LbaRange::between(last.range.start(), end).expect("runs go forward");
        return true;
    }
    if found.len() >= EXTENTS_MAX {
        return false;
    }
    let range = LbaRange::between(start, end).expect("runs go forward");
    found.push(Extent { range, kind });
    true
}

impl Lane for MemoryLane {
    fn submit(&self, io: Io) -> IoFuture {
        let (op, origin) = io.into_parts();
        Answer::ready(self.run(op, origin.fence))
    }
}
