//! How many connections there may be of whom nobody knows who they are. Pure.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

/// At most so many, together and of one address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// All together.
    pub(crate) together: usize,
    /// Of one address.
    pub(crate) of_one: usize,
}

/// Counts those that there are, by the address that they come from.
#[derive(Clone, Debug)]
pub(crate) struct Connections {
    bounds: Bounds,
    taken: Rc<RefCell<BTreeMap<IpAddr, usize>>>,
}

/// One of them, until this is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    of: Connections,
    address: IpAddr,
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

    /// A connection of this address; none: there are as many as may be.
    #[must_use]
    pub(crate) fn take(&self, address: IpAddr) -> Option<Connection> {
        let mut taken = self.taken.borrow_mut();
        let all: usize = taken.values().sum();
        let of_one = taken.get(&address).copied().unwrap_or_default();
        if all >= self.bounds.together || of_one >= self.bounds.of_one {
            return None;
        }
        taken.insert(address, of_one + 1);
        let of = self.clone();
        Some(Connection { of, address })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut taken = self.of.taken.borrow_mut();
        match taken.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.remove(&self.address)),
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn one_address_cannot_take_all_places_and_each_is_free_again() {
        let bounds = Bounds {
            together: 3,
            of_one: 2,
        };
        let connections = Connections::new(bounds);
        let at = |last| IpAddr::from([10, 0, 0, last]);
        let first = connections.take(at(1));
        let second = connections.take(at(1));
        assert!(first.is_some() && second.is_some());
        assert!(connections.take(at(1)).is_none(), "two of one address");
        let third = connections.take(at(2));
        assert!(
            third.is_some() && connections.take(at(3)).is_none(),
            "three together"
        );
        drop(first);
        assert!(connections.take(at(3)).is_some(), "and free again at once");
        drop((second, third));
        assert!(
            connections.taken.borrow().is_empty(),
            "nothing is kept of who is gone"
        );
    }
}
