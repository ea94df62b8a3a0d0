//! What a history records of the activity of a node: pure.

use crate::nics::Nics;
use crate::pairs::Older;
use crate::slow_readings;
use crate::together::{Figures, Together, put};
use controller::Moment;
use history::{Kind, Metric, Reading};
use manifest::activity::SessionActivity;
use manifest::facts::PoolFacts;
use manifest::journal::JournalFacts;
use manifest::latency::Latency;
use manifest::pulse::{LunFigures, LunPulse, OpFigures, Transfers};
use std::collections::BTreeMap;

/// What hosts and targets did since the start: their sessions come and go.
#[derive(Default)]
pub struct Readings {
    groups: BTreeMap<(Kind, String), Group>,
}

/// The sessions of a host, or those with a target.
#[derive(Default)]
struct Group {
    sessions: u64,
    in_flight: u64,
    commands: u64,
    bytes_in: u64,
    bytes_out: u64,
    read_ops: u64,
    write_ops: u64,
    /// How long those took that ended since the moment before.
    reads: Together,
    writes: Together,
}

/// The metric of a name that is known when this is compiled.
macro_rules! metric {
    ($name:literal) => {
        const { Metric::known($name) }
    };
}

/// Figures that are known.
macro_rules! known {
    ($($name:literal: $value:expr),* $(,)?) => {
        [$((metric!($name), Some($value))),*]
    };
}

