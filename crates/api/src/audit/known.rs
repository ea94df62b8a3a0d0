//! Of what a request says, that which the document of the API knows, and which is no secret: pure.

use axum::http::Uri;
use serde_json::{Map, Value};

/// Instead of a secret. That something was set stays known.
const REMOVED: &str = "(removed)";

/// References of a document.
const PLACE: &str = "#/components/schemas/";

/// What the document says of one operation.
pub(super) struct Known<'a> {
    schemas: &'a Value,
    operation: &'a Value,
}

impl<'a> Known<'a> {
    /// Of a method at a path, as the document has it.
    pub(super) fn of(document: &'a Value, method: &str, path: &str) -> Self {
        Self {
            schemas: &document["components"]["schemas"],
            operation: &document["paths"][path][method.to_lowercase()],
        }
    }

    /// Members of a body that have a place in its schema. Whatever has none may be a secret that
    /// somebody misspelt, and is left out.
    pub(super) fn asked(&self, body: Value) -> Value {
        let content = &self.operation["requestBody"]["content"];
        let schema = &content["application/json"]["schema"];
        self.kept(&[schema], body).unwrap_or_default()
    }

    /// Path and parameters; of these only such as the operation has.
    pub(super) fn path(&self, uri: &Uri) -> String {
        let parameters = self.operation["parameters"].as_array();
        let is_known = |name: &str| {
            let mut all = parameters.into_iter().flatten();
            all.any(|it| it["in"] == "query" && it["name"] == name)
        };
        let mut whole = uri.path().to_owned();
        let pairs = uri.query().unwrap_or_default().split('&');
        for (at, pair) in pairs.filter(|pair| !pair.is_empty()).enumerate() {
            let name = pair.split('=').next().unwrap_or_default();
            whole.push(if at == 0 { '?' } else { '&' });
            whole.push_str(if is_known(name) { pair } else { "(unknown)" });
        }
        // What is no path of the API is never so long.
        whole.chars().take(1_024).collect()
    }

    /// All that a schema says of one value: itself, and what it refers to.
    fn each<'b>(&self, schema: &'b Value, found: &mut Vec<&'b Value>)
    where
        'a: 'b,
    {
        found.push(schema);
        let reference = schema["$ref"].as_str();
        if let Some(name) = reference.and_then(|it| it.strip_prefix(PLACE)) {
            self.each(&self.schemas[name], found);
        }
        for choice in ["anyOf", "oneOf", "allOf"] {
            for schema in schema[choice].as_array().into_iter().flatten() {
                self.each(schema, found);
            }
        }
    }

    /// What is kept of a value that is as one of these schemas says.
    fn kept(&self, schemas: &[&Value], value: Value) -> Option<Value> {
        let mut all = Vec::new();
        for schema in schemas {
            self.each(schema, &mut all);
        }
        if value.is_null() {
            return (!all.is_empty()).then_some(value);
        }
        if all.iter().any(|it| it["writeOnly"] == true) {
            return Some(REMOVED.into());
        }
        match value {
            Value::Object(members) => {
                let members = members.into_iter().filter_map(|(name, value)| {
                    let of: Vec<&Value> = all.iter().filter_map(|it| member(it, &name)).collect();
                    let kept = self.kept(&of, value).filter(|_| !of.is_empty());
                    kept.map(|kept| (name, kept))
                });
                let members: Map<String, Value> = members.collect();
                (!members.is_empty()).then(|| members.into())
            }
            Value::Array(items) => {
                let of: Vec<&Value> = all
                    .iter()
                    .map(|it| &it["items"])
                    .filter(|it| it.is_object())
                    .collect();
                let items = items.into_iter().filter_map(|item| self.kept(&of, item));
                (!of.is_empty()).then(|| items.collect())
            }
            Value::String(_) => all.iter().any(|it| is_text(it, &value)).then_some(value),
            Value::Number(_) => is_one_of(&all, &["number", "integer"]).then_some(value),
            Value::Bool(_) => is_one_of(&all, &["boolean"]).then_some(value),
            Value::Null => None,
        }
    }
}

