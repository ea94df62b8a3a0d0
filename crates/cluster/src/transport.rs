//! How bytes get from one node to another: TCP, TLS over it, RDMA one day.

use env::LocalFuture;
use peer::Transmit;
use replica::NodeSlot;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

/// One connection with another node, which was authenticated as far as the transport does so.
pub trait Channel {
    /// Takes a prefix of what waits, which is not empty; answers how many bytes.
    fn poll_send(&self, cx: &mut Context<'_>, waiting: &Transmit) -> Poll<io::Result<usize>>;

    /// Receives into `into`, which is not empty; 0 bytes mean that the other side has closed.
    fn poll_receive(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Ends it at once, in both directions.
    fn end(&self);

    /// Which node is at the other end, where the transport knows: nobody else is believed there.
    fn peer(&self) -> Option<NodeSlot> {
        None
    }
}

/// What makes connections.
pub trait Transport {
    /// A connection to a node, or why there is none.
    fn dial(&self, to: NodeSlot) -> LocalFuture<io::Result<Rc<dyn Channel>>>;

    /// The next connection that some node made. An error concerns one connection.
    fn accept(&self) -> LocalFuture<io::Result<Rc<dyn Channel>>>;
}
