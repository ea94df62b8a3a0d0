//! Facts for the planner: this host's ports, the target's portals, and what the administrator's
//! file adds.

use crate::discover::Portal;
use crate::error::HostError;
use iscsi::extension_keys::nic::NicRecord;
use machine::{Machine, Nic};
use paths::facts::Fabric;
use paths::health::AccessState;
use paths::overrides::Overrides;
use paths::{Facts, HostAddress, HostPort, Speed, TargetPort};
use std::net::IpAddr;

/// Name of the loopback interface's network, whose every address this host has.
const LOOPBACK_PREFIX: u8 = 8;

/// What this host's ports are, as `--from` keeps them. Each loopback address is a port by itself:
/// nothing is shared there.
pub(crate) fn host_ports(machine: &Machine, from: &[String]) -> Result<Vec<HostPort>, HostError> {
    let (loopback, others): (Vec<&String>, Vec<&String>) =
        from.iter().partition(|it| loopback(it).is_some());
    let others: Vec<String> = others.into_iter().cloned().collect();
    let mut ports = if others.is_empty() && !loopback.is_empty() {
        Vec::new()
    } else {
        let ports = machine.ports_from(&others);
        ports.map_err(|error| {
            HostError::usage(
                error.to_string(),
                "--from takes an address or an interface of this host",
            )
        })?
    };
    for asked in loopback {
        let known = ports.iter().any(|port| port.name == *asked);
        if let Some(ip) = self::loopback(asked).filter(|_| !known) {
            ports.push(loopback_port(asked, ip));
        }
    }
    Ok(ports)
}

fn loopback(text: &str) -> Option<IpAddr> {
    text.parse().ok().filter(IpAddr::is_loopback)
}

fn loopback_port(name: &str, ip: IpAddr) -> HostPort {
    HostPort {
        name: name.to_owned(),
        card: name.to_owned(),
        numa: None,
        speed: None,
        links: 1,
        link: true,
        mtu: 65_536,
        addresses: vec![HostAddress {
            ip,
            prefix: if ip.is_ipv4() { LOOPBACK_PREFIX } else { 128 },
        }],
        fabric: None,
        enabled: true,
    }
}

/// Everything that the plan is made from.
pub(crate) fn facts(
    initiator: &str,
    mut hosts: Vec<HostPort>,
    portals: &[Portal],
    overrides: &Overrides,
) -> Result<Facts, HostError> {
    let inside = portals.iter().any(|it| it.address.ip().is_loopback());
    if !inside {
        // The loopback interface leads nowhere else, whatever the routes say.
        hosts.retain(|port| !port.addresses.iter().all(|at| at.ip.is_loopback()));
    }
    let mut facts = Facts {
        initiator: initiator.to_owned(),
        hosts,
        targets: target_ports(portals),
        fabrics: Vec::new(),
    };
    overrides.apply(&mut facts).map_err(|error| {
        HostError::usage(
            error.to_string(),
            "correct the facts file; names are those of `causeway path plan URL`",
        )
    })?;
    Ok(facts)
}

/// The target's ports. Portals that the target says to share one are one, others are ports by
/// themselves.
fn target_ports(portals: &[Portal]) -> Vec<TargetPort> {
    let mut ports: Vec<TargetPort> = Vec::new();
    let mut behind: Vec<&Portal> = Vec::new();
    for portal in portals {
        let same = |other: &&Portal| {
            let of = |it: &Portal| {
                (
                    it.tag,
                    it.reported.controller.clone(),
                    it.reported.port.clone(),
                )
            };
            portal.reported.port.is_some() && of(other) == of(portal)
        };
        match behind.iter().position(same) {
            Some(at) => ports[at].portals.push(portal.address),
            None => {
                behind.push(portal);
                ports.push(target_port(portal));
            }
        }
    }
    ports
}

fn target_port(portal: &Portal) -> TargetPort {
    let reported = &portal.reported;
    // What stands on no card of its own fails alone, as far as anybody knows.
    let card = reported.card.clone().or_else(|| reported.port.clone());
    TargetPort {
        name: portal.address.to_string(),
        portals: vec![portal.address],
        portal_group: portal.tag,
        access: AccessState::ActiveOptimized,
        controller: reported.controller.clone(),
        card,
        speed: reported.speed.map(Speed),
        links: reported.links.unwrap_or(1),
        mtu: reported.mtu,
        sessions_left: reported.sessions,
        free: reported.free.map(Speed),
        fabric: None,
        enabled: true,
    }
}

