//! Where the newest data of a volume's sectors lies in a ring's log.
//!
//! ```text
//!   a page of 4096 bytes:  [s0 s1 s2 s3 s4 s5 s6 s7]   mask 1111_1111, at 520: sector k at 520 + k
//!   written in pieces:     the newest one in the table, what is left of older ones beside it
//! ```
//!
//! Sectors that were made zeroes by a change without data are kept beside the table, as ranges.
//!
//! **Contract.** Of sectors that were put in more than once, the last place is found. What is
//! settled is forgotten only where it still is the newest.
//!
//! **Cost.** A page takes 16 bytes in a table that is between seven sixteenths and seven eighths
//! full: less than a hundredth of the page. Pages that are written in pieces smaller than a page
//! take more; [`Index::fragments`] counts them, so that whoever writes can bound them.

use crate::batch::{Kind, Sequence};
use crate::table::{Entry, Tables};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a sector: places in the log and in volumes are counted in them here.
pub const SECTOR: u64 = 512;

/// Sectors of a page.
const PAGE: u64 = 8;

/// Places of the tables that are searched for each page in them, about.
const SLOTS_FOR_A_PAGE: u64 = 3;

/// A range of fewer pages than that is walked through page by page, whatever there is.
const WALK_MIN: u64 = if cfg!(test) { 2 } else { 1024 };

/// The bits of a key that a page's number has.
const PAGE_BITS: u32 = 48;

/// A volume's place among those that a ring serves now.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Slot(pub u16);

/// Where sectors are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The log has nothing of them.
    Backing,
    /// From this sector of the ring's log on.
    Log(u32),
    /// They are zeroes by a change of this kind that is not in the backing volume yet.
    Zeroes(Kind),
    /// They were in the log, and are damaged there.
    Lost,
}

/// Sectors of a volume that lie together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Sectors of 512 bytes of the volume.
    pub sectors: Range<u64>,
    /// Whether the log or the backing volume has them, they are zeroes, or they are lost.
    pub source: Source,
}

impl Piece {
    /// The sector of the ring's log where the first one lies, if they are there.
    #[must_use]
    pub const fn log_at(&self) -> Option<u32> {
        match self.source {
            Source::Log(at) => Some(at),
            Source::Backing | Source::Zeroes(_) | Source::Lost => None,
        }
    }
}

/// Sectors of which a change without data says what they are, from a key of slot and first sector
/// on.
#[derive(Clone, Copy)]
struct Bare {
    end: u64,
    by: Sequence,
    source: Source,
}

/// What is left of an older piece of a page.
#[derive(Clone, Copy)]
struct Older {
    at: u32,
    mask: u8,
}

/// The index of one ring.
#[derive(Clone)]
pub struct Index {
    newest: Tables,
    older: BTreeMap<u64, Vec<Older>>,
    /// Ranges do not overlap each other, nor anything in the tables.
    bare: BTreeMap<(Slot, u64), Bare>,
    /// Pages of each volume.
    pages: Vec<u32>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            newest: Tables::new(),
            older: BTreeMap::new(),
            bare: BTreeMap::new(),
            pages: Vec::new(),
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

/// The volume of a key, and the first sector of the page.
fn of_key(key: u64) -> (Slot, u64) {
    let slot = u16::try_from(key >> PAGE_BITS).expect("the rest of the key's bits");
    (Slot(slot), (key & ((1 << PAGE_BITS) - 1)) * PAGE)
}

fn parts(slot: Slot, sectors: Range<u64>) -> impl Iterator<Item = Part> {
    let pages = sectors.start / PAGE..sectors.end.div_ceil(PAGE);
    pages.map(move |page| part(slot, &sectors, page))
}

/// The part of this page that the range touches, which it does.
fn part(slot: Slot, sectors: &Range<u64>, page: u64) -> Part {
    let first = page * PAGE;
    let from = sectors.start.saturating_sub(first).min(PAGE);
    let to = (sectors.end - first).min(PAGE);
    let below = |bits: u64| u8::try_from((1_u32 << bits) - 1).unwrap_or(u8::MAX);
    Part {
        key: key(slot, page),
        first,
        mask: below(to) & !below(from),
    }
}

/// The first sector of a mask of one run, and the one behind its last.
fn run(mask: u8) -> (u64, u64) {
    let (from, to) = (mask.trailing_zeros(), u8::BITS - mask.leading_zeros());
    (u64::from(from), u64::from(to))
}

/// Where the first sector of a page would lie, if `at` is where sector `from` of the volume lies.
/// Data follows a header of a page at least, so that this is never before the log.
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

