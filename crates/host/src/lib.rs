//! The host's side of multipath: from a URL to one volume over every path that the plan uses, with
//! live status.
//!
//! ```text
//!   Url, Options                      what is wanted
//!      |
//!   discover -> Portals               where the target listens (SendTargets)
//!      |
//!   machine::Follower -> Facts        what this host's ports are, and what becomes of them
//!      |
//!   paths::plan -> PlanMonitor             which pairs of ports are used
//!      |
//!   multipath::Multipath over iscsi_initiator::unit::UnitPort      one core, the volume's home
//!      |
//!   Attached: volume::Volume          a lane on every core; others send their operations there
//! ```
//!
//! Volumes of one target that one core opens in the same way share one session for each path
//! ([`isids`]).
//!
//! **Contract.** [`open`] answers as soon as one path has shown the unit; the others join when they
//! can. A path that shows another unit is quarantined. Everything of a volume lives on the core
//! that opened it. Status is answered by that core at once, whatever the paths do: nothing in it
//! waits for the network.
//!
//! **Failure model.** No I/O error while a path lives; with none for `no_path_timeout` I/O fails.
//! [`Attached::stop`] ends within seconds, with every path hung too.

mod attached;
mod discover;
mod error;
mod follow;
mod grant;
mod growth;
mod home;
mod isids;
mod joining;
mod lane;
mod open;
mod options;
mod own_portal;
mod ports;
mod prepare;
pub mod process;
pub mod secret_file;
mod status;
mod store;
mod url;
pub mod view;

pub use attached::{Attached, Located, all_status};
pub use error::{HostError, Kind};
pub use open::{keep_policy, open, try_logins};
pub use options::{Credentials, DigestMode, Options, Sharing, WriteFailover};
pub use own_portal::{TargetAnswer, try_target};
pub use prepare::{Prepared, prepare};
pub use status::{PATH_STATES, PathState, PathStatus, Status};
pub use url::{HostPort, Url, UrlError};
