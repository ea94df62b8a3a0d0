//! Where the newest data of a volume's sectors lies in a ring's log.
//!
//! ```text
//!   a page of 4096 bytes:  [s0 s1 s2 s3 s4 s5 s6 s7]   mask 1111_1111, at 520: sector k of it lies at 520 + k
//!   written in pieces:     the newest one in the table, what is left of older ones beside it
//! ```
//!
//! **Contract.** Of sectors that were put in more than once, the last place is told. What is settled is forgotten only where
//! it still is the newest.
//!
//! **Cost.** A page takes 16 bytes in a table that is between seven sixteenths and seven eighths full: less than a hundredth of the page.
//! Pages that are written in pieces smaller than a page take more; [`Index::fragments`] counts them, so that whoever writes can bound them.

use crate::table::{Entry, Tables};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a sector: places in the log and in volumes are counted in them here.
pub const SECTOR: u64 = 512;

/// Sectors of a page.
const PAGE: u64 = 8;

/// The bits of a key that a page's number has.
const PAGE_BITS: u32 = 48;

/// A volume's place among those that a ring serves now.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Slot(pub u16);

/// Sectors of a volume that lie together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Which sectors.
    pub sectors: Range<u64>,
    /// The sector of the ring's log where the first one lies; `None`: they are not in the log, but at home.
    pub at: Option<u32>,
}

/// What is left of an older piece of a page.
#[derive(Clone, Copy)]
struct Older {
    at: u32,
    mask: u8,
}

/// The index of one ring.
pub struct Index {
    newest: Tables,
    older: BTreeMap<u64, Vec<Older>>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            newest: Tables::new(),
            older: BTreeMap::new(),
        }
    }
}

/// The part of a page that a range of sectors touches.
struct Part {
    key: u64,
    /// The first sector of the page.
    first: u64,
    mask: u8,
}

fn key(slot: Slot, page: u64) -> u64 {
    debug_assert!(page < 1 << PAGE_BITS, "a volume has fewer than 2^60 bytes");
    (u64::from(slot.0) << PAGE_BITS) | page
}

fn parts(slot: Slot, sectors: Range<u64>) -> impl Iterator<Item = Part> {
    let pages = sectors.start / PAGE..sectors.end.div_ceil(PAGE);
    pages.map(move |page| {
        let first = page * PAGE;
        let from = sectors.start.saturating_sub(first).min(PAGE);
        let to = (sectors.end - first).min(PAGE);
        let below = |bits: u64| u8::try_from((1_u32 << bits) - 1).unwrap_or(u8::MAX);
        Part {
            key: key(slot, page),
            first,
            mask: below(to) & !below(from),
        }
    })
}

/// Where the first sector of a page would lie, if `at` is where sector `from` of the volume lies. Data follows a header of
/// a page at least, so that this is never before the log.
fn page_at(part: &Part, from: u64, at: u32) -> u32 {
    let distance = i64::try_from(part.first).unwrap_or(i64::MAX) - i64::try_from(from).unwrap_or(0);
    let place = i64::from(at) + distance;
    u32::try_from(place).expect("data lies behind a header, inside of the log")
}

