//! diskspd's XML, element by element, as `Process-DiskSpd.ps1` and its kin read it.

use super::figures::{Machine, date, iops_deviation, per_second, whole_intervals};
use crate::meter::{Interval, Side, Spread};
use crate::options::{Access, Options, Rate, Source, Zone, ZoneExtent};
use crate::result::{RunResult, Share, TargetFacts};
use std::fmt::Write as _;

/// Elements, indented by their depth.
#[derive(Default)]
struct Writer {
    out: String,
    open: Vec<&'static str>,
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

impl Writer {
    fn indent(&mut self) {
        self.out.push_str(&"  ".repeat(self.open.len()));
    }

    fn open(&mut self, name: &'static str) {
        self.open_with(name, "");
    }

    /// `attributes` begin with a blank, or are empty.
    fn open_with(&mut self, name: &'static str, attributes: &str) {
        self.indent();
        // Writing to a String cannot fail.
        let _ = writeln!(self.out, "<{name}{attributes}>");
        self.open.push(name);
    }

    /// An element of its own without anything in it.
    fn empty(&mut self, name: &str, attributes: &str) {
        self.indent();
        let _ = writeln!(self.out, "<{name} {attributes}/>");
    }

    /// As diskspd does, which leaves out what is not so: PowerShell takes any text for true.
    fn when(&mut self, name: &str, so: bool) {
        if so {
            self.leaf(name, true);
        }
    }

    fn close(&mut self) {
        let name = self.open.pop().expect("as often closed as opened");
        self.indent();
        let _ = writeln!(self.out, "</{name}>");
    }

    fn leaf(&mut self, name: &str, value: impl std::fmt::Display) {
        self.indent();
        let _ = writeln!(self.out, "<{name}>{}</{name}>", escaped(&value.to_string()));
    }

    fn milliseconds(&mut self, name: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.leaf(name, format_args!("{value:.3}"));
        }
    }
}

/// The whole document.
#[must_use]
pub fn xml(options: &Options, result: &RunResult, machine: &Machine) -> String {
    let mut w = Writer::default();
    w.open("Results");
    w.open("System");
    w.leaf("ComputerName", &machine.name);
    w.open("Tool");
    w.leaf("Version", env!("CARGO_PKG_VERSION"));
    w.leaf("VersionDate", "causeway bench");
    w.close();
    w.leaf("RunTime", date(result.started));
    let power = escaped(machine.power.as_deref().unwrap_or("not known"));
    w.empty("PowerScheme", &format!("Name=\"{power}\" Guid=\"\""));
    w.leaf("CommandLine", &options.command_line);
    w.close();
    profile(&mut w, options, result);
    w.open("TimeSpan");
    w.leaf("TestTimeSeconds", format_args!("{:.2}", result.seconds));
    w.leaf("ThreadCount", result.threads);
    w.leaf("RequestCount", options.outstanding_total.unwrap_or(0));
    w.leaf("ProcCount", machine.processors.len());
    processors(&mut w, result, machine);
    latency(&mut w, result);
    iops(&mut w, &result.series(), result);
    for thread in 0..result.threads {
        w.open("Thread");
        w.leaf("Id", thread);
        for share in result.shares.iter().filter(|share| share.thread == thread) {
            target(&mut w, share, result);
        }
        w.close();
    }
    ours(&mut w, result);
    w.close();
    w.close();
    w.out
}

fn profile(w: &mut Writer, options: &Options, result: &RunResult) {
    w.open("Profile");
    w.leaf("Progress", 0);
    w.leaf("ResultFormat", "xml");
    w.leaf("Verbose", options.verbose);
    w.open("TimeSpans");
    w.open("TimeSpan");
    w.leaf("CompletionRoutines", false);
    w.leaf("MeasureLatency", true);
    w.leaf("CalculateIopsStdDev", true);
    w.leaf("DisableAffinity", false);
    w.leaf("Duration", options.duration.as_secs_f64());
    w.leaf("Warmup", options.warm_up.as_secs_f64());
    w.leaf("Cooldown", options.cool_down.as_secs_f64());
    w.leaf("ThreadCount", options.threads_total.unwrap_or(0));
    w.leaf("RequestCount", options.outstanding_total.unwrap_or(0));
    w.leaf("IoBucketDuration", options.interval.as_millis());
    w.leaf("RandSeed", options.seed.unwrap_or(0));
    w.open("Targets");
    for at in &result.targets {
        profiled(w, options, at);
    }
    for _ in 0..4 {
        w.close();
    }
}

