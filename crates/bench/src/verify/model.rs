//! What each unit must hold.

use super::stamp::{SECTOR, Stamp};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use units::{Buf, BufMut};

/// An operation has the unit.
const BUSY: u64 = 1 << 63;
/// A write of it failed: it may hold that one as well.
const UNSURE: u64 = 1 << 62;
/// What it must hold was read already.
const SEEN: u64 = 1 << 61;
/// It was found wrong, and nothing was written since: reported once.
const REPORTED: u64 = 1 << 60;
/// The number of the write that it must hold; 0: none in this run.
const WRITE: u64 = REPORTED - 1;

/// Bad sectors that are described one by one.
const DESCRIBED_MAX: usize = 32;

/// How a sector is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong {
    /// An older write is there; the acknowledged one never was.
    Lost,
    /// An older write has come back over the acknowledged one.
    Stale,
    /// A mixture.
    Torn,
    /// It was written for another place.
    Misplaced,
    /// No stamp of this run.
    Foreign,
}

impl Wrong {
    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Stale => "stale",
            Self::Torn => "torn",
            Self::Misplaced => "misplaced",
            Self::Foreign => "foreign",
        }
    }
}

/// One bad sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bad {
    /// Where on the target, in bytes.
    pub offset: u64,
    /// How it is wrong.
    pub wrong: Wrong,
    /// The write that it must hold.
    pub expected: u64,
    /// What is there, where it is a stamp.
    pub found: Option<Stamp>,
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at byte {}: write {} was acknowledged",
            self.wrong.name(),
            self.offset,
            self.expected
        )?;
        match self.found {
            Some(found) => write!(
                f,
                ", there is write {} of thread {} for byte {} in run {:016x}",
                found.write,
                found.thread,
                found.sector * SECTOR as u64,
                found.run
            ),
            None => write!(f, ", there is no stamp"),
        }
    }
}

/// What was checked.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Sectors of 512 bytes that were compared.
    pub checked: u64,
    /// Those that were wrong.
    pub bad: u64,
    /// The first of them, one of each unit.
    pub described: Vec<Bad>,
}

/// The model of one target in one run, shared by all threads.
pub(crate) struct Checker {
    run: u64,
    unit: u64,
    /// First byte of the region, on the target.
    base: u64,
    units: Box<[AtomicU64]>,
    writes: AtomicU64,
    /// Writes that failed, by unit: what it may hold besides.
    unsure: Mutex<BTreeMap<u64, Vec<u64>>>,
    tally: Mutex<Tally>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn greatest_common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common(b, a % b) }
}

impl Checker {
    /// The model of a region. `steps` are what offsets and lengths are multiples of.
    ///
    /// # Panics
    /// If a step is no multiple of 512, or there are more units than fit into memory.
    #[must_use]
    pub(crate) fn new(run: u64, base: u64, length: u64, steps: &[u64]) -> Self {
        let unit = steps
            .iter()
            .fold(0, |unit, step| greatest_common(unit, *step));
        assert!(
            unit > 0 && unit.is_multiple_of(SECTOR as u64),
            "units are whole sectors"
        );
        let count = usize::try_from(length.div_ceil(unit)).expect("the model fits into memory");
        Self {
            run,
            unit,
            base,
            units: (0..count).map(|_| AtomicU64::new(0)).collect(),
            writes: AtomicU64::new(0),
            unsure: Mutex::default(),
            tally: Mutex::default(),
        }
    }

    fn units_of(&self, at: u64, bytes: u64) -> Range<usize> {
        let index = |unit: u64| usize::try_from(unit).expect("inside the model");
        index(at / self.unit)..index((at + bytes).div_ceil(self.unit))
    }

    /// Takes the units of an operation at `at` of the region; false where another operation has one
    /// of them.
    #[must_use]
    pub(crate) fn claim(&self, at: u64, bytes: u64) -> bool {
        let range = self.units_of(at, bytes);
        for index in range.clone() {
            let before = self.units[index].fetch_or(BUSY, Ordering::Acquire);
            if before & BUSY != 0 {
                for taken in range.start..index {
                    self.units[taken].fetch_and(!BUSY, Ordering::Release);
                }
                return false;
            }
        }
        true
    }

    /// The payload of a write whose units are claimed, and its number.
    pub(crate) fn stamp(&self, at: u64, thread: u64, mut into: BufMut) -> (u64, Buf) {
        let write = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        let mut stamp = Stamp {
            run: self.run,
            write,
            sector: (self.base + at) / SECTOR as u64,
            thread,
        };
        for piece in into.pieces_mut() {
            for sector in piece.chunks_exact_mut(SECTOR) {
                stamp.write_to(sector);
                stamp.sector += 1;
            }
        }
        (write, into.freeze())
    }

