//! Immutable payload, shared by reference.

use super::pinned::Pinned;
use super::slab::{IdleSlab, SlabRef};
use super::stream::copy_past_cache;
use crate::ByteCount;
use core::ops::Range;
use smallvec::SmallVec;
use std::sync::OnceLock;

/// Size of the shared slab of zeroes, in bytes.
const ZERO_SLAB_BYTES: usize = 1 << 20;

/// Immutable, reference-counted scatter-gather payload. Cloning and slicing never copy bytes.
#[derive(Default)]
pub struct Buf {
    segments: SmallVec<[Segment; 1]>,
    len: usize,
}

impl Clone for Buf {
    fn clone(&self) -> Self {
        // Most have one segment, and need none of what the general case does.
        let segments = match &self.segments[..] {
            [one] => SmallVec::from_buf([one.clone()]),
            several => several.iter().cloned().collect(),
        };
        let len = self.len;
        Self { segments, len }
    }
}

#[derive(Clone)]
pub(super) struct Segment {
    slab: SlabRef,
    start: usize,
    len: usize,
}

impl Segment {
    pub(super) fn new(slab: SlabRef, start: usize, len: usize) -> Self {
        debug_assert!(start + len <= slab.capacity());
        Self { slab, start, len }
    }

    fn bytes(&self) -> &[u8] {
        &self.slab.bytes()[self.start..self.start + self.len]
    }
}

impl Buf {
    /// No byte.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// `len` zero bytes that cost no memory: every segment is the same shared slab.
    #[must_use]
    pub fn zeroes(len: usize) -> Self {
        static ZERO: OnceLock<SlabRef> = OnceLock::new();
        let slab = ZERO.get_or_init(|| SlabRef::adopt(IdleSlab::zeroed(ZERO_SLAB_BYTES), None));
        Self::repeated(slab, ZERO_SLAB_BYTES, len)
    }

    /// This payload over and over until `len` bytes are reached; the last turn may be cut. No copy.
    ///
    /// # Panics
    /// If this payload is empty and `len` is not 0.
    #[must_use]
    pub fn repeat_to(&self, len: usize) -> Self {
        assert!(len == 0 || self.len > 0, "nothing to repeat");
        let mut out = Self::empty();
        while out.len < len {
            out.append(&self.slice(0..self.len.min(len - out.len)));
        }
        out
    }

    fn repeated(slab: &SlabRef, each: usize, len: usize) -> Self {
        let mut out = Self::empty();
        while out.len < len {
            out.push_segment(Segment::new(slab.clone(), 0, each.min(len - out.len)));
        }
        out
    }

    pub(super) fn push_segment(&mut self, segment: Segment) {
        if segment.len == 0 {
            return;
        }
        self.len += segment.len;
        if let Some(last) = self.segments.last_mut()
            && last.slab.same_slab(&segment.slab)
            && last.start + last.len == segment.start
        {
            last.len += segment.len;
            return;
        }
        self.segments.push(segment);
    }

    /// Adds all of `other` at the end.
    pub fn append(&mut self, other: &Self) {
        for segment in &other.segments {
            self.push_segment(segment.clone());
        }
    }

