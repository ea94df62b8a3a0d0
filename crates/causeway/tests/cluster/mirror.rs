//! A LUN with copies on two daemons, and a host that goes where it is served. What it has is asked
//! by a foreign client (qemu-io).

use super::{Etcd, cluster, cluster_with, node};
use crate::initiator::Initiator;
use crate::place::{CAUSEWAY, Daemon, Place};
use serde_json::Value;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use test_ports::free_port;

const LUN: &str = "vm01";
const LUN_MIB: u32 = 64;

/// A takeover takes 3 s at least: who stops in order is not found out by its silence.
const HANDED_OVER_WITHIN: Duration = Duration::from_millis(2500);

/// How often it is asked whether a copy has come to a state: that takes seconds at most, and each
/// question is a process of its own, which takes some milliseconds.
const QUESTIONS_MAX: u32 = 5_000;

/// Two nodes of one cluster, with a LUN that has a copy on each, and a host on both.
pub(super) struct Pair {
    pub(super) etcd: Etcd,
    pub(super) places: [Place; 2],
    daemons: [Option<Daemon>; 2],
}

impl Pair {
    pub(super) fn start(test: &str) -> Option<Self> {
        let etcd = Etcd::start(test)?;
        let places = ["san-a", "san-b"].map(|name| node(test, name, &etcd));
        for place in &places {
            // It is the same one after a restart.
            let known = std::fs::read_to_string(place.path("node.toml")).unwrap();
            let port = format!("port = {}", free_port());
            place.write("node.toml", &known.replace("port = 0", &port));
        }
        let daemons = [places[0].start(), places[1].start()].map(Some);
        cluster(&places[0], 0, "init home");
        let token = cluster(&places[0], 0, "token");
        cluster_with(&places[1], 0, &["join", "-"], &token);
        for place in &places {
            place.run(0, "target create t1");
            place.run(0, "host create any --iqn *");
        }
        Some(Self {
            etcd,
            places,
            daemons,
        })
    }

    /// Makes the LUN on the first node, and shows it to the host on both.
    pub(super) fn with_lun(&self) {
        self.places[0].run(0, "lun create vm01 --size 64M --copies san-a,san-b");
        until("the other node makes its copy", || {
            let names = self.places[1].json("lun ls");
            names.to_string().contains(LUN)
        });
        for place in &self.places {
            place.run(0, "grant create any vm01");
        }
    }

    pub(super) fn kill(&mut self, at: usize) {
        self.daemons[at].take().unwrap().kill();
    }

    /// Stops it in order; answers with its log.
    pub(super) fn stop(&mut self, at: usize) -> String {
        self.daemons[at].take().unwrap().stop()
    }

    pub(crate) fn begin(&mut self, at: usize) {
        self.daemons[at] = Some(self.places[at].start());
    }

    pub(super) fn mirror(&self, at: usize) -> Value {
        self.places[at].json("lun show vm01")["mirror"].clone()
    }

    pub(super) fn comes_to(&self, at: usize, state: &str) -> Value {
        let what = format!("node {at} is {state}");
        until(&what, || self.mirror(at)["state"] == state);
        self.mirror(at)
    }

    fn portal(&self, at: usize) -> String {
        let portals = self.places[at].json("portal ls");
        portals[0]["address"].as_str().unwrap().to_owned()
    }

    /// What qemu-io says to these commands at a node.
    pub(super) fn host(&self, at: usize, commands: &[String]) -> String {
        let output = self.host_begins(at, commands).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text + &String::from_utf8_lossy(&output.stderr)
    }

    pub(super) fn host_begins(&self, at: usize, commands: &[String]) -> Command {
        let portal = self.portal(at);
        let mut words = vec!["-f".to_owned(), "raw".to_owned()];
        for command in commands {
            words.extend(["-c".to_owned(), command.clone()]);
        }
        words.push(format!("iscsi://{portal}/iqn.2026-11.io.causeway:t1/0"));
        let mut command = Command::new("qemu-io");
        command.args(&words);
        command
    }

    pub(super) fn writes(&self, at: usize, byte: u8) {
        let all: Vec<String> = (0..16)
            .map(|it| format!("write -P {byte} {}k 64k", it * 256))
            .collect();
        let said = self.host(at, &all);
        assert_eq!(said.matches("wrote 65536/65536").count(), 16, "{said}");
    }

