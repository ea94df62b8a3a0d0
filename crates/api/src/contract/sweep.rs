//! Every operation of the document, asked as strangers, other pages, other roles and clumsy clients
//! ask: whatever comes is in the document, and what it takes to be allowed is what the document
//! says.

#![cfg(test)]

use super::{Contract, Seen, methods_of};
use crate::accept::Times;
use crate::describe::PROBES;
use crate::lab::NO_LAB;
use crate::login_test::{NEW, enter, make};
use crate::test::Daemon;
use axum::http::response::Parts;
use controller::test_support::lab;
use hyper::{Request, Response};
use manifest::config::Config;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::LazyLock;
use std::time::Duration;

pub(super) static PROOFS: LazyLock<Seen> = LazyLock::new(proofs);
pub(super) static HEADERS: LazyLock<Seen> = LazyLock::new(headers);
pub(super) static BODIES: LazyLock<Seen> = LazyLock::new(bodies);
pub(super) static AWAY: LazyLock<Seen> = LazyLock::new(away);

/// An operation, asked of something that is not there.
pub(super) struct Asked<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) operation: &'a Value,
}

impl Asked<'_> {
    pub(super) fn uri(&self) -> String {
        let before = self.path.split('{').next().unwrap();
        let behind = self.path.split('}').nth(1).unwrap_or_default();
        let name = if self.path.contains('{') {
            "nobody"
        } else {
            ""
        };
        // A stream without this has no end.
        let query = if self.path == "/api/v1/events" {
            "?follow=false"
        } else {
            ""
        };
        format!("{before}{name}{behind}{query}")
    }

    pub(super) fn changes(&self) -> bool {
        self.method != "GET"
    }

    pub(super) fn has_header(&self, name: &str) -> bool {
        let mut all = self.operation["parameters"].as_array().unwrap().iter();
        all.any(|it| it["in"] == "header" && it["name"] == name)
    }

    /// Whether it works without any proof, and the least role.
    fn security(&self) -> (bool, Option<&str>) {
        let proofs = self.operation["security"].as_array().unwrap();
        let role = proofs.iter().find_map(|proof| proof["token"][0].as_str());
        (proofs.contains(&json!({})), role)
    }
}

impl Contract {
    /// Asks over TCP with these headers, and no others but the host.
    pub(super) fn sweep(
        &mut self,
        asked: &Asked<'_>,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (Parts, Value) {
        let mut request = Request::builder().method(asked.method).uri(asked.uri());
        if headers.iter().all(|(name, _)| *name != "host") {
            request = request.header("host", "localhost");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.to_owned()).unwrap();
        let (head, text) = self.daemon.exchange(true, request);
        let about = format!("{} {} {headers:?}", asked.method, asked.uri());
        let body = self.held((asked.method, asked.path), &head, text, &about);
        (head, body)
    }
}

/// Every operation, each with its description.
pub(super) fn each(document: &Value, mut ask: impl FnMut(&Asked<'_>)) {
    for (method, path, operation) in methods_of(document) {
        let (method, path, operation) = (&*method, &*path, &operation);
        ask(&Asked {
            method,
            path,
            operation,
        });
    }
}

pub(super) fn token(daemon: &Daemon, role: &str) -> String {
    let wanted = json!({ "name": role, "role": role });
    let (_, made) = daemon.send("POST", "/api/v1/tokens", &wanted);
    format!("Bearer {}", made["token"].as_str().unwrap())
}

const ROLES: [&str; 3] = ["viewer", "operator", "admin"];

fn rank(role: &str) -> usize {
    ROLES.iter().position(|it| *it == role).unwrap()
}

#[test]
fn who_proves_nothing_or_too_little_is_refused_as_the_document_says() {
    LazyLock::force(&PROOFS);
}

fn proofs() -> Seen {
    let mut contract = Contract::new("sweep-proofs");
    let tokens = ROLES.map(|role| token(&contract.daemon, role));
    make(&contract.daemon, "eve", "admin");
    let eve = enter(&contract.daemon, "eve", NEW);
    each(&contract.document.clone(), |asked| {
        let about = format!("{} {}", asked.method, asked.path);
        let (is_free, least) = asked.security();
        let is_probe = PROBES.contains(&asked.path);
        let (head, _) = contract.sweep(asked, &[], "");
        assert_eq!(head.status == 401, !is_free, "{about}: {}", head.status);
        let (head, _) = contract.sweep(asked, &[("authorization", "Bearer no")], "");
        assert_eq!(head.status == 401, !is_probe, "{about}: {}", head.status);
        let (head, _) = contract.sweep(asked, &[("host", "evil.example")], "");
        assert_eq!(head.status, 421, "{about}");
        let (_, problem) = contract.sweep(asked, &[("origin", "http://evil.example")], "");
        assert_eq!(problem["code"], "CWY5027", "{about}: {problem}");
        for (role, token) in ROLES.iter().zip(&tokens) {
            let (_, answer) = contract.sweep(asked, &[("authorization", token)], "");
            let is_low = least.is_some_and(|least| rank(role) < rank(least));
            assert_eq!(
                answer["code"] == "CWY5022",
                is_low,
                "{about} {role}: {answer}"
            );
        }
        let needs_csrf = asked.has_header("X-Causeway-CSRF");
        if asked.path != "/api/v1/login" {
            let (_, answer) = contract.sweep(asked, &[("cookie", &eve.cookie)], "");
            assert_eq!(answer["code"] == "CWY5028", needs_csrf, "{about}: {answer}");
        }
        assert!(!needs_csrf || asked.changes(), "{about}");
    });
    contract.seen
}

#[test]
fn headers_of_a_change_are_taken_as_the_document_says_or_refused() {
    LazyLock::force(&HEADERS);
}

fn headers() -> Seen {
    let mut contract = Contract::new("sweep-headers");
    contract.daemon.send("POST", "/api/v1/apply", &json!(lab()));
    let admin = token(&contract.daemon, "admin");
    let proof = ("authorization", admin.as_str());
    each(&contract.document.clone(), |asked| {
        let about = format!("{} {}", asked.method, asked.path);
        if !asked.changes() {
            let (head, _) = contract.sweep(asked, &[proof], "");
            let tag = head
                .headers
                .get("etag")
                .map(|it| it.to_str().unwrap().to_owned());
            let has = asked.operation["responses"]["200"]["headers"]["ETag"].is_object();
            assert_eq!(tag.is_some(), has && head.status == 200, "{about}");
            if let Some(tag) = tag.filter(|_| asked.operation["responses"]["304"].is_object()) {
                // What counts and what is measured may be another one by now.
                let counts = ["/api/v1/activity", "/api/v1/doctor"].contains(&asked.path);
                let tag = if counts { "*" } else { tag.as_str() };
                let (head, _) = contract.sweep(asked, &[proof, ("if-none-match", tag)], "");
                assert!([200, 304].contains(&head.status.as_u16()), "{about}");
            }
            return;
        }
        let (_, answer) = contract.sweep(asked, &[proof, ("if-match", "\"x\"")], "");
        let detail = answer["detail"].as_str().unwrap_or_default();
        let is_refused = detail.starts_with("If-Match, and what this changes has no tag");
        assert_eq!(
            is_refused,
            !asked.has_header("If-Match"),
            "{about}: {answer}"
        );
        let key = ("idempotency-key", asked.path);
        let takes_key = asked.has_header("Idempotency-Key");
        let mut replies = [" ", "null"].map(|body| contract.sweep(asked, &[proof, key], body).1);
        let [first, second] = &mut replies;
        let was_fault = first["status"].as_u64().unwrap_or(200) >= 500;
        let is_reused = second["code"] == "CWY5011";
        assert!(
            is_reused == takes_key || was_fault,
            "{about}: {first} {second}"
        );
    });
    contract.seen
}

/// The answer to a request that is written by hand.
fn raw(stream: &mut TcpStream) -> (Parts, String) {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8(answer).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").expect("an answer");
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let mut response = Response::builder().status(status);
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        response = response.header(name, value);
    }
    (response.body(()).unwrap().into_parts().0, body.to_owned())
}

