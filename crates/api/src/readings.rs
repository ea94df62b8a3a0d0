//! What a history records of the activity of a node: pure.

use crate::nics::Nics;
use history::{Kind, Metric, Reading};
use manifest::activity::{ActivityView, LunActivity, OpActivity, SessionActivity};
use manifest::facts::PoolFacts;
use manifest::latency::Latency;
use std::collections::BTreeMap;

/// What was seen last, and what hosts and targets did since the start: their sessions come and go.
#[derive(Default)]
pub(crate) struct Readings {
    before: Option<ActivityView>,
    groups: BTreeMap<(Kind, String), Group>,
}

/// The sessions of a host, or those with a target.
#[derive(Clone, Copy, Default)]
struct Group {
    sessions: u64,
    in_flight: u64,
    commands: u64,
    bytes_in: u64,
    bytes_out: u64,
}

type Figures = Vec<(Metric, Option<u64>)>;

/// A figure of an object. That a name is one of the history's is what a test says.
fn figure(name: &str, value: Option<u64>) -> Option<(Metric, Option<u64>)> {
    Some((Metric::named(name)?, value))
}

/// Figures that are known.
fn known<const N: usize>(all: [(&str, u64); N]) -> Figures {
    let figures = all.into_iter();
    figures
        .filter_map(|(name, value)| figure(name, Some(value)))
        .collect()
}

impl Readings {
    /// Takes a sample, and gives `push` what is to be recorded of it.
    pub(crate) fn take(
        &mut self,
        view: ActivityView,
        (pools, nics): (&[PoolFacts], &Nics),
        push: impl FnOnce(&[Reading<'_>]),
    ) {
        let before = self
            .before
            .take()
            .filter(|before| before.started == view.started);
        self.count_sessions(before.as_ref(), &view);
        let mut readings = Vec::with_capacity(view.luns.len() + self.groups.len() + 1);
        readings.push(of_node(&view));
        let mut older = before.iter().flat_map(|before| &before.luns).peekable();
        for lun in &view.luns {
            // Both are in the order of their names.
            while older.next_if(|older| older.name < lun.name).is_some() {}
            let older = older.next_if(|older| older.name == lun.name);
            readings.push(of_lun(lun, older));
        }
        for ((kind, name), group) in &self.groups {
            readings.push(Reading {
                kind: *kind,
                name,
                figures: known([
                    ("sessions", group.sessions),
                    ("in_flight", group.in_flight),
                    ("commands", group.commands),
                    ("bytes_in", group.bytes_in),
                    ("bytes_out", group.bytes_out),
                ]),
            });
        }
        readings.extend(of_pools(pools));
        readings.extend(nics.0.iter().map(|nic| Reading {
            kind: Kind::Nic,
            name: &nic.name,
            figures: known([("bytes_in", nic.bytes_in), ("bytes_out", nic.bytes_out)]),
        }));
        push(&readings);
        self.before = Some(view);
    }

    /// Adds what sessions did since they were seen last. A host whose last session has ended is
    /// recorded once more, with none.
    fn count_sessions(&mut self, before: Option<&ActivityView>, view: &ActivityView) {
        self.groups.retain(|_, group| group.sessions > 0);
        for group in self.groups.values_mut() {
            (group.sessions, group.in_flight) = (0, 0);
        }
        let mut older = before.iter().flat_map(|before| &before.sessions).peekable();
        for session in &view.sessions {
            while older.next_if(|older| older.id < session.id).is_some() {}
            let older = older.next_if(|older| older.id == session.id);
            let host = (Kind::Host, session.host.clone());
            let target = session.target.clone().map(|target| (Kind::Target, target));
            for key in std::iter::once(host).chain(target) {
                self.groups.entry(key).or_default().add(session, older);
            }
        }
    }
}

impl Group {
    fn add(&mut self, now: &SessionActivity, before: Option<&SessionActivity>) {
        let since = |now: u64, before: Option<u64>| now.saturating_sub(before.unwrap_or(0));
        self.sessions += 1;
        self.in_flight += now.in_flight;
        self.commands += since(now.commands, before.map(|it| it.commands));
        self.bytes_in += since(now.bytes_in, before.map(|it| it.bytes_in));
        self.bytes_out += since(now.bytes_out, before.map(|it| it.bytes_out));
    }
}

fn of_node(view: &ActivityView) -> Reading<'_> {
    let sum = |of: fn(&LunActivity) -> u64| view.luns.iter().map(of).sum();
    let load: u64 = view
        .cores
        .iter()
        .map(|core| u64::from(core.load_permille))
        .sum();
    let cores = u64::try_from(view.cores.len()).unwrap_or(1).max(1);
    Reading {
        kind: Kind::Node,
        name: &view.node,
        figures: known([
            ("read_ops", sum(|lun| lun.read.ops)),
            ("write_ops", sum(|lun| lun.write.ops)),
            ("other_ops", sum(|lun| lun.other_ops)),
            ("read_bytes", sum(|lun| lun.read.bytes)),
            ("write_bytes", sum(|lun| lun.write.bytes)),
            ("in_flight", sum(|lun| lun.in_flight)),
            ("sessions", u64::try_from(view.sessions.len()).unwrap_or(0)),
            ("core_load", load / cores),
        ]),
    }
}

fn of_lun<'a>(lun: &'a LunActivity, before: Option<&LunActivity>) -> Reading<'a> {
    let mut figures = known([
        ("read_ops", lun.read.ops),
        ("write_ops", lun.write.ops),
        ("other_ops", lun.other_ops),
        ("read_bytes", lun.read.bytes),
        ("write_bytes", lun.write.bytes),
        ("in_flight", lun.in_flight),
    ]);
    let names = [
        "read_latency_p50",
        "read_latency_p99",
        "read_network_mean",
        "read_queue_mean",
        "read_backend_mean",
    ];
    times(&mut figures, names, &lun.read, before.map(|it| &it.read));
    let names = [
        "write_latency_p50",
        "write_latency_p99",
        "write_network_mean",
        "write_queue_mean",
        "write_backend_mean",
    ];
    times(&mut figures, names, &lun.write, before.map(|it| &it.write));
    Reading {
        kind: Kind::Lun,
        name: &lun.name,
        figures,
    }
}

