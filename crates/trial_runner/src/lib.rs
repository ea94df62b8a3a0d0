//! Bench runs and lab beds that the daemon starts: the children that they are, and their files.
//!
//! ```text
//!   Bench::plan -> Bench::start -> guest of the LUN, `causeway bench --driven` -> lines -> a run
//!   Beds::start -> `causeway lab drive` -> lines -> a bed;  Beds::link -> a line -> the child
//! ```
//!
//! **Contract.** One run and one bed at a time, each in a process of its own with an end. A run is
//! let do what it was started for: one that only reads is a guest that may only read. No secret is
//! among the words of a child. A bed touches nothing but the namespaces that bear its name. However
//! the daemon ends, neither outlives it; the next start reports what was cut off.
//!
//! It runs on the thread of the API: what it starts is read there, and files are core 0's.

mod beds;
mod bench;
mod job;
mod outside;
mod plan;
mod run;

pub use beds::{Beds, can_have_one};
pub use bench::{Bench, not_there};
pub use plan::{Plan, plan};

/// What proves to a target that a run is who it says, while it runs; in the state directory.
pub const CHAP_FILE: &str = "bench-chap";
