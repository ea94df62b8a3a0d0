//! librados and librbd: the third place of the tree with `unsafe` code, and the only one of this
//! crate.
//!
//! ```text
//!   Api (library, prototypes)     the functions, found at run time: nothing is linked
//!     Connection                  a cluster and a pool; calls that block
//!       Image                     an open image; calls that block
//!         submit -> InFlight      operations that end by a callback
//! ```
//!
//! **Contract.** All but [`aio`] blocks and belongs on a thread of [`env::real::Threads`]. Closing
//! blocks too: whoever lets the last reference to an image or a connection go does not close it,
//! but has a thread do it.
//!
//! **Failure model.** What fails answers its errno. A cluster that does not answer makes calls
//! wait, for ever where no time is set; whatever memory such a call uses stays as long as it does.

#![expect(
    unsafe_code,
    reason = "functions of C, found at run time, with pointers to memory that they fill"
)]

mod aio;
mod connection;
#[cfg(test)]
mod header_test;
mod image;
mod library;
mod prototypes;
mod text;

pub(crate) use aio::{Ended, Inbox, Request, submit};
pub(crate) use connection::{ConnectError, Connection, Step};
pub(crate) use image::{Facts, ImageHandle, Region};
pub(crate) use library::LibraryError;
pub(crate) use prototypes::{Api, EXCLUSIVE_LOCK, FAST_DIFF};

/// What a function says that failed: a positive errno(3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Errno(pub(crate) i32);

/// The value of a function that answers a negative errno where it fails.
fn value<T: TryInto<i64> + Copy>(result: T) -> Result<u64, Errno> {
    let Ok(wide) = result.try_into() else {
        return Err(Errno(libc::EOVERFLOW));
    };
    u64::try_from(wide).map_err(|_| Errno(i32::try_from(-wide).unwrap_or(libc::EOVERFLOW)))
}

/// A function that has no value to answer.
fn done<T: TryInto<i64> + Copy>(result: T) -> Result<(), Errno> {
    value(result).map(|_| ())
}
