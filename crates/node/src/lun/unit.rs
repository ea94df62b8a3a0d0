//! One LUN in service: leaf, layers, logical unit.
//!
//! ```text
//!   LogicalUnit -> Checked -> Meter -> Limit -> ReadCache -> WriteThrough or WriteBack
//!     -> Integrity, where it has checksums -> StableWrite -> Emulate -> Clip -> leaf
//! ```
//!
//! In a pool with a journal all modes stand over the journal, so that a change of mode leaves
//! nothing behind.
//!
//! The clip gives the LUN its stored size where its file or device is larger: a device never fits
//! exactly, a file is longer for a moment while the LUN grows, or for good where objects of an
//! older copy make the LUN smaller.

mod size;

use crate::data_plane::backing_failed;
use crate::in_time::in_time;
use crate::journal::opening::PoolJournal;
use crate::lun::checksums::{self, Checksums};
use crate::lun::failed::failed;
use crate::lun::layers::Layers;
use crate::lun::sidecar;
use crate::pool::members::{MemberLeaf, MemberPool, MemberPools, lun_id, unknown};
use ::members::BesideLun;
use ::sidecar::Sidecar;
use backends::{DiskVolume, FileSpec, MemoryVolume, Provisioning};
use env::{CoreHandle, CoreId, durable};
use layers::integrity::IntegrityLane;
use layers::{Emulate, Meter, StableWrite};
use logical_unit::{DirectoryStore, Ending, Identity, LogicalUnit, UnitConfig, UnitId, UnitStore};
use manifest::code::Code;
use manifest::config::{Config, Place};
use manifest::facts::{ChecksumFacts, LimitFacts, ReadCacheFacts};
use manifest::objects::{Backing, Lun, Storage};
use manifest::problem::Problem;
use manifest::size::Size;
use scsi::unit_attention::UnitAttention;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;
use units::{BlockCount, BlockSize, ByteCount, Now};
use volume::{
    Checked, Fences, Io, Lane, Op, OpenError, Origin, Shape, UnverifiedBlocks, Volume, Wrap, over,
};
use write_back::Journal;

/// How long what is under way at home may take to end, for checksums to come between or to go.
const EXCHANGE_TIME_MAX: Duration = Duration::from_secs(5);

/// How long a file or device may take to be opened, and to be made stable after that: all other
/// changes wait for it. A disk that has to start up answers in time.
const OPEN_TIME_MAX: Duration = Duration::from_secs(30);

/// What LUNs are made on.
pub(crate) type Ground<'a> = (&'a Config, &'a MemberPools);

/// The file of a LUN in a pool that is a directory.
pub(crate) fn file_of(config: &Config, lun: &Lun) -> Option<PathBuf> {
    let Backing::Pool(pool) = &lun.backing else {
        return None;
    };
    let pool = config.pools.iter().find(|known| known.name == *pool)?;
    match &pool.place {
        Place::Path(path) => Some(path.join(format!("{}.lun", lun.naa))),
        Place::Members { .. } => None,
    }
}

/// What is opened for a LUN: the file or device of its blocks, and what may stand beside it.
pub(crate) fn files_of(config: &Config, lun: &Lun) -> (Option<PathBuf>, Vec<PathBuf>) {
    if let Backing::Block(path) = &lun.backing {
        return (Some(path.clone()), Vec::new());
    }
    let beside = [sidecar::SUMS, sidecar::CHANGES].map(|what| sidecar::beside(config, lun, what));
    (file_of(config, lun), beside.into_iter().flatten().collect())
}

fn store(config: &Config) -> DirectoryStore {
    DirectoryStore::new(config.state_dir.join("units"))
}

/// What holds the blocks.
#[derive(Clone)]
pub(crate) enum Leaf {
    Memory(Arc<MemoryVolume>),
    Disk(Arc<DiskVolume>),
    Members(Rc<MemberLeaf>),
}

