//! How often sessions went from core to core.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often sessions went from core to core.
#[derive(Default)]
pub(crate) struct Moves {
    done: AtomicU64,
    given_up: AtomicU64,
}

impl Moves {
    pub(crate) fn done(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn given_up(&self) {
        self.given_up.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.done), read(&self.given_up))
    }
}
