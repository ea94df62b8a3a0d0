//! What a ring and who brings its changes to other nodes have to know of each other.

use journal::{Change, Epoch, Role, Sequence};
use units::Buf;

/// Who brings the changes of a volume in one ring to other nodes. On the core of the ring.
pub trait Carrier {
    /// These changes have got their numbers here, and go to the log's device in this poll: with
    /// their data, which is shared and not copied, in the order of their numbers, the begins of
    /// epochs with them. None of it is stable yet.
    fn submitted(&self, changes: Vec<(Change, Buf)>);

    /// All changes below this number are stable here, and no epoch that is on its way to the log
    /// makes them void: where one began or is followed, it may be lower than before. It is called
    /// in the poll that finds it so, and may commit at once.
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
    /// The epochs of what is stable, from the oldest on: whoever compares two logs takes `stable`
    /// as the end of the last one, as what is behind it may be of a later one.
    pub epochs: Vec<Epoch>,
    /// Who gives the changes their numbers.
    pub role: Role,
}
