//! How operations on files go on their way, and end.

use super::super::fault::Fault;
use super::super::inner::{Inner, nanos};
use super::disk::Disk;
use super::flight::{EIO, ENOSPC, Fate, InFlight, Slot, Work};
use super::inode::Change;
use crate::{Extent, FileDone};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use units::BufMut;

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
        if let Work::Read {
            offset,
            into,
            is_seen,
        } = &mut work
            && self.coin()
        {
            self.file_read(node, inode, *offset, into);
            *is_seen = true;
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
            let change = rest.take().expect("tested just above");
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
            Work::Read {
                offset,
                mut into,
                is_seen,
            } => {
                if !is_seen {
                    self.file_read(node, inode, offset, &mut into);
                }
                Ok(FileDone::Read(into))
            }
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

    fn file_read(&self, node: u16, inode: u64, offset: u64, into: &mut BufMut) {
        self.with_disk(node, |disk| {
            let (file, mut at) = (&disk.inode(inode).volatile, offset);
            for piece in into.pieces_mut() {
                file.read(at, piece);
                at += piece.len() as u64;
            }
        });
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
