//! How many connections there may be of whom nobody knows who they are. Pure.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use tokio::sync::Notify;

/// At most so many, together and of one address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// All together.
    pub(crate) together: usize,
    /// Of one address.
    pub(crate) of_one: usize,
}

/// Those that there are, the oldest first.
///
/// Whoever comes is heard. Where there are as many as may be, an older one ends for it: of the
/// address that has most, the oldest. So who holds places without a word keeps nobody out, and many
/// of one address end none of another one's.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    bounds: Bounds,
    taken: Rc<RefCell<Taken>>,
}

#[derive(Default, Debug)]
struct Taken {
    numbered: u64,
    places: BTreeMap<u64, (IpAddr, Rc<Notify>)>,
}

/// One of them, until this is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    of: Connections,
    number: u64,
    ends: Rc<Notify>,
}

impl Taken {
    fn of(&self, address: IpAddr) -> usize {
        let all = self.places.values();
        all.filter(|(of, _)| *of == address).count()
    }

    /// Which one ends for one of this address.
    fn too_much(&self, bounds: Bounds, address: IpAddr) -> Option<u64> {
        let most = if self.of(address) >= bounds.of_one {
            Some(address)
        } else if self.places.len() >= bounds.together {
            let all = self.places.values().map(|(of, _)| *of);
            // Of those with as many: the one that has the oldest.
            all.rev().max_by_key(|of| self.of(*of))
        } else {
            None
        };
        let mut all = self.places.iter();
        let oldest = all.find(|(_, (of, _))| Some(*of) == most);
        oldest.map(|(number, _)| *number)
    }
}

impl Connections {
    /// So many.
    #[must_use]
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            taken: Rc::default(),
        }
    }

    /// A connection of this address.
    #[must_use]
    pub(crate) fn take(&self, address: IpAddr) -> Connection {
        let mut taken = self.taken.borrow_mut();
        if let Some(number) = taken.too_much(self.bounds, address)
            && let Some((_, ends)) = taken.places.remove(&number)
        {
            ends.notify_one();
        }
        let (number, ends) = (taken.numbered, Rc::<Notify>::default());
        taken.numbered += 1;
        taken.places.insert(number, (address, Rc::clone(&ends)));
        let of = self.clone();
        Connection { of, number, ends }
    }
}

impl Connection {
    /// Says when it is to end for another one.
    #[must_use]
    pub(crate) fn ends(&self) -> Rc<Notify> {
        Rc::clone(&self.ends)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.of.taken.borrow_mut().places.remove(&self.number);
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn has_ended(connection: &Connection) -> bool {
        let ends = connection.ends();
        let mut context = Context::from_waker(Waker::noop());
        let is_ready = pin!(ends.notified()).poll(&mut context).is_ready();
        if is_ready {
            ends.notify_one();
        }
        is_ready
    }

    fn all(connections: &[Connection]) -> Vec<bool> {
        connections.iter().map(has_ended).collect()
    }

    fn at(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    const BOUNDS: Bounds = Bounds {
        together: 4,
        of_one: 3,
    };

    #[test]
    fn who_comes_is_heard_and_the_oldest_of_the_address_that_has_most_ends() {
        let connections = Connections::new(BOUNDS);
        let mut taken: Vec<Connection> = [1, 1, 1, 2].map(|it| connections.take(at(it))).into();
        assert_eq!(all(&taken), [false; 4]);
        taken.push(connections.take(at(1)));
        assert_eq!(all(&taken), [true, false, false, false, false], "its own");
        taken.push(connections.take(at(3)));
        let two = [true, true, false, false, false, false];
        assert_eq!(all(&taken), two, "of the one that has most");
        taken.push(connections.take(at(4)));
        taken.push(connections.take(at(5)));
        let ended = [true, true, true, true, false, false, false, false];
        assert_eq!(all(&taken), ended, "then the oldest");
        assert_eq!(connections.taken.borrow().places.len(), 4);
        drop(taken);
        let taken = connections.taken.borrow();
        assert!(taken.places.is_empty(), "nothing is kept of who is gone");
    }

    #[test]
    fn what_was_given_back_is_a_place_and_ends_no_more() {
        let connections = Connections::new(BOUNDS);
        let known = connections.take(at(1));
        let ends = known.ends();
        drop(known);
        let strangers: Vec<Connection> = (0..100).map(|_| connections.take(at(1))).collect();
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(ends.notified()).poll(&mut context).is_pending());
        let left = strangers.iter().filter(|it| !has_ended(it)).count();
        assert_eq!(left, BOUNDS.of_one);
    }
}
