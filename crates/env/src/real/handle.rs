//! An open file of the operating system, what is known of it, and the lock that goes with it.

use super::syncs::Syncs;
use crate::file::{Access, Create, FileFacts, FileKind, OpenHow};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType, FlockOperation, Mode, OFlags, StatxFlags,
};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Alignment for direct I/O where the kernel does not report it (before Linux 6.1): enough for any
/// disk.
const ALIGNMENT_UNREPORTED: u32 = 4096;

/// An open file. Whoever has work in the kernel keeps one.
pub(super) struct Handle {
    pub(super) fd: OwnedFd,
    pub(super) facts: FileFacts,
    /// Of the description that is synced.
    pub(super) syncs: Arc<Syncs>,
    lock: Option<Arc<Lock>>,
}

/// The lock of one file, held by this runtime as a whole.
///
/// Its description is also the one that is synced: it sees no error taken away by a write.
pub(super) struct Lock {
    fd: OwnedFd,
    /// Others may read the file under a lock of theirs, and nobody may write it.
    is_shared: bool,
    syncs: Arc<Syncs>,
    /// Given up after the descriptor was closed: fields are dropped in their order.
    _place: LockPlace,
}

/// Files that are open for direct I/O under a lock, each on one descriptor for all cores:
/// descriptors are not to grow with cores. Through the page cache every core has a description of
/// its own, because a stable write that fails takes the error away from those beside it on the same
/// one.
#[derive(Default)]
pub(super) struct Handles(Mutex<BTreeMap<(u64, u64), Weak<Handle>>>);

impl Handles {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(u64, u64), Weak<Handle>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens `path`, or answers the handle that another core has. Blocks.
    pub(super) fn open(&self, path: &Path, how: OpenHow, locks: &Locks) -> io::Result<Arc<Handle>> {
        let (fd, direct) = open_descriptor(path, how)?;
        let may_share =
            direct && how.lock && how.create == Create::No && how.access == Access::ReadWrite;
        if !may_share {
            return Handle::adopt(fd, how, direct, locks).map(Arc::new);
        }
        let key = identity(&fd)?;
        let known = self.lock().get(&key).and_then(Weak::upgrade);
        if let Some(handle) = known {
            return Ok(handle);
        }
        // Without the lock: a disk that hangs is not to hold up others.
        let handle = Arc::new(Handle::adopt(fd, how, direct, locks)?);
        if handle.facts.direct {
            let mut all = self.lock();
            all.retain(|_, handle| handle.strong_count() > 0);
            if let Some(first) = all.get(&key).and_then(Weak::upgrade) {
                return Ok(first);
            }
            all.insert(key, Arc::downgrade(&handle));
        }
        Ok(handle)
    }
}

/// A file as the system knows it.
fn identity(file: &OwnedFd) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::fstat(file)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// The locks that this runtime holds: cores open the same file side by side, other processes do
/// not.
#[derive(Default)]
pub(super) struct Locks {
    known: Arc<Known>,
    /// Until when others' locks are waited for: together, however many files they have.
    until: Mutex<Option<Instant>>,
}

type Known = Mutex<BTreeMap<(u64, u64), LockState>>;

/// How this runtime is with the lock of a file. Of what is not known here another process has it.
enum LockState {
    /// A thread tries to get it.
    Taking,
    /// Cores share it; where none has it any more, its descriptor is being closed.
    Held(Weak<Lock>),
}

/// The place of a lock among those that are known.
struct LockPlace {
    known: Arc<Known>,
    key: (u64, u64),
}

impl Drop for LockPlace {
    fn drop(&mut self) {
        all(&self.known).remove(&self.key);
    }
}

fn all(known: &Known) -> MutexGuard<'_, BTreeMap<(u64, u64), LockState>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long others' locks are waited for, and the time between two tries. A process that was killed
/// holds its locks until the disk has answered what it asked for last, which may be after the
/// system has reported its end.
const WAIT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(5);

/// So long any lock is waited for: a child of this process has copies of its descriptors, and with
/// them its locks, from its fork to its exec.
const FORK: Duration = Duration::from_millis(200);

/// After so long without meeting a lock the next one is another process's affair, and waited for
/// anew.
const APART: Duration = Duration::from_secs(10);

