//! `lab cluster`: what a host with a verified load sees while something of a cluster breaks.
//!
//! Two nodes with a link between them, three members of a real etcd, two networks to the host,
//! which has our multipath. All of it is made by the ordinary command line.

mod etcd;
mod load;
mod net;
mod order;
mod program;
mod seen;
mod site;

pub use etcd::has_etcd;
pub use order::{Act, Machine, Order, Programs, Step, Which, Wires, steps};
