//! A LUN with copies on two daemons, and a host that goes where it is served. What it has is asked
//! by a foreign client (qemu-io).

use super::{Etcd, cluster, cluster_with, node};
use crate::place::{Daemon, Place};
use serde_json::Value;
use std::process::Command;

const LUN: &str = "vm01";

/// How often it is asked whether a copy has come to a state: that takes seconds at most, and each
/// question is a process of its own, which takes some milliseconds.
const QUESTIONS_MAX: u32 = 5_000;

/// Two nodes of one cluster, with a LUN that has a copy on each, and a host on both.
struct Pair {
    _etcd: Etcd,
    places: [Place; 2],
    daemons: [Option<Daemon>; 2],
}

impl Pair {
    fn start(test: &str) -> Option<Self> {
        let etcd = Etcd::start(test)?;
        let places = ["san-a", "san-b"].map(|name| node(test, name, &etcd));
        let daemons = [places[0].start(), places[1].start()].map(Some);
        cluster(&places[0], 0, "init home");
        let token = cluster(&places[0], 0, "token");
        cluster_with(&places[1], 0, &["join", "-"], &token);
        for place in &places {
            place.run(0, "target create t1");
            place.run(0, "host create any --iqn *");
        }
        Some(Self {
            _etcd: etcd,
            places,
            daemons,
        })
    }

    /// Makes the LUN on the first node, and shows it to the host on both.
    fn with_lun(&self) {
        self.places[0].run(0, "lun create vm01 --size 64M --copies san-a,san-b");
        until("the other node makes its copy", || {
            let names = self.places[1].json("lun ls");
            names.to_string().contains(LUN)
        });
        for place in &self.places {
            place.run(0, "grant create any vm01");
        }
    }

    fn kill(&mut self, at: usize) {
        self.daemons[at].take().unwrap().kill();
    }

    fn begin(&mut self, at: usize) {
        self.daemons[at] = Some(self.places[at].start());
    }

    fn mirror(&self, at: usize) -> Value {
        self.places[at].json("lun show vm01")["mirror"].clone()
    }

    fn comes_to(&self, at: usize, state: &str) -> Value {
        let what = format!("node {at} is {state}");
        until(&what, || self.mirror(at)["state"] == state);
        self.mirror(at)
    }

    /// What qemu-io says to these commands at a node.
    fn host(&self, at: usize, commands: &[String]) -> String {
        let portals = self.places[at].json("portal ls");
        let portal = portals[0]["address"].as_str().unwrap().to_owned();
        let mut words = vec!["-f".to_owned(), "raw".to_owned()];
        for command in commands {
            words.extend(["-c".to_owned(), command.clone()]);
        }
        words.push(format!("iscsi://{portal}/iqn.2026-11.io.causeway:t1/0"));
        let output = Command::new("qemu-io").args(&words).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text + &String::from_utf8_lossy(&output.stderr)
    }

    fn writes(&self, at: usize, byte: u8) {
        let all: Vec<String> = (0..16)
            .map(|it| format!("write -P {byte} {}k 64k", it * 256))
            .collect();
        let said = self.host(at, &all);
        assert_eq!(said.matches("wrote 65536/65536").count(), 16, "{said}");
    }

    fn has(&self, at: usize, byte: u8) {
        let all: Vec<String> = (0..16)
            .map(|it| format!("read -P {byte} {}k 64k", it * 256))
            .collect();
        let said = self.host(at, &all);
        assert!(!said.contains("failed"), "{said}");
        assert_eq!(said.matches("read 65536/65536").count(), 16, "{said}");
    }
}

fn until(what: &str, mut is: impl FnMut() -> bool) {
    let is_so = (0..QUESTIONS_MAX).any(|_| is());
    assert!(is_so, "it is never so that {what}");
}

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
}
