//! Work of several steps that goes on when nobody waits for it any more.

use crate::{Answer, CoreHandle};
use std::future::Future;
use tokio::sync::oneshot;

/// Starts `work` as a task of its own on this core: dropping the answer abandons the answer, never
/// the work. The answer never comes where the core stops first.
pub fn detach<T: 'static>(core: &CoreHandle, work: impl Future<Output = T> + 'static) -> Answer<T> {
    let (answer, answered) = oneshot::channel();
    core.spawn(Box::pin(async move {
        // Nobody may be waiting any more; the work is done all the same.
        drop(answer.send(work.await));
    }));
    Answer::wait(async move {
        match answered.await {
            Ok(value) => value,
            Err(_) => std::future::pending().await,
        }
    })
}
