//! The journal of a pool: a file or device that is made once, and opened on all cores.

use crate::destage::drained;
use crate::history::{Turns, WeakTurns};
use crate::replay::{Accept, OTHER_VERSION, Replayed, open_ring};
use crate::ring::{JournalKey, OnCore, Ring, RingStatus, ring_of};
use env::file::{is_there, length, read};
use env::{
    Access, CoreHandle, CoreId, Create, Durable, File, FileKind, FileOp, LocalFuture, OpenHow, call,
};
use journal::{BLOCK, Checkpoint, Damage, JournalId, Layout, Superblock, VolumeId};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use units::{Buf, Now};
use volume::{IoError, OpenError, OpenErrorKind, UnverifiedBlocks};

/// Bytes that are written at once when a journal is made.
const FILL_BYTES: u64 = 1 << 20;

/// Neighbouring bytes of a volume that share a ring: so many that a stream stays on one core for
/// long.
pub const SHARD_BYTES: u64 = 1 << 30;

/// How long the rings of a journal are waited for that could not be opened whole.
const END_TIME_MAX: Duration = Duration::from_secs(10);

/// How often it is asked whether all has ended.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(2);

/// A journal to make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalSpec {
    /// The file or device.
    pub path: PathBuf,
    /// Bytes of a file; a device is used whole.
    pub bytes: u64,
    /// How many rings: one for each core that shall write.
    pub rings: u32,
    /// The pool that it belongs to.
    pub pool: [u8; 16],
    /// Neighbouring bytes of a volume that belong to one ring, a power of two: [`SHARD_BYTES`], if
    /// there is no reason for another.
    pub shard_bytes: u64,
}

