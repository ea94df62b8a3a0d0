//! Structures with a signature of four bytes and a CRC-32C of the whole, counted with zeroes in its
//! own place.

use formats::{Damage, Reader, crc32c_of};

/// Where the checksum is.
const SUM: std::ops::Range<usize> = 4..8;

fn sum(bytes: &[u8]) -> u32 {
    crc32c_of([&bytes[..SUM.start], &[0; 4], &bytes[SUM.end..]])
}

/// Fills in the checksum.
pub(crate) fn seal(bytes: &mut [u8]) {
    let sum = sum(bytes);
    bytes[SUM].copy_from_slice(&sum.to_le_bytes());
}

/// What follows the checksum, where it and the signature fit.
pub(crate) fn sealed_with<'a>(bytes: &'a [u8], signature: &[u8; 4]) -> Result<Reader<'a>, Damage> {
    if !bytes.starts_with(signature) || bytes.len() < SUM.end {
        return Err(Damage::Foreign);
    }
    if bytes[SUM] != sum(bytes).to_le_bytes() {
        return Err(Damage::Checksum);
    }
    Ok(Reader::new(&bytes[SUM.end..]))
}
