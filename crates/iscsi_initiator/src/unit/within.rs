//! A limit of time.

use env::CoreHandle;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// What `work` gives, if it does in time.
pub(super) async fn within<T>(
    core: &CoreHandle,
    span: Duration,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    let mut timer = core.sleep_until(core.now().after(span));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => timer.as_mut().poll(cx).map(|()| None),
    })
    .await
}
