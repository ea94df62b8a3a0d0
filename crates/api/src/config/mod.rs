//! The settings of the node: shown, changed where that is allowed, and a restart that brings them
//! into force.

mod routes;

#[cfg(test)]
mod test;

pub(crate) use routes::{Settings, paths};
