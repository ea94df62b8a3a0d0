//! The real side: one thread per core with tokio for the network and timers, and an io_uring (or
//! threads, where io_uring is refused) for files.
//!
//! ```text
//!   Runtime -- core 0: thread, pinned -- tokio current_thread + LocalSet -- tasks, jobs
//!           |                            '- Ring (io_uring, completions through an eventfd)
//!           |- core 1: ...
//!           '- Workers: threads for names, allocation, and for all of the disk without io_uring
//! ```
//!
//! **Failure model.** A task or job that panics ends alone and leaves a [`Notice`]. A hung disk
//! operation keeps its memory and one kernel worker or thread; everything else goes on.
//!
//! **Dual stack.** A listener at the IPv6 wildcard address takes IPv6 only; whoever wants both
//! listens at `0.0.0.0` and `[::]`. So an address family never appears that nobody configured.

mod blocking;
mod clock;
mod coalesce;
mod directory;
mod ethtool;
mod files;
mod forget;
mod handle;
mod here;
mod local;
mod measures;
mod netlink;
mod network;
mod notices;
mod peer;
mod probe;
mod readable;
mod readiness;
mod registered;
mod ring;
mod runtime;
mod shared;
mod slow_flush;
mod spin;
mod syncs;
mod threads;
mod transfer;
mod watch;
mod workers;

pub use clock::wall_clock;
pub use ethtool::{Ethtool, Offload};
pub use notices::Notice;
pub use peer::peer_groups;
pub use runtime::{Cores, Driver, FilesMode, Poster, Runtime, RuntimeConfig};
pub use threads::Threads;

#[cfg(test)]
mod interfaces_test;
#[cfg(test)]
mod refused;
#[cfg(test)]
mod test;
