//! The header of a history: numbers, cuts, and the newest epoch of the volume's owner.

use super::{HEADER_BLOCKS, HistoryId, HistoryWrite};
use crate::batch::{Sequence, VolumeId};
use crate::layout::{BLOCK, JournalId, VERSION, VERSION_OF_COPIES, VERSIONS};
use crate::uncommitted::Epoch;
use formats::{CopiesState, Damage, Reader, Writer, open_one_of, seal};
use std::collections::VecDeque;
use std::ops::Range;

const MAGIC: &[u8; 8] = b"CWJHISTO";

/// Cuts that are kept with their numbers.
pub const CUTS_KEPT: usize = 240;

/// No count gets here: with one a nanosecond it takes a century.
pub(super) const COUNTED_MAX: u64 = 1 << 62;

/// A cut in one ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CutPoint {
    /// The cut's number, which grows with each.
    pub cut: u64,
    /// The number of its own record.
    pub sequence: Sequence,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Header {
    /// Rises by one with each that is written; it goes to the place of its lowest bit.
    generation: u64,
    id: Option<HistoryId>,
    /// The first cut of this history: what was before it is not known.
    pub(super) made: u64,
    pub(super) next: Sequence,
    /// The newest one that is committed, of a volume of several copies. It stands beside the cuts
    /// and is in none of their numbers: those go on one by one whoever the owner is.
    pub(super) epoch: Option<Epoch>,
    /// The oldest first.
    pub(super) cuts: VecDeque<CutPoint>,
}

impl Header {
    /// The first one of a history that begins with this cut, over what another journal has left.
    pub(super) fn first(made: u64, before: Option<&Self>) -> Self {
        Self {
            // A lower one than what is there would not be found by the next opening.
            generation: before.map_or(0, |it| it.generation),
            id: None,
            made,
            next: Sequence(0),
            epoch: None,
            cuts: VecDeque::new(),
        }
    }

    /// A committed epoch; `true`: it is newer than what is known.
    pub(super) fn begin_epoch(&mut self, epoch: Epoch) -> bool {
        // The same one begins again where the copy is made anew.
        let order = |it: Epoch| (it.epoch, it.first);
        let is_newer = self.epoch.is_none_or(|it| order(it) < order(epoch));
        if is_newer {
            self.epoch = Some(epoch);
        }
        is_newer
    }

    pub(super) fn cut(&self) -> u64 {
        self.cuts.back().map_or(self.made, |it| it.cut)
    }

    pub(super) fn is_of(&self, id: HistoryId) -> bool {
        self.id == Some(id)
    }

    pub(super) fn begin(&mut self, point: CutPoint) {
        self.cuts.push_back(point);
        if self.cuts.len() > CUTS_KEPT {
            self.cuts.pop_front();
        }
    }

    /// The newest of both places, of this volume and ring, whichever journal wrote it.
    ///
    /// # Errors
    /// That one of them has another version: what it says is not known here, and is not to be
    /// written over.
    pub(super) fn newest(bytes: &[u8], id: HistoryId) -> Result<Option<Self>, Damage> {
        let mut newest: Option<Self> = None;
        let is_here = |found: HistoryId| found.volume == id.volume && found.ring == id.ring;
        for block in bytes.chunks_exact(BLOCK) {
            let found = match open_one_of(block, MAGIC, VERSIONS) {
                Ok((version, fields)) => Self::read(fields, version),
                Err(version @ Damage::Version { .. }) => return Err(version),
                Err(Damage::Foreign | Damage::Checksum | Damage::Contradiction(_)) => None,
            };
            let ours = found.filter(|it| it.id.is_some_and(is_here));
            // A write that failed is done again with the same number, and says more then.
            newest = newest.into_iter().chain(ours).max_by_key(|it| {
                (
                    it.generation,
                    it.next,
                    it.cut(),
                    it.epoch.map(|it| it.epoch),
                )
            });
        }
        Ok(newest)
    }

