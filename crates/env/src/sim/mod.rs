//! The simulated side: whole machines with their networks and disks in one thread, from one seed.
//!
//! ```text
//!   World --- nodes --- cores (tasks, timers, jobs)      one run queue, the seed picks
//!      \        \------ disk  (durable | volatile)       crash: keep, drop, tear, replace
//!       \-------------- wires (latency, loss of life)    split, short, reset, half-open
//! ```
//!
//! **Contract.** The same seed, configuration and program give the same run, event by event:
//! [`World::hash`] says whether they did. Time is virtual: it passes a little with each step, and
//! jumps when nobody can run. A node that crashes loses all its tasks at once, wherever they wait,
//! and its disk keeps what [`crate::file`] promises and no more than chance gives. A node may be
//! paused, its clock may be faster or slower than the world's, its disk may go back to an image.
//!
//! **Failure model.** What may go wrong is listed in [`Fault`]; how often, in [`FaultPlan`];
//! whether it did, in [`World::hits`].
//!
//! Not simulated: CPU cost of a task, loss of single packets (TCP hides it as [`Fault::NetSlow`]),
//! wall clocks that differ between nodes.

mod clock;
mod config;
mod core;
mod executor;
mod fault;
mod file;
mod inner;
mod net;
mod node;
mod node_state;
mod random;
mod sleep;
mod trace;
mod world;

#[cfg(test)]
mod test;
#[cfg(test)]
mod test_machines;

pub use config::WorldConfig;
pub use fault::{Fault, FaultPlan, Hits};
pub use file::{BlockDevice, Disk, DiskImage};
pub use node::Node;
pub use random::Rng;
pub use world::{RunError, World};
