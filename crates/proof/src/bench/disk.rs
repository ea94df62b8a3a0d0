//! The file backend beside fio on the same file, at the same depth, on the same processor.

use super::bar::{Bar, Limit};
use super::case::{Case, READ_4K, WRITE_4K};
use super::figures::Figures;
use super::load::LoadClient;
use super::plan::Plan;
use super::rounds::take_turns;
use super::servers::{self, Causeway};
use super::special::{Found, rates};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Bytes of the unit in a file.
const BYTES: u64 = 1 << 30;

/// The largest file below a directory.
pub(super) fn largest(directory: &Path) -> Option<(u64, PathBuf)> {
    let entries = fs::read_dir(directory).ok()?.flatten();
    let sizes = entries.filter_map(|entry| {
        let kind = entry.metadata().ok()?;
        if kind.is_dir() {
            largest(&entry.path())
        } else {
            Some((kind.len(), entry.path()))
        }
    });
    sizes.max()
}

/// fio on a file, past the page cache.
fn fio_on(file: &Path) -> Command {
    let mut fio = Command::new("taskset");
    fio.args(["-c", "1", "fio", "--name=bench", "--ioengine=io_uring"]);
    fio.args(["--direct=1", "--output-format=json"]);
    fio.arg(format!("--filename={}", file.display()));
    fio
}

/// What it reports of its one job.
fn job_of(mut fio: Command) -> Result<Value, String> {
    let output = fio.output().map_err(|error| format!("fio: {error}"))?;
    if !output.status.success() {
        return Err(format!("fio: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let reported: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("fio: {error}"))?;
    Ok(reported["jobs"][0].clone())
}

/// Seconds that it takes to read a file from end to end.
pub(super) fn read_through(file: &Path) -> Result<f64, String> {
    let mut fio = fio_on(file);
    fio.args(["--rw=read", "--bs=1M", "--iodepth=4"]);
    let job = job_of(fio)?;
    Ok(job["read"]["runtime"].as_f64().unwrap_or(0.0) / 1000.0)
}

/// What fio does of a case.
pub(super) fn fio(
    file: &Path,
    case: &Case,
    warm_up: Duration,
    time: Duration,
) -> Result<Figures, String> {
    let mut fio = fio_on(file);
    fio.args(["--time_based", "--norandommap"]);
    fio.arg(format!("--bs={}", case.bytes));
    fio.arg(format!("--iodepth={}", case.depth));
    fio.arg(format!("--size={BYTES}"));
    fio.arg(format!("--ramp_time={}ms", warm_up.as_millis()));
    fio.arg(format!("--runtime={}ms", time.as_millis()));
    fio.arg(if case.reads_only() {
        "--rw=randread"
    } else {
        "--rw=randwrite"
    });
    if case.fua {
        fio.arg("--sync=dsync");
    }
    let job = &job_of(fio)?;
    let side = &job[if case.reads_only() { "read" } else { "write" }];
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let iops = number(&side["iops"]);
    let processor = number(&job["usr_cpu"]) + number(&job["sys_cpu"]);
    let micros = |quantile| number(&side["clat_ns"]["percentile"][quantile]) / 1000.0;
    Ok(Figures {
        commands: number(&side["total_ios"]),
        seconds: number(&side["total_ios"]) / iops.max(1.0),
        p50: micros("50.000000"),
        p99: micros("99.000000"),
        server: processor / 100.0 * 1e6 / iops.max(1.0),
        client: 0.0,
        others: 0.0,
    })
}

/// A directory for the files of one server, empty.
pub(super) fn empty_pool(plan: &Plan, name: &str) -> Result<PathBuf, String> {
    let pool = plan.out.join(name);
    // What an earlier run left.
    let _none = fs::remove_dir_all(&pool);
    let _none = fs::remove_file(servers::journal_of(&pool));
    // The daemon reads a relative path from where its configuration stands.
    let made = fs::create_dir_all(&pool).and_then(|()| pool.canonicalize());
    made.map_err(|error| format!("{}: {error}", pool.display()))
}

/// Random reads, and writes with FUA; as it is served usually, and with busy polling.
///
/// # Errors
/// What failed, for people.
pub fn file(plan: &Plan, client: &LoadClient) -> Result<Found, String> {
    let (pool, other) = (empty_pool(plan, "pool")?, empty_pool(plan, "pool-polling")?);
    let start = |name, pool: &Path, poll_us| {
        let how = Causeway {
            name,
            pool: Some(pool.to_owned()),
            poll_us,
            ..Causeway::usual(BYTES)
        };
        let server = servers::causeway(&plan.place, &how)?;
        client.fill(&server.unit)?;
        Ok::<_, String>(server)
    };
    let server = start("in a file", &pool, 0)?;
    let polling = start("in a file, polling", &other, 50)?;
    let (_, file) = largest(&pool).ok_or("the pool has no file")?;
    let mut found = Found::default();
    let fua = WRITE_4K.with_fua();
    let one = Case {
        depth: 1,
        id: "w4k1fua",
        name: "4K random write with FUA, depth 1",
        ..fua
    };
    let fua = Case {
        name: "4K random write with FUA, depth 32",
        ..fua
    };
    for case in [READ_4K, fua, one] {
        let names = ["causeway in a file", "fio", "with polling"].map(str::to_owned);
        let mut run = |at: usize, warm_up| match at {
            0 => client.run(&server.unit, &case, warm_up, plan.effort.time),
            1 => fio(&file, &case, warm_up, plan.effort.time),
            _ => client.run(&polling.unit, &case, warm_up, plan.effort.time),
        };
        let row = take_turns(case, names.into(), plan.effort, &mut run)?;
        for (at, what) in [(0, "file"), (2, "file, poll_us = 50")] {
            found.bars.push(Bar {
                what: format!("{what} : fio, {}, IOPS", case.name),
                value: row.ratio(at, 1, Figures::iops),
                limit: Limit::AtLeast(0.8),
                detail: rates(&row),
            });
        }
        found.rows.push(row);
    }
    drop((server, polling));
    for pool in [pool, other] {
        let _gone = fs::remove_dir_all(&pool);
    }
    Ok(found)
}
