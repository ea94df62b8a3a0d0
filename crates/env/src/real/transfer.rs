//! One read, write or sync on its way through the kernel, whichever engine carries it.
//!
//! **Contract.** A transfer owns its memory and keeps its file open until the kernel has answered
//! for the last part of it. Short answers are continued, interrupted ones repeated; bytes past the
//! end of the file come as zeroes.

use super::handle::Handle;
use super::syncs::PendingSync;
use crate::file::{Durable, FileDone};
use rustix::io::ReadWriteFlags;
use std::io::{self, IoSlice, IoSliceMut};
use std::sync::Arc;
use units::{Buf, BufMut};

/// The most pieces that one system call takes (IOV_MAX).
pub(super) const PIECES_MAX: usize = 1024;

/// What is to be moved.
pub(super) enum Memory {
    /// From the file into this memory.
    Read(BufMut),
    /// From this memory into the file.
    Write(Buf, Durable),
    /// Nothing: make what is completed stable.
    Sync(PendingSync),
}

/// See the module.
pub(super) struct Transfer {
    pub(super) handle: Arc<Handle>,
    pub(super) memory: Memory,
    offset: u64,
    done: usize,
}

/// What to do after an answer of the kernel.
#[derive(Debug)]
pub(super) enum Step {
    /// Hand the rest to the kernel.
    Again,
    /// It is over.
    Finished(io::Result<()>),
}

impl Transfer {
    pub(super) fn new(handle: Arc<Handle>, offset: u64, memory: Memory) -> Self {
        Self {
            handle,
            memory,
            offset,
            done: 0,
        }
    }

    /// Bytes that are done.
    pub(super) fn done(&self) -> usize {
        self.done
    }

    /// Where the rest begins in the file.
    pub(super) fn at(&self) -> u64 {
        self.offset + self.done as u64
    }

    fn total(&self) -> usize {
        match &self.memory {
            Memory::Read(into) => into.len(),
            Memory::Write(data, _) => data.len(),
            Memory::Sync(_) => 0,
        }
    }

    /// Takes the kernel's answer: a number of bytes or an error.
    pub(super) fn advance(&mut self, answer: rustix::io::Result<usize>) -> Step {
        let step = self.step(answer);
        if let (Memory::Sync(sync), Step::Finished(result)) = (&mut self.memory, &step) {
            sync.end(result.is_ok());
        }
        step
    }

    fn step(&mut self, answer: rustix::io::Result<usize>) -> Step {
        let bytes = match answer {
            Ok(bytes) => bytes,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => return Step::Again,
            Err(error) => return Step::Finished(Err(error.into())),
        };
        let left = self.total() - self.done;
        assert!(
            bytes <= left,
            "the kernel moved {bytes} bytes where {left} were asked for"
        );
        self.done += bytes;
        if bytes == left {
            return Step::Finished(Ok(()));
        }
        let alignment = self.handle.facts.alignment as usize;
        match &mut self.memory {
            // Direct I/O stops at the end of the file in the middle of a block; asking on from
            // there would be refused as unaligned.
            Memory::Read(into) if bytes == 0 || bytes % alignment != 0 => {
                into.zero_from(self.done);
                Step::Finished(Ok(()))
            }
            Memory::Write(..) if bytes == 0 => Step::Finished(Err(io::ErrorKind::WriteZero.into())),
            Memory::Read(_) | Memory::Write(..) | Memory::Sync(_) => Step::Again,
        }
    }

    /// Does all of it in this thread.
    pub(super) fn run_blocking(mut self) -> io::Result<FileDone> {
        loop {
            let answer = self.call();
            if let Step::Finished(result) = self.advance(answer) {
                return result.map(|()| self.into_done());
            }
        }
    }

    fn call(&mut self) -> rustix::io::Result<usize> {
        let (at, done) = (self.at(), self.done);
        let fd = &self.handle.fd;
        match &mut self.memory {
            Memory::Read(into) => {
                let mut skip = done;
                let mut slices: Vec<IoSliceMut<'_>> = Vec::new();
                for piece in into.pieces_mut() {
                    let cut = skip.min(piece.len());
                    skip -= cut;
                    if cut < piece.len() && slices.len() < PIECES_MAX {
                        slices.push(IoSliceMut::new(&mut piece[cut..]));
                    }
                }
                rustix::io::preadv2(fd, &mut slices, at, ReadWriteFlags::empty())
            }
            Memory::Write(data, durable) => {
                let mut skip = done;
                let mut slices: Vec<IoSlice<'_>> = Vec::new();
                for piece in data.segments() {
                    let cut = skip.min(piece.len());
                    skip -= cut;
                    if cut < piece.len() && slices.len() < PIECES_MAX {
                        slices.push(IoSlice::new(&piece[cut..]));
                    }
                }
                let flags = match durable {
                    Durable::Yes => ReadWriteFlags::DSYNC,
                    Durable::No => ReadWriteFlags::empty(),
                };
                rustix::io::pwritev2(fd, &slices, at, flags)
            }
            Memory::Sync(_) => rustix::fs::fdatasync(self.handle.to_sync()).map(|()| 0),
        }
    }

    /// What the caller gets.
    pub(super) fn into_done(self) -> FileDone {
        match self.memory {
            Memory::Read(into) => FileDone::Read(into),
            Memory::Write(..) | Memory::Sync(_) => FileDone::Nothing,
        }
    }
}
