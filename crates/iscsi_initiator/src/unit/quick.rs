//! A read or a write that is one command, as most are: it is sent at once, and its end is the
//! command's.
//!
//! One that had to wait is sent from here, too, and what an answer is worth is decided in one place
//! for all commands.

use super::cdb;
use super::operation::{self, Request, Stability};
use super::probe::command;
use super::quicks::Quick;
use super::session::{Inner, Untaken, of_lost, taken};
use env::LocalFuture;
use multipath::Ended;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use units::{Buf, BufMut, LbaRange};
use volume::{Done, Durability, Io, Op};

/// One command that an operation is.
#[derive(Clone, Copy)]
pub(super) struct Single {
    range: LbaRange,
    /// FUA of a write; `None`: it reads.
    write: Option<bool>,
}

impl Inner {
    /// The one command that an operation is; `None` where it is not, or has to wait.
    pub(super) fn single(&self, op: &Op) -> Option<Single> {
        let (range, memory, write) = match op {
            Op::Read { range, into } => (*range, into.as_ref().map(BufMut::len), None),
            Op::Write {
                range,
                data,
                durability,
            } => {
                let Stability { fua, flush } =
                    operation::stability(*durability, self.abilities.features, true);
                if flush || self.unit.is_preempted() {
                    return None;
                }
                (*range, Some(data.len()), Some(fua))
            }
            Op::WriteZeroes { .. }
            | Op::Discard { .. }
            | Op::CompareAndWrite { .. }
            | Op::Extents { .. }
            | Op::Flush => return None,
        };
        let waits = self.membership.left.get() || !self.gate.is_open();
        let short = !range.is_empty() && range.len().0 <= u64::from(self.abilities.limits.transfer);
        let fits = short && memory.is_none_or(|bytes| bytes == self.bytes_in(range));
        (fits && !waits).then_some(Single { range, write })
    }

    /// Sends it, as a future.
    pub(super) fn alone(self: Rc<Self>, single: Single, io: Io) -> Alone {
        let (mut op, _) = io.into_parts();
        let into = op.take_into();
        let data = if let Op::Write { data, .. } = op {
            data
        } else {
            Buf::empty()
        };
        let quick = self.quick(single, data, into);
        Alone { inner: self, quick }
    }

    /// Sends it: `data` is what a write writes, `into` where a read reads to, if that is somewhere
    /// in particular.
    pub(super) fn quick(&self, single: Single, data: Buf, into: Option<BufMut>) -> Quick {
        let Single { range, write } = single;
        let bytes = self.bytes_in(range);
        let (request, into) = match write {
            Some(fua) => (operation::write(range, data, fua), None),
            None => {
                let cdb = cdb::read_16(range);
                let into = into.unwrap_or_else(|| self.memory(bytes));
                (
                    Request {
                        cdb,
                        data_out: data,
                    },
                    Some(into),
                )
            }
        };
        let sent = command(self.lun, request.cdb);
        Quick::Asked {
            answer: self.session.command(sent, request.data_out, into),
            range,
            bytes,
            writes: write.is_some(),
        }
    }
}

impl Quick {
    pub(super) fn poll(&mut self, inner: &Rc<Inner>, cx: &mut Context<'_>) -> Poll<Ended> {
        let (answer, range, bytes, writes) = match self {
            Self::Asked {
                answer,
                range,
                bytes,
                writes,
            } => (answer, *range, *bytes, *writes),
            Self::Refused(ended) => return ended.as_mut().poll(cx),
        };
        let completion = match Pin::new(answer).poll(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(lost)) => return Poll::Ready(of_lost(&lost)),
            Poll::Ready(Ok(completion)) => completion,
        };
        let refusal = match taken(completion, (!writes).then_some(bytes)) {
            Ok(data) => {
                inner.counters.carried(bytes, writes);
                let done = if writes {
                    Done::Nothing
                } else {
                    Done::Data(data)
                };
                return Poll::Ready(Ended::Done(Ok(done)));
            }
            Err(Untaken::Ended(ended)) => return Poll::Ready(ended),
            Err(Untaken::Refused(refusal)) => refusal,
        };
        // What the error says hangs on the range and on whether it writes.
        let op = if writes {
            Op::Write {
                range,
                data: Buf::empty(),
                durability: Durability::Cached,
            }
        } else {
            Op::Read { range, into: None }
        };
        let inner = Rc::clone(inner);
        let mut ended: LocalFuture<Ended> =
            Box::pin(async move { inner.refused(&op, refusal).await });
        let first = ended.as_mut().poll(cx);
        *self = Self::Refused(ended);
        first
    }
}

/// One as a future.
pub(super) struct Alone {
    pub(super) inner: Rc<Inner>,
    pub(super) quick: Quick,
}

impl Future for Alone {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        let Self { inner, quick } = &mut *self;
        quick.poll(inner, cx)
    }
}
