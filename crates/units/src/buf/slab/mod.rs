//! One piece of page-aligned memory with an intrusive reference count.

mod arena;
pub(super) mod stock;

use super::classes::BLOCK;
use arena::Block;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering, fence};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::sync::Arc;
use stock::PoolInner;

/// Alignment of every slab, in bytes: enough for O_DIRECT on any disk and for registered buffers.
pub(super) const SLAB_ALIGNMENT: usize = 4096;

/// The control block. It lives as long as its memory does and is pooled together with it.
pub(super) struct SlabHeader {
    references: AtomicU32,
    memory: NonNull<u8>,
    capacity: usize,
    /// Where the slab goes back to; `None` for memory that is simply freed.
    pool: Option<Arc<PoolInner>>,
    /// The block that it is a part of; `None` for memory of its own.
    block: Option<NonNull<Block>>,
}

impl SlabHeader {
    fn part_of(block: NonNull<Block>, memory: NonNull<u8>, capacity: usize) -> Self {
        Self {
            references: AtomicU32::new(0),
            memory,
            capacity,
            pool: None,
            block: Some(block),
        }
    }

    fn block(&self) -> Option<NonNull<Block>> {
        self.block
    }
}

fn layout(capacity: usize) -> Layout {
    assert!(capacity > 0, "a slab has at least one byte");
    let alignment = if capacity < BLOCK {
        SLAB_ALIGNMENT
    } else {
        BLOCK
    };
    Layout::from_size_align(capacity, alignment).expect("slab capacities are far below isize::MAX")
}

/// A slab that nobody refers to.
pub(super) struct IdleSlab(NonNull<SlabHeader>);

// SAFETY: it owns its header and memory alone; moving it to another thread moves that ownership.
unsafe impl Send for IdleSlab {}

impl IdleSlab {
    /// Zeroed memory of `capacity` bytes (not 0).
    pub(super) fn zeroed(capacity: usize) -> Self {
        if let Some((slab, is_zero)) = arena::take(capacity) {
            if !is_zero {
                // SAFETY: the memory is `capacity` bytes, and nobody else has it.
                unsafe { slab.header().memory.as_ptr().write_bytes(0, capacity) }
            }
            return slab;
        }
        let layout = layout(capacity);
        // SAFETY: the layout has a non-zero size.
        let memory = unsafe { alloc(layout) };
        let Some(memory) = NonNull::new(memory) else {
            handle_alloc_error(layout)
        };
        arena::ask_for_huge_pages(memory, capacity);
        // SAFETY: the memory is `capacity` bytes, and nobody else has it.
        unsafe { memory.as_ptr().write_bytes(0, capacity) }
        Self(NonNull::from(Box::leak(Box::new(SlabHeader {
            references: AtomicU32::new(0),
            memory,
            capacity,
            pool: None,
            block: None,
        }))))
    }

    /// Memory of `capacity` bytes with anything in it.
    pub(super) fn any(capacity: usize) -> Self {
        match arena::take(capacity) {
            Some((slab, _)) => slab,
            None => Self::zeroed(capacity),
        }
    }

    /// # Safety
    /// The header is alive, and nobody refers to it.
    pub(super) unsafe fn of(header: NonNull<SlabHeader>) -> Self {
        Self(header)
    }

    fn header(&self) -> &SlabHeader {
        // SAFETY: the header is alive, and `self` owns it.
        unsafe { self.0.as_ref() }
    }

    pub(super) fn capacity(&self) -> usize {
        self.header().capacity
    }
}

impl Drop for IdleSlab {
    fn drop(&mut self) {
        if self.header().block.is_some() {
            return arena::give(self.0);
        }
        // SAFETY: headers of no block come from `Box::leak`, and nobody refers to this one any
        // more.
        let header = unsafe { Box::from_raw(self.0.as_ptr()) };
        // SAFETY: its memory came from `alloc` with this very layout and is freed only here.
        unsafe { dealloc(header.memory.as_ptr(), layout(header.capacity)) }
    }
}

/// A counted reference to a slab.
pub(super) struct SlabRef(NonNull<SlabHeader>);

