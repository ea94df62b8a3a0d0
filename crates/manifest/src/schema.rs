//! JSON Schema of what is read and written by hand: sizes, secrets, codes and the storage fields.
//! All other documents derive theirs.
//!
//! **Contract.** A generator makes schemas of what is written or of what is read
//! ([`schemars::generate::Contract`]); they differ where more is understood than is said.

use crate::code::{CATALOGUE, Code};
use crate::objects::{FIELDS, Storage, StorageField, StoragePatch};
use crate::secret::Secret;
use crate::size::{SIZE_BYTES_MAX, Size};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let bytes = json!({ "type": "integer", "format": "uint64", "minimum": 0, "maximum": SIZE_BYTES_MAX });
        if generator.contract().is_serialize() {
            let mut schema = json_schema!({ "description": "Bytes." });
            schema
                .ensure_object()
                .extend(bytes.as_object().cloned().unwrap_or_default());
            return schema;
        }
        json_schema!({
            "description": "A number of bytes, or text: K, M, G, T, P are binary, KB, MB, GB, TB, PB decimal.",
            "anyOf": [bytes, { "type": "string", "examples": ["10G", "10GiB", "10GB"] }],
        })
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A secret. No answer ever has one.",
            "type": "string",
            "format": "password",
            "writeOnly": true,
        })
    }
}

impl JsonSchema for Code {
    fn schema_name() -> Cow<'static, str> {
        "Code".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let codes = CATALOGUE.iter().map(|entry| {
            json!({
                "const": entry.code.to_string(),
                "title": entry.title,
                "description": format!("{} {}", entry.cause, entry.next_step),
            })
        });
        json_schema!({
            "description": "A code of the catalogue of errors; it never changes its meaning.",
            "type": "string",
            "oneOf": codes.collect::<Vec<Value>>(),
        })
    }
}

/// An object with a member for each storage field, each with what `of` makes of it.
fn fields(mut of: impl FnMut(&dyn StorageField) -> Schema) -> Schema {
    let mut members = Map::new();
    for field in FIELDS {
        let mut schema = of(field);
        let meaning = field.documented().meaning;
        schema.insert("description".to_owned(), meaning.into());
        members.insert(field.name().to_owned(), schema.to_value());
    }
    json_schema!({
        "description": "The storage fields of a LUN.",
        "type": "object",
        "properties": members,
    })
}

impl JsonSchema for Storage {
    fn schema_name() -> Cow<'static, str> {
        "Storage".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        fields(|field| field.schema(generator))
    }
}

impl JsonSchema for StoragePatch {
    fn schema_name() -> Cow<'static, str> {
        "StoragePatch".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        fields(|field| field.patch_schema(generator))
    }
}

#[cfg(test)]
mod test {
    use crate::{activity, facts, journal, objects, orphan, problem, scrub, view};
    use schemars::generate::SchemaSettings;
    use schemars::{JsonSchema, SchemaGenerator};
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Map, Value, json};

    /// A document as its schema has it: with every member, or only with those that are required.
    struct Example {
        definitions: Map<String, Value>,
        whole: bool,
    }

    impl Example {
        fn of(&self, schema: &Value) -> Value {
            if let Some(path) = schema["$ref"].as_str() {
                let name = path.rsplit('/').next().unwrap();
                return self.of(&self.definitions[name]);
            }
            if let Some(value) = schema.get("const") {
                return value.clone();
            }
            if let Some(values) = schema["enum"].as_array() {
                return values[0].clone();
            }
            for choice in ["anyOf", "oneOf"] {
                let some = |it: &&Value| it["type"] != "null";
                if let Some(choices) = schema[choice].as_array() {
                    return self.of(choices.iter().find(some).unwrap());
                }
            }
            let kinds = &schema["type"];
            let kind = kinds.get(0).unwrap_or(kinds);
            match kind.as_str().unwrap_or_default() {
                "object" => self.object(schema),
                "array" => match schema["prefixItems"].as_array() {
                    Some(parts) => parts.iter().map(|part| self.of(part)).collect(),
                    None => json!([self.of(&schema["items"])]),
                },
                "string" => json!("x"),
                "integer" => json!(1),
                "boolean" => json!(true),
                other => panic!("nothing is known of {other}: {schema}"),
            }
        }

        fn object(&self, schema: &Value) -> Value {
            let mut out = Map::new();
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            for (name, of) in schema["properties"].as_object().into_iter().flatten() {
                if self.whole || required.contains(&json!(name)) {
                    out.insert(name.clone(), self.of(of));
                }
            }
            if schema["additionalProperties"].is_object() {
                out.insert("a".to_owned(), self.of(&schema["additionalProperties"]));
            }
            out.into()
        }
    }

    fn generator() -> SchemaGenerator {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        settings.into_generator()
    }

    fn is_written_as_its_schema_says<T: JsonSchema + Serialize + DeserializeOwned>() {
        for whole in [true, false] {
            let mut generator = generator();
            let schema = generator.subschema_for::<T>().to_value();
            let definitions = generator.take_definitions(true);
            let said = Example { definitions, whole }.of(&schema);
            let name = T::schema_name();
            let read = serde_json::from_value::<T>(said.clone());
            let read = read.unwrap_or_else(|error| panic!("{name}: {error}: {said}"));
            let written = serde_json::to_value(&read).unwrap();
            assert_eq!(written, said, "{name}, every member: {whole}");
        }
    }

    #[test]
    fn every_member_of_a_schema_is_written_and_no_other() {
        is_written_as_its_schema_says::<view::StatusView>();
        is_written_as_its_schema_says::<view::LunView>();
        is_written_as_its_schema_says::<view::TargetView>();
        is_written_as_its_schema_says::<view::HostView>();
        is_written_as_its_schema_says::<view::GrantView>();
        is_written_as_its_schema_says::<view::Outcome>();
        is_written_as_its_schema_says::<view::Kept>();
        is_written_as_its_schema_says::<facts::PoolFacts>();
        is_written_as_its_schema_says::<facts::SessionFacts>();
        is_written_as_its_schema_says::<facts::RefusalFacts>();
        is_written_as_its_schema_says::<journal::JournalOutcome>();
        is_written_as_its_schema_says::<scrub::ScrubFacts>();
        is_written_as_its_schema_says::<activity::ActivityView>();
        is_written_as_its_schema_says::<activity::OverviewView>();
        is_written_as_its_schema_says::<orphan::Orphan>();
        is_written_as_its_schema_says::<problem::Problem>();
        is_written_as_its_schema_says::<objects::ObjectSet>();
    }

    #[test]
    fn every_type_and_every_member_is_described() {
        let mut generator = generator();
        generator.subschema_for::<view::StatusView>();
        generator.subschema_for::<view::LunView>();
        generator.subschema_for::<view::Outcome>();
        generator.subschema_for::<facts::SessionFacts>();
        generator.subschema_for::<activity::ActivityView>();
        generator.subschema_for::<scrub::ScrubFacts>();
        generator.subschema_for::<objects::ObjectSet>();
        generator.subschema_for::<objects::LunPatch>();
        generator.subschema_for::<objects::TargetPatch>();
        generator.subschema_for::<objects::HostPatch>();
        for (name, schema) in generator.definitions() {
            assert!(schema["description"].is_string(), "{name}");
            for (member, of) in schema["properties"].as_object().into_iter().flatten() {
                assert!(of["description"].is_string(), "{name}.{member}");
            }
        }
    }
}
