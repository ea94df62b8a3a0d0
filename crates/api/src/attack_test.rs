//! Attacks, each with the defence that stops it. SECURITY.md lists them; each test fails where its
//! defence is taken away.

use crate::accept::{HEAD_BYTES, Times};
use crate::login_test::{NEW, ask, enter, login, make, of};
use crate::places::OF_ONE_MAX;
use crate::test::{Daemon, TOKEN};
use hyper::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::iter::once;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Times that a test can wait for.
fn short() -> Times {
    Times {
        head: Duration::from_millis(700),
        body: Duration::from_millis(700),
        ..Times::default()
    }
}

fn connect(daemon: &Daemon) -> TcpStream {
    let at = daemon.addresses[1].strip_prefix("http://").unwrap();
    let stream = TcpStream::connect(at).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    stream
}

/// Sends bytes as they are; the whole answer.
fn raw(daemon: &Daemon, text: &[u8]) -> String {
    let mut stream = connect(daemon);
    // It may be closed before all was sent.
    let _ = stream.write_all(text);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

const LUN: (&str, &str) = ("POST", "/api/v1/luns");

fn lun(name: &str) -> Value {
    json!({ "name": name, "size": "2G" })
}

#[test]
fn csrf_a_change_with_a_cookie_takes_the_token_that_only_the_page_knows() {
    let daemon = Daemon::start("csrf");
    make(&daemon, "op", "operator");
    let op = enter(&daemon, "op", NEW);
    let other = enter(&daemon, "op", NEW);
    let cookie = ("cookie", op.cookie.as_str());
    let wrong = [
        &[cookie][..],
        &[cookie, ("x-causeway-csrf", "")],
        &[cookie, ("x-causeway-csrf", &other.csrf)],
    ];
    for headers in wrong {
        let said = ask(&daemon, LUN, headers, &lun("a"));
        assert_eq!(
            (said.status, said.code()),
            (StatusCode::FORBIDDEN, "CWY5028")
        );
        let out = ask(&daemon, ("POST", "/api/v1/logout"), headers, &Value::Null);
        assert_eq!(out.code(), "CWY5028");
    }
    assert_eq!(
        ask(&daemon, ("GET", "/api/v1/me"), &[cookie], &Value::Null).status,
        StatusCode::OK
    );
    assert_eq!(of(&daemon, &op, LUN, &lun("a")).status, StatusCode::OK);
    let set = login(&daemon, "op", NEW).headers["set-cookie"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(set.contains("; HttpOnly; SameSite=Strict"), "{set}");
}

#[test]
fn csrf_of_the_login_a_form_of_another_page_cannot_log_anybody_in() {
    let daemon = Daemon::start("login-csrf");
    make(&daemon, "op", "operator");
    let body = json!({ "user": "op", "password": NEW });
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ] {
        let said = ask(
            &daemon,
            ("POST", "/api/v1/login"),
            &[("content-type", kind)],
            &body,
        );
        assert_eq!(said.status, StatusCode::BAD_REQUEST, "{kind}");
        assert!(said.headers.get("set-cookie").is_none());
    }
}

#[test]
fn fixation_a_login_never_keeps_the_cookie_that_the_browser_had() {
    let daemon = Daemon::start("fixation");
    make(&daemon, "op", "operator");
    let planted = format!("causeway-session={}", "ab".repeat(32));
    let body = json!({ "user": "op", "password": NEW });
    let said = ask(
        &daemon,
        ("POST", "/api/v1/login"),
        &[("cookie", &planted)],
        &body,
    );
    assert_eq!(said.status, StatusCode::OK);
    assert_ne!(said.cookie(), planted);
    let with = |cookie: &str| {
        ask(
            &daemon,
            ("GET", "/api/v1/me"),
            &[("cookie", cookie)],
            &Value::Null,
        )
    };
    assert_eq!(with(&planted).status, StatusCode::UNAUTHORIZED);
    // Nor does the session that was there before go on.
    let again = ask(
        &daemon,
        ("POST", "/api/v1/login"),
        &[("cookie", &said.cookie())],
        &body,
    );
    assert_eq!(with(&again.cookie()).status, StatusCode::OK);
    assert_eq!(with(&said.cookie()).status, StatusCode::UNAUTHORIZED);
}

#[test]
fn traversal_a_path_that_climbs_reaches_no_file_and_no_other_object() {
    let daemon = Daemon::start("traversal");
    for path in [
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/api/v1/../../state/api.token",
        "/api/v1/luns/..%2f..%2fapi.token",
        "/assets/..%5c..%5capi.token",
        "//etc/passwd",
    ] {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
        );
        let answer = raw(&daemon, request.as_bytes());
        // What is none of the API's paths is the page, whatever it is called.
        let is_page = answer.contains("<!doctype html>") || answer.contains("make build");
        let is_nothing = answer.starts_with("HTTP/1.1 404 ");
        assert!(is_page || is_nothing, "{path}: {answer}");
        assert!(!answer.contains("root:"), "{answer}");
        assert!(!answer.contains(TOKEN), "{answer}");
    }
    for name in ["../eve", "a/b", "..", "a\0b"] {
        let body = json!({ "name": name, "role": "viewer", "password": NEW });
        let (status, _) = daemon.send("POST", "/api/v1/users", &body);
        assert_eq!(status, StatusCode::BAD_REQUEST, "{name:?}");
    }
}

