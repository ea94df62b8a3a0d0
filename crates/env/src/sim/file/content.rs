//! Bytes of a file: sparse pages that copies share until one of them changes.

use crate::Extent;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// Bytes in a page, the unit of allocation.
pub(super) const PAGE: u64 = 4096;

type Page = [u8; 4096];

/// Sparse bytes with a length. A page that is allocated and holds zeroes may be `None`.
#[derive(Clone, Default)]
pub(super) struct Content {
    pages: BTreeMap<u64, Option<Rc<Page>>>,
    len: u64,
}

/// The pieces of `range` that each lie in one page: page number, range in the page, range in the
/// whole.
fn pieces(range: Range<u64>) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> {
    let start = range.start;
    let mut at = range.start;
    std::iter::from_fn(move || {
        if at >= range.end {
            return None;
        }
        let page = at / PAGE;
        let end = range.end.min((page + 1).saturating_mul(PAGE));
        let inside = index(at - page * PAGE)..index(end - page * PAGE);
        let outside = index(at - start)..index(end - start);
        at = end;
        Some((page, inside, outside))
    })
}

pub(super) fn index(bytes: u64) -> usize {
    usize::try_from(bytes).expect("64-bit machines only")
}

impl Content {
    pub(super) fn of_len(len: u64) -> Self {
        Self {
            pages: BTreeMap::new(),
            len,
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Fills `into` from `offset` on; what is not there reads as zeroes.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) {
        let end = offset.saturating_add(into.len() as u64);
        let pages = self.pages.range(offset / PAGE..end.div_ceil(PAGE));
        let mut filled = 0;
        for (page, bytes) in pages.filter_map(|(page, bytes)| Some((page, bytes.as_ref()?))) {
            let first = page * PAGE;
            let (from, to) = (first.max(offset), end.min(first + PAGE));
            let outside = index(from - offset)..index(to - offset);
            into[filled..outside.start].fill(0);
            filled = outside.end;
            into[outside].copy_from_slice(&bytes[index(from - first)..index(to - first)]);
        }
        into[filled..].fill(0);
    }

    /// Replaces bytes and grows to hold them.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        for (page, inside, outside) in pieces(offset..end) {
            let (page, bytes) = (self.pages.entry(page).or_default(), &bytes[outside]);
            match Page::try_from(bytes) {
                // Files are made of zeroes, mostly.
                Ok(whole) if whole == [0; 4096] => *page = None,
                Ok(whole) => *page = Some(Rc::new(whole)),
                Err(_) => {
                    let page = page.get_or_insert_with(|| Rc::new([0; 4096]));
                    Rc::make_mut(page)[inside].copy_from_slice(bytes);
                }
            }
        }
        self.len = self.len.max(end);
    }

    /// Makes a range inside the length read as zeroes, and gives up or takes the space of its
    /// pages.
    pub(super) fn zero(&mut self, range: Range<u64>, keep: bool) {
        let range = range.start..range.end.min(self.len);
        let whole = range.start.div_ceil(PAGE)..range.end / PAGE;
        if !keep && whole.start < whole.end {
            // What has no page costs nothing: files are far larger than what is in them.
            let gone = self.pages.range(whole.clone()).map(|(page, _)| *page);
            for page in gone.collect::<Vec<u64>>() {
                self.pages.remove(&page);
            }
            for edge in [range.start..whole.start * PAGE, whole.end * PAGE..range.end] {
                self.zero_pieces(edge, keep);
            }
            return;
        }
        self.zero_pieces(range, keep);
    }

    fn zero_pieces(&mut self, range: Range<u64>, keep: bool) {
        for (number, inside, _) in pieces(range) {
            let whole = inside == (0..index(PAGE));
            if whole && keep {
                self.pages.insert(number, None);
            } else if whole {
                self.pages.remove(&number);
            } else if let Some(Some(page)) = self.pages.get_mut(&number) {
                Rc::make_mut(page)[inside].fill(0);
            } else if keep {
                self.pages.entry(number).or_insert(None);
            }
        }
    }

    /// Sets the length; what is cut off is gone, what is added reads as zeroes. Space that was
    /// taken behind the end goes as well, also where the length stays: so do ext4, XFS and btrfs.
    pub(super) fn set_len(&mut self, len: u64) {
        if len <= self.len {
            let page_end = len.div_ceil(PAGE).saturating_mul(PAGE);
            self.zero(len..page_end, true);
            drop(self.pages.split_off(&len.div_ceil(PAGE)));
        }
        self.len = len;
    }

    /// Takes space for a range.
    pub(super) fn allocate(&mut self, range: Range<u64>) {
        for (page, _, _) in pieces(range) {
            self.pages.entry(page).or_insert(None);
        }
    }

    /// Bytes of space that it has.
    pub(super) fn allocated(&self) -> u64 {
        self.pages.len() as u64 * PAGE
    }

    /// Bytes of space that it would take to hold `range`.
    pub(super) fn wants(&self, range: Range<u64>) -> u64 {
        let pages = range.start / PAGE..range.end.div_ceil(PAGE);
        if pages.is_empty() {
            return 0;
        }
        let here = self.pages.range(pages.clone()).count() as u64;
        (pages.end - pages.start - here) * PAGE
    }

    /// Runs of allocated and unallocated bytes that cover the range.
    pub(super) fn extents(&self, range: Range<u64>) -> Vec<Extent> {
        let mut out: Vec<Extent> = Vec::new();
        let mut at = range.start;
        let mut add = |to: u64, allocated: bool| {
            let len = to.min(range.end).saturating_sub(at);
            match out.last_mut() {
                _ if len == 0 => {}
                Some(last) if last.allocated == allocated => last.len += len,
                Some(_) | None => out.push(Extent {
                    offset: at,
                    len,
                    allocated,
                }),
            }
            at += len;
        };
        let pages = range.start / PAGE..range.end.div_ceil(PAGE);
        for page in self.pages.range(pages).map(|(page, _)| *page) {
            add(page * PAGE, false);
            add((page + 1) * PAGE, true);
        }
        add(range.end, false);
        out
    }
}
