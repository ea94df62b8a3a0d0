//! TCP as the rest of the program sees it.

use crate::LocalFuture;
use std::any::Any;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::task::{Context, Poll};

/// Listening and connecting.
pub trait Net {
    /// Starts to listen. Port 0 asks for any free port.
    ///
    /// # Errors
    /// What `bind` and `listen` would say.
    fn listen(&self, at: SocketAddr) -> io::Result<Rc<dyn Listener>>;

    /// Connects to `to`, from the local address `from` where one is given.
    fn connect(
        &self,
        to: SocketAddr,
        from: Option<IpAddr>,
    ) -> LocalFuture<io::Result<Rc<dyn Stream>>>;

    /// Takes over a stream that another core accepted, or gave up by [`Stream::detach`].
    ///
    /// # Errors
    /// Where the stream cannot be registered with this core.
    fn adopt(&self, stream: DetachedStream) -> io::Result<Rc<dyn Stream>>;

    /// Follows the addresses of this machine's interfaces.
    ///
    /// # Errors
    /// Where the system does not tell.
    fn watch_interfaces(&self) -> io::Result<Rc<dyn InterfaceWatch>>;
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

/// One TCP connection on one core. At most one task receives and one sends at a time. Dropping it closes
/// the connection.
pub trait Stream {
    /// This side's address.
    fn local(&self) -> SocketAddr;

    /// The other side's address.
    fn peer(&self) -> SocketAddr;

    /// Receives into `into` (not empty); 0 bytes mean that the other side has closed.
    fn poll_recv(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Sends a prefix of `pieces`, which hold at least one byte and are at most 1024; answers how many
    /// bytes went.
    fn poll_send(&self, cx: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>>;

    /// Ends the connection in both directions at once; both polls then end.
    fn shutdown(&self);

    /// Gives the connection up to another core, with what has arrived and was not taken. Nothing may be done
    /// with this one any more but to drop it, which no longer closes the connection.
    ///
    /// # Errors
    /// Where the system has no descriptor for it; this one goes on then.
    fn detach(&self) -> io::Result<DetachedStream>;
}

/// An address that an interface has.
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

/// A view of the interfaces' addresses that stays current.
pub trait InterfaceWatch {
    /// The addresses as known now (IPv6 only where duplicate address detection has ended).
    fn current(&self) -> Vec<InterfaceAddress>;

    /// Completes when something changed since the last time this completed.
    fn changed(&self) -> LocalFuture<()>;
}
