//! Changes whose batch is stable, and who waits for them.

use crate::batch::{Change, Sequence, VolumeId};
use std::ops::Range;

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
}

impl Stable {
    /// It changes some of these sectors.
    pub(crate) fn touches(&self, sectors: &Range<u64>) -> bool {
        let own = self.change.sectors();
        own.start < sectors.end && sectors.start < own.end
    }
}
