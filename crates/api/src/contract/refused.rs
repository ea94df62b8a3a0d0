//! Changes of what is not there or is another thing by now, and questions that nobody understands.

#![cfg(test)]

use super::sweep::each;
use super::unsaved::{furnished, wanted};
use super::{Question, Seen};
use crate::accept::Times;
use crate::test::Daemon;
use manifest::config::Config;
use serde_json::json;
use std::sync::LazyLock;

pub(super) static REFUSED: LazyLock<Seen> = LazyLock::new(refused);

#[test]
fn what_does_not_fit_what_is_there_is_refused_as_the_document_says() {
    LazyLock::force(&REFUSED);
}

/// The accounts of this daemon are damaged.
fn damaged(config: &mut Config) {
    std::fs::create_dir_all(&config.state_dir).unwrap();
    std::fs::write(config.state_dir.join("accounts.json"), "{").unwrap();
}

fn refused() -> Seen {
    let (mut contract, numbers) = furnished("refused");
    each(&contract.document.clone(), |asked| {
        let (method, path) = (asked.method, asked.path);
        let about = format!("{method} {path}");
        let may = |status: &str| asked.operation["responses"][status].is_object();
        let ask = |name, query, body: &str| Question {
            method,
            path,
            name,
            query,
            body: body.to_owned(),
        };
        if !asked.changes() {
            // Letters that are none, and a number that is none.
            let (name, query) = if path.contains('{') {
                ("%ff", "")
            } else {
                ("", "?limit=x&from=x")
            };
            if may("400") {
                contract.ask(&ask(name, query, ""));
            }
            return;
        }
        let Some((name, query, body)) = wanted(method, path, &numbers) else {
            return;
        };
        let body = body.to_string();
        if path.contains('{') {
            let (status, answer) = contract.ask(&ask("nobody", query, &body));
            assert!([400, 404].contains(&status), "{about}: {status}: {answer}");
        }
        if asked.has_header("If-Match") {
            contract
                .headers
                .push(("if-match", "\"another\"".to_owned()));
            let (status, answer) = contract.ask(&ask(name, query, &body));
            assert_eq!(status, 412, "{about}: {answer}");
            contract.headers.truncate(1);
        }
    });
    contract.daemon.records.stop();
    for path in [
        "/api/v1/history",
        "/api/v1/history/latency",
        "/api/v1/audit/export",
    ] {
        let query = if path.ends_with("latency") {
            "?object=node"
        } else {
            ""
        };
        contract.expect(503, ("GET", path, "", query, json!(null)));
    }
    let daemon = Daemon::start_with("refused-accounts", damaged, Times::default());
    let mut contract = super::Contract { daemon, ..contract };
    let user = json!({ "user": "admin", "password": "twelve bytes are few" });
    contract.expect(503, ("POST", "/api/v1/login", "", "", user));
    let user = json!({ "name": "u", "role": "viewer", "password": "twelve bytes are few" });
    contract.expect(503, ("POST", "/api/v1/users", "", "", user));
    let token = json!({ "name": "t", "role": "viewer" });
    contract.expect(503, ("POST", "/api/v1/tokens", "", "", token));
    contract.seen
}
