//! diskspd's text, heading by heading.

use super::{
    Machine, PERCENTILES, date, iops_deviation, mebibytes_per_second, per_second, whole_intervals,
};
use crate::meter::{Interval, Side};
use crate::options::{Access, Options, Rate, Source, show_size};
use crate::result::{RunResult, Share};
use std::fmt::Write as _;

const WIDTH: usize = 105;

/// The whole report.
#[must_use]
pub fn text(options: &Options, result: &RunResult, machine: &Machine) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write!(out, "\nCommand Line: {}\n\n", options.command_line);
    inputs(&mut out, options, result);
    let _ = write!(
        out,
        "\nSystem information:\n\n\tcomputer name: {}\n\tstart time: {}\n\n\tcpu count:\t\t{}\n",
        machine.name,
        date(result.started),
        machine.processors
    );
    let _ = write!(
        out,
        "\nResults for timespan 1:\n{}\n\nactual test time:\t{:.2}s\nthread count:\t\t{}\n",
        "*".repeat(79),
        result.seconds,
        result.threads
    );
    if result.stopped {
        out.push_str("stopped before its time\n");
    }
    processors(&mut out, result);
    table(&mut out, "Total IO", result, &both, &|at| {
        at.reads + at.writes
    });
    table(
        &mut out,
        "Read IO",
        result,
        &|share| share.read.clone(),
        &|at| at.reads,
    );
    table(
        &mut out,
        "Write IO",
        result,
        &|share| share.write.clone(),
        &|at| at.writes,
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
    for target in &result.targets {
        let _ = writeln!(out, "\tpath: '{}'", target.name);
        if target.base > 0 || target.length < target.size {
            let _ = writeln!(
                out,
                "\t\tbase offset: {}, length: {}",
                show_size(target.base),
                show_size(target.length)
            );
        }
        parameters(out, options);
    }
}

fn parameters(out: &mut String, options: &Options) {
    let mut line = |text: String| {
        let _ = writeln!(out, "\t\t{text}");
    };
    line(format!("think time: {}ms", options.think.as_millis()));
    line(format!("burst size: {}", options.burst.unwrap_or(0)));
    if options.unbuffered {
        line("software cache disabled".to_owned());
    }
    line(if options.write_through {
        "hardware write cache disabled, writethrough on".to_owned()
    } else {
        "using hardware write cache, writethrough off".to_owned()
    });
    line(source(options));
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
    line(format!(
        "number of outstanding I/O operations per thread: {}",
        options.outstanding
    ));
    if options.threads_total.is_none() {
        line(format!("threads per file: {}", options.threads));
    }
    match options.rate {
        Some(Rate::Iops(iops)) => line(format!("IOPS limit per thread: {iops}")),
        Some(Rate::BytesPerMillisecond(rate)) => {
            line(format!("throughput limit per thread: {rate} B/ms"));
        }
        None => {}
    }
}

fn access(options: &Options) -> String {
    match options.access {
        Access::Random {
            alignment,
            percent: 100,
        } => format!("using random I/O (alignment: {})", show_size(alignment)),
        Access::Random { alignment, percent } => format!(
            "using mixed random/sequential I/O ({percent}% random) (alignment: {})",
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

fn source(options: &Options) -> String {
    match &options.source {
        _ if options.verify => "writing stamps for verification".to_owned(),
        Source::Pattern => "write buffers: the bytes 0 to 255".to_owned(),
        Source::Zeroes => "zeroing IO buffers".to_owned(),
        Source::RandomEach => "write buffers: random for every operation".to_owned(),
        Source::Like { compress, dedupe } => {
            format!("write buffers: {compress}% zeroes, {dedupe}% alike, by pieces of 4 KiB")
        }
        Source::Random { bytes } => {
            format!(
                "write buffers: parts of {} of random bytes",
                show_size(*bytes)
            )
        }
        Source::File { bytes, path } => {
            let bytes = show_size(*bytes);
            format!("write buffers: parts of {bytes} of {}", path.display())
        }
    }
}

fn processors(out: &mut String, result: &RunResult) {
    let all = &result.processors;
    if all.is_empty() {
        return;
    }
    let rule = "-".repeat(43);
    let _ = write!(out, "\nCPU |  Usage |  User  |  Kernel |  Idle\n{rule}\n");
    let row = |name: String, user: f64, kernel: f64, idle: f64| {
        format!(
            "{name}| {:6.2}%| {user:6.2}%|  {kernel:6.2}%| {idle:6.2}%\n",
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
    format!(
        "{:>16} | {:>12} | {:>10.2} | {:>10.2} | {:>8.3} | {:>10.2} | {:>9.3}",
        side.bytes,
        side.ios,
        mebibytes_per_second(side, seconds),
        per_second(side.ios, seconds),
        side.mean().unwrap_or(0.0),
        deviation,
        side.deviation().unwrap_or(0.0)
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

fn percentiles(out: &mut String, result: &RunResult) {
    let (read, write, total) = (result.read(), result.write(), result.total());
    let _ = write!(
        out,
        "\n\ntotal:\n  %-ile |  Read (ms) | Write (ms) | Total (ms)\n{}\n",
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
            cell(&read, percentile),
            cell(&write, percentile),
            cell(&total, percentile)
        );
    }
}

/// What diskspd does not tell.
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
