//! What may wait for a ring's log, and what of it a volume may have.

mod permits;
mod share;

pub(crate) use permits::{Permit, Permits};
