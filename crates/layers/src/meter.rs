//! What a volume does and how long it takes, counted on each core apart.
//!
//! **Contract.** Counting touches memory of the own core only. Reading asks every core and adds up.
//! Every operation is counted; the time of small ones that are answered at once is that of the last
//! one of [`SAMPLE`] that was timed.

use env::{Answer, CoreHandle, call_all};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use units::Histogram;
use units::histogram::{Bin, Glance, News};
use volume::{Done, Io, IoError, IoFuture, IoResult, Lane, OpKind, Shape, Wrap};

/// Of the operations that are answered in the very poll that submits them, and are small, one in so
/// many is timed.
///
/// Reading the clock twice costs as much as a fiftieth of such an operation. One that is timed
/// stands for itself and for those that follow until the next one is timed, so that all are counted
/// and the mean is right.
pub const SAMPLE: u32 = 16;

/// From so many bytes on an operation is timed however it is answered: its copy takes far longer
/// than the clock.
const LARGE_BYTES: u64 = 32 << 10;

/// Bins of sizes: one for each power of two of blocks, and the last for all that are larger.
pub const SIZES: usize = 12;

/// How large operations were that ended well, by the power of two of their blocks.
pub type Sizes = [u64; SIZES];

/// In which bin it counts.
pub(crate) fn size_bin(blocks: u64) -> usize {
    (SIZES - 1).min((blocks | 1).ilog2() as usize)
}

/// Counts of one kind of operation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KindCounters {
    /// Operations that went down, whether they have ended or not.
    pub started: u64,
    /// Ended well.
    pub done: u64,
    /// Ended with an error.
    pub failed: u64,
    /// Given up before their end.
    pub abandoned: u64,
    /// Blocks of those that ended well.
    pub blocks: u64,
    /// Time of all that ended, but for writes that a journal answered.
    pub latency: Histogram,
}

/// Counts of one volume.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// By kind, in the order of [`OpKind::ALL`].
    pub kinds: [KindCounters; 7],
    /// Time of writes that a journal answered: they ended, and go later to where they belong.
    pub journal: Histogram,
    /// How many those are.
    pub journaled: u64,
    /// Of reads and of writes: the first of [`OpKind::ALL`].
    pub sizes: [Sizes; 2],
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

    /// Sizes of operations of `kind`, where they are counted.
    #[must_use]
    pub fn sizes_of(&self, kind: OpKind) -> Option<&Sizes> {
        self.sizes.get(kind as usize)
    }

    fn end(&mut self, kind: OpKind, blocks: u64, took: Bin, result: &IoResult) {
        let counters = &mut self.kinds[kind as usize];
        if kind == OpKind::Write && matches!(result, Ok(Done::Logged)) {
            self.journaled += 1;
            self.journal.count_at(took);
        } else {
            counters.latency.count_at(took);
        }
        match result {
            Ok(_) => {
                counters.done += 1;
                counters.blocks += blocks;
                if let Some(sizes) = self.sizes.get_mut(kind as usize) {
                    sizes[size_bin(blocks)] += 1;
                }
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
        self.journal.add(&other.journal);
        self.journaled += other.journaled;
        let sizes = self.sizes.iter_mut().flatten();
        for (ours, theirs) in sizes.zip(other.sizes.iter().flatten()) {
            *ours += theirs;
        }
        self.medium_errors += other.medium_errors;
        self.space_exhausted += other.space_exhausted;
    }
}

/// How many operations of a volume began, and how many came to an end, of whatever kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Began.
    pub started: u64,
    /// Ended, well or not, or given up.
    pub ended: u64,
}

impl Progress {
    fn count(&mut self, kind: &KindCounters) {
        self.started += kind.started;
        self.ended += kind.done + kind.failed + kind.abandoned;
    }

    /// Those that the storage has.
    #[must_use]
    pub fn under_way(&self) -> u64 {
        self.started.saturating_sub(self.ended)
    }
}

/// What is read of one kind of operation every second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KindBrief {
    /// Ended, well or not.
    pub ops: u64,
    /// Blocks of those that ended well.
    pub blocks: u64,
    /// Time of all that ended, in nanoseconds, but for writes that a journal answered.
    pub nanos: u64,
    /// How many of them a journal answered: writes only.
    pub journaled: u64,
    /// Time of those, in nanoseconds.
    pub journal_nanos: u64,
}

/// What is read of a volume every second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Brief {
    /// Of [`OpKind::Read`].
    pub read: KindBrief,
    /// Of [`OpKind::Write`].
    pub write: KindBrief,
    /// Operations that are neither, and ended.
    pub other_ops: u64,
    /// Operations of any kind that began, and those that came to an end.
    pub progress: Progress,
}

