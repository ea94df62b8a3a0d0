//! How often something took how long.
//!
//! ```text
//!   microseconds   0  1  2  3 | 4  5  6  7 | 8-9 10-11 12-13 14-15 | 16-19 20-23 24-27 28-31 | ...
//!   bucket         0  1  2  3 | 4  5  6  7 | 8   9     10    11    | 12    13    14    15    | ...
//! ```
//!
//! Each power of two has four buckets of equal width, so that a figure read from it is off by a
//! fifth at most, from one microsecond to half a minute. Counting is a shift and an addition. A
//! histogram that has counted nothing takes no memory for its buckets.

use core::time::Duration;

/// Buckets of a histogram; see [`Histogram::bound`].
pub const BUCKETS: usize = 96;

/// Buckets of each power of two.
const EACH: usize = 4;

/// How often answers took how long.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    buckets: Option<Box<[u64; BUCKETS]>>,
    sum_nanos: u64,
}

impl core::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let all = Duration::from_nanos(self.sum_nanos);
        write!(f, "Histogram({} in {all:?})", self.total())
    }
}

/// A time with the bucket of a histogram that it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bin {
    bucket: u8,
    nanos: u64,
}

impl Bin {
    /// Of which count of a histogram it is one, from 0.
    #[must_use]
    pub fn bucket(self) -> usize {
        usize::from(self.bucket)
    }

