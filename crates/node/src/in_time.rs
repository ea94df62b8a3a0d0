//! Work that may hang, and somebody who does not wait for ever.

use env::CoreHandle;
use futures_util::future::{Either, select};
use std::pin::pin;
use std::time::Duration;

/// What `work` gives; `None` where it takes longer than this. It is dropped then, and what it asked
/// of a disk goes on.
pub(crate) async fn in_time<T>(
    core: &CoreHandle,
    time: Duration,
    work: impl Future<Output = T>,
) -> Option<T> {
    let timer = core.sleep_until(core.now().after(time));
    match select(pin!(work), timer).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}
