//! Scrubs of LUNs: one that runs, when the next is due, and the metadata that each reads.

pub(crate) mod due;
pub(crate) mod metadata;
pub(crate) mod running;
pub(crate) mod schedule;
pub(crate) mod scrubs;