    /// The time, in nanoseconds.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.nanos
    }

    /// The bin of a time.
    #[must_use]
    pub fn of(took: Duration) -> Self {
        Self::of_nanos(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The bin of a time in nanoseconds.
    #[must_use]
    pub fn of_nanos(nanos: u64) -> Self {
        // A bucket has what took no longer than its bound: exactly that long belongs to it, not to
        // the next one.
        let micros = nanos.saturating_sub(1) / 1000;
        let bucket = match micros.checked_ilog2() {
            None | Some(0 | 1) => micros,
            Some(power) => u64::from(power - 1) * EACH as u64 + ((micros >> (power - 2)) & 3),
        };
        let last = BUCKETS as u64 - 1;
        Self {
            bucket: u8::try_from(bucket.min(last)).expect("fewer than 256 buckets"),
            nanos,
        }
    }
}

/// So many of a thousand did not exceed what bound, in whole microseconds; `None` where nothing was
/// counted. `counts`: of each bucket how many, in the order of the buckets; one may be there
/// several times.
#[must_use]
pub fn quantiles_of<const N: usize>(counts: &[(u8, u32)], per_mille: [u64; N]) -> Option<[u64; N]> {
    let all: u64 = counts.iter().map(|(_, count)| u64::from(*count)).sum();
    let last = counts.last().filter(|_| all > 0)?.0;
    Some(per_mille.map(|per_mille| {
        let wanted = wanted(all, per_mille);
        let mut seen = 0;
        let reached = counts.iter().find(|(_, count)| {
            seen += u64::from(*count);
            seen >= wanted
        });
        Histogram::micros(usize::from(reached.map_or(last, |(bucket, _)| *bucket)))
    }))
}

/// The place of a quantile among so many.
fn wanted(all: u64, per_mille: u64) -> u64 {
    all.saturating_mul(per_mille).div_ceil(1000).max(1)
}

/// What a histogram had counted when somebody probed it last: half as large as the histogram,
/// for whoever probes again before a bucket has counted 2^32 more.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Glance(Option<Box<[u32; BUCKETS]>>);

/// A count without what is above 2^32.
#[expect(clippy::cast_possible_truncation, reason = "that is what is wanted")]
const fn low(count: u64) -> u32 {
    count as u32
}

impl Glance {
    /// Puts what `now` has counted since the last probe behind `news`, bucket by bucket; the next
    /// probe begins there. Nothing is copied. Returns how many there were.
    pub fn probe(&mut self, now: &Histogram, news: &mut Vec<(u8, u32)>) -> u64 {
        let Some(now) = &now.buckets else { return 0 };
        let was = self.0.get_or_insert_with(|| Box::new([0; BUCKETS]));
        let mut all = 0;
        let eights = now.chunks_exact(8).zip(was.chunks_exact_mut(8));
        for ((now, was), first) in eights.zip((0..).step_by(8)) {
            let is_as_it_was = now.iter().zip(&*was).all(|(now, was)| low(*now) == *was);
            if is_as_it_was {
                continue;
            }
            for ((now, was), bucket) in now.iter().zip(was).zip(first..) {
                let new = low(*now).wrapping_sub(*was);
                if new > 0 {
                    news.push((bucket, new));
                    all += u64::from(new);
                    *was = low(*now);
                }
            }
        }
        all
    }
}

/// Counts by bucket, in the order of the buckets.
pub type Counts = Vec<(u8, u32)>;

/// What the histograms of several things counted since somebody probed them last, on one core.
/// Each thing has `K` of them.
#[derive(Default, Debug)]
pub struct News<const K: usize> {
    /// How many of `counts` each has, thing by thing.
    own: Vec<[usize; K]>,
    counts: Counts,
}

impl<const K: usize> News<K> {
    /// Probes the next thing. A first probe, with nothing in `seen`, finds no news.
    pub fn probe(&mut self, seen: &mut Option<Box<[Glance; K]>>, now: [&Histogram; K]) {
        let is_first = seen.is_none();
        let seen =
            seen.get_or_insert_with(|| Box::new(core::array::from_fn(|_| Glance::default())));
        let mut own = [0; K];
        for ((seen, now), own) in seen.iter_mut().zip(now).zip(&mut own) {
            let had = self.counts.len();
            seen.probe(now, &mut self.counts);
            if is_first {
                self.counts.truncate(had);
            }
            *own = self.counts.len() - had;
        }
        self.own.push(own);
    }

    /// The next thing is not on this core.
    pub fn nothing(&mut self) {
        self.own.push([0; K]);
    }
}

/// What several cores counted, thing by thing.
#[must_use]
pub fn together<const K: usize>(cores: &[News<K>]) -> Vec<[Counts; K]> {
    let things = cores.first().map_or(0, |core| core.own.len());
    let mut all: Vec<[Counts; K]> = Vec::with_capacity(things);
    all.resize_with(things, || core::array::from_fn(|_| Counts::new()));
    for core in cores {
        let mut rest = &core.counts[..];
        let own = core.own.iter().flatten();
        for (sum, own) in all.iter_mut().flatten().zip(own) {
            let (here, others) = rest.split_at(*own);
            sum.extend_from_slice(here);
            rest = others;
        }
    }
    if cores.len() > 1 {
        for sum in all.iter_mut().flatten() {
            sum.sort_unstable_by_key(|(bucket, _)| *bucket);
        }
    }
    all
}

impl Histogram {
    /// The longest time of a bucket; `None` for the last one, which has all that took longer still.
    /// Among them are all powers of two of microseconds below 2^25.
    #[must_use]
    pub fn bound(bucket: usize) -> Option<Duration> {
        (bucket + 1 < BUCKETS).then(|| Duration::from_micros(Self::micros(bucket)))
    }

    /// Counts one.
    pub fn count(&mut self, took: Duration) {
        self.count_at(Bin::of(took));
    }

    /// Counts one whose bin is known.
    pub fn count_at(&mut self, bin: Bin) {
        self.count_many(bin, 1);
    }

    /// Counts `count` that took the same time.
    pub fn count_many(&mut self, bin: Bin, count: u64) {
        let buckets = self.buckets.get_or_insert_with(|| Box::new([0; BUCKETS]));
        buckets[usize::from(bin.bucket)] += count;
        let nanos = bin.nanos.saturating_mul(count);
        self.sum_nanos = self.sum_nanos.saturating_add(nanos);
    }

    /// Adds counts, by their buckets. How long each of them took is not known, and the sum stays.
    pub fn add_counts(&mut self, counts: &[(u8, u32)]) {
        if counts.is_empty() {
            return;
        }
        let buckets = self.buckets.get_or_insert_with(|| Box::new([0; BUCKETS]));
        for (bucket, count) in counts {
            buckets[usize::from(*bucket).min(BUCKETS - 1)] += u64::from(*count);
        }
    }

    /// Adds how many there were of each bucket. How long each of them took is not known, and the
    /// sum stays.
    pub fn add_each(&mut self, counts: &[u32; BUCKETS]) {
        if counts.iter().all(|count| *count == 0) {
            return;
        }
        let buckets = self.buckets.get_or_insert_with(|| Box::new([0; BUCKETS]));
        for (bucket, count) in buckets.iter_mut().zip(counts) {
            *bucket += u64::from(*count);
        }
    }

    /// Adds what another one has counted.
    pub fn add(&mut self, other: &Self) {
        let Some(theirs) = &other.buckets else { return };
        let ours = self.buckets.get_or_insert_with(|| Box::new([0; BUCKETS]));
        for (ours, theirs) in ours.iter_mut().zip(theirs.iter()) {
            *ours += theirs;
        }
        self.sum_nanos = self.sum_nanos.saturating_add(other.sum_nanos);
    }

    /// What was counted since `before`, an older figure of the same thing; all of it where that is
    /// not so.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let (Some(now), Some(was)) = (&self.buckets, &before.buckets) else {
            return self.clone();
        };
        let went_back = self.sum_nanos < before.sum_nanos
            || now.iter().zip(was.iter()).any(|(now, was)| now < was);
        if went_back {
            return self.clone();
        }
        let mut new = now.clone();
        for (new, was) in new.iter_mut().zip(was.iter()) {
            *new -= was;
        }
        Self {
            buckets: Some(new),
            sum_nanos: self.sum_nanos - before.sum_nanos,
        }
    }

    /// The bounds that so many of a thousand did not exceed, in whole microseconds; `None` where
    /// nothing was counted. The last bucket has 2^25.
    #[must_use]
    pub fn quantiles<const N: usize>(&self, per_mille: [u64; N]) -> Option<[u64; N]> {
        let buckets = self.buckets.as_ref()?;
        let all: u64 = buckets.iter().sum();
        if all == 0 {
            return None;
        }
        Some(per_mille.map(|per_mille| {
            let wanted = wanted(all, per_mille);
            let mut seen = 0;
            let reached = buckets.iter().position(|count| {
                seen += count;
                seen >= wanted
            });
            Self::micros(reached.unwrap_or(BUCKETS - 1))
        }))
    }

    /// The bound of a bucket in microseconds; 2^25 of the last one.
    #[must_use]
    pub fn micros(bucket: usize) -> u64 {
        if bucket + 1 >= BUCKETS {
            1 << 25
        } else if bucket < EACH {
            bucket as u64 + 1
        } else {
            ((EACH + bucket % EACH + 1) as u64) << (bucket / EACH - 1)
        }
    }

    /// How many took no longer than [`Histogram::bound`] of the bucket, and longer than that of the
    /// one before.
    #[must_use]
    pub fn buckets(&self) -> &[u64; BUCKETS] {
        self.buckets.as_deref().unwrap_or(&[0; BUCKETS])
    }

    /// How many there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.buckets().iter().sum()
    }

    /// All of them together, in nanoseconds.
    #[must_use]
    pub fn sum_nanos(&self) -> u64 {
        self.sum_nanos
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn bucket(took: Duration) -> usize {
        usize::from(Bin::of(took).bucket)
    }

    #[test]
    fn a_time_lies_between_the_bounds_of_its_bucket_and_of_the_one_before() {
        let mut nanos = 0;
        while nanos < 70_000_000_000 {
            let took = Duration::from_nanos(nanos);
            let at = bucket(took);
            assert!(Histogram::bound(at).is_none_or(|bound| took <= bound));
            let before = at.checked_sub(1).and_then(Histogram::bound);
            assert!(before.is_none_or(|bound| took > bound), "{took:?} in {at}");
            nanos += 1 + nanos / 37;
        }
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
    }

    #[test]
    fn bounds_rise_by_a_quarter_at_most_and_powers_of_two_are_among_them() {
        for at in 4..BUCKETS - 2 {
            let (this, next) = (Histogram::bound(at), Histogram::bound(at + 1));
            let (this, next) = (this.unwrap(), next.unwrap());
            assert!(this < next && next <= this * 5 / 4, "{this:?} {next:?}");
        }
        for power in 0..25 {
            let took = Duration::from_micros(1 << power);
            assert_eq!(Histogram::bound(bucket(took)), Some(took));
        }
    }

    #[test]
    fn what_came_since_is_the_difference_and_its_quantiles_are_bounds() {
        let of = |micros: &[u64]| {
            let mut all = Histogram::default();
            for micros in micros {
                all.count(Duration::from_micros(*micros));
            }
            all
        };
        let (before, after) = (of(&[5, 100]), of(&[5, 100, 64, 1000, 1000]));
        let since = after.since(&before);
        assert_eq!(since, of(&[64, 1000, 1000]));
        assert_eq!(
            since.quantiles([1, 333, 500, 990]),
            Some([64, 64, 1024, 1024])
        );
        assert_eq!(before.since(&after), before, "it went back: another one");
        assert_eq!(after.since(&Histogram::default()), after);
        assert_eq!(before.since(&before).quantiles([500]), None);
        assert_eq!(of(&[]).quantiles([500]), None);
        assert_eq!(of(&[u64::MAX / 2000]).quantiles([500]), Some([1 << 25]));
    }

    #[test]
    fn a_glance_sees_what_a_copy_of_before_would_say() {
        let (mut now, mut glance) = (Histogram::default(), Glance::default());
        let mut seed = 88_172_645_463_325_252_u64;
        for round in 0..200 {
            let before = now.clone();
            for _ in 0..round % 7 {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                let bin = Bin::of_nanos(seed >> (20 + seed % 40));
                // Several times more than 2^32 in all, and fewer at once.
                now.count_many(bin, seed % 5 * 100_000_000);
            }
            let since = now.since(&before);
            let mut news = Vec::new();
            let all = glance.probe(&now, &mut news);
            assert_eq!(all, since.total());
            assert_eq!(
                quantiles_of(&news, [1, 500, 990]),
                since.quantiles([1, 500, 990])
            );
            let mut sum = Histogram::default();
            sum.add_counts(&news);
            assert_eq!(sum.buckets(), since.buckets());
            let mut each = [0; BUCKETS];
            for (bucket, count) in &news {
                each[usize::from(*bucket)] = *count;
            }
            sum.add_each(&each);
            assert_eq!(sum.total(), 2 * since.total());
        }
    }

    #[test]
    fn news_of_several_cores_are_what_they_counted_since_the_first_probe() {
        let one = |nanos: u64, count| {
            let mut histogram = Histogram::default();
            histogram.count_many(Bin::of_nanos(nanos), count);
            histogram
        };
        let none = Histogram::default();
        let mut seen = [None, None];
        let mut probe = |first: [&Histogram; 2], second: [&Histogram; 2]| {
            let [a, b] = &mut seen;
            let (mut here, mut there) = (News::default(), News::default());
            here.probe(a, first);
            here.nothing();
            there.nothing();
            there.probe(b, second);
            together(&[here, there])
        };
        let nothing: [[Counts; 2]; 2] = Default::default();
        assert_eq!(probe([&one(900, 3), &none], [&none, &one(900, 1)]), nothing);
        let (mut more, mut others) = (one(900, 5), one(900, 1));
        more.count(Duration::from_micros(2));
        others.count(Duration::from_secs(99));
        let news = probe([&more, &none], [&one(1, 7), &others]);
        let wanted = [
            [vec![(0, 2), (1, 1)], vec![]],
            [vec![(0, 7)], vec![(95, 1)]],
        ];
        assert_eq!(news, wanted);
        assert_eq!(probe([&more, &none], [&one(1, 7), &others]), nothing);
    }

    #[test]
    fn counts_of_several_are_as_one() {
        assert_eq!(quantiles_of(&[], [500]), None);
        let counts = [(3, 1), (3, 1), (9, 2), (95, 1)];
        assert_eq!(
            quantiles_of(&counts, [400, 401, 990]),
            Some([4, 12, 1 << 25])
        );
    }

    #[test]
    fn sums_have_what_their_parts_have_and_nothing_takes_nothing() {
        let (mut one, mut two) = (Histogram::default(), Histogram::default());
        one.add(&two);
        assert_eq!(one, Histogram::default());
        two.count(Duration::from_nanos(1500));
        two.count_at(Bin::of(Duration::from_secs(3600)));
        one.add(&two);
        one.add(&two);
        assert_eq!((one.total(), one.sum_nanos()), (4, 2 * 3_600_000_001_500));
        assert_eq!((one.buckets()[1], one.buckets()[BUCKETS - 1]), (2, 2));
    }
}
