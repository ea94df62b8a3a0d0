//! What one thread measures on one target.

use hdrhistogram::Histogram;
use std::time::Duration;
use units::Now;

/// The longest latency that is distinguished, in nanoseconds: an hour.
const LATENCY_MAX: u64 = 3_600_000_000_000;

/// Reading or writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Reading.
    Read,
    /// Writing.
    Write,
}

/// What was read, or what was written.
#[derive(Clone, Debug)]
pub struct Side {
    /// Operations.
    pub ios: u64,
    /// Bytes of operations that ended well.
    pub bytes: u64,
    /// Latencies in nanoseconds, to three digits.
    pub latency: Histogram<u64>,
}

impl Default for Side {
    fn default() -> Self {
        let latency = Histogram::new_with_bounds(1, LATENCY_MAX, 3);
        Self {
            ios: 0,
            bytes: 0,
            latency: latency.expect("the bounds are fixed and right"),
        }
    }
}

impl Side {
    /// Adds what another one measured.
    ///
    /// # Panics
    /// Never: all have the same bounds.
    pub fn add(&mut self, other: &Self) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.latency
            .add(&other.latency)
            .expect("all have the same bounds");
    }

    /// What was measured since it was `earlier`; nothing where that is not an earlier one of the
    /// same.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut out = self.clone();
        let subtracted = out.latency.subtract(&earlier.latency);
        if subtracted.is_err() || self.ios < earlier.ios {
            return Self::default();
        }
        out.ios -= earlier.ios;
        out.bytes = out.bytes.saturating_sub(earlier.bytes);
        out
    }

    /// A latency in milliseconds; none where nothing was measured.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "an hour of nanoseconds is exact"
    )]
    pub fn percentile(&self, percentile: f64) -> Option<f64> {
        let nanos = match percentile {
            p if p <= 0.0 => self.latency.min(),
            p if p >= 100.0 => self.latency.max(),
            p => self.latency.value_at_percentile(p),
        };
        (!self.latency.is_empty()).then_some(nanos as f64 / 1e6)
    }

    /// The mean latency in milliseconds.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (!self.latency.is_empty()).then(|| self.latency.mean() / 1e6)
    }

    /// The standard deviation of latencies in milliseconds.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        (!self.latency.is_empty()).then(|| self.latency.stdev() / 1e6)
    }
}

/// Operations of one kind in one interval, with their latencies in nanoseconds.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Spread {
    /// Operations.
    pub count: u64,
    sum: f64,
    squares: f64,
    shortest: u64,
    longest: u64,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "an hour of nanoseconds is exact, and so is any count of a run"
)]
impl Spread {
    /// Counts an operation that took so many nanoseconds.
    pub fn record(&mut self, nanos: u64) {
        self.shortest = if self.count == 0 {
            nanos
        } else {
            self.shortest.min(nanos)
        };
        self.count += 1;
        self.longest = self.longest.max(nanos);
        let nanos = nanos as f64;
        self.sum += nanos;
        self.squares += nanos * nanos;
    }

    /// Adds what another one counted.
    pub fn add(&mut self, other: &Self) {
        self.shortest = match (self.count, other.count) {
            (_, 0) => self.shortest,
            (0, _) => other.shortest,
            _ => self.shortest.min(other.shortest),
        };
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
        self.longest = self.longest.max(other.longest);
    }

    /// The shortest latency in nanoseconds; 0 where nothing ended.
    #[must_use]
    pub fn shortest(&self) -> u64 {
        self.shortest
    }

    /// The longest latency in nanoseconds; 0 where nothing ended.
    #[must_use]
    pub fn longest(&self) -> u64 {
        self.longest
    }

    /// The mean latency in nanoseconds; 0 where nothing ended.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }

    /// The standard deviation of latencies in nanoseconds; 0 where nothing ended.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        let count = self.count.max(1) as f64;
        // Rounding may leave a little less than nothing.
        let variance = (self.squares - self.sum * self.sum / count) / count;
        variance.max(0.0).sqrt()
    }
}

/// What ended in one interval of the series.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Interval {
    /// Count and spread of the reads that ended in it.
    pub read: Spread,
    /// Count and spread of the writes that ended in it.
    pub write: Spread,
    /// Bytes of both.
    pub bytes: u64,
}

impl Interval {
    /// Adds what another one measured.
    pub fn add(&mut self, other: &Self) {
        self.read.add(&other.read);
        self.write.add(&other.write);
        self.bytes += other.bytes;
    }

    /// Operations of both kinds.
    #[must_use]
    pub fn ios(&self) -> u64 {
        self.read.count + self.write.count
    }

    /// The longest latency of both, in nanoseconds.
    #[must_use]
    pub fn longest(&self) -> u64 {
        self.read.longest.max(self.write.longest)
    }
}

/// Counts, latencies, the series and stalls.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// What counts ends from here on,
    from: Now,
    /// and before this.
    to: Now,
    interval: u64,
    pub(crate) read: Side,
    pub(crate) write: Side,
    pub(crate) series: Vec<Interval>,
    /// The interval that is counted now: its number, and where it ends.
    current: (usize, u64),
    /// Since when something is in flight and nothing has ended.
    quiet_since: Option<Now>,
    in_flight: u32,
    /// The longest such time.
    pub(crate) stall: Duration,
    /// Latencies of all that ended, together; in nanoseconds.
    pub(crate) time_in_flight: u64,
}

