//! A page of checksums in memory, and who writes what of its blocks.

use checksums::{Checksum, FAN, Generation, Level, Page};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Checksums of some blocks.
pub(super) type Checksums = SmallVec<[Checksum; 8]>;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What setting checksums changed.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Changed {
    /// The page was clean before and is not any more.
    pub(super) dirtied: bool,
    /// So many more blocks are not blank.
    pub(super) filled: i64,
}

/// A page of checksums in memory, shared by all cores.
pub(super) struct Resident {
    index: u64,
    inner: Mutex<Inner>,
}

struct Inner {
    entries: Box<[u32; FAN]>,
    generation: Generation,
    /// It differs from what was handed to the device last, or that is to be handed over once more.
    dirty: bool,
    /// What was found in the file and may not be stable there.
    unsure: Option<Box<[u32; FAN]>>,
    /// Somebody asked for it since the hand of the cache passed.
    used: bool,
    held: SmallVec<[Range<usize>; 4]>,
    waiting: Vec<oneshot::Sender<()>>,
}

impl Resident {
    pub(super) fn new(index: u64, entries: Box<[u32; FAN]>, generation: Generation) -> Arc<Self> {
        let inner = Mutex::new(Inner {
            entries,
            generation,
            dirty: false,
            unsure: None,
            used: true,
            held: SmallVec::new(),
            waiting: Vec::new(),
        });
        Arc::new(Self { index, inner })
    }

    pub(super) const fn index(&self) -> u64 {
        self.index
    }

    /// The checksums of some of its blocks, added at the end of `to`.
    pub(super) fn copy(&self, entries: Range<usize>, to: &mut Checksums) {
        let mut inner = lock(&self.inner);
        inner.used = true;
        to.extend(
            inner.entries[entries]
                .iter()
                .map(|&raw| Checksum::from_raw(raw)),
        );
    }

    /// Changes checksums.
    pub(super) fn set(&self, first: usize, checksums: &[Checksum]) -> Changed {
        let blank = Checksum::BLANK.raw();
        let mut inner = lock(&self.inner);
        let (mut changed, mut filled) = (false, 0);
        for (entry, checksum) in inner.entries[first..first + checksums.len()]
            .iter_mut()
            .zip(checksums)
        {
            changed |= *entry != checksum.raw();
            filled += i64::from(*entry == blank) - i64::from(checksum.raw() == blank);
            *entry = checksum.raw();
        }
        let dirtied = changed && !std::mem::replace(&mut inner.dirty, true);
        Changed { dirtied, filled }
    }

    /// The next one who reads these blocks adopts their checksums, but for those that the map has
    /// lost, or that are `spared`.
    pub(super) fn open(&self, entries: Range<usize>, spared: Option<Checksum>) -> Changed {
        let keep = [
            Checksum::LOST,
            Checksum::OPEN,
            spared.unwrap_or(Checksum::OPEN),
        ]
        .map(Checksum::raw);
        let mut inner = lock(&self.inner);
        let (mut changed, mut filled) = (false, 0);
        for entry in &mut inner.entries[entries] {
            if !keep.contains(entry) {
                filled += i64::from(*entry == Checksum::BLANK.raw());
                *entry = Checksum::OPEN.raw();
                changed = true;
            }
        }
        let dirtied = changed && !std::mem::replace(&mut inner.dirty, true);
        Changed { dirtied, filled }
    }

    /// It is to be written once more although nothing changed.
    pub(super) fn taint(&self) -> Changed {
        Changed {
            dirtied: !std::mem::replace(&mut lock(&self.inner).dirty, true),
            filled: 0,
        }
    }

    /// What was found may not be stable: it is to be written once more as it is.
    pub(super) fn mark_unverified(&self) -> Changed {
        {
            let mut inner = lock(&self.inner);
            inner.unsure = Some(inner.entries.clone());
        }
        self.taint()
    }

    /// What is to be made stable, in its place, before the next version is written.
    pub(super) fn unsure(&self) -> Option<Page> {
        let inner = lock(&self.inner);
        let entries = inner.unsure.clone()?;
        Some(self.version(inner.generation, entries))
    }

    /// How many of its first blocks are blank.
    pub(super) fn blanks(&self, entries: usize) -> u64 {
        let blank = |entry: &&u32| **entry == Checksum::BLANK.raw();
        lock(&self.inner).entries[..entries]
            .iter()
            .filter(blank)
            .count() as u64
    }

    /// What is to be written now, the next version; `None`: what was found is stable now, and
    /// nothing has changed since.
    pub(super) fn next(&self) -> Option<Page> {
        let mut inner = lock(&self.inner);
        inner.dirty = false;
        let found = inner.unsure.take();
        if found.is_some_and(|found| found == inner.entries) {
            return None;
        }
        inner.generation = inner.generation.next();
        Some(self.version(inner.generation, inner.entries.clone()))
    }

    /// The version that was to be written found no space: what there is now is to be written, with
    /// the number that it had. `true`: nobody has changed the page since, and so has it listed.
    pub(super) fn take_back(&self) -> bool {
        let mut inner = lock(&self.inner);
        inner.generation = inner.generation.before();
        !std::mem::replace(&mut inner.dirty, true)
    }

    fn version(&self, generation: Generation, entries: Box<[u32; FAN]>) -> Page {
        Page {
            level: Level::Checksums,
            index: self.index,
            generation,
            entries,
        }
    }

    /// Nobody asked for it since this was asked last.
    pub(super) fn is_idle(&self) -> bool {
        let mut inner = lock(&self.inner);
        !std::mem::take(&mut inner.used) && !inner.dirty
    }

    /// Somebody holds blocks of it.
    pub(super) fn is_held(&self) -> bool {
        !lock(&self.inner).held.is_empty()
    }

    fn try_hold(&self, entries: &Range<usize>) -> Option<oneshot::Receiver<()>> {
        let mut inner = lock(&self.inner);
        let meets = |held: &Range<usize>| held.start < entries.end && entries.start < held.end;
        if inner.held.iter().any(meets) {
            let (wake, woken) = oneshot::channel();
            inner.waiting.push(wake);
            return Some(woken);
        }
        inner.held.push(entries.clone());
        None
    }
}

/// Some blocks of a page are this task's to write, and their checksums its to set.
pub(super) struct Hold {
    pub(super) page: Arc<Resident>,
    pub(super) entries: Range<usize>,
}

impl Hold {
    /// Where nobody else holds one of them now.
    pub(super) fn at_once(page: Arc<Resident>, entries: Range<usize>) -> Option<Self> {
        let is_taken = page.try_hold(&entries).is_none();
        is_taken.then(|| Self { page, entries })
    }

    /// Waits until nobody else holds one of them. Whoever takes several takes them in the order of
    /// addresses.
    pub(super) async fn take(page: Arc<Resident>, entries: Range<usize>) -> Self {
        while let Some(woken) = page.try_hold(&entries) {
            // A sender that is dropped wakes as well.
            drop(woken.await);
        }
        Self { page, entries }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let waiting = {
            let mut inner = lock(&self.page.inner);
            let place = inner.held.iter().position(|held| *held == self.entries);
            inner
                .held
                .swap_remove(place.expect("what is held is listed"));
            std::mem::take(&mut inner.waiting)
        };
        for wake in waiting {
            // Whoever gave up waiting needs no wake.
            let _ = wake.send(());
        }
    }
}
