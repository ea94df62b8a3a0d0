//! A page of a history: after which cut each of its parts changed last.

use super::header::COUNTED_MAX;
use super::{HistoryId, HistoryWrite};
use crate::layout::{BLOCK, VERSION};
use formats::{Damage, Reader, Writer, open, seal};

const MAGIC: &[u8; 8] = b"CWJPARTS";

/// Bytes of a volume that have one entry.
pub const PART_BYTES: u64 = 64 << 10;

const FIXED: usize = 64;

/// Entries of a page.
pub(super) const PARTS: usize = BLOCK - FIXED;

/// Cuts that the entries of one page can distinguish.
const SPAN: u64 = 255;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Page {
    /// `None`: what was written is not known yet.
    generation: Option<u64>,
    /// An entry of 1 stands for this cut, the next one for the next.
    base: u64,
    /// 0: not changed since this history was made.
    entries: [u8; PARTS],
    /// What was written last is not what is known.
    pub(super) differs: bool,
    /// The newest was read, and not written or written again since: it may lie in a cache only,
    /// after a sync that failed.
    unsure: bool,
}

impl Page {
    pub(super) const fn unknown() -> Self {
        Self {
            generation: None,
            base: 0,
            entries: [0; PARTS],
            differs: false,
            unsure: false,
        }
    }

    pub(super) const fn is_known(&self) -> bool {
        self.generation.is_some()
    }

    /// The part changed after this cut.
    pub(super) fn mark(&mut self, entry: usize, cut: u64) {
        if self.base == 0 {
            self.base = cut;
        }
        if cut < self.base {
            // Reported as later than it was, which is too much, and no harm.
            return self.mark(entry, self.base);
        }
        if cut - self.base >= SPAN {
            self.rise(cut - SPAN / 2);
        }
        let value = u8::try_from(cut - self.base + 1).expect("within the span");
        if self.entries[entry] < value {
            self.entries[entry] = value;
            self.differs = true;
        }
    }

    /// The cut after which the part changed last.
    pub(super) fn last(&self, entry: usize) -> Option<u64> {
        let value = u64::from(self.entries[entry]);
        (value > 0).then(|| self.base + value - 1)
    }

    /// Older cuts are no longer distinguished.
    fn rise(&mut self, base: u64) {
        let by = base - self.base;
        for entry in self.entries.iter_mut().filter(|it| **it > 0) {
            let value = u64::from(*entry).saturating_sub(by).max(1);
            *entry = u8::try_from(value).expect("it became smaller");
        }
        (self.base, self.differs) = (base, true);
    }

    /// What was written, in both places, under what is known already.
    ///
    /// # Errors
    /// That one of them has another version; the page is as unknown as before.
    pub(super) fn fill(
        &mut self,
        id: HistoryId,
        (index, made, cut): (u64, u64, u64),
        bytes: &[u8],
    ) -> Result<(), Damage> {
        let places = Self::places(id, (index, made), bytes);
        let places: Vec<Found> = places.collect::<Result<_, Damage>>()?;
        let mut damaged = places.iter().any(|it| matches!(it, Found::Damaged));
        let empty = places.iter().any(|it| matches!(it, Found::Nothing));
        let found = places.into_iter().filter_map(|it| match it {
            Found::Page(page) => Some(*page),
            Found::Nothing | Found::Damaged => None,
        });
        let newest = found.max_by_key(|it| it.generation);
        // Whoever wrote the second one had written the first, to the place that is empty now.
        damaged |= empty && newest.as_ref().is_some_and(|it| it.generation > Some(1));
        let newest = newest.unwrap_or_else(|| Self {
            generation: Some(0),
            ..Self::unknown()
        });
        let known_here = std::mem::replace(self, newest);
        // What is there already may lie in a cache only, after a sync that failed: what the log
        // says of it is written again.
        self.differs = known_here.differs;
        self.unsure = self.generation > Some(0);
        if self.base == 0 {
            // Entries come in no order of cuts.
            self.base = known_here.base;
        }
        for entry in 0..PARTS {
            if let Some(last) = known_here.last(entry) {
                self.mark(entry, last);
            }
            if damaged {
                // Torn, or damaged: it may have been the newest.
                self.mark(entry, cut);
            }
        }
        Ok(())
    }

    /// Which version was written last, or is being written; `None`: it has not been read yet.
    pub(super) const fn generation(&self) -> Option<u64> {
        self.generation
    }

