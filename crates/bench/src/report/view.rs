//! The documents that `docs/operate/bench.md` promises: what `-Rjson` writes, and what is read
//! back of it.
//!
//! A result may be of an older version, which said less: what it lacks is absent, or zero where
//! nobody compares it.

use super::figures::{date, per_second};
use crate::meter::Side;
use crate::options::{Access, Options};
use crate::result::RunResult;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// A result as a file has it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Document {
    /// Of `--profile`.
    Profile(ProfileView),
    /// Of a single run.
    Run(Box<RunView>),
}

/// The runs of a profile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProfileView {
    /// Its name.
    #[serde(default)]
    pub profile: String,
    /// What was typed.
    #[serde(default)]
    pub command_line: String,
    /// What was found on the way.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Its runs.
    pub steps: Vec<StepView>,
    /// All pass lines hold; absent where the profile has none.
    #[serde(default)]
    pub passes: Option<bool>,
}

/// A run of a profile.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct StepView {
    /// Its name in the profile.
    #[serde(default)]
    pub name: String,
    /// What it gave.
    #[serde(flatten)]
    pub run: RunView,
    /// What others published.
    #[serde(default)]
    pub published_iops: Vec<PublishedView>,
    /// By how much of a hundred it is faster than the control.
    #[serde(default)]
    pub vs_control_pct: Option<f64>,
    /// What must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass_line: Option<String>,
    /// Whether it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<bool>,
}

/// A figure that others published.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct PublishedView {
    /// On what it was measured, such as a product.
    pub what: String,
    /// Operations a second.
    pub iops: f64,
}

/// One run.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct RunView {
    /// What was typed.
    pub command_line: String,
    /// When it began.
    pub started: String,
    /// The measured time.
    pub seconds: f64,
    /// Bytes of an operation.
    pub block_bytes: Option<u64>,
    /// Threads that submitted operations, all together.
    pub threads: Option<u32>,
    /// Operations in flight, of each thread on each target.
    pub outstanding: Option<u32>,
    /// Writes among a hundred operations.
    pub write_percent: Option<u8>,
    /// What was asked of the target; absent in results of before there was this.
    pub workload: Option<WorkloadView>,
    /// What was read; zeroes where nothing was.
    pub read: SideView,
    /// What was written; zeroes where nothing was.
    pub write: SideView,
    /// Both.
    pub total: SideView,
    /// Operations in flight on average.
    pub queue_depth_mean: Option<f64>,
    /// Operations that failed or never returned.
    pub errors: Option<u64>,
    /// Those that never returned.
    pub never_returned: u64,
    /// The first failure.
    pub first_error: Option<String>,
    /// It was stopped before its time.
    pub stopped_early: bool,
    /// What verification found.
    pub verify: VerifyView,
    /// The longest time in which nothing ended, in milliseconds.
    pub stall_ms_max: Option<f64>,
    /// Length of an interval of the series, in milliseconds.
    pub interval_ms: u64,
    /// Over time, where it was asked for.
    pub series: Vec<IntervalView>,
    /// One entry for each path of a multipath target; empty for others.
    pub paths: Vec<PathView>,
    /// `--record-tcpinfo`.
    pub tcp: Vec<TcpView>,
    /// What was measured.
    pub targets: Vec<TargetView>,
}

/// Reads, writes or both.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct SideView {
    /// Operations.
    pub ios: u64,
    /// Bytes of operations that ended well.
    pub bytes: u64,
    /// Operations a second.
    pub iops: Option<f64>,
    /// Mean over the measured time.
    pub bytes_per_second: Option<f64>,
    /// Latency in microseconds.
    pub latency_us: LatencyView,
}

/// Latency in microseconds.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyView {
    /// Arithmetic mean; absent where nothing ended.
    pub mean: Option<f64>,
    /// The shortest.
    pub min: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90 of 100 are not longer.
    pub p90: Option<f64>,
    /// 95 of 100.
    pub p95: Option<f64>,
    /// 99 of 100.
    pub p99: Option<f64>,
    /// 999 of 1000.
    pub p999: Option<f64>,
    /// 9999 of 10,000.
    pub p9999: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
    /// Standard deviation.
    pub stdev: Option<f64>,
}

/// What verification found.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct VerifyView {
    /// Sectors of 512 bytes that were compared.
    pub checked: u64,
    /// Those that were wrong; absent where a result does not say.
    pub bad: Option<u64>,
    /// The first of them.
    pub described: Vec<String>,
}

/// A short time of a run.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct IntervalView {
    /// When it began, in milliseconds of the measured time.
    pub ms: u64,
    /// Reads that ended in it.
    pub read_ios: u64,
    /// Writes that ended in it.
    pub write_ios: u64,
    /// Bytes of both.
    pub bytes: u64,
    /// The longest latency in microseconds.
    pub max_us: f64,
}

