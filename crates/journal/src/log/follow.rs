//! A volume whose changes come with their numbers: this node has a copy, and another one orders it.
//!
//! ```text
//!   follow(epoch, from): what the log has from this number on is void --> the next number
//!   renew(epoch, first): nothing that is not committed counts, the log goes on with this number
//!   append(epoch, change): the next number? --> waits for a batch, as everything else
//! ```

use super::{EpochRefused, Log, Wanted, of_epoch};
use crate::batch::{Change, Commit, Kind, Sequence, VolumeId};
use crate::stable::{Stable, Token};
use crate::uncommitted::Epoch;
use units::{Buf, Lba, LbaRange};

/// Who gives the changes of a volume of several copies their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Role {
    /// Nobody that is known here: nothing is taken.
    #[default]
    None,
    /// This node, since it began this epoch.
    Owner {
        /// The number of the epoch.
        epoch: u64,
    },
    /// The owner of this epoch, and they come from there.
    Replica {
        /// The number of the epoch.
        epoch: u64,
        /// The number of the change that is taken next.
        next: Sequence,
    },
}

/// What [`Log::follow`] has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Followed {
    /// The number of the change that is taken next.
    pub next: Sequence,
    /// What the log has from this number on is void: a record that says so waits, with the token.
    pub gives_up: bool,
}

/// Why a change is not taken that comes with its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppendRefused {
    /// A write has failed.
    Failed,
    /// A later epoch is known here.
    Late {
        /// The newest.
        newest: u64,
    },
    /// The epoch is not followed here.
    NotFollowed,
    /// It is not the next one.
    Expected {
        /// The number that is.
        next: Sequence,
    },
    /// No owner sends such a change: by its kind, or by the length of its data.
    Unfit,
}

impl Log {
    /// Who gives the volume's changes their numbers.
    #[must_use]
    pub fn role(&self, volume: VolumeId) -> Role {
        self.served.get(&volume).map_or(Role::None, |it| it.role)
    }

    /// The newest epoch that was ever said of the volume here.
    pub(super) fn newest_epoch(&self, volume: VolumeId) -> u64 {
        let said = match self.role(volume) {
            Role::None => 0,
            Role::Owner { epoch } | Role::Replica { epoch, .. } => epoch,
        };
        said.max(self.epoch(volume))
    }

    /// What [`Log::follow`] would do.
    ///
    /// # Errors
    /// As it would answer.
    pub fn may_follow(
        &self,
        (volume, epoch): (VolumeId, u64),
        from: Sequence,
    ) -> Result<Followed, EpochRefused> {
        if self.ring.has_failed() {
            return Err(EpochRefused::Failed);
        }
        if self.epoch_begins(volume) {
            return Err(EpochRefused::Begins);
        }
        let newest = self.newest_epoch(volume);
        if epoch < newest {
            return Err(EpochRefused::Late { newest });
        }
        if let Role::Replica { epoch: same, next } = self.role(volume)
            && same == epoch
            && next <= from
        {
            let gives_up = false;
            return Ok(Followed { next, gives_up });
        }
        let own = self.next_sequence(volume).unwrap_or_default();
        let (next, below) = (from.min(own), self.known(volume).1);
        let gives_up = next < own;
        if gives_up && next < below {
            return Err(EpochRefused::Committed { below });
        }
        Ok(Followed { next, gives_up })
    }

    /// The volume's changes come from the owner of this epoch from now on, and what this log has
    /// with the number `from` or a higher one is not that owner's: it is void. A record that says
    /// so goes ahead of all that waits, and takes no number.
    ///
    /// An owner that is followed already goes on where it is.
    ///
    /// # Errors
    /// [`EpochRefused`]; nothing has changed then.
    ///
    /// # Panics
    /// If the volume is not served, has one copy, or changes of it wait for a batch that are not of
    /// an owner that is followed already.
    pub fn follow(
        &mut self,
        token: Token,
        (volume, epoch): (VolumeId, u64),
        from: Sequence,
    ) -> Result<Followed, EpochRefused> {
        let followed = self.may_follow((volume, epoch), from)?;
        let Followed { next, gives_up } = followed;
        let is_same = self.role(volume) == (Role::Replica { epoch, next });
        assert!(is_same || !self.waits_of(volume), "none waits for a batch");
        if gives_up {
            self.gives_up(token, volume, next);
        }
        let served = self.served.get_mut(&volume);
        let served = served.expect("volumes are served first");
        assert_eq!(served.commit, Commit::Later, "one of several copies");
        served.role = Role::Replica { epoch, next };
        if gives_up {
            served.next = next;
        }
        Ok(followed)
    }

    /// The log goes on with this number, in the epoch that it has before that.
    fn gives_up(&mut self, token: Token, volume: VolumeId, first: Sequence) {
        let before = self.epochs(volume).filter(|it| it.first < first).last();
        let epoch = before.map_or(0, |it| it.epoch);
        let range = of_epoch(epoch);
        self.goes_ahead(
            (token, Commit::AtOnce),
            (volume, Epoch { epoch, first }),
            range,
        );
    }

