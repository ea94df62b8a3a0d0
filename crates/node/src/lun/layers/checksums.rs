//! The checksums of a LUN in a pool: the map in a sidecar, and what was found by them.
//!
//! **Contract.** A LUN has its map for as long as it has its file. Blocks that a crash may have
//! left between old and new are named by the pool's journal, before anything is read.

use crate::backend::pools::Ground;
use crate::lun::sidecar;
use ::sidecar::{Sidecar, SidecarKind};
use env::{Access, CoreHandle, Create, FileOp, OpenHow, durable};
use layers::integrity::{self, Blank, Finding, Integrity, IntegrityLane, MapSpec, Options};
use manifest::code::Code;
use manifest::objects::{ChecksumFacts, Lun};
use manifest::problem::Problem;
use manifest::scrub::{BadBlocks, Damage};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{BlockCount, BlockSize, Lba, LbaRange};
use volume::{OpenError, OpenErrorKind, UnverifiedBlocks, Volume};

/// Places of damage that are logged one by one; after that, each time there are twice as
/// many.
const REPORTED_MAX: u64 = 32;

/// Places that `lun show` names.
const PLACES_MAX: usize = 16;

/// What the map knows the LUN by.
fn number(lun: &Lun) -> [u8; 16] {
    let number = u128::from_str_radix(&lun.naa, 16);
    number
        .expect("stored LUNs have 32 hexadecimal digits")
        .to_be_bytes()
}

fn no_pool() -> OpenError {
    OpenError {
        kind: OpenErrorKind::Refused,
        cause: "checksums need a file in a pool, and the LUN has none".to_owned(),
        next_step: "bring the pool back into node.toml and restart".to_owned(),
    }
}

/// Makes the map of a LUN whose file was just made, and reads as zeroes.
pub(super) async fn create(
    core: &CoreHandle,
    ground: Ground<'_>,
    lun: &Lun,
) -> Result<(), Problem> {
    make(core, ground, lun, Blank::Zeroes).await
}

/// Makes the map of a LUN that has contents, in place of any that it had.
pub(super) async fn create_later(
    core: &CoreHandle,
    ground: Ground<'_>,
    lun: &Lun,
) -> Result<(), Problem> {
    let retired = retire(core, ground, lun).await;
    retired.map_err(|error| crate::lun::failed::backing_failed(&error))?;
    make(core, ground, lun, Blank::Anything).await
}

/// Removes the map of a LUN that has no checksums, or is to have none, where there is one: it is
/// never trusted again.
pub(super) async fn retire(
    core: &CoreHandle,
    ground: Ground<'_>,
    lun: &Lun,
) -> Result<(), OpenError> {
    sidecar::give_up(core, ground, lun, SidecarKind::Checksums).await
}

/// The map that a LUN of this size has; `None` for one that is in no pool. `is_new`: it is to be
/// made.
async fn map_of(ground: Ground<'_>, lun: &Lun, blank: Blank, is_new: bool) -> Option<MapSpec> {
    let bytes = map_bytes(lun);
    let sidecar = sidecar::stand(ground, (lun, SidecarKind::Checksums), bytes, is_new).await?;
    Some(spec(lun, sidecar, blank))
}

fn spec(lun: &Lun, sidecar: Sidecar, blank: Blank) -> MapSpec {
    let block_size = BlockSize::from_bytes(u64::from(lun.block_size));
    let block_size = block_size.expect("stored LUNs have 512 or 4096");
    MapSpec {
        sidecar,
        volume: number(lun),
        block_size,
        physical_block_bytes: lun.physical_block_size,
        block_count: BlockCount(lun.size.bytes() / u64::from(block_size.bytes())),
        blank,
    }
}

/// Bytes that the map of a LUN may come to take.
fn map_bytes(lun: &Lun) -> u64 {
    spec(lun, Sidecar::from(""), Blank::Zeroes).bytes()
}

/// Has room for a LUN that becomes as large as this one says.
pub(super) async fn grow(core: &CoreHandle, ground: Ground<'_>, lun: &Lun) -> Result<(), Problem> {
    let bytes = map_bytes(lun);
    let grown = sidecar::grow(ground, (lun, SidecarKind::Checksums), bytes).await;
    grown.map_err(|error| crate::lun::failed::of_pool(&error))?;
    if !lun.storage.is_checked() {
        return Ok(());
    }
    let place = sidecar::stand(ground, (lun, SidecarKind::Checksums), bytes, false).await;
    let Some(Sidecar::File(path)) = place else {
        return Ok(());
    };
    let reserved = reserve(core, lun, &path).await;
    reserved.map_err(|error| crate::lun::failed::failed(&error, &path, "make room for"))
}

