//! What a log of the model knows of what it has given up, and of copies that are made anew.

use crate::message::RingSummary;
use crate::record::{CopyId, Epoch, NodeSlot};
use std::collections::{BTreeMap, BTreeSet};

/// A node has nothing any more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Lost {
    /// The copy that it had.
    pub(super) was: Option<CopyId>,
}

/// What is written again for a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Rewrite {
    /// All changes below this number were committed when it began.
    Since(usize),
    /// It is this change, which is not committed yet.
    Is(usize),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Renewal {
    /// The log has nothing below this number any more.
    pub(super) forgotten: usize,
    /// The log was notified that all below this number is committed.
    pub(super) committed: usize,
    /// The copy was made anew by the owner of this epoch, from this number on.
    pub(super) anew: Option<(Epoch, usize)>,
    /// Nodes that lack what the log has not.
    pub(super) lag: BTreeSet<NodeSlot>,
    pub(super) copies: BTreeMap<NodeSlot, Rewrite>,
    /// What is read where nothing was written: what was there before the log.
    pub(super) base: u8,
}

impl Renewal {
    /// What the log knows of its beginning, and where that is.
    pub(super) fn summary(&self) -> (RingSummary, usize) {
        let Some((epoch, first)) = self.anew else {
            return (RingSummary::default(), 0);
        };
        let next = first as u64;
        let epochs = vec![(epoch, next)];
        (RingSummary { epochs, next }, first)
    }
}
