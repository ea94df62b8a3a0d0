//! What an entry says: pure.

use axum::http::Uri;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use units::Now;

/// Requests about accounts have passwords: of these only such members are kept.
const OF_ACCOUNTS: [&str; 6] = ["name", "user", "role", "enabled", "must_change", "days"];

/// Documents that are longer are not kept, but for how long they are.
const BYTES_MAX: usize = 32 << 10;

/// Refused logins that are entered in a minute.
const FEW: u64 = 60;

const MINUTE_NANOS: u64 = 60_000_000_000;

/// What was asked for at a path.
pub(super) fn asked(path: &str, document: Value) -> Value {
    let below = path.strip_prefix("/api/v1/").unwrap_or(path);
    let noun = below.split('/').next().unwrap_or_default();
    if ["login", "logout", "me", "users", "tokens"].contains(&noun) {
        let Value::Object(members) = document else {
            return Value::Null;
        };
        let kept = members.into_iter();
        let kept: Map<String, Value> = kept
            .filter(|(name, value)| OF_ACCOUNTS.contains(&name.as_str()) && !value.is_object())
            .collect();
        return if kept.is_empty() {
            Value::Null
        } else {
            Value::Object(kept)
        };
    }
    short(document)
}

/// A document that is not too long.
fn short(document: Value) -> Value {
    let bytes = document.to_string().len();
    if bytes > BYTES_MAX {
        return json!({ "omitted_bytes": bytes });
    }
    document
}

/// Path and parameters; what is no API path is never so long.
pub(super) fn path(uri: &Uri) -> String {
    let whole = uri.path_and_query().map_or("", |it| it.as_str());
    whole.chars().take(1_024).collect()
}

/// What there is after a change of one object.
pub(super) fn result(seen: Value) -> Value {
    short(seen)
}

/// What there was before a change of several objects and is after it: those that its steps name,
/// of `all` objects then and now; and the steps.
pub(super) fn several(answer: &Value, all: [&Value; 2]) -> [Value; 2] {
    let Some(steps) = answer["actions"].as_array() else {
        return [Value::Null, Value::Null];
    };
    let word = |step: &Value, member: &str| step[member].as_str().unwrap_or_default().to_owned();
    let named: BTreeSet<(String, String)> = steps
        .iter()
        .map(|step| (word(step, "section"), word(step, "name")))
        .collect();
    let [before, after] = all.map(|all| short(of_those(all, &named)));
    let words = steps.iter().map(
        |step| json!({ "verb": step["verb"], "section": step["section"], "name": step["name"] }),
    );
    let words = words.collect::<Vec<Value>>();
    let generation = &answer["generation"];
    let whole = json!({ "generation": generation, "actions": words, "objects": after });
    if whole.to_string().len() <= BYTES_MAX {
        return [before, whole];
    }
    let steps = short(json!({ "generation": generation, "actions": words }));
    [before, steps]
}

/// The settings that a change changed, as they were and are.
pub(super) fn of_settings(answer: &Value) -> [Value; 2] {
    let changes = answer["changes"].as_array().map_or(&[][..], Vec::as_slice);
    ["in_force", "in_file"].map(|member| {
        let values = changes.iter().map(|it| {
            let key = it["key"].as_str().unwrap_or_default().to_owned();
            (key, it[member].clone())
        });
        short(Value::Object(values.collect()))
    })
}

/// Of a set of objects those of these kinds and names.
fn of_those(all: &Value, named: &BTreeSet<(String, String)>) -> Value {
    let mut kept = Map::new();
    for (section, objects) in all.as_object().into_iter().flatten() {
        let is_meant = |object: &&Value| {
            let word = |member: &str| object[member].as_str().unwrap_or_default();
            let name = match object["name"].as_str() {
                Some(name) => name.to_owned(),
                None => format!("{}:{}:{}", word("host"), word("target"), word("lun")),
            };
            named.contains(&(section.clone(), name))
        };
        let objects = objects.as_array().into_iter().flatten();
        let objects: Vec<Value> = objects.filter(is_meant).cloned().collect();
        if !objects.is_empty() {
            kept.insert(section.clone(), objects.into());
        }
    }
    if kept.is_empty() {
        Value::Null
    } else {
        Value::Object(kept)
    }
}

/// The code of a problem document.
pub(super) fn error_code(answer: &Value) -> Option<String> {
    answer["code"].as_str().map(str::to_owned)
}

/// Who tried to log in. Passwords get into the field for the name: a name that nobody has is not
/// kept.
pub(super) fn who_tried(asked: &Value, is_known: impl Fn(&str) -> bool) -> String {
    let name = asked["user"].as_str().unwrap_or_default();
    let known = Some(name).filter(|name| is_known(name));
    known.unwrap_or("(unknown)").to_owned()
}

/// How many of something were entered in this minute, and how many were not.
#[derive(Default, Debug)]
pub(super) struct Few {
    minute: u64,
    entered: u64,
    left_out: u64,
}

impl Few {
    /// One more: how many were left out before it, or `None` where it is to be left out itself.
    pub(super) fn take(&mut self, now: Now) -> Option<u64> {
        let minute = now.0 / MINUTE_NANOS;
        if minute != self.minute {
            (self.minute, self.entered) = (minute, 0);
        }
        if self.entered == FEW {
            self.left_out += 1;
            return None;
        }
        self.entered += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}