/// One path of a target.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct PathView {
    /// The host's port.
    pub from: String,
    /// The target's.
    pub portal: String,
    /// How it is at the end.
    pub state: String,
    /// Operations.
    pub ios: u64,
    /// Bytes that its operations moved, reads and writes together.
    pub bytes: u64,
    /// Segments that TCP sent again.
    pub retransmits: u64,
}

/// What TCP said of a path at one moment.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpView {
    /// Milliseconds of the measured time.
    pub ms: u64,
    /// Host port and target port.
    pub path: String,
    /// Round-trip time in microseconds.
    pub round_trip_us: Option<u32>,
    /// Segments sent again since the measured time began.
    pub retransmits: u64,
    /// Bytes that were not answered.
    pub bytes_in_flight: u64,
}

/// What was measured.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetView {
    /// As it was written.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// First byte that was used.
    pub base: u64,
    /// Bytes that were used.
    pub length: u64,
}

/// What was asked of the target, apart from how long and of which one: results of different
/// workloads are not compared. What a result of another version does not say is absent, and not
/// taken for nothing.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkloadView {
    /// Where operations go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessView>,
    /// Bytes of an operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u64>,
    /// Operations that are begun together.
    #[serde(deserialize_with = "stated", skip_serializing_if = "Option::is_none")]
    pub burst: Option<Option<u32>>,
    /// How operations are spread over the target; empty: evenly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Vec<String>>,
    /// Operations in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<u32>,
    /// What is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The most that is asked for in a time.
    #[serde(deserialize_with = "stated", skip_serializing_if = "Option::is_none")]
    pub rate: Option<Option<String>>,
    /// Bytes of the target that are used.
    #[serde(deserialize_with = "stated", skip_serializing_if = "Option::is_none")]
    pub region_bytes: Option<Option<u64>>,
    /// Pauses between bursts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub think_ms: Option<u64>,
    /// Threads, all together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// What is read is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<bool>,
    /// Writes among a hundred operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_percent: Option<u8>,
    /// Writes are stable when they end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_through: Option<bool>,
    /// What a later version says besides.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// Where operations go.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AccessView {
    /// Anywhere.
    Random {
        /// Starts are multiples of it.
        alignment_bytes: u64,
        /// So many of a hundred; the others follow the one before.
        random_percent: u8,
    },
    /// One after the other.
    Sequential {
        /// All threads of a target share one position.
        interlocked: bool,
        /// All outstanding operations of a thread have the same offset.
        parallel: bool,
        /// Bytes from one start to the next.
        stride_bytes: u64,
    },
    /// As another version says it.
    Other(Value),
}

/// An entry that is there, whatever it says.
fn stated<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

impl WorkloadView {
    fn new(options: &Options, result: &RunResult) -> Self {
        let access = match options.access {
            Access::Random { alignment, percent } => AccessView::Random {
                random_percent: percent,
                alignment_bytes: alignment,
            },
            Access::Sequential {
                stride,
                interlocked,
                parallel,
            } => AccessView::Sequential {
                stride_bytes: stride,
                interlocked,
                parallel,
            },
        };
        Self {
            access: Some(access),
            block_bytes: Some(options.block),
            burst: Some(options.burst),
            distribution: Some(options.zones.iter().map(|it| format!("{it:?}")).collect()),
            outstanding: Some(options.outstanding_total.unwrap_or(options.outstanding)),
            payload: Some(format!("{:?}", options.source)),
            rate: Some(options.rate.map(|rate| format!("{rate:?}"))),
            region_bytes: Some(options.length),
            think_ms: Some(u64::try_from(options.think.as_millis()).unwrap_or(u64::MAX)),
            threads: Some(result.threads),
            verify: Some(options.verify),
            write_percent: Some(options.write_percent),
            write_through: Some(options.write_through),
            others: Map::new(),
        }
    }

    /// What both say and say differently: the entry, and its two values.
    pub(crate) fn differences(&self, other: &Self) -> Vec<(String, Value, Value)> {
        // Named one by one, so that a new entry is not forgotten.
        let Self {
            access,
            block_bytes,
            burst,
            distribution,
            outstanding,
            payload,
            rate,
            region_bytes,
            think_ms,
            threads,
            verify,
            write_percent,
            write_through,
            others,
        } = self;
        let known = [
            differs("access", access, &other.access),
            differs("block_bytes", block_bytes, &other.block_bytes),
            differs("burst", burst, &other.burst),
            differs("distribution", distribution, &other.distribution),
            differs("outstanding", outstanding, &other.outstanding),
            differs("payload", payload, &other.payload),
            differs("rate", rate, &other.rate),
            differs("region_bytes", region_bytes, &other.region_bytes),
            differs("think_ms", think_ms, &other.think_ms),
            differs("threads", threads, &other.threads),
            differs("verify", verify, &other.verify),
            differs("write_percent", write_percent, &other.write_percent),
            differs("write_through", write_through, &other.write_through),
        ];
        let unknown = others.iter().filter_map(|(entry, one)| {
            let other = other.others.get(entry).filter(|other| *other != one)?;
            Some((entry.clone(), one.clone(), other.clone()))
        });
        known.into_iter().flatten().chain(unknown).collect()
    }
}

