//! `causeway path` against programs that run, and against a daemon that has stopped answering.

use super::place::{Daemon, Place};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const CAUSEWAY: &str = env!("CARGO_BIN_EXE_causeway");

/// A daemon with two portals and a LUN for everyone, and the environment of its initiators.
struct Bed {
    place: Place,
    daemon: Daemon,
    url: String,
}

fn bed(name: &str) -> Bed {
    let place = Place::new(name);
    let text = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let two = "listen = [ { ip = \"127.0.0.1\", port = 0 }, { ip = \"127.0.0.2\", port = 0 } ]";
    let one = "listen = [ { ip = \"127.0.0.1\", port = 0 } ]";
    place.write("node.toml", &text.replace(one, two));
    let daemon = place.start();
    place.run(0, "share create vm01 --size 64M --for *");
    let target = place.json("target show vm01");
    let portals: Vec<&str> = (target["portals"].as_array().unwrap().iter())
        .map(|it| it.as_str().unwrap())
        .collect();
    let url = format!(
        "iscsi://{}/{}/0",
        portals.join(","),
        target["iqn"].as_str().unwrap()
    );
    Bed { place, daemon, url }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the programs that are timed live outside of any core"
)]
fn clock() -> Instant {
    Instant::now()
}

impl Bed {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(CAUSEWAY);
        command
            .args(arguments)
            .env("CAUSEWAY_INITIATOR_STATE", self.place.path("istate"))
            .env("CAUSEWAY_INITIATOR_RUN", self.place.path("run"))
            .stdin(Stdio::null());
        command
    }

    /// Runs a command that must end with `code`; what it printed to standard output, or to standard
    /// error where it fails.
    fn run(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (said(&output.stdout), said(&output.stderr));
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}\n{out}{err}"
        );
        if code == 0 { out } else { err }
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let mut all = arguments.to_vec();
        all.extend(["-o", "json"]);
        serde_json::from_str(&self.run(0, &all)).unwrap()
    }

    /// A bench over two host ports that goes on until it is asked to end.
    fn bench(&self) -> Child {
        let words = [
            "bench",
            "-b4K",
            "-t1",
            "-o4",
            "-d60",
            "-W0",
            "-r",
            "--from",
            "127.0.0.1",
            "--from",
            "127.0.0.2",
            &self.url,
        ];
        let child = self
            .command(&words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        child.unwrap()
    }

    /// The one volume that is open, once `fits` says so.
    fn volume(&self, fits: impl Fn(&Value) -> bool) -> Value {
        let until = clock() + Duration::from_secs(60);
        while clock() < until {
            let all = self.json(&["path", "ls", &self.url]);
            if let Some(volume) = all.get(0).filter(|it| fits(it)) {
                return volume.clone();
            }
        }
        panic!("{}", self.json(&["path", "ls"]))
    }
}

fn states(volume: &Value) -> Vec<&str> {
    let paths = volume["paths"].as_array().unwrap().iter();
    paths.map(|it| it["state"].as_str().unwrap()).collect()
}

fn end(mut child: Child, signal: Signal) {
    kill_process(Pid::from_child(&child), signal).unwrap();
    child.wait().unwrap();
}