impl Brief {
    fn of(counters: &Counters) -> Self {
        let mut out = Self::default();
        for kind in OpKind::ALL {
            let counted = counters.of(kind);
            out.progress.count(counted);
            let brief = KindBrief {
                ops: counted.done + counted.failed,
                blocks: counted.blocks,
                nanos: counted.latency.sum_nanos(),
                ..KindBrief::default()
            };
            match kind {
                OpKind::Read => out.read = brief,
                OpKind::Write => {
                    out.write = KindBrief {
                        journaled: counters.journaled,
                        journal_nanos: counters.journal.sum_nanos(),
                        ..brief
                    };
                }
                OpKind::WriteZeroes
                | OpKind::Discard
                | OpKind::CompareAndWrite
                | OpKind::Extents
                | OpKind::Flush => out.other_ops += brief.ops,
            }
        }
        out
    }

    fn add(&mut self, other: &Self) {
        for (ours, theirs) in [
            (&mut self.read, &other.read),
            (&mut self.write, &other.write),
        ] {
            ours.ops += theirs.ops;
            ours.blocks += theirs.blocks;
            ours.nanos = ours.nanos.saturating_add(theirs.nanos);
            ours.journaled += theirs.journaled;
            ours.journal_nanos = ours.journal_nanos.saturating_add(theirs.journal_nanos);
        }
        self.other_ops += other.other_ops;
        self.progress.started += other.progress.started;
        self.progress.ended += other.progress.ended;
    }
}

/// Counts what passes; kept by whoever reads the counts. Clones count and read the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Meter(u64);

/// The counts of all meters on one core; lanes of one volume on one core count together.
#[derive(Default)]
struct OnCore(RefCell<BTreeMap<Meter, Rc<RefCell<Counting>>>>);

/// What a core has counted of one volume, and which operation is timed next.
#[derive(Default)]
struct Counting {
    counters: Counters,
    paces: [Pace; 7],
    /// What [`Meter::latency_news`] has seen.
    seen: Option<Box<[Glance; 3]>>,
}

/// The last operation of a kind that was timed, and how many more it stands for.
#[derive(Clone, Copy)]
struct Pace {
    last: Bin,
    left: u32,
}

impl Default for Pace {
    /// The first operation is timed.
    fn default() -> Self {
        Self {
            last: Bin::of(Duration::ZERO),
            left: 0,
        }
    }
}

impl Counting {
    /// An operation begins. `true`: it is to be timed.
    fn begin(&mut self, kind: OpKind, large: bool) -> bool {
        self.counters.kinds[kind as usize].started += 1;
        large || self.paces[kind as usize].left == 0
    }

