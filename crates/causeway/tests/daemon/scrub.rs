//! `causeway scrub`: from the first start to the end, through a stop and through a restart of the
//! daemon.

use crate::integrity::scrubbed;
use crate::journal::{LUN, load, served, with_journal};
use crate::place::Place;
use serde_json::Value;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

fn scrub(place: &Place, words: &str) -> Value {
    place.json(&format!("scrub {words}"))
}

/// Asks until the scrub of `a` is over.
fn ended(place: &Place) -> Value {
    // Each question is a process of its own, which takes some milliseconds.
    for _ in 0..10_000 {
        let facts = scrub(place, "status a");
        if facts["state"] != "running" {
            return facts;
        }
    }
    panic!("it never ends")
}

#[test]
fn a_scrub_reads_all_of_a_lun_stops_when_reported_and_goes_on_after_a_restart() {
    let place = Place::new("scrub");
    let daemon = place.start();
    place.run(0, "lun create a --size 8G");
    assert_eq!(place.json("lun show a").get("verified"), None);
    let never = place.run(3, "scrub status a");
    assert!(never.contains("never been scrubbed"), "{never}");
    let begun = scrub(&place, "start a");
    assert_eq!(begun["state"], "running");
    assert_eq!(begun["total_bytes"], 8_u64 << 30);
    let stopped = scrub(&place, "stop a");
    assert_eq!(stopped["state"], "stopped");
    let far = stopped["done_bytes"].as_u64().unwrap();
    assert!(far < 8 << 30, "{stopped}");
    let page = place.run(0, "scrub status a");
    assert!(page.contains("stopped; start goes on from here"), "{page}");
    // It goes on where it was, and what runs when the daemon ends goes on with the next one.
    let again = scrub(&place, "start a");
    assert!(again["done_bytes"].as_u64().unwrap() >= far);
    assert_eq!(again["started"], begun["started"]);
    daemon.stop();
    let daemon = place.start();
    let resumed = scrub(&place, "status a");
    assert_eq!(resumed["started"], begun["started"]);
    assert!(resumed["done_bytes"].as_u64().unwrap() >= far, "{resumed}");
    let end = ended(&place);
    assert_eq!(end["state"], "finished");
    assert_eq!(end["done_bytes"], 8_u64 << 30);
    assert_eq!(end["unreadable_blocks"], 0);
    assert_eq!(end["mismatched_blocks"], 0);
    let fresh = scrub(&place, "start a");
    assert_ne!(
        fresh["started"], begun["started"],
        "a finished one begins anew"
    );
    place.run(0, "scrub stop a");
    // What was read whole once stays so, whatever a later scrub comes to.
    let whole = |place: &Place| {
        assert_eq!(scrub(place, "status a")["verified"], end["ended"]);
        assert_eq!(place.json("lun show a")["verified"], end["ended"]);
    };
    whole(&place);
    daemon.stop();
    let daemon = place.start();
    whole(&place);
    let naa = place.json("lun show a")["naa"].clone();
    daemon.stop();

    // A damaged record is not believed.
    let record = format!("data/scrubs/{}.json", naa.as_str().unwrap());
    let mut text = std::fs::read(place.path(&record)).unwrap();
    *text.last_mut().unwrap() ^= 1;
    std::fs::write(place.path(&record), text).unwrap();
    let daemon = place.start();
    place.run(3, "scrub status a");
    place.run(0, "lun delete a --yes");
    place.run(0, "lun purge a --yes");
    let log = daemon.stop();
    assert!(log.contains("the checksum does not match"), "{log}");
}

#[test]
fn a_scrub_reads_the_journal_and_comes_by_itself_when_it_is_due() {
    let place = with_journal("scrub-schedule", LUN);
    let named = std::fs::read_to_string(place.path("node.toml")).unwrap();
    place.write("node.toml", &format!("{named}[scrub]\nevery_days = 7\n"));
    let daemon = place.start();
    place.run(0, "lun create a --size 16M");
    let mut facts = Value::Null;
    // Each question is a process of its own, which takes some milliseconds.
    for _ in 0..10_000 {
        let output = place.run_with(&place.api(), &["scrub", "status", "a", "-o", "json"], "");
        if output.status.success() {
            facts = serde_json::from_slice(&output.stdout).unwrap();
            if facts["state"] == "finished" {
                break;
            }
        }
    }
    assert_eq!(facts["state"], "finished", "{facts}");
    assert_eq!(facts["journal"]["damaged_changes"], 0, "{facts}");
    let next = facts["next"].as_str().unwrap();
    assert!(next > facts["ended"].as_str().unwrap(), "{facts}");
    // One of the two superblocks is damaged: the journal is used all the same, and the next scrub
    // reports it.
    let path = place.path("data/journal");
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[0; 512], 0).unwrap();
    file.sync_all().unwrap();
    scrub(&place, "start a");
    let facts = ended(&place);
    assert_eq!(facts["journal"]["damaged_superblocks"], 1, "{facts}");
    let problems = place.json("status")["problems"].to_string();
    assert!(problems.contains("1 damaged superblocks"), "{problems}");
    let metrics = place.metrics();
    assert!(
        metrics.contains("causeway_scrub_journal_damage{lun=\"a\"} 1"),
        "{metrics}"
    );
    let at = manifest::time::parse(facts["ended"].as_str().unwrap()).unwrap();
    let seconds = at.0 / 1_000_000_000;
    let whole = format!("causeway_scrub_last_success_timestamp_seconds{{lun=\"a\"}} {seconds}\n");
    assert!(metrics.contains(&whole), "{metrics}");
    daemon.stop();
}

