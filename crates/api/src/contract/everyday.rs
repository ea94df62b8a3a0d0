//! What is refused every day, and work that is answered before its end.

#![cfg(test)]

use super::{Contract, Seen};
use crate::audit::test::last;
use serde_json::{Value, json};
use std::sync::LazyLock;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

pub(super) static EVERYDAY: LazyLock<Seen> = LazyLock::new(everyday);

#[test]
fn what_is_refused_every_day_is_answered_as_the_document_says() {
    LazyLock::force(&EVERYDAY);
}

/// A status, what is asked for it, and the body.
type Line = (
    u16,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Value,
);

const LUN: &str = "/api/v1/luns/{name}";
const TARGET: &str = "/api/v1/targets/{name}";
const HOST: &str = "/api/v1/hosts/{name}";
const GRANT: &str = "/api/v1/grants/{name}";
const USER: &str = "/api/v1/users/{name}";

/// Of hosts that have a session with what is changed.
fn disturbing() -> Vec<Line> {
    let null = || json!(null);
    let other = json!(["iqn.1998-01.com.example:another"]);
    let host = json!({ "name": "h", "iqn": other });
    let target = json!({ "name": "t", "maintenance": true });
    let grant = json!({ "host": "h", "target": "t", "lun": "l", "read_only": true });
    vec![
        (409, "DELETE", HOST, "h", "", null()),
        (409, "PATCH", HOST, "h", "", json!({ "iqn": other })),
        (409, "PUT", HOST, "h", "", host),
        (409, "DELETE", TARGET, "t", "", null()),
        (
            409,
            "PATCH",
            TARGET,
            "t",
            "",
            json!({ "maintenance": true }),
        ),
        (409, "PUT", TARGET, "t", "", target),
        (409, "DELETE", GRANT, "h:t:l", "", null()),
        (
            409,
            "PATCH",
            GRANT,
            "h:t:l",
            "",
            json!({ "read_only": true }),
        ),
        (409, "PUT", GRANT, "h:t:l", "", grant),
        (
            409,
            "POST",
            "/api/v1/generations/{number}/rollback",
            "1",
            "",
            null(),
        ),
    ]
}

/// Of names that are taken.
fn taken() -> Vec<Line> {
    let host = json!({ "name": "h", "iqn": ["iqn.1998-01.com.example:h8"] });
    let grant = json!({ "host": "h", "target": "t", "lun": "l" });
    let user = json!({ "name": "admin", "role": "viewer", "password": "twelve bytes are few" });
    let token = json!({ "name": "t1", "role": "viewer" });
    let to = |name: &str| json!({ "to": name });
    let made = |path: &'static str, body: &Value| (200, "POST", path, "", "", body.clone());
    let twice = |path: &'static str, body: &Value| (409, "POST", path, "", "", body.clone());
    vec![
        twice("/api/v1/hosts", &host),
        twice("/api/v1/targets", &json!({ "name": "t" })),
        twice("/api/v1/grants", &grant),
        twice("/api/v1/objects", &json!({ "target": [{ "name": "t" }] })),
        twice("/api/v1/users", &user),
        made("/api/v1/tokens", &token),
        twice("/api/v1/tokens", &token),
        made("/api/v1/luns", &json!({ "name": "l2", "size": "1G" })),
        made("/api/v1/targets", &json!({ "name": "t2" })),
        made(
            "/api/v1/hosts",
            &json!({ "name": "h2", "iqn": ["iqn.1998-01.com.example:h2"] }),
        ),
        (409, "POST", "/api/v1/luns/{name}/rename", "l2", "", to("l")),
        (
            409,
            "POST",
            "/api/v1/targets/{name}/rename",
            "t2",
            "",
            to("t"),
        ),
        (
            409,
            "POST",
            "/api/v1/hosts/{name}/rename",
            "h2",
            "",
            to("h"),
        ),
    ]
}

