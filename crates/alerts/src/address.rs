//! Addresses that nothing is sent to, wherever they come from.

use std::net::{IpAddr, Ipv4Addr};

/// Why nothing is sent to such an address, where it is so.
#[must_use]
pub fn refused_address(address: IpAddr) -> Option<&'static str> {
    match address.to_canonical() {
        IpAddr::V4(address) if address.is_link_local() => Some("an address of the link only"),
        IpAddr::V6(address) if address.is_unicast_link_local() => {
            Some("an address of the link only")
        }
        // The same service as behind 169.254.169.254, at its IPv6 address.
        IpAddr::V6(address) if address.segments()[..7] == [0xfd00, 0xec2, 0, 0, 0, 0, 0] => {
            Some("an address that only clouds have")
        }
        IpAddr::V4(Ipv4Addr::BROADCAST) => Some("an address of many machines"),
        address if address.is_multicast() => Some("an address of many machines"),
        address if address.is_unspecified() => Some("no address"),
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    }
}
