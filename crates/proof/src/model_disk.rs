//! A disk as its users may expect it: for each block, the values that it may hold now and after a
//! power cut.
//!
//! **Rules.** M1. A write that has started may be seen by any read that has not ended, block by
//! block, until a later
//!     write of the same block has completed.
//! M2. A write that completed takes away, from its blocks, every value whose write had ended before
//! this
//!     one started.
//! M3. A write that failed may have been done, for each block by itself, until the moment it ended;
//! one
//!     whose fate is open may be done at any later time.
//! M4. What a read saw while nothing was in flight is what the block holds. M5. After a power cut a
//! block holds a value that it held at or after the last flush or stable write
//!     of it that completed, counted from the moment where that flush or write started.
//! M6. A flush that failed makes nothing known of what was not stable before it, writes that it
//! found in flight included, from the
//!     moment on where it began to fail, and later flushes do not mend that; what was read
//!     meanwhile and would be wrong is judged when the flush has ended.
//!
//! The model never alarms falsely. Where writes overlap in time it allows a little more than one
//! order of them all explains; [`crate::history`] is strict about that.
//!
//! `volume_test::model` is another model disk on purpose. It stands at the waist, sees each
//! operation at the moments of its submission and its answer, ends with the node, and knows what no
//! host can see: sectors that mix within a block, and extents. This one stands behind a network,
//! with hosts that outlive the node: answers of earlier lives, writes of open fate, kills beside
//! power cuts, flushes that fail or whose end nobody heard. Neither could use the other's sets
//! without giving up some of what it is strict about.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use units::{BlockSize, Buf, Lba, LbaRange};
use volume::Durability;
use volume_test::stamp::{Broken, Value};

/// A moment in the model's life.
type Moment = u64;

/// A value that a block may hold.
#[derive(Clone, Debug)]
struct Held {
    value: Value,
    /// The write that put it there; values alone do not show which, as many writes write zeroes.
    number: Moment,
    /// When its write ended; `None` while it has not, or where its fate is open.
    ended: Option<Moment>,
    /// It may be read.
    readable: bool,
    /// When it stopped being readable.
    superseded: Moment,
    /// It may be there after a power cut.
    lasting: bool,
}

#[derive(Clone, Debug)]
struct Block {
    held: Vec<Held>,
    /// Nothing was written to it since the last power cut.
    untouched: bool,
    /// A flush failed since the last write that completed: even what is read may be gone after a
    /// power cut, and no later flush makes it stable.
    may_be_lost: bool,
}

impl Default for Block {
    fn default() -> Self {
        Self {
            held: vec![Held::settled(Value::Zero)],
            untouched: true,
            may_be_lost: false,
        }
    }
}

impl Held {
    fn settled(value: Value) -> Self {
        Self {
            value,
            number: 0,
            ended: Some(0),
            readable: true,
            superseded: 0,
            lasting: true,
        }
    }
}

/// How a write ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// It is done.
    Done,
    /// It failed, or nobody knows; from now on it changes nothing any more.
    Failed,
    /// Nobody knows, and it may still be done later.
    Open,
    /// It was refused and did nothing.
    Refused,
}

/// What a read must not have seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Violation {
    /// A block that is torn or damaged.
    Broken {
        /// Which block.
        lba: Lba,
        /// What is in it.
        broken: Broken,
    },
    /// A value that the block cannot hold.
    Impossible {
        /// Which block.
        lba: Lba,
        /// What was seen.
        seen: Value,
        /// What it could have been.
        possible: Vec<Value>,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken { lba, broken } => write!(f, "block {}: {broken}", lba.0),
            Self::Impossible {
                lba,
                seen,
                possible,
            } => write!(
                f,
                "block {}: read {seen:?}, which is none of {possible:?}",
                lba.0
            ),
        }
    }
}

/// A write that is in flight.
#[derive(Debug)]
pub struct Writing {
    range: LbaRange,
    durability: Durability,
    /// Names it too: no two writes start at the same moment.
    started: Moment,
}

/// A read or a flush that is in flight.
#[derive(Debug)]
pub struct Started(Moment);

/// Which contents each block may have, given what was asked, answered and lost.
#[derive(Clone, Debug)]
pub struct ModelDisk {
    block_size: BlockSize,
    blocks: BTreeMap<u64, Block>,
    clock: Moment,
    writing: BTreeMap<u64, LbaRange>,
    /// The last power cut: what a read saw before says nothing of what is there after it.
    last_cut: Moment,
    /// The last flush that failed, or may have.
    last_unsure: Moment,
    /// Flushes in flight.
    flushing: BTreeSet<Moment>,
    /// What is wrong unless one of these flushes fails.
    suspect: Vec<(BTreeSet<Moment>, Violation)>,
}

