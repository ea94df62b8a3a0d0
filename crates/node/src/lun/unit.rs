//! One LUN in service: leaf, layers, logical unit. Which layer stands on which says the
//! [table of layers](super::layers).

mod size;

use crate::backend::disk::OPEN_TIME_MAX;
use crate::backend::door::Leaf;
use crate::backend::pools::{self, Ground};
use crate::journal::pool_journal::PoolJournal;
use crate::lun::failed::{backing_failed, failed};
use crate::lun::geometry::{block_count, block_size, exponent, naa_bytes};
use crate::lun::layers::door::{Base, Opening};
use crate::lun::layers::{Layers, UnitParts, sidecars};
use crate::lun::seen::Seen;
use crate::lun::sidecar;
use crate::mirrors::Mirrors;
use backends::Progress;
use env::{CoreHandle, CoreId, in_time};
use layers::Brief;
use logical_unit::{DirectoryStore, Identity, LogicalUnit, UnitConfig, UnitId, UnitStore};
use manifest::config::Config;
use manifest::objects::{ChecksumFacts, LayerFacts, Lun, Storage};
use manifest::problem::Problem;
use manifest::size::Size;
use scsi::unit_attention::UnitAttention;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use units::Now;
use volume::{
    Access, Fences, Io, IoError, Op, OpenError, OpenErrorKind, Origin, Volume, VolumeEvent,
};
use write_back::VolumeId;

/// What is opened for a LUN: the file or device of its blocks, and what its sidecars may be.
pub(crate) fn files_of(ground: Ground<'_>, lun: &Lun) -> (Option<PathBuf>, Vec<PathBuf>) {
    let backend = pools::of(ground.1, &lun.backing).ok();
    let own = backend.and_then(|backend| backend.file(lun));
    let sidecars =
        [sidecar::CHECKSUMS, sidecar::CHANGES].map(|what| sidecar::file(ground, lun, what));
    (own, sidecars.into_iter().flatten().collect())
}

fn store(config: &Config) -> DirectoryStore {
    DirectoryStore::new(config.state_dir.join("units"))
}

/// A leaf that outlives its LUN's service, with the fences that it tests.
pub(crate) struct Kept {
    leaf: Rc<dyn Leaf>,
    fences: Fences,
}

/// What stands under a logical unit.
struct Stack {
    leaf: Option<Rc<dyn Leaf>>,
    layers: Layers,
    volume: Result<Arc<dyn Volume>, OpenError>,
}

impl Stack {
    /// Opens the leaf and puts the layers over it.
    async fn new(opening: &Opening<'_>, kept: Option<Kept>, parts: &UnitParts) -> Self {
        let Opening {
            core, ground, lun, ..
        } = *opening;
        let layers = Layers::new(core, lun, parts).await;
        let leaf = match (kept, opening.journal) {
            (Some(kept), _) => Ok(kept.leaf),
            (None, PoolJournal::Missing(error)) => Err(error.clone()),
            (None, PoolJournal::None | PoolJournal::Open(_)) => {
                open_leaf(core, ground, lun, parts.fences.clone()).await
            }
        };
        let volume = match &leaf {
            Ok(leaf) => layers.over(leaf.volume(), opening).await,
            Err(error) => Err(error.clone()),
        };
        Self {
            leaf: leaf.ok(),
            layers,
            volume,
        }
    }

    /// Makes stable what hosts wrote before it was opened: nobody else knows any more that it has
    /// to be flushed.
    async fn settle(&self, core: &CoreHandle) -> Result<(), OpenError> {
        let Some(leaf) = &self.leaf else {
            return Ok(());
        };
        let lane = leaf.volume().open(core).await?;
        let flush = lane.submit(Io::new(Op::Flush, Origin::default()));
        let (kind, why) = match in_time(core, OPEN_TIME_MAX, flush).await {
            Some(Ok(_)) => return Ok(()),
            Some(Err(error)) => (OpenErrorKind::Other, format!("{error:?}")),
            None => {
                let time = OPEN_TIME_MAX.as_secs();
                let why = format!("its disk has not answered for {time} s");
                (OpenErrorKind::Hung, why)
            }
        };
        Err(OpenError {
            kind,
            cause: format!("its blocks could not be made stable: {why}"),
            next_step: "check its disk and the kernel's log".to_owned(),
        })
    }
}

