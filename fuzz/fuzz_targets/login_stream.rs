//! Besides the entry point's own oracle: what the allocator hands out while a peer without a secret
//! talks is really no more than is stated, whatever the connection believes that it holds.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOST.fetch_max(LIVE.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let before = LIVE.load(Relaxed);
    MOST.store(before, Relaxed);
    iscsi::fuzz::login_stream(bytes);
    let most = MOST.load(Relaxed) - before;
    // What goes out is copied once by the harness.
    let bound = iscsi::target::UNAUTHENTICATED_BYTES_MAX + (32 << 10);
    assert!(most <= bound, "{most} bytes were allocated, {bound} are allowed");
});