impl ModelDisk {
    /// A disk of zeroes.
    #[must_use]
    pub fn new(block_size: BlockSize) -> Self {
        Self {
            block_size,
            blocks: BTreeMap::new(),
            clock: 0,
            writing: BTreeMap::new(),
            last_cut: 0,
            last_unsure: 0,
            flushing: BTreeSet::new(),
            suspect: Vec::new(),
        }
    }

    fn tick(&mut self) -> Moment {
        self.clock += 1;
        self.clock
    }

    /// A write of `values`, one for each block, starts.
    ///
    /// # Panics
    /// If there are not as many values as blocks.
    pub fn write(&mut self, range: LbaRange, values: &[Value], durability: Durability) -> Writing {
        assert_eq!(range.len().0, values.len() as u64, "a value for each block");
        let started = self.tick();
        for (lba, value) in (range.start().0..).zip(values) {
            let block = self.blocks.entry(lba).or_default();
            block.untouched = false;
            block.held.push(Held {
                value: *value,
                number: started,
                ended: None,
                readable: true,
                superseded: 0,
                lasting: true,
            });
        }
        self.writing.insert(started, range);
        Writing {
            range,
            durability,
            started,
        }
    }

    /// A write ended. An answer that is later than the end of its node's life says nothing: the
    /// write had ended with that life.
    pub fn written(&mut self, writing: &Writing, ending: Ending) {
        let now = self.tick();
        self.writing.remove(&writing.started);
        for lba in writing.range.start().0..writing.range.end().0 {
            let block = self.blocks.entry(lba).or_default();
            let mine = |held: &Held| held.number == writing.started && held.ended.is_none();
            let Some(place) = block.held.iter().position(mine) else {
                continue;
            };
            match ending {
                Ending::Open => {}
                Ending::Failed => block.held[place].ended = Some(now),
                // A flush failed while it was on its way, or its answer was: it may be lost with
                // what was there before.
                Ending::Done
                    if writing.durability == Durability::Cached
                        && writing.started <= self.last_unsure =>
                {
                    block.held[place].ended = Some(now);
                }
                Ending::Refused => {
                    block.held.remove(place);
                }
                Ending::Done => {
                    block.held[place].ended = Some(now);
                    block.done(place, writing.started, writing.durability, now);
                }
            }
        }
    }

    /// A read starts.
    pub fn read(&mut self) -> Started {
        Started(self.tick())
    }

    /// A read of `range` ended with `bytes`.
    ///
    /// # Errors
    /// The first block that cannot be so.
    pub fn was_read(
        &mut self,
        started: &Started,
        range: LbaRange,
        bytes: &Buf,
    ) -> Result<Vec<Value>, Violation> {
        self.tick();
        let values = Value::of_all(bytes, self.block_size).map_err(|(place, broken)| {
            let lba = Lba(range.start().0 + place as u64);
            Violation::Broken { lba, broken }
        })?;
        for (lba, seen) in (range.start().0..).zip(&values) {
            self.saw(started.0, lba, *seen)?;
        }
        Ok(values)
    }

    fn saw(&mut self, started: Moment, lba: u64, seen: Value) -> Result<(), Violation> {
        let quiet = !self
            .writing
            .values()
            .any(|range| range.start().0 <= lba && lba < range.end().0);
        let block = self.blocks.entry(lba).or_default();
        let may = |held: &&Held| held.readable || held.superseded >= started;
        let mut possible: Vec<Value> = block.held.iter().filter(may).map(|it| it.value).collect();
        if !possible.contains(&seen) {
            possible.sort();
            possible.dedup();
            let may_come_back = block
                .held
                .iter()
                .any(|held| held.lasting && held.value == seen);
            let violation = Violation::Impossible {
                lba: Lba(lba),
                seen,
                possible,
            };
            if may_come_back && !self.flushing.is_empty() {
                self.suspect.push((self.flushing.clone(), violation));
                return Ok(());
            }
            return Err(violation);
        }
        // Nothing was in flight since the read started if every write had ended before (M4).
        let calm = started > self.last_cut
            && quiet
            && block
                .held
                .iter()
                .all(|it| it.ended.is_some_and(|at| at < started));
        if calm && !block.may_be_lost {
            block.settle(seen, self.clock);
        }
        Ok(())
    }

    /// A flush starts.
    pub fn flush(&mut self) -> Started {
        let now = self.tick();
        self.flushing.insert(now);
        Started(now)
    }