impl Leaf {
    fn volume(&self) -> Arc<dyn Volume> {
        match self {
            Self::Memory(volume) => Arc::<MemoryVolume>::clone(volume),
            Self::Disk(volume) => Arc::<DiskVolume>::clone(volume),
            Self::Members(leaf) => leaf.volume(),
        }
    }
}

/// Memory that outlives its LUN's service, with the fences that it looks at.
pub(crate) struct Kept {
    leaf: Leaf,
    fences: Fences,
}

/// Shows so many blocks of the volume below, from its start.
struct Clip(Arc<AtomicU64>);

impl Wrap for Clip {
    fn shape(&self, below: Shape) -> Shape {
        let blocks = BlockCount(self.0.load(Ordering::Acquire));
        Shape {
            block_count: below.block_count.min(blocks),
            ..below
        }
    }

    fn lane(&self, _: &CoreHandle, below: Rc<dyn Lane>, _: Shape) -> Rc<dyn Lane> {
        below
    }
}

/// What stands under a logical unit.
struct Stack {
    leaf: Option<Leaf>,
    /// Its blocks at home, below its checksums.
    bare: Option<Arc<dyn Volume>>,
    layers: Layers,
    volume: Result<Arc<dyn Volume>, OpenError>,
}

impl Stack {
    /// Opens the leaf and puts the layers over it.
    async fn new(
        core: &CoreHandle,
        ground: Ground<'_>,
        (name, lun): (&str, &Lun),
        kept: Option<Kept>,
        (journal, (meter, fences, blocks)): (&PoolJournal, &(Meter, Fences, Arc<AtomicU64>)),
    ) -> Self {
        let mut layers = Layers::new(core, lun).await;
        let leaf = match (kept, journal) {
            (Some(kept), _) => Ok(kept.leaf),
            (None, PoolJournal::Missing(error)) => Err(error.clone()),
            (None, PoolJournal::None | PoolJournal::Open(_)) => {
                open_leaf(core, ground, lun, fences.clone()).await
            }
        };
        let mut bare = None;
        let volume = match &leaf {
            Ok(leaf) => {
                let clipped = over(Clip(Arc::clone(blocks)), leaf.volume());
                let stable = over(StableWrite, over(Emulate, clipped));
                bare = Some(Arc::clone(&stable));
                let home = layers.check(core, ground, (name, lun), stable, journal);
                let home = home.await;
                let history = history(core, ground, lun, journal).await;
                home.map(|home| {
                    if let PoolJournal::Open(journal) = journal {
                        layers.stand_on(journal, lun, (&home, history), fences);
                    }
                    over(Checked, over(*meter, layers.over(home)))
                })
            }
            Err(error) => Err(error.clone()),
        };
        Self {
            leaf: leaf.ok(),
            bare,
            layers,
            volume,
        }
    }
}

impl Stack {
    /// Makes stable what hosts wrote before it was opened: nobody else knows any more that it has
    /// to be flushed.
    async fn settle(&self, core: &CoreHandle) -> Result<(), OpenError> {
        let Some(leaf) = &self.leaf else {
            return Ok(());
        };
        let lane = leaf.volume().open(core).await?;
        let flush = lane.submit(Io::new(Op::Flush, Origin::default()));
        let why = match in_time(core, OPEN_TIME_MAX, flush).await {
            Some(Ok(_)) => return Ok(()),
            Some(Err(error)) => format!("{error:?}"),
            None => format!(
                "its disk has not answered for {} s",
                OPEN_TIME_MAX.as_secs()
            ),
        };
        Err(OpenError {
            cause: format!("its blocks could not be made stable: {why}"),
            next_step: "look at its disk and the kernel's log".to_owned(),
        })
    }
}

/// Bytes that the history of a LUN may come to take in this journal.
fn history_bytes(lun: &Lun, journal: &Journal) -> u64 {
    write_back::history_bytes(journal.rings(), lun.size.bytes())
}

