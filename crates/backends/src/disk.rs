//! A volume in a file or on a block device.
//!
//! **Contract.** Every lane has the file open; lanes share descriptors where I/O is direct. A write
//! reaches the file in the poll that tested its fence. Stable writes are stable by themselves
//! (RWF_DSYNC); everything else by flushes.
//!
//! **Failure model.** No space: `SpaceExhausted`, nothing lost. A failed read or write:
//! `MediumError` at the start of its range (the kernel does not say which block). A failed sync:
//! from then on every mutation is answered `WriteProtected`, and `MediumError` every flush and what
//! was under way and is not stable by itself, on all cores, until the volume is opened anew,
//! because the kernel forgets failed pages and would let the next sync succeed. One that succeeds
//! beside it is answered when that is known ([`crate::syncs`]). A stable write through the page
//! cache counts as a sync. Where it failed for want of space, mutations are answered
//! `SpaceExhausted` from then on, and nothing else is different: what was not synced before may be
//! lost, and a flush that says "full" would be asked again by hosts that take it for done later.

use crate::memory::push_extent;
use crate::syncs::{SyncGuard, Syncs};
use env::{
    Access, Answer, CoreHandle, Create, Durable, File, FileDone, FileFacts, FileKind, FileOp,
    LocalFuture, OpenHow, detach,
};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};
use volume::{
    Caps, Done, Durability, Epoch, ExtentKind, ExtentList, Fence, Fences, Followers, Io, IoError,
    IoFuture, IoResult, Lane, Limits, Op, OpenError, OpenErrorKind, Provision, Shape, Support,
    Volume, VolumeEvent, VolumeEvents, Zeroing,
};

/// Bytes of zeroes in one write, where a range cannot be zeroed otherwise.
const ZERO_CHUNK_BYTES: u64 = 1 << 20;

/// errno(3): too many open files in this process, and in the system.
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;

/// What to do where there are no descriptors left.
pub const TOO_MANY_FILES: &str = "the limit of open files is reached: a LUN in a file or on a device takes two, a session \
     one; raise it (LimitNOFILE in the systemd unit, ulimit -Hn) and restart";

/// Whether space is taken when the file is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Provisioning {
    /// When it is written; discards give it back.
    Thin,
    /// At once; discards do nothing.
    Thick,
}

/// A file as a volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileSpec {
    /// The file or device.
    pub path: PathBuf,
    /// Bytes in a logical block.
    pub block_size: BlockSize,
    /// Logical blocks in a physical one, as a power of two: 3 for 512e.
    pub physical_block_exponent: u8,
    /// Thin or thick.
    pub provisioning: Provisioning,
}

/// A volume in a file or on a block device; made by [`crate::open_file`] and [`crate::open_block`].
pub struct DiskVolume {
    pub(crate) path: PathBuf,
    pub(crate) how: OpenHow,
    pub(crate) provisioning: Provisioning,
    fences: Fences,
    shape: Mutex<Shape>,
    /// The size now, for lanes that are older than a change.
    block_count: AtomicU64,
    /// A sync has failed.
    broken: AtomicBool,
    pub(crate) syncs: Arc<Syncs>,
    /// Every one that has failed found no space.
    lacked_space: AtomicBool,
    events: Followers,
    sector_bytes: u32,
}

impl DiskVolume {
    pub(crate) fn new(
        path: PathBuf,
        how: OpenHow,
        provisioning: Provisioning,
        fences: Fences,
        shape: Shape,
        sector_bytes: u32,
    ) -> Arc<Self> {
        Arc::new(Self {
            path,
            how,
            provisioning,
            fences,
            block_count: AtomicU64::new(shape.block_count.0),
            shape: Mutex::new(shape),
            broken: AtomicBool::new(false),
            syncs: Arc::default(),
            lacked_space: AtomicBool::new(true),
            events: Followers::default(),
            sector_bytes,
        })
    }

    /// A sync has failed: the volume must be opened anew.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// A sync has failed because there was no space.
    #[must_use]
    pub fn lacked_space(&self) -> bool {
        self.is_broken() && self.lacked_space.load(Ordering::Acquire)
    }

    /// The error of mutations since.
    fn why_refused(&self) -> IoError {
        if self.lacked_space() {
            IoError::SpaceExhausted
        } else {
            IoError::WriteProtected
        }
    }

