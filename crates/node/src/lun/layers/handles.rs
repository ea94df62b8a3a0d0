//! What a LUN's unit and its layers reach of each other.

use crate::lun::checksums::Checksums;
use layers::Meter;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use volume::{Fences, Volume};
use write_back::WriteBack;

/// What outlives the layers of a unit: they are made anew with it.
#[derive(Clone)]
pub(crate) struct UnitParts {
    pub(crate) meter: Meter,
    pub(crate) fences: Fences,
    /// Blocks that the LUN has.
    pub(crate) blocks: Arc<AtomicU64>,
}

/// What a LUN's unit and its layers reach of each other.
pub(crate) struct Handles {
    pub(crate) parts: UnitParts,
    checksums: RefCell<Option<Checksums>>,
    unchecked: OnceCell<Arc<dyn Volume>>,
    journaled: OnceCell<Arc<WriteBack>>,
}

impl Handles {
    pub(crate) fn new(parts: &UnitParts) -> Rc<Self> {
        Rc::new(Self {
            parts: parts.clone(),
            checksums: RefCell::default(),
            unchecked: OnceCell::new(),
            journaled: OnceCell::new(),
        })
    }

    /// The LUN's checksums, where it has some.
    pub(crate) fn checksums(&self) -> Option<Checksums> {
        self.checksums.borrow().clone()
    }

    /// It has these from now on, or none.
    pub(crate) fn set_checksums(&self, checksums: Option<Checksums>) {
        *self.checksums.borrow_mut() = checksums;
    }

    /// Its backing volume, below its checksums, where it is open.
    pub(crate) fn unchecked(&self) -> Option<&Arc<dyn Volume>> {
        self.unchecked.get()
    }

    /// Its blocks were opened.
    pub(crate) fn set_unchecked(&self, base: &Arc<dyn Volume>) {
        // Layers are put over a leaf once.
        let _ = self.unchecked.set(Arc::clone(base));
    }

    /// Its part of the pool's journal, where it has one.
    pub(crate) fn journaled(&self) -> Option<&Arc<WriteBack>> {
        self.journaled.get()
    }

    /// The pool's journal keeps its writes from now on.
    pub(crate) fn set_journaled(&self, volume: &Arc<WriteBack>) {
        let _ = self.journaled.set(Arc::clone(volume));
    }
}
