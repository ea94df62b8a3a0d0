//! `lab cluster`: what a host with a verified load sees while something of a cluster breaks.
//!
//! Two nodes with a link between them, three members of a real etcd, two networks to the host,
//! which has our multipath. All of it is made by the ordinary command line.

mod drill;
mod drills;
mod etcd;
mod kills;
mod load;
mod net;
mod order;
mod page;
mod program;
mod rows;
mod seen;
mod site;
mod stand;

pub use drill::{drills, run};
pub use etcd::has_etcd;
pub use kills::{KillsOptions, KillsReport, KillsRow, kill_loop};
pub use order::{Act, Machine, Order, Programs, Step, Which, Wires, steps};
pub use rows::{ClusterOptions, ClusterReport, ClusterRow, StepRow};
pub use stand::{ClusterStatus, LoadStatus, MemberStatus, NodeStatus, down, order, standing, up};
