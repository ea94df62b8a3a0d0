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
    at: u64,
    /// It has been polled, and rings at `at`.
    begun: bool,
    key: Option<TimerKey>,
}

impl Sleep {
    pub(super) fn new(inner: &Rc<Inner>, at: u64) -> Self {
        Self {
            inner: Rc::clone(inner),
            at,
            begun: false,
            key: None,
        }
    }
}

impl Future for Sleep {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !std::mem::replace(&mut self.begun, true) && self.inner.now() >= self.at {
            // Never in the poll that begins it: who replaces a timer because its time has come
            // would never be woken.
            self.at = self.inner.now().saturating_add(TICK_NANOS);
        }
        if let Some(key) = self.key.take() {
            self.inner.executor.cancel(key);
        }
        if self.inner.now() >= self.at {
            return Poll::Ready(());
        }
        let due = Due::Wake(cx.waker().clone());
        self.key = Some(self.inner.executor.timer(self.at, due));
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