    /// What [`Log::renew`] would do.
    ///
    /// # Errors
    /// As it would answer.
    pub fn may_renew(
        &self,
        (volume, epoch): (VolumeId, u64),
        first: Sequence,
    ) -> Result<(), EpochRefused> {
        // What says so has a number behind the epoch's.
        let is_late = |newest| epoch < newest || epoch == u64::MAX;
        self.may_go_on(volume, first, is_late)
    }

    /// The copy of the volume here is made anew by the owner of this epoch: what is not committed
    /// is void, whatever its number, and the owner's change with the number `first` is taken next.
    /// A record that says so goes ahead of all that waits, and takes no number. What was committed
    /// stays as it is.
    ///
    /// # Errors
    /// [`EpochRefused`]; nothing has changed then.
    ///
    /// # Panics
    /// As [`Log::follow`].
    pub fn renew(
        &mut self,
        token: Token,
        (volume, epoch): (VolumeId, u64),
        first: Sequence,
    ) -> Result<(), EpochRefused> {
        self.may_renew((volume, epoch), first)?;
        assert!(!self.waits_of(volume), "none waits for a batch");
        let it = Epoch { epoch, first };
        let range = LbaRange::between(Lba(epoch), Lba(epoch + 1)).expect("in order");
        self.goes_ahead((token, Commit::AtOnce), (volume, it), range);
        let served = self.served.get_mut(&volume);
        let served = served.expect("volumes are served first");
        assert_eq!(served.commit, Commit::Later, "one of several copies");
        served.role = Role::Replica { epoch, next: first };
        served.next = first;
        Ok(())
    }

    /// Nobody gives the volume's changes numbers that are taken here, until an epoch begins or is
    /// followed.
    ///
    /// # Panics
    /// If changes of it wait for a batch.
    pub fn rest(&mut self, volume: VolumeId) {
        assert!(!self.waits_of(volume), "none waits for a batch");
        if let Some(served) = self.served.get_mut(&volume) {
            served.role = Role::None;
        }
    }

    /// The next change of the owner that is followed, with its number; it waits for a batch.
    ///
    /// # Errors
    /// [`AppendRefused`]; nothing has changed then.
    pub fn append(
        &mut self,
        token: Token,
        (epoch, change): (u64, &Change),
        data: Buf,
    ) -> Result<(), AppendRefused> {
        let next = self.may_append(epoch, change, data.len())?;
        let served = self.served.get_mut(&change.volume);
        let next = Sequence(next.0 + 1);
        served.expect("it is followed").role = Role::Replica { epoch, next };
        let wanted = Wanted {
            volume: change.volume,
            range: change.range,
            block_size: change.block_size,
            kind: change.kind,
            data,
        };
        self.waiting.push_back((token, wanted));
        Ok(())
    }

    /// The number that is the next one: this change's.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn may_append(
        &self,
        epoch: u64,
        change: &Change,
        data: usize,
    ) -> Result<Sequence, AppendRefused> {
        if self.ring.has_failed() {
            return Err(AppendRefused::Failed);
        }
        let newest = self.newest_epoch(change.volume);
        if epoch < newest {
            return Err(AppendRefused::Late { newest });
        }
        let Role::Replica {
            epoch: followed,
            next,
        } = self.role(change.volume)
        else {
            return Err(AppendRefused::NotFollowed);
        };
        if epoch != followed {
            return Err(AppendRefused::NotFollowed);
        }
        if change.sequence != next {
            return Err(AppendRefused::Expected { next });
        }
        let fits = change.is_ordered() && change.data_bytes() == Some(data);
        fits.then_some(next).ok_or(AppendRefused::Unfit)
    }

    /// Of these volumes something waits no longer: the number that comes next is one of theirs.
    pub(super) fn are_withdrawn(&mut self, volumes: Vec<VolumeId>) {
        for volume in volumes {
            let Role::Replica { epoch, .. } = self.role(volume) else {
                continue;
            };
            assert!(!self.waits_of(volume), "all of a replica or none");
            let served = self.served.get_mut(&volume).expect("it is followed");
            let next = served.next;
            served.role = Role::Replica { epoch, next };
        }
    }

    /// Takes out who waits for what came with its number: it is taken when it is stable, and waits
    /// for nobody here from then on.
    pub(super) fn taken_of(&self, holds: &mut [Stable]) -> Vec<Token> {
        let mut taken = Vec::new();
        for it in holds {
            if matches!(self.role(it.change.volume), Role::Replica { .. }) {
                taken.extend(it.token.take());
            }
        }
        taken
    }

    /// What other nodes get of these.
    pub(super) fn carried_of(&self, changes: Vec<(Change, Buf)>) -> Vec<(Change, Buf)> {
        let mut carried = changes;
        carried.retain(|(change, _)| {
            let is_owner = matches!(self.role(change.volume), Role::Owner { .. });
            is_owner && change.commit == Commit::Later
        });
        carried
    }
}

impl Change {
    /// An owner gives such a change a number, and other nodes get it.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        let is_empty = self.range.is_empty();
        match self.kind {
            Kind::Write | Kind::Zeroes | Kind::Deallocate | Kind::Anchor => !is_empty,
            Kind::Cut | Kind::Epoch => is_empty,
            Kind::WriteAround | Kind::Lost | Kind::Gone | Kind::Touched | Kind::RelocatedEpoch => {
                false
            }
        }
    }
}
