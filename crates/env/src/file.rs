//! Files and block devices as the rest of the program sees them.
//!
//! **What survives a power cut.** Data written with [`Durable::Yes`], and all that completed before
//! a [`FileOp::Sync`] of the same file was submitted and came back without error. Anything else may
//! be there, in part, in any order; blocks of 512 bytes are never torn. A created, renamed or
//! removed name survives only after [`Files::sync_dir`] of its directory. After a sync that failed,
//! nothing is known of what was not synced before.

use crate::{Answer, LocalFuture};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use units::{Buf, BufMut};

/// Directories and names.
pub trait Files {
    /// Opens a file or a block device.
    fn open(&self, path: &Path, how: OpenHow) -> LocalFuture<io::Result<Rc<dyn File>>>;

    /// Gives the file `from` the name `to`, replacing what had it, atomically.
    fn rename(&self, from: &Path, to: &Path) -> LocalFuture<io::Result<()>>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> LocalFuture<io::Result<()>>;

    /// Makes a directory and its parents; fine where it exists.
    fn create_dir(&self, path: &Path) -> LocalFuture<io::Result<()>>;

    /// The entries of a directory, sorted by name.
    fn list(&self, path: &Path) -> LocalFuture<io::Result<Vec<DirEntry>>>;

    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> LocalFuture<io::Result<()>>;

    /// What carries reads, writes and syncs of this core.
    fn engine(&self) -> DiskEngine {
        DiskEngine::default()
    }

    /// Space of the file system that holds `path`.
    fn space(&self, path: &Path) -> LocalFuture<io::Result<Space>>;

    /// What a file says that the system makes up when it is read (procfs, sysfs), without white
    /// space at its end; cut after 64 KiB.
    ///
    /// Answers `Unsupported` where the environment has no such files.
    fn read_fact(&self, path: &Path) -> LocalFuture<io::Result<String>> {
        let _ = path;
        Box::pin(std::future::ready(Err(io::ErrorKind::Unsupported.into())))
    }

    /// What stands at `path`, when all symbolic links are followed. Nothing is opened for it.
    fn kind(&self, path: &Path) -> LocalFuture<io::Result<PathKind>>;

    /// Where `path` leads when all symbolic links are followed.
    ///
    /// Answers `Unsupported` where the environment has no links.
    fn resolve(&self, path: &Path) -> LocalFuture<io::Result<PathBuf>> {
        let _ = path;
        Box::pin(std::future::ready(Err(io::ErrorKind::Unsupported.into())))
    }
}

/// What carries reads, writes and syncs of a core.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DiskEngine {
    /// The kernel's interface in use.
    pub kind: EngineKind,
    /// Files that are registered with the kernel.
    pub registered_files: u32,
    /// Bytes of payload memory that are.
    pub registered_bytes: u64,
}

/// Kinds of disk engines.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum EngineKind {
    /// An io_uring of the core's own.
    Uring,
    /// Threads that block.
    #[default]
    Threads,
}

/// How to open a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenHow {
    /// Reading only, or both.
    pub access: Access,
    /// What to do about existence.
    pub create: Create,
    /// Ask for I/O past the page cache (O_DIRECT). [`FileFacts::direct`] says whether it was
    /// granted.
    pub direct: bool,
    /// Take an advisory lock, held until close: a shared one to read, where the file system has
    /// locks, and an exclusive one to write; `WouldBlock` where that cannot be had. The cores of a
    /// process have one lock together, where all read or all write.
    pub lock: bool,
}

impl OpenHow {
    /// To read what is there, through the page cache, whoever has it open.
    pub const READ: Self = Self {
        access: Access::Read,
        create: Create::No,
        direct: false,
        lock: false,
    };
}

/// Whether there is something at `path` that can be read.
pub async fn is_there(files: &dyn Files, path: &Path) -> bool {
    files.open(path, OpenHow::READ).await.is_ok()
}

/// A file system has no room for it now. That ends by itself, or when somebody makes room: nothing
/// is broken.
#[must_use]
pub fn is_no_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// The length of a file or a device, in bytes.
///
/// # Errors
/// What the system says.
///
/// # Panics
/// If the answer is that to another question.
pub async fn length(file: &Rc<dyn File>) -> io::Result<u64> {
    let FileDone::Len(len) = file.submit(FileOp::Len).await? else {
        unreachable!("a length answers a length")
    };
    Ok(len)
}

/// So many bytes of a file or a device, from `offset` on.
///
/// # Errors
/// What the system says.
///
/// # Panics
/// If the answer is that to another question.
pub async fn read(file: &Rc<dyn File>, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let data = read_piece(file, offset, bytes).await?;
    Ok(data.to_vec())
}

/// The same in one piece of page-aligned memory.
///
/// # Errors
/// Those of the operating system.
///
/// # Panics
/// If the answer is that to another question.
pub async fn read_piece(file: &Rc<dyn File>, offset: u64, bytes: usize) -> io::Result<Buf> {
    let into = BufMut::zeroed(bytes);
    let FileDone::Read(data) = file.submit(FileOp::Read { offset, into }).await? else {
        unreachable!("a read answers data")
    };
    Ok(data.freeze())
}

/// Reading only, or both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing.
    ReadWrite,
}

