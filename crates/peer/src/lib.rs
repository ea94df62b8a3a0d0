//! What two nodes of a cluster say to each other, as pure machines.
//!
//! ```text
//!   owner of a LUN                        one connection a ring                 its other copy
//!   RingStream --Records--> Connection ==> Link ~~~~~~~ Link ==> Connection --> RingStream
//!        ^------------------ acks, credits --------------------------------------------+
//!   LunCopy <--Message--> Connection (control), beacons of the two nodes
//! ```
//!
//! A [`Connection`] makes bytes of frames and frames of bytes. A [`RingStream`] is what outlives
//! it: the records of one ring that the other node has not acknowledged, and what came from there.
//! When a link is lost it goes on over another one; numbers make repetition harmless. The bytes are
//! described in `docs/formats/peer.md`.
//!
//! **Contract.** No clock, socket, task or thread: bytes and requests go in, bytes and events come
//! out. Who drives it implements [`Link`] for the transport, ends what takes too long to begin, and
//! authenticates the other side before anything is handed in.
//!
//! **Invariants.** I1: bytes of a peer never panic. I2: a peer whose first frame was not accepted
//! holds at most [`FIRST_BYTES`] bytes here. I3: of a frame with any bit wrong nothing is given
//! out. I4: of what was sent, each change is given out once, in the order of its numbers, whatever
//! connections end. I5: no more comes than was granted, and what is granted is memory that is free.

#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)
)]

mod connection;
mod first;
mod forward;
mod frame;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod ids;
mod limits;
mod link;
mod message;
mod position;
mod receive;
mod records;
mod refusal;
mod rules;
mod stream;
#[cfg(test)]
mod test;
mod transmit;
mod unit_part;

pub use connection::{Connection, Event, Opened};
pub use first::{KnownNode, Own};
pub use forward::{
    CDB_BYTES_MAX, FORWARD_BYTES_MAX, Forward, Forwarded, ForwardedAnswer, ForwardedCommand,
    ForwardedEnd, ForwardedOrder, ForwardedReset, Guest, NAME_BYTES_MAX, SENSE_BYTES_MAX,
};
pub use ids::{ClusterId, ConnectionNumber, Incarnation, NodeId, Purpose};
pub use limits::{
    BODY_BYTES_MAX, Cost, DATA_BYTES_MAX, FIRST_BYTES, HEADER_BYTES, POSITIONS_MAX, RECORDS_MAX,
    SEND_AHEAD_BYTES, VERSION,
};
pub use link::{Link, exchange};
pub use position::{Position, Positions};
pub use receive::Want;
pub use records::{Origin, Records, Unsendable};
pub use refusal::{Breach, Closed, NotSent, Reason, Refusal, Versions};
pub use stream::{Attached, Late, Limits, NotTaken, RingStream, Taken};
pub use transmit::Transmit;
pub use unit_part::{NotNext, UNIT_BYTES_MAX, UnitPart, UnitSubject};
