//! Two targets, case by case, in rounds that alternate.

use super::client::{self, Figures};
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// For people.
    pub name: &'static str,
    /// WRITE, else READ.
    pub write: bool,
    /// Bytes of a command.
    pub bytes: usize,
    /// Commands in flight.
    pub depth: usize,
    /// Size of the unit.
    pub lun_bytes: u64,
}

/// A target under test.
#[derive(Clone, Debug)]
pub struct Server {
    /// For people.
    pub name: String,
    /// Portal.
    pub address: String,
    /// Target's name.
    pub target: String,
    /// Logical unit number.
    pub lun: u8,
    /// Its process.
    pub process: u32,
}

/// The cases of a unit of this size.
#[must_use]
pub fn cases(lun_bytes: u64) -> Vec<Case> {
    let case = |name, write, bytes, depth| Case {
        name,
        write,
        bytes,
        depth,
        lun_bytes,
    };
    vec![
        case("4K random read, depth 32", false, 4096, 32),
        case("4K random read, depth 1", false, 4096, 1),
        case("4K random write, depth 32", true, 4096, 32),
        case("4K random write, depth 1", true, 4096, 1),
        case("64K random read, depth 16", false, 65536, 16),
        case("64K random write, depth 16", true, 65536, 16),
    ]
}

/// Processor time that a process has used, user and system (proc(5), /proc/pid/stat, fields 14 and 15).
fn processor_seconds(process: u32) -> io::Result<f64> {
    let stat = std::fs::read_to_string(PathBuf::from(format!("/proc/{process}/stat")))?;
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(2);
    let ticks: u32 = ticks.filter_map(|field| field.parse::<u32>().ok()).sum();
    // USER_HZ is 100 on every Linux that we build for.
    Ok(f64::from(ticks) / 100.0)
}

struct Round {
    iops: f64,
    p50: f64,
    p99: f64,
    processor: f64,
}

fn round(server: &Server, case: &Case, time: Duration) -> io::Result<Round> {
    let before = processor_seconds(server.process)?;
    let Figures {
        commands,
        seconds,
        p50_micros,
        p99_micros,
    } = client::run(&server.address, &server.target, server.lun, case, time)?;
    let used = processor_seconds(server.process)? - before;
    let commands = f64::from(u32::try_from(commands).unwrap_or(u32::MAX));
    Ok(Round {
        iops: commands / seconds,
        p50: p50_micros,
        p99: p99_micros,
        processor: used * 1e6 / commands,
    })
}

fn median(rounds: &[Round], of: impl Fn(&Round) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The table, as Markdown.
///
/// # Errors
/// The first command or connection that failed.
pub fn compare(
    servers: [&Server; 2],
    lun_bytes: u64,
    rounds: usize,
    time: Duration,
) -> io::Result<String> {
    let [ours, theirs] = servers;
    let mut out = format!(
        "| case | {} IOPS / p50 / p99 us / CPU us per I/O | {} | IOPS ratio | CPU ratio |\n|---|---|---|---|---|\n",
        ours.name, theirs.name
    );
    for case in cases(lun_bytes) {
        let mut measured = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (server, measured) in servers.iter().zip(&mut measured) {
                let done = round(server, &case, time);
                let named =
                    |error| io::Error::other(format!("{}, {}: {error}", server.name, case.name));
                measured.push(done.map_err(named)?);
            }
        }
        let cells = measured.each_ref().map(|rounds| {
            let of = |value: fn(&Round) -> f64| median(rounds, value);
            (
                of(|r| r.iops),
                of(|r| r.p50),
                of(|r| r.p99),
                of(|r| r.processor),
            )
        });
        let cell = |(iops, p50, p99, cpu): (f64, f64, f64, f64)| {
            format!("{:.1}k / {p50:.0} / {p99:.0} / {cpu:.1}", iops / 1000.0)
        };
        let line = format!(
            "| {} | {} | {} | {:.2} | {:.2} |",
            case.name,
            cell(cells[0]),
            cell(cells[1]),
            cells[0].0 / cells[1].0,
            cells[0].3 / cells[1].3
        );
        eprintln!("{line}");
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{line}");
    }
    Ok(out)
}
