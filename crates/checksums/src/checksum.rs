//! The checksum of one block.

use formats::{crc32c, crc32c_of};
use units::Buf;

/// A map's own number, made at random with it: the generation that its checksums cover. What
/// belonged to another map of the same place does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MapId(pub [u8; 16]);

/// What the checksum of a block depends on beside its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Salt(u64);

impl Salt {
    /// Of all checksums of a map.
    #[must_use]
    pub fn of(map: MapId) -> Self {
        let (low, high) = map.0.split_at(8);
        let half = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |all, &byte| all << 8 | u64::from(byte))
        };
        Self(spread(half(low)) ^ half(high))
    }

    /// Of one block: 32 bits that differ for all that it is likely to be mistaken for.
    fn at(self, block: u64) -> u32 {
        let [a, b, c, d, ..] =
            spread(self.0 ^ block.wrapping_mul(0x9E37_79B9_7F4A_7C15)).to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }
}

/// Each bit depends on all bits.
const fn spread(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// What the map holds for one block: a checksum, or one of three words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Checksum(u32);

impl Checksum {
    /// Nothing was ever written there, or it was given up ([`crate::Blank`] says what it holds).
    pub const BLANK: Self = Self(0);
    /// There was a checksum, and the map lost it: the block cannot be vouched for until it is
    /// written.
    pub const LOST: Self = Self(1);
    /// A write of it failed: it may hold the old or the new. The next one who reads it adopts its
    /// checksum.
    pub const OPEN: Self = Self(2);

    /// Checksums that would be one of the words are moved by this.
    const MOVED: u32 = 1 << 31;

    /// The checksum of the bytes of block `block` (of as many bytes as a checksum
    /// [covers](crate::Superblock), the volume's last one perhaps of fewer).
    #[must_use]
    pub fn of(salt: Salt, block: u64, bytes: &[u8]) -> Self {
        Self::from_crc(salt, block, crc32c(bytes))
    }

    /// The same for bytes that may lie in pieces.
    #[must_use]
    pub fn of_buf(salt: Salt, block: u64, bytes: &Buf) -> Self {
        if let Some(whole) = bytes.as_contiguous() {
            return Self::of(salt, block, whole);
        }
        Self::from_crc(salt, block, crc32c_of(bytes.segments()))
    }

    fn from_crc(salt: Salt, block: u64, crc: u32) -> Self {
        let checksum = crc ^ salt.at(block);
        Self(if checksum <= Self::OPEN.0 {
            checksum | Self::MOVED
        } else {
            checksum
        })
    }

    /// It is a checksum, and not one of the words.
    #[must_use]
    pub const fn is_checksum(self) -> bool {
        self.0 > Self::OPEN.0
    }

    /// As it stands in a page.
    #[must_use]
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// From a page's entry.
    #[must_use]
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }
}