impl Meter {
    pub(crate) fn new(from: Now, to: Now, interval: Duration) -> Self {
        let interval = u64::try_from(interval.as_nanos())
            .unwrap_or(u64::MAX)
            .max(1);
        let count = to.0.saturating_sub(from.0).div_ceil(interval).min(1 << 20);
        let count = usize::try_from(count).expect("at most a million");
        Self {
            from,
            to,
            interval,
            read: Side::default(),
            write: Side::default(),
            series: vec![Interval::default(); count],
            current: (0, from.0.saturating_add(interval)),
            quiet_since: None,
            in_flight: 0,
            stall: Duration::ZERO,
            time_in_flight: 0,
        }
    }

    pub(crate) fn began(&mut self, now: Now) {
        self.in_flight += 1;
        if self.quiet_since.is_none() {
            self.quiet_since = Some(now);
        }
    }

    /// Something ended, well or not.
    fn moved(&mut self, now: Now) {
        self.in_flight -= 1;
        self.quiet_until(now);
        self.quiet_since = (self.in_flight > 0).then_some(now);
    }

    /// Nothing has ended until now.
    fn quiet_until(&mut self, now: Now) {
        if let Some(since) = self.quiet_since {
            let quiet = now.min(self.to).since(since.max(self.from));
            self.stall = self.stall.max(quiet);
        }
    }

    pub(crate) fn failed(&mut self, now: Now) {
        self.moved(now);
    }

    pub(crate) fn ended(&mut self, kind: Kind, bytes: u64, begun: Now, now: Now) {
        self.moved(now);
        if now < self.from || now >= self.to {
            return;
        }
        let took = now.0 - begun.0;
        let side = match kind {
            Kind::Read => &mut self.read,
            Kind::Write => &mut self.write,
        };
        side.ios += 1;
        side.bytes += bytes;
        side.latency.saturating_record(took.max(1));
        self.time_in_flight = self.time_in_flight.saturating_add(took);
        while now.0 >= self.current.1 {
            self.current.0 += 1;
            self.current.1 = self.current.1.saturating_add(self.interval);
        }
        if let Some(interval) = self.series.get_mut(self.current.0) {
            let spread = match kind {
                Kind::Read => &mut interval.read,
                Kind::Write => &mut interval.write,
            };
            spread.record(took);
            interval.bytes += bytes;
        }
    }

    /// The run is over; what is still in flight has been so until the end.
    pub(crate) fn finish(&mut self, now: Now) {
        self.quiet_until(now);
    }
}

#[cfg(test)]
mod test {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn meter() -> Meter {
        Meter::new(Now(SECOND), Now(4 * SECOND), Duration::from_secs(1))
    }

    fn one(meter: &mut Meter, kind: Kind, begun: u64, ended: u64) {
        meter.began(Now(begun));
        meter.ended(kind, 512, Now(begun), Now(ended));
    }

    #[test]
    fn only_what_ends_inside_the_window_counts() {
        let mut meter = meter();
        one(&mut meter, Kind::Read, 0, SECOND - 1);
        one(&mut meter, Kind::Read, 0, SECOND);
        one(&mut meter, Kind::Write, SECOND, 4 * SECOND - 1);
        one(&mut meter, Kind::Write, SECOND, 4 * SECOND);
        assert_eq!((meter.read.ios, meter.write.ios), (1, 1));
        assert_eq!(meter.series[0].read.count, 1);
        let last = meter.series[2];
        assert_eq!((last.read.count, last.write.count, last.bytes), (0, 1, 512));
        assert_eq!(last.longest(), 3 * SECOND - 1);
    }

    #[test]
    fn latencies_of_an_interval_have_bounds_mean_and_deviation() {
        let mut all = Spread::default();
        assert_eq!((all.shortest(), all.longest()), (0, 0));
        let mut part = Spread::default();
        [4, 6].iter().for_each(|nanos| all.record(*nanos));
        [1, 9].iter().for_each(|nanos| part.record(*nanos));
        all.add(&part);
        all.add(&Spread::default());
        assert_eq!((all.count, all.shortest(), all.longest()), (4, 1, 9));
        assert!((all.mean() - 5.0).abs() < 1e-9);
        // (1 + 1 + 16 + 16) / 4
        assert!((all.deviation() - 8.5_f64.sqrt()).abs() < 1e-9);
        let mut first = Spread::default();
        first.add(&part);
        assert_eq!(
            first.shortest(),
            1,
            "what nothing was added to has no shortest"
        );
    }

    #[test]
    fn a_stall_is_the_longest_time_without_an_end_while_something_is_in_flight() {
        let mut meter = meter();
        // Idle from 1.1 s to 2 s: no stall.
        one(&mut meter, Kind::Read, SECOND, SECOND + SECOND / 10);
        meter.began(Now(2 * SECOND));
        meter.began(Now(2 * SECOND));
        meter.ended(
            Kind::Read,
            512,
            Now(2 * SECOND),
            Now(2 * SECOND + SECOND / 2),
        );
        assert_eq!(meter.stall, Duration::from_millis(500));
        // The second one never comes back.
        meter.finish(Now(9 * SECOND));
        assert_eq!(meter.stall, Duration::from_millis(1500));
    }

    #[test]
    fn percentiles_are_right_to_three_digits() {
        let mut side = Side::default();
        for nanos in 1..=100_000_u64 {
            side.latency.saturating_record(nanos * 10);
        }
        for (percentile, exact) in [(50.0, 0.5), (99.0, 0.99), (99.9, 0.999), (100.0, 1.0)] {
            let shown = side.percentile(percentile).unwrap();
            assert!((shown / exact - 1.0).abs() < 0.002, "{percentile}: {shown}");
        }
        assert!((side.mean().unwrap() - 0.500_005).abs() < 0.001);
        assert!((side.deviation().unwrap() - 0.288_675).abs() < 0.001);
    }
}