/// Where the history of a LUN stands; `None` where it has none.
async fn history(
    core: &CoreHandle,
    ground: Ground<'_>,
    lun: &Lun,
    journal: &PoolJournal,
) -> Option<Sidecar> {
    let PoolJournal::Open(journal) = journal else {
        return None;
    };
    let bytes = history_bytes(lun, journal);
    sidecar::stand(core, ground, (lun, BesideLun::Changes), bytes, true).await
}

/// What stands beside a LUN has room for one as large as this says.
pub(crate) async fn grow_beside(
    core: &CoreHandle,
    ground: Ground<'_>,
    lun: &Lun,
    journal: &PoolJournal,
) -> Result<(), Problem> {
    checksums::grow(core, ground, lun).await?;
    let PoolJournal::Open(journal) = journal else {
        return Ok(());
    };
    let bytes = history_bytes(lun, journal);
    let grown = sidecar::grow(core, ground, (lun, BesideLun::Changes), bytes).await;
    grown.map_err(|error| of_members(&error))
}

/// As `lun show` says it.
pub(crate) fn shown(error: &OpenError) -> String {
    format!("{} ({})", error.cause, error.next_step)
}

/// A LUN's blocks where they are at home.
pub(crate) struct Home {
    pub(crate) shape: Shape,
    pub(crate) lane: Rc<dyn Lane>,
    /// The same, where it has checksums.
    pub(crate) map: Option<Rc<IntegrityLane>>,
}

/// A LUN in service.
pub(crate) struct Unit {
    pub(crate) id: UnitId,
    pub(crate) meter: Meter,
    pub(crate) block_bytes: u64,
    unit: Arc<LogicalUnit>,
    stack: Stack,
    blocks: Arc<AtomicU64>,
    fences: Fences,
    in_pool: bool,
    offline: Option<String>,
}

impl Unit {
    /// Reads again what is stored of its state.
    ///
    /// # Errors
    /// What cannot be used.
    pub(crate) async fn check_stored(&self, core: &CoreHandle) -> Result<(), OpenError> {
        self.unit.check_stored(core).await
    }

    /// Opens a LUN and brings it up on every core; where something fails it is offline and says
    /// why.
    pub(crate) async fn open(
        core: &CoreHandle,
        ground: Ground<'_>,
        (number, name, is_new): (u64, &str, bool),
        lun: &Lun,
        kept: Option<Kept>,
        journal: PoolJournal,
    ) -> Self {
        let (id, meter) = (UnitId(number), Meter::new());
        let fences = kept
            .as_ref()
            .map_or_else(LogicalUnit::fences_for, |kept| kept.fences.clone());
        let blocks = Arc::new(AtomicU64::new(blocks(lun.size, block_size(lun))));
        let below = (meter, fences.clone(), Arc::clone(&blocks));
        let stack = Stack::new(core, ground, (name, lun), kept, (&journal, &below)).await;
        let meter = below.0;
        let unit = LogicalUnit::new(UnitConfig {
            id,
            // Spread over the cores, so that one busy unit's changes do not wait for another's.
            home: CoreId(
                u16::try_from(number % u64::from(core.core_count())).expect("below a u16"),
            ),
            identity: identity(name, lun),
            fences: fences.clone(),
            store: Arc::new(store(ground.0)),
            is_new,
        });
        unit.set_bytes_in_flight_max(lun.bytes_in_flight_max.map(Size::bytes));
        let started = unit.start(core, stack.volume.clone()).await;
        let fixed = lun.storage.task_aborted_status.fixed();
        unit.fix_task_aborted_status(core, fixed).await;
        Self {
            id,
            meter,
            block_bytes: u64::from(lun.block_size),
            unit,
            stack,
            blocks,
            fences,
            in_pool: matches!(lun.backing, Backing::Pool(_)),
            offline: started.err().map(|error| shown(&error)),
        }
    }

