//! An alert and what happened to it.

use crate::object::Object;
use crate::rule::Rule;
use crate::severity::Severity;
use crate::time::{moment, moment_or_none};
use manifest::time::rfc3339;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use units::WallClock;

/// The most steps of one alert that are kept: the first, and the last ones.
const STEPS_MAX: usize = 50;

/// How an alert is.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Debug,
)]
#[serde(rename_all = "snake_case")]
pub enum AlertState {
    /// Nobody has said anything about it.
    Firing,
    /// Somebody takes care of it.
    Acknowledged,
    /// Nobody is sent it for now.
    Silenced,
    /// It is over.
    Resolved,
}

impl fmt::Display for AlertState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Firing => "firing",
            Self::Acknowledged => "acknowledged",
            Self::Silenced => "silenced",
            Self::Resolved => "resolved",
        })
    }
}

/// What happened to an alert.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Its condition had lasted long enough.
    Fired,
    /// It became worse.
    Raised,
    /// It became less bad.
    Lowered,
    /// Somebody takes care of it.
    Acknowledged,
    /// Nobody does any more.
    Unacknowledged,
    /// It is over.
    Resolved,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fired => "fired",
            Self::Raised => "raised",
            Self::Lowered => "lowered",
            Self::Acknowledged => "acknowledged",
            Self::Unacknowledged => "unacknowledged",
            Self::Resolved => "resolved",
        })
    }
}

/// A step of an alert's history.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Step {
    /// When (RFC 3339).
    pub at: String,
    /// What happened.
    pub what: What,
    /// Who did it, where somebody did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Why, or what they wrote.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Who takes care of an alert.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Acknowledged {
    /// The user or token.
    pub by: String,
    /// Since when (RFC 3339).
    pub at: String,
    /// What they wrote.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// An alert, as it is kept.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Alert {
    /// By which it is known; no other alert ever has it.
    pub id: u64,
    /// The name of the rule that found it.
    pub rule: String,
    /// What it is about.
    pub object: Object,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in a sentence with figures: the last ones that were seen.
    pub cause: String,
    /// The next step for the administrator.
    pub next_step: String,
    /// When it fired.
    #[serde(with = "moment")]
    pub fired: WallClock,
    /// When it was resolved.
    #[serde(
        with = "moment_or_none",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub resolved: Option<WallClock>,
    /// Who takes care of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Acknowledged>,
    /// What happened to it.
    pub steps: Vec<Step>,
}

/// An alert, as it is shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct AlertView {
    /// By which it is known; no other alert ever has it.
    pub id: u64,
    /// Whether somebody has to do something about it.
    pub state: AlertState,
    /// How bad it is.
    pub severity: Severity,
    /// The name of the rule that found it.
    pub rule: String,
    /// What that rule is about, in a few words.
    pub title: String,
    /// The kind of what it is about: `lun`, `host`, `pool`, ...
    pub kind: String,
    /// The name of what it is about.
    pub object: String,
    /// What is wrong, in a sentence with figures: the last ones that were seen.
    pub cause: String,
    /// The next step for the administrator.
    pub next_step: String,
    /// The page of the documentation that says more.
    pub doc: String,
    /// When it fired (RFC 3339).
    pub fired: String,
    /// When it was resolved (RFC 3339), where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
    /// Who takes care of it, where somebody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Acknowledged>,
    /// The silence that covers it, where one does: its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<u64>,
    /// Until when it is silenced (RFC 3339), where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silenced_until: Option<String>,
    /// What happened to it, the first first.
    pub steps: Vec<Step>,
}

impl Alert {
    /// Notes what happened. In the middle of a long history something is left out.
    pub(crate) fn step(&mut self, at: WallClock, what: What, by: &str, note: &str) {
        if self.steps.len() >= STEPS_MAX {
            self.steps.remove(1);
        }
        self.steps.push(Step {
            at: rfc3339(at),
            what,
            by: by.to_owned(),
            note: note.to_owned(),
        });
    }

    /// As it is shown; `silence`: number and end of the one that covers it and lasts longest.
    #[must_use]
    pub fn view(&self, silence: Option<(u64, WallClock)>) -> AlertView {
        let silence = silence.filter(|_| self.resolved.is_none());
        let state = match (&self.resolved, silence, &self.acknowledged) {
            (Some(_), _, _) => AlertState::Resolved,
            (None, Some(_), _) => AlertState::Silenced,
            (None, None, Some(_)) => AlertState::Acknowledged,
            (None, None, None) => AlertState::Firing,
        };
        let rule = Rule::named(&self.rule);
        AlertView {
            id: self.id,
            state,
            severity: self.severity,
            rule: self.rule.clone(),
            title: rule.map_or_else(String::new, |rule| rule.title.to_owned()),
            kind: self.object.kind.clone(),
            object: self.object.name.clone(),
            cause: self.cause.clone(),
            next_step: self.next_step.clone(),
            doc: rule.map_or_else(String::new, Rule::doc),
            fired: rfc3339(self.fired),
            resolved: self.resolved.map(rfc3339),
            acknowledged: self.acknowledged.clone(),
            silence: silence.map(|(id, _)| id),
            silenced_until: silence.map(|(_, until)| rfc3339(until)),
            steps: self.steps.clone(),
        }
    }
}
