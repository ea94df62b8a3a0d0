//! A volume in a VHDX image, with its parents.
//!
//! ```text
//!   read, write  --[where?]--> tables in memory --> place in a file, at once      (Ride)
//!                     |
//!                     +-- not known, or tables change --> [turn] operation of the image
//!   flush        --[tables changed?]--> sync alone | [turn] log and syncs, one for all that wait
//! ```
//!
//! **Contract.** As [`DiskVolume`](crate::DiskVolume). Of what changes the tables, one is under way
//! at a time, on whatever core; where all is in its place, requests go to the file from each core.
//! What gets a new block is stable with the next flush, which every stable write makes for itself
//! as long as tables have changed. Space that was given back is used again when everything has
//! ended that found it before ([`grace`]).
//!
//! **Failure model.** No space: `SpaceExhausted`, nothing lost. After a write of tables or a sync
//! that failed, or where the file cannot be reached any more, or another program has opened the
//! image for writing, the volume is [lost](ImageVolume::lost) until it is opened anew, and
//! answers `Unavailable`. Who the writer is, is asked before the first change, after each error,
//! and every two seconds while there are changes: a share may have no locks.

mod drive;
mod grace;
mod lane;
mod opening;
#[cfg(test)]
mod test;

pub use drive::{Drive, Failure, SyncFile, plain_sync};
pub use opening::{Opened, Own, Purpose, open_alone, open_chain};

use crate::syncs::Syncs;
use drive::Drive as Driver;
use env::{CoreHandle, File, FileFacts, FileOp, LocalFuture};
use grace::Grace;
use lane::ImageLane;
use opening::{Hold, Place, refused};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use units::{BlockCount, BlockSize, Buf, Now};
use vhdx::{Chain, Error, Image, Operation};
use volume::{
    Caps, Epoch, Fence, Fences, Followers, IoError, Lane, Limits, OpenError, OpenErrorKind, Shape,
    Support, Volume, VolumeEvent, VolumeEvents,
};

/// How long nobody asks whether the image is still ours, while there are changes.
const OWNER_INTERVAL: Duration = Duration::from_secs(2);

/// An image for a LUN.
#[derive(Clone, Debug)]
pub struct ImageSpec {
    /// Where the child's file is; its parents are named in it.
    pub path: PathBuf,
    /// Bytes in a logical block: those of the image's sectors.
    pub block_size: BlockSize,
    /// Logical blocks in a physical one, as a power of two.
    pub physical_block_exponent: u8,
    /// The identifiers that this process gives it.
    pub own: Own,
}

/// What whoever changes the tables knows.
#[derive(Default)]
struct Turn {
    /// Flushes that were asked for up to this number are done.
    flushed: u64,
    /// When the image was found to be ours.
    owned: Option<Now>,
}

/// An image as a volume; made by [`open_image`].
pub struct ImageVolume {
    places: Vec<Place>,
    chain: Chain,
    own: Own,
    fences: Fences,
    shape: Mutex<Shape>,
    /// The size now, for lanes that are older than a change.
    block_count: AtomicU64,
    sector_bytes: u32,
    turn: tokio::sync::Mutex<Turn>,
    /// Flushes that were asked for.
    asked: AtomicU64,
    /// Tables may differ from what a flush has made stable.
    changed: AtomicBool,
    /// When the owner was asked for last, in milliseconds: for whoever writes without a turn.
    owned_at: AtomicU64,
    grace: Arc<Grace>,
    /// Somebody waits for places to be used again.
    waits: AtomicBool,
    is_lost: AtomicBool,
    lost: Mutex<Option<OpenError>>,
    syncs: Arc<Syncs>,
    events: Followers,
}

