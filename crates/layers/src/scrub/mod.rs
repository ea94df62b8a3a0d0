//! Reading all of a volume, slowly, to find what has gone bad while a second copy may still be had.
//!
//! ```text
//!   Machine: which blocks next, how long to rest, what was found  <-->  Job: reads them
//!                                   |
//!                       Progress, kept now and then, so that a restart goes on
//! ```
//!
//! **Contract.** It only reads. With checksums below, a block that does not fit its checksum is
//! found by its address, the map's file is compared with memory, and what can be repaired is
//! repaired by the [integrity layer](crate::integrity), which holds the block meanwhile; blocks
//! that have no checksum yet get one; so a scrub needs no hold on what hosts have reserved for a
//! moment. Without checksums it finds what the medium cannot read.
//!
//! **Failure model.** A volume that does not answer ends the scrub after a minute of trying, with
//! the reason; what was checked stays checked.

mod machine;
mod map;
mod task;
#[cfg(test)]
mod test;

pub use machine::{Bad, BadKind, Machine, ScrubProgress, ScrubReport};
pub use map::{Answered, ScrubbedMap};
pub use task::{Count, End, Job, Keep};
