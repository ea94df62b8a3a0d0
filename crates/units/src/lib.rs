//! Quantities and payload buffers: the words every other crate speaks.
//!
//! A bare `u64` never says whether it counts blocks, bytes or nanoseconds, so none crosses a public
//! function boundary where one of these types fits.

pub mod base64;
pub mod buf;
mod hex;
pub mod histogram;
mod quantity;
pub mod rfc3339;
pub mod text;
mod time;

pub use buf::{
    Buf, BufMut, Exhausted, PINNED_BYTES, Pinned, Pool, Reserve, Reserves, Slab, copy_past_cache,
};
pub use hex::hex;
pub use histogram::Histogram;
pub use quantity::{BlockCount, BlockSize, ByteCount, Lba, LbaRange};
pub use time::{Now, WallClock};
