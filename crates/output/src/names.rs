//! Only the names of what a document has, one a line: what other commands take.

use serde_json::Value;

/// By which an object is named, the first that it has.
const NAMES: [&str; 10] = [
    "name",
    "id",
    "lun",
    "node",
    "generation",
    "code",
    "naa",
    "pool",
    "address",
    "path",
];

/// The names of the objects of a list, of one object, or of those that a change was of; a line
/// each.
pub(super) fn of(document: &Value) -> String {
    let mut out = String::new();
    for name in all(document) {
        out.push_str(&name);
        out.push('\n');
    }
    out
}

fn all(document: &Value) -> Vec<String> {
    if let Some(objects) = document.as_array() {
        return objects.iter().filter_map(name).collect();
    }
    // What a change of objects did.
    if let Some(actions) = document.get("actions") {
        return all(actions);
    }
    match (name(document), document.get("luns")) {
        // What became of LUNs.
        (None, Some(luns)) => all(luns),
        (named, _) => named.into_iter().collect(),
    }
}

fn name(object: &Value) -> Option<String> {
    let found = NAMES.iter().filter_map(|member| object.get(member));
    let text = found.filter_map(|name| match name {
        Value::String(name) => Some(name.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    });
    { text }.next()
}

#[cfg(test)]
mod test {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_what_other_commands_take() {
        let list = json!([{"id": 3, "cause": "x"}, {"name": "b", "id": 4}, {"name": null, "naa": "6f"}, {}]);
        assert_eq!(of(&list), "3\nb\n6f\n");
        assert_eq!(
            of(&json!({"name": "vm01", "change": {"actions": []}})),
            "vm01\n"
        );
        let outcome = json!({"changed": true, "generation": 4, "actions": [{"name": "h:t:l"}, {"name": "h"}]});
        assert_eq!(of(&outcome), "h:t:l\nh\n");
        let status = json!({"generation": 4, "node": "san-a"});
        assert_eq!(of(&json!([status])), "san-a\n");
        assert_eq!(of(&Value::Null), "");
        let drained =
            json!({"luns": [{"name": "vm01", "naa": "6f", "to": "san-b"}, {"name": "b"}]});
        assert_eq!(of(&drained), "vm01\nb\n");
        assert_eq!(of(&json!({"name": "h", "luns": [{"name": "b"}]})), "h\n");
    }
}
