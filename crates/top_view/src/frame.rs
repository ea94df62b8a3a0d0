//! What happened between two samples of the daemon: rates, percentiles of latency, and their order.

use clap::ValueEnum;
use manifest::activity::{ActivityView, LunActivity, OpActivity, SessionActivity};
use manifest::facts::CoreFacts;
use manifest::latency::Latency;
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// What rows are ordered by.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub enum SortKey {
    /// By name; sessions by number
    Name,
    /// Operations a second
    Iops,
    /// Bytes a second
    Throughput,
    /// The 99th percentile of latency
    Latency,
    /// Commands in flight
    InFlight,
}

impl SortKey {
    pub(crate) const ALL: [Self; 5] = [
        Self::Name,
        Self::Iops,
        Self::Throughput,
        Self::Latency,
        Self::InFlight,
    ];

    /// The one so many places further.
    pub(crate) fn step(self, by: isize) -> Self {
        let count = Self::ALL.len();
        let at = Self::ALL.iter().position(|key| *key == self).unwrap_or(0);
        let to = at.wrapping_add_signed(by).wrapping_add(count) % count;
        Self::ALL[to]
    }
}

/// In what order rows stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// Rows with the most of it stand first; by name, the first letters.
    pub key: SortKey,
    /// What stands first stands last.
    pub reverse: bool,
}

/// Latency of what ended in the interval, in microseconds; absent where nothing did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Debug)]
pub(crate) struct LatencyRow {
    pub(crate) mean: Option<u64>,
    pub(crate) p50: Option<u64>,
    pub(crate) p99: Option<u64>,
}

impl LatencyRow {
    fn of(latency: &Latency) -> Self {
        Self {
            mean: latency.mean(),
            p50: latency.quantile(500),
            p99: latency.quantile(990),
        }
    }
}

/// What was done in the interval.
#[derive(Clone, Copy, PartialEq, Default, Serialize, Debug)]
pub(crate) struct Rates {
    pub(crate) iops: f64,
    pub(crate) bytes_per_second: f64,
    pub(crate) read_bytes_per_second: f64,
    pub(crate) write_bytes_per_second: f64,
    pub(crate) in_flight: u64,
    pub(crate) latency_us: LatencyRow,
}

/// Mean times of the stages, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Debug)]
pub(crate) struct StageRow {
    pub(crate) network: Option<u64>,
    pub(crate) queue: Option<u64>,
    pub(crate) journal: Option<u64>,
    pub(crate) backend: Option<u64>,
}

/// What `top` shows of a LUN between two samples: rates are of one second.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub(crate) struct LunRow {
    pub(crate) name: String,
    pub(crate) online: bool,
    pub(crate) read_iops: f64,
    pub(crate) write_iops: f64,
    #[serde(flatten)]
    pub(crate) rates: Rates,
    pub(crate) stages_us: StageRow,
}

/// What `top` shows of a session between two samples.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub(crate) struct SessionRow {
    pub(crate) id: u64,
    pub(crate) host: String,
    pub(crate) initiator: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    pub(crate) from: String,
    pub(crate) core: u16,
    /// How much of its core's time goes to it, from 0 to 1.
    pub(crate) load: f64,
    #[serde(flatten)]
    pub(crate) rates: Rates,
}

/// What `top` shows of a core between two samples.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub(crate) struct CoreRow {
    pub(crate) core: u16,
    /// How much of the interval it worked, from 0 to 1.
    pub(crate) busy: f64,
    pub(crate) connections: usize,
}

/// One frame.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub struct Frame {
    pub(crate) node: String,
    pub(crate) started: String,
    /// The length of the interval.
    pub(crate) seconds: f64,
    pub(crate) total: Rates,
    pub(crate) cores: Vec<CoreRow>,
    pub(crate) luns: Vec<LunRow>,
    pub(crate) sessions: Vec<SessionRow>,
}

impl Frame {
    /// What happened from `before` to `after`; `None` where they are of two daemons, or of one
    /// moment.
    pub fn between(before: &ActivityView, after: &ActivityView) -> Option<Self> {
        if before.started != after.started || before.at_us >= after.at_us {
            return None;
        }
        let micros = after.at_us - before.at_us;
        let span = Span(to_f64(micros) / 1e6);
        let older: BTreeMap<&str, &LunActivity> = before
            .luns
            .iter()
            .map(|lun| (lun.name.as_str(), lun.as_ref()))
            .collect();
        let mut all = Latency::default();
        let mut total = Rates::default();
        let luns = after
            .luns
            .iter()
            .map(|lun| {
                let (row, latency) = span.lun(older.get(lun.name.as_str()).copied(), lun);
                all.add(&latency);
                total.add(&row.rates);
                row
            })
            .collect();
        total.latency_us = LatencyRow::of(&all);
        let older: BTreeMap<u64, &SessionActivity> = before
            .sessions
            .iter()
            .map(|session| (session.id, session))
            .collect();
        let sessions = after.sessions.iter();
        Some(Self {
            node: after.node.clone(),
            started: after.started.clone(),
            seconds: span.0,
            total,
            cores: after
                .cores
                .iter()
                .map(|core| span.core(before, core))
                .collect(),
            luns,
            sessions: sessions
                .map(|session| span.session(older.get(&session.id).copied(), session))
                .collect(),
        })
    }

