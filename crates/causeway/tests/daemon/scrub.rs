//! `causeway scrub`: from the first start to the end, through a stop and through a restart of the daemon.

use crate::place::Place;
use serde_json::Value;

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
fn a_scrub_reads_all_of_a_lun_stops_when_told_and_goes_on_after_a_restart() {
    let place = Place::new("scrub");
    let daemon = place.start();
    place.run(0, "lun create a --size 8G");
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
    place.run(0, "lun delete a --yes");
    place.run(0, "lun purge a --yes");
    daemon.stop();
}
