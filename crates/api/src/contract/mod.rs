//! The running daemon against the document of its API: every path is asked, and every answer is
//! what the document says.

mod audited;
mod everyday;
mod examples;
mod meta;
mod refused;
mod schema;
mod seen;
mod settings;
mod stopped;
mod sweep;
mod trials;
mod unsaved;

use crate::accept::Times;
use crate::test::Daemon;
use axum::http::response::Parts;
use controller::test_support::lab;
use hyper::Request;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

/// What is asked: a path of the document with its method, what stands in its braces and behind it,
/// and a body.
struct Question<'a> {
    method: &'a str,
    path: &'a str,
    name: &'a str,
    query: &'a str,
    body: String,
}

/// Statuses that came, by method and path.
type Seen = BTreeMap<(String, String), BTreeSet<u16>>;

struct Contract {
    daemon: Daemon,
    document: Value,
    /// What each request has beside its path and body.
    headers: Vec<(&'static str, String)>,
    seen: Seen,
}

impl Contract {
    fn new(name: &str) -> Self {
        let times = Times {
            alerts: Duration::from_millis(20),
            ..Times::default()
        };
        Self::with(name, times)
    }

    fn with(name: &str, times: Times) -> Self {
        let daemon = Daemon::start_with(name, |_| {}, times);
        let (_, document) = daemon.send("GET", "/api/v1/openapi.json", &json!(null));
        Self {
            daemon,
            document,
            headers: vec![("content-type", "application/json".to_owned())],
            seen: BTreeMap::new(),
        }
    }

    /// Asks, holds the answer against the document, and answers status and body.
    fn ask(&mut self, question: &Question<'_>) -> (u16, Value) {
        let Question { method, path, .. } = *question;
        let before = path.split('{').next().unwrap();
        let behind = path.split('}').nth(1).unwrap_or_default();
        let name = if path.contains('{') {
            question.name
        } else {
            ""
        };
        let uri = format!("{before}{name}{behind}{}", question.query);
        let mut request = Request::builder().method(method).uri(&uri);
        request = request.header("host", "localhost");
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let request = request.body(question.body.clone());
        // Whoever comes through the socket is known by that, whatever cookie is sent.
        let has_cookie = self.headers.iter().any(|(name, _)| *name == "cookie");
        let (head, text) = self.daemon.exchange(has_cookie, request.unwrap());
        let status = head.status.as_u16();
        let body = self.held((method, path), &head, text, &format!("{method} {uri}"));
        if method == "GET" && status == 200 {
            self.again((method, path), &uri, &head);
        }
        let is_dry = question.query.contains("dry_run") || question.body.contains("dry_run");
        if method != "GET" && status < 300 && !is_dry {
            audited::is_entered_whole(&self.daemon, path, &body);
        }
        (status, body)
    }

    /// Asks once more for what was answered, by whoever has it already.
    fn again(&mut self, (method, path): (&str, &str), uri: &str, head: &Parts) {
        let operation = &self.document["paths"][path]["get"];
        let Some(tag) = head.headers.get("etag") else {
            return;
        };
        if operation["responses"]["304"].is_null() {
            return;
        }
        let mut tag = tag.clone();
        // What is asked for may have changed meanwhile.
        for _ in 0..20 {
            let request = Request::get(uri).header("host", "localhost");
            let request = request.header("if-none-match", tag).body(String::new());
            let (head, text) = self.daemon.exchange(false, request.unwrap());
            self.held((method, path), &head, text, uri);
            if head.status == 304 {
                return;
            }
            tag = head.headers["etag"].clone();
        }
    }

