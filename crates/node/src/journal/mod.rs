//! The journals of pools: opened, watched, and what is known of them.

pub(crate) mod all;
pub(crate) mod discard;
pub(crate) mod journals;
pub(crate) mod known_record;
pub(crate) mod monitor;
pub(crate) mod news;
pub(crate) mod opening;
pub(crate) mod pool_journal;
pub(crate) mod record;

#[cfg(test)]
pub(crate) mod monitor_test;