    /// The path it was opened at.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the storage below writes as a whole, as far as it reports: the physical sector of a
    /// device; the unit in which a file's disk is written where that is known, else 512. A power
    /// cut may mix a larger block.
    #[must_use]
    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// It writes past the page cache.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.how.direct
    }

    pub(crate) fn set_block_count(&self, block_count: BlockCount) -> Epoch {
        let mut shape = self.lock_shape();
        if shape.block_count == block_count {
            return shape.epoch;
        }
        shape.block_count = block_count;
        shape.epoch = Epoch(shape.epoch.0 + 1);
        let epoch = shape.epoch;
        self.block_count.store(block_count.0, Ordering::Release);
        drop(shape);
        self.events.notify(&VolumeEvent::Reshaped(epoch));
        epoch
    }

    fn lock_shape(&self) -> MutexGuard<'_, Shape> {
        self.shape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A sync that has ended in `result`: what it may say.
    ///
    /// # Errors
    /// It failed, or another one of its time did, which may have taken the error of this one.
    pub(crate) async fn synced(
        &self,
        begun: SyncGuard,
        result: io::Result<()>,
        core: &CoreHandle,
    ) -> io::Result<()> {
        match result {
            Ok(()) => begun.succeeded(core).await,
            Err(error) => {
                self.sync_failed(&error);
                return Err(error);
            }
        }
        if self.is_broken() {
            return Err(io::Error::other("a sync of its time failed"));
        }
        Ok(())
    }

    fn sync_failed(&self, error: &io::Error) {
        // Of several that fail at once for different reasons it is not the harmless one that
        // counts.
        self.lacked_space
            .fetch_and(is_full(error), Ordering::AcqRel);
        if !self.broken.swap(true, Ordering::AcqRel) {
            let next_step = if self.lacked_space() {
                "make room where it lies: a LUN on a file is opened anew by itself then"
            } else {
                "check the disk, then take the volume offline and online"
            };
            self.events.notify(&VolumeEvent::Lost(format!(
                "a sync of {} failed ({error}): what was acknowledged since the last good one may be \
                 lost; {next_step}",
                self.path.display()
            )));
        }
    }
}

/// The facts of a volume on such a file.
pub(crate) fn shape_of(
    facts: &FileFacts,
    block_size: BlockSize,
    block_count: BlockCount,
    physical_block_exponent: u8,
    provisioning: Provisioning,
) -> Shape {
    let block = u64::from(block_size.bytes());
    let punches = facts.discard_granularity > 0;
    let thin = provisioning == Provisioning::Thin;
    let discards = punches && thin;
    let support = |yes| {
        if yes {
            Support::Native
        } else {
            Support::Absent
        }
    };
    let granularity = u64::from(facts.discard_granularity).max(block) / block;
    Shape {
        block_size,
        block_count,
        physical_block_exponent,
        limits: Limits {
            transfer_blocks_max: BlockCount((16 << 20) / block),
            discard_blocks_max: BlockCount(if discards { (4 << 30) / block } else { 0 }),
            discard_granularity: BlockCount(granularity),
            discard_alignment: BlockCount(0),
            write_zeroes_blocks_max: BlockCount((1 << 30) / block),
            compare_and_write_blocks_max: BlockCount(0),
            // A file system or disk promises nothing beyond its sectors.
            atomic_blocks_max: BlockCount(0),
            in_flight_max: 1024,
            memory_alignment: facts.alignment.max(1),
            payload_piece_bytes: 0,
        },
        caps: Caps {
            writable: true,
            // Only a sync or a stable write makes it stable, with and without the page cache.
            volatile_cache: true,
            stable_write: Support::Native,
            discard: support(discards),
            discard_reads_zero: discards && facts.discard_reads_zero,
            anchor: Support::Absent,
            write_zeroes: if punches {
                Support::Native
            } else {
                Support::Emulated
            },
            compare_and_write: Support::Absent,
            extents: support(facts.kind == FileKind::Regular),
            changed_blocks: Support::Absent,
        },
        epoch: Epoch(0),
    }
}

