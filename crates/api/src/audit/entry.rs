//! What an entry says: pure.

use events::Object;
use manifest::plan::Subject;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use units::Now;

/// Documents that are longer are not kept, but for how long they are.
const BYTES_MAX: usize = 32 << 10;

/// The most objects that an entry names.
const OBJECTS_MAX: usize = 100;

/// Refused logins that are entered in a minute.
const FEW: u64 = 60;

const MINUTE_NANOS: u64 = 60_000_000_000;

/// A document that is not too long.
pub(super) fn short(document: Value) -> Value {
    let bytes = document.to_string().len();
    if bytes > BYTES_MAX {
        return json!({ "omitted_bytes": bytes });
    }
    document
}

/// What there was before a change of several objects and is after it, with its steps; `sets`: the
/// objects that it made other ones.
pub(super) fn several(answer: &Value, [before, after]: [Value; 2]) -> [Value; 2] {
    let Some(steps) = answer["actions"].as_array() else {
        return [before, after];
    };
    let words = steps.iter().map(
        |step| json!({ "verb": step["verb"], "section": step["section"], "name": step["name"] }),
    );
    let words = words.collect::<Vec<Value>>();
    let generation = &answer["generation"];
    let whole = json!({ "generation": generation, "actions": words, "objects": short(after) });
    if whole.to_string().len() <= BYTES_MAX {
        return [before, whole];
    }
    [
        before,
        json!({ "generation": generation, "actions": words }),
    ]
}

/// The name of an object of a set.
fn name_of(object: &Value) -> String {
    let word = |member: &str| object[member].as_str().unwrap_or_default();
    match object["name"].as_str() {
        Some(name) => name.to_owned(),
        None => format!("{}:{}:{}", word("host"), word("target"), word("lun")),
    }
}

/// Of sets of objects before and after a change of one those of its kind: that of its name, or,
/// where it has another name before, the only one.
pub(super) fn one_of(sets: [Value; 2], subject: &Subject) -> [Value; 2] {
    let section = subject.section.to_string();
    sets.map(|set| {
        let all = set[&section].as_array().map_or(&[][..], Vec::as_slice);
        let named = all.iter().find(|it| name_of(it) == subject.name);
        named.or_else(|| all.first()).cloned().unwrap_or_default()
    })
}

/// The objects of two sets, each once.
pub(super) fn objects(sets: &[Value; 2]) -> Vec<Object> {
    let of_set = |set: &Value| {
        let mut all = Vec::new();
        for section in ["lun", "target", "host", "grant"] {
            let objects = set[section].as_array().into_iter().flatten();
            all.extend(objects.map(|it| Object::new(section, &name_of(it))));
        }
        all
    };
    let [before, mut all] = sets.each_ref().map(of_set);
    let only_before: Vec<Object> = before.into_iter().filter(|it| !all.contains(it)).collect();
    all.extend(only_before);
    all.truncate(OBJECTS_MAX);
    all
}

/// The settings that a change changed, as they were and are.
pub(super) fn of_settings(answer: &Value) -> [Value; 2] {
    let changes = answer["changes"].as_array().map_or(&[][..], Vec::as_slice);
    ["in_force", "in_file"].map(|member| {
        let values = changes.iter().map(|it| {
            let key = it["key"].as_str().unwrap_or_default().to_owned();
            (key, it[member].clone())
        });
        Value::Object(values.collect())
    })
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

/// So long one of a kind is enough.
const HOUR_NANOS: u64 = 60 * MINUTE_NANOS;

/// So many kinds are known at a time.
const KINDS_MAX: usize = 256;

/// What comes again and again: one an hour of each kind, and [`Few`] a minute of all.
#[derive(Default, Debug)]
pub(super) struct Seldom {
    few: Few,
    /// When each was entered last, and how many were not since.
    kinds: BTreeMap<String, (Now, u64)>,
}

impl Seldom {
    /// One more of a kind: how many were left out before it, or `None` where it is to be left out.
    pub(super) fn take(&mut self, kind: &str, now: Now) -> Option<u64> {
        if let Some((last, left_out)) = self.kinds.get_mut(kind) {
            if now.0 < last.0 + HOUR_NANOS {
                *left_out += 1;
                return None;
            }
        } else if self.kinds.len() >= KINDS_MAX {
            let oldest = self.kinds.iter().min_by_key(|(_, (last, _))| *last);
            let oldest = oldest.map(|(kind, _)| kind.clone());
            oldest.and_then(|kind| self.kinds.remove(&kind));
        }
        let left_out = self.few.take(now)?;
        let of_kind = self.kinds.insert(kind.to_owned(), (now, 0));
        Some(left_out + of_kind.map_or(0, |(_, left_out)| left_out))
    }
}
