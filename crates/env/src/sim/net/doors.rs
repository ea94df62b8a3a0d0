//! `Net`, `Listener`, `Stream` and `InterfaceWatch` of a simulated node.

use super::super::executor::Life;
use super::super::fault::Fault;
use super::super::inner::{Inner, nanos};
use super::super::sleep::Sleep;
use super::state::{EndId, ListenerState, Orphans};
use crate::{
    DetachedStream, InterfaceAddress, InterfaceLink, InterfaceWatch, Listener, LocalFuture, Net,
    Stream,
};
use std::cell::Cell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::PoisonError;
use std::task::{Context, Poll};

/// The network as one life of one node sees it.
#[derive(Clone)]
pub(in super::super) struct SimNet {
    inner: Rc<Inner>,
    life: Life,
}

/// What a stream is while no core has it. Dropped, it closes the connection.
struct Parcel {
    end: EndId,
    orphans: Orphans,
    adopted: bool,
}

impl Drop for Parcel {
    fn drop(&mut self) {
        if !self.adopted {
            self.orphans
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(self.end);
        }
    }
}

impl SimNet {
    pub(in super::super) fn new(inner: &Rc<Inner>, life: Life) -> Self {
        Self {
            inner: Rc::clone(inner),
            life,
        }
    }

    fn alive(&self) -> io::Result<()> {
        if self.inner.is_alive(self.life) {
            return Ok(());
        }
        Err(ErrorKind::NetworkDown.into())
    }

    fn has_address(&self, ip: IpAddr) -> bool {
        self.inner.nodes.borrow()[usize::from(self.life.node)].has_address(ip)
    }

    fn is_free(&self, at: SocketAddr) -> bool {
        let net = self.inner.net.borrow();
        let clash = |other: &ListenerState| {
            let same_ip = other.at.ip() == at.ip()
                || (other.at.is_ipv4() == at.is_ipv4()
                    && (other.at.ip().is_unspecified() || at.ip().is_unspecified()));
            other.life == self.life && other.at.port() == at.port() && same_ip
        };
        !net.listeners.values().any(clash)
    }

    fn next_port(&self) -> u16 {
        let mut nodes = self.inner.nodes.borrow_mut();
        let node = &mut nodes[usize::from(self.life.node)];
        let port = node.next_port;
        node.next_port = if port == u16::MAX { 49152 } else { port + 1 };
        port
    }

    /// The address that a connection to `to` starts at.
    fn source(&self, to: IpAddr, from: Option<IpAddr>) -> io::Result<IpAddr> {
        if let Some(from) = from {
            return match self.has_address(from) && from.is_ipv4() == to.is_ipv4() {
                true => Ok(from),
                false => Err(ErrorKind::AddrNotAvailable.into()),
            };
        }
        if self.has_address(to) {
            return Ok(to);
        }
        let nodes = self.inner.nodes.borrow();
        let node = &nodes[usize::from(self.life.node)];
        let fits = |at: &&InterfaceAddress| {
            at.address.is_ipv4() == to.is_ipv4() && !at.address.is_loopback()
        };
        let found = node.addresses.iter().find(fits);
        found
            .map(|at| at.address)
            .ok_or(ErrorKind::NetworkUnreachable.into())
    }

    /// The node that has `ip` and that a packet from here reaches now.
    fn owner(&self, ip: IpAddr) -> Option<u16> {
        let nodes = self.inner.nodes.borrow();
        let here = usize::from(self.life.node);
        let index = if ip.is_loopback() || nodes[here].has_address(ip) {
            here
        } else {
            nodes.iter().position(|node| node.has_address(ip))?
        };
        let node = u16::try_from(index).expect("a world has at most 255 nodes");
        let net = self.inner.net.borrow();
        let cut = net.is_cut(self.life.node, node) || net.is_cut(node, self.life.node);
        (nodes[index].is_up() && !cut).then_some(node)
    }

