//! What gets into the audit log, and what never does.

use super::entry::{Few, Seldom};
use super::*;
use crate::test::Daemon;
use axum::http::Method;
use controller::test_support::lab;
use events::{Audited, WantedEntries};
use hyper::Request as Asked;
use units::Now;

pub(crate) fn entries(daemon: &Daemon) -> Vec<Audited> {
    let wanted = WantedEntries {
        limit: 1_000,
        ..WantedEntries::default()
    };
    let read = daemon.records.events().audited(wanted);
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(read).unwrap()
}

pub(crate) fn last(daemon: &Daemon) -> Entry {
    entries(daemon).pop().expect("there is an entry").entry
}

#[test]
fn a_change_is_entered_with_who_what_before_and_after_and_reads_and_dry_runs_are_not() {
    let daemon = Daemon::start("audit");
    daemon.send("POST", "/api/v1/apply", &json!(lab()));
    let all = last(&daemon);
    assert_eq!(all.after["generation"], 2);
    assert_eq!(
        (all.object.unwrap().kind, all.status),
        ("lun".to_owned(), 200)
    );
    assert!(
        all.objects.contains(&Object::new("host", "h")),
        "{:?}",
        all.objects
    );
    daemon.send(
        "POST",
        "/api/v1/luns",
        &json!({ "name": "m", "size": "2G" }),
    );
    let made = last(&daemon);
    assert!(made.who.starts_with("uid:") && made.via == "socket" && made.from.is_none());
    assert_eq!((made.method.as_str(), made.before), ("POST", Value::Null));
    assert_eq!(made.after["name"], "m");
    daemon.send("POST", "/api/v1/luns/m/rename", &json!({ "to": "n" }));
    let renamed = last(&daemon);
    assert_eq!(
        (&renamed.before["name"], &renamed.after["name"]),
        (&json!("m"), &json!("n"))
    );
    daemon.send("PATCH", "/api/v1/luns/n", &json!({ "shares": 7 }));
    let patched = last(&daemon);
    assert_eq!(
        (&patched.before["shares"], &patched.after["shares"]),
        (&Value::Null, &json!(7))
    );
    assert_eq!(patched.asked, json!({ "shares": 7 }));
    daemon.send("DELETE", "/api/v1/luns/n", &Value::Null);
    let removed = last(&daemon);
    assert_eq!(
        (&removed.before["name"], removed.after),
        (&json!("n"), Value::Null)
    );
    let count = entries(&daemon).len();
    daemon.send("DELETE", "/api/v1/luns/l?dry_run=true", &Value::Null);
    daemon.send("GET", "/api/v1/luns", &Value::Null);
    assert_eq!(entries(&daemon).len(), count);
    daemon.send("DELETE", "/api/v1/luns/l", &Value::Null);
    let refused = last(&daemon);
    assert_eq!(
        (refused.status, refused.code.as_deref()),
        (409, Some("CWY3004"))
    );
    assert_eq!(refused.before, Value::Null, "nothing was changed");
}

#[test]
fn of_several_objects_those_that_changed_are_entered_before_and_after() {
    let daemon = Daemon::start("audit_several");
    daemon.send("POST", "/api/v1/apply", &json!(lab()));
    let made = last(&daemon);
    assert_eq!(made.before, Value::Null);
    assert_eq!(made.after["objects"]["lun"][0]["name"], "l");
    let mut lun = json!(lab())["lun"][0].clone();
    lun["shares"] = json!(7);
    let set = json!({ "lun": [lun], "target": [{ "name": "t9" }] });
    let (status, answer) = daemon.send("POST", "/api/v1/apply", &set);
    assert_eq!(status, 200, "{answer}");
    let entry = last(&daemon);
    let shares = |of: &Value| of["lun"][0]["shares"].clone();
    assert_eq!(shares(&entry.before), Value::Null);
    assert_eq!(shares(&entry.after["objects"]), json!(7));
    assert_eq!(entry.after["objects"]["target"][0]["name"], "t9");
    assert_eq!(entry.before["target"], Value::Null, "it was not there");
    // Whoever looks for one of them finds it.
    let of = |path: &str| daemon.send("GET", path, &Value::Null).1;
    for name in ["t9", "t*", "l"] {
        let found = of(&format!("/api/v1/audit?filter=name:{name}&limit=1"));
        assert_eq!(found[0]["path"], "/api/v1/apply", "{name}: {found}");
    }
    assert_eq!(of("/api/v1/audit?filter=name:none"), json!([]));
    for object in [&entry.before, &entry.after["objects"]] {
        assert_eq!(object["host"], Value::Null, "it did not change: {object}");
    }
    let many: Vec<Value> = (0..2_000)
        .map(|at| json!({ "name": format!("m{at}"), "size": "1M", "backend": "memory" }))
        .collect();
    daemon.send("POST", "/api/v1/apply", &json!({ "lun": many }));
    let entry = last(&daemon);
    assert!(
        entry.after.to_string().len() < 40_000,
        "an entry has bounds"
    );
}

