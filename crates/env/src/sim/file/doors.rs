//! `Files` and `File` of a simulated node.

use super::super::executor::Life;
use super::super::fault::Fault;
use super::super::inner::{Inner, nanos};
use super::super::sleep::Sleep;
use super::DiskState;
use super::flight::{Slot, Work};
use super::inode::{Change, Inode};
use super::names::{Entry, normal};
use crate::{
    Access, Answer, Create, DirEntry, Durable, File, FileFacts, FileFuture, FileKind, FileOp,
    Files, LocalFuture, OpenHow, PathKind, Space,
};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::task::Poll;

/// How often an operation on a name that hangs checks whether it may go on, in nanoseconds.
const HANGING_PROBE_INTERVAL: u64 = 10_000_000;

/// The file system as one life of one node sees it.
#[derive(Clone)]
pub(in super::super) struct SimFiles {
    inner: Rc<Inner>,
    life: Life,
}

fn dead() -> io::Error {
    io::Error::other("this life of the node is over")
}

impl SimFiles {
    pub(in super::super) fn new(inner: &Rc<Inner>, life: Life) -> Self {
        Self {
            inner: Rc::clone(inner),
            life,
        }
    }

    /// Waits as long as an operation on this name takes.
    async fn pause(&self, path: &Path) -> io::Result<()> {
        let (low, high) = (
            nanos(self.inner.config.disk_latency_min),
            nanos(self.inner.config.disk_latency_max),
        );
        let mut span = self.inner.between(low, high);
        if self.inner.happens(Fault::FileSlow) {
            span += self.inner.between(1_000_000, 2_000_000_000);
        }
        Sleep::new(&self.inner, self.inner.now() + span).await;
        let hangs = |disk: &mut DiskState| disk.hangs(path);
        while self.inner.is_alive(self.life) && self.inner.with_disk(self.life.node, hangs) {
            Sleep::new(&self.inner, self.inner.now() + HANGING_PROBE_INTERVAL).await;
        }
        if self.inner.is_alive(self.life) {
            return Ok(());
        }
        Err(dead())
    }

    fn name_event<T>(&self, kind: u64, inode: u64, result: io::Result<T>) -> io::Result<T> {
        let failed = u64::from(result.is_err());
        let place = Some((self.life.node, 0));
        self.inner.event(place, "name", [kind, inode, failed]);
        result
    }

    fn open_now(&self, path: &Path, how: OpenHow) -> io::Result<SimFile> {
        self.inner.with_disk(self.life.node, |disk| {
            let number = match disk.names.get(path) {
                Some(Entry::Directory) => return Err(ErrorKind::IsADirectory.into()),
                Some(Entry::File(_)) if how.create == Create::New => {
                    return Err(ErrorKind::AlreadyExists.into());
                }
                Some(Entry::File(number)) => number,
                None if how.create == Create::No => return Err(ErrorKind::NotFound.into()),
                None if !disk.names.has_parent(path) => return Err(ErrorKind::NotFound.into()),
                None => {
                    let number = disk.number();
                    disk.inodes.insert(number, Inode::regular());
                    disk.names.set(path, Some(Entry::File(number)));
                    number
                }
            };
            let handle = disk.number();
            let inode = disk.inode(number);
            // A node is one process, whose cores open a file side by side; no other process is
            // there to be refused.
            if how.lock {
                inode.locked_by = Some(handle);
            }
            if how.create == Create::Truncate && inode.kind == FileKind::Regular {
                inode.change(handle, Change::SetLen { len: 0 });
                inode.complete(handle);
            }
            let alignment = match inode.kind {
                FileKind::Regular => self.inner.config.direct_alignment,
                FileKind::Block => inode.logical_block_bytes,
            };
            let direct = how.direct && alignment > 0;
            let facts = FileFacts {
                kind: inode.kind,
                direct,
                alignment: if direct { alignment } else { 1 },
                logical_block_bytes: inode.logical_block_bytes,
                physical_block_bytes: inode.physical_block_bytes,
                discard_granularity: inode.discard_granularity,
                discard_reads_zero: inode.discard_granularity > 0,
                identity: Some((0, number)),
            };
            Ok(SimFile {
                files: self.clone(),
                inode: number,
                handle,
                access: how.access,
                facts,
            })
        })
    }

    fn rename_now(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.with_disk(self.life.node, |disk| {
            let Some(entry) = disk.names.get(from) else {
                return Err(ErrorKind::NotFound.into());
            };
            if !disk.names.has_parent(to) {
                return Err(ErrorKind::NotFound.into());
            }
            if entry == Entry::Directory || disk.names.get(to) == Some(Entry::Directory) {
                return Err(ErrorKind::IsADirectory.into());
            }
            if from != to {
                disk.names.rename(from, to, entry);
            }
            Ok(())
        })
    }

