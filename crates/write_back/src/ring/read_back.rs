//! Reads a volume's changes out of the log again, in the order of their numbers, for a node that
//! has missed them.
//!
//! ```text
//!   from number N --> held: where it lies by now --> committed: as far as the log still has it
//!         --> changes up to so many bytes | the log begins at M | N is damaged
//! ```
//!
//! What waits for other copies is known by its number. Where a committed change lies is not known:
//! it is looked for, from the batch on that the one before it was found in. What was relocated
//! after it was committed may be a part of what it was, and counts as given up.

use super::driver::Ring;
use super::event::Event;
use super::segment_read::read_segment;
use super::waiting::Condition;
use crate::addresses::blocks;
use journal::{Again, Change, Kind, Record, SECTOR, Segment, Sequence, Slot, Stable};
use std::rc::Rc;
use units::Buf;
use volume::IoError;

/// Blocks of the log that are read at once.
const WINDOW_BLOCKS: u64 = 256;

/// Bytes that a change counts for, and its data.
const CHANGE_BYTES: usize = 64;

/// Where a reader of a volume's changes in a ring goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    number: Sequence,
    /// No batch before this one has it.
    batch: u64,
}

impl Place {
    /// At the change with this number.
    #[must_use]
    pub const fn of(number: Sequence) -> Self {
        Self { number, batch: 0 }
    }

    /// The number of the change that is read next.
    #[must_use]
    pub const fn number(self) -> Sequence {
        self.number
    }
}

/// Changes that were read out of a log.
#[derive(Clone, Debug)]
pub struct ReadBack {
    /// In the order of their numbers, without a gap; none where no more is stable.
    pub changes: Vec<(Change, Buf)>,
    /// Where to go on.
    pub next: Place,
}

/// Why a change is not read out of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotRead {
    /// The log cannot be read, the volume is not open, or the ring stops.
    Io(IoError),
    /// The log has given it up.
    Begins {
        /// The first number that it may still have.
        at: Sequence,
    },
    /// It is damaged there, or lay in a batch that is.
    Damaged {
        /// Its number.
        number: Sequence,
    },
}

/// A part of the log that was read.
struct Window {
    segment: Segment,
    data: Buf,
    batches: Vec<Again>,
}

/// A change with its data, and the batch where it was found.
type One = (Change, Buf, u64);

impl Ring {
    /// Changes from this place on, as many as are stable and have `bytes` together, but one at
    /// least.
    pub(crate) async fn read_back(
        self: Rc<Self>,
        slot: Slot,
        place: Place,
        bytes: usize,
    ) -> Result<ReadBack, NotRead> {
        loop {
            self.wait_until(Condition::NoEpochBegins(slot)).await;
            let before = self.machine().orderer(slot);
            let read = self.try_read_back(slot, place, bytes).await;
            // Else some of it is void by now.
            if self.machine().orderer(slot) == before {
                return read;
            }
        }
    }

    async fn try_read_back(
        self: &Rc<Self>,
        slot: Slot,
        place: Place,
        bytes: usize,
    ) -> Result<ReadBack, NotRead> {
        let (mut changes, mut next, mut sum) = (Vec::new(), place, 0);
        let mut window = None;
        while next.number < self.machine().order(slot).stable {
            let (change, data, batch) = match self.one(slot, next, &mut window).await {
                Ok(one) => one,
                Err(error) if changes.is_empty() => return Err(error),
                Err(_) => break,
            };
            sum += data.len() + CHANGE_BYTES;
            if sum > bytes && !changes.is_empty() {
                break;
            }
            changes.push((change, data));
            next = Place {
                number: Sequence(next.number.0 + 1),
                batch: next.batch.max(batch),
            };
        }
        Ok(ReadBack { changes, next })
    }

    async fn one(
        self: &Rc<Self>,
        slot: Slot,
        place: Place,
        window: &mut Option<Window>,
    ) -> Result<One, NotRead> {
        loop {
            let parts = self.machine().held_of(slot, place.number);
            let found = if parts.is_empty() {
                self.committed(slot, place, window).await?
            } else {
                self.held(slot, &parts, window).await?
            };
            // Else what was read may have been overwritten, and lies elsewhere.
            if let Some(found) = found {
                return Ok(found);
            }
        }
    }

    /// A change that waits for other copies; `None`: not any more, or not there.
    async fn held(
        self: &Rc<Self>,
        slot: Slot,
        parts: &[Stable],
        window: &mut Option<Window>,
    ) -> Result<Option<One>, NotRead> {
        let first = parts[0];
        let number = first.change.sequence;
        if parts.iter().any(|it| it.is_damaged) {
            return Err(NotRead::Damaged { number });
        }
        if first.change.kind != Kind::Write && parts.len() == 1 {
            let change = self.machine().as_ordered(slot, first.change);
            return Ok(Some((change, Buf::empty(), 0)));
        }
        let mut data = Buf::empty();
        for part in parts {
            if part.change.kind != Kind::Write {
                continue;
            }
            let Some(window) = self.window(part.batch, window).await? else {
                return Ok(None);
            };
            let Some(bytes) = window.part(part) else {
                self.apply(Event::HeldLost(part));
                return Err(NotRead::Damaged { number });
            };
            data.append_owned(bytes);
        }
        let last = parts.last().expect("there is a first one");
        let sectors = first.change.sectors().start..last.change.sectors().end;
        let change = self.machine().joined(slot, first.change, &sectors);
        // Where it lies says nothing of where others do, if it was relocated.
        Ok(Some((change, data, 0)))
    }

