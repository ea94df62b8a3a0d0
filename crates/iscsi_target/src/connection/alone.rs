//! Whether a connection is the only one that works on its core.
//!
//! A host that gets all replies of a batch at once sends its next commands at once, too: host and
//! target then work in turns. Replies that leave while the rest of the batch is worked on keep both
//! at work. Where other connections have work the core does that meanwhile, and a second send would
//! only cost.

use env::CoreHandle;
use std::cell::Cell;
use std::rc::Rc;

/// Replies of a batch that are sent before the batch is done.
pub(super) const REPLIES: usize = 16;

/// What the connections of a core share.
#[derive(Default)]
struct Batches {
    /// Connections so far, for numbers.
    connections: Cell<u64>,
    /// Whose the last batch was.
    last: Cell<u64>,
}

/// One connection's part.
pub(super) struct Alone {
    batches: Rc<Batches>,
    number: u64,
}

impl Alone {
    pub(super) fn new(core: &CoreHandle) -> Self {
        Self::among(core.locals().get())
    }

    fn among(batches: Rc<Batches>) -> Self {
        let number = batches.connections.get() + 1;
        batches.connections.set(number);
        Self { batches, number }
    }

    /// A batch has come. True: so had the one before, on this connection.
    pub(super) fn batch(&self) -> bool {
        self.batches.last.replace(self.number) == self.number
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_connection_is_alone_from_its_second_batch_on_until_another_one_has_one() {
        let batches = Rc::new(Batches::default());
        let (one, other) = (Alone::among(Rc::clone(&batches)), Alone::among(batches));
        assert_eq!([one.batch(), one.batch(), one.batch()], [false, true, true]);
        assert!(!other.batch());
        assert!(!one.batch());
        assert!(one.batch());
    }
}
