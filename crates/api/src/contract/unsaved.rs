//! Every change of a node whose state directory takes no files any more.

#![cfg(test)]

use super::sweep::each;
use super::{Contract, Question, Seen};
use crate::test::Daemon;
use serde_json::{Value, json};
use std::sync::LazyLock;

pub(super) static UNSAVED: LazyLock<Seen> = LazyLock::new(unsaved);

#[test]
fn a_change_that_cannot_be_saved_is_answered_as_the_document_says() {
    LazyLock::force(&UNSAVED);
}

/// Files that nothing can be put in the place of: directories stand there.
fn block(daemon: &Daemon) {
    let state = daemon.dir.join("state");
    let names = std::fs::read_dir(&state).unwrap();
    let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
    let last = names.filter_map(|name| {
        let number = name.strip_prefix("objects-")?.strip_suffix(".json")?;
        number.parse::<u64>().ok()
    });
    let next = last.max().unwrap() + 1;
    let mut blocked: Vec<String> = ["objects", "secrets"]
        .map(|kind| format!("{kind}-{next:010}.json"))
        .into();
    let others = [
        "accounts.json",
        "alerts.json",
        "alert-receivers.json",
        "lab-bed",
        "bench.json",
        "bench-chap",
        "settings.json.before",
    ];
    blocked.extend(others.map(str::to_owned));
    for name in blocked {
        let path = state.join(name);
        let _ = std::fs::remove_file(&path);
        std::fs::create_dir_all(path.join("in-the-way")).unwrap();
    }
}

/// Asked below, by somebody who has logged in; and what changes nothing at this node, which has
/// neither lost objects nor older ones.
const LEFT_OUT: [&str; 3] = [
    "/api/v1/me/password",
    "/api/v1/orphans/adopt",
    "/api/v1/generations/accept",
];

/// Numbers that are known when the things are made.
pub(super) struct Numbers {
    alert: String,
    silence: String,
    token: String,
}

/// A change that would be made if it could be saved: the name in its path, what follows, its body.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(super) fn wanted<'a>(
    method: &str,
    path: &str,
    numbers: &'a Numbers,
) -> Option<(&'a str, &'static str, Value)> {
    let null = || json!(null);
    let host = || json!({ "name": "h9", "iqn": ["iqn.1998-01.com.example:h9"] });
    let grant = || json!({ "host": "h", "lun": "m", "target": "t" });
    let secret = "another long password";
    let below = path.strip_prefix("/api/v1/").unwrap_or(path);
    let (name, query, body) = match (method, below) {
        ("POST", "apply" | "objects") => ("", "", json!({ "target": [{ "name": "t9" }] })),
        ("POST", "luns") => ("", "", json!({ "name": "l9", "size": "1G" })),
        ("PATCH", "luns/{name}") => ("m", "", json!({ "shares": 7 })),
        ("DELETE", "luns/{name}") => ("m", "", null()),
        ("POST", "luns/{name}/resize") => ("m", "", json!({ "size": "2G" })),
        ("POST", "luns/{name}/rename") => ("m", "", json!({ "to": "m9" })),
        ("POST", "luns/{name}/restore") => ("gone", "", null()),
        ("POST", "luns/{name}/purge") => ("gone", "?force=true", null()),
        ("POST", "targets") => ("", "", json!({ "name": "t9" })),
        ("PUT", "targets/{name}") => (
            "t2",
            "",
            json!({ "name": "t2", "maintenance_grace_seconds": 7 }),
        ),
        ("PATCH", "targets/{name}") => ("t", "?force=true", json!({ "maintenance": true })),
        ("DELETE", "targets/{name}") => ("t2", "", null()),
        ("POST", "targets/{name}/rename") => ("t2", "", json!({ "to": "t9" })),
        ("POST", "hosts") => ("", "", host()),
        ("PUT", "hosts/{name}") => (
            "h2",
            "",
            json!({ "name": "h2", "iqn": ["iqn.1998-01.com.example:another"] }),
        ),
        ("PATCH", "hosts/{name}") => (
            "h2",
            "",
            json!({ "iqn": ["iqn.1998-01.com.example:another"] }),
        ),
        ("DELETE", "hosts/{name}") => ("h2", "", null()),
        ("POST", "hosts/{name}/rename") => ("h2", "", json!({ "to": "h9" })),
        ("POST", "grants") => ("", "", grant()),
        ("PUT", "grants/{name}") => (
            "h:t:l",
            "?force=true",
            json!({ "host": "h", "lun": "l", "target": "t", "read_only": true }),
        ),
        ("PATCH", "grants/{name}") => ("h:t:l", "?force=true", json!({ "read_only": true })),
        ("DELETE", "grants/{name}") => ("h:t:l", "?force=true", null()),
        ("POST", "generations/{number}/rollback") => ("2", "?force=true", null()),
        ("POST", "users") => (
            "",
            "",
            json!({ "name": "u9", "role": "viewer", "password": secret }),
        ),
        ("PATCH", "users/{name}") => ("u", "", json!({ "role": "operator" })),
        ("DELETE", "users/{name}") => ("u", "", null()),
        ("POST", "tokens") => ("", "", json!({ "name": "t9", "role": "viewer" })),
        ("POST", "alerts/receivers") => (
            "",
            "",
            json!({ "name": "r9", "webhook": { "url": "http://127.0.0.1:1/" } }),
        ),
        ("PATCH", "alerts/receivers/{name}") => ("r", "", json!({ "least": "critical" })),
        ("DELETE", "alerts/receivers/{name}") => ("r", "", null()),
        ("PUT", "alerts/rules/{id}") => ("pool_filling", "", json!({ "enabled": false })),
        ("POST", "alerts/{id}/acknowledge") => (&*numbers.alert, "", json!({})),
        ("POST", "alerts/{id}/silence") => (&*numbers.alert, "", json!({ "hours": 1 })),
        ("DELETE", "alerts/{id}/acknowledge") => (&*numbers.alert, "", null()),
        ("POST", "alerts/{id}/unsilence") => (&*numbers.alert, "", null()),
        ("DELETE", "alerts/silences/{id}") => (&*numbers.silence, "", null()),
        ("DELETE", "tokens/{id}") => (&*numbers.token, "", null()),
        ("POST", "alerts/silences") => ("", "", json!({ "hours": 1 })),
        ("POST", "lab/beds") => ("", "", json!({ "topology": "two-paths" })),
        ("POST", "bench/runs") => (
            "",
            "",
            json!({
                "url": "iscsi://127.0.0.1:1/iqn.2026-11.io.causeway:x/0",
                "chap_user": "u", "chap_secret": "twelve bytes are few",
            }),
        ),
        ("PATCH", "config") => ("", "", json!({ "scrub_every_days": 31 })),
        _ => return None,
    };
    Some((name, query, body))
}

