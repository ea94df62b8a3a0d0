//! One core's handle on an image.

use crate::desk::{Asker, Desk};
use crate::extents::{first_part, in_blocks};
use crate::ffi::{FAST_DIFF, Request, submit};
use crate::image::Image;
use crate::outcome::io_error;
use env::{Answer, CoreHandle};
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::oneshot;
use units::{Buf, BufMut, Lba, LbaRange};
use volume::{
    Done, Io, IoError, IoFuture, IoResult, Lane, Op, OpKind, Origin, Provision, Shape, Zeroing,
};

pub(crate) struct RbdLane {
    core: CoreHandle,
    image: Arc<Image>,
    shape: Shape,
    desk: Rc<Desk>,
}

impl RbdLane {
    pub(crate) fn new(core: &CoreHandle, image: Arc<Image>, shape: Shape) -> Self {
        Self {
            core: Rc::clone(core),
            image,
            shape,
            desk: Desk::of(core),
        }
    }

    fn block(&self) -> u64 {
        u64::from(self.shape.block_size.bytes())
    }

    fn byte(&self, lba: Lba) -> u64 {
        lba.0 * self.block()
    }

    fn len(&self, range: LbaRange) -> u64 {
        self.byte(range.end()) - self.byte(range.start())
    }

    /// Hands the operation over in this very poll.
    fn ask(&self, kind: OpKind, range: LbaRange, request: Request) -> IoFuture {
        let Some(open) = self.image.open_image() else {
            return Answer::ready(Err(IoError::Unavailable));
        };
        let (answer, answered) = oneshot::channel();
        let asker = Asker {
            image: Arc::clone(&self.image),
            kind,
            range,
            answer,
        };
        submit(open, request, Arc::clone(&self.desk.inbox), asker);
        Answer::wait(async move {
            // Where the core stops first there is no answer, and nobody who waits.
            answered.await.unwrap_or(Err(IoError::Aborted))
        })
    }

    fn read(&self, range: LbaRange, into: Option<BufMut>) -> Result<Request, IoError> {
        let bytes = self.shape.bytes_in(range);
        let into = into.map_or_else(|| self.core.pool().alloc(bytes), Ok);
        Ok(Request::Read {
            offset: self.byte(range.start()),
            into: into.map_err(|units::Exhausted| IoError::Busy)?,
        })
    }

    /// Whole units of the range; `None` where there is none, and nothing to do.
    fn discard(&self, range: LbaRange) -> Option<Request> {
        let unit = self.shape.limits.discard_granularity.0;
        let start = Lba(range.start().0.next_multiple_of(unit));
        let end = Lba(range.end().0 - range.end().0 % unit);
        let units = LbaRange::between(start, end).filter(|units| !units.is_empty())?;
        Some(Request::Discard {
            offset: self.byte(start),
            len: self.len(units),
        })
    }

    fn extents(&self, range: LbaRange) -> IoFuture {
        let Some(open) = self.image.open_image() else {
            return Answer::ready(Err(IoError::Unavailable));
        };
        let facts = self.image.facts();
        let (block, has_map) = (self.block(), facts.features & FAST_DIFF != 0);
        let range = first_part(range, facts.object_size / block, has_map);
        let (offset, len) = (self.byte(range.start()), self.len(range));
        let threads = open.connection.threads.clone();
        let asked = threads.call(move || open.regions(offset, len));
        let image = Arc::clone(&self.image);
        Answer::wait(async move {
            match asked.await {
                Ok(regions) => Ok(Done::Extents(in_blocks(range, &regions, block))),
                Err(errno) => {
                    let error = io_error(OpKind::Extents, range, errno.0, 0);
                    image.has_failed(error);
                    Err(error)
                }
            }
        })
    }

    fn request(&self, op: Op) -> Result<Option<Request>, IoError> {
        Ok(match op {
            Op::Read { range, into } => Some(self.read(range, into)?),
            Op::Write { range, data, .. } => Some(Request::Write {
                offset: self.byte(range.start()),
                data,
            }),
            Op::WriteZeroes { range, zeroing, .. } => Some(Request::WriteZeroes {
                offset: self.byte(range.start()),
                len: self.shape.bytes_in(range),
                keep_allocated: zeroing == Zeroing::KeepAllocated,
            }),
            Op::Discard { range, to, .. } => {
                assert!(to != Provision::Anchored, "announced as absent");
                self.discard(range)
            }
            Op::CompareAndWrite {
                range,
                expected,
                data,
                ..
            } => Some(Request::CompareAndWrite {
                offset: self.byte(range.start()),
                expected: contiguous(expected),
                data: contiguous(data),
            }),
            Op::Flush => Some(Request::Flush),
            Op::Extents { .. } => unreachable!("asked on a thread"),
        })
    }

    /// The last test before the medium; the submission follows in the same poll.
    fn may(&self, op: &Op, origin: &Origin) -> Result<(), IoError> {
        if op.mutates() && !self.image.fences().is_current(origin.fence) {
            return Err(IoError::Fenced);
        }
        if self.image.cluster().is_shut_out() {
            self.image.has_failed(IoError::Fenced);
            return Err(IoError::Fenced);
        }
        match op.range() {
            // The image has shrunk under this lane.
            Some(range) if range.end().0 > self.image.block_count() => Err(IoError::Unavailable),
            Some(_) | None => Ok(()),
        }
    }

    fn start(&self, op: Op, origin: &Origin) -> Result<IoFuture, IoError> {
        self.may(&op, origin)?;
        let (kind, range) = (OpKind::of(&op), op.range());
        let range = range.unwrap_or_else(|| self.shape.whole());
        if kind == OpKind::Extents {
            return Ok(self.extents(range));
        }
        Ok(match self.request(op)? {
            Some(request) => self.ask(kind, range, request),
            None => Answer::ready(Ok(Done::Nothing)),
        })
    }
}

/// Payload in one piece, as librbd compares it. One block nearly always is.
fn contiguous(data: Buf) -> Buf {
    if data.segment_count() <= 1 {
        return data;
    }
    Buf::copy_of(&data.to_vec())
}

impl Lane for RbdLane {
    fn submit(&self, io: Io) -> IoFuture {
        let (op, origin) = io.into_parts();
        let started = self.start(op, &origin);
        started.unwrap_or_else(|error| Answer::ready(IoResult::Err(error)))
    }
}
