//! The iSCSI initiator: sessions with targets, driven over the environment's network.
//!
//! ```text
//!   unit::UnitPort (a path of multipath::Multipath)       volumes
//!      |
//!   Session (a handle; commands are futures)          whoever waits for each command by itself
//!      |  one task of the core drives it
//!   Connection (submit, poll_event; no allocation)    many commands in flight in one loop
//!      |
//!   iscsi::InitiatorConnection       env::Stream
//! ```
//!
//! **Contract.** Everything lives on one core, and a core may have any number of sessions. What was
//! submitted since the last turn leaves in one vectored send. Payload up to 16 KiB is received in
//! bulk and copied, the rest of a larger one straight into the buffer that the command brought. A
//! CDB is 16 opaque bytes.
//!
//! **Failure model.** ErrorRecoveryLevel 0: whatever goes wrong ends the connection, and every
//! command that has not ended then ends with [`Lost`]: nobody knows whether it was carried out.
//! There is one connection a session and no reconnect: paths, retries and time limits of commands
//! belong to whoever has several sessions.
//!
//! Spec: RFC 7143.

mod connection;
mod login;
mod lost;
mod pending;
mod receive;
mod session;
pub mod unit;

pub use connection::Connection;
pub use login::{
    LoginError, ask_ports, connect, connect_by, discover, discover_by, discover_ports,
};
pub use lost::Lost;
pub use pending::Pending;
pub use session::{Answer, Session};
