//! A store that a kill of the process treats as a power cut treats a disk: what was never synced is
//! gone.
//!
//! For tests of the whole program. A killed process leaves its page cache behind, so `kill -9`
//! proves nothing of syncs; with this store everything that is written and not synced lives in this
//! process only. It is part of every build and not behind a feature, so that the program that is
//! killed in tests is the one that is given away (docs/adr/0021-disks-for-tests.md).
//!
//! **Contract.** Reads see all. A sync puts down all completed operations of that file; a durable
//! write puts down its own bytes; the directory's sync puts down names: those of that directory,
//! oldest first, and older changes of another directory's names only where a rename between the two
//! needs them. Only then does a new file's name exist in the system; its contents are what was
//! synced. Allocation (which changes no contents) happens at once. Directories are made at once.
//! All operations on one file are done one after another, each on a worker thread.
//!
//! **Limits.** Paths are compared after making them absolute, without resolving links; one runtime
//! is the only user of its files. The file system must know unnamed files (O_TMPFILE).

mod overlay;
#[cfg(test)]
mod test;

use super::blocking::Blocking;
use super::directory;
use super::handle::{Handle, Locks};
use super::shared::FilesShared;
use crate::Answer;
use crate::file::{
    Access, Create, DirEntry, Durable, Extent, File, FileDone, FileFacts, FileFuture, FileKind,
    FileOp, OpenHow,
};
use overlay::{Overlay, Piece};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf, absolute};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{Buf, BufMut};

/// All files of a runtime that forgets.
#[derive(Default)]
pub(super) struct Forgetful(Mutex<Names>);

#[derive(Default)]
struct Names {
    /// What a path means now, where that may differ from the system's answer: a file, or nothing.
    meaning: BTreeMap<PathBuf, Option<Arc<Node>>>,
    /// Changes of names that are not put down, oldest first.
    pending: Vec<NameChange>,
}

enum NameChange {
    Link(PathBuf, Arc<Node>),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

/// One file, under whatever name.
struct Node {
    /// The system's file. It never uses direct I/O, whatever was asked for.
    handle: Handle,
    state: Mutex<State>,
}

/// What the system's file does not have yet.
struct State {
    overlay: Overlay,
    len: u64,
}

/// A file that was opened, on its way to the core that asked for it.
pub(super) struct Opened {
    node: Arc<Node>,
    /// What the caller gets, and the lock it asked for.
    view: Arc<Handle>,
}

struct ForgetfulFile {
    opened: Arc<Opened>,
    shared: Arc<FilesShared>,
}

impl Forgetful {
    fn names(&self) -> MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn open(&self, path: &Path, how: OpenHow, locks: &Locks) -> io::Result<Opened> {
        let path = absolute(path)?;
        let mut names = self.names();
        let node = match (names.find(&path)?, how.create) {
            (Some(_), Create::New) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(node), Create::No | Create::IfAbsent | Create::Truncate) => node,
            (None, Create::No) => return Err(io::ErrorKind::NotFound.into()),
            (None, Create::New | Create::IfAbsent | Create::Truncate) => names.create(&path)?,
        };
        drop(names);
        // The view is a second description of the same file: it carries facts and the lock.
        let through = PathBuf::from(format!("/proc/self/fd/{}", node.handle.fd.as_raw_fd()));
        let create = Create::No;
        let view = Arc::new(Handle::open(&through, OpenHow { create, ..how }, locks)?);
        if how.create == Create::Truncate {
            node.lock().set_len(0);
        }
        Ok(Opened { node, view })
    }

    pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (absolute(from)?, absolute(to)?);
        let mut names = self.names();
        let node = names.find(&from)?.ok_or(io::ErrorKind::NotFound)?;
        names.meaning.insert(from.clone(), None);
        names.meaning.insert(to.clone(), Some(node));
        names.pending.push(NameChange::Rename(from, to));
        Ok(())
    }

    pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
        let path = absolute(path)?;
        let mut names = self.names();
        names.find(&path)?.ok_or(io::ErrorKind::NotFound)?;
        names.meaning.insert(path.clone(), None);
        names.pending.push(NameChange::Remove(path));
        Ok(())
    }

    pub(super) fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let path = absolute(path)?;
        let names = self.names();
        let mut found = directory::list(&path)?;
        for (name, meaning) in &names.meaning {
            let (Some(parent), Some(last)) = (name.parent(), name.file_name()) else {
                continue;
            };
            if parent != path {
                continue;
            }
            let last = PathBuf::from(last);
            // What was never synced takes its space in memory, not here.
            let known = found.iter().find(|entry| entry.name == last);
            let allocated = known.map_or(0, |entry| entry.allocated);
            found.retain(|entry| entry.name != last);
            if let Some(node) = meaning {
                found.push(DirEntry {
                    name: last,
                    len: node.lock().len,
                    allocated,
                    is_dir: false,
                });
            }
        }
        found.sort();
        Ok(found)
    }

    pub(super) fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let path = absolute(path)?;
        let mut names = self.names();
        // What was put down stays put down if a later change fails.
        for change in names.due(&path) {
            change.put_down()?;
        }
        Ok(())
    }
}

