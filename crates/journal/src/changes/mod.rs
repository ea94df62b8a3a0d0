//! What one ring knows of the history of one volume for good: the number of its next change, its
//! cuts, and which parts of it changed since which cut.
//!
//! ```text
//!   a change is stable  --> its part of the volume gets the number of the newest cut
//!         (in memory, at once)
//!   records are to be given up
//!         --> header and pages that differ, to the older of two places each, then a sync
//! ```
//!
//! A *cut* divides the changes of a volume into those before and those after it. A part (64 KiB) is
//! kept with the cut after which it changed last. What is reported as changed since a cut is never
//! too little; it is too much where a cut is so old that it is no longer distinguished from later
//! ones, or where a page was damaged or torn.
//!
//! **Contract.** Bytes go in and out, as described in `docs/formats/journal.md`. What is written is
//! valid as soon as it is stable; a crash leaves the old or the new of each block.

mod header;
mod page;
#[cfg(test)]
mod test;

use crate::batch::{Sequence, VolumeId};
use crate::layout::{BLOCK, JournalId};
use crate::uncommitted::Epoch;
use formats::{CopiesState, Damage};
use header::Header;
pub use header::{CUTS_KEPT, CutPoint};
pub use page::PART_BYTES;
use page::{PARTS, Page};
use std::ops::Range;

/// Blocks of a header: two places, and in each the same twice.
const HEADER_BLOCKS: u64 = 4;

/// Whose history it is, and how it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HistoryId {
    /// The journal that its numbers are of.
    pub journal: JournalId,
    /// The volume that the changes are of.
    pub volume: VolumeId,
    /// Which ring writes it.
    pub ring: u32,
    /// Of how many.
    pub rings: u32,
}

/// A write that brings the history up to date; those of one time may be written in any order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HistoryWrite {
    /// Where, in bytes of its file.
    pub at: u64,
    /// Whole blocks.
    pub bytes: Vec<u8>,
}

/// The history of a volume in one ring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct History {
    id: HistoryId,
    header: Header,
    /// The header says something new.
    header_differs: bool,
    pages: Vec<Option<Box<Page>>>,
    /// Pages that were handed out and are not known to be stable.
    writing: Vec<usize>,
    header_writing: bool,
}

impl History {
    /// Where a ring's header lies, and how long it is.
    #[must_use]
    pub fn header_at(ring: u32) -> (u64, usize) {
        let at = u64::from(ring) * HEADER_BLOCKS * BLOCK as u64;
        let blocks = usize::try_from(HEADER_BLOCKS).expect("few");
        (at, blocks * BLOCK)
    }

    /// Opens it by the bytes of its header. What does not fit this journal is begun anew, with a
    /// first cut that is not below `first`: everything counts as changed since any cut before it.
    ///
    /// # Errors
    /// [`Damage::Version`]: another version of the program has written it.
    pub fn open(id: HistoryId, bytes: &[u8], first: u64) -> Result<Self, Damage> {
        let found = Header::newest(bytes, id)?;
        let kept = found.as_ref().filter(|it| it.is_of(id)).cloned();
        let anew = kept.is_none();
        let header = kept.unwrap_or_else(|| {
            let before = found.as_ref().map_or(0, Header::cut);
            Header::first(first.max(before + 1), found.as_ref())
        });
        Ok(Self {
            id,
            header,
            header_differs: anew,
            pages: Vec::new(),
            writing: Vec::new(),
            header_writing: false,
        })
    }

    /// How a ring's header is, by its bytes, and whose history it says that it is.
    #[must_use]
    pub fn copies_state(header: &[u8]) -> (CopiesState, Option<HistoryId>) {
        Header::copies_state(header)
    }

    /// What has to be stable before anything else is written, by the bytes of the header that it
    /// was opened by: the newest one, as it was read. It may lie in a cache only, after a sync that
    /// failed; the same bytes at the same place cannot be torn.
    #[must_use]
    pub fn again(&self, bytes: &[u8]) -> Option<HistoryWrite> {
        if self.header_differs {
            return None;
        }
        let place = self.header.place();
        let from = usize::try_from(place.start).expect("within the header");
        let to = usize::try_from(place.end).expect("within the header");
        Some(HistoryWrite {
            at: Self::header_at(self.id.ring).0 + place.start,
            bytes: bytes.get(from..to)?.to_vec(),
        })
    }

    /// Compared when a file is opened: a history of another volume is refused.
    #[must_use]
    pub const fn id(&self) -> HistoryId {
        self.id
    }

    /// The newest cut: what changes now changes after it.
    #[must_use]
    pub fn cut(&self) -> u64 {
        self.header.cut()
    }

    /// The number that the volume's next change has at least: those before it are no longer in the
    /// log, but for what is below.
    #[must_use]
    pub const fn next(&self) -> Sequence {
        self.header.next
    }

