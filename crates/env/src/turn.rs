//! Giving the other tasks of a core their turn.

use std::future::poll_fn;
use std::task::Poll;

/// Waits until whatever else is ready on this core has had its turn. Work of many steps, each of
/// which may be done at once, waits so between them: a task keeps its core for as long as nothing
/// that it waits for is missing.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
