//! Changes that take long, and changes that come in between.

use crate::audit::test::{entries, last};
use crate::test::Daemon;
use controller::test_support::lab;
use events::Entry;
use hyper::{Request, StatusCode};
use serde_json::{Value, json};
use std::sync::atomic::Ordering::SeqCst;

fn request(method: &str, path: &str, header: (&str, &str), body: &Value) -> Request<String> {
    let request = Request::builder().method(method).uri(path);
    let request = request
        .header("host", "localhost")
        .header(header.0, header.1);
    request.body(body.to_string()).unwrap()
}

/// The job, when it is no longer as it was.
fn after(daemon: &Daemon, id: u64) -> Value {
    loop {
        let (_, job) = daemon.send("GET", &format!("/api/v1/jobs/{id}"), &json!(null));
        if job["state"] != "running" {
            return job;
        }
        std::thread::yield_now();
    }
}

#[test]
fn whoever_does_not_want_to_wait_is_answered_with_the_job_when_it_begins() {
    let daemon = Daemon::start("async");
    let thick = json!({ "name": "thick", "size": "1G", "thin": false });
    daemon.hold.on.store(true, SeqCst);
    let wish = ("prefer", "wait=10, Respond-Async; x=1");
    let asked = request("POST", "/api/v1/luns", wish, &thick);
    let (head, text) = daemon.exchange(false, asked);
    let job: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(head.status, StatusCode::ACCEPTED, "{text}");
    assert_eq!(head.headers["location"], "/api/v1/jobs/1");
    assert_eq!(head.headers["preference-applied"], "respond-async");
    assert_eq!(
        (&job["state"], &job["kind"]),
        (&json!("running"), &json!("lun_create"))
    );
    assert_eq!(
        daemon.send("GET", "/api/v1/luns/thick", &json!(null)).0,
        StatusCode::NOT_FOUND
    );
    let entry = last(&daemon);
    assert_eq!((entry.status, entry.after), (202, json!({ "job": 1 })));
    daemon.hold.on.store(false, SeqCst);
    assert_eq!(after(&daemon, 1)["state"], "finished");
    assert_eq!(
        daemon.send("GET", "/api/v1/luns/thick", &json!(null)).0,
        StatusCode::OK
    );
    // Sent again with its key it says what it said then, and only what was asked for in that way.
    let more = json!({ "name": "more", "size": "1G", "thin": false });
    let post = |wish: &str| {
        let mut asked = request("POST", "/api/v1/luns", ("prefer", wish), &more);
        let key = "k".parse().unwrap();
        asked.headers_mut().insert("idempotency-key", key);
        daemon.exchange(false, asked).0
    };
    daemon.hold.on.store(true, SeqCst);
    let (first, second) = (post("respond-async"), post("respond-async"));
    daemon.hold.on.store(false, SeqCst);
    assert!(second.headers.contains_key("idempotency-replayed"));
    for head in [first, second] {
        assert_eq!(head.status, StatusCode::ACCEPTED);
        assert_eq!(head.headers["location"], "/api/v1/jobs/2");
        assert_eq!(head.headers["preference-applied"], "respond-async");
    }
    assert_eq!(post("wait=1").status, StatusCode::UNPROCESSABLE_ENTITY);
    after(&daemon, 2);
    // What takes no time is answered as ever, and so is what cannot be done.
    let thin = json!({ "name": "thin", "size": "1G" });
    for (wanted, status) in [(&thin, StatusCode::OK), (&thick, StatusCode::CONFLICT)] {
        let (got, body) = daemon.ask(false, request("POST", "/api/v1/luns", wish, wanted));
        assert_eq!(got, status, "{body}");
    }
}

/// The entries of the last request, when there are two.
fn both(daemon: &Daemon, begun: &Entry) -> Entry {
    loop {
        let all = entries(daemon);
        let mut of_it = all
            .iter()
            .filter(|it| it.entry.request_id == begun.request_id);
        let (_, end) = (of_it.next().unwrap(), of_it.next());
        if let Some(end) = end {
            assert!(of_it.next().is_none(), "it ends once: {all:?}");
            return end.entry.clone();
        }
        std::thread::yield_now();
    }
}

