//! Which paths to use, and how: the pure half of multipath.
//!
//! ```text
//!   facts, overrides  ->  plan     which paths carry I/O, which wait, what to do after a loss, why
//!   command, bookings ->  policy   which of the active paths takes the next command
//!   events, time      ->  health   whether a path is dead, marginal, or to be trusted again
//!   lost sessions     ->  stale    when a write may be repeated or acknowledged, or needs a fence
//!   status, sense     ->  verdict  what becomes of a command that failed, and of its path
//! ```
//!
//! **Contract.** Pure functions and synchronous machines: no clock, socket, disk or thread. Facts,
//! events and [`units::Now`] go in, decisions come out; equal input gives equal output. Whoever has
//! sessions (the layer that makes one volume of several paths) carries the decisions out.

pub mod facts;
pub mod health;
mod mesh;
pub mod overrides;
pub mod plan;
pub mod policy;
pub mod stale;
pub mod verdict;

pub use facts::{Element, Facts, HostAddress, HostPort, PathName, Speed, Subnet, TargetPort};
pub use plan::{Options, Plan, Role};
pub use policy::{Policy, Selector};