    /// Holds an answer against the document; its body.
    fn held(
        &mut self,
        (method, path): (&str, &str),
        head: &Parts,
        text: String,
        about: &str,
    ) -> Value {
        let status = head.status.as_u16();
        let about = format!("{about}: {status}: {text}");
        let operation = &self.document["paths"][path][method.to_lowercase()];
        assert!(operation.is_object(), "not in the document: {about}");
        let answer = &operation["responses"][status.to_string()];
        assert!(
            answer.is_object(),
            "a status that the document has not: {about}"
        );
        let key = (method.to_owned(), path.to_owned());
        self.seen.entry(key).or_default().insert(status);
        let Some(kind) = head.headers.get("content-type") else {
            assert!(answer["content"].is_null() && text.is_empty(), "{about}");
            return Value::Null;
        };
        let kind = kind.to_str().unwrap().split(';').next().unwrap();
        let schema = &answer["content"][kind]["schema"];
        assert!(!schema.is_null(), "{kind} is not in the document: {about}");
        let body = if kind.ends_with("json") {
            serde_json::from_str(&text).unwrap()
        } else {
            Value::String(text)
        };
        let components = &self.document["components"]["schemas"];
        if let Err(why) = schema::check(components, schema, &body, "") {
            panic!("{why}: {about}");
        }
        body
    }