    fn list_now(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.inner.with_disk(self.life.node, |disk| {
            match disk.names.get(path) {
                None => return Err(ErrorKind::NotFound.into()),
                Some(Entry::File(_)) => return Err(ErrorKind::NotADirectory.into()),
                Some(Entry::Directory) => {}
            }
            let mut out = Vec::new();
            for (path, entry) in disk.names.list(path) {
                let name = PathBuf::from(path.file_name().expect("only the root has no name"));
                let (len, allocated, is_dir) = match entry {
                    Entry::Directory => (0, 0, true),
                    Entry::File(number) => {
                        let content = &disk.inode(number).volatile;
                        (content.len(), content.allocated(), false)
                    }
                };
                out.push(DirEntry {
                    name,
                    len,
                    allocated,
                    is_dir,
                });
            }
            Ok(out)
        })
    }

    fn sync_dir_now(&self, path: &Path) -> io::Result<()> {
        let fails = self.inner.happens(Fault::FileSyncError);
        self.inner.with_disk(self.life.node, |disk| {
            match disk.names.get(path) {
                None => return Err(ErrorKind::NotFound.into()),
                Some(Entry::File(_)) => return Err(ErrorKind::NotADirectory.into()),
                Some(Entry::Directory) if fails => return Err(io::Error::from_raw_os_error(5)),
                Some(Entry::Directory) => {}
            }
            if !disk.lying {
                disk.names.sync(path);
            }
            Ok(())
        })
    }

    fn remove_now(&self, path: &Path) -> io::Result<()> {
        self.inner
            .with_disk(self.life.node, |disk| match disk.names.get(path) {
                None => Err(ErrorKind::NotFound.into()),
                Some(Entry::Directory) => Err(ErrorKind::IsADirectory.into()),
                Some(Entry::File(_)) => {
                    disk.names.set(path, None);
                    Ok(())
                }
            })
    }

    fn create_dir_now(&self, path: &Path) -> io::Result<()> {
        self.inner.with_disk(self.life.node, |disk| {
            let mut at = PathBuf::new();
            for component in path.components() {
                at.push(component);
                match disk.names.get(&at) {
                    Some(Entry::Directory) => {}
                    Some(Entry::File(_)) => return Err(ErrorKind::NotADirectory.into()),
                    None => disk.names.set(&at, Some(Entry::Directory)),
                }
            }
            Ok(())
        })
    }
}