/// Changes bytes of the only file in `directory` whose name is such, and gives what it held.
fn spoil(
    place: &Place,
    directory: &str,
    is: impl Fn(&str) -> bool,
    at: &[u64],
) -> (PathBuf, Vec<u8>) {
    let mut names = std::fs::read_dir(place.path(directory)).unwrap();
    let path = names.find_map(|entry| {
        let path = entry.unwrap().path();
        is(path.file_name().unwrap().to_str().unwrap()).then_some(path)
    });
    let path = path.unwrap();
    let held = std::fs::read(&path).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    for at in at {
        let byte = held[usize::try_from(*at).unwrap()];
        file.write_all_at(&[byte ^ 1], *at).unwrap();
    }
    file.sync_all().unwrap();
    (path, held)
}

/// Waits until nothing was written to the files of a directory for three seconds: the map of
/// checksums writes its upper levels a second after the last change.
fn at_rest(place: &Place, directory: &str) {
    let is_old = |entry: std::io::Result<std::fs::DirEntry>| {
        let modified = entry.unwrap().metadata().unwrap().modified().unwrap();
        modified
            .elapsed()
            .is_ok_and(|age| age > Duration::from_secs(3))
    };
    // Each question is a process of its own.
    let mut rests = false;
    for _ in 0..5_000 {
        rests = std::fs::read_dir(place.path(directory))
            .unwrap()
            .all(is_old);
        if rests {
            break;
        }
        place.json("status");
    }
    assert!(rests, "something is written all the time");
}

#[test]
fn a_scrub_reads_the_metadata_of_a_lun_and_status_names_all_that_is_damaged() {
    let place = with_journal("scrub-metadata", "size = \"64MiB\"\nintegrity = true");
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    load(&place, &served(&place), "");
    // All of it is destaged, and the map and the history with it.
    for _ in 0..2_000 {
        if place.json("pool show default")["journal"]["pending_bytes"] == 0 {
            break;
        }
    }
    let whole = scrubbed(&place);
    assert_eq!(whole["metadata"], Value::Null, "{whole}");
    assert_eq!(whole["map_pages"], 0, "{whole}");
    assert_eq!(whole["journal"]["damaged_checkpoints"], 0, "{whole}");
    let reported = place.json("status")["problems"].to_string();
    assert!(!reported.contains("vm01"), "{reported}");
    at_rest(&place, "data/pool");
    let spoilt = [
        // One of both checkpoints of the ring.
        spoil(&place, "data", |name| name == "journal", &[2 * 4096 + 100]),
        // Every copy of the header of the history.
        spoil(
            &place,
            "data/pool",
            |name| name.ends_with(".changes"),
            &[60, 4096 + 60, 2 * 4096 + 60, 3 * 4096 + 60],
        ),
        // Both superblocks of the map.
        spoil(
            &place,
            "data/pool",
            |name| name.ends_with(".checksums"),
            &[60, 4096 + 60],
        ),
        // The objects that are in force.
        spoil(
            &place,
            "data",
            |name| name == "objects-0000000002.json",
            &[200],
        ),
    ];
    let found = scrubbed(&place);
    assert_eq!(found["journal"]["damaged_checkpoints"], 1, "{found}");
    assert_eq!(found["map_pages"], 1, "{found}");
    let metadata = found["metadata"].to_string();
    assert!(metadata.contains("changed-block map"), "{found}");
    assert!(metadata.contains("objects-0000000002.json"), "{found}");
    let reported = place.json("status")["problems"].to_string();
    for part in [
        "damaged checkpoints",
        "damaged pages of the map",
        "changed-block map",
        "objects-0000000002.json",
    ] {
        assert!(reported.contains(part), "{part}: {reported}");
    }
    let page = place.run(0, "scrub status vm01");
    assert!(page.contains("changed-block map"), "{page}");
    let metrics = place.metrics();
    let wanted = "causeway_scrub_metadata_damage{lun=\"vm01\"} 2";
    assert!(metrics.contains(wanted), "{metrics}");
    for (path, held) in &spoilt {
        // What was mended from memory stays so.
        if !path.to_str().unwrap().ends_with(".checksums") {
            std::fs::write(path, held).unwrap();
        }
    }
    let mended = scrubbed(&place);
    assert_eq!(mended["metadata"], Value::Null, "{mended}");
    assert_eq!(mended["map_pages"], 0, "{mended}");
    daemon.stop();
    // The map is used as it was mended.
    let daemon = place.start();
    load(&place, &served(&place), "");
    let log = daemon.stop();
    assert!(!log.contains("CWY4009"), "{log}");
}
