//! What is known of a copy that is made anew from here.

use crate::removed::Removed;
use jobs::Rate;
use replica::{Moment, NodeSlot};
use std::cell::{Cell, RefCell};

/// How far a copy is that is made anew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Renewal {
    /// Whose copy it is.
    pub node: NodeSlot,
    /// Blocks that were gone through,
    pub done: u64,
    /// of so many.
    pub blocks: u64,
    /// Bytes of data that were written again.
    pub bytes: u64,
    /// Bytes of digests that went there and came from there.
    pub digests: u64,
    /// Blocks that are gone through in a second.
    pub per_second: u64,
    /// Seconds until all are, as fast as it goes; `None`: nobody knows.
    pub seconds_left: Option<u64>,
    /// Since when, by this node's clock.
    pub since: Moment,
    /// Why all blocks are written again; `None`: those that changed are.
    pub whole: Option<String>,
    /// Why it does not go on, and is tried again.
    pub trouble: Option<String>,
}

/// What the copy may lack.
#[derive(Clone, Debug)]
pub(crate) enum Lack {
    /// What changed, as far as that was noted when it was removed.
    Changed(Removed),
    /// All, and why.
    Whole(String),
}

impl Lack {
    pub(crate) fn whole(&self) -> Option<&str> {
        match self {
            Self::Changed(_) => None,
            Self::Whole(why) => Some(why),
        }
    }
}

/// What is written again for one node.
pub(crate) struct Copying {
    /// What belongs to an earlier one is late.
    pub(crate) number: u64,
    pub(crate) since: Moment,
    pub(crate) blocks: u64,
    /// The first block that nobody has begun with.
    pub(crate) next: Cell<u64>,
    pub(crate) done: Cell<u64>,
    pub(crate) bytes: Cell<u64>,
    pub(crate) digests: Cell<u64>,
    pub(crate) rate: Cell<Rate>,
    pub(crate) workers: Cell<u64>,
    pub(crate) lack: RefCell<Lack>,
    pub(crate) trouble: RefCell<Option<String>>,
}
