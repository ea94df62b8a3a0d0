//! diskspd's text, heading by heading.

use super::figures::{
    Machine, PERCENTILES, date, iops_deviation, mebibytes_per_second, per_second, whole_intervals,
};
use crate::meter::{Interval, Side};
use crate::options::{Access, Options, Rate, Source, ZoneExtent, show_size};
use crate::result::{RunResult, Share, TargetFacts};
use std::fmt::Write as _;

const WIDTH: usize = 66 + 11 + 13 + 12 + 12;

/// The whole report.
#[must_use]
pub fn text(options: &Options, result: &RunResult, machine: &Machine) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write!(out, "\nCommand Line: {}\n\n", options.command_line);
    inputs(&mut out, options, result);
    out.push('\n');
    system(&mut out, result, machine);
    // diskspd 2.2 lists the processors above; scripts for 2.1 and before look for them here.
    let _ = write!(
        out,
        "\nResults for timespan 1:\n{}\n\nactual test time:\t{:.2}s\nthread count:\t\t{}\nproc count:\t\t{}\n",
        "*".repeat(79),
        result.seconds,
        result.threads,
        machine.processors.len()
    );
    if let (Some(_), Some(outstanding)) = (options.threads_total, options.outstanding_total) {
        let _ = writeln!(out, "request count:\t\t{outstanding}");
    }
    if result.stopped {
        out.push_str("stopped before its time\n");
    }
    processors(&mut out, result);
    table(&mut out, "Total IO", result, &both, &|at| at.ios());
    table(
        &mut out,
        "Read IO",
        result,
        &|share| share.read.clone(),
        &|at| at.read.count,
    );
    table(
        &mut out,
        "Write IO",
        result,
        &|share| share.write.clone(),
        &|at| at.write.count,
    );
    percentiles(&mut out, result);
    ours(&mut out, result);
    out
}

fn both(share: &Share) -> Side {
    let mut all = share.read.clone();
    all.add(&share.write);
    all
}

fn inputs(out: &mut String, options: &Options, result: &RunResult) {
    let _ = write!(
        out,
        "Input parameters:\n\n\ttimespan:   1\n\t-------------\n\tduration: {}s\n\twarm up time: {}s\n\tcool down time: {}s\n",
        options.duration.as_secs_f64(),
        options.warm_up.as_secs_f64(),
        options.cool_down.as_secs_f64()
    );
    out.push_str("\tmeasuring latency\n");
    let _ = writeln!(
        out,
        "\tgathering IOPS at intervals of {}ms",
        options.interval.as_millis()
    );
    match options.seed {
        Some(seed) => {
            let _ = writeln!(out, "\trandom seed: {seed}");
        }
        None => out.push_str("\trandom seed: from the system\n"),
    }
    if let Some(threads) = options.threads_total {
        let outstanding = options.outstanding_total.unwrap_or(options.outstanding);
        let _ = write!(
            out,
            "\tthread pool with {threads} threads\n\tnumber of outstanding I/O operations per thread: {outstanding}\n"
        );
    }
    if options.source == Source::RandomEach {
        out.push_str(
            "\tgenerating random data for each write IO\n\
             \t  WARNING: this increases the CPU cost of issuing writes and should only\n\
             \t           be compared to other results using the -Zr flag\n",
        );
    }
    for target in &result.targets {
        let _ = writeln!(out, "\tpath: '{}'", target.name);
        parameters(out, options, target);
    }
}

fn system(out: &mut String, result: &RunResult, machine: &Machine) {
    let _ = write!(
        out,
        "System information:\n\n\tcomputer name: {}\n\tstart time: {}\n\n\tcpu count:\t\t{}\n\tcore count:\t\t{}\n\
         \tgroup count:\t\t1\n\tnode count:\t\t{}\n\tsocket count:\t\t{}\n\theterogeneous cores:\tn\n\n\
         \tactive power scheme:\t{}\n",
        machine.name,
        date(result.started),
        machine.processors.len(),
        machine.count(|at| (at.socket, at.core)),
        machine.count(|at| at.node),
        machine.count(|at| at.socket),
        machine.power.as_deref().unwrap_or("not known")
    );
}