/// Opens an image as a volume.
///
/// # Errors
/// What the operator must mend: the file or a parent is missing, damaged, in use, or has other
/// sectors.
pub async fn open_image(
    core: &CoreHandle,
    spec: ImageSpec,
    fences: Fences,
) -> Result<Arc<ImageVolume>, OpenError> {
    let sector = u64::from(spec.block_size.bytes());
    let how = (Purpose::Change, Some(sector));
    let opened = open_chain(core, &spec.path, how, Some(&spec.own)).await?;
    let image = opened.chain.image();
    let (geometry, metadata) = (image.geometry(), image.metadata());
    if geometry.sector_bytes != sector {
        return Err(OpenError {
            kind: OpenErrorKind::Unsupported,
            cause: format!(
                "{} has sectors of {} bytes, and the LUN blocks of {sector}",
                spec.path.display(),
                geometry.sector_bytes
            ),
            next_step: format!("set block_size = {} for this LUN", geometry.sector_bytes),
        });
    }
    image.let_rest();
    let facts = opened.files[0].facts();
    let blocks = BlockCount(geometry.disk_bytes / sector);
    let mut shape = shape_of(&facts, &spec, blocks, geometry.block_bytes);
    if metadata.is_fixed {
        (shape.caps.discard, shape.caps.discard_reads_zero) = (Support::Absent, false);
        shape.limits.discard_blocks_max = BlockCount(0);
    }
    Ok(Arc::new(ImageVolume {
        places: opened.places,
        chain: opened.chain,
        own: spec.own,
        fences,
        block_count: AtomicU64::new(blocks.0),
        shape: Mutex::new(shape),
        sector_bytes: facts.alignment.max(512),
        turn: tokio::sync::Mutex::default(),
        asked: AtomicU64::new(0),
        changed: AtomicBool::new(false),
        owned_at: AtomicU64::new(0),
        grace: Arc::default(),
        waits: AtomicBool::new(false),
        is_lost: AtomicBool::new(false),
        lost: Mutex::default(),
        syncs: Arc::default(),
        events: Followers::default(),
    }))
}

