//! Machines of a bed and the wires from their NICs to the switch, each by itself.

use crate::claim::Claim;
use crate::error::LabError;
use crate::port::{Harm, Port};
use crate::rate::Rate;
use crate::tool::{self, Tool, batch};
use env::real::{Ethtool, Offload};
use std::net::IpAddr;

/// What a NIC queues before it pushes back; deep.
const NIC_QUEUE: &str = "4mb";
/// Bytes that tbf lets through at once. At least a jumbo frame.
const BURST: &str = "20kb";
/// The namespace that all wires lead to.
pub(crate) const SWITCH: &str = "switch";

/// A NIC of a machine, with its wire.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wire {
    /// The NIC.
    pub(crate) port: Port,
    /// Its other end, in the switch.
    pub(crate) end: String,
    /// The NIC's address.
    pub(crate) ip: IpAddr,
}

/// What all wires of a bed have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Medium {
    /// What a port of the switch queues before it drops, in KiB.
    pub(crate) buffer_kib: u32,
    /// Largest IP packet.
    pub(crate) mtu: u32,
}

/// Namespaces for machines, `parts`, and a switch with a bridge for each of `networks`.
pub(crate) async fn machines(
    claim: &Claim,
    parts: &[&str],
    networks: &[u8],
    medium: Medium,
) -> Result<(), LabError> {
    let parts: Vec<&str> = parts.iter().copied().chain([SWITCH]).collect();
    let add = parts.iter();
    let add: Vec<String> = add
        .map(|part| format!("netns add {}", claim.namespace(part)))
        .collect();
    batch(Tool::Ip, None, &add).await?;
    for part in parts {
        prepare(&claim.namespace(part)).await?;
    }
    let mut lines = Vec::new();
    for network in networks {
        lines.push(format!(
            "link add br{network} mtu {} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
            medium.mtu
        ));
        lines.push(format!("link set br{network} up"));
    }
    batch(Tool::Ip, Some(&claim.namespace(SWITCH)), &lines).await
}

async fn prepare(namespace: &str) -> Result<(), LabError> {
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
    tool::settings(namespace, &settings).await?;
    batch(Tool::Ip, Some(namespace), &["link set lo up".to_owned()]).await
}

/// Plugs a machine in: veth pairs with segmentation off, addresses, queues.
pub(crate) async fn plug(
    claim: &Claim,
    part: &str,
    wires: &[Wire],
    medium: Medium,
) -> Result<(), LabError> {
    links(claim, part, wires, medium).await?;
    addresses(&claim.namespace(part), wires).await?;
    queues(claim, part, wires, medium).await
}

/// Veth pairs, one end in the switch.
async fn links(claim: &Claim, part: &str, wires: &[Wire], medium: Medium) -> Result<(), LabError> {
    let (inside, mtu) = (claim.namespace(part), medium.mtu);
    let mut lines = Vec::new();
    let mut there = Vec::new();
    for wire in wires {
        let (name, end) = (&wire.port.name, &wire.end);
        lines.push(format!(
            "link add dev {end} mtu {mtu} gso_max_segs 1 type veth peer name {name} mtu {mtu} gso_max_segs 1 netns {inside}"
        ));
        lines.push(format!(
            "link set dev {end} master br{} up",
            wire.port.network
        ));
        there.push(format!("link set dev {name} up"));
    }
    batch(Tool::Ip, Some(&claim.namespace(SWITCH)), &lines).await?;
    let near = ethtool(claim, part)?;
    let far = ethtool(claim, SWITCH)?;
    for wire in wires {
        offloads_off(&near, &wire.port.name)?;
        offloads_off(&far, &wire.end)?;
    }
    batch(Tool::Ip, Some(&inside), &there).await
}

