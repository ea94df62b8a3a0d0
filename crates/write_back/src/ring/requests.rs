//! What a request for blocks of a ring does: it goes into the log, or around it.

use super::driver::Ring;
use super::event::{Effect, Event, Submission};
use super::volumes::Admission;
use super::write_arounds::WriteAroundId;
use crate::addresses::{chunks, sectors};
use env::Answer;
use journal::{DATA_BYTES_MAX, Kind, Slot};
use std::ops::Range;
use std::rc::Rc;
use units::{BlockSize, Buf, Lba, LbaRange};
use volume::{Done, Durability, Io, IoError, IoFuture, IoResult, Op, Origin, Provision};

/// Blocks of zeroes in one record: looking them up in the index takes well under a millisecond.
const ZEROES_BYTES_MAX: u64 = 64 << 20;

impl Ring {
    /// What a request does, once there is room for what it changes.
    pub(crate) fn submit(self: &Rc<Self>, slot: Slot, op: Op, origin: Origin) -> IoFuture {
        if !op.mutates() || self.is_refused(slot) {
            return self.begin(slot, op, origin);
        }
        if !self.has_share(slot) {
            let ring = Rc::clone(self);
            return env::detach(&self.core, async move {
                ring.share_comes(slot).await;
                ring.submit(slot, op, origin).await
            });
        }
        if self.permits.are_free() {
            return self.begin(slot, op, origin);
        }
        let bytes = if let Op::Write { data, .. } = &op {
            data.len()
        } else {
            0
        };
        let turn = self.permits.wait(bytes);
        let ring = Rc::clone(self);
        // A task of its own: whoever is slow to look for the answer keeps nobody from his turn.
        env::detach(&self.core, async move {
            let Ok(permit) = turn.await else {
                // The ring is gone with its core: nobody is answered any more.
                return std::future::pending().await;
            };
            if !ring.has_share(slot) {
                drop(permit);
                return ring.submit(slot, op, origin).await;
            }
            let answer = ring.begin(slot, op, origin);
            // Its changes have taken what they need.
            drop(permit);
            answer.await
        })
    }

    fn begin(self: &Rc<Self>, slot: Slot, op: Op, origin: Origin) -> IoFuture {
        let mutates = op.mutates();
        let admission = self.machine().volume(slot).admits(mutates);
        match admission {
            Admission::Now => {}
            Admission::Gone => return Answer::ready(Err(IoError::Unavailable)),
            Admission::Later => {
                let ring = Rc::clone(self);
                return Answer::wait(async move {
                    ring.until(|machine| !machine.volume(slot).makes_wait(mutates))
                        .await;
                    ring.submit(slot, op, origin).await
                });
            }
        }
        match op {
            Op::Read { range, into } => self.read(slot, range, into, origin),
            Op::Write {
                range,
                ref data,
                durability,
            } => {
                if durability == Durability::Cached && self.is_volatile(slot, range) {
                    return self.write_volatile(slot, range, op, origin);
                }
                self.write(slot, range, data.clone(), origin)
            }
            Op::WriteZeroes {
                range, durability, ..
            }
            | Op::Discard {
                range, durability, ..
            } if durability == Durability::Cached && self.is_volatile(slot, range) => {
                self.write_volatile(slot, range, op, origin)
            }
            Op::WriteZeroes { range, zeroing, .. } => {
                let kind = match zeroing {
                    volume::Zeroing::MayUnmap => Kind::Deallocate,
                    volume::Zeroing::KeepAllocated => Kind::Zeroes,
                };
                self.zero(slot, range, kind, origin)
            }
            Op::Discard { range, to, .. } => {
                let kind = match to {
                    Provision::Deallocated => Kind::Deallocate,
                    Provision::Anchored => Kind::Anchor,
                };
                self.zero(slot, range, kind, origin)
            }
            Op::Extents {
                range,
                since: Some(cut),
            } => self.changed(slot, range, cut),
            Op::Extents { range, since: None } => self.extents(slot, range, origin),
            Op::CompareAndWrite { .. } => unreachable!("announced as absent"),
            Op::Flush => self.flush(slot, origin),
        }
    }

