//! Where a volume's map of checksums and its history stand: in a file of their own, or in a part of
//! the pool that holds the volume.
//!
//! **Contract.** A part of a pool is bytes as a file is, in whole blocks of 4096; it reads as
//! zeroes before it was written. Nobody gets its chunks while an operation is under way that went
//! through here: whoever gives them back [closes](Part::close) it before.

use env::{Answer, detach};
use env::{CoreHandle, Durable, File, FileDone, FileFacts, FileFuture, FileKind, FileOp, OpenHow};
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use units::{BlockCount, BlockSize, Lba, LbaRange};
use volume::{
    Done, Durability, Epoch, Io, IoError, Lane, Op, OpenError, OpenErrorKind, Origin, Volume,
};

/// What is read and written is in whole blocks of so many bytes.
const BLOCK: BlockSize = BlockSize::B4096;

/// How soon it checks again whether all that is under way has ended.
const RETRY_AFTER: Duration = Duration::from_millis(2);

/// The kinds of sidecars that a volume may have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SidecarKind {
    /// The map of its checksums.
    Checksums,
    /// The history of its changes.
    Changes,
}

/// Where it stands.
#[derive(Clone, Debug)]
pub enum Sidecar {
    /// In a file of its own.
    File(PathBuf),
    /// In a part of a pool.
    Part(Arc<Part>),
}

impl From<PathBuf> for Sidecar {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl From<&str> for Sidecar {
    fn from(path: &str) -> Self {
        Self::File(path.into())
    }
}

impl fmt::Display for Sidecar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Part(part) => part.name.fmt(f),
        }
    }
}

impl Sidecar {
    /// Opens it on this core. A part of a pool is there: `how` only says what is done with a file.
    ///
    /// # Errors
    /// What the system says.
    pub async fn open(&self, core: &CoreHandle, how: OpenHow) -> io::Result<Rc<dyn File>> {
        match self {
            Self::File(path) => core.files().open(path, how).await,
            Self::Part(part) => {
                let file = PartFile {
                    core: Rc::clone(core),
                    part: Arc::clone(part),
                    lane: Rc::default(),
                };
                file.lane().await?;
                Ok(Rc::new(file))
            }
        }
    }

    /// The directory whose names are to be stable for it to be found.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Self::File(path) => path.parent().filter(|it| *it != Path::new("")),
            Self::Part(_) => None,
        }
    }
}

/// A part of a pool, of which the volume below may be opened anew and may grow.
pub struct Part {
    name: String,
    below: Mutex<(u64, Arc<dyn Volume>)>,
    closed: AtomicBool,
    under_way: AtomicUsize,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Part").field(&self.name).finish()
    }
}

impl Part {
    /// What `below` holds, under a name for people.
    #[must_use]
    pub fn new(name: String, below: Arc<dyn Volume>) -> Arc<Self> {
        Arc::new(Self {
            name,
            below: Mutex::new((0, below)),
            closed: AtomicBool::new(false),
            under_way: AtomicUsize::new(0),
        })
    }

    /// It was opened anew: whoever has it open goes on there.
    pub fn replace(&self, below: Arc<dyn Volume>) {
        let mut held = self.below.lock().unwrap_or_else(PoisonError::into_inner);
        *held = (held.0 + 1, below);
    }

    /// Nothing is read or written through it any more, and what was under way has ended.
    ///
    /// # Errors
    /// Something is still under way after so long.
    pub async fn close(&self, core: &CoreHandle, within: Duration) -> Result<(), OpenError> {
        self.closed.store(true, Ordering::SeqCst);
        let until = core.now().after(within);
        while self.under_way.load(Ordering::SeqCst) > 0 {
            if core.now() > until {
                return Err(OpenError {
                    kind: OpenErrorKind::Hung,
                    cause: format!("a write to {} does not end", self.name),
                    next_step: "check the pool's devices and the kernel's log".to_owned(),
                });
            }
            core.sleep_until(core.now().after(RETRY_AFTER)).await;
        }
        Ok(())
    }

    fn below(&self) -> (u64, Arc<dyn Volume>) {
        let held = self.below.lock().unwrap_or_else(PoisonError::into_inner);
        (held.0, Arc::clone(&held.1))
    }
}

/// An operation on a part, from when it may be handed down until it has ended.
struct UnderWay(Arc<Part>);

