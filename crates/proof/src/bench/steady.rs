//! A load on a journal until it is steady: it fills, is destaged meanwhile, comes to a steady
//! state, and empties.

use super::bar::{Bar, Limit};
use super::case::WRITE_4K;
use super::durable::{Daemon, SMALL_MIB};
use super::load::LoadClient;
use super::plan::Plan;
use super::servers::{Causeway, pause};
use super::special::Found;
use bench::chart::{Line, Moment, lines};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of the unit.
const BYTES: u64 = 1 << 30;

/// How long the load lasts, in turns of the other comparisons: long enough to see all of it.
const TURNS: u32 = 15;

/// How often it is sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);

/// Bytes of a change.
const CHANGE: f64 = 4096.0;

/// What the journal had at a moment.
#[derive(Clone, Copy)]
struct Sample {
    at: f64,
    changes: f64,
    carried: f64,
    used: f64,
    pending: f64,
}

#[expect(clippy::cast_precision_loss, reason = "counts of a minute")]
fn sample(plan: &Plan, daemon: &Daemon, since: Instant) -> Result<Sample, String> {
    let facts = daemon.facts(plan)?;
    let fact = |name: &str| facts[name].as_f64().unwrap_or(0.0);
    Ok(Sample {
        at: (super::clock() - since).as_secs_f64(),
        changes: fact("changes"),
        carried: fact("destaged_bytes"),
        used: fact("used_bytes") / (SMALL_MIB << 20) as f64,
        pending: fact("pending_bytes"),
    })
}

/// Bytes that a process has given to disks (`/proc/PID/io`).
fn written_by(process: u32) -> Result<f64, String> {
    let path = format!("/proc/{process}/io");
    let reported = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let line = reported
        .lines()
        .find_map(|it| it.strip_prefix("write_bytes:"));
    let bytes = line.and_then(|rest| rest.trim().parse().ok());
    bytes.ok_or_else(|| format!("{path} has no write_bytes"))
}

/// Samples until the load is over and all is destaged.
fn watch(
    plan: &Plan,
    daemon: &Daemon,
    since: Instant,
    over: &AtomicBool,
) -> Result<Vec<Sample>, String> {
    let mut samples = Vec::new();
    loop {
        let over = over.load(Ordering::Acquire);
        let seen = sample(plan, daemon, since)?;
        samples.push(seen);
        if over && seen.pending == 0.0 {
            return Ok(samples);
        }
        pause(SAMPLE_INTERVAL);
    }
}

/// A chart of it, and how much is written for each byte of hosts.
///
/// # Errors
/// What failed, for people.
pub fn steady(plan: &Plan, client: &LoadClient) -> Result<Found, String> {
    let daemon = Daemon::journaled(plan, client, &Causeway::usual(BYTES), SMALL_MIB)?;
    let process = daemon.server.process();
    let (before, since) = (written_by(process)?, super::clock());
    let over = AtomicBool::new(false);
    let time = plan.effort.time * TURNS;
    let (samples, ended) = thread::scope(|scope| {
        let watching = scope.spawn(|| watch(plan, &daemon, since, &over));
        let done = client.run(&daemon.server.unit, &WRITE_4K, Duration::ZERO, time);
        let ended = (super::clock() - since).as_secs_f64();
        over.store(true, Ordering::Release);
        let samples = watching.join().map_err(|_| "the watch panicked".to_owned());
        done.and(samples?).map(|samples| (samples, ended))
    })?;
    let written = written_by(process)? - before;
    let (first, last) = samples
        .first()
        .zip(samples.last())
        .ok_or("nothing was seen")?;
    let hosts = (last.changes - first.changes) * CHANGE;
    let backing = (last.carried - first.carried) / hosts;
    let bar = Bar {
        what: "bytes that go to the disk for each byte that hosts write, 4K random".to_owned(),
        value: written / hosts,
        limit: Limit::Stated,
        detail: format!(
            "of which {backing:.2} are destaged, and the rest to the journal; {:.0} MiB of hosts",
            hosts / f64::from(1 << 20)
        ),
    };
    Ok(Found {
        bars: vec![bar],
        charts: vec![("write-back.svg", chart(&samples, ended))],
        ..Found::default()
    })
}

fn chart(samples: &[Sample], ended: f64) -> String {
    let rate = |name: &str, of: fn(&Sample) -> f64, unit: f64| {
        let pairs = samples.iter().zip(samples.iter().skip(1));
        let points = pairs.map(|(one, next)| {
            let rate = (of(next) - of(one)) / (next.at - one.at) / unit;
            (f64::midpoint(one.at, next.at), rate)
        });
        Line {
            name: name.to_owned(),
            points: points.collect(),
        }
    };
    let fill = Line {
        name: "of the journal in use, %".to_owned(),
        points: samples.iter().map(|it| (it.at, it.used * 100.0)).collect(),
    };
    let all = [
        rate("4K writes of hosts", |it| it.changes, 1000.0),
        rate("4K destaged", |it| it.carried, CHANGE * 1000.0),
        fill,
    ];
    let first = samples.iter().find(|it| it.carried > samples[0].carried);
    let mut moments = vec![Moment {
        name: "load ends".to_owned(),
        at: ended,
    }];
    moments.extend(first.map(|it| Moment {
        name: "destaging".to_owned(),
        at: it.at,
    }));
    let title = format!("Random 4K writes, depth 32, journal of {SMALL_MIB} MiB");
    lines(&title, "thousands a second", "s", &all, &moments)
}
