//! A volume of several copies: who orders its changes, what comes with its number, what is
//! committed.

use super::Machine;
use crate::carrier::RingOrder;
use crate::ring::changes::Waiting;
use crate::ring::event::{Append, BeginEpoch, Effect, Effects, Follow};
use crate::ring::volumes::VolumeState;
use journal::{AppendRefused, Change, Commit, Role, Sequence, Slot, Stable, Token};
use units::BlockSize;
use volume::{Fence, IoError};

impl Machine {
    /// The volume goes on with this number in a later epoch. What waits for a batch has no number
    /// yet, and came under the owner before: nobody will know of it.
    pub(super) fn begin_epoch(&mut self, it: &BeginEpoch, effects: &mut Effects) {
        let epoch = (self.volumes.of(it.slot).id, it.epoch);
        if let Err(refused) = self.log.may_begin(epoch, it.first) {
            return effects.push(Effect::EpochRefused(refused));
        }
        let mut withdrawn = Effects::new();
        self.withdraw_all(it.slot, &mut withdrawn);
        let begun = self
            .log
            .begin_epoch(self.changes.next_token(), epoch, it.first);
        begun.expect("it was asked before");
        let token = self.changes.push(of_no_host(it.slot));
        self.changed_at = it.now;
        effects.extend([Effect::Submitted { token, bytes: 0 }, Effect::WakeWriter]);
        effects.append(&mut withdrawn);
    }

    /// All copies that are in sync have the volume's changes below this number.
    pub(super) fn commit(&mut self, slot: Slot, commit: (u64, Sequence), effects: &mut Effects) {
        let volume = self.volumes.of(slot).id;
        let committed = self.log.commit(volume, commit);
        self.are_committed(&committed, effects);
    }

    /// What was held is committed by now.
    pub(super) fn are_committed(&mut self, committed: &[Stable], effects: &mut Effects) {
        if committed.is_empty() {
            return;
        }
        for stable in committed {
            self.adopt(stable, effects);
        }
        // The volume may have its share again, and somebody may wait to relocate.
        effects.push(Effect::WakeOthers);
        if self.destaging.rests() {
            effects.push(Effect::WakeDestager);
        }
    }

    /// The volume's changes come from the owner of an epoch.
    pub(super) fn follow(&mut self, it: &Follow, effects: &mut Effects) {
        let epoch = (self.volumes.of(it.slot).id, it.epoch);
        let may = if it.anew {
            let renewed = self.log.may_renew(epoch, it.from);
            renewed.map(|()| it.from)
        } else {
            let followed = self.log.may_follow(epoch, it.from);
            followed.map(|it| it.next)
        };
        let next = match may {
            Ok(next) => next,
            Err(refused) => return effects.push(Effect::EpochRefused(refused)),
        };
        let mut withdrawn = Effects::new();
        let same = Role::Replica {
            epoch: it.epoch,
            next,
        };
        if it.anew || self.log.role(epoch.0) != same {
            self.withdraw_all(it.slot, &mut withdrawn);
        }
        let token = self.changes.next_token();
        let gives_up = if it.anew {
            let renewed = self.log.renew(token, epoch, it.from);
            renewed.map(|()| true)
        } else {
            let followed = self.log.follow(token, epoch, it.from);
            followed.map(|it| it.gives_up)
        };
        if gives_up.expect("it was asked before") {
            let token = self.changes.push(of_no_host(it.slot));
            effects.push(Effect::Submitted { token, bytes: 0 });
            self.changed_at = it.now;
        }
        effects.push(Effect::Followed(next));
        effects.extend([Effect::WakeWriter, Effect::WakeOthers]);
        effects.append(&mut withdrawn);
    }

    /// A change that comes with its number.
    pub(super) fn append(&mut self, it: Append, effects: &mut Effects) {
        let bytes = it.data.len();
        let token = self.changes.next_token();
        let append = self.log.append(token, (it.epoch, &it.change), it.data);
        if let Err(refused) = append {
            return effects.push(Effect::AppendRefused(refused));
        }
        self.changes.push(of_no_host(it.slot));
        self.changed_at = it.now;
        effects.extend([Effect::Submitted { token, bytes }, Effect::WakeWriter]);
    }

    /// Nobody gives the volume's changes numbers from now on.
    pub(super) fn resign(&mut self, slot: Slot, effects: &mut Effects) {
        self.withdraw_all(slot, effects);
        self.log.rest(self.volumes.of(slot).id);
        effects.push(Effect::WakeOthers);
    }

