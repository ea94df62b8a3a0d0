//! One piece of page-aligned memory with an intrusive reference count.

use super::pool::PoolInner;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering, fence};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::sync::Arc;

/// Alignment of every slab, in bytes: enough for O_DIRECT on any disk and for registered buffers.
pub(super) const SLAB_ALIGNMENT: usize = 4096;

/// The control block. It lives as long as its memory does and is pooled together with it.
pub(super) struct SlabHeader {
    references: AtomicU32,
    memory: NonNull<u8>,
    capacity: usize,
    /// Where the slab goes back to; `None` for memory that is simply freed.
    home: Option<Arc<PoolInner>>,
}

// SAFETY: the header owns its memory alone; moving it to another thread moves that ownership.
unsafe impl Send for SlabHeader {}

impl SlabHeader {
    /// Fresh zeroed memory of `capacity` bytes (not 0).
    pub(super) fn new(capacity: usize) -> Box<Self> {
        let layout = Self::layout(capacity);
        // SAFETY: the layout has a non-zero size.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(memory) = NonNull::new(memory) else {
            handle_alloc_error(layout)
        };
        Box::new(Self {
            references: AtomicU32::new(0),
            memory,
            capacity,
            home: None,
        })
    }

    pub(super) const fn capacity(&self) -> usize {
        self.capacity
    }

    fn layout(capacity: usize) -> Layout {
        assert!(capacity > 0, "a slab has at least one byte");
        Layout::from_size_align(capacity, SLAB_ALIGNMENT)
            .expect("slab capacities are far below isize::MAX")
    }
}

impl Drop for SlabHeader {
    fn drop(&mut self) {
        // SAFETY: `memory` came from `alloc_zeroed` with this very layout and is freed only here.
        unsafe { dealloc(self.memory.as_ptr(), Self::layout(self.capacity)) }
    }
}

/// A counted reference to a slab.
pub(super) struct SlabRef(NonNull<SlabHeader>);

// SAFETY: the count is atomic, and the memory is only written through a `SlabRef` that is known to be
// the only one (`BufMut` owns it and is not `Clone`), which makes both moves and shares sound.
unsafe impl Send for SlabRef {}
// SAFETY: as above; shared access is read-only.
unsafe impl Sync for SlabRef {}

impl SlabRef {
    /// Takes a header that nobody refers to.
    pub(super) fn adopt(mut header: Box<SlabHeader>, home: Option<Arc<PoolInner>>) -> Self {
        debug_assert_eq!(header.references.load(Ordering::Relaxed), 0);
        *header.references.get_mut() = 1;
        header.home = home;
        Self(NonNull::from(Box::leak(header)))
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
        // SAFETY: `self` is the only reference and is borrowed mutably: nobody can make another one.
        Some(unsafe { core::slice::from_raw_parts_mut(header.memory.as_ptr(), header.capacity) })
    }

    /// Takes the slab out of the care of its pool, if this is the only reference. `false`: it is shared.
    pub(super) fn leave_home(&mut self) -> bool {
        if self.header().references.load(Ordering::Acquire) != 1 {
            return false;
        }
        // SAFETY: as in `sole_bytes_mut`, for the header.
        let header = unsafe { self.0.as_mut() };
        if let Some(home) = header.home.take() {
            home.let_go(header.capacity);
        }
        true
    }

    /// The header of a slab that has no home, if this is the only reference.
    pub(super) fn into_header(self) -> Option<Box<SlabHeader>> {
        let mut slab = core::mem::ManuallyDrop::new(self);
        let header = slab.header();
        if header.home.is_some() || header.references.load(Ordering::Acquire) != 1 {
            drop(core::mem::ManuallyDrop::into_inner(slab));
            return None;
        }
        // SAFETY: this is the only reference, it is not dropped, and the pointer came from `Box::leak`.
        let mut header = unsafe { Box::from_raw(slab.0.as_mut()) };
        *header.references.get_mut() = 0;
        Some(header)
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
        // SAFETY: this was the last reference, and the pointer came from `Box::leak` in `adopt`.
        let mut header = unsafe { Box::from_raw(self.0.as_ptr()) };
        if let Some(home) = header.home.take() {
            home.take_back(header);
        }
    }
}
