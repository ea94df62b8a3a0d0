//! Memory with one owner, to be filled and then frozen.

use super::pinned::Pinned;
use super::shared::{Buf, Segment};
use super::slab::{IdleSlab, SlabRef};
use smallvec::SmallVec;

/// Writable memory with one owner: one or more contiguous pieces.
pub struct BufMut {
    pieces: SmallVec<[Piece; 1]>,
    len: usize,
}

struct Piece {
    slab: SlabRef,
    len: usize,
}

impl BufMut {
    pub(super) fn empty() -> Self {
        Self {
            pieces: SmallVec::new(),
            len: 0,
        }
    }

    pub(super) fn push_slab(&mut self, slab: SlabRef, len: usize) {
        debug_assert!(len > 0 && len <= slab.capacity());
        self.len += len;
        self.pieces.push(Piece { slab, len });
    }

    /// Zeroed page-aligned memory outside any pool, for control paths and tests.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        let mut out = Self::empty();
        if len > 0 {
            out.push_slab(SlabRef::adopt(IdleSlab::zeroed(len), None), len);
        }
        out
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// No byte at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The contiguous memory from `offset` to the end of the piece that `offset` lies in: empty
    /// only at the end of the buffer.
    ///
    /// # Panics
    /// If `offset` is past the end.
    pub fn chunk_mut(&mut self, offset: usize) -> &mut [u8] {
        assert!(
            offset <= self.len,
            "offset {offset} is past the {} bytes of the buffer",
            self.len
        );
        let mut start = offset;
        for piece in &mut self.pieces {
            if start < piece.len {
                return &mut piece.slab.bytes_mut()[start..piece.len];
            }
            start -= piece.len;
        }
        &mut []
    }

    /// Every piece in order, for vectored reads.
    pub fn pieces_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.pieces
            .iter_mut()
            .map(|piece| &mut piece.slab.bytes_mut()[..piece.len])
    }

    /// As [`Buf::pin`].
    #[must_use]
    pub fn pin(&self) -> Option<Pinned> {
        self.pieces
            .first()
            .and_then(|first| Pinned::of(&first.slab))
    }

    /// Copies all of `from` to the beginning.
    ///
    /// # Panics
    /// If it does not fit.
    pub fn copy_all(&mut self, from: &Buf) {
        let mut at = 0;
        for segment in from.segments() {
            self.copy_at(at, segment);
            at += segment.len();
        }
    }

    /// Copies `from` to `offset`.
    ///
    /// # Panics
    /// If it does not fit.
    pub fn copy_at(&mut self, offset: usize, from: &[u8]) {
        assert!(
            from.len() <= self.len - offset,
            "{} bytes do not fit at {offset}",
            from.len()
        );
        let (mut at, mut rest) = (offset, from);
        while !rest.is_empty() {
            let chunk = self.chunk_mut(at);
            let n = chunk.len().min(rest.len());
            chunk[..n].copy_from_slice(&rest[..n]);
            at += n;
            rest = &rest[n..];
        }
    }

    /// Sets every byte from `offset` on to zero.
    pub fn zero_from(&mut self, offset: usize) {
        let mut at = offset;
        while at < self.len {
            let chunk = self.chunk_mut(at);
            chunk.fill(0);
            at += chunk.len();
        }
    }

    /// Gives up the right to write.
    #[must_use]
    pub fn freeze(self) -> Buf {
        let mut out = Buf::empty();
        for piece in self.pieces {
            out.push_segment(Segment::new(piece.slab, 0, piece.len));
        }
        out
    }
}

impl core::fmt::Debug for BufMut {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "BufMut({} bytes)", self.len)
    }
}

impl Buf {
    /// A copy of `bytes` outside any pool, for headers, parameter data and tests.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut memory = BufMut::zeroed(bytes.len());
        memory.copy_at(0, bytes);
        memory.freeze()
    }
}
