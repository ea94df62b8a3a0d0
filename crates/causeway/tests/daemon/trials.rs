//! Bench runs and lab beds that the daemon starts: real loads, as the page starts them.

use crate::place::{Daemon, Place, text_of};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

const CAUSEWAY: &str = env!("CARGO_BIN_EXE_causeway");

/// A daemon with a LUN in memory that any host may use.
fn bed(name: &str) -> (Place, Daemon) {
    let place = Place::new(name);
    let daemon = place.start();
    place.run(0, "lun create vm01 --size 64M --backend memory");
    place.run(0, "target create t1");
    place.run(0, "host create any --iqn *");
    place.run(0, "grant create --host any --lun vm01 --target t1");
    (place, daemon)
}

/// A POST of the API, of which the command ends with `code`.
fn post(place: &Place, code: i32, path: &str, body: &Value) -> String {
    let words = ["api", "POST", path, "-"];
    text_of(
        &place.run_with(&place.api(), &words, &body.to_string()),
        code,
        path,
    )
}

fn started(place: &Place, path: &str, body: &Value) -> Value {
    serde_json::from_str(&post(place, 0, path, body)).unwrap()
}

/// Asks until it is so.
fn until(place: &Place, path: &str, is: impl Fn(&Value) -> bool) -> Value {
    let mut shown = Value::Null;
    for _ in 0..600 {
        shown = place.json(&format!("api GET {path}"));
        if is(&shown) {
            return shown;
        }
        std::thread::park_timeout(Duration::from_millis(100));
    }
    panic!("{path} stays {shown:#}");
}

/// Processes of the bench that were started for this place.
fn children(place: &Place) -> Vec<String> {
    let own = place.path("").canonicalize().unwrap();
    let mut out = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let (dir, name) = (entry.path(), entry.file_name());
        let words = std::fs::read(dir.join("cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        let is_here = std::fs::read_link(dir.join("cwd")).is_ok_and(|cwd| cwd == own);
        if is_here && words.contains("--driven") {
            out.push(format!("{} {words}", name.display()));
        }
    }
    out
}

fn has_no_children(place: &Place) {
    for _ in 0..100 {
        if children(place).is_empty() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(100));
    }
    panic!("{:?}", children(place));
}

#[test]
fn a_run_over_the_api_measures_what_the_command_line_does() {
    let (place, daemon) = bed("trial");
    let load = json!({ "block": "4K", "outstanding": 4, "seconds": 2, "warm_up_seconds": 1 });
    let wanted = json!({ "name": "<b>first</b>", "lun": "vm01", "load": load });
    let made = started(&place, "bench/runs", &wanted);
    let line = made["plan"]["command_line"].as_str().unwrap().to_owned();
    let session = until(&place, "sessions", |all| all[0]["host"] == "(bench)");
    assert_eq!(session[0]["target"], "(bench)");
    let running = children(&place).join("\n");
    assert!(
        running.contains("--chap bench:") && running.contains("bench-chap"),
        "{running}"
    );
    let run = until(&place, "bench/runs/1", |run| run["state"] == "finished");
    // The guest is in no object, and has gone.
    assert_eq!(place.json("session ls"), json!([]));
    assert_eq!(place.json("host ls").as_array().unwrap().len(), 1);
    assert_eq!(place.json("api GET refusals"), json!([]));
    assert!(!place.path("data/bench-chap").exists());
    assert_eq!(run["name"], "<b>first</b>");
    let (result, seconds) = (&run["result"], run["seconds"].as_array().unwrap());
    assert_eq!(result["errors"], 0, "{run:#}");
    // What was shown live is what the result has, but for the edges of seconds.
    let live: f64 = seconds[1..]
        .iter()
        .map(|it| it["iops"].as_f64().unwrap())
        .sum();
    let whole = result["read"]["ios"].as_f64().unwrap();
    assert!(
        (live / whole - 1.0).abs() < 0.1,
        "{live} of {whole}: {run:#}"
    );
    assert!(
        seconds[1]["p99_us"].as_f64() >= seconds[1]["p50_us"].as_f64(),
        "{run:#}"
    );
    // The line that was shown does the same from a shell, and both are of one workload.
    let mut words: Vec<&str> = line.split(' ').skip(1).collect();
    words.insert(1, "-Rjson");
    let output = Command::new(CAUSEWAY)
        .args(&words)
        .env("CAUSEWAY_INITIATOR_STATE", place.path("istate"))
        .env("CAUSEWAY_INITIATOR_RUN", place.path("run"))
        .output()
        .unwrap();
    let by_hand: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(by_hand["workload"], result["workload"]);
    let ratio =
        by_hand["read"]["iops"].as_f64().unwrap() / result["read"]["iops"].as_f64().unwrap();
    assert!((0.2..5.0).contains(&ratio), "{ratio} {by_hand:#}");
    for (form, begins) in [
        ("csv", "ms,reads"),
        ("svg", "<svg"),
        ("text", "\nCommand Line"),
    ] {
        let text = place.run(0, &format!("api GET bench/runs/1/result?form={form}"));
        assert!(text.starts_with(begins), "{form}: {text}");
    }
    daemon.stop();
}

