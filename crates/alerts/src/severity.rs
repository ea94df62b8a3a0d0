//! How bad an alert is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How bad it is.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Debug,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing; nobody has to act today.
    Info,
    /// Somebody should act, before it becomes worse.
    Warning,
    /// Hosts are hit or data is at risk: somebody has to act now.
    Critical,
}

impl Severity {
    /// All, the mildest first.
    pub const ALL: [Self; 3] = [Self::Info, Self::Warning, Self::Critical];

    /// As documents write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