#[test]
fn header_injection_what_a_stranger_writes_makes_no_header_of_an_answer() {
    let daemon = Daemon::start("injection");
    let body = json!({ "user": "a\r\nSet-Cookie: x=y", "password": "a\r\n\r\nb" });
    let said = ask(&daemon, ("POST", "/api/v1/login"), &[], &body);
    assert!(said.headers.get("set-cookie").is_none());
    for line in [
        "GET /api/v1/luns/a%0d%0aSet-Cookie:%20x=y HTTP/1.1\r\nHost: localhost",
        "GET /api/v1/luns?a%0d%0aSet-Cookie:%20x=y HTTP/1.1\r\nHost: localhost",
        "GET /api/v1/status HTTP/1.1\r\nHost: evil%0d%0aSet-Cookie:%20x=y",
        "GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\nOrigin: http://a%0d%0aSet-Cookie:%20x=y",
        // Two nodes, or two requests, for whoever reads another one than we do.
        "GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\nHost: 127.0.0.1",
        "POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6",
    ] {
        let answer = raw(
            &daemon,
            format!("{line}\r\nConnection: close\r\n\r\n").as_bytes(),
        );
        let head = answer.split("\r\n\r\n").next().unwrap().to_lowercase();
        assert!(!head.contains("\nset-cookie"), "{line}: {answer}");
        assert!(
            !answer.is_empty() && !head.starts_with("http/1.1 2"),
            "{line}: {answer}"
        );
    }
}

