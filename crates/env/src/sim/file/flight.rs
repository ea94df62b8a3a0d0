//! An operation on its way: what it will do, when, and what becomes of it when the node dies first.

use super::super::fault::Fault;
use super::super::random::Rng;
use super::DiskState;
use super::inode::Change;
use crate::{Durable, FileDone, FileKind};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::task::Waker;
use units::BufMut;

/// Linux's EIO and ENOSPC.
pub(super) const EIO: i32 = 5;
pub(super) const ENOSPC: i32 = 28;

/// Where the answer is put.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) answer: Option<io::Result<FileDone>>,
    pub(super) waker: Option<Waker>,
}

/// What an operation does when it completes.
pub(super) enum Work {
    Read {
        offset: u64,
        into: BufMut,
        /// `into` has been filled early, where the seed chose so.
        is_seen: bool,
    },
    Change {
        /// What has not taken effect yet; empty once all did.
        rest: Option<Change>,
        durable: Durable,
    },
    Sync {
        /// The changes that it makes durable.
        covers: Vec<u64>,
    },
    Extents {
        offset: u64,
        len: u64,
    },
    Len,
}

impl Work {
    pub(super) fn kind(&self) -> u64 {
        match self {
            Self::Read { .. } => 0,
            Self::Change { .. } => 1,
            Self::Sync { .. } => 2,
            Self::Extents { .. } | Self::Len => 3,
        }
    }

    /// It makes something stable.
    pub(super) fn is_durable(&self) -> bool {
        match self {
            Self::Change { durable, .. } => *durable == Durable::Yes,
            Self::Sync { .. } => true,
            Self::Read { .. } | Self::Extents { .. } | Self::Len => false,
        }
    }

    /// The fault that this kind of work may meet.
    pub(super) fn fault(&self) -> Option<Fault> {
        match self {
            Self::Read { .. } => Some(Fault::FileReadError),
            Self::Change { .. } => Some(Fault::FileWriteError),
            Self::Sync { .. } => Some(Fault::FileSyncError),
            Self::Extents { .. } | Self::Len => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Completes,
    Fails(Fault),
}

/// An operation in flight.
pub(in super::super) struct InFlight {
    pub(super) inode: u64,
    pub(super) handle: u64,
    pub(super) work: Work,
    pub(super) fate: Fate,
    pub(super) hangs: bool,
    pub(super) slot: Rc<RefCell<Slot>>,
}

impl InFlight {
    pub(super) fn hangs(&self) -> bool {
        self.hangs
    }

    /// The node died while this was on its way. Gives back what must be dropped later.
    pub(super) fn interrupted(self, number: u64, disk: &mut DiskState, rng: &mut Rng) -> Self {
        let lying = disk.lying;
        let inode = disk.inode(self.inode);
        let mut this = self;
        match &mut this.work {
            Work::Change { rest, .. } => {
                if let Some(rest) = rest.take().filter(|_| rng.below(2) == 0) {
                    inode.change(number, rest);
                }
                inode.complete(number);
            }
            Work::Sync { covers } => {
                if rng.below(2) == 0 && !lying {
                    inode.commit(covers);
                }
            }
            Work::Read { .. } | Work::Extents { .. } | Work::Len => {}
        }
        this
    }
}

impl DiskState {
    /// There is no space for what a change takes.
    pub(super) fn no_space(&mut self, inode: u64, takes: std::ops::Range<u64>) -> bool {
        let used = self.used();
        let capacity = self.capacity;
        let copies = self.copies.contains(&inode);
        let inode = self.inode(inode);
        match inode.kind {
            // What has its space is written on a full disk as well.
            FileKind::Regular => {
                let wants = match copies {
                    // Whatever is changed is written elsewhere first.
                    true => takes.end.saturating_sub(takes.start),
                    false => inode.volatile.wants(takes),
                };
                wants > 0 && used.saturating_add(wants) > capacity
            }
            FileKind::Block => takes.end > inode.volatile.len(),
        }
    }

    /// Lets the rest of a change take effect; returns whether its durability was a lie.
    pub(super) fn finish_change(
        &mut self,
        inode: u64,
        number: u64,
        rest: Option<Change>,
        durable: Durable,
    ) -> io::Result<bool> {
        if let Some(rest) = rest {
            if self.no_space(inode, rest.takes()) {
                return Err(io::Error::from_raw_os_error(ENOSPC));
            }
            self.inode(inode).change(number, rest);
        }
        if durable == Durable::No {
            return Ok(false);
        }
        if self.lying {
            return Ok(true);
        }
        let inode = self.inode(inode);
        let changes = inode.changes_of(number);
        inode.commit(&changes);
        Ok(false)
    }
}
