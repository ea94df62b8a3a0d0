//! How long READ and WRITE commands spend where, counted on each core apart.
//!
//! ```text
//!   first byte   whole   asked for data   data in   handed down      answered   given to the socket
//!   |--network---|--queue------|--network----|--queue---|--(backend)----|--network--------|
//!   |--total----------------------------------------------------------------------------|
//! ```
//!
//! What the backend takes is counted by the volume's meter, for each operation that is handed down.
//! A command that has no data to wait for goes from *whole* to *handed down* in one piece.
//!
//! **Contract.** Counting touches memory of the own core only, and reads no clock: it goes by
//! [`env::Core::recent`], which is a turn of the connection's loop old at most.

use crate::core_unit::{CoreUnit, Registry, UnitId};
use crate::task::TaskControl;
use env::{CoreHandle, LocalFuture, call_all};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use units::histogram::Place;
use units::{Histogram, Now};

/// The commands whose time is told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Transfer {
    /// READ.
    Read,
    /// WRITE, and WRITE ATOMIC.
    Write,
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
    fn of(&mut self, transfer: Transfer) -> &mut Times {
        match transfer {
            Transfer::Read => &mut self.read,
            Transfer::Write => &mut self.write,
        }
    }

    /// Adds what another core has counted.
    fn add(&mut self, other: &Self) {
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

/// What is told of a unit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// How long its commands took.
    pub times: StageTimes,
    /// Bytes that its commands hold now.
    pub bytes_in_flight: u64,
}

/// What is told of all units that are up, over all cores.
pub async fn figures(core: &CoreHandle) -> BTreeMap<UnitId, Figures> {
    let per_core = call_all(core, |core: &CoreHandle| {
        let here = core.locals().get::<Registry>().figures();
        Box::pin(async move { here }) as LocalFuture<BTreeMap<UnitId, Figures>>
    });
    let mut all: BTreeMap<UnitId, Figures> = BTreeMap::new();
    for (id, figures) in per_core.await.into_iter().flatten() {
        let sum = all.entry(id).or_default();
        sum.times.add(&figures.times);
        sum.bytes_in_flight += figures.bytes_in_flight;
    }
    all
}

/// A task's stopwatch. Times are nanoseconds.
pub(crate) struct Stopwatch {
    transfer: Option<Transfer>,
    asked: Cell<bool>,
    started: Cell<bool>,
    first_byte: Now,
    /// When the last stage ended.
    mark: Cell<Now>,
    queue: Cell<u64>,
    network: Cell<u64>,
}

impl Stopwatch {
    /// For a command that began to arrive at `first_byte`, and was there whole at `whole`. Without
    /// a `transfer` nothing of it is told.
    pub(crate) fn new(transfer: Option<Transfer>, first_byte: Now, whole: Now) -> Self {
        Self {
            transfer,
            asked: Cell::new(false),
            started: Cell::new(false),
            first_byte,
            mark: Cell::new(whole),
            queue: Cell::new(0),
            network: Cell::new(between(first_byte, whole)),
        }
    }

    fn shows_the_same(&self, other: &Self) -> bool {
        self.transfer == other.transfer
            && self.first_byte == other.first_byte
            && self.mark.get() == other.mark.get()
            && self.queue.get() == other.queue.get()
            && self.network.get() == other.network.get()
    }

    fn lap(&self, now: Now, stage: &Cell<u64>) {
        stage.set(stage.get() + between(self.mark.replace(now), now));
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
            self.lap(core.recent(), &self.queue);
        }
    }

    /// It is answered. `false`: nothing of it is told.
    pub(crate) fn answered(&self, core: &CoreHandle) -> bool {
        if self.transfer.is_some() {
            self.mark.set(core.recent());
        }
        self.transfer.is_some()
    }
}

fn between(earlier: Now, later: Now) -> u64 {
    later.0.saturating_sub(earlier.0)
}

/// The latency trace of a command that was answered and whose answer is still to be sent. Dropping it
/// counts nothing.
pub struct LatencyTrace {
    pub(crate) unit: Rc<CoreUnit>,
    pub(crate) control: Rc<TaskControl>,
}

impl fmt::Debug for LatencyTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LatencyTrace").finish_non_exhaustive()
    }
}

/// Counts commands whose answers the socket took together.
///
/// Commands that came in one piece, were answered at once and left in one piece all took the same
/// time: they are counted together, once the first one comes that did not.
#[derive(Debug)]
pub struct Tally {
    now: Now,
    run: Option<Run>,
}

/// Commands that took the same time in each stage.
#[derive(Debug)]
struct Run {
    /// The first of them.
    latency_trace: LatencyTrace,
    count: u64,
}

impl Run {
    fn end(self, now: Now) -> (Place, u64) {
        let (watch, count) = (self.latency_trace.control.stopwatch(), self.count);
        let total = Place::of_nanos(between(watch.first_byte, now));
        let network = watch.network.get() + between(watch.mark.get(), now);
        let mut times = self.latency_trace.unit.times().borrow_mut();
        if let Some(transfer) = watch.transfer {
            let times = times.of(transfer);
            times
                .queue
                .count_many(Place::of_nanos(watch.queue.get()), count);
            times.network.count_many(Place::of_nanos(network), count);
            times.total.count_many(total, count);
        }
        (total, count)
    }
}

impl Tally {
    /// For answers that the socket has whole at `now`.
    #[must_use]
    pub fn new(now: Now) -> Self {
        Self { now, run: None }
    }

    /// The socket has the whole answer of this one, too. Tells how long the ones before it took in
    /// all, and how many they are, where this one took another time.
    #[inline]
    pub fn sent(&mut self, latency_trace: LatencyTrace) -> Option<(Place, u64)> {
        if let Some(run) = &mut self.run
            && Rc::ptr_eq(&run.latency_trace.unit, &latency_trace.unit)
            && run
                .latency_trace
                .control
                .stopwatch()
                .shows_the_same(latency_trace.control.stopwatch())
        {
            run.count += 1;
            return None;
        }
        let before = self.run.replace(Run {
            latency_trace,
            count: 1,
        })?;
        Some(before.end(self.now))
    }

    /// That was all. Tells how long the last ones took in all, and how many they are.
    #[must_use]
    pub fn end(self) -> Option<(Place, u64)> {
        Some(self.run?.end(self.now))
    }
}
