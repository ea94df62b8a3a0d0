//! What a history records once in ten seconds of the LUNs that did something: percentiles of each
//! stage, and how many commands took how long. Pure.

use crate::together::Figures;
use history::{MAP_ROWS, Metric, map_row};
use manifest::pulse::LunStages;
use std::collections::{BTreeMap, BTreeSet};
use units::Histogram;

/// The whole, then network, queue and backend.
const STAGES: usize = 4;

/// How long commands of each LUN took until the last reading.
#[derive(Default)]
pub(crate) struct SlowReadings {
    before: BTreeMap<String, LunStages>,
    /// What all LUNs did since then.
    node: [[Histogram; STAGES]; 2],
}

/// p50 and p99 of network, queue and backend.
type Names = [(Metric, Metric); STAGES - 1];

macro_rules! stages {
    ($($stage:literal),*) => {
        [$((
            const { Metric::known(concat!($stage, "_p50")) },
            const { Metric::known(concat!($stage, "_p99")) },
        )),*]
    };
}

const NAMES: [Names; 2] = [
    stages!["read_network", "read_queue", "read_backend"],
    stages!["write_network", "write_queue", "write_backend"],
];

impl SlowReadings {
    /// What is recorded of a LUN; nothing where it did nothing, or is seen for the first time.
    pub(crate) fn of_lun(&mut self, name: &str, now: LunStages, figures: &mut Figures) {
        let Some(before) = self.before.get_mut(name) else {
            self.before.insert(name.to_owned(), now);
            return;
        };
        for ((op, now), before) in now.into_iter().enumerate().zip(before) {
            if now == *before {
                continue;
            }
            let since = [
                now.total.since(&before.total),
                now.network.since(&before.network),
                now.queue.since(&before.queue),
                now.backend.since(&before.backend),
            ];
            for (sum, since) in self.node[op].iter_mut().zip(&since) {
                sum.add(since);
            }
            put(figures, op, &since);
            *before = now;
        }
    }

    /// What is recorded of the node, after its LUNs. LUNs that are not among `known` are forgotten.
    pub(crate) fn of_node<'a>(
        &mut self,
        known: impl IntoIterator<Item = &'a str>,
        figures: &mut Figures,
    ) {
        let known: BTreeSet<&str> = known.into_iter().collect();
        self.before.retain(|name, _| known.contains(name.as_str()));
        for (op, sums) in std::mem::take(&mut self.node).into_iter().enumerate() {
            put(figures, op, &sums);
        }
    }
}

/// What came of one operation: 0 for reads, 1 for writes.
fn put(figures: &mut Figures, op: usize, since: &[Histogram; STAGES]) {
    for ((name_50, name_99), stage) in NAMES[op].iter().zip(&since[1..]) {
        if let Some([p50, p99]) = stage.quantiles([500, 990]) {
            figures.extend([(*name_50, Some(p50)), (*name_99, Some(p99))]);
        }
    }
    let mut rows = [0; MAP_ROWS];
    let buckets = since[0].buckets().iter().enumerate();
    for (bucket, count) in buckets.filter(|(_, count)| **count > 0) {
        rows[usize::from(map_row(Histogram::micros(bucket)))] += count;
    }
    let rows = rows.into_iter().zip(0..).filter(|(count, _)| *count > 0);
    figures.extend(rows.map(|(count, row)| (Metric::of_map(op == 1, row), Some(count))));
}

#[cfg(test)]
mod test {
    use super::*;
    use manifest::pulse::StageTimes;
    use std::time::Duration;

    fn took(micros: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for micros in micros {
            histogram.count(Duration::from_micros(*micros));
        }
        histogram
    }

    fn reads(total: &[u64], backend: &[u64]) -> LunStages {
        let read = StageTimes {
            total: took(total),
            backend: took(backend),
            ..StageTimes::default()
        };
        [read, StageTimes::default()]
    }

    fn of(figures: &Figures) -> BTreeMap<&'static str, u64> {
        let known = figures
            .iter()
            .filter_map(|(metric, figure)| Some((metric.name(), (*figure)?)));
        known.collect()
    }

    fn lun(slow: &mut SlowReadings, name: &str, now: LunStages) -> Figures {
        let mut figures = Figures::new();
        slow.of_lun(name, now, &mut figures);
        figures
    }

    #[test]
    fn only_what_came_since_the_last_time_is_recorded_and_nothing_of_who_did_nothing() {
        let mut slow = SlowReadings::default();
        assert!(lun(&mut slow, "a", reads(&[5; 9], &[4; 9])).is_empty());
        let now = || reads(&[&[5; 9][..], &[100, 100, 1000]].concat(), &[4; 12]);
        let figures = lun(&mut slow, "a", now());
        let wanted = [
            ("read_backend_p50", 4),
            ("read_backend_p99", 4),
            ("read_took_128us", 2),
            ("read_took_1024us", 1),
        ];
        assert_eq!(of(&figures), BTreeMap::from(wanted));
        assert!(lun(&mut slow, "a", now()).is_empty());
    }

    #[test]
    fn the_node_has_what_its_luns_have_together_and_forgets_those_that_are_gone() {
        let mut slow = SlowReadings::default();
        for name in ["a", "b"] {
            lun(&mut slow, name, reads(&[], &[]));
        }
        lun(&mut slow, "a", reads(&[100], &[90]));
        lun(&mut slow, "b", reads(&[100, 5], &[1, 1]));
        let mut figures = Figures::new();
        slow.of_node(["b"], &mut figures);
        let wanted = [
            ("read_backend_p50", 1),
            ("read_backend_p99", 96),
            ("read_took_8us", 1),
            ("read_took_128us", 2),
        ];
        assert_eq!(of(&figures), BTreeMap::from(wanted));
        let mut figures = Figures::new();
        slow.of_node(["b"], &mut figures);
        assert!(figures.is_empty());
        assert!(!slow.before.contains_key("a"));
    }
}
