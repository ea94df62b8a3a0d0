//! Chunks that lie together.

/// Chunks of a LUN, one after the other. In a span, chunks are numbered through all members; in a
/// stripe, a chunk has the same number on each of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Run {
    /// The first one.
    pub first: u32,
    /// How many.
    pub count: u32,
}
