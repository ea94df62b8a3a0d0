//! TCP as the rest of the program sees it.

use crate::LocalFuture;
use std::any::Any;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Listening and connecting.
pub trait Net {
    /// Starts to listen. Port 0 asks for any free port.
    ///
    /// # Errors
    /// What `bind` and `listen` would say.
    fn listen(&self, at: SocketAddr) -> io::Result<Rc<dyn Listener>>;

    /// Listens at a path of this machine (unix(7)); only this user may connect. What a process that
    /// is gone has left there is replaced. The name goes with the listener. Such streams have no
    /// addresses: the unspecified one stands for them.
    ///
    /// # Errors
    /// `AddrInUse` where somebody listens, `AlreadyExists` where something else is there,
    /// `Unsupported` where the environment has no such sockets, and what `bind` would say.
    fn listen_local(&self, path: &Path) -> io::Result<Rc<dyn Listener>> {
        let _ = path;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Connects to `to`, from the local address `from` where one is given.
    fn connect(
        &self,
        to: SocketAddr,
        from: Option<IpAddr>,
    ) -> LocalFuture<io::Result<Rc<dyn Stream>>>;

    /// The same, by this interface whatever the routes say: for hosts with several ports in one
    /// network.
    ///
    /// Where nothing but the address is simulated, the interface makes no difference.
    fn connect_by(
        &self,
        to: SocketAddr,
        from: Option<IpAddr>,
        interface: Option<&str>,
    ) -> LocalFuture<io::Result<Rc<dyn Stream>>> {
        let _ = interface;
        self.connect(to, from)
    }

    /// Takes over a stream that another core accepted, or gave up by [`Stream::detach`].
    ///
    /// # Errors
    /// Where the stream cannot be registered with this core.
    fn adopt(&self, stream: DetachedStream) -> io::Result<Rc<dyn Stream>>;

    /// Follows the addresses of this machine's interfaces.
    ///
    /// # Errors
    /// Where the system does not report them.
    fn watch_interfaces(&self) -> io::Result<Rc<dyn InterfaceWatch>>;

    /// The route that packets to `to` take, those with the source address `from` where one is
    /// given.
    ///
    /// # Errors
    /// `NetworkUnreachable` where there is none, `Unsupported` where the environment has no routes.
    fn route(&self, to: IpAddr, from: Option<IpAddr>) -> io::Result<Route> {
        let _ = (to, from);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether an IP packet of so many bytes reaches `to` in one piece, as its answer to a datagram
    /// that it does not want shows. `Some(false)`: this host itself refuses to send it; `None`: no
    /// answer came, which also a filter may cause.
    fn passes(
        &self,
        to: IpAddr,
        from: IpAddr,
        bytes: u32,
    ) -> LocalFuture<io::Result<Option<bool>>> {
        let _ = (to, from, bytes);
        Box::pin(std::future::ready(Err(io::ErrorKind::Unsupported.into())))
    }

    /// What an interface's driver reports of itself; what it does not report is absent.
    ///
    /// # Errors
    /// Where there is no such interface, `Unsupported` where the environment has no drivers.
    fn driver(&self, interface: &str) -> io::Result<DriverFacts> {
        let _ = interface;
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A route of packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// Out of which interface.
    pub interface: String,
    /// Over which router; `None`: the address is on the interface's own network.
    pub gateway: Option<IpAddr>,
    /// The source address that packets get.
    pub source: Option<IpAddr>,
}

/// What the driver of an interface reports.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DriverFacts {
    /// Its name.
    pub driver: Option<String>,
    /// Version of the NIC's firmware.
    pub firmware: Option<String>,
    /// Receive descriptors: in use, at most.
    pub receive_ring: Option<(u32, u32)>,
    /// Send descriptors: in use, at most.
    pub send_ring: Option<(u32, u32)>,
    /// Speed and duplex are negotiated with the other end.
    pub negotiates: Option<bool>,
    /// The NIC cuts large packets (TSO).
    pub segmentation_offload: Option<bool>,
    /// Received packets are put together (GRO).
    pub receive_offload: Option<bool>,
    /// The NIC computes checksums of what is sent.
    pub checksum_offload: Option<bool>,
    /// The NIC pauses when asked to; it asks others to pause.
    pub pause: Option<(bool, bool)>,
}

/// A socket that accepts connections. Dropping it stops listening.
pub trait Listener {
    /// The address that it listens at, with the real port.
    fn local(&self) -> SocketAddr;

    /// The next connection. An error concerns one connection, not the listener, unless it repeats.
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<DetachedStream>>;
}

/// A connection that belongs to no core yet.
pub struct DetachedStream {
    /// This side's address.
    pub local: SocketAddr,
    /// The other side's address.
    pub peer: SocketAddr,
    /// What the environment needs to adopt it.
    pub inner: Box<dyn Any + Send>,
}

/// One TCP connection on one core. At most one task receives and one sends at a time. Dropping it
/// closes the connection.
pub trait Stream {
    /// This side's address.
    fn local(&self) -> SocketAddr;

    /// The other side's address.
    fn peer(&self) -> SocketAddr;

    /// Receives into `into` (not empty); 0 bytes mean that the other side has closed.
    fn poll_recv(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Sends a prefix of `pieces`, which hold at least one byte and are at most 1024; answers how
    /// many bytes went.
    fn poll_send(&self, cx: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>>;

    /// Ends the connection in both directions at once; both polls then end.
    fn shutdown(&self);

    /// Ends the connection at once and throws away what was not delivered: the other side sees it
    /// as a reset, and nothing that still waits in this system is sent any more. It is over for
    /// good when this is dropped.
    fn abort(&self) {
        self.shutdown();
    }

    /// How the receiver is woken until something is received next. With `Some((bytes, within))`:
    /// when so many bytes are there, or so much time has passed, whichever is first, or when the
    /// connection ends; until then [`Stream::poll_recv`] may stay pending though less is there. The
    /// task of `cx` is woken. `None`, and to begin with: at each byte. To be said after each
    /// `poll_recv` that was pending, else an earlier wait may have no end. Answers how it is woken
    /// from now on.
    ///
    /// A system call for each wait; `None` costs nothing where it held before.
    ///
    /// # Errors
    /// An earlier wait could not be taken back: what comes may wake nobody any more, so nothing is
    /// to be awaited on this connection.
    fn coalesce(&self, cx: &mut Context<'_>, wait: Option<(u32, Duration)>) -> io::Result<Woken> {
        let _ = (cx, wait);
        Ok(Woken::AtEach)
    }

    /// What the system measured of the connection; `None` where nobody measures.
    fn measured(&self) -> Option<StreamMeasures> {
        None
    }

    /// Gives the connection up to another core, with what has arrived and was not taken. Nothing
    /// may be done with this one any more but to drop it, which no longer closes the connection.
    ///
    /// # Errors
    /// Where the system has no descriptor for it; this one goes on then.
    fn detach(&self) -> io::Result<DetachedStream>;
}

/// When the receiver of a [`Stream`] is woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    /// At each byte: that was asked for, or more cannot be waited for here.
    AtEach,
    /// When what is waited for is there, or its time is over.
    Late,
}

/// What the system knows of a connection (tcp(7), TCP_INFO).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamMeasures {
    /// Segments sent again, since the beginning.
    pub retransmitted: u32,
    /// Segments sent, since the beginning; 0 where the system does not report them.
    pub segments_sent: u32,
    /// Round-trip time, smoothed, in microseconds.
    pub round_trip_us: u32,
    /// The least of them in the last minutes, in microseconds: what the route itself takes.
    pub round_trip_min_us: u32,
}

/// One address of a network interface, where a portal may listen.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InterfaceAddress {
    /// The interface's name, such as `eth1`.
    pub interface: String,
    /// The address, without scope.
    pub address: IpAddr,
    /// The length of the network's prefix, in bits.
    pub prefix_bits: u8,
    /// The interface's index, which an IPv6 link-local address needs as its scope.
    pub interface_index: u32,
}

/// A network interface of this machine, whether it has addresses or not.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InterfaceLink {
    /// Its name, such as `eth1`.
    pub name: String,
    /// The kernel's number of it; a scope of IPv6 link-local addresses.
    pub index: u32,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// The administrator has it up.
    pub up: bool,
    /// It is up and has a signal from its other end.
    pub carrier: bool,
    /// It leads back to this machine.
    pub loopback: bool,
}

/// A view of the interfaces and their addresses that stays current.
pub trait InterfaceWatch {
    /// The addresses as known now (IPv6 only where duplicate address detection has ended).
    fn current(&self) -> Vec<InterfaceAddress>;

    /// The interfaces as known now.
    fn links(&self) -> Vec<InterfaceLink>;

    /// Completes when something changed since the last time this completed.
    fn changed(&self) -> LocalFuture<()>;
}
