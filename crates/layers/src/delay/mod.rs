//! Each operation of a volume waits for a fixed time, which is changed while it works: what hosts
//! do with slow storage can be tried.
//!
//! **Contract.** An operation goes down when the delay has passed since it came, or a tick of the
//! core's timers later, never earlier, and is never refused. Every kind waits, flushes and
//! questions about extents as well: who stands above sees a volume that answers later. Those in
//! flight wait at the same time; a delay is no limit of how many they are. A change is for what
//! comes from then on: what waits already waits as long as it was to. Where there is no delay, an
//! operation costs a look at a word that nobody writes.

#[cfg(test)]
mod test;

use crate::limit::Deferred;
use env::{CoreHandle, detach};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use volume::{Io, IoFuture, Lane, Shape, Wrap};

/// A volume's delay; clones are one.
#[derive(Clone, Default, Debug)]
pub struct Delay(Arc<Shared>);

#[derive(Default, Debug)]
struct Shared {
    /// How long each operation waits, in nanoseconds.
    nanos: AtomicU64,
    /// Operations that had to wait.
    operations: AtomicU64,
    /// How long those that went on had waited, in nanoseconds.
    waited: AtomicU64,
    /// Operations that wait now.
    waiting: AtomicUsize,
}

impl Delay {
    /// None, to begin with.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How long each operation waits that comes from now on, on every core; zero lifts it.
    pub fn set(&self, delay: Duration) {
        let nanos = nanos_of(delay);
        self.0.nanos.store(nanos, Ordering::Release);
    }

    /// What was set last.
    #[must_use]
    pub fn get(&self) -> Duration {
        Duration::from_nanos(self.0.nanos.load(Ordering::Acquire))
    }

    /// What it did.
    #[must_use]
    pub fn deferred(&self) -> Deferred {
        Deferred {
            operations: self.0.operations.load(Ordering::Relaxed),
            waited: Duration::from_nanos(self.0.waited.load(Ordering::Relaxed)),
            waiting: self.0.waiting.load(Ordering::Relaxed),
        }
    }
}

fn nanos_of(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl Shared {
    fn arrives(&self) {
        self.operations.fetch_add(1, Ordering::Relaxed);
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    fn goes_on(&self, waited: Duration) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.waited.fetch_add(nanos_of(waited), Ordering::Relaxed);
    }
}

impl Wrap for Delay {
    fn lane(&self, core: &CoreHandle, below: Rc<dyn Lane>, _: Shape) -> Rc<dyn Lane> {
        Rc::new(DelayLane {
            core: Rc::clone(core),
            below,
            delay: self.clone(),
        })
    }
}

struct DelayLane {
    core: CoreHandle,
    below: Rc<dyn Lane>,
    delay: Delay,
}

impl Lane for DelayLane {
    fn submit(&self, io: Io) -> IoFuture {
        let delay = self.delay.get();
        if delay.is_zero() {
            return self.below.submit(io);
        }
        let (core, below) = (Rc::clone(&self.core), Rc::clone(&self.below));
        let shared = Arc::clone(&self.delay.0);
        let arrived = core.now();
        shared.arrives();
        // A task of its own: dropping the answer does not drop the operation.
        detach(&self.core, async move {
            core.sleep_until(arrived.after(delay)).await;
            shared.goes_on(core.now().since(arrived));
            below.submit(io).await
        })
    }
}
