//! `causeway support bundle` and `causeway doctor --node` of a real daemon.

use crate::place::Place;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[test]
fn a_bundle_is_written_once_for_its_owner_alone_and_has_no_secret() {
    let (place, daemon) = crate::with_objects("support");
    let first = std::fs::read_to_string(place.path("data/first-password")).unwrap();
    let token = std::fs::read_to_string(place.path("data/api.token")).unwrap();
    // Somebody wrote a secret where it is logged.
    place.run(3, "lun show very-secret-one");
    place.run(0, "lun create very-secret-two --size 1M --backend memory");
    let file = place.path("bundle.tar.gz");
    let ask = format!("support bundle --to {}", file.display());
    let said = place.run(0, &ask);
    assert!(said.contains("tar xzf"), "{said}");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let said = place.run(2, &ask);
    assert!(said.contains("--to"), "nothing is written over: {said}");
    let unpacked = Command::new("tar")
        .args(["xzOf", file.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(unpacked.status.success());
    let all = String::from_utf8_lossy(&unpacked.stdout);
    for secret in [
        "very-secret",
        first.trim(),
        token.trim(),
        "$argon2",
        "PRIVATE KEY",
    ] {
        assert!(!all.contains(secret), "{secret} is in it");
    }
    for there in ["vm01", "esx01", "causeway_lun_", "serving", "MemTotal"] {
        assert!(all.contains(there), "{there} is not in it");
    }
    assert!(!all.contains("NOT THERE"), "{all}");
    daemon.stop();
}

#[test]
fn the_doctor_asks_the_daemon_of_its_machine() {
    let place = Place::new("doctor-node");
    let daemon = place.start();
    let output = place.run_with(&place.api(), &["doctor", "--node", "-o", "json"], "");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let problems = report["problems"].as_u64().unwrap();
    assert_eq!(output.status.code(), Some(i32::from(problems > 0)));
    let space = report["findings"].as_array().unwrap().iter();
    let space = space.filter(|it| it["check"] == "space");
    let what: Vec<&str> = space.map(|it| it["what"].as_str().unwrap()).collect();
    assert!(what[0].contains("pool"), "its pools count: {what:?}");
    for wrong in [
        "--from eth0",
        "iscsi://10.0.0.1/iqn.2026-11.io.causeway:x/0",
    ] {
        place.run(2, &format!("doctor --node {wrong}"));
    }
    daemon.stop();
    place.run(7, "doctor --node");
}
