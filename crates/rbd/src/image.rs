//! An open image as a volume.
//!
//! **Contract.** It has the exclusive lock from its opening to its closing. A write reaches librbd
//! in the poll that tested its fence. What is answered has been committed by the OSDs: cached and
//! stable writes are the same, and a flush has nothing left to do. An operation that the cluster
//! does not answer waits, and is never given up here: it may still be done.
//!
//! **Failure model.** A full pool: `SpaceExhausted`, nothing is lost, and what frees space still
//! works. A client that was shut out (somebody took its lock): `Fenced` for every operation of
//! every image of the connection, for good: it is reported once, and only a new connection serves
//! again. A cluster that does not answer: operations wait.

use crate::cluster::{Cluster, without_lock};
use crate::error::{ErrorKind, RbdError, blocklisted, unreachable};
use crate::facts::{broken_promise, shape};
use crate::ffi::{self, Connection, EXCLUSIVE_LOCK, Errno, Facts};
use crate::identity::Identity;
use crate::lock::{self, Refusal};
use env::{CoreHandle, in_time};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use units::{BlockCount, BlockSize, ByteCount};
use volume::{Epoch, Fences, Followers, IoError, Shape, VolumeEvent, VolumeEvents};

/// Bytes of an image that one question about what is allocated is about.
const ASKED_BYTES: u64 = 16 << 30;

/// An image as a volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageSpec {
    /// Its name in the pool.
    pub name: String,
    /// Bytes in a logical block.
    pub block_size: BlockSize,
    /// Logical blocks in a physical one, as a power of two: 3 for 512e.
    pub physical_block_exponent: u8,
}

/// An open image. Dropping it closes it some time later; [`Image::close`] waits for that.
pub struct Image {
    spec: ImageSpec,
    cluster: Arc<Cluster>,
    /// `None` once it is being closed.
    open: Mutex<Option<Arc<ffi::ImageHandle>>>,
    facts: Facts,
    identity: Identity,
    fences: Fences,
    shape: Mutex<Shape>,
    /// The size now, for lanes that are older than a change.
    block_count: AtomicU64,
    /// That it was lost has been reported.
    is_lost: AtomicBool,
    followers: Followers,
    /// Somebody has changed the image, or it is gone.
    changed: Arc<Notify>,
}

/// What an opening finds.
struct Found {
    image: ffi::ImageHandle,
    facts: Facts,
    options: BTreeMap<String, String>,
    identity: Identity,
}

impl Found {
    fn open(
        connection: &Arc<Connection>,
        name: &str,
        reported: &Arc<Notify>,
    ) -> Result<Self, Errno> {
        let image = ffi::ImageHandle::open(connection, name, reported)?;
        Ok(Self {
            facts: image.facts()?,
            options: image.options()?,
            identity: Identity::read(&image)?,
            image,
        })
    }
}

impl Image {
    /// Opens an image and takes its exclusive lock.
    ///
    /// # Errors
    /// [`ErrorKind::NoImage`]; [`ErrorKind::Locked`] with the holder, also for some time after a
    /// holder has died (30 s; it is to be tried again); [`ErrorKind::Unsuitable`];
    /// [`ErrorKind::Unreachable`]; [`ErrorKind::Blocklisted`].
    pub async fn open(
        core: &CoreHandle,
        cluster: &Arc<Cluster>,
        spec: ImageSpec,
        fences: Fences,
    ) -> Result<Arc<Self>, RbdError> {
        let changed = Arc::new(Notify::new());
        let (name, reported) = (spec.name.clone(), Arc::clone(&changed));
        let what = cluster.name_of(&spec.name);
        let question = move |it: &Arc<Connection>| Found::open(it, &name, &reported);
        let found = cluster.ask(core, "opening", &what, question).await?;
        suits(cluster, &spec, &found)?;
        let open = locked(core, cluster, &what, found.image).await?;
        let (facts, shape) = facts_and_shape(core, cluster, &spec, &open).await?;
        let image = Arc::new(Self {
            spec,
            cluster: Arc::clone(cluster),
            open: Mutex::new(Some(open)),
            facts,
            identity: found.identity,
            fences,
            block_count: AtomicU64::new(shape.block_count.0),
            shape: Mutex::new(shape),
            is_lost: AtomicBool::new(false),
            followers: Followers::default(),
            changed,
        });
        image.follow(core);
        Ok(image)
    }

    /// What it was opened as.
    #[must_use]
    pub fn spec(&self) -> &ImageSpec {
        &self.spec
    }

