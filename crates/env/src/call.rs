//! Asking another core, or all of them, and waiting for the answer.

use crate::{CoreHandle, CoreId, LocalFuture};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Runs `work` on core `to` and gives its result; `None` where that core is stopping. On the own
/// core it starts at once, in the caller's task.
pub async fn call<T, W>(core: &CoreHandle, to: CoreId, work: W) -> Option<T>
where
    T: Send + 'static,
    W: FnOnce(&CoreHandle) -> LocalFuture<T> + Send + 'static,
{
    if to == core.id() {
        return Some(work(core).await);
    }
    let (answer, answered) = oneshot::channel();
    core.post(
        to,
        Box::new(move |there| {
            let running = work(there);
            there.spawn(Box::pin(async move {
                // Nobody may be waiting any more; the work is done all the same.
                drop(answer.send(running.await));
            }));
        }),
    );
    answered.await.ok()
}

/// Runs `work` on every core, the own one included, and waits until all have ended. Answers come in
/// the order of the cores' numbers; a core that is stopping has none.
pub async fn call_all<T, W>(core: &CoreHandle, work: W) -> Vec<T>
where
    T: Send + 'static,
    W: Fn(&CoreHandle) -> LocalFuture<T> + Send + Sync + 'static,
{
    let work = Arc::new(work);
    let mut waiting = Vec::new();
    for number in 0..core.core_count() {
        let (answer, answered) = oneshot::channel();
        let work = Arc::clone(&work);
        let start = move |there: &CoreHandle| {
            let running = work(there);
            there.spawn(Box::pin(async move { drop(answer.send(running.await)) }));
        };
        if CoreId(number) == core.id() {
            start(core);
        } else {
            core.post(CoreId(number), Box::new(start));
        }
        waiting.push(answered);
    }
    let mut answers = Vec::with_capacity(waiting.len());
    for answered in waiting {
        answers.extend(answered.await.ok());
    }
    answers
}
