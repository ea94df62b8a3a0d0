//! Whether the map's file still holds what stands above its pages of checksums: for scrubs. What it
//! does not is written once more, from memory.

use super::Finding;
use super::due::Above;
use super::map::Map;
use super::map_file::{MapFile, read_at, read_pair};
use super::page::lock;
use checksums::{FAN, Level, PAGE, PageId, Recorded, SUPERBLOCKS_AT, Superblock, judge};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use units::Lba;

/// Reads of the superblock at most, until it is not being written meanwhile.
const ATTEMPTS: u32 = 4;

impl Map {
    /// Compares what the file holds above the pages of checksums with what it must. Answers how
    /// much of it was damaged, or cannot be read.
    pub(super) async fn check_above(self: &Arc<Self>, from: &MapFile) -> u64 {
        let mut gone = Vec::new();
        if !self.has_superblock(from).await {
            gone.push(Above::Superblock);
        }
        let pages = lock(&self.tree).nodes();
        for place in pages {
            if !self.has_page(from, place).await {
                gone.push(Above::Page(place));
            }
        }
        if gone.is_empty() {
            return 0;
        }
        lock(&self.rounds).gone.extend(&gone);
        // A map that cannot be written says so by itself.
        let mended = self.settle(from).await.is_ok();
        for above in &gone {
            let end = if mended {
                "has been written anew from memory"
            } else {
                "cannot be written"
            };
            self.report_finding(&Finding::MapDamaged {
                blocks: self.blocks_below(*above),
                why: format!(
                    "what says which of them are the newest was damaged in the file, and {end}"
                ),
            });
        }
        gone.len() as u64
    }

    async fn has_page(&self, from: &MapFile, place: PageId) -> bool {
        let recorded = lock(&self.tree).recorded(place);
        let Ok(slots) = read_pair(&from.core, &from.file, place).await else {
            return false;
        };
        // A newer one may have been written meanwhile.
        let at_least = Recorded {
            exact: false,
            ..recorded
        };
        let both = [&slots[..PAGE], &slots[PAGE..]];
        judge(at_least, place, self.id, both).is_ok()
    }

    async fn has_superblock(self: &Arc<Self>, from: &MapFile) -> bool {
        for _ in 0..ATTEMPTS {
            let before = lock(&self.rounds).at_rest();
            let count = lock(&self.superblock).count;
            let Ok(slots) = read_at(&from.core, &from.file, 0, 2 * PAGE).await else {
                return false;
            };
            let newest = Superblock::newest([&slots[..PAGE], &slots[PAGE..]]);
            if newest.is_ok_and(|it| it.count >= count) {
                return true;
            }
            let after = lock(&self.rounds).at_rest();
            // Unless it was on its way.
            if before.is_some() && before == after || self.settle(from).await.is_err() {
                return false;
            }
        }
        false
    }

    /// Writes it as it was written last, to where it was.
    pub(super) async fn write_again(&self, from: &MapFile, above: Above) -> io::Result<()> {
        let (at, bytes) = match above {
            Above::Superblock => {
                let superblock = lock(&self.superblock);
                (SUPERBLOCKS_AT[superblock.slot()], superblock.write())
            }
            Above::Page(place) => match lock(&self.tree).again(place) {
                Some(write) => (write.at, write.bytes),
                None => return Ok(()),
            },
        };
        from.write(at, &bytes).await.map(|_| ())
    }

    /// The blocks that depend on it; some may lie past the volume's end.
    fn blocks_below(&self, above: Above) -> Range<Lba> {
        let fan = FAN as u64;
        let pages = match above {
            Above::Superblock => 0..lock(&self.tree).pages(),
            Above::Page(place) => {
                let pages = match place.level {
                    Level::Checksums => 1,
                    Level::Groups => fan,
                    Level::Regions => fan * fan,
                };
                place.index * pages..(place.index + 1) * pages
            }
        };
        self.blocks_of(pages.start).start..self.blocks_of(pages.end).start
    }
}
