//! What the formats on disk have in common: little-endian [fields](Writer), CRC-32C, the
//! [head](open) of a block, and the words for what is [wrong](Damage) with one, or with the
//! [copies](CopiesState) of what is kept more than once. Each format itself is described in
//! `docs/formats/`.
//!
//! **Contract.** Bytes in, bytes out. Reading never panics, whatever the bytes are.

mod copies;
mod damage;
mod fields;
mod head;

pub use copies::CopiesState;
pub use damage::Damage;
pub use fields::{Reader, Writer};
pub use head::{JOINED_BYTES, crc32c, crc32c_of, crc32c_with_block, open, open_one_of, seal};