/// A LUN in service.
pub(crate) struct Unit {
    pub(crate) id: UnitId,
    pub(crate) block_bytes: u64,
    unit: Arc<LogicalUnit>,
    stack: Stack,
    parts: UnitParts,
    in_pool: bool,
    offline: Option<OpenError>,
    /// What the last document was made of.
    pub(crate) seen: RefCell<Option<Seen>>,
    /// What its storage had done when figures of a second were made last.
    pub(crate) counted: Cell<Option<Brief>>,
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
        (journal, mirrors): (PoolJournal, Option<Rc<dyn Mirrors>>),
    ) -> Self {
        let id = UnitId(number);
        let kept_fences = kept.as_ref().map(|kept| kept.fences.clone());
        let fences = kept_fences.unwrap_or_else(LogicalUnit::fences_for);
        let parts = UnitParts::new(lun, fences, mirrors);
        let opening = Opening {
            core,
            ground,
            name,
            lun,
            journal: &journal,
        };
        let stack = Stack::new(&opening, kept, &parts).await;
        let unit = LogicalUnit::new(UnitConfig {
            id,
            // Spread over the cores, so that one busy unit's changes do not wait for another's.
            home: CoreId(
                u16::try_from(number % u64::from(core.core_count())).expect("below a u16"),
            ),
            identity: identity(name, lun),
            fences: parts.fences.clone(),
            store: Arc::new(store(ground.0)),
            is_new,
        });
        unit.set_bytes_in_flight_max(lun.bytes_in_flight_max.map(Size::bytes));
        let started = unit.start(core, stack.volume.clone()).await;
        let fixed = lun.storage.task_aborted_fixed();
        unit.fix_task_aborted_status(core, fixed).await;
        follow_access(core, &unit, (&stack, &parts)).await;
        Self {
            id,
            block_bytes: u64::from(lun.block_size),
            unit,
            stack,
            parts,
            in_pool: lun.backing.pool().is_some(),
            offline: started.err(),
            seen: RefCell::default(),
            counted: Cell::default(),
        }
    }

    /// The same unit without a volume: it is offline and says why, and hosts keep their sessions
    /// and reservations.
    pub(crate) async fn suspend(&self, core: &CoreHandle, lun: &Lun, why: &OpenError) -> Self {
        self.unit.suspend(core, why.clone()).await;
        self.close_leaf(core).await;
        let layers = Layers::suspended(core, lun, &self.parts, &self.stack.layers).await;
        let stack = Stack {
            leaf: self.keep_leaf().map(|kept| kept.leaf),
            layers,
            volume: Err(why.clone()),
        };
        self.over(stack, Some(why.clone()))
    }

    /// As [`Unit::suspend`], and the journal does not destage what it has of it until it is
    /// back: where it lay is gone.
    pub(crate) async fn suspend_without_base(
        &self,
        core: &CoreHandle,
        lun: &Lun,
        why: &OpenError,
    ) -> Self {
        self.stack.layers.leave(core).await;
        self.suspend(core, lun, why).await
    }

    /// The same unit over another stack.
    fn over(&self, stack: Stack, offline: Option<OpenError>) -> Self {
        Self {
            id: self.id,
            block_bytes: self.block_bytes,
            unit: Arc::clone(&self.unit),
            stack,
            parts: self.parts.clone(),
            in_pool: self.in_pool,
            offline,
            seen: RefCell::default(),
            counted: Cell::default(),
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
        let size = block_count(lun);
        self.parts.blocks.store(size, Ordering::Release);
        self.close_sidecars(core).await;
        self.close_leaf(core).await;
        let opening = Opening {
            core,
            ground,
            name: &self.name(),
            lun,
            journal: &journal,
        };
        let kept = self.keep_leaf();
        let stack = Stack::new(&opening, kept, &self.parts).await;
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
        follow_access(core, &self.unit, (&stack, &self.parts)).await;
        self.over(stack, resumed.err())
    }

    /// What outlives its layers.
    pub(crate) fn parts(&self) -> &UnitParts {
        &self.parts
    }

    /// What hosts write to, below the logical unit.
    #[cfg(test)]
    pub(crate) fn volume(&self) -> Result<Arc<dyn Volume>, OpenError> {
        self.stack.volume.clone()
    }

    /// Why it does not serve, where it does not.
    pub(crate) fn offline(&self) -> Option<OpenError> {
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

    /// Its leaf, where that is kept while the LUN is offline, or removed and not purged.
    pub(crate) fn keep_leaf(&self) -> Option<Kept> {
        let leaf = self.stack.leaf.as_ref()?;
        leaf.outlives_service().then(|| Kept {
            leaf: Rc::clone(leaf),
            fences: self.parts.fences.clone(),
        })
    }

    /// It is open in a pool, and takes there what only the pool knows.
    pub(crate) fn is_in_pool(&self) -> bool {
        let leaf = self.stack.leaf.as_ref();
        self.in_pool && leaf.is_some_and(|leaf| leaf.allocated().is_none())
    }

    /// Its name, as logs say it.
    pub(crate) fn name(&self) -> Arc<str> {
        self.unit.name()
    }

    /// Its name, for logs.
    pub(crate) fn rename(&self, name: &str) {
        if *self.name() != *name {
            self.unit.rename(name);
            self.stack.layers.rename(name);
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
    pub(crate) async fn adopt(
        &self,
        core: &CoreHandle,
        storage: &Storage,
    ) -> Result<(), OpenError> {
        self.stack.layers.set_now(core, storage).await;
        let fixed = storage.task_aborted_fixed();
        self.unit.fix_task_aborted_status(core, fixed).await;
        if !self.stack.layers.set(storage) || self.offline.is_some() {
            return Ok(());
        }
        self.unit.adopt_cache(core).await
    }

    /// Destages what the journal has of it, as far as that can be done, and has the journal
    /// forget where it is.
    pub(crate) async fn release(&self, core: &CoreHandle) {
        self.stack.layers.release(core).await;
    }

    /// Lets go of what holds its blocks, where that does not outlive its service: nobody uses it
    /// any more.
    pub(crate) async fn close_leaf(&self, core: &CoreHandle) {
        let leaf = self.stack.leaf.as_ref();
        if let Some(leaf) = leaf.filter(|leaf| !leaf.outlives_service()) {
            leaf.close(core).await;
        }
    }

    /// Writes all of its sidecars, and that it is all: nobody uses it any more.
    pub(crate) async fn close_sidecars(&self, core: &CoreHandle) {
        self.stack.layers.close(core).await;
    }

    /// The layer that follows a field comes between from now on, with the sidecar that was made for
    /// it, while hosts work.
    ///
    /// # Errors
    /// Why that cannot be done now; nothing has changed then.
    pub(crate) async fn switch_on(
        &self,
        field: &str,
        core: &CoreHandle,
        ground: Ground<'_>,
        lun: &Lun,
    ) -> Result<(), OpenError> {
        let name = self.name();
        let layers = &self.stack.layers;
        layers.switch_on(field, core, ground, (&name, lun)).await?;
        self.unit.adopt_cache(core).await
    }

    /// The layer that follows a field goes, while hosts work. Its sidecar is worth nothing from
    /// then on.
    ///
    /// # Errors
    /// Why that cannot be done now; nothing has changed then.
    pub(crate) async fn switch_off(&self, field: &str, core: &CoreHandle) -> Result<(), OpenError> {
        let Some(rest) = self.stack.layers.switch_off(field, core).await? else {
            return Ok(());
        };
        let adopted = self.unit.adopt_cache(core).await;
        // Only now does nobody use it any more.
        rest();
        adopted
    }

    /// Fills in what its layers report of themselves.
    pub(crate) fn report(&self, facts: &mut LayerFacts) {
        self.stack.layers.report(facts);
    }

    /// What the journal that its writes go through knows it by.
    pub(crate) fn journaled(&self) -> Option<VolumeId> {
        self.stack.layers.journaled()
    }

    /// How its checksums are, where it has any.
    pub(crate) fn checksums(&self) -> Option<ChecksumFacts> {
        self.stack.layers.checksums()
    }

    /// Operations that wait now for its limit or its share.
    pub(crate) fn waiting(&self) -> u64 {
        self.stack.layers.waiting()
    }

    /// What its administrator should know.
    pub(crate) fn notices(&self) -> Vec<String> {
        let leaf = self.stack.leaf.as_ref();
        let Some(sector) = leaf.and_then(|leaf| leaf.sector_bytes()) else {
            return Vec::new();
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

    /// Its backing volume, below everything that keeps some of them elsewhere: what
    /// a scrub reads. `None` where it has none.
    ///
    /// # Errors
    /// They cannot be opened.
    pub(crate) async fn base(&self, core: &CoreHandle) -> Result<Option<Base>, OpenError> {
        let Some(leaf) = &self.stack.leaf else {
            return Ok(None);
        };
        self.stack.layers.base(core, &leaf.volume()).await
    }

    /// Bytes that the leaf takes, where it knows without asking a disk.
    pub(crate) fn allocated(&self) -> Option<u64> {
        self.stack.leaf.as_ref()?.allocated()
    }

    /// A sync failed once: nothing is written any more until the LUN is opened anew.
    pub(crate) fn is_broken(&self) -> bool {
        let leaf = self.stack.leaf.as_ref();
        leaf.is_some_and(|leaf| leaf.is_broken())
    }

    /// Why its blocks cannot be used any more until they are opened anew.
    pub(crate) fn lost(&self) -> Option<OpenError> {
        self.stack.leaf.as_ref()?.lost()
    }

    /// Its files and devices, where syncs failed because there was no space in them, and no sync
    /// for another reason.
    pub(crate) fn lacked_space(&self) -> Option<Vec<PathBuf>> {
        self.stack.leaf.as_ref()?.lacked_space()
    }

    /// Hosts get the unit attention of a start: what they wrote and did not flush may be lost.
    pub(crate) async fn establish_power_on(&self, core: &CoreHandle) {
        self.unit
            .establish_for_all(core, UnitAttention::PowerOn)
            .await;
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
            // Of a LUN that another node serves nothing is to be flushed here.
            Some(Ok(_) | Err(IoError::Transition)) => {}
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

/// Of a LUN with copies on several nodes: hosts hear which of these serves them, and through which
/// ports, as long as it is over this stack.
async fn follow_access(
    core: &CoreHandle,
    unit: &Arc<LogicalUnit>,
    (stack, parts): (&Stack, &UnitParts),
) {
    let (Ok(volume), Some(mirrors)) = (&stack.volume, &parts.mirrors) else {
        return;
    };
    if !stack.layers.has_copies() {
        return;
    }
    let (volume, mirrors) = (Arc::clone(volume), Rc::clone(mirrors));
    if let Some(number) = mirrors.number() {
        unit.set_node(core, number).await;
    }
    let naa = unit.identity().store_key.clone();
    if let Some(copies) = mirrors.state_copies(&naa) {
        unit.set_copies(copies);
    }
    if let Some(forwarder) = mirrors.forwarder(&naa, unit.id()) {
        unit.set_forwarder(forwarder);
    }
    unit.set_access(core, Access::Elsewhere(None)).await;
    let below = Arc::downgrade(&volume);
    let events = volume.events(core);
    let others = mirrors.elsewhere(&naa);
    if !others.is_empty() {
        unit.set_elsewhere(core, others).await;
    }
    let (here, unit) = (Rc::clone(core), Arc::downgrade(unit));
    core.spawn(Box::pin(async move {
        loop {
            let event = events.next().await;
            let (Some(unit), Some(_)) = (unit.upgrade(), below.upgrade()) else {
                return;
            };
            match event {
                VolumeEvent::Access(Access::Served) => {
                    // Another node may serve them meanwhile, which is the next event.
                    if let Some(held) = mirrors.held_state(&naa).await
                        && unit.serve(&here, held).await.is_err()
                    {
                        let lun = &*unit.name();
                        tracing::error!(
                            lun,
                            "what hosts set of it is damaged, so that they are not served"
                        );
                    }
                }
                VolumeEvent::Access(
                    access @ (Access::Elsewhere(_) | Access::Forwarded(_) | Access::Nowhere),
                ) => {
                    unit.set_access(&here, access).await;
                }
                VolumeEvent::Through(nodes) => unit.set_through(&here, nodes).await,
                VolumeEvent::Paths => {
                    unit.set_elsewhere(&here, mirrors.elsewhere(&naa)).await;
                }
                VolumeEvent::Reshaped(_) | VolumeEvent::Lost(_) | VolumeEvent::Back => {}
            }
        }
    }));
}

fn identity(name: &str, lun: &Lun) -> Identity {
    Identity {
        name: name.to_owned(),
        serial: lun.serial.clone(),
        naa: naa_bytes(lun),
        store_key: lun.naa.clone(),
        block_size: block_size(lun),
        physical_block_exponent: exponent(lun),
        thin: lun.thin,
    }
}

async fn open_leaf(
    core: &CoreHandle,
    ground: Ground<'_>,
    lun: &Lun,
    fences: Fences,
) -> Result<Rc<dyn Leaf>, OpenError> {
    let backend = pools::of(ground.1, &lun.backing)?;
    backend.open(core, lun, fences).await
}

/// Makes what a new LUN needs before it can be opened.
pub(crate) async fn create(
    core: &CoreHandle,
    ground: Ground<'_>,
    lun: &Lun,
    progress: &Progress,
) -> Result<(), Problem> {
    let backend = pools::of(ground.1, &lun.backing);
    let backend = backend.map_err(|error| backing_failed(&error))?;
    backend.create(core, lun, progress).await?;
    sidecars::create(core, ground, lun).await
}

/// Destroys what a LUN has: its blocks, where they are its alone, and its reservations.
pub(crate) async fn destroy(
    core: &CoreHandle,
    ground: Ground<'_>,
    lun: &Lun,
) -> Result<(), Problem> {
    sidecar::destroy(core, ground, lun).await?;
    // What is in a pool that node.toml does not have stays there.
    if let Ok(backend) = pools::of(ground.1, &lun.backing) {
        backend.destroy(core, lun).await?;
    }
    let store = store(ground.0);
    let forgotten = store.forget(core, &lun.naa).await;
    match forgotten {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(failed(&error, Path::new(&store.place()), "clean"))
        }
        _ => Ok(()),
    }
}
