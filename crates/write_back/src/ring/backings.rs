//! The backing volumes of a ring's volumes, as they are open on its core.

use super::grace::Grace;
use super::volumes::OpenFacts;
use crate::carrier::Carrier;
use crate::history::{FoundChange, HistoryFile};
use crate::mode::Modes;
use journal::{Change, Slot, VolumeId};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use volume::{Fences, Lane, Shape, Volume};

/// A backing volume that is open.
#[derive(Clone)]
pub(crate) struct OpenBacking {
    pub(crate) lane: Rc<dyn Lane>,
    pub(crate) volume: Arc<dyn Volume>,
    pub(crate) shape: Shape,
    pub(crate) fences: Fences,
    pub(crate) modes: Arc<Modes>,
}

impl OpenBacking {
    /// What the machine has to know of it.
    pub(crate) fn facts(&self) -> OpenFacts {
        OpenFacts {
            block_size: self.shape.block_size,
            commit: self.modes.commit(),
        }
    }
}

/// What there is of a volume besides its state in the machine.
#[derive(Default)]
pub(crate) struct Backing {
    /// `None` until somebody has opened it.
    pub(crate) open: Option<OpenBacking>,
    /// What it is to be instead, while another volume takes its place and everything waits.
    pub(crate) next: Option<OpenBacking>,
    /// What is known of its changes for good, where that is kept.
    pub(crate) history: Option<Rc<HistoryFile>>,
    /// Who reads from it now.
    pub(crate) reads: Rc<Grace>,
    /// Who brings its changes to other nodes, where those have copies.
    pub(crate) carrier: Option<Rc<dyn Carrier>>,
    /// Whose turn it is to append what comes from the owner.
    pub(crate) appends: Rc<tokio::sync::Mutex<()>>,
}

/// All of them, by their volumes' slots.
#[derive(Default)]
pub(crate) struct Backings {
    all: Vec<Backing>,
    /// What the log that was found says of the history of volumes, until they are opened.
    found: BTreeMap<VolumeId, Vec<FoundChange>>,
}

impl Backings {
    /// Of the volumes of a log that was found.
    pub(crate) fn found(volumes: usize, found: BTreeMap<VolumeId, Vec<FoundChange>>) -> Self {
        Self {
            all: (0..volumes).map(|_| Backing::default()).collect(),
            found,
        }
    }

    pub(crate) fn of(&self, slot: Slot) -> &Backing {
        &self.all[usize::from(slot.0)]
    }

    /// A new volume has the slot after all others.
    pub(crate) fn of_mut(&mut self, slot: Slot) -> &mut Backing {
        let place = usize::from(slot.0);
        if place == self.all.len() {
            self.all.push(Backing::default());
        }
        &mut self.all[place]
    }

    /// The volume of a slot that requests come for.
    pub(crate) fn opened(&self, slot: Slot) -> &OpenBacking {
        let open = self.of(slot).open.as_ref();
        open.expect("requests come through a lane, which was opened with its volume")
    }

    /// What was found in the log of the history of a volume, which is known to somebody else now.
    pub(crate) fn take_found(&mut self, id: VolumeId) -> Vec<FoundChange> {
        self.found.remove(&id).unwrap_or_default()
    }

    /// A change of a volume that nobody has opened yet: it was found in the log, and is committed.
    pub(crate) fn add_found(&mut self, change: &Change) {
        let found = self.found.entry(change.volume).or_default();
        found.push(FoundChange::of(change));
    }

    /// Some copy elsewhere may miss what the log has.
    pub(crate) fn keep_log(&self) -> bool {
        let mut open = self.all.iter().filter_map(|it| it.open.as_ref());
        open.any(|it| it.modes.keeps_log())
    }

    /// All histories that are kept.
    pub(crate) fn histories(&self) -> impl Iterator<Item = &Rc<HistoryFile>> {
        self.all.iter().filter_map(|it| it.history.as_ref())
    }
}
