//! What the files of all cores have in common.

use super::handle::{Handles, Locks};
use super::workers::Workers;
use std::sync::atomic::AtomicU64;

/// What all cores share.
pub(super) struct FilesShared {
    pub(super) locks: Locks,
    pub(super) handles: Handles,
    /// Threads for the data of files.
    pub(super) data: Workers,
    /// Threads for names, so that hung disks do not hold up the state's own directory.
    pub(super) names: Workers,
    /// Copies that were made because memory was not aligned.
    pub(super) bounces: AtomicU64,
}
