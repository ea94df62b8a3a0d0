//! The nodes of the cluster, as the membership of this one knows them.

use crate::found::{Found, Nodes};
use crate::nodes::{known, own};
use crate::transport::TlsTransport;
use arbiter::Arbiter;
use cluster::Transport;
use env::LocalFuture;
use membership::Membership;
use std::rc::Rc;

/// The nodes that the membership knows.
pub struct Members {
    membership: Rc<Membership>,
    transport: Rc<TlsTransport>,
    name: String,
}

impl Members {
    /// Those of this node, which people call so. From now on it takes streams of the others.
    #[must_use]
    pub fn new(membership: Rc<Membership>, name: &str) -> Self {
        let transport = TlsTransport::new(&membership);
        Self {
            membership,
            transport: Rc::new(transport),
            name: name.to_owned(),
        }
    }
}

impl Nodes for Members {
    fn found(&self) -> Option<Found> {
        let present = self.membership.present()?;
        let others = present.others.iter();
        Some(Found {
            own: own(&present),
            name: self.name.clone(),
            others: others.map(|it| (known(it), it.name.clone())).collect(),
        })
    }

    fn changed(&self) -> LocalFuture<()> {
        let mut changes = self.membership.changes();
        Box::pin(async move {
            if changes.next().await.is_none() {
                std::future::pending::<()>().await;
            }
        })
    }

    fn arbiter(&self) -> LocalFuture<Option<Rc<dyn Arbiter>>> {
        let membership = Rc::clone(&self.membership);
        Box::pin(async move { membership.arbiter().await.ok() })
    }

    fn transport(&self) -> Rc<dyn Transport> {
        Rc::clone(&self.transport) as Rc<dyn Transport>
    }
}