/// What to do about existence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Create {
    /// The file must exist.
    No,
    /// The file must not exist; it is made with mode 0600.
    New,
    /// Made with mode 0600 where it does not exist.
    IfAbsent,
    /// As `IfAbsent`, and emptied where it exists.
    Truncate,
}

/// A name in a directory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DirEntry {
    /// The name without its directory.
    pub name: PathBuf,
    /// Length in bytes.
    pub len: u64,
    /// Bytes of storage that it takes; of a sparse file fewer than its length.
    pub allocated: u64,
    /// It is a directory.
    pub is_dir: bool,
}

/// Space of a file system, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Space {
    /// Which file system it is: the same number, the same room.
    pub file_system: u64,
    /// The size of the file system, used and unused.
    pub total: u64,
    /// What this program may still use.
    pub available: u64,
    /// What is in use. With `available` it may be less than `total`: some is kept for root, or for
    /// the system's own needs.
    pub used: u64,
}

/// What stands at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathKind {
    /// A directory.
    Directory,
    /// A regular file.
    Regular,
    /// A block device.
    Block,
    /// Something else, such as a socket.
    Other,
}

/// What kind of file it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A block device.
    Block,
}

/// What is known of an open file and does not change, but for its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileFacts {
    /// Regular file or block device.
    pub kind: FileKind,
    /// Bytes are read and written past the page cache.
    pub direct: bool,
    /// Offsets and lengths of direct writes are multiples of this many bytes (`InvalidInput` where
    /// not); memory that is not aligned to it costs a copy. 1 where not direct.
    pub alignment: u32,
    /// Logical sector size in bytes; 512 for regular files.
    pub logical_block_bytes: u32,
    /// Physical sector size in bytes; the file system's block size for regular files.
    pub physical_block_bytes: u32,
    /// Ranges can be deallocated, in multiples of this many bytes; 0 where not.
    pub discard_granularity: u32,
    /// Deallocated ranges read as zeroes.
    pub discard_reads_zero: bool,
    /// Device and inode, which a file has whatever path leads to it; `None`: it is in no file
    /// system.
    pub identity: Option<(u64, u64)>,
}

impl FileFacts {
    /// Bytes of a block device's physical blocks; `None` for a regular file, which has those of
    /// whatever it lies on.
    #[must_use]
    pub const fn device_blocks(&self) -> Option<u32> {
        match self.kind {
            FileKind::Block => Some(self.physical_block_bytes),
            FileKind::Regular => None,
        }
    }
}

/// Whether the operation is on stable media when it completes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durable {
    /// It may still be in a volatile cache.
    No,
    /// It is on stable media (RWF_DSYNC).
    Yes,
}

/// An operation on an open file. Offsets and lengths are in bytes.
#[derive(Debug)]
pub enum FileOp {
    /// Fills `into`; bytes past the end of the file come as zeroes.
    Read {
        /// Where from.
        offset: u64,
        /// Where to; given back by [`FileDone::Read`].
        into: BufMut,
    },
    /// Writes all of `data`.
    Write {
        /// Where to.
        offset: u64,
        /// What; kept until the kernel is done with it.
        data: Buf,
        /// Whether it is stable when complete.
        durable: Durable,
    },
    /// Makes all completed operations stable, with what is needed to find the data again.
    Sync,
    /// Deallocates the range, which then reads as zeroes. `Unsupported` where the file cannot.
    PunchHole {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// Makes the range read as zeroes and keeps it allocated. `Unsupported` where the file cannot
    /// do it without writing.
    ZeroRange {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// Allocates the range without changing what is read. `Unsupported` where the file cannot.
    Allocate {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// Sets the length; what is added reads as zeroes.
    SetLen {
        /// The new length.
        len: u64,
    },
    /// The allocation of the range, at least for its first part.
    Extents {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// The length now.
    Len,
}

impl FileOp {
    /// It ends with everything that it speaks of on stable media.
    #[must_use]
    pub const fn is_stable(&self) -> bool {
        match self {
            Self::Sync
            | Self::Write {
                durable: Durable::Yes,
                ..
            } => true,
            Self::Write { .. }
            | Self::Read { .. }
            | Self::PunchHole { .. }
            | Self::ZeroRange { .. }
            | Self::Allocate { .. }
            | Self::SetLen { .. }
            | Self::Extents { .. }
            | Self::Len => false,
        }
    }
}

/// What a file operation gave.
#[derive(Debug)]
pub enum FileDone {
    /// Done.
    Nothing,
    /// The filled memory.
    Read(BufMut),
    /// Adjacent extents that start at the offset asked for and cover at least one byte.
    Extents(Vec<Extent>),
    /// The length in bytes.
    Len(u64),
}

/// A piece of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
    /// Space is allocated for it.
    pub allocated: bool,
}

/// The answer to a file operation.
pub type FileFuture = Answer<io::Result<FileDone>>;

/// An open file on one core. Operations in flight are not ordered. Dropping it closes the file once
/// the last operation is done.
pub trait File {
    /// What is known of it.
    fn facts(&self) -> FileFacts;

    /// Starts an operation. It runs to its end even if the answer is dropped.
    fn submit(&self, op: FileOp) -> FileFuture;
}
