//! Streams with other nodes that stand, and those that wait for whoever takes them.
//!
//! **Failure model.** A node has at most [`OF_ONE_MAX`] streams: a pair of nodes needs one for
//! control and one for each ring, of which there are at most 255, and after a break those of before
//! may stand here until their silence is noticed, so twice as many. Where one more comes the node's
//! oldest ends: it is the one that most likely is dead.

use crate::roster::Roster;
use env::Stream;
use rustls::Connection;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::rc::Rc;
use tokio::sync::Notify;

/// Streams of one node.
pub(crate) const OF_ONE_MAX: usize = 2 * (1 + 255);

/// A stream with another node, which both have authenticated.
///
/// It counts as one of that node's until it is dropped, and ends at once when the node leaves the
/// cluster.
pub struct NodeStream {
    /// Which node is at the other end.
    pub slot: u8,
    /// The connection that carries TLS.
    pub wire: Rc<dyn Stream>,
    /// TLS, with what it has received already.
    pub tls: Connection,
    _place: Place,
}

impl fmt::Debug for NodeStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a stream with node {}", self.slot)
    }
}

/// A stream's place among those that stand.
struct Place {
    of: Rc<Streams>,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let gone = self.of.standing.borrow_mut().remove(&self.number);
        drop(gone);
    }
}

/// By their numbers, the oldest first: with which node, over what.
type Standing = BTreeMap<u64, (u8, Rc<dyn Stream>)>;

/// All of a node's streams.
#[derive(Default)]
pub(crate) struct Streams {
    numbered: Cell<u64>,
    standing: RefCell<Standing>,
    waiting: RefCell<VecDeque<NodeStream>>,
    takers: Cell<usize>,
    came: Notify,
}

impl Streams {
    /// A stream that stands from now on.
    pub(crate) fn stands(
        self: &Rc<Self>,
        slot: u8,
        (tls, wire): (Connection, Rc<dyn Stream>),
    ) -> NodeStream {
        let number = self.numbered.get();
        self.numbered.set(number + 1);
        let mut standing = self.standing.borrow_mut();
        let of_it: Vec<u64> = standing
            .iter()
            .filter(|(_, it)| it.0 == slot)
            .map(|(number, _)| *number)
            .collect();
        if let Some(oldest) = of_it.first().filter(|_| of_it.len() >= OF_ONE_MAX)
            && let Some((_, oldest)) = standing.remove(oldest)
        {
            oldest.shutdown();
        }
        standing.insert(number, (slot, Rc::clone(&wire)));
        drop(standing);
        let of = Rc::clone(self);
        NodeStream {
            slot,
            wire,
            tls,
            _place: Place { of, number },
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.standing.borrow().is_empty()
    }

    /// Whether anybody takes streams that other nodes make.
    pub(crate) fn are_taken(&self) -> bool {
        self.takers.get() > 0
    }

    /// For whoever takes it.
    pub(crate) fn came(&self, stream: NodeStream) {
        if self.are_taken() {
            self.waiting.borrow_mut().push_back(stream);
            self.came.notify_one();
        }
    }

    /// Ends those with nodes that are not in the cluster of `roster`, of which this node has
    /// number `own`.
    pub(crate) fn follow(&self, roster: &Roster, own: u8) {
        let is_in = |slot: u8| roster.joined().any(|it| it.0 == slot);
        let is_own_in = is_in(own);
        self.end(|slot| !is_own_in || !is_in(slot));
    }

    /// Ends those of these nodes.
    pub(crate) fn end(&self, ends: impl Fn(u8) -> bool) {
        let standing = self.standing.borrow();
        for (slot, wire) in standing.values() {
            if ends(*slot) {
                tracing::info!("node {slot} is in this cluster no more: a stream with it ends");
                wire.shutdown();
            }
        }
        drop(standing);
        let waiting = self.waiting.take();
        let (gone, stay): (VecDeque<_>, _) = waiting.into_iter().partition(|it| ends(it.slot));
        *self.waiting.borrow_mut() = stay;
        drop(gone);
    }
}

/// Streams that other nodes make. As long as there is one of these they are accepted.
pub struct Incoming(Rc<Streams>);

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Incoming")
    }
}

impl Incoming {
    pub(crate) fn new(streams: &Rc<Streams>) -> Self {
        streams.takers.set(streams.takers.get() + 1);
        Self(Rc::clone(streams))
    }

    /// The next one, in the order in which they came.
    pub async fn next(&self) -> NodeStream {
        loop {
            let next = self.0.waiting.borrow_mut().pop_front();
            if let Some(stream) = next {
                return stream;
            }
            self.0.came.notified().await;
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.0.takers.set(self.0.takers.get() - 1);
        if !self.0.are_taken() {
            drop(self.0.waiting.take());
        }
    }
}
