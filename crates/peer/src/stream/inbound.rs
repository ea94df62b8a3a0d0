//! What the other node sends: each change once, in order, and acknowledged when it is stable.

use super::Taken;
use crate::limits::Cost;
use crate::position::Position;
use crate::records::Records;
use crate::refusal::Breach;
use crate::rules::holds;
use journal::{Sequence, VolumeId};
use replica::Epoch;
use std::collections::{BTreeMap, VecDeque};

#[derive(Default)]
struct OfVolume {
    /// Whose stream is followed.
    follows: Option<Epoch>,
    /// The number that comes next.
    next: Sequence,
    /// Everything below is stable here,
    stable: Sequence,
    /// and that was said on this connection.
    is_said: bool,
    /// What is not stable yet: the number after the last one, and what they cost.
    unstable: VecDeque<(Sequence, Cost)>,
}

/// The other copy's half.
#[derive(Default)]
pub(super) struct Inbound {
    volumes: BTreeMap<VolumeId, OfVolume>,
    held: Cost,
}

impl OfVolume {
    /// Lets go what is below; answers what that was.
    fn release(&mut self, below: Sequence) -> Cost {
        let mut released = Cost::default();
        while let Some((next, cost)) = self.unstable.front()
            && *next <= below
        {
            released = released.plus(*cost);
            self.unstable.pop_front();
        }
        released
    }
}

impl Inbound {
    pub(super) fn follow(&mut self, volume: VolumeId, epoch: Epoch, next: Sequence) {
        let of = self.volumes.entry(volume).or_default();
        of.follows = Some(epoch);
        of.next = next;
        of.stable = Sequence(0);
        of.is_said = true;
        // What the owner does not have is given up, and waits for nothing any more.
        while let Some((after, cost)) = of.unstable.back()
            && *after > next
        {
            self.held = self.held.less(*cost);
            of.unstable.pop_back();
        }
    }

    pub(super) fn leave(&mut self, volume: VolumeId) {
        if let Some(of) = self.volumes.get_mut(&volume) {
            of.follows = None;
            if of.unstable.is_empty() {
                self.volumes.remove(&volume);
            }
        }
    }

    pub(super) fn leave_all(&mut self) {
        self.volumes.retain(|_, of| {
            of.follows = None;
            !of.unstable.is_empty()
        });
    }

    pub(super) fn records(&mut self, records: Records) -> Taken {
        let origin = records.origin();
        let of = self.volumes.get_mut(&origin.volume);
        let follows = |it: &&mut OfVolume| {
            it.follows == Some(origin.epoch) || it.follows.is_some() && !holds!(EpochIsFollowed)
        };
        let Some(of) = of.filter(follows) else {
            return Taken::NotFollowed;
        };
        let (expected, found) = (of.next, records.first());
        if found > expected && holds!(GapsAreFound) {
            return Taken::Gap(Breach::Gap {
                volume: origin.volume,
                expected,
                found,
            });
        }
        let new = if holds!(RepeatsAreDropped) {
            records.without_before(expected)
        } else {
            Some(records)
        };
        let Some(new) = new else {
            // The acknowledgement may have been lost.
            of.is_said = of.stable == Sequence(0);
            return Taken::Repeated;
        };
        of.next = new.next();
        of.unstable.push_back((of.next, new.cost()));
        self.held = self.held.plus(new.cost());
        Taken::New(new)
    }

    pub(super) fn stable(&mut self, volume: VolumeId, epoch: Epoch, below: Sequence) {
        let Some(of) = self.volumes.get_mut(&volume) else {
            return;
        };
        self.held = self.held.less(of.release(below));
        match of.follows {
            Some(follows) if follows == epoch && of.stable < below => {
                of.stable = below;
                of.is_said = false;
            }
            None if of.unstable.is_empty() => {
                self.volumes.remove(&volume);
            }
            Some(_) | None => {}
        }
    }

    pub(super) const fn held(&self) -> Cost {
        self.held
    }

    /// A new connection: the last acknowledgements may have been lost with the one before.
    pub(super) fn resume(&mut self) {
        for of in self.volumes.values_mut() {
            of.is_said = of.stable == Sequence(0) || !holds!(AcksAreRepeated) && of.is_said;
        }
    }

    /// Acknowledgements that were not said on this connection.
    pub(super) fn unsaid(&mut self) -> impl Iterator<Item = (Position, &mut bool)> {
        let unsaid = self.volumes.iter_mut();
        unsaid.filter_map(|(volume, of)| {
            let epoch = of.follows?;
            let position = Position {
                volume: *volume,
                epoch,
                below: of.stable,
            };
            (!of.is_said).then_some((position, &mut of.is_said))
        })
    }
}