fn shape_of(facts: &FileFacts, spec: &ImageSpec, blocks: BlockCount, unit: u64) -> Shape {
    let block = u64::from(spec.block_size.bytes());
    Shape {
        block_size: spec.block_size,
        block_count: blocks,
        physical_block_exponent: spec.physical_block_exponent,
        limits: Limits {
            transfer_blocks_max: BlockCount((16 << 20) / block),
            discard_blocks_max: BlockCount((4 << 30) / block),
            discard_granularity: BlockCount(unit / block),
            discard_alignment: BlockCount(0),
            write_zeroes_blocks_max: BlockCount((1 << 30) / block),
            compare_and_write_blocks_max: BlockCount(0),
            atomic_blocks_max: BlockCount(0),
            in_flight_max: 1024,
            memory_alignment: facts.alignment.max(1),
            payload_piece_bytes: 0,
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ImageVolume {
    /// Its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.places[0].path
    }

    /// How long its file is by now, which is what it takes where nothing of that is a hole.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.image().file_bytes()
    }

    /// It writes past the page cache.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.places[0].how.direct
    }

    /// What the storage below writes as a whole, as far as it reports.
    #[must_use]
    pub const fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Why it cannot be used any more until it is opened anew, where that is so. With
    /// [`OpenErrorKind::Fenced`] another program has it, and it is not to be opened by itself.
    #[must_use]
    pub fn lost(&self) -> Option<OpenError> {
        lock(&self.lost).clone()
    }

    /// What is to be known when it is opened anew and could not be closed; `None`: nothing was
    /// changed.
    #[must_use]
    pub fn unclosed(&self) -> Option<Own> {
        let is_claimed = self.image().is_claimed();
        is_claimed.then(|| self.own.after_unclosed())
    }

    fn image(&self) -> &Image {
        self.chain.image()
    }

    fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    fn lose(&self, why: OpenError) {
        let mut lost = lock(&self.lost);
        if lost.is_some() {
            return;
        }
        let event = VolumeEvent::Lost(why.to_string());
        *lost = Some(why);
        drop(lost);
        self.is_lost.store(true, Ordering::Release);
        self.events.notify(&event);
    }

    /// The last test before the medium.
    fn may_write(&self, fence: Fence) -> Result<(), IoError> {
        if !self.fences.is_current(fence) {
            return Err(IoError::Fenced);
        }
        if self.is_lost() {
            return Err(IoError::Unavailable);
        }
        Ok(())
    }

    /// Opens its files on this core.
    async fn files(&self, core: &CoreHandle) -> Result<Vec<Rc<dyn File>>, OpenError> {
        let mut files = Vec::with_capacity(self.places.len());
        for Place { path, how } in &self.places {
            let opened = core.files().open(path, *how).await;
            files.push(opened.map_err(|error| crate::disk::open_error(path, &error))?);
        }
        Ok(files)
    }

    /// Syncs the image's file: as [`DiskVolume`](crate::DiskVolume), whoever succeeds says so when
    /// the others of its time have not failed.
    async fn sync(&self, core: &CoreHandle, file: &Rc<dyn File>) -> io::Result<()> {
        let begun = self.syncs.begin();
        match file.submit(FileOp::Sync).await {
            Ok(_) => begun.succeeded(core).await,
            Err(error) => {
                self.sync_failed(&error);
                return Err(error);
            }
        }
        if self.is_lost() {
            return Err(io::Error::other("a sync of its time failed"));
        }
        Ok(())
    }

    fn sync_failed(&self, error: &io::Error) {
        self.lose(OpenError {
            kind: OpenErrorKind::of_io(error),
            cause: format!(
                "a sync of {} failed ({error}): what was acknowledged since the last good one may be lost",
                self.path().display()
            ),
            next_step: "check its disk or share; it is opened anew by itself".to_owned(),
        });
    }

    /// What a failure of an operation comes to.
    fn failed(&self, failure: &Failure, lba: units::Lba) -> IoError {
        match &failure.error {
            Error::NotDone if failure.lacked_space() => IoError::SpaceExhausted,
            Error::NotDone => IoError::Fenced,
            Error::Io | Error::Broken | Error::ForeignWriter => {
                let mut why = refused(self.path(), failure);
                if failure.error != Error::ForeignWriter {
                    why.next_step =
                        "check its disk or share; it is opened anew by itself".to_owned();
                }
                self.lose(why);
                IoError::Unavailable
            }
            Error::ReadOnly | Error::Refused(_) => IoError::WriteProtected,
            Error::OutOfRange | Error::InUse { .. } => IoError::Unavailable,
            Error::Truncated { .. }
            | Error::Damaged { .. }
            | Error::Unknown { .. }
            | Error::LogLost
            | Error::Parent(_)
            | Error::BadBlock { .. } => IoError::MediumError { lba },
        }
    }

    /// Does one operation that may change the tables.
    async fn change<'a, T>(
        self: &'a Arc<Self>,
        on: On<'_>,
        payload: Option<&Buf>,
        of: impl FnOnce(&'a Image) -> Operation<'a, T>,
    ) -> Result<T, IoError> {
        let mut turn = self.turn.lock().await;
        self.may_write(on.fence)?;
        self.own(&mut turn, on.core).await?;
        self.changed.store(true, Ordering::SeqCst);
        let done = self.drive(on, payload, of(self.image())).await;
        drop(turn);
        done.map_err(|failure| self.failed(&failure, on.lba))
    }

    async fn drive<T>(
        self: &Arc<Self>,
        on: On<'_>,
        payload: Option<&Buf>,
        operation: Operation<'_, T>,
    ) -> Result<T, Failure> {
        let sync = |file: &Rc<dyn File>| -> LocalFuture<io::Result<()>> {
            let (volume, core, file) = (Arc::clone(self), Rc::clone(on.core), Rc::clone(file));
            Box::pin(async move { volume.sync(&core, &file).await })
        };
        let driver = Driver {
            files: on.files,
            payload,
            may_write: &|| self.may_write(on.fence).is_ok(),
            sync: &sync,
        };
        driver.run(operation).await
    }

    /// The image is still ours, as far as that was asked a short while ago.
    async fn own(&self, turn: &mut Turn, core: &CoreHandle) -> Result<(), IoError> {
        let now = core.now();
        let is_due = turn
            .owned
            .is_none_or(|at| now.since(at) >= OWNER_INTERVAL || !self.image().is_claimed());
        if !is_due {
            return Ok(());
        }
        self.ask_owner(core).await?;
        turn.owned = Some(now);
        Ok(())
    }

    /// Reads the headers at the image's path, which is opened for that: what is there may be
    /// another file by now.
    async fn ask_owner(&self, core: &CoreHandle) -> Result<(), IoError> {
        let now = core.now().since(Now::default());
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        self.owned_at.store(now, Ordering::Relaxed);
        let sector = u64::from(self.shape().block_size.bytes());
        let opened = opening::open_file(core, self.path(), sector, Hold::Nothing).await;
        let (file, _) = opened.map_err(|why| {
            self.lose(why);
            IoError::Unavailable
        })?;
        let files = [file];
        let asked = Driver::of(&files).run(self.image().check_owner()).await;
        asked.map_err(|failure| {
            let mut why = refused(self.path(), &failure);
            if failure.error != Error::ForeignWriter && why.kind == OpenErrorKind::Fenced {
                why.kind = OpenErrorKind::Other;
            }
            self.lose(why);
            IoError::Unavailable
        })
    }

    /// After an error: whether the image can be reached and is ours.
    async fn inspect(&self, core: &CoreHandle) {
        let mut turn = self.turn.lock().await;
        if !self.is_lost() && self.ask_owner(core).await.is_ok() {
            turn.owned = Some(core.now());
        }
    }

    /// Whoever writes to places asks now and then, and waits for nothing.
    fn inspect_sometimes(self: &Arc<Self>, core: &CoreHandle) {
        let now = core.recent().since(Now::default());
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let last = self.owned_at.load(Ordering::Relaxed);
        let interval = u64::try_from(OWNER_INTERVAL.as_millis()).unwrap_or(u64::MAX);
        if now.saturating_sub(last) < interval {
            return;
        }
        self.owned_at.store(now, Ordering::Relaxed);
        let (volume, core) = (Arc::clone(self), Rc::clone(core));
        let own = Rc::clone(&core);
        own.spawn(Box::pin(async move { volume.inspect(&core).await }));
    }

    /// Everything that has ended is stable.
    async fn flush(self: &Arc<Self>, on: On<'_>) -> Result<(), IoError> {
        if self.is_lost() {
            return Err(IoError::Unavailable);
        }
        if !self.changed.load(Ordering::SeqCst) {
            let synced = self.sync(on.core, &on.files[0]).await;
            return synced.map_err(|_| IoError::Unavailable);
        }
        let ticket = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut turn = self.turn.lock().await;
        if self.is_lost() {
            return Err(IoError::Unavailable);
        }
        if turn.flushed >= ticket {
            return Ok(());
        }
        self.own(&mut turn, on.core).await?;
        let all = self.asked.load(Ordering::SeqCst);
        let flushed = self.drive(on, None, self.image().flush()).await;
        flushed.map_err(|failure| self.failed(&failure, on.lba))?;
        self.changed.store(false, Ordering::SeqCst);
        turn.flushed = all;
        drop(turn);
        self.reuse(on.core);
        Ok(())
    }

    /// Places that are free by now are used again when nobody uses them any more.
    fn reuse(self: &Arc<Self>, core: &CoreHandle) {
        if self.waits.swap(true, Ordering::SeqCst) {
            return;
        }
        let resting = self.image().resting();
        if resting.is_empty() {
            self.waits.store(false, Ordering::SeqCst);
            return;
        }
        let (volume, own) = (Arc::clone(self), Rc::clone(core));
        core.spawn(Box::pin(async move {
            volume.grace.wait(&own).await;
            volume.image().reuse(resting);
            volume.waits.store(false, Ordering::SeqCst);
        }));
    }

    /// Makes the disk larger, or smaller where nothing of its end has a place.
    ///
    /// # Errors
    /// Why not; the size is as it was.
    pub async fn resize(self: &Arc<Self>, core: &CoreHandle, bytes: u64) -> Result<(), OpenError> {
        let files = self.files(core).await?;
        let mut turn = self.turn.lock().await;
        let lost = || self.lost().expect("it was just lost");
        if let Some(why) = self.lost() {
            return Err(why);
        }
        self.own(&mut turn, core).await.map_err(|_| lost())?;
        self.changed.store(true, Ordering::SeqCst);
        let on = On::new(core, &files);
        let resized = self.drive(on, None, self.image().resize(bytes)).await;
        drop(turn);
        if let Err(failure) = resized {
            self.failed(&failure, units::Lba(0));
            return Err(refused(self.path(), &failure));
        }
        self.flush(on).await.map_err(|_| lost())?;
        let block = u64::from(self.shape().block_size.bytes());
        self.set_block_count(BlockCount(bytes / block));
        Ok(())
    }

    /// Has so many bytes at least: the disk becomes larger where it has fewer.
    ///
    /// # Errors
    /// Why not; the size is as it was.
    pub async fn grow(self: &Arc<Self>, core: &CoreHandle, bytes: u64) -> Result<(), OpenError> {
        let has = self.image().geometry().disk_bytes;
        if bytes > has {
            return self.resize(core, bytes).await;
        }
        if bytes > self.shape().byte_count().0 {
            // It could not be cut off once, and is there still.
            let block = u64::from(self.shape().block_size.bytes());
            self.set_block_count(BlockCount(has / block));
        }
        Ok(())
    }

    /// Gives back what is behind so many bytes of a LUN that had `was`, and makes the disk as small
    /// where that can be. What is behind the LUN's end was never its own: a disk that is larger
    /// than the LUN was stays as it is.
    ///
    /// # Errors
    /// It cannot be used any more.
    pub async fn cut(
        self: &Arc<Self>,
        core: &CoreHandle,
        was: u64,
        bytes: u64,
    ) -> Result<(), OpenError> {
        let end = self.image().geometry().disk_bytes;
        if bytes >= was || was != end {
            return Ok(());
        }
        let block = u64::from(self.shape().block_size.bytes());
        self.set_block_count(BlockCount(bytes / block));
        let files = self.files(core).await?;
        let on = On::new(core, &files);
        let given = self.change(on, None, |image| image.unmap(bytes, end - bytes));
        let refused = given.await.is_err();
        match self.lost() {
            Some(why) => Err(why),
            // A fixed image, or a child: the LUN ends before its image does.
            None if refused || self.resize(core, bytes).await.is_err() => Ok(()),
            None => Ok(()),
        }
    }

    fn set_block_count(&self, count: BlockCount) {
        let mut shape = lock(&self.shape);
        if shape.block_count == count {
            return;
        }
        shape.block_count = count;
        shape.epoch = Epoch(shape.epoch.0 + 1);
        let epoch = shape.epoch;
        self.block_count.store(count.0, Ordering::Release);
        drop(shape);
        self.events.notify(&VolumeEvent::Reshaped(epoch));
    }

    /// Flushes, and empties the log, so that other programs need not replay it. Nobody uses the
    /// volume any more.
    ///
    /// # Errors
    /// It could not be closed: whoever opens it next replays its log.
    pub async fn close(self: &Arc<Self>, core: &CoreHandle) -> Result<(), OpenError> {
        if let Some(why) = self.lost() {
            return Err(why);
        }
        if !self.image().is_claimed() {
            return Ok(());
        }
        let files = self.files(core).await?;
        let turn = self.turn.lock().await;
        if self.ask_owner(core).await.is_err() {
            return Err(self.lost().expect("it was just lost"));
        }
        let closed = self.drive(On::new(core, &files), None, self.image().close());
        let closed = closed.await;
        drop(turn);
        closed.map_err(|failure| refused(self.path(), &failure))
    }
}