impl Readings {
    /// Gives `push` what is to be recorded of a moment, one object after the other; `before`: the
    /// one before it.
    pub fn take(
        &mut self,
        before: Option<&Moment>,
        now: &Moment,
        nics: &Nics,
        push: &mut dyn FnMut(&Reading<'_>),
    ) {
        self.count_sessions(before, now);
        let mut stages = now.stages.iter();
        let mut older = Older::new(before.map_or(&[], |before| &before.luns));
        for lun in &now.luns {
            let mut reading = of_lun(lun, older.of(lun, |_| {}));
            if let Some(both) = stages.next() {
                slow_readings::of_lun(both, &mut reading.figures);
            }
            push(&reading);
        }
        let mut node = of_node(now, nics);
        slow_readings::of_node(&now.stages_together, &mut node.figures);
        push(&node);
        let mut sampled = slow_readings::by_group(&now.session_stages);
        for ((kind, name), group) in &self.groups {
            let mut reading = of_group(*kind, name, group);
            if let Some(stages) = sampled.remove(&(*kind, name.as_str())) {
                slow_readings::of_group(&stages, &mut reading.figures);
            }
            push(&reading);
        }
        // Their last sessions are over, and what they did is not recorded yet.
        for ((kind, name), stages) in sampled {
            let mut figures = Figures::new();
            slow_readings::of_group(&stages, &mut figures);
            push(&Reading {
                kind,
                name,
                identity: None,
                figures,
            });
        }
        for pool in fresh(&now.pools) {
            push(&of_pool(pool));
        }
        for nic in &nics.0 {
            push(&Reading {
                kind: Kind::Nic,
                name: &nic.name,
                identity: None,
                figures: known!["bytes_in": nic.bytes_in, "bytes_out": nic.bytes_out].into(),
            });
        }
    }

    /// Adds what sessions did since they were seen last. A host whose last session has ended is
    /// recorded once more, with none.
    fn count_sessions(&mut self, before: Option<&Moment>, now: &Moment) {
        self.groups.retain(|_, group| group.sessions > 0);
        for group in self.groups.values_mut() {
            (group.sessions, group.in_flight) = (0, 0);
            (group.reads, group.writes) = (Together::default(), Together::default());
        }
        let (none, nothing) = (BTreeMap::new(), Transfers::default());
        let took_before = before.map_or(&none, |before| &before.transfers);
        let mut older = before
            .iter()
            .flat_map(|before| &before.activity.sessions)
            .peekable();
        for session in &now.activity.sessions {
            while older.next_if(|older| older.id < session.id).is_some() {}
            let older = older.next_if(|older| older.id == session.id);
            let took = now.transfers.get(&session.id).unwrap_or(&nothing);
            let before = took_before.get(&session.id).unwrap_or(&nothing);
            let (reads, writes) = (
                took.read.since(&before.read),
                took.write.since(&before.write),
            );
            let host = (Kind::Host, session.host.clone());
            let target = session.target.clone().map(|target| (Kind::Target, target));
            for key in std::iter::once(host).chain(target) {
                let group = self.groups.entry(key).or_default();
                group.add(session, older);
                group.took(&reads, &writes);
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

    fn took(&mut self, reads: &Latency, writes: &Latency) {
        self.read_ops += reads.count;
        self.write_ops += writes.count;
        self.reads.add(reads);
        self.writes.add(writes);
    }
}

fn of_group<'a>(kind: Kind, name: &'a str, group: &Group) -> Reading<'a> {
    let mut figures = Figures::from(known![
        "sessions": group.sessions,
        "in_flight": group.in_flight,
        "commands": group.commands,
        "bytes_in": group.bytes_in,
        "bytes_out": group.bytes_out,
        "read_ops": group.read_ops,
        "write_ops": group.write_ops,
    ]);
    group.reads.put(&mut figures, &READ);
    group.writes.put(&mut figures, &WRITE);
    Reading {
        kind,
        name,
        identity: None,
        figures,
    }
}

fn of_node<'a>(now: &'a Moment, nics: &Nics) -> Reading<'a> {
    let view = &now.activity;
    let sum = |of: fn(&LunFigures) -> u64| now.luns.iter().map(|lun| of(&lun.figures)).sum();
    let load: u64 = view
        .cores
        .iter()
        .map(|core| u64::from(core.load_permille))
        .sum();
    let cores = u64::try_from(view.cores.len()).unwrap_or(1).max(1);
    let mut figures = Figures::from(known![
        "read_ops": sum(|lun| lun.read.ops),
        "write_ops": sum(|lun| lun.write.ops),
        "other_ops": sum(|lun| lun.other_ops),
        "read_bytes": sum(|lun| lun.read.bytes),
        "write_bytes": sum(|lun| lun.write.bytes),
        "in_flight": sum(|lun| lun.in_flight),
        "sessions": u64::try_from(view.sessions.len()).unwrap_or(0),
        "core_load": load / cores,
        "bytes_in": nics.0.iter().map(|nic| nic.bytes_in).sum(),
        "bytes_out": nics.0.iter().map(|nic| nic.bytes_out).sum(),
    ]);
    let [reads, writes] = &now.together;
    put(reads, &mut figures, &READ);
    put(writes, &mut figures, &WRITE);
    let cached: Vec<_> = now.luns.iter().filter_map(|lun| lun.cached).collect();
    if !cached.is_empty() {
        figures.extend(known![
            "cache_hits": cached.iter().map(|it| it.hits).sum(),
            "cache_misses": cached.iter().map(|it| it.misses).sum(),
        ]);
    }
    let journals = fresh(&now.pools).filter_map(|pool| pool.journal.as_ref());
    figures.extend(of_journals(journals));
    Reading {
        kind: Kind::Node,
        name: &view.node,
        identity: None,
        figures,
    }
}

/// Percentiles of the whole, then means of its stages.
const READ: [Metric; 5] = [
    metric!("read_latency_p50"),
    metric!("read_latency_p99"),
    metric!("read_network_mean"),
    metric!("read_queue_mean"),
    metric!("read_backend_mean"),
];

const WRITE: [Metric; 5] = [
    metric!("write_latency_p50"),
    metric!("write_latency_p99"),
    metric!("write_network_mean"),
    metric!("write_queue_mean"),
    metric!("write_backend_mean"),
];