impl UnderWay {
    fn begin(part: &Arc<Part>) -> io::Result<Self> {
        part.under_way.fetch_add(1, Ordering::SeqCst);
        let this = Self(Arc::clone(part));
        if part.closed.load(Ordering::SeqCst) {
            return Err(io::Error::other("it was given back to its pool"));
        }
        Ok(this)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The lane of the volume that it was opened with.
type OpenLane = (u64, Epoch, Rc<dyn Lane>);

#[derive(Clone)]
struct PartFile {
    core: CoreHandle,
    part: Arc<Part>,
    lane: Rc<RefCell<Option<OpenLane>>>,
}

impl PartFile {
    /// A lane of the volume as it is now.
    async fn lane(&self) -> io::Result<Rc<dyn Lane>> {
        let (number, below) = self.part.below();
        let epoch = below.shape().epoch;
        let known = self.lane.borrow().clone();
        if let Some((_, _, lane)) = known.filter(|it| (it.0, it.1) == (number, epoch)) {
            return Ok(lane);
        }
        let lane = below.open(&self.core).await;
        let lane = lane.map_err(|error| io::Error::other(error.to_string()))?;
        *self.lane.borrow_mut() = Some((number, epoch, Rc::clone(&lane)));
        Ok(lane)
    }

    async fn run(&self, op: FileOp) -> io::Result<FileDone> {
        let bytes = || self.part.below().1.shape().byte_count().0;
        match op {
            FileOp::Len => Ok(FileDone::Len(bytes())),
            FileOp::Sync => self.submit_one(Op::Flush).await.map(|_| FileDone::Nothing),
            FileOp::Write {
                offset,
                data,
                durable,
            } => {
                let range = blocks(offset, data.len() as u64)?;
                if offset + data.len() as u64 > bytes() {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                let durability = match durable {
                    Durable::No => Durability::Cached,
                    Durable::Yes => Durability::Stable,
                };
                let op = Op::Write {
                    range,
                    data,
                    durability,
                };
                self.submit_one(op).await.map(|_| FileDone::Nothing)
            }
            FileOp::Read { offset, mut into } => {
                let there = bytes().saturating_sub(offset).min(into.len() as u64);
                let there = there / u64::from(BLOCK.bytes()) * u64::from(BLOCK.bytes());
                let whole = usize::try_from(there).expect("no more than was asked for");
                if whole < into.len() {
                    let rest = into.len() - whole;
                    into.copy_at(whole, &vec![0; rest]);
                }
                if whole > 0 {
                    let range = blocks(offset, there)?;
                    let read = self.submit_one(Op::Read { range, into: None }).await?;
                    let Done::Data(data) = read else {
                        unreachable!("a read answers data")
                    };
                    into.copy_at(0, &data.to_vec());
                }
                Ok(FileDone::Read(into))
            }
            // Its space is its own from the beginning.
            FileOp::Allocate { .. } => Ok(FileDone::Nothing),
            FileOp::PunchHole { .. }
            | FileOp::ZeroRange { .. }
            | FileOp::SetLen { .. }
            | FileOp::Extents { .. } => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    async fn submit_one(&self, op: Op) -> io::Result<Done> {
        let lane = self.lane().await?;
        let done = lane.submit(Io::new(op, Origin::default())).await;
        done.map_err(of_volume)
    }
}

fn blocks(offset: u64, bytes: u64) -> io::Result<LbaRange> {
    let block = u64::from(BLOCK.bytes());
    let whole = offset.is_multiple_of(block) && bytes.is_multiple_of(block);
    let range = LbaRange::new(Lba(offset / block), BlockCount(bytes / block));
    range
        .filter(|_| whole)
        .ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

fn of_volume(error: IoError) -> io::Error {
    match error {
        IoError::SpaceExhausted => io::ErrorKind::StorageFull.into(),
        IoError::TimedOut => io::ErrorKind::TimedOut.into(),
        IoError::MediumError { .. }
        | IoError::Integrity { .. }
        | IoError::Miscompare { .. }
        | IoError::WriteProtected
        | IoError::Unavailable
        | IoError::Aborted
        | IoError::Fenced
        | IoError::Transition
        | IoError::Busy => io::Error::other(format!("{error:?}")),
    }
}

impl File for PartFile {
    fn facts(&self) -> FileFacts {
        FileFacts {
            kind: FileKind::Regular,
            direct: true,
            alignment: BLOCK.bytes(),
            logical_block_bytes: BLOCK.bytes(),
            physical_block_bytes: BLOCK.bytes(),
            discard_granularity: 0,
            discard_reads_zero: false,
            identity: None,
        }
    }

    fn submit(&self, op: FileOp) -> FileFuture {
        let begun = match UnderWay::begin(&self.part) {
            Ok(begun) => begun,
            Err(error) => return Answer::ready(Err(error)),
        };
        let this = self.clone();
        // It ends whether anybody waits for it or not.
        detach(&self.core, async move {
            let done = this.run(op).await;
            drop(begun);
            done
        })
    }
}