/// Of what would lose data, or the last admin, or the one token that stays.
fn losing() -> Vec<Line> {
    let small = json!({ "lun": [{ "name": "l", "size": "1M" }] });
    let disabled = json!({ "enabled": false });
    vec![
        (409, "POST", "/api/v1/apply", "", "", small),
        (409, "DELETE", USER, "admin", "", json!(null)),
        (409, "PATCH", USER, "admin", "", disabled),
        (
            409,
            "DELETE",
            "/api/v1/tokens/{id}",
            "api.token",
            "",
            json!(null),
        ),
    ]
}

/// Of what is not there.
fn missing() -> Vec<Line> {
    let null = || json!(null);
    let grant = json!({ "host": "a", "target": "b", "lun": "c" });
    let host = json!({ "name": "nobody", "iqn": ["iqn.1998-01.com.example:nobody"] });
    let only = "?only=target=nobody";
    vec![
        (404, "PUT", HOST, "nobody", "", host),
        (
            404,
            "PUT",
            TARGET,
            "nobody",
            "",
            json!({ "name": "nobody" }),
        ),
        (404, "PUT", GRANT, "a:b:c", "", grant),
        (404, "PATCH", GRANT, "a:b:c", "", json!({ "lun_id": 7 })),
        (404, "DELETE", GRANT, "a:b:c", "", null()),
        (
            404,
            "GET",
            "/api/v1/generations/{number}",
            "999",
            "",
            null(),
        ),
        (
            404,
            "POST",
            "/api/v1/generations/{number}/rollback",
            "999",
            "",
            null(),
        ),
        (404, "GET", "/api/v1/export", "", only, null()),
        (404, "POST", "/api/v1/apply", "", only, json!({})),
        (
            404,
            "POST",
            "/api/v1/luns/{name}/scrub",
            "nobody",
            "",
            json!({ "operation": "start" }),
        ),
        (
            404,
            "POST",
            "/api/v1/pools/{name}/journal",
            "nobody",
            "",
            json!({ "operation": "reopen" }),
        ),
    ]
}

/// Of figures over time.
fn no_figures() -> Vec<Line> {
    let null = || json!(null);
    vec![
        (
            404,
            "GET",
            "/api/v1/history",
            "",
            "?object=lun:nobody",
            null(),
        ),
        (
            404,
            "GET",
            "/api/v1/history",
            "",
            "?object=nic:nobody",
            null(),
        ),
        (
            404,
            "GET",
            "/api/v1/history",
            "",
            "?object=pool:nobody",
            null(),
        ),
        (200, "GET", "/api/v1/history", "", "?object=host:h", null()),
        (
            404,
            "GET",
            "/api/v1/history/latency",
            "",
            "?object=lun:nobody",
            null(),
        ),
    ]
}

/// Of what breaks a rule.
fn broken() -> Vec<Line> {
    let name = json!(["x"]);
    let grant = json!({ "host": "h", "target": "t", "lun": "l", "lun_id": 20_000 });
    let host = json!({ "name": "h2", "iqn": name });
    vec![
        (422, "PATCH", LUN, "l", "", json!({ "size": 1000 })),
        (422, "PATCH", HOST, "h2", "", json!({ "iqn": name })),
        (422, "PUT", HOST, "h2", "", host),
        (422, "PATCH", TARGET, "t2", "", json!({ "iqn": "x" })),
        (
            422,
            "PUT",
            TARGET,
            "t2",
            "",
            json!({ "name": "t2", "iqn": "x" }),
        ),
        (
            422,
            "PATCH",
            GRANT,
            "h:t:l",
            "",
            json!({ "lun_id": 20_000 }),
        ),
        (422, "PUT", GRANT, "h:t:l", "", grant),
        (
            400,
            "POST",
            "/api/v1/generations/accept",
            "",
            "?limti=1",
            json!(null),
        ),
    ]
}