/// Why a journal was not made.
#[derive(Debug)]
pub enum CreateError {
    /// It is too small for so many rings.
    TooSmall {
        /// What it has, in bytes.
        bytes: u64,
        /// What it needs.
        needs: u64,
    },
    /// What the system said.
    System(io::Error),
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSmall { bytes, needs } => {
                write!(
                    f,
                    "{bytes} bytes are too few for a journal: it needs {needs}"
                )
            }
            Self::System(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for CreateError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Bytes of the smallest journal with so many rings.
#[must_use]
pub const fn bytes_min(rings: u32) -> u64 {
    Layout::bytes_min(rings)
}

/// Whether a journal of this pool is there already. What is there of anybody else is not to be
/// overwritten.
///
/// # Errors
/// Something else is there, or it cannot be read.
pub async fn is_journal_of(
    core: &CoreHandle,
    path: &Path,
    pool: [u8; 16],
) -> Result<bool, OpenError> {
    if !is_there(&*core.files(), path).await {
        return Ok(false);
    }
    let opened = core.files().open(path, how(Create::No, false)).await;
    let file = opened.map_err(|error| cannot_open(path, &error))?;
    let bytes = length(&file).await;
    let bytes = bytes.map_err(|error| cannot_open(path, &error))?;
    if bytes < 2 * BLOCK as u64 {
        return empty_or_foreign(path, bytes == 0);
    }
    let (mut blank, mut ours) = (true, false);
    for at in [0, BLOCK as u64] {
        let block = read(&file, at, BLOCK).await;
        let block = block.map_err(|error| cannot_open(path, &error))?;
        match Superblock::read(&block, bytes) {
            Ok(found) => ours |= found.pool == pool,
            Err(version @ Damage::Version { .. }) => return Err(unfit(path, version)),
            Err(Damage::Foreign | Damage::Checksum | Damage::Contradiction(_)) => {}
        }
        blank &= block.iter().all(|&byte| byte == 0);
    }
    if ours {
        return Ok(true);
    }
    empty_or_foreign(path, blank)
}

fn empty_or_foreign(path: &Path, blank: bool) -> Result<bool, OpenError> {
    if blank {
        return Ok(false);
    }
    Err(OpenError {
        kind: OpenErrorKind::Refused,
        cause: format!(
            "{} holds something that is no journal of this pool, and would be overwritten",
            path.display()
        ),
        next_step: "name another file or device, or clear its first 8192 bytes yourself".to_owned(),
    })
}

/// A journal that is open on all cores.
pub struct Journal {
    key: JournalKey,
    path: PathBuf,
    superblock: Superblock,
    cores: u16,
    /// Batches that were found when it was opened.
    replayed: u64,
    /// How long that took.
    replay_took: Duration,
    /// Changes that were acknowledged, and whose data is damaged.
    damaged: Vec<journal::Change>,
    /// What may have been half-way written, by volume.
    unverified: BTreeMap<VolumeId, UnverifiedBlocks>,
    /// Whose turn it is to write a volume's history, for those that are open.
    turns: Mutex<BTreeMap<VolumeId, WeakTurns>>,
}

fn how(create: Create, lock: bool) -> OpenHow {
    OpenHow {
        access: Access::ReadWrite,
        create,
        direct: true,
        lock,
    }
}

impl Journal {
    /// Makes a journal and fills it with zeroes, so that its blocks are there when they are
    /// written. What was in the file or on the device is gone.
    ///
    /// # Errors
    /// [`CreateError`].
    pub async fn create(core: &CoreHandle, spec: &JournalSpec) -> Result<(), CreateError> {
        let is_new = !is_there(&*core.files(), &spec.path).await;
        if is_new {
            has_space_for(core, spec).await?;
        }
        let create = if is_new { Create::IfAbsent } else { Create::No };
        let file = core.files().open(&spec.path, how(create, true)).await?;
        let made = Self::make_in(core, spec, &file).await;
        if made.is_err() && file.facts().kind == FileKind::Regular {
            // What was made of it would keep the file system full. An empty one is made whole the
            // next time.
            let _ = file.submit(FileOp::SetLen { len: 0 }).await;
        }
        made
    }

    async fn make_in(
        core: &CoreHandle,
        spec: &JournalSpec,
        file: &Rc<dyn File>,
    ) -> Result<(), CreateError> {
        let bytes = match file.facts().kind {
            FileKind::Regular => {
                file.submit(FileOp::SetLen { len: spec.bytes }).await?;
                spec.bytes
            }
            FileKind::Block => length(file).await?,
        };
        let layout = Layout::of_device(bytes, spec.rings).ok_or(CreateError::TooSmall {
            bytes,
            needs: Layout::bytes_min(spec.rings),
        })?;
        fill(file, bytes).await?;
        let mut number = [0; 16];
        core.fill_random(&mut number);
        let superblock = Superblock {
            journal: JournalId(number),
            pool: spec.pool,
            layout,
            shard_bytes: spec.shard_bytes,
        };
        for ring in 0..layout.rings {
            let first = Checkpoint::FIRST.write(superblock.journal, ring);
            write(file, layout.checkpoint_at(ring, 0), first).await?;
        }
        // The superblock comes last: what is there is whole.
        file.submit(FileOp::Sync).await?;
        for at in [0, BLOCK as u64] {
            write(file, at, superblock.write()).await?;
        }
        file.submit(FileOp::Sync).await?;
        if let Some(directory) = spec.path.parent().filter(|it| *it != Path::new("")) {
            core.files().sync_dir(directory).await?;
        }
        Ok(())
    }

    /// Opens a journal on all cores, and reads what is in it.
    ///
    /// # Errors
    /// What the operator must mend: it is missing, another pool's, of another version, or damaged
    /// where nobody knows what is lost.
    pub async fn open(
        core: &CoreHandle,
        path: &Path,
        pool: [u8; 16],
    ) -> Result<Arc<Self>, OpenError> {
        Self::open_if(core, path, pool, Arc::new(|_| Ok(()))).await
    }

    /// The same, if every ring is one that `accept` takes: nothing is written to the others.
    ///
    /// # Errors
    /// As [`Journal::open`], and what `accept` says.
    pub async fn open_if(
        core: &CoreHandle,
        path: &Path,
        pool: [u8; 16],
        accept: Accept,
    ) -> Result<Arc<Self>, OpenError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let key = JournalKey(NEXT.fetch_add(1, Ordering::Relaxed));
        let begun = core.now();
        let superblock = superblock_of(core, path, pool).await?;
        let mut opened = Self {
            key,
            path: path.to_owned(),
            superblock,
            cores: core.core_count(),
            replayed: 0,
            replay_took: Duration::ZERO,
            damaged: Vec::new(),
            unverified: BTreeMap::new(),
            turns: Mutex::default(),
        };
        for ring in 0..superblock.layout.rings {
            match opened.open_one(core, ring, &accept).await {
                Ok(found) => {
                    opened.replayed += found.batches;
                    opened.damaged.extend(found.damaged);
                    for (volume, more) in found.unverified {
                        opened.unverified.entry(volume).or_default().merge(more);
                    }
                }
                Err(error) => {
                    // Nobody else knows of the rings before.
                    opened.end(core, core.now().after(END_TIME_MAX)).await;
                    return Err(error);
                }
            }
        }
        opened.replay_took = core.now().since(begun);
        Ok(Arc::new(opened))
    }

    async fn open_one(
        &self,
        core: &CoreHandle,
        ring: u32,
        accept: &Accept,
    ) -> Result<Replayed, OpenError> {
        let (place, of) = (self.path.clone(), (self.key, self.superblock));
        let accept = Arc::clone(accept);
        let opened = call(core, self.owner(ring), move |core| {
            let core = Rc::clone(core);
            Box::pin(async move {
                // The first ring's file keeps the lock for as long as the journal is open.
                let opened = core.files().open(&place, how(Create::No, ring == 0)).await;
                let file = opened.map_err(|error| cannot_open(&place, &error))?;
                open_ring(&core, file, of, ring, &accept).await
            })
        });
        let opened = opened.await.ok_or_else(stopping)?;
        opened.map_err(|error| OpenError {
            cause: format!("{}: {}", self.path.display(), error.cause),
            ..error
        })
    }

    /// The journal's file or device.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its own number.
    #[must_use]
    pub const fn number(&self) -> JournalId {
        self.superblock.journal
    }

    /// The number of its pool.
    #[must_use]
    pub const fn pool(&self) -> [u8; 16] {
        self.superblock.pool
    }

    /// How many there are; made with the journal and never changed.
    #[must_use]
    pub const fn rings(&self) -> u32 {
        self.superblock.layout.rings
    }

    /// Its bytes: what its rings take of the file or device.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.superblock.layout.checkpoint_at(self.rings(), 0)
    }

