//! The reading half of a ring: what is in its log after a crash.
//!
//! ```text
//!   walk:  batch n where it must be --> n + 1 right after it, or at the ring's begin --> ...
//!   scan:  nothing there: is there anything later that says that batch n was stable? then it
//!         is damage; else the end
//! ```
//!
//! **Contract.** Batches come in order. One that is damaged comes with the changes whose data is
//! lost, but only if it is sure that it was stable once: the opening of the ring took it in, or a
//! later header says so. What is damaged and not sure is a torn end: nobody was answered, and it
//! is left out with all after it.
//!
//! A checkpoint that is damaged leaves the one before it, from which all that came later is found
//! as well: no room is used again before both of them have given it back.
//!
//! **Failure.** Where a batch was stable, but not even its header or the next one's can be read,
//! nobody knows whose blocks it changed: that is [`Stop::Lost`], and nothing of this ring may be
//! served as if it were all there. A batch of another version of the format is [`Stop::Version`],
//! and never a torn end: what it holds may have been acknowledged.

use crate::batch::{BATCH_BLOCKS_MAX, Change, Header, Kind, Record, header_blocks};
use crate::blocks::{BlockChecksums, checksum_of};
use crate::layout::{BLOCK, BatchPosition, Checkpoint, JournalId};
use crate::ring::Ring;
use formats::{Damage, crc32c};
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use units::Buf;

/// Blocks that are read at once, where the ring has so many more: several of the largest batches.
const WINDOW_BLOCKS: u64 = 1024;

/// A batch that was stable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The batch's number and position in the ring.
    pub place: BatchPosition,
    /// Its changes that are as they were made.
    pub records: Vec<Record>,
    /// Its changes whose data, or whose place in the log, is lost: writes.
    pub damaged: Vec<Change>,
    /// The log says here that all batches up to this one are committed; 0 where its header is lost.
    pub committed: u64,
}

/// What to do next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Read so many bytes from this byte of the ring's log on, and give them to [`Replay::fill`].
    Read {
        /// From the first byte of the log.
        at: u64,
        /// How many.
        bytes: usize,
    },
    /// The next batch.
    Found(Found),
    /// That was all: [`Replay::into_ring`] goes on from here.
    End,
}

/// Why a ring cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// This batch was stable, and cannot be found any more.
    Lost {
        /// Its number.
        number: u64,
    },
    /// Another version of the program has written to it: [`Damage::Version`].
    Version(Damage),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { number } => write!(
                f,
                "batch {number} was stable and is gone, with the record of what it changed"
            ),
            Self::Version(version) => write!(f, "there is a batch in it, and {version}"),
        }
    }
}

/// A batch of the chain that was not given out yet.
struct Link {
    found: Found,
    /// Header and data are as they were written.
    whole: bool,
    /// All that it changed.
    changes: Vec<Change>,
    /// Where the next one may begin.
    end: BatchPosition,
    /// Where its data begins, and the checksums of the data's blocks.
    checksums: (u64, Vec<u32>),
}

#[derive(Clone, Copy)]
enum Mode {
    /// The next batch is looked for right after the last one.
    Walk,
    /// It is not there; it is looked for where the ring begins anew.
    Wrap,
    /// It is not there; later ones are looked for from this position on.
    Probe(u64),
    Ended,
}

/// Reads a ring.
pub struct Replay {
    /// Journal and ring.
    of: (JournalId, u32),
    blocks: u64,
    checkpoint: Checkpoint,
    /// The first block of the window, and its bytes.
    window: (u64, Buf),
    mode: Mode,
    /// The next batch of the chain.
    next: BatchPosition,
    /// The opening that wrote the last one.
    epoch: u64,
    /// All batches up to this one were stable.
    sure: u64,
    /// Number and epoch of the batch with which the ring begins anew at this position.
    turned: Option<(u64, Option<(u64, u64)>)>,
    chain: VecDeque<Link>,
    /// Batches that were given out: their numbers, and where they lie, in blocks of the ring; those
    /// that were found to be stable leave.
    unsure: VecDeque<(u64, Range<u64>)>,
    /// What has been given out so far: its end, distances, and what the last one changed.
    given_out: BatchPosition,
    lengths: VecDeque<u32>,
    checksums: BlockChecksums,
    before: Vec<Change>,
    /// A batch of another version is in the log.
    other: Option<Damage>,
}

impl Replay {
    /// Of a ring of `blocks` blocks whose newest checkpoint says this.
    #[must_use]
    pub fn new(of: (JournalId, u32), blocks: u64, checkpoint: Checkpoint) -> Self {
        Self {
            of,
            blocks,
            checkpoint,
            window: (0, Buf::empty()),
            mode: Mode::Walk,
            next: checkpoint.tail,
            epoch: 0,
            sure: checkpoint.begun.number.saturating_sub(1),
            turned: None,
            chain: VecDeque::new(),
            unsure: VecDeque::new(),
            given_out: checkpoint.tail,
            lengths: VecDeque::new(),
            checksums: BlockChecksums::default(),
            before: Vec::new(),
            other: None,
        }
    }