    /// The write has ended. Gives its units back.
    pub(crate) fn wrote(&self, at: u64, bytes: u64, write: u64, well: bool) {
        for index in self.units_of(at, bytes) {
            let unit = &self.units[index];
            let before = unit.load(Ordering::Relaxed);
            if well {
                if before & UNSURE != 0 {
                    lock(&self.unsure).remove(&(index as u64));
                }
                unit.store(write, Ordering::Release);
            } else {
                lock(&self.unsure)
                    .entry(index as u64)
                    .or_default()
                    .push(write);
                unit.store(
                    (before | UNSURE) & !(BUSY | SEEN | REPORTED),
                    Ordering::Release,
                );
            }
        }
    }

    /// The read has ended. Gives its units back.
    pub(crate) fn read(&self, at: u64, bytes: u64, data: Option<&Buf>) {
        if let Some(data) = data {
            self.compare(at, data);
        }
        for index in self.units_of(at, bytes) {
            self.units[index].fetch_and(!BUSY, Ordering::Release);
        }
    }

    fn compare(&self, at: u64, data: &Buf) {
        let mut scratch = [0; SECTOR];
        let whole = data.as_contiguous();
        let (mut checked, mut sectors, mut bad) = (0, 0, Vec::new());
        let per_unit = usize::try_from(self.unit).expect("inside the model");
        for (turn, index) in self.units_of(at, data.len() as u64).enumerate() {
            let state = self.units[index].load(Ordering::Relaxed);
            if state & (WRITE | UNSURE) == 0 || state & REPORTED != 0 {
                continue;
            }
            let mut wrong = 0;
            let start = turn * per_unit;
            for offset in (start..(start + per_unit).min(data.len())).step_by(SECTOR) {
                let sector = match whole {
                    Some(bytes) => &bytes[offset..offset + SECTOR],
                    None => {
                        data.copy_to(offset, &mut scratch);
                        &scratch
                    }
                };
                let found = self.judge(at + offset as u64, index, state, sector);
                wrong += u64::from(found.is_some());
                bad.extend(found.filter(|_| wrong == 1));
                checked += u64::from(state & WRITE != 0);
            }
            if wrong > 0 {
                self.units[index].fetch_or(REPORTED, Ordering::Relaxed);
            } else if state & UNSURE == 0 {
                self.units[index].fetch_or(SEEN, Ordering::Relaxed);
            }
            sectors += wrong;
        }
        self.report(checked, sectors, &bad);
    }

    fn report(&self, checked: u64, wrong: u64, bad: &[Bad]) {
        let mut tally = lock(&self.tally);
        tally.checked += checked;
        tally.bad += wrong;
        let room = DESCRIBED_MAX - tally.described.len();
        tally.described.extend(bad.iter().take(room));
    }

    fn judge(&self, at: u64, index: usize, state: u64, bytes: &[u8]) -> Option<Bad> {
        let expected = state & WRITE;
        let place = (self.base + at) / SECTOR as u64;
        let read = Stamp::read(bytes);
        let (wrong, found) = match read {
            Some(Ok(found)) if found.run == self.run && found.sector == place => {
                let fits = found.write == expected || self.may_be(index, state, found.write);
                if fits {
                    return None;
                }
                let wrong = if state & SEEN != 0 {
                    Wrong::Stale
                } else {
                    Wrong::Lost
                };
                (wrong, Some(found))
            }
            // Before the first acknowledged write of this run anything may be there.
            _ if expected == 0 => return None,
            Some(Ok(found)) if found.sector != place => (Wrong::Misplaced, Some(found)),
            // Another run's write, where this one's was acknowledged: ours is not there.
            Some(Ok(found)) => {
                let wrong = if state & SEEN != 0 {
                    Wrong::Stale
                } else {
                    Wrong::Lost
                };
                (wrong, Some(found))
            }
            Some(Err(found)) => (Wrong::Torn, Some(found)),
            None => (Wrong::Foreign, None),
        };
        Some(Bad {
            offset: self.base + at,
            wrong,
            expected,
            found,
        })
    }

    fn may_be(&self, index: usize, state: u64, write: u64) -> bool {
        state & UNSURE != 0
            && lock(&self.unsure)
                .get(&(index as u64))
                .is_some_and(|all| all.contains(&write))
    }

    /// Parts of the region with something to check that nothing is in flight for, at most `bytes`
    /// long each.
    pub(crate) fn written(&self, bytes: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let most = (bytes / self.unit).max(1);
        let mut at = 0;
        std::iter::from_fn(move || {
            let to_check = |index: usize| {
                let state = self.units.get(index)?.load(Ordering::Acquire);
                (state & BUSY == 0 && state & WRITE != 0).then_some(())
            };
            while at < self.units.len() && to_check(at).is_none() {
                at += 1;
            }
            if at >= self.units.len() {
                return None;
            }
            let start = at;
            while ((at - start) as u64) < most && to_check(at).is_some() {
                at += 1;
            }
            Some((start as u64 * self.unit, (at - start) as u64 * self.unit))
        })
    }

    /// What was found until now.
    #[must_use]
    pub(crate) fn tally(&self) -> Tally {
        lock(&self.tally).clone()
    }
}

#[cfg(test)]
mod test;
