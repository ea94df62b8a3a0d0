//! A volume in memory.
//!
//! ```text
//!   shard (4 MiB): RwLock -> [page, page, none, page, ...]     page: 4 KiB, counted, never changed
//! ```
//!
//! **Invariants.** A page is replaced, never overwritten: whoever has read it (to send it, to digest it)
//! keeps what was read. A shard's lock is held only to swap pages, or to merge one that is written in
//! part; all cores work on different shards at once.
//!
//! **Failure model.** Nothing survives the process. The volume says so the only way a disk can: its cache
//! is volatile. A flush has nothing to do.

use crate::events::Hub;
use env::{Answer, CoreHandle, CoreId, LocalFuture};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use units::{BlockCount, BlockSize, Buf, BufMut, ByteCount, Lba, LbaRange, Pool};
use volume::{
    Caps, Done, Epoch, Extent, ExtentKind, ExtentList, Fence, Fences, Io, IoError, IoFuture,
    IoResult, Lane, Limits, Op, OpenError, Shape, Support, Volume, VolumeEvent, VolumeEvents,
    Zeroing,
};

const PAGE: u64 = 4096;
const PAGES_IN_SHARD: u64 = 1024;

/// Runs of an extents answer.
const EXTENTS_MAX: usize = 256;

/// One shard; `None` where nothing was ever written.
#[derive(Default)]
struct Shard(RwLock<Option<Box<[Option<Buf>]>>>);

type Shards = Arc<[Arc<Shard>]>;

/// A volume in memory, shared by all cores.
pub struct MemoryVolume {
    facts: Mutex<Facts>,
    /// The size now, for lanes that are older than a change.
    block_count: AtomicU64,
    fences: Fences,
    /// Where each core's pages come from; their limit is the volume's size.
    pools: Mutex<BTreeMap<CoreId, Pool>>,
    events: Hub,
}

struct Facts {
    shape: Shape,
    shards: Shards,
}

struct MemoryLane {
    shards: Shards,
    pages: Pool,
    volume: Arc<MemoryVolume>,
    shape: Shape,
}

/// A part of a page that an operation touches.
struct Part {
    /// In which shard and where there.
    shard: usize,
    page: usize,
    /// Which bytes of the page.
    from: usize,
    to: usize,
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
            pools: Mutex::default(),
            events: Hub::default(),
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
            last.forget_from(bytes.0 - (facts.shards.len() as u64 - 1) * PAGES_IN_SHARD * PAGE);
        }
        drop(facts);
        self.events.tell(&VolumeEvent::Reshaped(epoch));
        epoch
    }

    /// Memory that holds contents.
    #[must_use]
    pub fn allocated(&self) -> ByteCount {
        let shards = Arc::clone(&self.facts().shards);
        let pages: usize = shards.iter().map(|shard| shard.pages()).sum();
        ByteCount(pages as u64 * PAGE)
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn resized(old: &[Arc<Shard>], bytes: ByteCount) -> Shards {
    let count = bytes.0.div_ceil(PAGE * PAGES_IN_SHARD);
    let count = usize::try_from(count).expect("memory is smaller than the address space");
    (0..count)
        .map(|index| old.get(index).cloned().unwrap_or_default())
        .collect()
}

fn shape(block_size: BlockSize, block_count: BlockCount, exponent: u8) -> Shape {
    let block = u64::from(block_size.bytes());
    let many = BlockCount((4 << 30) / block);
    Shape {
        block_size,
        block_count,
        physical_block_exponent: exponent,
        limits: Limits {
            transfer_blocks_max: BlockCount((16 << 20) / block),
            discard_blocks_max: many,
            discard_granularity: BlockCount(PAGE / block),
            discard_alignment: BlockCount(0),
            write_zeroes_blocks_max: many,
            compare_and_write_blocks_max: BlockCount(0),
            atomic_blocks_max: BlockCount(0),
            in_flight_max: 1024,
            memory_alignment: 1,
        },
        caps: Caps {
            writable: true,
            volatile_cache: true,
            stable_write: Support::Native,
            discard: Support::Native,
            discard_reads_zero: true,
            anchor: Support::Absent,
            write_zeroes: Support::Native,
            compare_and_write: Support::Absent,
            extents: Support::Native,
            changed_blocks: Support::Absent,
        },
        epoch: Epoch(0),
    }
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
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = pools
            .entry(core.id())
            .or_insert_with(|| Pool::new(usize::MAX));
        let lane: Rc<dyn Lane> = Rc::new(MemoryLane {
            shards,
            pages: pool.clone(),
            volume: Arc::clone(&self),
            shape,
        });
        Box::pin(async move { Ok(lane) })
    }

    fn events(self: Arc<Self>, _core: &CoreHandle) -> Rc<dyn VolumeEvents> {
        self.events.follow()
    }
}

