//! The checksums of a volume's blocks, kept apart from them, as pure machines.
//!
//! ```text
//!   superblock --> regions --> 1008 groups each --> 1008 pages each --> 1008 checksums each
//!      each says which generation of the next is the newest one that is stable
//! ```
//!
//! A block is 4 KiB of a volume, or 512 bytes where those are its physical blocks.
//!
//! What the map promises, if whoever writes it keeps the rules of [`Tree`]:
//!
//! - A block whose bytes are not those that were written there last does not fit its checksum:
//!   flipped, misdirected, or lost.
//! - A page of the map that was lost, or is older than it should be, is known as such by the page
//!   above it.
//! - A crash leaves the page before or the page after: each has two places, and takes them in turn.
//!
//! **Contract.** No clock, device or thread: bytes and outcomes go in, writes and decisions come
//! out. The bytes are described in `docs/formats/integrity.md`, the reasons in
//! `docs/adr/0009-integrity.md`.

mod checksum;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod page;
mod place;
mod superblock;
#[cfg(test)]
mod test;
mod tree;

pub use checksum::{Checksum, MapId, Salt};
pub use formats::{CopiesState, Damage};
pub use page::{FAN, Generation, Level, PAGE, Page};
pub use place::{PageId, REGIONS_MAX, SUPERBLOCKS_AT, checksums_max, map_bytes};
pub use superblock::{Blank, Superblock};
pub use tree::{Found, NodeWrite, Recorded, Tree, Unfit, judge};

/// The version of pages, and of superblocks of maps whose checksums cover 4 KiB each.
pub const VERSION: u16 = 1;

/// The version of superblocks of maps whose checksums cover 512 bytes each.
pub const VERSION_SECTORS: u16 = 2;
