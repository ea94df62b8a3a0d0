//! Events and the audit log in their file: across restarts, kills and bounds.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use database::{Settings, Synchronous, rusqlite};
use events::{
    Code, Entry, Event, Events, Filter, Happened, Object, Severity, Wanted, WantedEntries, unended,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use units::WallClock;

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("events-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("events.db")
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Events with a clock that goes a millisecond each time it is read.
fn start(path: &Path, began: u64, bytes_max: u64) -> Events {
    let settings = Settings {
        path: path.to_owned(),
        synchronous: Synchronous::Full,
        bytes_max,
    };
    let now = AtomicU64::new(began * 1_000);
    let clock = move || WallClock(now.fetch_add(1, Ordering::Relaxed) * 1_000_000);
    Events::start(settings, Arc::new(clock)).unwrap()
}

fn online(name: &str) -> Happened {
    let message = format!("LUN {name} is in service");
    Happened::new(Code::LunOnline, Object::new("lun", name), message).with("reason", "test")
}

fn offline(name: &str) -> Happened {
    Happened::new(
        Code::LunOffline,
        Object::new("lun", name),
        "its device is missing",
    )
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(work)
}

fn list(events: &Events, wanted: Wanted) -> Vec<Event> {
    let limit = wanted.limit.max(1_000);
    run(events.list(Wanted { limit, ..wanted })).unwrap()
}

fn filter(column: &'static str, is: &str) -> Filter {
    let is = is.to_owned();
    Filter { column, is }
}

fn newest(limit: u64) -> WantedEntries {
    WantedEntries {
        limit,
        ..WantedEntries::default()
    }
}

fn entry(path: &str, asked: Value) -> Entry {
    Entry {
        who: "uid 0".to_owned(),
        via: "unix".to_owned(),
        from: None,
        method: "PATCH".to_owned(),
        path: path.to_owned(),
        objects: Vec::new(),
        object: Some(Object::new("host", "esx01")),
        before: json!({ "chap": { "user": "a", "secret": "correct horse" } }),
        after: json!({ "chap": { "user": "b", "secret": "correct horse" } }),
        asked,
        status: 200,
        code: None,
        job: None,
        bad_token: false,
        request_id: "1".to_owned(),
    }
}

#[test]
fn events_are_kept_and_found_by_what_they_are() {
    let dir = Dir::new("kept");
    let events = start(&dir.file(), 1_800_000_000, 64 << 20);
    events.emit(online("a"));
    events.emit(offline("a"));
    events.emit(offline("b"));
    let all = list(&events, Wanted::default());
    let messages: Vec<&str> = all.iter().map(|event| event.message.as_str()).collect();
    assert_eq!(messages[0], "LUN a is in service", "the oldest first");
    assert_eq!((all.len(), &all[0].fields["reason"]), (3, &json!("test")));
    assert!(
        all[0].time.starts_with("2027-01-15T08:00:00.0"),
        "{}",
        all[0].time
    );
    let worse = Wanted {
        severity: Some(Severity::Error),
        filters: vec![filter("name", "b"), filter("kind", "lu*")],
        ..Wanted::default()
    };
    assert_eq!(list(&events, worse), all[2..]);
    let since = Wanted {
        since: Some(all[0].id),
        ..Wanted::default()
    };
    assert_eq!(list(&events, since), all[1..]);
    let newest = Wanted {
        limit: 1,
        ..Wanted::default()
    };
    assert_eq!(run(events.list(newest)).unwrap(), all[2..]);
}

#[test]
fn identifiers_rise_across_restarts_lost_files_and_clocks_that_are_set_back() {
    let dir = Dir::new("restart");
    let mut last = 0;
    for (round, began) in [1_800_000_000, 1_800_000_010, 1_000, 1_800_000_020]
        .into_iter()
        .enumerate()
    {
        if round == 3 {
            std::fs::remove_file(dir.file()).unwrap();
        }
        let events = start(&dir.file(), began, 64 << 20);
        for number in 0..300 {
            events.emit(online(&number.to_string()));
        }
        let found = list(&events, Wanted::default());
        let new: Vec<u64> = found
            .iter()
            .map(|event| event.id)
            .filter(|id| *id > last)
            .collect();
        assert_eq!(new.len(), 300, "{round}");
        assert!(new.is_sorted());
        last = new[299];
        events.stop();
    }
}

#[test]
fn a_subscriber_goes_on_across_a_restart_where_it_was() {
    let dir = Dir::new("resume");
    let events = start(&dir.file(), 1_800_000_000, 64 << 20);
    for number in 0..10 {
        events.emit(online(&number.to_string()));
    }
    let seen = list(&events, Wanted::default())[3].id;
    events.stop();
    let events = start(&dir.file(), 1_800_000_100, 64 << 20);
    events.emit(offline("a"));
    let batch = run(async { events.subscribe(Some(seen)).await.next().await });
    let names: Vec<&str> = batch
        .events
        .iter()
        .map(|event| event.object.name.as_str())
        .collect();
    assert_eq!(
        (batch.missed, names),
        (0, vec!["4", "5", "6", "7", "8", "9", "a"])
    );
    // What is no longer in memory is counted.
    for number in 0..2_000 {
        events.emit(online(&number.to_string()));
    }
    let batch = run(async { events.subscribe(Some(seen)).await.next().await });
    assert_eq!(batch.missed, 7 + 2_000 - 1_024);
}

#[test]
fn a_subscriber_without_a_place_gets_what_comes() {
    let dir = Dir::new("live");
    let events = start(&dir.file(), 1_800_000_000, 64 << 20);
    events.emit(online("before"));
    run(async {
        let mut subscription = events.subscribe(None).await;
        events.emit(online("after"));
        let batch = subscription.next().await;
        assert_eq!((batch.missed, batch.events.len()), (0, 1));
        assert_eq!(batch.events[0].object.name, "after");
        let emit = async {
            tokio::task::yield_now().await;
            events.emit(online("later"));
        };
        let (batch, ()) = tokio::join!(subscription.next(), emit);
        assert_eq!(batch.events[0].object.name, "later");
    });
}

#[test]
fn no_secret_gets_into_the_file() {
    let dir = Dir::new("secrets");
    let events = start(&dir.file(), 1_800_000_000, 64 << 20);
    let asked = json!({ "chap": { "secret": { "value": "correct horse" }, "mutual_secret": "correct horse" } });
    events
        .audit(entry(
            "/api/v1/hosts/esx01?token=correct%20horse&force=true",
            asked,
        ))
        .wait()
        .unwrap();
    let found = run(events.audited(newest(10))).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].entry.path,
        "/api/v1/hosts/esx01?token=(removed)&force=true"
    );
    assert_eq!(found[0].entry.after["chap"]["user"], "b");
    events.stop();
    let bytes = std::fs::read(dir.file()).unwrap();
    assert!(
        !String::from_utf8_lossy(&bytes).contains("correct"),
        "nowhere in the file"
    );
}

