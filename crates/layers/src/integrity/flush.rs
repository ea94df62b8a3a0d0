//! Flushes of data and checksums, and what it means that one fails.

use super::lane::Inside;
use super::map::Map;
use super::open::open_up;
use super::page::lock;
use std::ops::Range;
use tokio::sync::oneshot;
use volume::{Done, Durability, Io, IoResult, Op, Origin, UnverifiedBlocks};

impl Map {
    /// Flushes that failed so far: to be asked before a write is handed down.
    pub(super) fn failed_flushes(&self) -> u64 {
        lock(&self.unflushed).failed
    }

    /// A write has ended well that was handed down after so many flushes had failed, or what was
    /// read since then is what blocks hold from now on: it may be what a killed process left in a
    /// cache. `set` gets `true`, or `false` where another flush has failed meanwhile, and may
    /// have taken it along.
    pub(super) fn is_written(
        &self,
        blocks: &Range<u64>,
        durability: Durability,
        failed: u64,
        set: impl FnOnce(bool),
    ) {
        if durability == Durability::Stable {
            return set(true);
        }
        let mut unflushed = lock(&self.unflushed);
        let next = unflushed.next;
        let written = unflushed.written.entry(next).or_default();
        written.insert(blocks.clone());
        // Whoever fails to flush them finds their checksums set.
        set(unflushed.failed == failed);
    }

    /// Some of these blocks were written, and no flush has covered them yet.
    fn are_unflushed(&self, blocks: &Range<u64>) -> bool {
        let unflushed = lock(&self.unflushed);
        let mut written = unflushed
            .written
            .values()
            .flat_map(UnverifiedBlocks::ranges);
        written.any(|it| it.start < blocks.end && blocks.start < it.end)
    }

    /// A flush begins; answers its number.
    fn flush_begins(&self) -> u64 {
        let mut unflushed = lock(&self.unflushed);
        let number = unflushed.next;
        unflushed.next += 1;
        unflushed.under_way.insert(number);
        number
    }

    /// It has covered what was written before it.
    fn flush_is_done(&self, number: u64) {
        let mut unflushed = lock(&self.unflushed);
        let later = unflushed.written.split_off(&(number + 1));
        unflushed.written = later;
        unflushed.ended(number);
    }

    /// The flushes that are under way end, well or not, and what that means is known.
    async fn flushes_end(&self) {
        let last = lock(&self.unflushed).next;
        loop {
            let woken = {
                let mut unflushed = lock(&self.unflushed);
                if unflushed.under_way.range(..last).next().is_none() {
                    return;
                }
                let (wake, woken) = oneshot::channel();
                unflushed.waiting.push(wake);
                woken
            };
            drop(woken.await);
        }
    }
}

impl Inside {
    /// Data and checksums are stable, or it is known of what was written that nobody knows it.
    pub(super) async fn flush(&self, origin: Origin) -> IoResult {
        let number = self.map.flush_begins();
        let data = self.below.submit(Io::new(Op::Flush, origin));
        let checksums = self.map.stable(&self.from).await;
        match data.await {
            Ok(_) => self.map.flush_is_done(number),
            Err(error) => {
                Box::pin(self.flush_failed(number)).await;
                return Err(error);
            }
        }
        checksums?;
        Ok(Done::Nothing)
    }

    /// A flush has failed: whoever reads what was written since the last one adopts its checksums.
    async fn flush_failed(&self, number: u64) {
        let written = {
            let mut unflushed = lock(&self.map.unflushed);
            unflushed.failed += 1;
            std::mem::take(&mut unflushed.written)
        };
        let blocks = written.values().flat_map(UnverifiedBlocks::ranges);
        // Where the map cannot be read or written, that is reported, and every later mutation is
        // refused.
        let _ = open_up(&self.map, &self.from, blocks).await;
        lock(&self.map.unflushed).ended(number);
    }

    /// Held blocks are not what their checksums say. `true`: they were written and not flushed, and
    /// perhaps a sync that failed has taken that back, which was not reported here yet; now it is
    /// known.
    pub(super) async fn learns_what_is_lost(&self, blocks: &Range<u64>) -> bool {
        if !self.map.are_unflushed(blocks) {
            return false;
        }
        self.map.flushes_end().await;
        if self.map.are_unflushed(blocks) {
            // Where it fails, what that means is known.
            let _ = self.flush(Origin::default()).await;
        }
        true
    }
}
