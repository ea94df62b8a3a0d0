//! How much of a volume has checksums, where its map was made later than it: blocks get theirs when
//! they are written or read.
//!
//! **Invariant.** The superblock says that blocks without a checksum are zeroes only when every
//! block has one that is stable.

use super::lane::{Inside, IntegrityLane};
use super::map::{Map, parts};
use super::page::lock;
use checksums::Blank;
use futures_util::stream::{self, StreamExt};
use std::sync::atomic::Ordering;
use volume::IoError;

/// Pages that are read at once when all are searched.
const PAGES_AT_ONCE: usize = 8;

impl Map {
    /// Of so many blocks, those that are not blank.
    pub(super) fn with_checksum(&self, all: u64) -> u64 {
        let with_checksum = self.blank.with_checksum.load(Ordering::Relaxed);
        u64::try_from(with_checksum).unwrap_or(0).min(all)
    }

    /// Blocks without a checksum that may hold anything.
    pub(super) fn without_checksum(&self) -> u64 {
        match self.blank() {
            Blank::Zeroes => 0,
            Blank::Anything => {
                let all = lock(&self.superblock).checksums();
                all - self.with_checksum(all)
            }
        }
    }
}

impl IntegrityLane {
    /// Makes the checksums stable that reads have adopted.
    ///
    /// # Errors
    /// The map cannot be written.
    pub async fn keep_checksums(&self) -> Result<(), IoError> {
        self.0.map.stable(&self.0.from).await
    }

    /// Counts the blocks that have no checksum. Once none is left, the map is as one that was made
    /// with its volume.
    ///
    /// # Errors
    /// The map cannot be read or written.
    pub async fn cover(&self) -> Result<(), IoError> {
        self.0.cover().await
    }
}

impl Inside {
    async fn cover(&self) -> Result<(), IoError> {
        let map = &self.map;
        if map.blank() == Blank::Zeroes {
            return Ok(());
        }
        let all = lock(&map.superblock).checksums();
        let mut counted = stream::iter(parts(0..all))
            .map(|part| async move {
                let (core, file) = (&self.from.core, &self.from.file);
                let page = map.page(core, file, part.page, false).await?;
                let entries = part.entries.len();
                Ok(page.map_or(entries as u64, |page| page.blanks(entries)))
            })
            .buffer_unordered(PAGES_AT_ONCE);
        let mut without = 0;
        while let Some(blanks) = counted.next().await {
            without += blanks?;
        }
        drop(counted);
        let with_checksum = i64::try_from(all - without).unwrap_or(i64::MAX);
        map.blank
            .with_checksum
            .store(with_checksum, Ordering::Relaxed);
        // No block becomes blank again: what was counted goes to the file now, if it was not there.
        map.stable(&self.from).await?;
        if without == 0 && lock(&map.superblock).checksums() == all {
            lock(&map.superblock).blank = Blank::Zeroes;
            map.state.superblock_is_new.store(true, Ordering::Release);
            map.settle(&self.from).await?;
            map.blank.anything.store(false, Ordering::Relaxed);
        }
        Ok(())
    }
}
