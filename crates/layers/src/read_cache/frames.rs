//! The memory of a part of a read cache: frames of one page, many in a slab.
//!
//! A page's reference count is that of its slab, so that a few thousand counts, which a processor's
//! own cache holds, serve a gigabyte. What that costs: a frame cannot be filled while anybody reads
//! a neighbour in its slab.
//!
//! **Invariants.** I1: what was read never changes: a frame is filled only while nobody refers to
//! its slab.

use std::collections::VecDeque;
use units::{Buf, Slab};

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// Frames in a slab, for so many frames at least: where there are few slabs, readers would keep too
/// many of them.
const SLAB_FRAMES: [(usize, usize); 2] = [(512, 16), (64, 4)];

/// How many frames are tried to find one whose slab nobody reads.
const TRIES: usize = 8;

/// The number of a frame.
pub(super) type Frame = u32;

pub(super) struct Frames {
    slabs: Vec<Slab>,
    slabs_max: usize,
    /// Frames in each slab.
    each: usize,
    /// Frames without a page; the one that was given back first is used first.
    free: VecDeque<Frame>,
}

impl Frames {
    /// Room for so many frames, or a few less; the memory is taken when it is needed.
    pub(super) fn new(count: usize) -> Self {
        let fitting = SLAB_FRAMES.iter().find(|(from, _)| count >= *from);
        let each = fitting.map_or(1, |(_, each)| *each);
        Self {
            slabs: Vec::new(),
            slabs_max: count / each,
            each,
            free: VecDeque::new(),
        }
    }

    /// How many frames there may be.
    pub(super) fn max(&self) -> usize {
        self.slabs_max * self.each
    }

    /// A free frame with the page at byte `at` of `data`; `None` where those that are free have a
    /// neighbour that somebody reads.
    pub(super) fn fill(&mut self, data: &Buf, at: usize) -> Option<Frame> {
        for _ in 0..self.free.len().min(TRIES) {
            let frame = self.free.pop_front()?;
            if self.write(frame, data, at) {
                return Some(frame);
            }
            self.free.push_back(frame);
        }
        self.grow()?;
        let frame = self.free.pop_back()?;
        let is_written = self.write(frame, data, at);
        assert!(is_written, "nobody knows a new slab");
        Some(frame)
    }

    /// The frame's page has gone.
    pub(super) fn give(&mut self, frame: Frame) {
        self.free.push_back(frame);
    }

    /// The frame's page, by reference.
    pub(super) fn share(&self, frame: Frame) -> Buf {
        let (slab, at) = self.place(frame);
        self.slabs[slab].share(at..at + PAGE)
    }

    fn write(&mut self, frame: Frame, data: &Buf, from: usize) -> bool {
        let (slab, at) = self.place(frame);
        let Some(bytes) = self.slabs[slab].bytes_mut() else {
            return false;
        };
        data.copy_to(from, &mut bytes[at..at + PAGE]);
        true
    }

    /// The slab, and the byte where the frame begins in it.
    fn place(&self, frame: Frame) -> (usize, usize) {
        let frame = usize::try_from(frame).expect("an index in memory");
        (frame / self.each, frame % self.each * PAGE)
    }

    /// One more slab, whose first frame is the last of those that are free.
    fn grow(&mut self) -> Option<()> {
        let first = self.slabs.len();
        if first == self.slabs_max {
            return None;
        }
        self.slabs.push(Slab::zeroed(self.each * PAGE));
        let frame = |at: usize| Frame::try_from(first * self.each + at).ok();
        for at in (0..self.each).rev() {
            self.free.extend(frame(at));
        }
        Some(())
    }
}
