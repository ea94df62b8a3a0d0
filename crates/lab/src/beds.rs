//! Beds that are known by a name: what they consist of, and how their paths are used.

use crate::bed::{Side, Topology};
use crate::port::Port;
use crate::rate::Rate;
use crate::rig::Use;
use crate::{faults, mpio, round_robin};
use trials::{BedLink, BedMachine, BedPlan, BedPort, BedSwitch, TopologyView};

/// What a slow link carries.
pub const SLOW: Rate = Rate::megabits(10);

/// What a port of the switch queues before it drops, in KiB.
const BUFFER_KIB: u32 = 64;

/// A bed that is known by a name.
#[derive(Clone, Debug)]
pub struct Known {
    /// By what it is asked for.
    pub id: &'static str,
    /// It in one line.
    pub title: &'static str,
    /// What the initiator makes of it.
    pub paths: &'static str,
    /// What it consists of.
    pub topology: Topology,
    /// How its paths are used.
    pub how: Use,
}

const PLANNED: &str = "the planner chooses: as many active paths as both ends have ports of their own, the others standby";
const BY_HAND: &str = "as the published test has it, without a plan";

/// Two NICs on two cards, two ports on two controllers.
fn two_paths(rate: Rate) -> Topology {
    let mut topology = faults::topology(rate, BUFFER_KIB);
    topology.host = vec![topology.host[0].clone(), topology.host[2].clone()];
    topology.target = vec![topology.target[0].clone(), topology.target[2].clone()];
    topology
}

/// A fast pair of ports and one of a tenth of that, in networks of their own.
fn unequal(rate: Rate) -> Topology {
    let slow = Rate::megabits((rate.bits() / 10_000_000).max(1));
    let pair = |name: &str, rate, network| Port::new(name, name).rate(rate).network(network);
    Topology {
        host: vec![pair("eth0", rate, 0), pair("eth1", slow, 1)],
        target: vec![pair("p0", rate, 0), pair("p1", slow, 1)],
        buffer_kib: BUFFER_KIB,
        mtu: 9000,
    }
}

/// All of them at this rate.
#[must_use]
pub fn topologies(rate: Rate) -> Vec<Known> {
    let own = |id, title, topology| Known {
        id,
        title,
        paths: PLANNED,
        topology,
        how: Use::all(&[]),
    };
    let mut all = vec![
        own(
            "two-paths",
            "2 NICs on 2 cards, 2 ports on 2 controllers, one network",
            two_paths(rate),
        ),
        own(
            "controllers",
            "4 NICs on 2 cards, 4 ports on 2 controllers, one network",
            faults::topology(rate, BUFFER_KIB),
        ),
        own(
            "four-links",
            "4 NICs and 4 ports, each pair in a network of its own",
            round_robin::topology(rate, BUFFER_KIB),
        ),
        Known {
            how: Use::all(&["--no-plan"]),
            paths: "both paths active, each as much as it carries",
            ..own(
                "unequal",
                "2 NICs and 2 ports in two networks, one of a tenth of the rate",
                unequal(rate),
            )
        },
    ];
    for (id, title, how) in mpio::tests() {
        let topology = mpio::topology(rate, BUFFER_KIB);
        let paths = if how.words.is_empty() {
            PLANNED
        } else {
            BY_HAND
        };
        all.push(Known {
            id,
            title,
            paths,
            topology,
            how,
        });
    }
    all
}

/// The one of this name.
#[must_use]
pub fn known(id: &str, rate: Rate) -> Option<Known> {
    topologies(rate).into_iter().find(|it| it.id == id)
}

impl Known {
    /// It for the API.
    #[must_use]
    pub fn view(&self) -> TopologyView {
        TopologyView {
            id: self.id.to_owned(),
            title: self.title.to_owned(),
            paths: self.paths.to_owned(),
            plan: plan(&self.topology),
        }
    }

    /// Its NICs are one team.
    #[must_use]
    pub fn is_team(&self) -> bool {
        self.how.from.iter().any(|nic| nic == "team0")
    }
}

/// Machines, switches and links of a topology.
#[must_use]
pub fn plan(topology: &Topology) -> BedPlan {
    let mut out = BedPlan::default();
    for side in [Side::Host, Side::Target] {
        let machine = side.namespace().to_owned();
        let mut ports = Vec::new();
        for (number, port) in topology.ports(side).iter().enumerate() {
            let switch = format!("br{}", port.network);
            if !out.switches.iter().any(|it| it.name == switch) {
                let network = port.network;
                let name = switch.clone();
                out.switches.push(BedSwitch { name, network });
            }
            out.links.push(BedLink {
                id: port.name.clone(),
                machine: machine.clone(),
                port: port.name.clone(),
                switch,
                state: trials::line::LinkState::Up,
            });
            ports.push(BedPort {
                name: port.name.clone(),
                card: port.card.clone(),
                controller: port.controller.clone(),
                address: topology.address(side, number).to_string(),
                rate_bits: port.rate.bits(),
                network: port.network,
                link: port.name.clone(),
            });
        }
        out.machines.push(BedMachine {
            kind: machine.clone(),
            name: machine,
            ports,
        });
    }
    out
}

#[cfg(test)]
mod test {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_bed_has_a_name_of_its_own_and_every_port_a_link() {
        let all = topologies(Rate::megabits(250));
        let names: BTreeSet<&str> = all.iter().map(|it| it.id).collect();
        assert_eq!(names.len(), all.len());
        for bed in &all {
            let view = bed.view();
            let links: BTreeSet<&str> = view.plan.links.iter().map(|it| it.id.as_str()).collect();
            assert_eq!(links.len(), view.plan.links.len(), "{}", bed.id);
            let ports: usize = view.plan.machines.iter().map(|it| it.ports.len()).sum();
            assert_eq!(ports, links.len(), "{}", bed.id);
        }
        assert!(known("A", Rate::GIGABIT).unwrap().is_team());
        assert!(known("nothing", Rate::GIGABIT).is_none());
    }
}
