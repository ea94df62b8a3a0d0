//! What nodes say to each other of a LUN's unit, beside its blocks: the ports that each has to it.

use peer::{UnitPart, UnitSubject};
use replica::{Epoch, NodeSlot};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What is known of a LUN's unit.
#[derive(Default)]
pub(crate) struct UnitSide {
    /// This node's ports to it; `None`: nobody has said what they are.
    pub(crate) own_ports: RefCell<Option<Vec<u8>>>,
    /// Those of the others, as each said last.
    pub(crate) ports: RefCell<BTreeMap<NodeSlot, Vec<u8>>>,
    /// What has come in part.
    pub(crate) parts: RefCell<BTreeMap<(NodeSlot, UnitSubject), UnitPart>>,
}

/// Something about a unit that is as long as these bytes.
pub(crate) fn of(subject: UnitSubject, bytes: Vec<u8>) -> UnitPart {
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
    pub(crate) fn ports(&self) -> Vec<(NodeSlot, Vec<u8>)> {
        let ports = self.ports.borrow();
        ports.iter().map(|(of, it)| (*of, it.clone())).collect()
    }

    /// What a node says comes anew on another connection.
    pub(crate) fn disconnected(&self, node: NodeSlot) {
        self.parts.borrow_mut().retain(|(of, _), _| *of != node);
    }

    /// A part came: all of it, where that is here now.
    ///
    /// # Errors
    /// Parts are missing.
    pub(crate) fn join(
        &self,
        node: NodeSlot,
        part: UnitPart,
    ) -> Result<Option<UnitPart>, peer::NotNext> {
        let key = (node, part.subject);
        let mut parts = self.parts.borrow_mut();
        let mut here = parts.remove(&key).unwrap_or_else(|| {
            let blank = of(part.subject, Vec::new());
            UnitPart { total: 1, ..blank }
        });
        if here.join(part)? {
            return Ok(Some(here));
        }
        parts.insert(key, here);
        Ok(None)
    }
}