fn parameters(out: &mut String, options: &Options, target: &TargetFacts) {
    let mut line = |text: String| {
        let _ = writeln!(out, "\t\t{text}");
    };
    line(format!("think time: {}ms", options.think.as_millis()));
    line(format!("burst size: {}", options.burst.unwrap_or(0)));
    line(if options.unbuffered {
        "software cache disabled".to_owned()
    } else {
        "using software cache".to_owned()
    });
    line(match (options.write_through, options.unbuffered) {
        (true, true) => "hardware write cache disabled, writethrough on".to_owned(),
        (true, false) => "hardware and software write caches disabled, writethrough on".to_owned(),
        (false, _) => "using hardware write cache, writethrough off".to_owned(),
    });
    source(options).into_iter().for_each(&mut line);
    if matches!(options.access, Access::Sequential { parallel: true, .. }) {
        line("using parallel async I/O".to_owned());
    }
    line(match options.write_percent {
        0 => "performing read test".to_owned(),
        100 => "performing write test".to_owned(),
        percent => format!(
            "performing mix test (read/write ratio: {}/{percent})",
            100 - percent
        ),
    });
    line(format!("block size: {}", show_size(options.block)));
    line(access(options));
    if options.threads_total.is_none() || options.outstanding_total.is_none() {
        line(format!(
            "number of outstanding I/O operations per thread: {}",
            options.outstanding
        ));
    }
    if target.base > 0 {
        line(format!("base file offset: {}", show_size(target.base)));
    }
    if target.base + target.length < target.size {
        line(format!("max file size: {}", show_size(target.length)));
    }
    if options.thread_stride > 0 {
        line(format!(
            "thread stride size: {}",
            show_size(options.thread_stride)
        ));
    }
    if options.threads_total.is_none() {
        line(format!("threads per file: {}", options.threads));
    }
    line("IO priority: normal".to_owned());
    match options.rate {
        Some(Rate::Iops(iops)) => line(format!("throughput rate-limited to {iops} IOPS")),
        Some(Rate::BytesPerMillisecond(rate)) => {
            line(format!("throughput rate-limited to {rate} B/ms"));
        }
        None => {}
    }
    distribution(options).into_iter().for_each(&mut line);
}

/// The parts of the target that have shares of their own.
fn distribution(options: &Options) -> Vec<String> {
    if options.zones.is_empty() {
        return Vec::new();
    }
    let mut out = vec!["IO Distribution:".to_owned()];
    let (mut percent, mut bytes) = (0_u64, 0_u64);
    for zone in &options.zones {
        let share = format!("   {:>3}% of IO => [", zone.io_percent);
        out.push(match zone.extent {
            ZoneExtent::Percent(part) => {
                let from = percent;
                percent += u64::from(part);
                format!("{share}{from:>2}% - {percent:>3}%) of target")
            }
            ZoneExtent::Bytes(part) => {
                let from = bytes;
                bytes += part;
                format!("{share}{:>9} - {:>9})", show_size(from), show_size(bytes))
            }
            ZoneExtent::Rest if percent > 0 => format!("{share}{percent:>2}% - 100%) of target"),
            ZoneExtent::Rest => format!("{share}{:>9} - {:>9})", show_size(bytes), "end"),
        });
    }
    out
}

fn access(options: &Options) -> String {
    match options.access {
        Access::Random {
            alignment,
            percent: 100,
        } => format!("using random I/O (alignment: {})", show_size(alignment)),
        Access::Random { alignment, percent } => format!(
            "using mixed random/sequential I/O ({percent}% random) (alignment/stride: {})",
            show_size(alignment)
        ),
        Access::Sequential {
            stride,
            interlocked,
            ..
        } => {
            let kind = if interlocked {
                "interlocked sequential"
            } else {
                "sequential"
            };
            format!("using {kind} I/O (stride: {})", show_size(stride))
        }
    }
}

/// What is written; the bytes 0 to 255 over and over go without saying, as in diskspd.
fn source(options: &Options) -> Vec<String> {
    let size = |bytes: u64| format!("write buffer size: {}", show_size(bytes));
    match &options.source {
        _ if options.verify => vec!["writing stamps for verification".to_owned()],
        Source::Pattern | Source::RandomEach => Vec::new(),
        Source::Zeroes => vec!["zeroing write buffers".to_owned()],
        Source::Like { compress, dedupe } => vec![format!(
            "write buffers: {compress}% zeroes, {dedupe}% alike, by pieces of 4 KiB"
        )],
        Source::Random { bytes } => {
            vec![size(*bytes), "write buffer source: random fill".to_owned()]
        }
        Source::File { bytes, path } => vec![
            size(*bytes),
            format!("write buffer source: '{}'", path.display()),
        ],
    }
}

fn processors(out: &mut String, result: &RunResult) {
    let all = &result.processors;
    if all.is_empty() {
        return;
    }
    let rule = "-".repeat(40);
    let _ = write!(out, "\nCPU |  Usage |  User  | Kernel |  Idle\n{rule}\n");
    let row = |name: String, user: f64, kernel: f64, idle: f64| {
        format!(
            "{name}| {:6.2}%| {user:6.2}%| {kernel:6.2}%| {idle:6.2}%\n",
            user + kernel
        )
    };
    for at in all {
        out.push_str(&row(
            format!("{:4}", at.number),
            at.user,
            at.kernel,
            at.idle,
        ));
    }
    #[expect(clippy::cast_precision_loss, reason = "a machine has few processors")]
    let count = all.len() as f64;
    let mean =
        |part: fn(&crate::result::Processor) -> f64| all.iter().map(part).sum::<f64>() / count;
    let _ = writeln!(out, "{rule}");
    out.push_str(&row(
        "avg.".to_owned(),
        mean(|at| at.user),
        mean(|at| at.kernel),
        mean(|at| at.idle),
    ));
}