    pub(super) fn has(&self, at: usize, byte: u8) {
        let all: Vec<String> = (0..16)
            .map(|it| format!("read -P {byte} {}k 64k", it * 256))
            .collect();
        let said = self.host(at, &all);
        assert!(!said.contains("failed"), "{said}");
        assert_eq!(said.matches("read 65536/65536").count(), 16, "{said}");
    }
}

pub(super) fn until(what: &str, mut is: impl FnMut() -> bool) {
    let is_so = (0..QUESTIONS_MAX).any(|_| is());
    assert!(is_so, "it is never so that {what}");
}

#[expect(
    clippy::disallowed_methods,
    reason = "it measures what an administrator sees"
)]
#[test]
fn a_lun_with_copies_on_two_nodes_outlives_each_of_them_in_turn() {
    let Some(mut pair) = Pair::start("mirror") else {
        return;
    };
    pair.with_lun();
    let first = pair.comes_to(0, "owner");
    assert_eq!(first["in_sync"], serde_json::json!(["san-a", "san-b"]));
    assert_eq!(first["serves"], true);
    let other = pair.comes_to(1, "replica");
    assert_eq!(
        (&other["owner"], &other["serves"]),
        (&"san-a".into(), &false.into())
    );
    pair.writes(0, 0x11);
    pair.has(0, 0x11);
    // The owner dies: the other one has all of it, and serves.
    pair.kill(0);
    let alone = pair.comes_to(1, "solo");
    assert_eq!(alone["in_sync"], serde_json::json!(["san-b"]));
    pair.has(1, 0x11);
    pair.writes(1, 0x22);
    // It comes back, and is brought up from the log.
    pair.begin(0);
    let back = pair.comes_to(0, "replica");
    assert_eq!(back["in_sync"], serde_json::json!(["san-a", "san-b"]));
    pair.comes_to(1, "owner");
    pair.kill(1);
    pair.comes_to(0, "solo");
    pair.has(0, 0x22);
    pair.writes(0, 0x33);
    pair.begin(1);
    pair.comes_to(1, "replica");
    pair.has(0, 0x33);
    // A node that stops in order gives what it owns away, and is waited for by nobody.
    pair.comes_to(0, "owner");
    let epoch = pair.mirror(1)["epoch"].as_u64().unwrap();
    let begun = Instant::now();
    pair.daemons[0].take().unwrap().stop();
    let given = pair.comes_to(1, "solo");
    let took = begun.elapsed();
    assert_eq!(given["epoch"], epoch + 1, "it was given once");
    pair.has(1, 0x33);
    assert!(took < HANDED_OVER_WITHIN, "{took:?}");
}

/// How many LUNs move at once.
const LUNS: usize = 8;

#[test]
fn many_luns_move_together_and_none_holds_up_the_others() {
    let Some(mut pair) = Pair::start("mirror-many") else {
        return;
    };
    for at in 0..LUNS {
        let create = format!("lun create many{at} --size 16M --copies san-a,san-b");
        pair.places[0].run(0, &create);
    }
    let all_are = |pair: &Pair, at: usize, state: &str| {
        until(&format!("all LUNs are {state} on node {at}"), || {
            let luns = pair.places[at].json("lun ls");
            let luns = luns.as_array().map_or(&[][..], Vec::as_slice);
            let is = |lun: &Value| lun["mirror"]["state"] == state;
            luns.len() == LUNS && luns.iter().all(is)
        });
    };
    all_are(&pair, 0, "owner");
    all_are(&pair, 1, "replica");
    let epochs = |pair: &Pair, at: usize| -> Vec<u64> {
        let luns = pair.places[at].json("lun ls");
        let of = |lun: &Value| lun["mirror"]["epoch"].as_u64().unwrap();
        luns.as_array().unwrap().iter().map(of).collect()
    };
    let before = epochs(&pair, 1);
    pair.daemons[0].take().unwrap().stop();
    all_are(&pair, 1, "solo");
    let after = epochs(&pair, 1);
    let once: Vec<u64> = before.iter().map(|it| it + 1).collect();
    assert_eq!(after, once, "each was given once, and none was taken");
    pair.begin(0);
    all_are(&pair, 0, "replica");
    pair.kill(1);
    all_are(&pair, 0, "solo");
}

/// Writes a pattern of its own to each MiB, or says that it is there.
fn all_of(word: &str, said: &str, pair: &Pair, at: usize) {
    let each = |it: u32| format!("{word} -P {} {it}M 1M", 1 + it % 250);
    let commands: Vec<String> = (0..LUN_MIB).map(each).collect();
    let text = pair.host(at, &commands);
    assert!(!text.contains("failed"), "{text}");
    let done = text.matches(said).count();
    assert_eq!(done, usize::try_from(LUN_MIB).unwrap(), "{text}");
}