impl Names {
    /// Takes the changes that a sync of `directory` puts down, oldest first.
    fn due(&mut self, directory: &Path) -> Vec<NameChange> {
        let mut directories = vec![directory.to_owned()];
        let (mut due, mut rest) = (Vec::new(), Vec::new());
        for change in self.pending.drain(..).rev() {
            if directories.iter().any(|directory| change.is_in(directory)) {
                // A rename takes along what made its source.
                directories.extend(change.directories());
                due.push(change);
            } else {
                rest.push(change);
            }
        }
        rest.reverse();
        due.reverse();
        self.pending = rest;
        due
    }

    /// The file of that name, if there is one.
    fn find(&mut self, path: &Path) -> io::Result<Option<Arc<Node>>> {
        if let Some(meaning) = self.meaning.get(path) {
            return Ok(meaning.clone());
        }
        let how = OpenHow {
            access: Access::ReadWrite,
            create: Create::No,
            direct: false,
            lock: false,
        };
        let handle = match Handle::open(path, how, &Locks::default()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let node = Arc::new(Node::new(handle)?);
        self.meaning
            .insert(path.to_owned(), Some(Arc::clone(&node)));
        Ok(Some(node))
    }

    fn create(&mut self, path: &Path) -> io::Result<Arc<Node>> {
        let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let fd = rustix::fs::open(parent, flags, Mode::RUSR | Mode::WUSR)?;
        let how = OpenHow {
            access: Access::ReadWrite,
            create: Create::No,
            direct: false,
            lock: false,
        };
        let handle = Handle::adopt(fd, how, false, &Locks::default())?;
        let node = Arc::new(Node::new(handle)?);
        self.meaning
            .insert(path.to_owned(), Some(Arc::clone(&node)));
        self.pending
            .push(NameChange::Link(path.to_owned(), Arc::clone(&node)));
        Ok(node)
    }
}

impl NameChange {
    /// Where it changes names.
    fn directories(&self) -> Vec<PathBuf> {
        let paths = match self {
            Self::Link(path, _) | Self::Remove(path) => vec![path],
            Self::Rename(from, to) => vec![from, to],
        };
        let parents = paths.into_iter().filter_map(|path| path.parent());
        parents.map(Path::to_owned).collect()
    }

    fn is_in(&self, directory: &Path) -> bool {
        self.directories().iter().any(|it| it == directory)
    }

