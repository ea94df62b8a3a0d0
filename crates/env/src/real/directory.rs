//! The entries of a directory of the system.

use crate::file::DirEntry;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// stat(2): bytes of a block that `st_blocks` counts, whatever the file system's own are.
const STAT_BLOCK_BYTES: u64 = 512;

/// The entries of a directory of the system, sorted by name.
pub(super) fn list(path: &Path) -> io::Result<Vec<DirEntry>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        // A name that went between the two calls is not there.
        let Ok(metadata) = fs::metadata(entry.path()) else {
            continue;
        };
        found.push(DirEntry {
            name: PathBuf::from(entry.file_name()),
            len: metadata.len(),
            allocated: metadata.blocks().saturating_mul(STAT_BLOCK_BYTES),
            is_dir: metadata.is_dir(),
        });
    }
    found.sort();
    Ok(found)
}
