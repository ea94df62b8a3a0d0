//! The settings of a node as a start reads them: `node.toml`, the changes that were made through
//! the API in its place, and whether this machine has what they name.
//!
//! **Contract.** Whoever reads them here reads what the next start would, with its mistakes.
//! Nothing is made or changed: a check of a place leaves it as it was.

mod file;
mod machine;
mod schema;

pub use file::{Now, now, read_config, with};
pub use machine::{Here, check};
pub use schema::schema;
