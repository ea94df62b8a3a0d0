//! Files over the engines: opening, alignment, and what goes to which engine.

use super::blocking::Blocking;
use super::directory::list;
use super::forget::Forgetful;
use super::handle::{self, Handle};
use super::registered::FilePlace;
use super::ring::Ring;
use super::shared::FilesShared;
use super::slow_flush::SlowFlush;
use super::transfer::{Memory, Transfer};
use crate::file::{
    DirEntry, DiskEngine, Durable, EngineKind, File, FileDone, FileFacts, FileFuture, FileOp,
    Files, OpenHow, PathKind, Space,
};
use crate::{Answer, LocalFuture};
use std::cell::OnceCell;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::{Buf, BufMut};

/// What carries reads, writes and syncs.
#[derive(Clone)]
pub(super) enum Engine {
    Ring(Rc<Ring>),
    Threads,
}

/// A disk that behaves otherwise than the system's, where it was asked for.
#[derive(Clone, Default)]
pub(super) struct Special {
    /// The store that forgets.
    pub(super) forgetful: Option<Arc<Forgetful>>,
    /// The disk with slow flushes.
    pub(super) slow: Option<Arc<SlowFlush>>,
}

/// The file system as one core sees it.
pub(super) struct RealFiles {
    pub(super) engine: Engine,
    pub(super) shared: Arc<FilesShared>,
    pub(super) special: Special,
}

struct RealFile {
    handle: Arc<Handle>,
    /// The file's place in the ring's table, from the first transfer on.
    place: OnceCell<Option<Rc<FilePlace>>>,
    engine: Engine,
    shared: Arc<FilesShared>,
    slow: Option<Arc<SlowFlush>>,
}

impl RealFiles {
    fn on_names<T: Send + 'static>(
        &self,
        path: &Path,
        real: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
        forgetful: impl FnOnce(&Forgetful, &Path) -> io::Result<T> + Send + 'static,
    ) -> LocalFuture<io::Result<T>> {
        let path = path.to_owned();
        let store = self.special.forgetful.clone();
        self.shared.names.call(move || match store {
            Some(store) => forgetful(&store, &path),
            None => real(&path),
        })
    }
}