    fn put_down(self) -> io::Result<()> {
        match self {
            Self::Link(path, node) => {
                let through = format!("/proc/self/fd/{}", node.handle.fd.as_raw_fd());
                rustix::fs::linkat(CWD, through, CWD, path, AtFlags::SYMLINK_FOLLOW)?;
                Ok(())
            }
            Self::Rename(from, to) => fs::rename(from, to),
            Self::Remove(path) => fs::remove_file(path),
        }
    }
}

impl Node {
    fn new(handle: Handle) -> io::Result<Self> {
        let len = handle.len()?;
        Ok(Self {
            handle,
            state: Mutex::new(State {
                overlay: Overlay::default(),
                len,
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(self: &Arc<Self>, op: FileOp) -> io::Result<FileDone> {
        let mut state = self.lock();
        match op {
            FileOp::Read { offset, into } => state.read(self, offset, into),
            FileOp::Write {
                offset,
                data,
                durable,
            } => {
                state.write(self, offset, &data, durable)?;
                Ok(FileDone::Nothing)
            }
            FileOp::Sync => {
                state.put_down(self)?;
                Ok(FileDone::Nothing)
            }
            FileOp::PunchHole { offset, len } => {
                if self.handle.facts.discard_granularity == 0 {
                    return Err(io::ErrorKind::Unsupported.into());
                }
                state.zero(offset, len, &Piece::Hole(len));
                Ok(FileDone::Nothing)
            }
            FileOp::ZeroRange { offset, len } => {
                state.zero(offset, len, &Piece::Zeroes(len));
                Ok(FileDone::Nothing)
            }
            FileOp::Allocate { offset, len } => {
                Blocking::Allocate { offset, len }.run(&self.handle)
            }
            FileOp::SetLen { len } => match self.handle.facts.kind {
                FileKind::Regular => {
                    state.set_len(len);
                    Ok(FileDone::Nothing)
                }
                FileKind::Block => Err(io::ErrorKind::Unsupported.into()),
            },
            FileOp::Extents { offset, len } => state.extents(self, offset, len),
            FileOp::Len => Ok(FileDone::Len(state.len)),
        }
    }

    fn write_system(self: &Arc<Self>, offset: u64, data: &Buf) -> io::Result<()> {
        let mut at = 0;
        while at < data.len() {
            let segments = data.slice(at..data.len());
            let first = segments.segments().next().expect("some bytes are left");
            let done = rustix::io::pwrite(&self.handle.fd, first, offset + at as u64)?;
            at += done;
        }
        Ok(())
    }
}

impl State {
    fn read(&self, node: &Node, offset: u64, into: BufMut) -> io::Result<FileDone> {
        let mut into = self.read_system(node, offset, into)?;
        let len = into.len() as u64;
        self.overlay.read(offset, len, |at, bytes| {
            let at = usize::try_from(at).expect("inside the buffer");
            into.copy_at(at, bytes);
        });
        // The system's file may still be longer than a file that was cut.
        let inside = self.len.saturating_sub(offset).min(len);
        into.zero_from(usize::try_from(inside).expect("at most the buffer's length"));
        Ok(FileDone::Read(into))
    }

    fn read_system(&self, node: &Node, offset: u64, mut into: BufMut) -> io::Result<BufMut> {
        let mut at = 0;
        while at < into.len() {
            let chunk = into.chunk_mut(at);
            let done = rustix::io::pread(&node.handle.fd, chunk, offset + at as u64)?;
            if done == 0 {
                into.zero_from(at);
                break;
            }
            at += done;
        }
        Ok(into)
    }

    fn write(
        &mut self,
        node: &Arc<Node>,
        offset: u64,
        data: &Buf,
        durable: Durable,
    ) -> io::Result<()> {
        let end = offset + data.len() as u64;
        if node.handle.facts.kind == FileKind::Block && end > self.len {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        match durable {
            Durable::Yes => {
                node.write_system(offset, data)?;
                self.overlay.clear(offset, data.len() as u64);
            }
            Durable::No => self.overlay.put(offset, Piece::Bytes(data.clone())),
        }
        self.len = self.len.max(end);
        Ok(())
    }

    fn zero(&mut self, offset: u64, len: u64, piece: &Piece) {
        // Nothing changes behind the end.
        let len = len.min(self.len.saturating_sub(offset));
        if len > 0 {
            self.overlay.put(offset, piece.cut_to(len));
        }
    }

    fn set_len(&mut self, len: u64) {
        if len < self.len {
            // What was there must read as zeroes if the file grows again.
            self.overlay.put(len, Piece::Hole(self.len - len));
        }
        self.len = len;
    }

    /// Makes the system's file equal to what is read here.
    fn put_down(&mut self, node: &Arc<Node>) -> io::Result<()> {
        while let Some((offset, piece)) = self.overlay.first() {
            match piece {
                Piece::Bytes(data) => node.write_system(offset, data)?,
                Piece::Hole(len) => {
                    let (offset, len) = (offset, *len);
                    punch_or_zero(node, Blocking::PunchHole { offset, len }, offset, len)?;
                }
                Piece::Zeroes(len) => {
                    let (offset, len) = (offset, *len);
                    punch_or_zero(node, Blocking::ZeroRange { offset, len }, offset, len)?;
                }
            }
            self.overlay.remove(offset);
        }
        if node.handle.facts.kind == FileKind::Regular && node.handle.len()? != self.len {
            rustix::fs::ftruncate(&node.handle.fd, self.len)?;
        }
        Ok(())
    }

    fn extents(&self, node: &Node, offset: u64, len: u64) -> io::Result<FileDone> {
        let done = Blocking::Extents { offset, len }.run(&node.handle)?;
        let FileDone::Extents(system) = done else {
            unreachable!("extents answer extents")
        };
        let mut merged: Vec<Extent> = Vec::new();
        for extent in system {
            self.overlay.split(extent, |piece| match merged.last_mut() {
                Some(last) if last.allocated == piece.allocated => last.len += piece.len,
                _ => merged.push(piece),
            });
        }
        Ok(FileDone::Extents(merged))
    }
}

fn punch_or_zero(node: &Arc<Node>, op: Blocking, offset: u64, len: u64) -> io::Result<()> {
    match op.run(&node.handle) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            let len = usize::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
            node.write_system(offset, &Buf::zeroes(len))
        }
        Err(error) => Err(error),
    }
}

impl Opened {
    pub(super) fn on(self, shared: Arc<FilesShared>) -> Rc<dyn File> {
        Rc::new(ForgetfulFile {
            opened: Arc::new(self),
            shared,
        })
    }
}

impl File for ForgetfulFile {
    fn facts(&self) -> FileFacts {
        self.opened.view.facts
    }

    fn submit(&self, op: FileOp) -> FileFuture {
        let opened = Arc::clone(&self.opened);
        Answer::Waiting(self.shared.data.call(move || opened.node.run(op)))
    }
}