/// One row but its beginning and its file.
fn cells(
    side: &Side,
    series: &[Interval],
    count: &dyn Fn(&Interval) -> u64,
    result: &RunResult,
) -> String {
    let seconds = result.seconds;
    let whole = whole_intervals(result).min(series.len());
    let deviation = iops_deviation(
        series[..whole].iter().map(count),
        result.interval.as_secs_f64(),
    );
    let latency = side
        .deviation()
        .map_or_else(|| "     N/A".to_owned(), |millis| format!("{millis:>8.3}"));
    format!(
        "{:>16} | {:>12} | {:>10.2} | {:>10.2} | {:>8.3} | {:>10.2} |  {latency}",
        side.bytes,
        side.ios,
        mebibytes_per_second(side, seconds),
        per_second(side.ios, seconds),
        side.mean().unwrap_or(0.0),
        deviation
    )
}

fn table(
    out: &mut String,
    title: &str,
    result: &RunResult,
    side: &dyn Fn(&Share) -> Side,
    count: &dyn Fn(&Interval) -> u64,
) {
    let rule = "-".repeat(WIDTH);
    let _ = write!(
        out,
        "\n{title}\nthread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  | IopsStdDev | LatStdDev |  file\n{rule}\n"
    );
    let mut all = Side::default();
    for share in &result.shares {
        let one = side(share);
        let target = &result.targets[share.target];
        let cells = cells(&one, &share.series, count, result);
        let _ = writeln!(
            out,
            "{:>6} |{cells} | {} ({})",
            share.thread,
            target.name,
            show_size(target.size)
        );
        all.add(&one);
    }
    let _ = write!(
        out,
        "{rule}\ntotal:  {}\n",
        cells(&all, &result.series(), count, result)
    );
}

/// One chart of each target where there are several, and one of all.
fn percentiles(out: &mut String, result: &RunResult) {
    if result.targets.len() > 1 {
        for (number, target) in result.targets.iter().enumerate() {
            let (mut read, mut write) = (Side::default(), Side::default());
            for share in result.shares.iter().filter(|share| share.target == number) {
                read.add(&share.read);
                write.add(&share.write);
            }
            let title = format!("Latency distribution: {}", target.name);
            chart(out, &title, &read, &write);
        }
    }
    chart(
        out,
        "Total latency distribution:",
        &result.read(),
        &result.write(),
    );
}

fn chart(out: &mut String, title: &str, read: &Side, write: &Side) {
    let mut total = read.clone();
    total.add(write);
    let _ = write!(
        out,
        "\n{title}\n  %-ile |  Read (ms) | Write (ms) | Total (ms)\n{}\n",
        "-".repeat(46)
    );
    let cell = |side: &Side, percentile| match side.percentile(percentile) {
        Some(value) => format!("{value:>10.3}"),
        None => format!("{:>10}", "N/A"),
    };
    for (name, percentile) in PERCENTILES {
        let _ = writeln!(
            out,
            "{name:>7} | {} | {} | {}",
            cell(read, percentile),
            cell(write, percentile),
            cell(&total, percentile)
        );
    }
}

/// What diskspd does not report.
fn ours(out: &mut String, result: &RunResult) {
    let _ = write!(
        out,
        "\nmean queue depth:\t{:.2}\nlongest stall:\t\t{:.1}ms\nerrors:\t\t\t{}\n",
        result.mean_queue_depth(),
        result.stall().as_secs_f64() * 1000.0,
        result.errors()
    );
    if let Some(error) = result.first_error() {
        let _ = writeln!(out, "first error:\t\t{error}");
    }
    if let Some(tally) = &result.verify {
        let _ = writeln!(
            out,
            "verified:\t\t{} blocks of 512 bytes, {} bad",
            tally.checked, tally.bad
        );
        for bad in &tally.described {
            let _ = writeln!(out, "\t{bad}");
        }
    }
    if result.paths.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nfrom -> portal | state | I/Os | MiB/s | retransmits");
    for path in &result.paths {
        let rate = per_second(path.bytes, result.seconds) / f64::from(1 << 20);
        let _ = writeln!(
            out,
            "{} -> {} | {} | {} | {rate:.2} | {}",
            path.from, path.portal, path.state, path.ios, path.retransmits
        );
    }
}
