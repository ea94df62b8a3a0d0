//! What is known of the host's ports and the target's: the planner's only input besides its
//! options.
//!
//! The host's half comes from the system (PCI function, NUMA node, speed, carrier, addresses, MTU),
//! the target's from discovery, REPORT TARGET PORT GROUPS and, with our own target, a vendor text
//! key; a file may override either ([`crate::overrides`]).

use scsi::alua::AccessState;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// Line speed in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize)]
pub struct Speed(pub u64);

impl Speed {
    /// So many Mb/s.
    #[must_use]
    pub const fn megabits(megabits: u64) -> Self {
        Self(megabits.saturating_mul(1_000_000))
    }

    /// So many Gb/s.
    #[must_use]
    pub const fn gigabits(gigabits: u64) -> Self {
        Self(gigabits.saturating_mul(1_000_000_000))
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const GIGA: u64 = 1_000_000_000;
        match self.0 {
            bits if bits >= GIGA && bits.is_multiple_of(GIGA) => write!(f, "{} Gb/s", bits / GIGA),
            bits if bits.is_multiple_of(1_000_000) => write!(f, "{} Mb/s", bits / 1_000_000),
            bits => write!(f, "{bits} b/s"),
        }
    }
}

/// Not a speed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadSpeed(String);

impl fmt::Display for BadSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is no speed: write it like 10Gb/s, 2500Mb/s or 100M",
            self.0
        )
    }
}

impl std::error::Error for BadSpeed {}

impl FromStr for Speed {
    type Err = BadSpeed;

    /// `10Gb/s`, `2500Mb/s`, `100M`, `1000000`; never zero.
    fn from_str(text: &str) -> Result<Self, BadSpeed> {
        let bad = || BadSpeed(text.to_owned());
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let factor = match unit.trim().trim_end_matches("b/s") {
            "" => 1,
            "k" | "K" => 1_000,
            "M" => 1_000_000,
            "G" => 1_000_000_000,
            _ => return Err(bad()),
        };
        let bits = number
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(factor));
        bits.filter(|bits| *bits > 0).map(Self).ok_or_else(bad)
    }
}

impl TryFrom<String> for Speed {
    type Error = BadSpeed;

    fn try_from(text: String) -> Result<Self, BadSpeed> {
        text.parse()
    }
}

impl<'de> Deserialize<'de> for Speed {
    /// As it is written in documents, in bits per second, or as people write it.
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;

        impl serde::de::Visitor<'_> for Either {
            type Value = Speed;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a speed such as \"10Gb/s\"")
            }

            fn visit_u64<E: serde::de::Error>(self, bits: u64) -> Result<Speed, E> {
                Ok(Speed(bits))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Speed, E> {
                text.parse().map_err(E::custom)
            }
        }

        from.deserialize_any(Either)
    }
}

/// An IP network: `10.1.0.0/24`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Subnet {
    address: IpAddr,
    prefix: u8,
}

impl Subnet {
    /// The network that `address` stands in; a prefix that is too long is cut to the whole address.
    #[must_use]
    pub fn of(address: IpAddr, prefix: u8) -> Self {
        let (address, prefix) = match address {
            IpAddr::V4(v4) => {
                let prefix = prefix.min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
                (IpAddr::V4((u32::from(v4) & mask).into()), prefix)
            }
            IpAddr::V6(v6) => {
                let prefix = prefix.min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
                (IpAddr::V6((u128::from(v6) & mask).into()), prefix)
            }
        };
        Self { address, prefix }
    }

    /// Whether `address` stands in it.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && Self::of(address, self.prefix) == self
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl FromStr for Subnet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(address, prefix)| {
            let address: IpAddr = address.parse().ok()?;
            let longest = if address.is_ipv4() { 32 } else { 128 };
            let prefix = prefix.parse().ok().filter(|it| *it <= longest)?;
            Some(Self::of(address, prefix))
        });
        parsed.ok_or_else(|| format!("'{text}' is no subnet: write it like 10.1.0.0/24"))
    }
}

impl Serialize for Subnet {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Subnet {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// An address of a host port, with the length of its network's prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostAddress {
    /// The address.
    pub ip: IpAddr,
    /// Prefix length of its network.
    pub prefix: u8,
}

/// One physical port of the host, or one team of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostPort {
    /// The system's name, unique: `eth2`.
    pub name: String,
    /// What fails with it: the PCI device (bus and device number) whose function it is.
    pub card: String,
    /// NUMA node of the card.
    pub numa: Option<u16>,
    /// Speed of the port, all members of a team together; `None`: the system does not know.
    pub speed: Option<Speed>,
    /// Equal links behind it: 1, or the members of a team, of which one stream uses one.
    pub links: u16,
    /// Whether it has a carrier.
    pub link: bool,
    /// Largest IP packet.
    pub mtu: u32,
    /// Its addresses, those of VLANs on it included.
    pub addresses: Vec<HostAddress>,
    /// The fabric that it is plugged into, where the administrator says so; else each subnet is
    /// one.
    pub fabric: Option<String>,
    /// False: the administrator keeps iSCSI off it.
    pub enabled: bool,
}

/// One physical port of the target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetPort {
    /// Unique; where nothing better is known, its first portal.
    pub name: String,
    /// Where it listens.
    pub portals: Vec<SocketAddr>,
    /// Target portal group tag.
    pub portal_group: u16,
    /// Asymmetric access state of the LUN through it.
    pub access: AccessState,
    /// The controller; `None`: the portal group stands for it.
    pub controller: Option<String>,
    /// The card in the controller; `None`: one card for each controller.
    pub card: Option<String>,
    /// Speed of the port; `None`: taken to be that of the fastest host port that reaches it.
    pub speed: Option<Speed>,
    /// Equal links behind it, as for a host port.
    pub links: u16,
    /// Largest IP packet, where known.
    pub mtu: Option<u32>,
    /// How many more sessions it takes, ours that are there already included; `None`: no limit
    /// known.
    pub sessions_left: Option<u32>,
    /// What it had to spare when it was asked; `None`: nobody reports it.
    pub free: Option<Speed>,
    /// The fabric that it is plugged into, where somebody says so.
    pub fabric: Option<String>,
    /// False: the administrator keeps this host off it.
    pub enabled: bool,
}

