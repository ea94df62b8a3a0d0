//! What every task of a server sees: the stop, and the counters.

use env::CoreHandle;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Waker};

/// What has happened since the start.
#[derive(Default, Debug)]
pub struct Counters {
    /// Connections now.
    pub connections: AtomicU64,
    /// Requests since the start.
    pub requests: AtomicU64,
    /// Connections that broke the protocol.
    pub violations: AtomicU64,
}

/// Wakers of what waits on this core, so that it notices a stop.
#[derive(Default)]
struct Sleepers(RefCell<BTreeMap<u64, Waker>>);

/// Whether the server stops, as one task sees it.
pub(crate) struct Stop {
    stopping: Arc<AtomicBool>,
    sleepers: Rc<Sleepers>,
    number: u64,
}

impl Stop {
    /// As the task of this number on this core sees it.
    pub(crate) fn new(stopping: &Arc<AtomicBool>, number: u64, core: &CoreHandle) -> Self {
        Self {
            stopping: Arc::clone(stopping),
            sleepers: core.locals().get::<Sleepers>(),
            number,
        }
    }

    /// Wakes all that sleep on this core.
    pub(crate) fn wake_all(core: &CoreHandle) {
        let sleepers = core.locals().get::<Sleepers>().0.take();
        sleepers.into_values().for_each(Waker::wake);
    }

    /// It stops; else the task is woken when it does.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> bool {
        if self.stopping.load(Ordering::Acquire) {
            return true;
        }
        let mut sleepers = self.sleepers.0.borrow_mut();
        match sleepers.get_mut(&self.number) {
            Some(known) => known.clone_from(cx.waker()),
            None => drop(sleepers.insert(self.number, cx.waker().clone())),
        }
        false
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        let _mine = self.sleepers.0.borrow_mut().remove(&self.number);
    }
}
