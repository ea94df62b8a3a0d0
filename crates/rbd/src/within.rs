//! Waiting for a thread's answer, but not for ever.

use env::{CoreHandle, LocalFuture};
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

/// The answer, or nothing where it has not come in time. What would give it goes on.
pub(crate) async fn within<T>(
    core: &CoreHandle,
    patience: Duration,
    mut answer: LocalFuture<T>,
) -> Option<T> {
    let mut end = core.sleep_until(core.now().after(patience));
    poll_fn(|cx| {
        if let Poll::Ready(value) = answer.as_mut().poll(cx) {
            return Poll::Ready(Some(value));
        }
        end.as_mut().poll(cx).map(|()| None)
    })
    .await
}
