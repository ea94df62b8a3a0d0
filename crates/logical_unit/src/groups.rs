//! The target ports of a unit with copies on several nodes: a target port group for each node, and
//! relative target port identifiers that are its own.
//!
//! A unit without copies has one group, with the identifiers that its targets have.
//!
//! Spec: SPC-4 5.15 "Target port group access states"; `docs/adr/0037-how-a-lun-gets-its-copies.md`
//! says why it is counted so.

use crate::names::{PortFacts, UnitPorts};
use scsi::alua::{AccessState, PortGroup};
use scsi::description::{TargetDescription, TargetPort};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The group of a unit without copies, and of the first node of a cluster.
const FIRST_GROUP: u16 = 1;

/// The number of a node in its cluster: 0 to 63.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeNumber(pub u8);

impl NodeNumber {
    /// Relative target port identifiers that each node has: its ports have 1 to 1,023 for
    /// themselves, and 0 is none.
    pub const PORTS: u16 = 1024;

    /// Its target port group.
    #[must_use]
    pub const fn group(self) -> u16 {
        FIRST_GROUP + self.0 as u16
    }

    /// What one of its ports is called by all nodes.
    #[must_use]
    pub const fn port(self, own: u16) -> u16 {
        (self.0 as u16).wrapping_mul(Self::PORTS).wrapping_add(own)
    }
}

/// A port of another node, and who may use it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortElsewhere {
    /// As that node has it for itself.
    pub port: PortFacts,
    /// Every initiator but those named may use it, or those alone.
    pub any: bool,
    /// Names of initiators, in lower case.
    pub names: BTreeSet<String>,
}

impl PortElsewhere {
    /// This initiator may use it.
    #[must_use]
    pub fn is_for(&self, initiator: &str) -> bool {
        self.any != self.names.contains(initiator)
    }
}

/// Another node that has a copy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeElsewhere {
    /// 0 to 63, and not this node's.
    pub number: NodeNumber,
    /// As it said last.
    pub ports: Vec<PortElsewhere>,
}

/// Which nodes a unit can be reached through.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups {
    /// This node, where the unit has copies.
    pub(crate) own: Option<NodeNumber>,
    /// The node that serves it, where that is another one.
    pub(crate) served_by: Option<NodeNumber>,
    /// Nodes that forward to this one, where this one serves it: a bit for each number.
    pub(crate) through: u64,
    /// Other nodes that have said what their ports are.
    pub(crate) others: Arc<[NodeElsewhere]>,
}

const SUPPORTED: [AccessState; 5] = [
    AccessState::ActiveOptimized,
    AccessState::ActiveNonOptimized,
    AccessState::Standby,
    AccessState::Unavailable,
    AccessState::Transitioning,
];

fn described(port: &PortFacts, group: u16) -> TargetPort {
    TargetPort {
        target_name: port.target_name.clone(),
        relative_port: port.relative_port,
        portal_group_tag: port.portal_group_tag,
        target_port_group: group,
    }
}

impl Groups {
    /// What a port of this node is called.
    pub(crate) fn number(&self, own: u16) -> u16 {
        self.own.map_or(own, |node| node.port(own))
    }

    fn named(&self, mut port: PortFacts) -> PortFacts {
        port.relative_port = self.number(port.relative_port);
        port
    }

    fn forwards(&self, node: NodeNumber) -> bool {
        self.through.checked_shr(node.0.into()).unwrap_or(0) & 1 == 1
    }

    fn own_group(&self) -> u16 {
        self.own.map_or(FIRST_GROUP, NodeNumber::group)
    }

    /// Ports of this node, as all nodes call them.
    pub(crate) fn ports(&self, ports: UnitPorts) -> UnitPorts {
        UnitPorts {
            own: self.named(ports.own),
            all: ports.all.into_iter().map(|it| self.named(it)).collect(),
        }
    }

    /// Ports of other nodes that this initiator may use, with their nodes.
    fn elsewhere(&self, initiator: &str) -> Vec<(NodeNumber, PortFacts)> {
        let of_node = |node: &NodeElsewhere| -> Vec<(NodeNumber, PortFacts)> {
            let number = node.number;
            let ports = node.ports.iter().filter(|it| it.is_for(initiator));
            let named = ports.map(|it| PortFacts {
                relative_port: number.port(it.port.relative_port),
                ..it.port.clone()
            });
            named.map(|port| (number, port)).collect()
        };
        self.others.iter().flat_map(of_node).collect()
    }

    /// The relative target port identifiers of all nodes, for this initiator: `here` are those of
    /// this node.
    pub(crate) fn all(&self, here: &UnitPorts, initiator: &str) -> Vec<u16> {
        let elsewhere = self.elsewhere(initiator).into_iter();
        let elsewhere = elsewhere.map(|(_, port)| port.relative_port);
        let here = here.all.iter().map(|port| port.relative_port);
        let mut all: Vec<u16> = here.chain(elsewhere).collect();
        all.sort_unstable();
        all
    }

    /// The target, as this initiator may use it.
    pub(crate) fn target(&self, here: &UnitPorts, initiator: &str) -> TargetDescription {
        let own = self.own_group();
        let elsewhere = self.elsewhere(initiator).into_iter();
        let elsewhere = elsewhere.map(|(node, port)| described(&port, node.group()));
        let ports = here.all.iter().map(|port| described(port, own));
        let mut ports: Vec<TargetPort> = ports.chain(elsewhere).collect();
        ports.sort_by_key(|port| port.relative_port);
        TargetDescription {
            name: here.own.target_name.clone(),
            port: described(&here.own, own),
            ports,
            management: Vec::new(),
        }
    }

    /// All groups that this initiator may use, by their numbers. Of two groups that are both
    /// optimized, only this node's would be known to be so: it serves, and no other one does.
    pub(crate) fn report(
        &self,
        (here, initiator): (&UnitPorts, &str),
        state: AccessState,
    ) -> Vec<PortGroup> {
        let group = |group: u16, state: AccessState, ports: Vec<u16>| PortGroup {
            group,
            preferred: false,
            state,
            supported: SUPPORTED.to_vec(),
            changed: false,
            ports,
        };
        let ports = here.all.iter().map(|port| port.relative_port).collect();
        let mut groups = vec![group(self.own_group(), state, ports)];
        let serves = state == AccessState::ActiveOptimized;
        for node in self.others.iter() {
            let number = node.number;
            let ports = self.elsewhere(initiator).into_iter();
            let ports = ports.filter(|(of, _)| *of == number);
            let ports: Vec<u16> = ports.map(|(_, port)| port.relative_port).collect();
            // A group without ports is none.
            if ports.is_empty() {
                continue;
            }
            let is_served = !serves && self.served_by == Some(number);
            let state = match (is_served, serves && self.forwards(number)) {
                (true, _) => AccessState::ActiveOptimized,
                (false, true) => AccessState::ActiveNonOptimized,
                (false, false) => AccessState::Unavailable,
            };
            groups.push(group(number.group(), state, ports));
        }
        groups.sort_by_key(|group| group.group);
        groups
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn no_two_ports_of_64_nodes_are_called_the_same_and_the_first_keeps_its_own() {
        let mut seen = BTreeSet::new();
        for node in (0..64).map(NodeNumber) {
            for own in 1..NodeNumber::PORTS {
                let number = node.port(own);
                assert!(number != 0 && seen.insert(number), "{node:?} {own}");
            }
            assert_eq!(node.group(), u16::from(node.0) + 1);
        }
        assert_eq!(NodeNumber(0).port(7), 7);
        assert_eq!(NodeNumber(63).port(1023), u16::MAX);
    }
}