/// A target as the profile has it.
fn profiled(w: &mut Writer, options: &Options, at: &TargetFacts) {
    w.open("Target");
    w.leaf("Path", &at.name);
    w.leaf("BlockSize", options.block);
    w.leaf("BaseFileOffset", at.base);
    w.leaf("SequentialScan", false);
    w.leaf("RandomAccess", false);
    w.leaf("TemporaryFile", false);
    w.leaf("UseLargePages", false);
    w.when("DisableOSCache", options.unbuffered);
    w.when("WriteThrough", options.write_through);
    content(w, options);
    w.leaf(
        "ParallelAsyncIO",
        matches!(options.access, Access::Sequential { parallel: true, .. }),
    );
    if let Some(burst) = options.burst {
        w.leaf("BurstSize", burst);
        w.leaf("ThinkTime", options.think.as_millis());
    }
    if let Some(size) = options.create {
        w.leaf("FileSize", size);
    }
    match options.access {
        Access::Random { alignment, percent } => {
            w.leaf("Random", alignment);
            if percent != 100 {
                w.leaf("RandomRatio", percent);
            }
            distribution(w, options);
        }
        Access::Sequential {
            stride,
            interlocked,
            ..
        } => {
            w.leaf("StrideSize", stride);
            w.leaf("InterlockedSequential", interlocked);
        }
    }
    w.leaf("ThreadStride", options.thread_stride);
    w.leaf("MaxFileSize", at.length);
    w.leaf("RequestCount", options.outstanding);
    w.leaf("WriteRatio", options.write_percent);
    match options.rate {
        Some(Rate::Iops(iops)) => {
            w.indent();
            let _ = writeln!(w.out, "<Throughput unit=\"IOPS\">{iops}</Throughput>");
        }
        Some(Rate::BytesPerMillisecond(rate)) => w.leaf("Throughput", rate),
        None => w.leaf("Throughput", 0),
    }
    w.leaf("ThreadsPerFile", options.threads);
    w.leaf("IOPriority", 3);
    w.leaf("Weight", 1);
    w.close();
}

/// What is written.
fn content(w: &mut Writer, options: &Options) {
    w.open("WriteBufferContent");
    let random = |w: &mut Writer, bytes: u64, path: Option<&std::path::Path>| {
        w.leaf("Pattern", "random");
        w.open("RandomDataSource");
        w.leaf("SizeInBytes", bytes);
        if let Some(path) = path {
            w.leaf("FilePath", path.display());
        }
        w.close();
    };
    match &options.source {
        Source::Zeroes => w.leaf("Pattern", "zero"),
        Source::Pattern => w.leaf("Pattern", "sequential"),
        Source::RandomEach | Source::Like { .. } => random(w, options.block, None),
        Source::Random { bytes } => random(w, *bytes, None),
        Source::File { bytes, path } => random(w, *bytes, Some(path)),
    }
    w.close();
}

/// The parts of the target that have shares of their own.
fn distribution(w: &mut Writer, options: &Options) {
    if options.zones.is_empty() {
        return;
    }
    let percents = |zone: &Zone| matches!(zone.extent, ZoneExtent::Percent(_));
    let of_percent = options.zones.iter().any(percents);
    let mut left = 100;
    w.open("Distribution");
    w.open(if of_percent { "Percent" } else { "Absolute" });
    for zone in &options.zones {
        let length = match zone.extent {
            ZoneExtent::Percent(part) => {
                left -= u64::from(part);
                u64::from(part)
            }
            ZoneExtent::Bytes(bytes) => bytes,
            ZoneExtent::Rest if of_percent => left,
            ZoneExtent::Rest => 0,
        };
        w.indent();
        let _ = writeln!(w.out, "<Range IO=\"{}\">{length}</Range>", zone.io_percent);
    }
    w.close();
    w.close();
}

fn processors(w: &mut Writer, result: &RunResult, machine: &Machine) {
    let all = &result.processors;
    if all.is_empty() {
        return;
    }
    let row = |w: &mut Writer, user: f64, kernel: f64, idle: f64| {
        w.leaf("UsagePercent", format_args!("{:.2}", user + kernel));
        w.leaf("UserPercent", format_args!("{user:.2}"));
        w.leaf("KernelPercent", format_args!("{kernel:.2}"));
        w.leaf("IdlePercent", format_args!("{idle:.2}"));
    };
    w.open("CpuUtilization");
    for at in all {
        let place = machine.place(at.number);
        w.open("CPU");
        w.leaf("Socket", place.socket);
        w.leaf("Node", place.node);
        w.leaf("Group", 0);
        w.leaf("Core", place.core);
        w.leaf("EfficiencyClass", 0);
        w.leaf("Id", at.number);
        row(w, at.user, at.kernel, at.idle);
        w.close();
    }
    #[expect(clippy::cast_precision_loss, reason = "a machine has few processors")]
    let count = all.len() as f64;
    let mean =
        |part: fn(&crate::result::Processor) -> f64| all.iter().map(part).sum::<f64>() / count;
    w.open("Average");
    row(
        w,
        mean(|at| at.user),
        mean(|at| at.kernel),
        mean(|at| at.idle),
    );
    w.close();
    w.close();
}