/// A daemon that has something of all that can be changed.
pub(super) fn furnished(name: &str) -> (Contract, Numbers) {
    let mut contract = Contract::new(name);
    let alert = contract.fired();
    let daemon = &contract.daemon;
    let post = |path: &str, body: Value| {
        let (status, answer) = daemon.send("POST", &format!("/api/v1/{path}"), &body);
        assert_eq!(status, 200, "{path}: {answer}");
    };
    for name in ["m", "gone"] {
        post("luns", json!({ "name": name, "size": "1G" }));
    }
    let (status, _) = daemon.send("DELETE", "/api/v1/luns/gone", &json!(null));
    assert_eq!(status, 200);
    post("targets", json!({ "name": "t2" }));
    post(
        "hosts",
        json!({ "name": "h2", "iqn": ["iqn.1998-01.com.example:h2"] }),
    );
    let user = json!({ "name": "u", "role": "viewer", "password": "twelve bytes are few" });
    post("users", user);
    let hook = json!({ "name": "r", "webhook": { "url": "http://127.0.0.1:1/" } });
    post("alerts/receivers", hook);
    post(&format!("alerts/{alert}/acknowledge"), json!({}));
    post(&format!("alerts/{alert}/silence"), json!({ "hours": 1 }));
    let silence = json!({ "kind": "pool", "hours": 1 });
    let (_, silence) = daemon.send("POST", "/api/v1/alerts/silences", &silence);
    let token = json!({ "name": "t", "role": "viewer" });
    let (_, token) = daemon.send("POST", "/api/v1/tokens", &token);
    let numbers = Numbers {
        alert,
        silence: silence["id"].to_string(),
        token: token["id"].as_str().unwrap().to_owned(),
    };
    (contract, numbers)
}

fn unsaved() -> Seen {
    let (mut contract, numbers) = furnished("unsaved");
    block(&contract.daemon);
    let mut missing = Vec::new();
    each(&contract.document.clone(), |asked| {
        let (method, path) = (asked.method, asked.path);
        let may_fail = asked.operation["responses"]["507"].is_object();
        let change = wanted(method, path, &numbers).filter(|_| asked.changes());
        let Some((name, query, body)) = change else {
            let may_fail = may_fail && !LEFT_OUT.contains(&path);
            missing.extend(may_fail.then(|| format!("{method} {path}: nobody asks")));
            return;
        };
        let body = body.to_string();
        let question = Question {
            method,
            path,
            name,
            query,
            body,
        };
        let (status, answer) = contract.ask(&question);
        if status != 507 {
            missing.push(format!("{method} {path}: {status} {answer}"));
        }
    });
    let new = json!({ "old": "twelve bytes are few", "new": "another long password" });
    contract.enter("u", "twelve bytes are few");
    contract.expect(507, ("PUT", "/api/v1/me/password", "", "", new));
    assert!(missing.is_empty(), "{missing:#?}");
    contract.seen
}
