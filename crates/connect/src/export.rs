//! One LUN as one host sees it.

use manifest::view::{ChapView, GrantView, HostView, LunView, TargetView};
use serde::Serialize;
use std::net::SocketAddr;

/// One LUN as one host sees it.
#[derive(Clone, Copy, Debug)]
pub struct Export<'a> {
    /// What is exported, as the API shows it.
    pub lun: &'a LunView,
    /// The host's right to it.
    pub grant: &'a GrantView,
    /// Through which it is used.
    pub target: &'a TargetView,
    /// The client.
    pub host: &'a HostView,
}

/// What a program needs to connect.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ExportView<'a> {
    /// The host's name.
    pub host: &'a str,
    /// Its initiators' names.
    pub initiators: &'a [String],
    /// Who proves what to whom.
    pub chap: Option<&'a ChapView>,
    /// The target's name here.
    pub target: &'a str,
    /// Its iSCSI name.
    pub iqn: &'a str,
    /// Where it listens.
    pub portals: Vec<String>,
    /// The LUN's name.
    pub lun: &'a str,
    /// Its number in the target.
    pub lun_id: u16,
    /// The host may only read.
    pub read_only: bool,
    /// Its NAA identifier.
    pub naa: &'a str,
    /// Its serial number.
    pub serial: &'a str,
}

/// An address as `HOST` and `PORT`.
pub(crate) struct Portal {
    pub(crate) host: String,
    pub(crate) port: String,
}

impl Portal {
    /// Brackets stay around IPv6 addresses.
    pub(crate) fn both(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// As Windows and ESXi take it: without brackets.
    pub(crate) fn bare(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }
}

/// An IPv6 address that means something on its own link only.
fn is_link_local(address: &str) -> bool {
    let parsed = address.parse();
    matches!(parsed, Ok(SocketAddr::V6(at)) if at.ip().is_unicast_link_local())
}

/// The number of an interface is this node's own, and nothing to anybody else (RFC 4007 11.2).
fn without_scope(address: &str) -> String {
    match address.parse() {
        Ok(SocketAddr::V6(at)) => format!("[{}]:{}", at.ip(), at.port()),
        _ => address.to_owned(),
    }
}

impl<'a> Export<'a> {
    /// Where clients find it. Link-local addresses only where there are no others; what stands for
    /// the client's interface is its administrator's to fill in.
    pub(crate) fn portals(&self) -> Vec<Portal> {
        let all = &self.target.portals;
        let only_local = all.iter().all(|address| is_link_local(address));
        let portal = |address: &String| {
            let address = match (is_link_local(address), only_local) {
                (true, false) => return None,
                (true, true) => without_scope(address).replace(']', "%HOST-INTERFACE]"),
                (false, _) => address.clone(),
            };
            let (host, port) = address.rsplit_once(':')?;
            // Where the node listens at every address, only its administrator knows which to use.
            let wildcard = matches!(host, "0.0.0.0" | "[::]");
            let host = if wildcard { "SAN-ADDRESS" } else { host };
            Some(Portal {
                host: host.to_owned(),
                port: port.to_owned(),
            })
        };
        all.iter().filter_map(portal).collect()
    }

    /// What is to be known of the addresses.
    pub(crate) fn of_addresses(&self, portals: &[Portal]) -> Option<String> {
        let all = &self.target.portals;
        let local: Vec<String> = all
            .iter()
            .filter(|address| is_link_local(address))
            .map(|address| without_scope(address))
            .collect();
        if local.is_empty() {
            return None;
        }
        let hidden = portals.iter().all(|portal| !portal.host.contains('%'));
        let local = local.join(", ");
        Some(if hidden {
            format!(
                "# also at {local}, for hosts on the same link: a link-local address needs the interface of the host behind it, as in fe80::1%eth1"
            )
        } else {
            format!(
                "# the target has link-local addresses only ({local}): replace HOST-INTERFACE by the interface of the host that leads there"
            )
        })
    }

    /// What a program needs to connect.
    #[must_use]
    pub fn view(&self) -> ExportView<'a> {
        let Self {
            lun,
            grant,
            target,
            host,
        } = *self;
        let portals = target.portals.iter();
        ExportView {
            host: &host.name,
            initiators: &host.iqn,
            chap: host.chap.as_ref(),
            target: &target.name,
            iqn: &target.iqn,
            portals: portals.map(|address| without_scope(address)).collect(),
            lun: &lun.name,
            lun_id: grant.lun_id,
            read_only: grant.read_only,
            naa: &lun.naa,
            serial: &lun.serial,
        }
    }
}
