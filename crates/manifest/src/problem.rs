//! A failure as the API reports it: RFC 9457 "Problem Details for HTTP APIs", with code, cause and
//! next step.

use crate::code::{Code, Exit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;

/// One rule that one key of one object breaks.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Fault {
    /// The kind of the object: `lun`, `target`, `host` or `grant`.
    pub section: String,
    /// The object's name; for a grant `host:target:lun`.
    pub object: String,
    /// The key; empty where the whole object is meant.
    pub key: String,
    /// The rule.
    pub message: String,
}

impl Fault {
    /// A fault of `object`.
    #[must_use]
    pub fn new(section: &str, object: &str, key: &str, message: impl Into<String>) -> Self {
        Self {
            section: section.to_owned(),
            object: object.to_owned(),
            key: key.to_owned(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\"", self.section, self.object)?;
        if !self.key.is_empty() {
            write!(f, ", {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// A member of a request's body that is wrong.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct FieldFault {
    /// Which, from the top of the body, such as `size` or `lun[2].limit.iops`; empty: all of it.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

/// Why a request was not done. One pointer wide, because it is the error of most functions.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(transparent)]
pub struct Problem(Box<Details>);

impl Deref for Problem {
    type Target = Details;
    fn deref(&self) -> &Details {
        &self.0
    }
}

/// The members of a problem document.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Details {
    /// A reference that identifies the kind of problem.
    #[serde(rename = "type")]
    pub kind: String,
    /// What happened, in a few words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened this time: names, paths, what the system said.
    pub detail: String,
    /// The catalogue's code.
    pub code: Code,
    /// Why such a thing happens.
    pub cause: String,
    /// The next step for the administrator; may be empty.
    pub hint: String,
    /// Where more is said of the code: a reference that leads to the daemon's own page.
    #[serde(default)]
    pub doc: String,
    /// Which members of the request's body are wrong, where the body is the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldFault>,
    /// Where several rules are broken: all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// What would be hit, one line each, where a safety check refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hits: Vec<String>,
    /// What would be lost, one line each, where a safety check refused for that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<String>,
    /// What somebody types to have that lost: the name of what loses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
}

impl Problem {
    /// A problem of kind `code`; `detail` says what happened this time.
    #[must_use]
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let entry = code.entry();
        Self(Box::new(Details {
            kind: format!("urn:causeway:error:{code}"),
            title: entry.title.to_owned(),
            status: entry.status,
            detail: detail.into(),
            code,
            cause: entry.cause.to_owned(),
            hint: entry.next_step.to_owned(),
            doc: format!("/api/v1/#{code}"),
            fields: Vec::new(),
            faults: Vec::new(),
            hits: Vec::new(),
            losses: Vec::new(),
            confirm: None,
        }))
    }

    /// With a next step that fits better than the catalogue's.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = hint.into();
        self
    }

    /// With the faults that were found.
    #[must_use]
    pub fn faults(mut self, faults: Vec<Fault>) -> Self {
        self.0.faults = faults;
        self
    }

    /// With the members of the body that are wrong.
    #[must_use]
    pub fn fields(mut self, fields: Vec<FieldFault>) -> Self {
        self.0.fields = fields;
        self
    }

    /// With what would be hit.
    #[must_use]
    pub fn hits(mut self, hits: Vec<String>) -> Self {
        self.0.hits = hits;
        self
    }

    /// With what would be lost, and what is typed to have it lost.
    #[must_use]
    pub fn confirm(mut self, typed: &str, losses: Vec<String>) -> Self {
        self.0.confirm = Some(typed.to_owned());
        self.0.losses = losses;
        self
    }

    /// Nothing of that kind has this name.
    #[must_use]
    pub fn not_found(section: &str, name: &str) -> Self {
        Self::new(Code::NotFound, format!("there is no {section} \"{name}\""))
            .hint(format!("`causeway {section} ls` shows what there is"))
    }

    /// What the command line exits with.
    #[must_use]
    pub fn exit(&self) -> Exit {
        self.code.entry().exit
    }
}

/// As the command line prints it: code and cause first, then the next step.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.code, self.detail)?;
        for fault in &self.faults {
            write!(f, "\n  {fault}")?;
        }
        for hit in &self.hits {
            write!(f, "\n  {hit}")?;
        }
        write!(f, "\nhelp: {}", self.hint)?;
        write!(f, "\nmore: causeway explain {}", self.code)
    }
}

impl std::error::Error for Problem {}
