//! The header of a dynamic or differencing VHD.

use super::footer::{sum, u32_at, u64_at};
use crate::error::{Error, Part, contradiction, damaged};
use formats::Damage;

pub(super) const HEADER_BYTES: usize = 1024;
const COOKIE: &[u8; 8] = b"cxsparse";
const SUM_AT: usize = 36;
const NAME: std::ops::Range<usize> = 64..576;
const LOCATORS: usize = 8;
const LOCATORS_AT: usize = 576;
const LOCATOR_BYTES: usize = 24;
/// Relative and absolute paths of Windows, in UTF-16.
const PATHS: [&[u8; 4]; 2] = [b"W2ru", b"W2ku"];
/// The longest path that is read.
const PATH_BYTES_MAX: u32 = 64 << 10;

/// What it says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct VhdHeader {
    pub(super) table_at: u64,
    pub(super) entries: u32,
    pub(super) block_bytes: u64,
    pub(super) parent_id: [u8; 16],
    /// The parent's file name, without a directory in most images.
    pub(super) parent_name: String,
    /// Where paths of the parent are in the file, relative ones first: place, bytes.
    pub(super) paths: Vec<(u64, u32)>,
}

impl VhdHeader {
    /// Of 1024 bytes.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        if !bytes.starts_with(COOKIE) || bytes.len() != HEADER_BYTES {
            return Err(damaged(Part::VhdHeader, Damage::Foreign));
        }
        if u32_at(bytes, SUM_AT) != sum(bytes, SUM_AT) {
            return Err(damaged(Part::VhdHeader, Damage::Checksum));
        }
        let block_bytes = u64::from(u32_at(bytes, 32));
        if !block_bytes.is_power_of_two() || !(4096..=256 << 20).contains(&block_bytes) {
            let what = "blocks have a power of two of 4 KiB to 256 MiB";
            return Err(contradiction(Part::VhdHeader, what));
        }
        let name = bytes[NAME].chunks_exact(2);
        let name = name.map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
        let name: Vec<u16> = name.take_while(|unit| *unit != 0).collect();
        let mut paths = Vec::new();
        for code in PATHS {
            let all = (0..LOCATORS).map(|number| LOCATORS_AT + number * LOCATOR_BYTES);
            let those = all.filter(|at| bytes[*at..*at + 4] == *code);
            paths.extend(those.map(|at| (u64_at(bytes, at + 16), u32_at(bytes, at + 8))));
        }
        paths.retain(|(_, length)| *length > 0 && *length <= PATH_BYTES_MAX);
        Ok(Self {
            table_at: u64_at(bytes, 16),
            entries: u32_at(bytes, 28),
            block_bytes,
            parent_id: std::array::from_fn(|byte| bytes[40 + byte]),
            parent_name: String::from_utf16_lossy(&name),
            paths,
        })
    }
}
