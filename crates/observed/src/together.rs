//! How long operations of several LUNs or sessions took, as one: pure.

use history::Metric;
use manifest::latency::Latency;
use units::Histogram;
use units::histogram::Bin;

pub(crate) type Figures = Vec<(Metric, Option<u64>)>;

/// How long operations of several LUNs or sessions took.
#[derive(Default)]
pub(crate) struct Together(Histogram);

impl Together {
    pub(crate) fn add(&mut self, since: &Latency) {
        for (bound, count) in &since.buckets {
            // What took as long as its bound says is in the same bucket.
            let bin = Bin::of_nanos(bound.saturating_mul(1_000));
            self.0.count_many(bin, *count);
        }
    }

    pub(crate) fn put(&self, figures: &mut Figures, names: &[Metric; 5]) {
        put(&self.0, figures, names);
    }
}

/// The percentiles of what took so long, where there is any.
pub(crate) fn put(all: &Histogram, figures: &mut Figures, names: &[Metric; 5]) {
    if let Some([p50, p99]) = all.quantiles([500, 990]) {
        figures.push((names[0], Some(p50)));
        figures.push((names[1], Some(p99)));
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use std::time::Duration;

    #[test]
    fn each_bucket_stays_itself_and_percentiles_are_those_of_all() {
        let mut all = Histogram::default();
        let mut together = Together::default();
        for micros in (0..26).flat_map(|power| [1_u64 << power, (1 << power) + 1, 3 << power]) {
            let mut histogram = Histogram::default();
            histogram.count(Duration::from_micros(micros));
            all.add(&histogram);
            together.add(&Latency::of(&histogram));
        }
        assert_eq!(together.0.buckets(), all.buckets());
        let mut figures = Figures::new();
        let names = [const { Metric::known("read_latency_p50") }; 5];
        together.put(&mut figures, &names);
        let figures: Vec<u64> = figures.into_iter().filter_map(|(_, it)| it).collect();
        assert_eq!(Some(figures), all.quantiles([500, 990]).map(Vec::from));
        let mut figures = Figures::new();
        Together::default().put(&mut figures, &names);
        assert!(figures.is_empty());
    }
}
