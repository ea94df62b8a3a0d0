//! A copy into memory that will not be read soon.
//!
//! A plain copy of 4 KiB to a random place of a large store first reads the place into the cache:
//! 0.43 us on the machine that `docs/performance.md` names, in huge pages. Past the cache it takes
//! 0.24 us, and what else is in the cache stays there.

/// Copies `from` to `to`, past the cache where the processor can.
///
/// # Panics
/// If the lengths differ.
pub fn copy_past_cache(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len());
    #[cfg(target_arch = "x86_64")]
    {
        let head = to.as_ptr().align_offset(LINE).min(to.len());
        let lines = (to.len() - head) / LINE * LINE;
        let (first, from) = from.split_at(head);
        let (middle, last) = from.split_at(lines);
        to[..head].copy_from_slice(first);
        stream(middle, &mut to[head..head + lines]);
        to[head + lines..].copy_from_slice(last);
    }
    #[cfg(not(target_arch = "x86_64"))]
    to.copy_from_slice(from);
}

#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// `to` begins at a cache line, and both are whole lines.
#[cfg(target_arch = "x86_64")]
fn stream(from: &[u8], to: &mut [u8]) {
    use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const PART: usize = size_of::<__m128i>();
    for (from, to) in from.chunks_exact(LINE).zip(to.chunks_exact_mut(LINE)) {
        let (from, to) = (from.as_ptr(), to.as_mut_ptr());
        let part = |at: usize| {
            // SAFETY: `at` is inside the line of 64 bytes, and any address may be loaded from. SSE2
            // is always there.
            unsafe { _mm_loadu_si128(from.add(at * PART).cast()) }
        };
        let parts = [part(0), part(1), part(2), part(3)];
        for (at, part) in parts.into_iter().enumerate() {
            // SAFETY: `at` is inside the line, which is aligned to 64 bytes.
            unsafe { _mm_stream_si128(to.add(at * PART).cast(), part) }
        }
    }
    // What was streamed is visible to others before anything that is stored later, such as the
    // release of a lock.
    // SAFETY: SSE is always there.
    unsafe { _mm_sfence() }
}
