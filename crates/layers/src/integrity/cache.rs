//! The pages of a map that are in memory: bounded, shared by all cores, loaded once however many
//! ask.

use super::page::{Resident, lock};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// Parts of the cache that have locks of their own.
const SHARDS: usize = 64;

/// Pages that a shard keeps at least.
const SHARD_PAGES_MIN: usize = 4;

/// Pages in memory.
pub(super) struct Cache {
    shards: Box<[Mutex<Shard>]>,
    shard_pages: usize,
}

#[derive(Default)]
struct Shard {
    slots: BTreeMap<u64, Slot>,
    /// The page that was tested last when room was needed.
    hand: u64,
}

enum Slot {
    Here(Arc<Resident>),
    Loading(Vec<oneshot::Sender<()>>),
}

/// What the cache has of a page.
pub(super) enum Lookup {
    /// The page.
    Here(Arc<Resident>),
    /// Somebody loads it: try again then.
    Loading(oneshot::Receiver<()>),
    /// Nothing.
    Missing,
}

impl Cache {
    pub(super) fn new(pages: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            shard_pages: (pages / SHARDS).max(SHARD_PAGES_MIN),
        }
    }

    /// Pages that it keeps at most, but for those that are in use or not written yet.
    pub(super) const fn pages_max(&self) -> usize {
        self.shard_pages * SHARDS
    }

    /// Pages of the map in memory now, over all shards.
    pub(super) fn pages(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| lock(shard).slots.len())
            .sum()
    }

    /// Somebody holds blocks of some page.
    pub(super) fn is_held(&self) -> bool {
        let held = |slot: &Slot| matches!(slot, Slot::Here(page) if page.is_held());
        let mut shards = self.shards.iter();
        shards.any(|shard| lock(shard).slots.values().any(held))
    }

    /// The page if it is in memory, without waiting.
    pub(super) fn peek(&self, index: u64) -> Option<Arc<Resident>> {
        match lock(self.shard(index)).slots.get(&index) {
            Some(Slot::Here(page)) => Some(Arc::clone(page)),
            Some(Slot::Loading(_)) | None => None,
        }
    }

    /// Reads the page, if it is in memory: for a moment, because others wait for it.
    pub(super) fn glance<T>(&self, index: u64, lookup: impl FnOnce(&Resident) -> T) -> Option<T> {
        match lock(self.shard(index)).slots.get(&index) {
            Some(Slot::Here(page)) => Some(lookup(page)),
            Some(Slot::Loading(_)) | None => None,
        }
    }

    /// The page, or a place for the answer of whoever loads it. Where it is missing, `make` says
    /// whether this caller loads it (and must then [put](Loading) it), has it at once, or has no
    /// need of it.
    pub(super) fn lookup(
        &self,
        index: u64,
        make: impl FnOnce() -> Make,
    ) -> (Lookup, Option<Loading<'_>>) {
        let mut shard = lock(self.shard(index));
        match shard.slots.get_mut(&index) {
            Some(Slot::Here(page)) => (Lookup::Here(Arc::clone(page)), None),
            Some(Slot::Loading(waiting)) => {
                let (wake, woken) = oneshot::channel();
                waiting.push(wake);
                (Lookup::Loading(woken), None)
            }
            None => match make() {
                Make::None => (Lookup::Missing, None),
                Make::At(page) => {
                    shard.make_room(self.shard_pages);
                    shard.slots.insert(index, Slot::Here(Arc::clone(&page)));
                    (Lookup::Here(page), None)
                }
                Make::Load => {
                    shard.slots.insert(index, Slot::Loading(Vec::new()));
                    (
                        Lookup::Missing,
                        Some(Loading {
                            cache: self,
                            index,
                            page: None,
                        }),
                    )
                }
            },
        }
    }

    fn shard(&self, index: u64) -> &Mutex<Shard> {
        let shards = SHARDS as u64;
        &self.shards[usize::try_from(index % shards).expect("a small number")]
    }
}

/// What to do about a page that is not in memory.
pub(super) enum Make {
    /// The caller loads it.
    Load,
    /// Here it is.
    At(Arc<Resident>),
    /// It is not needed.
    None,
}

/// Somebody loads a page; dropping this ends it, with the page or without.
pub(super) struct Loading<'a> {
    cache: &'a Cache,
    index: u64,
    pub(super) page: Option<Arc<Resident>>,
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        let mut shard = lock(self.cache.shard(self.index));
        let before = shard.slots.remove(&self.index);
        if let Some(page) = self.page.take() {
            shard.make_room(self.cache.shard_pages);
            shard.slots.insert(self.index, Slot::Here(page));
        }
        drop(shard);
        if let Some(Slot::Loading(waiting)) = before {
            for wake in waiting {
                // Whoever gave up waiting needs no wake.
                let _ = wake.send(());
            }
        }
    }
}

impl Shard {
    /// Lets the page go that was not used for longest, about: one whose turn it is, that nobody
    /// uses and that is written.
    fn make_room(&mut self, pages_max: usize) {
        let mut passes = 0;
        while self.slots.len() >= pages_max && passes < 2 {
            let after = (Bound::Excluded(self.hand), Bound::Unbounded);
            let free = |slot: &Slot| match slot {
                Slot::Here(page) => Arc::strong_count(page) == 1 && page.is_idle(),
                Slot::Loading(_) => false,
            };
            match self.slots.range(after).find(|(_, slot)| free(slot)) {
                Some((&index, _)) => {
                    self.slots.remove(&index);
                    self.hand = index;
                }
                None => {
                    self.hand = 0;
                    passes += 1;
                }
            }
        }
    }
}