// SAFETY: the count is atomic, and the memory is only written through a `SlabRef` that is known to
// be the only one (`BufMut` owns it and is not `Clone`), which makes both moves and shares sound.
unsafe impl Send for SlabRef {}
// SAFETY: as above; shared access is read-only.
unsafe impl Sync for SlabRef {}

impl SlabRef {
    /// Takes a header that nobody refers to.
    pub(super) fn adopt(idle: IdleSlab, pool: Option<Arc<PoolInner>>) -> Self {
        let mut idle = core::mem::ManuallyDrop::new(idle);
        // SAFETY: nobody refers to the header, and `idle`, which owned it, is not dropped.
        let header = unsafe { idle.0.as_mut() };
        debug_assert_eq!(header.references.load(Ordering::Relaxed), 0);
        *header.references.get_mut() = 1;
        header.pool = pool;
        Self(idle.0)
    }

    fn header(&self) -> &SlabHeader {
        // SAFETY: the header lives while any reference to it does, and `self` is one.
        unsafe { self.0.as_ref() }
    }

    pub(super) fn capacity(&self) -> usize {
        self.header().capacity
    }

    pub(super) fn bytes(&self) -> &[u8] {
        let header = self.header();
        // SAFETY: the memory is `capacity` initialised bytes, and I1 says that nobody writes them.
        unsafe { core::slice::from_raw_parts(header.memory.as_ptr(), header.capacity) }
    }

    /// The memory for writing; the caller is `BufMut`, which never shares its `SlabRef`.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        let header = self.header();
        debug_assert_eq!(header.references.load(Ordering::Relaxed), 1, "I1");
        // SAFETY: `self` is the only reference (asserted above, and kept by `BufMut`).
        unsafe { core::slice::from_raw_parts_mut(header.memory.as_ptr(), header.capacity) }
    }

    /// The memory for writing, if this is the only reference.
    pub(super) fn sole_bytes_mut(&mut self) -> Option<&mut [u8]> {
        let header = self.header();
        // Acquire: what other references read, they have read before they were dropped (Release).
        if header.references.load(Ordering::Acquire) != 1 {
            return None;
        }
        // SAFETY: `self` is the only reference and is borrowed mutably: nobody can make another
        // one.
        Some(unsafe { core::slice::from_raw_parts_mut(header.memory.as_ptr(), header.capacity) })
    }

    /// See [`arena::pin`].
    pub(super) fn pin(&self) -> Option<NonNull<u8>> {
        arena::pin(self.header())
    }

    /// Takes the slab out of the care of its pool, if this is the only reference. `false`: it is
    /// shared.
    pub(super) fn leave_pool(&mut self) -> bool {
        if self.header().references.load(Ordering::Acquire) != 1 {
            return false;
        }
        // SAFETY: as in `sole_bytes_mut`, for the header.
        let header = unsafe { self.0.as_mut() };
        if let Some(pool) = header.pool.take() {
            pool.let_go(header.capacity);
        }
        true
    }

    /// The slab, if it has no pool and this is the only reference.
    pub(super) fn into_idle(self) -> Option<IdleSlab> {
        let mut slab = core::mem::ManuallyDrop::new(self);
        let header = slab.header();
        if header.pool.is_some() || header.references.load(Ordering::Acquire) != 1 {
            drop(core::mem::ManuallyDrop::into_inner(slab));
            return None;
        }
        // SAFETY: this is the only reference, and it is not dropped.
        unsafe { *slab.0.as_mut().references.get_mut() = 0 };
        Some(IdleSlab(slab.0))
    }

    pub(super) fn same_slab(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Clone for SlabRef {
    fn clone(&self) -> Self {
        let before = self.header().references.fetch_add(1, Ordering::Relaxed);
        assert!(
            before < u32::MAX / 2,
            "a slab is never shared two billion times"
        );
        Self(self.0)
    }
}

impl Drop for SlabRef {
    fn drop(&mut self) {
        if self.header().references.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        // SAFETY: this was the last reference.
        let pool = unsafe { self.0.as_mut() }.pool.take();
        let idle = IdleSlab(self.0);
        if let Some(pool) = pool {
            pool.take_back(idle);
        }
    }
}
