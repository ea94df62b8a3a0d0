//! What hosts ask that changes nothing: whether it has to wait, is refused, and where it goes.

use super::Machine;
use crate::addresses::{blocks, chunks, sectors};
use crate::ring::event::{Effect, Effects};
use crate::ring::volumes::NotNow;
use journal::{Piece, Slot};
use units::{Lba, LbaRange};
use volume::IoError;

/// What one answer about allocation covers at most where the log has data of the volume: that many
/// pages are looked up in the index in well under a millisecond.
const COVERED_BYTES: u64 = 64 << 20;

/// Where the blocks of a read are.
#[derive(Debug)]
pub(crate) enum ReadFrom {
    /// The log has nothing of it.
    Backing,
    /// Some of it is in the log.
    Pieces(Vec<Piece>),
}

impl Machine {
    /// Where somebody finds what he reads, who asks for all of it in the same poll.
    pub(crate) fn read(&self, slot: Slot, range: LbaRange) -> Result<ReadFrom, NotNow> {
        let facts = self.volumes.of(slot).admits(false)?;
        let sectors = sectors(range, facts.block_size);
        if self.index.is_clear(slot, sectors.clone()) {
            return Ok(ReadFrom::Backing);
        }
        Ok(ReadFrom::Pieces(self.index.find(slot, sectors)))
    }

    /// What an answer about the allocation of these blocks covers that has so many runs at `most`,
    /// and what the log knows of it.
    pub(crate) fn extents(
        &self,
        slot: Slot,
        range: LbaRange,
        most: usize,
    ) -> Result<(LbaRange, Vec<Piece>), NotNow> {
        let block_size = self.volumes.of(slot).admits(false)?.block_size;
        let covered = match self.index.pages_of(slot) {
            0 => range.len().0,
            _ => COVERED_BYTES / u64::from(block_size.bytes()),
        };
        let mut parts = chunks(range, covered);
        let range = parts.next().expect("a request has blocks");
        let few = sectors(range, block_size);
        let few = self.index.with_few_bare(slot, few, most);
        let pieces = self.index.find(slot, few.clone());
        Ok((blocks(&few, block_size), pieces))
    }

    /// Somebody may ask for what changed since a cut.
    pub(crate) fn reports_changes(&self, slot: Slot) -> Result<(), NotNow> {
        self.volumes.of(slot).admits(false).map(|_| ())
    }

    /// What a flush is answered when all that it waits for has ended.
    pub(crate) fn flushed(&self) -> Result<(), IoError> {
        if self.log.ring().has_failed() {
            return Err(self.lost_write(Lba(0)));
        }
        Ok(())
    }

    /// What goes around the log in volatile mode is answered before the log knows of it.
    pub(super) fn flush(&mut self, slot: Slot, effects: &mut Effects) {
        let admitted = self.volumes.of(slot).admits(false).map(|_| ());
        let refused = |()| self.flushed().map_err(NotNow::Refused);
        if let Err(not_now) = admitted.and_then(refused) {
            return effects.push(not_now.into());
        }
        if self.write_arounds.are_volatile_of(slot) && self.changes.add_sync_point(slot) {
            effects.push(Effect::AwaitsSyncPoint);
        }
    }
}
