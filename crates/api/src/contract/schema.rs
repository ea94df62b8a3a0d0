//! Whether a document is as a schema says: the part of JSON Schema 2020-12 that the API's document
//! uses. A keyword that is not known here fails, so that nothing is passed over.
//!
//! Members that no schema names are mistakes here, although clients must ignore them.

#![cfg(test)]

use serde_json::{Map, Value};

/// Keywords that say nothing of what may stand there.
const SILENT: [&str; 8] = [
    "contentMediaType",
    "description",
    "title",
    "default",
    "examples",
    "format",
    "writeOnly",
    "required",
];

/// Holds `value` against `schema`; `all`: what references mean; `at`: where it stands.
pub(super) fn check(all: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let Value::Object(schema) = schema else {
        return if *schema == Value::Bool(true) {
            Ok(())
        } else {
            Err(format!("{at}: nothing may stand here, and {value} does"))
        };
    };
    for (keyword, of) in schema {
        let good = match keyword.as_str() {
            "$ref" => {
                let name = of.as_str().unwrap_or_default();
                let name = name.trim_start_matches("#/components/schemas/");
                check(all, &all[name], value, at)?;
                true
            }
            "type" => of.as_array().map_or_else(
                || is_a(of, value),
                |kinds| kinds.iter().any(|kind| is_a(kind, value)),
            ),
            "const" => of == value,
            "enum" => of.as_array().is_some_and(|values| values.contains(value)),
            "anyOf" => fitting(all, of, value, at) > 0,
            "oneOf" => fitting(all, of, value, at) == 1,
            "minimum" => at_least(value, of),
            "maximum" => at_least(of, value),
            "minItems" => value
                .as_array()
                .is_none_or(|it| it.len() as u64 >= number(of)),
            "maxItems" => value
                .as_array()
                .is_none_or(|it| it.len() as u64 <= number(of)),
            "items" => each(all, of, value, at)?,
            "prefixItems" => {
                let parts = of.as_array().into_iter().flatten();
                for (part, item) in parts.zip(value.as_array().into_iter().flatten()) {
                    check(all, part, item, at)?;
                }
                true
            }
            "properties" | "additionalProperties" => true,
            keyword => SILENT.contains(&keyword),
        };
        if !good {
            return Err(format!("{at}: {value} breaks {keyword} {of}"));
        }
    }
    let members = value.as_object();
    members.map_or(Ok(()), |members| object(all, schema, members, at))
}

fn number(of: &Value) -> u64 {
    of.as_u64().expect("a number that is not negative")
}

fn at_least(greater: &Value, less: &Value) -> bool {
    match (greater.as_f64(), less.as_f64()) {
        (Some(greater), Some(less)) => greater >= less,
        (_, _) => true,
    }
}

fn fitting(all: &Value, choices: &Value, value: &Value, at: &str) -> usize {
    let choices = choices.as_array().into_iter().flatten();
    choices
        .filter(|choice| check(all, choice, value, at).is_ok())
        .count()
}

fn each(all: &Value, schema: &Value, value: &Value, at: &str) -> Result<bool, String> {
    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
        check(all, schema, item, &format!("{at}/{number}"))?;
    }
    Ok(true)
}

fn is_a(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap_or_default() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

fn object(
    all: &Value,
    schema: &Map<String, Value>,
    members: &Map<String, Value>,
    at: &str,
) -> Result<(), String> {
    for name in schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let name = name.as_str().unwrap_or_default();
        if !members.contains_key(name) {
            return Err(format!("{at}/{name} is missing"));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let others = schema.get("additionalProperties");
    for (name, value) in members {
        let place = format!("{at}/{name}");
        match (properties.and_then(|all| all.get(name)), others) {
            (Some(of), _) | (None, Some(of)) => check(all, of, value, &place)?,
            // A reference beside it says what it may have.
            (None, None) if properties.is_none() || schema.contains_key("$ref") => {}
            (None, None) => return Err(format!("{place} is not in the document")),
        }
    }
    Ok(())
}

#[test]
fn what_is_wrong_is_found() {
    use serde_json::json;
    let all = json!({ "B": { "type": "object", "properties": { "n": { "type": "integer" } } } });
    let schema = json!({
        "type": "object",
        "properties": { "a": { "enum": ["x"] }, "b": { "$ref": "#/components/schemas/B" } },
        "required": ["a"],
    });
    let is_good = |value: &Value| check(&all, &schema, value, "").is_ok();
    assert!(is_good(&json!({ "a": "x", "b": { "n": 1 } })));
    for wrong in [
        json!({}),
        json!({ "a": "y" }),
        json!({ "a": "x", "c": 1 }),
        json!({ "a": "x", "b": { "n": "1" } }),
        json!({ "a": "x", "b": { "m": 1 } }),
        json!([]),
    ] {
        assert!(!is_good(&wrong), "{wrong}");
    }
    let unknown = json!({ "pattern": "a" });
    assert!(check(&all, &unknown, &json!("a"), "").is_err());
}
