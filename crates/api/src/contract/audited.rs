//! Every change against the audit log.

#![cfg(test)]

use super::{Contract, methods_of};
use crate::audit::test::{entries, last};
use crate::test::Daemon;
use serde_json::{Value, json};

/// Whether an operation has a parameter `dry_run`, and its body a member of that name.
fn may_be_dry(document: &Value, operation: &Value) -> (bool, bool) {
    let parameters = operation["parameters"].as_array().unwrap();
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let name = schema["$ref"].as_str().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default();
    let members = &document["components"]["schemas"][name]["properties"];
    (
        parameters.iter().any(|it| it["name"] == "dry_run"),
        members["dry_run"].is_object(),
    )
}

/// A change that was made is entered with what it was about, and how that was or is.
pub(super) fn is_entered_whole(daemon: &Daemon, path: &str, answer: &Value) {
    let entry = last(daemon);
    let about = format!("{path}: {answer}: {entry:?}");
    let began = path.split('{').next().unwrap();
    assert!(entry.path.starts_with(began), "another one: {about}");
    let is_shown = !entry.before.is_null() || !entry.after.is_null();
    assert!(is_shown, "neither before nor after: {about}");
    // What changed no object names none.
    let has_changed = answer["changed"] != false;
    assert!(entry.object.is_some() || !has_changed, "no object: {about}");
}

#[test]
fn unlogged_no_request_keeps_itself_out_of_the_audit_log() {
    let contract = Contract::new("unlogged");
    let daemon = &contract.daemon;
    daemon.send(
        "POST",
        "/api/v1/apply",
        &json!(controller::test_support::lab()),
    );
    let mut asked = 0;
    for (method, path, operation) in methods_of(&contract.document) {
        if method == "GET" {
            continue;
        }
        asked += 1;
        let before = path.split('{').next().unwrap();
        let behind = path.split('}').nth(1).unwrap_or_default();
        let name = if path.contains('{') { "nobody" } else { "" };
        let at = format!("{before}{name}{behind}");
        let (query_may, body_may) = may_be_dry(&contract.document, &operation);
        let mut body = json!({ "dry_run": true });
        if body_may {
            body["operation"] = json!("reopen");
        }
        let count = entries(daemon).len();
        let (status, answer) = daemon.send(&method, &at, &body);
        let more = entries(daemon).len() - count;
        assert_eq!(
            more,
            usize::from(!body_may),
            "{method} {at}: {status} {answer}"
        );
        let (count, at) = (entries(daemon).len(), format!("{at}?dry_run=true"));
        let (status, answer) = daemon.send(&method, &at, &Value::Null);
        let more = entries(daemon).len() - count;
        assert_eq!(
            more,
            usize::from(!query_may),
            "{method} {at}: {status} {answer}"
        );
        if !query_may {
            assert_eq!(status, 400, "{method} {at}: {answer}");
        }
    }
    assert!(asked > 50, "{asked} changes");
}

#[test]
fn a_body_where_none_is_taken_and_parameters_that_nobody_knows_are_refused() {
    let contract = Contract::new("no-more");
    let daemon = &contract.daemon;
    let lun = json!({ "name": "b", "size": "1G" });
    daemon.send("POST", "/api/v1/luns", &lun);
    let dry = json!({ "dry_run": true });
    let (status, problem) = daemon.send("DELETE", "/api/v1/luns/b", &dry);
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (400, &json!("CWY5003"))
    );
    let (status, _) = daemon.send("GET", "/api/v1/luns/b", &Value::Null);
    assert_eq!(status, 200, "it was not deleted");
    for empty in [Value::Null, json!({})] {
        let (status, answer) = daemon.send("DELETE", "/api/v1/luns/b", &empty);
        assert_eq!(status, 200, "{answer}");
        daemon.send("POST", "/api/v1/luns/b/restore", &Value::Null);
    }
    let right = json!({ "user": "admin", "password": "no" });
    for path in ["login", "logout"] {
        let path = format!("/api/v1/{path}?x=1");
        let (status, problem) = daemon.send("POST", &path, &right);
        assert_eq!(status, 400, "{problem}");
        assert!(problem.to_string().contains("\\\"x\\\""), "{problem}");
    }
}

