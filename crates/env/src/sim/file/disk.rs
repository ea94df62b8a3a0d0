//! What the end of a life does to a disk, and what a test may do to it.

use super::super::executor::Life;
use super::super::fault::Fault;
use super::super::inner::Inner;
use super::content::{Content, index};
use super::inode::Inode;
use super::names::{Entry, normal};
use super::{DiskState, EndOfLife};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

impl Inner {
    pub(in super::super) fn with_disk<T>(
        &self,
        node: u16,
        inspect: impl FnOnce(&mut DiskState) -> T,
    ) -> T {
        inspect(&mut self.nodes.borrow_mut()[usize::from(node)].disk)
    }

    /// Does to a disk what the end of its node's life does.
    pub(in super::super) fn files_end_of_life(&self, life: Life, how: EndOfLife) {
        let mut hits = Vec::new();
        let mut hit = |fault| hits.push(fault);
        let rng = &mut *self.rng.borrow_mut();
        let in_flight = self.with_disk(life.node, |disk| {
            let in_flight = std::mem::take(&mut disk.in_flight);
            let mut left = Vec::new();
            for (number, flight) in in_flight {
                left.push(flight.interrupted(number, disk, rng));
            }
            disk.closing.clear();
            for inode in disk.inodes.values_mut() {
                inode.locked_by = None;
            }
            let sector = disk.sector;
            if how == EndOfLife::PowerCut {
                for inode in disk.inodes.values_mut() {
                    inode.power_cut(sector, rng, &mut hit);
                }
                disk.names.power_cut(rng, &mut hit);
                let named: BTreeSet<u64> = disk.names.files().collect();
                disk.inodes.retain(|number, _| named.contains(number));
            }
            left
        });
        drop(in_flight);
        for fault in hits {
            self.hit(fault);
        }
    }
}

/// A block device to add to a node.
#[derive(Clone, Copy, Debug)]
pub struct BlockDevice {
    /// Its size, a multiple of `logical_block_bytes`.
    pub bytes: u64,
    /// Logical sector, in bytes.
    pub logical_block_bytes: u32,
    /// Physical sector, in bytes.
    pub physical_block_bytes: u32,
    /// Unit of discards, in bytes; 0 where it cannot.
    pub discard_granularity: u32,
}

/// What stood on a disk, as an image of it or a snapshot that somebody made from outside.
pub struct DiskImage {
    names: BTreeMap<PathBuf, Entry>,
    files: BTreeMap<u64, Content>,
}

/// What a test may do to a node's disk from outside. It works while the node is down, too.
#[derive(Clone)]
pub struct Disk {
    inner: Rc<Inner>,
    node: u16,
}

impl Disk {
    pub(in super::super) fn new(inner: &Rc<Inner>, node: u16) -> Self {
        Self {
            inner: Rc::clone(inner),
            node,
        }
    }

    fn with<T>(&self, inspect: impl FnOnce(&mut DiskState) -> T) -> T {
        self.inner.with_disk(self.node, inspect)
    }

    /// Adds a block device called `path`.
    pub fn add_block_device(&self, path: &Path, device: BlockDevice) {
        self.with(|disk| {
            let number = disk.number();
            let inode = Inode::block(
                device.bytes,
                device.logical_block_bytes,
                device.physical_block_bytes,
                device.discard_granularity,
            );
            disk.inodes.insert(number, inode);
            disk.names.set_durable(&normal(path), Entry::File(number));
        });
    }

