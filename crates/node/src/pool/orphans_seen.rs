//! What is known of LUNs that no object names, and of what pools say of the others.

use manifest::orphan::{LunRecord, Orphan};
use manifest::size::Size;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What is known of orphans and records.
#[derive(Default)]
pub(crate) struct Orphans {
    /// As they were seen last.
    pub(crate) seen: RefCell<Vec<Orphan>>,
    /// The record of each LUN, by NAA identifier.
    pub(crate) written: RefCell<BTreeMap<String, LunRecord>>,
    /// LUNs that their pools have seen larger than they are, by NAA identifier, and how large.
    pub(crate) larger: RefCell<BTreeMap<String, Size>>,
}

impl Orphans {
    pub(crate) fn larger(&self) -> BTreeMap<String, Size> {
        self.larger.borrow().clone()
    }
}
