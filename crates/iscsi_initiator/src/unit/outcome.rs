//! A value that comes once, for everybody on this core who waits for it.

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

/// The first value counts.
pub(super) struct Outcome<T>(RefCell<(Option<T>, Vec<Waker>)>);

impl<T> Default for Outcome<T> {
    fn default() -> Self {
        Self(RefCell::new((None, Vec::new())))
    }
}

impl<T: fmt::Debug> fmt::Debug for Outcome<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.borrow().0.fmt(f)
    }
}

impl<T: Clone> Outcome<T> {
    pub(super) fn set(&self, value: T) {
        let waiting = {
            let mut inside = self.0.borrow_mut();
            inside.0.get_or_insert(value);
            std::mem::take(&mut inside.1)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    pub(super) fn get(&self) -> Option<T> {
        self.0.borrow().0.clone()
    }

    pub(super) fn poll(&self, cx: &mut Context<'_>) -> Poll<T> {
        let mut inside = self.0.borrow_mut();
        if let Some(value) = &inside.0 {
            return Poll::Ready(value.clone());
        }
        if inside.1.iter().all(|waker| !waker.will_wake(cx.waker())) {
            inside.1.push(cx.waker().clone());
        }
        Poll::Pending
    }

    pub(super) async fn wait(&self) -> T {
        poll_fn(|cx| self.poll(cx)).await
    }
}
