//! Other people's clients, as they come: `iscsi-perf` of libiscsi, `qemu-img bench`, and fio where
//! it was built with its libiscsi engine.
//!
//! What they send, and how, is theirs. Causeway and tgt serve them in turns; the figure is the
//! server's processor time for a command.

use super::bar::{Bar, Limit};
use super::case::{Case, READ_4K, WRITE_4K};
use super::figures::{Figures, Unit};
use super::load::LoadClient;
use super::plan::Plan;
use super::rounds::take_turns;
use super::servers::{self, Causeway};
use super::special::{Found, rates};
use super::usage;
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// Bytes of the units: the clients write to all of them.
const BYTES: u64 = 64 << 20;
/// Commands that `qemu-img bench` makes in a second of a run; it counts commands and not seconds.
const COMMANDS_A_SECOND: u64 = 60_000;
const INITIATOR: &str = "iqn.2026-11.io.causeway:bench-foreign";

/// A client that is not ours.
#[derive(Clone, Copy)]
enum Tool {
    IscsiPerf,
    QemuImg,
    Fio,
}

/// fio, or what the variable `FIO` names: distributions build it without this engine.
fn fio() -> String {
    std::env::var("FIO").unwrap_or_else(|_| "fio".to_owned())
}

impl Tool {
    /// It is there. What has to be is, or its case fails.
    fn is_here(self) -> bool {
        let engines = || Command::new(fio()).arg("--enghelp").output();
        let lists = |reported: &[u8]| String::from_utf8_lossy(reported).contains("libiscsi");
        !matches!(self, Self::Fio) || engines().is_ok_and(|output| lists(&output.stdout))
    }

    const fn name(self) -> &'static str {
        match self {
            Self::IscsiPerf => "iscsi-perf",
            Self::QemuImg => "qemu-img bench",
            Self::Fio => "fio",
        }
    }

    /// What makes the case's commands for about so long.
    fn command(self, unit: &Unit, case: &Case, time: Duration) -> Command {
        let url = format!("iscsi://{}/{}/{}", unit.portal, unit.target, unit.lun);
        let (program, words) = match self {
            Self::IscsiPerf => ("iscsi-perf", iscsi_perf_words(unit, case, time)),
            Self::QemuImg => ("qemu-img", qemu_img_words(case, time)),
            Self::Fio => return fio_job(&url, case, time),
        };
        let mut command = Command::new(program);
        command.args(words.split(' ')).arg(url);
        command
    }
}

/// It counts whole seconds.
fn seconds(time: Duration) -> u64 {
    time.as_secs().max(1)
}

fn iscsi_perf_words(unit: &Unit, case: &Case, time: Duration) -> String {
    let blocks = case.bytes / unit.block;
    let (depth, seconds) = (case.depth, seconds(time));
    format!("-i {INITIATOR} -m {depth} -b {blocks} -t {seconds} -r")
}

fn qemu_img_words(case: &Case, time: Duration) -> String {
    let (count, depth, bytes) = (qemu_img_count(time), case.depth, case.bytes);
    let write = if case.reads_only() { "" } else { " -w" };
    format!("bench -f raw -t none -c {count} -d {depth} -s {bytes}{write}")
}

fn fio_job(url: &str, case: &Case, time: Duration) -> Command {
    let kind = if case.reads_only() {
        "randread"
    } else {
        "randwrite"
    };
    let mut command = Command::new(fio());
    command.args(["--name=bench", "--ioengine=libiscsi", "--thread=1"]);
    command.args(["--output-format=json", "--time_based=1"]);
    command.arg(format!("--runtime={}ms", time.as_millis()));
    command.arg(format!("--rw={kind}"));
    command.arg(format!("--bs={}", case.bytes));
    command.arg(format!("--iodepth={}", case.depth));
    // A colon parts file names for it.
    command.arg(format!("--filename={}", url.replace(':', "\\:")));
    command
}

/// Commands and seconds, of its report.
fn fio_figures(reported: &str) -> Option<(f64, f64)> {
    let report: Value = serde_json::from_str(reported.get(reported.find('{')?..)?).ok()?;
    let job = report.pointer("/jobs/0")?;
    let of = |direction: &str, what: &str| job.pointer(&format!("/{direction}/{what}"))?.as_f64();
    let direction = if of("read", "total_ios")? > 0.0 {
        "read"
    } else {
        "write"
    };
    let failed = job.get("error")?.as_i64()? != 0;
    let figures = (
        of(direction, "total_ios")?,
        of(direction, "runtime")? / 1000.0,
    );
    (!failed && figures.0 > 0.0).then_some(figures)
}

fn qemu_img_count(time: Duration) -> u64 {
    let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    (milliseconds.saturating_mul(COMMANDS_A_SECOND) / 1000).max(1000)
}

/// Commands a second, of its last line: `iops average 97047 (379 MB/s)`.
fn iscsi_perf_rate(reported: &str) -> Option<f64> {
    let (_, after) = reported.rsplit_once("iops average")?;
    after.split_whitespace().next()?.parse().ok()
}

/// Seconds, of `Run completed in 1.067 seconds.`
fn qemu_img_seconds(reported: &str) -> Option<f64> {
    let (_, after) = reported.rsplit_once("Run completed in")?;
    after.split_whitespace().next()?.parse().ok()
}

