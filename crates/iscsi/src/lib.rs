//! iSCSI as pure machines, for targets and initiators: no sockets, no clocks, no threads.
//!
//! ```text
//!   driver (owns the socket)            TargetConnection / InitiatorConnection            owner
//!   want() ------------------------->   how many bytes, and of what
//!   receive_header / data_chunk+filled / receive_trailer --> poll_event() --> Event --> respond()
//!   transmit().pieces() <------------   headers, Bufs, digests, for one vectored send
//! ```
//!
//! A CDB is 16 opaque bytes here and sense data is opaque: this crate does not see `scsi`.
//!
//! **Invariants.** I1: bytes of a peer never panic. I2: a peer that has not logged in holds at most
//! [`target_side::UNAUTHENTICATED_BYTES_MAX`] bytes here. I3: nothing enters full feature phase
//! without the authentication that the policy asked for.
//!
//! **Limits.** ErrorRecoveryLevel 0 and one connection a session are what is built. The command
//! window is an object of the session, not of the connection, so that more stays possible.
//!
//! Spec: RFC 7143.

#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)
)]
pub mod bhs;
pub mod chap;
pub mod command_window;
pub mod data_sequence;
pub mod digest;
pub mod discovery;
pub mod extension_keys;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod initiator_side;
pub mod negotiation;
pub mod target_side;
pub mod text;

mod connection;
mod ids;
mod keepalive;
mod login_status;
mod parameters;
mod r2t;
mod receive;
mod serial;
mod status_numbering;
mod task_table;
mod transmit;
mod violation;

pub use connection::{CloseReason, Connection};
pub use data_sequence::Residual;
pub use ids::{Cid, Isid, Itt, Lun, Tsih, Ttt};
pub use login_status::LoginStatus;
pub use parameters::{DigestChoice, LENGTH_MAX, Offer, Parameters};
pub use receive::Want;
pub use serial::{CmdSn, DataSn, R2tSn, StatSn};
pub use transmit::Transmit;
pub use violation::{DataFault, Reaction, RejectReason, Violation, ViolationKind};

#[cfg(test)]
mod pair;