/// A thick LUN has the space of its checksums from the beginning, too: writing it never wants for
/// any.
async fn reserve(core: &CoreHandle, lun: &Lun, path: &Path) -> io::Result<()> {
    if lun.thin {
        return Ok(());
    }
    let how = OpenHow {
        access: Access::ReadWrite,
        create: Create::No,
        direct: false,
        lock: false,
    };
    let file = core.files().open(path, how).await?;
    let (offset, len) = (0, map_bytes(lun));
    match file.submit(FileOp::Allocate { offset, len }).await {
        // A file system that cannot gives no promise for the LUN's blocks either.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        Err(error) => Err(error),
        Ok(_) => file.submit(FileOp::Sync).await.map(|_| ()),
    }
}

async fn make(
    core: &CoreHandle,
    ground: Ground<'_>,
    lun: &Lun,
    blank: Blank,
) -> Result<(), Problem> {
    let spec = map_of(ground, lun, blank, true).await;
    let spec = spec.ok_or_else(|| crate::lun::failed::backing_failed(&no_pool()))?;
    let path = match &spec.sidecar {
        Sidecar::File(path) => path.clone(),
        Sidecar::Part(_) => PathBuf::from(spec.sidecar.to_string()),
    };
    let made = async {
        if let Sidecar::File(path) = &spec.sidecar
            && let Some(directory) = path.parent()
        {
            durable::make_dir(&*core.files(), directory).await?;
        }
        integrity::create(core, &spec).await?;
        match &spec.sidecar {
            Sidecar::File(path) => reserve(core, lun, path).await,
            Sidecar::Part(_) => Ok(()),
        }
    };
    let made = made.await;
    if made.is_err() {
        // The first error is the one to report; one that is left is never trusted.
        drop(retire(core, ground, lun).await);
    }
    made.map_err(|error| crate::lun::failed::failed(&error, &path, "make"))
}

/// The checksums of a LUN in service.
#[derive(Clone)]
pub(super) struct Checksums {
    integrity: Arc<Integrity>,
    found: Arc<Found>,
}

impl Checksums {
    /// Puts them over the LUN's backing volume; `unverified`: what the journal could not say of
    /// them.
    ///
    /// # Errors
    /// What the operator must mend.
    pub(super) async fn open(
        core: &CoreHandle,
        ground: Ground<'_>,
        (name, lun): (&str, &Lun),
        base: Arc<dyn Volume>,
        unverified: impl FnOnce() -> UnverifiedBlocks,
    ) -> Result<Self, OpenError> {
        let map = map_of(ground, lun, Blank::Anything, false).await;
        let map = map.ok_or_else(no_pool)?;
        let found = Arc::new(Found::new(name));
        let reported = Arc::clone(&found);
        let mut options = Options::new(map.sidecar, number(lun));
        // The journal has the ranges of what goes past it until the next flush.
        options.covered = true;
        options.report = Arc::new(move |finding| reported.add(finding));
        let integrity = Integrity::open(core, base, options).await?;
        if integrity.is_replaying() {
            let unverified = unverified();
            integrity.mark_unverified(core, unverified.ranges()).await?;
            integrity.replayed();
        }
        Ok(Self { integrity, found })
    }

    /// The blocks, checked.
    pub(super) fn volume(&self) -> Arc<dyn Volume> {
        Arc::<Integrity>::clone(&self.integrity)
    }

    /// A handle on blocks and map.
    pub(super) async fn lane(&self, core: &CoreHandle) -> Result<Rc<IntegrityLane>, OpenError> {
        self.integrity.lane(core).await
    }

    /// The LUN has another name.
    pub(super) fn rename(&self, name: &str) {
        self.found.lock().name = name.into();
    }

    /// Whether so many blocks can have checksums.
    pub(super) fn reaches(&self, blocks: BlockCount) -> Result<(), OpenError> {
        self.integrity.reaches(blocks)
    }

    /// The backing volume has more or fewer blocks now.
    pub(super) async fn reshape(&self, core: &CoreHandle) -> Result<(), OpenError> {
        self.integrity.reshape(core).await
    }

    /// Writes all of the map, and that it is all. Nothing is written through it any more.
    pub(super) async fn close(&self, core: &CoreHandle) {
        if let Err(error) = self.integrity.close(core).await {
            let lun = self.found.lock().name.clone();
            tracing::warn!(
                lun = &*lun,
                "its checksums are not closed, and opened as after a crash: {error}"
            );
        }
    }

    /// Nothing is written through them any more, and they are not used again.
    pub(super) fn give_up(&self) {
        self.integrity.give_up();
    }

