//! A volume in a file of the simulated disk, with checksums in a sidecar, and ways to hurt both.

use super::super::{Blank, Finding, Integrity, IntegrityLane, MapSpec, Options, create};
use env::{
    Access, CoreHandle, Create, Durable, File, FileDone, FileOp, LocalFuture, OpenHow, detach,
};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use units::{BlockCount, BlockSize, Buf, BufMut, Lba, LbaRange};
use volume::{
    Done, Durability, Extent, ExtentKind, ExtentList, Io, IoError, IoFuture, IoResult, Lane, Op,
    OpenError, Origin, Shape, Volume, VolumeEvent, VolumeEvents,
};

pub(super) const DATA: &str = "/pool/data";
pub(super) const CHECKSUMS: &str = "/pool/data.checksums";
pub(super) const NUMBER: [u8; 16] = [7; 16];

/// Blocks of a file, and nothing clever.
pub(super) struct OnFile(pub(super) Shape);

struct OnFileLane {
    core: CoreHandle,
    file: Rc<dyn File>,
    block: u64,
}

struct Never;

impl VolumeEvents for Never {
    fn next(&self) -> LocalFuture<VolumeEvent> {
        Box::pin(std::future::pending())
    }
}

pub(super) async fn open_raw(core: &CoreHandle, path: &str) -> Rc<dyn File> {
    let how = OpenHow {
        access: Access::ReadWrite,
        create: Create::IfAbsent,
        direct: false,
        lock: false,
    };
    core.files().open(Path::new(path), how).await.unwrap()
}

pub(super) async fn raw_read(core: &CoreHandle, path: &str, offset: u64, len: usize) -> Vec<u8> {
    let file = open_raw(core, path).await;
    let into = BufMut::zeroed(len);
    match file.submit(FileOp::Read { offset, into }).await.unwrap() {
        FileDone::Read(data) => data.freeze().to_vec(),
        FileDone::Nothing | FileDone::Extents(_) | FileDone::Len(_) => panic!("no data"),
    }
}

pub(super) async fn raw_write(core: &CoreHandle, path: &str, offset: u64, bytes: &[u8]) {
    let file = open_raw(core, path).await;
    let data = Buf::copy_of(bytes);
    let durable = Durable::Yes;
    let op = FileOp::Write {
        offset,
        data,
        durable,
    };
    file.submit(op).await.unwrap();
}

impl Volume for OnFile {
    fn shape(&self) -> Shape {
        self.0
    }

    fn open(self: Arc<Self>, core: &CoreHandle) -> LocalFuture<Result<Rc<dyn Lane>, OpenError>> {
        let core = Rc::clone(core);
        Box::pin(async move {
            let file = open_raw(&core, DATA).await;
            let block = u64::from(self.0.block_size.bytes());
            Ok(Rc::new(OnFileLane { core, file, block }) as Rc<dyn Lane>)
        })
    }

    fn events(self: Arc<Self>, _core: &CoreHandle) -> Rc<dyn VolumeEvents> {
        Rc::new(Never)
    }
}

impl OnFileLane {
    fn write(&self, range: LbaRange, data: Buf, durability: Durability) -> IoFuture {
        let durable = match durability {
            Durability::Cached => Durable::No,
            Durability::Stable => Durable::Yes,
        };
        let offset = range.start().0 * self.block;
        let done = self.file.submit(FileOp::Write {
            offset,
            data,
            durable,
        });
        detach(&self.core, async move {
            let done: IoResult = done
                .await
                .map(|_| Done::Nothing)
                .map_err(|_| IoError::MediumError { lba: range.start() });
            done
        })
    }
}

impl Lane for OnFileLane {
    fn submit(&self, io: Io) -> IoFuture {
        let bytes = |range: LbaRange| usize::try_from(range.len().0 * self.block).unwrap();
        match io.into_parts().0 {
            Op::Read { range, .. } => {
                let into = BufMut::zeroed(bytes(range));
                let offset = range.start().0 * self.block;
                let done = self.file.submit(FileOp::Read { offset, into });
                IoFuture::wait(async move {
                    match done.await {
                        Ok(FileDone::Read(data)) => Ok(Done::Data(data.freeze())),
                        other => {
                            drop(other);
                            Err(IoError::MediumError { lba: range.start() })
                        }
                    }
                })
            }
            Op::Write {
                range,
                data,
                durability,
            } => self.write(range, data, durability),
            Op::WriteZeroes {
                range, durability, ..
            }
            | Op::Discard {
                range, durability, ..
            } => self.write(range, Buf::zeroes(bytes(range)), durability),
            Op::Extents { range, .. } => {
                let kind = ExtentKind::Mapped;
                let all = ExtentList::from_iter([Extent { range, kind }]);
                IoFuture::ready(Ok(Done::Extents(all)))
            }
            Op::Flush => {
                let done = self.file.submit(FileOp::Sync);
                IoFuture::wait(async move {
                    done.await
                        .map(|_| Done::Nothing)
                        .map_err(|_| IoError::MediumError { lba: Lba(0) })
                })
            }
            Op::CompareAndWrite { .. } => unreachable!("announced as absent"),
        }
    }
}

