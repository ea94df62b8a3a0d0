//! Today's program starts on what an older one left behind when it was killed: everything is there.
//! `scripts/upgrade-state` made it, with that program.

use crate::accounts::{at, login, tcp};
use crate::gone::{byte, qemu_io_of};
use crate::place::Place;
use serde_json::Value;
use std::ops::Range;
use std::process::Command;

/// A place with what was left, and what the older program answered last.
fn left_behind(name: &str) -> (Place, Value) {
    let place = Place::new(name);
    let packed = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/daemon/upgrade/c5acc36d.tar.gz"
    );
    let unpacked = Command::new("tar")
        .args(["-xzpf", packed, "--no-same-owner", "-C"])
        .arg(place.path(""))
        .status();
    assert!(unpacked.unwrap().success());
    let before = std::fs::read_to_string(place.path("before.json")).unwrap();
    (place, serde_json::from_str(&before).unwrap())
}

/// These members of each of the list.
fn picked(list: &Value, members: &[&str]) -> Vec<Vec<Value>> {
    let list = list.as_array().unwrap_or_else(|| panic!("{list}"));
    let of = |one: &Value| members.iter().map(|it| one[it].clone()).collect();
    list.iter().map(of).collect()
}

/// The list of today has these members as the one of before, and at least so many entries.
fn is_kept(place: &Place, before: &Value, command: &str, members: &[&str]) {
    let (before, now) = (
        picked(before, members),
        picked(&place.json(command), members),
    );
    assert!(!before.is_empty(), "{command}: there was something");
    let from = now.len().saturating_sub(before.len());
    let is_there = now.starts_with(&before) || now.get(from..) == Some(&before[..]);
    assert!(is_there, "{command}: {now:#?} instead of {before:#?}");
}

fn must_hold(portal: &str, lun: u32, pieces: Range<u64>) {
    let read = |piece: u64| format!("read -P {} {} 64k", byte(piece), piece << 16);
    let commands: Vec<String> = pieces.map(read).collect();
    let said = qemu_io_of(portal, lun, &commands);
    assert_eq!(
        said.matches("read 65536/65536").count(),
        commands.len(),
        "{said}"
    );
    assert!(!said.contains("failed"), "{said}");
}

/// A host that does not hold the reservation reads, and writes nothing.
fn is_reserved(portal: &str) {
    must_hold(portal, 0, 0..16);
    let said = qemu_io_of(portal, 0, &["write -P 99 0 64k".to_owned()]);
    assert!(
        said.contains("write failed") && !said.contains("wrote"),
        "{said}"
    );
    must_hold(portal, 0, 0..1);
}

fn portal(place: &Place) -> String {
    let portal = place.json("target show t1")["portals"][0].clone();
    portal.as_str().unwrap().to_owned()
}

#[test]
fn what_an_older_program_left_when_it_was_killed_is_all_there() {
    let (place, before) = left_behind("upgrade");
    let daemon = place.start();
    let lists: [(&str, &str, &[&str]); 10] = [
        (
            "luns",
            "lun ls",
            &["name", "state", "naa", "serial", "size", "thin", "cache"],
        ),
        ("luns", "lun ls", &["name", "block_size", "integrity"]),
        ("removed", "lun ls --removed", &["name", "naa", "size"]),
        ("hosts", "host ls", &["name", "iqn", "chap"]),
        ("grants", "grant ls", &["name", "lun_id"]),
        ("users", "user ls", &["name", "role"]),
        ("tokens", "token ls", &["id", "name", "role"]),
        (
            "events",
            "event ls --limit 1000",
            &["id", "time", "code", "object"],
        ),
        (
            "audit",
            "audit ls --limit 1000",
            &["id", "time", "who", "object"],
        ),
        ("receivers", "alert receiver ls", &["name", "kind"]),
    ];
    for (name, command, members) in lists {
        is_kept(&place, &before[name], command, members);
    }
    is_kept(
        &place,
        &before["alerts"],
        "alert ls --resolved",
        &["id", "rule", "fired"],
    );
    let lost = place.json("alert ls");
    let lost = lost.as_array().unwrap().iter();
    let lost = { lost }.find(|it| it["rule"] == "lun_offline").unwrap();
    assert_eq!(lost["state"], "acknowledged", "{lost}");
    assert_eq!(lost["acknowledged"]["note"], "sent-for", "{lost}");
    let rule = place.json("alert rule show lun_offline");
    assert_eq!(rule["clear_seconds"], 1, "{rule}");
    let jobs = place.json("job ls");
    let is_there = |job: &Value| job["kind"] == "lun_create" && job["object"] == "thick";
    assert!(jobs.as_array().unwrap().iter().any(is_there), "{jobs}");

    let answer = login(&tcp(&place), "vera", "long-enough-word");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let change = "lun set thick limit.iops=500 --token-file script.secret";
    at(&place, &tcp(&place), 0, change);

    let portal = portal(&place);
    is_reserved(&portal);
    must_hold(&portal, 1, 0..24);
    let log = daemon.stop();
    assert!(log.contains("held writes"), "of the journal: {log}");
    assert!(!log.contains("panicked"), "{log}");

    // What today's program wrote is whole, too.
    let daemon = place.start();
    place.run(0, "lun restore gone");
    is_kept(&place, &before["users"], "user ls", &["name", "role"]);
    let portal = self::portal(&place);
    is_reserved(&portal);
    must_hold(&portal, 1, 0..24);
    place.run(0, "scrub start vm02");
    place.run(0, &format!("job wait {}", place.json("job ls")[0]["id"]));
    let scrub = place.json("scrub status vm02");
    assert_eq!(scrub["state"], "finished", "{scrub}");
    assert_eq!(place.json("lun show vm02")["findings"], Value::Null);
    daemon.stop();
}

#[test]
fn the_history_of_an_older_program_goes_on() {
    let (place, before) = left_behind("upgrade-history");
    let daemon = place.start();
    let [begin, end] = ["begin", "end"].map(|key| before[key].as_str().unwrap());
    let most = |answer: &Value| {
        let points = answer["lines"][0]["mean"].as_array().unwrap().iter();
        points.filter_map(Value::as_f64).fold(0.0, f64::max)
    };
    assert!(most(&before["history"]) > 0.0, "{before}");
    let answer = place.json(&format!(
        "history lun:vm01 write_ops --from {begin} --to {end}"
    ));
    // A point is kept for a year.
    let (year, rest) = end.split_at(4);
    let kept_until = format!("{}{rest}", year.parse::<u32>().unwrap() + 1);
    let now = place.json("event ls --code node_started --limit 1")[0]["time"].clone();
    let is_kept = now.as_str().unwrap() < kept_until.as_str();
    assert_eq!(most(&answer) > 0.0, is_kept, "{answer}, at {now}");
    daemon.stop();
}

#[test]
fn the_certificate_of_an_older_program_is_made_anew_for_a_name_that_it_lacks() {
    let (place, before) = left_behind("upgrade-certificate");
    let config = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let named = config.replace("[api]\n", "[api]\nnames = [\"san.example.org\"]\n");
    place.write("node.toml", &named);
    let daemon = place.start();
    let served = place.json("api GET certificate");
    assert_eq!(served["origin"], "own", "{served}");
    let names = served["names"].to_string();
    assert!(names.contains("\"san.example.org\""), "{served}");
    assert_ne!(served["fingerprint"], before["fingerprint"]);
    daemon.stop();
}
