//! Busy polling: a core looks for events for a while before it goes to sleep.
//!
//! **Contract.** Only while bytes came or went within the last span; with no connection, and after
//! an idle span, nothing spins. What is spun is not work: [`crate::Core::busy`] leaves it out. It
//! polls every source of events, because it is the event loop itself that polls, without
//! waiting.

use super::clock::clock;
use rustix::time::ClockId;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

/// What a core's connections do, and what it has spun.
#[derive(Default)]
pub(super) struct Activity {
    count: Cell<u64>,
    asleep: RefCell<Option<Waker>>,
    spun: Cell<u64>,
}

impl Activity {
    /// Bytes came or went.
    pub(super) fn happened(&self) {
        self.count.set(self.count.get().wrapping_add(1));
        if let Some(spinner) = self.asleep.borrow_mut().take() {
            spinner.wake();
        }
    }

    /// Processor time that was spent polling, in nanoseconds.
    pub(super) fn spun(&self) -> u64 {
        self.spun.get()
    }

    async fn since(&self, seen: u64) {
        poll_fn(|cx| {
            if self.count.get() != seen {
                return Poll::Ready(());
            }
            *self.asleep.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Keeps the event loop of this core awake for `span` after bytes came or went, for ever.
pub(super) async fn spin(activity: Rc<Activity>, span: Duration) {
    let mut seen = activity.count.get();
    loop {
        activity.since(seen).await;
        let span = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let (mut since, mut worked) = (clock(ClockId::Monotonic), clock(ClockId::ThreadCPUTime));
        loop {
            // Everything that is ready runs, and the event loop looks for more without waiting.
            tokio::task::yield_now().await;
            let (now, work) = (clock(ClockId::Monotonic), clock(ClockId::ThreadCPUTime));
            if activity.count.get() == seen {
                let spun = work.saturating_sub(worked);
                activity.spun.set(activity.spun.get().saturating_add(spun));
            } else {
                seen = activity.count.get();
                since = now;
            }
            worked = work;
            if now.saturating_sub(since) >= span {
                break;
            }
        }
    }
}