/// An entry that both have, with different values.
fn differs<T: PartialEq + Serialize>(
    entry: &str,
    one: &Option<T>,
    other: &Option<T>,
) -> Option<(String, Value, Value)> {
    let (one, other) = (one.as_ref()?, other.as_ref()?);
    let shown = |value: &T| serde_json::to_value(value).unwrap_or_default();
    (one != other).then(|| (entry.to_owned(), shown(one), shown(other)))
}

/// Fractions with three places: enough for people, short for machines.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn millis(nanos: u64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "an hour of nanoseconds is exact"
    )]
    let nanos = nanos as f64;
    rounded(nanos / 1e6)
}

impl SideView {
    fn new(side: &Side, seconds: f64) -> Self {
        let micros = |millis: Option<f64>| Some(rounded(millis.unwrap_or(0.0) * 1000.0));
        let at = |percentile| micros(side.percentile(percentile));
        Self {
            ios: side.ios,
            bytes: side.bytes,
            iops: Some(rounded(per_second(side.ios, seconds))),
            bytes_per_second: Some(rounded(per_second(side.bytes, seconds))),
            latency_us: LatencyView {
                mean: micros(side.mean()),
                min: at(0.0),
                p50: at(50.0),
                p90: at(90.0),
                p95: at(95.0),
                p99: at(99.0),
                p999: at(99.9),
                p9999: at(99.99),
                max: at(100.0),
                stdev: micros(side.deviation()),
            },
        }
    }
}

impl VerifyView {
    fn new(result: &RunResult) -> Self {
        let tally = result.verify.as_ref();
        let described = tally.iter().flat_map(|tally| &tally.described);
        Self {
            checked: tally.map_or(0, |tally| tally.checked),
            bad: Some(tally.map_or(0, |tally| tally.bad)),
            described: described.map(ToString::to_string).collect(),
        }
    }
}

fn series(result: &RunResult) -> Vec<IntervalView> {
    let length = result.interval.as_millis();
    let all = result.series();
    let one = |(at, number): (&crate::meter::Interval, u128)| IntervalView {
        ms: u64::try_from(length * number).unwrap_or(u64::MAX),
        read_ios: at.read.count,
        write_ios: at.write.count,
        bytes: at.bytes,
        max_us: millis(at.longest()) * 1000.0,
    };
    all.iter().zip(0_u128..).map(one).collect()
}

fn paths(result: &RunResult) -> Vec<PathView> {
    let one = |path: &crate::result::PathFigures| PathView {
        from: path.from.clone(),
        portal: path.portal.clone(),
        state: path.state.clone(),
        ios: path.ios,
        bytes: path.bytes,
        retransmits: path.retransmits,
    };
    result.paths.iter().map(one).collect()
}

fn tcp(result: &RunResult) -> Vec<TcpView> {
    let one = |at: &crate::result::TcpSample| TcpView {
        ms: u64::try_from(at.at.as_millis()).unwrap_or(u64::MAX),
        path: at.path.clone(),
        round_trip_us: at.round_trip_us,
        retransmits: at.retransmits,
        bytes_in_flight: at.bytes_in_flight,
    };
    result.tcp.iter().map(one).collect()
}

fn targets(result: &RunResult) -> Vec<TargetView> {
    let one = |at: &crate::result::TargetFacts| TargetView {
        name: at.name.clone(),
        size: at.size,
        base: at.base,
        length: at.length,
    };
    result.targets.iter().map(one).collect()
}

impl RunView {
    /// What a run gave.
    #[must_use]
    pub fn new(options: &Options, result: &RunResult) -> Self {
        let seconds = result.seconds;
        Self {
            command_line: options.command_line.clone(),
            started: date(result.started),
            seconds: rounded(seconds),
            block_bytes: Some(options.block),
            threads: Some(result.threads),
            outstanding: Some(options.outstanding),
            write_percent: Some(options.write_percent),
            workload: Some(WorkloadView::new(options, result)),
            read: SideView::new(&result.read(), seconds),
            write: SideView::new(&result.write(), seconds),
            total: SideView::new(&result.total(), seconds),
            queue_depth_mean: Some(rounded(result.mean_queue_depth())),
            errors: Some(result.errors()),
            never_returned: result.missing(),
            first_error: result.first_error().map(str::to_owned),
            stopped_early: result.stopped,
            verify: VerifyView::new(result),
            stall_ms_max: Some(rounded(result.stall().as_secs_f64() * 1000.0)),
            interval_ms: u64::try_from(result.interval.as_millis()).unwrap_or(u64::MAX),
            series: if options.series {
                series(result)
            } else {
                Vec::new()
            },
            paths: paths(result),
            tcp: tcp(result),
            targets: targets(result),
        }
    }
}

impl ProfileView {
    /// The run of this name.
    #[must_use]
    pub fn step(&self, name: &str) -> Option<&StepView> {
        self.steps.iter().find(|step| step.name == name)
    }
}