/// What the target hears of a port of this host. `planned`: paths that move nothing stand by.
pub(crate) fn nic_record(
    facts: &Facts,
    port: &str,
    from: IpAddr,
    planned: bool,
) -> Option<NicRecord> {
    let port = facts.hosts.iter().find(|it| it.name == port)?;
    let has = |fabric: &&Fabric| fabric.subnets.iter().any(|it| it.contains(from));
    let named = facts.fabrics.iter().find(has);
    Some(NicRecord {
        name: port.name.clone(),
        card: Some(port.card.clone()).filter(|card| *card != port.name),
        fabric: port
            .fabric
            .clone()
            .or_else(|| named.map(|it| it.name.clone())),
        speed: port.speed.map(|speed| speed.0),
        links: Some(port.links),
        mtu: Some(port.mtu),
        planned,
    })
}

/// The interface to bind to: only where the routes alone would not choose it, because another one
/// of this host, used for paths or not, is in the same network.
pub(crate) fn interface(machine: &Machine, source: IpAddr) -> Option<String> {
    if source.is_loopback() {
        return None;
    }
    let own = |nic: &&Nic| nic.addresses.iter().any(|at| at.ip == source);
    let nic = machine.nics.iter().find(own)?;
    let at = nic.addresses.iter().find(|at| at.ip == source)?;
    let network = paths::Subnet::of(at.ip, at.prefix);
    let mut others = machine.nics.iter().filter(|other| other.name != nic.name);
    let shared = others.any(|other| other.addresses.iter().any(|at| network.contains(at.ip)));
    shared.then(|| nic.name.clone())
}

#[cfg(test)]
mod test {
    use super::*;
    use machine::Kind;

    fn nic(name: &str, lower: &[&str], addresses: &[(&str, u8)]) -> Nic {
        Nic {
            name: name.to_owned(),
            kind: if lower.is_empty() {
                Kind::Physical
            } else {
                Kind::Vlan
            },
            lower: lower.iter().map(|it| (*it).to_owned()).collect(),
            addresses: addresses
                .iter()
                .map(|(ip, prefix)| HostAddress {
                    ip: ip.parse().unwrap(),
                    prefix: *prefix,
                })
                .collect(),
            ..Nic::default()
        }
    }

    #[test]
    fn the_target_hears_of_the_card_and_fabric_that_the_administrator_named() {
        let mut port = loopback_port("eth2", "10.1.0.2".parse().unwrap());
        let of = |port: &HostPort, fabric: &str| {
            let facts = Facts {
                hosts: vec![port.clone()],
                fabrics: vec![Fabric {
                    name: "left".to_owned(),
                    subnets: vec![fabric.parse().unwrap()],
                }],
                ..Facts::default()
            };
            nic_record(&facts, "eth2", "10.1.0.2".parse().unwrap(), true).unwrap()
        };
        let plain = of(&port, "10.9.0.0/24");
        assert_eq!(
            (plain.card, plain.fabric, plain.planned),
            (None, None, true)
        );
        port.card = "intel-1".to_owned();
        let in_fabric = of(&port, "10.1.0.0/24");
        assert_eq!(in_fabric.card.as_deref(), Some("intel-1"));
        assert_eq!(in_fabric.fabric.as_deref(), Some("left"));
        port.fabric = Some("right".to_owned());
        assert_eq!(of(&port, "10.1.0.0/24").fabric.as_deref(), Some("right"));
        assert_eq!(
            nic_record(&Facts::default(), "eth2", "10.1.0.2".parse().unwrap(), true),
            None
        );
    }

    #[test]
    fn a_session_is_bound_where_another_interface_is_in_the_same_network_and_to_what_has_the_address()
     {
        let machine = Machine {
            nics: vec![
                nic("eth0", &[], &[("10.0.0.1", 24)]),
                nic("eth1", &[], &[("10.0.0.2", 24), ("10.1.0.2", 24)]),
                nic("eth2", &[], &[]),
                nic("eth2.7", &["eth2"], &[("10.0.0.3", 24), ("10.2.0.3", 24)]),
            ],
            ..Machine::default()
        };
        for (source, expected) in [
            ("10.0.0.1", Some("eth0")),
            ("10.0.0.2", Some("eth1")),
            ("10.1.0.2", None),
            ("10.0.0.3", Some("eth2.7")),
            ("10.2.0.3", None),
            ("127.0.0.1", None),
            ("10.9.0.1", None),
        ] {
            let found = interface(&machine, source.parse().unwrap());
            assert_eq!(found.as_deref(), expected, "{source}");
        }
    }
}
