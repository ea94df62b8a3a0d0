//! What the layers of a LUN reach of each other and of its unit.
//!
//! The log and the checksums below it depend on each other: it logs first where there are some, and
//! they come between only where it stands above. Nobody else sees these handles.

use super::checksums::Checksums;
use crate::lun::geometry::block_count;
use crate::mirrors::Mirrors;
use layers::Meter;
use manifest::objects::Lun;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use volume::{Fences, Volume};
use write_back::WriteBack;

/// What outlives the layers of a unit: they are made anew with it.
#[derive(Clone)]
pub(crate) struct UnitParts {
    /// Counts what hosts do.
    pub(crate) meter: Meter,
    pub(crate) fences: Fences,
    /// Blocks that the LUN has.
    pub(crate) blocks: Arc<AtomicU64>,
    /// Who knows the other nodes of the cluster.
    pub(crate) mirrors: Option<Rc<dyn Mirrors>>,
}

impl UnitParts {
    /// Those of a LUN that comes into service, whose writes these fences stop.
    pub(crate) fn new(lun: &Lun, fences: Fences, mirrors: Option<Rc<dyn Mirrors>>) -> Self {
        Self {
            meter: Meter::new(),
            fences,
            blocks: Arc::new(AtomicU64::new(block_count(lun))),
            mirrors,
        }
    }
}

/// What the layers of a LUN reach of each other.
pub(super) struct Handles {
    pub(super) parts: UnitParts,
    checksums: RefCell<Option<Checksums>>,
    unchecked: OnceCell<Arc<dyn Volume>>,
    journaled: OnceCell<Arc<WriteBack>>,
}

impl Handles {
    pub(super) fn new(parts: &UnitParts) -> Rc<Self> {
        Rc::new(Self {
            parts: parts.clone(),
            checksums: RefCell::default(),
            unchecked: OnceCell::new(),
            journaled: OnceCell::new(),
        })
    }

    /// The LUN's checksums, where it has some.
    pub(super) fn checksums(&self) -> Option<Checksums> {
        self.checksums.borrow().clone()
    }

    /// It has these from now on, or none.
    pub(super) fn set_checksums(&self, checksums: Option<Checksums>) {
        *self.checksums.borrow_mut() = checksums;
    }

    /// Its backing volume, below its checksums, where it is open.
    pub(super) fn unchecked(&self) -> Option<&Arc<dyn Volume>> {
        self.unchecked.get()
    }

    /// Its blocks were opened.
    pub(super) fn set_unchecked(&self, base: &Arc<dyn Volume>) {
        // Layers are put over a leaf once.
        let _ = self.unchecked.set(Arc::clone(base));
    }

    /// Its part of the pool's journal, where it has one.
    pub(super) fn journaled(&self) -> Option<&Arc<WriteBack>> {
        self.journaled.get()
    }

    /// The pool's journal keeps its writes from now on.
    pub(super) fn set_journaled(&self, volume: &Arc<WriteBack>) {
        let _ = self.journaled.set(Arc::clone(volume));
    }
}
