//! Header and data digests: CRC32C, least significant byte first on the wire.
//!
//! Spec: RFC 7143 11.2.3 "Header Digest and Data Digest", 13.1 "HeaderDigest and DataDigest".

use crc_fast::{CrcAlgorithm, Digest};

/// Bytes of a digest on the wire.
pub const DIGEST_BYTES: usize = 4;

/// The digest of `bytes`, as it goes over the wire.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> [u8; DIGEST_BYTES] {
    wire(crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes))
}

/// A digest over bytes that come in pieces.
pub struct Running(Digest);

impl Default for Running {
    fn default() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }
}

impl Running {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of everything added so far, as it goes over the wire.
    #[must_use]
    pub fn finish(&self) -> [u8; DIGEST_BYTES] {
        wire(self.0.finalize())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a CRC-32 has 32 bits in its u64"
)]
const fn wire(crc: u64) -> [u8; DIGEST_BYTES] {
    (crc as u32).to_le_bytes()
}

#[cfg(test)]
mod test {
    use super::*;

    fn reference(bytes: &[u8]) -> u32 {
        let mut crc = u32::MAX;
        for &byte in bytes {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                crc = (crc >> 1) ^ (0x82F6_3B78 & (crc & 1).wrapping_neg());
            }
        }
        !crc
    }

    /// RFC 7143 appendix A.4 "CRC Examples".
    // spec: RFC 7143 11.2.3 "Header Digest and Data Digest".
    #[test]
    fn the_examples_of_the_standard_match() {
        assert_eq!(crc32c(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(crc32c(&[0xff; 32]), [0x43, 0xab, 0xa8, 0x62]);
        let up: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&up), [0x4e, 0x79, 0xdd, 0x46]);
        let down: Vec<u8> = (0..32).rev().collect();
        assert_eq!(crc32c(&down), [0x5c, 0xdb, 0x3f, 0x11]);
    }

    #[test]
    fn every_length_and_split_agrees_with_a_bitwise_computation() {
        let bytes: Vec<u8> = (0..700u32).map(|i| (i * 31 + 7).to_le_bytes()[0]).collect();
        for len in 0..bytes.len() {
            let part = &bytes[..len];
            assert_eq!(crc32c(part), reference(part).to_le_bytes(), "{len}");
            let mut running = Running::default();
            running.update(&part[..len / 3]);
            running.update(&part[len / 3..]);
            assert_eq!(running.finish(), crc32c(part), "{len}");
        }
    }
}
