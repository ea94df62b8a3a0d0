//! Connections and what is on the way in them.
//!
//! Each direction is a queue of packets with the moment of their arrival; the moments never go
//! back, so the stream stays in order. Bytes count against the sender's window until the receiver
//! takes them.

use super::super::executor::Life;
use super::super::fault::Fault;
use super::super::file::EndOfLife;
use super::super::inner::{Inner, nanos};
use super::state::{Connection, End, EndId, Packet};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::PoisonError;
use std::task::{Poll, Waker};

/// How long until a packet that met a link which is down is tried again.
const RETRY_NANOS: u64 = 200_000_000;

impl Inner {
    /// Makes a connection; side 0 is who connected.
    pub(super) fn net_open(&self, client: (Life, SocketAddr), server: (Life, SocketAddr)) -> EndId {
        let end = |(life, local): (Life, SocketAddr), peer| End {
            life,
            local,
            peer,
            closed: false,
            arrived: VecDeque::new(),
            fin: false,
            error: None,
            wire: VecDeque::new(),
            outstanding: 0,
            busy_until: 0,
            receiver: None,
            sender: None,
        };
        let ends = [end(client, server.1), end(server, client.1)];
        let mut net = self.net.borrow_mut();
        let connection = net.number();
        net.connections
            .insert(connection, Connection { ends, hole: false });
        EndId {
            connection,
            side: 0,
        }
    }

    pub(super) fn net_other_end(id: EndId) -> EndId {
        id.other()
    }

    fn latency(&self) -> u64 {
        let usual = self.between(
            nanos(self.config.latency_min),
            nanos(self.config.latency_max),
        );
        if self.happens(Fault::NetSlow) {
            return usual + self.between(1_000_000, 400_000_000);
        }
        usual
    }

    /// Puts a packet on the wire to `to`.
    fn net_put(self: &Rc<Self>, to: EndId, packet: Packet) {
        let latency = self.latency();
        let now = self.now();
        let mut net = self.net.borrow_mut();
        if net.is_hole(to) {
            return;
        }
        let Some(end) = net.end(to) else { return };
        let bytes = match &packet {
            Packet::Data(bytes) => bytes.len() as u64,
            Packet::Fin | Packet::Reset => 0,
        };
        let sending = bytes.saturating_mul(1_000_000_000) / self.config.bytes_per_second;
        end.busy_until = end.busy_until.max(now + latency) + sending;
        let at = end.busy_until;
        end.wire.push_back((at, packet));
        drop(net);
        self.after(at - now, move |inner| inner.net_arrive(to));
    }

    /// Lets arrive what is due on the wire to `to`.
    fn net_arrive(self: &Rc<Self>, to: EndId) {
        loop {
            let mut net = self.net.borrow_mut();
            let Some(end) = net.end(to) else { return };
            let due = end.wire.front().is_some_and(|(at, _)| *at <= self.now());
            if !due {
                return;
            }
            let (life, local, peer) = (end.life, end.local, end.peer);
            let sender = match net.end(to.other()) {
                Some(end) => end.life.node,
                None => return,
            };
            if net.is_cut(sender, life.node)
                || net.is_port_cut(local.ip(), peer.ip())
                || !self.reachable(life.node, local.ip(), sender, peer)
            {
                drop(net);
                self.after(RETRY_NANOS, move |inner| inner.net_arrive(to));
                return;
            }
            let Some(end) = net.end(to) else { return };
            let Some((_, packet)) = end.wire.pop_front() else {
                return;
            };
            drop(net);
            self.net_deliver(to, life, packet);
        }
    }

    /// Both addresses still belong to the nodes that the connection runs between.
    fn reachable(&self, node: u16, local: IpAddr, other: u16, peer: SocketAddr) -> bool {
        let nodes = self.nodes.borrow();
        nodes[usize::from(node)].has_address(local)
            && nodes[usize::from(other)].has_address(peer.ip())
    }

