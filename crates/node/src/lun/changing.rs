//! LUNs between the two halves of a change: what it needs is made, and the objects that say so are
//! not in force yet.
//!
//! **Contract.** Meanwhile nobody opens such a LUN by the objects from before: they may say that
//! what was just made is of no use. Whoever wants to, because its file, its journal or its pool is
//! back, has it done when the change is at its end, by the objects of then.

use manifest::plan::LunChanges;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// By NAA identifier.
#[derive(Default)]
pub(crate) struct Changing {
    luns: RefCell<BTreeSet<String>>,
    put_off: RefCell<BTreeSet<String>>,
}

impl Changing {
    /// A change is prepared.
    pub(crate) fn begin(&self, changes: &LunChanges) {
        let all = changes.restored.iter().chain(&changes.resized);
        let switched = changes.switched_on.iter().chain(&changes.switched_off);
        let all = all.chain(switched.map(|(_, lun)| lun));
        let all = all.chain(&changes.retired).chain(&changes.purged);
        *self.luns.borrow_mut() = all.map(|lun| lun.naa.clone()).collect();
    }

    /// Whether the LUN has to wait for a change; then it is opened afterwards.
    pub(crate) fn puts_off(&self, naa: &str) -> bool {
        let waits = self.luns.borrow().contains(naa);
        if waits {
            self.put_off.borrow_mut().insert(naa.to_owned());
        }
        waits
    }

    /// The change is adopted or abandoned.
    pub(crate) fn end(&self) {
        self.luns.borrow_mut().clear();
    }

    /// Those that somebody wanted to open.
    pub(crate) fn take_put_off(&self) -> BTreeSet<String> {
        self.put_off.take()
    }
}