impl Index {
    /// Pages that the log has something of.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.newest.len()
    }

    /// Pages that lie in more than one piece.
    #[must_use]
    pub fn fragments(&self) -> usize {
        self.older.len()
    }

    /// Memory in use, in bytes, without fragments.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.newest.bytes()
    }

    /// The newest data of these sectors lies at sector `at` of the log, and on.
    pub fn put(&mut self, slot: Slot, sectors: Range<u64>, at: u32) {
        let from = sectors.start;
        for part in parts(slot, sectors) {
            let entry = Entry {
                key: part.key,
                at: page_at(&part, from, at),
                mask: part.mask,
            };
            let before = self.newest.put(entry);
            if part.mask == u8::MAX {
                if !self.older.is_empty() {
                    self.older.remove(&part.key);
                }
                continue;
            }
            self.keep_older(before, &entry);
        }
    }

    /// What a newer piece of a page leaves of those before it.
    fn keep_older(&mut self, before: Option<Entry>, newer: &Entry) {
        let Some(before) = before else { return };
        let mut pieces = self.older.remove(&newer.key).unwrap_or_default();
        pieces.push(Older {
            at: before.at,
            mask: before.mask,
        });
        for piece in &mut pieces {
            piece.mask &= !newer.mask;
        }
        pieces.retain(|piece| piece.mask != 0);
        if !pieces.is_empty() {
            self.older.insert(newer.key, pieces);
        }
    }

    /// The log has nothing of these sectors any more.
    pub fn remove(&mut self, slot: Slot, sectors: Range<u64>) {
        for part in parts(slot, sectors) {
            self.clear(part.key, |_, mask| mask & !part.mask);
        }
    }

    /// These sectors are at home as they lie at sector `at` of the log: what is newer stays.
    pub fn settle(&mut self, slot: Slot, sectors: Range<u64>, at: u32) {
        let from = sectors.start;
        for part in parts(slot, sectors) {
            let home = page_at(&part, from, at);
            self.clear(part.key, |place, mask| {
                if place == home {
                    mask & !part.mask
                } else {
                    mask
                }
            });
        }
    }

    /// Gives each piece of a page another mask, and drops those that have nothing left.
    fn clear(&mut self, key: u64, left: impl Fn(u32, u8) -> u8) {
        let Some(newest) = self.newest.get(key) else {
            return;
        };
        let mut older = self.older.remove(&key).unwrap_or_default();
        for piece in &mut older {
            piece.mask = left(piece.at, piece.mask);
        }
        older.retain(|piece| piece.mask != 0);
        let mask = left(newest.at, newest.mask);
        // One piece must be in the table; which of them does not matter, because they do not overlap.
        let first = if mask != 0 {
            Some(Entry { mask, ..newest })
        } else {
            older.pop().map(|it| Entry {
                key,
                at: it.at,
                mask: it.mask,
            })
        };
        match first {
            Some(entry) => {
                self.newest.put(entry);
            }
            None => {
                self.newest.take(key);
            }
        }
        if !older.is_empty() {
            self.older.insert(key, older);
        }
    }

    /// Where these sectors lie, in order, in as few pieces as there are.
    #[must_use]
    pub fn find(&self, slot: Slot, sectors: Range<u64>) -> Vec<Piece> {
        let mut found: Vec<Piece> = Vec::new();
        for part in parts(slot, sectors) {
            match self.newest.get(part.key) {
                None => add(&mut found, &part, part.mask, None),
                Some(entry) if entry.mask & part.mask == part.mask => {
                    add(&mut found, &part, part.mask, Some(entry.at));
                }
                Some(entry) => self.find_in_pieces(&mut found, &part, entry),
            }
        }
        found
    }

    fn find_in_pieces(&self, found: &mut Vec<Piece>, part: &Part, newest: Entry) {
        let older = self.older.get(&part.key);
        for sector in 0..PAGE {
            let bit = 1_u8 << sector;
            if part.mask & bit == 0 {
                continue;
            }
            let at = if newest.mask & bit != 0 {
                Some(newest.at)
            } else {
                let mut older = older.into_iter().flatten();
                older.find(|it| it.mask & bit != 0).map(|it| it.at)
            };
            add(found, part, bit, at);
        }
    }
}

/// Adds the sectors of a page that `mask`, one run of ones, says; they go on with the piece before where that lies right before them.
fn add(found: &mut Vec<Piece>, part: &Part, mask: u8, page_at: Option<u32>) {
    let (from, to) = (mask.trailing_zeros(), u8::BITS - mask.leading_zeros());
    let sectors = part.first + u64::from(from)..part.first + u64::from(to);
    let at = page_at.map(|at| at + from);
    if let Some(last) = found.last_mut()
        && last.sectors.end == sectors.start
    {
        let next = last
            .at
            .map(|at| u64::from(at) + (last.sectors.end - last.sectors.start));
        if next == at.map(u64::from) {
            last.sectors.end = sectors.end;
            return;
        }
    }
    found.push(Piece { sectors, at });
}

#[cfg(test)]
mod test {
    use super::*;

    /// Where each sector of two volumes lies.
    type Model = BTreeMap<(u16, u64), u32>;

