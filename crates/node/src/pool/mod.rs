//! Pools: directories and members, their room, and what they remember.

pub(crate) mod asks;
pub(crate) mod directory;
pub(crate) mod facts;
pub(crate) mod fill;
pub(crate) mod intent_log;
pub(crate) mod intents;
pub(crate) mod late;
pub(crate) mod members;
pub(crate) mod orphan_record;
pub(crate) mod orphans;
pub(crate) mod orphans_seen;
pub(crate) mod path;
pub(crate) mod presence;
pub(crate) mod questions;
pub(crate) mod rbd;
pub(crate) mod saved;
pub(crate) mod space;
pub(crate) mod unsaved;
pub(crate) mod usage;
pub(crate) mod usage_known;

#[cfg(test)]
mod path_test;
#[cfg(test)]
mod pools_test;
