//! Which nodes a cluster has, and whom a node believes.
//!
//! **Contract.** Who is a node of the cluster is what the arbiter's records say, which change by
//! compare-and-swap alone and are never taken away.

pub mod admission;
pub mod authority;
mod fingerprint;
#[cfg(test)]
mod fixture;
pub mod frame;
pub mod records;
mod refusal;
pub mod register;
pub mod roster;
pub mod store;
#[cfg(test)]
mod test;
pub mod tls;
pub mod token;
pub mod words;

pub use fingerprint::Fingerprint;
pub use refusal::{Refusal, RefusalKind};
pub use store::SECRET_FILES;