    fn net_deliver(self: &Rc<Self>, to: EndId, life: Life, packet: Packet) {
        if !self.is_alive(life) {
            // Nobody there to say anything, until the machine is back and knows nothing of it.
            let is_up = self.nodes.borrow()[usize::from(life.node)].is_up();
            if is_up && !matches!(packet, Packet::Reset) {
                self.net_put(to.other(), Packet::Reset);
            }
            return;
        }
        let mut net = self.net.borrow_mut();
        let Some(end) = net.end(to) else { return };
        let closed = end.closed;
        match packet {
            Packet::Data(bytes) if closed => {
                end.outstanding -= bytes.len();
                drop(net);
                self.net_put(to.other(), Packet::Reset);
                return;
            }
            Packet::Data(bytes) => {
                end.arrived.extend(bytes.iter());
                drop(net);
                self.event(None, "arrive", to.numbers(bytes.len() as u64));
            }
            Packet::Fin => {
                end.fin = true;
                drop(net);
            }
            Packet::Reset => {
                end.error = Some(ErrorKind::ConnectionReset);
                drop(net);
                self.event(None, "reset", to.numbers(0));
                if self.coin()
                    && let Some(end) = self.net.borrow_mut().end(to)
                {
                    end.arrived.clear();
                }
            }
        }
        self.net_wake(to);
        self.net.borrow_mut().forget_if_over(to);
    }

    fn net_wake(&self, id: EndId) {
        if let Some(end) = self.net.borrow_mut().end(id) {
            let wakers = [end.receiver.take(), end.sender.take()];
            wakers.into_iter().flatten().for_each(Waker::wake);
        }
    }

    pub(super) fn net_receive(
        &self,
        id: EndId,
        waker: &Waker,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let short = self.draws(Fault::NetShortReceive);
        let mut net = self.net.borrow_mut();
        let Some(end) = net.end(id) else {
            return Poll::Ready(Ok(0));
        };
        if end.closed {
            return Poll::Ready(Ok(0));
        }
        let mut take = end.arrived.len().min(into.len());
        if take == 0 {
            if let Some(error) = end.error {
                return Poll::Ready(Err(error.into()));
            }
            if end.fin {
                return Poll::Ready(Ok(0));
            }
            end.receiver = Some(waker.clone());
            return Poll::Pending;
        }
        if short && take > 1 {
            take = self.rng.borrow_mut().index(take - 1) + 1;
            self.hit(Fault::NetShortReceive);
        }
        for (to, from) in into.iter_mut().zip(end.arrived.drain(..take)) {
            *to = from;
        }
        end.outstanding -= take;
        if let Some(sender) = net.end(id.other()).and_then(|end| end.sender.take()) {
            sender.wake();
        }
        drop(net);
        self.event(None, "receive", id.numbers(take as u64));
        Poll::Ready(Ok(take))
    }

    pub(super) fn net_send(
        self: &Rc<Self>,
        id: EndId,
        waker: &Waker,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let room = {
            let mut net = self.net.borrow_mut();
            let Some(end) = net.end(id) else {
                return Poll::Ready(Err(ErrorKind::ConnectionReset.into()));
            };
            if let Some(error) = end.error {
                return Poll::Ready(Err(error.into()));
            }
            if end.closed {
                return Poll::Ready(Err(ErrorKind::BrokenPipe.into()));
            }
            let on_the_way = net.end(id.other()).map_or(0, |other| other.outstanding);
            let room = self.config.window_bytes.saturating_sub(on_the_way);
            if room == 0 {
                net.end(id).expect("tested above").sender = Some(waker.clone());
                return Poll::Pending;
            }
            room
        };
        let all: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut take = all.min(room);
        if take > 1 && self.happens(Fault::NetShortSend) {
            take = self.rng.borrow_mut().index(take - 1) + 1;
        }
        let mut bytes = Vec::with_capacity(take);
        for piece in pieces {
            let n = piece.len().min(take - bytes.len());
            bytes.extend_from_slice(&piece[..n]);
        }
        self.event(None, "send", id.numbers(take as u64));
        self.net_put_bytes(id, bytes);
        Poll::Ready(Ok(take))
    }

    /// Sends `bytes` from `id`, with what the seed makes of them.
    fn net_put_bytes(self: &Rc<Self>, id: EndId, mut bytes: Vec<u8>) {
        let to = id.other();
        if self.draws(Fault::NetHalfOpen) {
            self.net_hole(id);
        }
        let reset = self.happens(Fault::NetReset);
        if reset {
            let keep = self.rng.borrow_mut().index(bytes.len() + 1);
            bytes.truncate(keep);
        }
        if let Some(end) = self.net.borrow_mut().end(to) {
            end.outstanding += bytes.len();
        }
        while bytes.len() > 1 && self.happens(Fault::NetSplit) {
            let small = self.coin();
            let most = if small {
                bytes.len().min(64)
            } else {
                bytes.len()
            };
            let cut = self.rng.borrow_mut().index(most - 1) + 1;
            let rest = bytes.split_off(cut);
            self.net_put(to, Packet::Data(std::mem::replace(&mut bytes, rest)));
        }
        if !bytes.is_empty() {
            self.net_put(to, Packet::Data(bytes));
        }
        if reset {
            self.net_put(to, Packet::Reset);
            if let Some(end) = self.net.borrow_mut().end(id) {
                end.error = Some(ErrorKind::ConnectionReset);
            }
            self.event(None, "reset", id.numbers(0));
            self.net_wake(id);
        }
    }