/// An operator's words for a file that cannot be opened.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "std's list of kinds grows; what is not named is treated alike"
)]
pub(crate) fn open_error(path: &Path, error: &io::Error) -> OpenError {
    let path = path.display();
    if let Some(EMFILE | ENFILE) = error.raw_os_error() {
        return OpenError {
            kind: OpenErrorKind::of_io(error),
            cause: format!("{path} cannot be opened: {error}"),
            next_step: TOO_MANY_FILES.to_owned(),
        };
    }
    let (cause, next_step) = match error.kind() {
        io::ErrorKind::NotFound => (
            format!("{path} does not exist"),
            "bring the file or device back (mount its file system, plug it in), or delete the LUN",
        ),
        io::ErrorKind::PermissionDenied => (
            format!("{path} may not be opened by this user"),
            "give the daemon's user read and write permission",
        ),
        io::ErrorKind::WouldBlock => (
            format!("{path} is in use: {error}"),
            "unmount it or stop what uses it, another causeway included",
        ),
        _ => (
            format!("{path} cannot be opened: {error}"),
            "check the disk and the kernel's log",
        ),
    };
    OpenError {
        kind: OpenErrorKind::of_io(error),
        cause,
        next_step: next_step.to_owned(),
    }
}

/// An operator's words for a file or device that has `len` bytes and must have `wanted`.
#[must_use]
pub fn end_is_missing(path: &Path, len: u64, wanted: u64) -> OpenError {
    let path = path.display();
    OpenError {
        kind: OpenErrorKind::Damaged,
        cause: format!("{path} has {len} bytes, fewer than the {wanted} that it must have"),
        next_step: format!(
            "bring the whole file or device back: its end is missing; where it is lost for good, make it as large as it was, which puts \
             zeroes there (of a file: truncate -s {wanted} {path})"
        ),
    }
}

impl Volume for DiskVolume {
    fn shape(&self) -> Shape {
        *self.lock_shape()
    }