#[test]
fn the_audit_log_is_only_added_to() {
    let dir = Dir::new("append");
    let events = start(&dir.file(), 1_800_000_000, 64 << 20);
    for number in 0..5 {
        events
            .audit(entry(&format!("/{number}"), Value::Null))
            .wait()
            .unwrap();
    }
    let ids = |events: &Events, since| -> Vec<u64> {
        let found = run(events.audited(WantedEntries { since, ..newest(3) })).unwrap();
        found.iter().map(|entry| entry.id).collect()
    };
    assert_eq!(
        (ids(&events, None), ids(&events, Some(1))),
        (vec![3, 4, 5], vec![2, 3, 4])
    );
    events.stop();
    let file = rusqlite::Connection::open(dir.file()).unwrap();
    let change = file.execute("UPDATE audit SET entry = '{}' WHERE id = 2", []);
    assert!(change.unwrap_err().to_string().contains("not changed"));
    let remove = file.execute("DELETE FROM audit WHERE id = 2", []);
    assert!(remove.unwrap_err().to_string().contains("oldest"));
}

#[test]
fn a_full_file_loses_its_oldest_events_before_any_audit_entry() {
    let dir = Dir::new("full");
    let events = start(&dir.file(), 1_800_000_000, 1 << 20);
    for number in 0..50 {
        events
            .audit(entry(&format!("/{number}"), Value::Null))
            .wait()
            .unwrap();
    }
    for number in 0..20_000 {
        events.emit(online(&number.to_string()));
        if number % 1_000 == 0 {
            // The file keeps pace.
            list(&events, Wanted::default());
        }
    }
    let kept = list(
        &events,
        Wanted {
            limit: 10_000,
            ..Wanted::default()
        },
    );
    assert_eq!(kept.last().unwrap().object.name, "19999");
    assert!((1_000..10_000).contains(&kept.len()), "{}", kept.len());
    assert!(events.health().bytes <= 1 << 20, "{:?}", events.health());
    assert_eq!(run(events.audited(newest(100))).unwrap().len(), 50);
}

#[test]
fn without_a_file_events_reach_subscribers_all_the_same() {
    let events = start(
        Path::new("/proc/nothing/events.db"),
        1_800_000_000,
        64 << 20,
    );
    let mut subscription = run(events.subscribe(None));
    events.emit(online("a"));
    let batch = run(subscription.next());
    assert_eq!(batch.events[0].object.name, "a");
    assert!(run(events.list(Wanted::default())).is_err());
    assert!(events.health().failing.is_some() && events.health().dropped == 1);
}

#[test]
fn work_that_began_is_unended_until_an_entry_says_how_it_ended() {
    let dir = Dir::new("unended");
    let events = start(&dir.file(), 1_800_000_000, 64 << 20);
    let of_job = |job: u64, status: u16| Entry {
        status,
        job: Some(job),
        request_id: format!("r{job}"),
        ..entry("/api/v1/luns", Value::Null)
    };
    let all = [of_job(1, 202), of_job(2, 202), of_job(1, 500)];
    for one in all.into_iter().chain([entry("/", Value::Null)]) {
        events.audit(one).wait().unwrap();
    }
    let jobs = WantedEntries {
        filters: vec![filter("job", "*")],
        ..newest(10)
    };
    let found = run(events.audited(jobs)).unwrap();
    assert_eq!(found.len(), 3, "those of jobs: {found:?}");
    let left = unended(found);
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].job, Some(2));
}