    /// How addresses belong to rings: bytes of a shard, and rings.
    pub(crate) fn sharding(&self) -> (u64, u32) {
        (self.superblock.shard_bytes, self.rings())
    }

    /// Batches that it held when it was opened.
    #[must_use]
    pub fn replayed(&self) -> u64 {
        self.replayed
    }

    /// How long it took to open it, which reads what it held.
    #[must_use]
    pub fn replay_took(&self) -> Duration {
        self.replay_took
    }

    /// Changes that were acknowledged and are damaged in it: reads of their blocks fail until they
    /// are written again.
    #[must_use]
    pub fn damaged(&self) -> &[journal::Change] {
        &self.damaged
    }

    /// Whose turn it is to write this volume's history, for all rings the same.
    pub(crate) fn turns_of(&self, volume: VolumeId) -> Turns {
        let mut all = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turns) = all.get(&volume).and_then(WeakTurns::upgrade) {
            return turns;
        }
        all.retain(|_, turns| turns.strong_count() > 0);
        let turns = Turns::default();
        all.insert(volume, Arc::downgrade(&turns));
        turns
    }

    /// Blocks of a volume that may have been half-way written when the power failed.
    #[must_use]
    pub fn unverified_blocks(&self, volume: VolumeId) -> UnverifiedBlocks {
        self.unverified.get(&volume).cloned().unwrap_or_default()
    }

    pub(crate) fn key(&self) -> JournalKey {
        self.key
    }

    /// The core that a ring lives on.
    pub(crate) fn owner(&self, ring: u32) -> CoreId {
        owner(ring, self.cores)
    }

    /// Does something with each ring on its core.
    pub(crate) async fn on_rings<T: Send + 'static>(
        &self,
        core: &CoreHandle,
        work: impl Fn(u32, Rc<Ring>) -> LocalFuture<T> + Copy + Send + 'static,
    ) -> Vec<T> {
        let mut all = Vec::new();
        for ring in 0..self.rings() {
            let key = (self.key, ring);
            let done = call(core, self.owner(ring), move |core| {
                let here = ring_of(core, key);
                Box::pin(async move { Some(work(ring, here?).await) })
            });
            all.extend(done.await.flatten());
        }
        all
    }

    /// How its rings are.
    pub async fn status(&self, core: &CoreHandle) -> Vec<RingStatus> {
        self.on_rings(core, |number, ring| {
            Box::pin(async move { ring.status(number) })
        })
        .await
    }

    /// Pages of 4096 bytes of each volume whose newest data is in it, of those that have some.
    pub async fn pages(&self, core: &CoreHandle) -> BTreeMap<VolumeId, u64> {
        let rings = self.on_rings(core, |_, ring| Box::pin(async move { ring.pages() }));
        let mut all = BTreeMap::new();
        for (volume, pages) in rings.await.into_iter().flatten() {
            *all.entry(volume).or_default() += pages;
        }
        all
    }

    /// Forgets a volume that is about to be destroyed, and that nobody uses any more: nothing of it
    /// has to be destaged.
    ///
    /// # Errors
    /// A ring takes nothing; what it has of the volume stays.
    pub async fn forget(&self, core: &CoreHandle, volume: VolumeId) -> Result<(), IoError> {
        for ring in 0..self.rings() {
            let key = (self.key, ring);
            let forgotten = call(core, self.owner(ring), move |core| {
                let here = ring_of(core, key);
                Box::pin(async move {
                    match here {
                        Some(here) => here.forget(volume).await.map(|_| ()),
                        None => Ok(()),
                    }
                })
            });
            forgotten.await.unwrap_or(Err(IoError::Unavailable))?;
        }
        Ok(())
    }

    /// Waits until all that was written is destaged, or cannot be now.
    pub async fn drain(&self, core: &CoreHandle) {
        self.on_rings(core, |_, ring| Box::pin(drained(ring))).await;
    }

    /// Whether its file or device still is where it was opened. What is written to a file that was
    /// removed, or to a device that was replaced by another one, is found by nobody later.
    pub async fn is_in_place(&self, core: &CoreHandle) -> bool {
        let there = async {
            let file = core
                .files()
                .open(&self.path, how(Create::No, false))
                .await?;
            let bytes = length(&file).await?;
            for at in [0, BLOCK as u64] {
                if bytes < at + BLOCK as u64 {
                    return Ok(false);
                }
                let found = Superblock::read(&read(&file, at, BLOCK).await?, bytes);
                if found.is_ok_and(|it| it.journal == self.superblock.journal) {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        let there: io::Result<bool> = there.await;
        // What cannot be known is no reason to do without it: where it fails, its own writes say
        // so.
        there.unwrap_or_else(|error| error.kind() != io::ErrorKind::NotFound)
    }

    /// All that has failed of it has failed for want of space, and there is space again: opened
    /// anew, it serves.
    pub async fn has_space_again(&self, core: &CoreHandle) -> bool {
        let rings = self.on_rings(core, |_, ring| {
            Box::pin(async move { ring.takes_writes().await })
        });
        rings.await.into_iter().all(|would| would)
    }

    /// What is where it was opened, and its length.
    pub(crate) async fn file_there(&self, core: &CoreHandle) -> io::Result<(Rc<dyn File>, u64)> {
        let file = core
            .files()
            .open(&self.path, how(Create::No, false))
            .await?;
        let bytes = length(&file).await?;
        Ok((file, bytes))
    }

    /// As [`Journal::close`], and waits until nothing is under way in it any more, so that it may
    /// be opened again; `false`: something still was at `until`, and this may be asked for again.
    pub async fn end(&self, core: &CoreHandle, until: Now) -> bool {
        let mut ended = true;
        for ring in 0..self.rings() {
            let key = (self.key, ring);
            let gone = call(core, self.owner(ring), move |core| {
                Box::pin(ring_ends(Rc::clone(core), key, until))
            });
            ended &= gone.await.unwrap_or(false);
        }
        ended
    }

    /// Stops what works for it. Nobody uses its volumes any more.
    pub async fn close(&self, core: &CoreHandle) {
        self.on_rings(core, |_, ring| Box::pin(async move { ring.close() }))
            .await;
        for ring in 0..self.rings() {
            let key = (self.key, ring);
            call(core, self.owner(ring), move |core| {
                let gone = core.locals().get::<OnCore>().0.borrow_mut().remove(&key);
                Box::pin(async move { drop(gone) })
            })
            .await;
        }
    }
}

/// Ends a ring of this core, and waits until whatever it has under way is over.
async fn ring_ends(core: CoreHandle, key: (JournalKey, u32), until: Now) -> bool {
    let Some(ring) = ring_of(&core, key) else {
        return true;
    };
    ring.close();
    // This one and the table's.
    while Rc::strong_count(&ring) > 2 {
        if core.now() >= until {
            return false;
        }
        let soon = core.now().after(ASK_AGAIN_AFTER);
        core.sleep_until(soon).await;
    }
    core.locals().get::<OnCore>().0.borrow_mut().remove(&key);
    true
}

fn owner(ring: u32, cores: u16) -> CoreId {
    let core = ring % u32::from(cores);
    CoreId(u16::try_from(core).expect("less than the cores"))
}

pub(crate) fn stopping() -> OpenError {
    OpenError {
        kind: OpenErrorKind::Other,
        cause: "the program is stopping".to_owned(),
        next_step: "start it again".to_owned(),
    }
}

async fn write(file: &Rc<dyn File>, offset: u64, block: Vec<u8>) -> io::Result<()> {
    let op = FileOp::Write {
        offset,
        data: Buf::from(block),
        durable: Durable::No,
    };
    file.submit(op).await.map(|_| ())
}

/// A journal that does not fit would take the last room from all others before that is noticed.
async fn has_space_for(core: &CoreHandle, spec: &JournalSpec) -> io::Result<()> {
    let directory = spec.path.parent().filter(|it| *it != Path::new(""));
    let space = core.files().space(directory.unwrap_or(Path::new(".")));
    match space.await {
        Ok(space) if space.available < spec.bytes => Err(io::ErrorKind::StorageFull.into()),
        // Where that cannot be asked, filling it shows.
        Ok(_) | Err(_) => Ok(()),
    }
}

async fn fill(file: &Rc<dyn File>, bytes: u64) -> io::Result<()> {
    let mut at = 0;
    while at < bytes {
        let len = FILL_BYTES.min(bytes - at) / BLOCK as u64 * BLOCK as u64;
        if len == 0 {
            break;
        }
        let op = FileOp::Write {
            offset: at,
            data: Buf::zeroes(usize::try_from(len).expect("a piece is small")),
            durable: Durable::No,
        };
        file.submit(op).await?;
        at += len;
    }
    Ok(())
}

pub(crate) fn cannot_open(path: &Path, error: &io::Error) -> OpenError {
    let missing = error.kind() == io::ErrorKind::NotFound;
    let is_locked = error.kind() == io::ErrorKind::WouldBlock;
    let next_step = if missing {
        "bring it back: it may hold writes that were acknowledged and are nowhere else"
    } else if is_locked {
        "stop what uses it, another causeway included"
    } else {
        "check the device and its permissions"
    };
    OpenError {
        kind: OpenErrorKind::of_io(error),
        cause: format!("the journal {} cannot be opened: {error}", path.display()),
        next_step: next_step.to_owned(),
    }
}

async fn superblock_of(
    core: &CoreHandle,
    path: &Path,
    pool: [u8; 16],
) -> Result<Superblock, OpenError> {
    let failed = |error: &io::Error| cannot_open(path, error);
    let opened = core.files().open(path, how(Create::No, false)).await;
    let file = opened.map_err(|error| failed(&error))?;
    let bytes = length(&file).await.map_err(|error| failed(&error))?;
    let found = superblock_in(&file, bytes).await;
    match found.map_err(|error| failed(&error))? {
        Ok(found) if found.pool == pool => Ok(found),
        Ok(_) => Err(OpenError {
            kind: OpenErrorKind::Refused,
            cause: format!("{} is the journal of another pool", path.display()),
            next_step: "name this pool's own journal in node.toml".to_owned(),
        }),
        Err(damage) => Err(unfit(path, damage)),
    }
}

/// What both copies of the superblock say. Where the first one is good, a second one that the
/// device cannot read is like a damaged one.
pub(crate) async fn superblock_in(
    file: &Rc<dyn File>,
    bytes: u64,
) -> io::Result<Result<Superblock, Damage>> {
    let first = read(file, 0, BLOCK).await?;
    let found = match read(file, BLOCK as u64, BLOCK).await {
        Ok(second) => Superblock::of_copies([&first, &second], bytes),
        Err(error) => Ok(Superblock::read(&first, bytes).map_err(|_| error)?),
    };
    Ok(found)
}

/// It is no journal that can be used.
fn unfit(path: &Path, damage: Damage) -> OpenError {
    let next_step = match damage {
        Damage::Version { .. } => OTHER_VERSION,
        Damage::Foreign | Damage::Checksum | Damage::Contradiction(_) => {
            "bring the right file or device back; it may hold writes that are nowhere else"
        }
    };
    OpenError {
        kind: OpenErrorKind::Damaged,
        cause: format!("{} cannot be used as a journal: {damage}", path.display()),
        next_step: next_step.to_owned(),
    }
}
