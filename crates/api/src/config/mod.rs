//! The settings of the node: shown, changed where that is allowed, and a restart that brings them
//! into force.

mod file;
mod machine;
mod routes;

#[cfg(test)]
mod test;

pub use file::read_config;
pub(crate) use routes::{Settings, paths};