impl Shard {
    fn pages(&self) -> usize {
        let pages = self.0.read().unwrap_or_else(PoisonError::into_inner);
        pages.iter().flatten().flatten().count()
    }

    /// Makes zeroes of everything from this byte on.
    fn forget_from(&self, byte: u64) {
        let mut pages = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Some(pages) = pages.as_mut() else { return };
        let index = |value: u64| usize::try_from(value).expect("inside a shard");
        let (whole, part) = (index(byte / PAGE), index(byte % PAGE));
        if part > 0
            && let Some(page) = pages[whole].as_mut()
        {
            let mut cut = BufMut::zeroed(page.len());
            page.copy_to(0, &mut cut.chunk_mut(0)[..part]);
            *page = cut.freeze();
        }
        let first_gone = whole + usize::from(part > 0);
        pages
            .iter_mut()
            .skip(first_gone)
            .for_each(|page| *page = None);
    }
}

/// What becomes of a page.
enum Change {
    /// It is this page now.
    Whole(Option<Buf>),
    /// Its bytes from here on are these.
    Merge(usize, Buf),
}

impl MemoryLane {
    /// The parts of pages that `range` touches, in order.
    fn parts(&self, range: LbaRange) -> impl Iterator<Item = Part> + use<> {
        let block = u64::from(self.shape.block_size.bytes());
        let (mut at, end) = (range.start().0 * block, range.end().0 * block);
        let index = |value: u64| usize::try_from(value).expect("memory is addressable");
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let page = at / PAGE;
            let to = end.min((page + 1) * PAGE);
            let part = Part {
                shard: index(page / PAGES_IN_SHARD),
                page: index(page % PAGES_IN_SHARD),
                from: index(at - page * PAGE),
                to: index(to - page * PAGE),
            };
            at = to;
            Some(part)
        })
    }

    fn read(&self, range: LbaRange, into: Option<BufMut>) -> IoResult {
        let mut out = Buf::empty();
        let mut parts = self.parts(range).peekable();
        while let Some(&Part { shard, .. }) = parts.peek() {
            let pages = &self.shards[shard].0;
            let pages = pages.read().unwrap_or_else(PoisonError::into_inner);
            while let Some(part) = parts.next_if(|part| part.shard == shard) {
                let page = pages.as_ref().and_then(|pages| pages[part.page].as_ref());
                match page {
                    Some(page) if part.to - part.from == page.len() => out.append(page),
                    Some(page) => out.append(&page.slice(part.from..part.to)),
                    None => out.append(&Buf::zeroes(part.to - part.from)),
                }
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

    /// A new page with these bytes.
    fn page(&self, data: &Buf, from: usize) -> Buf {
        let mut page = self.new_page();
        data.copy_to(from, page.chunk_mut(0));
        page.freeze()
    }

    fn new_page(&self) -> BufMut {
        let page = usize::try_from(PAGE).expect("a small constant");
        self.pages.alloc(page).expect("this pool has no limit")
    }

    fn write(&self, range: LbaRange, data: &Buf, fence: Fence) -> IoResult {
        let mut offset = 0;
        let changes = self.parts(range).map(|part| {
            let len = part.to - part.from;
            let change = if len as u64 == PAGE {
                Change::Whole(Some(self.page(data, offset)))
            } else {
                Change::Merge(part.from, data.slice(offset..offset + len))
            };
            offset += len;
            (part, change)
        });
        // All copies are made before the first lock.
        let changes: Vec<_> = changes.collect();
        self.apply(changes, fence)
    }

    fn zero(&self, range: LbaRange, keep: bool, whole_only: bool, fence: Fence) -> IoResult {
        let changes = self.parts(range).filter_map(|part| {
            let len = part.to - part.from;
            let change = if len as u64 != PAGE {
                (!whole_only).then(|| Change::Merge(part.from, Buf::zeroes(len)))?
            } else if keep {
                Change::Whole(Some(Buf::zeroes(len)))
            } else {
                Change::Whole(None)
            };
            Some((part, change))
        });
        let changes: Vec<_> = changes.collect();
        self.apply(changes, fence)
    }

    fn apply(&self, changes: Vec<(Part, Change)>, fence: Fence) -> IoResult {
        if !self.volume.fences.holds(fence) {
            return Err(IoError::Fenced);
        }
        // Old pages are let go after the locks: their memory goes back to a pool.
        let mut old = Vec::with_capacity(changes.len());
        let mut changes = changes.into_iter().peekable();
        while let Some(&(Part { shard, .. }, _)) = changes.peek() {
            let pages = &self.shards[shard].0;
            let mut pages = pages.write().unwrap_or_else(PoisonError::into_inner);
            while let Some((part, change)) = changes.next_if(|(part, _)| part.shard == shard) {
                let count = usize::try_from(PAGES_IN_SHARD).expect("a small constant");
                let nothing_to_take = matches!(change, Change::Whole(None)) && pages.is_none();
                if nothing_to_take {
                    continue;
                }
                let pages = pages.get_or_insert_with(|| vec![None; count].into());
                let slot = &mut pages[part.page];
                let new = match change {
                    Change::Whole(page) => page,
                    Change::Merge(from, data) => Some(self.merged(slot.as_ref(), from, &data)),
                };
                old.push(std::mem::replace(slot, new));
            }
        }
        Ok(Done::Nothing)
    }

    fn merged(&self, old: Option<&Buf>, from: usize, data: &Buf) -> Buf {
        let mut page = self.new_page();
        match old {
            Some(old) => old.copy_to(0, page.chunk_mut(0)),
            None => page.zero_from(0),
        }
        let bytes = page.chunk_mut(0);
        data.copy_to(0, &mut bytes[from..from + data.len()]);
        page.freeze()
    }

    fn extents(&self, range: LbaRange) -> IoResult {
        let block = u64::from(self.shape.block_size.bytes());
        let mut found = ExtentList::new();
        let mut at = range.start();
        for part in self.parts(range) {
            let pages = &self.shards[part.shard].0;
            let pages = pages.read().unwrap_or_else(PoisonError::into_inner);
            let mapped = pages
                .as_ref()
                .is_some_and(|pages| pages[part.page].is_some());
            let kind = if mapped {
                ExtentKind::Mapped
            } else {
                ExtentKind::Deallocated
            };
            let end = Lba(at.0 + (part.to - part.from) as u64 / block);
            if !push_extent(&mut found, at, end, kind) {
                break;
            }
            at = end;
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
            Op::Write { range, data, .. } => self.write(range, &data, fence),
            Op::WriteZeroes { range, zeroing, .. } => {
                self.zero(range, zeroing == Zeroing::KeepAllocated, false, fence)
            }
            Op::Discard { range, .. } => self.zero(range, false, true, fence),
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