/// How long operations took that ended since `before`; nothing where none did.
fn times(figures: &mut Figures, names: [&str; 5], now: &OpActivity, before: Option<&OpActivity>) {
    let Some(before) = before else {
        return;
    };
    let (now, before) = (&now.latency, &before.latency);
    if now.total.count > before.total.count {
        let total = now.total.since(&before.total);
        figures.extend(figure(names[0], total.quantile(500)));
        figures.extend(figure(names[1], total.quantile(990)));
    }
    let stages = [
        (names[2], &now.network, &before.network),
        (names[3], &now.queue, &before.queue),
        (names[4], &now.backend, &before.backend),
    ];
    for (name, now, before) in stages {
        figures.extend(mean(now, before).and_then(|mean| figure(name, Some(mean))));
    }
}

fn mean(now: &Latency, before: &Latency) -> Option<u64> {
    let count = now.count.checked_sub(before.count)?;
    now.us_sum.checked_sub(before.us_sum)?.checked_div(count)
}

fn of_pools(pools: &[PoolFacts]) -> impl Iterator<Item = Reading<'_>> {
    // Figures of a pool that does not answer are old.
    let fresh = |pool: &&PoolFacts| pool.age_seconds.is_none() && pool.problem.is_none();
    pools.iter().filter(fresh).map(of_pool)
}

