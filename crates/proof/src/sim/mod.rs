//! The simulator: volumes and targets with clients in a world made from one seed.
//!
//! A run has lives. In each one the clients read, write, zero, discard, compare-and-write and flush
//! while the seed's faults happen; then the power is cut or the process killed at a moment that the
//! seed chooses, and everything is read and judged before the next life starts. At the end the
//! faults stop, and everything must be there and answer.
//!
//! Some scenes are stories ([`Story`]): they have several hosts at depth, several units or the
//! whole node, and oracles of their own besides: [`order`], [`reservations`], [`copy`], [`node`].
//!
//! **Oracles.** [`crate::model_disk`] for what may be read, now and after a power cut;
//! [`crate::history`] for commands that overlap; stamps for torn blocks; the world for deadlocks.

mod client;
pub mod copy;
pub mod disk;
pub mod initiator;
pub mod journal;
mod lab;
pub mod layers;
mod layout;
pub mod limits;
pub mod multipath;
pub mod node;
mod oracle;
pub mod order;
mod pool;
pub mod raw;
mod report;
mod reservation_model;
pub mod reservations;
pub mod resets;
mod run;
mod scene;
mod stack;
mod story;
pub mod target;
mod worker;

pub use client::{Client, audit, within};
pub use layout::Layout;
pub use oracle::{Counts, End, Oracle, Ticket};
pub use report::{Failure, Marks, Report};
pub use run::{FILE_FAULTS, NET_FAULTS, run};
pub use scene::{Opened, Scene, Setup};
pub use story::{Stage, Story, play};
