//! What a history records once in ten seconds of LUNs, hosts and targets that did something:
//! percentiles of each stage, and of LUNs how many commands took how long. Pure.

use crate::together::Figures;
use history::{Kind, MAP_ROWS, Metric, map_row};
use manifest::pulse::{LunStages, SessionStages};
use std::collections::BTreeMap;
use units::Histogram;

/// p50 and p99 of network, queue and backend.
type Names = [(Metric, Metric); 3];

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

/// The same of the journal, which answers writes only.
const JOURNAL: (Metric, Metric) = (
    const { Metric::known("write_journal_p50") },
    const { Metric::known("write_journal_p99") },
);

/// What is recorded of a LUN; nothing where it did nothing.
pub(crate) fn of_lun(stages: &LunStages, figures: &mut Figures) {
    for (op, it) in stages.iter().enumerate() {
        put(figures, op, [it.network, it.queue, it.backend]);
        put_stage(figures, JOURNAL, it.journal);
        let counts = it.total.iter();
        put_rows(
            figures,
            op,
            counts.map(|(bucket, count)| (usize::from(*bucket), u64::from(*count))),
        );
    }
}

/// What is recorded of the node: total, network, queue, journal and backend of all LUNs.
pub(crate) fn of_node(together: &[[Histogram; 5]; 2], figures: &mut Figures) {
    for (op, [total, network, queue, journal, backend]) in together.iter().enumerate() {
        let stages = [network, queue, backend];
        put(figures, op, stages.map(|it| it.quantiles([500, 990])));
        put_stage(figures, JOURNAL, journal.quantiles([500, 990]));
        put_rows(figures, op, total.buckets().iter().copied().enumerate());
    }
}

/// What the samples of a host's sessions have, or of those with a target: of reads and of writes
/// network, queue, journal and backend.
pub(crate) type Sampled = [[Histogram; 4]; 2];

/// The samples of sessions, put together for each host and each target.
pub(crate) fn by_group(sessions: &[SessionStages]) -> BTreeMap<(Kind, &str), Sampled> {
    let mut all: BTreeMap<(Kind, &str), Sampled> = BTreeMap::new();
    for session in sessions {
        let target = session.target.as_deref().map(|it| (Kind::Target, it));
        let host = (Kind::Host, session.host.as_str());
        for key in std::iter::once(host).chain(target) {
            let ops = all.entry(key).or_default().iter_mut().zip(&session.stages);
            for (sums, counts) in ops.filter_map(|(sums, it)| Some((sums, it.as_ref()?))) {
                let stages = sums.iter_mut().zip(counts.iter());
                stages.for_each(|(sum, counts)| sum.add_each(counts));
            }
        }
    }
    all
}

/// What is recorded of a host or a target.
pub(crate) fn of_group(sampled: &Sampled, figures: &mut Figures) {
    for (op, [network, queue, journal, backend]) in sampled.iter().enumerate() {
        let stages = [network, queue, backend];
        put(figures, op, stages.map(|it| it.quantiles([500, 990])));
        put_stage(figures, JOURNAL, journal.quantiles([500, 990]));
    }
}

/// Percentiles of one operation's stages: 0 for reads, 1 for writes.
fn put(figures: &mut Figures, op: usize, stages: [Option<[u64; 2]>; 3]) {
    for (names, stage) in NAMES[op].into_iter().zip(stages) {
        put_stage(figures, names, stage);
    }
}

fn put_stage(figures: &mut Figures, names: (Metric, Metric), stage: Option<[u64; 2]>) {
    if let Some([p50, p99]) = stage {
        figures.extend([(names.0, Some(p50)), (names.1, Some(p99))]);
    }
}