    /// Bytes that were asked for.
    ///
    /// # Panics
    /// If they are in several pieces.
    pub fn fill(&mut self, at: u64, bytes: Buf) {
        assert!(bytes.segment_count() <= 1, "they are read at once");
        self.window = (at / BLOCK as u64, bytes);
    }

    /// Goes on until something is to be done.
    pub fn step(&mut self) -> Step {
        loop {
            if let Some(found) = self.settled() {
                return Step::Found(found);
            }
            if self.other.is_some() {
                self.mode = Mode::Ended;
            }
            let moved = match self.mode {
                Mode::Walk => self.walk(self.next.position, Mode::Wrap),
                Mode::Wrap => {
                    let position = self.next.position;
                    self.walk(self.turn(position), Mode::Probe(position))
                }
                Mode::Probe(position) => self.probe(position),
                Mode::Ended => return Step::End,
            };
            if let Err(read) = moved {
                return read;
            }
        }
    }

    /// The last batches, of which nothing in the log says that they were ever stable: where they
    /// lie, in bytes from the first one of the log. What was read of them may lie in a cache only,
    /// even after a sync: one that failed before may have let go of what it could not write. They
    /// are to be written once more, as they were read, before the ring is opened: after that,
    /// damage to them is taken for damage, and not for a torn end.
    #[must_use]
    pub fn unsure(&self) -> Vec<Range<u64>> {
        let unsure = self.unsure.iter().filter(|it| it.0 > self.sure);
        let bytes = |block: u64| block * BLOCK as u64;
        unsure
            .map(|(_, blocks)| bytes(blocks.start)..bytes(blocks.end))
            .collect()
    }

    /// The ring, open for writing after what was found. The device must have been flushed: what was
    /// read may still lie in its cache.
    ///
    /// # Errors
    /// [`Stop`], where something is gone that was there, or is not known here.
    ///
    /// # Panics
    /// If [`Replay::step`] has not said [`Step::End`].
    pub fn into_ring(self) -> Result<Ring, Stop> {
        assert!(
            matches!(self.mode, Mode::Ended),
            "the log was read to its end"
        );
        if let Some(version) = self.other {
            return Err(Stop::Version(version));
        }
        if self.sure >= self.given_out.number {
            let number = self.given_out.number;
            return Err(Stop::Lost { number });
        }
        let checkpoint = Checkpoint {
            epoch: self.epoch.max(self.checkpoint.epoch),
            ..self.checkpoint
        };
        Ok(Ring::open(
            self.of,
            self.blocks,
            checkpoint,
            (self.lengths, self.checksums),
            self.before,
        ))
    }

    /// The oldest batch of the chain, if it is known what to make of it.
    fn settled(&mut self) -> Option<Found> {
        let first = self.chain.front()?;
        if !first.whole && first.found.place.number > self.sure {
            return None;
        }
        let link = self.chain.pop_front()?;
        let sure = self.sure;
        self.unsure.retain(|(number, _)| *number > sure);
        let place = link.found.place;
        if place.number > sure {
            let at = place.position % self.blocks;
            let blocks = at..at + (link.end.position - place.position);
            self.unsure.push_back((place.number, blocks));
        }
        let length = link.end.position - self.given_out.position;
        self.lengths
            .push_back(u32::try_from(length).expect("a batch and a ring's end are short"));
        self.checksums.put(link.checksums.0, &link.checksums.1);
        (self.given_out, self.before) = (link.end, link.changes);
        Some(link.found)
    }

    /// Blocks of the log, or what has to be read first.
    fn blocks(&self, at: u64, count: u64) -> Result<&[u8], Step> {
        let first = self.window.0;
        let bytes = self.window.1.segments().next().unwrap_or_default();
        let have = bytes.len() as u64 / BLOCK as u64;
        if at < first || at + count > first + have {
            let count = WINDOW_BLOCKS.max(count).min(self.blocks - at);
            return Err(Step::Read {
                at: at * BLOCK as u64,
                bytes: usize::try_from(count).expect("a window is small") * BLOCK,
            });
        }
        let from = usize::try_from(at - first).expect("inside of the window") * BLOCK;
        let count = usize::try_from(count).expect("inside of the window");
        Ok(&bytes[from..from + count * BLOCK])
    }

    /// The header at a position, if it says that it belongs there.
    fn header(&mut self, position: u64) -> Result<Option<Header>, Step> {
        let at = position % self.blocks;
        let block = self.blocks(at, 1)?;
        let Some(own) = Header::blocks_at(block, self.of.0, self.of.1) else {
            return Ok(None);
        };
        let left = self.blocks - at;
        if own as u64 > left {
            return Ok(None);
        }
        let bytes = self.blocks(at, own as u64)?;
        let found = match Header::read(bytes, self.of.0, self.of.1) {
            Ok(found) => found,
            Err(version @ Damage::Version { .. }) => {
                self.other = Some(version);
                return Ok(None);
            }
            Err(Damage::Foreign | Damage::Checksum | Damage::Contradiction(_)) => return Ok(None),
        };
        Ok(Some(found).filter(|it| {
            let before = it.place.number < self.checkpoint.begun.number;
            let opening = if before {
                (self.epoch..self.checkpoint.epoch).contains(&it.epoch)
            } else {
                // Of a later opening where the checkpoint of that one is damaged: nothing was
                // written before it was stable.
                it.epoch >= self.epoch.max(self.checkpoint.epoch)
            };
            it.place.position == position && u64::from(it.blocks) <= left && opening
        }))
    }

