//! How far work is that takes long, for whoever watches it.

use std::cell::Cell;

/// How far work is, and whether it is to stop. It lives on one core, shared by who does the work
/// and who watches it.
#[derive(Default, Debug)]
pub struct Progress {
    done: Cell<u64>,
    total: Cell<u64>,
    stopped: Cell<bool>,
}

impl Progress {
    /// Of so many bytes.
    #[must_use]
    pub fn of(total: u64) -> Self {
        let progress = Self::default();
        progress.total.set(total);
        progress
    }

    /// Bytes that are done, and bytes that there are to do.
    #[must_use]
    pub fn now(&self) -> (u64, u64) {
        (self.done.get(), self.total.get())
    }

    /// So many more bytes are done.
    pub fn add(&self, bytes: u64) {
        self.done.set(self.done.get().saturating_add(bytes));
    }

    /// The work is to stop where it is, and to be undone.
    pub fn stop(&self) {
        self.stopped.set(true);
    }

    /// Whether it is to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.get()
    }
}