    /// The last [`CUTS_KEPT`] cuts, each with the number of its own record: changes with lower
    /// numbers are before it.
    pub fn cuts(&self) -> impl Iterator<Item = CutPoint> {
        self.header.cuts.iter().copied()
    }

    /// The first cut of this history: what was before it is not known.
    #[must_use]
    pub const fn made(&self) -> u64 {
        self.header.made
    }

    /// The cut after which a change with this number was made.
    #[must_use]
    pub fn cut_of(&self, sequence: Sequence) -> u64 {
        let before = self.header.cuts.iter().rev();
        let mut before = before.filter(|it| it.sequence < sequence);
        // Older than all that are kept: right before the oldest of them is too late or right, and
        // never too early.
        let first = self.header.cuts.front().map(|it| it.cut - 1);
        let found = before.next().map(|it| it.cut).or(first);
        found.unwrap_or(self.header.made)
    }

    /// A cut whose own record has this number.
    pub fn begin_cut(&mut self, cut: u64, sequence: Sequence) {
        if cut > self.cut() {
            self.header.begin(CutPoint { cut, sequence });
            self.header_differs = true;
        }
    }

    /// The newest epoch of the volume's owner that is committed here.
    #[must_use]
    pub const fn epoch(&self) -> Option<Epoch> {
        self.header.epoch
    }

    /// An epoch of the volume's owner is committed.
    pub fn begin_epoch(&mut self, epoch: Epoch) {
        self.header_differs |= self.header.begin_epoch(epoch);
    }

    /// These bytes of the volume have changed, after this cut.
    pub fn mark(&mut self, bytes: &Range<u64>, cut: u64) {
        let (made, first) = (self.header.made, bytes.start / PART_BYTES);
        for part in first..bytes.end.div_ceil(PART_BYTES) {
            let (page, entry) = place(part);
            self.page_mut(page).mark(entry, cut.max(made));
        }
    }

    fn page_mut(&mut self, page: usize) -> &mut Page {
        if page >= self.pages.len() {
            self.pages.resize(page + 1, None);
        }
        self.pages[page].get_or_insert_with(|| Box::new(Page::unknown()))
    }

    /// Of these bytes, or of what is to be written where there are none: pages that must be read
    /// first, by number.
    #[must_use]
    pub fn unknown(&self, bytes: Option<Range<u64>>) -> Vec<usize> {
        let known = |page: usize| {
            let page = self.pages.get(page).and_then(Option::as_ref);
            page.is_some_and(|it| it.is_known())
        };
        match bytes {
            Some(bytes) => {
                let first = place(bytes.start / PART_BYTES).0;
                let end = place(bytes.end.div_ceil(PART_BYTES).max(1) - 1).0 + 1;
                (first..end).filter(|page| !known(*page)).collect()
            }
            None => {
                let differs = |page: &usize| {
                    let page = self.pages[*page].as_ref();
                    page.is_some_and(|it| it.differs && !it.is_known())
                };
                (0..self.pages.len()).filter(differs).collect()
            }
        }
    }

    /// The header that was written last is not among the bytes of the header, which nobody writes
    /// meanwhile. A place that a crash has torn is no damage: the other one holds.
    #[must_use]
    pub fn has_lost_header(&self, bytes: &[u8]) -> bool {
        let newest = Header::newest(bytes, self.id).ok().flatten();
        let newest = newest.map_or(0, |it| it.generation());
        newest < self.header.generation()
    }

    /// The same of a page, by the bytes of both its places. Of one that is not in memory: neither
    /// can be read, and one was written. Nothing where the one before the newest was is no damage
    /// by itself: a sync that failed leaves that, and the page counts as changed.
    #[must_use]
    pub fn has_lost_page(&self, page: usize, bytes: &[u8]) -> bool {
        let at = (page as u64, self.header.made);
        let places: Vec<Option<u64>> = Page::generations(self.id, at, bytes).collect();
        let newest = places.iter().flatten().max();
        let known = self.pages.get(page).and_then(Option::as_ref);
        match (known.and_then(|it| it.generation()), newest) {
            (Some(written), newest) => newest.is_none_or(|it| *it < written),
            (None, newest) => newest.is_none(),
        }
    }

    /// Where a page lies, and how long it is: both its places.
    #[must_use]
    pub fn page_at(&self, page: usize) -> (u64, usize) {
        let headers = u64::from(self.id.rings) * HEADER_BLOCKS;
        let number = page as u64 * u64::from(self.id.rings) + u64::from(self.id.ring);
        ((headers + number * 2) * BLOCK as u64, 2 * BLOCK)
    }