#[test]
fn a_copy_that_missed_more_than_the_log_keeps_is_made_anew_and_takes_over() {
    let Some(mut pair) = Pair::start("mirror-anew") else {
        return;
    };
    pair.with_lun();
    pair.comes_to(0, "owner");
    pair.writes(0, 0x11);
    pair.kill(1);
    pair.comes_to(0, "solo");
    // More than a quarter of the journal, which is what is kept for the other node.
    for _ in 0..3 {
        all_of("write", "wrote 1048576/1048576", &pair, 0);
    }
    // Blocks that the other one has, and that are given back meanwhile.
    let freed = pair.host(0, &["discard 63M 1M".to_owned()]);
    assert!(!freed.contains("failed"), "{freed}");
    pair.begin(1);
    until("the copy is made anew", || {
        let text = pair.mirror(0)["text"].to_string();
        text.contains("gets what changed") || pair.mirror(1)["state"] == "copying"
    });
    pair.comes_to(1, "replica");
    pair.comes_to(0, "owner");
    pair.kill(0);
    pair.comes_to(1, "solo");
    let last = pair.host(1, &["read -P 0 63M 1M".to_owned()]);
    assert!(last.contains("read 1048576/1048576"), "{last}");
    let rest = ["write -P 64 63M 1M".to_owned()];
    assert!(!pair.host(1, &rest).contains("failed"));
    all_of("read", "read 1048576/1048576", &pair, 1);
}

const TARGET: &str = "iqn.2026-11.io.causeway:t1";

impl Pair {
    /// A session at a node.
    pub(crate) fn session(&self, at: usize, name: &str) -> Initiator {
        let portal = self.portal(at);
        let mut found = None;
        until("it logs in", || {
            found = Initiator::login(&portal, name, TARGET);
            found.is_some()
        });
        found.unwrap()
    }

    /// A host of this name hears of these groups at a node.
    pub(super) fn hears(&self, at: usize, name: &str, wanted: &[(u16, u8, Vec<u16>)]) {
        let mut said = None;
        let is_so = (0..QUESTIONS_MAX).any(|_| {
            said = self.session(at, name).groups();
            said.as_deref() == Some(wanted)
        });
        assert!(is_so, "node {at} says {said:?} to {name}, not {wanted:?}");
    }
}

#[test]
fn each_node_is_a_port_group_of_its_own_and_both_say_the_same_of_all() {
    let Some(mut pair) = Pair::start("groups") else {
        return;
    };
    pair.with_lun();
    pair.comes_to(1, "replica");
    // Another LUN on each, which has no copies: all is as on a node alone.
    for place in &pair.places {
        place.run(0, "lun create plain --size 1M");
        place.run(0, "host create one --iqn iqn.2026-11.io.example:one");
        place.run(0, "grant create one plain");
    }
    let (is, forwards, is_not) = (0, 1, 3);
    let both = [(1, is, vec![1]), (2, forwards, vec![1025])];
    for at in [0, 1] {
        pair.hears(at, "iqn.2026-11.io.example:any", &both);
        let wanted = [(1, 1), (1025, 2)][at];
        assert_eq!(
            pair.session(at, "iqn.2026-11.io.example:any").path(),
            wanted
        );
        pair.hears(at, "iqn.2026-11.io.example:one", &[(1, is, vec![1])]);
        assert_eq!(
            pair.session(at, "iqn.2026-11.io.example:one").path(),
            (1, 1)
        );
    }
    // A target more on one node: the other one names its port, to whoever may use it.
    pair.places[0].run(0, "target create t2");
    let id = pair.places[0].json("target ls");
    let ports = id.as_array().unwrap().len();
    assert_eq!(ports, 2);
    pair.places[0].run(0, "host create two --iqn iqn.2026-11.io.example:two");
    pair.places[0].run(0, "grant create two vm01 --target t2");
    pair.hears(1, "iqn.2026-11.io.example:any", &both);
    let mut session = pair.session(1, "iqn.2026-11.io.example:two");
    let seen = session.groups().unwrap();
    assert_eq!((seen[0].0, seen[0].2.len()), (1, 2), "{seen:?}");
    // The owner dies: what the other one says follows the role.
    pair.kill(0);
    pair.comes_to(1, "solo");
    pair.hears(
        1,
        "iqn.2026-11.io.example:any",
        &[(1, is_not, vec![1]), (2, is, vec![1025])],
    );
    pair.begin(0);
    pair.comes_to(0, "replica");
    for at in [0, 1] {
        pair.hears(
            at,
            "iqn.2026-11.io.example:any",
            &[(1, forwards, vec![1]), (2, is, vec![1025])],
        );
    }
}