    /// Which version of this page each place of `bytes` holds: 0 where it is empty, or of a history
    /// that was given up, `None` where it is damaged.
    pub(super) fn generations(
        id: HistoryId,
        at: (u64, u64),
        bytes: &[u8],
    ) -> impl Iterator<Item = Option<u64>> {
        Self::places(id, at, bytes).map(|place| match place {
            Ok(Found::Page(page)) => page.generation,
            Ok(Found::Nothing) => Some(0),
            Ok(Found::Damaged) | Err(_) => None,
        })
    }

    fn places(
        id: HistoryId,
        at: (u64, u64),
        bytes: &[u8],
    ) -> impl Iterator<Item = Result<Found, Damage>> {
        let blocks = bytes.chunks_exact(BLOCK).zip(0..);
        blocks.map(move |(block, place)| Self::read(id, at, place, block))
    }

    fn read(
        id: HistoryId,
        (index, made): (u64, u64),
        at: u64,
        block: &[u8],
    ) -> Result<Found, Damage> {
        if block.iter().all(|&byte| byte == 0) {
            return Ok(Found::Nothing);
        }
        let fields = match open(block, MAGIC, VERSION) {
            Ok(fields) => fields,
            Err(version @ Damage::Version { .. }) => return Err(version),
            Err(Damage::Foreign | Damage::Checksum | Damage::Contradiction(_)) => {
                return Ok(Found::Damaged);
            }
        };
        let read = |mut fields: Reader<'_>| {
            fields.u16()?;
            let here = fields.u64()? == id.volume.0 && fields.u32()? == id.ring;
            let low = u64::from(fields.u32()?);
            let (place, its_made, generation) = (fields.u64()?, fields.u64()?, fields.u64()?);
            let base = u64::from(fields.u32()?) << 32 | low;
            // Where it counts further than there are numbers, everything changed.
            let base = its_made.checked_add(base).filter(|it| *it < COUNTED_MAX)?;
            let here = here && place == index && generation % 2 == at && generation < COUNTED_MAX;
            Some((here, its_made, generation, base))
        };
        Ok(match read(fields) {
            None | Some((false, ..)) => Found::Damaged,
            // Of a history that was given up.
            Some((true, its_made, ..)) if its_made != made => Found::Nothing,
            Some((true, _, generation, base)) => {
                let mut page = Self {
                    generation: Some(generation),
                    base,
                    ..Self::unknown()
                };
                page.entries.copy_from_slice(&block[FIXED..BLOCK]);
                Found::Page(Box::new(page))
            }
        })
    }

    /// The next one, to the older of both places, which begin at `at`.
    pub(super) fn write(
        &mut self,
        id: HistoryId,
        (index, made): (u64, u64),
        at: u64,
    ) -> HistoryWrite {
        let generation = self.generation.expect("it is known") + 1;
        (self.generation, self.differs) = (Some(generation), false);
        // Another ring's history may have been begun years later: its cuts are these as well.
        let base = self.base.saturating_sub(made);
        let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).expect("32 bits");
        let mut fields = Writer::with_capacity(BLOCK);
        fields
            .bytes(MAGIC)
            .u32(0)
            .u16(VERSION)
            .u16(0)
            .u64(id.volume.0)
            .u32(id.ring)
            .u32(half(base))
            .u64(index)
            .u64(made)
            .u64(generation)
            .u32(half(base >> 32))
            .u32(0)
            .bytes(&self.entries);
        let mut bytes = fields.padded(BLOCK);
        seal(&mut bytes);
        let at = at + generation % 2 * BLOCK as u64;
        HistoryWrite { at, bytes }
    }

    /// The version before the one that is being written was read, and may lie in a cache only.
    pub(super) const fn follows_unsure(&self) -> bool {
        self.unsure
    }

    /// Of which block of both places the version before the one that is being written is.
    pub(super) fn before(&self, id: HistoryId, at: (u64, u64), bytes: &[u8]) -> Option<usize> {
        let before = self.generation?.checked_sub(1).filter(|it| *it > 0)?;
        Self::generations(id, at, bytes).position(|it| it == Some(before))
    }

    /// What was handed out is stable.
    pub(super) const fn is_written(&mut self) {
        self.unsure = false;
    }

    /// It goes to the same place again: the other one has the last that is known to be good.
    pub(super) fn not_written(&mut self) {
        self.differs = true;
        self.generation = self.generation.map(|it| it - 1);
    }
}

/// What is at one of the places of a page.
enum Found {
    Nothing,
    Damaged,
    Page(Box<Page>),
}