/// The schema of a member.
fn member<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let others = || schema.get("additionalProperties");
    let named = schema["properties"].get(name).or_else(others);
    named.filter(|it| it.is_object())
}

fn has_type(schema: &Value, kind: &str) -> bool {
    let kinds = &schema["type"];
    kinds == kind
        || kinds
            .as_array()
            .is_some_and(|all| all.iter().any(|it| it == kind))
}

fn is_one_of(all: &[&Value], kinds: &[&str]) -> bool {
    all.iter()
        .any(|schema| kinds.iter().any(|kind| has_type(schema, kind)))
}

/// A text that may stand there: where there are words to choose from, one of these.
fn is_text(schema: &Value, value: &Value) -> bool {
    if let Some(word) = schema.get("const") {
        return word == value;
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.contains(value);
    }
    has_type(schema, "string") && schema.get("oneOf").is_none()
}

#[cfg(test)]
mod test {
    use super::*;
    use serde_json::json;

    fn document() -> Value {
        let secret = json!({ "type": "string", "writeOnly": true });
        let chap = json!({ "type": "object", "properties": {
            "user": { "type": "string" }, "secret": { "$ref": "#/components/schemas/Secret" },
        } });
        let host = json!({ "type": "object", "properties": {
            "name": { "type": "string" },
            "role": { "enum": ["admin"] },
            "iqn": { "type": "array", "items": { "type": "string" } },
            "chap": { "anyOf": [{ "$ref": "#/components/schemas/Chap" }, { "type": "null" }] },
        } });
        let body = json!({ "content": { "application/json": { "schema": host } } });
        let parameters = json!([{ "in": "query", "name": "force" }]);
        json!({
            "components": { "schemas": { "Secret": secret, "Chap": chap } },
            "paths": { "/hosts": { "post": { "requestBody": body, "parameters": parameters } } },
        })
    }

    #[test]
    fn members_that_have_a_place_are_kept_and_secrets_and_all_others_are_not() {
        let document = document();
        let known = Known::of(&document, "POST", "/hosts");
        let kept = |body: Value| known.asked(body);
        let host = json!({ "name": "h", "role": "admin", "iqn": ["i"], "chap": null });
        assert_eq!(kept(host.clone()), host);
        let chap = json!({ "chap": { "user": "u", "secret": "s3cret" } });
        let removed = json!({ "chap": { "user": "u", "secret": "(removed)" } });
        assert_eq!(kept(chap), removed);
        for wrong in [
            json!({ "chap": { "pass": "s3cret", "key": "s3cret" } }),
            json!({ "chap": ["u", "s3cret"] }),
            json!({ "chap": "s3cret" }),
            json!({ "role": "s3cret", "name": ["s3cret"], "iqn": { "s3cret": "s3cret" } }),
            json!(["s3cret"]),
            json!("s3cret"),
        ] {
            let text = kept(wrong.clone()).to_string();
            assert!(!text.contains("s3cret"), "{wrong}: {text}");
        }
        let nowhere = Known::of(&document, "POST", "/nowhere");
        assert_eq!(nowhere.asked(json!({ "name": "s3cret" })), Value::Null);
    }

    #[test]
    fn of_parameters_only_those_are_kept_that_the_operation_has() {
        let document = document();
        let known = Known::of(&document, "POST", "/hosts");
        let path = |text: &str| known.path(&text.parse().unwrap());
        assert_eq!(path("/hosts?force=true"), "/hosts?force=true");
        assert_eq!(path("/hosts?pw=s3cret&force"), "/hosts?(unknown)&force");
        assert_eq!(path("/hosts?s3cret"), "/hosts?(unknown)");
        assert_eq!(path("/hosts"), "/hosts");
    }
}
