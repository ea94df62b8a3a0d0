//! The host's ports as the planner wants them: interfaces with addresses, on the hardware that
//! carries them.

use crate::nic::{Kind, Nic};
use crate::read::Machine;
use paths::facts::Facts;
use paths::{HostAddress, HostPort, Speed};
use std::fmt;
use std::net::IpAddr;

/// `--from` names something that is not here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownPort {
    /// What was asked for.
    pub asked: String,
    /// Addresses and NICs of this host that could be named.
    pub known: Vec<String>,
}

impl fmt::Display for UnknownPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "this host has no interface and no address {}; it has {}",
            self.asked,
            self.known.join(", ")
        )
    }
}

impl std::error::Error for UnknownPort {}

impl Machine {
    /// The host's half of the planner's facts: its ports, for an initiator of this name. `from`
    /// keeps it to these interfaces and addresses; none: all that have an address.
    ///
    /// # Errors
    /// [`UnknownPort`] where `from` names something that is not here.
    pub fn facts(&self, initiator: &str, from: &[String]) -> Result<Facts, UnknownPort> {
        Ok(Facts {
            initiator: initiator.to_owned(),
            hosts: self.ports_from(from)?,
            ..Facts::default()
        })
    }

    /// Every port that has an address, sorted by name: VLANs and bridges are folded into what
    /// carries them.
    #[must_use]
    pub fn ports(&self) -> Vec<HostPort> {
        let mut ports: Vec<HostPort> = Vec::new();
        for nic in self.nics.iter().filter(|nic| !nic.addresses.is_empty()) {
            let base = self.base(nic);
            let known = ports.iter().position(|port| port.name == base.name);
            let at = known.unwrap_or_else(|| {
                ports.push(self.port(base));
                ports.len() - 1
            });
            let port = &mut ports[at];
            port.addresses.extend(&nic.addresses);
            // What goes through a VLAN may be smaller than what the trunk takes.
            port.mtu = port.mtu.min(nic.mtu);
            port.link &= nic.carrier;
        }
        ports.sort_by(|a, b| a.name.cmp(&b.name));
        ports
    }

    /// As [`Machine::ports`], only these interfaces and addresses, if any are named.
    ///
    /// # Errors
    /// [`UnknownPort`] where one is not here.
    pub fn ports_from(&self, from: &[String]) -> Result<Vec<HostPort>, UnknownPort> {
        let all = self.ports();
        if from.is_empty() {
            return Ok(all);
        }
        let mut chosen: Vec<HostPort> = Vec::new();
        for asked in from {
            let (name, keep) = self.find(&all, asked)?;
            let port = all.iter().find(|port| port.name == name);
            let port = port.expect("found by its name");
            let at = chosen
                .iter()
                .position(|port| port.name == name)
                .unwrap_or_else(|| {
                    chosen.push(HostPort {
                        addresses: Vec::new(),
                        ..port.clone()
                    });
                    chosen.len() - 1
                });
            for address in keep {
                if !chosen[at].addresses.contains(&address) {
                    chosen[at].addresses.push(address);
                }
            }
        }
        chosen.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(chosen)
    }

    /// The port that has what was asked for, and which of its addresses that means.
    fn find(
        &self,
        all: &[HostPort],
        asked: &str,
    ) -> Result<(String, Vec<HostAddress>), UnknownPort> {
        let address: Option<IpAddr> = asked.parse().ok();
        for port in all {
            if port.name == asked {
                return Ok((asked.to_owned(), port.addresses.clone()));
            }
            let one = port.addresses.iter().find(|at| Some(at.ip) == address);
            if let Some(one) = one {
                return Ok((port.name.clone(), vec![*one]));
            }
        }
        // An interface on top of another: its own addresses only.
        let upper = self.nic(asked).filter(|nic| !nic.addresses.is_empty());
        if let Some(nic) = upper {
            return Ok((self.base(nic).name.clone(), nic.addresses.clone()));
        }
        let addresses = all
            .iter()
            .flat_map(|port| port.addresses.iter().map(|at| at.ip.to_string()));
        let known = all.iter().map(|port| port.name.clone()).chain(addresses);
        Err(UnknownPort {
            asked: asked.to_owned(),
            known: known.collect(),
        })
    }

    /// What carries an interface: itself, or what it stands on, as far down as that is one.
    fn base<'a>(&'a self, nic: &'a Nic) -> &'a Nic {
        let mut at = nic;
        // The kernel nests at most 8 interfaces.
        for _ in 0..8 {
            let below: Vec<&Nic> = at.lower.iter().filter_map(|it| self.nic(it)).collect();
            let next = match (at.kind, below.as_slice()) {
                (Kind::Team, _) => None,
                (_, [one]) => Some(*one),
                // Guests hang on a bridge too; one port to the outside is what carries it.
                (Kind::Bridge, several) => {
                    let mut outside = several.iter().filter(|it| self.is_outside(it));
                    outside.next().filter(|_| outside.next().is_none()).copied()
                }
                _ => None,
            };
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        at
    }

    /// Whether it leads out of this host: hardware, or a VLAN or team on hardware.
    fn is_outside(&self, nic: &Nic) -> bool {
        nic.card.is_some()
            || matches!(nic.kind, Kind::Team | Kind::Vlan)
                && nic
                    .lower
                    .iter()
                    .any(|it| self.nic(it).is_some_and(|it| it.card.is_some()))
    }

    fn port(&self, nic: &Nic) -> HostPort {
        let members: Vec<&Nic> = match nic.kind {
            Kind::Team => nic.lower.iter().filter_map(|it| self.nic(it)).collect(),
            Kind::Physical | Kind::Loopback | Kind::Vlan | Kind::Bridge | Kind::Virtual => {
                Vec::new()
            }
        };
        let mut cards: Vec<&str> = match members.as_slice() {
            [] => nic.card.as_deref().into_iter().collect(),
            members => members.iter().filter_map(|it| it.card.as_deref()).collect(),
        };
        cards.sort_unstable();
        cards.dedup();
        let card = if cards.is_empty() {
            nic.name.clone()
        } else {
            cards.join("+")
        };
        HostPort {
            card,
            numa: members
                .first()
                .map_or(nic.numa, |first| nic.numa.or(first.numa)),
            speed: nic.speed.or_else(|| team_speed(&members)),
            links: u16::try_from(members.len().max(1)).unwrap_or(u16::MAX),
            link: nic.carrier,
            mtu: nic.mtu,
            addresses: Vec::new(),
            fabric: None,
            enabled: true,
            name: nic.name.clone(),
        }
    }
}

/// All members' together; unknown where one is.
fn team_speed(members: &[&Nic]) -> Option<Speed> {
    let speeds: Option<Vec<u64>> = members.iter().map(|it| Some(it.speed?.0)).collect();
    let sum: u64 = speeds?.into_iter().fold(0, u64::saturating_add);
    (sum > 0).then_some(Speed(sum))
}