    async fn connect_to(self, to: SocketAddr, from: Option<IpAddr>) -> io::Result<Rc<dyn Stream>> {
        self.alive()?;
        let source = SocketAddr::new(self.source(to.ip(), from)?, self.next_port());
        let (low, high) = (self.inner.config.latency_min, self.inner.config.latency_max);
        let round_trip = 2 * self.inner.between(nanos(low), nanos(high));
        Sleep::new(&self.inner, self.inner.now() + round_trip).await;
        let cut = self.inner.net.borrow().is_port_cut(source.ip(), to.ip());
        let Some(node) = self.owner(to.ip()).filter(|_| !cut) else {
            // What Linux does when nobody answers ARP.
            Sleep::new(&self.inner, self.inner.now() + 3_000_000_000).await;
            return Err(ErrorKind::HostUnreachable.into());
        };
        self.alive()?;
        let life = Life {
            node,
            incarnation: self.inner.nodes.borrow()[usize::from(node)].incarnation(),
        };
        let listener = self.listener_for(life, to);
        let Some(listener) = listener.filter(|_| !self.inner.happens(Fault::NetRefused)) else {
            self.inner.event(None, "refuse", [to.port().into(), 0, 0]);
            return Err(ErrorKind::ConnectionRefused.into());
        };
        let end = self.inner.net_open((self.life, source), (life, to));
        self.hand_over(listener, Inner::net_other_end(end), to, source);
        let number = end.connection;
        self.inner
            .event(None, "connect", [number, to.port().into(), 0]);
        Ok(Rc::new(SimStream {
            inner: self.inner,
            end,
            detached: Cell::new(false),
            local: source,
            peer: to,
        }))
    }

    fn listener_for(&self, life: Life, to: SocketAddr) -> Option<u64> {
        let net = self.inner.net.borrow();
        let fits = |it: &ListenerState| {
            let ip = it.at.ip() == to.ip()
                || (it.at.ip().is_unspecified() && it.at.is_ipv4() == to.is_ipv4());
            it.life == life && it.at.port() == to.port() && ip
        };
        let mut all = net.listeners.iter();
        all.find(|(_, it)| fits(it)).map(|(number, _)| *number)
    }

    fn hand_over(&self, listener: u64, end: EndId, local: SocketAddr, peer: SocketAddr) {
        let mut net = self.inner.net.borrow_mut();
        let orphans = Orphans::clone(&net.orphans);
        let adopted = false;
        let parcel = Parcel {
            end,
            orphans,
            adopted,
        };
        let listener = (net.listeners.get_mut(&listener)).expect("found in this very poll");
        listener.backlog.push_back(DetachedStream {
            local,
            peer,
            inner: Box::new(parcel),
        });
        if let Some(waiting) = listener.waiting.take() {
            waiting.wake();
        }
    }
}

impl Net for SimNet {
    fn listen(&self, mut at: SocketAddr) -> io::Result<Rc<dyn Listener>> {
        self.alive()?;
        if !at.ip().is_unspecified() && !self.has_address(at.ip()) {
            return Err(ErrorKind::AddrNotAvailable.into());
        }
        while at.port() == 0 {
            let port = self.next_port();
            if self.is_free(SocketAddr::new(at.ip(), port)) {
                at.set_port(port);
            }
        }
        if !self.is_free(at) {
            return Err(ErrorKind::AddrInUse.into());
        }
        let mut net = self.inner.net.borrow_mut();
        let number = net.number();
        net.listeners.insert(
            number,
            ListenerState {
                life: self.life,
                at,
                backlog: VecDeque::new(),
                waiting: None,
            },
        );
        drop(net);
        let inner = Rc::clone(&self.inner);
        Ok(Rc::new(SimListener { inner, number, at }))
    }

    fn connect(
        &self,
        to: SocketAddr,
        from: Option<IpAddr>,
    ) -> LocalFuture<io::Result<Rc<dyn Stream>>> {
        Box::pin(self.clone().connect_to(to, from))
    }

    fn adopt(&self, stream: DetachedStream) -> io::Result<Rc<dyn Stream>> {
        self.alive()?;
        let DetachedStream { local, peer, inner } = stream;
        let Ok(mut parcel) = inner.downcast::<Parcel>() else {
            return Err(ErrorKind::InvalidInput.into());
        };
        parcel.adopted = true;
        Ok(Rc::new(SimStream {
            inner: Rc::clone(&self.inner),
            end: parcel.end,
            detached: Cell::new(false),
            local,
            peer,
        }))
    }

