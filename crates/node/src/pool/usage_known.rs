//! What is known of the space that LUNs take in their pools.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use units::Now;

/// What is known.
#[derive(Default)]
pub(crate) struct Usage {
    /// Bytes by NAA identifier.
    pub(crate) bytes: RefCell<BTreeMap<String, u64>>,
    pub(crate) fresh_until: Cell<Option<Now>>,
    pub(crate) inspecting: Cell<bool>,
}

impl Usage {
    /// Bytes that the LUN's file takes.
    pub(crate) fn of(&self, naa: &str) -> Option<u64> {
        self.bytes.borrow().get(naa).copied()
    }
}