/// A host with a path to each node, by our own initiator: it writes at random places, and what it
/// reads carries the stamps of what it wrote.
pub(super) struct Load {
    child: Child,
    /// What it says of each second, and at the end.
    lines: Receiver<String>,
}

/// Hears lines as they come, whoever asks for them later.
#[expect(
    clippy::disallowed_methods,
    reason = "a pipe is read outside of any core"
)]
fn heard(lines: Lines<BufReader<ChildStdout>>) -> Receiver<String> {
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        // Nobody may listen any more.
        let mut lines = lines.map_while(Result::ok);
        lines.all(|it| sender.send(it).is_ok())
    });
    heard
}

impl Load {
    /// `wanted`: operations a second.
    pub(super) fn begin(pair: &Pair, wanted: u32) -> Self {
        Self::at(pair, &[0, 1], wanted)
    }

    /// With paths to these nodes.
    pub(super) fn at(pair: &Pair, nodes: &[usize], wanted: u32) -> Self {
        let portals: Vec<String> = nodes.iter().map(|it| pair.portal(*it)).collect();
        let portals = portals.join(",");
        let url = format!("iscsi://{portals}/iqn.2026-11.io.causeway:t1/0");
        let rate = format!("-g{wanted}i");
        let mut bench = Command::new(CAUSEWAY);
        bench.args(["bench", "-b4K", "-r", "-o2", "-w50", "-d900", "-W0", &rate]);
        bench.args(["--verify", "--destroy", "--driven", &url]);
        let mut child = bench
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        assert!(first.contains("\"second\""), "it works: {first}");
        let lines = heard(lines);
        Self { child, lines }
    }

    /// Waits until the host does something again, after what has happened to its paths.
    pub(super) fn goes_on(&mut self) {
        let does = |line: &String| {
            let said: Value = serde_json::from_str(line).unwrap();
            said["second"]["iops"].as_f64().is_some_and(|it| it > 0.0)
        };
        // What was said so far, and of the second that is under way, began before.
        let before = self.lines.try_iter().count();
        let mut later = self.lines.iter().skip(1).take(SECONDS_MAX);
        assert!(later.any(|it| does(&it)), "it hangs after {before} s more");
    }

    /// Ends it; its result.
    pub(super) fn end(mut self) -> Value {
        drop(self.child.stdin.take());
        let lines: Vec<String> = self.lines.iter().collect();
        let ended = self.child.wait().unwrap();
        let said: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
        let result = said["done"]["result"].clone();
        assert!(result.is_object(), "{ended}: {}", lines.join("\n"));
        result
    }
}

/// A host that does nothing for so many seconds hangs.
const SECONDS_MAX: usize = 20;

/// Rounds of kills: more by CAUSEWAY_KILL_ROUNDS.
fn rounds() -> usize {
    let set = std::env::var("CAUSEWAY_KILL_ROUNDS");
    set.map_or(4, |it| it.parse().expect("a number of rounds"))
}

#[test]
fn a_host_with_a_path_to_each_node_sees_no_error_while_each_is_killed_in_turn() {
    let Some(mut pair) = Pair::start("kills") else {
        return;
    };
    pair.with_lun();
    pair.comes_to(1, "replica");
    let mut load = Load::begin(&pair, 200);
    let mut owner = 0;
    for _ in 0..rounds() {
        let other = 1 - owner;
        pair.kill(owner);
        pair.comes_to(other, "solo");
        let status = pair.places[other].problems();
        let is_said = status.iter().any(|it| it.contains("is behind"));
        assert!(is_said, "{status:?}");
        pair.begin(owner);
        pair.comes_to(owner, "replica");
        pair.comes_to(other, "owner");
        assert_eq!(pair.places[other].problems(), Vec::<String>::new());
        load.goes_on();
        owner = other;
    }
    let result = load.end();
    assert_eq!(result["errors"], 0, "{result}");
    assert_eq!(result["never_returned"], 0, "{result}");
    assert_eq!(result["verify"]["bad"], 0, "{result}");
    let stall = result["stall_ms_max"].as_f64().unwrap();
    let checked = result["verify"]["checked"].as_u64().unwrap();
    println!(
        "{} kills: {checked} blocks read as they were written, the longest stall {stall} ms",
        rounds()
    );
    assert!(checked > 1_000, "{result}");
}
