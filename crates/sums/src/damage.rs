//! Why a block of the map is not what it should be.

use std::fmt;

/// The version of the format that is written, and the only one that is read.
pub const VERSION: u16 = 1;

/// What is wrong with a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// Something else, or nothing, was written there.
    Foreign,
    /// It was written by another version of the program.
    Version(u16),
    /// The checksum does not fit.
    Checksum,
    /// The checksum fits, but what it says cannot be.
    Contradiction(&'static str),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => write!(f, "this is not a map of checksums of ours"),
            Self::Version(version) => write!(
                f,
                "it has version {version} of the format, and this program reads version {VERSION}"
            ),
            Self::Checksum => write!(f, "its checksum does not fit"),
            Self::Contradiction(what) => write!(f, "it contradicts itself: {what}"),
        }
    }
}

/// What magic, checksum and version of a whole block say; the checksum lies in bytes 8 to 11 and covers all after it.
pub(crate) fn check_head(block: &[u8], magic: &[u8; 8]) -> Result<(), Damage> {
    let (Some(found), Some(sum), Some(covered)) =
        (block.get(..8), block.get(8..12), block.get(12..))
    else {
        return Err(Damage::Foreign);
    };
    if found != magic {
        return Err(Damage::Foreign);
    }
    if sum != crc32c(covered).to_le_bytes() {
        return Err(Damage::Checksum);
    }
    match covered
        .first_chunk::<2>()
        .map(|raw| u16::from_le_bytes(*raw))
    {
        Some(VERSION) => Ok(()),
        Some(other) => Err(Damage::Version(other)),
        None => Err(Damage::Foreign),
    }
}

/// Fills in the checksum of a block.
pub(crate) fn seal(block: &mut [u8]) {
    let crc = crc32c(&block[12..]);
    block[8..12].copy_from_slice(&crc.to_le_bytes());
}

pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes);
    u32::try_from(crc).expect("a CRC-32 has 32 bits")
}
