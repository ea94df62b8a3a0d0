//! What a journal holds, as far as it can be read: for whoever looks at one that is not in use, or is about to give it up.

use crate::batch::{Change, VolumeId};
use crate::layout::Checkpoint;
use crate::replay::Found;
use std::collections::BTreeMap;
use std::fmt;
use units::LbaRange;

/// Damaged changes that are listed; more are only counted.
const LISTED_MAX: usize = 128;

/// What it holds of a volume. Some of it may be at home already.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Held {
    /// Changes that can be read.
    pub changes: u64,
    /// Bytes of blocks that they change.
    pub bytes: u64,
    /// Changes that are damaged.
    pub damaged: u64,
}

/// A ring that was read to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RingSurvey {
    /// Which.
    pub ring: u32,
    /// Its last opening.
    pub epoch: u64,
    /// Blocks of its log from the oldest batch that is needed on.
    pub used_blocks: u64,
    /// Batches in them.
    pub batches: u64,
    /// Their changes.
    pub changes: u64,
    /// Why it cannot be used, where it cannot.
    pub stop: Option<String>,
}

impl RingSurvey {
    /// One that begins where its checkpoint says.
    #[must_use]
    pub const fn new(ring: u32, checkpoint: Checkpoint) -> Self {
        Self {
            ring,
            epoch: checkpoint.epoch,
            used_blocks: 0,
            batches: 0,
            changes: 0,
            stop: None,
        }
    }

    /// One that cannot be read.
    #[must_use]
    pub fn unreadable(ring: u32, why: &dyn fmt::Display) -> Self {
        Self {
            ring,
            epoch: 0,
            used_blocks: 0,
            batches: 0,
            changes: 0,
            stop: Some(why.to_string()),
        }
    }
}

/// A whole journal.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Survey {
    /// Its rings.
    pub rings: Vec<RingSurvey>,
    /// What it holds of each volume.
    pub volumes: BTreeMap<VolumeId, Held>,
    /// Changes that were acknowledged and are damaged: the first 128.
    pub damaged: Vec<Damaged>,
}

/// A damaged change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damaged {
    /// The volume.
    pub volume: VolumeId,
    /// Its blocks.
    pub range: LbaRange,
    /// The batch that has it.
    pub batch: u64,
}

impl Survey {
    /// A batch of `ring`.
    pub fn take(&mut self, ring: &mut RingSurvey, batch: &Found) {
        ring.batches += 1;
        let bytes = |it: &Change| it.range.len().0 * u64::from(it.block_size.bytes());
        for record in &batch.records {
            ring.changes += 1;
            let held = self.volumes.entry(record.change.volume).or_default();
            held.changes += 1;
            held.bytes += bytes(&record.change);
        }
        for change in &batch.damaged {
            ring.changes += 1;
            self.volumes.entry(change.volume).or_default().damaged += 1;
            if self.damaged.len() < LISTED_MAX {
                self.damaged.push(Damaged {
                    volume: change.volume,
                    range: change.range,
                    batch: batch.place.number,
                });
            }
        }
    }

    /// Every ring can be used, and no change is damaged.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let whole = self.rings.iter().all(|ring| ring.stop.is_none());
        whole && self.volumes.values().all(|held| held.damaged == 0)
    }
}
