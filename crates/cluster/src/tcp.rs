//! Plain TCP: for a cable between two nodes, and for tests.

use crate::transport::{Channel, Transport};
use env::{CoreHandle, Listener, LocalFuture, Stream};
use peer::Transmit;
use replica::NodeSlot;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Pieces of one send.
const PIECES_MAX: usize = 64;

/// TCP without authentication or encryption.
pub struct TcpTransport {
    core: CoreHandle,
    listener: Rc<dyn Listener>,
    nodes: BTreeMap<NodeSlot, SocketAddr>,
}

impl TcpTransport {
    /// Listens at an address of this node; where the others listen is known.
    ///
    /// # Errors
    /// Why nobody can listen there.
    pub fn listen(
        core: &CoreHandle,
        at: SocketAddr,
        nodes: BTreeMap<NodeSlot, SocketAddr>,
    ) -> io::Result<Self> {
        Ok(Self {
            core: Rc::clone(core),
            listener: core.net().listen(at)?,
            nodes,
        })
    }
}

impl Transport for TcpTransport {
    fn dial(&self, to: NodeSlot) -> LocalFuture<io::Result<Rc<dyn Channel>>> {
        let (net, at) = (self.core.net(), self.nodes.get(&to).copied());
        Box::pin(async move {
            let at = at.ok_or(io::ErrorKind::AddrNotAvailable)?;
            let stream = net.connect(at, None).await?;
            Ok(Rc::new(TcpChannel(stream)) as Rc<dyn Channel>)
        })
    }

    fn accept(&self) -> LocalFuture<io::Result<Rc<dyn Channel>>> {
        let (net, listener) = (self.core.net(), Rc::clone(&self.listener));
        Box::pin(async move {
            let accepted = poll_fn(|cx| listener.poll_accept(cx)).await?;
            let stream = net.adopt(accepted)?;
            Ok(Rc::new(TcpChannel(stream)) as Rc<dyn Channel>)
        })
    }
}

struct TcpChannel(Rc<dyn Stream>);

impl Channel for TcpChannel {
    fn poll_send(&self, cx: &mut Context<'_>, waiting: &Transmit) -> Poll<io::Result<usize>> {
        let pieces: Vec<IoSlice<'_>> = waiting
            .pieces()
            .take(PIECES_MAX)
            .map(IoSlice::new)
            .collect();
        self.0.poll_send(cx, &pieces)
    }

    fn poll_receive(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        self.0.poll_recv(cx, into)
    }

    fn end(&self) {
        self.0.shutdown();
    }
}