    /// Pages of this volume that the log has something of.
    #[must_use]
    pub fn pages_of(&self, slot: Slot) -> u32 {
        let pages = self.pages.get(usize::from(slot.0));
        pages.copied().unwrap_or(0)
    }

    fn put_entry(&mut self, slot: Slot, entry: Entry) -> Option<Entry> {
        let before = self.newest.put(entry);
        if before.is_none() {
            let place = usize::from(slot.0);
            if place >= self.pages.len() {
                self.pages.resize(place + 1, 0);
            }
            self.pages[place] += 1;
        }
        before
    }

    fn take_entry(&mut self, key: u64) {
        if self.newest.take(key).is_some() {
            self.pages[usize::from(of_key(key).0.0)] -= 1;
        }
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
        self.cut_bare(slot, &sectors);
        let from = sectors.start;
        for part in parts(slot, sectors) {
            let entry = Entry {
                key: part.key,
                at: page_at(&part, from, at),
                mask: part.mask,
            };
            let before = self.put_entry(slot, entry);
            if part.mask == u8::MAX {
                if !self.older.is_empty() {
                    self.older.remove(&part.key);
                }
                continue;
            }
            self.keep_older(before, &entry);
        }
    }

    /// The change `by`, of this kind, made these sectors zeroes.
    pub fn zero(&mut self, slot: Slot, sectors: Range<u64>, by: Sequence, kind: Kind) {
        self.put_bare(slot, sectors, by, Source::Zeroes(kind));
    }

    /// What the change `by` wrote to these sectors is damaged in the log.
    pub fn lose(&mut self, slot: Slot, sectors: Range<u64>, by: Sequence) {
        self.put_bare(slot, sectors, by, Source::Lost);
    }

    fn put_bare(&mut self, slot: Slot, sectors: Range<u64>, by: Sequence, source: Source) {
        self.remove(slot, sectors.clone());
        let end = sectors.end;
        let bare = Bare { end, by, source };
        self.bare.insert((slot, sectors.start), bare);
    }

    /// All sectors that are zeroes or lost, by which change, and which of both.
    pub fn all_bare(&self) -> impl Iterator<Item = (Slot, Range<u64>, Sequence, Source)> {
        let all = self.bare.iter();
        all.map(|(&(slot, start), bare)| (slot, start..bare.end, bare.by, bare.source))
    }

    /// The sectors that still are zeroes, or lost, by the change `by`.
    #[must_use]
    pub fn bare(&self, slot: Slot, sectors: Range<u64>, by: Sequence) -> Vec<Range<u64>> {
        let ranges = self.bare_in(slot, &sectors);
        let same = ranges.filter(|(_, bare)| bare.by == by);
        same.map(|(range, _)| range.start.max(sectors.start)..range.end.min(sectors.end))
            .collect()
    }

    /// These sectors are in the backing volume as the change `by` made them: what is newer stays.
    pub fn settle_bare(&mut self, slot: Slot, sectors: Range<u64>, by: Sequence) {
        for range in self.bare(slot, sectors, by) {
            self.cut_bare(slot, &range);
        }
    }

    /// Ranges without data that touch these sectors.
    fn bare_in(
        &self,
        slot: Slot,
        sectors: &Range<u64>,
    ) -> impl Iterator<Item = (Range<u64>, Bare)> {
        let before = self.bare.range(..(slot, sectors.start)).next_back();
        let from = before.filter(|((of, _), bare)| *of == slot && bare.end > sectors.start);
        let from = from.map_or((slot, sectors.start), |(key, _)| *key);
        let ranges = self.bare.range(from..(slot, sectors.end));
        ranges.map(|(&(_, start), bare)| (start..bare.end, *bare))
    }

    /// As many of these sectors, from the first one on, as at most `most` ranges without data
    /// touch: what [`Index::find`] and who reads its answer have to do for those is bounded. At
    /// least one sector, where `most` is not 0.
    #[must_use]
    pub fn with_few_bare(&self, slot: Slot, sectors: Range<u64>, most: usize) -> Range<u64> {
        let too_many = self.bare_in(slot, &sectors).nth(most);
        sectors.start..too_many.map_or(sectors.end, |(range, _)| range.start.max(sectors.start))
    }