fn latency(w: &mut Writer, result: &RunResult) {
    let (read, write, total) = (result.read(), result.write(), result.total());
    // Different latencies that were seen; here they are kept to three digits.
    let buckets = |side: &Side| side.latency.iter_recorded().count();
    w.open_with(
        "Latency",
        &format!(
            " ReadHistoBuckets=\"{}\" WriteHistoBuckets=\"{}\" TotalHistoBuckets=\"{}\"",
            buckets(&read),
            buckets(&write),
            buckets(&total)
        ),
    );
    w.milliseconds("AverageReadMilliseconds", read.mean());
    w.milliseconds("ReadLatencyStdev", read.deviation());
    w.milliseconds("AverageWriteMilliseconds", write.mean());
    w.milliseconds("WriteLatencyStdev", write.deviation());
    w.milliseconds("AverageTotalMilliseconds", total.mean());
    w.milliseconds("LatencyStdev", total.deviation());
    // Whole percents, then nines, then the longest, as diskspd has them.
    let whole = (0..=99).map(f64::from);
    let nines = (1..=7).map(|nines| 100.0 - 10f64.powi(-nines));
    for percentile in whole.chain(nines).chain([100.0]) {
        w.open("Bucket");
        w.leaf("Percentile", shown(percentile));
        w.milliseconds("ReadMilliseconds", read.percentile(percentile));
        w.milliseconds("WriteMilliseconds", write.percentile(percentile));
        w.milliseconds("TotalMilliseconds", total.percentile(percentile));
        w.close();
    }
    w.close();
}

fn shown(percentile: f64) -> String {
    let text = format!("{percentile:.7}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A series, of all or of one thread on one target.
fn iops(w: &mut Writer, series: &[Interval], result: &RunResult) {
    let whole = &series[..whole_intervals(result).min(series.len())];
    let interval = result.interval.as_secs_f64();
    let deviation = |w: &mut Writer, name: &str, count: fn(&Interval) -> u64| {
        if whole.iter().any(|at| count(at) > 0) {
            let value = iops_deviation(whole.iter().map(count), interval);
            w.leaf(name, format_args!("{value:.3}"));
        }
    };
    w.open("Iops");
    deviation(w, "ReadIopsStdDev", |at| at.read.count);
    deviation(w, "WriteIopsStdDev", |at| at.write.count);
    deviation(w, "IopsStdDev", Interval::ios);
    for (number, at) in whole.iter().enumerate() {
        let millis = result.interval.as_millis() * (number as u128 + 1);
        let rate = |count: u64| per_second(count, interval);
        w.empty(
            "Bucket",
            &format!(
                "SampleMillisecond=\"{millis}\" Read=\"{:.0}\" Write=\"{:.0}\" Total=\"{:.0}\" {} {}",
                rate(at.read.count),
                rate(at.write.count),
                rate(at.ios()),
                latencies("Read", &at.read),
                latencies("Write", &at.write)
            ),
        );
    }
    w.close();
}

/// The attributes of a bucket for one kind of operation.
#[expect(
    clippy::cast_precision_loss,
    reason = "an hour of nanoseconds is exact"
)]
fn latencies(kind: &str, spread: &Spread) -> String {
    format!(
        "{kind}MinLatencyMilliseconds=\"{:.3}\" {kind}MaxLatencyMilliseconds=\"{:.3}\" \
         {kind}AvgLatencyMilliseconds=\"{:.3}\" {kind}LatencyStdDev=\"{:.3}\"",
        spread.shortest() as f64 / 1e6,
        spread.longest() as f64 / 1e6,
        spread.mean() / 1e6,
        spread.deviation() / 1e6
    )
}

fn target(w: &mut Writer, share: &Share, result: &RunResult) {
    let mut total = share.read.clone();
    total.add(&share.write);
    let at = &result.targets[share.target];
    w.open("Target");
    w.leaf("Path", &at.name);
    w.leaf("BytesCount", total.bytes);
    w.leaf("FileSize", at.size);
    w.leaf("IOCount", total.ios);
    w.leaf("ReadBytes", share.read.bytes);
    w.leaf("ReadCount", share.read.ios);
    w.leaf("WriteBytes", share.write.bytes);
    w.leaf("WriteCount", share.write.ios);
    let side = |w: &mut Writer, names: (&str, &str), side: &Side| {
        w.milliseconds(names.0, side.mean());
        w.milliseconds(names.1, side.deviation());
    };
    side(
        w,
        ("AverageReadLatencyMilliseconds", "ReadLatencyStdev"),
        &share.read,
    );
    side(
        w,
        ("AverageWriteLatencyMilliseconds", "WriteLatencyStdev"),
        &share.write,
    );
    side(w, ("AverageLatencyMilliseconds", "LatencyStdev"), &total);
    iops(w, &share.series, result);
    w.close();
}

/// What diskspd does not report, in an element of its own.
fn ours(w: &mut Writer, result: &RunResult) {
    w.open("Causeway");
    w.leaf(
        "MeanQueueDepth",
        format_args!("{:.2}", result.mean_queue_depth()),
    );
    w.leaf(
        "LongestStallMilliseconds",
        format_args!("{:.1}", result.stall().as_secs_f64() * 1000.0),
    );
    w.leaf("Errors", result.errors());
    if let Some(tally) = &result.verify {
        w.leaf("VerifiedSectors", tally.checked);
        w.leaf("BadSectors", tally.bad);
    }
    w.close();
}
