//! The simplest volume there is, straight on a file, to try the simulator itself: whole, it must
//! pass; with a bug planted, it must be caught.

use super::scene::{Opened, Scene, Setup};
use env::sim::{Node, World};
use env::{Access, CoreHandle, Create, Durable, File, FileDone, FileOp, LocalFuture, OpenHow};
use std::io;
use std::path::Path;
use std::rc::Rc;
use units::{BlockCount, BlockSize, Buf, BufMut, LbaRange};
use volume::{Done, Durability, Io, IoError, IoFuture, IoResult, Lane, Op, Shape, Support};

/// A bug to plant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    /// None.
    None,
    /// A flush says yes and does nothing.
    FlushDoesNothing,
    /// A stable write is an ordinary one.
    StableIsCached,
    /// The file's name is never made durable.
    NameNotSynced,
    /// A write goes to the disk in two halves, cut in the middle of a block.
    BlocksInHalves,
    /// Some reads answer zeroes in the place of an error.
    ErrorsReadAsZeroes,
    /// A compare-and-write holds nothing between its read and its write.
    SwapHoldsNothing,
    /// A write that failed says yes.
    ErrorsWriteAsDone,
}

/// The scene.
pub struct Raw {
    bug: Bug,
    lock: Lock,
}

impl Raw {
    /// With `bug` planted.
    #[must_use]
    pub fn with(bug: Bug) -> Self {
        let lock = Lock::default();
        Self { bug, lock }
    }
}

const PATH: &str = "/pool/lun";

const HOW: OpenHow = OpenHow {
    access: Access::ReadWrite,
    create: Create::IfAbsent,
    direct: false,
    lock: false,
};

impl Scene for Raw {
    fn name(&self) -> &'static str {
        "raw"
    }

    fn block_sizes(&self) -> &'static [BlockSize] {
        &[BlockSize::B512, BlockSize::B4096]
    }

    fn victim(&self, world: &World) -> Node {
        world.node("san")
    }

    fn clients(&self, world: &World) -> Node {
        world.node("san")
    }

    fn start(&self, victim: &Node, setup: Setup) -> LocalFuture<Result<(), String>> {
        let files = victim.core(0).files();
        let bug = self.bug;
        Box::pin(async move {
            let made: io::Result<()> = async {
                files.create_dir(Path::new("/pool")).await?;
                files.sync_dir(Path::new("/")).await?;
                let file = files.open(Path::new(PATH), HOW).await?;
                let len = setup.blocks * u64::from(setup.block_size.bytes());
                file.submit(FileOp::SetLen { len }).await?;
                file.submit(FileOp::Sync).await?;
                if bug != Bug::NameNotSynced {
                    files.sync_dir(Path::new("/pool")).await?;
                }
                Ok(())
            }
            .await;
            made.map_err(|error| error.to_string())
        })
    }

    fn open(
        &self,
        core: &CoreHandle,
        setup: Setup,
        _client: u32,
    ) -> LocalFuture<Result<Opened, String>> {
        let (core, bug, lock) = (Rc::clone(core), self.bug, Rc::clone(&self.lock));
        Box::pin(async move {
            let file = core.files().open(Path::new(PATH), HOW).await;
            let file = file.map_err(|error| error.to_string())?;
            let lane = RawLane {
                core,
                file,
                bug,
                block_size: setup.block_size,
                lock,
            };
            Ok(Opened {
                lane: Rc::new(lane),
                shape: shape(setup),
                stable_zeroes: true,
                acknowledged_is_stable: false,
            })
        })
    }
}

fn shape(setup: Setup) -> Shape {
    let mut shape = Shape::of_memory(setup.block_size, BlockCount(setup.blocks));
    shape.limits.compare_and_write_blocks_max = BlockCount(4);
    shape.limits.atomic_blocks_max = BlockCount(1);
    shape.caps.compare_and_write = Support::Emulated;
    shape.caps.extents = Support::Absent;
    shape
}

#[derive(Clone)]
struct RawLane {
    core: CoreHandle,
    file: Rc<dyn File>,
    bug: Bug,
    block_size: BlockSize,
    lock: Lock,
}

/// Held shared by every change, alone by a compare-and-write.
type Lock = Rc<tokio::sync::RwLock<()>>;

impl Lane for RawLane {
    fn submit(&self, io: Io) -> IoFuture {
        let this = self.clone();
        let (op, _) = io.into_parts();
        let (answer, answered) = tokio::sync::oneshot::channel();
        // A task of its own: the lock is held until the disk is done, whoever still waits.
        self.core.spawn(Box::pin(async move {
            drop(answer.send(this.run(op).await));
        }));
        IoFuture::wait(async move { answered.await.unwrap_or(Err(IoError::Unavailable)) })
    }
}