/// The rows of the map, of how many commands of a bucket there were.
fn put_rows(figures: &mut Figures, op: usize, counts: impl Iterator<Item = (usize, u64)>) {
    let mut rows = [0; MAP_ROWS];
    for (bucket, count) in counts {
        rows[usize::from(map_row(Histogram::micros(bucket)))] += count;
    }
    let rows = rows.into_iter().zip(0..).filter(|(count, _)| *count > 0);
    figures.extend(rows.map(|(count, row)| (Metric::of_map(op == 1, row), Some(count))));
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::fixture::took;
    use manifest::pulse::StageFigures;
    use units::histogram::{BUCKETS, Bin, Counts, Glance, quantiles_of};

    fn counts(micros: &[u64]) -> Counts {
        let mut counts = Counts::new();
        Glance::default().probe(&took(micros), &mut counts);
        counts
    }

    fn reads(total: &[u64], backend: &[u64]) -> LunStages {
        let read = StageFigures {
            total: counts(total),
            backend: quantiles_of(&counts(backend), [500, 990]),
            ..StageFigures::default()
        };
        [read, StageFigures::default()]
    }

    fn of(figures: &Figures) -> BTreeMap<&'static str, u64> {
        let known = figures
            .iter()
            .filter_map(|(metric, figure)| Some((metric.name(), (*figure)?)));
        known.collect()
    }

    #[test]
    fn a_lun_has_percentiles_and_rows_of_what_came_and_nothing_where_nothing_came() {
        let mut figures = Figures::new();
        of_lun(&reads(&[], &[]), &mut figures);
        assert!(figures.is_empty());
        of_lun(&reads(&[100, 100, 1000], &[4; 3]), &mut figures);
        let wanted = [
            ("read_backend_p50", 4),
            ("read_backend_p99", 4),
            ("read_took_128us", 2),
            ("read_took_1024us", 1),
        ];
        assert_eq!(of(&figures), BTreeMap::from(wanted));
    }

    /// Reads of a session that took so long at the backend, each of them for several.
    fn session(host: &str, target: &str, backend: &[(u64, u32)]) -> SessionStages {
        let mut counts = Box::new([[0; BUCKETS]; 4]);
        for (micros, several) in backend {
            let bucket = Bin::of_nanos(micros * 1_000).bucket();
            counts[0][0] += several;
            counts[3][bucket] += several;
        }
        SessionStages {
            host: host.to_owned(),
            target: Some(target.to_owned()),
            stages: [Some(counts), None],
        }
    }

    #[test]
    fn hosts_and_targets_have_what_the_samples_of_their_sessions_have_and_no_others() {
        let sessions = [
            session("a", "t", &[(64, 97)]),
            session("a", "u", &[(1_000, 3)]),
            session("b", "t", &[(8, 1)]),
        ];
        let all = by_group(&sessions);
        let percentiles = |kind, name| {
            let mut figures = Figures::new();
            of_group(&all[&(kind, name)], &mut figures);
            let known = of(&figures);
            let names = ["read_network_p99", "read_backend_p50", "read_backend_p99"];
            let found = names.map(|name| known.get(name).copied());
            assert_eq!(
                known.len(),
                4,
                "nothing of writes and of what waited: {known:?}"
            );
            found.map(|it| it.unwrap_or(0))
        };
        assert_eq!(all.len(), 4);
        assert_eq!(percentiles(Kind::Host, "a"), [1, 64, 1_024]);
        assert_eq!(percentiles(Kind::Host, "b"), [1, 8, 8]);
        assert_eq!(percentiles(Kind::Target, "t"), [1, 64, 64]);
        assert_eq!(percentiles(Kind::Target, "u"), [1, 1_024, 1_024]);
    }

    #[test]
    fn the_node_has_what_its_luns_have_together() {
        let none = || took(&[]);
        let (total, journal, backend) = (took(&[100, 100, 5]), took(&[64]), took(&[90, 1, 1]));
        let writes = [total, none(), none(), journal, backend];
        let reads = [none(), none(), none(), none(), none()];
        let mut figures = Figures::new();
        of_node(&[reads, writes], &mut figures);
        let wanted = [
            ("write_journal_p50", 64),
            ("write_journal_p99", 64),
            ("write_backend_p50", 1),
            ("write_backend_p99", 96),
            ("write_took_8us", 1),
            ("write_took_128us", 2),
        ];
        assert_eq!(of(&figures), BTreeMap::from(wanted));
    }
}
