//! Streams and logs over real sockets.

use crate::accept::Times;
use crate::test::{Daemon, TOKEN};
use controller::test_support::lab;
use events::{Code, Happened, Object};
use manifest::pulse::Watched;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A client of a stream, which reads when it is asked to. HTTP/1.0: nothing stands between lines.
struct Client(BufReader<TcpStream>);

#[expect(
    clippy::disallowed_methods,
    reason = "how long a real server takes is what is measured"
)]
fn clock() -> Instant {
    Instant::now()
}

/// What came: the name, the identifier, the document.
type Message = (String, Option<u64>, Value);

impl Client {
    fn ask(daemon: &Daemon, query: &str, headers: &str) -> Self {
        Self::with(daemon, TOKEN, query, headers)
    }

    fn with(daemon: &Daemon, token: &str, query: &str, headers: &str) -> Self {
        let at = daemon.addresses[1].strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(at).unwrap();
        let patience = Some(Duration::from_secs(20));
        stream.set_read_timeout(patience).unwrap();
        let request = format!(
            "GET /api/v1/events{query} HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{headers}\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        Self(BufReader::new(stream))
    }

    /// Behind the head of the answer and the first comment.
    fn open(daemon: &Daemon, query: &str, headers: &str) -> Self {
        let mut client = Self::ask(daemon, query, headers);
        let status = client.line().unwrap();
        assert!(status.contains("200"), "{status}");
        while client.line().unwrap() != ": causeway" {}
        client
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).unwrap();
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// The next message; `None` at the end.
    fn next(&mut self) -> Option<Message> {
        let (mut name, mut id) = (String::new(), None);
        loop {
            let line = self.line()?;
            let (member, value) = line.split_once(": ").unwrap_or((line.as_str(), ""));
            match member {
                "event" => value.clone_into(&mut name),
                "id" => id = value.parse().ok(),
                "data" => return Some((name, id, serde_json::from_str(value).unwrap())),
                _ => {}
            }
        }
    }

    fn ids(&mut self, count: usize) -> Vec<u64> {
        let ids = std::iter::from_fn(|| self.next()).filter(|(name, ..)| name == "event");
        ids.take(count).filter_map(|(_, id, _)| id).collect()
    }
}

fn emit(daemon: &Daemon, count: u64) {
    for number in 0..count {
        let lun = Object::new("lun", &format!("lun-{number}"));
        let message = "it is there, and this is a sentence that takes its room on the way";
        daemon
            .records
            .events()
            .emit(Happened::new(Code::LunOnline, lun, message));
    }
}

fn newest(daemon: &Daemon) -> u64 {
    daemon.records.events().newest().unwrap().id
}

#[test]
fn who_comes_again_gets_all_that_came_since_once_and_in_order() {
    let daemon = Daemon::start("stream-again");
    emit(&daemon, 10);
    let first = newest(&daemon);
    // More than memory has: the oldest come from the log.
    emit(&daemon, 3_000);
    let headers = format!("Last-Event-ID: {first}\r\n");
    let mut client = Client::open(&daemon, "", &headers);
    let half = client.ids(1_200);
    drop(client);
    emit(&daemon, 7);
    let headers = format!("Last-Event-ID: {}\r\n", half[1_199]);
    let mut client = Client::open(&daemon, "?since=1", &headers);
    let rest = client.ids(1_807);
    emit(&daemon, 1);
    let live = client.ids(1);
    let got = [half, rest, live].concat();
    let wanted: Vec<u64> = (first + 1..).take(3_008).collect();
    assert!(got == wanted, "neither gap nor double");
    // One that does not wait gets the same, and its end.
    let query = format!("?follow=false&since={first}");
    let all = Client::open(&daemon, &query, "").ids(usize::MAX);
    // The sampler may have had something to say meanwhile.
    assert!(all.starts_with(&wanted));
}

#[test]
fn a_slow_reader_gets_the_newest_and_learns_how_many_it_missed() {
    let daemon = Daemon::start("stream-slow");
    let mut client = Client::open(&daemon, "", "");
    let before_all = newest(&daemon);
    // Until what stands between has no more room, by far.
    for _ in 0..40 {
        emit(&daemon, 1_000);
        // The server's thread has its turn.
        daemon.get("/healthz");
    }
    let (last, mut seen, mut missed, mut before) = (newest(&daemon), 0, 0, 0);
    while before != last {
        let (name, id, document) = client.next().unwrap();
        if name == "missed" {
            missed += document["missed"].as_u64().unwrap();
            continue;
        }
        let id = id.unwrap();
        assert!(id > before, "{id} after {before}");
        (before, seen) = (id, seen + 1);
    }
    assert!(missed > 0, "{seen} were seen");
    // The sampler may have said something while the stream was opened.
    let came = last - before_all;
    assert!(
        (came..=came + 1).contains(&(seen + missed)),
        "{seen} and {missed} of {came}"
    );
}

#[test]
fn events_that_are_gone_are_missed_and_a_log_that_cannot_be_read_is_no_empty_one() {
    let daemon = Daemon::start("stream-gone");
    let next = |client: &mut Client| {
        let (name, id, document) = client.next().unwrap();
        (name, id.unwrap_or(0), document["missed"].as_u64())
    };
    let missed = ("missed".to_owned(), 0, Some(1));
    // Of a file that is lost: all that there is now came later. Of few events memory has all.
    for count in [10, 3_000] {
        emit(&daemon, count);
        for query in ["", "?follow=false"] {
            let mut client = Client::open(&daemon, query, "Last-Event-ID: 5\r\n");
            assert_eq!(next(&mut client), missed, "{count} {query}");
            let all = client.ids(usize::try_from(count).unwrap());
            assert!(
                all.windows(2).all(|two| two[0] + 1 == two[1]),
                "once is enough"
            );
        }
    }
    let all = next(&mut Client::open(&daemon, "?follow=false&since=0", ""));
    assert_eq!(all.0, "event", "who asks for what is there misses nothing");
    let first = newest(&daemon);
    emit(&daemon, 2_000);
    let again = format!("Last-Event-ID: {first}\r\n");
    let seen = next(&mut Client::open(&daemon, "", &again));
    assert_eq!(seen, ("event".to_owned(), first + 1, None));
    // From here on the log cannot be read.
    daemon.records.events().stop();
    let mut client = Client::open(&daemon, "", &again);
    assert_eq!(next(&mut client), missed);
    assert!(next(&mut client).1 > first, "what is in memory follows");
    let refused = Client::ask(&daemon, "?follow=false&since=1", "")
        .line()
        .unwrap();
    assert!(refused.contains("503"), "{refused}");
}

#[test]
fn frames_of_the_activity_are_made_only_while_somebody_watches() {
    let daemon = Daemon::start("stream-nobody");
    let records = &daemon.records.0;
    let samples = || records.samples.load(std::sync::atomic::Ordering::Acquire);
    let wait_for = |wanted: u64| {
        let begin = clock();
        while samples() < wanted {
            assert!(
                begin.elapsed() < Duration::from_secs(20),
                "{wanted} samples"
            );
            std::thread::park_timeout(Duration::from_millis(20));
        }
    };
    wait_for(2);
    assert!(records.frames.borrow().is_none(), "nobody has ever watched");
    let other = Client::open(&daemon, "?topics=events", "");
    let mut client = Client::open(&daemon, "?topics=activity", "");
    client.next().unwrap();
    assert!(records.frames.borrow().is_some());
    drop(client);
    // The server sees that with the next frame that it sends.
    let begin = clock();
    while records.frames.receiver_count() > 0 {
        assert!(begin.elapsed() < Duration::from_secs(20));
        std::thread::park_timeout(Duration::from_millis(20));
    }
    wait_for(samples() + 2);
    assert!(
        records.frames.borrow().is_none(),
        "one who wants events does not count"
    );
    drop(other);
}

#[test]
fn activity_comes_whole_and_then_as_what_changed() {
    let daemon = Daemon::start("stream-activity");
    let mut client = Client::open(&daemon, "?topics=activity", "");
    let (name, id, whole) = client.next().unwrap();
    assert_eq!((name.as_str(), id), ("activity", None));
    assert_eq!(whole["sessions"][0]["id"], 4);
    let (name, _, change) = client.next().unwrap();
    assert_eq!(
        (name.as_str(), &change["sessions"]),
        ("activity_change", &json!([]))
    );
    let mut second = Client::open(&daemon, "?topics=activity,events", "");
    let names: Vec<String> = std::iter::from_fn(|| second.next())
        .map(|(name, ..)| name)
        .filter(|name| name.starts_with("activity"))
        .take(2)
        .collect();
    assert_eq!(names, ["activity", "activity_change"]);
}

#[test]
fn who_watches_objects_gets_those_alone_and_nothing_is_made_of_others() {
    let daemon = Daemon::start("stream-objects");
    daemon.send("POST", "/api/v1/apply", &json!(lab()));
    let more = json!({ "name": "more", "size": "1GiB" });
    let (status, made) = daemon.send("POST", "/api/v1/luns", &more);
    assert!(status.is_success(), "{made}");
    let mut client = Client::open(&daemon, "?topics=overview,lun:l", "");
    let (name, _, whole) = client.next().unwrap();
    assert_eq!((name.as_str(), &whole["luns"]), ("overview", &json!(2)));
    assert_eq!(
        (&whole["sessions"], &whole["read"]["ops"]),
        (&json!(1), &json!(0))
    );
    let (name, _, part) = client.next().unwrap();
    assert_eq!((name.as_str(), &part["cores"]), ("activity", &json!([])));
    let names = |part: &Value| -> Vec<String> {
        let all = part["luns"].as_array().unwrap().iter();
        all.map(|it| it["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        (names(&part), &part["sessions"]),
        (vec!["l".to_owned()], &json!([]))
    );
    let wanted = Watched::Some(Arc::new(["l".to_owned()].into()));
    assert_eq!(daemon.records.watched(), wanted);
    let frame = daemon.records.0.frames.borrow().clone().unwrap();
    assert_eq!(
        frame.shown().view.luns.len(),
        1,
        "of others nothing is made"
    );
    assert_eq!(client.next().unwrap().0, "overview");
    assert_eq!(client.next().unwrap().0, "activity_change");
    // Of a host its sessions; who is nobody's has nothing, and is not refused: it may come.
    let mut host = Client::open(&daemon, "?topics=host:h,lun:nothere", "");
    let (_, _, part) = host.next().unwrap();
    assert_eq!(
        (names(&part), &part["sessions"][0]["id"]),
        (vec![], &json!(4))
    );
    // Whoever watches all gets all, from the first frame on.
    let mut all = Client::open(&daemon, "?topics=activity,lun:l", "");
    let (name, _, whole) = all.next().unwrap();
    assert_eq!((name.as_str(), names(&whole).len()), ("activity", 2));
    assert_eq!(daemon.records.watched(), Watched::All);
    drop((client, host, all));
    let begin = clock();
    while daemon.records.watched() != Watched::Nothing {
        assert!(begin.elapsed() < Duration::from_secs(20));
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

#[test]
fn streams_have_their_places_and_end_when_the_server_does() {
    let daemon = Daemon::start("stream-places");
    let mut all: Vec<Client> = (0..super::stream::STREAMS_OF_ONE_MAX)
        .map(|_| Client::open(&daemon, "", ""))
        .collect();
    let refused = Client::ask(&daemon, "", "").line().unwrap();
    assert!(refused.contains("429"), "{refused}");
    assert_eq!(daemon.get("/api/v1/status").0, 200, "others are served");
    all.pop();
    let begin = clock();
    // The place is free when the server has seen it.
    while Client::ask(&daemon, "", "").line().unwrap().contains("429") {
        assert!(begin.elapsed() < Duration::from_secs(15));
    }
    daemon.records.end_streams();
    for mut client in all {
        while client.next().is_some() {}
    }
    let begin = clock();
    drop(daemon);
    assert!(
        begin.elapsed() < Duration::from_secs(3),
        "nothing held it up"
    );
}

#[test]
fn a_stream_ends_soon_after_its_token_was_taken_away() {
    let times = Times {
        heartbeat: Duration::from_millis(300),
        ..Times::default()
    };
    let daemon = Daemon::start_with("stream-token", |_| {}, times);
    let made = daemon
        .send(
            "POST",
            "/api/v1/tokens",
            &json!({ "name": "v", "role": "viewer" }),
        )
        .1;
    let token = made["token"].as_str().unwrap();
    let mut client = Client::with(&daemon, token, "", "");
    assert!(client.line().unwrap().contains("200"));
    while client.line().unwrap() != ":" {}
    let path = format!("/api/v1/tokens/{}", made["id"].as_str().unwrap());
    assert_eq!(daemon.send("DELETE", &path, &json!(null)).0, 200);
    let begin = clock();
    while client.line().is_some() {
        assert!(begin.elapsed() < Duration::from_secs(5), "it goes on");
    }
}

/// All pages of a log, one after the other.
fn paged(daemon: &Daemon, path: &str) -> Vec<Value> {
    let (mut path, mut rows) = (path.to_owned(), vec![]);
    loop {
        let request = hyper::Request::get(&path).header("host", "localhost");
        let (head, text) = daemon.exchange(false, request.body(String::new()).unwrap());
        let page: Vec<Value> = serde_json::from_str(&text).unwrap();
        rows.extend(page);
        let Some(link) = head.headers.get("link") else {
            return rows;
        };
        let link = link.to_str().unwrap();
        path = link[1..link.find('>').unwrap()].to_owned();
    }
}

fn names_of(events: &[Value]) -> Vec<String> {
    let name = |event: &Value| event["object"]["name"].as_str().unwrap().to_owned();
    events.iter().map(name).collect()
}

#[test]
fn the_audit_log_is_read_from_either_end() {
    let daemon = Daemon::start("audit-sort");
    for name in ["a", "b", "c"] {
        let token = json!({ "name": name, "role": "viewer" });
        daemon.send("POST", "/api/v1/tokens", &token);
    }
    let asked = |sort: &str| {
        let rows = paged(&daemon, &format!("/api/v1/audit?limit=2&sort={sort}"));
        let name = |entry: &Value| entry["asked"]["name"].as_str().unwrap().to_owned();
        rows.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(asked("time"), ["a", "b", "c"]);
    assert_eq!(asked("-time"), ["c", "b", "a"]);
}

#[test]
fn logs_are_read_page_by_page_with_filters_and_nothing_wrong_is_passed_over() {
    let daemon = Daemon::start("log-pages");
    emit(&daemon, 25);
    let names = |path: &str| names_of(&paged(&daemon, path));
    let mut wanted: Vec<String> = (0..25).map(|number| format!("lun-{number}")).collect();
    let oldest = names("/api/v1/events/log?limit=10&filter=kind:lun&sort=time");
    assert_eq!(oldest, wanted, "the oldest first, each once");
    wanted.reverse();
    for sort in ["", "&sort=-time"] {
        let path = format!("/api/v1/events/log?limit=10&filter=kind:lun{sort}");
        assert_eq!(names(&path), wanted, "the newest first, each once: {sort}");
    }
    let one = daemon
        .send("GET", "/api/v1/events/log?filter=name:lun-7", &json!(null))
        .1;
    assert_eq!(
        (one.as_array().unwrap().len(), &one[0]["severity"]),
        (1, &json!("info"))
    );
    let some = daemon
        .send("GET", "/api/v1/events/log?filter=name:lun-2*", &json!(null))
        .1;
    assert_eq!(some.as_array().unwrap().len(), 6);
    let worse = daemon
        .send(
            "GET",
            "/api/v1/events/log?least=warning&filter=kind:lun",
            &json!(null),
        )
        .1;
    assert_eq!(worse, json!([]));
    for query in [
        "filter=kind",
        "filter=colour:red",
        "least=bad",
        "limit=0",
        "from=x",
        "colour=red",
        "sort=name",
        "sort=",
    ] {
        let (status, problem) =
            daemon.send("GET", &format!("/api/v1/events/log?{query}"), &json!(null));
        assert_eq!(
            (status.as_u16(), &problem["code"]),
            (400, &json!("CWY5003")),
            "{query}"
        );
    }
}

#[test]
fn only_admins_read_the_audit_log_and_nobody_reads_without_a_login() {
    let daemon = Daemon::start("log-roles");
    for path in [
        "events/log",
        "history",
        "audit",
        "audit/export",
        "events?follow=false",
    ] {
        let (status, _) = daemon.get(&format!("/api/v1/{path}"));
        assert_eq!(status.as_u16(), 401, "{path}");
    }
    let made = daemon
        .send(
            "POST",
            "/api/v1/tokens",
            &json!({ "name": "v", "role": "viewer" }),
        )
        .1;
    let token = made["token"].as_str().unwrap();
    for (path, wanted) in [
        ("events/log", 200),
        ("history", 200),
        ("audit", 403),
        ("audit/export", 403),
    ] {
        let request = hyper::Request::get(format!("/api/v1/{path}")).header("host", "localhost");
        let request = request.header("authorization", format!("Bearer {token}"));
        let (status, _) = daemon.ask(true, request.body(String::new()).unwrap());
        assert_eq!(status.as_u16(), wanted, "{path}");
    }
    let (_, lines) = daemon.send("GET", "/api/v1/audit/export", &json!(null));
    // One line alone is a document.
    assert_eq!(lines["path"], "/api/v1/tokens", "{lines}");
}
