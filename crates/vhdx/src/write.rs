//! Writing to a disk: where data goes, new blocks, blocks that are given back.
//!
//! A new block gets its data first, and its entry in memory; the log gets it with the next flush.
//! So a crash before that leaves what the disk held before.

use crate::entry::{Entry, State as BlockState};
use crate::error::Error;
use crate::geometry::{BITMAP_BYTES, PAGE_BYTES};
use crate::space::Taken;
use crate::state::{Claim, Image, Need, State};
use crate::step::{Extent, Operation, Port};

/// What is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    /// What the caller has.
    Payload,
    /// Nothing but that.
    Zeroes,
    /// What file 0 has there: the child that is merged.
    Copy {
        /// Where in it.
        from: u64,
    },
}

/// How a part of a block is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// It has a place, and nothing changes in the tables.
    InPlace(u64),
    /// It has a place, and its sectors become those of this file.
    Sectors(u64),
    /// It gets a place, and is then as a whole in this file.
    Whole,
    /// It gets a place, and its other sectors stay the parent's.
    Partial { has_bitmap: bool },
    /// It is zeroes already, and shall be.
    Nothing,
    /// It becomes zeroes without a place.
    Nowhere,
}

/// A part of a block.
struct Part {
    block: u64,
    within: u64,
    bytes: u64,
    /// Bytes from the request's beginning.
    at: u64,
    outcome: Outcome,
    taken: Option<Taken>,
    bitmap: Option<Taken>,
}

/// The places that were taken for these, each once: parts of one chunk share a bitmap, and other
/// places stand between.
fn taken_for(parts: &[Part]) -> Vec<Taken> {
    let all = parts.iter().flat_map(|part| [part.taken, part.bitmap]);
    let mut taken: Vec<Taken> = all.flatten().collect();
    taken.sort_unstable_by_key(|taken| taken.place);
    taken.dedup();
    taken
}

impl State {
    fn outcome(
        &mut self,
        block: u64,
        within: u64,
        bytes: u64,
        content: Content,
    ) -> Result<Outcome, Need> {
        let entry = self.entry(block)?;
        let is_whole = within == 0 && bytes == self.geometry().bytes_of(block);
        let from_parent = entry.state == BlockState::NotPresent && self.has_parent();
        let may_vanish = content == Content::Zeroes && is_whole && !self.metadata.is_fixed;
        Ok(match entry.state {
            BlockState::Partial | BlockState::Present if may_vanish => Outcome::Nowhere,
            BlockState::NotPresent if from_parent && may_vanish => Outcome::Nowhere,
            BlockState::Present => Outcome::InPlace(entry.place),
            BlockState::Partial => {
                let sector = self.geometry().sector_bytes;
                let runs = self.runs(block, within / sector, bytes / sector)?;
                if runs.iter().all(|(_, is_here)| *is_here) {
                    Outcome::InPlace(entry.place)
                } else {
                    Outcome::Sectors(entry.place)
                }
            }
            BlockState::NotPresent if from_parent && !is_whole => Outcome::Partial {
                has_bitmap: self.bitmap(block)?.is_some(),
            },
            BlockState::NotPresent if from_parent => Outcome::Whole,
            BlockState::NotPresent
            | BlockState::Undefined
            | BlockState::Zero
            | BlockState::Unmapped
            | BlockState::OldUnmapped
            | BlockState::Bad => match content {
                Content::Payload | Content::Copy { .. } => Outcome::Whole,
                Content::Zeroes => Outcome::Nothing,
            },
        })
    }

    /// The sectors of a part are in this file from now on; of a block that is new here, only they.
    fn mark(&mut self, part: &Part, is_new: bool) -> Result<(), Need> {
        let geometry = self.geometry();
        let bitmap = match part.bitmap {
            Some(taken) => taken.place,
            None => self.bitmap(part.block)?.ok_or(Need::Fail(Error::Broken))?,
        };
        let block_bit = geometry.first_bit(part.block);
        let first = block_bit + part.within / geometry.sector_bytes;
        let last = first + part.bytes / geometry.sector_bytes;
        let (from, to) = if is_new {
            (block_bit, block_bit + geometry.sectors_of_block())
        } else {
            (first, last)
        };
        let pages = from / (8 * PAGE_BYTES)..to.div_ceil(8 * PAGE_BYTES);
        for page in pages.clone() {
            let at = bitmap + page * PAGE_BYTES;
            self.pages.get(at).ok_or(Need::Page(at))?;
        }
        for page in pages {
            let at = bitmap + page * PAGE_BYTES;
            let mut bytes = self.pages.get(at).expect("it was just there").to_vec();
            let base = page * 8 * PAGE_BYTES;
            for bit in from.max(base)..to.min(base + 8 * PAGE_BYTES) {
                let place = usize::try_from((bit - base) / 8).expect("within a page");
                let mask = 1 << (bit % 8);
                if (first..last).contains(&bit) {
                    bytes[place] |= mask;
                } else {
                    bytes[place] &= !mask;
                }
            }
            self.pages.patch(at, &bytes);
        }
        Ok(())
    }

