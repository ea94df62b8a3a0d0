//! The schemas of all types in one name space, although what is written of a type and what is read
//! may differ.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Where references point.
const PLACE: &str = "#/components/schemas/";

/// What the name of a type gets that is read otherwise than it is written.
const WANTED: &str = "Wanted";

/// References from what is read, until it is known which of them are of their own.
const READ_PLACE: &str = "#/components/read/";

/// The schemas of what is answered and of what is read.
pub(crate) struct Schemas {
    answered: SchemaGenerator,
    read: SchemaGenerator,
}

impl Default for Schemas {
    fn default() -> Self {
        let at = |place: &'static str| {
            let path = place.trim_start_matches('#').trim_end_matches('/');
            SchemaSettings::draft2020_12().with(|it| {
                it.definitions_path = path.into();
                it.meta_schema = None;
            })
        };
        Self {
            answered: at(PLACE).for_serialize().into_generator(),
            read: at(READ_PLACE).for_deserialize().into_generator(),
        }
    }
}

impl Schemas {
    /// The schema of a type in an answer.
    pub(crate) fn answered<T: JsonSchema>(&mut self) -> Value {
        self.answered.subschema_for::<T>().to_value()
    }

    /// The schema of a type in a request.
    pub(crate) fn read<T: JsonSchema>(&mut self) -> Value {
        self.read.subschema_for::<T>().to_value()
    }

    /// All of them by name, and what turns references of `read` into ones that hold in the
    /// document.
    pub(super) fn finish(mut self) -> (Map<String, Value>, impl Fn(&mut Value)) {
        let mut all = self.answered.take_definitions(true);
        all.values_mut().for_each(leave_out_null);
        let read = self.read.take_definitions(true);
        let own = differing(&all, &read);
        let turn = move |value: &mut Value| turn(value, &own);
        for (name, mut schema) in read {
            turn(&mut schema);
            // A reference to itself says what it is called now.
            let mut reference = Value::String(format!("{READ_PLACE}{name}"));
            turn_text(&mut reference, &turn);
            let name = reference.as_str().unwrap_or_default();
            let name = name.trim_start_matches(PLACE).to_owned();
            all.entry(name).or_insert(schema);
        }
        (all, turn)
    }
}

/// A member that may be absent from an answer is never null there: it is left out instead.
fn leave_out_null(schema: &mut Value) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let members = schema.get_mut("properties").and_then(Value::as_object_mut);
    let Some(members) = members else {
        return;
    };
    for (name, of) in members {
        if required.iter().all(|it| it != name)
            && let Some(of) = of.as_object_mut()
        {
            without_null(of);
        }
    }
}

fn without_null(of: &mut Map<String, Value>) {
    if let Some(Value::Array(kinds)) = of.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            of.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = of.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            of.remove("anyOf");
            of.extend(only);
        }
    }
}

/// Turns a reference that stands alone.
fn turn_text(reference: &mut Value, turn: &impl Fn(&mut Value)) {
    let mut holder = serde_json::json!({ "$ref": reference.take() });
    turn(&mut holder);
    *reference = holder["$ref"].take();
}

/// Types that are read otherwise than they are answered, or have such parts.
fn differing(answered: &Map<String, Value>, read: &Map<String, Value>) -> BTreeSet<String> {
    let mut own = BTreeSet::new();
    loop {
        let before = own.len();
        for (name, schema) in read {
            let mut turned = schema.clone();
            turn(&mut turned, &own);
            if answered.get(name).is_some_and(|other| *other != turned) {
                own.insert(name.clone());
            }
        }
        if own.len() == before {
            return own;
        }
    }
}

/// Lets references of what is read point into the document; those of `own` to names of their own.
fn turn(value: &mut Value, own: &BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let name = member.as_str().and_then(|it| it.strip_prefix(READ_PLACE));
                if let ("$ref", Some(name)) = (key.as_str(), name) {
                    let suffix = if own.contains(name) { WANTED } else { "" };
                    *member = Value::String(format!("{PLACE}{name}{suffix}"));
                } else {
                    turn(member, own);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| turn(item, own)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
