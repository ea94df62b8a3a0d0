//! Changes of size that have not ended.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// Those that have not ended: why, by NAA identifier.
#[derive(Default)]
pub(crate) struct Resizing(pub(crate) RefCell<BTreeMap<String, String>>);

impl Resizing {
    /// Why the LUN's last change of size has not ended.
    pub(crate) fn of(&self, naa: &str) -> Option<String> {
        self.0.borrow().get(naa).cloned()
    }
}
