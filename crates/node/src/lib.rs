//! What serves a manifest: the controller that changes it, its stored state, and the data plane.
//!
//! ```text
//!   api --handle--> controller --engine--> data_plane --> lun, pool, journal, scrub
//!                        |
//!                      state
//! ```
//!
//! Nothing here knows of HTTP.

mod backend;
pub mod controller;
pub mod data_plane;
pub mod engine;
mod hardware;
mod in_time;
mod inner;
mod journal;
mod lun;
mod memory;
pub mod pool;
mod reached;
mod scrub;
pub mod state;
#[cfg(any(test, feature = "test_support"))]
pub mod test_support;

pub use data_plane::Node;
pub use reached::Reached;