    /// An operation was answered at once.
    fn at_once(&mut self, kind: OpKind, blocks: u64, took: Option<Duration>, result: &IoResult) {
        let pace = &mut self.paces[kind as usize];
        let place = match took {
            Some(took) => {
                let place = Bin::of(took);
                if pace.left == 0 {
                    *pace = Pace {
                        last: place,
                        left: SAMPLE - 1,
                    };
                }
                place
            }
            None => {
                pace.left -= 1;
                pace.last
            }
        };
        self.counters.end(kind, blocks, place, result);
    }
}

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

    /// As [`Meter::read`] of each of these meters, in their order, and every core is asked once.
    pub async fn read_all(core: &CoreHandle, meters: Vec<Self>) -> Vec<Counters> {
        let all = call_all(core, move |core: &CoreHandle| {
            let here = meters.iter().map(|meter| meter.here(core)).collect();
            Box::pin(async move { here }) as env::LocalFuture<Vec<Counters>>
        });
        let mut all = all.await.into_iter();
        let mut sums = all.next().unwrap_or_default();
        for here in all {
            for (sum, here) in sums.iter_mut().zip(&here) {
                sum.add(here);
            }
        }
        sums
    }

    /// How long operations of these meters took that came since this was asked last, in their
    /// order, as each core says it: reads, writes, and writes that a journal answered. One asks,
    /// again and again.
    pub async fn latency_news(core: &CoreHandle, meters: Vec<Self>) -> Vec<News<3>> {
        let all = call_all(core, move |core: &CoreHandle| {
            let on_core = core.locals().get::<OnCore>();
            let known = on_core.0.borrow();
            let mut news = News::default();
            for meter in &meters {
                let Some(counting) = known.get(meter) else {
                    news.nothing();
                    continue;
                };
                let Counting { counters, seen, .. } = &mut *counting.borrow_mut();
                let of = |kind| &counters.of(kind).latency;
                let all = [of(OpKind::Read), of(OpKind::Write), &counters.journal];
                news.probe(seen, all);
            }
            Box::pin(async move { news }) as env::LocalFuture<News<3>>
        });
        all.await
    }

    /// What is read of these meters every second, in their order; nothing is copied but numbers.
    pub async fn briefs(core: &CoreHandle, meters: Vec<Self>) -> Vec<Brief> {
        let mut sums = vec![Brief::default(); meters.len()];
        let all = call_all(core, move |core: &CoreHandle| {
            let on_core = core.locals().get::<OnCore>();
            let known = on_core.0.borrow();
            let of = |meter: &Self| {
                let counting = known.get(meter);
                counting.map_or_else(Brief::default, |it| Brief::of(&it.borrow().counters))
            };
            let here = meters.iter().map(of).collect();
            Box::pin(async move { here }) as env::LocalFuture<Vec<Brief>>
        });
        for here in all.await {
            for (sum, here) in sums.iter_mut().zip(&here) {
                sum.add(here);
            }
        }
        sums
    }

    /// How far the operations of these meters are, over all cores, in their order. Far less work
    /// than [`Meter::read`] of each.
    pub async fn progress(core: &CoreHandle, meters: Vec<Self>) -> Vec<Progress> {
        let mut sums = vec![Progress::default(); meters.len()];
        let all = call_all(core, move |core: &CoreHandle| {
            let of = |meter: &Self| {
                let counting = meter.counting(core);
                let kinds = &counting.borrow().counters.kinds;
                let mut progress = Progress::default();
                for kind in kinds {
                    progress.count(kind);
                }
                progress
            };
            let here: Vec<Progress> = meters.iter().map(of).collect();
            Box::pin(async move { here }) as env::LocalFuture<Vec<Progress>>
        });
        for here in all.await {
            for (sum, here) in sums.iter_mut().zip(here) {
                sum.started += here.started;
                sum.ended += here.ended;
            }
        }
        sums
    }

    fn here(self, core: &CoreHandle) -> Counters {
        self.counting(core).borrow().counters.clone()
    }

    fn counting(self, core: &CoreHandle) -> Rc<RefCell<Counting>> {
        let on_core = core.locals().get::<OnCore>();
        let mut meters = on_core.0.borrow_mut();
        Rc::clone(meters.entry(self).or_default())
    }
}

struct MeterLane {
    core: CoreHandle,
    below: Rc<dyn Lane>,
    large_blocks: u64,
    counting: Rc<RefCell<Counting>>,
}

impl Wrap for Meter {
    fn lane(&self, core: &CoreHandle, below: Rc<dyn Lane>, shape: Shape) -> Rc<dyn Lane> {
        Rc::new(MeterLane {
            core: Rc::clone(core),
            below,
            large_blocks: LARGE_BYTES / u64::from(shape.block_size.bytes()),
            counting: self.counting(core),
        })
    }
}

/// Counts an operation as given up unless its end comes first.
struct InFlight {
    counting: Rc<RefCell<Counting>>,
    kind: OpKind,
    ended: bool,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if !self.ended {
            let mut counting = self.counting.borrow_mut();
            counting.counters.kinds[self.kind as usize].abandoned += 1;
        }
    }
}

impl Lane for MeterLane {
    fn submit(&self, io: Io) -> IoFuture {
        let kind = OpKind::of(io.op());
        let blocks = io.op().range().map_or(0, |range| range.len().0);
        let large = blocks >= self.large_blocks;
        let timed = self.counting.borrow_mut().begin(kind, large);
        let begin = timed.then(|| self.core.now());
        match self.below.submit(io).now() {
            Ok(result) => {
                let took = begin.map(|begin| self.core.now().since(begin));
                let mut counting = self.counting.borrow_mut();
                counting.at_once(kind, blocks, took, &result);
                Answer::ready(result)
            }
            Err(waiting) => {
                let begin = begin.unwrap_or_else(|| self.core.now());
                let core = Rc::clone(&self.core);
                let mut flight = InFlight {
                    counting: Rc::clone(&self.counting),
                    kind,
                    ended: false,
                };
                Answer::wait(async move {
                    let result = waiting.await;
                    let took = Bin::of(core.now().since(begin));
                    flight.ended = true;
                    let mut counting = flight.counting.borrow_mut();
                    counting.counters.end(kind, blocks, took, &result);
                    drop(counting);
                    result
                })
            }
        }
    }
}
