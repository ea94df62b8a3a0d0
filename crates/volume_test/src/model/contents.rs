//! Contents of blocks that name the write that made them.

use units::{BlockSize, Lba};

/// Names a write; 0 is a block of zeroes.
pub type Tag = u64;

/// What blocks hold that were never written, or were unmapped.
pub const TAG_ZERO: Tag = 0;

const WORD: usize = 8;

/// The block at `lba` as the write `tag` makes it: the tag, then words that follow from tag,
/// address and place.
///
/// # Panics
/// If `block` is not a multiple of 8 bytes long.
pub fn fill(tag: Tag, lba: Lba, block: &mut [u8]) {
    assert!(block.len().is_multiple_of(WORD));
    if tag == TAG_ZERO {
        block.fill(0);
        return;
    }
    for (place, word) in block.chunks_exact_mut(WORD).enumerate() {
        word.copy_from_slice(&word_of(tag, lba, place as u64).to_le_bytes());
    }
}

/// The write that made this block; `None` if it is torn, or made for another address.
///
/// # Panics
/// If `block` is shorter than a word.
#[must_use]
pub fn recognise(lba: Lba, block: &[u8]) -> Option<Tag> {
    let first = block.first_chunk().expect("a block has at least one word");
    let tag = u64::from_le_bytes(*first);
    let mut expected = [0; BlockSize::B4096.bytes() as usize];
    let expected = &mut expected[..block.len()];
    fill(tag, lba, expected);
    (block == expected).then_some(tag)
}

fn word_of(tag: Tag, lba: Lba, place: u64) -> u64 {
    if place == 0 {
        return tag;
    }
    let mixed = tag
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(lba.0.wrapping_mul(0xD1B5_4A32_D192_ED03))
        .wrapping_add(place.wrapping_mul(0x8CB9_2BA7_2F3D_8DD7));
    mixed ^ (mixed >> 29)
}
