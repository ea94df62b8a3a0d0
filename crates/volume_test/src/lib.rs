//! What tests of volumes need: the model disk that every volume is compared with, the plainest
//! volume there is, faults on demand, numbers from a seed, and block contents that say who wrote
//! them.
//!
//! Only tests and the crate `proof` depend on this crate. Nothing that an administrator runs
//! contains it.

pub mod draw;
pub mod fault;
pub mod model;
pub mod plain;
pub mod stamp;

pub use draw::Draw;
pub use fault::{Action, FaultRule, Faults, Odds};
pub use plain::Plain;
