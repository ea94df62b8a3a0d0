//! Who listens, who is connected, and what has arrived.

use super::super::executor::Life;
use crate::DetachedStream;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::task::Waker;

/// One end of one connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in super::super) struct EndId {
    pub(super) connection: u64,
    pub(super) side: u8,
}

impl EndId {
    pub(super) fn other(self) -> Self {
        Self {
            connection: self.connection,
            side: 1 - self.side,
        }
    }

    pub(super) fn numbers(self, third: u64) -> [u64; 3] {
        [self.connection, self.side.into(), third]
    }
}

pub(super) enum Packet {
    Data(Vec<u8>),
    Fin,
    Reset,
}

/// Everything about one end: who holds it, what has arrived, what is on the way to it.
pub(super) struct End {
    pub(super) life: Life,
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    /// Its owner dropped it, shut it down, or died.
    pub(super) closed: bool,
    pub(super) arrived: VecDeque<u8>,
    pub(super) fin: bool,
    pub(super) error: Option<ErrorKind>,
    pub(super) wire: VecDeque<(u64, Packet)>,
    /// Bytes sent to this end that it has not taken, including those that will never arrive.
    pub(super) outstanding: usize,
    /// When the last packet sent so far arrives.
    pub(super) busy_until: u64,
    pub(super) receiver: Option<Waker>,
    /// Who waits to send *from* this end.
    pub(super) sender: Option<Waker>,
}

pub(super) struct Connection {
    pub(super) ends: [End; 2],
    /// A black hole: what is sent from now on vanishes.
    pub(super) hole: bool,
}

pub(super) struct ListenerState {
    pub(super) life: Life,
    pub(super) at: SocketAddr,
    pub(super) backlog: VecDeque<DetachedStream>,
    pub(super) waiting: Option<Waker>,
}

/// Ends whose stream was dropped before any core adopted it.
pub(super) type Orphans = Arc<Mutex<Vec<EndId>>>;

#[derive(Default)]
pub(in super::super) struct NetState {
    pub(super) connections: BTreeMap<u64, Connection>,
    pub(super) listeners: BTreeMap<u64, ListenerState>,
    next_number: u64,
    /// From which node nothing arrives at which.
    cut: BTreeSet<(u16, u16)>,
    /// Addresses whose port is cut.
    cut_ports: BTreeSet<IpAddr>,
    pub(super) orphans: Orphans,
}

impl NetState {
    pub(in super::super) fn set_cut(&mut self, from: u16, to: u16, cut: bool) {
        if cut {
            self.cut.insert((from, to));
        } else {
            self.cut.remove(&(from, to));
        }
    }

    /// What one node sends does not arrive at the other one.
    pub(super) fn is_cut(&self, from: u16, to: u16) -> bool {
        self.cut.contains(&(from, to))
    }

    pub(in super::super) fn set_port_cut(&mut self, port: IpAddr, cut: bool) {
        if cut {
            self.cut_ports.insert(port);
        } else {
            self.cut_ports.remove(&port);
        }
    }

    /// One of the two ends of a wire is a port that is cut.
    pub(super) fn is_port_cut(&self, a: IpAddr, b: IpAddr) -> bool {
        self.cut_ports.contains(&a) || self.cut_ports.contains(&b)
    }

    pub(super) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    pub(super) fn end(&mut self, id: EndId) -> Option<&mut End> {
        let connection = self.connections.get_mut(&id.connection)?;
        connection.ends.get_mut(usize::from(id.side))
    }

    pub(super) fn is_hole(&self, id: EndId) -> bool {
        self.connections
            .get(&id.connection)
            .is_some_and(|connection| connection.hole)
    }

    pub(super) fn forget_if_over(&mut self, id: EndId) {
        let over = self.connections.get(&id.connection).is_some_and(|it| {
            it.ends.iter().all(|end| end.closed) && it.ends.iter().all(|end| end.wire.is_empty())
        });
        if over {
            self.connections.remove(&id.connection);
        }
    }
}
