//! How long READ and WRITE commands spend where, counted on each core apart.
//!
//! ```text
//!   first byte   whole   asked for data   data in   handed down      answered   sent
//!   |--network---|--queue------|--network----|--queue---|--(backend)----|--network--------|
//!   |--total----------------------------------------------------------------------------|
//! ```
//!
//! What the backend takes is counted by the volume's meter, for each operation that is handed down.
//! A command that has no data to wait for goes from *whole* to *handed down* in one piece.
//!
//! **Contract.** Counting touches memory of the own core only, and reads no clock: it goes by
//! [`env::Core::recent`], which is a turn of the connection's loop old at most.

use crate::names::UnitId;
use crate::news::{Here, News, together};
use crate::share::control::TaskControl;
use crate::share::{CoreUnit, Registry};
use crate::times::{Figures, StageBrief, Storage, Transfer, between};
use env::{CoreHandle, LocalFuture, call_all};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::rc::Rc;
use units::Now;
use units::histogram::{self, Bin};

/// What is reported of these units, over all cores.
pub async fn figures(core: &CoreHandle, units: Vec<UnitId>) -> BTreeMap<UnitId, Figures> {
    let per_core = call_all(core, move |core: &CoreHandle| {
        let here = core.locals().get::<Registry>().figures(&units);
        Box::pin(async move { here }) as LocalFuture<BTreeMap<UnitId, Figures>>
    });
    let mut all: BTreeMap<UnitId, Figures> = BTreeMap::new();
    for (id, figures) in per_core.await.into_iter().flatten() {
        match all.entry(id) {
            // Most is counted on one core: nothing is copied for the others.
            Entry::Vacant(none) => {
                none.insert(figures);
            }
            Entry::Occupied(mut sum) => sum.get_mut().add(&figures),
        }
    }
    all
}

/// What is read of these units every second, in their order, over all cores. Far less work than
/// [`figures`].
pub async fn briefs(core: &CoreHandle, units: Vec<UnitId>) -> Vec<StageBrief> {
    let per_core = call_all(core, move |core: &CoreHandle| {
        let here = core.locals().get::<Registry>().briefs(&units);
        Box::pin(async move { here }) as LocalFuture<Vec<StageBrief>>
    });
    let mut all = per_core.await.into_iter();
    let mut sums = all.next().unwrap_or_default();
    for here in all {
        for (sum, here) in sums.iter_mut().zip(&here) {
            sum.add(here);
        }
    }
    sums
}

/// Nanoseconds that all commands of these units took together, in their order, over all cores.
/// Where it is as it was, so are [`briefs`]; and nothing is copied for it.
pub async fn nanos(core: &CoreHandle, units: Vec<UnitId>) -> Vec<u64> {
    let mut sums = vec![0; units.len()];
    let per_core = call_all(core, move |core: &CoreHandle| {
        let here = core.locals().get::<Registry>().nanos(&units);
        Box::pin(async move { here }) as LocalFuture<Vec<u64>>
    });
    for here in per_core.await {
        for (sum, here) in sums.iter_mut().zip(&here) {
            *sum += here;
        }
    }
    sums
}

/// What these units did since they were probed last, in their order, over all cores. With `true`
/// for those that may have counted something although their commands took no time.
pub async fn news(core: &CoreHandle, units: Vec<(UnitId, bool)>) -> News {
    let count = units.len();
    let per_core = call_all(core, move |core: &CoreHandle| {
        let here = core.locals().get::<Registry>().probe(&units);
        Box::pin(async move { here }) as LocalFuture<Here>
    });
    together(count, &per_core.await)
}

/// How long the stages of these units' commands took that came since this was asked last, in their
/// order, as each core says it: total, network and queue of reads, then of writes. One asks, again
/// and again.
pub async fn stage_news(core: &CoreHandle, units: Vec<UnitId>) -> Vec<histogram::News<6>> {
    let per_core = call_all(core, move |core: &CoreHandle| {
        let here = core.locals().get::<Registry>().stage_news(&units);
        Box::pin(async move { here }) as LocalFuture<histogram::News<6>>
    });
    per_core.await
}

/// The latency trace of a command that was answered and whose answer is still to be sent. Dropping
/// it counts nothing.
pub struct LatencyTrace {
    pub(crate) unit: Rc<CoreUnit>,
    pub(crate) control: Rc<TaskControl>,
}

/// Where the time of a command went that stands for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sampled {
    /// Reads or writes.
    pub transfer: Transfer,
    /// As [`crate::Request::stands_for`].
    pub stands_for: u8,
    /// As [`crate::Times::network`].
    pub network: Bin,
    /// As [`crate::Times::queue`].
    pub queue: Bin,
    /// From when it was handed down until it was answered, and by whom; `None`: it was not handed
    /// down.
    pub storage: Option<(Storage, Bin)>,
}

impl LatencyTrace {
    /// Where its time went, of a command that stands for others and whose whole answer the socket
    /// has at `now`.
    #[inline]
    #[must_use]
    pub fn sampled(&self, now: Now) -> Option<Sampled> {
        let stands_for = self.control.stopwatch().stands_for;
        (stands_for > 0).then(|| self.stages(now)).flatten()
    }

    #[cold]
    fn stages(&self, now: Now) -> Option<Sampled> {
        let watch = self.control.stopwatch();
        let (queue, mark) = (watch.queue.get(), watch.mark.get());
        let before = between(watch.first_byte, mark);
        let in_storage = before.saturating_sub(queue + watch.network.get());
        Some(Sampled {
            transfer: watch.transfer?,
            stands_for: watch.stands_for,
            network: Bin::of_nanos(watch.network.get() + between(mark, now)),
            queue: Bin::of_nanos(queue),
            storage: watch.storage().map(|it| (it, Bin::of_nanos(in_storage))),
        })
    }
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

/// How long some commands took in all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Took {
    /// Reads or writes.
    pub transfer: Transfer,
    /// From the first byte until the socket had the whole answer.
    pub total: Bin,
    /// How many.
    pub count: u64,
}

/// Commands that took the same time in each stage.
#[derive(Debug)]
struct Run {
    /// The first of them.
    latency_trace: LatencyTrace,
    count: u64,
}

impl Run {
    fn end(self, now: Now) -> Option<Took> {
        let (watch, count) = (self.latency_trace.control.stopwatch(), self.count);
        let total = Bin::of_nanos(between(watch.first_byte, now));
        let network = watch.network.get() + between(watch.mark.get(), now);
        let transfer = watch.transfer?;
        let mut times = self.latency_trace.unit.times().borrow_mut();
        let times = times.of(transfer);
        times
            .queue
            .count_many(Bin::of_nanos(watch.queue.get()), count);
        times.network.count_many(Bin::of_nanos(network), count);
        times.total.count_many(total, count);
        Some(Took {
            transfer,
            total,
            count,
        })
    }
}

impl Tally {
    /// For answers that the socket has whole at `now`.
    #[must_use]
    pub fn new(now: Now) -> Self {
        Self { now, run: None }
    }

    /// The socket has the whole answer of this one, too. Returns how long the ones before it took
    /// where this one took another time.
    #[inline]
    pub fn sent(&mut self, latency_trace: LatencyTrace) -> Option<Took> {
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
        before.end(self.now)
    }

    /// That was all. Returns how long the last ones took.
    #[must_use]
    pub fn end(self) -> Option<Took> {
        self.run?.end(self.now)
    }
}
