//! How long a command has spent where, and what is reported of it.

use crate::status_count::Ending;
use env::CoreHandle;
use std::cell::Cell;
use std::collections::BTreeMap;
use units::{Histogram, Now};

/// The commands whose time is reported.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Transfer {
    /// READ.
    Read,
    /// WRITE, and WRITE ATOMIC.
    Write,
}

/// Who answers what is handed down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    /// A journal: at least an operation of the command.
    Journal,
    /// Where the data belongs.
    Backend,
}

/// Times of one kind of command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Times {
    /// What waited for admission, for holds, for its turn, or for memory.
    pub queue: Histogram,
    /// What waited for the host's bytes to come, and for the socket to take the answer.
    pub network: Histogram,
    /// From the command's first byte until the socket had the whole answer.
    pub total: Histogram,
}

/// Times of one unit's commands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StageTimes {
    /// Of [`Transfer::Read`].
    pub read: Times,
    /// Of [`Transfer::Write`].
    pub write: Times,
}

impl StageTimes {
    /// Of all commands together, from their first bytes to their answers' last.
    pub(crate) fn nanos(&self) -> u64 {
        self.read.total.sum_nanos() + self.write.total.sum_nanos()
    }

    pub(crate) fn of(&mut self, transfer: Transfer) -> &mut Times {
        match transfer {
            Transfer::Read => &mut self.read,
            Transfer::Write => &mut self.write,
        }
    }

    pub(crate) fn get(&self, transfer: Transfer) -> &Times {
        match transfer {
            Transfer::Read => &self.read,
            Transfer::Write => &self.write,
        }
    }

    /// Adds what another core has counted.
    pub(crate) fn add(&mut self, other: &Self) {
        for (ours, theirs) in [
            (&mut self.read, &other.read),
            (&mut self.write, &other.write),
        ] {
            ours.queue.add(&theirs.queue);
            ours.network.add(&theirs.network);
            ours.total.add(&theirs.total);
        }
    }
}

/// What is reported of a unit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// How long its commands took.
    pub times: StageTimes,
    /// Bytes that its commands hold now.
    pub bytes_in_flight: u64,
    /// How often commands ended with something else than GOOD.
    pub endings: BTreeMap<Ending, u64>,
}

impl Figures {
    /// Adds what another core has counted.
    pub(crate) fn add(&mut self, other: &Self) {
        self.times.add(&other.times);
        self.bytes_in_flight += other.bytes_in_flight;
        for (ending, count) in &other.endings {
            *self.endings.entry(*ending).or_default() += count;
        }
    }
}

/// What is read every second of the times of one kind of command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TimesBrief {
    /// As [`Times::total`].
    pub total: Histogram,
    /// Nanoseconds of [`Times::network`], of as many commands.
    pub network_nanos: u64,
    /// Nanoseconds of [`Times::queue`], of as many commands.
    pub queue_nanos: u64,
}

impl TimesBrief {
    fn of(times: &Times) -> Self {
        Self {
            total: times.total.clone(),
            network_nanos: times.network.sum_nanos(),
            queue_nanos: times.queue.sum_nanos(),
        }
    }

    fn add(&mut self, other: &Self) {
        self.total.add(&other.total);
        self.network_nanos += other.network_nanos;
        self.queue_nanos += other.queue_nanos;
    }
}

/// What is read every second of the times of a unit's commands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StageBrief {
    /// Of [`Transfer::Read`].
    pub read: TimesBrief,
    /// Of [`Transfer::Write`].
    pub write: TimesBrief,
}

impl StageBrief {
    pub(crate) fn of(times: &StageTimes) -> Self {
        Self {
            read: TimesBrief::of(&times.read),
            write: TimesBrief::of(&times.write),
        }
    }

    /// Adds what another core has counted.
    pub(crate) fn add(&mut self, other: &Self) {
        self.read.add(&other.read);
        self.write.add(&other.write);
    }
}

/// A task's stopwatch. Times are nanoseconds.
pub(crate) struct Stopwatch {
    pub(crate) transfer: Option<Transfer>,
    /// As [`crate::Request::stands_for`].
    pub(crate) stands_for: u8,
    asked: Cell<bool>,
    started: Cell<bool>,
    logged: Cell<bool>,
    pub(crate) first_byte: Now,
    /// When the last stage ended.
    pub(crate) mark: Cell<Now>,
    pub(crate) queue: Cell<u64>,
    pub(crate) network: Cell<u64>,
}

impl Stopwatch {
    /// For a command that began to arrive at `first_byte`, and was there whole at `whole`. Without
    /// a `transfer` nothing of it is reported.
    pub(crate) fn new(
        transfer: Option<Transfer>,
        stands_for: u8,
        (first_byte, whole): (Now, Now),
    ) -> Self {
        Self {
            transfer,
            stands_for,
            asked: Cell::new(false),
            started: Cell::new(false),
            logged: Cell::new(false),
            first_byte,
            mark: Cell::new(whole),
            queue: Cell::new(0),
            network: Cell::new(between(first_byte, whole)),
        }
    }

    pub(crate) fn shows_the_same(&self, other: &Self) -> bool {
        self.transfer == other.transfer
            && self.first_byte == other.first_byte
            && self.mark.get() == other.mark.get()
            && self.queue.get() == other.queue.get()
            && self.network.get() == other.network.get()
    }

    fn lap(&self, now: Now, stage: &Cell<u64>) {
        stage.set(stage.get() + between(self.mark.replace(now), now));
    }

    /// When it goes down, or is answered: of a command that stands for others the clock is read, as
    /// the volume's meter does it.
    fn exact(&self, core: &CoreHandle) -> Now {
        if self.stands_for == 0 {
            core.recent()
        } else {
            core.now()
        }
    }

    /// The host may send the data.
    pub(crate) fn asks_for_data(&self, core: &CoreHandle) {
        self.lap(core.recent(), &self.queue);
        self.asked.set(true);
    }

    /// All data is there that was asked for.
    pub(crate) fn has_data(&self, core: &CoreHandle) {
        if self.asked.replace(false) {
            self.lap(core.recent(), &self.network);
        }
    }

    /// The backend is given an operation of it.
    pub(crate) fn is_handed_down(&self, core: &CoreHandle) {
        if !self.started.replace(true) {
            self.lap(self.exact(core), &self.queue);
        }
    }

    /// A journal has answered an operation of it.
    pub(crate) fn is_logged(&self) {
        self.logged.set(true);
    }

    /// Who had it from its last stage until its answer; `None`: it was handed to nobody.
    pub(crate) fn storage(&self) -> Option<Storage> {
        let storage = if self.logged.get() {
            Storage::Journal
        } else {
            Storage::Backend
        };
        self.started.get().then_some(storage)
    }

    /// It is answered. `false`: nothing of it is reported.
    pub(crate) fn answered(&self, core: &CoreHandle) -> bool {
        if self.transfer.is_some() {
            self.mark.set(self.exact(core));
        }
        self.transfer.is_some()
    }
}

/// Nanoseconds from one moment to another.
pub(crate) fn between(earlier: Now, later: Now) -> u64 {
    later.0.saturating_sub(earlier.0)
}
