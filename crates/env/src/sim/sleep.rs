//! Waiting for a moment of virtual time.

use super::executor::{Due, TimerKey};
use super::inner::Inner;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// What a timer takes whose time has passed when it is first polled: a tick, as a real one does.
const TICK_NANOS: u64 = 1_000_000;

/// A timer that somebody waits for.
pub(super) struct Sleep {
    inner: Rc<Inner>,
    /// Whose clock counts; `None`: the world's.
    node: Option<u16>,
    at: u64,
    /// It has been polled, and rings at `at`.
    begun: bool,
    key: Option<TimerKey>,
}

impl Sleep {
    /// Until a moment of the world.
    pub(super) fn new(inner: &Rc<Inner>, at: u64) -> Self {
        Self::by(inner, None, at)
    }

    /// Until the clock of a node shows this.
    pub(super) fn of(inner: &Rc<Inner>, node: u16, at: u64) -> Self {
        Self::by(inner, Some(node), at)
    }

    fn by(inner: &Rc<Inner>, node: Option<u16>, at: u64) -> Self {
        Self {
            inner: Rc::clone(inner),
            node,
            at,
            begun: false,
            key: None,
        }
    }

    fn now(&self) -> u64 {
        self.node
            .map_or_else(|| self.inner.now(), |node| self.inner.shown_at(node))
    }

    /// The moment of the world at which it is over.
    fn rings_at(&self) -> u64 {
        self.node
            .map_or(self.at, |node| self.inner.when_shown(node, self.at))
    }
}

impl Future for Sleep {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !std::mem::replace(&mut self.begun, true) && self.now() >= self.at {
            // Never in the poll that begins it: who replaces a timer because its time has come
            // would never be woken.
            self.at = self.now().saturating_add(TICK_NANOS);
        }
        if let Some(key) = self.key.take() {
            self.inner.executor.cancel(key);
        }
        if self.now() >= self.at {
            return Poll::Ready(());
        }
        let due = Due::Wake(cx.waker().clone());
        self.key = Some(self.inner.executor.timer(self.rings_at(), due));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.inner.executor.cancel(key);
        }
    }
}
