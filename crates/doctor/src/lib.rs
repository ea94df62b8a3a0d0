//! Best practice for storage over several paths, point by point: what is well here, what is not,
//! why, and what to do.
//!
//! ```text
//!   inspect()     reads the host    \
//!   probe_routes() tries portals     >-- Scene --examine()--> findings, each with its points
//!   a plan of the planner           /
//! ```
//!
//! The command line checks the host that it runs on; the daemon its own machine, by
//! [`examine_node`].
//!
//! **Contract.** Nothing is changed: what a node's storage does is tried with a file that has no
//! name ([`NodeStorage`]). A check is a pure function of the [`Scene`]; each point of
//! best practice has a finding, and a point that no program can see from here says what to check.
//! Works without a URL (then every port of the host counts as a storage port) and without a daemon.

mod finding;
mod here;
mod host_checks;
mod open_iscsi;
mod open_iscsi_checks;
mod path_checks;
mod points;
mod report;
mod scene;
mod storage;

pub use finding::{Finding, Verdict};
pub use here::{examine_node, on_a_core};
pub use open_iscsi::{OpenIscsi, PathDisk, Record, Session};
pub use report::{Report, examine};
pub use scene::{
    Disk, InspectError, Pools, RouteProbe, Scene, Space, inspect, pool_space, probe_routes, used,
};
pub use storage::NodeStorage;

#[cfg(test)]
mod test;
