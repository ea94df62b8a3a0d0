//! What a log says that stands in the file, as long as it is not there.

use super::{LEADING, SECTOR, TRAILING};
use std::collections::BTreeMap;

/// A page that the log has.
#[derive(Clone, Copy)]
pub(super) struct Page {
    /// The sector of the log with what is not here.
    sector: usize,
    leading: [u8; LEADING],
    trailing: [u8; TRAILING],
}

/// Pages and ranges of zeroes, the later ones over the earlier ones.
#[derive(Default)]
pub(crate) struct Overlay {
    log: Vec<u8>,
    pub(super) pages: BTreeMap<u64, Page>,
    /// Ranges of zeroes, from and to, which have nothing in common.
    pub(super) zeroes: BTreeMap<u64, u64>,
}

impl Overlay {
    /// Over the bytes of a log.
    pub(super) fn new(log: Vec<u8>) -> Self {
        Self {
            log,
            pages: BTreeMap::new(),
            zeroes: BTreeMap::new(),
        }
    }

    pub(super) fn log(&self) -> &[u8] {
        &self.log
    }

    /// Nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.zeroes.is_empty()
    }

    pub(super) fn page(&mut self, at: u64, sector: usize, leading: [u8; 8], trailing: [u8; 4]) {
        let page = Page {
            sector,
            leading,
            trailing,
        };
        self.pages.insert(at, page);
    }

    pub(super) fn zero(&mut self, at: u64, end: u64) {
        let (mut from, mut to) = (at, end);
        let under: Vec<u64> = self.pages.range(at..end).map(|(at, _)| *at).collect();
        for page in under {
            self.pages.remove(&page);
        }
        while let Some((&start, &stop)) = self.zeroes.range(..=to).next_back() {
            if stop < from {
                break;
            }
            (from, to) = (from.min(start), to.max(stop));
            self.zeroes.remove(&start);
        }
        self.zeroes.insert(from, to);
    }

    /// A page of the file, if the log has it.
    pub(crate) fn get(&self, at: u64) -> Option<Vec<u8>> {
        if let Some(page) = self.pages.get(&at) {
            return Some(self.whole(page));
        }
        let (_, end) = self.zeroes.range(..=at).next_back()?;
        (*end > at).then(|| vec![0; SECTOR])
    }

    fn whole(&self, page: &Page) -> Vec<u8> {
        let from = page.sector * SECTOR;
        let mut bytes = self.log[from..from + SECTOR].to_vec();
        bytes[..LEADING].copy_from_slice(&page.leading);
        bytes[SECTOR - TRAILING..].copy_from_slice(&page.trailing);
        bytes
    }

    /// Ranges of zeroes: where, how many bytes.
    pub(crate) fn zeroes(&self) -> impl Iterator<Item = (u64, u64)> {
        self.zeroes.iter().map(|(at, end)| (*at, end - at))
    }

    /// Pages, which stand over the zeroes.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (u64, Vec<u8>)> {
        self.pages.iter().map(|(at, page)| (*at, self.whole(page)))
    }
}
