//! The pages of a read cache: kept by all cores together, and never older than what the volume
//! holds.
//!
//! ```text
//!   page -> shard: a lock around frames and their policy   page -> stamp: changes begun and ended
//! ```
//!
//! **Invariants.** I1: a page that is there holds what the volume below holds. I2: a change takes
//! its pages out after it is counted as begun and before it goes down, and puts nothing back where
//! another one has begun since. I3: what was read below is put in only where no change of its stamp
//! was under way when the read began, and none has begun since; this is tested under the lock
//! under which a change takes pages out, so that of a fill and a change the fill loses.

use super::frames::PAGE;
use super::shard::{RUN_PAGES, Shard, Spread};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use units::Buf;

/// What a page costs beside its bytes: its slab's header, and its place in the index and in the
/// queues.
const PAGE_COST: usize = 256;

/// Stamps: neighbours have different ones, and a change of all pages touches each once.
const STAMPS: usize = 4096;

/// Pages in a row that lie in one shard.
const SEGMENT: u64 = 4 * RUN_PAGES;

/// The most shards.
const SHARDS_MAX: usize = 64;

/// The fewest pages in a shard.
const SHARD_PAGES_MIN: usize = 256;

#[derive(Default)]
struct Stamp {
    begun: AtomicU32,
    ended: AtomicU32,
}

/// What one core has counted, in a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Counts {
    hits: AtomicU64,
    misses: AtomicU64,
}

/// The memory of a read cache: its shards, what was changed when, and what helped.
pub struct Pages {
    shards: Box<[Mutex<Shard>]>,
    stamps: Box<[Stamp]>,
    counts: Box<[Counts]>,
}

/// A read below whose pages may be put in when it is done.
#[derive(Debug)]
pub struct Fill {
    first: u64,
    /// For each page how many changes had begun, where none was under way.
    begun: SmallVec<[Option<u32>; 4]>,
}

/// A change below whose pages were taken out.
#[derive(Debug)]
pub struct Change {
    pages: Range<u64>,
    /// For each page that was there how many changes had begun with this one, where it is the only
    /// one.
    there: SmallVec<[(u64, u32); 2]>,
}

/// How often pages were there.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Reads that were answered from here.
    pub hits: u64,
    /// Reads that were not.
    pub misses: u64,
    /// Bytes of the pages that are here.
    pub bytes: u64,
}

impl Pages {
    /// Room for pages that take `bytes` with all that they cost; at least one.
    #[must_use]
    pub fn new(bytes: u64, cores: u16) -> Self {
        let pages = usize::try_from(bytes).unwrap_or(usize::MAX) / (PAGE + PAGE_COST);
        let pages = pages.max(1);
        let shards = (pages / SHARD_PAGES_MIN).clamp(1, SHARDS_MAX);
        let each = pages / shards;
        let shard = || Mutex::new(Shard::new(each));
        Self {
            shards: (0..shards).map(|_| shard()).collect(),
            stamps: (0..STAMPS).map(|_| Stamp::default()).collect(),
            counts: (0..cores.max(1)).map(|_| Counts::default()).collect(),
        }
    }

    fn shard(&self, page: u64) -> MutexGuard<'_, Shard> {
        let count = u64::try_from(self.shards.len()).expect("a usize fits");
        let spread = Spread::of(page / SEGMENT) >> 16;
        let place = usize::try_from(spread % count).expect("below the count");
        let shard = self.shards.get(place).expect("below the count");
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stamp(&self, page: u64) -> &Stamp {
        let count = u64::try_from(STAMPS).expect("a small number");
        let place = usize::try_from(page % count).expect("below the count");
        self.stamps.get(place).expect("below the count")
    }

    /// The bytes of all these pages, where they are here.
    #[must_use]
    pub fn get(&self, pages: Range<u64>) -> Option<Buf> {
        let mut all = Buf::empty();
        let mut at = pages.start;
        while at < pages.end {
            let end = pages.end.min((at / RUN_PAGES + 1) * RUN_PAGES);
            if !self.shard(at).read(at..end, &mut all) {
                return None;
            }
            at = end;
        }
        Some(all)
    }