#[test]
fn bodies_that_are_too_large_or_do_not_come_are_refused_as_the_document_says() {
    LazyLock::force(&BODIES);
}

fn bodies() -> Seen {
    let times = Times {
        body: Duration::from_millis(500),
        ..Times::default()
    };
    let mut contract = Contract::with("sweep-bodies", times);
    let admin = token(&contract.daemon, "admin");
    let at = contract.daemon.addresses[1]
        .strip_prefix("http://")
        .unwrap()
        .to_owned();
    for (bytes, wanted) in [(20_000_000, 413), (10, 408)] {
        let mut open = Vec::new();
        each(&contract.document, |asked| {
            if !asked.changes() {
                return;
            }
            let mut stream = TcpStream::connect(&at).unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(20)))
                .unwrap();
            let head = format!(
                "{} {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: {admin}\r\nContent-Length: {bytes}\r\n\r\n",
                asked.method,
                asked.uri()
            );
            stream.write_all(head.as_bytes()).unwrap();
            open.push((asked.method.to_owned(), asked.path.to_owned(), stream));
        });
        for (method, path, mut stream) in open {
            let (head, text) = raw(&mut stream);
            let about = format!("{method} {path}: {bytes} bytes");
            assert_eq!(head.status, wanted, "{about}");
            contract.held((&method, &path), &head, text, &about);
        }
    }
    contract.seen
}

#[test]
fn what_the_node_cannot_do_now_is_answered_as_the_document_says() {
    LazyLock::force(&AWAY);
}

fn away() -> Seen {
    let mut contract = Contract::new("sweep-away");
    let thick = json!({ "name": "thick", "size": "1G", "thin": false });
    contract
        .headers
        .push(("prefer", "respond-async".to_owned()));
    contract
        .daemon
        .hold
        .on
        .store(true, std::sync::atomic::Ordering::SeqCst);
    let job = contract.expect(202, ("POST", "/api/v1/luns", "", "", thick));
    assert_eq!(job["kind"], "lun_create", "{job}");
    contract
        .daemon
        .hold
        .on
        .store(false, std::sync::atomic::Ordering::SeqCst);
    contract.headers.truncate(1);
    let wrong = json!({ "user": "admin", "password": "no" });
    let codes: Vec<u16> = (0..12)
        .map(|_| {
            let asked = super::Question {
                method: "POST",
                path: "/api/v1/login",
                name: "",
                query: "",
                body: wrong.to_string(),
            };
            contract.ask(&asked).0
        })
        .collect();
    assert!(codes.contains(&401) && codes.contains(&429), "{codes:?}");
    contract.daemon.records.events().stop();
    for path in ["/api/v1/events", "/api/v1/events/log", "/api/v1/audit"] {
        let query = if path == "/api/v1/events" {
            "?follow=false"
        } else {
            ""
        };
        contract.expect(503, ("GET", path, "", query, json!(null)));
    }
    let times = Times::default();
    let name = |config: &mut Config| config.node_name = NO_LAB.to_owned();
    let daemon = Daemon::start_with("sweep-no-lab", name, times);
    let mut elsewhere = Contract { daemon, ..contract };
    let bed = json!({ "topology": "two-paths" });
    elsewhere.expect(501, ("POST", "/api/v1/lab/beds", "", "", bed));
    elsewhere.seen
}
