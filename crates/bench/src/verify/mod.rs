//! Verification: every write carries stamps, and a model of what was acknowledged says what a read
//! must show.
//!
//! **Contract.** The region is cut into units. An operation claims all its units first, so that no
//! two operations of this run overlap in flight, and the model is exact: a unit must hold the last
//! write that was acknowledged; where a write failed, that one or the one before. What was not
//! written in this run is not judged.
//!
//! **What is caught.** *Lost*: an acknowledged write is not there, an older one still is. *Stale*:
//! it was there and an older one has come back over it. *Torn*: 512 bytes are a mixture.
//! *Misplaced*: another address was written for. *Foreign*: none of this run's stamps.

mod model;
mod stamp;

pub(crate) use model::Checker;
pub use model::{Bad, Tally, Wrong};
pub use stamp::Stamp;