/// On which core something is done, with which files, by whose right, and the block to name where
/// it fails.
#[derive(Clone, Copy)]
struct On<'a> {
    core: &'a CoreHandle,
    files: &'a [Rc<dyn File>],
    fence: Fence,
    lba: units::Lba,
}

impl<'a> On<'a> {
    fn new(core: &'a CoreHandle, files: &'a [Rc<dyn File>]) -> Self {
        Self {
            core,
            files,
            fence: Fence::default(),
            lba: units::Lba(0),
        }
    }
}

impl Volume for ImageVolume {
    fn shape(&self) -> Shape {
        *lock(&self.shape)
    }

    fn open(self: Arc<Self>, core: &CoreHandle) -> LocalFuture<Result<Rc<dyn Lane>, OpenError>> {
        let core = Rc::clone(core);
        Box::pin(async move {
            if let Some(why) = self.lost() {
                return Err(why);
            }
            let shape = self.shape();
            let files: Rc<[Rc<dyn File>]> = self.files(&core).await?.into();
            Ok(Rc::new(ImageLane {
                files,
                core,
                volume: self,
                shape,
            }) as Rc<dyn Lane>)
        })
    }

    fn events(self: Arc<Self>, _core: &CoreHandle) -> Rc<dyn VolumeEvents> {
        self.events.follow()
    }
}
