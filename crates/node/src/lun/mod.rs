//! One LUN: what stands under it, its sidecars, and what becomes of it while it serves.

pub(crate) mod changing;
pub(crate) mod export;
pub(crate) mod facts;
pub(crate) mod failed;
pub(crate) mod geometry;
pub(crate) mod layers;
mod ports;
pub(crate) mod pulse;
pub(crate) mod reopening;
pub(crate) mod resizing;
pub(crate) mod seen;
pub(crate) mod sidecar;
pub(crate) mod sizes;
pub(crate) mod stalled;
pub(crate) mod stalls;
pub(crate) mod switching;
pub(crate) mod unit;
pub(crate) mod units;
pub(crate) mod unserved;
pub(crate) mod works;

#[cfg(test)]
mod reopening_test;
#[cfg(test)]
mod resizing_test;
#[cfg(test)]
mod works_test;
