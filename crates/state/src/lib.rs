//! The state of a node on disk: `docs/formats/state.md` describes its files.
//!
//! [`Store`] has the objects, one file for each generation. [`record`] reads the other records that
//! decide what becomes of data, and [`spare`] replaces files on a full disk. What is remembered of
//! pools, here and in them, is in [`remembered`], [`pool_file`] and [`saved`].

pub mod pool_file;
pub mod record;
pub mod remembered;
pub mod saved;
pub mod spare;
mod store;

pub use store::{GENERATIONS_KEPT, Opened, Store, check};
