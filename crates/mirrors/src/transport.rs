//! Streams that membership makes and accepts, as `cluster` has them.

use crate::channel::TlsChannel;
use cluster::{Channel, Transport};
use env::LocalFuture;
use membership::{Incoming, Membership};
use replica::NodeSlot;
use std::io;
use std::rc::Rc;

/// TLS between nodes of the cluster. As long as it is there, other nodes are accepted.
pub struct TlsTransport {
    membership: Rc<Membership>,
    incoming: Rc<Incoming>,
}

impl TlsTransport {
    /// Streams of this node, on the core that its membership is on.
    #[must_use]
    pub fn new(membership: &Rc<Membership>) -> Self {
        Self {
            membership: Rc::clone(membership),
            incoming: Rc::new(membership.incoming()),
        }
    }
}

impl Transport for TlsTransport {
    fn dial(&self, to: NodeSlot) -> LocalFuture<io::Result<Rc<dyn Channel>>> {
        let membership = Rc::clone(&self.membership);
        Box::pin(async move {
            let dialled = membership.dial(to.0).await;
            let stream = dialled.map_err(io::Error::other)?;
            Ok(Rc::new(TlsChannel::new(stream)) as Rc<dyn Channel>)
        })
    }

    fn accept(&self) -> LocalFuture<io::Result<Rc<dyn Channel>>> {
        let incoming = Rc::clone(&self.incoming);
        Box::pin(async move {
            let stream = incoming.next().await;
            Ok(Rc::new(TlsChannel::new(stream)) as Rc<dyn Channel>)
        })
    }
}
