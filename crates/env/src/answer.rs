//! An answer that may be there at once.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The future of an operation that often completes without waiting: then it costs no allocation.
///
/// Whoever asks should ask with [`Answer::now`] first and await only what is left.
pub enum Answer<T> {
    /// The answer; `None` once it was taken.
    Ready(Option<T>),
    /// Still to be waited for. Dropping it abandons the answer, never the work.
    Waiting(Pin<Box<dyn Future<Output = T>>>),
}

impl<T> Answer<T> {
    /// An answer that is there.
    #[must_use]
    pub const fn ready(value: T) -> Self {
        Self::Ready(Some(value))
    }

    /// An answer that `future` will give.
    pub fn wait(future: impl Future<Output = T> + 'static) -> Self {
        Self::Waiting(Box::pin(future))
    }

    /// The answer if it is there, or what must be awaited.
    ///
    /// # Errors
    /// The future, where the answer is not there yet.
    ///
    /// # Panics
    /// If the answer was taken before.
    pub fn now(self) -> Result<T, Pin<Box<dyn Future<Output = T>>>> {
        match self {
            Self::Ready(value) => Ok(value.expect("an answer is taken once")),
            Self::Waiting(future) => Err(future),
        }
    }
}

impl<T: Unpin> Future for Answer<T> {
    type Output = T;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match self.get_mut() {
            Self::Ready(value) => Poll::Ready(value.take().expect("an answer is taken once")),
            Self::Waiting(future) => future.as_mut().poll(cx),
        }
    }
}
