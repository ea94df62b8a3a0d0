//! Ceph RBD images as volumes.

#![expect(
    dead_code,
    unused_imports,
    reason = "the volume over it is the next step"
)]

mod cluster;
mod error;
mod ffi;
mod health;
mod identity;
mod within;

pub use cluster::{Cluster, ClusterSpec, Description};
pub use error::{ErrorKind, Holder, RbdError};
pub use health::{Check, Fullness, Health, Severity};
pub use identity::Identity;
