//! What a journal holds, as far as it can be read: for whoever inspects one that is not in use, or
//! is about to give it up.

use crate::batch::{Change, Kind, VolumeId};
use crate::layout::Checkpoint;
use crate::replay::Found;
use std::collections::BTreeMap;
use std::fmt;
use units::LbaRange;

/// Damaged changes that are listed; more are only counted.
const LISTED_MAX: usize = 128;

/// What it holds of a volume. Some of it may be in the backing volume already.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SurveyedVolume {
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
    /// Its number, counted from 0.
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
    /// One entry for each ring, by number.
    pub rings: Vec<RingSurvey>,
    /// What it holds of each volume.
    pub volumes: BTreeMap<VolumeId, SurveyedVolume>,
    /// Changes that were acknowledged and are damaged: the first 128.
    pub damaged: Vec<Damaged>,
    /// Blocks whose data was found to be damaged before, and which were not written since: the log
    /// says so, and goes on to.
    pub lost: Vec<Damaged>,
}

/// A damaged change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damaged {
    /// The volume that it was a change of.
    pub volume: VolumeId,
    /// Its blocks.
    pub range: LbaRange,
    /// The number of the batch in its ring.
    pub batch: u64,
}

impl Damaged {
    fn touches(&self, volume: VolumeId, range: LbaRange) -> bool {
        let apart = range.end() <= self.range.start() || self.range.end() <= range.start();
        self.volume == volume && !apart
    }

    /// What of it lies before and after `range` of that volume.
    fn without(self, volume: VolumeId, range: LbaRange) -> Vec<Self> {
        let (start, end) = (self.range.start(), self.range.end());
        if !self.touches(volume, range) {
            return vec![self];
        }
        let before = LbaRange::between(start, range.start());
        let after = LbaRange::between(range.end(), end);
        let left = [before, after].into_iter().flatten();
        let left = left.filter(|part| part.len().0 > 0);
        left.map(|range| Self { range, ..self }).collect()
    }
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
        let mut in_order: Vec<&Change> = batch.records.iter().map(|it| &it.change).collect();
        in_order.sort_by_key(|change| change.sequence);
        for change in in_order {
            self.follow(change, batch.place.number);
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

    /// What is lost, and what was written since.
    fn follow(&mut self, change: &Change, batch: u64) {
        let (volume, range) = (change.volume, change.range);
        match change.kind {
            Kind::Lost => self.lost.push(Damaged {
                volume,
                range,
                batch,
            }),
            Kind::Gone => self.lost.retain(|it| it.volume != volume),
            Kind::Write | Kind::Zeroes | Kind::Deallocate | Kind::Anchor | Kind::WriteAround => {
                if self.lost.iter().any(|it| it.touches(volume, range)) {
                    let parts = std::mem::take(&mut self.lost).into_iter();
                    let left = parts.flat_map(|it| it.without(volume, range));
                    self.lost = left.collect();
                }
            }
            Kind::Cut | Kind::Touched | Kind::Epoch | Kind::RelocatedEpoch => {}
        }
    }

    /// Every ring can be used, no change is damaged, and no block is lost.
    #[must_use]
    pub fn is_good(&self) -> bool {
        let whole = self.rings.iter().all(|ring| ring.stop.is_none());
        whole && self.lost.is_empty() && self.volumes.values().all(|held| held.damaged == 0)
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::batch::{Commit, Sequence};
    use std::collections::BTreeSet;
    use units::{BlockCount, BlockSize, Lba};

    #[test]
    fn what_is_lost_is_what_was_lost_and_not_written_since_of_that_volume() {
        let kinds = [
            Kind::Lost,
            Kind::Lost,
            Kind::Write,
            Kind::Zeroes,
            Kind::WriteAround,
            Kind::Cut,
            Kind::Touched,
            Kind::Gone,
        ];
        let (mut survey, mut model, mut seed) = (Survey::default(), BTreeSet::new(), 1_u64);
        let mut below = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % most
        };
        let mut were_lost = 0;
        for sequence in 0..2_000 {
            let kind = kinds[usize::try_from(below(8)).unwrap()];
            // A volume that goes takes all with it, which should be rare.
            let kind = if kind == Kind::Gone && below(8) > 0 {
                Kind::Cut
            } else {
                kind
            };
            let (volume, start, blocks) = (VolumeId(below(2)), below(60), 1 + below(8));
            let range = LbaRange::new(Lba(start), BlockCount(blocks)).unwrap();
            let change = Change {
                volume,
                sequence: Sequence(sequence),
                range,
                block_size: BlockSize::B4096,
                kind,
                commit: Commit::AtOnce,
            };
            survey.follow(&change, sequence);
            let all = (start..start + blocks).map(|block| (volume, block));
            match kind {
                Kind::Lost => model.extend(all),
                Kind::Gone => model.retain(|it: &(VolumeId, u64)| it.0 != volume),
                Kind::Cut | Kind::Touched | Kind::Epoch | Kind::RelocatedEpoch => {}
                Kind::Write
                | Kind::Zeroes
                | Kind::Deallocate
                | Kind::Anchor
                | Kind::WriteAround => {
                    all.for_each(|block| {
                        model.remove(&block);
                    });
                }
            }
            let reported = survey.lost.iter().flat_map(|it| {
                let blocks = it.range.start().0..it.range.end().0;
                blocks.map(|block| (it.volume, block))
            });
            assert_eq!(reported.collect::<BTreeSet<_>>(), model, "after {sequence}");
            assert_eq!(survey.is_good(), model.is_empty());
            were_lost += usize::from(!model.is_empty());
        }
        assert!((100..2_000).contains(&were_lost), "{were_lost}");
    }
}
