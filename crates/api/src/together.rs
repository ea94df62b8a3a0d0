//! How long operations of several LUNs or sessions took, as one: pure.

use history::Metric;
use manifest::latency::Latency;
use std::collections::BTreeMap;

pub(crate) type Figures = Vec<(Metric, Option<u64>)>;

/// How long operations of several LUNs or sessions took.
#[derive(Default)]
pub(crate) struct Together(BTreeMap<u64, u64>);

impl Together {
    pub(crate) fn add(&mut self, since: &Latency) {
        for (bound, count) in &since.buckets {
            *self.0.entry(*bound).or_default() += count;
        }
    }

    /// As if they were of one LUN; their sum is not known.
    pub(crate) fn all(&self) -> Latency {
        Latency {
            count: self.0.values().sum(),
            us_sum: 0,
            buckets: self
                .0
                .iter()
                .map(|(bound, count)| (*bound, *count))
                .collect(),
        }
    }

    /// Their percentiles, where there are any.
    pub(crate) fn put(&self, figures: &mut Figures, names: &[Metric; 5]) {
        if !self.0.is_empty() {
            let all = self.all();
            figures.push((names[0], all.quantile(500)));
            figures.push((names[1], all.quantile(990)));
        }
    }
}
