//! The pieces of an operation, on their way.

use super::engine::Engine;
use super::wait::Promise;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use units::BufMut;
use volume::{
    Io, IoFuture, IoResult,
    pieces::{in_order, joined},
};

/// Pieces of one operation that are under way at most, for each path that works beside others.
const AHEAD: usize = 4;

/// Pieces on their way.
struct Pieces {
    rest: std::vec::IntoIter<Io>,
    under_way: Vec<(usize, IoFuture)>,
    /// In order of address.
    results: Vec<Option<IoResult>>,
    failed: bool,
}

impl Pieces {
    /// Hands out as many as may be ahead; ready when all that were handed out have ended. After an
    /// error there are no more.
    fn poll(
        &mut self,
        ahead: usize,
        cx: &mut Context<'_>,
        submit: impl Fn(Io) -> IoFuture,
    ) -> Poll<()> {
        loop {
            let (results, failed) = (&mut self.results, &mut self.failed);
            self.under_way.retain_mut(|(number, answer)| {
                let Poll::Ready(result) = Pin::new(answer).poll(cx) else {
                    return true;
                };
                *failed |= result.is_err();
                results[*number] = Some(result);
                false
            });
            let room = ahead.saturating_sub(self.under_way.len());
            let room = if self.failed { 0 } else { room };
            let before = self.under_way.len();
            for io in self.rest.by_ref().take(room) {
                self.under_way.push((self.results.len(), submit(io)));
                self.results.push(None);
            }
            if self.under_way.is_empty() {
                return Poll::Ready(());
            }
            if self.under_way.len() == before {
                return Poll::Pending;
            }
        }
    }
}

impl Engine {
    /// Carries an operation out piece by piece. A task hands them out, whether the issuer polls or
    /// not.
    pub(super) fn in_pieces(
        self: &Rc<Self>,
        parts: Vec<Io>,
        into: Option<BufMut>,
        paths: usize,
    ) -> IoFuture {
        let promise = Promise::new();
        let answer = promise.clone();
        let ahead = paths.max(1).saturating_mul(AHEAD);
        let mut pieces = Pieces {
            results: Vec::with_capacity(parts.len()),
            rest: parts.into_iter(),
            under_way: Vec::new(),
            failed: false,
        };
        let engine = Rc::downgrade(self);
        self.core.spawn(Box::pin(async move {
            let all = poll_fn(|cx| match engine.upgrade() {
                Some(engine) if !engine.state.borrow().closed => {
                    let all = pieces.poll(ahead, cx, |io| engine.command(io));
                    all.map(|()| true)
                }
                // Nobody is answered any more.
                Some(_) | None => Poll::Ready(false),
            });
            if all.await {
                let results = pieces.results.into_iter().flatten();
                promise.keep(joined(results, into, in_order));
            }
        }));
        IoFuture::wait(answer.kept())
    }
}