impl Locks {
    /// The lock of a file, which other cores of this runtime may have already. Blocks, and nobody
    /// else meanwhile.
    #[expect(
        clippy::disallowed_methods,
        reason = "on a thread that may block, and nothing notifies when another process has lost its lock"
    )]
    fn take(&self, file: &OwnedFd, is_shared: bool) -> io::Result<Arc<Lock>> {
        let key = identity(file)?;
        let (mut until, own_until) = (None, Instant::now() + WAIT);
        loop {
            let (until, why) = match self.share(key) {
                Shared::Lock(lock) if lock.is_shared == is_shared => return Ok(lock),
                Shared::Lock(_) => (own_until, differs()),
                // A thread of this process is on its way, which is no other process's lock.
                Shared::Busy => (own_until, busy()),
                Shared::Place(place) => match Lock::take(file, is_shared, place) {
                    Ok(lock) => {
                        let lock = Arc::new(lock);
                        let held = LockState::Held(Arc::downgrade(&lock));
                        all(&self.known).insert(key, held);
                        return Ok(lock);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        let others = || self.wait_until(Instant::now()).max(Instant::now() + FORK);
                        (*until.get_or_insert_with(others), error)
                    }
                    Err(error) => return Err(error),
                },
            };
            if Instant::now() >= until {
                return Err(why);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// The lock that this runtime has, or a place to take it.
    fn share(&self, key: (u64, u64)) -> Shared {
        let mut known = all(&self.known);
        match known.get(&key) {
            Some(LockState::Held(lock)) => lock.upgrade().map_or(Shared::Busy, Shared::Lock),
            Some(LockState::Taking) => Shared::Busy,
            None => {
                known.insert(key, LockState::Taking);
                let known = Arc::clone(&self.known);
                Shared::Place(LockPlace { known, key })
            }
        }
    }

    /// Until when a lock that was met now is waited for.
    fn wait_until(&self, now: Instant) -> Instant {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        match *until {
            Some(known) if now < known + APART => known,
            Some(_) | None => *until.insert(now + WAIT),
        }
    }
}

/// A disk that hangs keeps a thread of this process from it.
fn busy() -> io::Error {
    io::Error::new(
        io::ErrorKind::WouldBlock,
        "this process is still opening or closing it",
    )
}

/// Whoever reads a file under a lock wants nobody to write it.
fn differs() -> io::Error {
    let what = "this process has it open already, to write what is only to be read or the reverse";
    io::Error::new(io::ErrorKind::WouldBlock, what)
}

/// What somebody finds who wants a lock.
enum Shared {
    Lock(Arc<Lock>),
    Busy,
    Place(LockPlace),
}

impl Lock {
    /// Gives up the place where it cannot be had.
    fn take(file: &OwnedFd, is_shared: bool, place: LockPlace) -> io::Result<Self> {
        let is_block = kind_of(file)? == FileKind::Block;
        // A block device is claimed with O_EXCL, which also fails where it is mounted or part of
        // another device. A file gets an advisory lock on an own description, so that closing
        // others keeps it.
        let exclusive = if is_block {
            OFlags::EXCL
        } else {
            OFlags::empty()
        };
        let through = format!("/proc/self/fd/{}", file.as_raw_fd());
        let opened = rustix::fs::open(
            through,
            OFlags::RDONLY | OFlags::CLOEXEC | exclusive,
            Mode::empty(),
        );
        let fd = match opened {
            Err(rustix::io::Errno::BUSY) => {
                return Err(io::Error::new(
                    io::ErrorKind::WouldBlock,
                    "the device is mounted or in use",
                ));
            }
            other => other?,
        };
        if !is_block {
            lock_file(&fd, is_shared)?;
        }
        Ok(Self {
            fd,
            is_shared,
            syncs: Arc::default(),
            _place: place,
        })
    }
}

fn lock_file(fd: &OwnedFd, is_shared: bool) -> io::Result<()> {
    use rustix::io::Errno;
    if !is_shared {
        return Ok(rustix::fs::flock(
            fd,
            FlockOperation::NonBlockingLockExclusive,
        )?);
    }
    match rustix::fs::flock(fd, FlockOperation::NonBlockingLockShared) {
        // The file system has no locks: it is read all the same.
        Err(Errno::NOLCK | Errno::NOTSUP | Errno::NOSYS) => Ok(()),
        locked => Ok(locked?),
    }
}

/// The descriptor, and whether the system takes it for direct I/O.
fn open_descriptor(path: &Path, how: OpenHow) -> io::Result<(OwnedFd, bool)> {
    let access = match how.access {
        Access::Read => OFlags::RDONLY,
        Access::ReadWrite => OFlags::RDWR,
    };
    // Truncation waits until the lock is ours.
    let create = match how.create {
        Create::No => OFlags::empty(),
        Create::New => OFlags::CREATE | OFlags::EXCL,
        Create::IfAbsent | Create::Truncate => OFlags::CREATE,
    };
    let flags = access | create | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    if !how.direct {
        return Ok((rustix::fs::open(path, flags, mode)?, false));
    }
    match rustix::fs::open(path, flags | OFlags::DIRECT, mode) {
        // The file may have been made by the refused attempt: `New` must not fail for that.
        Err(rustix::io::Errno::INVAL) => {
            Ok((rustix::fs::open(path, flags - OFlags::EXCL, mode)?, false))
        }
        other => Ok((other?, true)),
    }
}

impl Handle {
    /// Opens `path` for one core. Blocks.
    pub(super) fn open(path: &Path, how: OpenHow, locks: &Locks) -> io::Result<Self> {
        let (fd, direct) = open_descriptor(path, how)?;
        Self::adopt(fd, how, direct, locks)
    }

    /// Finishes the opening of a file that the system has opened.
    pub(super) fn adopt(
        fd: OwnedFd,
        how: OpenHow,
        direct: bool,
        locks: &Locks,
    ) -> io::Result<Self> {
        let take = || locks.take(&fd, how.access == Access::Read);
        let lock = how.lock.then(take).transpose()?;
        if how.create == Create::Truncate {
            rustix::fs::ftruncate(&fd, 0)?;
        }
        let mut facts = facts_of(&fd, how.access, direct)?;
        if direct && facts.alignment == 0 {
            let flags = rustix::fs::fcntl_getfl(&fd)?;
            rustix::fs::fcntl_setfl(&fd, flags - OFlags::DIRECT)?;
            facts.direct = false;
            facts.alignment = 1;
        }
        let syncs = lock
            .as_ref()
            .map_or_else(Arc::default, |lock| Arc::clone(&lock.syncs));
        Ok(Self {
            fd,
            facts,
            syncs,
            lock,
        })
    }

    /// A handle on whatever `fd` is, for tests.
    #[cfg(test)]
    pub(super) fn bare(fd: OwnedFd, facts: FileFacts) -> Self {
        Self {
            fd,
            facts,
            syncs: Arc::default(),
            lock: None,
        }
    }

    /// The description that is synced: another one than that of the writes, where there is one.
    pub(super) fn to_sync(&self) -> &OwnedFd {
        self.lock.as_ref().map_or(&self.fd, |lock| &lock.fd)
    }

    /// Length in bytes.
    pub(super) fn len(&self) -> io::Result<u64> {
        match self.facts.kind {
            FileKind::Regular => Ok(rustix::fs::fstat(&self.fd)?.st_size.unsigned_abs()),
            FileKind::Block => Ok(rustix::fs::seek(&self.fd, rustix::fs::SeekFrom::End(0))?),
        }
    }
}

fn kind_of(fd: &OwnedFd) -> io::Result<FileKind> {
    let found = FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode);
    if found == FileType::BlockDevice {
        return Ok(FileKind::Block);
    }
    if found == FileType::RegularFile {
        return Ok(FileKind::Regular);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("neither a file nor a block device but {found:?}"),
    ))
}

