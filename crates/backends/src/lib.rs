//! Leaves of the volume tree: memory, files in a pool directory, block devices, VHDX
//! images.
//!
//! **Contract.** A leaf tests the writer's fence in the same poll that changes memory or hands the
//! write to the disk (C5). What it announces (cache, discards, limits) is what it does. A leaf
//! whose sync failed once answers no mutation and no flush any more until it is opened anew: what
//! was acknowledged before and not synced may be gone, and nobody may believe the contrary.

mod control;
mod disk;
pub mod image;
mod memory;
mod progress;
mod syncs;

pub use control::{
    Usage, create_file, create_file_watched, give_back_behind_end, open_block, open_file, remove,
    usage,
};
pub use disk::{DiskVolume, FileSpec, Provisioning, TOO_MANY_FILES, end_is_missing};
pub use memory::MemoryVolume;
pub use progress::Progress;

#[cfg(test)]
mod test;
