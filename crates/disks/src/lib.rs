//! The shell around [`device_health`]: which disks and bays there are, and what smartctl says of
//! them.
//!
//! ```text
//!   sysfs (disks, enclosures) --system, enclosures, places--\
//!   smartctl (a child each) ----------------------- ask ------> Ledger --> World::publish
//!   what root has read --------------------------- report --/
//! ```
//!
//! **Contract.** All of it runs on one thread that is no core of the runtime: a disk that hangs
//! holds up neither I/O nor the API. A child has a time and a length that it may take; where the
//! kernel does not let go of it, it is left behind, and no second one is started for its disk.
//! Nothing is ever written to a disk, and none that sleeps is woken.

mod ask;
mod enclosures;
mod places;
mod report;
mod roots;
mod system;
mod watch;

pub use ask::{Tool, find_tool};
pub use report::Report;
pub use roots::Roots;
pub use watch::{Settings, Watch, World, scan};

#[cfg(test)]
mod test;
