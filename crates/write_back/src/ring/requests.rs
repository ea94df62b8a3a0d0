//! What a request for blocks of a ring does: it goes into the log, or around it.

use super::driver::Ring;
use super::event::{Around, Effect, Event, HostChange, MayGoAround, Note};
use super::volumes::NotNow;
use super::waiting::Condition;
use super::write_arounds::WriteAroundId;
use crate::history::changed;
use env::Answer;
use journal::{Kind, Slot, Token};
use std::rc::Rc;
use units::{Buf, Lba, LbaRange};
use volume::{
    Cut, Done, Durability, Io, IoError, IoFuture, IoResult, Op, Origin, Provision, Zeroing,
};

/// What the machine makes of a change.
enum Taken {
    /// It has to wait.
    Later,
    Refused(IoError),
    Log(Waits),
    /// In several records.
    Parts(Vec<Waits>),
    Around(WriteAroundId, Around, Waits),
}

/// What waits for the log: its token, and how long its data is.
type Waits = (Token, usize);

impl Taken {
    fn of(effects: &[Effect]) -> Self {
        match effects {
            [Effect::Waits, ..] => Self::Later,
            [Effect::Refused(error), ..] => Self::Refused(*error),
            [Effect::Submitted { token, bytes }, Effect::WakeWriter] => Self::Log((*token, *bytes)),
            [
                Effect::Begun(id, around),
                Effect::Submitted { token, bytes },
                ..,
            ] => Self::Around(*id, *around, (*token, *bytes)),
            several => Self::Parts(several.iter().filter_map(waits).collect()),
        }
    }
}

fn waits(effect: &Effect) -> Option<Waits> {
    if let Effect::Submitted { token, bytes } = effect {
        return Some((*token, *bytes));
    }
    None
}

