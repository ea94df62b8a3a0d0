//! What happened in a node.
//!
//! **Contract.** Identifiers of events rise for ever, across restarts, clocks that are set back and
//! files that are lost. A subscriber that is too slow goes on with the newest event and learns how
//! many it missed.

#![allow(dead_code, reason = "the file and the subscribers come next")]

mod code;
mod event;
mod ring;

pub use code::{CATALOGUE, CatalogueEntry, Code, Severity, page};
pub use event::{Event, Happened, Object};
