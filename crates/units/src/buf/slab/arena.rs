//! Where slabs of the pools' sizes come from.
//!
//! ```text
//!   span, 64 MiB of addresses:   [block | block | ... ]        blocks go out one after the other
//!   block, 2 MiB, one huge page: [slab | slab | ...  ]         all of one size
//! ```
//!
//! A random access into gigabytes of 4 KiB pages pays for a walk of the page table, in a virtual
//! machine for two of them nested, and their control blocks, one beside each slab, for another
//! cache miss. So slabs are parts of huge pages where the system gives them, and the control blocks
//! of a block stand together.
//!
//! **Invariants.** I1: a part is either given out or in its block's `free`, or was never given out
//! (`fresh`). I2: a block is in its class's `open` exactly while it has a part to give. I3: a block
//! of which nothing is given out goes back to the system, but for one a class, and those that are
//! pinned.

use super::super::classes::{BLOCK, CLASSES};
use super::{IdleSlab, SlabHeader};
use core::ptr::NonNull;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Bytes of addresses taken at a time. They cost nothing before they are touched.
const SPAN: usize = 64 << 20;

/// A huge page that is cut into slabs.
pub(super) struct Block {
    memory: NonNull<u8>,
    class: usize,
    headers: NonNull<SlabHeader>,
    /// Parts that were given back.
    free: Vec<NonNull<SlabHeader>>,
    /// Parts from this one on were never given out: they are zeroes.
    fresh: usize,
    /// Its memory never goes back to the system.
    pinned: bool,
}

impl Block {
    fn parts(&self) -> usize {
        BLOCK / CLASSES[self.class]
    }

    fn is_full(&self) -> bool {
        self.free.is_empty() && self.fresh == self.parts()
    }

    fn is_unused(&self) -> bool {
        self.free.len() == self.fresh
    }

    /// A part, and whether it is zeroes.
    fn take(&mut self) -> Option<(NonNull<SlabHeader>, bool)> {
        if let Some(part) = self.free.pop() {
            return Some((part, false));
        }
        if self.fresh == self.parts() {
            return None;
        }
        // SAFETY: `headers` are `parts()` headers, and `fresh` is below that.
        let part = unsafe { self.headers.add(self.fresh) };
        self.fresh += 1;
        Some((part, true))
    }
}

struct Arena {
    /// Blocks that have parts to give, by class. The first of a fixed order gives, so that others
    /// become unused.
    open: [BTreeSet<NonNull<Block>>; CLASSES.len()],
    /// Huge pages of zeroes that nobody uses.
    blocks: Vec<NonNull<u8>>,
}

// SAFETY: the arena owns its blocks and their memory, and is used behind one lock.
unsafe impl Send for Arena {}

static ARENA: Mutex<Arena> = Mutex::new(Arena {
    open: [const { BTreeSet::new() }; CLASSES.len()],
    blocks: Vec::new(),
});

/// A slab of one of the pools' sizes, and whether it is zeroes; `None` for other sizes, or where
/// the system has no addresses left.
pub(super) fn take(capacity: usize) -> Option<(IdleSlab, bool)> {
    let class = CLASSES.iter().position(|&size| size == capacity)?;
    let mut arena = ARENA.lock().unwrap_or_else(PoisonError::into_inner);
    let (part, is_zero) = arena.take(class)?;
    // SAFETY: the header belongs to a block, which lives as long as a part of it is out; nobody
    // else was given it.
    Some((unsafe { IdleSlab::of(part) }, is_zero))
}

/// Takes a part of a block back. Nobody refers to it any more.
pub(super) fn give(part: NonNull<SlabHeader>) {
    let mut arena = ARENA.lock().unwrap_or_else(PoisonError::into_inner);
    arena.give(part);
}

/// Keeps the block of a part that is given out from going back to the system, ever. Its memory;
/// `None` where the part is of no block.
pub(super) fn pin(part: &SlabHeader) -> Option<NonNull<u8>> {
    let arena = ARENA.lock().unwrap_or_else(PoisonError::into_inner);
    arena.pin(part)
}

impl Arena {
    fn pin(&self, part: &SlabHeader) -> Option<NonNull<u8>> {
        let mut at = part.block()?;
        // SAFETY: the block is alive, as a part of it is out, and the arena's lock is held.
        let block = unsafe { at.as_mut() };
        block.pinned = true;
        Some(block.memory)
    }

    fn take(&mut self, class: usize) -> Option<(NonNull<SlabHeader>, bool)> {
        let mut at = match self.open[class].first() {
            Some(&block) => block,
            None => self.open_block(class)?,
        };
        // SAFETY: blocks in `open` are alive, and the arena's lock is held.
        let block = unsafe { at.as_mut() };
        let taken = block.take();
        if block.is_full() {
            self.open[class].remove(&at);
        }
        taken
    }