    /// The same unit without a volume: it is offline and says why, and hosts keep their sessions
    /// and reservations.
    pub(crate) async fn suspend(&self, core: &CoreHandle, lun: &Lun, why: &OpenError) -> Self {
        self.unit.suspend(core, why.clone()).await;
        let mut layers = Layers::new(core, lun).await;
        // Until what the journal has was destaged as far as it can be.
        layers.keep_checksums(&self.stack.layers);
        let stack = Stack {
            leaf: self.keep_memory().map(|kept| kept.leaf),
            bare: None,
            layers,
            volume: Err(why.clone()),
        };
        self.over(stack, Some(why))
    }

    /// As [`Unit::suspend`], and the journal does not destage what it has of it until it is
    /// back: where it lay is gone.
    pub(crate) async fn suspend_without_home(
        &self,
        core: &CoreHandle,
        lun: &Lun,
        why: &OpenError,
    ) -> Self {
        if let Some(journaled) = self.stack.layers.journaled() {
            journaled.leave(core).await;
        }
        self.suspend(core, lun, why).await
    }

    /// The same unit over another stack.
    fn over(&self, stack: Stack, offline: Option<&OpenError>) -> Self {
        Self {
            id: self.id,
            meter: self.meter,
            block_bytes: self.block_bytes,
            unit: Arc::clone(&self.unit),
            stack,
            blocks: Arc::clone(&self.blocks),
            fences: self.fences.clone(),
            in_pool: self.in_pool,
            offline: offline.map(shown),
        }
    }

    /// The same unit, its storage opened anew over this journal; where that fails it is offline and
    /// says why.
    pub(crate) async fn renew(
        &self,
        core: &CoreHandle,
        ground: Ground<'_>,
        lun: &Lun,
        journal: PoolJournal,
    ) -> Self {
        // It may have got another size meanwhile.
        let size = blocks(lun.size, block_size(lun));
        self.blocks.store(size, Ordering::Release);
        let below = (self.meter, self.fences.clone(), Arc::clone(&self.blocks));
        self.close_checksums(core).await;
        let named = (&*self.name(), lun);
        let kept = self.keep_memory();
        let stack = Stack::new(core, ground, named, kept, (&journal, &below)).await;
        let resumed = match &stack.volume {
            Ok(volume) => match stack.settle(core).await {
                Ok(()) => self.unit.resume(core, Arc::clone(volume)).await,
                Err(error) => {
                    self.unit.suspend(core, error.clone()).await;
                    Err(error)
                }
            },
            Err(error) => {
                self.unit.suspend(core, error.clone()).await;
                Err(error.clone())
            }
        };
        self.over(stack, resumed.err().as_ref())
    }

    /// What hosts write to, below the logical unit.
    #[cfg(test)]
    pub(crate) fn volume(&self) -> Result<Arc<dyn Volume>, OpenError> {
        self.stack.volume.clone()
    }

    /// Why it does not serve, where it does not.
    pub(crate) fn offline(&self) -> Option<String> {
        self.offline.clone()
    }

    /// Why it does not serve any more, where its storage could not be opened for a change and
    /// nobody has noted that yet.
    pub(crate) fn went_offline(&self, core: &CoreHandle) -> Option<OpenError> {
        self.unit.offline(core).filter(|_| self.offline.is_none())
    }

    /// Why what is stored of its state still cannot be used, where that keeps it offline.
    pub(crate) async fn still_unreadable(&self, core: &CoreHandle) -> Option<OpenError> {
        self.unit.unreadable()?;
        self.unit.check_stored(core).await.err()
    }

    /// Memory that a LUN keeps while it is offline, or removed and not purged.
    pub(crate) fn keep_memory(&self) -> Option<Kept> {
        let leaf = self.stack.leaf.as_ref()?;
        matches!(leaf, Leaf::Memory(_)).then(|| Kept {
            leaf: leaf.clone(),
            fences: self.fences.clone(),
        })
    }

    /// It is a file in a pool, and open.
    pub(crate) fn is_in_pool(&self) -> bool {
        self.in_pool && matches!(self.stack.leaf, Some(Leaf::Disk(_)))
    }

    /// Its name, as logs say it.
    pub(crate) fn name(&self) -> Arc<str> {
        self.unit.name()
    }