    fn expect(&mut self, status: u16, asked: (&str, &str, &str, &str, Value)) -> Value {
        let (method, path, name, query, body) = asked;
        let question = Question {
            method,
            path,
            name,
            query,
            body: body.to_string(),
        };
        let (reported, body) = self.ask(&question);
        assert_eq!(reported, status, "{method} {path} {name}: {body}");
        body
    }
}

impl Contract {
    /// Has an alert fire; its number.
    fn fired(&mut self) -> String {
        let null = || json!(null);
        self.expect(200, ("POST", "/api/v1/apply", "", "", json!(lab())));
        let rule = "/api/v1/alerts/rules/{id}";
        let at_once = json!({ "hold_seconds": 0 });
        self.expect(200, ("PUT", rule, "host_single_path", "", at_once));
        let mut all = json!([]);
        for _ in 0..500 {
            all = self.expect(200, ("GET", "/api/v1/alerts", "", "", null()));
            if all[0].is_object() {
                break;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        all[0]["id"].to_string()
    }

    /// What is asked of an alert that fires: its number, and those of silences, are known then.
    fn alerts(&mut self) {
        let null = || json!(null);
        let id = self.fired();
        let of_one = "/api/v1/alerts/{id}";
        self.expect(200, ("GET", of_one, &id, "", null()));
        let path = "/api/v1/alerts/{id}/acknowledge";
        let note = json!({ "note": "on it" });
        let shown = self.expect(200, ("POST", path, &id, "", note));
        assert_eq!(shown["state"], "acknowledged");
        self.expect(200, ("DELETE", path, &id, "", null()));
        let hour = json!({ "hours": 1, "note": "maintenance" });
        let path = "/api/v1/alerts/{id}/silence";
        let shown = self.expect(200, ("POST", path, &id, "", hour.clone()));
        assert_eq!(shown["state"], "silenced");
        let path = "/api/v1/alerts/{id}/unsilence";
        let shown = self.expect(200, ("POST", path, &id, "", null()));
        assert_eq!(shown["state"], "firing");
        let made = self.expect(200, ("POST", "/api/v1/alerts/silences", "", "", hour));
        self.expect(409, ("POST", path, &id, "", null()));
        let silence = made["id"].to_string();
        let path = "/api/v1/alerts/silences/{id}";
        self.expect(200, ("DELETE", path, &silence, "", null()));
        self.expect(404, ("DELETE", path, &silence, "", null()));
    }
}

impl Contract {
    /// Somebody has logged in, and asks from now on.
    fn enter(&mut self, user: &str, password: &str) {
        let right = json!({ "user": user, "password": password });
        let request = Request::post("/api/v1/login")
            .header("host", "localhost")
            .header("content-type", "application/json");
        let request = request.body(right.to_string()).unwrap();
        let (head, text) = self.daemon.exchange(false, request);
        let cookie = head.headers["set-cookie"].to_str().unwrap();
        let cookie = cookie.split(';').next().unwrap().to_owned();
        let entered: Value = serde_json::from_str(&text).unwrap();
        let csrf = entered["csrf"].as_str().unwrap().to_owned();
        self.headers
            .extend([("cookie", cookie), ("x-causeway-csrf", csrf)]);
    }

    /// Somebody logs in and changes the password; whoever asks later is not that user any more.
    fn logins(&mut self) {
        let (user, old, new) = ("eve", "twelve bytes are few", "another long password");
        let made = json!({ "name": user, "role": "viewer", "password": old });
        self.expect(200, ("POST", "/api/v1/users", "", "", made));
        let login = "/api/v1/login";
        let wrong = json!({ "user": user, "password": new });
        self.expect(401, ("POST", login, "", "", wrong));
        let right = json!({ "user": user, "password": old });
        self.expect(200, ("POST", login, "", "", right));
        self.enter(user, old);
        let shown = self.expect(200, ("GET", "/api/v1/me", "", "", json!(null)));
        assert_eq!(shown["name"], user, "{shown}");
        let path = "/api/v1/me/password";
        let short = json!({ "old": old, "new": "short" });
        self.expect(422, ("PUT", path, "", "", short));
        let change = json!({ "old": old, "new": new });
        self.expect(200, ("PUT", path, "", "", change));
        self.headers.truncate(1);
    }
}

impl Contract {
    /// A scrub that runs, and is cancelled as the job that it is.
    fn scrub(&mut self) {
        let null = || json!(null);
        let path = "/api/v1/luns/{name}/scrub";
        let start = json!({ "operation": "start" });
        self.expect(200, ("POST", path, "l", "", start));
        self.expect(200, ("GET", path, "l", "", null()));
        let filter = "?filter=kind:scrub";
        let all = self.expect(200, ("GET", "/api/v1/jobs", "", filter, null()));
        let id = all[0]["id"].to_string();
        let cancel = "/api/v1/jobs/{id}/cancel";
        let shown = self.expect(200, ("POST", cancel, &id, "", null()));
        assert_eq!(shown["state"], "cancelled", "{shown}");
        self.expect(409, ("POST", cancel, &id, "", null()));
    }
}

/// What is asked in this order, and the status that comes.
#[expect(clippy::too_many_lines, reason = "a table")]
fn script() -> Vec<(
    u16,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Value,
)> {
    let null = || json!(null);
    let lun = |name: &str| json!({ "name": name, "size": "1G" });
    let to = |name: &str| json!({ "to": name });
    let host = json!({ "name": "h2", "iqn": ["iqn.1998-01.com.example:h2"] });
    let target = json!({ "name": "t2" });
    let grant = json!({ "host": "h2", "lun": "l", "target": "t2" });
    let (lun_path, target_path) = ("/api/v1/luns/{name}", "/api/v1/targets/{name}");
    let (host_path, grant_path) = ("/api/v1/hosts/{name}", "/api/v1/grants/{name}");
    let user = json!({ "name": "u", "role": "viewer", "password": "twelve bytes are few" });
    let user_path = "/api/v1/users/{name}";
    let hook = json!({ "name": "r", "webhook": { "url": "http://127.0.0.1:1/x", "token": "t" } });
    let receiver_path = "/api/v1/alerts/receivers/{name}";
    let rule_path = "/api/v1/alerts/rules/{id}";
    let bounds = json!({ "enabled": true, "bounds": { "above_percent": 85 } });
    vec![
        (
            200,
            "POST",
            "/api/v1/alerts/receivers",
            "",
            "",
            hook.clone(),
        ),
        (409, "POST", "/api/v1/alerts/receivers", "", "", hook),
        (200, "GET", receiver_path, "r", "", null()),
        (
            200,
            "PATCH",
            receiver_path,
            "r",
            "",
            json!({ "least": "critical" }),
        ),
        (
            422,
            "PATCH",
            receiver_path,
            "r",
            "",
            json!({ "webhook": { "url": "x" } }),
        ),
        (
            502,
            "POST",
            "/api/v1/alerts/receivers/{name}/test",
            "r",
            "",
            null(),
        ),
        (
            200,
            "POST",
            "/api/v1/alerts/receivers/{name}/test",
            "r",
            "?dry_run=true",
            null(),
        ),
        (200, "DELETE", receiver_path, "r", "", null()),
        (
            200,
            "POST",
            "/api/v1/luns",
            "",
            "",
            json!({ "name": "thick", "size": "1G", "thin": false }),
        ),
        (200, "GET", "/api/v1/jobs/{id}", "1", "", null()),
        (409, "POST", "/api/v1/jobs/{id}/cancel", "1", "", null()),
        (200, "DELETE", lun_path, "thick", "", null()),
        (200, "GET", rule_path, "pool_filling", "", null()),
        (200, "PUT", rule_path, "pool_filling", "", bounds),
        (
            422,
            "PUT",
            rule_path,
            "pool_filling",
            "",
            json!({ "bounds": { "x": 1 } }),
        ),
        (200, "PUT", rule_path, "pool_filling", "", json!({})),
        (200, "POST", "/api/v1/users", "", "", user),
        (200, "GET", user_path, "u", "", null()),
        (
            200,
            "PATCH",
            user_path,
            "u",
            "",
            json!({ "enabled": false }),
        ),
        (
            200,
            "DELETE",
            "/api/v1/users/{name}/sessions",
            "u",
            "",
            null(),
        ),
        (200, "DELETE", user_path, "u", "", null()),
        (200, "DELETE", "/api/v1/me/sessions", "", "", null()),
        (200, "POST", "/api/v1/logout", "", "", null()),
        (200, "POST", "/api/v1/apply", "", "", json!(lab())),
        (200, "GET", "/api/v1/sessions/{id}", "4", "", null()),
        (409, "DELETE", lun_path, "l", "", null()),
        (200, "DELETE", lun_path, "l", "?dry_run=true", null()),
        (409, "DELETE", "/api/v1/sessions/{id}", "4", "", null()),
        (
            200,
            "DELETE",
            "/api/v1/sessions/{id}",
            "4",
            "?force=true",
            null(),
        ),
        (404, "DELETE", "/api/v1/sessions/{id}", "4", "", null()),
        (
            200,
            "POST",
            "/api/v1/objects",
            "",
            "",
            json!({ "lun": [lun("m")] }),
        ),
        (
            200,
            "POST",
            "/api/v1/generations/{number}/rollback",
            "2",
            "?dry_run=true",
            null(),
        ),
        (200, "GET", "/api/v1/generations/{number}", "2", "", null()),
        (200, "POST", "/api/v1/luns", "", "", lun("n")),
        (409, "POST", "/api/v1/luns", "", "", lun("n")),
        (
            422,
            "POST",
            "/api/v1/luns",
            "",
            "",
            json!({ "name": "o", "size": 1000 }),
        ),
        (200, "GET", lun_path, "n", "", null()),
        (200, "GET", "/api/v1/luns/{name}/connect", "n", "", null()),
        (
            200,
            "PATCH",
            lun_path,
            "n",
            "",
            json!({ "shares": 7, "limit": { "iops": 5 } }),
        ),
        (200, "GET", lun_path, "n", "", null()),
        (409, "PATCH", lun_path, "n", "", json!({ "thin": false })),
        (
            200,
            "POST",
            "/api/v1/luns/{name}/resize",
            "n",
            "",
            json!({ "size": "2G" }),
        ),
        (
            409,
            "POST",
            "/api/v1/luns/{name}/resize",
            "n",
            "",
            json!({ "size": "1G" }),
        ),
        (200, "POST", "/api/v1/luns/{name}/rename", "n", "", to("p")),
        (200, "DELETE", lun_path, "p", "", null()),
        (200, "GET", "/api/v1/luns", "", "?removed=true", null()),
        (200, "POST", "/api/v1/luns/{name}/restore", "p", "", null()),
        (200, "DELETE", lun_path, "p", "", null()),
        (409, "POST", "/api/v1/luns/{name}/purge", "p", "", null()),
        (
            200,
            "POST",
            "/api/v1/luns/{name}/purge",
            "p",
            "?force=true",
            null(),
        ),
        (
            200,
            "POST",
            "/api/v1/luns/{name}/mirror",
            "l",
            "",
            json!({ "operation": "add", "node": "san-b" }),
        ),
        (
            412,
            "POST",
            "/api/v1/luns/{name}/mirror",
            "l",
            "",
            json!({ "operation": "add", "node": "meanwhile" }),
        ),
        (
            409,
            "POST",
            "/api/v1/luns/{name}/mirror",
            "l",
            "",
            json!({ "operation": "add", "node": "last" }),
        ),
        (
            503,
            "POST",
            "/api/v1/luns/{name}/mirror",
            "l",
            "",
            json!({ "operation": "add", "node": "away" }),
        ),
        (
            500,
            "POST",
            "/api/v1/luns/{name}/mirror",
            "l",
            "",
            json!({ "operation": "add", "node": "later" }),
        ),
        (
            404,
            "POST",
            "/api/v1/luns/{name}/mirror",
            "none",
            "",
            json!({ "operation": "promote" }),
        ),
        (404, "GET", "/api/v1/luns/{name}/scrub", "l", "", null()),
        (
            409,
            "POST",
            "/api/v1/pools/{name}/journal",
            "default",
            "",
            json!({ "operation": "reopen" }),
        ),
        (
            200,
            "POST",
            "/api/v1/pools/{name}/journal",
            "default",
            "",
            json!({ "operation": "discard", "dry_run": true }),
        ),
        (200, "GET", "/api/v1/pools/{name}", "default", "", null()),
        (
            200,
            "POST",
            "/api/v1/node/drain",
            "",
            "?dry_run=true",
            null(),
        ),
        (200, "POST", "/api/v1/node/drain", "", "", null()),
        (200, "POST", "/api/v1/targets", "", "", target.clone()),
        (200, "PUT", target_path, "t2", "", target.clone()),
        (
            200,
            "PATCH",
            target_path,
            "t2",
            "",
            json!({ "redirect": { "to": "192.0.2.2:3260" } }),
        ),
        (200, "GET", target_path, "t2", "", null()),
        (200, "POST", "/api/v1/hosts", "", "", host.clone()),
        (200, "PUT", host_path, "h2", "", host.clone()),
        (
            200,
            "PATCH",
            host_path,
            "h2",
            "",
            json!({ "bytes_in_flight_max": "1M" }),
        ),
        (
            200,
            "PATCH",
            host_path,
            "h2",
            "",
            json!({ "chap": { "user": "u", "secret": { "value": "twelve bytes" } } }),
        ),
        (200, "GET", host_path, "h2", "", null()),
        (200, "POST", "/api/v1/grants", "", "", grant.clone()),
        (200, "PUT", grant_path, "h2:t2:l", "", grant.clone()),
        (
            200,
            "PATCH",
            grant_path,
            "h2:t2:l",
            "",
            json!({ "read_only": true }),
        ),
        (200, "GET", grant_path, "h2:t2:l", "", null()),
        (200, "DELETE", grant_path, "h2:t2:l", "", null()),
        (
            200,
            "POST",
            "/api/v1/targets/{name}/rename",
            "t2",
            "",
            to("t3"),
        ),
        (
            200,
            "POST",
            "/api/v1/hosts/{name}/rename",
            "h2",
            "",
            to("h3"),
        ),
        (200, "DELETE", target_path, "t3", "", null()),
        (200, "DELETE", host_path, "h3", "", null()),
        (
            200,
            "POST",
            "/api/v1/orphans/adopt",
            "",
            "?dry_run=true",
            json!({ "all": true }),
        ),
        (200, "POST", "/api/v1/generations/accept", "", "", null()),
        (200, "GET", "/api/v1/disks/{id}", "sda", "", null()),
        (409, "DELETE", "/api/v1/disks/{id}", "S1", "", null()),
        (
            200,
            "DELETE",
            "/api/v1/disks/{id}",
            "S2",
            "?dry_run=true",
            null(),
        ),
        (200, "DELETE", "/api/v1/disks/{id}", "S2", "", null()),
    ]
}

fn methods_of(document: &Value) -> Vec<(String, String, Value)> {
    let mut out = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            out.push((method.to_uppercase(), path.clone(), operation.clone()));
        }
    }
    out
}

/// What came of all that is asked in order.
static WHOLE: LazyLock<Seen> = LazyLock::new(whole);

#[test]
fn every_answer_is_what_the_document_says() {
    LazyLock::force(&WHOLE);
}

fn whole() -> Seen {
    let mut contract = Contract::new("contract");
    contract.alerts();
    contract.bench();
    contract.lab();
    contract.logins();
    for (status, method, path, name, query, body) in script() {
        contract.expect(status, (method, path, name, query, body));
    }
    contract.scrub();
    contract.settings();
    // Its name is known when it is made.
    let token = json!({ "name": "prometheus", "role": "viewer", "days": 7 });
    let token = contract.expect(200, ("POST", "/api/v1/tokens", "", "", token));
    for method in ["GET", "DELETE"] {
        let id = token["id"].as_str().unwrap();
        let asked = (method, "/api/v1/tokens/{id}", id, "", json!(null));
        contract.expect(200, asked);
    }
    for (method, path, operation) in methods_of(&contract.document.clone()) {
        if method == "GET" && !path.contains('{') {
            // A stream without this has no end.
            let query = match path.as_str() {
                "/api/v1/events" => "?follow=false",
                "/api/v1/bench/compare" => "?a=1&b=2",
                _ => "",
            };
            contract.expect(200, ("GET", &path, "", query, json!(null)));
        }
        if path.contains('{') {
            let body = json!({ "to": "x", "operation": "start" }).to_string();
            let name = "nobody";
            let (method, path, query) = (method.as_str(), path.as_str(), "");
            let (status, _) = contract.ask(&Question {
                method,
                path,
                name,
                query,
                body,
            });
            assert!([400, 404].contains(&status), "{method} {path}: {status}");
        }
        if !operation["requestBody"].is_null() {
            let (method, path, name, query) = (method.as_str(), path.as_str(), "nobody", "");
            let body = "no json".to_owned();
            let (status, problem) = contract.ask(&Question {
                method,
                path,
                name,
                query,
                body,
            });
            assert_eq!(
                (status, &problem["code"]),
                (400, &json!("CWY5003")),
                "{method} {path}"
            );
        }
        let seen = contract.seen.get(&(method.clone(), path.clone()));
        let seen = seen.unwrap_or_else(|| panic!("{method} {path} was never asked"));
        assert!(seen.contains(&200), "{method} {path}: {seen:?}");
    }
    contract.seen
}

#[test]
fn what_is_not_in_the_document_is_not_served() {
    let contract = Contract::new("served");
    let known = methods_of(&contract.document);
    let paths: BTreeSet<&String> = known.iter().map(|(_, path, _)| path).collect();
    for path in paths {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let is_known = known.iter().any(|(it, at, _)| it == method && at == path);
            if !is_known {
                let at = path
                    .replace("{name}", "l")
                    .replace("{id}", "4")
                    .replace("{number}", "1");
                let (status, problem) = contract.daemon.send(method, &at, &json!({}));
                assert_eq!(status.as_u16(), 405, "{method} {path}: {problem}");
            }
        }
    }
    for source in [
        include_str!("../routes.rs"),
        include_str!("../objects.rs"),
        include_str!("../generations.rs"),
        include_str!("../disks.rs"),
    ] {
        // What no path knows is not there.
        let source = source.replace(".route(\"/api/{*path}\", any(nowhere))", "");
        assert!(
            !source.contains(".route("),
            "paths are served by Paths alone"
        );
    }
}

#[test]
fn the_document_is_whole() {
    let contract = Contract::new("whole");
    let text = contract.document.to_string();
    let mut names = BTreeSet::new();
    for (method, path, operation) in methods_of(&contract.document) {
        let name = operation["operationId"].as_str().unwrap().to_owned();
        assert!(
            names.insert(name.clone()),
            "{method} {path}: {name} is there twice"
        );
        assert!(
            operation["responses"]["500"].is_object() || path.ends_with('z'),
            "{path}"
        );
    }
    let schemas = &contract.document["components"]["schemas"];
    for reference in text.split("\"$ref\":\"").skip(1) {
        let reference = reference.split('"').next().unwrap();
        let name = reference.strip_prefix("#/components/schemas/");
        let name = name.unwrap_or_else(|| panic!("{reference} leads nowhere"));
        assert!(schemas[name].is_object(), "{reference} leads nowhere");
    }
    for (name, schema) in schemas.as_object().unwrap() {
        assert!(
            text.contains(&format!("schemas/{name}\"")),
            "nobody uses {name}"
        );
        assert!(schema["description"].is_string(), "{name} is not described");
    }
}
