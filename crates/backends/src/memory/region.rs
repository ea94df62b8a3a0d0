//! 64 KiB of a volume in memory.
//!
//! ```text
//!   home:   [page 0 | page 1 | ... | page 15]     one slab; written in place while nobody reads it
//!   moved:  page 3 -> a slab of its own            written while home was being read
//!   mapped: a bit for each page; one that is not mapped reads as zeroes, whatever home holds
//! ```
//!
//! **Contract.** Bytes that were lent out never change. A page that is written while its region is
//! being read moves to memory of its own, and back when the region is written again and nobody
//! reads it.
//!
//! **Invariants.** I1: a page in `moved` is mapped. I2: there is a home as long as any page is
//! mapped.

use std::collections::BTreeMap;
use std::ops::Range;
use units::{Buf, Slab};

/// Bytes of a page: what is mapped or not.
pub(super) const PAGE: usize = 4096;

/// Bytes of a region.
pub(super) const REGION: usize = 64 << 10;

const ALL_PAGES: u16 = u16::MAX;

/// Contents of one region.
#[derive(Default)]
pub(super) struct Region {
    mapped: u16,
    home: Option<Slab>,
    #[expect(
        clippy::box_collection,
        reason = "there are many regions and few with moved pages: one word, not three"
    )]
    moved: Option<Box<BTreeMap<usize, Slab>>>,
}

/// The bits of the pages that `bytes` touches.
fn bits(bytes: &Range<usize>) -> u16 {
    let (first, end) = (bytes.start / PAGE, bytes.end.div_ceil(PAGE));
    let below = |page: usize| ALL_PAGES.checked_shl(u32::try_from(page).unwrap_or(16));
    below(first).unwrap_or(0) & !below(end).unwrap_or(0)
}

/// The pages that `bytes` touches, with the bytes of each.
fn pages(bytes: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
    let mut at = bytes.start;
    std::iter::from_fn(move || {
        (at < bytes.end).then(|| {
            let page = at / PAGE;
            let part = at..bytes.end.min((page + 1) * PAGE);
            at = part.end;
            (page, part)
        })
    })
}

impl Region {
    /// Pages that hold contents.
    pub(super) fn page_count(&self) -> usize {
        self.mapped.count_ones() as usize
    }

    /// A page holds contents.
    pub(super) fn is_mapped(&self, page: usize) -> bool {
        self.mapped & bits(&(page * PAGE..(page + 1) * PAGE)) != 0
    }

    /// Adds these bytes to `out`, by reference.
    pub(super) fn lend(&self, bytes: Range<usize>, out: &mut Buf) {
        let touched = bits(&bytes);
        if let Some(home) = &self.home
            && self.moved.is_none()
            && self.mapped & touched == touched
        {
            return out.append_owned(home.share(bytes));
        }
        for (page, part) in pages(bytes) {
            out.append_owned(self.lend_page(page, part));
        }
    }

    fn lend_page(&self, page: usize, part: Range<usize>) -> Buf {
        let moved = self.moved.as_ref().and_then(|moved| moved.get(&page));
        match (moved, &self.home) {
            (Some(slab), _) => slab.share(part.start % PAGE..part.start % PAGE + part.len()),
            (None, Some(home)) if self.is_mapped(page) => home.share(part),
            (None, Some(_) | None) => Buf::zeroes(part.len()),
        }
    }

    /// Makes `slab` the contents; answers what they were kept in.
    pub(super) fn replace(&mut self, slab: Slab) -> Option<Slab> {
        debug_assert_eq!(slab.bytes().len(), REGION);
        self.moved = None;
        self.mapped = ALL_PAGES;
        self.home.replace(slab)
    }

