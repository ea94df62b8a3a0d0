//! Pages of tables and bitmaps: the changed ones until they are in the file, of the others those
//! that were used last. A table of 513 MiB is never held as a whole.

use crate::log::SECTOR;
use std::collections::BTreeMap;

/// Pages of each of two generations of what may be dropped: 16 MiB in all.
const GENERATION: usize = 2048;

struct Changed {
    bytes: Vec<u8>,
    /// It differs from what the log has.
    dirty: bool,
}

/// The pages, by where they are in the file.
#[derive(Default)]
pub(crate) struct Pages {
    changed: BTreeMap<u64, Changed>,
    recent: BTreeMap<u64, Vec<u8>>,
    older: BTreeMap<u64, Vec<u8>>,
    applications: u64,
}

impl Pages {
    /// A page, if it is here.
    pub(crate) fn get(&mut self, at: u64) -> Option<&[u8]> {
        if self.changed.contains_key(&at) {
            return self
                .changed
                .get(&at)
                .map(|changed| changed.bytes.as_slice());
        }
        if let Some(page) = self.older.remove(&at) {
            self.put(at, page);
        }
        self.recent.get(&at).map(Vec::as_slice)
    }

    /// What was read from the file.
    pub(crate) fn put(&mut self, at: u64, page: Vec<u8>) {
        assert_eq!(page.len(), SECTOR, "a page is a page");
        if self.recent.len() >= GENERATION {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(at, page);
    }

    /// The same, where nobody has brought it or changed it meanwhile.
    pub(crate) fn put_new(&mut self, at: u64, page: Vec<u8>) {
        if self.get(at).is_none() {
            self.put(at, page);
        }
    }

    /// How often pages were written to their places.
    pub(crate) const fn applications(&self) -> u64 {
        self.applications
    }

    /// Changes bytes within a page that is here; what is as it was changes nothing.
    pub(crate) fn patch(&mut self, at: u64, bytes: &[u8]) {
        let page_bytes = u64::try_from(SECTOR).expect("a page is small");
        let (page, within) = (at - at % page_bytes, at % page_bytes);
        let from = usize::try_from(within).expect("within a page");
        let range = from..from + bytes.len();
        let is_same = self
            .get(page)
            .is_some_and(|page| page[range.clone()] == *bytes);
        if is_same {
            return;
        }
        let clean = self.recent.remove(&page);
        let changed = self.changed.entry(page).or_insert_with(|| Changed {
            bytes: clean.expect("whoever changes a page has loaded it"),
            dirty: false,
        });
        changed.bytes[range].copy_from_slice(bytes);
        changed.dirty = true;
    }

    /// Changed pages that the log does not have.
    pub(crate) fn dirty(&self) -> usize {
        self.changed.values().filter(|page| page.dirty).count()
    }

    /// Some of them, for an entry of the log; from now on they count as being there.
    pub(crate) fn take_dirty(&mut self, most: usize) -> Vec<(u64, Vec<u8>)> {
        let dirty = self.changed.iter_mut().filter(|(_, page)| page.dirty);
        let taken = dirty.take(most).map(|(at, page)| {
            page.dirty = false;
            (*at, page.bytes.clone())
        });
        taken.collect()
    }

    /// These are in their places.
    pub(crate) fn applied(&mut self, pages: &[(u64, Vec<u8>)]) {
        self.applications += 1;
        for (at, _) in pages {
            if self.changed.get(at).is_some_and(|page| !page.dirty) {
                let page = self.changed.remove(at).expect("it was just there");
                self.put(*at, page.bytes);
            }
        }
    }

    /// What was read of this part of the file is not true any more.
    ///
    /// # Panics
    /// If it has changes.
    pub(crate) fn forget(&mut self, from: u64, to: u64) {
        assert!(
            self.changed.range(from..to).next().is_none(),
            "changes are kept"
        );
        for pages in [&mut self.recent, &mut self.older] {
            pages.retain(|at, _| !(from..to).contains(at));
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn what_is_changed_stays_and_the_rest_is_bounded() {
        let mut pages = Pages::default();
        for number in 0..10 * 2048 {
            pages.put(number * 4096, vec![1; 4096]);
            if number % 1000 == 0 {
                pages.patch(number * 4096 + 8, &[2, 3]);
            }
            assert!(pages.recent.len() + pages.older.len() <= 2 * GENERATION);
        }
        pages.put(4096 * 5, vec![1; 4096]);
        pages.patch(4096 * 5, &[1, 1]);
        assert_eq!(pages.dirty(), 21, "what is as it was is not changed");
        assert_eq!(pages.get(1000 * 4096).unwrap()[7..11], [1, 2, 3, 1]);
        let taken = pages.take_dirty(5);
        assert_eq!(
            (taken.len(), taken[1].0, pages.dirty()),
            (5, 1000 * 4096, 16)
        );
        pages.patch(1000 * 4096, &[9]);
        pages.applied(&taken);
        assert_eq!((pages.dirty(), pages.changed.len()), (17, 17));
        assert_eq!(pages.get(0).unwrap()[8], 2);
        assert_eq!(pages.get(1000 * 4096).unwrap()[0], 9);
    }
}
