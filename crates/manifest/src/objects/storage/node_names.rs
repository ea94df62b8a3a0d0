//! Names of nodes, as a value that is copied.

use crate::name::{NAME_CHARACTERS_MAX, check_object_name};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Copies of a LUN that has some.
pub(super) const COPIES: usize = 2;

/// More than any list has that is of use: who writes more learns the rule about [`COPIES`].
const NAMES_MAX: usize = 4;

/// Bytes of names of nodes, which are ASCII.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Name {
    length: u8,
    bytes: [u8; NAME_CHARACTERS_MAX],
}

impl Name {
    const NONE: Self = Self {
        length: 0,
        bytes: [0; NAME_CHARACTERS_MAX],
    };

    fn of(text: &str) -> Result<Self, String> {
        check_object_name(text)?;
        let mut name = Self::NONE;
        let (length, bytes) = (text.len(), text.as_bytes());
        name.length = u8::try_from(length).map_err(|error| error.to_string())?;
        name.bytes[..length].copy_from_slice(bytes);
        Ok(name)
    }

    fn text(&self) -> &str {
        let bytes = &self.bytes[..usize::from(self.length)];
        std::str::from_utf8(bytes).expect("made of a text")
    }
}

/// Some nodes of a cluster, by their names, in the order in which they were named.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NodeNames {
    count: u8,
    names: [Name; NAMES_MAX],
}

impl NodeNames {
    /// Nodes of these names.
    ///
    /// # Errors
    /// The rule that is broken: one that is no name, or stands twice, or too many.
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut out = Self {
            count: 0,
            names: [Name::NONE; NAMES_MAX],
        };
        for text in texts {
            let name = Name::of(text)?;
            if out.has(text) {
                return Err(format!("node \"{text}\" stands twice"));
            }
            let Some(place) = out.names.get_mut(usize::from(out.count)) else {
                return Err(format!("a LUN has copies on {COPIES} nodes, or none"));
            };
            *place = name;
            out.count += 1;
        }
        Ok(out)
    }

    /// Their names.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names[..usize::from(self.count)].iter().map(Name::text)
    }

    /// One of them has this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.iter().any(|it| it == name)
    }
}

impl fmt::Display for NodeNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().collect();
        f.write_str(&names.join(", "))
    }
}

impl fmt::Debug for NodeNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for NodeNames {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for NodeNames {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        Self::of(texts.iter().map(String::as_str)).map_err(D::Error::custom)
    }
}

impl JsonSchema for NodeNames {
    fn schema_name() -> Cow<'static, str> {
        "NodeNames".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = generator.subschema_for::<Vec<String>>();
        schema.insert(
            "description".to_owned(),
            "Nodes of the cluster, by their names, each once.".into(),
        );
        schema
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn names_come_back_as_they_were_and_what_is_none_is_refused() {
        let longest = "n".repeat(NAME_CHARACTERS_MAX);
        let names = NodeNames::of(["a", &longest]).unwrap();
        assert_eq!(names.iter().collect::<Vec<_>>(), ["a", &*longest]);
        let json = serde_json::to_value(names).unwrap();
        assert_eq!(json, serde_json::json!(["a", longest]));
        assert_eq!(serde_json::from_value::<NodeNames>(json).unwrap(), names);
        for (bad, why) in [
            (vec!["a", "a"], "stands twice"),
            (vec!["a", ""], "1 to 63"),
            (vec!["a", "no name"], "1 to 63"),
            (vec!["a", "b", "c", "d", "e"], "2 nodes"),
        ] {
            let said = NodeNames::of(bad.iter().copied()).unwrap_err();
            assert!(said.contains(why), "{bad:?}: {said}");
            assert!(serde_json::from_value::<NodeNames>(serde_json::json!(bad)).is_err());
        }
    }
}
