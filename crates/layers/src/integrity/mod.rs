//! Checksums of every 4 KiB of a volume, or of every 512 bytes where those are its physical blocks,
//! kept apart from it, verified on every read.
//!
//! ```text
//!   write-back, or hosts --> [Integrity] --> data: file or device
//!                                 \--------> NAME.checksums: the map (crate `checksums`)
//! ```
//!
//! **Contract.** What is read is what was written there last, or [`IoError::Integrity`] with the
//! first block that is not: flipped bits, misdirected and lost writes, of the data as of the map. A
//! stable write, and a flush, answer when data and checksums are stable. Overlapping writes are put
//! in order; parts of what a checksum covers are read, verified, and written whole.
//!
//! **What it relies on.** Data and checksums are not written as one. So whatever was not covered by
//! a flush when the power failed must be written again through this layer before it is read
//! ([`Integrity::replayed`] ends that time), named as [unverified](Integrity::mark_unverified)
//! before anything is, or [adopted](IntegrityLane::adopt).
//!
//! **Failure model.** A write that fails leaves blocks whose checksums are adopted anew by the next
//! read, and so does a flush that fails of all that was written, and of whose checksums were
//! adopted, since the one before; what differs and was not flushed is flushed before it is called
//! damage. A page of the map that is damaged or lost costs its blocks: they cannot be read until
//! they are written or adopted. A write or sync of the map that fails: no mutation is done any more
//! until the volume is opened anew. Where it fails for want of space nothing is lost or broken:
//! what the map says stays in memory, is tried again each second, and flushes, and writes when that
//! is all that may wait there, are answered with [`IoError::SpaceExhausted`] until there is room.
//!
//! The format is in `docs/formats/integrity.md`, the reasons in `docs/adr/0009-integrity.md`.

mod above;
mod cache;
mod change;
mod cover;
mod due;
mod flush;
mod lane;
mod map;
mod map_file;
mod open;
mod page;
mod rounds;
mod survey;
#[cfg(test)]
mod test;
mod unflushed;
mod verdict;

pub use checksums::{Blank, CopiesState};
pub use lane::IntegrityLane;
pub use open::{MapSpec, create};
pub use survey::{MapSurvey, survey};

use env::{CoreHandle, LocalFuture};
use map::Map;
use sidecar::Sidecar;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use units::{BlockCount, Buf, Lba, LbaRange};
use volume::{Lane, OpenError, Shape, Support, Volume, VolumeEvents};

#[cfg(doc)]
use volume::IoError;

/// Bytes of pages of checksums that are kept in memory for a volume, unless asked otherwise: enough
/// for 16 GiB of it, or for 2 GiB where checksums cover 512 bytes each.
pub const RESIDENT_BYTES: usize = 16 << 20;

/// What the layer has found out by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// These blocks (one checksum's) are not what was written; reported once until they are
    /// written.
    Mismatch(LbaRange),
    /// They were not, and another copy is there again.
    Repaired(LbaRange),
    /// They were not, and were written again.
    Rewritten(LbaRange),
    /// A page of the map cannot be used: these blocks cannot be vouched for until they are written.
    MapDamaged {
        /// Which blocks; some may lie past the volume's end.
        blocks: Range<Lba>,
        /// What is wrong with it.
        why: String,
    },
    /// A page that says which pages are the newest cannot be used: lost writes of the map from
    /// before go unnoticed.
    MapWeakened {
        /// What is wrong with it.
        why: String,
    },
    /// There is no space for the map: what it says stays in memory, is tried again each second, and
    /// keeps flushes waiting for space.
    MapFull {
        /// What the file system said.
        why: String,
    },
    /// There is space for the map again.
    MapHasRoom,
    /// The map cannot be written: nothing is written any more until the volume is opened anew.
    MapBroken {
        /// What the system said.
        why: String,
    },
}

/// Who gets findings, on whatever core they are made.
pub type OnFinding = Arc<dyn Fn(&Finding) + Send + Sync>;

/// Another copy of the data, which a mirror has.
pub trait Repair: Send + Sync {
    /// What the other copy holds of these blocks. It is used only if it fits the checksum.
    fn copy_of(self: Arc<Self>, core: &CoreHandle, range: LbaRange) -> LocalFuture<Option<Buf>>;
}

/// How a volume is opened with its map.
#[derive(Clone)]
pub struct Options {
    /// Where the map is.
    pub sidecar: Sidecar,
    /// The volume's number, which the map must have.
    pub volume: [u8; 16],
    /// Bytes of pages of checksums to keep in memory.
    pub resident_bytes: usize,
    /// Whoever stands above [names](Integrity::mark_unverified), after a crash, what was written
    /// since the last flush, stable or not: then a stable write does not wait for its checksums.
    pub covered: bool,
    /// Who gets findings.
    pub report: OnFinding,
    /// Where another copy is, if anywhere.
    pub repair: Option<Arc<dyn Repair>>,
}

