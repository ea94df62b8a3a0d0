//! What a ring's volumes have of its log, for [`Share`] to decide by.

use super::Machine;
use crate::admission::Share;
use journal::Slot;
use units::Lba;
use volume::IoError;

/// So many changes of a volume may wait for other copies in one ring: what of them is in memory is
/// bounded so. It is what may be on its way to a peer whose answer takes 10 ms at 200,000 a second.
const HELD_MAX: usize = 2048;

impl Machine {
    /// Pages in the log of volumes that are known not to be destaged.
    fn failed_pages(&self) -> u64 {
        let failed = self.volumes().iter();
        let failed = failed.filter(|(_, volume)| volume.destage_error.is_some());
        failed
            .map(|(slot, _)| u64::from(self.index().pages_of(slot)))
            .sum()
    }

    fn share(&self) -> Share {
        Share::of_log(self.ring().room_blocks())
    }

    /// Writes of volumes that are not destaged are refused.
    pub(crate) fn refuses_some(&self) -> bool {
        let share = self.share();
        share.is_spent(self.failed_pages(), self.relocated_blocks())
    }

    /// What a write of the volume is answered, while it is refused: what the backing volume would
    /// answer. What gives room back, or needs none, is taken.
    pub(crate) fn refuses(&self, slot: Slot, at: Lba) -> Option<IoError> {
        let failed = self.volume(slot).destage_error.as_ref()?;
        self.refuses_some().then(|| failed.error.map_lba(|_| at))
    }

    /// One more change of the volume leaves room in the log for others, and not too many of its own
    /// wait for other copies.
    pub(crate) fn has_share(&self, slot: Slot) -> bool {
        let held = self.held(slot);
        if held >= HELD_MAX && !self.ring().has_failed() {
            return false;
        }
        let (ring, share) = (self.ring(), self.share());
        if ring.has_failed() {
            return true;
        }
        // No more is held than is in use, which is known at once.
        let may_hold = |pages| share.has_room_to_hold(pages);
        if held > 0 && !may_hold(ring.used_blocks()) && !may_hold(self.held_pages()) {
            return false;
        }
        if self.volumes().len() == 1 || share.is_free(ring.used_blocks()) {
            return true;
        }
        let own = u64::from(self.index().pages_of(slot));
        let pages = if self.volume(slot).destage_error.is_some() {
            own.max(self.failed_pages())
        } else {
            own
        };
        share.has_room(pages)
    }
}