    /// Something newer is known of these sectors.
    fn cut_bare(&mut self, slot: Slot, sectors: &Range<u64>) {
        if self.bare.is_empty() {
            return;
        }
        let touched: Vec<(Range<u64>, Bare)> = self.bare_in(slot, sectors).collect();
        for (range, bare) in touched {
            self.bare.remove(&(slot, range.start));
            if range.start < sectors.start {
                let left = Bare {
                    end: sectors.start,
                    ..bare
                };
                self.bare.insert((slot, range.start), left);
            }
            if range.end > sectors.end {
                self.bare.insert((slot, sectors.end), bare);
            }
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
        self.cut_bare(slot, &sectors);
        if self.pages_of(slot) == 0 {
            return;
        }
        if let Some(few) = self.few_of(slot, &sectors) {
            for (part, _) in few {
                self.clear(part.key, |_, mask| mask & !part.mask);
            }
            return;
        }
        for part in parts(slot, sectors) {
            self.clear(part.key, |_, mask| mask & !part.mask);
        }
    }

    /// These sectors are in the backing volume as they lie at sector `at` of the log: what is newer
    /// stays.
    pub fn settle(&mut self, slot: Slot, sectors: Range<u64>, at: u32) {
        let from = sectors.start;
        for part in parts(slot, sectors) {
            let place_then = page_at(&part, from, at);
            self.clear(part.key, |place, mask| {
                if place == place_then {
                    mask & !part.mask
                } else {
                    mask
                }
            });
        }
    }

    /// What lies at sector `from` of the log was moved to sector `to`: what is newer stays where it
    /// is.
    pub fn relocate(&mut self, slot: Slot, sectors: Range<u64>, from: u32, to: u32) {
        let found = self.find_data(slot, sectors.clone());
        for piece in found {
            let ahead = piece.sectors.start - sectors.start;
            let ahead = u32::try_from(ahead).expect("a record is short");
            if piece.source == Source::Log(from + ahead) {
                self.put(slot, piece.sectors, to + ahead);
            }
        }
    }

    /// What is not in the backing volume of whatever lies in these sectors of the log is lost, by
    /// the change `by`.
    pub fn lose_at(
        &mut self,
        lying: &Range<u32>,
        by: impl Fn(Slot) -> Sequence,
    ) -> Vec<(Slot, Range<u64>)> {
        let entries = self.newest.entries().map(|it| (it.key, it.at, it.mask));
        let older = self.older.iter();
        let older = older.flat_map(|(key, all)| all.iter().map(|it| (*key, it.at, it.mask)));
        let mut lost: Vec<(Slot, Range<u64>)> = Vec::new();
        for (key, at, mask) in entries.chain(older) {
            for sector in (0..PAGE).filter(|it| mask >> it & 1 == 1) {
                let offset = u32::try_from(sector).expect("a page is short");
                if lying.contains(&(at + offset)) {
                    let (slot, first) = of_key(key);
                    lost.push((slot, first + sector..first + sector + 1));
                }
            }
        }
        lost.sort_unstable_by_key(|(slot, sectors)| (*slot, sectors.start));
        lost.dedup_by(|next, last| {
            let joins = last.0 == next.0 && last.1.end == next.1.start;
            if joins {
                last.1.end = next.1.end;
            }
            joins
        });
        for (slot, sectors) in &lost {
            self.lose(*slot, sectors.clone(), by(*slot));
        }
        lost
    }

    /// The log has nothing of the volume any more.
    pub fn forget(&mut self, slot: Slot) {
        let keys = self.newest.entries().map(|it| it.key);
        let keys: Vec<u64> = keys.filter(|key| of_key(*key).0 == slot).collect();
        for key in keys {
            self.take_entry(key);
            self.older.remove(&key);
        }
        self.bare.retain(|(of, _), _| *of != slot);
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
        // One piece must be in the table; which of them does not matter, because they do not
        // overlap.
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
            None => self.take_entry(key),
        }
        if !older.is_empty() {
            self.older.insert(key, older);
        }
    }

    /// The log has nothing of these sectors: they are as they are in the backing volume.
    #[must_use]
    pub fn is_clear(&self, slot: Slot, sectors: Range<u64>) -> bool {
        let is_clear = |part: &Part, entry: Entry| {
            let mut older = self.older.get(&part.key).into_iter().flatten();
            entry.mask & part.mask == 0 && older.all(|it| it.mask & part.mask == 0)
        };
        let clear = self.pages_of(slot) == 0
            || match self.few_of(slot, &sectors) {
                Some(few) => few.iter().all(|(part, entry)| is_clear(part, *entry)),
                None => parts(slot, sectors.clone()).all(|part| {
                    let entry = self.newest.get(part.key);
                    entry.is_none_or(|entry| is_clear(&part, entry))
                }),
            };
        clear && (self.bare.is_empty() || self.bare_in(slot, &sectors).next().is_none())
    }

