//! The volumes that a ring has changes of, by their places in it.

use journal::{Commit, Slot, VolumeId};
use std::collections::BTreeMap;
use units::{BlockSize, Now};
use volume::IoError;

/// What a ring knows of a volume that has changes in it or may get some.
#[derive(Clone)]
pub(crate) struct VolumeState {
    pub(crate) id: VolumeId,
    /// `None` until somebody has opened it.
    pub(crate) open: Option<OpenFacts>,
    /// Why something could not be destaged.
    pub(crate) destage_error: Option<DestageError>,
    /// The log that was found is all that knows which of its blocks may be half-way written, and
    /// nobody has opened it since.
    pub(crate) is_unverified: bool,
    /// What is known of its changes is kept for good.
    pub(crate) has_history: bool,
    /// Somebody makes a cut: changes wait.
    pub(crate) is_held: bool,
    /// Another volume is about to take the place of its backing volume: everything waits.
    pub(crate) is_exchanged: bool,
}

/// What has to be known of an open volume.
#[derive(Clone, Debug)]
pub(crate) struct OpenFacts {
    pub(crate) block_size: BlockSize,
    /// When its changes are committed.
    pub(crate) commit: Commit,
}

/// Why something cannot be destaged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DestageError {
    pub(crate) error: IoError,
    pub(crate) why: String,
    /// When to try again.
    pub(crate) again: Now,
    /// It is in the backing volume, and only its history cannot be saved.
    pub(crate) of_history: bool,
}

impl DestageError {
    pub(crate) fn new(error: IoError, why: &str, again: Now) -> Self {
        let why = why.to_owned();
        Self {
            error,
            why,
            again,
            of_history: false,
        }
    }
}

/// Why a request does not go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NotNow {
    /// It has to wait.
    Later,
    Refused(IoError),
}

/// A ring serves no more than 65,535 volumes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooManyVolumes;

/// The volumes of a ring, by slot and by identifier.
#[derive(Clone, Default)]
pub(crate) struct Volumes {
    slots: BTreeMap<VolumeId, Slot>,
    all: Vec<VolumeState>,
}

impl VolumeState {
    const fn new(id: VolumeId) -> Self {
        Self {
            id,
            open: None,
            destage_error: None,
            is_unverified: false,
            has_history: false,
            is_held: false,
            is_exchanged: false,
        }
    }

    /// What a request that may go on has to know of the volume; `changes`: one that changes blocks.
    pub(crate) const fn admits(&self, changes: bool) -> Result<&OpenFacts, NotNow> {
        match &self.open {
            // It has left, and somebody still has a lane.
            None => Err(NotNow::Refused(IoError::Unavailable)),
            Some(_) if self.makes_wait(changes) => Err(NotNow::Later),
            Some(facts) => Ok(facts),
        }
    }

    /// A request waits; `changes`: one that changes blocks.
    pub(crate) const fn makes_wait(&self, changes: bool) -> bool {
        self.is_exchanged || (changes && self.is_held)
    }
}

impl Volumes {
    /// Those that were found in a log.
    pub(crate) fn found(slots: BTreeMap<VolumeId, Slot>) -> Self {
        let mut ids: Vec<(Slot, VolumeId)> = slots.iter().map(|(id, slot)| (*slot, *id)).collect();
        ids.sort_unstable();
        let all = ids.into_iter().map(|(_, id)| VolumeState::new(id));
        Self {
            all: all.collect(),
            slots,
        }
    }

    pub(crate) fn slot(&self, id: VolumeId) -> Option<Slot> {
        self.slots.get(&id).copied()
    }

    /// Its slot, and whether it is new here.
    pub(crate) fn slot_or_new(&mut self, id: VolumeId) -> Result<(Slot, bool), TooManyVolumes> {
        if let Some(slot) = self.slots.get(&id) {
            return Ok((*slot, false));
        }
        let slot = Slot(u16::try_from(self.all.len()).map_err(|_| TooManyVolumes)?);
        self.slots.insert(id, slot);
        self.all.push(VolumeState::new(id));
        Ok((slot, true))
    }

    pub(crate) fn of(&self, slot: Slot) -> &VolumeState {
        &self.all[usize::from(slot.0)]
    }

    pub(crate) fn of_mut(&mut self, slot: Slot) -> &mut VolumeState {
        &mut self.all[usize::from(slot.0)]
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// In the order of their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &VolumeState)> {
        (0..).map(Slot).zip(&self.all)
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn places_stay_and_requests_wait_while_they_must() {
        let slots = [(VolumeId(9), Slot(1)), (VolumeId(4), Slot(0))];
        let mut volumes = Volumes::found(slots.into());
        assert_eq!(volumes.of(Slot(1)).id, VolumeId(9));
        assert_eq!(volumes.slot_or_new(VolumeId(4)), Ok((Slot(0), false)));
        assert_eq!(volumes.slot_or_new(VolumeId(5)), Ok((Slot(2), true)));
        let volume = volumes.of_mut(Slot(2));
        let gone = Some(NotNow::Refused(IoError::Unavailable));
        assert_eq!(volume.admits(false).err(), gone);
        volume.open = Some(OpenFacts {
            block_size: BlockSize::B512,
            commit: Commit::AtOnce,
        });
        assert!(volume.admits(true).is_ok());
        volume.is_held = true;
        let both = [false, true].map(|changes| volume.admits(changes).err());
        assert_eq!(both, [None, Some(NotNow::Later)]);
        volume.is_exchanged = true;
        assert_eq!(volume.admits(false).err(), Some(NotNow::Later));
    }
}
