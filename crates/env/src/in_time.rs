//! Work that may hang, and somebody who does not wait for ever.

use crate::CoreHandle;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// What `work` gives; `None` where it takes longer than this. It is dropped then, and what it asked
/// of a disk goes on.
pub async fn in_time<T>(
    core: &CoreHandle,
    time: Duration,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut timer = core.sleep_until(core.now().after(time));
    let mut work = pin!(work);
    poll_fn(|context| {
        // What is done at the last moment is done.
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(Some(done));
        }
        timer.as_mut().poll(context).map(|()| None)
    })
    .await
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::sim::{World, WorldConfig};
    use std::future::ready;

    #[test]
    fn work_is_waited_for_as_long_as_it_may_take_and_what_is_done_is_given_without_any_time() {
        let world = World::new(1, WorldConfig::default());
        let node = world.node("a");
        let seconds = Duration::from_secs;
        for (takes, given) in [(1, Some(())), (9, Some(())), (11, None)] {
            let core = node.core(0);
            let asked = async move {
                let begun = core.now();
                let work = core.sleep_until(begun.after(seconds(takes)));
                let done = in_time(&core, seconds(10), work).await;
                (done, core.now().since(begun).as_secs())
            };
            let (done, waited) = world.block_on(&node, seconds(60), asked).unwrap();
            assert_eq!((done, waited), (given, takes.min(10)));
        }
        let core = node.core(0);
        let asked = async move { in_time(&core, Duration::ZERO, ready(7)).await };
        assert_eq!(world.block_on(&node, seconds(1), asked).unwrap(), Some(7));
    }
}