    /// What of the volume waits for a batch gets into none.
    fn withdraw_all(&mut self, slot: Slot, effects: &mut Effects) {
        let of_volume = |waiting: &Waiting, _: &VolumeState| waiting.slot == slot;
        self.withdraw(of_volume, effects, |_, _| IoError::Unavailable);
    }

    /// What came with its number is stable: nobody here waits for it any more.
    pub(super) fn are_taken(&mut self, taken: &[Token], effects: &mut Effects) {
        for token in taken {
            if self.take(*token, effects).is_some() {
                let (token, result) = (*token, Ok(()));
                effects.push(Effect::Answer { token, result });
            }
        }
    }

    /// Changes of the volume get their numbers here: it has one copy, or this node owns it.
    pub(crate) fn may_order(&self, slot: Slot) -> bool {
        let volume = self.volumes.of(slot);
        let commit = volume.open.as_ref().map(|it| it.commit);
        commit != Some(Commit::Later) || matches!(self.log.role(volume.id), Role::Owner { .. })
    }

    /// The owner of this epoch is followed.
    pub(crate) fn follows(&self, slot: Slot, of: u64) -> bool {
        self.next_to_append(slot, of).is_some()
    }

    /// The number of the change that is appended next in this epoch, if its owner is followed.
    pub(crate) fn next_to_append(&self, slot: Slot, of: u64) -> Option<Sequence> {
        match self.log.role(self.volumes.of(slot).id) {
            Role::Replica { epoch, next } if epoch == of => Some(next),
            Role::None | Role::Owner { .. } | Role::Replica { .. } => None,
        }
    }

    /// This change may be appended.
    pub(crate) fn may_append(
        &self,
        epoch: u64,
        (change, data): (&Change, usize),
    ) -> Result<Sequence, AppendRefused> {
        self.log.may_append(epoch, change, data)
    }

    /// Who orders the volume's changes: the epoch, and whether this node does.
    pub(crate) fn orderer(&self, slot: Slot) -> (u64, bool) {
        match self.log.role(self.volumes.of(slot).id) {
            Role::None => (0, false),
            Role::Owner { epoch } => (epoch, true),
            Role::Replica { epoch, .. } => (epoch, false),
        }
    }

    /// What waits for other copies of this number, in parts perhaps, by their blocks.
    pub(crate) fn held_of(&self, slot: Slot, number: Sequence) -> Vec<Stable> {
        let mut parts = self.log.held_as(self.volumes.of(slot).id, number);
        parts.sort_by_key(|it| it.change.sectors().start);
        parts
    }

    /// What this batch has is a whole change of the volume as its owner ordered it. What was
    /// relocated is in sectors, and may be a part.
    pub(crate) fn is_ordered(&self, slot: Slot, change: &Change, batch: u64) -> bool {
        let volume = self.volumes.of(slot);
        if change.volume != volume.id
            || change.commit != Commit::Later
            || self.log.is_void(change, batch)
        {
            return false;
        }
        let change = change.where_it_began();
        if !change.is_ordered() || change.range.is_empty() {
            return change.is_ordered();
        }
        let block_size = volume.open.as_ref().map(|it| it.block_size);
        let is_distinct = change.block_size != BlockSize::B512
            || (batch >= self.log.ring().begun() && !self.relocated.has(batch));
        block_size == Some(change.block_size) && is_distinct
    }

    /// What was held will never be committed.
    pub(super) fn are_void(&mut self, void: &[Stable], effects: &mut Effects) {
        for stable in void {
            if let Some(token) = stable.token.filter(|it| self.take(*it, effects).is_some()) {
                let result = Err(IoError::Unavailable);
                effects.push(Effect::Answer { token, result });
            }
        }
        if !void.is_empty() {
            effects.push(Effect::WakeOthers);
        }
    }

    /// What is known of the order of a volume's changes.
    pub(crate) fn order(&self, slot: Slot) -> RingOrder {
        let volume = self.volumes.of(slot).id;
        let (stable, committed) = self.log.known(volume);
        RingOrder {
            next: self.next_sequence(slot),
            stable,
            committed,
            epochs: self.log.epochs(volume).collect(),
            role: self.log.role(volume),
        }
    }

    /// An epoch of the volume begins.
    pub(crate) fn epoch_begins(&self, slot: Slot) -> bool {
        self.log.epoch_begins(self.volumes.of(slot).id)
    }
}

/// What waits for the log, and is no host's request of this node.
fn of_no_host(slot: Slot) -> Waiting {
    Waiting {
        slot,
        sectors: 0..0,
        fence: Fence::default(),
        bytes: 0,
    }
}