    /// Writes these bytes; `fill` is called for one piece after the other.
    pub(super) fn write(&mut self, bytes: Range<usize>, mut fill: impl FnMut(&mut [u8])) {
        let before = self.mapped;
        self.mapped |= bits(&bytes);
        if bytes.len() == REGION
            && self
                .home
                .as_mut()
                .is_some_and(|it| it.bytes_mut().is_none())
        {
            // All of it is written and somebody reads it: it gets new memory, they keep the old.
            self.home = None;
            self.moved = None;
        }
        let home = self.home.get_or_insert_with(|| Slab::zeroed(REGION));
        let Some(home) = home.bytes_mut() else {
            return self.write_next_to(bytes, before, fill);
        };
        for (page, slab) in self.moved.take().into_iter().flat_map(|moved| *moved) {
            home[page * PAGE..][..PAGE].copy_from_slice(slab.bytes());
        }
        let first = bytes.start / PAGE * PAGE;
        let end = bytes.end.next_multiple_of(PAGE);
        if before & bits(&(first..first + 1)) == 0 {
            home[first..bytes.start].fill(0);
        }
        if before & bits(&(end - 1..end)) == 0 {
            home[bytes.end..end].fill(0);
        }
        fill(&mut home[bytes]);
    }

    /// Writes while home is being read.
    fn write_next_to(&mut self, bytes: Range<usize>, before: u16, mut fill: impl FnMut(&mut [u8])) {
        for (page, part) in pages(bytes) {
            let mut new = Slab::zeroed(PAGE);
            let memory = new.bytes_mut().expect("nobody else knows it");
            if part.len() < PAGE && before & bits(&part) != 0 {
                self.lend_page(page, page * PAGE..(page + 1) * PAGE)
                    .copy_to(0, memory);
            }
            fill(&mut memory[part.start % PAGE..part.start % PAGE + part.len()]);
            self.moved.get_or_insert_default().insert(page, new);
        }
    }

    /// Makes zeroes of these bytes. Whole pages give up their memory, or keep it with `keep`; parts
    /// of pages at the ends are written, or left as they are with `whole_only`. Answers memory that
    /// is not needed any more.
    pub(super) fn zero(
        &mut self,
        bytes: Range<usize>,
        keep: bool,
        whole_only: bool,
    ) -> Option<Slab> {
        for (page, part) in pages(bytes) {
            if part.len() < PAGE {
                if !whole_only && (keep || self.is_mapped(page)) {
                    self.write(part, |memory| memory.fill(0));
                }
            } else if keep {
                self.write(part, |memory| memory.fill(0));
            } else {
                self.mapped &= !bits(&part);
                if let Some(moved) = &mut self.moved {
                    moved.remove(&page);
                }
            }
        }
        if self.mapped != 0 {
            return None;
        }
        self.moved = None;
        self.home.take()
    }
}

#[cfg(test)]
mod test {
    use super::*;

    /// Every short history of writes, zeroes and readers that stay, on four pages' worth of
    /// interesting places.
    #[test]
    fn a_region_does_what_an_array_does_and_what_was_lent_never_changes() {
        let places = [
            0..PAGE,
            512..1024,
            PAGE - 512..PAGE + 512,
            0..REGION,
            REGION - PAGE..REGION,
        ];
        let steps = places.len() * 5;
        for code in 0..steps.pow(4) {
            let (mut region, mut model) = (Region::default(), vec![0; REGION]);
            let mut readers: Vec<(Buf, Vec<u8>)> = Vec::new();
            let mut rest = code;
            for stamp in 1..=4u8 {
                let bytes = places[rest % places.len()].clone();
                match rest / places.len() % 5 {
                    0 => {
                        region.write(bytes.clone(), |memory| memory.fill(stamp));
                        model[bytes].fill(stamp);
                    }
                    1 => {
                        let mut lent = Buf::empty();
                        region.lend(bytes.clone(), &mut lent);
                        readers.push((lent, model[bytes].to_vec()));
                    }
                    2 => readers.clear(),
                    3 => {
                        drop(region.zero(bytes.clone(), false, false));
                        model[bytes].fill(0);
                    }
                    _ => {
                        drop(region.zero(bytes.clone(), true, false));
                        model[bytes].fill(0);
                    }
                }
                rest /= steps;
            }
            let mut all = Buf::empty();
            region.lend(0..REGION, &mut all);
            assert!(all.to_vec() == model, "history {code}");
            for (lent, bytes) in readers {
                assert!(lent.to_vec() == bytes, "history {code}: a reader");
            }
        }
    }
}
