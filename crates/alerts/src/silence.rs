//! Silences: alerts that nobody is to be sent for a time.

use crate::alert::Alert;
use crate::settings::find;
use crate::time::{Moment, later, moment};
use manifest::code::Code;
use manifest::problem::{FieldFault, Problem};
use manifest::time::{parse, rfc3339};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::WallClock;

/// The longest silence, in hours: a year.
const HOURS_MAX: u64 = 8_784;

/// The longest note, in bytes.
pub(crate) const NOTE_BYTES_MAX: usize = 1_000;

/// Alerts that nobody is to be sent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Silence {
    /// By which it is ended.
    pub id: u64,
    /// Only those of this rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Only those of objects of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only those of the object of this name; with `*` at its end, of all whose names begin so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// When it ends.
    #[serde(with = "moment")]
    pub until: WallClock,
    /// Who made it.
    pub by: String,
    /// Why nobody wants to be sent them, for others.
    pub note: String,
    /// When it was made.
    #[serde(with = "moment")]
    pub created: WallClock,
}

/// A silence that is wanted. Without rule, kind and object it is for every alert.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct WantedSilence {
    /// Only alerts of this rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Only alerts of objects of this kind, such as `lun`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only alerts of the object of this name; with `*` at its end, of all whose names begin so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// When it ends, as RFC 3339 has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// In how many hours it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hours: Option<u64>,
    /// Why nobody wants to be sent them, for others.
    #[serde(default)]
    pub note: String,
}

/// A silence, as it is shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct SilenceView {
    /// By which it is ended.
    pub id: u64,
    /// Only alerts of this rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Only alerts of objects of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only alerts of the object of this name, or of all whose names begin so (`*` at its end).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// When it ends (RFC 3339).
    pub until: String,
    /// Who made it.
    pub by: String,
    /// Why nobody wants to be sent them, for others.
    pub note: String,
    /// When it was made (RFC 3339).
    pub created: String,
    /// How many alerts it silences now.
    pub silenced: usize,
}

fn wrong(field: &str, message: &str) -> Problem {
    let fault = FieldFault {
        field: field.to_owned(),
        message: message.to_owned(),
    };
    Problem::new(Code::InvalidObjects, format!("{field}: {message}")).fields(vec![fault])
}

/// A note that somebody wrote, as it is kept.
///
/// # Errors
/// It is too long.
pub(crate) fn note(text: &str) -> Result<String, Problem> {
    if text.len() > NOTE_BYTES_MAX {
        return Err(wrong("note", "write 1000 bytes at most"));
    }
    Ok(text.trim().to_owned())
}

impl WantedSilence {
    /// The silence.
    ///
    /// # Errors
    /// There is no such rule, or the end is none.
    pub(crate) fn make(self, id: u64, by: &str, at: Moment) -> Result<Silence, Problem> {
        if let Some(rule) = &self.rule {
            find(rule)?;
        }
        let until = match (&self.until, self.hours) {
            (Some(until), None) => parse(until)
                .ok_or_else(|| wrong("until", "write a time as in 2027-01-31T00:00:00Z, or with an offset: 2027-01-31T00:00:00+02:00"))?,
            (None, Some(hours @ 1..=HOURS_MAX)) => later(at.wall, hours * 3_600),
            (None, Some(_)) => return Err(wrong("hours", "write 1 to 8784")),
            (Some(_), Some(_)) => return Err(wrong("hours", "write either until or hours")),
            (None, None) => return Err(wrong("hours", "write until or hours: every silence ends")),
        };
        if until <= at.wall || until > later(at.wall, HOURS_MAX * 3_600) {
            return Err(wrong("until", "write a time within the next 366 days"));
        }
        let bounded = |name: &str, text: &Option<String>| match text {
            Some(text) if text.is_empty() || text.len() > 300 => {
                Err(wrong(name, "write 1 to 300 bytes, or leave it out"))
            }
            Some(_) | None => Ok(()),
        };
        bounded("kind", &self.kind)?;
        bounded("object", &self.object)?;
        Ok(Silence {
            id,
            rule: self.rule,
            kind: self.kind,
            object: self.object,
            until,
            by: by.to_owned(),
            note: note(&self.note)?,
            created: at.wall,
        })
    }
}

impl Silence {
    /// Whether it is for this alert, while it lasts.
    #[must_use]
    pub fn covers(&self, alert: &Alert) -> bool {
        let fits = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|it| it == is);
        let name = alert.object.name.as_str();
        let named = match self.object.as_deref() {
            None => true,
            Some(object) => match object.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => name == object,
            },
        };
        fits(&self.rule, &alert.rule) && fits(&self.kind, &alert.object.kind) && named
    }

    /// It is for this rule and this object alone.
    #[must_use]
    pub fn is_exactly(&self, alert: &Alert) -> bool {
        self.rule.as_deref() == Some(&*alert.rule)
            && self.kind.as_deref() == Some(&*alert.object.kind)
            && self.object.as_deref() == Some(&*alert.object.name)
    }

    /// As it is shown.
    #[must_use]
    pub fn view(&self, silenced: usize) -> SilenceView {
        SilenceView {
            id: self.id,
            rule: self.rule.clone(),
            kind: self.kind.clone(),
            object: self.object.clone(),
            until: rfc3339(self.until),
            by: self.by.clone(),
            note: self.note.clone(),
            created: rfc3339(self.created),
            silenced,
        }
    }
}