    /// Its name, for logs.
    pub(crate) fn rename(&self, name: &str) {
        if *self.name() != *name {
            self.unit.rename(name);
            if let Some(checksums) = self.stack.layers.checksums() {
                checksums.rename(name);
            }
        }
    }

    /// Sets or lifts the most bytes that its commands may hold.
    pub(crate) fn limit(&self, most: Option<Size>) {
        self.unit.set_bytes_in_flight_max(most.map(Size::bytes));
    }

    /// Brings storage fields into force that differ from those that are.
    ///
    /// # Errors
    /// What could not be done.
    pub(crate) async fn adopt(&self, core: &CoreHandle, storage: &Storage) -> Result<(), String> {
        self.stack.layers.set_limit(core, storage).await;
        let fixed = storage.task_aborted_status.fixed();
        self.unit.fix_task_aborted_status(core, fixed).await;
        if !self.stack.layers.set(storage) || self.offline.is_some() {
            return Ok(());
        }
        let adopted = self.unit.adopt_cache(core).await;
        adopted.map_err(|error| error.to_string())
    }

    /// Destages what the journal has of it, as far as that can be done, and has the journal
    /// forget where it is.
    pub(crate) async fn leave_journal(&self, core: &CoreHandle) {
        if let Some(journaled) = self.stack.layers.journaled() {
            journaled.release(core).await;
        }
    }

    /// Writes all of its checksums, and that it is all: nobody uses it any more.
    pub(crate) async fn close_checksums(&self, core: &CoreHandle) {
        if let Some(checksums) = self.stack.layers.checksums() {
            checksums.close(core).await;
        }
    }

    /// How its checksums are, where it has some.
    pub(crate) fn checksums(&self) -> Option<ChecksumFacts> {
        let checksums = self.stack.layers.checksums();
        checksums.as_ref().map(Checksums::facts)
    }

    /// Has its blocks checked from now on, by the map that was made for it, while hosts work.
    ///
    /// # Errors
    /// Why that cannot be done now; nothing has changed then.
    pub(crate) async fn check(
        &self,
        core: &CoreHandle,
        ground: Ground<'_>,
        lun: &Lun,
    ) -> Result<(), OpenError> {
        let (Some(bare), Some(journaled)) = (&self.stack.bare, self.stack.layers.journaled())
        else {
            return Err(not_journaled());
        };
        let name = self.name();
        let named = (&*name, lun);
        // It is new: nothing of it is in doubt.
        let opened = Checksums::open(
            core,
            ground,
            named,
            Arc::clone(bare),
            UnverifiedBlocks::default,
        );
        let checksums = opened.await?;
        let until = core.now().after(EXCHANGE_TIME_MAX);
        let exchanged = journaled.exchange(core, checksums.volume(), true, until);
        if let Err(error) = exchanged.await {
            checksums.give_up();
            return Err(error);
        }
        self.stack.layers.set_checksums(Some(checksums));
        self.unit.adopt_cache(core).await
    }

    /// Has its blocks no longer checked, while hosts work. Its map is worth nothing from then on.
    ///
    /// # Errors
    /// Why that cannot be done now; nothing has changed then.
    pub(crate) async fn stop_checking(&self, core: &CoreHandle) -> Result<(), OpenError> {
        let Some(checksums) = self.stack.layers.checksums() else {
            return Ok(());
        };
        let (Some(bare), Some(journaled)) = (&self.stack.bare, self.stack.layers.journaled())
        else {
            return Err(not_journaled());
        };
        let until = core.now().after(EXCHANGE_TIME_MAX);
        let exchanged = journaled.exchange(core, Arc::clone(bare), false, until);
        exchanged.await?;
        self.stack.layers.set_checksums(None);
        let adopted = self.unit.adopt_cache(core).await;
        // Only now does nobody use them any more.
        checksums.give_up();
        adopted
    }

    /// What its limit did, where it has one.
    pub(crate) fn limited(&self) -> Option<LimitFacts> {
        self.stack.layers.limited()
    }

