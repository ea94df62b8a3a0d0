//! What the daemon records of itself: events, audit log and history, across stops, kills, damage
//! and full disks.

use crate::login::{login, served};
use crate::place::{Place, text_of};
use crate::small_file_system::{SmallFileSystem, is_root};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn codes(place: &Place) -> Vec<String> {
    let events = place.json("event ls --limit 1000");
    let events = events.as_array().unwrap().iter();
    events
        .map(|event| event["code"].as_str().unwrap().to_owned())
        .collect()
}

/// Waits for something that comes within a sample or two.
#[expect(
    clippy::disallowed_methods,
    reason = "a real daemon, which has to report in time"
)]
fn until(what: &str, is: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::park_timeout(Duration::from_millis(100));
    }
}

fn has(place: &Place, code: &str) -> bool {
    codes(place).iter().any(|known| known == code)
}

/// All files of the state directory whose name has `part`.
fn files(place: &Place, part: &str) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(place.path("data")).unwrap();
    let names = entries.map(|entry| entry.unwrap().path());
    let some = names.filter(|path| path.file_name().unwrap().to_string_lossy().contains(part));
    some.map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
        .collect()
}

#[test]
fn events_and_figures_survive_stops_and_kills() {
    let place = Place::new("records");
    let daemon = place.start();
    let portal = served(&place);
    let session = login(&portal);
    assert_eq!(session.status, 0);
    until("a session that opened", || has(&place, "session_opened"));
    drop(session);
    until("a session that closed", || has(&place, "session_closed"));
    assert!(
        has(&place, "config_applied") && has(&place, "path_lost"),
        "{:?}",
        codes(&place)
    );
    let of_host = place.json("event ls --object host:esx01 --code session_closed");
    let reason = of_host[0]["fields"]["reason"].as_str().unwrap();
    assert!(reason.contains("closed the connection"), "{reason}");
    let before = place.json("event ls --limit 1000");
    daemon.stop();

    let daemon = place.start();
    let after = place.json("event ls --limit 1000");
    let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
    assert_eq!(after[..before.len()], before[..], "all that was there");
    let rest: Vec<&Value> = after[before.len()..]
        .iter()
        .map(|event| &event["code"])
        // Of this machine's disk, if that has little room.
        .filter(|code| *code != "pool_low")
        .collect();
    assert_eq!(rest, ["node_stopping", "node_started"]);
    let started = |events: &[Value]| {
        let mut last = events.iter().rev();
        last.find(|event| event["code"] == "node_started").unwrap()["fields"]["unclean"].clone()
    };
    assert!(started(after).is_null());
    // Figures of before the stop: of the last seconds, too.
    let history = place.json("history node sessions --from 10m");
    let known = history["lines"][0]["max"].as_array().unwrap().iter();
    assert!(known.clone().any(|most| *most == json!(1.0)), "{history}");

    daemon.kill();
    let daemon = place.start();
    let killed = place.json("event ls --limit 1000");
    let killed = killed.as_array().unwrap();
    assert_eq!(
        killed[..after.len()],
        after[..],
        "what was listed was in the file"
    );
    assert_eq!(started(killed), true);
    let history = place.json("history node sessions --from 10m");
    let known = history["lines"][0]["max"].as_array().unwrap().iter();
    assert!(known.clone().any(|most| *most == json!(1.0)), "{history}");
    daemon.stop();
}

#[test]
fn refused_logins_and_sessions_shorter_than_a_sample_are_events() {
    let place = Place::new("records-short");
    let daemon = place.start();
    let portal = served(&place);
    place.run(0, "lun create other --size 1M");
    for _ in 0..3 {
        assert_eq!(login(&portal).status, 0);
    }
    place.run(0, "grant delete esx01:t1:vm01");
    assert_ne!(login(&portal).status, 0);
    until("a refused login", || has(&place, "login_refused"));
    let count = |code: &str| codes(&place).iter().filter(|known| *known == code).count();
    until("three sessions", || count("session_closed") == 3);
    assert_eq!(count("session_opened"), 3);
    daemon.stop();
}

#[test]
fn a_damaged_file_is_set_aside_and_the_daemon_serves() {
    let place = Place::new("records-damaged");
    place.start().stop();
    for name in ["events.db", "history.db"] {
        let path = place.path(&format!("data/{name}"));
        let mut bytes = std::fs::read(&path).unwrap();
        for byte in bytes.iter_mut().skip(100) {
            *byte ^= 0x5a;
        }
        std::fs::write(&path, bytes).unwrap();
    }
    let daemon = place.start();
    until("both are reported", || {
        codes(&place)
            .iter()
            .filter(|code| *code == "records_damaged")
            .count()
            == 2
    });
    place.run(0, "lun create a --size 1M");
    assert!(files(&place, "events.db.damaged-").len() == 1);
    assert_eq!(place.problems(), [""; 0]);
    // One of a newer program is left alone, and said.
    daemon.stop();
}

