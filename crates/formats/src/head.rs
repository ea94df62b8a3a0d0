//! The head of a block: its magic in bytes 0 to 7, in bytes 8 to 11 the checksum of all after them,
//! then its version.

use crate::{Damage, Reader};
use crc_fast::{CrcAlgorithm, Digest};
use std::ops::RangeInclusive;
use std::sync::OnceLock;

/// Where what the checksum covers begins.
const COVERED_FROM: usize = 12;

/// CRC-32C of bytes.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    sum(crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes))
}

/// CRC-32C of bytes in pieces.
pub fn crc32c_of<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    for piece in pieces {
        digest.update(piece);
    }
    sum(digest.finalize())
}

/// Bytes of a block that [`crc32c_with_block`] adds.
pub const JOINED_BYTES: usize = 4096;

/// CRC-32C of bytes and a block of [`JOINED_BYTES`] after them, from the CRC-32C of each.
#[must_use]
pub fn crc32c_with_block(before: u32, block: u32) -> u32 {
    static AHEAD: OnceLock<[[u32; 256]; 4]> = OnceLock::new();
    let ahead = AHEAD.get_or_init(ahead_of_block);
    let parts = before.to_le_bytes().into_iter().zip(ahead);
    parts.fold(block, |crc, (byte, table)| crc ^ table[usize::from(byte)])
}

/// What each byte of a CRC becomes when a block follows: the CRC is linear, so that they add up.
fn ahead_of_block() -> [[u32; 256]; 4] {
    let length = u64::try_from(JOINED_BYTES).expect("a small number");
    let mut tables = [[0; 256]; 4];
    for (place, table) in (0..).zip(&mut tables) {
        for (byte, entry) in (0_u64..).zip(table) {
            let before = byte << (8 * place);
            *entry = sum(crc_fast::checksum_combine(
                CrcAlgorithm::Crc32Iscsi,
                before,
                0,
                length,
            ));
        }
    }
    tables
}

fn sum(crc: u64) -> u32 {
    u32::try_from(crc).expect("a CRC-32 has 32 bits")
}

/// Fills in the checksum of a block.
///
/// # Panics
/// If it has no head.
pub fn seal(block: &mut [u8]) {
    let crc = crc32c(&block[COVERED_FROM..]);
    block[8..COVERED_FROM].copy_from_slice(&crc.to_le_bytes());
}

/// What stands after the head of a whole block.
///
/// # Errors
/// What is wrong with its magic, checksum or version.
pub fn open<'a>(block: &'a [u8], magic: &[u8; 8], version: u16) -> Result<Reader<'a>, Damage> {
    open_one_of(block, magic, version..=version).map(|(_, fields)| fields)
}

/// As [`open`], of a format of which several versions are read: which one it is, and what stands
/// after the head.
///
/// # Errors
/// What is wrong with its magic, checksum or version.
pub fn open_one_of<'a>(
    block: &'a [u8],
    magic: &[u8; 8],
    versions: RangeInclusive<u16>,
) -> Result<(u16, Reader<'a>), Damage> {
    let mut fields = Reader::new(block);
    let head = (fields.bytes::<8>(), fields.u32(), fields.u16());
    let (Some(found), Some(crc), Some(its_version)) = head else {
        return Err(Damage::Foreign);
    };
    if found != *magic {
        return Err(Damage::Foreign);
    }
    if crc != crc32c(block.get(COVERED_FROM..).unwrap_or_default()) {
        return Err(Damage::Checksum);
    }
    if !versions.contains(&its_version) {
        return Err(Damage::Version {
            found: its_version.into(),
            read: (*versions.end()).into(),
        });
    }
    Ok((its_version, fields))
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_rfc_3720_and_the_same_in_pieces() {
        // RFC 3720 appendix B.4 "CRC Examples": 32 bytes of zeroes, and 0 to 31.
        let counted: Vec<u8> = (0..32).collect();
        for (bytes, known) in [(vec![0; 32], 0x8a91_36aa), (counted, 0x46dd_794e)] {
            assert_eq!(crc32c(&bytes), known);
            assert_eq!(crc32c_of([&bytes[..5], &[], &bytes[5..]]), known);
        }
    }

    #[test]
    fn a_checksum_goes_on_over_a_block() {
        let bytes: Vec<u8> = (0..3 * JOINED_BYTES)
            .map(|at| u8::try_from(at * at % 253).unwrap())
            .collect();
        let crc = |range: std::ops::Range<usize>| crc32c(&bytes[range]);
        for ahead in [1, 512, JOINED_BYTES, 2 * JOINED_BYTES] {
            let joined = crc32c_with_block(crc(0..ahead), crc(ahead..ahead + JOINED_BYTES));
            assert_eq!(joined, crc(0..ahead + JOINED_BYTES), "{ahead}");
        }
    }

    #[test]
    fn a_head_says_what_is_wrong_with_a_block() {
        const MAGIC: &[u8; 8] = b"A BLOCK!";
        let mut block = [&MAGIC[..], &[0; 4], &3_u16.to_le_bytes(), b"rest"].concat();
        seal(&mut block);
        let rest = open(&block, MAGIC, 3).map(|mut fields| fields.bytes());
        assert_eq!(rest, Ok(Some(*b"rest")));
        let wrong = |block: &[u8], version| open(block, MAGIC, version).err();
        let other = Damage::Version { found: 3, read: 4 };
        assert_eq!(wrong(&block, 4), Some(other));
        assert!(other.to_string().contains("version 3"), "{other}");
        for len in 0..14 {
            assert_eq!(wrong(&block[..len], 3), Some(Damage::Foreign));
        }
        for bit in 0..block.len() * 8 {
            let mut hurt = block.clone();
            hurt[bit / 8] ^= 1 << (bit % 8);
            let expected = if bit < 64 {
                Damage::Foreign
            } else {
                Damage::Checksum
            };
            assert_eq!(wrong(&hurt, 3), Some(expected), "bit {bit}");
        }
    }
}