    fn give(&mut self, part: NonNull<SlabHeader>) {
        // SAFETY: the header is alive: its block is, as long as a part of it is out.
        let Some(mut at) = (unsafe { part.as_ref() }).block() else {
            return;
        };
        // SAFETY: as above, and the arena's lock is held.
        let block = unsafe { at.as_mut() };
        block.free.push(part);
        let open = &mut self.open[block.class];
        open.insert(at);
        if block.is_unused() && open.len() > 1 && !block.pinned {
            open.remove(&at);
            self.close_block(at);
        }
    }

    fn open_block(&mut self, class: usize) -> Option<NonNull<Block>> {
        if self.blocks.is_empty() {
            self.blocks = span()?;
        }
        let memory = self.blocks.pop()?;
        let block = NonNull::from(Box::leak(Box::new(Block {
            memory,
            class,
            headers: NonNull::dangling(),
            free: Vec::new(),
            fresh: 0,
            pinned: false,
        })));
        let size = CLASSES[class];
        let headers: Box<[SlabHeader]> = (0..BLOCK / size)
            .map(|part| {
                // SAFETY: the part lies in the block's memory.
                let memory = unsafe { memory.add(part * size) };
                SlabHeader::part_of(block, memory, size)
            })
            .collect();
        let headers = NonNull::from(Box::leak(headers)).cast();
        // SAFETY: the block was made above, and nobody else knows it.
        unsafe { (*block.as_ptr()).headers = headers };
        self.open[class].insert(block);
        Some(block)
    }

    /// Gives the memory of an unused block back to the system.
    fn close_block(&mut self, block: NonNull<Block>) {
        // SAFETY: it came from `Box::leak`, nothing of it is out, and it is in no list any more.
        let block = unsafe { Box::from_raw(block.as_ptr()) };
        let headers = NonNull::slice_from_raw_parts(block.headers, block.parts());
        // SAFETY: so did its headers, which nobody refers to.
        drop(unsafe { Box::from_raw(headers.as_ptr()) });
        // SAFETY: the memory is a block of a span, and nobody uses it.
        let emptied =
            unsafe { madvise(block.memory.as_ptr().cast(), BLOCK, Advice::LinuxDontNeed) };
        if emptied.is_err() {
            // It cannot be given back: at least it is zeroes, as all unused blocks are.
            // SAFETY: as above.
            unsafe { block.memory.as_ptr().write_bytes(0, BLOCK) };
        }
        self.blocks.push(block.memory);
    }
}

/// Asks for huge pages for the whole blocks of this memory, which nobody has touched. Where the
/// system does not give them, or not now, small ones do.
pub(super) fn ask_for_huge_pages(memory: NonNull<u8>, bytes: usize) {
    let whole = bytes / BLOCK * BLOCK;
    if whole > 0 && memory.as_ptr().addr().is_multiple_of(BLOCK) {
        // SAFETY: the advice changes nothing that can be read.
        let _ = unsafe { madvise(memory.as_ptr().cast(), whole, Advice::LinuxHugepage) };
    }
}

/// Addresses for more blocks; the last one is used first.
fn span() -> Option<Vec<NonNull<u8>>> {
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping at a place of the kernel's choice.
    let start =
        unsafe { mmap_anonymous(core::ptr::null_mut(), SPAN + BLOCK, protection, flags) }.ok()?;
    let start = start.cast::<u8>();
    // SAFETY: the mapping has a block more than a span, so that the first aligned place leaves a
    // span.
    let first = NonNull::new(unsafe { start.add(start.align_offset(BLOCK)) })?;
    ask_for_huge_pages(first, SPAN);
    let blocks = (0..SPAN / BLOCK).rev();
    // SAFETY: they lie in the new mapping.
    Some(
        blocks
            .map(|block| unsafe { first.add(block * BLOCK) })
            .collect(),
    )
}

#[cfg(test)]
mod test {
    use super::*;

    const LARGEST: usize = CLASSES.len() - 1;

    fn blocks_after_all_came_back(pin: bool) -> (usize, usize) {
        let mut arena = Arena {
            open: [const { BTreeSet::new() }; CLASSES.len()],
            blocks: Vec::new(),
        };
        let mut parts: Vec<_> = (0..2 * BLOCK / CLASSES[LARGEST])
            .map(|_| arena.take(LARGEST).unwrap().0)
            .collect();
        let free = arena.blocks.len();
        // The one that comes back last, beside one that is unused already.
        let last = parts.remove(0);
        if pin {
            // SAFETY: the part is out.
            let memory = arena.pin(unsafe { last.as_ref() }).unwrap();
            assert_eq!(memory.addr().get() % BLOCK, 0);
        }
        parts.drain(..).rev().for_each(|part| arena.give(part));
        arena.give(last);
        (arena.open[LARGEST].len(), arena.blocks.len() - free)
    }

    #[test]
    fn a_pinned_block_stays_when_all_of_it_came_back_and_others_go() {
        assert_eq!(blocks_after_all_came_back(false), (1, 1));
        assert_eq!(blocks_after_all_came_back(true), (2, 0));
    }
}
