//! A laboratory for paths: hosts, switches and cards from network namespaces, faults in them, and
//! published tests.
//!
//! ```text
//!   claim     a name that is its alone; what a lab left that was killed is removed by the next
//!   bed       host, switch and target of namespaces, veth, bridges and tbf
//!   fault     cables pulled, silent black holes, brown-outs
//!   cluster   two nodes, etcd, a host: what breaks in it, by order or by list
//! ```
//!
//! **Contract.** A lab touches nothing but what bears its name: namespaces, a directory, a lock. It
//! drives the program under test from outside, as child processes in its namespaces, through
//! promised options and documents only.
//!
//! **Failure model.** However a lab ends, kill -9 included, the next one removes what it left.

pub mod bars;
mod bed;
mod beds;
mod claim;
pub mod cluster;
mod counters;
mod error;
mod fault;
pub mod faults;
mod faults_page;
mod figures;
pub mod mpio;
mod mpio_page;
mod port;
mod published;
mod rate;
mod rig;
pub mod round_robin;
pub mod sectors;
mod svg;
mod tool;
mod wire;

pub use bed::{Bed, Side, Topology};
pub use beds::{Known, SLOW, known, plan, topologies};
pub use claim::{Claim, clean};
pub use error::{Kind, LabError};
pub use figures::{Direction, Figures, Interval, Latency, PathFigures, PathState, Verified};
pub use port::{Harm, Port};
pub use published::{Pair, SectorRow, Switching};
pub use rate::Rate;
pub use rig::{Disk, Rig, Use};
pub use tool::can_have_one;

#[cfg(test)]
mod test;