    /// Where these sectors lie, in order, in as few pieces as there are.
    #[must_use]
    pub fn find(&self, slot: Slot, sectors: Range<u64>) -> Vec<Piece> {
        let found = self.find_data(slot, sectors);
        if self.bare.is_empty() {
            return found;
        }
        let pieces = found.into_iter().flat_map(|piece| {
            if piece.source == Source::Backing {
                self.with_bare(slot, piece.sectors)
            } else {
                vec![piece]
            }
        });
        pieces.collect()
    }

    /// Sectors that have no data in the log: which of them are zeroes or lost, and which in the
    /// backing volume.
    fn with_bare(&self, slot: Slot, sectors: Range<u64>) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut at = sectors.start;
        let mut push = |sectors: Range<u64>, source| {
            if sectors.is_empty() {
                return;
            }
            match pieces.last_mut() {
                Some(last) if last.source == source => last.sectors.end = sectors.end,
                _ => pieces.push(Piece { sectors, source }),
            }
        };
        for (range, bare) in self.bare_in(slot, &sectors) {
            let without = range.start.max(sectors.start)..range.end.min(sectors.end);
            push(at..without.start, Source::Backing);
            at = without.end;
            push(without, bare.source);
        }
        push(at..sectors.end, Source::Backing);
        pieces
    }

    fn find_data(&self, slot: Slot, sectors: Range<u64>) -> Vec<Piece> {
        let mut found: Vec<Piece> = Vec::new();
        if self.pages_of(slot) == 0 {
            in_base(&mut found, sectors);
            return found;
        }
        if let Some(few) = self.few_of(slot, &sectors) {
            let mut at = sectors.start;
            for (part, entry) in few {
                let (from, to) = run(part.mask);
                in_base(&mut found, at..part.first + from);
                at = part.first + to;
                self.find_in_page(&mut found, &part, entry);
            }
            in_base(&mut found, at..sectors.end);
            return found;
        }
        for part in parts(slot, sectors) {
            match self.newest.get(part.key) {
                None => add(&mut found, &part, part.mask, None),
                Some(entry) => self.find_in_page(&mut found, &part, entry),
            }
        }
        found
    }

    /// The pages of these sectors that are in the tables, in order, where a walk through all that
    /// is there is shorter than one through the sectors: a host may give up, or ask for, far more
    /// of a volume than a log can hold.
    fn few_of(&self, slot: Slot, sectors: &Range<u64>) -> Option<Vec<(Part, Entry)>> {
        let pages = sectors.start / PAGE..sectors.end.div_ceil(PAGE);
        let all = u64::try_from(self.newest.len()).unwrap_or(u64::MAX);
        if (pages.end - pages.start) / SLOTS_FOR_A_PAGE < all.max(WALK_MIN) {
            return None;
        }
        let keys = key(slot, pages.start)..=key(slot, pages.end - 1);
        let here = self.newest.entries().filter(|it| keys.contains(&it.key));
        let mut here: Vec<Entry> = here.collect();
        here.sort_unstable_by_key(|it| it.key);
        let with_part = |entry: Entry| (part(slot, sectors, of_key(entry.key).1 / PAGE), entry);
        Some(here.into_iter().map(with_part).collect())
    }

    fn find_in_page(&self, found: &mut Vec<Piece>, part: &Part, entry: Entry) {
        if entry.mask & part.mask == part.mask {
            add(found, part, part.mask, Some(entry.at));
        } else {
            self.find_in_pieces(found, part, entry);
        }
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

/// Adds sectors that the tables have nothing of.
fn in_base(found: &mut Vec<Piece>, sectors: Range<u64>) {
    if sectors.is_empty() {
        return;
    }
    match found.last_mut() {
        Some(last) if last.source == Source::Backing && last.sectors.end == sectors.start => {
            last.sectors.end = sectors.end;
        }
        _ => found.push(Piece {
            sectors,
            source: Source::Backing,
        }),
    }
}

/// Adds the sectors of a page that `mask`, one run of ones, says; they go on with the piece before
/// where that lies right before them.
fn add(found: &mut Vec<Piece>, part: &Part, mask: u8, page_at: Option<u32>) {
    let (from, to) = (mask.trailing_zeros(), u8::BITS - mask.leading_zeros());
    let sectors = part.first + u64::from(from)..part.first + u64::from(to);
    let at = page_at.map(|at| at + from);
    if let Some(last) = found.last_mut()
        && last.sectors.end == sectors.start
    {
        let next = last
            .log_at()
            .map(|at| u64::from(at) + (last.sectors.end - last.sectors.start));
        if next == at.map(u64::from) {
            last.sectors.end = sectors.end;
            return;
        }
    }
    let source = at.map_or(Source::Backing, Source::Log);
    found.push(Piece { sectors, source });
}

#[cfg(test)]
mod test;
