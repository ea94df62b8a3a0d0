//! What serves the objects of a manifest: the data plane of a node.
//!
//! ```text
//!   controller --Engine--> data_plane --> lun, pool, journal, scrub
//! ```
//!
//! Nothing here plans a change or knows of HTTP.

mod backend;
pub mod data_plane;
mod drain;
mod hardware;
mod inner;
mod journal;
mod lun;
mod mirrors;
mod pool;
mod scrub;

pub use data_plane::Node;
pub use mirrors::{HandOver, Mirrors};