    /// Where the ring begins anew after this position.
    fn turn(&self, position: u64) -> u64 {
        position.next_multiple_of(self.blocks)
    }

    /// One past the last position that the log can have.
    fn limit(&self) -> u64 {
        self.checkpoint.tail.position + self.blocks
    }

    /// Looks for the next batch at one position, so that one window is enough.
    fn walk(&mut self, position: u64, otherwise: Mode) -> Result<(), Step> {
        if position < self.limit() {
            let number = self.next.number;
            let turned = self.turned_after(position)?;
            let found = self.header(position)?;
            // A later opening gave such a one up, and its own first batch of that number did not
            // fit here.
            let given_up =
                |it: &Header| turned.is_some_and(|(its, epoch)| its == number && epoch > it.epoch);
            let found = found.filter(|it| it.place.number == number && !given_up(it));
            if let Some(header) = found {
                self.chain(header)?;
                self.mode = Mode::Walk;
                return Ok(());
            }
        }
        self.mode = otherwise;
        Ok(())
    }

    /// Number and epoch of the batch with which the ring begins anew after this position, where one
    /// may have gone there that did not fit here. Asked for before what is here, so that both
    /// windows are read once.
    fn turned_after(&mut self, position: u64) -> Result<Option<(u64, u64)>, Step> {
        let turn = self.turn(position);
        if turn == position || turn - position > BATCH_BLOCKS_MAX || turn >= self.limit() {
            return Ok(None);
        }
        if self.turned.is_none_or(|(at, _)| at != turn) {
            let first = self.header(turn)?;
            let first = first.map(|it| (it.place.number, it.epoch));
            self.turned = Some((turn, first));
        }
        Ok(self.turned.and_then(|(_, first)| first))
    }

    /// The next batch is here: its data is checked.
    fn chain(&mut self, header: Header) -> Result<(), Step> {
        let at = header.place.position % self.blocks;
        let batch = self.blocks(at, header.blocks.into())?;
        let own = header_blocks(header.records.len(), header.before.len());
        let data = batch.get(own * BLOCK..).unwrap_or_default();
        let checksums: Vec<u32> = data.chunks(BLOCK).map(crc32c).collect();
        let damaged = header.damaged(|range| checksum_of(batch, own, &checksums, range));
        self.sure = self.sure.max(header.stable);
        self.epoch = header.epoch;
        let end = BatchPosition {
            number: header.place.number + 1,
            position: header.place.position + u64::from(header.blocks),
        };
        let changes = header.records.iter().map(|it| it.change).collect();
        let right = |it: &Record| !damaged.contains(&it.change);
        let records = header.records.into_iter().filter(right).collect();
        self.chain.push_back(Link {
            whole: damaged.is_empty(),
            found: Found {
                place: header.place,
                records,
                damaged,
                committed: header.committed,
            },
            changes,
            end,
            checksums: (header.place.position + own as u64, checksums),
        });
        self.next = end;
        Ok(())
    }

    /// Scans one block after the other for a later batch.
    fn probe(&mut self, position: u64) -> Result<(), Step> {
        if position >= self.limit() {
            self.mode = Mode::Ended;
            return Ok(());
        }
        let later = self.header(position)?;
        let later = later.filter(|it| it.place.number > self.next.number);
        if let Some(header) = later {
            self.sure = self.sure.max(header.stable);
            if header.place.number == self.next.number + 1 {
                self.lost(header);
                return Ok(());
            }
        }
        self.mode = Mode::Probe(position + 1);
        Ok(())
    }

    /// The header of the next batch is gone, and the one after it says what that changed.
    fn lost(&mut self, after: Header) {
        let end = BatchPosition {
            number: self.next.number + 1,
            position: after.place.position,
        };
        // What has no data is known from what the next header repeats.
        let has_data = |it: &&Change| it.kind == Kind::Write;
        let (damaged, bare): (Vec<&Change>, Vec<&Change>) = after.before.iter().partition(has_data);
        let records = bare.into_iter().map(|change| Record {
            change: *change,
            data_at: 0,
            crc: 0,
        });
        self.chain.push_back(Link {
            whole: false,
            found: Found {
                place: self.next,
                records: records.collect(),
                damaged: damaged.into_iter().copied().collect(),
                // The next one says it, after what this one made void.
                committed: 0,
            },
            changes: after.before,
            end,
            checksums: (end.position, Vec::new()),
        });
        self.next = end;
        self.mode = Mode::Walk;
    }
}
