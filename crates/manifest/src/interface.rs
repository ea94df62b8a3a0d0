//! The member tables of `docs/interface.md` against the schemas.

#![cfg(test)]

use crate::{facts, journal, orphan, scrub, view};
use markdown::rows;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;

fn interface() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/interface.md");
    std::fs::read_to_string(path).unwrap()
}

/// Schemas of what is answered.
struct Answered {
    schema: Value,
    definitions: Map<String, Value>,
}

impl Answered {
    fn of<T: JsonSchema>() -> Self {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        let mut generator = settings.into_generator();
        let schema = generator.subschema_for::<T>().to_value();
        let definitions = generator.take_definitions(true);
        Self {
            schema,
            definitions,
        }
    }

    /// The members of what a schema speaks of: of itself, of the items of a list, of entries.
    fn members<'a>(&'a self, schema: &'a Value) -> Option<&'a Map<String, Value>> {
        if let Some(path) = schema["$ref"].as_str() {
            return self.members(&self.definitions[path.rsplit('/').next()?]);
        }
        for below in ["items", "additionalProperties"] {
            if schema[below].is_object() {
                return self.members(&schema[below]);
            }
        }
        let choices = schema["anyOf"].as_array().into_iter().flatten();
        let chosen = choices.filter_map(|choice| self.members(choice)).next();
        chosen.or_else(|| schema["properties"].as_object())
    }
}

/// The table behind `heading` has every member of the document, and no other; and, of members that
/// are documents, theirs, but for those of `elsewhere`.
fn is_documented<T: JsonSchema>(heading: &str, elsewhere: &[&str]) {
    let answered = Answered::of::<T>();
    let members = answered.members(&answered.schema).unwrap();
    let rows = rows(&interface(), heading);
    let reported = rows.iter().flat_map(|(first, _)| first);
    let reported: BTreeSet<&String> = reported.collect();
    let known: BTreeSet<&String> = members.keys().collect();
    assert_eq!(reported, known, "{heading}");
    for (first, others) in &rows {
        let documents = first.iter().filter(|it| !elsewhere.contains(&it.as_str()));
        for member in documents {
            for name in answered
                .members(&members[member])
                .into_iter()
                .flat_map(Map::keys)
            {
                assert!(others.contains(name), "{heading}: {member} has {name}");
            }
        }
    }
}

#[test]
fn the_interface_page_has_every_member_and_no_other() {
    is_documented::<view::LunView>("### lun show\n", &["backend"]);
    is_documented::<facts::PoolFacts>("### pool ls, pool show\n", &["journal"]);
    is_documented::<journal::JournalFacts>("The `journal` of a pool:\n", &[]);
    is_documented::<scrub::ScrubFacts>("### scrub\n", &[]);
    is_documented::<facts::SessionFacts>("### session show\n", &[]);
}

#[test]
fn documents_that_are_a_row_of_the_interface_page_have_every_member() {
    let rows = rows(&interface(), "### lun ls --orphans, state ls, state show\n");
    let compare = |row: usize, members: Answered| {
        let known = members.members(&members.schema).unwrap();
        for name in known.keys() {
            assert!(rows[row].1.contains(name), "{:?}: {name}", rows[row].0);
        }
    };
    compare(0, Answered::of::<orphan::Orphan>());
    compare(1, Answered::of::<view::Kept>());
    compare(3, Answered::of::<journal::JournalOutcome>());
}