#[test]
fn a_request_that_is_sent_again_is_entered_once() {
    let daemon = Daemon::start("audit-again");
    let count = |_| {
        let request = Asked::post("/api/v1/luns").header("host", "localhost");
        let request = request.header("idempotency-key", "k");
        let body = json!({ "name": "m", "size": "2G" }).to_string();
        daemon.ask(false, request.body(body).unwrap());
        entries(&daemon).len()
    };
    assert_eq!([0, 1].map(count), [1, 1]);
}

#[test]
fn logins_refused_ones_and_what_a_role_does_not_allow_are_entered() {
    let daemon = Daemon::start("audit-login");
    let password = "twelve bytes are few";
    let user = json!({ "name": "vera", "role": "viewer", "password": password });
    daemon.send("POST", "/api/v1/users", &user);
    let made = last(&daemon);
    let asked = json!({ "name": "vera", "role": "viewer", "password": "(removed)" });
    assert_eq!(made.asked, asked);
    assert_eq!(made.after["role"], "viewer");
    let login = |user: &str, password: &str| {
        let request = Asked::post("/api/v1/login").header("host", "localhost");
        let request = request.header("content-type", "application/json");
        let body = json!({ "user": user, "password": password }).to_string();
        daemon.exchange(true, request.body(body).unwrap())
    };
    let (head, text) = login("vera", password);
    let entered = last(&daemon);
    assert_eq!((entered.who.as_str(), entered.status), ("vera", 200));
    assert_eq!(entered.from.as_deref(), Some("127.0.0.1"));
    login("correct horse", "battery staple");
    let refused = last(&daemon);
    assert_eq!((refused.who.as_str(), refused.status), ("(unknown)", 401));
    // A viewer who is logged in tries to change something.
    let cookie = head.headers["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let csrf: Value = serde_json::from_str(&text).unwrap();
    let request = Asked::delete("/api/v1/luns/l").header("host", "localhost");
    let request = request.header("cookie", cookie);
    let request = request.header("x-causeway-csrf", csrf["csrf"].as_str().unwrap());
    let (status, _) = daemon.ask(true, request.body(String::new()).unwrap());
    let tried = last(&daemon);
    assert_eq!(
        (status.as_u16(), tried.status, tried.who.as_str()),
        (403, 403, "vera")
    );
    assert_eq!(tried.object.unwrap().name, "l");
    let text = serde_json::to_string(&entries(&daemon)).unwrap();
    for secret in [
        password,
        "correct horse",
        "battery",
        cookie,
        csrf["csrf"].as_str().unwrap(),
    ] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

#[test]
fn no_secret_of_any_request_is_in_the_file() {
    let daemon = Daemon::start("audit-secret");
    let secret = "correct horse battery";
    let host = json!({
        "name": "h2", "iqn": ["iqn.1998-01.com.example:h2"],
        "chap": { "user": "u", "secret": { "value": secret } },
    });
    let (status, _) = daemon.send("POST", "/api/v1/hosts", &host);
    assert_eq!(status.as_u16(), 200);
    let patch = json!({ "chap": { "user": "u", "secret": { "value": secret } } });
    daemon.send("PATCH", "/api/v1/hosts/h2", &patch);
    daemon.send("PATCH", "/api/v1/hosts/nobody", &patch);
    daemon.send("POST", "/api/v1/objects", &json!({ "host": [host] }));
    let change = json!({ "old": secret, "new": secret, "password": secret });
    daemon.send("PUT", "/api/v1/me/password", &change);
    daemon.send(
        "PATCH",
        "/api/v1/users/admin",
        &json!({ "password": [secret], "name": { "a": secret } }),
    );
    let token = json!({ "name": "t", "role": "viewer", "days": 7, "secret": secret });
    daemon.send("POST", "/api/v1/tokens", &token);
    let (_, made) = daemon.send(
        "POST",
        "/api/v1/tokens",
        &json!({ "name": "t", "role": "viewer" }),
    );
    let made = made["token"].as_str().unwrap().to_owned();
    assert_eq!(last(&daemon).object.unwrap().kind, "token");
    let all = entries(&daemon);
    assert_eq!(all.len(), 8, "{all:?}");
    let state = daemon.dir.join("state");
    for file in std::fs::read_dir(state).unwrap() {
        let path = file.unwrap().path();
        if path.to_string_lossy().contains("events.db") {
            let text = std::fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&text);
            assert!(
                !text.contains(secret) && !text.contains(&made),
                "{}",
                path.display()
            );
        }
    }
}

#[test]
fn strangers_cannot_fill_the_log_with_refused_logins() {
    let mut few = Few::default();
    let at = |seconds: u64| Now(seconds * 1_000_000_000);
    let entered = (0..1_000).filter(|_| few.take(at(5)).is_some()).count();
    assert_eq!(entered, 60);
    assert_eq!(
        few.take(at(65)),
        Some(940),
        "the next one says how many are missing"
    );
    assert_eq!(few.take(at(66)), Some(0));
}

#[test]
fn what_comes_again_and_again_is_entered_once_an_hour_and_its_memory_is_bounded() {
    let mut seldom = Seldom::default();
    let at = |seconds: u64| Now(seconds * 1_000_000_000);
    let entered = (0..3_600).filter(|second| seldom.take("a", at(*second)).is_some());
    assert_eq!(entered.count(), 1);
    assert_eq!(seldom.take("b", at(5_000)), Some(0), "another");
    assert_eq!(seldom.take("a", at(5_000)), Some(3_599));
    for number in 0..1_000 {
        seldom.take(&number.to_string(), at(10_000 + number));
    }
    assert!(format!("{seldom:?}").len() < 256 * 60, "{seldom:?}");
}

#[test]
fn a_token_that_is_none_or_has_ended_leaves_an_entry_and_is_counted() {
    let daemon = Daemon::start("audit-token");
    let send = |method: &str, bearer: &str| {
        let request = Asked::builder().method(method).uri("/api/v1/luns");
        let request = request.header("host", "localhost");
        let request = request.header("authorization", format!("Bearer {bearer}"));
        daemon.ask(true, request.body("{}".to_owned()).unwrap()).0
    };
    for method in ["GET", "POST"] {
        assert_eq!(send(method, "cwy_0123456789abcdef"), 401);
    }
    let bad = last(&daemon);
    assert_eq!((bad.who.as_str(), bad.status), ("(unknown)", 401));
    assert_eq!((bad.method.as_str(), bad.bad_token), ("GET", true));
    assert_eq!(bad.from.as_deref(), Some("127.0.0.1"));
    assert_eq!(entries(&daemon).len(), 1, "one an hour");
    let in_a_moment = crate::outside::now().seconds() + 2;
    let at = manifest::time::rfc3339(units::WallClock(in_a_moment * 1_000_000_000));
    let token = json!({ "name": "backup", "role": "viewer", "expires": at });
    let (status, made) = daemon.send("POST", "/api/v1/tokens", &token);
    assert_eq!(status, 200, "{made}");
    let bearer = made["token"].as_str().unwrap();
    while send("GET", bearer) != 401 {
        std::thread::yield_now();
    }
    let ended = last(&daemon);
    assert_eq!((ended.who.as_str(), ended.bad_token), ("backup", true));
    assert_eq!(ended.object, Some(Object::new("token", "backup")));
    let text = serde_json::to_string(&entries(&daemon)).unwrap();
    assert!(!text.contains(bearer) && !text.contains("cwy_"), "{text}");
    let (_, metrics) = daemon.send("GET", "/metrics", &Value::Null);
    let counted = "causeway_api_refused_total{proof=\"token\"} 3";
    assert!(metrics.as_str().unwrap().contains(counted), "{metrics}");
}

/// Changes of objects, and what they are about.
fn of_objects() -> Vec<(Method, &'static str, Value, &'static str)> {
    let (post, patch, delete) = (Method::POST, Method::PATCH, Method::DELETE);
    vec![
        (
            post.clone(),
            "/api/v1/luns",
            json!({ "name": "a" }),
            "lun a",
        ),
        (
            patch.clone(),
            "/api/v1/luns/a%20b",
            json!({ "name": "x" }),
            "lun a b",
        ),
        (post.clone(), "/api/v1/luns/a/scrub", json!({}), "lun a"),
        (
            post.clone(),
            "/api/v1/grants",
            json!({ "host": "h", "target": "t", "lun": "l" }),
            "grant h:t:l",
        ),
        (
            delete.clone(),
            "/api/v1/grants/h:t:l",
            json!(null),
            "grant h:t:l",
        ),
        (
            delete.clone(),
            "/api/v1/sessions/4",
            json!(null),
            "session 4",
        ),
        (post.clone(), "/api/v1/pools/p/journal", json!({}), "pool p"),
        (post.clone(), "/api/v1/apply", json!({ "name": "a" }), ""),
        (
            post.clone(),
            "/api/v1/login",
            json!({ "user": "a" }),
            "user a",
        ),
        (post.clone(), "/api/v1/logout", json!(null), "user eve"),
        (
            post.clone(),
            "/api/v1/luns/rename",
            json!(null),
            "lun rename",
        ),
        (
            post.clone(),
            "/api/v1/luns/rename/rename",
            json!({ "to": "b" }),
            "lun rename",
        ),
        (
            post.clone(),
            "/api/v1/luns/scrub/purge",
            json!(null),
            "lun scrub",
        ),
    ]
}

/// Changes of anything else.
fn of_the_rest() -> Vec<(Method, &'static str, Value, &'static str)> {
    let (post, put, delete) = (Method::POST, Method::PUT, Method::DELETE);
    vec![
        (post.clone(), "/api/v1/jobs/7/cancel", json!(null), "job 7"),
        (
            post.clone(),
            "/api/v1/luns/a/mirror",
            json!({ "operation": "add", "node": "san-b" }),
            "lun a",
        ),
        (
            post.clone(),
            "/api/v1/node/drain",
            json!(null),
            "node drain",
        ),
        (
            delete.clone(),
            "/api/v1/disks/S%201",
            json!(null),
            "disk S 1",
        ),
        (
            post.clone(),
            "/api/v1/alerts/7/acknowledge",
            json!({}),
            "alert 7",
        ),
        (put.clone(), "/api/v1/alerts/rules/r", json!({}), "rule r"),
        (post.clone(), "/api/v1/alerts/silences", json!({}), ""),
        (
            delete.clone(),
            "/api/v1/alerts/silences/4",
            json!({}),
            "silence 4",
        ),
        (
            post.clone(),
            "/api/v1/alerts/receivers",
            json!({ "name": "a" }),
            "receiver a",
        ),
        (
            post.clone(),
            "/api/v1/alerts/receivers/a/test",
            json!({}),
            "receiver a",
        ),
        (
            post.clone(),
            "/api/v1/bench/runs",
            json!({ "url": "iscsi://u:p@h" }),
            "bench run url",
        ),
        (
            post.clone(),
            "/api/v1/bench/runs/3/cancel",
            json!({}),
            "bench run 3",
        ),
    ]
}

#[test]
fn what_a_path_is_about_is_known() {
    let of = |method: Method, path: &str, body: Value| {
        let object = Target::of(&method, path, &body, "eve").object();
        object
            .map(|it| format!("{} {}", it.kind, it.name))
            .unwrap_or_default()
    };
    for (method, path, body, wanted) in [of_objects(), of_the_rest()].concat() {
        assert_eq!(of(method.clone(), path, body), wanted, "{method} {path}");
    }
}
