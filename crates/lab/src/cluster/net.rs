//! Namespaces, switches and wires of a cluster.
//!
//! ```text
//!    host        eth0 eth1
//!                  |    |
//!    switches     br0  br1      hosts and nodes
//!                  |    |
//!    node a, b    p0   p1   link   etcd
//!                            |      |
//!    switches               br2    br3
//!                                   |
//!    third                         etcd
//! ```

use super::order::{Machine, Which, Wires};
use crate::claim::Claim;
use crate::error::LabError;
use crate::port::Harm;
use crate::port::Port;
use crate::rate::Rate;
use crate::wire::{self, Medium, Wire};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

/// Namespaces: the host, both nodes, and who has nothing but a member of etcd.
pub(super) const HOST: &str = "host";
pub(super) const NODES: [&str; 2] = ["a", "b"];
pub(super) const THIRD: &str = "third";
const NETWORKS: [u8; 4] = [0, 1, 2, 3];
/// The NIC through which a node reaches the other one.
const LINK: &str = "link";

/// A machine's NICs: name, card, network.
fn nics(part: &str) -> &'static [(&'static str, &'static str, u8)] {
    match part {
        HOST => &[("eth0", "one", 0), ("eth1", "two", 1)],
        THIRD => &[("etcd", "one", 3)],
        _ => &[
            ("p0", "one", 0),
            ("p1", "two", 1),
            ("link", "three", 2),
            ("etcd", "four", 3),
        ],
    }
}

/// The last part of a machine's addresses.
fn number(part: &str) -> u8 {
    match part {
        HOST => 1,
        "a" => 101,
        "b" => 102,
        _ => 103,
    }
}

/// The address of a machine in a network.
pub(super) fn address(part: &str, network: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 77, network, number(part)))
}

fn wires(part: &str, rate: Rate) -> Vec<Wire> {
    let all = nics(part).iter().map(|(name, card, network)| Wire {
        port: Port::new(name, card).rate(rate).network(*network),
        end: format!("{part}{network}"),
        ip: address(part, *network),
    });
    all.collect()
}

/// The machines, and what is wrong with their wires.
#[derive(Debug)]
pub(super) struct Net {
    claim: Claim,
    medium: Medium,
    machines: BTreeMap<&'static str, Vec<Wire>>,
    /// By machine and NIC.
    harmed: BTreeMap<(&'static str, String), Harm>,
}

impl Net {
    /// Takes a free name, and plugs all machines in.
    pub(super) async fn build(rate: Rate, buffer_kib: u32) -> Result<Self, LabError> {
        let parts = [HOST, NODES[0], NODES[1], THIRD];
        let net = Self {
            claim: Claim::take()?,
            medium: Medium {
                buffer_kib,
                mtu: 9000,
            },
            machines: parts.map(|part| (part, wires(part, rate))).into(),
            harmed: BTreeMap::new(),
        };
        wire::machines(&net.claim, &parts, &NETWORKS, net.medium).await?;
        for (part, wires) in &net.machines {
            wire::plug(&net.claim, part, wires, net.medium).await?;
        }
        Ok(net)
    }

    pub(super) fn claim(&self) -> &Claim {
        &self.claim
    }

    pub(super) fn namespace(&self, part: &str) -> String {
        self.claim.namespace(part)
    }

    /// The NICs of a machine.
    pub(super) fn ports(&self, part: &str) -> Vec<Port> {
        let wires = self.machines.get(part).into_iter().flatten();
        wires.map(|it| it.port.clone()).collect()
    }

    /// What is wrong, in words.
    pub(super) fn harmed(&self) -> Vec<String> {
        let all = self.harmed.iter();
        let word = |harm: &Harm| match harm {
            Harm::Cut => "cut".to_owned(),
            Harm::BlackHole => "a black hole".to_owned(),
            Harm::Deaf => "deaf".to_owned(),
            Harm::Mute => "mute".to_owned(),
            Harm::Slow(rate) => format!("slow, {rate}"),
        };
        all.map(|((part, nic), harm)| format!("{part}.{nic} is {}", word(harm)))
            .collect()
    }

    /// Does harm to wires, or mends them; `owner`: who is meant by that.
    pub(super) async fn set(
        &mut self,
        harm: Option<Harm>,
        which: &Wires,
        owner: usize,
    ) -> Result<(), LabError> {
        for (part, nic) in self.found(which, owner) {
            let wires = &self.machines[part];
            let wire: Vec<&Wire> = wires.iter().filter(|it| it.port.name == nic).collect();
            let key = (part, nic.clone());
            if let Some(before) = self.harmed.remove(&key) {
                wire::mend(&self.claim, part, &wire, before, self.medium).await?;
            }
            if let Some(harm) = harm {
                wire::harm(&self.claim, part, &wire, harm, self.medium).await?;
                self.harmed.insert(key, harm);
            }
        }
        Ok(())
    }

    fn found(&self, which: &Wires, owner: usize) -> Vec<(&'static str, String)> {
        let (machine, nic) = match which {
            Wires::All => return self.harmed.keys().cloned().collect(),
            Wires::Link => return NODES.map(|part| (part, LINK.to_owned())).to_vec(),
            Wires::Of(machine, nic) => (machine, nic),
        };
        let part = match machine {
            Machine::Host => HOST,
            Machine::Third => THIRD,
            Machine::Node(which) => NODES[place(*which, owner)],
        };
        let names = nics(part).iter().map(|it| it.0);
        let names = names.filter(|name| nic.as_ref().is_none_or(|it| it == name));
        names.map(|name| (part, name.to_owned())).collect()
    }
}

/// Which node is meant.
pub(super) fn place(which: Which, owner: usize) -> usize {
    match which {
        Which::Node(at) => at,
        Which::Owner => owner,
        Which::Other => 1 - owner,
    }
}
