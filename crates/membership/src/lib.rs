//! Which nodes a cluster has, and whom a node believes.
//!
//! ```text
//!   causeway cluster ... --socket--> commands --+-- register --> Arbiter: cluster, nodes/, tokens/
//!   another node --TLS--> listener --------------|-- store ----> files below the state directory
//!   upkeep: follows, asks, renews --------------'
//!   stream: dials, serves --> standing --> whoever has streams with other nodes (mirrors)
//!   pure: authority . records . token . admission . roster . connections . present
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
//! Streams with a node that leaves end when that is heard (`standing`).

pub mod admission;
pub mod authority;
mod belief;
mod client;
mod commands;
mod connections;
mod fingerprint;
#[cfg(test)]
mod fixture;
pub mod frame;
mod listener;
mod node;
mod present;
pub mod records;
mod refusal;
pub mod register;
pub mod roster;
mod runs;
mod service;
mod standing;
pub mod store;
mod stream;
#[cfg(test)]
mod test;
pub mod tls;
pub mod token;
mod upkeep;
pub mod words;

pub use fingerprint::Fingerprint;
pub use node::{Facts, FactsOf, Own, Settings};
pub use present::{OtherNode, Present};
pub use refusal::{Refusal, RefusalKind};
pub use service::{Changes, Membership, ask};
pub use standing::{Incoming, NodeStream};
pub use store::SECRET_FILES;
