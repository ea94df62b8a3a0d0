//! An operation on its way: what it will do, when, and what becomes of it when the node dies first.

use super::super::fault::Fault;
use super::super::random::Rng;
use super::super::world::{Inner, nanos};
use super::inode::Change;
use super::{Disk, DiskState};
use crate::{Durable, Extent, FileDone, FileKind};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::task::Waker;
use units::BufMut;

/// Linux's EIO and ENOSPC.
const EIO: i32 = 5;
const ENOSPC: i32 = 28;

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
        /// What was seen early, where the seed chose so.
        seen: Option<Vec<u8>>,
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
    fn is_durable(&self) -> bool {
        match self {
            Self::Change { durable, .. } => *durable == Durable::Yes,
            Self::Sync { .. } => true,
            Self::Read { .. } | Self::Extents { .. } | Self::Len => false,
        }
    }

    /// The fault that this kind of work may meet.
    fn fault(&self) -> Option<Fault> {
        match self {
            Self::Read { .. } => Some(Fault::FileReadError),
            Self::Change { .. } => Some(Fault::FileWriteError),
            Self::Sync { .. } => Some(Fault::FileSyncError),
            Self::Extents { .. } | Self::Len => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Completes,
    Fails(Fault),
}

/// An operation in flight.
pub(in super::super) struct InFlight {
    pub(super) inode: u64,
    pub(super) handle: u64,
    work: Work,
    fate: Fate,
    hangs: bool,
    slot: Rc<RefCell<Slot>>,
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

impl Inner {
    /// Starts an operation. The answer may be in the slot already.
    pub(super) fn file_submit(
        self: &Rc<Self>,
        node: u16,
        (inode, handle): (u64, u64),
        mut work: Work,
    ) -> Rc<RefCell<Slot>> {
        let slot = Rc::new(RefCell::new(Slot::default()));
        let is_durable = work.is_durable();
        let number = self.with_disk(node, |disk| {
            disk.durable_begun += u64::from(is_durable);
            disk.number()
        });
        self.event(Some((node, 0)), "submit", [number, inode, work.kind()]);
        let fate = self.fate(&work);
        let (delay, hangs) = self.delay(node, inode);
        if let Work::Read { offset, into, seen } = &mut work
            && self.coin()
        {
            let mut bytes = vec![0; into.len()];
            self.with_disk(node, |disk| {
                disk.inode(inode).volatile.read(*offset, &mut bytes);
            });
            *seen = Some(bytes);
        }
        let flight = InFlight {
            inode,
            handle,
            work,
            fate,
            hangs,
            slot: Rc::clone(&slot),
        };
        self.with_disk(node, |disk| disk.in_flight.insert(number, flight));
        if self.between(0, 9) == 0 && !hangs && fate == Fate::Completes {
            self.file_complete(node, number);
            return slot;
        }
        if let Some(delay) = delay {
            if self.coin() {
                let early = self.between(0, delay);
                self.after(early, move |inner| inner.file_half(node, number));
            }
            self.after(delay, move |inner| inner.file_complete(node, number));
        }
        slot
    }

    fn fate(&self, work: &Work) -> Fate {
        let mut may: Vec<Fault> = work.fault().into_iter().collect();
        if let Work::Change {
            rest: Some(rest), ..
        } = work
            && !rest.takes().is_empty()
        {
            may.push(Fault::FileNoSpace);
        }
        if matches!(work, Work::Sync { .. }) {
            may.push(Fault::FileSyncNoSpace);
        }
        for fault in may {
            if self.draws(fault) {
                self.hit(fault);
                if fault == Fault::FileSyncNoSpace {
                    // Whatever the reason, a sync has failed, and has lost what was not synced.
                    self.hit(Fault::FileSyncError);
                }
                return Fate::Fails(fault);
            }
        }
        Fate::Completes
    }

    /// How long it takes (`None`: for ever), and whether it counts as hung.
    fn delay(&self, node: u16, inode: u64) -> (Option<u64>, bool) {
        if self.with_disk(node, |disk| {
            disk.hanging || disk.hanging_inodes.contains(&inode)
        }) {
            return (None, true);
        }
        if self.happens(Fault::FileHungForEver) {
            return (None, true);
        }
        if self.happens(Fault::FileHung) {
            return (Some(self.between(1_000_000_000, 60_000_000_000)), true);
        }
        let usual = self.between(
            nanos(self.config.disk_latency_min),
            nanos(self.config.disk_latency_max),
        );
        if self.happens(Fault::FileSlow) {
            return (Some(usual + self.between(1_000_000, 2_000_000_000)), false);
        }
        (Some(usual), false)
    }

    /// Lets a part of a write take effect before the rest.
    fn file_half(&self, node: u16, number: u64) {
        let at = self.between(0, 1 << 20);
        self.with_disk(node, |disk| {
            let Some(flight) = disk.in_flight.get_mut(&number) else {
                return;
            };
            let (Work::Change { rest, .. }, Fate::Completes) = (&mut flight.work, flight.fate)
            else {
                return;
            };
            let Some(Change::Write { data, .. }) = &rest else {
                return;
            };
            let at = at % data.len().max(1) as u64;
            let change = rest.take().expect("looked at just above");
            let (first, later) = change.split(at, disk.sector);
            *rest = later;
            let (inode, takes) = (flight.inode, first.takes());
            if disk.no_space(inode, takes) {
                let flight = disk.in_flight.get_mut(&number).expect("seen above");
                flight.fate = Fate::Fails(Fault::FileNoSpace);
                return;
            }
            disk.inode(inode).change(number, first);
        });
    }

    /// The operation ends now.
    pub(super) fn file_complete(&self, node: u16, number: u64) {
        let flight = self.with_disk(node, |disk| disk.in_flight.remove(&number));
        let Some(flight) = flight else { return };
        let overtaken = self.with_disk(node, |disk| {
            let mut older = disk.in_flight.range(..number);
            older.any(|(_, it)| it.inode == flight.inode && !it.hangs)
        });
        if overtaken {
            self.hit(Fault::FileReordered);
        }
        let InFlight {
            inode,
            handle,
            work,
            fate,
            slot,
            ..
        } = flight;
        let answer = match fate {
            Fate::Completes => self.file_done(node, number, inode, work),
            Fate::Fails(fault) => Err(self.file_failed(node, number, inode, work, fault)),
        };
        self.with_disk(node, |disk| {
            disk.inode(inode).complete(number);
            let last = !disk.in_flight.values().any(|it| it.handle == handle);
            if last && disk.closing.remove(&handle) {
                disk.unlock(handle);
            }
        });
        let failed = u64::from(answer.is_err());
        self.event(Some((node, 0)), "complete", [number, inode, failed]);
        let waker = {
            let mut slot = slot.borrow_mut();
            slot.answer = Some(answer);
            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn file_done(&self, node: u16, number: u64, inode: u64, work: Work) -> io::Result<FileDone> {
        match work {
            Work::Read { offset, into, seen } => Ok(FileDone::Read(
                self.file_read(node, inode, offset, into, seen),
            )),
            Work::Change { rest, durable } => {
                let lying = self.with_disk(node, |disk| {
                    disk.finish_change(inode, number, rest, durable)
                })?;
                if lying {
                    Disk::lied(self);
                }
                Ok(FileDone::Nothing)
            }
            Work::Sync { covers } => {
                let lying = self.with_disk(node, |disk| disk.lying);
                if lying {
                    Disk::lied(self);
                } else {
                    self.with_disk(node, |disk| disk.inode(inode).commit(&covers));
                }
                Ok(FileDone::Nothing)
            }
            Work::Extents { offset, len } => {
                let end = offset.saturating_add(len);
                let extents: Vec<Extent> =
                    self.with_disk(node, |disk| disk.inode(inode).volatile.extents(offset..end));
                Ok(FileDone::Extents(extents))
            }
            Work::Len => {
                let len = self.with_disk(node, |disk| disk.inode(inode).volatile.len());
                Ok(FileDone::Len(len))
            }
        }
    }

    fn file_read(
        &self,
        node: u16,
        inode: u64,
        offset: u64,
        mut into: BufMut,
        seen: Option<Vec<u8>>,
    ) -> BufMut {
        let Some(bytes) = seen else {
            self.with_disk(node, |disk| {
                let (file, mut at) = (&disk.inode(inode).volatile, offset);
                for piece in into.pieces_mut() {
                    file.read(at, piece);
                    at += piece.len() as u64;
                }
            });
            return into;
        };
        into.copy_at(0, &bytes);
        into
    }

    /// What a failing operation leaves behind.
    fn file_failed(
        &self,
        node: u16,
        number: u64,
        inode: u64,
        work: Work,
        fault: Fault,
    ) -> io::Error {
        let rng = &mut *self.rng.borrow_mut();
        self.with_disk(node, |disk| match work {
            Work::Change {
                rest: Some(rest), ..
            } if fault == Fault::FileWriteError => {
                let part = match rng.below(3) {
                    0 => None,
                    1 => Some(rest.split(rng.below(1 << 20), disk.sector).0),
                    _ => Some(rest),
                };
                let part = part.filter(|part| !disk.no_space(inode, part.takes()));
                if let Some(part) = part {
                    disk.inode(inode).change(number, part);
                }
            }
            Work::Sync { covers } => disk.inode(inode).fail_sync(&covers, rng),
            Work::Change { .. } | Work::Read { .. } | Work::Extents { .. } | Work::Len => {}
        });
        let of_space = [Fault::FileNoSpace, Fault::FileSyncNoSpace];
        let code = if of_space.contains(&fault) {
            ENOSPC
        } else {
            EIO
        };
        io::Error::from_raw_os_error(code)
    }
}

impl DiskState {
    /// There is no space for what a change takes.
    fn no_space(&mut self, inode: u64, takes: std::ops::Range<u64>) -> bool {
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

    /// Lets the rest of a change take effect; answers whether a lie was told about its durability.
    fn finish_change(
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