#[test]
fn a_full_disk_stops_the_recording_and_nothing_else() {
    if !is_root() {
        eprintln!("skipped: only root may mount");
        return;
    }
    let place = Place::new("records-full");
    let disk = SmallFileSystem::mount(&place.path("data"), 64 << 20);
    let _disk = match disk {
        Ok(disk) => disk,
        Err(why) => {
            eprintln!("skipped: {why}");
            return;
        }
    };
    let daemon = place.start();
    let portal = served(&place);
    let ballast = place.path("data/ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    let chunk = vec![0; 1 << 16];
    while std::io::Write::write_all(&mut file, &chunk).is_ok() {}
    // Events are in memory and on their way to who watches, and the file has no room.
    until("the problem is said", || {
        assert_eq!(login(&portal).status, 0, "hosts are served");
        let said = place.problems().join("\n");
        said.contains("events.db") && said.contains("audit log are not stored")
    });
    drop(file);
    std::fs::remove_file(&ballast).unwrap();
    until("it is written again", || {
        login(&portal);
        !place.problems().join("\n").contains("events.db")
    });
    daemon.stop();
}

/// Method, object and status of an entry; tokens have identifiers that nobody knows before.
fn in_short(entry: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &entry["object"];
    let (kind, name) = (text(&object["kind"]), text(&object["name"]));
    let name = if kind == "token" { "(id)" } else { &name };
    let (method, status) = (text(&entry["method"]), &entry["status"]);
    format!("{method} {kind} {name} {status}")
}

/// Of the list of the audit log, of which the last entry is a user's deletion that was refused.
fn shows_words_and_the_request_only_where_it_is_asked_for(place: &Place) {
    let last_row = |table: &str| {
        let last = table.lines().last().unwrap();
        last.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let table = place.run(0, "audit ls");
    let last = last_row(&table);
    assert!(
        last.contains("backup 127.0.0.1, token tried to delete user eve not allowed, CWY"),
        "{table}"
    );
    assert!(!table.contains("/api/v1/"), "{table}");
    let wide = place.run(0, "audit ls -o wide");
    let last = last_row(&wide);
    assert!(last.contains(" DELETE /api/v1/users/eve?"), "{wide}");
    assert!(last.ends_with(" (403)"), "{wide}");
}

#[test]
fn the_audit_log_says_who_did_what_and_has_no_secret() {
    let place = Place::new("audit");
    let daemon = place.start();
    place.write("esx01.secret", "very-secret-one\n");
    place.run(0, "host create esx01 --iqn iqn.1998-01.com.vmware:esx01 --chap-user esx01 --chap-secret-file esx01.secret");
    let password = "correct horse battery";
    let words = "user create eve --role operator --password-file -";
    let all: Vec<&str> = words.split(' ').collect();
    text_of(&place.run_with(&place.api(), &all, password), 0, words);
    let token = place.run(0, "token create backup --role operator --days 1");
    place.write("token.secret", &token);
    place.run(0, "lun create a --size 1M");
    place.run(0, "lun set a size=2M");
    place.run(0, "lun delete a --dry-run");
    place.run(3, "lun delete none");
    let status = place.json("status");
    let tcp = status["api"][1].as_str().unwrap().to_owned();
    let words = "lun create b --size 1M --token-file token.secret";
    let all: Vec<&str> = words.split(' ').collect();
    text_of(&place.run_with(&tcp, &all, ""), 0, words);
    let words = "user delete eve --token-file token.secret";
    let all: Vec<&str> = words.split(' ').collect();
    text_of(&place.run_with(&tcp, &all, ""), 5, words);

    let log = place.json("audit ls --limit 100");
    let entries = log.as_array().unwrap();
    let said: Vec<String> = entries.iter().map(in_short).collect();
    assert_eq!(
        said,
        [
            "POST host esx01 200",
            "POST user eve 200",
            "POST token (id) 200",
            "POST lun a 200",
            "PATCH lun a 200",
            "DELETE lun none 404",
            "POST lun b 200",
            "DELETE user eve 403",
        ]
    );
    let sizes = (&entries[4]["before"]["size"], &entries[4]["after"]["size"]);
    assert_ne!(sizes.0, sizes.1, "{}", entries[4]);
    assert_eq!(
        (&entries[6]["who"], &entries[6]["via"]),
        (&json!("backup"), &json!("token"))
    );
    assert_eq!(entries[6]["from"], "127.0.0.1");
    let one = place.json("audit ls --object lun:b");
    assert_eq!(one.as_array().unwrap().len(), 1);
    let lines = place.run(0, "audit export");
    assert_eq!(lines.lines().count(), entries.len());
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["id"], 1, "the oldest first");
    shows_words_and_the_request_only_where_it_is_asked_for(&place);
    assert_eq!(entries[6]["words"]["did"], "made");

    let mut seen = lines + &log.to_string() + &daemon.stop();
    for (name, bytes) in files(&place, "events.db") {
        seen.push_str(&String::from_utf8_lossy(&bytes));
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&name).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    for secret in ["very-secret-one", password, token.trim()] {
        assert!(!seen.contains(secret), "{secret}");
    }
}
