//! What a ring and who brings its changes to other nodes have to know of each other.

use journal::{Epoch, Sequence};

/// Who brings the changes of a volume in one ring to other nodes. On the core of the ring.
pub trait Carrier {
    /// All changes below this number are stable here. It is called in the poll that finds it so,
    /// and may commit at once.
    fn stable(&self, below: Sequence);
}

/// What one ring knows of the order of a volume's changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RingOrder {
    /// The number that the next change gets.
    pub next: Sequence,
    /// All changes below this number are stable here.
    pub stable: Sequence,
    /// All changes below this number are known to be committed.
    pub committed: Sequence,
    /// The epochs that the log knows, from the oldest on.
    pub epochs: Vec<Epoch>,
}
