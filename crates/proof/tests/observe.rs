//! What an administrator sees of a daemon at work, and may change of it: metrics by stage, `top`,
//! limits.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy knows only test functions"
)]

mod common;

use common::client::{Client, config, ten};
use common::daemon::{Daemon, IQN};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const OBJECTS: &str = r#"
[[host]]
name = "all"
iqn = ["*"]
[[lun]]
name = "busy"
size = "64MiB"
backend = "memory"
[[lun]]
name = "idle"
size = "64MiB"
backend = "memory"
[[target]]
name = "t"
[[grant]]
host = "all"
lun = "busy"
target = "t"
lun_id = 0
"#;

fn start(name: &str) -> (Daemon, Client) {
    let daemon = Daemon::start(name);
    daemon.apply(OBJECTS);
    let client = Client::open(&daemon.portals[0], &format!("{IQN}:t"));
    (daemon, client)
}

/// The metrics, by name and labels as they stand.
fn metrics(daemon: &Daemon) -> BTreeMap<String, f64> {
    let mut stream = UnixStream::connect(daemon.path("api.sock")).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    let lines = text.lines().filter(|line| line.starts_with("causeway_"));
    lines
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

#[test]
fn every_command_is_in_the_histogram_of_each_stage_and_an_idle_lun_has_few_series() {
    let (daemon, mut client) = start("stages");
    for number in 0_u8..20 {
        client.write(0, &vec![number; 4096], 512);
    }
    for _ in 0..10 {
        client.read(0, 128, 512);
    }
    let metrics = metrics(&daemon);
    for (op, count) in [("write", 20.0), ("read", 10.0)] {
        let mut sums = BTreeMap::new();
        for stage in ["total", "network", "queue", "backend"] {
            let of = |what: &str, more: &str| {
                let name = format!(
                    "causeway_lun_latency_seconds_{what}{{lun=\"busy\",op=\"{op}\",stage=\"{stage}\"{more}}}"
                );
                *metrics.get(&name).unwrap_or_else(|| panic!("{name}"))
            };
            assert_eq!(of("count", ""), count, "{op} {stage}");
            assert_eq!(of("bucket", ",le=\"+Inf\""), count, "{op} {stage}");
            sums.insert(stage, of("sum", ""));
        }
        // All buckets of the whole alone: those of its stages would be half of all series.
        let buckets = |stage: &str| {
            let stage = format!("op=\"{op}\",stage=\"{stage}\",le=");
            metrics
                .keys()
                .filter(|it| it.contains("{lun=\"busy\"") && it.contains(&stage))
                .count()
        };
        assert_eq!((buckets("total"), buckets("queue")), (11, 1), "{op}");
        assert!(sums["total"] > 0.0, "{sums:?}");
        let parts = sums["network"] + sums["queue"];
        assert!(parts <= sums["total"], "{op}: {sums:?}");
    }
    // Those of the LUN, and those of its hosts' paths.
    let of_lun = |lun: &str| {
        let label = format!("lun=\"{lun}\"");
        // Statuses are counted by what happened.
        let of_lun = |name: &&String| name.contains(&label) && !name.contains("_scsi_status_");
        let all = metrics.keys().filter(of_lun);
        let (paths, own): (Vec<_>, Vec<_>) = all.partition(|name| name.contains("host=\""));
        (own.len(), paths.len())
    };
    // Nobody is granted the idle one; the other has a host and two portals.
    assert_eq!((of_lun("idle"), of_lun("busy")), ((40, 0), (58, 4)));
    daemon.stop();
}

#[test]
fn a_write_is_of_the_journal_that_answers_it_or_of_the_backend_and_never_of_both() {
    let fast = "[[pool]]\nname = \"fast\"\npath = \"fast\"\njournal = \"journal\"\njournal_size = \"64MiB\"\n";
    let daemon = Daemon::start_with("journal_stage", fast);
    daemon.apply(&OBJECTS.replacen("backend = \"memory\"", "pool = \"fast\"", 1));
    let mut client = Client::open(&daemon.portals[0], &format!("{IQN}:t"));
    let mut counted = |op: &str, at: u32| {
        for number in 0_u8..20 {
            client.write(at, &vec![number; 4096], 512);
        }
        client.read(0, 8, 512);
        let metrics = metrics(&daemon);
        ["total", "journal", "backend"].map(|stage| {
            let of = |what: &str| {
                let name = format!(
                    "causeway_lun_latency_seconds_{what}{{lun=\"busy\",op=\"{op}\",stage=\"{stage}\"}}"
                );
                metrics.get(&name).copied()
            };
            // It waits for the disk: some time passes.
            assert!(stage != "journal" || of("sum").is_none_or(|sum| sum > 0.0));
            of("count")
        })
    };
    assert_eq!(counted("write", 0), [Some(20.0), Some(20.0), None]);
    assert_eq!(counted("read", 0), [Some(2.0), None, Some(2.0)]);
    let said = daemon.causeway(&["lun", "set", "busy", "cache=write-through"]);
    assert_eq!(said.code, Some(0), "{}", said.text);
    // What the log still has of those blocks would have them go there.
    assert_eq!(counted("write", 64), [Some(60.0), Some(40.0), Some(20.0)]);
    let shown = json(&daemon, &["lun", "show", "busy"]);
    let stages = &shown["ops"]["write"]["latency"];
    assert_eq!(stages["journal"]["count"], 40, "{stages}");
    assert_eq!(stages["backend"]["count"], 20, "{stages}");
    daemon.stop();
}

/// Runs a command that must succeed, and reads the document that it prints.
fn json(daemon: &Daemon, arguments: &[&str]) -> serde_json::Value {
    let mut all = arguments.to_vec();
    all.extend(["-o", "json"]);
    let said = daemon.causeway(&all);
    assert_eq!(said.code, Some(0), "{}", said.text);
    serde_json::from_str(&said.text).unwrap()
}

#[test]
fn top_shows_what_a_host_does_now() {
    let (daemon, mut client) = start("top");
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let work = move || {
        while matches!(
            stopped.try_recv(),
            Err(std::sync::mpsc::TryRecvError::Empty)
        ) {
            client.write(0, &[1; 4096], 512);
            client.read(0, 8, 512);
        }
    };
    let worker = std::thread::Builder::new().spawn(work).unwrap();
    let top = json(&daemon, &["top", "--once", "--interval", "0.5"]);
    stop.send(()).unwrap();
    worker.join().unwrap();
    let busy = &top["luns"][0];
    assert_eq!(
        (&busy["name"], &busy["online"]),
        (&"busy".into(), &true.into())
    );
    let figure = |of: &serde_json::Value| of.as_f64().unwrap_or_else(|| panic!("{top}"));
    let (reads, writes) = (figure(&busy["read_iops"]), figure(&busy["write_iops"]));
    assert!(reads > 10.0 && writes > 10.0, "{busy}");
    assert!(
        figure(&busy["bytes_per_second"]) >= 4000.0 * (reads + writes),
        "{busy}"
    );
    let latency = &busy["latency_us"];
    assert!(figure(&latency["p99"]) >= figure(&latency["p50"]), "{busy}");
    assert!(figure(&latency["mean"]) > 0.0, "{busy}");
    let idle = &top["luns"][1];
    assert_eq!(
        (&idle["iops"], &idle["latency_us"]["p99"]),
        (&0.0.into(), &serde_json::Value::Null)
    );
    let session = &top["sessions"][0];
    assert_eq!(session["target"], "t");
    assert!(figure(&session["iops"]) > 20.0, "{session}");
    assert!(figure(&session["latency_us"]["p50"]) > 0.0, "{session}");
    let works = top["cores"].as_array().unwrap().iter();
    assert!(
        works
            .map(|core| figure(&core["busy"]))
            .any(|busy| busy > 0.0),
        "{top}"
    );
    daemon.stop();
}

/// WCE of the caching page, by MODE SENSE (6).
/// Reads and writes so far of each LUN, by name, and how many of the reads have a time.
fn activity(daemon: &Daemon) -> BTreeMap<String, [u64; 3]> {
    let view = json(daemon, &["api", "GET", "/api/v1/activity"]);
    let luns = view["luns"].as_array().unwrap().iter();
    let of = |lun: &serde_json::Value| {
        let figure = |path: &str| lun.pointer(path).unwrap().as_u64().unwrap();
        let timed = lun.pointer("/read/latency/total/count");
        let timed = timed.map_or(0, |count| count.as_u64().unwrap());
        let figures = [figure("/read/ops"), figure("/write/ops"), timed];
        (lun["name"].as_str().unwrap().to_owned(), figures)
    };
    luns.map(of).collect()
}

#[test]
fn activity_is_what_hosts_did_however_long_a_lun_did_nothing() {
    let (daemon, mut client) = start("quiet");
    let seen = |busy: &str, figures: [u64; 3]| {
        let wanted = [(busy, figures), ("idle", [0; 3])];
        let wanted = wanted.map(|(name, figures)| (name.to_owned(), figures));
        assert_eq!(activity(&daemon), BTreeMap::from(wanted));
    };
    seen("busy", [0; 3]);
    for round in 1..=3 {
        client.read(0, 8, 512);
        client.write(0, &[7; 512], 512);
        // Asked again and again, while it does nothing more.
        for _ in 0..3 {
            seen("busy", [round, round, round]);
        }
    }
    let said = daemon.causeway(&["lun", "rename", "busy", "other"]);
    assert_eq!(said.code, Some(0), "{}", said.text);
    seen("other", [3; 3]);
    client.read(0, 8, 512);
    seen("other", [4, 3, 4]);
    daemon.stop();
}

fn write_cache(client: &mut Client) -> bool {
    client.good(&[0x1a, 8, 8, 0, 64, 0], &[], 64)[6] & 4 != 0
}

#[test]
fn the_mode_of_the_cache_changes_live_and_hosts_see_it() {
    let (daemon, mut client) = start("cache");
    let show = |of: &str| json(&daemon, &["lun", "show", "busy"])[of].clone();
    assert_eq!(show("cache"), "volatile");
    assert!(write_cache(&mut client));
    let set = |words: &[&str]| {
        let said = daemon.causeway(&[&["lun", "set", "busy"], words].concat());
        (said.code.unwrap(), said.text)
    };
    assert_eq!(set(&["cache=write-through"]).0, 0);
    let reported = client.command(&[0; 6], &[], 0).sense.to_vec();
    // Fixed format behind the two bytes of the data segment: UNIT ATTENTION, MODE PARAMETERS
    // CHANGED.
    assert_eq!(
        (reported[2] & 15, reported[12], reported[13]),
        (6, 0x2a, 1),
        "{reported:02x?}"
    );
    assert!(!write_cache(&mut client));
    client.write(0, &[7; 512], 512);
    let (code, reported) = set(&["cache=volatile"]);
    assert_eq!(code, 5, "{reported}");
    assert!(
        reported.contains("not flushed are lost when power"),
        "{reported}"
    );
    assert!(!write_cache(&mut client), "nothing was changed");
    let metric = "causeway_lun_cache{lun=\"busy\",mode=\"write-through\"}";
    assert_eq!(metrics(&daemon).get(metric), Some(&1.0));
    assert!(
        daemon
            .causeway(&["export"])
            .text
            .contains("cache = \"write-through\"")
    );
    assert_eq!(set(&["cache=volatile", "--yes"]).0, 0);
    client.settle();
    assert!(write_cache(&mut client));
    assert_eq!(client.read(0, 1, 512), [7; 512]);
    daemon.stop();
}

/// Reads of 4 KiB as fast as one connection can, 16 at a time, for so long: how many a second.
#[expect(clippy::disallowed_methods, reason = "it measures the real world")]
fn read_rate(client: &mut Client, seconds: f64) -> f64 {
    let read = |client: &mut Client| {
        client.queue(&ten(0x28, 0, 0, 8), &[], 4096);
    };
    let begin = std::time::Instant::now();
    for _ in 0..16 {
        read(client);
    }
    let mut done = 0_u32;
    while begin.elapsed().as_secs_f64() < seconds {
        client.event();
        done += 1;
        read(client);
    }
    let rate = f64::from(done) / begin.elapsed().as_secs_f64();
    for _ in 0..16 {
        client.event();
    }
    rate
}

#[test]
fn a_limit_set_live_holds_within_5_percent_and_is_lifted_again() {
    let (daemon, mut client) = start("limit");
    let set = |words: &[&str]| json(&daemon, &[&["lun", "set", "busy"], words].concat());
    let free = read_rate(&mut client, 0.3);
    assert!(free > 3_000.0, "{free}");
    for (words, wanted) in [
        (["limit.iops=800", "limit.burst_seconds=2"], 800.0),
        (["limit.iops=none", "limit.bytes_per_second=6M"], 1_536.0),
    ] {
        let lun = set(&words);
        assert!(lun["limit"].is_object(), "{lun}");
        let rate = read_rate(&mut client, 2.0);
        assert!((rate - wanted).abs() < wanted * 0.05, "{rate} for {wanted}");
    }
    let lun = json(&daemon, &["lun", "show", "busy"]);
    assert_eq!(
        lun["limit"]["burst_seconds"], 2,
        "what is not named stays: {lun}"
    );
    assert!(
        lun["limited"]["deferred"].as_u64().unwrap() > 1_000,
        "{lun}"
    );
    let export = daemon.causeway(&["export"]).text;
    let line = "limit = { bytes_per_second = \"6MiB\", burst_seconds = 2 }";
    assert!(export.contains(line), "{export}");
    assert!(metrics(&daemon)["causeway_lun_limit_deferred_total{lun=\"busy\"}"] > 1_000.0);
    set(&["limit=none"]);
    let lifted = read_rate(&mut client, 0.3);
    assert!(lifted > 3_000.0, "{lifted}");
    daemon.stop();
}

#[test]
fn a_read_cache_is_switched_live_and_reports_how_often_it_helped() {
    let (daemon, mut client) = start("read-cache");
    client.write(0, &vec![7; 1 << 20], 512);
    let show = |of: &str| json(&daemon, &["lun", "show", "busy"])[of].clone();
    assert_eq!(show("cached"), serde_json::Value::Null);
    json(&daemon, &["lun", "set", "busy", "read_cache=4M"]);
    for _ in 0..2 {
        for at in 0..64 {
            assert_eq!(client.read(at * 8, 8, 512), [7; 4096]);
        }
    }
    let facts = show("cached");
    assert_eq!((&facts["hits"], &facts["misses"]), (&64.into(), &64.into()));
    assert_eq!(facts["bytes"], 64 << 12);
    client.write(8, &[9; 4096], 512);
    assert_eq!(client.read(8, 8, 512), [9; 4096], "a write is seen at once");
    assert_eq!(show("cached")["hits"], 65, "and kept");
    assert_eq!(
        metrics(&daemon)["causeway_cache_hits_total{lun=\"busy\"}"],
        65.0
    );
    json(&daemon, &["lun", "set", "busy", "read_cache=none"]);
    assert_eq!(show("cached"), serde_json::Value::Null);
    assert_eq!(client.read(8, 8, 512), [9; 4096]);
    daemon.stop();
}

#[test]
fn limits_of_bytes_in_flight_are_objects_properties_that_change_live() {
    let (daemon, mut client) = start("limits");
    let most = |what: &str, name: &str| {
        json(&daemon, &[what, "show", name])["bytes_in_flight_max"].clone()
    };
    assert_eq!(most("lun", "busy"), serde_json::Value::Null);
    let lun = json(&daemon, &["lun", "set", "busy", "bytes_in_flight_max=8M"]);
    assert_eq!(lun["bytes_in_flight_max"], 8 << 20);
    let host = json(&daemon, &["host", "set", "all", "bytes_in_flight_max=1MiB"]);
    assert_eq!(host["bytes_in_flight_max"], 1 << 20);
    // The session that stood before has it, and what is larger than the limit still goes through.
    let session = &json(&daemon, &["session", "ls"])[0];
    assert_eq!(session["bytes_in_flight_max"], 1 << 20);
    client.write(0, &vec![5; 4 << 20], 512);
    assert_eq!(client.read(0, 8192, 512), vec![5; 4 << 20]);
    let lun = json(&daemon, &["lun", "show", "busy"]);
    assert_eq!(lun["bytes_in_flight"], 0);
    // What stands in an export changes nothing, and what is left out of a file stays.
    let export = daemon.causeway(&["export"]).text;
    assert_eq!(export.matches("bytes_in_flight_max").count(), 2, "{export}");
    daemon.apply(&export);
    assert_eq!(json(&daemon, &["status"])["generation"], 4);
    daemon.apply(OBJECTS);
    assert_eq!(most("lun", "busy"), 8 << 20);
    assert_eq!(
        most("host", "all"),
        serde_json::Value::Null,
        "a host is what the file says"
    );
    json(&daemon, &["lun", "set", "busy", "bytes_in_flight_max=none"]);
    assert_eq!(most("lun", "busy"), serde_json::Value::Null);
    let wrong = daemon.causeway(&["lun", "set", "busy", "bytes_in_flight_max=many"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.text);
    daemon.stop();
}

/// Two hosts, each with a LUN of its own.
const APART: &str = r#"
[[host]]
name = "a"
iqn = ["iqn.2026-11.test:a"]
[[host]]
name = "b"
iqn = ["iqn.2026-11.test:b"]
[[lun]]
name = "slow"
size = "64MiB"
backend = "memory"
limit = { iops = 40, burst_seconds = 1 }
[[lun]]
name = "quick"
size = "64MiB"
backend = "memory"
[[target]]
name = "t"
[[grant]]
host = "a"
lun = "slow"
target = "t"
lun_id = 0
[[grant]]
host = "b"
lun = "quick"
target = "t"
lun_id = 0
"#;

/// Within that two whole tens of seconds are recorded, wherever they begin.
const POINTS_TIME_MAX: Duration = Duration::from_secs(120);

/// Figures of an object's reads at their storage, p50 and p99 of each point since a time, in
/// microseconds.
fn at_storage(daemon: &Daemon, object: &str, since: &str) -> Vec<Option<[f64; 2]>> {
    let names = ["read_backend_p50", "read_backend_p99"];
    let history = json(
        daemon,
        &["history", object, names[0], names[1], "--from", since],
    );
    assert_eq!(history["step"], 10, "{history}");
    let line = |name: &str| {
        let lines = history["lines"].as_array().unwrap().iter();
        let means = lines.filter(|line| line["metric"] == name);
        let means = means.flat_map(|line| line["mean"].as_array().unwrap().clone());
        means.map(|it| it.as_f64()).collect::<Vec<_>>()
    };
    let points = line(names[0]).into_iter().zip(line(names[1]));
    points.map(|(p50, p99)| Some([p50?, p99?])).collect()
}

/// Pairs of points of the same time, where both are known.
fn both(one: &[Option<[f64; 2]>], other: &[Option<[f64; 2]>]) -> Vec<([f64; 2], [f64; 2])> {
    let pairs = one.iter().zip(other);
    pairs.filter_map(|(one, other)| one.zip(*other)).collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it measures the real world")]
fn the_history_of_a_host_has_the_stages_of_its_own_commands_as_its_lun_has_them() {
    let daemon = Daemon::start("host-stages");
    daemon.apply(APART);
    let clients = ["iqn.2026-11.test:a", "iqn.2026-11.test:b"].map(|name| {
        let client = Client::login(&daemon.portals[0], &config(name, &format!("{IQN}:t")));
        let mut client = client.unwrap();
        client.settle();
        client
    });
    let enough = Arc::new(AtomicBool::new(false));
    let reads = clients.map(|mut client| {
        let enough = Arc::clone(&enough);
        let work = move || {
            while !enough.load(Ordering::Relaxed) {
                client.read(0, 8, 512);
            }
        };
        std::thread::Builder::new().spawn(work).unwrap()
    });
    // All questions begin at one time, so what has the same place in two answers has the same time.
    let first = json(
        &daemon,
        &["history", "lun:slow", "read_ops", "--from", "2m"],
    );
    let since = first["from"].as_str().unwrap();
    let all =
        || ["host:a", "lun:slow", "host:b", "target:t"].map(|it| at_storage(&daemon, it, since));
    let begin = std::time::Instant::now();
    let [host, lun, other, target] = loop {
        let all = all();
        let [host, lun, other, target] = &all;
        let are_there = both(host, lun).len() >= 2 && both(other, target).len() >= 2;
        if are_there || begin.elapsed() > POINTS_TIME_MAX {
            break all;
        }
        std::thread::sleep(Duration::from_secs(1));
    };
    enough.store(true, Ordering::Relaxed);
    for one in reads {
        one.join().unwrap();
    }
    let pairs = both(&host, &lun);
    assert!(pairs.len() >= 2, "{host:?} {lun:?}");
    // A bucket ends at most a quarter behind the one before; the file rounds to 0.4 %.
    let near = |one: f64, other: f64| one / other < 1.26 && other / one < 1.26;
    for (host, lun) in pairs {
        assert!(
            near(host[0], lun[0]) && near(host[1], lun[1]),
            "{host:?} for {lun:?}"
        );
        assert!(
            host[1] >= 16_000.0,
            "the limit lets 40 a second pass: {host:?}"
        );
    }
    assert!(both(&other, &target).len() >= 2, "{other:?} {target:?}");
    // Half of the reads of the slow LUN took 25 ms: none of those are in the other host's figures.
    let medians = other.iter().flatten().map(|it| it[0]);
    assert!(medians.clone().all(|it| it < 16_000.0), "{other:?}");
    daemon.stop();
}