fn of_lun<'a>(lun: &'a LunPulse, before: Option<&LunPulse>) -> Reading<'a> {
    let now = &lun.figures;
    // All that there may be.
    let mut figures = Vec::with_capacity(19);
    figures.extend(known![
        "read_ops": now.read.ops,
        "write_ops": now.write.ops,
        "other_ops": now.other_ops,
        "read_bytes": now.read.bytes,
        "write_bytes": now.write.bytes,
        "in_flight": now.in_flight,
    ]);
    if let Some(before) = before {
        times(&mut figures, &READ, &now.read, &before.figures.read);
        times(&mut figures, &WRITE, &now.write, &before.figures.write);
    }
    if let Some(cached) = &lun.cached {
        figures.extend(known![
            "cache_hits": cached.hits,
            "cache_misses": cached.misses,
        ]);
    }
    Reading {
        kind: Kind::Lun,
        name: &lun.name,
        identity: Some(&lun.naa),
        figures,
    }
}

/// How long operations took that ended since the moment before; nothing where none did.
fn times(figures: &mut Figures, names: &[Metric; 5], now: &OpFigures, before: &OpFigures) {
    if let Some([p50, p99]) = now.took {
        figures.push((names[0], Some(p50)));
        figures.push((names[1], Some(p99)));
    }
    let commands = (now.commands, before.commands);
    let stages = [
        (names[2], (now.network_us, before.network_us), commands),
        (names[3], (now.queue_us, before.queue_us), commands),
        (
            names[4],
            (now.backend_us, before.backend_us),
            (now.ops, before.ops),
        ),
    ];
    for (name, us, count) in stages {
        figures.extend(mean(us, count).map(|mean| (name, Some(mean))));
    }
    // Of all that the storage was given, as its own mean: so the stages add up.
    if now.journal_us > 0 {
        let us = (now.journal_us, before.journal_us);
        let mean = mean(us, (now.ops, before.ops));
        figures.extend(mean.map(|mean| (metric!("write_journal_mean"), Some(mean))));
    }
}

/// Of what was counted until now and before.
fn mean(us: (u64, u64), count: (u64, u64)) -> Option<u64> {
    let count = count.0.checked_sub(count.1)?;
    us.0.checked_sub(us.1)?.checked_div(count)
}

/// Without those that do not answer: their figures are old.
fn fresh(pools: &[PoolFacts]) -> impl Iterator<Item = &PoolFacts> {
    let fresh = |pool: &&PoolFacts| pool.age_seconds.is_none() && pool.problem.is_none();
    pools.iter().filter(fresh)
}

/// What these journals have together; nothing where there is none.
fn of_journals<'a>(journals: impl Iterator<Item = &'a JournalFacts>) -> Figures {
    let journals: Vec<&JournalFacts> = journals.collect();
    if journals.is_empty() {
        return Figures::new();
    }
    let sum = |of: fn(&JournalFacts) -> u64| journals.iter().map(|journal| of(journal)).sum();
    known![
        "journal_size_bytes": sum(|it| it.size_bytes),
        "journal_used_bytes": sum(|it| it.used_bytes),
        "journal_pending_bytes": sum(|it| it.pending_bytes),
        "destaged_bytes": sum(|it| it.destaged_bytes),
        "journal_written_bytes": sum(|it| it.written_bytes),
    ]
    .into()
}