    /// Bytes that files have taken of it.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.with(|disk| disk.used())
    }

    /// Its capacity, in bytes.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.with(|disk| disk.capacity)
    }

    /// Changes the capacity of the file system, in bytes.
    pub fn set_capacity(&self, bytes: u64) {
        self.with(|disk| disk.capacity = bytes);
    }

    /// From now on one file is copied on write, as on btrfs and ZFS: on a full file system nothing
    /// that is there can be changed either. `false` where there is no such file.
    #[must_use]
    pub fn copy_on_write(&self, path: &Path) -> bool {
        self.with(|disk| match disk.names.get(&normal(path)) {
            Some(Entry::File(number)) => disk.copies.insert(number),
            Some(Entry::Directory) | None => false,
        })
    }

    /// What is on the medium now.
    #[must_use]
    pub fn image(&self) -> DiskImage {
        self.with(|disk| {
            let files = disk.inodes.iter();
            DiskImage {
                names: disk.names.durable().clone(),
                files: files.map(|(of, it)| (*of, it.durable().clone())).collect(),
            }
        })
    }

    /// Puts an image of this disk in the place of all that is on it, as somebody does who restores
    /// a virtual machine from a snapshot.
    ///
    /// # Panics
    /// The node runs.
    pub fn goes_back_to(&self, image: &DiskImage) {
        let nodes = self.inner.nodes.borrow();
        let is_up = nodes[usize::from(self.node)].is_up();
        assert!(!is_up, "who restores a disk stops its machine first");
        drop(nodes);
        self.with(|disk| {
            disk.names.are(&image.names);
            disk.inodes.retain(|of, _| image.files.contains_key(of));
            for (of, content) in &image.files {
                let inode = disk.inodes.entry(*of).or_insert_with(Inode::regular);
                inode.holds(content);
            }
        });
    }

    /// From now on syncs and stable writes say yes and do nothing, or are honest again.
    pub fn lie_about_flush(&self, lying: bool) {
        self.with(|disk| disk.lying = lying);
    }

    /// From now on every operation hangs until [`Disk::release`].
    pub fn hang(&self) {
        self.with(|disk| disk.hanging = true);
    }

    /// From now on every operation on one file or device hangs until [`Disk::release`]; all others
    /// go on. `false` where there is no such file.
    #[must_use]
    pub fn hang_file(&self, path: &Path) -> bool {
        self.with(|disk| match disk.names.get(&normal(path)) {
            Some(Entry::File(number)) => disk.hanging_inodes.insert(number),
            Some(Entry::Directory) | None => false,
        })
    }

    /// From now on every operation in one directory hangs until [`Disk::release`], on names and on
    /// the files that it has now, as on a server of files that is away; all others go on.
    pub fn hang_directory(&self, path: &Path) {
        self.with(|disk| {
            let path = normal(path);
            for (_, entry) in disk.names.list(&path) {
                if let Entry::File(number) = entry {
                    disk.hanging_inodes.insert(number);
                }
            }
            disk.hanging_directories.insert(path);
        });
    }

    /// Lets every operation that hangs go on, and hangs no more.
    pub fn release(&self) {
        let hung: Vec<u64> = self.with(|disk| {
            disk.hanging = false;
            disk.hanging_inodes.clear();
            disk.hanging_directories.clear();
            let hung = disk.in_flight.iter().filter(|(_, it)| it.hangs());
            hung.map(|(number, _)| *number).collect()
        });
        for number in hung {
            let node = self.node;
            let delay = self.inner.between(1, 1_000_000);
            self.inner
                .after(delay, move |inner| inner.file_complete(node, number));
        }
    }

    /// Syncs and stable writes that were begun, in all lives of the node.
    #[must_use]
    pub fn durable_begun(&self) -> u64 {
        self.with(|disk| disk.durable_begun)
    }

    /// Operations in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.with(|disk| disk.in_flight.len())
    }

    /// Rots the byte at `offset` of a file, on the medium and in the cache. `false` where there is
    /// no such file.
    #[must_use]
    pub fn rot(&self, path: &Path, offset: u64) -> bool {
        self.with(|disk| match disk.names.get(&normal(path)) {
            Some(Entry::File(number)) => {
                disk.inode(number).rot(offset);
                true
            }
            Some(Entry::Directory) | None => false,
        })
    }

    /// What reads see of a file, on the medium or in the cache.
    #[must_use]
    pub fn seen(&self, path: &Path) -> Option<Vec<u8>> {
        self.with(|disk| match disk.names.get(&normal(path))? {
            Entry::File(number) => {
                let content = &disk.inode(number).volatile;
                let mut bytes = vec![0; index(content.len())];
                content.read(0, &mut bytes);
                Some(bytes)
            }
            Entry::Directory => None,
        })
    }

    /// What is known to be on the medium of a file, as its durable name finds it.
    #[must_use]
    pub fn durable(&self, path: &Path) -> Option<Vec<u8>> {
        self.with(|disk| match disk.names.get_durable(&normal(path))? {
            Entry::File(number) => {
                let content = disk.inode(number).durable();
                let mut bytes = vec![0; index(content.len())];
                content.read(0, &mut bytes);
                Some(bytes)
            }
            Entry::Directory => None,
        })
    }

    /// Counts how often it lied; for the fault's own bookkeeping.
    pub(super) fn lied(inner: &Inner) {
        inner.hit(Fault::FileLyingFlush);
    }
}
