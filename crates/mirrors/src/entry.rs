//! A LUN with copies that is in service on this node.

use cluster::{CopyFile, Served};
use manifest::objects::NodeNames;
use replica::{CopyId, NodeSlot};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use write_back::VolumeId;

/// How far it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Begun {
    /// It waits for the cluster, or for the arbiter, for this reason.
    Waits(String),
    /// It works.
    Works,
    /// It was taken out of service.
    Closed,
}

/// A LUN, and what hosts use of it.
pub(crate) struct Entry {
    pub(crate) naa: String,
    /// Nodes that have copies.
    pub(crate) names: NodeNames,
    pub(crate) served: Arc<Served>,
    /// Where its copy here keeps what it must not forget.
    pub(crate) file: Rc<CopyFile>,
    /// Nodes that have to have all of it for writes.
    pub(crate) min_copies: Cell<u32>,
    /// Copies that are to be added, by node: each has one identifier, however often it is asked
    /// for.
    pub(crate) adding: RefCell<BTreeMap<NodeSlot, CopyId>>,
    pub(crate) begun: RefCell<Begun>,
    /// Its object is in the arbiter.
    pub(crate) is_published: Cell<bool>,
}

impl Entry {
    pub(crate) fn id(&self) -> VolumeId {
        self.served.log().id()
    }

    pub(crate) fn waits(&self, why: &str) {
        let before = self.begun.replace(Begun::Waits(why.to_owned()));
        if before != Begun::Waits(why.to_owned()) {
            tracing::warn!(naa = self.naa, why, "a copy does not begin to work yet");
        }
    }

    pub(crate) fn is_waiting(&self) -> bool {
        matches!(*self.begun.borrow(), Begun::Waits(_))
    }
}