    /// Adds all of `other` at the end, without another reference to its memory.
    pub fn append_owned(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        for segment in other.segments {
            self.push_segment(segment);
        }
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Length as a typed size.
    #[must_use]
    pub fn byte_count(&self) -> ByteCount {
        ByteCount(self.len as u64)
    }

    /// No byte at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The part `range`, sharing memory with the whole.
    ///
    /// # Panics
    /// If the range is not inside the buffer.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "{range:?} of {}",
            self.len
        );
        let mut out = Self::empty();
        let mut at = 0;
        for segment in &self.segments {
            let from = range.start.clamp(at, at + segment.len);
            let to = range.end.clamp(at, at + segment.len);
            if from < to {
                out.push_segment(Segment::new(
                    segment.slab.clone(),
                    segment.start + (from - at),
                    to - from,
                ));
            }
            at += segment.len;
            if at >= range.end {
                break;
            }
        }
        out
    }

    /// Takes the first `len` bytes off. Whole segments move, without another reference to their
    /// memory.
    ///
    /// # Panics
    /// If the buffer is shorter.
    #[must_use]
    pub fn split_front(&mut self, len: usize) -> Self {
        assert!(len <= self.len, "{len} of {}", self.len);
        let (mut whole, mut bytes) = (0, 0);
        for segment in &self.segments {
            if bytes + segment.len > len {
                break;
            }
            bytes += segment.len;
            whole += 1;
        }
        let mut front = Self {
            segments: self.segments.drain(..whole).collect(),
            len: bytes,
        };
        self.len -= bytes;
        if bytes < len {
            front.append(&self.slice(0..len - bytes));
            *self = self.slice(len - bytes..self.len);
        }
        front
    }

    /// Every contiguous segment in order; none is empty.
    #[must_use]
    pub fn segments(&self) -> Segments<'_> {
        Segments(self.segments.iter())
    }

    /// Number of contiguous segments.
    #[must_use]
    pub fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// The bytes as one slice if they are contiguous.
    #[must_use]
    pub fn as_contiguous(&self) -> Option<&[u8]> {
        match self.segments.as_slice() {
            [] => Some(&[]),
            [one] => Some(one.bytes()),
            _ => None,
        }
    }

    /// Copies the bytes from `offset` on into `to`, which must not reach past the end.
    ///
    /// # Panics
    /// If `offset + to.len()` is past the end.
    pub fn copy_to(&self, offset: usize, to: &mut [u8]) {
        self.copy_with(offset, to, |from, to| to.copy_from_slice(from));
    }

    /// As [`Buf::copy_to`], past the cache: for memory that will not be read soon.
    ///
    /// # Panics
    /// As above.
    pub fn copy_past_cache_to(&self, offset: usize, to: &mut [u8]) {
        self.copy_with(offset, to, copy_past_cache);
    }

    fn copy_with(&self, offset: usize, to: &mut [u8], copy: impl Fn(&[u8], &mut [u8])) {
        assert!(
            offset + to.len() <= self.len,
            "{} bytes at {offset} of {}",
            to.len(),
            self.len
        );
        let (mut skip, mut done) = (offset, 0);
        for segment in self.segments() {
            if skip >= segment.len() {
                skip -= segment.len();
                continue;
            }
            let n = (segment.len() - skip).min(to.len() - done);
            copy(&segment[skip..skip + n], &mut to[done..done + n]);
            done += n;
            skip = 0;
            if done == to.len() {
                break;
            }
        }
    }

    /// Pins the memory that the first byte is a part of. `None` where it is a part of nothing
    /// larger: payload that comes from no pool and has no size of theirs.
    #[must_use]
    pub fn pin(&self) -> Option<Pinned> {
        self.segments
            .first()
            .and_then(|first| Pinned::of(&first.slab))
    }

    /// All bytes, copied.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len);
        for segment in self.segments() {
            out.extend_from_slice(segment);
        }
        out
    }

    /// Offset of the first byte that differs from `other`; `None` where both are equal over the
    /// length of the shorter one.
    #[must_use]
    pub fn first_difference(&self, other: &Self) -> Option<usize> {
        let (mut left, mut right) = (self.segments(), other.segments());
        let (mut a, mut b): (&[u8], &[u8]) = (&[], &[]);
        let mut at = 0;
        loop {
            if a.is_empty() {
                a = left.next()?;
            }
            if b.is_empty() {
                b = right.next()?;
            }
            let n = a.len().min(b.len());
            if a[..n] != b[..n] {
                let offset = a.iter().zip(b).position(|(x, y)| x != y);
                return offset.map(|offset| at + offset);
            }
            at += n;
            a = &a[n..];
            b = &b[n..];
        }
    }

    /// Every byte is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.segments()
            .all(|segment| segment.iter().all(|&byte| byte == 0))
    }

    /// The only reference to one whole slab of `capacity` bytes, out of the care of its pool; the
    /// buffer itself where it is anything else.
    pub(super) fn into_sole_slab(mut self, capacity: usize) -> Result<SlabRef, Self> {
        match self.segments.as_mut_slice() {
            [one] if one.start == 0 && one.len == capacity && one.slab.capacity() == capacity => {
                if !one.slab.leave_pool() {
                    return Err(self);
                }
            }
            _ => return Err(self),
        }
        let only = self.segments.pop().expect("there is one");
        Ok(only.slab)
    }
}

impl PartialEq for Buf {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.first_difference(other).is_none()
    }
}

impl Eq for Buf {}

impl core::fmt::Debug for Buf {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "Buf({} bytes in {} segments)",
            self.len,
            self.segments.len()
        )
    }
}

impl From<Vec<u8>> for Buf {
    fn from(bytes: Vec<u8>) -> Self {
        Self::copy_of(&bytes)
    }
}

/// The contiguous segments of a [`Buf`].
pub struct Segments<'a>(core::slice::Iter<'a, Segment>);

impl<'a> Iterator for Segments<'a> {
    type Item = &'a [u8];
    fn next(&mut self) -> Option<&'a [u8]> {
        self.0.next().map(Segment::bytes)
    }
}
