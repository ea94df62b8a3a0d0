//! What is seen of the node, second by second, made into what is kept of it.
//!
//! ```text
//!   moments of the node --> changes   events: what is another way than a moment ago
//!                       --> readings  figures for the history
//!                       --> overview  the node as a whole, for whoever watches that
//!   samples of the node --> facts     what rules for alerts are asked about
//! ```
//!
//! **Contract.** No clock, file or thread, but that [`Nics::read`] reads counters of the kernel.
//! [`facts`] gives way in between: it is asked for on a core that serves.

mod changes;
mod copy_events;
mod disk_events;
mod facts;
#[cfg(test)]
mod fixture;
mod journal_events;
mod nics;
mod overview;
mod pairs;
mod readings;
mod slow_readings;
mod together;

pub use changes::Observed;
pub use facts::{facts, of_ended, of_unserved};
pub use nics::{Nic, Nics};
pub use overview::overview;
pub use pairs::{Lun, Older};
pub use readings::Readings;
