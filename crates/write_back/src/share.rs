//! How much of a log a volume may have, so that others always find room.
//!
//! One volume alone may have three quarters of it, and half of a very small one, and so may those
//! together that are known not to go home: with the eighth that may [wait](crate::permits) an
//! eighth is always left. Where those that do not go home have half of it and nothing but them
//! moves on any more, their writes get the error that home gives.

use crate::shard::{Shard, State};
use journal::Slot;
use units::Lba;
use volume::IoError;

/// Volumes that cannot be destaged may together have the log's room divided by this.
const STUCK_PART_MAX: u64 = 2;

/// Blocks of the log that what moves on may take for itself, beside what it moves: batches that are
/// not full.
const MOVING_BLOCKS: u64 = 256;

impl State {
    /// Pages in the log of volumes that are known not to go home.
    fn stuck_pages(&self) -> u64 {
        let homes = (0..).zip(&self.homes);
        let stuck = homes.filter(|(_, home)| home.stuck.is_some());
        stuck
            .map(|(slot, _)| u64::from(self.index.pages_of(Slot(slot))))
            .sum()
    }

    /// Volumes that do not go home have all that they may have: half of the log, so that others
    /// have the rest.
    pub(crate) fn refuses_some(&self) -> bool {
        let most = self.log.ring().room_blocks() / STUCK_PART_MAX;
        // What only waits for its turn does not count: it moves on when that comes, if it must.
        self.stuck_pages() >= most && self.moved_blocks() >= most / 2
    }

    /// One more change of the volume leaves room in the log for others.
    fn has_share(&self, slot: Slot) -> bool {
        let ring = self.log.ring();
        let room = ring.room_blocks();
        if self.homes.len() == 1 || ring.used_blocks() < room / 2 || ring.has_failed() {
            return true;
        }
        let own = u64::from(self.index.pages_of(slot));
        let pages = if self.home(slot).stuck.is_some() {
            own.max(self.stuck_pages())
        } else {
            own
        };
        pages < room / 4 * 3 - MOVING_BLOCKS.min(room / 4)
    }
}

impl Shard {
    /// What a write of the volume is answered, while it is refused: what it would be at home. What
    /// gives room back, or needs none, is taken.
    pub(crate) fn refuses(&self, slot: Slot, at: Lba) -> Option<IoError> {
        let state = self.state.borrow();
        let stuck = state.home(slot).stuck.as_ref()?;
        state.refuses_some().then(|| stuck.error.map_lba(|_| at))
    }

    /// Writes of the volume are refused.
    pub(crate) fn is_refused(&self, slot: Slot) -> bool {
        self.refuses(slot, Lba(0)).is_some()
    }

    /// One more change of the volume leaves room in the log for others.
    pub(crate) fn has_share(&self, slot: Slot) -> bool {
        self.state.borrow().has_share(slot)
    }

    /// Waits until the volume has its share again, or can be told why it has not.
    pub(crate) async fn share_comes(&self, slot: Slot) {
        self.until(|| self.has_share(slot) || self.is_refused(slot))
            .await;
    }
}
