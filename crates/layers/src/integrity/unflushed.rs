//! What was written since the last flush of the data: a flush that fails leaves it old or new, and
//! nobody knows which.

use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::oneshot;
use volume::UnverifiedBlocks;

/// Blocks that were written and perhaps not flushed.
#[derive(Default)]
pub(super) struct Unflushed {
    /// By the number of the flush that will cover them.
    pub(super) written: BTreeMap<u64, UnverifiedBlocks>,
    /// The flush that comes next.
    pub(super) next: u64,
    /// Flushes that failed.
    pub(super) failed: u64,
    /// Flushes that have begun and not ended, by their numbers.
    pub(super) under_way: BTreeSet<u64>,
    /// Who waits for one of them to end.
    pub(super) waiting: Vec<oneshot::Sender<()>>,
}

impl Unflushed {
    pub(super) fn ended(&mut self, number: u64) {
        self.under_way.remove(&number);
        // Who waits is woken by losing his sender.
        self.waiting.clear();
    }
}
