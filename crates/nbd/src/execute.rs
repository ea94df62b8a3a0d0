//! What a request means for the volume.
//!
//! A request larger than the volume takes at once goes down in pieces, some at the same time; the
//! answer is the first error of any. `Busy` and `Transition` mean "again later" below, and NBD has
//! no word for that: they are waited out here.

use crate::export::Export;
use crate::wire::{Command, Reply, Request, errno, flag};
use env::CoreHandle;
use futures_util::future::join_all;
use std::rc::Rc;
use std::time::Duration;
use units::{BlockCount, Buf, Lba, LbaRange, Now};
use volume::{
    Done, Durability, ExtentKind, Io, IoError, IoResult, Lane, Op, Origin, Provision, Support,
    Zeroing,
};

/// How long a volume may say that it is busy before a request fails.
const BUSY_MAX: Duration = Duration::from_secs(60);

/// How long to wait before asking again.
const BUSY_REST: Duration = Duration::from_millis(5);

/// Pieces of one request that are in flight at a time.
const AT_ONCE: usize = 16;

/// Extents of one answer.
const EXTENTS_MAX: usize = 1024;

const HOLE: u32 = 1;
const ZERO: u32 = 2;

/// The volume as one connection uses it.
#[derive(Clone)]
pub(crate) struct Unit {
    pub(crate) core: CoreHandle,
    pub(crate) lane: Rc<dyn Lane>,
    pub(crate) export: Rc<Export>,
}

/// The answer of a request, with the data of a read.
pub(crate) struct Outcome {
    pub(crate) cookie: u64,
    pub(crate) reply: Reply,
    pub(crate) data: Buf,
}

fn number(error: IoError) -> u32 {
    match error {
        IoError::SpaceExhausted => errno::ENOSPC,
        IoError::WriteProtected | IoError::Fenced => errno::EPERM,
        IoError::MediumError { .. }
        | IoError::Integrity { .. }
        | IoError::Miscompare { .. }
        | IoError::Unavailable
        | IoError::TimedOut
        | IoError::Aborted
        | IoError::Transition
        | IoError::Busy => errno::EIO,
    }
}

impl Unit {
    fn range(&self, request: &Request) -> LbaRange {
        let block = u64::from(self.export.shape.block_size.bytes());
        let (start, count) = (request.offset / block, u64::from(request.length) / block);
        LbaRange::new(Lba(start), BlockCount(count)).expect("the machine has checked the range")
    }

    /// Pieces of a range of at most so many blocks.
    fn pieces(range: LbaRange, most: BlockCount) -> impl Iterator<Item = LbaRange> {
        let most = most.0.max(1);
        let mut at = range.start().0;
        std::iter::from_fn(move || {
            let end = range.end().0.min(at.saturating_add(most));
            let piece = LbaRange::between(Lba(at), Lba(end)).filter(|piece| !piece.is_empty());
            at = end;
            piece
        })
    }

    /// Submits until the volume has time for it.
    async fn submit(&self, op: Op) -> IoResult {
        let (mut op, mut since): (Op, Option<Now>) = (op, None);
        loop {
            let again = op.again();
            let result = self.lane.submit(Io::new(op, Origin::default())).await;
            let Err(IoError::Busy | IoError::Transition) = result else {
                return result;
            };
            let now = self.core.now();
            let begun = *since.get_or_insert(now);
            if now.since(begun) > BUSY_MAX {
                return result;
            }
            self.core.sleep_until(now.after(BUSY_REST)).await;
            op = again;
        }
    }

    async fn all(&self, ops: impl Iterator<Item = Op>) -> Result<Vec<Done>, IoError> {
        let (mut ops, mut all) = (ops.peekable(), Vec::new());
        while ops.peek().is_some() {
            let some: Vec<_> = ops
                .by_ref()
                .take(AT_ONCE)
                .map(|op| self.submit(op))
                .collect();
            for result in join_all(some).await {
                all.push(result?);
            }
        }
        Ok(all)
    }

    /// What it takes to make the request's writes stable, and whether a flush must follow.
    fn durability(&self, request: &Request) -> (Durability, bool) {
        let fua = request.flags & flag::FUA != 0;
        match (fua, self.export.shape.caps.stable_write) {
            (false, _) => (Durability::Cached, false),
            (true, Support::Absent) => (Durability::Cached, true),
            (true, Support::Emulated | Support::Native) => (Durability::Stable, false),
        }
    }

    async fn change(&self, ops: impl Iterator<Item = Op>, flush: bool) -> Result<Reply, IoError> {
        self.all(ops).await?;
        if flush {
            self.submit(Op::Flush).await?;
        }
        Ok(Reply::Done)
    }

    async fn read(&self, request: &Request) -> Result<Buf, IoError> {
        let most = self.export.shape.limits.transfer_blocks_max;
        let ops =
            Self::pieces(self.range(request), most).map(|range| Op::Read { range, into: None });
        let mut all = Buf::empty();
        for done in self.all(ops).await? {
            match done {
                Done::Data(data) => all.append_owned(data),
                Done::Nothing | Done::Logged | Done::Extents(_) => {
                    return Err(IoError::Unavailable);
                }
            }
        }
        if all.byte_count().0 != u64::from(request.length) {
            return Err(IoError::Unavailable);
        }
        Ok(all)
    }

