//! What people see of a copy.

/// What a copy does now.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// It started, and does not know the record yet.
    Joining,
    /// It has everything that was acknowledged, and follows the owner.
    Replica,
    /// It lacks something, and is being brought up from the owner's log.
    CatchingUp,
    /// It lacks what the owner's log has no more, and is made anew from the owner: it is no copy
    /// until it has all of it.
    Copying,
    /// It stopped accepting the old epoch, and does not know yet whether its claim was written.
    Candidate,
    /// It owns the LUN, and what its log held before is not all committed: no reads yet.
    Opening,
    /// It orders all changes, and others have them too.
    Owner,
    /// It orders all changes, and nobody else is in sync.
    Solo,
    /// It owns the LUN, and does not know yet whether a silent member was removed.
    Removing,
    /// It owns the LUN, and not all promises of the others hold: reads and answers wait.
    Holding,
    /// It owns the LUN, and gives it to another node that is well: no writes are taken, and no
    /// reads once the other one was notified.
    Yielding,
    /// It serves nobody, and cannot: that needs the arbiter, whose store is another one, or forgot
    /// what it held.
    Stopped,
    /// It is no copy of the LUN.
    NoMember,
}