    /// Nothing that was acknowledged is in a volatile cache, but for what was written in volatile
    /// mode.
    fn flush(self: &Rc<Self>, slot: Slot, origin: Origin) -> IoFuture {
        if self.has_failed() {
            return Answer::ready(Err(self.machine().lost_write(Lba(0))));
        }
        let waits = self.ask(Event::Flush(slot), |effects| {
            matches!(effects.first(), Some(Effect::Waits))
        });
        let answered = waits.then(|| self.sync_point());
        let backing = self.backing_of(slot);
        let volatile = backing.modes.to_flush();
        if answered.is_none() && volatile.is_none() {
            return Answer::ready(Ok(Done::Nothing));
        }
        let flushed = volatile.map(|volatile| {
            let op = Io::new(Op::Flush, origin);
            (volatile, backing.lane.submit(op))
        });
        let ring = Rc::clone(self);
        env::detach(&self.core, async move {
            if let Some((volatile, flushed)) = flushed {
                flushed.await?;
                backing.modes.flushed(volatile);
            }
            if let Some(answered) = answered {
                // Gone with its core, nobody is answered any more.
                let _ = answered.await;
            }
            if ring.has_failed() {
                return Err(ring.machine().lost_write(Lba(0)));
            }
            Ok(Done::Nothing)
        })
    }

    fn has_failed(&self) -> bool {
        self.machine().ring().has_failed()
    }

    /// The volume is in volatile mode, and nothing keeps a change of these blocks from going
    /// straight to its backing volume.
    fn is_volatile(&self, slot: Slot, range: LbaRange) -> bool {
        let block_size = {
            let backings = self.backings();
            let backing = backings.opened(slot);
            if !backing.modes.is_volatile() {
                return false;
            }
            backing.shape.block_size
        };
        !self.has_failed() && self.may_write_around(slot, range, block_size)
    }

    fn may_write_around(&self, slot: Slot, range: LbaRange, block_size: BlockSize) -> bool {
        let sectors = sectors(range, block_size);
        self.machine().may_write_around(slot, &sectors)
    }

    /// Goes straight to the backing volume, and is not stable there. The log gets to know of it
    /// meanwhile, so that it does not bring back after a crash what it had of the blocks before; a
    /// flush waits for both. Where the log has anything that it could bring back, so does the
    /// answer.
    fn write_volatile(
        self: &Rc<Self>,
        slot: Slot,
        range: LbaRange,
        op: Op,
        origin: Origin,
    ) -> IoFuture {
        let backing = self.backing_of(slot);
        let sectors = sectors(range, backing.shape.block_size);
        if let Some(history) = &self.backings().of(slot).history {
            history.touch(&sectors);
        }
        let id = self.begin_write_around(slot, sectors, true);
        let answer = backing.lane.submit(Io::new(op, origin));
        let known = self.change(slot, range, Kind::WriteAround, Buf::empty(), origin);
        let brings_back = self.machine().may_bring_back();
        let ring = Rc::clone(self);
        env::detach(&self.core, async move {
            let result = answer.await;
            // Now, and not before: a flush that is under way does not cover it.
            backing.modes.leave_volatile();
            if brings_back {
                let known = known.await;
                ring.apply(Event::EndWriteAround(id));
                return result.and_then(|done| known.map(|_| done));
            }
            let after = Rc::clone(&ring);
            let core = Rc::clone(&ring.core);
            // What is destaged waits for both, and whoever asked for the first only.
            core.spawn(Box::pin(async move {
                let _ = known.await;
                after.apply(Event::EndWriteAround(id));
            }));
            result
        })
    }

    fn begin_write_around(
        self: &Rc<Self>,
        slot: Slot,
        sectors: Range<u64>,
        is_volatile: bool,
    ) -> WriteAroundId {
        let begin = Event::BeginWriteAround {
            slot,
            sectors,
            is_volatile,
        };
        self.ask(begin, |effects| {
            let Some(Effect::Begun(id)) = effects.first() else {
                unreachable!("it is given a number")
            };
            *id
        })
    }

    fn block_size(&self, slot: Slot) -> BlockSize {
        self.backings().opened(slot).shape.block_size
    }

