//! Writes again what blocks have, so that it goes through the log, and whoever follows the log gets
//! it in the order of all changes.
//!
//! ```text
//!   watch --> allocated? --> read --> what nobody changed meanwhile goes into the log
//!                              ^------ what waits to be committed, again
//! ```
//!
//! Hosts wait for none of it. What one has changed meanwhile is in the log, behind where this
//! began: whoever follows the log has it from there, and it is not written again.

use super::driver::Ring;
use super::event::{Effect, Event};
use super::waiting::Condition;
use crate::addresses::{blocks, chunks, sectors};
use journal::{DATA_BYTES_MAX, Slot};
use std::rc::Rc;
use std::time::Duration;
use units::{Buf, LbaRange};
use volume::{
    Class, Done, Durability, ExtentKind, Fence, FenceSlot, IoError, IoFuture, Op, Origin, TraceId,
    Zeroing,
};

/// Blocks of nothing in one record.
const ZEROES_BYTES_MAX: u64 = 64 << 20;

/// How long until it is looked for again whether a change that waits is committed.
const AGAIN: Duration = Duration::from_millis(1);

/// No host's: its right to write is the node's own.
const ORIGIN: Origin = Origin {
    trace: TraceId(0),
    deadline: None,
    class: Class::Resynchronisation,
    fence: Fence {
        slot: FenceSlot(0),
        epoch: 0,
    },
};

/// Blocks that were written again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rewritten {
    /// From the first one that was asked for on, perhaps not all of them.
    pub range: LbaRange,
    /// Bytes of data that went into the log: none for what has no room of its own, or is zeroes,
    /// or was changed meanwhile.
    pub bytes: u64,
}

/// What blocks have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contents {
    /// From the first one that was asked for on, perhaps not all of them.
    pub range: LbaRange,
    /// Their data; `None`: they have no room of their own, and read as zeroes.
    pub data: Option<Buf>,
}

/// Blocks that are watched for as long as this is there.
struct Watch<'a> {
    ring: &'a Rc<Ring>,
    number: u64,
}

impl<'a> Watch<'a> {
    fn begin(ring: &'a Rc<Ring>, slot: Slot, range: LbaRange) -> Self {
        let block_size = ring.backing_of(slot).shape.block_size;
        let watch = Event::Watch(slot, sectors(range, block_size));
        let number = ring.ask(watch, |effects| match effects {
            [Effect::Watched(number)] => *number,
            other => unreachable!("{other:?} is no answer"),
        });
        Self { ring, number }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.ring.apply(Event::EndWatch(self.number));
    }
}

impl Ring {
    /// Writes the first of these blocks again that are all allocated, or all not; answers when that
    /// is committed.
    pub(crate) async fn rewrite(
        self: Rc<Self>,
        slot: Slot,
        range: LbaRange,
    ) -> Result<Rewritten, IoError> {
        let watch = Watch::begin(&self, slot, range);
        let (run, is_mapped) = self.first_run(slot, range).await?;
        let (mut left, mut answers, mut bytes) = (vec![run], Vec::new(), 0);
        while !left.is_empty() {
            let mut again = Vec::new();
            for part in left {
                let data = self.data_of(slot, part, is_mapped).await?;
                let (put, waiting) = self.put_again(slot, (&watch, part), data.as_ref()).await?;
                again.extend(waiting);
                for (answer, len) in put {
                    answers.push(answer);
                    bytes += len;
                }
            }
            left = again;
            if !left.is_empty() {
                let now = self.core.now();
                self.core.sleep_until(now.after(AGAIN)).await;
            }
        }
        drop(watch);
        for answer in answers {
            answer.await?;
        }
        Ok(Rewritten { range: run, bytes })
    }

