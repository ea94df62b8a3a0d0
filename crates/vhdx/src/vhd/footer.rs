//! The footer, which each VHD ends with; a dynamic one also begins with it.

use crate::error::{Error, Part, contradiction, damaged};
use crate::geometry::DISK_BYTES_MAX;
use formats::Damage;

/// Bytes of a footer; very old programs wrote one less.
pub(super) const FOOTER_BYTES: usize = 512;
const COOKIE: &[u8; 8] = b"conectix";
const SUM_AT: usize = 64;

/// Whether blocks have a table, and a parent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VhdKind {
    /// The disk is the file, up to the footer.
    Fixed,
    /// Blocks are where a table says.
    Dynamic,
    /// Sectors that are not there are the parent's.
    Differencing,
}

/// What it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Footer {
    pub(super) kind: VhdKind,
    pub(super) disk_bytes: u64,
    /// Where the header of a dynamic disk is.
    pub(super) header_at: u64,
    /// By which a child knows its parent.
    pub(super) id: [u8; 16],
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

/// The sum of all bytes but its own, inverted.
pub(super) fn sum(bytes: &[u8], sum_at: usize) -> u32 {
    let all = bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>();
    let own = bytes[sum_at..sum_at + 4]
        .iter()
        .map(|byte| u32::from(*byte));
    !(all - own.sum::<u32>())
}

impl Footer {
    /// Of 512 bytes.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        if !bytes.starts_with(COOKIE) || bytes.len() != FOOTER_BYTES {
            return Err(damaged(Part::Footer, Damage::Foreign));
        }
        if u32_at(bytes, SUM_AT) != sum(bytes, SUM_AT) {
            return Err(damaged(Part::Footer, Damage::Checksum));
        }
        let version = u32_at(bytes, 12);
        if version >> 16 != 1 {
            let damage = Damage::Version {
                found: version >> 16,
                read: 1,
            };
            return Err(damaged(Part::Footer, damage));
        }
        let kind = match u32_at(bytes, 60) {
            2 => VhdKind::Fixed,
            3 => VhdKind::Dynamic,
            4 => VhdKind::Differencing,
            other => {
                return Err(Error::Unknown {
                    part: Part::Footer,
                    what: format!("disk type {other}"),
                });
            }
        };
        let disk_bytes = u64_at(bytes, 48);
        if disk_bytes == 0 || disk_bytes > DISK_BYTES_MAX || !disk_bytes.is_multiple_of(512) {
            let what = "a disk has whole sectors, and at most 64 TiB";
            return Err(contradiction(Part::Footer, what));
        }
        Ok(Self {
            kind,
            disk_bytes,
            header_at: u64_at(bytes, 16),
            id: std::array::from_fn(|byte| bytes[68 + byte]),
        })
    }
}