    /// The tables say what a part became.
    fn publish(&mut self, part: &Part) -> Result<(), Need> {
        let geometry = self.geometry();
        let at = geometry.payload_entry(part.block);
        let before = Entry::decode(self.bits(at)?);
        let place = part.taken.map_or(0, |taken| taken.place);
        match part.outcome {
            Outcome::InPlace(_) | Outcome::Nothing => {}
            Outcome::Sectors(_) => self.mark(part, false)?,
            Outcome::Whole => self.set_bits(at, Entry::at(BlockState::Present, place)),
            Outcome::Partial { .. } => {
                if let Some(bitmap) = part.bitmap {
                    let at = geometry.bitmap_entry(part.block);
                    self.bits(at)?;
                    self.set_bits(at, Entry::at(BlockState::Present, bitmap.place));
                }
                self.mark(part, true)?;
                self.bits(at)?;
                self.set_bits(at, Entry::at(BlockState::Partial, place));
            }
            Outcome::Nowhere => self.vanish(part.block, before, BlockState::Zero),
        }
        Ok(())
    }

    /// What a block is that nobody needs any more; a child's must not become the parent's again.
    const fn given_back(&self) -> BlockState {
        if self.has_parent() {
            BlockState::Zero
        } else {
            BlockState::Unmapped
        }
    }

    /// A block has no place any more.
    fn vanish(&mut self, block: u64, before: Entry, state: BlockState) {
        let at = self.geometry().payload_entry(block);
        self.set_bits(at, Entry::nowhere(state));
        if before.state.has_place() {
            let bytes = self.geometry().block_bytes;
            self.space.free(before.place, bytes);
        }
    }
}

impl Image {
    /// Where a range goes if nothing changes in the tables: all of it has a place, and the image is
    /// ours. Else it is [`Self::write`] that is needed.
    ///
    /// # Errors
    /// If it is no range of the disk, or the tables are damaged there.
    pub fn lookup_write(&self, at: u64, bytes: u64) -> Result<Option<Vec<Extent>>, Error> {
        self.geometry().check(at, bytes)?;
        let mut state = self.state.get();
        if state.claim != Claim::Content || state.is_broken {
            return Ok(None);
        }
        let mut extents = Vec::new();
        for (block, within, length) in state.geometry().pieces(at, bytes) {
            let start = block * state.geometry().block_bytes + within;
            match state.outcome(block, within, length, Content::Payload) {
                Ok(Outcome::InPlace(place)) => extents.push(Extent {
                    at: start - at,
                    bytes: length,
                    place: place + within,
                }),
                Ok(
                    Outcome::Sectors(_)
                    | Outcome::Whole
                    | Outcome::Partial { .. }
                    | Outcome::Nothing
                    | Outcome::Nowhere,
                )
                | Err(Need::Page(_)) => return Ok(None),
                Err(Need::Fail(error)) => return Err(error),
            }
        }
        Ok(Some(extents))
    }

