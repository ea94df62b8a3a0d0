//! The map of one volume, shared by its lanes on all cores: which pages are in memory, what is to
//! be written, and what was seen.

use super::cache::{Cache, Lookup, Make};
use super::due::Rounds;
use super::map_file::read_pair;
use super::page::{Changed, Checksums, Resident, lock};
use super::unflushed::Unflushed;
use super::{Counts, Finding, OnFinding, Options};
use checksums::{
    Blank, Checksum, FAN, Found, Level, MapId, PAGE, PageId, Salt, Superblock, Tree, judge,
};
use env::{CoreHandle, File};
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use units::{Lba, LbaRange};
use volume::IoError;

/// Bad blocks whose numbers are kept; more are only counted.
const BAD_MAX: usize = 1024;

/// What happened, counted since the map was opened.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) mismatches: AtomicU64,
    pub(super) repaired: AtomicU64,
    pub(super) adopted: AtomicU64,
    pub(super) second_reads: AtomicU64,
    pub(super) page_reads: AtomicU64,
    pub(super) page_writes: AtomicU64,
    pub(super) pages_lost: AtomicU64,
    pub(super) rounds: AtomicU64,
}

impl Tally {
    pub(super) fn add(counter: &AtomicU64, many: u64) {
        counter.fetch_add(many, Ordering::Relaxed);
    }
}

/// What blocks without a checksum may hold.
pub(super) struct BlankBlocks {
    /// Not zeroes alone: they were written before there were checksums.
    pub(super) anything: AtomicBool,
    /// Blocks that have a checksum, where those without may hold anything.
    pub(super) with_checksum: AtomicI64,
}

/// What may be written, and is to be written.
pub(super) struct MapState {
    /// A write or sync of the map failed, or it was closed: nothing may be written any more.
    pub(super) broken: AtomicBool,
    /// There was no space for the last round.
    pub(super) full: AtomicBool,
    /// It is being closed: no block may be written any more, and what was set is written.
    pub(super) closed: AtomicBool,
    /// Writes of parts of blocks that do not fit their checksums are adopted: the journal's replay
    /// is not over.
    pub(super) replaying: AtomicBool,
    /// The superblock says something new, and is to be written with the next pages above.
    pub(super) superblock_is_new: AtomicBool,
}

/// The map of one volume.
pub(super) struct Map {
    pub(super) id: MapId,
    pub(super) salt: Salt,
    /// Bytes that one checksum covers.
    pub(super) covered_bytes: usize,
    /// Logical blocks that one checksum covers.
    pub(super) per_checksum: u64,
    pub(super) blank: BlankBlocks,
    pub(super) cache: Cache,
    pub(super) tree: Mutex<Tree>,
    pub(super) superblock: Mutex<Superblock>,
    pub(super) rounds: Mutex<Rounds>,
    pub(super) unflushed: Mutex<Unflushed>,
    pub(super) state: MapState,
    /// Stable data needs no stable checksums: whoever stands above names it, after a crash, until
    /// the next flush.
    pub(super) covered: bool,
    pub(super) tally: Tally,
    pub(super) report: OnFinding,
    pub(super) repair: Option<Arc<dyn super::Repair>>,
    bad: Mutex<BTreeSet<u64>>,
}

/// Blocks of one page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub(super) page: u64,
    pub(super) entries: Range<usize>,
    /// The first block.
    pub(super) block: u64,
}

/// The pages of blocks, in order.
pub(super) fn parts(blocks: Range<u64>) -> impl Iterator<Item = Part> {
    let mut at = blocks.start;
    std::iter::from_fn(move || {
        (at < blocks.end).then(|| {
            let (place, entry) = PageId::of_block(at);
            let here = usize::try_from(blocks.end - at)
                .unwrap_or(FAN)
                .min(FAN - entry);
            let part = Part {
                page: place.index,
                entries: entry..entry + here,
                block: at,
            };
            at += here as u64;
            part
        })
    })
}

/// What one lookup in the map says of blocks, without waiting.
pub(super) enum Known {
    /// Their checksums, in order.
    Checksums(Checksums),
    /// A page must be read first.
    NotHere,
}

