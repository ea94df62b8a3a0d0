//! The lab as a user runs it: a bed at a low rate, our target and initiator in it, and the shape of
//! what comes out.
//!
//! Needs root and network namespaces; where they are not to be had, the tests say so and pass.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ports;

use serde_json::Value;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// Labs measure: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn causeway(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.args(words).output().expect("cargo has built it")
}

/// The document that a lab prints; `None` where this machine cannot have one.
fn lab(words: &[&str]) -> Option<Value> {
    if let Err(error) = lab::can_have_one() {
        println!("skipped: {error}");
        return None;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let words: Vec<&str> = ["-o", "json", "lab"].iter().chain(words).copied().collect();
    let output = causeway(&words);
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("CWY7102") {
        println!("skipped: {said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    let report = serde_json::from_slice(&output.stdout);
    Some(report.expect("a lab prints a document"))
}

fn mbps(report: &Value, test: &str, direction: &str) -> f64 {
    let rows = report["rows"].as_array().expect("rows");
    let row = rows
        .iter()
        .find(|row| row["test"] == test)
        .expect("a row of each test");
    assert_eq!(row[direction]["errors"], 0, "{row}");
    row[direction]["mbps"].as_f64().expect("a number")
}

#[test]
fn the_planner_doubles_one_link_on_the_mesh_where_round_robin_loses_most_writes() {
    let words = [
        "mpio",
        "--rate",
        "200M",
        "--seconds",
        "2",
        "--tests",
        "B,D,ours",
    ];
    let Some(report) = lab(&words) else { return };
    let (control, ours) = (mbps(&report, "D", "write"), mbps(&report, "ours", "write"));
    // What a link of 200 Mb/s carries, with what a busy machine takes. `causeway lab bars` asks for
    // 1.8 and 1.9.
    assert!((15.0..26.0).contains(&control), "{control}");
    assert!(ours > 1.3 * control, "{ours} against {control}");
    assert!(mbps(&report, "ours", "read") > 1.3 * mbps(&report, "D", "read"));
    // The bed is real: the same mesh without a plan collapses.
    let collapsed = mbps(&report, "B", "write");
    assert!(collapsed < 0.7 * ours, "{collapsed} against {ours}");
    let published = &report["rows"][0]["write"]["published"]["mbps"];
    assert_eq!(published.as_f64(), Some(4.15));
}

#[test]
fn a_pulled_cable_costs_no_error_and_no_block() {
    let Some(report) = lab(&["fault", "cable", "--rate", "100M", "--seconds", "1"]) else {
        return;
    };
    let row = &report["rows"][0];
    assert_eq!(
        (&row["errors"], &row["bad"]),
        (&Value::from(0), &Value::from(0)),
        "{row}"
    );
    assert!(row["checked"].as_u64().unwrap() > 0);
    // 200 ms is what `causeway lab bars` holds it to; a busy machine takes more.
    assert!(row["longest_ms"].as_f64().unwrap() < 2000.0, "{row}");
    assert!(row["nics"].as_array().unwrap().len() > 10);
    assert!(
        row["failback_seconds"].as_f64().is_some(),
        "the path came back and carries: {row}"
    );
}

#[test]
fn a_test_that_there_is_not_is_refused_with_those_that_there_are() {
    let output = causeway(&["lab", "mpio", "--tests", "H"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("there is no test H") && said.contains("A, B, C"),
        "{said}"
    );
}

#[test]
fn the_doctor_speaks_of_every_point_without_a_daemon() {
    let output = causeway(&["--api", "unix:/nowhere", "-o", "json", "doctor"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let problems = report["problems"].as_u64().unwrap();
    assert_eq!(output.status.code(), Some(i32::from(problems > 0)));
    let findings = report["findings"].as_array().unwrap();
    let spoken = |point: u64| {
        let mut points = findings
            .iter()
            .flat_map(|it| it["points"].as_array().unwrap());
        points.any(|it| *it == point)
    };
    assert!((1..=22).all(spoken), "{report:#}");
    let output = causeway(&["doctor", "iscsi://nonsense"]);
    assert_eq!(output.status.code(), Some(2));
    let output = causeway(&["doctor", "--from", "eth77"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && said.contains("eth77"),
        "{said}"
    );
}