impl Files for RealFiles {
    fn open(&self, path: &Path, how: OpenHow) -> LocalFuture<io::Result<Rc<dyn File>>> {
        let (path, shared) = (path.to_owned(), Arc::clone(&self.shared));
        let engine = self.engine.clone();
        let slow = self.special.slow.clone();
        if let Some(store) = self.special.forgetful.clone() {
            return Box::pin(async move {
                let worker = Arc::clone(&shared);
                let opened = shared
                    .names
                    .call(move || store.open(&path, how, &worker.locks));
                Ok(opened.await?.on(Arc::clone(&shared)))
            });
        }
        Box::pin(async move {
            let worker = Arc::clone(&shared);
            let opened = shared
                .names
                .call(move || worker.handles.open(&path, how, &worker.locks));
            Ok(Rc::new(RealFile {
                handle: opened.await?,
                place: OnceCell::new(),
                engine,
                shared,
                slow,
            }) as Rc<dyn File>)
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> LocalFuture<io::Result<()>> {
        let (to, forgotten_to) = (to.to_owned(), to.to_owned());
        self.on_names(
            from,
            move |from| fs::rename(from, to),
            move |store, from| store.rename(from, &forgotten_to),
        )
    }

    fn remove(&self, path: &Path) -> LocalFuture<io::Result<()>> {
        self.on_names(path, |path| fs::remove_file(path), Forgetful::remove)
    }

    fn create_dir(&self, path: &Path) -> LocalFuture<io::Result<()>> {
        self.on_names(
            path,
            |path| fs::create_dir_all(path),
            |_, path| fs::create_dir_all(path),
        )
    }

    fn list(&self, path: &Path) -> LocalFuture<io::Result<Vec<DirEntry>>> {
        self.on_names(path, list, Forgetful::list)
    }

    fn sync_dir(&self, path: &Path) -> LocalFuture<io::Result<()>> {
        self.on_names(path, handle::sync_dir, Forgetful::sync_dir)
    }

    fn engine(&self) -> DiskEngine {
        match &self.engine {
            Engine::Ring(ring) => {
                let (registered_files, registered_bytes) = ring.registered();
                DiskEngine {
                    kind: EngineKind::Uring,
                    registered_files,
                    registered_bytes,
                }
            }
            Engine::Threads => DiskEngine::default(),
        }
    }

    fn space(&self, path: &Path) -> LocalFuture<io::Result<Space>> {
        self.on_names(path, space, |_, path| space(path))
    }

    fn read_fact(&self, path: &Path) -> LocalFuture<io::Result<String>> {
        self.on_names(path, read_fact, |_, path| read_fact(path))
    }

    fn kind(&self, path: &Path) -> LocalFuture<io::Result<PathKind>> {
        self.on_names(path, path_kind, |_, path| path_kind(path))
    }

    fn resolve(&self, path: &Path) -> LocalFuture<io::Result<PathBuf>> {
        self.on_names(
            path,
            |path| fs::canonicalize(path),
            |_, path| fs::canonicalize(path),
        )
    }
}

fn path_kind(path: &Path) -> io::Result<PathKind> {
    let kind = fs::metadata(path)?.file_type();
    Ok(if kind.is_dir() {
        PathKind::Directory
    } else if kind.is_file() {
        PathKind::Regular
    } else if kind.is_block_device() {
        PathKind::Block
    } else {
        PathKind::Other
    })
}

/// Such a file has no length before it is read.
fn read_fact(path: &Path) -> io::Result<String> {
    const LONGEST: u64 = 64 << 10;
    let mut bytes = Vec::new();
    fs::File::open(path)?
        .take(LONGEST)
        .read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.trim_end().to_owned())
}

fn space(path: &Path) -> io::Result<Space> {
    let reported = rustix::fs::statvfs(path)?;
    // statvfs's own number is 0 with some file systems.
    let file_system = rustix::fs::stat(path)?.st_dev;
    Ok(Space {
        file_system,
        total: reported.f_blocks.saturating_mul(reported.f_frsize),
        available: reported.f_bavail.saturating_mul(reported.f_frsize),
        used: reported
            .f_blocks
            .saturating_sub(reported.f_bfree)
            .saturating_mul(reported.f_frsize),
    })
}

impl RealFile {
    fn transfer(&self, offset: u64, memory: Memory) -> FileFuture {
        let transfer = Transfer::new(Arc::clone(&self.handle), offset, memory);
        match &self.engine {
            Engine::Ring(ring) => {
                let place = self.place.get_or_init(|| ring.register(&self.handle.fd));
                Answer::wait(ring.submit(transfer, place.clone()))
            }
            Engine::Threads => Answer::Waiting(self.shared.data.call(|| transfer.run_blocking())),
        }
    }

    fn sync(&self) -> FileFuture {
        let syncs = Arc::clone(&self.handle.syncs);
        let answer = self.transfer(0, Memory::Sync(syncs.begin()));
        Answer::wait(async move {
            let done = answer.await?;
            syncs.believed().await?;
            Ok(done)
        })
    }

    fn blocking(&self, op: Blocking) -> FileFuture {
        let handle = Arc::clone(&self.handle);
        Answer::Waiting(self.shared.data.call(move || op.run(&handle)))
    }

    fn read(&self, offset: u64, mut into: BufMut) -> FileFuture {
        let alignment = self.handle.facts.alignment as usize;
        let end = offset + into.len() as u64;
        let in_place = offset.is_multiple_of(alignment as u64)
            && into.pieces_mut().all(|piece| is_aligned(piece, alignment));
        if alignment == 1 || in_place {
            return self.transfer(offset, Memory::Read(into));
        }
        self.shared.bounces.fetch_add(1, Ordering::Relaxed);
        let start = offset - offset % alignment as u64;
        let span = (end - start).next_multiple_of(alignment as u64);
        let Ok(span) = usize::try_from(span) else {
            return Answer::ready(Err(io::ErrorKind::InvalidInput.into()));
        };
        let wide = self.transfer(start, Memory::Read(BufMut::zeroed(span)));
        Answer::wait(async move {
            let FileDone::Read(wide) = wide.await? else {
                unreachable!("a read answers with its memory")
            };
            let skip = usize::try_from(offset - start).expect("below the alignment");
            copy(&wide.freeze(), skip, &mut into);
            Ok(FileDone::Read(into))
        })
    }

    fn write(&self, offset: u64, data: Buf, durable: Durable) -> FileFuture {
        let alignment = self.handle.facts.alignment as usize;
        if alignment == 1 || data.segments().all(|piece| is_aligned(piece, alignment)) {
            return self.transfer(offset, Memory::Write(data, durable));
        }
        self.shared.bounces.fetch_add(1, Ordering::Relaxed);
        let mut aligned = BufMut::zeroed(data.len());
        copy(&data, 0, &mut aligned);
        self.transfer(offset, Memory::Write(aligned.freeze(), durable))
    }
}

fn is_aligned(piece: &[u8], alignment: usize) -> bool {
    piece.as_ptr().addr().is_multiple_of(alignment) && piece.len().is_multiple_of(alignment)
}

/// Fills `to` with what `from` holds from `skip` on.
fn copy(from: &Buf, skip: usize, to: &mut BufMut) {
    let mut at = 0;
    for piece in to.pieces_mut() {
        from.copy_to(skip + at, piece);
        at += piece.len();
    }
}

impl File for RealFile {
    fn facts(&self) -> FileFacts {
        self.handle.facts
    }

    fn submit(&self, op: FileOp) -> FileFuture {
        if let Some(slow) = self.slow.as_ref().filter(|_| op.is_stable()) {
            return slow.after(self.start(op), &self.shared);
        }
        self.start(op)
    }
}

impl RealFile {
    fn start(&self, op: FileOp) -> FileFuture {
        match op {
            FileOp::Read { offset, into } => {
                if into.is_empty() {
                    return Answer::ready(Ok(FileDone::Read(into)));
                }
                self.read(offset, into)
            }
            FileOp::Write {
                offset,
                data,
                durable,
            } => {
                if data.is_empty() {
                    return Answer::ready(Ok(FileDone::Nothing));
                }
                let alignment = u64::from(self.handle.facts.alignment);
                let len = data.len() as u64;
                if !offset.is_multiple_of(alignment) || !len.is_multiple_of(alignment) {
                    // Read-modify-write down here would lose what another core writes to the same
                    // block.
                    return Answer::ready(Err(io::Error::new(
                        io::ErrorKind::InvalidInput,
                        format!("{len} bytes at {offset} are no whole units of {alignment} bytes"),
                    )));
                }
                self.write(offset, data, durable)
            }
            FileOp::Sync => self.sync(),
            FileOp::PunchHole { offset, len } => self.blocking(Blocking::PunchHole { offset, len }),
            FileOp::ZeroRange { offset, len } => self.blocking(Blocking::ZeroRange { offset, len }),
            FileOp::Allocate { offset, len } => self.blocking(Blocking::Allocate { offset, len }),
            FileOp::SetLen { len } => self.blocking(Blocking::SetLen { len }),
            FileOp::Extents { offset, len } => self.blocking(Blocking::Extents { offset, len }),
            FileOp::Len => self.blocking(Blocking::Len),
        }
    }
}