    /// A flush completed.
    ///
    /// # Errors
    /// What was read meanwhile and only its failure would have explained.
    pub fn flushed(&mut self, started: &Started) -> Result<(), Violation> {
        for block in self.blocks.values_mut() {
            for held in &mut block.held {
                held.lasting &= held.readable || held.superseded >= started.0;
            }
        }
        self.did_not_fail(started)
    }

    /// Something that may fail as a flush does, and makes nothing stable for others, ended well.
    ///
    /// # Errors
    /// What was read meanwhile and only its failure would have explained.
    pub fn did_not_fail(&mut self, started: &Started) -> Result<(), Violation> {
        self.flushing.remove(&started.0);
        for (flushes, _) in &mut self.suspect {
            flushes.remove(&started.0);
        }
        let wrong = self
            .suspect
            .iter()
            .position(|(flushes, _)| flushes.is_empty());
        match wrong {
            Some(place) => Err(self.suspect.swap_remove(place).1),
            None => Ok(()),
        }
    }

    /// A flush failed: nothing is known any more of what was not stable before it.
    pub fn flush_failed(&mut self, started: &Started) {
        self.flushing.remove(&started.0);
        self.suspect
            .retain(|(flushes, _)| !flushes.contains(&started.0));
        self.nothing_is_sure();
    }

    /// The flushes in flight may have failed, and the failure will be reported to nobody. Answers
    /// whether there were any.
    pub fn flushes_may_have_failed(&mut self) -> bool {
        self.suspect.clear();
        if self.flushing.is_empty() {
            return false;
        }
        self.flushing.clear();
        self.nothing_is_sure();
        true
    }

    /// A sync that no host asked for has failed, and it was reported to nobody.
    pub fn a_sync_failed(&mut self) {
        self.flushes_may_have_failed();
        self.nothing_is_sure();
    }

    /// A flush failed, or may have (M6).
    fn nothing_is_sure(&mut self) {
        self.last_unsure = self.clock;
        for block in self.blocks.values_mut() {
            block.may_be_lost = true;
            for held in &mut block.held {
                held.readable |= held.lasting;
            }
        }
    }

    /// The power was cut: what was in flight has ended, what was not stable may be lost.
    pub fn power_cut(&mut self) {
        let now = self.tick();
        self.last_cut = now;
        self.writing.clear();
        self.flushing.clear();
        self.suspect.clear();
        for block in self.blocks.values_mut() {
            block.untouched = true;
            block.may_be_lost = false;
            for held in &mut block.held {
                held.ended.get_or_insert(now);
                held.readable |= held.lasting;
            }
        }
    }

    /// The process was killed: what was in flight has ended, and nothing is lost.
    pub fn killed(&mut self) {
        let now = self.tick();
        self.writing.clear();
        self.flushing.clear();
        self.suspect.clear();
        for block in self.blocks.values_mut() {
            for held in &mut block.held {
                held.ended.get_or_insert(now);
            }
        }
    }

    /// Forgets values that nobody can see any more, given that no read is in flight, not even one
    /// whose answer is late.
    pub fn forget_unseen(&mut self) {
        for block in self.blocks.values_mut() {
            block.held.retain(|held| held.readable || held.lasting);
        }
    }

    /// What a block may hold now.
    #[must_use]
    pub fn possible(&self, lba: Lba) -> Vec<Value> {
        match self.blocks.get(&lba.0) {
            Some(block) => {
                let readable = block.held.iter().filter(|held| held.readable);
                let mut values: Vec<Value> = readable.map(|held| held.value).collect();
                values.sort();
                values.dedup();
                values
            }
            None => vec![Value::Zero],
        }
    }
}

impl Block {
    /// The write of `held[place]` that started at `started` completed now (M2, M5).
    fn done(&mut self, place: usize, started: Moment, durability: Durability, now: Moment) {
        self.may_be_lost = false;
        for (other, held) in self.held.iter_mut().enumerate() {
            let older = held.ended.is_some_and(|at| at < started);
            if other != place && older && held.readable {
                held.readable = false;
                held.superseded = now;
            }
        }
        if durability == Durability::Stable {
            // Superseded by something that ended before this write started, or by this write
            // itself.
            let older = |held: &Held| held.ended.is_some_and(|at| at < started);
            for held in &mut self.held {
                held.lasting &= held.readable || !older(held);
            }
        }
    }

