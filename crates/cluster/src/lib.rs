//! LUNs with copies on several nodes: what has sockets, timers and tasks around the machines that
//! decide.
//!
//! ```text
//!   hosts --> Served --> WriteBack --Carrier--> Lun (LunCopy) <--> Pair: control, a line a ring
//!               ^                                 |   |              |  Connection, RingStream
//!               +---- Tenure: who may serve ------+   +--> Arbiter   +--> Channel ~~~ other node
//! ```
//!
//! [`replica::LunCopy`] decides who owns a LUN, what is committed and what is given up;
//! [`peer::RingStream`] what goes over a connection and what is repeated. Here is what they have
//! done: a task for each LUN takes what it hears in the order in which it came, and does each act
//! to its end before the next one.
//!
//! **Contract.** Hosts are served by [`Served`] alone: changes while the copy owns the LUN and its
//! epoch is committed, reads while the promises of the others hold when they complete. What is
//! acknowledged is stable on all nodes in sync.
//!
//! **Failure model.** A connection that is lost is dialled anew, by the node with the lower slot.
//! What a copy has not got comes out of the owner's log; where the log has given it up, the copy
//! is made anew: what changed since it was removed, or all where that is not known, is written
//! again, through the owner's log. A copy whose record or log cannot be written stops, and the
//! others remove it.

mod cluster;
mod compare;
mod conversation;
mod copies;
mod copy_file;
mod copying;
mod digest;
mod feed;
mod feeding;
mod follow;
mod forward_door;
mod forwarding;
mod hand_over;
mod input;
mod latency;
mod line;
mod lun;
mod node;
mod note_removed;
mod pace;
mod pair;
mod perform;
mod questions;
mod registry;
mod removed;
mod renew;
mod ring_side;
mod served;
mod start;
mod tcp;
mod tenure;
mod throttle;
mod transport;
mod unit_said;
mod unit_side;

pub use cluster::{Cluster, Settings};
pub use copy_file::{CopyFile, CopyStore, StoredState};
pub use copying::Renewal;
pub use feed::Lag;
pub use forward_door::{Underway, forward, forward_close, forward_reset};
pub use forwarding::{Asked, Forwardings, GuestServer, Reply};
pub use hand_over::NotGiven;
pub use lun::LunStatus;
pub use removed::Removed;
pub use served::Served;
pub use start::{LunSpec, NotStarted};
pub use tcp::TcpTransport;
pub use transport::{Channel, Transport};
pub use unit_said::keep_state;
pub use unit_side::{HeldState, StateNotKept};