fn ethtool(claim: &Claim, part: &str) -> Result<Ethtool, LabError> {
    let opened = Ethtool::of_namespace(&claim.namespace_path(part));
    opened.map_err(|error| LabError::system("entering a namespace", &error))
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

/// An address for each NIC, and a table by which its packets leave through it.
async fn addresses(namespace: &str, wires: &[Wire]) -> Result<(), LabError> {
    let mut lines = Vec::new();
    for (number, wire) in wires.iter().enumerate() {
        let (ip, name) = (wire.ip, &wire.port.name);
        let (network, table) = (wire.port.network, 100 + number);
        lines.push(format!("addr add {ip}/24 dev {name}"));
        lines.push(format!("rule add from {ip} table {table}"));
        lines.push(format!(
            "route add 10.77.{network}.0/24 dev {name} src {ip} table {table}"
        ));
    }
    batch(Tool::Ip, Some(namespace), &lines).await
}

async fn queues(claim: &Claim, part: &str, wires: &[Wire], medium: Medium) -> Result<(), LabError> {
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for wire in wires {
        near.push(nic_queue("add", &wire.port.name, wire.port.rate));
        far.push(switch_queue("add", &wire.end, wire.port.rate, medium));
    }
    batch(Tool::Tc, Some(&claim.namespace(part)), &near).await?;
    batch(Tool::Tc, Some(&claim.namespace(SWITCH)), &far).await
}

fn switch_queue(verb: &str, name: &str, rate: Rate, medium: Medium) -> String {
    let (bits, kib) = (rate.bits(), medium.buffer_kib);
    format!("qdisc {verb} dev {name} root tbf rate {bits}bit burst {BURST} limit {kib}kb")
}

fn nic_queue(verb: &str, name: &str, rate: Rate) -> String {
    let bits = rate.bits();
    format!("qdisc {verb} dev {name} root tbf rate {bits}bit burst {BURST} limit {NIC_QUEUE}")
}

/// A queue that has room for no packet.
fn no_queue(name: &str) -> String {
    format!("qdisc change dev {name} root tbf rate 8kbit burst 10b limit 1b")
}

/// Does `harm` to `wires` of a machine at the same moment.
pub(crate) async fn harm(
    claim: &Claim,
    part: &str,
    wires: &[&Wire],
    harm: Harm,
    medium: Medium,
) -> Result<(), LabError> {
    let (switch, machine) = (claim.namespace(SWITCH), claim.namespace(part));
    let ends = wires.iter().map(|wire| &wire.end);
    let names = wires.iter().map(|wire| &wire.port.name);
    match harm {
        Harm::Cut => {
            let lines: Vec<String> = ends.map(|it| format!("link set dev {it} down")).collect();
            batch(Tool::Ip, Some(&switch), &lines).await
        }
        Harm::BlackHole => {
            let lines: Vec<String> = ends
                .map(|it| format!("link set dev {it} nomaster"))
                .collect();
            batch(Tool::Ip, Some(&switch), &lines).await
        }
        Harm::Deaf => {
            let lines: Vec<String> = ends.map(|it| no_queue(it)).collect();
            batch(Tool::Tc, Some(&switch), &lines).await
        }
        Harm::Mute => {
            let lines: Vec<String> = names.map(|it| no_queue(it)).collect();
            batch(Tool::Tc, Some(&machine), &lines).await
        }
        Harm::Slow(rate) => shape(claim, part, wires, |_| rate, medium).await,
    }
}

/// Brings wires back to what they were.
pub(crate) async fn mend(
    claim: &Claim,
    part: &str,
    wires: &[&Wire],
    harm: Harm,
    medium: Medium,
) -> Result<(), LabError> {
    let switch = claim.namespace(SWITCH);
    match harm {
        Harm::Cut => {
            let ends = wires.iter().map(|it| format!("link set dev {} up", it.end));
            batch(Tool::Ip, Some(&switch), &ends.collect::<Vec<String>>()).await
        }
        Harm::BlackHole => {
            let back = wires.iter();
            let back =
                back.map(|it| format!("link set dev {} master br{}", it.end, it.port.network));
            batch(Tool::Ip, Some(&switch), &back.collect::<Vec<String>>()).await
        }
        Harm::Deaf | Harm::Mute | Harm::Slow(_) => {
            shape(claim, part, wires, |wire| wire.port.rate, medium).await
        }
    }
}

/// Gives both directions of wires another rate.
async fn shape(
    claim: &Claim,
    part: &str,
    wires: &[&Wire],
    rate: impl Fn(&Wire) -> Rate,
    medium: Medium,
) -> Result<(), LabError> {
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for wire in wires {
        near.push(nic_queue("change", &wire.port.name, rate(wire)));
        far.push(switch_queue("change", &wire.end, rate(wire), medium));
    }
    batch(Tool::Tc, Some(&claim.namespace(part)), &near).await?;
    batch(Tool::Tc, Some(&claim.namespace(SWITCH)), &far).await
}
