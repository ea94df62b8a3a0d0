//! File operations that have no place in a ring: they run on a worker thread.

use super::handle::Handle;
use crate::file::{Extent, FileDone, FileKind};
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;
use std::io;

/// Extents that one answer holds at most.
const EXTENTS_MAX: usize = 256;

/// An operation of this kind.
#[derive(Clone, Copy, Debug)]
pub(super) enum Blocking {
    PunchHole { offset: u64, len: u64 },
    ZeroRange { offset: u64, len: u64 },
    Allocate { offset: u64, len: u64 },
    SetLen { len: u64 },
    Extents { offset: u64, len: u64 },
    Len,
}

impl Blocking {
    /// Does it in this thread.
    pub(super) fn run(self, handle: &Handle) -> io::Result<FileDone> {
        let keep = FallocateFlags::KEEP_SIZE;
        match self {
            Self::PunchHole { offset, len } => {
                fallocate(handle, FallocateFlags::PUNCH_HOLE | keep, offset, len)
            }
            Self::ZeroRange { offset, len } => {
                fallocate(handle, FallocateFlags::ZERO_RANGE | keep, offset, len)
            }
            Self::Allocate { offset, len } => fallocate(handle, keep, offset, len),
            Self::SetLen { len } => match handle.facts.kind {
                FileKind::Regular => {
                    repeat(|| rustix::fs::ftruncate(&handle.fd, len))?;
                    Ok(FileDone::Nothing)
                }
                FileKind::Block => Err(io::ErrorKind::Unsupported.into()),
            },
            Self::Extents { offset, len } => extents(handle, offset, len).map(FileDone::Extents),
            Self::Len => handle.len().map(FileDone::Len),
        }
    }
}

fn repeat<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

fn fallocate(
    handle: &Handle,
    flags: FallocateFlags,
    offset: u64,
    len: u64,
) -> io::Result<FileDone> {
    if len == 0 {
        return Ok(FileDone::Nothing);
    }
    match repeat(|| rustix::fs::fallocate(&handle.fd, flags, offset, len)) {
        Ok(()) => Ok(FileDone::Nothing),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Err(io::ErrorKind::Unsupported.into()),
        Err(error) => Err(error.into()),
    }
}

/// The allocation of a range, from `SEEK_DATA` and `SEEK_HOLE`. A device that cannot say is taken
/// as allocated; what is preallocated and never written counts as a hole, as the kernel says it.
fn extents(handle: &Handle, offset: u64, len: u64) -> io::Result<Vec<Extent>> {
    let end = offset.saturating_add(len);
    if handle.facts.kind == FileKind::Block {
        return Ok(vec![Extent {
            offset,
            len: end - offset,
            allocated: true,
        }]);
    }
    let mut found = Vec::new();
    let mut at = offset;
    while at < end && found.len() < EXTENTS_MAX {
        let data = match repeat(|| rustix::fs::seek(&handle.fd, SeekFrom::Data(at))) {
            Ok(data) => data.clamp(at, end),
            Err(Errno::NXIO) => end,
            Err(error) => return Err(error.into()),
        };
        if data > at {
            found.push(Extent {
                offset: at,
                len: data - at,
                allocated: false,
            });
            at = data;
            continue;
        }
        let hole = repeat(|| rustix::fs::seek(&handle.fd, SeekFrom::Hole(at)))?;
        // A racing punch may answer the same place: one byte forward keeps this loop finite.
        let hole = hole.clamp(at + 1, end);
        found.push(Extent {
            offset: at,
            len: hole - at,
            allocated: true,
        });
        at = hole;
    }
    Ok(found)
}
