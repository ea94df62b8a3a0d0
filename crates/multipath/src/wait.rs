//! Two small ways to wait on one core.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// A value that comes once.
pub(super) struct Promise<T>(Rc<RefCell<(Option<T>, Option<Waker>)>>);

impl<T> Clone for Promise<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T> Promise<T> {
    pub(super) fn new() -> Self {
        Self(Rc::new(RefCell::new((None, None))))
    }

    /// The first value counts.
    pub(super) fn keep(&self, value: T) {
        let waker = {
            let mut inner = self.0.borrow_mut();
            inner.0.get_or_insert(value);
            inner.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Wakes whoever waits, without a value.
    pub(super) fn wake(&self) {
        let waker = self.0.borrow_mut().1.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn poll_kept(&self, cx: &Context<'_>) -> Poll<T> {
        let mut inner = self.0.borrow_mut();
        match inner.0.take() {
            Some(value) => Poll::Ready(value),
            None => {
                inner.1 = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    pub(super) async fn kept(self) -> T {
        poll_fn(|cx| self.poll_kept(cx)).await
    }
}

/// Wakes the one that waits; a ring that nobody waited for is not lost.
#[derive(Default)]
pub(super) struct Bell(RefCell<(bool, Option<Waker>)>);

impl Bell {
    pub(super) fn ring(&self) {
        let waker = {
            let mut inner = self.0.borrow_mut();
            inner.0 = true;
            inner.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Until it rings or `until` completes.
    pub(super) async fn rung_or(&self, mut until: Option<env::LocalFuture<()>>) {
        poll_fn(|cx| {
            let mut inner = self.0.borrow_mut();
            if std::mem::take(&mut inner.0) {
                return Poll::Ready(());
            }
            inner.1 = Some(cx.waker().clone());
            match &mut until {
                Some(until) => until.as_mut().poll(cx),
                None => Poll::Pending,
            }
        })
        .await;
    }
}