fn of_pool(pool: &PoolFacts) -> Reading<'_> {
    let mut figures = known([("size_bytes", pool.total), ("used_bytes", pool.used)]);
    if let Some(journal) = &pool.journal {
        figures.extend(known([
            ("journal_size_bytes", journal.size_bytes),
            ("journal_used_bytes", journal.used_bytes),
        ]));
    }
    Reading {
        kind: Kind::Pool,
        name: &pool.name,
        figures,
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use manifest::activity::SessionActivity;
    use std::time::Duration;
    use units::Histogram;

    fn lun(name: &str, micros: &[u64]) -> LunActivity {
        let mut histogram = Histogram::default();
        for micros in micros {
            histogram.count(Duration::from_micros(*micros));
        }
        let mut lun = LunActivity {
            name: name.to_owned(),
            online: true,
            in_flight: 1,
            read: OpActivity::default(),
            write: OpActivity::default(),
            other_ops: 0,
        };
        lun.read.ops = micros.len() as u64;
        lun.read.latency.total = Latency::of(&histogram);
        lun.read.latency.backend = Latency::of(&histogram).summary();
        lun
    }

    fn session(id: u64, bytes_in: u64) -> SessionActivity {
        SessionActivity {
            id,
            host: "h".to_owned(),
            initiator: "i".to_owned(),
            target: Some("t".to_owned()),
            from: "f".to_owned(),
            core: 0,
            load_permille: 0,
            in_flight: 2,
            commands: 0,
            bytes_in,
            bytes_out: 0,
            latency: Latency::default(),
        }
    }

    fn view(luns: Vec<LunActivity>, sessions: Vec<SessionActivity>) -> ActivityView {
        ActivityView {
            node: "n".to_owned(),
            started: "2026-01-01T00:00:00.000Z".to_owned(),
            at_us: 0,
            cores: Vec::new(),
            luns,
            sessions,
        }
    }

    /// One figure of what is recorded.
    fn read(
        readings: &mut Readings,
        view: ActivityView,
        wanted: &[(Kind, &str, &str)],
    ) -> Vec<Option<u64>> {
        let mut found = Vec::new();
        readings.take(view, (&[], &Nics(Vec::new())), |all| {
            found = wanted
                .iter()
                .map(|(kind, name, metric)| {
                    let of = all.iter().find(|it| it.kind == *kind && it.name == *name)?;
                    let figure = of.figures.iter().find(|(it, _)| it.name() == *metric)?;
                    figure.1
                })
                .collect();
        });
        found
    }

    #[test]
    fn latencies_are_those_of_the_operations_since_the_last_reading() {
        let mut readings = Readings::default();
        let wanted = [
            (Kind::Lun, "b", "read_ops"),
            (Kind::Lun, "b", "read_latency_p50"),
            (Kind::Lun, "b", "read_latency_p99"),
            (Kind::Lun, "b", "read_backend_mean"),
        ];
        let first = read(
            &mut readings,
            view(vec![lun("b", &[4; 100])], vec![]),
            &wanted,
        );
        assert_eq!(first, [Some(100), None, None, None]);
        // Another one comes before it.
        let micros: Vec<u64> = [[4; 100], [1000; 100]].concat();
        let luns = vec![lun("a", &[1]), lun("b", &micros)];
        let second = read(&mut readings, view(luns, vec![]), &wanted);
        assert_eq!(second, [Some(200), Some(1024), Some(1024), Some(1000)]);
        let third = read(
            &mut readings,
            view(vec![lun("b", &micros)], vec![]),
            &wanted,
        );
        assert_eq!(third, [Some(200), None, None, None], "nothing was read");
    }

    #[test]
    fn what_a_host_did_never_goes_back_when_its_sessions_come_and_go() {
        let mut readings = Readings::default();
        let wanted = [
            (Kind::Host, "h", "sessions"),
            (Kind::Host, "h", "bytes_in"),
            (Kind::Target, "t", "in_flight"),
        ];
        let mut now = |sessions| read(&mut readings, view(vec![], sessions), &wanted);
        assert_eq!(
            now(vec![session(1, 100), session(2, 50)]),
            [Some(2), Some(150), Some(4)]
        );
        assert_eq!(now(vec![session(2, 60)]), [Some(1), Some(160), Some(2)]);
        assert_eq!(
            now(vec![session(2, 60), session(5, 7)]),
            [Some(2), Some(167), Some(4)]
        );
        assert_eq!(
            now(vec![]),
            [Some(0), Some(167), Some(0)],
            "once more, with none"
        );
        assert_eq!(now(vec![]), [None, None, None]);
    }

    #[test]
    fn every_figure_is_one_of_the_historys() {
        let mut readings = Readings::default();
        let pool = serde_json::json!({
            "name": "p", "path": "/p", "total": 9, "available": 5, "used": 4, "provisioned_bytes": 0,
        });
        let pools: Vec<PoolFacts> = vec![serde_json::from_value(pool).unwrap()];
        let first = view(vec![lun("a", &[1])], vec![session(1, 1)]);
        readings.take(first, (&[], &Nics(Vec::new())), |_| {});
        let second = view(vec![lun("a", &[1, 2])], vec![session(1, 1)]);
        readings.take(second, (&pools, &Nics(Vec::new())), |all| {
            let count = |kind: Kind| {
                let of = all.iter().find(|reading| reading.kind == kind);
                of.map(|reading| reading.figures.len())
            };
            let counts = [Kind::Node, Kind::Lun, Kind::Host, Kind::Pool].map(count);
            assert_eq!(counts, [Some(8), Some(9), Some(5), Some(2)]);
        });
    }
}
