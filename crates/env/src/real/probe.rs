//! Asks whether a packet of some size passes, by a datagram to a port where nobody listens.
//!
//! A host that gets it answers "port unreachable" (RFC 1122 3.2.2.1), which this kernel makes an
//! error of the socket. The datagram must not be cut (DF), and what the kernel believes of the path
//! is not asked.

use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::time::sleep;

/// "Discard": hardly anybody listens there, and who does answers nothing.
const PORT: u16 = 9;
/// A local network answers within a millisecond.
const PATIENCE: Duration = Duration::from_millis(300);
const PROBES: u32 = 30;
/// Hosts answer such datagrams about once in a second.
const TRIES: u32 = 4;

/// See [`crate::Net::passes`].
pub(super) async fn passes(to: IpAddr, from: IpAddr, bytes: u32) -> io::Result<Option<bool>> {
    let socket = UdpSocket::bind(SocketAddr::new(from, 0)).await?;
    let headers = match to {
        IpAddr::V4(_) => {
            set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?;
            20 + 8
        }
        IpAddr::V6(_) => {
            set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE)?;
            40 + 8
        }
    };
    socket.connect(SocketAddr::new(to, PORT)).await?;
    let length = usize::try_from(bytes.saturating_sub(headers)).unwrap_or(0);
    let datagram = vec![0; length];
    for _ in 0..TRIES {
        if let Err(error) = socket.send(&datagram).await {
            return verdict(error);
        }
        for _ in 0..PROBES {
            sleep(PATIENCE / PROBES).await;
            // An error of the socket wakes nobody who waits for data.
            if let Some(error) = socket.take_error()? {
                return verdict(error);
            }
            // Somebody listens there, and answers.
            if socket.try_recv(&mut [0; 16]).is_ok() {
                return Ok(Some(true));
            }
        }
    }
    Ok(None)
}

fn verdict(error: io::Error) -> io::Result<Option<bool>> {
    if error.raw_os_error() == Some(libc::EMSGSIZE) {
        return Ok(Some(false));
    }
    if error.kind() == ErrorKind::ConnectionRefused {
        return Ok(Some(true));
    }
    Err(error)
}
