//! How much of a ring's log hosts may have: what waits for it is bounded by [permits](Permits),
//! what a volume has in it by its [share](Share).
//!
//! Both are figures in and a decision out. Who has to wait does it in the ring, which has the state
//! that they are figures of.

mod permits;
mod share;

pub(crate) use permits::{Permit, Permits};
pub(crate) use share::Share;