    /// Writes a range of the disk: [`Payload`](crate::Action::Payload) is asked for.
    #[must_use]
    pub fn write(&self, at: u64, bytes: u64) -> Operation<'_, ()> {
        Operation::new(async move |port: Port| {
            let port = port.of_file(self.file);
            self.guarded(self.put(&port, at, bytes, Content::Payload))
                .await
        })
    }

    /// Makes a range of the disk zeroes; whole blocks of it give their space back, unless the image
    /// is fixed.
    #[must_use]
    pub fn write_zeroes(&self, at: u64, bytes: u64) -> Operation<'_, ()> {
        Operation::new(async move |port: Port| {
            let port = port.of_file(self.file);
            self.guarded(self.put(&port, at, bytes, Content::Zeroes))
                .await
        })
    }

    /// Whoever uses the disk does not need a range of it any more: whole blocks give their space
    /// back and are zeroes then, and other parts stay as they are. Nothing happens in a fixed
    /// image. It ends with the bytes that are zeroes now.
    #[must_use]
    pub fn unmap(&self, at: u64, bytes: u64) -> Operation<'_, u64> {
        Operation::new(async move |port: Port| {
            let port = port.of_file(self.file);
            self.guarded(self.give_back(&port, at, bytes)).await
        })
    }

    pub(crate) async fn put(
        &self,
        port: &Port,
        at: u64,
        bytes: u64,
        content: Content,
    ) -> Result<(), Error> {
        self.geometry().check(at, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        self.relieve(port).await?;
        let mut parts = Vec::new();
        for (block, within, length) in self.geometry().pieces(at, bytes) {
            let outcome = self.with(port, |state| state.outcome(block, within, length, content));
            let start = block * self.geometry().block_bytes + within;
            parts.push(Part {
                block,
                within,
                bytes: length,
                at: start - at,
                outcome: outcome.await?,
                taken: None,
                bitmap: None,
            });
        }
        if parts.iter().all(|part| part.outcome == Outcome::Nothing) {
            return Ok(());
        }
        self.claim(port, Claim::Content).await?;
        let filled = match self.make_room(port, &mut parts).await {
            Ok(()) => self.fill(port, &parts, content).await,
            failed => failed,
        };
        if filled == Err(Error::NotDone) {
            self.give_up(&parts);
        }
        filled?;
        for part in &parts {
            self.with(port, |state| state.publish(part)).await?;
        }
        Ok(())
    }

    /// Nothing points to the places that were taken for these.
    fn give_up(&self, parts: &[Part]) {
        let mut state = self.state.get();
        for taken in taken_for(parts) {
            state.space.give(taken);
        }
    }

    /// Writes the parts to where they go.
    async fn fill(&self, port: &Port, parts: &[Part], content: Content) -> Result<(), Error> {
        let extents = parts.iter().filter_map(|part| {
            let place = match part.outcome {
                Outcome::InPlace(place) | Outcome::Sectors(place) => Some(place),
                Outcome::Whole | Outcome::Partial { .. } => part.taken.map(|taken| taken.place),
                Outcome::Nothing | Outcome::Nowhere => None,
            };
            place.map(|place| Extent {
                at: part.at,
                bytes: part.bytes,
                place: place + part.within,
            })
        });
        let extents: Vec<Extent> = extents.collect();
        match content {
            Content::Payload => port.payload(extents).await?,
            Content::Copy { from } => {
                for extent in extents {
                    port.copy(0, from + extent.at, extent.place, extent.bytes)
                        .await?;
                }
            }
            Content::Zeroes => {
                for extent in extents {
                    port.zero(extent.place, extent.bytes).await?;
                }
            }
        }
        Ok(())
    }

    /// Gives places to the parts that need one.
    async fn make_room(&self, port: &Port, parts: &mut [Part]) -> Result<(), Error> {
        let (length, used) = {
            let mut state = self.state.get();
            let geometry = state.geometry();
            let mut new_bitmap: Option<(u64, Taken)> = None;
            for part in parts.iter_mut() {
                let needs_place = matches!(part.outcome, Outcome::Whole | Outcome::Partial { .. });
                if needs_place {
                    part.taken = Some(state.space.take(geometry.block_bytes));
                }
                if part.outcome == (Outcome::Partial { has_bitmap: false }) {
                    let chunk = part.block / geometry.ratio();
                    let taken = match new_bitmap {
                        Some((of, taken)) if of == chunk => taken,
                        Some(_) | None => state.space.take(BITMAP_BYTES),
                    };
                    new_bitmap = Some((chunk, taken));
                    part.bitmap = Some(taken);
                }
            }
            let mut used = taken_for(parts);
            used.retain(|taken| taken.is_used);
            (state.space.end(), used)
        };
        let before = self.state.get().file_bytes;
        if length > before {
            port.set_length(length).await?;
            let mut state = self.state.get();
            (state.file_bytes, state.real_bytes) = (length, length);
        }
        for taken in used {
            port.zero(taken.place, taken.bytes).await?;
        }
        Ok(())
    }

    async fn give_back(&self, port: &Port, at: u64, bytes: u64) -> Result<u64, Error> {
        self.geometry().check(at, bytes)?;
        if self.state.get().metadata.is_fixed {
            return Ok(0);
        }
        let mut zeroes = 0;
        let geometry = self.geometry();
        let whole = geometry.pieces(at, bytes);
        let whole = whole.filter(|(block, _, bytes)| *bytes == geometry.bytes_of(*block));
        for (block, _, length) in whole {
            self.relieve(port).await?;
            let entry = self.with(port, |state| state.entry(block)).await?;
            let from_parent = {
                let state = self.state.get();
                entry.state == BlockState::NotPresent && state.has_parent()
            };
            if entry.state.has_place() || from_parent {
                self.claim(port, Claim::Content).await?;
                self.with(port, |state| {
                    let before = state.entry(block)?;
                    state.vanish(block, before, state.given_back());
                    Ok(())
                })
                .await?;
            }
            zeroes += length;
        }
        Ok(zeroes)
    }
}
