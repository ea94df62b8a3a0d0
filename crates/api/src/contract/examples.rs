//! The examples of bodies are what the daemon takes.

#![cfg(test)]

use super::{Contract, methods_of, schema};
use serde_json::json;

/// What is asked in its time by other tests, or needs what nobody has here.
const NOT_SENT: [&str; 4] = [
    "/api/v1/login",
    "/api/v1/pools/{name}/journal",
    "/api/v1/alerts/{id}/acknowledge",
    "/api/v1/alerts/{id}/silence",
];

#[test]
fn each_body_that_makes_something_has_an_example_which_is_taken() {
    let mut contract = Contract::new("examples");
    let document = contract.document.clone();
    let schemas = &document["components"]["schemas"];
    let first = &document["paths"]["/api/v1/apply"]["post"]["requestBody"]["content"];
    let first = first["application/json"]["example"].clone();
    contract.expect(200, ("POST", "/api/v1/apply", "", "", first));
    let backup = json!({ "name": "backup" });
    contract.expect(200, ("POST", "/api/v1/targets", "", "", backup));
    let mut sent = 0;
    for (method, path, operation) in methods_of(&document) {
        let content = &operation["requestBody"]["content"]["application/json"];
        if content.is_null() {
            continue;
        }
        let example = &content["example"];
        let about = format!("{method} {path}: {example}");
        if example.is_null() {
            assert!(method != "POST", "without an example: {about}");
            continue;
        }
        schema::check(schemas, &content["schema"], example, "").expect(&about);
        let name = match path.split('/').nth(3).unwrap() {
            "targets" => "backup",
            "hosts" => "esx01",
            _ => "vm01",
        };
        // These were made above.
        let body = match path.as_str() {
            "/api/v1/targets" => json!({ "name": "another" }),
            "/api/v1/objects" => json!({ "target": [{ "name": "another" }] }),
            _ => example.clone(),
        };
        let parameters = operation["parameters"].as_array().unwrap();
        let may_be_dry = parameters.iter().any(|it| it["name"] == "dry_run");
        if NOT_SENT.contains(&path.as_str()) || path.contains("/lab/beds/{id}") || !may_be_dry {
            continue;
        }
        contract.expect(200, (&method, &path, name, "?dry_run=true", body));
        sent += 1;
    }
    assert!(sent >= 15, "{sent} were sent");
}
