//! How long commands took: the data plane's histograms as documents and metrics report them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::Histogram;

/// The upper bounds of the metrics' latency buckets, in microseconds: powers of two, which are
/// bounds of a [`units::Histogram`], too.
pub const LATENCY_BOUNDS_US: [u64; 10] = [
    64, 128, 256, 512, 1_024, 4_096, 16_384, 65_536, 1_048_576, 8_388_608,
];

/// How long commands took, by stage; what the stages are stands in `docs/metrics.md`.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(default)]
pub struct Stages {
    /// From the first byte of the command until the socket had the whole answer. Of reads and
    /// writes only.
    #[serde(skip_serializing_if = "Latency::is_empty")]
    pub total: Latency,
    /// Waiting for the host's bytes, and for the socket to take the answer. Of reads and writes
    /// only.
    #[serde(skip_serializing_if = "Latency::is_empty")]
    pub network: Latency,
    /// Waiting for admission, holds, memory. Of reads and writes only.
    #[serde(skip_serializing_if = "Latency::is_empty")]
    pub queue: Latency,
    /// What the journal took for each write that it answered: until it was stable there. Of writes
    /// only.
    #[serde(skip_serializing_if = "Latency::is_empty")]
    pub journal: Latency,
    /// What the storage took for each operation that it was given, but for writes that a journal
    /// answered.
    #[serde(skip_serializing_if = "Latency::is_empty")]
    pub backend: Latency,
}

impl Stages {
    /// The names that metrics and documents use.
    #[must_use]
    pub fn named(&self) -> [(&'static str, &Latency); 5] {
        [
            ("total", &self.total),
            ("network", &self.network),
            ("queue", &self.queue),
            ("journal", &self.journal),
            ("backend", &self.backend),
        ]
    }

    /// The same without buckets.
    #[must_use]
    pub fn summary(&self) -> Self {
        Self {
            total: self.total.summary(),
            network: self.network.summary(),
            queue: self.queue.summary(),
            journal: self.journal.summary(),
            backend: self.backend.summary(),
        }
    }
}

/// How long something took, since the daemon started.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Latency {
    /// How often it was counted.
    pub count: u64,
    /// All of them together, in microseconds.
    pub us_sum: u64,
    /// Pairs of a bound in microseconds and of how many took no longer, and longer than the bound
    /// before. Only buckets that have something are reported; the bound 2^25 has all that took
    /// longer still.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<(u64, u64)>,
}

impl Latency {
    /// As counted.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Self {
        let all = histogram.buckets();
        let taken = all.iter().filter(|count| **count > 0).count();
        // Many are made every second: their memory is asked for once.
        let mut buckets = Vec::with_capacity(taken);
        let counted = all.iter().enumerate().filter(|(_, count)| **count > 0);
        buckets.extend(counted.map(|(bucket, count)| (Histogram::micros(bucket), *count)));
        Self {
            count: buckets.iter().map(|(_, count)| count).sum(),
            us_sum: histogram.sum_nanos() / 1_000,
            buckets,
        }
    }

    /// Nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The same without buckets.
    #[must_use]
    pub fn summary(&self) -> Self {
        Self {
            buckets: Vec::new(),
            ..*self
        }
    }

    /// What was counted since `before`, an older figure of the same thing. Figures that went back
    /// count from zero.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        if before.count > self.count || before.us_sum > self.us_sum {
            return self.clone();
        }
        let mut older = before.buckets.iter().copied().peekable();
        let newer = self.buckets.iter().map(|&(bound, count)| {
            while older.next_if(|(at, _)| *at < bound).is_some() {}
            let had = older.next_if(|(at, _)| *at == bound);
            (bound, count.saturating_sub(had.map_or(0, |(_, had)| had)))
        });
        Self {
            count: self.count - before.count,
            us_sum: self.us_sum - before.us_sum,
            buckets: newer.filter(|(_, count)| *count > 0).collect(),
        }
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.us_sum = self.us_sum.saturating_add(other.us_sum);
        let mut all: BTreeMap<u64, u64> = self.buckets.iter().copied().collect();
        for (bound, count) in &other.buckets {
            *all.entry(*bound).or_default() += count;
        }
        self.buckets = all.into_iter().collect();
    }

    /// The bound that so many of a thousand did not exceed, in microseconds; `None` where nothing
    /// was counted.
    #[must_use]
    pub fn quantile(&self, per_mille: u64) -> Option<u64> {
        let wanted = self.count.saturating_mul(per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        let reached = self.buckets.iter().find(|(_, count)| {
            seen += count;
            seen >= wanted
        });
        reached.map(|(bound, _)| *bound)
    }

    /// The mean in microseconds; `None` where nothing was counted.
    #[must_use]
    pub fn mean(&self) -> Option<u64> {
        self.us_sum.checked_div(self.count)
    }

    /// The buckets put together to those of [`LATENCY_BOUNDS_US`], and one more for the rest.
    /// Counts by the bounds of [`LATENCY_BOUNDS_US`], and those above.
    #[must_use]
    pub fn rebinned(&self) -> [u64; LATENCY_BOUNDS_US.len() + 1] {
        let mut out = [0; LATENCY_BOUNDS_US.len() + 1];
        for (bound, count) in &self.buckets {
            let fits = |ours: &u64| bound <= ours;
            let at = LATENCY_BOUNDS_US.iter().position(fits);
            out[at.unwrap_or(LATENCY_BOUNDS_US.len())] += count;
        }
        out
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use std::time::Duration;

    fn counted(micros: &[u64]) -> Latency {
        let mut histogram = Histogram::default();
        for micros in micros {
            histogram.count(Duration::from_micros(*micros));
        }
        Latency::of(&histogram)
    }

    #[test]
    fn quantiles_are_bounds_that_so_many_did_not_exceed() {
        let many: Vec<u64> = (1..=1000).collect();
        let all = counted(&many);
        assert_eq!(
            (all.count, all.us_sum, all.mean()),
            (1000, 500_500, Some(500))
        );
        for (per_mille, least, most) in [(500, 500, 640), (990, 990, 1024), (1, 1, 1)] {
            let reported = all.quantile(per_mille).unwrap();
            assert!(
                (least..=most).contains(&reported),
                "{per_mille}: {reported}"
            );
        }
        assert_eq!(
            (counted(&[]).quantile(500), counted(&[]).mean()),
            (None, None)
        );
    }

    #[test]
    fn what_came_since_is_the_difference_and_a_restart_counts_from_zero() {
        let (before, after) = (counted(&[5, 100]), counted(&[5, 100, 100, 9000]));
        let since = after.since(&before);
        assert_eq!(since, counted(&[100, 9000]));
        assert_eq!(before.since(&after), before, "another daemon");
        let mut sum = since;
        sum.add(&before);
        assert_eq!(sum, after);
    }

    #[test]
    fn every_bucket_finds_its_place_among_those_of_the_metrics() {
        let all = counted(&[1, 64, 65, 4096, 4097, 60_000_000]);
        assert_eq!(all.rebinned(), [2, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1]);
    }
}