#[test]
fn oversized_bodies_are_refused_by_what_they_announce_and_by_what_comes() {
    let daemon = Daemon::start("large");
    let head =
        "POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let announced = format!("{head}Content-Length: 999999999\r\n\r\n");
    let answer = raw(&daemon, announced.as_bytes());
    assert!(
        answer.starts_with("HTTP/1.1 413 ") && answer.contains("CWY5029"),
        "{answer}"
    );
    let chunk = format!("{:x}\r\n{}\r\n", 17 << 10, "x".repeat(17 << 10));
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunk}0\r\n\r\n");
    let answer = raw(&daemon, chunked.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    // Whoever may change things may send more, and not everything.
    let head = format!(
        "POST /api/v1/apply HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    );
    let answer = raw(
        &daemon,
        format!("{head}Content-Length: 17000000\r\n\r\n").as_bytes(),
    );
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    let long = "x".repeat(2 * HEAD_BYTES);
    let answer = raw(
        &daemon,
        format!("GET / HTTP/1.1\r\nHost: localhost\r\nA: {long}\r\n\r\n").as_bytes(),
    );
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[test]
fn slow_headers_end_their_connection_and_hold_up_nobody() {
    let daemon = Daemon::start_with("slow-head", |_| {}, short());
    let mut slow: Vec<TcpStream> = (0..20).map(|_| connect(&daemon)).collect();
    for stream in &mut slow {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    }
    assert_eq!(daemon.get("/healthz").0, StatusCode::OK);
    for mut stream in slow {
        // Closed, with or without an answer: the read ends, and not because it took too long.
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        assert!(!String::from_utf8_lossy(&rest).contains(" 200 "));
        assert!(
            !matches!(&ended, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock),
            "{ended:?}"
        );
    }
    // One that says nothing at all, as well.
    let mut silent = connect(&daemon);
    let ended = silent.read(&mut [0; 1]);
    assert!(
        !matches!(&ended, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock),
        "{ended:?}"
    );
}

#[test]
fn slow_bodies_end_in_time() {
    let daemon = Daemon::start_with("slow-body", |_| {}, short());
    let head = "POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    let answer = raw(&daemon, head.as_bytes());
    assert!(
        answer.starts_with("HTTP/1.1 408 ") && answer.contains("CWY5030"),
        "{answer}"
    );
}

#[test]
fn too_many_connections_of_one_address_are_closed_and_the_socket_has_places_of_its_own() {
    let daemon = Daemon::start("many");
    let mut held = Vec::new();
    let asked = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut answer = [0; 15];
    for _ in 0..OF_ONE_MAX {
        let mut stream = connect(&daemon);
        stream.write_all(asked).unwrap();
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
        held.push(stream);
    }
    let mut one_more = connect(&daemon);
    let _ = one_more.write_all(asked);
    assert!(
        !matches!(one_more.read(&mut answer), Ok(1..)),
        "it is closed"
    );
    let (status, _) = daemon.send("GET", "/api/v1/status", &Value::Null);
    assert_eq!(status, StatusCode::OK);
}

#[test]
fn a_token_in_the_url_is_none() {
    let daemon = Daemon::start("url");
    for query in ["token", "access_token", "authorization", "api_token"] {
        let path = format!("/api/v1/apply?{query}={TOKEN}");
        let said = ask(&daemon, ("POST", &path), &[], &json!({}));
        assert_eq!(said.status, StatusCode::UNAUTHORIZED, "{query}");
        assert!(!said.body.to_string().contains(TOKEN), "{}", said.body);
        let me = ask(
            &daemon,
            ("GET", &format!("/api/v1/me?{query}={TOKEN}")),
            &[],
            &Value::Null,
        );
        assert_eq!(me.status, StatusCode::UNAUTHORIZED, "{query}");
    }
}

#[test]
fn brute_force_becomes_slow_and_says_when_to_come_again() {
    let daemon = Daemon::start("brute");
    make(&daemon, "op", "operator");
    let answers: Vec<_> = (0..8)
        .map(|_| login(&daemon, "op", "guess guess guess"))
        .collect();
    assert_eq!(answers[0].code(), "CWY5020");
    let last = answers.last().unwrap();
    assert_eq!((last.status.as_u16(), last.code()), (429, "CWY5021"));
    let wait: u64 = last.headers["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=31).contains(&wait), "{wait}");
    // The right one waits as well: else a guess would show by its answer.
    assert_eq!(login(&daemon, "op", NEW).code(), "CWY5021");
}

#[test]
fn enumeration_unknown_disabled_and_known_users_get_one_answer() {
    let daemon = Daemon::start("enumeration");
    make(&daemon, "op", "operator");
    make(&daemon, "off", "operator");
    daemon.send("PATCH", "/api/v1/users/off", &json!({ "enabled": false }));
    let answers = ["op", "off", "nobody", ""].map(|user| {
        let password = if user == "off" {
            NEW
        } else {
            "guess guess guess"
        };
        let said = login(&daemon, user, password);
        (said.status, said.body)
    });
    assert_eq!(answers[0].0, StatusCode::UNAUTHORIZED);
    for other in &answers[1..] {
        assert_eq!(*other, answers[0]);
    }
}

#[test]
fn every_answer_forbids_frames_guessed_types_and_being_kept() {
    let daemon = Daemon::start("headers");
    for (method, path) in [
        ("GET", "/"),
        ("GET", "/healthz"),
        ("GET", "/metrics"),
        ("GET", "/api/v1/status"),
        ("GET", "/api/v1/nothing"),
        ("POST", "/api/v1/luns"),
        ("POST", "/api/v1/login"),
    ] {
        let said = ask(&daemon, (method, path), &[], &Value::Null);
        let header = |name: &str| {
            said.headers
                .get(name)
                .map(|it| it.to_str().unwrap().to_owned())
        };
        assert_eq!(
            header("x-content-type-options").as_deref(),
            Some("nosniff"),
            "{path}"
        );
        assert_eq!(header("x-frame-options").as_deref(), Some("DENY"), "{path}");
        let policy = header("content-security-policy").unwrap();
        assert!(
            policy.contains("frame-ancestors 'none'"),
            "{path}: {policy}"
        );
        if path.starts_with("/api/") || path == "/metrics" {
            assert_eq!(
                header("cache-control").as_deref(),
                Some("no-store"),
                "{path}"
            );
        }
        assert!(header("access-control-allow-origin").is_none(), "{path}");
    }
}

#[test]
fn dns_rebinding_a_request_for_another_name_is_refused() {
    let daemon = Daemon::start_with(
        "rebinding",
        |config| config.api_settings.names = vec!["san.example.org".to_owned()],
        Times::default(),
    );
    let with = |host: &str| {
        ask(
            &daemon,
            ("GET", "/api/v1/status"),
            &[("host", host)],
            &Value::Null,
        )
    };
    for good in ["localhost:8480", "127.0.0.1", "SAN.example.org:8480"] {
        assert_eq!(with(good).status, StatusCode::OK, "{good}");
    }
    for bad in [
        "evil.example",
        "evil.example:8480",
        "127.0.0.1.evil.example",
        "x",
    ] {
        let said = with(bad);
        assert_eq!(
            (said.status.as_u16(), said.code()),
            (421, "CWY5026"),
            "{bad}"
        );
    }
    let health = ask(
        &daemon,
        ("GET", "/healthz"),
        &[("host", "evil.example")],
        &Value::Null,
    );
    assert_eq!(health.status.as_u16(), 421, "nothing is shown to it");
}

#[test]
fn a_foreign_origin_is_refused_for_reading_and_for_changing() {
    let daemon = Daemon::start("origin");
    let bearer = format!("Bearer {TOKEN}");
    let with = |what, origin: &str, body: &Value| {
        let headers = [
            ("origin", origin),
            ("authorization", bearer.as_str()),
            ("host", "localhost:8480"),
        ];
        ask(&daemon, what, &headers, body)
    };
    for origin in [
        "http://evil.example",
        "null",
        "http://localhost",
        "http://localhost:81",
    ] {
        for (what, body) in [(LUN, lun("a")), (("GET", "/api/v1/status"), Value::Null)] {
            let said = with(what, origin, &body);
            assert_eq!(
                (said.status, said.code()),
                (StatusCode::FORBIDDEN, "CWY5027"),
                "{origin}"
            );
        }
    }
    assert_eq!(
        with(LUN, "http://localhost:8480", &lun("a")).status,
        StatusCode::OK
    );
}

#[test]
fn secrets_that_were_sent_are_in_no_error_answer() {
    let daemon = Daemon::start("echo");
    let secret = "hunter2 and more of it";
    for body in [
        json!({ "user": "admin", "password": secret, secret: 1 }),
        json!({ "user": { "a": secret }, "password": secret }),
        json!({ "user": "admin", "password": [secret] }),
        json!(secret),
        json!({ "user": "admin", "password": secret }),
    ] {
        let said = ask(&daemon, ("POST", "/api/v1/login"), &[], &body);
        assert!(said.status.is_client_error());
        assert!(!said.body.to_string().contains("hunter2"), "{}", said.body);
    }
    for body in [
        json!({ "name": "eve", "role": secret, "password": secret }),
        json!({ "name": "eve", "role": "viewer", "password": secret, "must_change": secret }),
        json!({ "name": "eve", "role": "viewer", "password": "hunter2" }),
    ] {
        let (status, problem) = daemon.send("POST", "/api/v1/users", &body);
        assert!(status.is_client_error(), "{problem}");
        assert!(!problem.to_string().contains("hunter2"), "{problem}");
    }
    let bearer = [
        ("authorization", "Bearer hunter2"),
        ("cookie", "causeway-session=hunter2"),
    ];
    let said = ask(&daemon, LUN, &bearer, &lun("a"));
    assert!(!said.body.to_string().contains("hunter2"), "{}", said.body);
}

#[test]
fn replay_a_cookie_works_no_more_after_logout_or_a_new_password() {
    let daemon = Daemon::start("replay");
    make(&daemon, "op", "operator");
    let me = ("GET", "/api/v1/me");
    let out = enter(&daemon, "op", NEW);
    let said = of(&daemon, &out, ("POST", "/api/v1/logout"), &Value::Null);
    assert!(
        said.headers["set-cookie"]
            .to_str()
            .unwrap()
            .contains("Max-Age=0")
    );
    assert_eq!(
        of(&daemon, &out, me, &Value::Null).status,
        StatusCode::UNAUTHORIZED
    );
    let (one, two) = (enter(&daemon, "op", NEW), enter(&daemon, "op", NEW));
    let body = json!({ "old": NEW, "new": "a third long password" });
    assert_eq!(
        of(&daemon, &one, ("PUT", "/api/v1/me/password"), &body).status,
        StatusCode::OK
    );
    for old in [one, two] {
        assert_eq!(
            of(&daemon, &old, me, &Value::Null).status,
            StatusCode::UNAUTHORIZED
        );
    }
    let three = enter(&daemon, "op", "a third long password");
    daemon.send(
        "PATCH",
        "/api/v1/users/op",
        &json!({ "password": "set by the admin" }),
    );
    assert_eq!(
        of(&daemon, &three, me, &Value::Null).status,
        StatusCode::UNAUTHORIZED
    );
}

#[test]
fn escalation_each_role_does_what_it_may_and_no_more() {
    let daemon = Daemon::start("roles");
    let new = json!({ "name": "x", "role": "admin", "password": NEW });
    let token = json!({ "name": "x", "role": "admin" });
    let requests: [(&str, &str, Value, &str); 9] = [
        ("GET", "/api/v1/luns", Value::Null, "viewer"),
        ("POST", "/api/v1/luns", lun("a"), "operator"),
        ("POST", "/api/v1/apply", json!({}), "operator"),
        ("DELETE", "/api/v1/sessions/4", Value::Null, "operator"),
        ("GET", "/api/v1/users", Value::Null, "admin"),
        ("GET", "/api/v1/tokens", Value::Null, "admin"),
        ("POST", "/api/v1/users", new, "admin"),
        ("POST", "/api/v1/tokens", token, "admin"),
        (
            "PATCH",
            "/api/v1/users/me",
            json!({ "role": "admin" }),
            "admin",
        ),
    ];
    let rank = |role: &str| {
        ["viewer", "operator", "admin"]
            .iter()
            .position(|it| *it == role)
            .unwrap()
    };
    for role in ["viewer", "operator"] {
        let body = json!({ "name": format!("t-{role}"), "role": role });
        let (_, made) = daemon.send("POST", "/api/v1/tokens", &body);
        let bearer = format!("Bearer {}", made["token"].as_str().unwrap());
        make(&daemon, role, role);
        let session = enter(&daemon, role, NEW);
        for (method, path, body, least) in &requests {
            let answers = [
                ask(
                    &daemon,
                    (method, path),
                    &[("authorization", bearer.as_str())],
                    body,
                ),
                of(&daemon, &session, (method, path), body),
            ];
            for said in answers {
                let refused = (said.status, said.code()) == (StatusCode::FORBIDDEN, "CWY5022");
                assert_eq!(
                    refused,
                    rank(role) < rank(least),
                    "{role} {method} {path}: {}",
                    said.body
                );
            }
        }
    }
}

/// All sources below a folder, one behind the other.
fn sources(folder: &Path) -> String {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let text = |path: PathBuf| {
        if path.is_dir() {
            return sources(&path);
        }
        let is_source = path.extension().is_some_and(|it| it == "rs");
        let read = is_source.then(|| fs::read_to_string(&path).unwrap());
        read.unwrap_or_default()
    };
    paths.map(text).collect()
}

/// The repository, and what `attacks.toml` lists.
fn listed() -> (PathBuf, Vec<toml::Value>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let list = fs::read_to_string(root.join("crates/api/attacks.toml")).unwrap();
    let list: toml::Table = list.parse().unwrap();
    (root, list["attack"].as_array().unwrap().clone())
}

#[test]
fn each_attack_that_security_md_names_has_its_defence_taken_away() {
    let (root, attacks) = listed();
    let taken = attacks.iter().map(|it| it["test"].as_str().unwrap());
    let taken: BTreeSet<&str> = taken.collect();
    let text = fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let (_, table) = text.split_once("### Attacks on the API").unwrap();
    let rows = table.split("\n#").next().unwrap().lines();
    let rows = rows.filter(|row| row.starts_with('|'));
    let words = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    let named = words.filter(|it| it.contains('_') && it.len() > 15);
    assert_eq!(named.collect::<BTreeSet<&str>>(), taken);
    let testing = fs::read_to_string(root.join("docs/testing.md")).unwrap();
    let counted = format!("against each of {} away", attacks.len());
    assert!(testing.contains(&counted), "docs/testing.md: {counted}");
}

#[test]
fn each_defence_of_the_list_stands_once_in_its_file_and_its_test_is_there() {
    let (root, attacks) = listed();
    assert!(attacks.len() > 30, "{} attacks", attacks.len());
    for attack in &attacks {
        let name = &attack["name"];
        let also = attack.get("also").and_then(toml::Value::as_array);
        for edit in once(attack).chain(also.into_iter().flatten()) {
            let file = edit["file"].as_str().unwrap();
            let text = fs::read_to_string(root.join(file)).unwrap();
            let times = text.matches(edit["defence"].as_str().unwrap()).count();
            assert_eq!(times, 1, "the defence of {name} in {file}");
        }
        let package = attack.get("package").and_then(toml::Value::as_str);
        let folder = match package {
            Some("causeway") => "crates/causeway/tests".to_owned(),
            other => format!("crates/{}/src", other.unwrap_or("api")),
        };
        let test = format!("fn {}(", attack["test"].as_str().unwrap());
        let found = sources(&root.join(&folder)).matches(&test).count();
        assert_eq!(found, 1, "the test of {name} in {folder}");
    }
}