    fn watch_interfaces(&self) -> io::Result<Rc<dyn InterfaceWatch>> {
        self.alive()?;
        let version = self.inner.nodes.borrow()[usize::from(self.life.node)].address_version;
        Ok(Rc::new(SimWatch {
            net: self.clone(),
            seen: Rc::new(Cell::new(version)),
        }))
    }
}

struct SimListener {
    inner: Rc<Inner>,
    number: u64,
    at: SocketAddr,
}

impl Listener for SimListener {
    fn local(&self) -> SocketAddr {
        self.at
    }

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<DetachedStream>> {
        let mut net = self.inner.net.borrow_mut();
        let Some(listener) = net.listeners.get_mut(&self.number) else {
            return Poll::Ready(Err(ErrorKind::NetworkDown.into()));
        };
        if let Some(stream) = listener.backlog.pop_front() {
            return Poll::Ready(Ok(stream));
        }
        listener.waiting = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        let listener = self.inner.net.borrow_mut().listeners.remove(&self.number);
        drop(listener);
    }
}

struct SimStream {
    inner: Rc<Inner>,
    end: EndId,
    /// Another core has it.
    detached: Cell<bool>,
    local: SocketAddr,
    peer: SocketAddr,
}

impl Stream for SimStream {
    fn local(&self) -> SocketAddr {
        self.local
    }

    fn peer(&self) -> SocketAddr {
        self.peer
    }

    fn poll_recv(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        assert!(
            !into.is_empty() && !self.detached.get(),
            "a receive has a place for at least a byte"
        );
        self.inner.net_receive(self.end, cx.waker(), into)
    }

    fn poll_send(&self, cx: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        assert!(pieces.len() <= 1024, "{} pieces in a send", pieces.len());
        let empty = pieces.iter().all(|piece| piece.is_empty());
        assert!(!empty, "a send has at least a byte");
        self.inner.net_send(self.end, cx.waker(), pieces)
    }

    fn shutdown(&self) {
        self.inner.net_close(self.end);
    }

    fn detach(&self) -> io::Result<DetachedStream> {
        assert!(!self.detached.replace(true), "a stream is given up once");
        let orphans = Orphans::clone(&self.inner.net.borrow().orphans);
        Ok(DetachedStream {
            local: self.local,
            peer: self.peer,
            inner: Box::new(Parcel {
                end: self.end,
                orphans,
                adopted: false,
            }),
        })
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        if !self.detached.get() {
            self.inner.net_close(self.end);
        }
    }
}

struct SimWatch {
    net: SimNet,
    seen: Rc<Cell<u64>>,
}

impl InterfaceWatch for SimWatch {
    fn current(&self) -> Vec<InterfaceAddress> {
        let nodes = self.net.inner.nodes.borrow();
        nodes[usize::from(self.net.life.node)].addresses.clone()
    }

    /// Every interface that has an address is there, and works.
    fn links(&self) -> Vec<InterfaceLink> {
        let mut links: Vec<InterfaceLink> = Vec::new();
        for at in self.current() {
            if links.iter().any(|link| link.name == at.interface) {
                continue;
            }
            links.push(InterfaceLink {
                loopback: at.address.is_loopback(),
                name: at.interface,
                index: at.interface_index,
                mtu: 1500,
                up: true,
                carrier: true,
            });
        }
        links.sort();
        links
    }

    fn changed(&self) -> LocalFuture<()> {
        let (net, seen) = (self.net.clone(), Rc::clone(&self.seen));
        Box::pin(poll_fn(move |cx| {
            let mut nodes = net.inner.nodes.borrow_mut();
            let node = &mut nodes[usize::from(net.life.node)];
            if node.address_version != seen.get() {
                seen.set(node.address_version);
                return Poll::Ready(());
            }
            node.address_watchers.push(cx.waker().clone());
            Poll::Pending
        }))
    }
}