    /// What its shares, and those of others, did.
    pub(crate) fn shared(&self) -> Option<LimitFacts> {
        self.stack.layers.shared()
    }

    /// What its read cache did, where it has one.
    pub(crate) fn cached(&self) -> Option<ReadCacheFacts> {
        self.stack.layers.cached()
    }

    /// What its administrator should know.
    pub(crate) fn notices(&self) -> Vec<String> {
        let sector = match &self.stack.leaf {
            Some(Leaf::Disk(volume)) => volume.sector_bytes(),
            Some(Leaf::Members(leaf)) => leaf.sector_bytes(),
            Some(Leaf::Memory(_)) | None => return Vec::new(),
        };
        let block = self.block_bytes;
        if block <= u64::from(sector) {
            return Vec::new();
        }
        vec![format!(
            "its blocks have {block} bytes and the sectors below {sector}, as far as is known: a power cut while \
             a block is written may mix old and new in it; use block_size = 512 with physical_block_size = \
             4096, or a disk with sectors of 4096 bytes"
        )]
    }

    /// Its blocks where they are at home, below everything that keeps some of them elsewhere: what
    /// a scrub reads. `None` where it has none.
    ///
    /// # Errors
    /// They cannot be opened.
    pub(crate) async fn home(&self, core: &CoreHandle) -> Result<Option<Home>, OpenError> {
        let Some(leaf) = &self.stack.leaf else {
            return Ok(None);
        };
        if let Some(checksums) = self.stack.layers.checksums() {
            let lane = checksums.lane(core).await?;
            return Ok(Some(Home {
                shape: checksums.volume().shape(),
                lane: Rc::<IntegrityLane>::clone(&lane),
                map: Some(lane),
            }));
        }
        let home = over(Clip(Arc::clone(&self.blocks)), leaf.volume());
        let (shape, lane) = (home.shape(), home.open(core).await?);
        let map = None;
        Ok(Some(Home { shape, lane, map }))
    }

    /// Bytes that the leaf takes, where it knows without asking a disk.
    pub(crate) fn allocated(&self) -> Option<u64> {
        match self.stack.leaf.as_ref()? {
            Leaf::Memory(volume) => Some(volume.allocated().0),
            Leaf::Disk(_) => None,
            Leaf::Members(leaf) => leaf.allocated(),
        }
    }

    /// A sync failed once: nothing is written any more until the LUN is opened anew.
    pub(crate) fn is_broken(&self) -> bool {
        match &self.stack.leaf {
            Some(Leaf::Disk(volume)) => volume.is_broken(),
            Some(Leaf::Members(leaf)) => leaf.is_broken(),
            Some(Leaf::Memory(_)) | None => false,
        }
    }

    /// Its files and devices, where syncs failed because there was no space in them, and no sync
    /// for another reason.
    pub(crate) fn lacked_space(&self) -> Option<Vec<PathBuf>> {
        let parts = match self.stack.leaf.as_ref()? {
            Leaf::Disk(volume) => std::slice::from_ref(volume),
            Leaf::Members(leaf) => leaf.parts(),
            Leaf::Memory(_) => &[],
        };
        let broken = || parts.iter().filter(|part| part.is_broken());
        let is_it = self.is_broken() && broken().all(|part| part.lacked_space());
        is_it.then(|| broken().map(|part| part.path().to_owned()).collect())
    }

    /// Hosts are told as after a start: what they wrote and did not flush may be lost.
    pub(crate) async fn tell_like_a_start(&self, core: &CoreHandle) {
        self.unit.tell_all(core, UnitAttention::PowerOn).await;
    }

    /// How often commands ended with something else than GOOD.
    pub(crate) async fn endings(&self, core: &CoreHandle) -> BTreeMap<Ending, u64> {
        self.unit.endings(core).await
    }

