//! Jobs as the API shows them: work that takes long.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Whether a job runs, or how it ended.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It goes on.
    Running,
    /// All of it is done.
    Finished,
    /// It could not be done.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
    /// The daemon ended before it did.
    Interrupted,
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        })
    }
}

/// What the figures of a job count.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum JobUnit {
    /// Bytes that are made or read.
    #[default]
    Bytes,
    /// Seconds that it takes anyway.
    Seconds,
    /// Steps, one after the other.
    Steps,
}

/// A line of a job's log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct JobLine {
    /// When it was written (RFC 3339).
    pub at: String,
    /// What happened.
    pub text: String,
}

/// A job: work that takes long.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct JobView {
    /// By which it is shown and cancelled; no other job ever has it.
    pub id: u64,
    /// What is done: `scrub`, `lun_create`, `lun_grow`, and others to come.
    pub kind: String,
    /// The name of the LUN, or of what else it is done to.
    pub object: String,
    /// Whether it runs, or how it ended.
    pub state: JobState,
    /// Somebody wants it cancelled, and it has not ended yet.
    pub cancelling: bool,
    /// What the figures count.
    pub unit: JobUnit,
    /// How much is done.
    pub done: u64,
    /// How much there is to do; 0: nobody knows.
    pub total: u64,
    /// The same in percent.
    pub percent: u8,
    /// How much is done in a second, lately; 0 where it does not run.
    pub rate: u64,
    /// Time left at this rate, in seconds, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<u64>,
    /// When it began (RFC 3339).
    pub started: String,
    /// When it ended (RFC 3339), where it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Who began it: a user, a token, or `schedule`.
    pub by: String,
    /// Why it failed, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where the API has what it is about, or what it made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// What happened to it, the first first.
    pub log: Vec<JobLine>,
}
