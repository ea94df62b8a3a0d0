//! The JSON object that `docs/bench.md` promises.

use super::per_second;
use crate::meter::Side;
use crate::options::{Access, Options};
use crate::result::RunResult;
use serde_json::{Value, json};

/// Fractions with three places: enough for people, short for machines.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

fn side(side: &Side, seconds: f64) -> Value {
    let at = |percentile| rounded(side.percentile(percentile).unwrap_or(0.0) * 1000.0);
    json!({
        "ios": side.ios,
        "bytes": side.bytes,
        "iops": rounded(per_second(side.ios, seconds)),
        "bytes_per_second": rounded(per_second(side.bytes, seconds)),
        "latency_us": {
            "mean": rounded(side.mean().unwrap_or(0.0) * 1000.0),
            "min": at(0.0),
            "p50": at(50.0),
            "p90": at(90.0),
            "p95": at(95.0),
            "p99": at(99.0),
            "p999": at(99.9),
            "p9999": at(99.99),
            "max": at(100.0),
            "stdev": rounded(side.deviation().unwrap_or(0.0) * 1000.0),
        },
    })
}

fn millis(nanos: u64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "an hour of nanoseconds is exact"
    )]
    let nanos = nanos as f64;
    rounded(nanos / 1e6)
}

/// `--record-tcpinfo`.
fn tcp(result: &RunResult) -> Vec<Value> {
    let samples = result.tcp.iter().map(|at| {
        json!({
            "ms": u64::try_from(at.at.as_millis()).unwrap_or(u64::MAX), "path": at.path,
            "round_trip_us": at.round_trip_us, "retransmits": at.retransmits, "bytes_in_flight": at.bytes_in_flight,
        })
    });
    samples.collect()
}

/// What was asked of the target, apart from how long and of which one: results of different
/// workloads are not compared.
fn workload(options: &Options, result: &RunResult) -> Value {
    let access = match options.access {
        Access::Random { alignment, percent } => {
            json!({ "random_percent": percent, "alignment_bytes": alignment })
        }
        Access::Sequential {
            stride,
            interlocked,
            parallel,
        } => json!({ "stride_bytes": stride, "interlocked": interlocked, "parallel": parallel }),
    };
    json!({
        "block_bytes": options.block,
        "access": access,
        "distribution": options.zones.iter().map(|zone| format!("{zone:?}")).collect::<Vec<_>>(),
        "region_bytes": options.length,
        "threads": result.threads,
        "outstanding": options.outstanding_total.unwrap_or(options.outstanding),
        "write_percent": options.write_percent,
        "write_through": options.write_through,
        "payload": format!("{:?}", options.source),
        "verify": options.verify,
        "rate": options.rate.map(|rate| format!("{rate:?}")),
        "burst": options.burst,
        "think_ms": u64::try_from(options.think.as_millis()).unwrap_or(u64::MAX),
    })
}

/// The object.
#[must_use]
pub fn json(options: &Options, result: &RunResult) -> Value {
    let seconds = result.seconds;
    let bad: Vec<String> = result
        .verify
        .iter()
        .flat_map(|tally| tally.described.iter().map(ToString::to_string))
        .collect();
    let verify = result.verify.as_ref();
    let interval = result.interval.as_millis();
    let series: Vec<Value> = result
        .series()
        .iter()
        .zip(0_u128..)
        .map(|(at, number)| {
            json!({
                "ms": u64::try_from(interval * number).unwrap_or(u64::MAX),
                "read_ios": at.read.count, "write_ios": at.write.count, "bytes": at.bytes, "max_us": millis(at.longest()) * 1000.0,
            })
        })
        .collect();
    let paths: Vec<Value> = result
        .paths
        .iter()
        .map(|path| {
            json!({
                "from": path.from, "portal": path.portal, "state": path.state, "ios": path.ios,
                "bytes": path.bytes, "retransmits": path.retransmits,
            })
        })
        .collect();
    let targets: Vec<Value> = result
        .targets
        .iter()
        .map(|at| json!({ "name": at.name, "size": at.size, "base": at.base, "length": at.length }))
        .collect();
    json!({
        "command_line": options.command_line,
        "started": super::date(result.started),
        "seconds": rounded(seconds),
        "block_bytes": options.block,
        "threads": result.threads,
        "outstanding": options.outstanding,
        "write_percent": options.write_percent,
        "workload": workload(options, result),
        "read": side(&result.read(), seconds),
        "write": side(&result.write(), seconds),
        "total": side(&result.total(), seconds),
        "queue_depth_mean": rounded(result.mean_queue_depth()),
        "errors": result.errors(),
        "never_returned": result.missing(),
        "first_error": result.first_error(),
        "stopped_early": result.stopped,
        "verify": {
            "checked": verify.map_or(0, |tally| tally.checked),
            "bad": verify.map_or(0, |tally| tally.bad),
            "described": bad,
        },
        "stall_ms_max": rounded(result.stall().as_secs_f64() * 1000.0),
        "interval_ms": u64::try_from(interval).unwrap_or(u64::MAX),
        "series": if options.series { Value::from(series) } else { Value::Array(Vec::new()) },
        "paths": paths,
        "tcp": tcp(result),
        "targets": targets,
    })
}
