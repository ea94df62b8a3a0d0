//! The short run of every fuzz target. `make fuzz` runs them for longer.

use proof::fuzz::{Form, FuzzTarget, TARGETS, run, run_one};
use std::path::{Path, PathBuf};

/// Where inputs that break an oracle are kept.
fn artifacts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/artifacts")
}

/// Runs the targets whose names `wanted` selects.
fn short_run(wanted: impl Fn(&str) -> bool) {
    let targets: Vec<&FuzzTarget> = TARGETS
        .iter()
        .filter(|target| wanted(target.name))
        .collect();
    assert!(!targets.is_empty());
    for target in targets {
        match run(target, 1, &mut |tried| tried < target.short_run) {
            Ok(tried) => println!("{}: {tried} executions", target.name),
            Err(finding) => {
                let place = finding.write(&artifacts());
                panic!("{finding}\n  written to {place:?}");
            }
        }
    }
}

fn of_control(name: &str) -> bool {
    name.ends_with("_file")
}

fn of_a_peer(name: &str) -> bool {
    let of_iscsi = ["login_stream", "pdu_stream", "any_split", "text_keys"];
    of_iscsi.contains(&name) || name.starts_with("peer_")
}

#[test]
fn no_stream_of_a_peer_breaks_an_oracle() {
    short_run(of_a_peer);
}

#[test]
fn no_command_or_parameter_list_breaks_an_oracle() {
    short_run(|name| !of_a_peer(name) && !of_control(name));
}

#[test]
fn no_file_of_an_administrator_breaks_an_oracle() {
    short_run(of_control);
}

#[test]
fn a_planted_mistake_is_found_written_down_and_found_again() {
    // Wrong only for a READ (10) whose length is 0xffff: no seed has that.
    let planted = FuzzTarget {
        name: "cdb",
        form: Form::Bytes,
        short_run: 0,
        run: |bytes| {
            assert!(
                !(bytes.first() == Some(&0x28) && bytes.get(7..9) == Some(&[0xff, 0xff])),
                "planted"
            );
        },
    };
    let finding = run(&planted, 1, &mut |tried| tried < 500_000).expect_err("it is found");
    let again = run(&planted, 1, &mut |tried| tried <= finding.execution).expect_err("found again");
    assert_eq!(again.input, finding.input);
    let directory = std::env::temp_dir().join(format!("fuzz-short-{}", std::process::id()));
    let path = finding
        .write(&directory)
        .expect("a temporary directory can be written");
    let input = std::fs::read(&path).expect("it was just written");
    assert!(run_one(&planted, &input).is_err_and(|message| message.contains("planted")));
    std::fs::remove_dir_all(&directory).expect("it was just made");
}
