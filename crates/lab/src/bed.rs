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
use crate::rate::Rate;
use crate::tool::{self, Tool, batch};
use env::real::{Ethtool, Offload};
use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// What a NIC queues before it pushes back; deep.
const NIC_QUEUE: &str = "4mb";
/// Bytes that tbf lets through at once. At least a jumbo frame.
const BURST: &str = "20kb";

/// One NIC of the host, or one port of the target.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Port {
    /// Its name in its namespace.
    pub name: String,
    /// The card that it sits on.
    pub card: String,
    /// The controller that it belongs to; the target only.
    pub controller: Option<String>,
    /// Its line rate.
    pub rate: Rate,
    /// Its network: ports of one network reach each other.
    pub network: u8,
}

impl Port {
    /// A port at 1 Gb/s in network 0.
    #[must_use]
    pub fn new(name: &str, card: &str) -> Self {
        Self {
            name: name.to_owned(),
            card: card.to_owned(),
            controller: None,
            rate: Rate::GIGABIT,
            network: 0,
        }
    }

    /// It belongs to this controller.
    #[must_use]
    pub fn controller(mut self, name: &str) -> Self {
        self.controller = Some(name.to_owned());
        self
    }

    /// What the port carries at most, in each direction.
    #[must_use]
    pub fn rate(mut self, rate: Rate) -> Self {
        self.rate = rate;
        self
    }

    /// The IP subnet that it is in: ports of one number reach each other.
    #[must_use]
    pub fn network(mut self, network: u8) -> Self {
        self.network = network;
        self
    }
}

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

const SWITCH: &str = "switch";

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
        bed.namespaces().await?;
        for side in [Side::Host, Side::Target] {
            bed.links(side).await?;
            bed.addresses(side).await?;
            bed.queues(side).await?;
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
        self.claim.namespace(SWITCH)
    }

    /// A directory that goes with the bed.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        self.claim.dir().to_owned()
    }

    async fn namespaces(&self) -> Result<(), LabError> {
        let parts = [Side::Host.namespace(), Side::Target.namespace(), SWITCH];
        let add = parts.map(|part| format!("netns add {}", self.claim.namespace(part)));
        batch(Tool::Ip, None, &add).await?;
        for part in parts {
            let namespace = self.claim.namespace(part);
            let each = ["all", "default"].map(|which| {
                let four = |name: &str| format!("net/ipv4/conf/{which}/{name}");
                [
                    (four("arp_ignore"), "1"),
                    (four("arp_announce"), "2"),
                    (four("rp_filter"), "0"),
                    (format!("net/ipv6/conf/{which}/disable_ipv6"), "1"),
                ]
            });
            let mut settings: Vec<(String, &str)> = each.into_iter().flatten().collect();
            settings.extend([
                ("net/ipv4/tcp_congestion_control".to_owned(), "reno"),
                ("net/ipv4/tcp_no_metrics_save".to_owned(), "1"),
                ("net/ipv4/tcp_rto_min_us".to_owned(), "200000"),
                ("net/ipv4/fib_multipath_hash_policy".to_owned(), "1"),
            ]);
            tool::settings(&namespace, &settings).await?;
            batch(Tool::Ip, Some(&namespace), &["link set lo up".to_owned()]).await?;
        }
        let mut lines = Vec::new();
        for network in self.topology.networks() {
            lines.push(format!(
                "link add br{network} mtu {} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
                self.topology.mtu
            ));
            lines.push(format!("link set br{network} up"));
        }
        batch(Tool::Ip, Some(&self.switch()), &lines).await
    }

    /// Veth pairs with segmentation off, one end in the switch.
    async fn links(&self, side: Side) -> Result<(), LabError> {
        let (inside, mtu) = (self.namespace(side), self.topology.mtu);
        let mut lines = Vec::new();
        let mut there = Vec::new();
        for (number, port) in self.topology.ports(side).iter().enumerate() {
            let (name, end) = (&port.name, side.switch_port(number));
            lines.push(format!(
                "link add {end} mtu {mtu} gso_max_segs 1 type veth peer name {name} mtu {mtu} gso_max_segs 1 netns {inside}"
            ));
            lines.push(format!("link set {end} master br{} up", port.network));
            there.push(format!("link set {name} up"));
        }
        batch(Tool::Ip, Some(&self.switch()), &lines).await?;
        let near = self.ethtool(side.namespace())?;
        let far = self.ethtool(SWITCH)?;
        for (number, port) in self.topology.ports(side).iter().enumerate() {
            offloads_off(&near, &port.name)?;
            offloads_off(&far, &side.switch_port(number))?;
        }
        batch(Tool::Ip, Some(&inside), &there).await
    }

    fn ethtool(&self, part: &str) -> Result<Ethtool, LabError> {
        let opened = Ethtool::of_namespace(&self.claim.namespace_path(part));
        opened.map_err(|error| LabError::system("entering a namespace", &error))
    }

    /// An address for each NIC, and a table by which its packets leave through it.
    async fn addresses(&self, side: Side) -> Result<(), LabError> {
        let mut lines = Vec::new();
        for (number, port) in self.topology.ports(side).iter().enumerate() {
            let (ip, name) = (self.topology.address(side, number), &port.name);
            let (network, table) = (port.network, 100 + number);
            lines.push(format!("addr add {ip}/24 dev {name}"));
            lines.push(format!("rule add from {ip} table {table}"));
            lines.push(format!(
                "route add 10.77.{network}.0/24 dev {name} src {ip} table {table}"
            ));
        }
        batch(Tool::Ip, Some(&self.namespace(side)), &lines).await
    }

    async fn queues(&self, side: Side) -> Result<(), LabError> {
        let (mut near, mut far) = (Vec::new(), Vec::new());
        for (number, port) in self.topology.ports(side).iter().enumerate() {
            near.push(nic_queue("add", &port.name, port.rate));
            far.push(self.switch_queue("add", &side.switch_port(number), port.rate));
        }
        batch(Tool::Tc, Some(&self.namespace(side)), &near).await?;
        batch(Tool::Tc, Some(&self.switch()), &far).await
    }

    pub(crate) fn switch_queue(&self, verb: &str, name: &str, rate: Rate) -> String {
        let (bits, kib) = (rate.bits(), self.topology.buffer_kib);
        format!("qdisc {verb} dev {name} root tbf rate {bits}bit burst {BURST} limit {kib}kb")
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

pub(crate) fn nic_queue(verb: &str, name: &str, rate: Rate) -> String {
    let bits = rate.bits();
    format!("qdisc {verb} dev {name} root tbf rate {bits}bit burst {BURST} limit {NIC_QUEUE}")
}

fn offloads_off(ethtool: &Ethtool, name: &str) -> Result<(), LabError> {
    let all = [
        Offload::Segmentation,
        Offload::GenericSegmentation,
        Offload::GenericReceive,
    ];
    for offload in all {
        let done = ethtool.set_offload(name, offload, false);
        done.map_err(|error| LabError::system("turning segmentation off", &error))?;
    }
    Ok(())
}
