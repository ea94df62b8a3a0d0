//! What this node sends: held until the other one has it stable.

use super::NotTaken;
use crate::connection::Connection;
use crate::limits::Cost;
use crate::position::Position;
use crate::records::Records;
use crate::refusal::NotSent;
use crate::rules::holds;
use journal::{Sequence, VolumeId};
use replica::Epoch;
use std::collections::{BTreeMap, VecDeque};

struct OfVolume {
    epoch: Epoch,
    /// The number that comes next.
    next: Sequence,
    /// Everything below is stable there.
    acked: Sequence,
    /// Everything below is committed,
    commit: Sequence,
    /// and that was said on this connection.
    is_said: bool,
}

/// The owner's half.
#[derive(Default)]
pub(super) struct Outbound {
    volumes: BTreeMap<VolumeId, OfVolume>,
    /// In the order in which they go; the first ones went over this connection.
    queue: VecDeque<Records>,
    sent: usize,
    held: Cost,
}

impl Outbound {
    pub(super) fn begin(&mut self, volume: VolumeId, epoch: Epoch, from: Sequence) {
        self.end(volume);
        let begun = OfVolume {
            epoch,
            next: from,
            acked: from,
            commit: Sequence(0),
            is_said: true,
        };
        self.volumes.insert(volume, begun);
    }

    pub(super) fn end(&mut self, volume: VolumeId) {
        if self.volumes.remove(&volume).is_some() {
            self.retain(|records| (records.origin().volume != volume).then_some(records));
        }
    }

    pub(super) fn push(&mut self, records: Records, most: Cost) -> Result<(), NotTaken> {
        let origin = records.origin();
        let next = |it: &&mut OfVolume| it.epoch == origin.epoch && it.next == records.first();
        let of = self.volumes.get_mut(&origin.volume);
        let Some(of) = of.filter(next) else {
            return Err(NotTaken::NotNext(records));
        };
        let held = self.held.plus(records.cost());
        if !held.is_within(most) && !self.queue.is_empty() {
            return Err(NotTaken::Full(records));
        }
        of.next = records.next();
        self.held = held;
        self.queue.push_back(records);
        Ok(())
    }

    pub(super) fn commit(&mut self, volume: VolumeId, epoch: Epoch, below: Sequence) {
        if let Some(of) = self.volumes.get_mut(&volume)
            && of.epoch == epoch
            && of.commit < below
        {
            of.commit = below;
            of.is_said = false;
        }
    }

    pub(super) fn acks(&mut self, positions: &[Position]) {
        for it in positions {
            let Some(of) = self.volumes.get_mut(&it.volume) else {
                continue;
            };
            if of.epoch == it.epoch || !holds!(AcksNameTheirEpoch) {
                // More than was sent nobody can have.
                of.acked = of.acked.max(it.below.min(of.next));
            }
        }
        while let Some(first) = self.queue.front()
            && first.next() <= self.acked(first)
        {
            self.held = self.held.less(first.cost());
            self.sent = self.sent.saturating_sub(1);
            self.queue.pop_front();
        }
        // Those of other LUNs may be acknowledged before the first one, and some in part.
        if self.queue.iter().any(|it| it.first() < self.acked(it)) {
            let volumes = std::mem::take(&mut self.volumes);
            self.retain(|records| {
                let acked = acked(&volumes, &records);
                records.without_before(acked)
            });
            self.volumes = volumes;
        }
    }

    fn acked(&self, records: &Records) -> Sequence {
        acked(&self.volumes, records)
    }

    /// Keeps of each what `keep` says, in the same order.
    fn retain(&mut self, mut keep: impl FnMut(Records) -> Option<Records>) {
        let mut kept = VecDeque::with_capacity(self.queue.len());
        let (mut sent, mut held) = (0_usize, Cost::default());
        for (at, records) in self.queue.drain(..).enumerate() {
            if let Some(records) = keep(records) {
                sent = sent.saturating_add(usize::from(at < self.sent));
                held = held.plus(records.cost());
                kept.push_back(records);
            }
        }
        (self.queue, self.sent, self.held) = (kept, sent, held);
    }

    pub(super) const fn held(&self) -> Cost {
        self.held
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.sent < self.queue.len()
    }

    /// A new connection: nothing is known of what went over the one before, but what was
    /// acknowledged.
    pub(super) fn resume(&mut self) {
        if holds!(GoesOnFromTheAck) {
            self.sent = 0;
        }
        for of in self.volumes.values_mut() {
            of.is_said = of.commit == Sequence(0) || !holds!(CommitsAreRepeated) && of.is_said;
        }
    }

    /// Sends what may go; answers whether anything went.
    pub(super) fn send(&mut self, connection: &mut Connection) -> Result<bool, NotSent> {
        let mut any = false;
        while let Some(records) = self.queue.get_mut(self.sent) {
            let volume = records.origin().volume;
            let of = self.volumes.get_mut(&volume);
            let commit = of.as_ref().map_or(Sequence(0), |of| of.commit);
            records.set_commit(commit);
            match connection.records(records) {
                Ok(()) => {}
                Err(NotSent::NoCredit) => break,
                Err(other) => return Err(other),
            }
            if let Some(of) = of {
                of.is_said = true;
            }
            self.sent = self.sent.saturating_add(1);
            any = true;
        }
        Ok(any)
    }

    /// Commit positions that were not said on this connection.
    pub(super) fn unsaid(&mut self) -> impl Iterator<Item = (Position, &mut bool)> {
        let unsaid = self.volumes.iter_mut().filter(|(_, of)| !of.is_said);
        unsaid.map(|(volume, of)| {
            let position = Position {
                volume: *volume,
                epoch: of.epoch,
                below: of.commit,
            };
            (position, &mut of.is_said)
        })
    }
}

/// Up to where records of that LUN are stable there.
fn acked(volumes: &BTreeMap<VolumeId, OfVolume>, records: &Records) -> Sequence {
    let of = volumes.get(&records.origin().volume);
    of.map_or(Sequence(0), |of| of.acked)
}