    /// It holds `seen` now, for sure.
    fn settle(&mut self, seen: Value, now: Moment) {
        for held in &mut self.held {
            if held.readable && held.value != seen {
                held.readable = false;
                held.superseded = now;
                // Right after a power cut what is read is what the medium holds.
                held.lasting &= !self.untouched;
            }
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use units::BlockCount;
    use volume_test::stamp::Stamp;

    const SIZE: BlockSize = BlockSize::B512;

    fn at(lba: u64, len: u64) -> LbaRange {
        LbaRange::new(Lba(lba), BlockCount(len)).unwrap()
    }

    fn value(sequence: u64) -> Value {
        Value::Stamp(Stamp {
            lba: Lba(0),
            writer: 1,
            sequence,
        })
    }

    fn reads(disk: &mut ModelDisk, lba: u64, value: Value) -> bool {
        let started = disk.read();
        let bytes = Value::payload(&[value], SIZE);
        disk.was_read(&started, at(lba, 1), &bytes).is_ok()
    }

    fn write(disk: &mut ModelDisk, value: Value, durability: Durability, ending: Ending) {
        let writing = disk.write(at(0, 1), &[value], durability);
        disk.written(&writing, ending);
    }

    #[test]
    fn a_lost_write_is_found() {
        let mut disk = ModelDisk::new(SIZE);
        write(&mut disk, value(1), Durability::Cached, Ending::Done);
        assert!(reads(&mut disk, 0, value(1)));
        assert!(!reads(&mut disk, 0, Value::Zero));
    }

    #[test]
    fn a_failed_write_is_there_or_not_but_does_not_change_its_mind() {
        let mut disk = ModelDisk::new(SIZE);
        write(&mut disk, value(1), Durability::Cached, Ending::Done);
        write(&mut disk, value(2), Durability::Cached, Ending::Failed);
        assert_eq!(disk.possible(Lba(0)), [value(1), value(2)]);
        assert!(reads(&mut disk, 0, value(1)));
        assert!(!reads(&mut disk, 0, value(2)));
    }

    #[test]
    fn an_aborted_write_does_not_come_back_after_a_newer_one() {
        let mut disk = ModelDisk::new(SIZE);
        write(&mut disk, value(1), Durability::Cached, Ending::Failed);
        write(&mut disk, value(2), Durability::Cached, Ending::Done);
        assert!(!reads(&mut disk, 0, value(1)));
        write(&mut disk, value(3), Durability::Cached, Ending::Open);
        write(&mut disk, value(4), Durability::Cached, Ending::Done);
        assert!(reads(&mut disk, 0, value(3)), "its fate is open");
    }

    #[test]
    fn a_read_next_to_a_write_sees_either_and_never_a_mixture() {
        let mut disk = ModelDisk::new(SIZE);
        let writing = disk.write(at(0, 1), &[value(1)], Durability::Cached);
        assert!(reads(&mut disk, 0, Value::Zero));
        assert!(reads(&mut disk, 0, value(1)));
        let started = disk.read();
        let mut torn = value(1).block(SIZE);
        torn[256..].fill(0);
        let seen = disk.was_read(&started, at(0, 1), &Buf::copy_of(&torn));
        assert!(
            matches!(seen, Err(Violation::Broken { lba: Lba(0), .. })),
            "{seen:?}"
        );
        disk.written(&writing, Ending::Done);
    }

    #[test]
    fn a_read_that_began_before_the_write_ended_may_see_what_was_before() {
        let mut disk = ModelDisk::new(SIZE);
        let early = disk.read();
        write(&mut disk, value(1), Durability::Cached, Ending::Done);
        let zero = Value::payload(&[Value::Zero], SIZE);
        assert!(disk.was_read(&early, at(0, 1), &zero).is_ok());
        let late = disk.read();
        assert!(disk.was_read(&late, at(0, 1), &zero).is_err());
    }

    #[test]
    fn that_holds_for_stable_writes_and_flushes_too() {
        let mut disk = ModelDisk::new(SIZE);
        let early = disk.read();
        write(&mut disk, value(1), Durability::Stable, Ending::Done);
        let flush = disk.flush();
        disk.flushed(&flush).unwrap();
        let zero = Value::payload(&[Value::Zero], SIZE);
        assert!(disk.was_read(&early, at(0, 1), &zero).is_ok());
    }

    #[test]
    fn a_power_cut_may_lose_what_was_not_flushed_and_nothing_else() {
        for (durability, flush, lost) in [
            (Durability::Cached, false, true),
            (Durability::Cached, true, false),
            (Durability::Stable, false, false),
        ] {
            let mut disk = ModelDisk::new(SIZE);
            write(&mut disk, value(1), durability, Ending::Done);
            if flush {
                let flush = disk.flush();
                disk.flushed(&flush).unwrap();
            }
            disk.power_cut();
            assert_eq!(
                reads(&mut disk, 0, Value::Zero),
                lost,
                "{durability:?} {flush}"
            );
        }
    }

    #[test]
    fn a_flush_covers_only_what_completed_before_it_started() {
        let mut disk = ModelDisk::new(SIZE);
        let writing = disk.write(at(0, 1), &[value(1)], Durability::Cached);
        let flush = disk.flush();
        disk.written(&writing, Ending::Done);
        disk.flushed(&flush).unwrap();
        disk.power_cut();
        assert!(reads(&mut disk, 0, Value::Zero));
    }

    #[test]
    fn data_that_comes_back_next_to_a_flush_is_right_only_if_the_flush_failed() {
        for fails in [false, true] {
            let mut disk = ModelDisk::new(SIZE);
            write(&mut disk, value(1), Durability::Cached, Ending::Done);
            write(&mut disk, value(2), Durability::Cached, Ending::Done);
            let flush = disk.flush();
            assert!(reads(&mut disk, 0, value(1)), "not judged yet");
            if fails {
                disk.flush_failed(&flush);
                assert!(reads(&mut disk, 0, value(1)));
            } else {
                assert!(disk.flushed(&flush).is_err());
            }
        }
    }

    #[test]
    fn what_a_failed_flush_left_unsettled_is_settled_by_a_write_and_not_by_a_flush() {
        let mut disk = ModelDisk::new(SIZE);
        write(&mut disk, value(1), Durability::Cached, Ending::Done);
        let flush = disk.flush();
        disk.flush_failed(&flush);
        assert!(reads(&mut disk, 0, value(1)));
        let flush = disk.flush();
        disk.flushed(&flush).unwrap();
        let mut lost = disk.clone();
        lost.power_cut();
        assert!(reads(&mut lost, 0, Value::Zero));
        write(&mut disk, value(2), Durability::Stable, Ending::Done);
        disk.power_cut();
        assert!(!reads(&mut disk, 0, Value::Zero));
    }

    #[test]
    fn a_write_that_a_failed_flush_found_in_flight_may_be_lost_although_it_was_answered() {
        for (durability, may_be_lost) in [(Durability::Cached, true), (Durability::Stable, false)] {
            let mut disk = ModelDisk::new(SIZE);
            let writing = disk.write(at(0, 1), &[value(1)], durability);
            let flush = disk.flush();
            disk.flush_failed(&flush);
            disk.written(&writing, Ending::Done);
            assert!(reads(&mut disk, 0, value(1)));
            assert_eq!(reads(&mut disk, 0, Value::Zero), may_be_lost);
        }
    }

    #[test]
    fn what_was_seen_after_a_power_cut_stays_through_the_next() {
        let mut disk = ModelDisk::new(SIZE);
        write(&mut disk, value(1), Durability::Cached, Ending::Done);
        disk.power_cut();
        assert!(reads(&mut disk, 0, Value::Zero));
        disk.power_cut();
        assert!(!reads(&mut disk, 0, value(1)));
    }

    #[test]
    fn an_answer_from_before_the_power_cut_says_nothing_of_what_is_there_after_it() {
        let mut disk = ModelDisk::new(SIZE);
        write(&mut disk, value(1), Durability::Cached, Ending::Done);
        let early = disk.read();
        disk.power_cut();
        let late = Value::payload(&[value(1)], SIZE);
        assert!(disk.was_read(&early, at(0, 1), &late).is_ok());
        assert!(reads(&mut disk, 0, Value::Zero));
    }

    #[test]
    fn a_late_answer_does_not_end_the_zeroes_of_another_write() {
        for power_cut in [false, true] {
            let mut disk = ModelDisk::new(SIZE);
            let before = disk.write(at(0, 1), &[Value::Zero], Durability::Cached);
            if power_cut {
                disk.power_cut();
            } else {
                disk.killed();
            }
            let slow = disk.write(at(0, 1), &[Value::Zero], Durability::Cached);
            disk.written(&before, Ending::Done);
            write(&mut disk, value(1), Durability::Stable, Ending::Done);
            disk.written(&slow, Ending::Failed);
            assert!(
                reads(&mut disk, 0, Value::Zero),
                "the slow zeroes came last"
            );
            assert!(!reads(&mut disk, 0, value(1)), "and they stay");
        }
    }

    #[test]
    fn a_kill_loses_nothing_that_completed() {
        let mut disk = ModelDisk::new(SIZE);
        write(&mut disk, value(1), Durability::Cached, Ending::Done);
        disk.killed();
        assert!(!reads(&mut disk, 0, Value::Zero));
    }
}
