//! What is asked of an API whose node is gone already.

#![cfg(test)]

use super::Seen;
use super::audited::Bodies;
use super::sweep::{each, token};
use super::unsaved::{furnished, wanted};
use hyper::Request;
use manifest::code::Code;
use std::sync::LazyLock;

pub(super) static STOPPED: LazyLock<Seen> = LazyLock::new(stopped);

#[test]
fn who_asks_while_the_daemon_stops_is_answered_that_it_does() {
    LazyLock::force(&STOPPED);
}

fn stopped() -> Seen {
    let (mut contract, numbers) = furnished("stopped");
    let admin = token(&contract.daemon, "admin");
    contract.daemon.end_node();
    let stopping = Code::Stopping.to_string();
    each(&contract.document.clone(), |asked| {
        let document = contract.document.clone();
        let schemas = &document["components"]["schemas"];
        let mut bodies = Bodies {
            schemas,
            secrets: 0,
        };
        let schema = &asked.operation["requestBody"]["content"]["application/json"]["schema"];
        let body = if schema.is_null() {
            String::new()
        } else {
            bodies.of(schema).to_string()
        };
        let proof = [("authorization", admin.as_str())];
        let (_, answer) = contract.sweep(asked, &proof, &body);
        let codes = asked.operation["responses"]["503"].to_string();
        let is_said = answer["code"] == stopping.as_str();
        let about = format!("{} {}: {answer}", asked.method, asked.path);
        assert!(!is_said || codes.contains(&stopping), "{about}");
        let known = wanted(asked.method, asked.path, &numbers);
        let Some((name, query, body)) = known.filter(|_| asked.changes()) else {
            return;
        };
        let before = asked.path.split('{').next().unwrap();
        let behind = asked.path.split('}').nth(1).unwrap_or_default();
        let uri = format!("{before}{name}{behind}{query}");
        let request = Request::builder().method(asked.method).uri(&uri);
        let request = request.header("host", "localhost");
        let request = request.header("authorization", admin.as_str());
        let request = request.body(body.to_string()).unwrap();
        let (head, text) = contract.daemon.exchange(true, request);
        contract.held((asked.method, asked.path), &head, text, &uri);
    });
    contract.seen
}
