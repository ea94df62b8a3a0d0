//! The iSCSI front: portals, logins, sessions and their connections, over logical units.
//!
//! ```text
//!   portal (core 0) --accept--> placement --> connection (any core) --> logical_unit::Nexus
//!        ^                                        |
//!        |                                        +-- session directory (core 0): reinstatement
//!   Export (one snapshot for all) <--- Server::publish
//! ```
//!
//! **Failure model.** A connection may break at any byte: its tasks are aborted and what the
//! backend still has is quarantined by the logical unit. Bytes of a peer never panic; a peer that
//! has not logged in holds at most [`iscsi::target_side::UNAUTHENTICATED_BYTES_MAX`] bytes of the
//! protocol machine and nothing else, there are at most [`Settings::logins_in_progress_max`] of
//! them, and none keeps others from logging in.

mod accept;
mod balance;
mod connection;
mod digest_errors;
mod directory;
mod discovery;
mod ended;
mod export;
mod hardware;
mod listening;
mod load;
mod login;
mod login_places;
mod measure;
mod moves;
mod placement;
mod portal;
mod refusals;
mod server;
mod session;
mod shared;
mod stage_sample;

pub use ended::{EndedSession, EndedSince};
pub use export::{
    Export, ExportedTarget, Grant, Host, HostChap, Listen, MappedUnit, PortalGroup, Redirect,
    Settings, View,
};
pub use hardware::{Hardware, PortHardware};
pub use listening::{ListeningAt, PortalStatus};
pub use load::{CoreLoad, Load};
pub use refusals::{LoginCounts, Refusals, RefusedLogin};
pub use server::Server;
pub use session::{EndReason, Received, SessionInfo, SessionNumber, SessionStages};
pub use stage_sample::{SampledStages, StageCounts};
