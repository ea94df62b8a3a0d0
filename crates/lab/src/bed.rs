//! A test bed: a host and a target with NICs, and a switch between them, of network namespaces.
//!
//! ```text
//!    NAME-host                     NAME-switch                  NAME-target
//!    eth0 [tbf, deep] ===veth=== h0 [tbf, shallow] \      / t0 ===veth=== p0 [tbf, deep]
//!    eth1 [tbf, deep] ===veth=== h1 [tbf, shallow]  bridge  t1 ===veth=== p1 [tbf, deep]
//! ```
//!
//! tbf shapes what leaves a device: a NIC has a deep queue, so that TCP's own small queues push
//! back as they do at a real one; a port of the switch has a shallow buffer, and drops the rest.
//! Segmentation is off everywhere, because packets of 64 KiB would defeat the buffer. Everything
//! stands in one subnet, where every NIC reaches every portal, unless ports have networks of their
//! own; each address has a routing table of its own, so that answers leave by its NIC.

use crate::claim::Claim;
use crate::error::LabError;
use crate::port::Port;
use crate::tool::{self, Tool, batch};
use crate::wire::{self, Medium, Wire};
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// What to build.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Topology {
    /// The host's NICs.
    pub host: Vec<Port>,
    /// The target's ports.
    pub target: Vec<Port>,
    /// What a port of the switch queues before it drops, in KiB.
    pub buffer_kib: u32,
    /// Largest IP packet.
    pub mtu: u32,
}

/// One of the two sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The host.
    Host,
    /// The target.
    Target,
}

impl Side {
    /// The last part of its namespace's name.
    #[must_use]
    pub fn namespace(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Target => "target",
        }
    }

    /// What the switch calls the port that leads to the NIC `number`.
    pub(crate) fn switch_port(self, number: usize) -> String {
        match self {
            Self::Host => format!("h{number}"),
            Self::Target => format!("t{number}"),
        }
    }
}

impl Topology {
    /// The ports of a side.
    #[must_use]
    pub fn ports(&self, side: Side) -> &[Port] {
        match side {
            Side::Host => &self.host,
            Side::Target => &self.target,
        }
    }

    /// The address of a port: 10.77.NETWORK.NUMBER, the target's from 101 on.
    ///
    /// # Panics
    /// If there is no such port, or more than a hundred.
    #[must_use]
    pub fn address(&self, side: Side, number: usize) -> IpAddr {
        let first = match side {
            Side::Host => 1,
            Side::Target => 101,
        };
        let network = self.ports(side)[number].network;
        let last = u8::try_from(first + number).expect("a bed has few ports");
        IpAddr::V4(Ipv4Addr::new(10, 77, network, last))
    }

    /// Where a port stands by its name.
    #[must_use]
    pub fn find(&self, side: Side, name: &str) -> Option<usize> {
        self.ports(side).iter().position(|port| port.name == name)
    }

    /// The port of a side that has this address.
    #[must_use]
    pub fn find_address(&self, side: Side, address: &str) -> Option<usize> {
        let mut all = 0..self.ports(side).len();
        all.find(|number| self.address(side, *number).to_string() == address)
    }

    pub(crate) fn wires(&self, side: Side) -> Vec<Wire> {
        let ports = self.ports(side).iter().enumerate();
        let wires = ports.map(|(number, port)| Wire {
            port: port.clone(),
            end: side.switch_port(number),
            ip: self.address(side, number),
        });
        wires.collect()
    }

    pub(crate) fn medium(&self) -> Medium {
        Medium {
            buffer_kib: self.buffer_kib,
            mtu: self.mtu,
        }
    }

    fn networks(&self) -> Vec<u8> {
        let all = self.host.iter().chain(&self.target);
        let mut networks: Vec<u8> = all.map(|port| port.network).collect();
        networks.sort_unstable();
        networks.dedup();
        networks
    }
}

/// A test bed that stands.
#[derive(Debug)]
pub struct Bed {
    claim: Claim,
    topology: Topology,
}

impl Bed {
    /// Builds it.
    ///
    /// # Errors
    /// What the system refused; nothing is left then.
    pub async fn build(topology: Topology) -> Result<Self, LabError> {
        let bed = Self {
            claim: Claim::take()?,
            topology,
        };
        let (medium, networks) = (bed.topology.medium(), bed.topology.networks());
        let parts = [Side::Host, Side::Target].map(Side::namespace);
        wire::machines(&bed.claim, &parts, &networks, medium).await?;
        for side in [Side::Host, Side::Target] {
            let wires = bed.topology.wires(side);
            wire::plug(&bed.claim, side.namespace(), &wires, medium).await?;
        }
        Ok(bed)
    }

    /// What was built.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The namespace of a side.
    #[must_use]
    pub fn namespace(&self, side: Side) -> String {
        self.claim.namespace(side.namespace())
    }

    /// The switch's namespace.
    #[must_use]
    pub fn switch(&self) -> String {
        self.claim.namespace(wire::SWITCH)
    }

    pub(crate) fn claim(&self) -> &Claim {
        &self.claim
    }

    /// A directory that goes with the bed.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        self.claim.dir().to_owned()
    }

    /// One address that four NICs carry, as a team of four has, with each connection on one of them
    /// by its hash. Its name is `team0`.
    ///
    /// # Errors
    /// What the system refused.
    pub async fn team(&self) -> Result<(), LabError> {
        let namespace = self.namespace(Side::Host);
        // Whoever asks for the team's address gets an answer from the NIC that receives it.
        let loose = [("net/ipv4/conf/all/arp_ignore".to_owned(), "0")];
        tool::settings(&namespace, &loose).await?;
        let mtu = self.topology.mtu;
        let mut lines = vec![
            format!("link add team0 mtu {mtu} type veth peer name team0x mtu {mtu}"),
            "link set team0 up".to_owned(),
            "link set team0x up".to_owned(),
            "addr add 10.77.0.50/24 dev team0 noprefixroute".to_owned(),
        ];
        for (number, port) in self.topology.host.iter().enumerate() {
            let ip = self.topology.address(Side::Host, number);
            lines.push(format!("addr del {ip}/24 dev {}", port.name));
        }
        let hops = self.topology.host.iter().map(|port| &port.name);
        let hops: String = hops.map(|name| format!(" nexthop dev {name}")).collect();
        lines.push(format!("route add 10.77.0.0/24 src 10.77.0.50{hops}"));
        batch(Tool::Ip, Some(&namespace), &lines).await
    }
}
