//! Best practice for storage over several paths, point by point: what is well here, what is not,
//! why, and what to do.
//!
//! ```text
//!   inspect()     reads the host    \
//!   probe_route() tries the portals  >-- Scene --examine()--> findings, each with its points
//!   a plan of the planner           /
//! ```
//!
//! **Contract.** Nothing is changed. A check is a pure function of the [`Scene`]; each point of
//! best practice has a finding, and a point that no program can see from here says what to check.
//! Works without a URL (then every port of the host counts as a storage port) and without a daemon.

mod finding;
mod host_checks;
mod open_iscsi;
mod open_iscsi_checks;
mod path_checks;
mod points;
mod report;
mod scene;

pub use finding::{Finding, Verdict};
pub use open_iscsi::{OpenIscsi, PathDisk, Record, Session};
pub use report::{Report, examine};
pub use scene::{Disk, InspectError, Pools, RouteProbe, Scene, Space, inspect, probe_route, used};

#[cfg(test)]
mod test;