#[test]
fn a_run_that_is_cancelled_keeps_what_it_measured_and_one_that_is_cut_off_leaves_nothing() {
    let (place, daemon) = bed("trial-cut");
    let long = json!({ "lun": "vm01", "load": { "seconds": 600, "warm_up_seconds": 0 } });
    started(&place, "bench/runs", &long);
    until(&place, "bench/runs/1", |run| run["seconds"][1].is_object());
    assert!(post(&place, 5, "bench/runs", &long).contains("bench run 1"));
    place.run(0, "api POST bench/runs/1/cancel");
    let run = until(&place, "bench/runs/1", |run| run["state"] == "cancelled");
    assert_eq!(run["result"]["stopped_early"], true, "{run:#}");
    assert!(run["result"]["read"]["ios"].as_u64() > Some(0), "{run:#}");
    has_no_children(&place);
    let objects = place.json("export");
    started(&place, "bench/runs", &long);
    until(&place, "bench/runs/2", |run| run["seconds"][0].is_object());
    daemon.kill();
    has_no_children(&place);
    let daemon = place.start();
    let run = place.json("api GET bench/runs/2");
    assert_eq!(run["state"], "interrupted", "{run:#}");
    assert_eq!(place.json("export"), objects);
    assert!(!place.path("data/bench-chap").exists());
    // A stop in order takes the run along, too.
    started(&place, "bench/runs", &long);
    until(&place, "bench/runs/3", |run| run["seconds"][0].is_object());
    daemon.stop();
    has_no_children(&place);
    let daemon = place.start();
    assert_eq!(place.json("api GET bench/runs/3")["state"], "interrupted");
    daemon.stop();
}

