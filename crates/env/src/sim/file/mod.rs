//! A node's disk: files in two states, operations on their way.

mod content;
mod disk;
mod doors;
mod flight;
mod inode;
mod names;
mod operate;

pub use disk::{BlockDevice, Disk, DiskImage};
pub(super) use doors::SimFiles;
pub(super) use flight::InFlight;

use inode::Inode;
use names::Names;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How a node's life ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EndOfLife {
    /// Without power: un-synced data is at the mercy of chance.
    PowerCut,
    /// Without its process only.
    Killed,
}

/// All that a node's disk holds and does.
pub(super) struct DiskState {
    capacity: u64,
    /// Files that are copied on write.
    copies: BTreeSet<u64>,
    /// Bytes that are never torn.
    sector: u64,
    inodes: BTreeMap<u64, Inode>,
    names: Names,
    in_flight: BTreeMap<u64, InFlight>,
    /// Handles that are dropped and wait for their last operation.
    closing: BTreeSet<u64>,
    next_number: u64,
    /// Syncs and stable writes that were begun.
    durable_begun: u64,
    lying: bool,
    hanging: bool,
    /// Files and devices whose operations hang.
    hanging_inodes: BTreeSet<u64>,
    /// Directories that do not answer.
    hanging_directories: BTreeSet<PathBuf>,
}

impl DiskState {
    pub(super) fn new(capacity: u64, sector: u64) -> Self {
        Self {
            capacity,
            copies: BTreeSet::new(),
            sector,
            inodes: BTreeMap::new(),
            names: Names::new(),
            in_flight: BTreeMap::new(),
            closing: BTreeSet::new(),
            next_number: 0,
            durable_begun: 0,
            lying: false,
            hanging: false,
            hanging_inodes: BTreeSet::new(),
            hanging_directories: BTreeSet::new(),
        }
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn inode(&mut self, number: u64) -> &mut Inode {
        (self.inodes.get_mut(&number)).expect("a file stays while somebody can name it")
    }

    /// Bytes that files with a name have taken, block devices aside.
    fn used(&self) -> u64 {
        let inodes: BTreeSet<u64> = self.names.files().collect();
        let regular = |inode: &&Inode| inode.kind == crate::FileKind::Regular;
        (inodes.iter().filter_map(|number| self.inodes.get(number)))
            .filter(regular)
            .map(|inode| inode.volatile.allocated())
            .sum()
    }

    /// Operations on this name hang.
    fn hangs(&self, path: &Path) -> bool {
        let mut all = self.hanging_directories.iter();
        all.any(|directory| path.starts_with(directory))
    }

    fn unlock(&mut self, handle: u64) {
        for inode in self.inodes.values_mut() {
            if inode.locked_by == Some(handle) {
                inode.locked_by = None;
            }
        }
    }
}
