//! How much of a log a volume may have, so that others always find room.
//!
//! One volume alone may have three quarters of it, and half of a very small one, and so may those
//! together that are known not to be destaged: with the eighth that may [wait](crate::permits) an
//! eighth is always left. Where those that are not destaged have half of it and nothing but them
//! is relocated any more, their writes get the error that the backing volume gives.

use super::Machine;
use journal::Slot;
use units::Lba;
use volume::IoError;

/// Volumes that cannot be destaged may together have the log's room divided by this.
const FAILED_PART_MAX: u64 = 2;

/// Blocks of the log that what is relocated may take for itself, beside what it relocates: batches
/// that are not full.
const RELOCATING_BLOCKS: u64 = 256;

impl Machine {
    /// Pages in the log of volumes that are known not to be destaged.
    fn failed_pages(&self) -> u64 {
        let failed = self.volumes().iter();
        let failed = failed.filter(|(_, volume)| volume.destage_error.is_some());
        failed
            .map(|(slot, _)| u64::from(self.index().pages_of(slot)))
            .sum()
    }

    /// Volumes that are not destaged have all that they may have: half of the log, so that others
    /// have the rest.
    pub(crate) fn refuses_some(&self) -> bool {
        let most = self.ring().room_blocks() / FAILED_PART_MAX;
        // What only waits for its turn does not count: it is relocated when that comes, if it must.
        self.failed_pages() >= most && self.relocated_blocks() >= most / 2
    }

    /// What a write of the volume is answered, while it is refused: what the backing volume would
    /// answer. What gives room back, or needs none, is taken.
    pub(crate) fn refuses(&self, slot: Slot, at: Lba) -> Option<IoError> {
        let failed = self.volume(slot).destage_error.as_ref()?;
        self.refuses_some().then(|| failed.error.map_lba(|_| at))
    }

    /// One more change of the volume leaves room in the log for others.
    pub(crate) fn has_share(&self, slot: Slot) -> bool {
        let ring = self.ring();
        let room = ring.room_blocks();
        if self.volumes().len() == 1 || ring.used_blocks() < room / 2 || ring.has_failed() {
            return true;
        }
        let own = u64::from(self.index().pages_of(slot));
        let pages = if self.volume(slot).destage_error.is_some() {
            own.max(self.failed_pages())
        } else {
            own
        };
        pages < room / 4 * 3 - RELOCATING_BLOCKS.min(room / 4)
    }
}
