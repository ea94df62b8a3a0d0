//! Tasks of one core that wait for a condition to become true.

use std::cell::RefCell;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Everybody who waits. Waking is for all: each tests its own condition again.
#[derive(Default, Debug)]
pub(crate) struct WaitList(RefCell<Vec<Waker>>);

impl WaitList {
    /// Waits until `condition` holds; tests it at once, and again after each
    /// [`WaitList::wake_all`].
    pub(crate) async fn until(&self, mut condition: impl FnMut() -> bool) {
        poll_fn(|cx| {
            if condition() {
                return Poll::Ready(());
            }
            self.register(cx.waker());
            Poll::Pending
        })
        .await;
    }

    /// Adds a waker by hand, for polls of more than one condition.
    pub(crate) fn register(&self, waker: &Waker) {
        let mut waiting = self.0.borrow_mut();
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }

    /// Something changed.
    pub(crate) fn wake_all(&self) {
        // Nearly always nobody waits, and every command comes by here twice.
        if !self.0.borrow().is_empty() {
            self.wake_those_who_wait();
        }
    }

    #[cold]
    fn wake_those_who_wait(&self) {
        // Taken out first: a waker may run code that registers again.
        let waiting = std::mem::take(&mut *self.0.borrow_mut());
        for waker in waiting {
            waker.wake();
        }
    }
}