impl Files for SimFiles {
    fn open(&self, path: &Path, how: OpenHow) -> LocalFuture<io::Result<Rc<dyn File>>> {
        let (this, path) = (self.clone(), normal(path));
        Box::pin(async move {
            this.pause(&path).await?;
            let opened = this.open_now(&path, how);
            let inode = opened.as_ref().map_or(0, |file| file.inode);
            let file = this.name_event(0, inode, opened)?;
            let file: Rc<dyn File> = Rc::new(file);
            Ok(file)
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> LocalFuture<io::Result<()>> {
        let (this, from, to) = (self.clone(), normal(from), normal(to));
        Box::pin(async move {
            this.pause(&from).await?;
            this.name_event(1, 0, this.rename_now(&from, &to))
        })
    }

    fn remove(&self, path: &Path) -> LocalFuture<io::Result<()>> {
        let (this, path) = (self.clone(), normal(path));
        Box::pin(async move {
            this.pause(&path).await?;
            this.name_event(2, 0, this.remove_now(&path))
        })
    }

    fn create_dir(&self, path: &Path) -> LocalFuture<io::Result<()>> {
        let (this, path) = (self.clone(), normal(path));
        Box::pin(async move {
            this.pause(&path).await?;
            this.name_event(3, 0, this.create_dir_now(&path))
        })
    }

    fn list(&self, path: &Path) -> LocalFuture<io::Result<Vec<DirEntry>>> {
        let (this, path) = (self.clone(), normal(path));
        Box::pin(async move {
            this.pause(&path).await?;
            this.name_event(5, 0, this.list_now(&path))
        })
    }

    fn kind(&self, path: &Path) -> LocalFuture<io::Result<PathKind>> {
        let (this, path) = (self.clone(), normal(path));
        Box::pin(async move {
            this.pause(&path).await?;
            this.inner.with_disk(this.life.node, |disk| {
                let number = match disk.names.get(&path) {
                    None => return Err(ErrorKind::NotFound.into()),
                    Some(Entry::Directory) => return Ok(PathKind::Directory),
                    Some(Entry::File(number)) => number,
                };
                Ok(match disk.inode(number).kind {
                    FileKind::Regular => PathKind::Regular,
                    FileKind::Block => PathKind::Block,
                })
            })
        })
    }

    fn sync_dir(&self, path: &Path) -> LocalFuture<io::Result<()>> {
        let (this, path) = (self.clone(), normal(path));
        Box::pin(async move {
            this.pause(&path).await?;
            this.name_event(4, 0, this.sync_dir_now(&path))
        })
    }

    fn space(&self, path: &Path) -> LocalFuture<io::Result<Space>> {
        let (this, path) = (self.clone(), normal(path));
        Box::pin(async move {
            this.pause(&path).await?;
            Ok(this.inner.with_disk(this.life.node, |disk| Space {
                file_system: 1,
                total: disk.capacity,
                available: disk.capacity.saturating_sub(disk.used()),
                used: disk.used(),
            }))
        })
    }
}

/// An open file.
struct SimFile {
    files: SimFiles,
    inode: u64,
    handle: u64,
    access: Access,
    facts: FileFacts,
}

impl SimFile {
    /// What an operation will do, or why it is refused at once.
    fn work(&self, op: FileOp) -> io::Result<Work> {
        let block = self.facts.kind == FileKind::Block;
        let change = |change| {
            if self.access == Access::Read {
                return Err(io::Error::from_raw_os_error(9));
            }
            Ok(Work::Change {
                rest: Some(change),
                durable: Durable::No,
            })
        };
        match op {
            FileOp::Read { offset, into } => {
                self.aligned(offset, into.len())?;
                Ok(Work::Read {
                    offset,
                    into,
                    is_seen: false,
                })
            }
            FileOp::Write {
                offset,
                data,
                durable,
            } => {
                self.aligned(offset, data.len())?;
                (offset.checked_add(data.len() as u64)).ok_or(ErrorKind::InvalidInput)?;
                let made = change(Change::Write { offset, data })?;
                match made {
                    Work::Change { rest, .. } => Ok(Work::Change { rest, durable }),
                    Work::Read { .. } | Work::Sync { .. } | Work::Extents { .. } | Work::Len => {
                        Ok(made)
                    }
                }
            }
            FileOp::Sync => {
                let covers = self.with_inode(|inode| inode.completed());
                Ok(Work::Sync { covers })
            }
            FileOp::PunchHole { offset, len } => {
                self.supported(self.facts.discard_granularity > 0)?;
                let range = offset..offset.saturating_add(len);
                change(Change::Zero { range, keep: false })
            }
            FileOp::ZeroRange { offset, len } => {
                let range = offset..offset.saturating_add(len);
                change(Change::Zero { range, keep: true })
            }
            FileOp::Allocate { offset, len } => {
                self.supported(!block)?;
                let range = offset..offset.saturating_add(len);
                change(Change::Allocate { range })
            }
            FileOp::SetLen { .. } if block => Err(ErrorKind::InvalidInput.into()),
            FileOp::SetLen { len } => change(Change::SetLen { len }),
            FileOp::Extents { .. } if block => Err(ErrorKind::Unsupported.into()),
            FileOp::Extents { offset, len } => Ok(Work::Extents { offset, len }),
            FileOp::Len => Ok(Work::Len),
        }
    }

    fn with_inode<T>(&self, inspect: impl FnOnce(&mut Inode) -> T) -> T {
        let files = &self.files;
        (files.inner).with_disk(files.life.node, |disk| inspect(disk.inode(self.inode)))
    }

    fn supported(&self, yes: bool) -> io::Result<()> {
        if yes {
            return Ok(());
        }
        Err(ErrorKind::Unsupported.into())
    }

    /// Direct I/O takes whole units only; memory that is not aligned costs the real side a copy.
    fn aligned(&self, offset: u64, len: usize) -> io::Result<()> {
        let alignment = u64::from(self.facts.alignment);
        if offset.is_multiple_of(alignment) && (len as u64).is_multiple_of(alignment) {
            return Ok(());
        }
        Err(ErrorKind::InvalidInput.into())
    }
}

impl File for SimFile {
    fn facts(&self) -> FileFacts {
        self.facts
    }

    fn submit(&self, op: FileOp) -> FileFuture {
        let files = &self.files;
        if !files.inner.is_alive(files.life) {
            return Answer::ready(Err(dead()));
        }
        let work = match self.work(op) {
            Ok(work) => work,
            Err(error) => return Answer::ready(Err(error)),
        };
        let ids = (self.inode, self.handle);
        let slot = files.inner.file_submit(files.life.node, ids, work);
        if let Some(answer) = slot.borrow_mut().answer.take() {
            return Answer::ready(answer);
        }
        let (inner, life) = (Rc::clone(&files.inner), files.life);
        Answer::wait(poll_fn(move |cx| poll_slot(&inner, life, &slot, cx)))
    }
}

fn poll_slot(
    inner: &Inner,
    life: Life,
    slot: &RefCell<Slot>,
    cx: &std::task::Context<'_>,
) -> Poll<io::Result<crate::FileDone>> {
    let mut slot = slot.borrow_mut();
    if let Some(answer) = slot.answer.take() {
        return Poll::Ready(answer);
    }
    if !inner.is_alive(life) {
        return Poll::Ready(Err(dead()));
    }
    slot.waker = Some(cx.waker().clone());
    Poll::Pending
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let (inner, life) = (&self.files.inner, self.files.life);
        if !inner.is_alive(life) {
            return;
        }
        inner.with_disk(life.node, |disk| {
            let mut in_flight = disk.in_flight.values();
            if in_flight.any(|it| it.handle == self.handle) {
                disk.closing.insert(self.handle);
            } else {
                disk.unlock(self.handle);
            }
        });
    }
}