impl Ring {
    /// What a request does, once there is room for what it changes.
    pub(crate) fn submit(self: &Rc<Self>, slot: Slot, op: Op, origin: Origin) -> IoFuture {
        if !op.mutates() || self.is_refused(slot) {
            return self.begin(slot, op, origin);
        }
        if !self.has_share(slot) {
            if !self.machine().may_order(slot) {
                return self.begin(slot, op, origin);
            }
            let ring = Rc::clone(self);
            return env::detach(&self.core, async move {
                ring.wait_until(Condition::HasShare(slot)).await;
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

    /// Writes of the volume are refused.
    fn is_refused(&self, slot: Slot) -> bool {
        self.machine().refuses(slot, Lba(0)).is_some()
    }

    fn has_share(&self, slot: Slot) -> bool {
        self.machine().has_share(slot)
    }

    fn begin(self: &Rc<Self>, slot: Slot, op: Op, origin: Origin) -> IoFuture {
        if op.mutates() {
            return self.change(slot, op, origin);
        }
        let begun = match op {
            Op::Read { range, into } => return self.read(slot, range, into, origin),
            Op::Extents {
                range,
                since: Some(cut),
            } => self.changed(slot, range, cut),
            Op::Extents { range, since: None } => self.extents(slot, range, origin),
            Op::Flush => self.flush(slot, origin),
            Op::Write { .. }
            | Op::WriteZeroes { .. }
            | Op::Discard { .. }
            | Op::CompareAndWrite { .. } => unreachable!("it changes something"),
        };
        begun.unwrap_or_else(|not_now| self.not_now(not_now, slot, op, origin))
    }

    /// The machine does not let it go on.
    pub(super) fn not_now(
        self: &Rc<Self>,
        why: NotNow,
        slot: Slot,
        op: Op,
        origin: Origin,
    ) -> IoFuture {
        match why {
            NotNow::Later => self.later(slot, op, origin),
            NotNow::Refused(error) => Answer::ready(Err(error)),
        }
    }

    fn changed(&self, slot: Slot, range: LbaRange, since: Cut) -> Result<IoFuture, NotNow> {
        self.machine().reports_changes(slot)?;
        let backings = self.backings();
        let block_size = backings.opened(slot).shape.block_size;
        let history = backings.of(slot).history.clone();
        Ok(changed(history, block_size, range, since))
    }

    /// Begins it again when it need not wait any more.
    fn later(self: &Rc<Self>, slot: Slot, op: Op, origin: Origin) -> IoFuture {
        let (ring, changes) = (Rc::clone(self), op.mutates());
        Answer::wait(async move {
            ring.wait_until(Condition::GoesOn { slot, changes }).await;
            ring.submit(slot, op, origin).await
        })
    }

    /// Where it goes is for the machine to say.
    pub(super) fn change(self: &Rc<Self>, slot: Slot, mut op: Op, origin: Origin) -> IoFuture {
        if self.machine().makes_wait(slot) {
            return self.later(slot, op, origin);
        }
        let (kind, bytes, durability) = parts_of(&op);
        let (is_current, around) = self.terms(slot, kind, bytes, durability, origin);
        let data = data_of(&mut op, around);
        let change = HostChange {
            slot,
            range: op.range().expect("a change has blocks"),
            kind,
            data,
            around,
            fence: origin.fence,
            is_current,
            now: self.core.recent(),
        };
        match self.ask(Event::Change(change), Taken::of) {
            Taken::Later => unreachable!("it was asked before"),
            Taken::Refused(error) => Answer::ready(Err(error)),
            Taken::Log(waits) => self.answered(waits),
            Taken::Parts(parts) => {
                let answers = parts.into_iter().map(|waits| self.answered(waits));
                Answer::wait(all(answers.collect()))
            }
            Taken::Around(id, around, waits) => {
                let known = self.answered(waits);
                match around {
                    Around::Stable => self.write_around(slot, op, origin, (id, known)),
                    Around::Volatile { brings_back } => {
                        self.write_volatile(slot, op, origin, (id, known, brings_back))
                    }
                }
            }
        }
    }

    /// Nothing that was acknowledged is in a volatile cache, but for what was written in volatile
    /// mode.
    fn flush(self: &Rc<Self>, slot: Slot, origin: Origin) -> Result<IoFuture, NotNow> {
        let awaits = self.ask(Event::Flush(slot), |effects| match effects.first() {
            Some(Effect::Waits) => Err(NotNow::Later),
            Some(Effect::Refused(error)) => Err(NotNow::Refused(*error)),
            first => Ok(matches!(first, Some(Effect::AwaitsSyncPoint))),
        })?;
        let answered = awaits.then(|| self.sync_point());
        let backing = self.backing_of(slot);
        let volatile = backing.modes.to_flush();
        if answered.is_none() && volatile.is_none() {
            return Ok(Answer::ready(Ok(Done::Nothing)));
        }
        let flushed = volatile.map(|volatile| {
            let op = Io::new(Op::Flush, origin);
            (volatile, backing.lane.submit(op))
        });
        let ring = Rc::clone(self);
        Ok(env::detach(&self.core, async move {
            if let Some((volatile, flushed)) = flushed {
                flushed.await?;
                backing.modes.flushed(volatile);
            }
            if let Some(answered) = answered {
                // Gone with its core, nobody is answered any more.
                let _ = answered.await;
            }
            ring.machine().flushed().map(|()| Done::Nothing)
        }))
    }

    /// Whether the writer has its right, and what the mode of the volume allows, as other cores
    /// have left both; where the volume is gone, the machine answers.
    fn terms(
        &self,
        slot: Slot,
        kind: Kind,
        bytes: usize,
        durability: Durability,
        origin: Origin,
    ) -> (bool, MayGoAround) {
        let backings = self.backings();
        let Some(backing) = &backings.of(slot).open else {
            return (true, MayGoAround::default());
        };
        let around = MayGoAround {
            volatile: durability == Durability::Cached && backing.modes.is_volatile(),
            stable: kind == Kind::Write && bytes >= backing.modes.write_around_from(),
        };
        (backing.fences.is_current(origin.fence), around)
    }

    /// Says something in the log that is of no host's blocks; answers when it is stable.
    pub(crate) fn note(self: &Rc<Self>, slot: Slot, range: LbaRange, kind: Kind) -> IoFuture {
        let note = Note {
            slot,
            range,
            kind,
            now: self.core.recent(),
        };
        self.recorded(Event::Note(note))
    }

    /// Something that gets one record, or is refused; answers when it is committed.
    pub(crate) fn recorded(self: &Rc<Self>, event: Event<'_>) -> IoFuture {
        match self.ask(event, Taken::of) {
            Taken::Log(waits) => self.answered(waits),
            Taken::Refused(error) => Answer::ready(Err(error)),
            Taken::Later | Taken::Parts(_) | Taken::Around(..) => {
                unreachable!("it is one record, or refused")
            }
        }
    }

    /// Answers when it is stable.
    pub(crate) fn answered(self: &Rc<Self>, (token, bytes): Waits) -> IoFuture {
        let permit = self.permits.take(bytes);
        let answered = self.answers().expect(token, permit);
        Answer::wait(async move {
            match answered.await {
                Ok(result) => result.map(|()| Done::Logged),
                // The ring is gone with its core: nobody is answered any more.
                Err(_) => std::future::pending().await,
            }
        })
    }

    /// Goes straight to the backing volume, and is not stable there. The log gets to know of it
    /// meanwhile, so that it does not bring back after a crash what it had of the blocks before; a
    /// flush waits for both. Where the log has anything that it could bring back, so does the
    /// answer.
    fn write_volatile(
        self: &Rc<Self>,
        slot: Slot,
        op: Op,
        origin: Origin,
        (id, known, brings_back): (WriteAroundId, IoFuture, bool),
    ) -> IoFuture {
        let backing = self.backing_of(slot);
        let answer = backing.lane.submit(Io::new(op, origin));
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

    /// A large write: first the log gets to know that it will be written, then it goes to the
    /// backing volume, and is stable there.
    fn write_around(
        self: &Rc<Self>,
        slot: Slot,
        mut op: Op,
        origin: Origin,
        (id, known): (WriteAroundId, IoFuture),
    ) -> IoFuture {
        let Op::Write {
            data, durability, ..
        } = &mut op
        else {
            unreachable!("only writes ask for it")
        };
        *durability = Durability::Stable;
        let bytes = data.len();
        // Kept: the volume may leave meanwhile.
        let backing = self.backing_of(slot);
        let (ring, permit) = (Rc::clone(self), self.permits.take(bytes));
        env::detach(&self.core, async move {
            let mut result = known.await;
            if result.is_ok() {
                ring.counts.borrow_mut().write_around_bytes += bytes as u64;
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

/// The data of a write; it stays where the change may go around the log.
fn data_of(op: &mut Op, around: MayGoAround) -> Buf {
    let Op::Write { data, .. } = op else {
        return Buf::empty();
    };
    if around.volatile || around.stable {
        return data.clone();
    }
    std::mem::take(data)
}

/// What the log has to know of a change, and how long its data is.
fn parts_of(op: &Op) -> (Kind, usize, Durability) {
    match op {
        Op::Write {
            data, durability, ..
        } => (Kind::Write, data.len(), *durability),
        Op::WriteZeroes {
            zeroing,
            durability,
            ..
        } => {
            let kind = match zeroing {
                Zeroing::MayUnmap => Kind::Deallocate,
                Zeroing::KeepAllocated => Kind::Zeroes,
            };
            (kind, 0, *durability)
        }
        Op::Discard { to, durability, .. } => {
            let kind = match to {
                Provision::Deallocated => Kind::Deallocate,
                Provision::Anchored => Kind::Anchor,
            };
            (kind, 0, *durability)
        }
        Op::CompareAndWrite { .. } => unreachable!("announced as absent"),
        Op::Read { .. } | Op::Extents { .. } | Op::Flush => unreachable!("it changes nothing"),
    }
}

/// Waits for all parts; the first error is the answer, as one that may leave a part done.
async fn all(answers: Vec<IoFuture>) -> IoResult {
    let mut result = Ok(Done::Logged);
    for answer in answers {
        if let Err(error) = answer.await
            && result.is_ok()
        {
            result = Err(error.of_a_part());
        }
    }
    result
}