    fn write(self: &Rc<Self>, slot: Slot, range: LbaRange, data: Buf, origin: Origin) -> IoFuture {
        let (block_size, around_from) = {
            let backings = self.backings();
            let backing = backings.opened(slot);
            (backing.shape.block_size, backing.modes.write_around_from())
        };
        let refused = self.machine().refuses(slot, range.start());
        if let Some(error) = refused {
            return Answer::ready(Err(error));
        }
        if data.len() >= around_from && self.may_write_around(slot, range, block_size) {
            return self.write_around(slot, range, data, origin);
        }
        if data.len() <= DATA_BYTES_MAX {
            return self.change(slot, range, Kind::Write, data, origin);
        }
        let blocks = DATA_BYTES_MAX as u64 / u64::from(block_size.bytes());
        let mut data = data;
        let answers: Vec<IoFuture> = chunks(range, blocks)
            .map(|chunk| {
                let bytes = chunk.len().0 * u64::from(block_size.bytes());
                let data = data.split_front(usize::try_from(bytes).expect("a chunk is small"));
                self.change(slot, chunk, Kind::Write, data, origin)
            })
            .collect();
        Answer::wait(all(answers))
    }

    fn zero(self: &Rc<Self>, slot: Slot, range: LbaRange, kind: Kind, origin: Origin) -> IoFuture {
        let blocks = ZEROES_BYTES_MAX / u64::from(self.block_size(slot).bytes());
        if range.len().0 <= blocks {
            return self.change(slot, range, kind, Buf::empty(), origin);
        }
        let answers: Vec<IoFuture> = chunks(range, blocks)
            .map(|chunk| self.change(slot, chunk, kind, Buf::empty(), origin))
            .collect();
        Answer::wait(all(answers))
    }

    /// Puts a change into the log; answers when it is stable.
    pub(crate) fn change(
        self: &Rc<Self>,
        slot: Slot,
        range: LbaRange,
        kind: Kind,
        data: Buf,
        origin: Origin,
    ) -> IoFuture {
        let bytes = data.len();
        let submission = Submission {
            slot,
            range,
            kind,
            data,
            fence: origin.fence,
            now: self.core.recent(),
        };
        let submitted = self.ask(Event::Submit(submission), |effects| {
            if let Some(Effect::Refused(error)) = effects.first() {
                return Err(*error);
            }
            let Some(Effect::Submitted(token)) = effects.first() else {
                unreachable!("it is taken or refused")
            };
            Ok(*token)
        });
        let token = match submitted {
            Ok(token) => token,
            Err(error) => return Answer::ready(Err(error)),
        };
        let permit = self.permits.take(bytes);
        let answered = self.answers().expect(token, permit);
        Answer::wait(async move {
            match answered.await {
                Ok(result) => result.map(|()| Done::Nothing),
                // The ring is gone with its core: nobody is answered any more.
                Err(_) => std::future::pending().await,
            }
        })
    }

    /// A large write: first the log gets to know that it will be written, then it goes to the
    /// backing volume, and is stable there.
    fn write_around(
        self: &Rc<Self>,
        slot: Slot,
        range: LbaRange,
        data: Buf,
        origin: Origin,
    ) -> IoFuture {
        let sectors = sectors(range, self.block_size(slot));
        let id = self.begin_write_around(slot, sectors, false);
        let known = self.change(slot, range, Kind::WriteAround, Buf::empty(), origin);
        // Kept: the volume may leave meanwhile.
        let backing = self.backing_of(slot);
        let (ring, permit) = (Rc::clone(self), self.permits.take(data.len()));
        env::detach(&self.core, async move {
            let mut result = known.await;
            if result.is_ok() {
                ring.counts.borrow_mut().write_around_bytes += data.len() as u64;
                let durability = Durability::Stable;
                let op = Op::Write {
                    range,
                    data,
                    durability,
                };
                result = backing.lane.submit(Io::new(op, origin)).await;
                if result.is_err() {
                    // What it left there can be read, and is in a cache perhaps: the next flush
                    // covers it.
                    backing.modes.leave_volatile();
                }
            }
            ring.apply(Event::EndWriteAround(id));
            drop(permit);
            result
        })
    }
}

/// Waits for all parts; the first error is the answer, as one that may leave a part done.
async fn all(answers: Vec<IoFuture>) -> IoResult {
    let mut result = Ok(Done::Nothing);
    for answer in answers {
        if let Err(error) = answer.await
            && result.is_ok()
        {
            result = Err(error.of_a_part());
        }
    }
    result
}