impl Options {
    /// With [`RESIDENT_BYTES`] of memory, nobody to report to, and no other copy.
    #[must_use]
    pub fn new(sidecar: Sidecar, volume: [u8; 16]) -> Self {
        Self {
            sidecar,
            volume,
            resident_bytes: RESIDENT_BYTES,
            covered: false,
            report: Arc::new(|_| {}),
            repair: None,
        }
    }
}

/// What happened since the volume was opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Reads of blocks that did not fit their checksum.
    pub mismatches: u64,
    /// Blocks written anew from another copy.
    pub repaired: u64,
    /// Checksums adopted from what was there: on request, after failed writes, and on a replay.
    pub adopted: u64,
    /// Reads that were repeated, because a write was under way or because of a mismatch.
    pub second_reads: u64,
    /// Reads of the map, of one page each (8 KiB).
    pub page_reads: u64,
    /// Writes of the map, of one page each (4 KiB).
    pub page_writes: u64,
    /// Pages of the map that could not be used.
    pub pages_lost: u64,
    /// Syncs of the map.
    pub rounds: u64,
    /// Memory that the map takes now.
    pub resident_bytes: u64,
    /// Blocks that are known not to fit their checksums now; counted up to 1024.
    pub bad_blocks: u64,
}

/// A volume with checksums. Made by [`Integrity::open`].
pub struct Integrity {
    below: Arc<dyn Volume>,
    map: Arc<Map>,
    sidecar: Sidecar,
    /// What the volume was cut to, and the map could not follow: what it has beyond that is of no
    /// use, whatever the size is now.
    unfollowed: Mutex<Option<BlockCount>>,
}

impl Integrity {
    /// The journal's replay is over: from now on, a write of a part of a block that does not fit
    /// its checksum is refused. Until then, which only a volume that was not closed cleanly begins
    /// with, the checksum is adopted.
    pub fn replayed(&self) {
        self.map.state.replaying.store(false, Ordering::Release);
    }

    /// It was not closed cleanly, and [`Integrity::replayed`] was not called yet.
    #[must_use]
    pub fn is_replaying(&self) -> bool {
        self.map.state.replaying.load(Ordering::Acquire)
    }

    /// Bytes that one checksum covers.
    #[must_use]
    pub fn covered_bytes(&self) -> u32 {
        self.map.bytes_per_checksum()
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.map.counts()
    }

    /// Blocks that are known not to fit their checksums now, in order; of very many not all.
    #[must_use]
    pub fn bad(&self) -> Vec<LbaRange> {
        self.map.bad()
    }

    /// Blocks that have no checksum: nobody can say whether they are what was written. After a
    /// crash about so many, until [`IntegrityLane::cover`] has counted them.
    #[must_use]
    pub fn without_checksum(&self) -> BlockCount {
        let shape = self.shape();
        let blocks = self.map.without_checksum() * self.map.per_checksum;
        BlockCount(blocks.min(shape.block_count.0))
    }

    /// A lane with everything that the layer can do.
    ///
    /// # Errors
    /// What the operator must mend.
    pub async fn lane(self: &Arc<Self>, core: &CoreHandle) -> Result<Rc<IntegrityLane>, OpenError> {
        let (below_shape, shape) = (self.below.shape(), self.shape());
        let below = Arc::clone(&self.below).open(core).await?;
        let file = open::map_file(core, &self.sidecar).await?;
        let map = Arc::clone(&self.map);
        Ok(Rc::new(IntegrityLane::new(
            core,
            below,
            file,
            map,
            [below_shape, shape],
        )))
    }
}

/// The facts above, given those below and how many logical blocks a checksum covers.
fn shape_over(below: Shape, per_checksum: u64) -> Shape {
    let mut shape = below;
    let (limits, caps) = (&mut shape.limits, &mut shape.caps);
    if caps.compare_and_write != Support::Absent {
        caps.compare_and_write = Support::Absent;
        limits.compare_and_write_blocks_max = BlockCount(0);
    }
    // Discards are done as zeroes: what they leave is then known.
    if caps.write_zeroes == Support::Absent {
        caps.discard = Support::Absent;
        caps.anchor = Support::Absent;
        limits.discard_blocks_max = BlockCount(0);
    }
    if caps.discard != Support::Absent {
        limits.discard_granularity = limits.discard_granularity.max(BlockCount(per_checksum));
    }
    shape
}

impl Volume for Integrity {
    fn shape(&self) -> Shape {
        shape_over(self.below.shape(), self.map.per_checksum)
    }

    fn open(self: Arc<Self>, core: &CoreHandle) -> LocalFuture<Result<Rc<dyn Lane>, OpenError>> {
        let core = Rc::clone(core);
        Box::pin(async move { Ok(self.lane(&core).await? as Rc<dyn Lane>) })
    }

    fn events(self: Arc<Self>, core: &CoreHandle) -> Rc<dyn VolumeEvents> {
        Arc::clone(&self.below).events(core)
    }
}
