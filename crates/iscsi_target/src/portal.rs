//! Portals: the sockets that listen, following the export and the interfaces' addresses, live.
//!
//! One task on core 0 compares what should listen with what does: at each new export, at each
//! change of an interface's address, and every second where something could not listen. An address
//! that goes away takes its listener with it and nothing else: sessions end when their own
//! connection does.

use crate::export::{Export, Listen};
use crate::listening::{ListeningAt, PortalStatus};
use crate::shared::Shared;
use env::{CoreHandle, InterfaceAddress, InterfaceWatch, Listener};
use futures_util::future::{AbortHandle, Aborted, abortable};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// How long until something that could not listen is tried again.
const RETRY: Duration = Duration::from_secs(1);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Wanted {
    address: SocketAddr,
    portal_group_tag: u16,
}

struct Open {
    /// The only one that keeps the socket open: dropping it closes the socket at once.
    listener: Rc<dyn Listener>,
    accepting: AbortHandle,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

struct Portals {
    core: CoreHandle,
    shared: Arc<Shared>,
    watch: Option<Rc<dyn InterfaceWatch>>,
    open: BTreeMap<Wanted, Open>,
    failed: BTreeMap<Wanted, String>,
    /// Addresses that another portal group has, so that these do not get them.
    taken: Vec<(Wanted, u16)>,
}

/// Keeps the portals as they should be, for ever.
pub(crate) async fn run(core: CoreHandle, shared: Arc<Shared>) {
    let watch = match core.net().watch_interfaces() {
        Ok(watch) => Some(watch),
        Err(error) => {
            tracing::warn!(%error, "interfaces cannot be watched: portals bound to an interface stay down");
            None
        }
    };
    let mut portals = Portals {
        core,
        shared,
        watch,
        open: BTreeMap::new(),
        failed: BTreeMap::new(),
        taken: Vec::new(),
    };
    loop {
        let seen = portals.shared.export_version();
        portals.reconcile();
        portals.wait(seen).await;
    }
}

impl Portals {
    async fn wait(&self, seen: u64) {
        let mut changed = self.watch.as_ref().map(|watch| watch.changed());
        let mut retry =
            (!self.failed.is_empty()).then(|| self.core.sleep_until(self.core.now().after(RETRY)));
        poll_fn(|cx| {
            let exported = self.shared.poll_export(cx, seen).is_ready();
            let moved = changed
                .as_mut()
                .is_some_and(|changed| changed.as_mut().poll(cx).is_ready());
            let again = retry
                .as_mut()
                .is_some_and(|retry| retry.as_mut().poll(cx).is_ready());
            if exported || moved || again {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    fn reconcile(&mut self) {
        let export = self.shared.export();
        let interfaces = self
            .watch
            .as_ref()
            .map(|watch| watch.current())
            .unwrap_or_default();
        let (wanted, taken) = first_come(wanted(&export, &interfaces));
        self.open.retain(|portal, _| {
            let keep = wanted.contains(portal);
            if !keep {
                tracing::info!(portal = %portal.address, "portal stops listening");
            }
            keep
        });
        self.failed.retain(|portal, _| wanted.contains(portal));
        self.taken = taken;
        for portal in wanted {
            if !self.open.contains_key(&portal) {
                self.listen(portal);
            }
        }
        self.shared.set_portals(
            self.status(&export, &interfaces),
            self.listening(&interfaces),
        );
    }

    fn listen(&mut self, portal: Wanted) {
        match self.core.net().listen(portal.address) {
            Ok(listener) => {
                self.failed.remove(&portal);
                tracing::info!(portal = %listener.local(), tag = portal.portal_group_tag, "portal listens");
                let (accept, accepting) = abortable(accept(
                    Rc::clone(&self.core),
                    Arc::clone(&self.shared),
                    Rc::downgrade(&listener),
                    portal.portal_group_tag,
                ));
                self.core.spawn(Box::pin(async move {
                    // Ends only by being aborted, or because the listener is gone.
                    let (Ok(()) | Err(Aborted)) = accept.await;
                }));
                self.open.insert(
                    portal,
                    Open {
                        listener,
                        accepting,
                    },
                );
            }
            Err(error) => {
                if self
                    .failed
                    .insert(portal.clone(), error.to_string())
                    .is_none()
                {
                    tracing::warn!(portal = %portal.address, %error, "portal cannot listen, will try again");
                }
            }
        }
    }

    fn status(&self, export: &Export, interfaces: &[InterfaceAddress]) -> Vec<PortalStatus> {
        let name = |tag| {
            let group = export.portal_groups.iter().find(|group| group.tag == tag);
            group.map(|group| group.name.clone()).unwrap_or_default()
        };
        let interface = |address: SocketAddr| {
            let found = interfaces.iter().find(|one| one.address == address.ip());
            found.map(|one| one.interface.clone())
        };
        let open = self.open.iter().map(|(portal, open)| PortalStatus {
            portal_group: name(portal.portal_group_tag),
            portal_group_tag: portal.portal_group_tag,
            address: open.listener.local(),
            interface: interface(open.listener.local()),
            error: None,
        });
        let failed = self.failed.iter().map(|(portal, error)| PortalStatus {
            portal_group: name(portal.portal_group_tag),
            portal_group_tag: portal.portal_group_tag,
            address: portal.address,
            interface: interface(portal.address),
            error: Some(error.clone()),
        });
        let taken = self.taken.iter().map(|(portal, by)| PortalStatus {
            portal_group: name(portal.portal_group_tag),
            portal_group_tag: portal.portal_group_tag,
            address: portal.address,
            interface: interface(portal.address),
            error: Some(format!("the address belongs to portal group {by}")),
        });
        open.chain(failed).chain(taken).collect()
    }

    fn listening(&self, interfaces: &[InterfaceAddress]) -> Vec<ListeningAt> {
        let mut all = Vec::new();
        for (portal, open) in &self.open {
            let local = open.listener.local();
            let concrete = |address: IpAddr| interfaces.iter().find(|one| one.address == address);
            if !local.ip().is_unspecified() {
                let interface = concrete(local.ip()).map(|one| one.interface.clone());
                all.push(ListeningAt {
                    address: local,
                    portal_group_tag: portal.portal_group_tag,
                    interface,
                });
                continue;
            }
            let same_family = interfaces
                .iter()
                .filter(|one| one.address.is_ipv4() == local.is_ipv4());
            all.extend(same_family.map(|one| ListeningAt {
                address: SocketAddr::new(one.address, local.port()),
                portal_group_tag: portal.portal_group_tag,
                interface: Some(one.interface.clone()),
            }));
        }
        all.sort();
        all.dedup();
        all
    }
}

/// Every address that should listen now.
fn wanted(export: &Export, interfaces: &[InterfaceAddress]) -> Vec<Wanted> {
    let mut all = Vec::new();
    for group in &export.portal_groups {
        for listen in &group.listens {
            match listen {
                Listen::Address(address) => {
                    all.push(Wanted {
                        address: *address,
                        portal_group_tag: group.tag,
                    });
                }
                Listen::Interface { name, port } => {
                    let of_it = interfaces.iter().filter(|one| one.interface == *name);
                    all.extend(of_it.map(|one| Wanted {
                        address: socket_address(one, *port),
                        portal_group_tag: group.tag,
                    }));
                }
            }
        }
    }
    all.sort();
    all.dedup();
    all
}

/// Each address for the portal group with the lowest tag that wants it; and who did not get it,
/// with the tag of who did.
fn first_come(wanted: Vec<Wanted>) -> (Vec<Wanted>, Vec<(Wanted, u16)>) {
    let (mut served, mut taken): (Vec<Wanted>, Vec<_>) = (Vec::new(), Vec::new());
    for portal in wanted {
        match served.last() {
            Some(last) if last.address == portal.address => {
                taken.push((portal, last.portal_group_tag));
            }
            Some(_) | None => served.push(portal),
        }
    }
    (served, taken)
}

fn socket_address(of: &InterfaceAddress, port: u16) -> SocketAddr {
    match of.address {
        IpAddr::V6(address) if address.is_unicast_link_local() => {
            SocketAddrV6::new(address, port, 0, of.interface_index).into()
        }
        address @ (IpAddr::V4(_) | IpAddr::V6(_)) => SocketAddr::new(address, port),
    }
}

/// Accepts until the portal is closed, and gives each connection to a core.
async fn accept(
    core: CoreHandle,
    shared: Arc<Shared>,
    listener: Weak<dyn Listener>,
    portal_group_tag: u16,
) {
    loop {
        let accepted = poll_fn(|cx| match listener.upgrade() {
            Some(listener) => listener.poll_accept(cx).map(Some),
            None => Poll::Ready(None),
        })
        .await;
        match accepted {
            None => return,
            Some(Ok(stream)) => crate::accept::place(&core, &shared, stream, portal_group_tag),
            Some(Err(error)) => {
                tracing::warn!(portal_group_tag, %error, "a connection could not be accepted");
                // Out of file descriptors or memory: trying at once would only spin.
                core.sleep_until(core.now().after(Duration::from_millis(50)))
                    .await;
            }
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::export::PortalGroup;

    fn address(interface: &str, address: &str) -> InterfaceAddress {
        InterfaceAddress {
            interface: interface.to_owned(),
            address: address.parse().unwrap(),
            prefix_bits: 24,
            interface_index: 7,
        }
    }

    #[test]
    fn an_interface_stands_for_all_its_addresses_and_no_others() {
        let listens = vec![
            Listen::Interface {
                name: "eth1".to_owned(),
                port: 3260,
            },
            Listen::Address("192.0.2.1:3261".parse().unwrap()),
        ];
        let group = PortalGroup {
            cores: Vec::new(),
            name: "a".to_owned(),
            tag: 1,
            listens,
        };
        let export = Export {
            portal_groups: vec![group],
            ..Export::default()
        };
        let interfaces = [
            address("eth0", "203.0.113.1"),
            address("eth1", "192.0.2.1"),
            address("eth1", "fe80::1"),
        ];
        let reported: Vec<String> = wanted(&export, &interfaces)
            .iter()
            .map(|one| one.address.to_string())
            .collect();
        assert_eq!(
            reported,
            ["192.0.2.1:3260", "192.0.2.1:3261", "[fe80::1%7]:3260"]
        );
    }
}
