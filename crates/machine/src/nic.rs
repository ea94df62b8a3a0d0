//! One interface, with what sysfs says of it.

use crate::card;
use crate::roots::Roots;
use env::{DriverFacts, Files, InterfaceAddress, InterfaceLink};
use paths::{HostAddress, Speed};
use std::path::{Path, PathBuf};

/// What an interface is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// A port of a card.
    Physical,
    /// Leads back to this host.
    Loopback,
    /// A tagged network on another interface.
    Vlan,
    /// Several links that act as one: a bond or team.
    Team,
    /// A switch in software.
    Bridge,
    /// Anything else: a virtual pair's end, a tunnel, a tap.
    #[default]
    Virtual,
}

/// Whether both ends may send at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duplex {
    /// They may.
    Full,
    /// One at a time.
    Half,
}

/// An interface.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Nic {
    /// Its name, such as `eth1`.
    pub name: String,
    /// What it is made of.
    pub kind: Kind,
    /// The interfaces that it stands on: of a VLAN its trunk, of a team its members, of a bridge
    /// its ports.
    pub lower: Vec<String>,
    /// What fails with it (`0000:03:00`, a PCI device); `None`: it is no hardware.
    pub card: Option<String>,
    /// NUMA node of its card.
    pub numa: Option<u16>,
    /// Line speed.
    pub speed: Option<Speed>,
    /// What the link negotiated; `None` where the driver does not say.
    pub duplex: Option<Duplex>,
    /// The administrator has it up.
    pub up: bool,
    /// It is up and has a signal from its other end.
    pub carrier: bool,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// Its addresses, without those that are good on the link only.
    pub addresses: Vec<HostAddress>,
    /// What its driver reports.
    pub driver: DriverFacts,
    /// `arp_ignore`: 0 answers for the addresses of other interfaces too.
    pub arp_ignore: Option<u8>,
    /// `rp_filter`: 1 drops what comes in on another interface than the answer would leave by.
    pub rp_filter: Option<u8>,
    /// Bytes received and sent since it came up.
    pub bytes: (u64, u64),
    /// Packets dropped and packets in error, of both directions.
    pub dropped: u64,
}

/// Reads one interface. What is not there is absent.
pub(crate) async fn read(
    files: &dyn Files,
    roots: &Roots,
    link: &InterfaceLink,
    addresses: &[InterfaceAddress],
) -> Nic {
    let dir = roots.sys.join("class/net").join(&link.name);
    let hardware = match files.resolve(&dir).await {
        Ok(real) => card::hardware(&real),
        Err(_) => card::NicHardware::default(),
    };
    let (lower, has) = entries(files, &dir).await;
    let mut nic = Nic {
        name: link.name.clone(),
        kind: kind(files, &dir, link, &has, &lower).await,
        lower,
        card: hardware.card,
        up: link.up,
        carrier: link.carrier,
        mtu: link.mtu,
        addresses: own(addresses, &link.name),
        ..Nic::default()
    };
    if let Some(function) = &hardware.function {
        if let Ok(physical) = files.resolve(&function.join("physfn")).await {
            nic.card = card::card_of_function(&physical).or(nic.card);
        }
        nic.numa = number(files, &function.join("numa_node")).await;
    }
    // -1 and an error both mean: unknown, or no carrier.
    let megabits: Option<u64> = number(files, &dir.join("speed")).await;
    nic.speed = megabits.filter(|it| *it > 0).map(Speed::megabits);
    nic.duplex = match text(files, &dir.join("duplex")).await.as_deref() {
        Some("full") => Some(Duplex::Full),
        Some("half") => Some(Duplex::Half),
        _ => None,
    };
    let conf = roots.proc.join("sys/net/ipv4/conf").join(&link.name);
    nic.arp_ignore = number(files, &conf.join("arp_ignore")).await;
    nic.rp_filter = number(files, &conf.join("rp_filter")).await;
    let counters = dir.join("statistics");
    let received = number(files, &counters.join("rx_bytes")).await;
    let sent = number(files, &counters.join("tx_bytes")).await;
    nic.bytes = (received.unwrap_or(0), sent.unwrap_or(0));
    for name in ["rx_dropped", "tx_dropped", "rx_errors", "tx_errors"] {
        let count: Option<u64> = number(files, &counters.join(name)).await;
        nic.dropped = nic.dropped.saturating_add(count.unwrap_or(0));
    }
    nic
}

/// The interfaces below this one, and the names in its directory.
async fn entries(files: &dyn Files, dir: &Path) -> (Vec<String>, Vec<PathBuf>) {
    let names: Vec<PathBuf> = match files.list(dir).await {
        Ok(found) => found.into_iter().map(|it| it.name).collect(),
        Err(_) => Vec::new(),
    };
    let lower = names
        .iter()
        .filter_map(|name| name.to_str()?.strip_prefix("lower_"));
    (lower.map(str::to_owned).collect(), names)
}

async fn kind(
    files: &dyn Files,
    dir: &Path,
    link: &InterfaceLink,
    names: &[PathBuf],
    lower: &[String],
) -> Kind {
    let has = |name: &str| names.iter().any(|it| it == Path::new(name));
    if link.loopback {
        return Kind::Loopback;
    }
    if has("bonding") {
        return Kind::Team;
    }
    if has("bridge") {
        return Kind::Bridge;
    }
    if has("device") {
        return Kind::Physical;
    }
    let reported = text(files, &dir.join("uevent")).await.unwrap_or_default();
    let is_vlan = reported.lines().any(|line| line == "DEVTYPE=vlan");
    match lower.len() {
        _ if is_vlan => Kind::Vlan,
        0 | 1 => Kind::Virtual,
        // The team driver marks itself by nothing but its members.
        _ => Kind::Team,
    }
}

fn own(addresses: &[InterfaceAddress], name: &str) -> Vec<HostAddress> {
    let own = addresses.iter().filter(|it| it.interface == name);
    let usable = own.filter(|it| !is_link_local(it));
    let made = usable.map(|it| HostAddress {
        ip: it.address,
        prefix: it.prefix_bits,
    });
    made.collect()
}

/// The same network on every link: it says nothing of which NIC reaches whom.
fn is_link_local(it: &InterfaceAddress) -> bool {
    match it.address {
        std::net::IpAddr::V4(v4) => v4.is_link_local(),
        std::net::IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// What a file says, where it says something.
pub(crate) async fn text(files: &dyn Files, path: &Path) -> Option<String> {
    let reported = files.read_fact(path).await.ok()?;
    (!reported.is_empty()).then_some(reported)
}

/// A file that is one number.
pub(crate) async fn number<T: std::str::FromStr>(files: &dyn Files, path: &Path) -> Option<T> {
    text(files, path).await?.trim().parse().ok()
}