/// Bodies that are made of a schema, with a secret wherever one may stand.
pub(super) struct Bodies<'a> {
    pub(super) schemas: &'a Value,
    /// How many secrets there are so far.
    pub(super) secrets: usize,
}

impl Bodies<'_> {
    fn secret(&mut self) -> Value {
        self.secrets += 1;
        json!(format!("s3cret-{}", self.secrets))
    }

    pub(super) fn of(&mut self, schema: &Value) -> Value {
        if let Some(name) = schema["$ref"].as_str() {
            let schemas = self.schemas;
            return self.of(&schemas[name.rsplit('/').next().unwrap()]);
        }
        if schema["writeOnly"] == true {
            return self.secret();
        }
        for choice in ["anyOf", "oneOf", "allOf"] {
            // The one that has most in it.
            let all = schema[choice].as_array().into_iter().flatten();
            let all: Vec<Value> = all.map(|it| self.of(it)).collect();
            let largest = all.into_iter().max_by_key(|it| it.to_string().len());
            if let Some(largest) = largest {
                return largest;
            }
        }
        if let Some(word) = schema.get("const").or_else(|| schema["enum"].get(0)) {
            return word.clone();
        }
        let kind = &schema["type"];
        match kind
            .as_str()
            .or_else(|| kind[0].as_str())
            .unwrap_or_default()
        {
            "object" => {
                let members = schema["properties"].as_object().into_iter().flatten();
                members
                    .map(|(name, of)| (name.clone(), self.of(of)))
                    .collect()
            }
            "array" => json!([self.of(&schema["items"])]),
            "string" => json!("x"),
            "integer" | "number" => json!(1),
            "boolean" => json!(false),
            _ => Value::Null,
        }
    }
}

/// The same with each secret under a name that is nearly right, and such in a list instead.
fn misspelt(body: &Value) -> [Value; 2] {
    let is_secret = |value: &Value| value.as_str().is_some_and(|it| it.starts_with("s3cret"));
    match body {
        Value::Object(members) => {
            let wrong = members.iter().map(|(name, value)| {
                let name = if is_secret(value) { &name[1..] } else { name };
                (name.to_owned(), misspelt(value)[0].clone())
            });
            let moved = members.iter().map(|(name, value)| {
                let moved = if is_secret(value) {
                    json!([value])
                } else {
                    misspelt(value)[1].clone()
                };
                let has_secret = value
                    .as_object()
                    .is_some_and(|it| it.values().any(is_secret));
                let listed = || value.as_object().unwrap().values().cloned().collect();
                (name.clone(), if has_secret { listed() } else { moved })
            });
            [wrong.collect(), moved.collect()]
        }
        Value::Array(items) => {
            [0, 1].map(|at| items.iter().map(|it| misspelt(it)[at].clone()).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            [body.clone(), body.clone()]
        }
    }
}

#[test]
fn no_secret_of_any_schema_nor_a_misspelt_one_is_in_the_file() {
    let contract = Contract::new("every-secret");
    let daemon = &contract.daemon;
    daemon.send(
        "POST",
        "/api/v1/apply",
        &json!(controller::test_support::lab()),
    );
    let schemas = &contract.document["components"]["schemas"];
    let mut bodies = Bodies {
        schemas,
        secrets: 0,
    };
    for (method, path, operation) in methods_of(&contract.document) {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            continue;
        }
        let body = bodies.of(schema);
        let before = path.split('{').next().unwrap();
        let behind = path.split('}').nth(1).unwrap_or_default();
        let names = if path.contains('{') {
            &["nobody", "h", "l"][..]
        } else {
            &[""]
        };
        for name in names {
            let at = format!("{before}{name}{behind}?pw=s3cret-of-query");
            for body in [&body].into_iter().chain(&misspelt(&body)) {
                daemon.send(&method, &at, body);
                daemon.send(&method, &format!("{before}{name}{behind}"), body);
            }
        }
    }
    assert!(bodies.secrets >= 8, "{} places for secrets", bodies.secrets);
    let all = entries(daemon);
    assert!(all.len() > 200, "{} entries", all.len());
    for entry in all {
        let text = serde_json::to_string(&entry).unwrap();
        assert!(!text.contains("s3cret"), "{text}");
    }
}