    /// Makes all that was acknowledged stable; gives up at `until`.
    pub(crate) async fn flush(&self, core: &CoreHandle, until: Now) {
        let Ok(volume) = &self.stack.volume else {
            return;
        };
        let Ok(lane) = Arc::clone(volume).open(core).await else {
            return;
        };
        let mut flush = Box::pin(lane.submit(Io::new(Op::Flush, Origin::default())));
        let mut timeout = core.sleep_until(until);
        let flushed = poll_fn(|cx| {
            if let Poll::Ready(done) = flush.as_mut().poll(cx) {
                return Poll::Ready(Some(done));
            }
            timeout.as_mut().poll(cx).map(|()| None)
        });
        match flushed.await {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::error!(lun = &*self.unit.name(), ?error, "the last flush failed");
            }
            None => tracing::error!(
                lun = &*self.unit.name(),
                "the last flush did not end in time"
            ),
        }
    }

    /// Takes it down on every core.
    pub(crate) async fn stop(&self, core: &CoreHandle) {
        self.unit.stop(core).await;
    }
}

fn not_journaled() -> OpenError {
    OpenError {
        cause: "checksums need the pool's journal, and it is not in use for this LUN".to_owned(),
        next_step: "causeway pool show tells how the journal is".to_owned(),
    }
}

fn block_size(lun: &Lun) -> BlockSize {
    BlockSize::from_bytes(u64::from(lun.block_size)).expect("stored LUNs have 512 or 4096")
}

fn blocks(size: Size, block_size: BlockSize) -> u64 {
    size.bytes() / u64::from(block_size.bytes())
}

fn exponent(lun: &Lun) -> u8 {
    let ratio = (lun.physical_block_size / lun.block_size).max(1);
    u8::try_from(ratio.ilog2()).expect("at most 3")
}

fn identity(name: &str, lun: &Lun) -> Identity {
    let number =
        u128::from_str_radix(&lun.naa, 16).expect("stored LUNs have 32 hexadecimal digits");
    Identity {
        name: name.to_owned(),
        serial: lun.serial.clone(),
        naa: number.to_be_bytes(),
        store_key: lun.naa.clone(),
        block_size: block_size(lun),
        physical_block_exponent: exponent(lun),
        thin: lun.thin,
    }
}

/// An operator's problem with a pool of members.
pub(crate) fn of_members(error: &OpenError) -> Problem {
    let problem = backing_failed(error);
    if error.next_step == crate::pool::members::FULL {
        return Problem::new(Code::PoolFull, problem.detail.clone()).hint(problem.hint.clone());
    }
    problem
}

/// What hangs is no reason for others to wait.
fn silent(path: &Path) -> OpenError {
    let (path, time) = (path.display(), OPEN_TIME_MAX.as_secs());
    OpenError {
        cause: format!("{path} has not answered for {time} s"),
        next_step: "look at its disk or file server and the kernel's log; the LUN comes online by itself when it answers"
            .to_owned(),
    }
}

async fn open_device(
    core: &CoreHandle,
    path: &Path,
    block_size: BlockSize,
    fences: Fences,
) -> Result<Arc<DiskVolume>, OpenError> {
    let open = backends::open_block(core, path, block_size, fences);
    let opened = in_time(core, OPEN_TIME_MAX, open).await;
    opened.unwrap_or_else(|| Err(silent(path)))
}

async fn open_leaf(
    core: &CoreHandle,
    (config, members): Ground<'_>,
    lun: &Lun,
    fences: Fences,
) -> Result<Leaf, OpenError> {
    let size = block_size(lun);
    let volume = match &lun.backing {
        Backing::Memory => {
            let blocks = BlockCount(blocks(lun.size, size));
            return Ok(Leaf::Memory(MemoryVolume::new(
                size,
                blocks,
                exponent(lun),
                fences,
            )));
        }
        Backing::Block(path) => open_device(core, path, size, fences).await?,
        Backing::Pool(pool) => {
            if let Some(pool) = members.get(pool) {
                let how = (size, provisioning(lun));
                let leaf = MemberLeaf::open(core, pool, lun_id(lun), how, fences).await?;
                return Ok(Leaf::Members(leaf));
            }
            let path = file_of(config, lun).ok_or_else(|| unknown(pool))?;
            let named = path.clone();
            let spec = FileSpec {
                path,
                block_size: size,
                physical_block_exponent: exponent(lun),
                provisioning: provisioning(lun),
            };
            let opened =
                in_time(core, OPEN_TIME_MAX, backends::open_file(core, spec, fences)).await;
            opened.unwrap_or_else(|| Err(silent(&named)))?
        }
    };
    let has = volume.shape().byte_count().0;
    if has < lun.size.bytes() {
        let missing = backends::end_is_missing(volume.path(), has, lun.size.bytes());
        return Err(missing);
    }
    Ok(Leaf::Disk(volume))
}