    /// Puts the rows in order; the busiest or slowest stand first unless reversed.
    pub fn sort(&mut self, luns: Order, sessions: Order) {
        self.luns.sort_by(|a, b| {
            let by_name = a.name.cmp(&b.name);
            order(luns, by_name, &a.rates, &b.rates)
        });
        self.sessions.sort_by(|a, b| {
            let by_id = a.id.cmp(&b.id);
            order(sessions, by_id, &a.rates, &b.rates)
        });
    }
}

fn order(order: Order, by_name: Ordering, a: &Rates, b: &Rates) -> Ordering {
    let greatest_first = match order.key {
        SortKey::Name => by_name,
        SortKey::Iops => b.iops.total_cmp(&a.iops),
        SortKey::Throughput => b.bytes_per_second.total_cmp(&a.bytes_per_second),
        SortKey::Latency => b.latency_us.p99.cmp(&a.latency_us.p99),
        SortKey::InFlight => b.in_flight.cmp(&a.in_flight),
    };
    let wanted = if order.reverse {
        greatest_first.reverse()
    } else {
        greatest_first
    };
    // Rows that are equal do not change places from one frame to the next.
    wanted.then(by_name)
}

impl Rates {
    fn add(&mut self, other: &Self) {
        self.iops += other.iops;
        self.bytes_per_second += other.bytes_per_second;
        self.read_bytes_per_second += other.read_bytes_per_second;
        self.write_bytes_per_second += other.write_bytes_per_second;
        self.in_flight += other.in_flight;
    }
}

/// The seconds between two samples.
struct Span(f64);

impl Span {
    /// How often a second; a counter that went back began anew.
    fn rate(&self, before: u64, after: u64) -> f64 {
        let counted = after.checked_sub(before).unwrap_or(after);
        to_f64(counted) / self.0
    }

    fn core(&self, before: &ActivityView, after: &CoreFacts) -> CoreRow {
        let older = before.cores.iter().find(|core| core.core == after.core);
        let worked = self.rate(older.map_or(0, |core| core.busy_us), after.busy_us);
        CoreRow {
            core: after.core,
            busy: (worked / 1e6).min(1.0),
            connections: after.connections,
        }
    }

    fn lun(&self, before: Option<&LunActivity>, after: &LunActivity) -> (LunRow, Latency) {
        let nothing = LunActivity::default();
        // A LUN that is new has done all that it has done since.
        let before = before.unwrap_or(&nothing);
        let both = |of: fn(&OpActivity) -> &Latency| {
            let mut latency = of(&after.read).since(of(&before.read));
            latency.add(&of(&after.write).since(of(&before.write)));
            latency
        };
        let latency = both(|op| &op.latency.total);
        let read_iops = self.rate(before.read.ops, after.read.ops);
        let write_iops = self.rate(before.write.ops, after.write.ops);
        let read_bytes = self.rate(before.read.bytes, after.read.bytes);
        let write_bytes = self.rate(before.write.bytes, after.write.bytes);
        let row = LunRow {
            name: after.name.clone(),
            online: after.online,
            read_iops,
            write_iops,
            rates: Rates {
                iops: read_iops + write_iops + self.rate(before.other_ops, after.other_ops),
                bytes_per_second: read_bytes + write_bytes,
                read_bytes_per_second: read_bytes,
                write_bytes_per_second: write_bytes,
                in_flight: after.in_flight,
                latency_us: LatencyRow::of(&latency),
            },
            stages_us: StageRow {
                network: both(|op| &op.latency.network).mean(),
                queue: both(|op| &op.latency.queue).mean(),
                journal: both(|op| &op.latency.journal).mean(),
                backend: both(|op| &op.latency.backend).mean(),
            },
        };
        (row, latency)
    }

    fn session(&self, before: Option<&SessionActivity>, after: &SessionActivity) -> SessionRow {
        let old = |of: fn(&SessionActivity) -> u64| before.map_or(0, of);
        let read_bytes = self.rate(old(|session| session.bytes_out), after.bytes_out);
        let write_bytes = self.rate(old(|session| session.bytes_in), after.bytes_in);
        let nothing = Latency::default();
        let latency = after
            .latency
            .since(before.map_or(&nothing, |session| &session.latency));
        SessionRow {
            id: after.id,
            host: after.host.clone(),
            initiator: after.initiator.clone(),
            target: after.target.clone(),
            from: after.from.clone(),
            core: after.core,
            load: f64::from(after.load_permille) / 1e3,
            rates: Rates {
                iops: self.rate(old(|session| session.commands), after.commands),
                bytes_per_second: read_bytes + write_bytes,
                read_bytes_per_second: read_bytes,
                write_bytes_per_second: write_bytes,
                in_flight: after.in_flight,
                latency_us: LatencyRow::of(&latency),
            },
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "rates are for people; 53 bits are more than enough"
)]
fn to_f64(count: u64) -> f64 {
    count as f64
}
