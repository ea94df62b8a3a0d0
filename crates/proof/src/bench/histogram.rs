//! Times in buckets of equal relative width, so that recording one costs a few instructions.

/// Parts of each power of two: a value is known to one part in this many.
const PARTS: u64 = 64;
const BUCKETS: usize = 64 * 64;

/// How often each time was seen.
pub struct Histogram {
    counts: Box<[u64]>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS].into(),
            total: 0,
        }
    }
}

/// Values below `PARTS` have a bucket each; then every power of two has `PARTS`.
fn bucket(nanos: u64) -> usize {
    let above = u64::from(nanos.checked_ilog2().unwrap_or(0).saturating_sub(6));
    let index = above * PARTS + (nanos >> above);
    usize::try_from(index).unwrap_or(BUCKETS).min(BUCKETS - 1)
}

fn middle(index: usize) -> f64 {
    let index = u32::try_from(index).expect("there are few buckets");
    let parts = u32::try_from(PARTS).expect("a small number");
    let above = (index / parts).saturating_sub(1);
    let start = f64::from(index - above * parts);
    (start + 0.5) * f64::from(above).exp2()
}

impl Histogram {
    /// Counts a time.
    pub fn add(&mut self, nanos: u64) {
        self.counts[bucket(nanos)] += 1;
        self.total += 1;
    }

    /// Times that were counted.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.total = 0;
    }

    /// The time, in nanoseconds, that `thousandths` of all were not above.
    #[must_use]
    pub fn quantile(&self, thousandths: u64) -> f64 {
        let wanted = (self.total * thousandths).div_ceil(1000).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return middle(index);
            }
        }
        0.0
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_quantile_is_right_to_one_part_in_sixty_four() {
        let mut histogram = Histogram::default();
        (1..=100_000).for_each(|n| histogram.add(n * 10));
        for (thousandths, exact) in [(500, 500_000.0), (990, 990_000.0), (1, 1_000.0)] {
            let found = histogram.quantile(thousandths);
            let off: f64 = (found - exact) / exact;
            assert!(off.abs() < 1.0 / 64.0, "{found} for {exact}");
        }
    }

    #[test]
    fn buckets_rise_with_the_time() {
        let times = (0..5000).chain((13..60).map(|power| 1u64 << power));
        let buckets: Vec<usize> = times.map(bucket).collect();
        assert!(buckets.is_sorted());
        assert!(buckets.iter().all(|&bucket| bucket < BUCKETS));
    }
}