    /// For `lun show`: what was found bad, what was adopted, and how far a scrub is.
    pub(super) fn facts(&self) -> ChecksumFacts {
        let (counts, bad) = (self.integrity.counts(), self.integrity.bad());
        let (broken, full) = {
            let found = self.found.lock();
            (found.broken.clone(), found.full.clone())
        };
        let place = |range: &LbaRange| BadBlocks {
            lba: range.start().0,
            blocks: range.len().0,
            damage: Damage::Mismatch,
        };
        ChecksumFacts {
            block_bytes: self.integrity.covered_bytes(),
            bad_blocks: bad.iter().map(|range| range.len().0).sum(),
            unchecked_blocks: self.integrity.without_checksum().0,
            places: bad.iter().take(PLACES_MAX).map(place).collect(),
            mismatches: counts.mismatches,
            repaired: counts.repaired,
            adopted: counts.adopted,
            pages_read: counts.page_reads,
            pages_written: counts.page_writes,
            pages_lost: counts.pages_lost,
            map_bytes: counts.resident_bytes,
            broken,
            full,
        }
    }
}

/// What was found, as the log and `status` report it.
struct Found(Mutex<Findings>);

struct Findings {
    /// The LUN's name.
    name: Arc<str>,
    /// Places with damage so far: neighbours that are found one after the other are one.
    places: u64,
    /// Where the last of them ends.
    end: Option<Lba>,
    /// Why the map cannot be written.
    broken: Option<String>,
    /// Why there is no space for the map now.
    full: Option<String>,
}

impl Found {
    fn new(name: &str) -> Self {
        Self(Mutex::new(Findings {
            name: name.into(),
            places: 0,
            end: None,
            broken: None,
            full: None,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Findings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, finding: &Finding) {
        let mut known = self.lock();
        let lun = Arc::clone(&known.name);
        let lun = &*lun;
        match finding {
            Finding::Mismatch(range) => {
                let first = range.start().0;
                if known.is_news(range) {
                    let places = known.places;
                    tracing::error!(
                        lun,
                        code = %Code::BlocksDamaged,
                        first,
                        places,
                        "blocks are not what was written, from {first} on: reads of them fail until they are written again"
                    );
                }
            }
            Finding::Repaired(range) => {
                let (first, blocks) = (range.start().0, range.len().0);
                tracing::warn!(
                    lun,
                    "{blocks} blocks from {first} on were not what was written, and are again, from another copy"
                );
            }
            Finding::Rewritten(range) => {
                let (first, blocks) = (range.start().0, range.len().0);
                tracing::info!(
                    lun,
                    first,
                    blocks,
                    "{blocks} blocks from {first} on, which were not what was written, were written again and can be read"
                );
            }
            Finding::MapDamaged { blocks, why } => {
                let (first, end) = (blocks.start.0, blocks.end.0);
                tracing::error!(
                    lun,
                    code = %Code::BlocksDamaged,
                    "the checksums of blocks {first} to {end}: {why}"
                );
            }
            Finding::MapWeakened { why } => {
                tracing::warn!(
                    lun,
                    "which of its checksums are the newest is not known for certain: {why}"
                );
            }
            Finding::MapFull { why } => known.has_no_room(Some(why.clone())),
            Finding::MapHasRoom => known.has_no_room(None),
            Finding::MapBroken { why } => {
                tracing::error!(
                    lun,
                    code = %Code::ChecksumsUnwritable,
                    "its checksums cannot be written, and so nothing of it is destaged, until the daemon is restarted: {why}"
                );
                known.broken = Some(why.clone());
            }
        }
    }
}

impl Findings {
    /// There is no space for the map, for this reason; or there is again.
    fn has_no_room(&mut self, why: Option<String>) {
        let lun = &*self.name;
        if let Some(why) = &why {
            tracing::warn!(
                lun,
                code = %Code::PoolFull,
                "there is no space for its checksums ({why}): they stay in memory, nothing is destaged for good, and both go on when there is room"
            );
        } else {
            tracing::info!(lun, "there is space for its checksums again");
        }
        self.full = why;
    }

    /// Counts a block; `true` where it is to be logged.
    fn is_news(&mut self, range: &LbaRange) -> bool {
        let goes_on = self.end == Some(range.start());
        self.end = Some(range.end());
        if goes_on {
            return false;
        }
        self.places += 1;
        self.places <= REPORTED_MAX || self.places.is_power_of_two()
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn each_place_of_damage_is_reported_once_and_very_many_are_no_flood() {
        let found = Found::new("a");
        let mut known = found.lock();
        let mut news = |first: u64| {
            let range = LbaRange::new(Lba(first), BlockCount(8)).unwrap();
            known.is_news(&range)
        };
        assert!(news(800));
        assert!(!news(808) && !news(816), "its neighbours belong to it");
        let reported = (0..10_000).filter(|place| news(place * 100)).count();
        assert!((35..50).contains(&reported), "{reported}");
    }
}