    /// Turns a connection into a black hole. Whoever then waits for an answer to what it sent
    /// learns of it when its TCP gives up.
    pub(super) fn net_hole(self: &Rc<Self>, id: EndId) {
        {
            let mut net = self.net.borrow_mut();
            let Some(connection) = net.connections.get_mut(&id.connection) else {
                return;
            };
            if std::mem::replace(&mut connection.hole, true) {
                return;
            }
        }
        self.hit(Fault::NetHalfOpen);
        self.event(None, "hole", id.numbers(0));
        self.net_watch_hole(id.connection);
    }

    fn net_watch_hole(self: &Rc<Self>, connection: u64) {
        self.after(nanos(self.config.tcp_timeout), move |inner| {
            for side in 0..2 {
                let id = EndId { connection, side };
                let mut net = inner.net.borrow_mut();
                let unanswered = net.end(id.other()).is_some_and(|end| end.outstanding > 0);
                let Some(end) = net.end(id) else { return };
                if unanswered && end.error.is_none() {
                    end.error = Some(ErrorKind::TimedOut);
                    drop(net);
                    inner.net_wake(id);
                }
            }
            let net = inner.net.borrow();
            let open = net
                .connections
                .get(&connection)
                .is_some_and(|it| it.ends.iter().any(|end| !end.closed && end.error.is_none()));
            drop(net);
            if open {
                inner.net_watch_hole(connection);
            }
        });
    }

    /// The owner of this end closes it, in both directions.
    pub(super) fn net_close(self: &Rc<Self>, id: EndId) {
        let unread = {
            let mut net = self.net.borrow_mut();
            let Some(end) = net.end(id) else { return };
            if std::mem::replace(&mut end.closed, true) {
                return;
            }
            !end.arrived.is_empty()
        };
        self.event(None, "close", id.numbers(0));
        self.net_wake(id);
        // As Linux does: closing with bytes unread resets.
        let last = if unread { Packet::Reset } else { Packet::Fin };
        self.net_put(id.other(), last);
        self.net.borrow_mut().forget_if_over(id);
    }

    /// Closes what was accepted and then forgotten.
    pub(in super::super) fn net_sweep(self: &Rc<Self>) {
        let orphans = {
            let net = self.net.borrow();
            let mut orphans = net.orphans.lock().unwrap_or_else(PoisonError::into_inner);
            if orphans.is_empty() {
                return;
            }
            std::mem::take(&mut *orphans)
        };
        for orphan in orphans {
            self.net_close(orphan);
        }
    }

    /// Breaks every connection of a life that ends, and takes its listeners away.
    pub(in super::super) fn net_end_of_life(self: &Rc<Self>, life: Life, how: EndOfLife) {
        let mut gone = Vec::new();
        let mut broken = Vec::new();
        {
            let mut net = self.net.borrow_mut();
            let of_it: Vec<u64> = (net.listeners.iter())
                .filter(|(_, listener)| listener.life == life)
                .map(|(number, _)| *number)
                .collect();
            gone.extend(
                of_it
                    .iter()
                    .filter_map(|number| net.listeners.remove(number)),
            );
            for (&connection, it) in &mut net.connections {
                let ends = (0u8..).zip(&mut it.ends);
                for (side, end) in ends.filter(|(_, end)| end.life == life && !end.closed) {
                    end.closed = true;
                    broken.push(EndId { connection, side });
                }
            }
        }
        drop(gone);
        // The peers of a node without power receive nothing, or a reset once it is up again. A plan
        // without half-open connections rules the first out.
        let may_be_silent = self.plan.borrow().per_million(Fault::NetHalfOpen) > 0;
        for id in broken {
            if how == EndOfLife::PowerCut && may_be_silent && self.coin() {
                self.net_hole(id);
            } else {
                self.net_put(id.other(), Packet::Reset);
            }
        }
    }
}
