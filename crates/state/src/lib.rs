//! The state of a node on disk: `docs/formats/state.md` describes its files.
//!
//! [`Store`] has the objects, one file for each generation. [`record`] reads the other records that
//! decide what becomes of data, and [`spare`] replaces files on a full disk.

pub mod record;
pub mod spare;
mod store;

pub use store::{GENERATIONS_KEPT, Opened, Store, check};