fn of_pool(pool: &PoolFacts) -> Reading<'_> {
    let mut figures = Figures::from(known!["size_bytes": pool.total, "used_bytes": pool.used]);
    figures.extend(of_journals(pool.journal.iter()));
    Reading {
        kind: Kind::Pool,
        name: &pool.name,
        identity: None,
        figures,
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::fixture::{self, took};
    use manifest::objects::ReadCacheFacts;
    use manifest::pulse::SessionStages;
    use units::histogram::{BUCKETS, Bin};

    /// One whose reads took that, and the last of them `since` the moment before.
    fn lun(name: &str, micros: &[u64], since: &[u64]) -> LunPulse {
        let read = OpFigures {
            ops: micros.len() as u64,
            commands: micros.len() as u64,
            backend_us: micros.iter().sum(),
            took: took(since).quantiles([500, 990]),
            ..OpFigures::default()
        };
        LunPulse {
            figures: LunFigures {
                in_flight: 1,
                read,
                ..LunFigures::default()
            },
            ..fixture::lun(name)
        }
    }

    fn session(id: u64, bytes_in: u64) -> SessionActivity {
        SessionActivity {
            id,
            host: "h".to_owned(),
            initiator: "i".to_owned(),
            target: Some("t".to_owned()),
            from: "f".to_owned(),
            portal: "p".to_owned(),
            core: 0,
            load_permille: 0,
            in_flight: 2,
            commands: 0,
            bytes_in,
            bytes_out: 0,
            latency: Latency::default(),
        }
    }

    fn view(luns: Vec<LunPulse>, sessions: Vec<SessionActivity>) -> Moment {
        let mut moment = fixture::moment(luns);
        moment.activity.sessions = sessions;
        moment
    }

    /// What is read of one moment after the other.
    #[derive(Default)]
    struct Run {
        readings: Readings,
        before: Option<Moment>,
    }

    /// One figure of what is recorded.
    fn read(run: &mut Run, now: Moment, wanted: &[(Kind, &str, &str)]) -> Vec<Option<u64>> {
        let mut found = vec![None; wanted.len()];
        let Run { readings, before } = run;
        let nics = Nics(Vec::new());
        let mut push = |of: &Reading<'_>| {
            for ((kind, name, metric), found) in wanted.iter().zip(&mut found) {
                let figure = of.figures.iter().find(|(it, _)| it.name() == *metric);
                if of.kind == *kind && of.name == *name {
                    *found = figure.and_then(|it| it.1);
                }
            }
        };
        readings.take(before.as_ref(), &now, &nics, &mut push);
        *before = Some(now);
        found
    }

    #[test]
    fn latencies_are_those_of_the_operations_since_the_last_reading() {
        let mut run = Run::default();
        let wanted = [
            (Kind::Lun, "b", "read_ops"),
            (Kind::Lun, "b", "read_latency_p50"),
            (Kind::Lun, "b", "read_latency_p99"),
            (Kind::Lun, "b", "read_backend_mean"),
        ];
        let first = view(vec![lun("b", &[4; 100], &[])], vec![]);
        let first = read(&mut run, first, &wanted);
        assert_eq!(first, [Some(100), None, None, None]);
        // Another one comes before it.
        let micros: Vec<u64> = [[4; 100], [1000; 100]].concat();
        let luns = vec![lun("a", &[1], &[]), lun("b", &micros, &[1000; 100])];
        let second = read(&mut run, view(luns, vec![]), &wanted);
        assert_eq!(second, [Some(200), Some(1024), Some(1024), Some(1000)]);
        let third = view(vec![lun("b", &micros, &[])], vec![]);
        let third = read(&mut run, third, &wanted);
        assert_eq!(third, [Some(200), None, None, None], "nothing was read");
    }

    #[test]
    fn what_a_host_did_never_goes_back_when_its_sessions_come_and_go() {
        let mut run = Run::default();
        let wanted = [
            (Kind::Host, "h", "sessions"),
            (Kind::Host, "h", "bytes_in"),
            (Kind::Target, "t", "in_flight"),
        ];
        let mut now = |sessions| read(&mut run, view(vec![], sessions), &wanted);
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
    fn a_host_has_what_its_sessions_read_and_wrote_and_how_long_that_took() {
        let took = |micros: &[u64]| Latency::of(&took(micros));
        let mut run = Run::default();
        let mut now = |transfers: &[(u64, &[u64], &[u64])], wanted: &[&'static str]| {
            let sessions = transfers.iter().map(|(id, ..)| session(*id, 0)).collect();
            let mut moment = view(vec![], sessions);
            let transfers = transfers.iter().map(|(id, reads, writes)| {
                let (read, write) = (took(reads), took(writes));
                (*id, Transfers { read, write })
            });
            moment.transfers = transfers.collect();
            let wanted: Vec<_> = wanted.iter().map(|it| (Kind::Host, "h", *it)).collect();
            read(&mut run, moment, &wanted)
        };
        let ops = ["read_ops", "write_ops"];
        let first: [(u64, &[u64], &[u64]); 2] = [(1, &[4; 9], &[]), (2, &[4], &[64])];
        assert_eq!(now(&first, &ops), [Some(10), Some(1)]);
        let times = ["read_latency_p50", "read_latency_p99", "write_latency_p50"];
        let second: [(u64, &[u64], &[u64]); 2] = [(1, &[4; 9], &[]), (2, &[4, 4, 512, 512], &[64])];
        assert_eq!(now(&second, &times), [Some(512), Some(512), None]);
        let third: [(u64, &[u64], &[u64]); 1] = [(3, &[8], &[])];
        assert_eq!(now(&third, &ops), [Some(14), Some(1)], "they never go back");
    }

    #[test]
    fn a_session_that_is_over_is_in_the_stages_of_its_host_and_nothing_else_of_it_goes_back() {
        let mut run = Run::default();
        let wanted = [
            (Kind::Host, "h", "read_backend_p99"),
            (Kind::Target, "t", "read_backend_p99"),
            (Kind::Host, "h", "bytes_in"),
        ];
        let mut now = |sessions, stages| {
            let mut moment = view(vec![], sessions);
            moment.session_stages = stages;
            read(&mut run, moment, &wanted)
        };
        let mut counts = Box::new([[0; BUCKETS]; 4]);
        counts[3][Bin::of_nanos(500_000).bucket()] = 1;
        let sampled = || {
            vec![SessionStages {
                host: "h".to_owned(),
                target: Some("t".to_owned()),
                stages: [Some(counts.clone()), None],
            }]
        };
        let both = [Some(512); 2];
        let found = now(vec![session(1, 100)], sampled());
        assert_eq!((&found[..2], found[2]), (&both[..], Some(100)));
        assert_eq!(now(vec![], vec![]), [None, None, Some(100)]);
        assert_eq!(now(vec![], sampled()), [Some(512), Some(512), None]);
        assert_eq!(now(vec![], vec![]), [None; 3]);
    }

    #[test]
    fn a_pool_and_the_node_have_what_journals_hold_and_destage() {
        let pool = |name: &str, destaged| {
            let mut pool = fixture::pool(name);
            pool.journal = Some(JournalFacts {
                size_bytes: 1000,
                used_bytes: 800,
                pending_bytes: 700,
                destaged_bytes: destaged,
                ..JournalFacts::missing("/j".to_owned(), String::new())
            });
            pool
        };
        let mut moment = view(vec![], vec![]);
        let mut silent = pool("silent", 9_000);
        silent.age_seconds = Some(3);
        moment.pools = vec![pool("p", 10), pool("q", 20), silent];
        let wanted = [
            (Kind::Pool, "p", "journal_pending_bytes"),
            (Kind::Pool, "q", "destaged_bytes"),
            (Kind::Pool, "silent", "destaged_bytes"),
            (Kind::Node, "n", "destaged_bytes"),
            (Kind::Node, "n", "journal_used_bytes"),
        ];
        let found = read(&mut Run::default(), moment, &wanted);
        assert_eq!(found, [Some(700), Some(20), None, Some(30), Some(1_600)]);
    }

    #[test]
    fn every_object_has_its_figures() {
        let mut readings = Readings::default();
        let pools = vec![fixture::pool("p")];
        let first = view(vec![lun("a", &[1], &[])], vec![session(1, 1)]);
        let mut second = view(vec![lun("a", &[1, 2], &[2])], vec![session(1, 1)]);
        second.pools = pools;
        second.together[0] = took(&[2]);
        second.luns[0].cached = Some(ReadCacheFacts::default());
        let mut counts = BTreeMap::new();
        let nics = Nics(Vec::new());
        let mut push = |reading: &Reading<'_>| {
            let count = counts.entry(reading.kind).or_insert(0);
            *count += reading.figures.len();
        };
        readings.take(Some(&first), &second, &nics, &mut push);
        let counts = [Kind::Node, Kind::Lun, Kind::Host, Kind::Pool].map(|kind| counts[&kind]);
        assert_eq!(counts, [14, 13, 7, 2]);
    }
}