/// The facts; an alignment of 0 says that the file cannot do direct I/O after all.
fn facts_of(fd: &OwnedFd, access: Access, direct: bool) -> io::Result<FileFacts> {
    match kind_of(fd)? {
        FileKind::Regular => regular_facts(fd, access, direct),
        FileKind::Block => block_facts(fd, direct),
    }
}

fn regular_facts(fd: &OwnedFd, access: Access, direct: bool) -> io::Result<FileFacts> {
    let stat = rustix::fs::fstat(fd)?;
    let block = u32::try_from(stat.st_blksize).unwrap_or(4096);
    // Punching behind the end changes nothing, but shows whether the file system can.
    let behind = stat.st_size.unsigned_abs().next_multiple_of(4096);
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let punches =
        access == Access::ReadWrite && rustix::fs::fallocate(fd, punch, behind, 4096).is_ok();
    Ok(FileFacts {
        kind: FileKind::Regular,
        direct,
        alignment: if direct { direct_alignment(fd)? } else { 1 },
        logical_block_bytes: 512,
        physical_block_bytes: block,
        discard_granularity: if punches { block } else { 0 },
        discard_reads_zero: punches,
        identity: Some((stat.st_dev, stat.st_ino)),
    })
}

fn direct_alignment(fd: &OwnedFd) -> io::Result<u32> {
    let asked = rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
    match asked {
        Ok(reported)
            if StatxFlags::from_bits_retain(reported.stx_mask).contains(StatxFlags::DIOALIGN) =>
        {
            Ok(reported
                .stx_dio_mem_align
                .max(reported.stx_dio_offset_align))
        }
        Ok(_) | Err(rustix::io::Errno::NOSYS) => Ok(ALIGNMENT_UNREPORTED),
        Err(error) => Err(error.into()),
    }
}

