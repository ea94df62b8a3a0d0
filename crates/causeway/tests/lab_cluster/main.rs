//! What breaks in a cluster, as `causeway lab cluster` breaks it: two nodes, three members of a
//! real etcd and a host in namespaces. Each row of the table of failures is a test, with its bar.
//!
//! Needs root, network namespaces and etcd; where they are not to be had, the tests say so and
//! pass.
//! `CAUSEWAY_CLUSTER_KILLS` says how many kills the loop has (30), `CAUSEWAY_CLUSTER_SEED` which.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Labs measure: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// What a machine that runs other tests as well takes more than the bar, in milliseconds. `make
/// lab` holds each drill to its bar.
const BUSY_MS: f64 = 1_000.0;

/// The document that a lab prints; `None` where this machine cannot have one.
fn lab(words: &[&str]) -> Option<Value> {
    if let Err(error) = lab::can_have_one().and_then(|()| lab::cluster::has_etcd()) {
        println!("skipped: {error}");
        return None;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.args(["-o", "json", "lab", "cluster"]).args(words);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("CWY7102") {
        println!("skipped: {said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    println!("{said}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// What was measured of a drill, without its series.
fn measured(row: &Value) -> String {
    let mut row = row.clone();
    for long in ["nics", "figures"] {
        row[long] = Value::Null;
    }
    row.to_string()
}

/// These drills, one after the other on one cluster: every operation within its bar, no error, no
/// block wrong, and both nodes have all of it again.
fn drills(names: &[&str]) {
    let words: Vec<&str> = ["fault", "--seconds", "1"]
        .into_iter()
        .chain(names.iter().copied())
        .collect();
    let Some(report) = lab(&words) else { return };
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), names.len());
    for row in rows {
        let said = measured(row);
        assert_eq!(
            (&row["errors"], &row["bad"]),
            (&0.into(), &0.into()),
            "{said}"
        );
        assert!(row["checked"].as_u64().unwrap() > 1000, "{said}");
        assert!(row["whole_seconds"].is_number(), "{said}");
        let steps = row["steps"].as_array().unwrap().iter();
        for step in steps.filter(|it| it["bar_ms"].is_number()) {
            assert!(within(step), "{step}: {said}");
        }
    }
}

fn within(it: &Value) -> bool {
    let number = |key: &str| it[key].as_f64().unwrap();
    number("longest_ms") <= number("bar_ms") + BUSY_MS
}

#[test]
fn the_owner_dies() {
    drills(&["owner-dies"]);
}

#[test]
fn the_owner_hangs_and_goes_on_later() {
    drills(&["owner-hangs"]);
}

#[test]
fn the_owner_is_killed_and_up_in_a_second() {
    drills(&["owner-restarts"]);
}

#[test]
fn the_other_node_dies_or_hangs() {
    drills(&["other-dies", "other-hangs"]);
}

#[test]
fn the_link_is_lost_and_both_or_the_owner_reach_etcd() {
    drills(&["link", "link-out", "link-in", "link-owner-etcd"]);
}

#[test]
fn the_link_is_lost_and_only_the_other_node_reaches_etcd() {
    drills(&["link-other-etcd"]);
}

#[test]
fn the_link_is_lost_and_nobody_reaches_etcd() {
    drills(&["link-nobody"]);
}

#[test]
fn etcd_is_lost() {
    drills(&["etcd-dies", "etcd-leader"]);
}

#[test]
fn etcd_is_lost_and_then_a_node() {
    drills(&["etcd-other", "etcd-owner"]);
}

#[test]
fn the_other_node_is_slow() {
    drills(&["other-slow"]);
}

#[test]
fn power_of_both_is_lost() {
    drills(&["power"]);
}

#[test]
fn a_node_is_drained_or_stopped_before_its_maintenance() {
    drills(&["handover", "owner-stops"]);
}

#[test]
fn a_cable_is_pulled_or_a_black_hole() {
    drills(&["cable", "node-cable", "black-hole"]);
}

#[test]
fn hosts_reach_the_owner_through_the_other_node_alone() {
    drills(&["owner-ports", "forwarded-link", "forwarded-dies"]);
}

fn setting(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

#[test]
fn nodes_and_members_of_etcd_are_killed_in_turn_and_nothing_is_lost() {
    let rounds = setting("CAUSEWAY_CLUSTER_KILLS", "30");
    let seed = setting("CAUSEWAY_CLUSTER_SEED", "1");
    let Some(report) = lab(&["kills", "--rounds", &rounds, "--seed", &seed]) else {
        return;
    };
    for none in ["errors", "bad"] {
        assert_eq!(report[none], 0, "{report}");
    }
    assert!(report["checked"].as_u64().unwrap() > 1000, "{report}");
    assert!(report["takeovers"].as_u64() > Some(0), "{report}");
    let rows = report["rows"].as_array().unwrap();
    assert!(rows.iter().all(within), "{report}");
}