    /// What the first of these blocks have that are all allocated, or all not.
    pub(crate) async fn contents(
        self: Rc<Self>,
        slot: Slot,
        range: LbaRange,
    ) -> Result<Contents, IoError> {
        let (range, is_mapped) = self.first_run(slot, range).await?;
        let data = self.data_of(slot, range, is_mapped).await?;
        Ok(Contents { range, data })
    }

    /// The first blocks of a range that are alike, and whether they have data.
    async fn first_run(
        self: &Rc<Self>,
        slot: Slot,
        range: LbaRange,
    ) -> Result<(LbaRange, bool), IoError> {
        let op = Op::Extents { range, since: None };
        let Done::Extents(extents) = self.submit(slot, op, ORIGIN).await? else {
            unreachable!("extents answer extents")
        };
        let first = extents.first().expect("a range has blocks");
        let is_mapped = first.kind != ExtentKind::Deallocated;
        let most = if is_mapped {
            DATA_BYTES_MAX as u64
        } else {
            ZEROES_BYTES_MAX
        };
        let block = u64::from(self.backing_of(slot).shape.block_size.bytes());
        let run = chunks(first.range, most / block).next();
        Ok((run.expect("an extent has blocks"), is_mapped))
    }

    /// The data of blocks; `None`: they have none, or it is all zeroes.
    async fn data_of(
        self: &Rc<Self>,
        slot: Slot,
        range: LbaRange,
        is_mapped: bool,
    ) -> Result<Option<Buf>, IoError> {
        if !is_mapped {
            return Ok(None);
        }
        let op = Op::Read { range, into: None };
        let Done::Data(data) = self.submit(slot, op, ORIGIN).await? else {
            unreachable!("a read answers data")
        };
        Ok(Some(data))
    }

    /// Puts the blocks of a part into the log that are as they were read, and answers with those
    /// that a change waits for.
    async fn put_again(
        self: &Rc<Self>,
        slot: Slot,
        (watch, part): (&Watch<'_>, LbaRange),
        data: Option<&Buf>,
    ) -> Result<(Vec<(IoFuture, u64)>, Vec<LbaRange>), IoError> {
        self.wait_until(Condition::HasShare(slot)).await;
        let permit = match self.permits.are_free() {
            true => None,
            false => self.permits.wait(data.map_or(0, Buf::len)).await.ok(),
        };
        let changes = true;
        self.wait_until(Condition::GoesOn { slot, changes }).await;
        // From here on in one poll: what is asked holds when the changes are put.
        if !self.machine().may_order(slot) {
            return Err(IoError::Transition);
        }
        let shape = self.backing_of(slot).shape;
        let of_part = sectors(part, shape.block_size);
        let watched = self.machine().watched(watch.number, slot, of_part);
        let mut put = Vec::new();
        for piece in watched.unchanged {
            let range = blocks(&piece, shape.block_size);
            let ahead = range.start().0 - part.start().0;
            let at = usize::try_from(ahead).expect("it was read")
                * usize::try_from(shape.block_size.bytes()).expect("a block is small");
            let data = data.map(|it| it.slice(at..at + shape.bytes_in(range)));
            let (op, bytes) = again(range, data);
            put.push((self.change(slot, op, ORIGIN), bytes));
        }
        drop(permit);
        let waiting = watched.waiting.iter();
        let waiting = waiting.map(|it| blocks(it, shape.block_size));
        Ok((put, waiting.collect()))
    }
}

/// What has these blocks be as they are, and bytes of data that it has.
fn again(range: LbaRange, data: Option<Buf>) -> (Op, u64) {
    let durability = Durability::Stable;
    let zeroes = |zeroing| Op::WriteZeroes {
        range,
        zeroing,
        durability,
    };
    match data {
        None => (zeroes(Zeroing::MayUnmap), 0),
        Some(data) if data.is_zero() => (zeroes(Zeroing::KeepAllocated), 0),
        Some(data) => {
            let bytes = data.len() as u64;
            let write = Op::Write {
                range,
                data,
                durability,
            };
            (write, bytes)
        }
    }
}
