//! An operation on the slow path, while it has not ended.

use super::wait::Promise;
use paths::verdict::Tries;
use units::{BufMut, Now};
use volume::{Io, IoResult};

/// An operation whose issuer waits.
pub(super) struct Pending {
    pub(super) io: Io,
    pub(super) into: Option<BufMut>,
    pub(super) promise: Promise<IoResult>,
    pub(super) tries: Tries,
    pub(super) result: Option<IoResult>,
    pub(super) prefer: Option<usize>,
    pub(super) avoid: Option<usize>,
    pub(super) not_before: Now,
    /// A session was lost that may have executed it.
    pub(super) haunted: bool,
    /// It has no path since then.
    pub(super) without_path: Option<Now>,
}

impl Pending {
    pub(super) fn new(io: Io, into: Option<BufMut>, promise: Promise<IoResult>) -> Self {
        Self {
            io,
            into,
            promise,
            tries: Tries::default(),
            result: None,
            prefer: None,
            avoid: None,
            not_before: Now::ZERO,
            haunted: false,
            without_path: None,
        }
    }

    /// Wakes whoever waits, without an answer.
    pub(super) fn wake(&self) {
        self.promise.wake();
    }
}