impl RawLane {
    async fn run(&self, op: Op) -> IoResult {
        match op {
            Op::Read { range, .. } => {
                let _shared = self.lock.read().await;
                self.read(range).await.map(Done::Data)
            }
            Op::Write {
                range,
                data,
                durability,
            } => {
                let _shared = self.lock.read().await;
                self.write(range, data, durability).await
            }
            Op::WriteZeroes {
                range, durability, ..
            } => {
                let _shared = self.lock.read().await;
                self.zero(range, durability, false).await
            }
            Op::Discard {
                range, durability, ..
            } => {
                let _shared = self.lock.read().await;
                self.zero(range, durability, true).await
            }
            Op::CompareAndWrite {
                range,
                expected,
                data,
                durability,
            } => {
                let held = self.bug != Bug::SwapHoldsNothing;
                let _alone = if held {
                    Some(self.lock.write().await)
                } else {
                    None
                };
                let found = self.read(range).await?;
                if let Some(at) = found.first_difference(&expected) {
                    let at = units::ByteCount(at as u64);
                    return Err(IoError::Miscompare { at });
                }
                self.write(range, data, durability).await
            }
            Op::Flush if self.bug == Bug::FlushDoesNothing => Ok(Done::Nothing),
            Op::Flush => self.flush().await,
            Op::Extents { .. } => panic!("the shape says that there are none"),
        }
    }

    fn bytes(&self, range: LbaRange) -> (u64, u64) {
        let each = u64::from(self.block_size.bytes());
        (range.start().0 * each, range.len().0 * each)
    }

    async fn read(&self, range: LbaRange) -> Result<Buf, IoError> {
        let (offset, len) = self.bytes(range);
        let into = BufMut::zeroed(usize::try_from(len).expect("a short range"));
        match self.file.submit(FileOp::Read { offset, into }).await {
            Ok(FileDone::Read(bytes)) => Ok(bytes.freeze()),
            Ok(FileDone::Nothing | FileDone::Extents(_) | FileDone::Len(_)) => {
                panic!("a read answers with what was read")
            }
            Err(_) if self.bug == Bug::ErrorsReadAsZeroes => {
                Ok(Buf::zeroes(usize::try_from(len).expect("a short range")))
            }
            Err(_) => Err(IoError::MediumError { lba: range.start() }),
        }
    }

    async fn write(&self, range: LbaRange, data: Buf, durability: Durability) -> IoResult {
        let (offset, _) = self.bytes(range);
        let durable = match durability {
            Durability::Stable if self.bug != Bug::StableIsCached => Durable::Yes,
            Durability::Stable | Durability::Cached => Durable::No,
        };
        let half = self.block_size.bytes() as usize / 2;
        let cut = if self.bug == Bug::BlocksInHalves {
            half
        } else {
            data.len()
        };
        let (head, tail) = (data.slice(0..cut), data.slice(cut..data.len()));
        for (place, data) in [(0, head), (cut as u64, tail)] {
            if data.is_empty() {
                continue;
            }
            let write = FileOp::Write {
                offset: offset + place,
                data,
                durable,
            };
            self.change(range, write).await?;
        }
        Ok(Done::Nothing)
    }

    async fn change(&self, range: LbaRange, op: FileOp) -> IoResult {
        match self.file.submit(op).await {
            Ok(_) => Ok(Done::Nothing),
            Err(_) if self.bug == Bug::ErrorsWriteAsDone => Ok(Done::Nothing),
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                Err(IoError::SpaceExhausted)
            }
            Err(_) => Err(IoError::MediumError { lba: range.start() }),
        }
    }

    /// Stable zeroes are written: a sync that fails here would also lose what others wrote, and
    /// nobody would report it to them.
    async fn zero(&self, range: LbaRange, durability: Durability, punch: bool) -> IoResult {
        let (offset, len) = self.bytes(range);
        if durability == Durability::Stable {
            let zeroes = Buf::zeroes(usize::try_from(len).expect("a short range"));
            return self.write(range, zeroes, durability).await;
        }
        let op = if punch {
            FileOp::PunchHole { offset, len }
        } else {
            FileOp::ZeroRange { offset, len }
        };
        self.change(range, op).await
    }

    async fn flush(&self) -> IoResult {
        match self.file.submit(FileOp::Sync).await {
            Ok(_) => Ok(Done::Nothing),
            Err(_) => Err(IoError::MediumError { lba: units::Lba(0) }),
        }
    }
}
