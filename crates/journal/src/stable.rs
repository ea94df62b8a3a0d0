//! Changes whose batch is stable, and who waits for them.

use crate::batch::{Change, DATA_ALIGNMENT, Kind, Sequence, VolumeId};
use std::ops::Range;
use units::{BlockSize, Lba, LbaRange};

/// Who waits for a change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Token(pub u64);

/// A change that is stable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stable {
    /// Who waits for it; nobody does for what was found in the log.
    pub token: Option<Token>,
    /// The change, with its number.
    pub change: Change,
    /// The batch that holds it.
    pub batch: u64,
    /// The first byte of its data in the ring's log.
    pub data_at: u64,
    /// Its data was found damaged there, or where it lies is lost.
    pub is_damaged: bool,
}

/// What the end of a batch's write has changed.
#[derive(PartialEq, Eq, Default, Debug)]
pub struct Ended {
    /// What is committed by now, in the order in which it was submitted.
    pub committed: Vec<Stable>,
    /// Volumes of several copies, each with the number after the newest of its changes that is
    /// stable here.
    pub stable: Vec<(VolumeId, Sequence)>,
    /// Who waits for what is stable and not committed.
    pub held: Vec<Token>,
    /// What was stable and will never be committed.
    pub void: Vec<Stable>,
    /// Who waits for what came with its number, and is stable.
    pub taken: Vec<Token>,
}

impl Ended {
    /// All changes of the volume below this number are stable.
    pub(crate) fn is_stable(&mut self, volume: VolumeId, below: Sequence) {
        match self.stable.iter_mut().find(|it| it.0 == volume) {
            Some(known) => known.1 = below,
            None => self.stable.push((volume, below)),
        }
    }
}

impl Stable {
    /// It changes some of these sectors.
    pub(crate) fn touches(&self, sectors: &Range<u64>) -> bool {
        let own = self.change.sectors();
        own.start < sectors.end && sectors.start < own.end
    }

    /// Both are of no blocks.
    pub(crate) fn is_same_note(&self, other: &Self) -> bool {
        let is_note = |it: &Self| it.change.sectors().is_empty();
        is_note(self) && is_note(other) && self.change.kind == other.change.kind
    }

    /// What of it is before and after these sectors.
    pub(crate) fn without(&self, sectors: &Range<u64>) -> Vec<Self> {
        let own = self.change.sectors();
        let parts = [
            own.start..sectors.start.min(own.end),
            sectors.end.max(own.start)..own.end,
        ];
        let parts = parts.into_iter().filter(|it| it.start < it.end);
        parts.map(|part| self.part(&part)).collect()
    }

    /// These sectors of it.
    #[must_use]
    pub fn part(&self, sectors: &Range<u64>) -> Self {
        let ahead = sectors.start - self.change.sectors().start;
        let range = LbaRange::between(Lba(sectors.start), Lba(sectors.end));
        let has_data = self.change.kind == Kind::Write && !self.is_damaged;
        let ahead = if has_data {
            ahead * DATA_ALIGNMENT as u64
        } else {
            0
        };
        Self {
            change: Change {
                range: range.expect("in order"),
                block_size: BlockSize::B512,
                ..self.change
            },
            data_at: self.data_at + ahead,
            ..*self
        }
    }
}