    /// Counts a read on `core`, which alone counts there.
    pub fn count(&self, core: u16, hit: bool) {
        let Some(counts) = self.counts.get(usize::from(core)) else {
            return;
        };
        let counter = if hit { &counts.hits } else { &counts.misses };
        let count = counter.load(Ordering::Relaxed);
        counter.store(count + 1, Ordering::Relaxed);
    }

    /// A read of these pages is about to go down.
    #[must_use]
    pub fn begin_fill(&self, pages: Range<u64>) -> Fill {
        let begun = pages.clone().map(|page| {
            let stamp = self.stamp(page);
            // In this order: what is equal then was so when the second was read, as `ended` follows
            // `begun`.
            let ended = stamp.ended.load(Ordering::Acquire);
            let begun = stamp.begun.load(Ordering::Acquire);
            (begun == ended).then_some(begun)
        });
        Fill {
            first: pages.start,
            begun: begun.collect(),
        }
    }

    /// The read is done: `data` is what it gave, whole pages from the first of the fill on.
    pub fn fill(&self, fill: Fill, data: &Buf) {
        let count = data.len() / PAGE;
        for ((page, begun), at) in (fill.first..).zip(fill.begun).zip(0..count) {
            let Some(begun) = begun else { continue };
            let mut shard = self.shard(page);
            // One that is there holds the same.
            let is_news = !shard.holds(page);
            if is_news && self.stamp(page).begun.load(Ordering::Acquire) == begun {
                shard.put(page, data, at * PAGE);
            }
        }
    }

    /// A change of these pages is about to go down.
    #[must_use]
    pub fn begin_change(&self, pages: Range<u64>) -> Change {
        let all = u64::try_from(STAMPS).expect("a small number");
        let mut alone = SmallVec::<[(u64, u32); 2]>::new();
        for page in pages.clone().take(STAMPS) {
            let stamp = self.stamp(page);
            let before = stamp.begun.fetch_add(1, Ordering::AcqRel);
            if before == stamp.ended.load(Ordering::Acquire) {
                alone.push((page, before.wrapping_add(1)));
            }
        }
        let mut there = SmallVec::new();
        if pages.end - pages.start > all {
            for shard in &self.shards {
                let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
                shard.remove_all(&pages);
            }
        } else {
            let mut alone = alone.into_iter().peekable();
            for page in pages.clone() {
                let removed = self.shard(page).remove(page);
                let alone = alone.next_if(|(of, _)| *of == page);
                there.extend(alone.filter(|_| removed));
            }
        }
        Change { pages, there }
    }

    /// The change is over. `data`: all pages hold this now; without it nobody knows.
    pub fn end_change(&self, change: Change, data: Option<&Buf>) {
        if let Some(data) = data {
            for (page, begun) in change.there {
                let at = usize::try_from(page - change.pages.start).expect("a page of the payload");
                let mut shard = self.shard(page);
                if self.stamp(page).begun.load(Ordering::Acquire) == begun {
                    shard.put(page, data, at * PAGE);
                }
            }
        }
        for page in change.pages.take(STAMPS) {
            self.stamp(page).ended.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Takes all pages out; fills that are under way lose.
    pub fn clear(&self) {
        let all = self.begin_change(0..u64::MAX);
        self.end_change(all, None);
    }

    /// How often pages were there, over all cores.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for counts in &self.counts {
            tally.hits += counts.hits.load(Ordering::Relaxed);
            tally.misses += counts.misses.load(Ordering::Relaxed);
        }
        for shard in &self.shards {
            let len = shard.lock().unwrap_or_else(PoisonError::into_inner).len();
            tally.bytes += u64::try_from(len * PAGE).expect("a usize fits");
        }
        tally
    }
}
