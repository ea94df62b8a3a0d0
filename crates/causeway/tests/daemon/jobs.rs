//! `causeway job`: LUNs of fixed size and scrubs, as jobs.

use crate::place::Place;
use serde_json::Value;

/// Asks until a job is so.
fn until(place: &Place, id: u64, is_so: impl Fn(&Value) -> bool) -> Value {
    // Each question is a process of its own, which takes some milliseconds.
    for _ in 0..10_000 {
        let job = place.json(&format!("job show {id}"));
        if is_so(&job) {
            return job;
        }
    }
    panic!("job {id} never becomes so")
}

#[test]
fn making_growing_and_scrubbing_are_jobs_that_can_be_shown_waited_for_and_cancelled() {
    let place = Place::new("jobs");
    let daemon = place.start();
    assert_eq!(place.json("job ls"), Value::Array(Vec::new()));
    place.run(3, "job show 1");
    place.run(0, "lun create thin --size 8G");
    assert_eq!(
        place.json("job ls"),
        Value::Array(Vec::new()),
        "it takes no time"
    );
    place.run(0, "lun create thick --size 16M --thin false");
    place.run(0, "lun resize thick --size 32M");
    let all = place.json("job ls");
    assert_eq!(
        (&all[1]["kind"], &all[0]["kind"]),
        (&"lun_create".into(), &"lun_grow".into())
    );
    assert_eq!(
        (&all[0]["state"], &all[0]["total"]),
        (&"finished".into(), &(16 << 20).into())
    );
    assert!(all[0]["by"].as_str().unwrap().starts_with("uid:"), "{all}");
    let page = place.run(0, "job wait 2");
    assert!(
        page.contains("growing thick") && page.contains("100 %"),
        "{page}"
    );
    place.run(5, "job cancel 2");
    place.run(0, "job cancel 2 --if-exists");
    place.run(3, "job cancel 99");
    place.run(0, "job cancel 99 --if-exists");
    place.run(0, "scrub start thin");
    let job = until(&place, 3, |job| job["state"] == "running");
    assert_eq!(
        (&job["kind"], &job["object"]),
        (&"scrub".into(), &"thin".into())
    );
    place.run(0, "job cancel 3 --dry-run");
    place.run(0, "job cancel 3");
    let job = until(&place, 3, |job| job["state"] != "running");
    assert_eq!(job["state"], "cancelled");
    assert_eq!(place.json("scrub status thin")["state"], "stopped");
    place.run(6, "job wait 3");
    // It goes on as the same job, and what runs when the daemon ends goes on with the next one.
    place.run(0, "scrub start thin");
    until(&place, 3, |job| job["state"] == "running");
    daemon.stop();
    let daemon = place.start();
    let job = until(&place, 3, |job| {
        job["state"] == "running" || job["state"] == "finished"
    });
    let log = job["log"].to_string();
    assert!(log.contains("goes on where it was"), "{log}");
    place.run(0, "job wait 3");
    let page = place.run(0, "job ls");
    assert!(page.contains("scrub of thin"), "{page}");
    place.run(0, "job ls --running");
    daemon.stop();
}