#[test]
fn work_that_was_answered_before_its_end_is_audited_with_its_end_good_or_bad() {
    let daemon = Daemon::start("async-ends");
    let make = |name: &str| {
        let thick = json!({ "name": name, "size": "1G", "thin": false });
        let wish = ("prefer", "respond-async");
        daemon.hold.on.store(true, SeqCst);
        let (status, job) = daemon.ask(false, request("POST", "/api/v1/luns", wish, &thick));
        assert_eq!(status, StatusCode::ACCEPTED, "{job}");
        let begun = last(&daemon);
        assert_eq!((begun.status, begun.job), (202, job["id"].as_u64()));
        daemon.hold.on.store(false, SeqCst);
        let end = both(&daemon, &begun);
        assert_eq!((&end.who, &end.path), (&begun.who, &begun.path));
        assert_eq!((&end.job, &end.asked), (&begun.job, &begun.asked));
        assert_eq!(end.object, begun.object);
        (begun, end)
    };
    let (_, good) = make("good");
    assert_eq!((good.status, &good.code), (200, &None));
    assert_eq!(
        (&good.before, &good.after["name"]),
        (&json!(null), &json!("good"))
    );
    let huge = json!({ "name": "huge", "size": "51G", "thin": false });
    let (status, problem) = daemon.send("POST", "/api/v1/luns?dry_run=true", &huge);
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (507, &json!("CWY4005"))
    );
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains("takes 51 GiB at once, and pool default has 50 GiB free"),
        "{detail}"
    );
    daemon.hold.fails.store(true, SeqCst);
    let (begun, bad) = make("bad");
    assert_eq!(bad.code.as_deref(), Some("CWY4004"));
    assert!(bad.status >= 500, "{bad:?}");
    assert_eq!((&bad.before, &bad.after), (&json!(null), &json!(null)));
    let (_, said) = daemon.send("GET", "/api/v1/audit?filter=name:bad", &json!(null));
    let words: Vec<&Value> = said
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["words"]["result"])
        .collect();
    let job = begun.job.unwrap();
    assert_eq!(
        words,
        [
            &json!(format!("failed, CWY4004, job {job}")),
            &json!(format!("begun, job {job}"))
        ],
        "the newest first"
    );
}

/// What is expected is compared when it is the change's turn, not when it arrives.
#[test]
fn a_change_that_comes_in_between_refuses_what_was_meant_for_the_objects_before_it() {
    let daemon = Daemon::start("between");
    daemon.send("POST", "/api/v1/apply", &json!(lab()));
    daemon.send("DELETE", "/api/v1/sessions/4?force=true", &json!(null));
    let changes = [
        "/api/v1/generations/1/rollback?force=true",
        "/api/v1/orphans/adopt?force=true",
    ];
    for (path, size) in changes.iter().zip(["3G", "4G"]) {
        let tag = daemon.tag_of("/api/v1/export");
        daemon.hold.on.store(true, SeqCst);
        std::thread::scope(|scope| {
            let first = || daemon.send("PATCH", "/api/v1/luns/l", &json!({ "size": size }));
            let first = scope.spawn(first);
            while !daemon.hold.holds.load(SeqCst) {
                std::thread::yield_now();
            }
            let adopts = path.contains("adopt");
            let body = if adopts {
                json!({ "all": true })
            } else {
                json!(null)
            };
            let second = request("POST", path, ("if-match", &tag), &body);
            let second = scope.spawn(|| daemon.ask(false, second));
            arrive();
            daemon.hold.on.store(false, SeqCst);
            assert_eq!(first.join().unwrap().0, StatusCode::OK);
            let (status, problem) = second.join().unwrap();
            assert_eq!(status, StatusCode::PRECONDITION_FAILED, "{path}: {problem}");
        });
        let (_, lun) = daemon.send("GET", "/api/v1/luns/l", &json!(null));
        assert_eq!(lun["size"], json!(size[..1].parse::<u64>().unwrap() << 30));
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "nothing shows that the second one waits; were it late, the test would prove less and pass"
)]
fn arrive() {
    std::thread::sleep(std::time::Duration::from_millis(200));
}

#[test]
fn a_list_that_begins_with_the_newest_does_so_when_it_is_cut() {
    let daemon = Daemon::start("newest");
    for name in ["a", "b", "c"] {
        let lun = json!({ "name": name, "size": "1G", "thin": false });
        let (status, made) = daemon.send("POST", "/api/v1/luns", &lun);
        assert!(status.is_success(), "{made}");
    }
    for list in ["generations", "jobs"] {
        let (_, whole) = daemon.send("GET", &format!("/api/v1/{list}"), &json!(null));
        let (_, cut) = daemon.send("GET", &format!("/api/v1/{list}?limit=2"), &json!(null));
        let whole = whole.as_array().unwrap();
        assert!(whole.len() > 2, "{list}: {whole:?}");
        assert_eq!(cut.as_array().unwrap()[..], whole[..2], "{list}");
    }
}
