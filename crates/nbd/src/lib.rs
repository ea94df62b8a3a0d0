//! NBD export of any volume: fixed newstyle negotiation, structured replies, several connections.
//!
//! ```text
//!   Server (accepts, one core for each connection in turn)
//!      |
//!   connection: a task of one core --bytes--> Machine (pure) --Request--> execute -> volume::Lane
//!      |                                                                     |
//!   env::Stream  <-- one vectored send for all that is done --  Outbox  <----+
//! ```
//!
//! **Contract.** A write that was answered is in the volume, in the sense of the waist: a flush on
//! any connection covers what was answered on all of them before (`NBD_FLAG_CAN_MULTI_CONN`).
//! Requests are executed in any order, as NBD allows. The payload of a large write is received into
//! the buffer that goes down; what is read goes out from where it lies.
//!
//! **Failure model.** A peer may send anything: it gets an error or loses its connection, and
//! memory for it is bounded ([`IN_FLIGHT_BYTES`], [`IN_FLIGHT_REQUESTS`], [`CONNECTIONS_MAX`]). A
//! stop answers what was taken and takes nothing more.
//!
//! Spec: the NBD protocol, `doc/proto.md` of NetworkBlockDevice/nbd.

mod connection;
mod execute;
mod export;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod handshake;
mod machine;
mod outbox;
mod server;
mod stop;
mod wire;

pub use connection::{IN_FLIGHT_BYTES, IN_FLIGHT_REQUESTS};
pub use export::Export;
pub use machine::{Machine, Step};
pub use server::{CONNECTIONS_MAX, Server};
pub use stop::Counters;
pub use wire::{Command, Request, TRANSFER_MAX, Violation};

#[cfg(test)]
mod test;