    /// The connection that it is open on.
    #[must_use]
    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// The cluster's own id for it, which a renaming leaves.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.facts.id
    }

    /// Whose it was when it was opened.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(crate) fn fences(&self) -> &Fences {
        &self.fences
    }

    pub(crate) fn shape_now(&self) -> Shape {
        *lock(&self.shape)
    }

    pub(crate) fn follow_events(&self) -> Rc<dyn VolumeEvents> {
        self.followers.follow()
    }

    pub(crate) fn block_count(&self) -> u64 {
        self.block_count.load(Ordering::Acquire)
    }

    /// For one operation; `None` once it is being closed.
    pub(crate) fn open_image(&self) -> Option<Arc<ffi::ImageHandle>> {
        lock(&self.open).clone()
    }

    pub(crate) fn what(&self) -> String {
        self.cluster.name_of(&self.spec.name)
    }

    pub(crate) fn open_or_error(&self) -> Result<Arc<ffi::ImageHandle>, RbdError> {
        self.open_image().ok_or_else(|| {
            let cause = format!("{} was closed", self.what());
            RbdError::new(ErrorKind::Invalid, cause, "open it again")
        })
    }

    /// Makes it longer; what is added reads as zeroes, and takes no space. Answers the epoch of the
    /// new size.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] where `size` is smaller than now, and what else the cluster says.
    pub async fn grow(&self, size: ByteCount) -> Result<Epoch, RbdError> {
        self.resize(size, false).await
    }

    /// Makes it shorter. What is cut off is gone; the caller has made sure that nobody uses it. The
    /// new size is in force before anything is cut.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] where `size` is not one block or larger than now, and what else the
    /// cluster says.
    pub async fn shrink(&self, size: ByteCount) -> Result<Epoch, RbdError> {
        let now = self.shape_now();
        let blocks = size.blocks_floor(now.block_size);
        if size > now.byte_count() || blocks == BlockCount(0) {
            return Err(self.no_such_size(size));
        }
        self.set_block_count(blocks);
        self.resize(size, true).await
    }

    fn no_such_size(&self, size: ByteCount) -> RbdError {
        let cause = format!("{} cannot have {} bytes", self.what(), size.0);
        RbdError::new(ErrorKind::Invalid, cause, "choose another size")
    }

    async fn resize(&self, size: ByteCount, may_shrink: bool) -> Result<Epoch, RbdError> {
        if !may_shrink && size < self.shape_now().byte_count() {
            return Err(self.no_such_size(size));
        }
        let open = self.open_or_error()?;
        let change = move |_: &Arc<Connection>| {
            open.resize(size.0, may_shrink)?;
            open.facts()
        };
        let facts = self
            .cluster
            .change("resizing", &self.what(), change)
            .await?;
        Ok(self.set_size(facts.size))
    }

    /// Bytes that its objects take, by whole objects and without copies. Without a map of its
    /// objects (feature fast-diff) each of them is asked for.
    ///
    /// # Errors
    /// What the cluster says.
    pub async fn allocated(&self) -> Result<ByteCount, RbdError> {
        let (mut at, mut sum) = (0, 0);
        loop {
            let size = self.shape_now().byte_count().0;
            if at >= size {
                return Ok(ByteCount(sum));
            }
            let (open, len) = (self.open_or_error()?, ASKED_BYTES.min(size - at));
            let question = move |_: &Arc<Connection>| open.regions(at, len);
            let what = self.what();
            let regions = self.cluster.change("measuring", &what, question).await?;
            let there = regions.into_iter().filter(|it| it.exists);
            sum += there.map(|it| it.len).sum::<u64>();
            at += len;
        }
    }

    /// Makes the image say this of whose it is.
    ///
    /// # Errors
    /// What the cluster says.
    pub async fn set_identity(&self, identity: Identity) -> Result<(), RbdError> {
        let open = self.open_or_error()?;
        let change = move |_: &Arc<Connection>| identity.write(&open);
        self.cluster.change("naming", &self.what(), change).await
    }

    /// Lets no operation begin any more, waits for those in flight, gives the lock back and closes
    /// the image. Whoever opens it next finds no lock.
    pub async fn close(&self) {
        let open = lock(&self.open).take();
        let Some(open) = open else { return };
        let closed = open.closed();
        drop(open);
        // The sender goes only with the image.
        let _closed = closed.await;
    }

    /// An operation ended so: what that says of the image as a whole is reported, once.
    pub(crate) fn has_failed(&self, error: IoError) {
        let why = match error {
            IoError::Fenced => {
                self.cluster.was_shut_out();
                blocklisted(&self.what()).to_string()
            }
            IoError::WriteProtected => format!(
                "{} may not be written any more: its exclusive lock is lost, or this user's right (open it again, and check \
                 rbd status and ceph auth get)",
                self.what()
            ),
            IoError::MediumError { .. }
            | IoError::Integrity { .. }
            | IoError::Miscompare { .. }
            | IoError::SpaceExhausted
            | IoError::Unavailable
            | IoError::TimedOut
            | IoError::Aborted
            | IoError::Transition
            | IoError::Busy => return,
        };
        if !self.is_lost.swap(true, Ordering::AcqRel) {
            self.followers.notify(&VolumeEvent::Lost(why));
        }
    }

    fn set_size(&self, size: u64) -> Epoch {
        let block_size = self.shape_now().block_size;
        self.set_block_count(ByteCount(size).blocks_floor(block_size))
    }

    fn set_block_count(&self, block_count: BlockCount) -> Epoch {
        let mut shape = lock(&self.shape);
        // An image of no block is no volume; it stays what it was, and its blocks are not there.
        self.block_count.store(block_count.0, Ordering::Release);
        if shape.block_count == block_count || block_count == BlockCount(0) {
            return shape.epoch;
        }
        shape.block_count = block_count;
        shape.epoch = Epoch(shape.epoch.0 + 1);
        let epoch = shape.epoch;
        drop(shape);
        self.followers.notify(&VolumeEvent::Reshaped(epoch));
        epoch
    }

    /// Reads the image's size whenever somebody has changed it, until it is gone.
    fn follow(self: &Arc<Self>, core: &CoreHandle) {
        let (image, changed) = (Arc::downgrade(self), Arc::clone(&self.changed));
        core.spawn(Box::pin(async move {
            loop {
                changed.notified().await;
                let Some(image) = image.upgrade() else {
                    return;
                };
                image.refresh().await;
            }
        }));
    }

    async fn refresh(&self) {
        let Some(open) = self.open_image() else {
            return;
        };
        let threads = open.connection.threads.clone();
        // What cannot be asked now is asked at the next change.
        if let Ok(facts) = threads.call(move || open.facts()).await {
            self.set_size(facts.size);
        }
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What it is, now that it is ours: before, it may have been resized.
async fn facts_and_shape(
    core: &CoreHandle,
    cluster: &Arc<Cluster>,
    spec: &ImageSpec,
    open: &Arc<ffi::ImageHandle>,
) -> Result<(Facts, Shape), RbdError> {
    let what = cluster.name_of(&spec.name);
    let (asked, block) = (Arc::clone(open), spec.block_size.bytes());
    let question = move |_: &Arc<Connection>| {
        let facts = asked.facts()?;
        // librbd of Ceph 16 and 17 compares 512 bytes at most, that of 18 a block of any size.
        let compares = facts.size >= u64::from(block) && asked.can_compare(block as usize)?;
        Ok((facts, compares))
    };
    let (facts, compares) = cluster.ask(core, "reading", &what, question).await?;
    let exponent = spec.physical_block_exponent;
    let shape = shape(&facts, spec.block_size, exponent, compares);
    if shape.block_count == BlockCount(0) {
        return Err(not_one_block(&what, facts.size));
    }
    Ok((facts, shape))
}

fn not_one_block(what: &str, size: u64) -> RbdError {
    let cause = format!("{what} has {size} bytes: not one block");
    RbdError::new(ErrorKind::Unsuitable, cause, "resize it (rbd resize)")
}

/// It can be a volume that keeps its promises.
fn suits(cluster: &Cluster, spec: &ImageSpec, found: &Found) -> Result<(), RbdError> {
    let what = cluster.name_of(&spec.name);
    let pool = &cluster.spec().pool;
    if found.facts.features & EXCLUSIVE_LOCK == 0 {
        return Err(without_lock(&what, pool, &spec.name));
    }
    if let Some((option, value)) = broken_promise(&found.options) {
        return Err(RbdError::new(
            ErrorKind::Unsuitable,
            format!(
                "{what} has {option} = {value} in its own options or its pool's, which breaks a promise to hosts"
            ),
            format!(
                "rbd config image rm {pool}/{} {option}, or rbd config pool rm {pool} {option}",
                spec.name
            ),
        ));
    }
    Ok(())
}

/// The image, with its lock.
async fn locked(
    core: &CoreHandle,
    cluster: &Arc<Cluster>,
    what: &str,
    image: ffi::ImageHandle,
) -> Result<Arc<ffi::ImageHandle>, RbdError> {
    let image = Arc::new(image);
    let taken = Arc::clone(&image);
    let threads = &cluster.connection().threads;
    let taking = threads.call(move || lock::take(&taken));
    let patience = cluster.spec().patience;
    // A lock that comes later goes with the image, which nobody has then.
    match in_time(core, patience, taking).await {
        None => Err(unreachable("locking", what, patience.as_secs())),
        Some(Ok(())) => Ok(image),
        Some(Err(Refusal::Failed(errno))) => Err(cluster.error("locking", what, errno)),
        Some(Err(Refusal::Held(holder))) => {
            let cause = format!("{what} is in use: {holder} has its exclusive lock");
            let next_step = "stop the other one, and it is opened within 30 s; or take the lock away from it, which shuts it out \
                             of the cluster";
            Err(RbdError::new(ErrorKind::Locked(holder), cause, next_step))
        }
    }
}
