//! All that is copied from this node goes as fast as hosts of its LUNs allow.

use crate::latency::Latencies;
use crate::throttle::{SPAN, Throttle};
use env::CoreHandle;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use units::Now;

/// The pace of a node.
pub(crate) struct Pace {
    core: CoreHandle,
    /// What hosts of its LUNs wait.
    latencies: Arc<Latencies>,
    /// `None`: nothing is copied.
    throttle: RefCell<Option<Throttle>>,
    workers: Cell<u64>,
    said: Cell<Now>,
}

/// Somebody who copies, for as long as this is there.
pub(crate) struct Worker(Rc<Pace>);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.workers.set(self.0.workers.get() - 1);
        if self.0.workers.get() == 0 {
            self.0.throttle.replace(None);
            self.0.latencies.turn(false);
        }
    }
}

impl Pace {
    pub(crate) fn new(core: &CoreHandle) -> Self {
        Self {
            core: Rc::clone(core),
            latencies: Arc::default(),
            throttle: RefCell::default(),
            workers: Cell::new(0),
            said: Cell::new(Now::ZERO),
        }
    }

    pub(crate) fn latencies(&self) -> &Arc<Latencies> {
        &self.latencies
    }

    /// Somebody begins to copy.
    pub(crate) fn begins(self: &Rc<Self>) -> Worker {
        let now = self.core.now();
        if self.workers.get() == 0 {
            self.throttle.replace(Some(Throttle::new(now)));
            self.latencies.turn(true);
            self.said.set(now);
        }
        self.workers.set(self.workers.get() + 1);
        Worker(Rc::clone(self))
    }

    /// Time has passed.
    pub(crate) fn tick(&self) {
        let now = self.core.now();
        if let Some(throttle) = &mut *self.throttle.borrow_mut()
            && now >= self.said.get().after(SPAN)
        {
            self.said.set(now);
            throttle.hosts_waited(now, self.latencies.take());
        }
    }
}

impl Worker {
    /// Waits until so many bytes more may be read or sent.
    pub(crate) async fn may(&self, bytes: u64) {
        let core = &self.0.core;
        loop {
            let may = match &mut *self.0.throttle.borrow_mut() {
                Some(throttle) => throttle.may(core.now(), bytes),
                None => None,
            };
            match may {
                Some(at) => core.sleep_until(at).await,
                None => return,
            }
        }
    }
}
