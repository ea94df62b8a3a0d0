//! SendTargets: what is granted to the asker, at addresses that it can reach.
//!
//! A portal group is a fabric's boundary: through one of its portals only its own targets are
//! reported, at its own addresses, and of those only addresses of the asker's family, none of the
//! loopback unless the asker came by it, and link-local ones only of the interface that was asked
//! (complaint: portals that hosts cannot reach cost them minutes of time-outs).

use crate::export::{Export, ExportedTarget};
use crate::listening::ListeningAt;
use iscsi::discovery::{PortalAddress, TargetRecord};
use iscsi::target_side::SendTargets;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The answer to SendTargets.
pub(crate) fn records(
    export: &Export,
    initiator: &str,
    portal_group_tag: u16,
    asked_at: SocketAddr,
    listening: &[ListeningAt],
    scope: &SendTargets,
) -> Vec<TargetRecord> {
    let addresses: Vec<PortalAddress> = offered(portal_group_tag, asked_at, listening)
        .map(|at| PortalAddress {
            address: at.address.to_string(),
            portal_group_tag,
        })
        .collect();
    let wanted = |target: &&Arc<ExportedTarget>| match scope {
        SendTargets::All => true,
        SendTargets::One(name) => target.name.eq_ignore_ascii_case(name),
    };
    export
        .targets
        .iter()
        .filter(|target| target.portal_group_tag == portal_group_tag)
        .filter(wanted)
        .filter(|target| target.view(initiator).is_some())
        .map(|target| TargetRecord {
            name: target.name.clone(),
            addresses: addresses.clone(),
        })
        .collect()
}

/// The portals of one group that somebody who asked at `asked_at` may use.
pub(crate) fn offered(
    portal_group_tag: u16,
    asked_at: SocketAddr,
    listening: &[ListeningAt],
) -> impl Iterator<Item = &ListeningAt> {
    let mine = listening.iter();
    mine.filter(move |at| {
        at.portal_group_tag == portal_group_tag && reachable(asked_at, at, listening)
    })
}

fn reachable(asked_at: SocketAddr, at: &ListeningAt, listening: &[ListeningAt]) -> bool {
    let (asked, offered) = (asked_at.ip(), at.address.ip());
    if asked == offered {
        return true;
    }
    if asked.is_ipv4() != offered.is_ipv4() || asked.is_loopback() != offered.is_loopback() {
        return false;
    }
    if is_link_local(offered) {
        let asked_interface = listening
            .iter()
            .find(|one| one.address.ip() == asked)
            .and_then(|one| one.interface.as_ref());
        return is_link_local(asked)
            && at.interface.is_some()
            && at.interface.as_ref() == asked_interface;
    }
    true
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn at(address: &str, interface: &str) -> ListeningAt {
        ListeningAt {
            address: address.parse().unwrap(),
            portal_group_tag: 1,
            interface: Some(interface.to_owned()),
        }
    }

    #[test]
    fn only_addresses_of_the_same_family_and_scope_are_reachable() {
        let all = [
            at("127.0.0.1:3260", "lo"),
            at("192.0.2.1:3260", "eth0"),
            at("198.51.100.1:3260", "eth1"),
            at("169.254.0.9:3260", "eth2"),
            at("[2001:db8::1]:3260", "eth0"),
            at("[fe80::1]:3260", "eth0"),
            at("[fe80::2]:3260", "eth1"),
        ];
        let reported = |asked: &str| -> Vec<String> {
            let asked = asked.parse().unwrap();
            all.iter()
                .filter(|one| reachable(asked, one, &all))
                .map(|one| one.address.to_string())
                .collect()
        };
        assert_eq!(reported("127.0.0.1:3260"), ["127.0.0.1:3260"]);
        assert_eq!(
            reported("192.0.2.1:3260"),
            ["192.0.2.1:3260", "198.51.100.1:3260"]
        );
        assert_eq!(reported("[2001:db8::1]:3260"), ["[2001:db8::1]:3260"]);
        assert_eq!(
            reported("[fe80::1]:3260"),
            ["[2001:db8::1]:3260", "[fe80::1]:3260"]
        );
    }
}