    fn open(self: Arc<Self>, core: &CoreHandle) -> LocalFuture<Result<Rc<dyn Lane>, OpenError>> {
        let core = Rc::clone(core);
        Box::pin(async move {
            let shape = self.shape();
            let opened = core.files().open(&self.path, self.how).await;
            let file = opened.map_err(|error| open_error(&self.path, &error))?;
            let len = match file.submit(FileOp::Len).await {
                Ok(FileDone::Len(len)) => len,
                Ok(other) => unreachable!("{other:?} is no length"),
                Err(error) => return Err(open_error(&self.path, &error)),
            };
            if len < shape.byte_count().0 {
                return Err(end_is_missing(&self.path, len, shape.byte_count().0));
            }
            Ok(Rc::new(DiskLane {
                file,
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

#[derive(Clone)]
struct DiskLane {
    file: Rc<dyn File>,
    core: CoreHandle,
    volume: Arc<DiskVolume>,
    shape: Shape,
}

/// There is no room in the file system, or none for this user.
fn is_full(error: &io::Error) -> bool {
    let full = [
        io::ErrorKind::StorageFull,
        io::ErrorKind::QuotaExceeded,
        io::ErrorKind::FileTooLarge,
    ];
    full.contains(&error.kind())
}

/// The waist's word for what the system said.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "std's list of kinds grows; what is not named is treated alike"
)]
pub(crate) fn io_error(error: &io::Error, range: LbaRange) -> IoError {
    match error.kind() {
        _ if is_full(error) => IoError::SpaceExhausted,
        io::ErrorKind::ReadOnlyFilesystem => IoError::WriteProtected,
        io::ErrorKind::TimedOut => IoError::TimedOut,
        io::ErrorKind::OutOfMemory | io::ErrorKind::WouldBlock => IoError::Busy,
        io::ErrorKind::NotFound => IoError::Unavailable,
        _ => IoError::MediumError { lba: range.start() },
    }
}

impl DiskLane {
    fn byte(&self, lba: Lba) -> u64 {
        lba.0 * u64::from(self.shape.block_size.bytes())
    }

    /// The last test before the medium; the submission follows in the same poll.
    fn may_write(&self, fence: Fence) -> Result<(), IoError> {
        if !self.volume.fences.is_current(fence) {
            return Err(IoError::Fenced);
        }
        if self.volume.is_broken() {
            return Err(self.volume.why_refused());
        }
        Ok(())
    }

    fn read(&self, range: LbaRange, into: Option<units::BufMut>) -> IoFuture {
        let bytes = self.shape.bytes_in(range);
        let into = match into.map_or_else(|| self.core.pool().alloc(bytes), Ok) {
            Ok(into) => into,
            Err(units::Exhausted) => return Answer::ready(Err(IoError::Busy)),
        };
        let offset = self.byte(range.start());
        let answer = self.file.submit(FileOp::Read { offset, into });
        Answer::wait(async move {
            match answer.await {
                Ok(FileDone::Read(data)) => Ok(Done::Data(data.freeze())),
                Ok(other) => unreachable!("{other:?} is no data"),
                Err(error) => Err(io_error(&error, range)),
            }
        })
    }

    fn write(&self, range: LbaRange, data: Buf, durability: Durability, fence: Fence) -> IoFuture {
        if let Err(error) = self.may_write(fence) {
            return Answer::ready(Err(error));
        }
        let answer = self.file.submit(FileOp::Write {
            offset: self.byte(range.start()),
            data,
            durable: durable(durability),
        });
        let volume = Arc::clone(&self.volume);
        if durability == Durability::Stable && !volume.is_direct() {
            return self.written_and_synced(range, answer);
        }
        Answer::wait(async move {
            match answer.await {
                // A sync that failed meanwhile may have thrown away what this one wrote, and it
                // would be reported to nobody any more.
                Ok(_) if durability == Durability::Cached && volume.is_broken() => {
                    Err(IoError::MediumError { lba: range.start() })
                }
                Ok(_) => Ok(Done::Nothing),
                Err(error) => Err(io_error(&error, range)),
            }
        })
    }

    /// A stable write through the page cache ends with a sync, which fails for whatever of the file
    /// could not be written back, and takes that error from later syncs. A lack of space is
    /// reported before anything was written.
    fn written_and_synced(
        &self,
        range: LbaRange,
        answer: Answer<io::Result<FileDone>>,
    ) -> IoFuture {
        let (volume, core) = (Arc::clone(&self.volume), Rc::clone(&self.core));
        let begun = volume.syncs.begin();
        detach(&self.core, async move {
            let synced = match answer.await {
                Err(error) if is_full(&error) => Err(error),
                ended => volume.synced(begun, ended.map(|_| ()), &core).await,
            };
            match synced {
                Ok(()) => Ok(Done::Nothing),
                Err(error) => Err(io_error(&error, range)),
            }
        })
    }

    async fn write_zeroes(
        self,
        range: LbaRange,
        zeroing: Zeroing,
        durability: Durability,
        fence: Fence,
    ) -> IoResult {
        let (offset, end) = (self.byte(range.start()), self.byte(range.end()));
        let len = end - offset;
        let thin = self.volume.provisioning == Provisioning::Thin;
        let op = if thin && zeroing == Zeroing::MayUnmap {
            FileOp::PunchHole { offset, len }
        } else {
            FileOp::ZeroRange { offset, len }
        };
        self.may_write(fence)?;
        match self.file.submit(op).await {
            Ok(_) => self.after(durability, range).await,
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                self.write_out_zeroes(range, durability, fence).await
            }
            Err(error) => Err(io_error(&error, range)),
        }
    }

    async fn write_out_zeroes(
        &self,
        range: LbaRange,
        durability: Durability,
        fence: Fence,
    ) -> IoResult {
        let chunk = ZERO_CHUNK_BYTES / u64::from(self.shape.block_size.bytes());
        let mut at = range.start();
        while at < range.end() {
            let end = Lba(range.end().0.min(at.0 + chunk));
            let part = LbaRange::between(at, end).expect("`at` is before the end");
            let zeroes = Buf::zeroes(self.shape.bytes_in(part));
            self.write(part, zeroes, durability, fence).await?;
            at = end;
        }
        Ok(Done::Nothing)
    }

    async fn discard(self, range: LbaRange, durability: Durability, fence: Fence) -> IoResult {
        let unit = self.shape.limits.discard_granularity.0;
        let start = Lba(range.start().0.next_multiple_of(unit));
        let end = Lba(range.end().0 - range.end().0 % unit);
        self.may_write(fence)?;
        if start < end {
            let offset = self.byte(start);
            let len = self.byte(end) - offset;
            match self.file.submit(FileOp::PunchHole { offset, len }).await {
                Ok(_) => {}
                // It is advice.
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
                Err(error) => return Err(io_error(&error, range)),
            }
        }
        self.after(durability, range).await
    }

    /// Makes stable what no stable form of the operation exists for.
    async fn after(&self, durability: Durability, range: LbaRange) -> IoResult {
        let lba = range.start();
        match durability {
            Durability::Cached if self.volume.is_broken() => Err(IoError::MediumError { lba }),
            Durability::Cached => Ok(Done::Nothing),
            Durability::Stable => self.sync(range.start()).await,
        }
    }

    fn sync(&self, lba: Lba) -> IoFuture {
        if self.volume.is_broken() {
            return Answer::ready(Err(IoError::MediumError { lba }));
        }
        let begun = self.volume.syncs.begin();
        let (answer, volume) = (self.file.submit(FileOp::Sync), Arc::clone(&self.volume));
        let core = Rc::clone(&self.core);
        // Detached: a sync that fails must be known even if nobody waits for it.
        detach(&self.core, async move {
            let synced = volume.synced(begun, answer.await.map(|_| ()), &core);
            match synced.await {
                Ok(()) => Ok(Done::Nothing),
                Err(_) => Err(IoError::MediumError { lba }),
            }
        })
    }

    fn extents(&self, range: LbaRange) -> IoFuture {
        if self.volume.provisioning == Provisioning::Thick {
            let mut all = ExtentList::new();
            push_extent(&mut all, range.start(), range.end(), ExtentKind::Mapped);
            return Answer::ready(Ok(Done::Extents(all)));
        }
        let offset = self.byte(range.start());
        let len = self.byte(range.end()) - offset;
        let answer = self.file.submit(FileOp::Extents { offset, len });
        let block = u64::from(self.shape.block_size.bytes());
        Answer::wait(async move {
            match answer.await {
                Ok(FileDone::Extents(found)) => Ok(Done::Extents(in_blocks(range, &found, block))),
                Ok(other) => unreachable!("{other:?} are no extents"),
                Err(error) => Err(io_error(&error, range)),
            }
        })
    }
}

/// Extents of a file as extents of blocks: a block with one allocated byte is mapped.
fn in_blocks(range: LbaRange, found: &[env::Extent], block: u64) -> ExtentList {
    let mut list = ExtentList::new();
    let mut at = range.start();
    for extent in found {
        let end = extent.offset + extent.len;
        let (end, kind) = if extent.allocated {
            (end.div_ceil(block), ExtentKind::Mapped)
        } else {
            (end / block, ExtentKind::Deallocated)
        };
        let end = Lba(end.min(range.end().0));
        if end <= at {
            continue;
        }
        if !push_extent(&mut list, at, end, kind) {
            break;
        }
        at = end;
    }
    if list.is_empty() {
        // Holes smaller than a block: it is mapped, as far as anybody can say.
        let end = Lba(at.0 + 1);
        push_extent(&mut list, at, end, ExtentKind::Mapped);
    }
    list
}

const fn durable(durability: Durability) -> Durable {
    match durability {
        Durability::Cached => Durable::No,
        Durability::Stable => Durable::Yes,
    }
}

impl Lane for DiskLane {
    fn submit(&self, io: Io) -> IoFuture {
        let (op, origin) = io.into_parts();
        let fence = origin.fence;
        if let Some(range) = op.range()
            && range.end().0 > self.volume.block_count.load(Ordering::Acquire)
        {
            // The volume has shrunk under this lane: a write would make the file longer again.
            return Answer::ready(Err(IoError::Unavailable));
        }
        match op {
            Op::Read { range, into } => self.read(range, into),
            Op::Write {
                range,
                data,
                durability,
            } => self.write(range, data, durability, fence),
            Op::WriteZeroes {
                range,
                zeroing,
                durability,
            } => {
                let work = self.clone().write_zeroes(range, zeroing, durability, fence);
                detach(&self.core, work)
            }
            Op::Discard {
                range,
                to,
                durability,
            } => {
                assert!(to != Provision::Anchored, "announced as absent");
                detach(&self.core, self.clone().discard(range, durability, fence))
            }
            Op::CompareAndWrite { .. } => unreachable!("announced as absent"),
            Op::Extents { range, .. } => self.extents(range),
            Op::Flush => self.sync(Lba(0)),
        }
    }
}

/// How a volume's file is opened.
pub(crate) const fn how(direct: bool) -> OpenHow {
    OpenHow {
        access: Access::ReadWrite,
        create: Create::No,
        direct,
        lock: true,
    }
}
