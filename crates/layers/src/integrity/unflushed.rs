//! What was written since the last flush of the data: a flush that fails leaves it old or new, and nobody knows which.

use super::lane::Inside;
use super::map::Map;
use super::open::open_up;
use super::page::lock;
use crate::write_back::Doubts;
use std::collections::BTreeMap;
use std::ops::Range;
use volume::Durability;

/// Blocks that were written and perhaps not flushed.
#[derive(Default)]
pub(super) struct Unflushed {
    /// By the number of the flush that will cover them.
    written: BTreeMap<u64, Doubts>,
    /// The flush that comes next.
    next: u64,
    /// Flushes that failed.
    failed: u64,
}

impl Map {
    /// Flushes that failed so far: to be asked before a write is handed down.
    pub(super) fn failed_flushes(&self) -> u64 {
        lock(&self.unflushed).failed
    }

    /// A write has ended well that was handed down after so many flushes had failed. `false`: another one has failed meanwhile, and may have
    /// taken it along.
    pub(super) fn is_written(
        &self,
        blocks: &Range<u64>,
        durability: Durability,
        failed: u64,
    ) -> bool {
        if durability == Durability::Stable {
            return true;
        }
        let mut unflushed = lock(&self.unflushed);
        let next = unflushed.next;
        let written = unflushed.written.entry(next).or_default();
        written.insert(blocks.clone());
        unflushed.failed == failed
    }

    /// A flush begins; answers its number.
    pub(super) fn flush_begins(&self) -> u64 {
        let mut unflushed = lock(&self.unflushed);
        unflushed.next += 1;
        unflushed.next - 1
    }

    /// It has covered what was written before it.
    pub(super) fn flush_is_done(&self, number: u64) {
        let mut unflushed = lock(&self.unflushed);
        let later = unflushed.written.split_off(&(number + 1));
        unflushed.written = later;
    }
}

impl Inside {
    /// A flush has failed: whoever reads what was written since the last one takes its sums.
    pub(super) async fn flush_failed(&self) {
        let written = {
            let mut unflushed = lock(&self.map.unflushed);
            unflushed.failed += 1;
            std::mem::take(&mut unflushed.written)
        };
        let blocks = written.values().flat_map(Doubts::ranges);
        // Where the map cannot be read or written, that is told, and every later mutation is refused.
        let _ = open_up(&self.map, &self.from, blocks).await;
    }
}
