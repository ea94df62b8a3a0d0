//! A link that is two queues of bytes.

use crate::*;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use units::BufMut;

#[derive(Default)]
struct Direction {
    bytes: VecDeque<u8>,
    /// It takes so many bytes more; what is sent after them is lost.
    takes: Option<usize>,
    is_cut: bool,
}

/// One end of a pipe. How much goes at once is chosen by `step`.
pub(crate) struct PipeLink {
    out: Rc<RefCell<Direction>>,
    into: Rc<RefCell<Direction>>,
    step: Box<dyn FnMut() -> usize>,
}

/// Both ends of a pipe.
pub(crate) fn pipe(step: impl FnMut() -> usize + Clone + 'static) -> (PipeLink, PipeLink) {
    let there = Rc::new(RefCell::new(Direction::default()));
    let back = Rc::new(RefCell::new(Direction::default()));
    let left = PipeLink {
        out: Rc::clone(&there),
        into: Rc::clone(&back),
        step: Box::new(step.clone()),
    };
    let right = PipeLink {
        out: back,
        into: there,
        step: Box::new(step),
    };
    (left, right)
}

impl PipeLink {
    /// What this end sends is cut after so many bytes.
    pub(crate) fn cut_after(&self, bytes: usize) {
        self.out.borrow_mut().takes = Some(bytes);
    }

    /// Nothing goes through any more; what is on its way is lost.
    pub(crate) fn cut(&self) {
        for direction in [&self.out, &self.into] {
            let mut direction = direction.borrow_mut();
            direction.is_cut = true;
            direction.bytes.clear();
        }
    }
}

impl Link for PipeLink {
    fn send(&mut self, waiting: &Transmit) -> Poll<io::Result<usize>> {
        let mut out = self.out.borrow_mut();
        if out.is_cut {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let most = (self.step)().max(1);
        let bytes: Vec<u8> = waiting.pieces().flatten().copied().take(most).collect();
        let n = bytes.len();
        match &mut out.takes {
            None => out.bytes.extend(bytes),
            Some(takes) => {
                let goes = n.min(*takes);
                *takes -= goes;
                let is_over = *takes == 0;
                out.bytes.extend(&bytes[..goes]);
                out.is_cut |= is_over && goes < n;
            }
        }
        Poll::Ready(Ok(n))
    }

    fn receive(&mut self, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut from = self.into.borrow_mut();
        if from.bytes.is_empty() {
            return if from.is_cut {
                Poll::Ready(Ok(0))
            } else {
                Poll::Pending
            };
        }
        let n = into.len().min(from.bytes.len()).min((self.step)().max(1));
        for (place, byte) in into.iter_mut().zip(from.bytes.drain(..n)) {
            *place = byte;
        }
        Poll::Ready(Ok(n))
    }
}

/// As much as there is.
pub(crate) fn whole() -> usize {
    usize::MAX
}

/// Moves what can be moved; answers whether anything did.
pub(crate) fn step(connection: &mut Connection, link: &mut PipeLink) -> io::Result<bool> {
    exchange(connection, link, &mut |bytes| Some(BufMut::zeroed(bytes)))
}

/// The bytes that wait to be sent, which count as sent.
pub(crate) fn taken(connection: &mut Connection) -> Vec<u8> {
    let bytes: Vec<u8> = connection.transmit().pieces().flatten().copied().collect();
    connection.sent(bytes.len());
    bytes
}

/// Hands bytes in, with memory as it is wanted; answers what came of it.
pub(crate) fn hand(connection: &mut Connection, mut bytes: &[u8]) -> Vec<Event> {
    while !bytes.is_empty() && connection.want() != Want::Nothing {
        let n = connection.receive(bytes);
        bytes = &bytes[n..];
        if let Want::Memory { bytes } = connection.want() {
            connection.give_memory(BufMut::zeroed(bytes));
        }
    }
    std::iter::from_fn(|| connection.poll_event()).collect()
}

/// Node 0 connects with node 1.
pub(crate) fn connections(number: u64, purpose: Purpose) -> (Connection, Connection) {
    use super::{known, own};
    let number = ConnectionNumber(number);
    (
        Connection::connects(own(0), known(1), number, purpose),
        Connection::accepts(own(1), vec![known(0), known(7)]),
    )
}

/// Both know each other.
pub(crate) fn opened(purpose: Purpose) -> (Connection, Connection) {
    let (mut left, mut right) = connections(1, purpose);
    let there = taken(&mut left);
    assert!(matches!(hand(&mut right, &there)[..], [Event::Opened(_)]));
    let back = taken(&mut right);
    assert!(matches!(hand(&mut left, &back)[..], [Event::Opened(_)]));
    (left, right)
}