    /// A change that is committed; `None`: what was read may be something else by now.
    async fn committed(
        self: &Rc<Self>,
        slot: Slot,
        place: Place,
        window: &mut Option<Window>,
    ) -> Result<Option<One>, NotRead> {
        let number = place.number;
        let mut batch = place.batch.max(self.machine().ring().released().number);
        let mut is_hidden = false;
        loop {
            if batch > self.machine().ring().stable() {
                return Err(self.gone(slot, number, None, is_hidden));
            }
            let Some(window) = self.window(batch, window).await? else {
                return Ok(None);
            };
            for (batch, again) in window.from(batch) {
                let Again::Found {
                    place,
                    records,
                    damaged,
                } = again
                else {
                    is_hidden = true;
                    continue;
                };
                let machine = self.machine();
                let is_one = |it: &&Record| machine.is_ordered(slot, &it.change, batch);
                let mut all = records.iter().chain(damaged).filter(is_one);
                let Some(record) = all.find(|it| it.change.sequence >= number) else {
                    continue;
                };
                if record.change.sequence > number {
                    let later = Some(record.change.sequence);
                    return Err(self.gone(slot, number, later, is_hidden));
                }
                if damaged.contains(record) {
                    return Err(NotRead::Damaged { number });
                }
                let at = window.segment.data_at(*place, record);
                let len = record.change.data_bytes().unwrap_or(0);
                let data = window.bytes(at, len);
                let change = machine.as_ordered(slot, record.change);
                return Ok(Some((change, data, batch)));
            }
            batch = window.segment.end();
        }
    }

    /// The log has this number no longer, and goes on with a later one, or with what is held.
    fn gone(
        &self,
        slot: Slot,
        number: Sequence,
        later: Option<Sequence>,
        is_hidden: bool,
    ) -> NotRead {
        if is_hidden {
            return NotRead::Damaged { number };
        }
        let committed = self.machine().order(slot).committed;
        let at = later.map_or(committed, |later| later.min(committed));
        NotRead::Begins { at }
    }

    /// Reads the part of the log that begins with this batch, where it is not there already;
    /// `None`: it was given up meanwhile.
    async fn window<'a>(
        &self,
        batch: u64,
        window: &'a mut Option<Window>,
    ) -> Result<Option<&'a Window>, NotRead> {
        let has = |it: &Window| (it.segment.first()..it.segment.end()).contains(&batch);
        let released = || self.machine().ring().released().number;
        if !window.as_ref().is_some_and(has) {
            let segment = self.machine().ring().stable_from(batch, WINDOW_BLOCKS);
            let Some(segment) = segment.filter(|it| it.first() == batch) else {
                return Ok(None);
            };
            let data = read_segment(self, &segment).await;
            let data = data.map_err(|_| NotRead::Io(IoError::Unavailable))?;
            let batches = segment.batches(&data);
            *window = Some(Window {
                segment,
                data,
                batches,
            });
            // Its room may have been used again while it was read.
            if batch < released() {
                *window = None;
            }
        }
        Ok(window.as_ref())
    }
}

impl Window {
    /// The batches from this one on.
    fn from(&self, batch: u64) -> impl Iterator<Item = (u64, &Again)> {
        let all = (self.segment.first()..).zip(&self.batches);
        all.skip_while(move |(number, _)| *number < batch)
    }

    /// A copy: a change must not keep all that was read with it.
    fn bytes(&self, at: usize, len: usize) -> Buf {
        Buf::copy_of(&self.data.slice(at..at + len).to_vec())
    }

    /// The data of a part of a change that lies here, if it is right.
    fn part(&self, it: &Stable) -> Option<Buf> {
        let (_, again) = self.from(it.batch).next()?;
        let Again::Found { place, records, .. } = again else {
            return None;
        };
        let sectors = it.change.sectors();
        let at = u32::try_from(it.data_at / SECTOR).ok()?;
        let holds = |record: &&Record| {
            let (of, own) = (&record.change, record.change.sectors());
            let ahead = sectors.start.checked_sub(own.start);
            let lies = u64::from(self.segment.sector_of(*place, record));
            (of.volume, of.sequence, of.kind) == (it.change.volume, it.change.sequence, Kind::Write)
                && sectors.end <= own.end
                && ahead.is_some_and(|ahead| lies + ahead == u64::from(at))
        };
        records.iter().find(holds)?;
        let len = usize::try_from((sectors.end - sectors.start) * SECTOR).ok()?;
        Some(self.bytes(self.segment.sector_at(at), len))
    }
}

/// What the machine knows of it.
impl super::machine::Machine {
    /// The change as it was ordered: in blocks of its volume, wherever it lies by now.
    fn as_ordered(&self, slot: Slot, change: Change) -> Change {
        let change = change.where_it_began();
        if change.range.is_empty() {
            return change;
        }
        self.joined(slot, change, &change.sectors())
    }

    /// The same of these sectors.
    fn joined(&self, slot: Slot, change: Change, sectors: &std::ops::Range<u64>) -> Change {
        let open = self.volume(slot).open.as_ref();
        let block_size = open.map_or(change.block_size, |it| it.block_size);
        Change {
            range: blocks(sectors, block_size),
            block_size,
            ..change
        }
    }
}
