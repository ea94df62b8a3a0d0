//! Memory that stays where it is.

use super::classes::BLOCK;
use super::slab::SlabRef;
use core::ptr::NonNull;

/// Bytes of pinned memory, which begins at a multiple of them.
pub const PINNED_BYTES: usize = BLOCK;

/// Memory that a payload is a part of, and that keeps its pages for the life of the process,
/// whatever payload lies in it: for whoever makes it known to the kernel once and for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pinned(NonNull<u8>);

impl Pinned {
    pub(super) fn of(slab: &SlabRef) -> Option<Self> {
        slab.pin().map(Self)
    }

    /// Where its [`PINNED_BYTES`] bytes begin. They belong to whoever has payload there.
    #[must_use]
    pub fn start(self) -> *mut u8 {
        self.0.as_ptr()
    }
}