    async fn write(&self, request: &Request, mut data: Buf) -> Result<Reply, IoError> {
        let (durability, flush) = self.durability(request);
        let shape = &self.export.shape;
        let pieces = Self::pieces(self.range(request), shape.limits.transfer_blocks_max);
        let ops = pieces.map(|range| {
            let data = data.split_front(shape.bytes_in(range));
            Op::Write {
                range,
                data,
                durability,
            }
        });
        self.change(ops, flush).await
    }

    async fn write_zeroes(&self, request: &Request) -> Result<Reply, IoError> {
        let (durability, flush) = self.durability(request);
        let shape = &self.export.shape;
        let zeroing = if request.flags & flag::NO_HOLE == 0 {
            Zeroing::MayUnmap
        } else {
            Zeroing::KeepAllocated
        };
        let most = shape.limits.write_zeroes_blocks_max;
        let range = self.range(request);
        if shape.caps.write_zeroes == Support::Absent || most == BlockCount(0) {
            let pieces = Self::pieces(range, shape.limits.transfer_blocks_max);
            let ops = pieces.map(|range| {
                let data = Buf::zeroes(shape.bytes_in(range));
                Op::Write {
                    range,
                    data,
                    durability,
                }
            });
            return self.change(ops, flush).await;
        }
        let ops = Self::pieces(range, most).map(|range| Op::WriteZeroes {
            range,
            zeroing,
            durability,
        });
        self.change(ops, flush).await
    }

    /// Zeroes cost less than writing them: the volume does it, and need not allocate.
    fn fast_zeroes(&self, request: &Request) -> bool {
        let native = self.export.shape.caps.write_zeroes == Support::Native;
        native && request.flags & flag::NO_HOLE == 0
    }

    async fn trim(&self, request: &Request) -> Result<Reply, IoError> {
        let (durability, flush) = self.durability(request);
        let most = self.export.shape.limits.discard_blocks_max;
        let to = Provision::Deallocated;
        let ops = Self::pieces(self.range(request), most).map(|range| Op::Discard {
            range,
            to,
            durability,
        });
        self.change(ops, flush).await
    }

    async fn extents(&self, request: &Request) -> Result<Reply, IoError> {
        let shape = &self.export.shape;
        if shape.caps.extents == Support::Absent {
            return Ok(Reply::Extents(vec![(request.length, 0)]));
        }
        let range = self.range(request);
        let found = match self.submit(Op::Extents { range, since: None }).await? {
            Done::Extents(found) => found,
            Done::Nothing | Done::Logged | Done::Data(_) => return Err(IoError::Unavailable),
        };
        let zeroes = if shape.caps.discard_reads_zero {
            ZERO
        } else {
            0
        };
        let mut all: Vec<(u32, u32)> = Vec::new();
        for extent in found {
            let flags = match extent.kind {
                ExtentKind::Mapped => 0,
                ExtentKind::Deallocated => HOLE | zeroes,
                ExtentKind::Anchored => zeroes,
            };
            let end = extent.range.end().min(range.end());
            let blocks = end
                .0
                .saturating_sub(extent.range.start().max(range.start()).0);
            let bytes = blocks.saturating_mul(shape.block_size.bytes().into());
            // Inside a range whose length is a u32.
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            match all.last_mut() {
                Some((length, known)) if *known == flags => *length = length.saturating_add(bytes),
                _ if bytes > 0 => all.push((bytes, flags)),
                _ => {}
            }
        }
        let most = if request.flags & flag::REQ_ONE == 0 {
            EXTENTS_MAX
        } else {
            1
        };
        all.truncate(most);
        if all.is_empty() {
            return Err(IoError::Unavailable);
        }
        Ok(Reply::Extents(all))
    }

    /// Does what was asked, to the end.
    pub(crate) async fn run(self, request: Request, data: Buf) -> Outcome {
        let cookie = request.cookie;
        let caps = &self.export.shape.caps;
        let result = match request.command {
            Command::Read => {
                let (offset, length) = (request.offset, request.length);
                match self.read(&request).await {
                    Ok(data) => {
                        let reply = Reply::Data { offset, length };
                        return Outcome {
                            cookie,
                            reply,
                            data,
                        };
                    }
                    Err(error) => Err(error),
                }
            }
            Command::Write => self.write(&request, data).await,
            Command::Flush => self.submit(Op::Flush).await.map(|_| Reply::Done),
            Command::Trim if caps.discard == Support::Absent => Ok(Reply::Error(errno::EINVAL)),
            Command::Trim => self.trim(&request).await,
            Command::WriteZeroes
                if request.flags & flag::FAST_ZERO != 0 && !self.fast_zeroes(&request) =>
            {
                Ok(Reply::Error(errno::ENOTSUP))
            }
            Command::WriteZeroes => self.write_zeroes(&request).await,
            Command::BlockStatus => self.extents(&request).await,
        };
        let reply = result.unwrap_or_else(|error| Reply::Error(number(error)));
        Outcome {
            cookie,
            reply,
            data: Buf::empty(),
        }
    }
}