fn provisioning(lun: &Lun) -> Provisioning {
    if lun.thin {
        Provisioning::Thin
    } else {
        Provisioning::Thick
    }
}

/// Makes what a new LUN needs before it can be opened.
pub(crate) async fn create(
    core: &CoreHandle,
    ground: Ground<'_>,
    lun: &Lun,
) -> Result<(), Problem> {
    let (config, members) = ground;
    match &lun.backing {
        Backing::Memory => Ok(()),
        Backing::Block(path) => {
            // Looked at now, so that a mistake in the path is told before anything is stored.
            let fences = LogicalUnit::fences_for();
            let opened = open_device(core, path, block_size(lun), fences).await;
            opened.map(|_| ()).map_err(|error| {
                let problem = backing_failed(&error);
                if !error.cause.ends_with("does not exist") {
                    return problem;
                }
                // Nothing of it was there that could be brought back.
                problem.hint("name a block device that is there; lsblk lists them")
            })
        }
        Backing::Pool(pool) => {
            if let Some(pool) = members.get(pool) {
                create_on_members(core, pool, lun).await?;
                if lun.storage.integrity {
                    checksums::create(core, ground, lun).await?;
                }
                return Ok(());
            }
            let Some(path) = file_of(config, lun) else {
                return Err(backing_failed(&unknown(pool)));
            };
            let size = ByteCount(lun.size.bytes());
            let made = backends::create_file(core, &path, size, provisioning(lun)).await;
            made.map_err(|error| failed(&error, &path, "make"))?;
            if lun.storage.integrity {
                checksums::create(core, ground, lun).await?;
            }
            Ok(())
        }
    }
}

/// Gives a LUN its part of a pool, which reads as zeroes.
async fn create_on_members(
    core: &CoreHandle,
    pool: &Rc<MemberPool>,
    lun: &Lun,
) -> Result<(), Problem> {
    let made = async {
        pool.resize(core, lun_id(lun), lun.size.bytes()).await?;
        let how = (block_size(lun), provisioning(lun));
        let fences = LogicalUnit::fences_for();
        let leaf = MemberLeaf::open(core, pool, lun_id(lun), how, fences).await?;
        leaf.grow(core, 0, lun.size.bytes()).await
    };
    made.await.map_err(|error| of_members(&error))
}

/// Destroys what a LUN has: its file, its reservations. A block device is left as it is.
pub(crate) async fn destroy(
    core: &CoreHandle,
    (config, members): Ground<'_>,
    lun: &Lun,
) -> Result<(), Problem> {
    crate::lun::sidecar::destroy(core, config, lun).await?;
    if let Backing::Pool(pool) = &lun.backing
        && let Some(pool) = members.get(pool)
    {
        let gone = pool.release(core, lun_id(lun)).await;
        gone.map_err(|error| of_members(&error))?;
    }
    if let Some(path) = file_of(config, lun) {
        let gone = durable::remove_file(&*core.files(), &path).await;
        gone.map_err(|error| failed(&error, &path, "remove"))?;
    }
    let store = store(config);
    let forgotten = store.forget(core, &lun.naa).await;
    match forgotten {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed(&error, Path::new(&store.place()), "clean"))
        }
        _ => Ok(()),
    }
}
