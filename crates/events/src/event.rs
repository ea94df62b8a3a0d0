//! What happened.

use crate::code::{Code, Severity};
use manifest::time::rfc3339;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use units::WallClock;

/// What something is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Debug)]
#[schemars(rename = "Subject")]
pub struct Object {
    /// `node`, `lun`, `host`, `target`, `pool`, `portal`, `initiator`.
    pub kind: String,
    /// As the objects, `node.toml` or, of an initiator, the host itself has it.
    pub name: String,
}

impl Object {
    /// The object of this kind and name.
    #[must_use]
    pub fn new(kind: &str, name: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// What happens, for whoever reports it.
#[derive(Clone, PartialEq, Debug)]
pub struct Happened {
    /// Which of the things that may happen.
    pub code: Code,
    /// The LUN, session, pool or host that it happened to.
    pub object: Object,
    /// In a sentence.
    pub message: String,
    /// What programs read.
    pub fields: Map<String, Value>,
}

impl Happened {
    /// Without fields.
    #[must_use]
    pub fn new(code: Code, object: Object, message: impl Into<String>) -> Self {
        Self {
            code,
            object,
            message: message.into(),
            fields: Map::new(),
        }
    }

    /// With one more field.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }
}

/// What happened, as it is kept and sent.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Event {
    /// Its place among all events: it rises for ever, and leaves numbers out.
    pub id: u64,
    /// When it was reported.
    pub time: String,
    /// Its name in the catalogue. A file may have some of another version.
    pub code: String,
    /// How bad it is.
    pub severity: Severity,
    /// What it is about.
    pub object: Object,
    /// In a sentence.
    pub message: String,
    /// What programs read.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
}

impl Event {
    pub(crate) fn new(id: u64, at: WallClock, happened: Happened) -> Self {
        let entry = happened.code.entry();
        Self {
            id,
            time: rfc3339(at),
            code: entry.name.to_owned(),
            severity: entry.severity,
            object: happened.object,
            message: happened.message,
            fields: happened.fields,
        }
    }
}