#[test]
fn a_plan_names_every_path_with_its_reason_and_what_becomes_of_it_after_a_loss() {
    let bed = bed("plan");
    let from = ["--from", "127.0.0.1", "--from", "127.0.0.2"];
    let mut words = vec!["path", "plan", bed.url.as_str()];
    words.extend(from);
    let plan = bed.json(&words);
    let roles = |plan: &Value| -> Vec<String> {
        let paths = plan["paths"].as_array().unwrap().iter();
        paths
            .map(|it| it["role"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(roles(&plan), ["active", "active", "hot", "hot"]);
    // The target reports which controller it is; the loopback interface has no card and no speed.
    for port in plan["target_ports"].as_array().unwrap() {
        assert_eq!(port["controller"], "n", "{plan:#}");
        assert_eq!(
            (&port["card"], &port["speed"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(port["sessions_left"], 2048);
    }
    assert!(
        plan["paths"]
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["why"].is_string())
    );
    words.extend(["--what-if", "host-port:127.0.0.1"]);
    assert_eq!(
        roles(&bed.json(&words)),
        ["active", "hot", "unusable", "unusable"]
    );
    words.pop();
    words.push("host-port:eth9");
    assert!(
        bed.run(2, &words)
            .contains("no path stands on host-port:eth9")
    );
    let nowhere = bed.url.replace("vm01", "vm02");
    let first = nowhere.split(',').next().unwrap().to_owned() + "/iqn.2026-11.io.causeway:vm02/0";
    let refused = bed.run(3, &["path", "plan", &first]);
    assert!(refused.contains("vm01"), "{refused}");
    assert_eq!(bed.json(&["path", "ls"]), serde_json::json!([]));
    bed.daemon.stop();
}

#[test]
fn a_running_bench_shows_its_paths_and_takes_a_policy_that_is_kept() {
    let bed = bed("running");
    let bench = bed.bench();
    let volume = bed.volume(|it| states(it).iter().filter(|it| **it == "active").count() == 2);
    assert_eq!(volume["policy"], "adaptive");
    let path = volume["paths"][0]["path"].as_str().unwrap();
    let explained = bed.json(&["path", "explain", path]);
    assert_eq!(explained["planned"]["role"], "active");
    assert!(explained["planned"]["stream"]["speed"].is_u64());
    bed.run(3, &["path", "explain", "eth9>10.0.0.1:3260"]);
    let top = bed.json(&["top", "--paths", "--once", "--interval", "1"]);
    let nics = top["nics"].as_array().unwrap();
    assert_eq!(nics.len(), 2, "{top:#}");
    for nic in nics {
        assert!(nic["iops"].as_f64() > Some(10.0), "{top:#}");
        // Four at a time at most.
        let latency = nic["latency_ms"].as_f64().unwrap();
        assert!(latency > 0.0 && latency < 1000.0, "{top:#}");
        // Nothing is lost here; where the machine is busy and acknowledges late, TCP sends
        // something again now and then.
        let again = nic["retransmits_per_second"].as_f64().unwrap();
        let few = nic["iops"].as_f64().unwrap() / 10.0;
        assert!((0.0..few).contains(&again), "{top:#}");
    }
    let text = bed.run(0, &["top", "--paths", "--once"]);
    assert!(
        text.contains("SENT AGAIN/s") && text.contains(path),
        "{text}"
    );
    // A path that is in no quarantine is not let out of it.
    let refused = bed.run(3, &["path", "release", path]);
    assert!(
        refused.contains(path) && refused.contains("quarantine"),
        "{refused}"
    );
    // A program has a moment to answer; one that gets no processor meanwhile is not counted, and
    // to set it again changes nothing.
    let set = || bed.json(&["path", "policy", &bed.url, "round-robin:7"])["volumes"] == 1;
    assert!((0..20).any(|_| set()), "the policy is in force nowhere");
    assert_eq!(bed.volume(|_| true)["policy"], "round-robin:7");
    // It is killed: its socket is found to be nobody's, and the next program begins with the
    // policy.
    end(bench, Signal::KILL);
    assert_eq!(bed.json(&["path", "ls"]), serde_json::json!([]));
    assert_eq!(std::fs::read_dir(bed.place.path("run")).unwrap().count(), 0);
    let bench = bed.bench();
    assert_eq!(bed.volume(|_| true)["policy"], "round-robin:7");
    end(bench, Signal::TERM);
    bed.daemon.stop();
}

#[test]
fn with_every_path_hung_ls_answers_within_a_tenth_of_a_second() {
    let bed = bed("hung");
    let bench = bed.bench();
    bed.volume(|it| states(it).iter().filter(|it| **it == "active").count() == 2);
    bed.daemon.pause();
    bed.volume(|it| !states(it).contains(&"active"));
    let mut took: Vec<Duration> = (0..10)
        .map(|_| {
            let begun = clock();
            bed.run(0, &["path", "ls"]);
            clock() - begun
        })
        .collect();
    took.sort();
    println!("path ls with every path hung: {took:?}");
    // The whole process, start to end; the machine may be busy with other tests.
    assert!(
        took[took.len() / 2] < Duration::from_millis(100),
        "{took:?}"
    );
    bed.daemon.go_on();
    bed.volume(|it| states(it).contains(&"active"));
    end(bench, Signal::TERM);
    bed.daemon.stop();
}
