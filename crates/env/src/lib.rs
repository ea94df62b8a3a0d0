//! The one door to the outside world: time, randomness, tasks, network and files.
//!
//! ```text
//!        protocol, volumes, layers, logical units, target, control
//!                               |
//!                 Core . Net . Files  (the traits here)
//!                    /                      \
//!        real: tokio + io_uring        sim: one seed, virtual time
//! ```
//!
//! **Contract.** Code above this crate touches no clock, socket, disk, thread or source of
//! randomness except through a [`CoreHandle`]. A core is one thread in the real world and a fiction
//! in the simulated one; what lives on it is `!Send` and runs to the next `.await` without
//! interruption.
//!
//! **Failure model.** Every operation may fail with the `std::io::Error` that Linux would give. A
//! stream may break at any byte. What a file holds after a power cut is defined at [`file`].

pub mod answer;
mod call;
pub mod core;
mod detach;
pub mod durable;
pub mod file;
mod future;
mod in_time;
mod locals;
pub mod net;
pub mod real;
#[cfg(any(test, feature = "sim"))]
pub mod sim;
mod turn;

pub use crate::core::{Core, CoreHandle, CoreId, Job};
pub use answer::Answer;
pub use call::{call, call_all};
pub use detach::detach;
pub use file::{
    Access, Create, DirEntry, DiskEngine, Durable, EngineKind, Extent, File, FileDone, FileFacts,
    FileFuture, FileKind, FileOp, Files, OpenHow, PathKind, Space,
};
pub use future::LocalFuture;
pub use in_time::in_time;
pub use locals::Locals;
pub use net::{
    DetachedStream, DriverFacts, InterfaceAddress, InterfaceLink, InterfaceWatch, Listener, Net,
    Route, Stream, StreamMeasures, Woken,
};
pub use turn::yield_now;