    /// Bytes of the histories that so many rings have of a volume of so many bytes, in one file.
    #[must_use]
    pub fn bytes_for(rings: u32, volume_bytes: u64) -> u64 {
        let pages = volume_bytes.div_ceil(PART_BYTES).div_ceil(PARTS as u64);
        (HEADER_BLOCKS + pages * 2) * u64::from(rings) * BLOCK as u64
    }

    /// The bytes of a page that was unknown.
    ///
    /// # Errors
    /// [`Damage::Version`]: another version of the program has written it. It stays unknown, so
    /// that nothing is written over it.
    pub fn fill(&mut self, page: usize, bytes: &[u8]) -> Result<(), Damage> {
        let (cut, made, id) = (self.cut(), self.header.made, self.id);
        if self.page_mut(page).is_known() {
            // Somebody else has read it meanwhile, and it may have been written since.
            return Ok(());
        }
        self.page_mut(page)
            .fill(id, (page as u64, made, cut), bytes)
    }

    /// The parts of these bytes that changed since a cut, whose pages are known: as few ranges as
    /// there are, and within `bytes`.
    #[must_use]
    pub fn changed_since(&self, cut: u64, bytes: &Range<u64>) -> Vec<Range<u64>> {
        let mut changed: Vec<Range<u64>> = Vec::new();
        let all = cut < self.header.made || cut > self.cut();
        let parts = bytes.start / PART_BYTES..bytes.end.div_ceil(PART_BYTES);
        for part in parts {
            let (page, entry) = place(part);
            let page = self.pages.get(page).and_then(Option::as_ref);
            let last = page.and_then(|it| it.last(entry));
            if !all && last.is_none_or(|last| last < cut) {
                continue;
            }
            let start = (part * PART_BYTES).max(bytes.start);
            let end = ((part + 1) * PART_BYTES).min(bytes.end);
            match changed.last_mut() {
                Some(before) if before.end == start => before.end = end,
                _ => changed.push(start..end),
            }
        }
        changed
    }

    /// What has to be written before records below `next` may be given up; [`History::written`]
    /// must follow. Pages that were unknown when [`History::unknown`] was asked are known by now.
    #[must_use]
    pub fn writes(&mut self, next: Sequence) -> Vec<HistoryWrite> {
        assert!(
            self.writing.is_empty() && !self.header_writing,
            "one at a time"
        );
        let mut writes = Vec::new();
        for number in 0..self.pages.len() {
            let at = self.page_at(number).0;
            let Some(page) = self.pages[number]
                .as_mut()
                .filter(|it| it.differs && it.is_known())
            else {
                continue;
            };
            writes.push(page.write(self.id, (number as u64, self.header.made), at));
            self.writing.push(number);
        }
        if next > self.header.next || self.header_differs {
            self.header.next = self.header.next.max(next);
            (self.header_differs, self.header_writing) = (false, true);
            writes.push(self.header.write(self.id));
        }
        writes
    }

    /// Of the pages that [`History::writes`] handed out: those whose version before may lie in a
    /// cache only, by number. Together with them goes [`History::page_again`], so that a power cut
    /// does not leave a page without it.
    #[must_use]
    pub fn unsure(&self) -> Vec<usize> {
        let unsure = |page: &usize| {
            let page = self.pages[*page].as_ref();
            page.is_some_and(|it| it.follows_unsure())
        };
        self.writing.iter().copied().filter(unsure).collect()
    }

    /// The version of a page before the one that was handed out, as it was read, by the bytes of
    /// both places: the same bytes at the same place cannot be torn.
    #[must_use]
    pub fn page_again(&self, page: usize, bytes: &[u8]) -> Option<HistoryWrite> {
        let known = self.pages.get(page).and_then(Option::as_ref)?;
        let block = known.before(self.id, (page as u64, self.header.made), bytes)? * BLOCK;
        Some(HistoryWrite {
            at: self.page_at(page).0 + block as u64,
            bytes: bytes.get(block..block + BLOCK)?.to_vec(),
        })
    }

    /// What was handed out is stable, or is not known to be.
    pub fn written(&mut self, succeeded: bool) {
        for number in std::mem::take(&mut self.writing) {
            match self.pages[number].as_mut() {
                Some(page) if succeeded => page.is_written(),
                Some(page) => page.not_written(),
                None => {}
            }
        }
        if std::mem::take(&mut self.header_writing) && !succeeded {
            self.header.not_written();
            self.header_differs = true;
        }
    }

    /// Memory in use, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let pages = self.pages.iter().flatten().count();
        pages * size_of::<Page>() + self.pages.capacity() * size_of::<Option<Box<Page>>>()
    }
}

/// The page and entry of a part.
fn place(part: u64) -> (usize, usize) {
    let parts = PARTS as u64;
    let page = usize::try_from(part / parts).expect("a volume has fewer than 2^60 bytes");
    (
        page,
        usize::try_from(part % parts).expect("an entry of a page"),
    )
}
