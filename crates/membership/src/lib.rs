//! Which nodes a cluster has, and whom a node believes.
//!
//! ```text
//!   causeway cluster ... --socket--> commands --+-- register --> Arbiter: cluster, nodes/, tokens/
//!   another node --TLS--> listener --------------|-- store ----> files below the state directory
//!   upkeep: follows, asks, renews --------------'
//!   pure: authority . records . token . admission . roster . connections
//! ```
//!
//! **Contract.** Who is a node of the cluster is what the arbiter's records say, which change by
//! compare-and-swap alone and are never taken away. A certificate is believed when the cluster's
//! authority signed it *and* the record of that node has its fingerprint
//! ([`roster::Roster::peer`]). A token lets one node in, however many try at once and however often
//! an answer is lost ([`register::Register::admit`]).
//!
//! **Failure model.** While the arbiter is away, nodes go on believing those that they knew; nobody
//! joins or leaves. An arbiter that has another cluster, or an older record than is known, is not
//! believed. What comes from whom nobody knows is bounded in number, bytes and time (`listener`).

pub mod admission;
pub mod authority;
mod client;
mod commands;
mod connections;
mod fingerprint;
#[cfg(test)]
mod fixture;
pub mod frame;
mod listener;
mod node;
pub mod records;
mod refusal;
pub mod register;
pub mod roster;
mod runs;
mod service;
pub mod store;
#[cfg(test)]
mod test;
pub mod tls;
pub mod token;
mod upkeep;
pub mod words;

pub use fingerprint::Fingerprint;
pub use node::{Facts, FactsOf, Own, Settings};
pub use refusal::{Refusal, RefusalKind};
pub use service::{Membership, ask};
pub use store::SECRET_FILES;
