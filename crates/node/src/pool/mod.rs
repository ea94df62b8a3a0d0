//! Pools: directories and members, their room, and what they remember.

pub(crate) mod asks;
pub(crate) mod directory;
pub mod disk;
pub(crate) mod fill;
pub(crate) mod intent_log;
pub(crate) mod members;
pub(crate) mod orphans;
pub mod pool_file;
pub mod remembered;
pub(crate) mod saved;
pub(crate) mod space;
pub(crate) mod unsaved;
pub(crate) mod usage;

#[cfg(test)]
mod pools_test;