    fn told(index: &Index, slot: u16, sectors: Range<u64>) -> Vec<(u64, Option<u32>)> {
        let mut all = Vec::new();
        let found = index.find(Slot(slot), sectors.clone());
        assert!(
            found
                .windows(2)
                .all(|two| two[0].sectors.end == two[1].sectors.start),
            "no gap"
        );
        for piece in found {
            for (offset, sector) in (0..).zip(piece.sectors) {
                all.push((sector, piece.at.map(|at| at + offset)));
            }
        }
        assert!(all.iter().map(|(sector, _)| *sector).eq(sectors));
        all
    }

    /// What [`Index::settle`] does.
    fn forget(model: &mut Model, slot: u16, sectors: Range<u64>, at: u32) {
        for (offset, sector) in (0..).zip(sectors) {
            if model.get(&(slot, sector)) == Some(&(at + offset)) {
                model.remove(&(slot, sector));
            }
        }
    }

    #[test]
    fn every_sector_is_found_where_it_was_put_last() {
        for seed in 1..=40_u64 {
            let (mut index, mut model) = (Index::default(), Model::new());
            let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mut below = |limit: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                (random >> 20) % limit
            };
            let mut log = 8_u32;
            let mut puts: Vec<(u16, Range<u64>, u32)> = Vec::new();
            for _ in 0..1500 {
                let slot = u16::try_from(below(2)).unwrap();
                // Whole pages, or any sectors, of a small volume.
                let whole = below(2) == 0;
                let unit = if whole { 8 } else { 1 };
                let from = below(400 / unit) * unit;
                let range = from..from + (1 + below(40 / unit)) * unit;
                match below(6) {
                    0 => {
                        index.remove(Slot(slot), range.clone());
                        model.retain(|(of, sector), _| *of != slot || !range.contains(sector));
                    }
                    1 if !puts.is_empty() => {
                        let which = usize::try_from(below(puts.len() as u64)).unwrap();
                        let (slot, range, at) = puts.swap_remove(which);
                        index.settle(Slot(slot), range.clone(), at);
                        forget(&mut model, slot, range, at);
                    }
                    _ => {
                        index.put(Slot(slot), range.clone(), log);
                        let places = (0..).zip(range.clone());
                        model.extend(places.map(|(by, sector)| ((slot, sector), log + by)));
                        puts.push((slot, range.clone(), log));
                        log += u32::try_from(range.end - range.start).unwrap() + 8;
                    }
                }
                let asked = below(2);
                let from = below(420);
                let asked_slot = u16::try_from(asked).unwrap();
                for (sector, at) in told(&index, asked_slot, from..from + 1 + below(60)) {
                    assert_eq!(at, model.get(&(asked_slot, sector)).copied(), "{sector}");
                }
            }
            let pages: std::collections::BTreeSet<(u16, u64)> = model
                .keys()
                .map(|(slot, sector)| (*slot, sector / 8))
                .collect();
            assert_eq!(index.pages(), pages.len());
            index.remove(Slot(0), 0..500);
            index.remove(Slot(1), 0..500);
            assert_eq!((index.pages(), index.fragments()), (0, 0));
        }
    }

    #[test]
    fn what_lies_together_is_told_as_one_piece() {
        let mut index = Index::default();
        let slot = Slot(7);
        index.put(slot, 16..528, 1000);
        assert_eq!(
            index.find(slot, 0..600),
            [
                Piece {
                    sectors: 0..16,
                    at: None
                },
                Piece {
                    sectors: 16..528,
                    at: Some(1000)
                },
                Piece {
                    sectors: 528..600,
                    at: None
                },
            ]
        );
        index.put(slot, 100..101, 3000);
        let found = index.find(slot, 16..528);
        let places: Vec<(u64, Option<u32>)> =
            found.iter().map(|it| (it.sectors.start, it.at)).collect();
        assert_eq!(
            places,
            [(16, Some(1000)), (100, Some(3000)), (101, Some(1085))]
        );
        assert_eq!(index.fragments(), 1);
        assert_eq!(index.find(Slot(6), 16..24)[0].at, None, "another volume's");
    }
}
