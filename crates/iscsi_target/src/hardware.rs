//! What the machine says of the network ports behind the portals, for initiators that plan their
//! paths.
//!
//! The owner of the front sets it ([`Server::set_hardware`](crate::Server::set_hardware)); a
//! session that has logged in, for discovery or for a target, may ask, and gets the portals
//! that SendTargets would report to it, and of no other.

use crate::discovery::offered;
use crate::listening::ListeningAt;
use iscsi::extension_keys::port::PortRecord;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// The ports of this machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hardware {
    /// What fails as a whole with all of these: the node's name.
    pub controller: String,
    /// By address. An address that is missing here is reported without anything.
    pub ports: BTreeMap<IpAddr, PortHardware>,
}

/// A network port of this machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PortHardware {
    /// Its name here: `eth2`.
    pub name: String,
    /// The card that it is on; `None`: it is no hardware.
    pub card: Option<String>,
    /// Its speed in bits per second, all links of a team together.
    pub speed: Option<u64>,
    /// Equal links behind it.
    pub links: u16,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// What it had to spare in the last seconds, in bits per second of its busier direction.
    pub free: Option<u64>,
}

/// The answer for a session that came in at `asked_at`. `sessions`: how many more the target takes.
pub(crate) fn records(
    hardware: &Hardware,
    portal_group_tag: u16,
    asked_at: SocketAddr,
    listening: &[ListeningAt],
    sessions: Option<u32>,
) -> Vec<PortRecord> {
    let offered = offered(portal_group_tag, asked_at, listening);
    let known = offered.map(|at| {
        let port = hardware.ports.get(&at.address.ip());
        let controller = Some(hardware.controller.clone()).filter(|it| !it.is_empty());
        let record = PortRecord {
            address: at.address.to_string(),
            controller,
            sessions,
            ..PortRecord::default()
        };
        match port {
            None => record,
            Some(port) => PortRecord {
                port: Some(port.name.clone()),
                card: port.card.clone(),
                speed: port.speed,
                links: Some(port.links),
                mtu: Some(port.mtu),
                free: port.free,
                ..record
            },
        }
    });
    known.collect()
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_session_hears_of_the_portals_that_it_could_use_and_of_no_other() {
        let at = |address: &str, portal_group_tag| ListeningAt {
            address: address.parse().unwrap(),
            portal_group_tag,
            interface: None,
        };
        let listening = [
            at("192.0.2.1:3260", 1),
            at("198.51.100.1:3260", 1),
            at("203.0.113.1:3260", 2),
            at("127.0.0.1:3260", 1),
        ];
        let port = PortHardware {
            name: "eth2".to_owned(),
            card: Some("0000:03:00".to_owned()),
            speed: Some(1_000_000_000),
            links: 1,
            mtu: 9000,
            free: None,
        };
        let hardware = Hardware {
            controller: "san-a".to_owned(),
            ports: [("192.0.2.1".parse().unwrap(), port)].into(),
        };
        let reported = records(&hardware, 1, listening[1].address, &listening, Some(7));
        let addresses: Vec<&str> = reported.iter().map(|it| it.address.as_str()).collect();
        assert_eq!(addresses, ["192.0.2.1:3260", "198.51.100.1:3260"]);
        assert_eq!(reported[0].card.as_deref(), Some("0000:03:00"));
        assert_eq!(
            (reported[1].card.as_deref(), reported[1].sessions),
            (None, Some(7))
        );
        assert!(
            reported
                .iter()
                .all(|it| it.controller.as_deref() == Some("san-a"))
        );
        let nothing = records(
            &Hardware::default(),
            2,
            listening[2].address,
            &listening,
            None,
        );
        assert_eq!(
            nothing[0],
            PortRecord {
                address: "203.0.113.1:3260".to_owned(),
                ..PortRecord::default()
            }
        );
    }
}