#[test]
fn a_run_that_writes_asks_first_and_what_only_reads_may_not_write() {
    let (place, daemon) = bed("trial-write");
    let writes = json!({ "lun": "vm01", "load": { "seconds": 1, "warm_up_seconds": 0, "write_percent": 50, "verify": true } });
    let refused = post(&place, 5, "bench/runs", &writes);
    assert!(refused.contains("CWY3008"), "{refused}");
    let planned = started(&place, "bench/runs?dry_run=true", &writes);
    assert_eq!(planned["plan"]["confirm"], "vm01", "{planned:#}");
    assert_eq!(place.json("api GET bench/runs"), json!([]));
    started(&place, "bench/runs?force=true", &writes);
    let run = until(&place, "bench/runs/1", |run| run["state"] != "running");
    assert_eq!(
        (&run["state"], &run["result"]["verify"]["bad"]),
        (&json!("finished"), &json!(0)),
        "{run:#}"
    );
    assert!(run["result"]["write"]["ios"].as_u64() > Some(0), "{run:#}");
    // What is asked of operators and admins.
    let token = place.run(0, "token create op --role operator --days 1");
    place.write("op.secret", &token);
    let status = place.json("status");
    let address = status["api"][1].as_str().unwrap();
    let as_operator = |body: &Value| {
        let words = [
            "--token-file",
            "op.secret",
            "api",
            "POST",
            "bench/runs?force=true",
            "-",
        ];
        let output = place.run_with(address, &words, &body.to_string());
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    assert!(
        as_operator(&writes).contains("CWY5022"),
        "{}",
        as_operator(&writes)
    );
    let url = json!({ "url": "iscsi://127.0.0.1:1/iqn.2026-11.io.causeway:x/0", "chap_user": "u", "chap_secret": "not to be seen" });
    assert!(as_operator(&url).contains("CWY5022"));
    let reads = json!({ "lun": "vm01", "load": { "seconds": 1, "warm_up_seconds": 0 } });
    assert!(as_operator(&reads).contains("\"running\""));
    until(&place, "bench/runs/2", |run| run["state"] == "finished");
    // An admin may; nobody answers there, and the secret is nowhere.
    started(&place, "bench/runs", &url);
    let run = until(&place, "bench/runs/3", |run| run["state"] == "failed");
    assert!(run["problem"]["detail"].is_string(), "{run:#}");
    daemon.stop();
    for entry in std::fs::read_dir(place.path("data")).unwrap().flatten() {
        if let Ok(bytes) = std::fs::read(entry.path()) {
            let text = String::from_utf8_lossy(&bytes);
            assert!(
                !text.contains("not to be seen"),
                "{}",
                entry.path().display()
            );
        }
    }
}

#[test]
fn io_goes_on_over_a_bed_while_a_link_of_it_is_cut() {
    let place = Place::new("trial-lab");
    let daemon = place.start_with(Stdio::null());
    let lab = place.json("api GET lab");
    if lab["may_start"] != true {
        println!("skipped: {}", lab["reason"]);
        return;
    }
    let wanted = json!({ "topology": "two-paths", "rate": "100M", "load": { "seconds": 120 } });
    started(&place, "lab/beds", &wanted);
    let goes = |bed: &Value| bed["state"] == "failed" || bed["seconds"][2].is_object();
    let bed = until(&place, "lab/beds/1", goes);
    if bed["problem"]["code"] == "CWY7102" {
        println!("skipped: {}", bed["problem"]["detail"]);
        return;
    }
    assert_eq!(bed["state"], "running", "{bed:#}");
    let cut = json!({ "link": "eth0", "state": "cut" });
    let bed = started(&place, "lab/beds/1/links", &cut);
    let state = |bed: &Value, link: &str| {
        let links = bed["links"].as_array().unwrap();
        links.iter().find(|it| it["id"] == link).unwrap()["state"].clone()
    };
    assert_eq!(
        (state(&bed, "eth0"), state(&bed, "eth2")),
        (json!("cut"), json!("up"))
    );
    let is_down = |bed: &Value| {
        let paths = bed["paths"].as_array().unwrap();
        let of_nic = paths.iter().filter(|it| it["nic"] == "eth0");
        of_nic.clone().count() > 0 && of_nic.clone().all(|it| it["state"] == "down")
    };
    let bed = until(&place, "lab/beds/1", is_down);
    let at = bed["seconds"].as_array().unwrap().len();
    let later = until(&place, "lab/beds/1", |bed| {
        bed["seconds"][at + 2].is_object()
    });
    let after = &later["seconds"].as_array().unwrap()[at + 1..];
    assert!(
        after.iter().all(|it| it["iops"].as_f64() > Some(0.0)),
        "{later:#}"
    );
    assert_eq!(later["load"]["errors"], 0, "{later:#}");
    let namespaces: Vec<String> = serde_json::from_value(later["namespaces"].clone()).unwrap();
    let stands = |name: &String| std::path::Path::new("/run/netns").join(name).exists();
    assert!(namespaces.iter().all(stands), "{namespaces:?}");
    // A daemon that is killed leaves nothing of it.
    daemon.kill();
    for _ in 0..300 {
        if !namespaces.iter().any(stands) {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(100));
    }
    panic!("{namespaces:?} are still there");
}

/// The last verification may take longer than a driver that is gone is waited for.
#[test]
fn a_driver_that_still_reads_gets_the_result_of_a_run_that_ends_slowly() {
    let (place, daemon) = bed("trial-slow-end");
    let target = place.json("target show t1");
    let portal = target["portals"][0].as_str().unwrap();
    let url = format!("iscsi://{portal}/{}/0", target["iqn"].as_str().unwrap());
    let words = "bench --driven -b4K -t1 -o4 -w50 -r -f16M -d600 -W0 -C0 --verify --destroy";
    let mut child = Command::new(CAUSEWAY)
        .args(words.split(' '))
        .arg(&url)
        .env("CAUSEWAY_INITIATOR_STATE", place.path("istate"))
        .env("CAUSEWAY_INITIATOR_RUN", place.path("irun"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().map(|it| it.unwrap());
    assert!(next().unwrap().contains("\"second\""));
    daemon.pause();
    drop(child.stdin.take());
    std::thread::park_timeout(Duration::from_secs(6));
    daemon.go_on();
    let last = std::iter::from_fn(next).last().unwrap();
    let done: Value = serde_json::from_str(&last).unwrap();
    let verified = &done["done"]["result"]["verify"];
    assert!(verified["checked"].as_u64() > Some(0), "{last}");
    assert_eq!(verified["bad"], 0, "{last}");
    assert!(child.wait().unwrap().success());
    daemon.stop();
}