    /// How both places are, and whose history they say it is.
    pub(super) fn copies_state(bytes: &[u8]) -> (CopiesState, Option<HistoryId>) {
        let read = |block| {
            let (version, fields) = open_one_of(block, MAGIC, VERSIONS)?;
            let found = Self::read(fields, version);
            found.ok_or(Damage::Contradiction("its numbers or cuts cannot be"))
        };
        let blocks = || bytes.chunks_exact(BLOCK);
        let places = CopiesState::of(blocks(), 1, |block| read(block).map(|it| it.generation));
        let id = blocks().find_map(|block| read(block).ok()?.id);
        (places, id)
    }

    pub(super) const fn generation(&self) -> u64 {
        self.generation
    }

    fn read(mut fields: Reader<'_>, version: u16) -> Option<Self> {
        let cuts = fields.u16()?;
        let id = HistoryId {
            journal: JournalId(fields.bytes()?),
            volume: VolumeId(fields.u64()?),
            ring: fields.u32()?,
            rings: fields.u32()?,
        };
        let (generation, made) = (fields.u64()?, fields.u64()?);
        let next = Sequence(fields.u64()?);
        let epoch = if version == VERSION {
            None
        } else {
            let (epoch, first) = (fields.u64()?, Sequence(fields.u64()?));
            Some(Epoch { epoch, first })
        };
        let points = (0..cuts).map(|_| {
            Some(CutPoint {
                cut: fields.u64()?,
                sequence: Sequence(fields.u64()?),
            })
        });
        let points: Option<VecDeque<CutPoint>> = points.collect();
        let header = Self {
            generation,
            id: Some(id),
            made,
            next,
            epoch,
            cuts: points?,
        };
        header.can_be().then_some(header)
    }

    /// Numbers that somebody may have counted up to, and cuts that rise.
    fn can_be(&self) -> bool {
        let cuts = std::iter::once(self.made).chain(self.cuts.iter().map(|it| it.cut));
        let rise = cuts.clone().zip(cuts.skip(1)).all(|(one, next)| one < next);
        let epoch = self.epoch.map_or(0, |it| it.first.0);
        let all = [self.generation, self.next.0, self.cut(), epoch];
        rise && all.iter().all(|number| *number < COUNTED_MAX)
    }

    /// The next one, twice, at the older place.
    pub(super) fn write(&mut self, id: HistoryId) -> HistoryWrite {
        self.generation += 1;
        self.id = Some(id);
        // A volume without copies has a history that the program before reads.
        let version = self.epoch.map_or(VERSION, |_| VERSION_OF_COPIES);
        let mut fields = Writer::with_capacity(BLOCK);
        fields
            .bytes(MAGIC)
            .u32(0)
            .u16(version)
            .u16(u16::try_from(self.cuts.len()).expect("few are kept"))
            .bytes(&id.journal.0)
            .u64(id.volume.0)
            .u32(id.ring)
            .u32(id.rings)
            .u64(self.generation)
            .u64(self.made)
            .u64(self.next.0);
        if let Some(it) = self.epoch {
            fields.u64(it.epoch).u64(it.first.0);
        }
        for point in &self.cuts {
            fields.u64(point.cut).u64(point.sequence.0);
        }
        let mut block = fields.padded(BLOCK);
        seal(&mut block);
        let bytes = block.repeat(2);
        let place = self.place().start;
        HistoryWrite {
            at: super::History::header_at(id.ring).0 + place,
            bytes,
        }
    }

    /// Where it lies, in bytes from the first place.
    pub(super) const fn place(&self) -> Range<u64> {
        let bytes = HEADER_BLOCKS / 2 * BLOCK as u64;
        let start = self.generation % 2 * bytes;
        start..start + bytes
    }

    /// It goes to the same place again: the other one has the last that is known to be good.
    pub(super) fn not_written(&mut self) {
        self.generation -= 1;
    }
}
