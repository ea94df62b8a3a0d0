//! Payload: immutable, reference-counted scatter-gather buffers made of pooled, page-aligned slabs.
//!
//! ```text
//!   Pool (one per core) --alloc--> BufMut (unique, writable) --freeze--> Buf (shared, immutable)
//!     ^                                                                    |
//!     +------------------- last reference dropped, on any core <-----------+
//! ```
//!
//! **Contract.** A [`Buf`] never changes once it exists, so cloning it is how data is sent to two
//! mirror legs, kept in a cache or retried. Whoever hands memory to the kernel keeps a clone until
//! the kernel is done: dropping a future abandons the answer, never the memory.
//!
//! **Invariants.** I1: a slab that a `Buf` can see has no writer. I2: every slab is page aligned.
//! I3: a pool never has more bytes out than its limit.
//!
//! **Failure.** An exhausted pool answers [`Exhausted`]; it never blocks and never aborts.

#![expect(
    unsafe_code,
    reason = "slabs are raw, page-aligned memory with their own reference count"
)]

mod slab;

mod classes;
mod kept;
mod pinned;
mod pool;
mod reserve;
mod shared;
mod stream;
mod unique;

pub use classes::SLAB_BYTES_MAX;
pub use kept::Slab;
pub use pinned::{PINNED_BYTES, Pinned};
pub use pool::{Exhausted, Pool};
pub use reserve::{Reserve, Reserves};
pub use shared::{Buf, Segments};
pub use stream::copy_past_cache;
pub use unique::BufMut;

#[cfg(test)]
mod test;
