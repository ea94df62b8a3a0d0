//! Ceph RBD images as volumes.
//!
//! ```text
//!   ImagePool (a pool as a place for LUNs)        whose images are, health, what they take
//!   Cluster (one connection: pool, conf, user)   health, images: make, adopt, describe,
//!         remove, take a lock away
//!      Image (open, with its exclusive lock)     a Volume: resize, allocated, whose it is
//!         lane on each core --> librbd --> desk of that core --> whoever asked
//! ```
//!
//! **Contract.** librbd is opened at run time: where it is not installed, that is an error with a
//! next step, and nothing else of the program notices. Nothing here waits on a core: what blocks
//! runs on threads ([`env::real::Threads`]), and the ends of I/O come back to the core that asked.
//! `unsafe` is in `ffi` alone.

mod behind_waist;
mod cluster;
mod desk;
mod error;
mod extents;
mod facts;
mod ffi;
mod health;
mod identity;
mod image;
mod in_time;
mod lane;
mod lock;
mod outcome;
mod owner;
mod pool;

pub use cluster::{Cluster, ClusterSpec, Description};
pub use error::{ErrorKind, Holder, RbdError};
pub use health::{Check, Fullness, Health, Severity};
pub use identity::Identity;
pub use image::{Image, ImageSpec};
pub use pool::{ImagePool, ImageShape, PoolImage, PoolSpec, PoolStatus, Turn};
