//! What a volume does and how long it takes, counted on each core apart.
//!
//! **Contract.** Counting touches memory of the own core only. Reading asks every core and adds up.

use crate::fault::OpKind;
use crate::wrap::Wrap;
use env::{Answer, CoreHandle, call_all};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use units::Now;
use volume::{Io, IoError, IoFuture, IoResult, Lane, Shape};

/// Buckets of a histogram; see [`Histogram::bound`].
pub const BUCKETS: usize = 28;

/// How often answers took how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    /// Answers that took no longer than [`Histogram::bound`] of the bucket, and longer than the one
    /// before; the last bucket has all that took longer still.
    pub buckets: [u64; BUCKETS],
    /// All of them together, in nanoseconds.
    pub sum_nanos: u64,
}

impl Histogram {
    /// The longest time of a bucket: 1, 2, 4, ... microseconds; `None` for the last one.
    #[must_use]
    pub fn bound(bucket: usize) -> Option<Duration> {
        (bucket + 1 < BUCKETS).then(|| Duration::from_micros(1 << bucket))
    }

    fn count(&mut self, took: Duration) {
        let micros = took.as_nanos().div_ceil(1000).max(1);
        let bucket = micros.next_power_of_two().trailing_zeros() as usize;
        self.buckets[bucket.min(BUCKETS - 1)] += 1;
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.sum_nanos = self.sum_nanos.saturating_add(nanos);
    }

    fn add(&mut self, other: &Self) {
        for (ours, theirs) in self.buckets.iter_mut().zip(other.buckets) {
            *ours += theirs;
        }
        self.sum_nanos = self.sum_nanos.saturating_add(other.sum_nanos);
    }
}

/// Counts of one kind of operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KindCounters {
    /// Started.
    pub started: u64,
    /// Ended well.
    pub done: u64,
    /// Ended with an error.
    pub failed: u64,
    /// Given up before their end.
    pub abandoned: u64,
    /// Blocks of those that ended well.
    pub blocks: u64,
    /// Time of all that ended.
    pub latency: Histogram,
}

/// Counts of one volume.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// By kind, in the order of [`OpKind::ALL`].
    pub kinds: [KindCounters; 7],
    /// Medium and integrity errors.
    pub medium_errors: u64,
    /// Refusals for want of space.
    pub space_exhausted: u64,
}

impl Counters {
    /// Counts of `kind`.
    #[must_use]
    pub fn of(&self, kind: OpKind) -> &KindCounters {
        &self.kinds[kind as usize]
    }

    fn end(&mut self, kind: OpKind, blocks: u64, took: Duration, result: &IoResult) {
        let counters = &mut self.kinds[kind as usize];
        counters.latency.count(took);
        match result {
            Ok(_) => {
                counters.done += 1;
                counters.blocks += blocks;
            }
            Err(error) => {
                counters.failed += 1;
                self.count_error(*error);
            }
        }
    }

    fn count_error(&mut self, error: IoError) {
        match error {
            IoError::MediumError { .. } | IoError::Integrity { .. } => self.medium_errors += 1,
            IoError::SpaceExhausted => self.space_exhausted += 1,
            IoError::Miscompare { .. }
            | IoError::WriteProtected
            | IoError::Unavailable
            | IoError::TimedOut
            | IoError::Aborted
            | IoError::Fenced
            | IoError::Transition
            | IoError::Busy => {}
        }
    }

    fn add(&mut self, other: &Self) {
        for (ours, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            ours.started += theirs.started;
            ours.done += theirs.done;
            ours.failed += theirs.failed;
            ours.abandoned += theirs.abandoned;
            ours.blocks += theirs.blocks;
            ours.latency.add(&theirs.latency);
        }
        self.medium_errors += other.medium_errors;
        self.space_exhausted += other.space_exhausted;
    }
}

/// Counts what passes; kept by whoever reads the counts. Clones count and read the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Meter(u64);

/// The counts of all meters on one core; lanes of one volume on one core count together.
#[derive(Default)]
struct OnCore(RefCell<BTreeMap<Meter, Rc<RefCell<Counters>>>>);

impl Meter {
    /// A meter of its own.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "two meters are never equal")]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The counts of all cores.
    pub async fn read(self, core: &CoreHandle) -> Counters {
        let all = call_all(core, move |core: &CoreHandle| {
            let here = self.here(core);
            Box::pin(async move { here }) as env::LocalFuture<Counters>
        });
        let mut sum = Counters::default();
        for counters in all.await {
            sum.add(&counters);
        }
        sum
    }

    fn here(self, core: &CoreHandle) -> Counters {
        self.counters(core).borrow().clone()
    }

    fn counters(self, core: &CoreHandle) -> Rc<RefCell<Counters>> {
        let on_core = core.locals().get::<OnCore>();
        let mut meters = on_core.0.borrow_mut();
        Rc::clone(meters.entry(self).or_default())
    }
}

struct MeterLane {
    core: CoreHandle,
    below: Rc<dyn Lane>,
    counters: Rc<RefCell<Counters>>,
}

impl Wrap for Meter {
    fn lane(&self, core: &CoreHandle, below: Rc<dyn Lane>, _shape: Shape) -> Rc<dyn Lane> {
        Rc::new(MeterLane {
            core: Rc::clone(core),
            below,
            counters: self.counters(core),
        })
    }
}

/// Counts an operation as given up unless its end comes first.
struct InFlight {
    counters: Rc<RefCell<Counters>>,
    kind: OpKind,
    ended: bool,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if !self.ended {
            self.counters.borrow_mut().kinds[self.kind as usize].abandoned += 1;
        }
    }
}

impl Lane for MeterLane {
    fn submit(&self, io: Io) -> IoFuture {
        let kind = OpKind::of(io.op());
        let blocks = io.op().range().map_or(0, |range| range.len().0);
        let begin: Now = self.core.now();
        self.counters.borrow_mut().kinds[kind as usize].started += 1;
        match self.below.submit(io).now() {
            Ok(result) => {
                let took = self.core.now().since(begin);
                self.counters.borrow_mut().end(kind, blocks, took, &result);
                Answer::ready(result)
            }
            Err(waiting) => {
                let core = Rc::clone(&self.core);
                let mut flight = InFlight {
                    counters: Rc::clone(&self.counters),
                    kind,
                    ended: false,
                };
                Answer::wait(async move {
                    let result = waiting.await;
                    let took = core.now().since(begin);
                    flight.ended = true;
                    flight
                        .counters
                        .borrow_mut()
                        .end(kind, blocks, took, &result);
                    result
                })
            }
        }
    }
}
