//! The sizes of slabs.

/// Size classes in bytes. A request takes the smallest class that holds it, or several of the
/// largest.
pub(super) const CLASSES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, SLAB_BYTES_MAX];

/// The largest contiguous piece of memory that a pool gives, in bytes.
pub const SLAB_BYTES_MAX: usize = 1 << 20;

/// The class of a request that is not larger than the largest.
pub(super) fn class_of(bytes: usize) -> usize {
    CLASSES
        .iter()
        .position(|&class| bytes <= class)
        .expect("callers cut requests to SLAB_BYTES_MAX")
}

/// Bytes of a block: a huge page.
pub(super) const BLOCK: usize = 2 << 20;
