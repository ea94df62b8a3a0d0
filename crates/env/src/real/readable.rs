//! A file descriptor whose readability the core's event loop watches.

#![expect(
    unsafe_code,
    reason = "tokio wants to know that the descriptor stays the same"
)]

use std::io;
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers `fd` with the event loop of the calling core.
pub(super) fn readable(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` answers the same descriptor for all its life and closes it only when
    // dropped, and `AsyncFd` owns it from here on.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}