impl Map {
    pub(super) fn new(superblock: Superblock, tree: Tree, options: Options) -> Arc<Self> {
        let clean = superblock.clean;
        Arc::new(Self {
            id: superblock.map,
            salt: Salt::of(superblock.map),
            covered_bytes: superblock.covers.bytes() as usize,
            per_checksum: superblock.per_checksum(),
            blank: BlankBlocks {
                anything: AtomicBool::new(superblock.blank == Blank::Anything),
                with_checksum: AtomicI64::new(
                    superblock.with_checksum.try_into().unwrap_or(i64::MAX),
                ),
            },
            cache: Cache::new(options.resident_bytes / PAGE),
            tree: Mutex::new(tree),
            superblock: Mutex::new(superblock),
            rounds: Mutex::default(),
            unflushed: Mutex::default(),
            state: MapState {
                broken: AtomicBool::new(false),
                full: AtomicBool::new(false),
                closed: AtomicBool::new(false),
                replaying: AtomicBool::new(!clean),
                superblock_is_new: AtomicBool::new(false),
            },
            covered: options.covered,
            tally: Tally::default(),
            report: options.report,
            repair: options.repair,
            bad: Mutex::default(),
        })
    }

    /// Bytes that one checksum covers, as they are reported.
    pub(super) fn bytes_per_checksum(&self) -> u32 {
        u32::try_from(self.covered_bytes).expect("512 or 4096")
    }

    /// What a block without a checksum holds.
    pub(super) fn blank(&self) -> Blank {
        if self.blank.anything.load(Ordering::Relaxed) {
            Blank::Anything
        } else {
            Blank::Zeroes
        }
    }

    /// Checksums of a page were set.
    pub(super) fn changed(&self, page: &Arc<Resident>, changed: Changed) {
        if changed.filled != 0 && self.blank() == Blank::Anything {
            self.blank
                .with_checksum
                .fetch_add(changed.filled, Ordering::Relaxed);
        }
        if changed.dirtied {
            self.dirtied(Arc::clone(page));
        }
    }

    /// The checksums of blocks as far as they are in memory, or known to be blank.
    pub(super) fn peek(&self, blocks: Range<u64>) -> Known {
        let mut checksums = Checksums::new();
        for part in parts(blocks) {
            let entries = part.entries.clone();
            let copied = self
                .cache
                .glance(part.page, |page| page.copy(entries, &mut checksums));
            if copied.is_some() {
                continue;
            }
            if lock(&self.tree).recorded(place(part.page)).is_absent() {
                checksums.resize(checksums.len() + part.entries.len(), Checksum::BLANK);
            } else {
                return Known::NotHere;
            }
        }
        Known::Checksums(checksums)
    }

    /// A page, read if need be; `None` where it was never written, unless it is wanted anyway.
    ///
    /// # Errors
    /// The map's file cannot be read: nobody knows what the blocks of the page must be.
    pub(super) async fn page(
        &self,
        core: &CoreHandle,
        file: &Rc<dyn File>,
        index: u64,
        anyway: bool,
    ) -> Result<Option<Arc<Resident>>, IoError> {
        loop {
            let make = || {
                let absent = lock(&self.tree).recorded(place(index)).is_absent();
                match (absent, anyway) {
                    (false, _) => Make::Load,
                    (true, true) => Make::At(blank_page(index)),
                    (true, false) => Make::None,
                }
            };
            match self.cache.lookup(index, make) {
                (Lookup::Here(page), _) => return Ok(Some(page)),
                (Lookup::Missing, None) => return Ok(None),
                // Whoever loads it may fail, or give up: the next lookup shows it.
                (Lookup::Loading(woken), _) => drop(woken.await),
                (Lookup::Missing, Some(mut loading)) => {
                    let slots = self.read_pair(core, file, index).await?;
                    loading.page = Some(self.judged(index, &slots));
                }
            }
        }
    }

    /// Both places of a page of checksums.
    pub(super) async fn read_pair(
        &self,
        core: &CoreHandle,
        file: &Rc<dyn File>,
        index: u64,
    ) -> Result<Vec<u8>, IoError> {
        Tally::add(&self.tally.page_reads, 1);
        let lost = IoError::MediumError {
            lba: self.first_of(index),
        };
        read_pair(core, file, place(index)).await.map_err(|_| lost)
    }

