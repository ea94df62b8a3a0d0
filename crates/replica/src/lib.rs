//! The copy of a LUN on one of several nodes, as a pure machine.
//!
//! ```text
//!   connections, messages, time, the arbiter's answers, what became stable in the log
//!         --> LunCopy --> messages, swaps of the role record, what is committed, what is given up
//! ```
//!
//! One node owns a LUN and orders its changes. A change is acknowledged when it is stable in the
//! logs of all nodes that are *in sync*; readers see it only then. Who owns the LUN, and who is in
//! sync, says the role record, which changes by compare-and-swap at an arbiter. Writes depend on no
//! clock: each change carries the epoch of its owner, and who takes over stops accepting the old
//! epoch before it swaps the record.
//!
//! **Contract.** No clock, socket, disk or thread: whoever drives a [`LunCopy`] does its [`Act`]s
//! in the order in which they come, and stores what [`Act::Keep`] says before it does the next one.
//!
//! **What it rests on.** (I1) An epoch is written by one successful swap and names one owner. (I2)
//! Acknowledged is what is stable at every node that the owner knows to be in sync, accepted there
//! in its epoch. (I3) Each node that the record calls in sync has everything that was acknowledged.
//! (I4) Only such a node takes over, and it stops accepting lower epochs, durably, before it swaps.
//! (I5) A node reads its copy only while promises of the others hold, or if it alone is in sync;
//! and only what is committed. (I6) Nodes become in sync only by copying. (I7) Epoch, ring and
//! number name one change for ever.

mod copy;
mod message;
#[cfg(any(test, feature = "model"))]
pub mod model;
mod moment;
mod record;
mod state;

pub use copy::{Act, Arbitration, Durable, LunCopy, NotPromoted};
pub use message::{Conversation, Message, RingSummary};
pub use moment::{Moment, Spans};
pub use record::{CopyId, Epoch, NODES_MAX, NodeSet, NodeSlot, Revision, RoleRecord};
pub use state::State;
