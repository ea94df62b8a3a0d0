//! What an alert is about.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What an alert is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Object {
    /// `node`, `lun`, `host`, `pool`, `portal`, `certificate`, `disk` or `file`.
    pub kind: String,
    /// By which people know it.
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

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}