    fn judged(&self, index: u64, slots: &[u8]) -> Arc<Resident> {
        let both = [&slots[..PAGE], &slots[PAGE..]];
        let mut tree = lock(&self.tree);
        let recorded = tree.recorded(place(index));
        match judge(recorded, place(index), self.id, both) {
            Ok(Found::Page(page)) if page.generation.low() == recorded.generation => {
                tree.stable(index, page.generation);
                Resident::new(index, page.entries, page.generation)
            }
            Ok(Found::Page(page)) => {
                // Perhaps a sync of it failed, and perhaps it is stable and relied upon: see
                // `checksums::Tree`.
                drop(tree);
                let page = Resident::new(index, page.entries, page.generation);
                self.changed(&page, page.mark_unverified());
                page
            }
            Ok(Found::Absent) => {
                tree.stable(index, checksums::Generation(0));
                blank_page(index)
            }
            Err(unfit) => {
                drop(tree);
                Tally::add(&self.tally.pages_lost, 1);
                self.report_finding(&Finding::MapDamaged {
                    blocks: self.blocks_of(index),
                    why: unfit.why.to_string(),
                });
                let lost = Box::new([Checksum::LOST.raw(); FAN]);
                Resident::new(index, lost, unfit.generation)
            }
        }
    }

    /// The logical blocks that a page of checksums covers.
    pub(super) fn blocks_of(&self, index: u64) -> Range<Lba> {
        self.first_of(index)..self.first_of(index + 1)
    }

    fn first_of(&self, index: u64) -> Lba {
        Lba(index * FAN as u64 * self.per_checksum)
    }

    pub(super) fn report_finding(&self, finding: &Finding) {
        (self.report)(finding);
    }

    /// A block does not fit its checksum; `true` when that is news.
    pub(super) fn is_bad(&self, block: u64) -> bool {
        Tally::add(&self.tally.mismatches, 1);
        let mut bad = lock(&self.bad);
        bad.len() < BAD_MAX && bad.insert(block)
    }

    /// Blocks that are known not to fit, in order, neighbours together.
    pub(super) fn bad(&self) -> Vec<LbaRange> {
        self.ranges_of(lock(&self.bad).clone())
    }

    fn ranges_of(&self, blocks: BTreeSet<u64>) -> Vec<LbaRange> {
        if blocks.is_empty() {
            return Vec::new();
        }
        let per_checksum = self.per_checksum;
        let end = lock(&self.superblock).blocks;
        let mut ranges: Vec<LbaRange> = Vec::new();
        for block in blocks {
            let to = Lba(((block + 1) * per_checksum).min(end));
            let from = match ranges.last() {
                Some(last) if last.end().0 == block * per_checksum => {
                    ranges.pop().map(|last| last.start())
                }
                Some(_) | None => None,
            };
            let from = from.unwrap_or(Lba(block * per_checksum));
            ranges.extend(LbaRange::between(from, to));
        }
        ranges
    }

    /// Blocks have new checksums; those that were bad are reported.
    pub(super) fn is_good(&self, blocks: Range<u64>) {
        for range in self.ranges_of(self.not_bad(blocks)) {
            self.report_finding(&Finding::Rewritten(range));
        }
    }

    /// Those of the blocks that were bad are not any more.
    pub(super) fn not_bad(&self, blocks: Range<u64>) -> BTreeSet<u64> {
        let mut bad = lock(&self.bad);
        if bad.is_empty() {
            return BTreeSet::new();
        }
        let gone: BTreeSet<u64> = bad.range(blocks).copied().collect();
        bad.retain(|block| !gone.contains(block));
        gone
    }

    pub(super) fn is_broken(&self) -> bool {
        self.state.broken.load(Ordering::Acquire)
    }

    /// There is no space for it, and what waits to be written is as much as may be kept in memory.
    pub(super) fn is_full(&self) -> bool {
        self.state.full.load(Ordering::Acquire) && self.dirty_pages() >= self.cache.pages_max()
    }

    /// No block may be written any more.
    pub(super) fn refuses(&self) -> bool {
        self.is_broken() || self.state.closed.load(Ordering::Acquire)
    }

    pub(super) fn counts(&self) -> Counts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let tally = &self.tally;
        Counts {
            mismatches: get(&tally.mismatches),
            repaired: get(&tally.repaired),
            adopted: get(&tally.adopted),
            second_reads: get(&tally.second_reads),
            page_reads: get(&tally.page_reads),
            page_writes: get(&tally.page_writes),
            pages_lost: get(&tally.pages_lost),
            rounds: get(&tally.rounds),
            resident_bytes: (self.cache.pages() * PAGE + lock(&self.tree).resident_bytes()) as u64,
            bad_blocks: lock(&self.bad).len() as u64,
        }
    }
}

pub(super) const fn place(index: u64) -> PageId {
    let level = Level::Checksums;
    PageId { level, index }
}

fn blank_page(index: u64) -> Arc<Resident> {
    let entries = Box::new([Checksum::BLANK.raw(); FAN]);
    Resident::new(index, entries, checksums::Generation(0))
}
