//! What waits for other copies, and what lies in the log around it.

use super::Machine;
use crate::ring::changes::overlap;
use crate::ring::destaging::BareChange;
use journal::{Change, Commit, Segment, Stable};
use units::{BlockSize, Lba, LbaRange};

/// From this part of the log on its room is scarce.
const SCARCE: f64 = 0.7;

impl Machine {
    /// So much of the log is in use that room is worth some work.
    pub(crate) fn is_scarce(&self) -> bool {
        self.fill() >= SCARCE
    }

    /// The oldest segment of the log that may be destaged. Where room is scarce that is also what
    /// waits for other copies: it is relocated, and with it ends what it keeps of its neighbours.
    pub(crate) fn oldest(&self, blocks: u64) -> Option<Segment> {
        let ring = self.log.ring();
        let oldest = ring.oldest(blocks);
        let relocates = || (self.is_full || self.is_scarce()) && self.fresh_blocks() > 0;
        if oldest.is_none() && relocates() {
            return ring.oldest_stable(blocks.min(self.blocks_that_can_be_relocated()));
        }
        oldest
    }

    /// All of so many blocks finds room elsewhere in the log before theirs is free. A round that
    /// ends for want of it would have taken the room that the oldest batch needs.
    fn blocks_that_can_be_relocated(&self) -> u64 {
        let ring = self.log.ring();
        (ring.blocks() - ring.used_blocks()) / 2
    }

    /// What waits for other copies may be relocated: nothing that is on its way makes it void.
    pub(crate) fn may_relocate(&self, change: &Change) -> bool {
        self.log.may_relocate(change)
    }

    /// What this batch has of this change was never committed and never will be, or waits for
    /// other copies, here or elsewhere.
    pub(crate) fn is_gone(&self, change: &Change, batch: u64) -> bool {
        let is_held = || !self.log.held_as(change.volume, change.sequence).is_empty();
        change.commit == Commit::Later && (self.log.is_void(change, batch) || is_held())
    }

    /// An older change of the same blocks lies behind this batch, because it was relocated.
    pub(crate) fn is_overtaken(&self, change: &Change, batch: u64) -> bool {
        self.log.is_overtaken(change, batch)
    }

    /// The same, wherever this change without data is.
    pub(crate) fn is_overtaken_by_any(&self, bare: &BareChange) -> bool {
        let range = LbaRange::between(Lba(bare.sectors.start), Lba(bare.sectors.end));
        let change = Change {
            volume: self.volumes.of(bare.slot).id,
            sequence: bare.by,
            range: range.expect("in order"),
            block_size: BlockSize::B512,
            kind: bare.kind,
            commit: Commit::AtOnce,
        };
        self.log.is_overtaken(&change, 0)
    }

    /// What waits for other copies in this segment.
    pub(crate) fn held_in(&self, segment: &Segment) -> Vec<Stable> {
        self.log.held_in(segment)
    }

    /// What of it still waits at this place, in parts perhaps.
    pub(crate) fn held_there(&self, it: &Stable) -> Vec<Stable> {
        let sectors = it.change.sectors();
        let mut all = self.log.held_as(it.change.volume, it.change.sequence);
        all.retain(|part| {
            let own = part.change.sectors();
            let is_note = own.is_empty() && sectors.is_empty();
            part.batch == it.batch && (is_note || overlap(&own, &sectors))
        });
        all
    }

    /// A change of a volume of several copies is committed.
    pub(crate) fn is_committed(&self, change: &Change) -> bool {
        change.sequence < self.log.known(change.volume).1
    }

    /// Pages of the data that waits for other copies, of all volumes.
    pub(super) fn held_pages(&self) -> u64 {
        self.log.all_held_sectors() * journal::SECTOR / journal::BLOCK as u64
    }
}