/// Subnets that fail together and are to be distinguished from others: usually one switch each.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fabric {
    /// Unique.
    pub name: String,
    /// What belongs to it.
    pub subnets: Vec<Subnet>,
}

/// Everything that a plan is made from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// Name of the initiator node: spreads hosts that see the same ports over them.
    pub initiator: String,
    /// The host's ports.
    pub hosts: Vec<HostPort>,
    /// The target's ports.
    pub targets: Vec<TargetPort>,
    /// Named fabrics; a subnet in none of them is a fabric by itself.
    pub fabrics: Vec<Fabric>,
}

/// A path: a host port and a target port. The same pair keeps its name whatever else changes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PathName {
    /// [`HostPort::name`].
    pub host: String,
    /// [`TargetPort::name`].
    pub target: String,
}

impl From<PathName> for String {
    fn from(name: PathName) -> Self {
        name.to_string()
    }
}

impl TryFrom<String> for PathName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for PathName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}>{}", self.host, self.target)
    }
}

impl FromStr for PathName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text
            .split_once('>')
            .filter(|(host, target)| !host.is_empty() && !target.is_empty());
        let (host, target) = parts
            .ok_or_else(|| format!("'{text}' is no path: write it like eth0>10.0.0.1:3260"))?;
        Ok(Self {
            host: host.to_owned(),
            target: target.to_owned(),
        })
    }
}

/// Something that fails as a whole and takes its paths with it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum Element {
    /// A host port.
    HostPort(String),
    /// A card of the host.
    HostCard(String),
    /// A target port.
    TargetPort(String),
    /// A card of a controller: `controller/card`.
    TargetCard(String),
    /// A controller of the target.
    Controller(String),
    /// A fabric.
    Fabric(String),
    /// One path by itself, nobody knows why: `eth0>10.0.0.1:3260`.
    Path(String),
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = match self {
            Self::HostPort(name) => ("host-port", name),
            Self::HostCard(name) => ("host-card", name),
            Self::TargetPort(name) => ("target-port", name),
            Self::TargetCard(name) => ("target-card", name),
            Self::Controller(name) => ("controller", name),
            Self::Fabric(name) => ("fabric", name),
            Self::Path(name) => ("path", name),
        };
        write!(f, "{kind}:{name}")
    }
}

impl FromStr for Element {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, name) = text.split_once(':').unwrap_or((text, ""));
        let make = match kind {
            "host-port" => Self::HostPort,
            "host-card" => Self::HostCard,
            "target-port" => Self::TargetPort,
            "target-card" => Self::TargetCard,
            "controller" => Self::Controller,
            "fabric" => Self::Fabric,
            "path" => Self::Path,
            _ => {
                return Err(format!(
                    "'{text}' is no element: host-port:, host-card:, target-port:, target-card:, controller:, fabric: or \
                     path:, and a name"
                ));
            }
        };
        if name.is_empty() {
            return Err(format!("'{text}' lacks a name after the colon"));
        }
        Ok(make(name.to_owned()))
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn speeds_are_read_as_people_write_them_and_nothing_else_is() {
        let read = |text: &str| text.parse::<Speed>().ok();
        assert_eq!(read("10Gb/s"), Some(Speed::gigabits(10)));
        assert_eq!(read("10 Gb/s"), Some(Speed::gigabits(10)));
        assert_eq!(read("2500M"), Some(Speed::megabits(2500)));
        assert_eq!(read("1000"), Some(Speed(1000)));
        for bad in [
            "",
            "0",
            "Gb/s",
            "10GB",
            "-1G",
            "99999999999999999999G",
            "1.5G",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert_eq!(Speed::megabits(2500).to_string(), "2500 Mb/s");
        assert_eq!(Speed::gigabits(25).to_string(), "25 Gb/s");
    }

    #[test]
    fn an_address_is_in_its_own_network_and_in_no_other_family() {
        let net: Subnet = "10.1.2.3/24".parse().unwrap();
        assert_eq!(net.to_string(), "10.1.2.0/24");
        assert!(net.contains("10.1.2.255".parse().unwrap()));
        assert!(!net.contains("10.1.3.0".parse().unwrap()));
        assert!(!net.contains("::ffff:10.1.2.3".parse().unwrap()));
        let all: Subnet = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("255.1.1.1".parse().unwrap()));
        assert!("10.0.0.0/33".parse::<Subnet>().is_err());
        let six: Subnet = "fd00::1/64".parse().unwrap();
        assert!(
            six.contains("fd00::ffff".parse().unwrap())
                && !six.contains("fd01::1".parse().unwrap())
        );
    }

    #[test]
    fn paths_and_elements_go_round_through_their_names() {
        let path: PathName = "eth0>10.0.0.1:3260".parse().unwrap();
        assert_eq!(path.to_string(), "eth0>10.0.0.1:3260");
        assert!("eth0".parse::<PathName>().is_err());
        for text in [
            "host-port:eth0",
            "host-card:0000:03:00",
            "controller:A",
            "fabric:10.0.0.0/24",
        ] {
            assert_eq!(text.parse::<Element>().unwrap().to_string(), text);
        }
        assert!("nic:eth0".parse::<Element>().is_err());
        assert!("fabric:".parse::<Element>().is_err());
    }
}
