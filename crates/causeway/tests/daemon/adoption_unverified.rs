//! The record of a LUN does not fit it, or the node has not what it says: it is adopted as
//! what it can be, with a word, or not at all.

use crate::place::Place;
use serde_json::json;

/// A pool beside the state, with or without a journal.
fn place(name: &str, journal: bool) -> Place {
    let place = Place::new(name);
    let config = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let config = config.replace("data/pool", "pool");
    let journal = if journal {
        "journal = \"journal\"\njournal_size = \"64MiB\"\npath = "
    } else {
        "path = "
    };
    place.write("node.toml", &config.replace("path = ", journal));
    place
}

fn without_journal(place: &Place) {
    let config = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let of_journal = |line: &&str| !line.starts_with("journal");
    let lines: Vec<&str> = config.lines().filter(of_journal).collect();
    place.write("node.toml", &(lines.join("\n") + "\n"));
    std::fs::remove_file(place.path("journal")).unwrap();
    std::fs::remove_file(place.path("pool/pool.toml")).unwrap();
}

fn naa(place: &Place, name: &str) -> String {
    let lun = place.json(&format!("lun show {name}"));
    lun["naa"].as_str().unwrap().to_owned()
}

#[test]
fn a_record_of_another_lun_and_one_that_is_older_than_its_file_are_not_believed() {
    let place = place("adopt-records", false);
    let daemon = place.start();
    place.run(0, "lun create a --size 1M");
    place.run(0, "lun create b --size 1M");
    let (a, b) = (naa(&place, "a"), naa(&place, "b"));
    let record = |naa: &str| place.path(&format!("pool/{naa}.record"));
    let old = std::fs::read(record(&a)).unwrap();
    place.run(0, "lun resize a --size 3M");
    daemon.stop();
    std::fs::remove_dir_all(place.path("data")).unwrap();
    // As a crash between both leaves it, and as somebody does who restores one from the other's
    // backup.
    std::fs::write(record(&a), old).unwrap();
    std::fs::copy(record(&a), record(&b)).unwrap();
    let daemon = place.start();
    let orphans = place.json("lun ls --orphans");
    let of_b = orphans.as_array().unwrap().iter();
    let of_b = of_b.clone().find(|it| it["naa"] == b.as_str()).unwrap();
    let why = format!("its record is LUN {a}'s");
    assert_eq!(of_b["problem"], why.as_str(), "{orphans}");
    let output = place.run(0, "lun adopt --all");
    assert!(output.contains(&format!("{b} is left")), "{output}");
    assert_eq!(place.json("lun show a")["size"], 3 << 20);
    place.run(3, "lun show b");
    daemon.stop();
}

#[test]
fn what_the_pool_has_not_is_taken_away_with_a_word() {
    let place = place("adopt-less", true);
    let daemon = place.start();
    place.run(0, "lun create a --size 8M --cache write-back");
    place.run(0, "lun create b --size 8M --integrity true");
    daemon.stop();
    std::fs::remove_dir_all(place.path("data")).unwrap();
    without_journal(&place);
    let daemon = place.start();
    let output = place.run(0, "lun adopt --all");
    assert!(output.contains("LUN a is write-through"), "{output}");
    assert!(output.contains("LUN b is no longer checked"), "{output}");
    for name in ["a", "b"] {
        let lun = place.json(&format!("lun show {name}"));
        assert_eq!(lun["state"], "online", "{lun}");
        let is = (&lun["integrity"], &lun["cache"]);
        assert_eq!(is, (&json!(false), &json!("write-through")), "{lun}");
    }
    daemon.stop();
}

#[test]
fn what_is_purged_leaves_no_record_and_accepted_objects_are_newer_than_all_that_pools_have_seen() {
    let place = place("adopt-numbers", false);
    let daemon = place.start();
    place.run(0, "lun create a --size 1M");
    daemon.stop();
    let copied = std::process::Command::new("cp")
        .args(["-a", "data", "copy"])
        .current_dir(place.path("."))
        .status();
    assert!(copied.unwrap().success());
    let daemon = place.start();
    for name in ["b", "c", "d"] {
        place.run(0, &format!("lun create {name} --size 1M"));
    }
    let newest = place.json("status")["generation"].as_u64().unwrap();
    daemon.stop();
    std::fs::remove_dir_all(place.path("data")).unwrap();
    std::fs::rename(place.path("copy"), place.path("data")).unwrap();
    let daemon = place.start();
    place.run(0, "state accept --yes");
    let now = place.json("status")["generation"].as_u64().unwrap();
    assert!(now > newest, "{now} is no newer than {newest}");
    place.run(0, "lun delete a");
    place.run(0, "lun purge a --yes");
    place.run(0, "lun adopt --all");
    for name in ["b", "c", "d"] {
        place.run(0, &format!("lun delete {name}"));
        place.run(0, &format!("lun purge {name} --yes"));
    }
    let left = std::fs::read_dir(place.path("pool")).unwrap();
    let left = left.map(|it| it.unwrap().file_name().into_string().unwrap());
    let of_luns: Vec<String> = left.filter(|it| it.len() > 32).collect();
    assert_eq!(of_luns, [""; 0]);
    daemon.stop();
}
