//! Who may go when: token buckets for operations and bytes, and the queue before them. Pure: time
//! comes in, names of those that may go come out.
//!
//! **Invariants.** I1: in any span `t` under one limit, at most `rate * t` and what the bucket
//! holds go, and the part of the last operation that is larger than the bucket. I2: while something
//! waits, it goes at [`Gate::due`] and nothing goes before. I3: of one class, what came first goes
//! first; a class goes only while no lower one waits.

use std::collections::VecDeque;
use std::time::Duration;
use units::Now;
use volume::Class;

/// What may be used of a second.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Rates {
    /// Operations a second; `None`: any number. Not 0.
    pub iops: Option<u64>,
    /// Bytes a second; `None`: any number. Not 0.
    pub bytes_per_second: Option<u64>,
    /// So much time's worth of what was not used may be used at once; at least [`MOMENT`] counts.
    pub burst: Duration,
}

impl Rates {
    /// They limit nothing.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.iops.is_none() && self.bytes_per_second.is_none()
    }
}

/// What can be saved up in any case: timers that come late then cost nothing.
pub const MOMENT: Duration = Duration::from_millis(50);

const NANOS: i128 = 1_000_000_000;

/// Tokens are counted in billionths, so that a nanosecond adds `rate` of them and nothing is lost
/// by rounding.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    rate: i128,
    holds: i128,
    level: i128,
}

impl Bucket {
    fn new(rate: u64, burst: Duration, level: i128) -> Self {
        let rate = i128::from(rate);
        let nanos = i128::try_from(burst.max(MOMENT).as_nanos()).unwrap_or(i128::MAX);
        // At least one token, or slow rates would let nothing pass.
        let holds = rate.saturating_mul(nanos).max(NANOS);
        Self {
            rate,
            holds,
            level: level.min(holds),
        }
    }

    fn fill(&mut self, span: Duration) {
        let nanos = i128::try_from(span.as_nanos()).unwrap_or(i128::MAX);
        let more = self.rate.saturating_mul(nanos);
        self.level = self.level.saturating_add(more).min(self.holds);
    }

    /// What must be there before `cost` may go: an operation that is larger than the bucket goes
    /// when it is full, and leaves a debt.
    fn needs(&self, cost: u64) -> i128 {
        (i128::from(cost) * NANOS).min(self.holds)
    }

    /// How long until `cost` may go.
    fn wait(&self, cost: u64) -> Duration {
        let missing = self.needs(cost) - self.level;
        if missing <= 0 {
            return Duration::ZERO;
        }
        let nanos = (missing + self.rate - 1) / self.rate;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn take(&mut self, cost: u64) {
        self.level -= i128::from(cost) * NANOS;
    }
}

/// Names one that waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LimitWaiter(u64);

#[derive(Clone, Copy, Debug)]
struct Waiting {
    waiter: LimitWaiter,
    bytes: u64,
}

/// The buckets and the queue.
#[derive(Debug)]
pub struct Gate {
    iops: Option<Bucket>,
    bytes: Option<Bucket>,
    /// Until when the buckets are filled.
    at: Now,
    /// By class, in its order.
    queues: [VecDeque<Waiting>; 4],
    waiters: u64,
}

fn place(class: Class) -> usize {
    match class {
        Class::Foreground => 0,
        Class::Repair => 1,
        Class::Resynchronisation => 2,
        Class::Scrub => 3,
    }
}

impl Gate {
    /// Without a limit.
    #[must_use]
    pub fn new() -> Self {
        Self {
            iops: None,
            bytes: None,
            at: Now::ZERO,
            queues: Default::default(),
            waiters: 0,
        }
    }

    /// Changes the limit. What was saved up or owed stays, as far as the new buckets hold it; a
    /// bucket that was not there is empty.
    pub fn set(&mut self, now: Now, rates: &Rates) {
        self.fill(now);
        let bucket = |rate: Option<u64>, was: Option<Bucket>| {
            let rate = rate.filter(|rate| *rate > 0)?;
            let level = was.map_or(0, |was| was.level);
            Some(Bucket::new(rate, rates.burst, level))
        };
        self.iops = bucket(rates.iops, self.iops);
        self.bytes = bucket(rates.bytes_per_second, self.bytes);
    }

    fn fill(&mut self, now: Now) {
        // Clocks of cores are read one after the other: the newest counts.
        let span = now.since(self.at);
        self.at = self.at.max(now);
        for bucket in [&mut self.iops, &mut self.bytes].into_iter().flatten() {
            bucket.fill(span);
        }
    }

    /// An operation comes: `None`: it may go; else it waits under this name.
    pub fn arrive(&mut self, now: Now, class: Class, bytes: u64) -> Option<LimitWaiter> {
        self.fill(now);
        let place = place(class);
        let first = self.queues.iter().take(place + 1).all(VecDeque::is_empty);
        if first && self.wait(bytes).is_zero() {
            self.take(bytes);
            return None;
        }
        let waiter = LimitWaiter(self.waiters);
        self.waiters += 1;
        let queue = self.queues.get_mut(place).expect("a queue for each class");
        queue.push_back(Waiting { waiter, bytes });
        Some(waiter)
    }

    /// The next one that may go now.
    pub fn release(&mut self, now: Now) -> Option<LimitWaiter> {
        self.fill(now);
        let first = *self.first()?;
        if !self.wait(first.bytes).is_zero() {
            return None;
        }
        self.take(first.bytes);
        let queue = self.queues.iter_mut().find(|queue| !queue.is_empty());
        let gone = queue.and_then(VecDeque::pop_front);
        debug_assert_eq!(gone.map(|gone| gone.waiter), Some(first.waiter));
        Some(first.waiter)
    }

    /// Who goes next, and when.
    #[must_use]
    pub fn due(&self) -> Option<(LimitWaiter, Now)> {
        let first = self.first()?;
        Some((first.waiter, self.at.after(self.wait(first.bytes))))
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    fn first(&self) -> Option<&Waiting> {
        self.queues.iter().find_map(VecDeque::front)
    }

    fn wait(&self, bytes: u64) -> Duration {
        let iops = self.iops.map(|bucket| bucket.wait(1));
        let bytes = self.bytes.map(|bucket| bucket.wait(bytes));
        iops.max(bytes).unwrap_or_default()
    }

    fn take(&mut self, bytes: u64) {
        for (bucket, cost) in [(&mut self.iops, 1), (&mut self.bytes, bytes)] {
            if let Some(bucket) = bucket {
                bucket.take(cost);
            }
        }
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}
