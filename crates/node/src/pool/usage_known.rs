//! What is known of the space that LUNs take in their pools.

use manifest::objects::Objects;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Weak;
use units::Now;

/// What is known.
#[derive(Default)]
pub(crate) struct Usage {
    /// Bytes by NAA identifier.
    pub(crate) bytes: RefCell<BTreeMap<String, u64>>,
    pub(crate) fresh_until: Cell<Option<Now>>,
    pub(crate) inspecting: Cell<bool>,
    /// Objects of which no LUN lacked a figure.
    pub(crate) complete: RefCell<Weak<Objects>>,
}

impl Usage {
    /// Bytes that the LUN's file takes.
    pub(crate) fn of(&self, naa: &str) -> Option<u64> {
        self.bytes.borrow().get(naa).copied()
    }
}