/// What comes in half a minute at the latest.
fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    for _ in 0..1_500 {
        if let Some(came) = ask() {
            return came;
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    panic!("it does not come");
}

impl Contract {
    /// An alert that is over: nothing is done about it any more.
    fn over(&mut self) {
        self.fired();
        let path = "/api/v1/alerts";
        let of_rule = "?filter=rule:host_single_path&resolved=true";
        let mut known = || self.expect(200, ("GET", path, "", of_rule, json!(null)))[0].clone();
        let id = until(|| Some(known()).filter(Value::is_object))["id"].to_string();
        let off = json!({ "enabled": false });
        let rule = "/api/v1/alerts/rules/{id}";
        self.expect(200, ("PUT", rule, "host_single_path", "", off));
        let of_one = "/api/v1/alerts/{id}";
        until(|| {
            let shown = self.expect(200, ("GET", of_one, &id, "", json!(null)));
            (shown["state"] == "resolved").then_some(())
        });
        let hour = json!({ "hours": 1 });
        for (method, what, body) in [
            ("POST", "acknowledge", json!({})),
            ("DELETE", "acknowledge", json!(null)),
            ("POST", "silence", hour),
        ] {
            let path = format!("{of_one}/{what}");
            self.expect(409, (method, &path, &id, "", body));
        }
    }

    /// A change that is answered with its job while that runs.
    fn begun(&mut self, asked: (&str, &str, &str, &str, Value)) {
        self.daemon.hold.on.store(true, SeqCst);
        self.headers.push(("prefer", "respond-async".to_owned()));
        let job = self.expect(202, asked);
        self.headers.pop();
        self.daemon.hold.on.store(false, SeqCst);
        let (path, id) = ("/api/v1/jobs/{id}", job["id"].to_string());
        until(|| {
            let shown = self.expect(200, ("GET", path, &id, "", json!(null)));
            (shown["state"] != "running").then_some(())
        });
        // What is asked next is entered behind the end of this.
        let daemon = &self.daemon;
        until(|| {
            let end = last(daemon);
            (end.job == job["id"].as_u64() && end.status != 202).then_some(())
        });
    }

    fn begun_all(&mut self) {
        let thick = |name: &str, size: &str| json!({ "name": name, "size": size, "thin": false });
        let set = |name: &str| json!({ "lun": [thick(name, "1G")] });
        self.begun(("POST", "/api/v1/luns", "", "", thick("a", "1G")));
        self.begun(("POST", "/api/v1/objects", "", "", set("b")));
        self.begun(("POST", "/api/v1/apply", "", "", set("c")));
        self.begun(("PATCH", LUN, "a", "", json!({ "size": "2G" })));
        let resize = "/api/v1/luns/{name}/resize";
        self.begun(("POST", resize, "a", "", json!({ "size": "3G" })));
        self.expect(200, ("DELETE", LUN, "a", "", json!(null)));
        let purge = "/api/v1/luns/{name}/purge";
        self.begun(("POST", purge, "a", "?force=true", json!(null)));
    }

    /// Somebody who is logged in guesses what the password is.
    fn guesses(&mut self) {
        let (user, password) = ("eve", "twelve bytes are few");
        let made = json!({ "name": user, "role": "viewer", "password": password });
        self.expect(200, ("POST", "/api/v1/users", "", "", made));
        self.enter(user, password);
        let guess = json!({ "old": "another long password", "new": "a third long password" });
        let question = || super::Question {
            method: "PUT",
            path: "/api/v1/me/password",
            name: "",
            query: "",
            body: guess.to_string(),
        };
        let came = (0..100).any(|_| self.ask(&question()).0 == 429);
        assert!(came, "guessing goes on");
        self.headers.truncate(1);
    }
}

fn everyday() -> Seen {
    let mut contract = Contract::new("everyday");
    contract.over();
    let tables = [
        disturbing(),
        taken(),
        losing(),
        missing(),
        no_figures(),
        broken(),
    ];
    for lines in tables {
        for (status, method, path, name, query, body) in lines {
            contract.expect(status, (method, path, name, query, body));
        }
    }
    contract
        .headers
        .push(("if-match", "\"another\"".to_owned()));
    let all = json!({ "all": true });
    contract.expect(412, ("POST", "/api/v1/orphans/adopt", "", "", all));
    contract.headers.truncate(1);
    contract.begun_all();
    contract.guesses();
    contract.seen
}