fn block_facts(fd: &OwnedFd, direct: bool) -> io::Result<FileFacts> {
    let logical = rustix::fs::ioctl_blksszget(fd)?;
    let physical = rustix::fs::ioctl_blkpbszget(fd)?;
    let device = rustix::fs::fstat(fd)?.st_rdev;
    // What is punched must read as zeroes: that takes a device that can do both.
    let discards = queue_limit(device, "discard_max_bytes") > 0
        && queue_limit(device, "write_zeroes_max_bytes") > 0;
    let granularity = queue_limit(device, "discard_granularity").max(u64::from(logical));
    Ok(FileFacts {
        kind: FileKind::Block,
        direct,
        alignment: if direct { logical } else { 1 },
        logical_block_bytes: logical,
        physical_block_bytes: physical,
        discard_granularity: if discards {
            u32::try_from(granularity).unwrap_or(0)
        } else {
            0
        },
        discard_reads_zero: discards,
        identity: Some(identity(fd)?),
    })
}

/// A limit of a block device's queue in bytes; 0 where the system does not report it. A partition's
/// queue is its disk's.
fn queue_limit(device: u64, name: &str) -> u64 {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    ["queue", "../queue"]
        .iter()
        .find_map(|queue| {
            fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/{queue}/{name}")).ok()
        })
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}

/// Makes the names in a directory durable.
pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
    Ok(rustix::fs::fsync(dir)?)
}

#[cfg(test)]
mod test {
    use super::*;
    use std::thread;

    #[expect(clippy::disallowed_methods, reason = "it tests what asks the clock")]
    fn clock() -> Instant {
        Instant::now()
    }

    /// What a thread of the same process is about to close, or has just opened, is no other
    /// process's, even where those were waited for long enough.
    #[test]
    fn threads_that_open_and_close_a_file_side_by_side_never_find_it_locked() {
        let path = std::env::temp_dir().join(format!("cw-locks-{}", std::process::id()));
        fs::write(&path, [0; 4096]).unwrap();
        let how = OpenHow {
            access: Access::ReadWrite,
            create: Create::No,
            direct: false,
            lock: true,
        };
        let locks = Locks::default();
        *locks.until.lock().unwrap() = Some(clock());
        let open = || drop(Handle::open(&path, how, &locks).unwrap());
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..2_000).for_each(|_| open()));
            }
        });
        assert!(all(&locks.known).is_empty());
        // Another process's lock is still one.
        let other = fs::File::open(&path).unwrap();
        rustix::fs::flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
        let refused = Handle::open(&path, how, &locks).map(drop).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        fs::remove_file(&path).unwrap();
    }

    /// Readers under a lock keep writers out, in this process and in others, and the reverse.
    #[test]
    fn who_reads_under_a_lock_keeps_writers_out() {
        let path = std::env::temp_dir().join(format!("cw-shared-{}", std::process::id()));
        fs::write(&path, [0; 4096]).unwrap();
        let how = |access| OpenHow {
            access,
            create: Create::No,
            direct: false,
            lock: true,
        };
        let (ours, theirs) = (Locks::default(), Locks::default());
        let refused = |access, locks: &Locks| {
            *locks.until.lock().unwrap() = Some(clock());
            let opened = Handle::open(&path, how(access), locks).map(drop);
            assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        };
        let all = [&ours, &theirs, &ours];
        let readers = all.map(|locks| Handle::open(&path, how(Access::Read), locks).unwrap());
        refused(Access::ReadWrite, &ours);
        refused(Access::ReadWrite, &theirs);
        drop(readers);
        let writer = Handle::open(&path, how(Access::ReadWrite), &ours).unwrap();
        refused(Access::Read, &ours);
        refused(Access::Read, &theirs);
        drop(writer);
        drop(Handle::open(&path, how(Access::Read), &theirs).unwrap());
        fs::remove_file(&path).unwrap();
    }
}