/// A kind of volume: its logical blocks, and what a checksum of it covers.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) block_size: BlockSize,
    pub(super) covers: BlockSize,
}

pub(super) const SECTORS: Kind = Kind {
    block_size: BlockSize::B512,
    covers: BlockSize::B512,
};
pub(super) const EMULATED: Kind = Kind {
    block_size: BlockSize::B512,
    covers: BlockSize::B4096,
};
pub(super) const PAGES: Kind = Kind {
    block_size: BlockSize::B4096,
    covers: BlockSize::B4096,
};
pub(super) const KINDS: [Kind; 3] = [SECTORS, EMULATED, PAGES];

impl Kind {
    /// Logical blocks that a checksum covers.
    pub(super) fn unit(self) -> u64 {
        self.bytes() / u64::from(self.block_size.bytes())
    }

    /// Bytes that a checksum covers.
    pub(super) fn bytes(self) -> u64 {
        self.covers.bytes().into()
    }
}

pub(super) fn on_file(kind: Kind, blocks: u64) -> Arc<dyn Volume> {
    let block_size = kind.block_size;
    let mut shape = Shape::of_memory(block_size, BlockCount(blocks));
    shape.physical_block_exponent = kind.unit().ilog2().try_into().unwrap();
    shape.limits.transfer_blocks_max = BlockCount((1 << 20) / u64::from(block_size.bytes()));
    Arc::new(OnFile(shape))
}

/// What was reported.
pub(super) type Findings = Arc<Mutex<Vec<Finding>>>;

pub(super) async fn make(core: &CoreHandle, below: &Arc<dyn Volume>, blank: Blank) {
    let shape = below.shape();
    core.files().create_dir(Path::new("/pool")).await.unwrap();
    core.files().sync_dir(Path::new("/")).await.unwrap();
    drop(open_raw(core, DATA).await);
    let spec = MapSpec::of(CHECKSUMS.into(), NUMBER, &shape, blank);
    create(core, &spec).await.unwrap();
}

pub(super) async fn open(core: &CoreHandle, below: &Arc<dyn Volume>) -> (Arc<Integrity>, Findings) {
    open_with(core, below, |_| {}).await
}

pub(super) async fn open_with(
    core: &CoreHandle,
    below: &Arc<dyn Volume>,
    change: impl FnOnce(&mut Options),
) -> (Arc<Integrity>, Findings) {
    let findings = Findings::default();
    let reported = Arc::clone(&findings);
    let mut options = Options::new(CHECKSUMS.into(), NUMBER);
    options.report = Arc::new(move |finding| reported.lock().unwrap().push(finding.clone()));
    change(&mut options);
    let opened = Integrity::open(core, Arc::clone(below), options)
        .await
        .unwrap();
    (opened, findings)
}

pub(super) async fn ask(lane: &IntegrityLane, op: Op) -> IoResult {
    lane.submit(Io::new(op, Origin::default())).await
}

pub(super) fn range(start: u64, len: u64) -> LbaRange {
    LbaRange::new(Lba(start), BlockCount(len)).unwrap()
}

pub(super) async fn read(lane: &IntegrityLane, range: LbaRange) -> Result<Vec<u8>, IoError> {
    match ask(lane, Op::Read { range, into: None }).await? {
        Done::Data(data) => Ok(data.to_vec()),
        Done::Nothing | Done::Logged | Done::Extents(_) => panic!("no data"),
    }
}

pub(super) async fn write(lane: &IntegrityLane, at: LbaRange, bytes: &[u8]) -> Result<(), IoError> {
    let data = Buf::copy_of(bytes);
    let durability = Durability::Cached;
    ask(
        lane,
        Op::Write {
            range: at,
            data,
            durability,
        },
    )
    .await
    .map(drop)
}

pub(super) async fn flush(lane: &IntegrityLane) {
    ask(lane, Op::Flush).await.unwrap();
}
