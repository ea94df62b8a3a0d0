//! Where portals listen, as others see it.

use std::net::SocketAddr;

/// An address that a portal can be reached at.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ListeningAt {
    /// The address, never a wildcard.
    pub address: SocketAddr,
    /// TargetPortalGroupTag, as discovery reports it with the address.
    pub portal_group_tag: u16,
    /// The interface that has the address, where known.
    pub interface: Option<String>,
}

/// A listening socket, or why there is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortalStatus {
    /// The portal group's name.
    pub portal_group: String,
    /// TargetPortalGroupTag of that group.
    pub portal_group_tag: u16,
    /// The address, with the port that the system chose where 0 was asked for; a wildcard as it is.
    pub address: SocketAddr,
    /// The interface that has the address, where known.
    pub interface: Option<String>,
    /// Why it does not listen; `None` where it does.
    pub error: Option<String>,
}
