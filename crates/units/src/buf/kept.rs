//! Memory that somebody keeps: shared for reading, written again once nobody reads it.

use super::shared::{Buf, Segment};
use super::slab::{IdleSlab, SlabRef};
use core::ops::Range;

/// One contiguous, page-aligned piece of memory outside any pool.
///
/// **Contract.** A [`Buf`] that was made of it never changes: while there is one, the bytes cannot
/// be written (I1 of this module's parent).
pub struct Slab(SlabRef);

impl Slab {
    /// Fresh memory of zeroes.
    ///
    /// # Panics
    /// If `capacity` is 0.
    #[must_use]
    pub fn zeroed(capacity: usize) -> Self {
        Self(SlabRef::adopt(IdleSlab::zeroed(capacity), None))
    }

    /// Takes a payload over without a copy: one whole slab of exactly `capacity` bytes that nobody
    /// else refers to. It no longer counts as lent by its pool.
    ///
    /// # Errors
    /// The payload itself, where it is anything else.
    pub fn keep(payload: Buf, capacity: usize) -> Result<Self, Buf> {
        payload.into_sole_slab(capacity).map(Self)
    }

    /// What it holds, from its first byte to its last.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// The bytes for writing; `None` while anybody reads them.
    #[must_use]
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        self.0.sole_bytes_mut()
    }

    /// These bytes as payload, by reference.
    ///
    /// # Panics
    /// If the range is not inside the slab.
    #[must_use]
    pub fn share(&self, range: Range<usize>) -> Buf {
        assert!(
            range.start <= range.end && range.end <= self.0.capacity(),
            "{range:?} of {}",
            self.0.capacity()
        );
        let mut out = Buf::empty();
        out.push_segment(Segment::new(self.0.clone(), range.start, range.len()));
        out
    }

    pub(super) fn into_idle(self) -> Option<IdleSlab> {
        self.0.into_idle()
    }
}
