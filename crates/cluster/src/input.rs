//! What the task of a LUN hears.

use crate::removed::Removed;
use crate::unit_side::StateNotKept;
use peer::{Records, UnitPart};
use replica::{Arbitration, CopyId, Epoch, Message, NodeSlot, NotPromoted, Revision, RoleRecord};
use tokio::sync::oneshot;
use units::Buf;
use write_back::{Change, NotRead, ReadBack};

/// One thing that happened. Each is stamped with the moment at which it did, not at which the task
/// comes to it: a task that is late must not take a beacon that waits for silence.
pub(crate) enum Input {
    /// All connections with a node are there.
    Connected(NodeSlot),
    /// One of them is not, and with it what was said.
    Disconnected(NodeSlot),
    Heard(NodeSlot, Message),
    /// Of the LUN's unit.
    Unit(NodeSlot, UnitPart),
    /// This node has these ports to it.
    OwnPorts(Vec<u8>),
    /// Hosts have set something here: who is to hear that it is kept.
    KeepState(Vec<u8>, oneshot::Sender<Result<(), StateNotKept>>),
    /// New records of the stream that is followed.
    Records(Records),
    /// The owner's log gave these changes numbers, and they are on their way to its device.
    Submitted {
        ring: u8,
        changes: Vec<(Change, Buf)>,
    },
    Stable {
        ring: u8,
        below: u64,
    },
    Tick,
    /// This node gives the LUN to another one, where it can.
    HandOver(NodeSlot),
    /// These shall be its copies.
    Copies(Vec<(NodeSlot, CopyId)>),
    /// So many nodes have to be in sync for writes.
    MinCopies(u32),
    /// The arbiter has this record.
    Known(Revision, RoleRecord),
    /// This node goes on without those that had all of it: who is to hear whether it does.
    Promote(oneshot::Sender<Result<(), NotPromoted>>),
    /// The LUN is to work no more on this node.
    Close,
    /// The answer to the question with this number.
    Arbitrated(u64, Arbitration),
    /// What a node has missed was read out of the log.
    ReadBack {
        ring: u8,
        to: NodeSlot,
        feed: u64,
        read: Result<ReadBack, NotRead>,
    },
    /// All blocks were written again for a node, by the one with this number.
    Copied {
        to: NodeSlot,
        number: u64,
    },
    /// What was noted of a copy that is not in sync any more.
    Removed(Removed),
    /// The log did not take what came.
    NotAppended {
        ring: u8,
        generation: u64,
        why: write_back::NotAppended,
    },
    /// An epoch of this node's did not begin in a ring.
    NotBegun {
        epoch: Epoch,
        why: write_back::NoEpoch,
    },
}
