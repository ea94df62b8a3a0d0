//! Where a request comes from, as the server itself sees it.

use accounts::Source;
use std::net::SocketAddr;

/// The other end of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// The address, or the user of the system that opened the socket.
    pub from: PeerAddress,
    /// It is encrypted.
    pub is_tls: bool,
}

/// Where the other end is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeerAddress {
    /// On this machine, through the unix socket.
    Local {
        /// The system's user that opened it.
        user: u32,
        /// That is root, the daemon's own user, or a member of the group that may do everything.
        is_trusted: bool,
    },
    /// Anywhere.
    Network {
        /// Its address.
        peer: SocketAddr,
        /// Our own address that it reached.
        local: SocketAddr,
    },
}

impl Peer {
    /// It came over a loopback address: it is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        match &self.from {
            PeerAddress::Local { .. } => false,
            PeerAddress::Network { peer, local } => [peer, local]
                .into_iter()
                .all(|at| at.ip().to_canonical().is_loopback()),
        }
    }

    /// For whom its failed logins count.
    pub(crate) fn source(&self) -> Source {
        match &self.from {
            PeerAddress::Local { .. } => Source::Local,
            PeerAddress::Network { peer, .. } => peer.ip().into(),
        }
    }
}