/// Commands and seconds that it reports.
#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn made(tool: Tool, reported: &str, time: Duration) -> Option<(f64, f64)> {
    match tool {
        Tool::IscsiPerf => {
            let seconds = seconds(time) as f64;
            Some((iscsi_perf_rate(reported)? * seconds, seconds))
        }
        Tool::QemuImg => Some((qemu_img_count(time) as f64, qemu_img_seconds(reported)?)),
        Tool::Fio => fio_figures(reported),
    }
}

fn run(tool: Tool, unit: &Unit, case: &Case, time: Duration) -> Result<Figures, String> {
    let name = tool.name();
    let before = usage::sample(&unit.processes)?;
    let child = usage::of_children()?;
    let output = tool.command(unit, case, time).output();
    let output = output.map_err(|error| format!("{name}: {error}"))?;
    let child = usage::of_children()?.saturating_sub(child);
    let mut used = usage::sample(&unit.processes)?.since(&before);
    // The client is not this process, but what it has started.
    used.client = child;
    let reported = String::from_utf8_lossy(&output.stdout);
    let figures = made(tool, &reported, time).filter(|_| output.status.success());
    let (commands, seconds) = figures.ok_or_else(|| {
        let complaint = String::from_utf8_lossy(&output.stderr);
        format!("{name} ended with {}: {complaint}{reported}", output.status)
    })?;
    Ok(Figures {
        commands,
        seconds,
        // None of them says how long a command takes.
        p50: 0.0,
        p99: 0.0,
        server: micros(used.server) / commands.max(1.0),
        client: micros(used.client) / commands.max(1.0),
        others: used.others(),
    })
}

#[expect(clippy::cast_precision_loss, reason = "some seconds")]
fn micros(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1000.0
}

/// What each of them costs Causeway, beside tgt.
///
/// # Errors
/// What failed, for people.
pub fn foreign(plan: &Plan, client: &LoadClient) -> Result<Found, String> {
    let ours = servers::causeway(&plan.place, &Causeway::usual(BYTES))?;
    let theirs = servers::tgt(&plan.place, BYTES)?;
    let units = [&ours.unit, &theirs.unit];
    for unit in units {
        client.fill(unit)?;
    }
    let mut found = Found::default();
    let named = |case, id, name| Case { id, name, ..case };
    let reads = named(
        READ_4K,
        "iscsi-perf-r4k32",
        "4K random read, depth 32, by iscsi-perf",
    );
    let ahead = named(
        READ_4K,
        "qemu-img-r4k32",
        "4K read, depth 32, by qemu-img bench",
    );
    let writes = named(
        WRITE_4K,
        "qemu-img-w4k32",
        "4K write, depth 32, by qemu-img bench",
    );
    let fio_reads = named(
        READ_4K,
        "fio-r4k32",
        "4K random read, depth 32, by fio with libiscsi",
    );
    let fio_writes = named(
        WRITE_4K,
        "fio-w4k32",
        "4K random write, depth 32, by fio with libiscsi",
    );
    for (tool, case, limit) in [
        (Tool::IscsiPerf, reads, 0.15),
        (Tool::QemuImg, ahead, 0.15),
        (Tool::QemuImg, writes, 0.25),
        (Tool::Fio, fio_reads, 0.15),
        (Tool::Fio, fio_writes, 0.25),
    ] {
        if !tool.is_here() {
            eprintln!(
                "{}: left out, {} has no engine \"libiscsi\"; FIO= names another",
                case.name,
                fio()
            );
            continue;
        }
        let mut turn = |at: usize, _| run(tool, units[at], &case, plan.effort.time);
        let names = ["causeway", "tgt"].map(str::to_owned);
        let row = take_turns(case, names.into(), plan.effort, &mut turn)?;
        found.bars.push(Bar {
            what: format!("causeway : tgt, {}, processor time", case.name),
            value: row.ratio(0, 1, |f| f.server),
            limit: Limit::AtMost(limit),
            detail: rates(&row),
        });
        found.rows.push(row);
    }
    Ok(found)
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn what_the_clients_print_is_read() {
        let perf = "\r00:00:01 - lba 1721, iops current 95679 (373 MB/s), iops average 95679 (373 MB/s), in_flight 32, busy 0   \
                    \riops average 97047 (379 MB/s)       \n\nfinished.\n";
        assert_eq!(
            made(Tool::IscsiPerf, perf, Duration::from_millis(2500)),
            Some((194_094.0, 2.0))
        );
        let qemu = "Sending 60000 read requests, 4096 bytes each, 32 in parallel (starting at offset 0, step size 4096)\n\
                    Run completed in 1.067 seconds.\n";
        assert_eq!(
            made(Tool::QemuImg, qemu, Duration::from_secs(1)),
            Some((60_000.0, 1.067))
        );
        let fio = r#"note: both iodepth >= 1 and synchronous I/O engine are selected
            {"jobs": [{"error": 0, "read": {"total_ios": 0, "runtime": 0}, "write": {"total_ios": 40000, "runtime": 501}}]}"#;
        let job = |error: &str| {
            made(
                Tool::Fio,
                &fio.replace("\"error\": 0", error),
                Duration::ZERO,
            )
        };
        assert_eq!(job("\"error\": 0"), Some((40_000.0, 0.501)));
        assert_eq!(job("\"error\": 5"), None);
        assert_eq!(
            made(Tool::QemuImg, "Login Failed.", Duration::from_secs(1)),
            None
        );
    }
}
