//! The storage fields in JSON: members of the object that they belong to, one for each field that
//! was given.

use super::field::StorageField;
use super::{FIELDS, Storage};
use crate::name::did_you_mean;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// The field of this name.
fn field(name: &str) -> Option<&'static dyn StorageField> {
    FIELDS.into_iter().find(|field| field.name() == name)
}

/// The value that was given of each field, by its name: of all that can be read as such.
type GivenValues = BTreeMap<&'static str, Value>;

/// Who reads members that no field has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    /// Nobody: they are a mistake.
    Refused,
    /// A program that is older than the one that answers.
    Ignored,
}

struct Members(Unknown);

impl<'de> Visitor<'de> for Members {
    type Value = GivenValues;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the storage fields of a LUN")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<GivenValues, M::Error> {
        let mut given = GivenValues::new();
        while let Some(name) = members.next_key::<String>()? {
            let value: Value = members.next_value()?;
            match field(&name) {
                Some(field) => drop(given.insert(field.name(), value)),
                None if self.0 == Unknown::Ignored => {}
                None => {
                    let guess = did_you_mean(&name, FIELDS.iter().map(|field| field.name()));
                    return Err(M::Error::custom(format!(
                        "unknown field `{name}` of a LUN{guess}"
                    )));
                }
            }
        }
        Ok(given)
    }
}

fn read<'de, D: Deserializer<'de>>(from: D, unknown: Unknown) -> Result<Storage, D::Error> {
    let mut storage = Storage::default();
    for (name, value) in from.deserialize_map(Members(unknown))? {
        let Some(field) = field(name) else { continue };
        let taken = field.read_json(&value, &mut storage);
        taken.map_err(|why| D::Error::custom(format!("{name}: {why}")))?;
    }
    Ok(storage)
}

impl Serialize for Storage {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut members = to.serialize_map(None)?;
        for field in FIELDS {
            if let Some(value) = field.to_json(self) {
                members.serialize_entry(field.name(), &value)?;
            }
        }
        members.end()
    }
}

impl<'de> Deserialize<'de> for Storage {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        read(from, Unknown::Refused)
    }
}

/// Reads the fields out of an answer that has other members, some of a later version perhaps.
///
/// # Errors
/// What a field of ours says cannot be read.
pub(crate) fn read_among_others<'de, D: Deserializer<'de>>(from: D) -> Result<Storage, D::Error> {
    read(from, Unknown::Ignored)
}

/// What of the fields shall change, as a request says it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StoragePatch(GivenValues);

impl StoragePatch {
    /// What is wanted then of a LUN that is `known`.
    #[must_use]
    pub fn over(&self, known: &Storage) -> Storage {
        let mut wanted = Storage::default();
        for (name, value) in &self.0 {
            let field = field(name).expect("read as a field");
            let patched = field.patch(value, known, &mut wanted);
            patched.expect("checked when it was read");
        }
        wanted
    }
}

impl<'de> Deserialize<'de> for StoragePatch {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let given = from.deserialize_map(Members(Unknown::Refused))?;
        for (name, value) in &given {
            let Some(field) = field(name) else { continue };
            let nothing = Storage::default();
            let patched = field.patch(value, &nothing, &mut Storage::default());
            patched.map_err(|why| D::Error::custom(format!("{name}: {why}")))?;
        }
        Ok(Self(given))
    }
}
