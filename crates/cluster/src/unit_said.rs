//! What nodes say to each other of a LUN's unit, beside its blocks.

use crate::lun::Lun;
use crate::unit_side::of;
use peer::{UnitPart, UnitSubject};
use replica::NodeSlot;

impl Lun {
    /// A node hears from the beginning what this one says.
    pub(crate) fn unit_connected(&self, node: NodeSlot) {
        if let Some(ports) = &*self.unit.own_ports.borrow() {
            self.say_ports(node, ports);
        }
    }

    fn say_ports(&self, node: NodeSlot, ports: &[u8]) {
        if let Some(pair) = self.pair(node) {
            pair.say_of_unit(self.id, &of(UnitSubject::Ports, ports.to_vec()));
        }
    }

    pub(crate) fn own_ports_are(&self, ports: Vec<u8>) {
        let copies = self.kept.borrow().known.1.copies.clone();
        for (node, _) in copies {
            if node != self.node.slot() {
                self.say_ports(node, &ports);
            }
        }
        self.unit.own_ports.replace(Some(ports));
    }

    pub(crate) fn heard_of_unit(&self, node: NodeSlot, part: UnitPart) {
        let Ok(whole) = self.unit.join(node, part) else {
            return self.begins_anew(node);
        };
        let Some(whole) = whole else {
            return;
        };
        match whole.subject {
            UnitSubject::Ports => {
                let before = self.unit.ports.borrow_mut().insert(node, whole.bytes);
                if before.as_ref() != self.unit.ports.borrow().get(&node) {
                    self.tenure.paths_changed();
                }
            }
            UnitSubject::State | UnitSubject::Stable | UnitSubject::Lived => {}
        }
    }
}
