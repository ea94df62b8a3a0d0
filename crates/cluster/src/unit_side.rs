//! What a node knows of a LUN's unit, beside its blocks: ports, and the state that hosts set.

use crate::copy_file::StoredState;
use peer::{UnitPart, UnitSubject};
use replica::{Epoch, Moment, NodeSet, NodeSlot};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use tokio::sync::{Notify, oneshot};

/// Why a state is not kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StateNotKept {
    /// This node does not own the LUN: nobody has it.
    NotOwner,
    /// Another node takes over, or this one ends: whether the state counts is not known.
    Unknown,
}

/// The state of a unit with which a node begins to serve hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldState {
    /// The last one; `None`: no node has ever kept one.
    pub bytes: Option<Vec<u8>>,
    /// Some node that is in sync has had it without losing power.
    pub lived: bool,
}

/// Who waits for a state to be kept.
pub(crate) struct Keeping {
    pub(crate) version: u64,
    pub(crate) since: Moment,
    pub(crate) done: oneshot::Sender<Result<(), StateNotKept>>,
}

/// What is known of a LUN's unit.
pub(crate) struct UnitSide {
    /// This node's ports to it; `None`: nobody has said what they are.
    pub(crate) own_ports: RefCell<Option<Vec<u8>>>,
    /// Those of the others, as each said last.
    pub(crate) ports: RefCell<BTreeMap<NodeSlot, Vec<u8>>>,
    /// What has come in part.
    pub(crate) parts: RefCell<BTreeMap<(NodeSlot, UnitSubject), UnitPart>>,
    /// What an owner said that is not followed yet.
    pub(crate) said: RefCell<BTreeMap<NodeSlot, UnitPart>>,
    /// What hosts set, as it is stored here.
    pub(crate) state: RefCell<Option<StoredState>>,
    /// It did not come from this node's disk alone: some node has had it all the time.
    pub(crate) lived: Cell<bool>,
    /// Who has had it without losing power, as they said on their connections.
    pub(crate) lives: Cell<NodeSet>,
    /// Who was led on its connection, and so sent the state.
    pub(crate) led: Cell<NodeSet>,
    /// The last state of this epoch that each has stable.
    pub(crate) stable: RefCell<BTreeMap<NodeSlot, u64>>,
    pub(crate) keeping: RefCell<Vec<Keeping>>,
    /// Who may serve has changed.
    pub(crate) changed: Notify,
}

/// Something about a unit that is as long as these bytes.
pub(crate) fn part(subject: UnitSubject, bytes: Vec<u8>) -> UnitPart {
    UnitPart {
        subject,
        lived: false,
        epoch: Epoch(0),
        version: 0,
        total: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        at: 0,
        bytes,
    }
}

impl UnitSide {
    pub(crate) fn new(state: Option<StoredState>) -> Self {
        Self {
            own_ports: RefCell::default(),
            ports: RefCell::default(),
            parts: RefCell::default(),
            said: RefCell::default(),
            state: RefCell::new(state),
            lived: Cell::new(false),
            lives: Cell::default(),
            led: Cell::default(),
            stable: RefCell::default(),
            keeping: RefCell::default(),
            changed: Notify::new(),
        }
    }

    pub(crate) fn ports(&self) -> Vec<(NodeSlot, Vec<u8>)> {
        let ports = self.ports.borrow();
        ports.iter().map(|(of, it)| (*of, it.clone())).collect()
    }

    /// A node has no copy any more; answers whether it had ports.
    pub(crate) fn forgets(&self, node: NodeSlot) -> bool {
        self.disconnected(node);
        self.ports.borrow_mut().remove(&node).is_some()
    }

    /// What a node says comes anew on another connection.
    pub(crate) fn disconnected(&self, node: NodeSlot) {
        self.parts.borrow_mut().retain(|(of, _), _| *of != node);
        self.said.borrow_mut().remove(&node);
        self.lives.set(self.lives.get().without(node));
        self.led.set(self.led.get().without(node));
        self.stable.borrow_mut().remove(&node);
    }

    /// A part came: all of it, where that is here now.
    ///
    /// # Errors
    /// Parts are missing.
    pub(crate) fn join(
        &self,
        node: NodeSlot,
        next: UnitPart,
    ) -> Result<Option<UnitPart>, peer::NotNext> {
        let key = (node, next.subject);
        let mut parts = self.parts.borrow_mut();
        let mut here = parts.remove(&key).unwrap_or_else(|| {
            let blank = part(next.subject, Vec::new());
            UnitPart { total: 1, ..blank }
        });
        if here.join(next)? {
            return Ok(Some(here));
        }
        parts.insert(key, here);
        Ok(None)
    }
}
