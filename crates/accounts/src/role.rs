//! What somebody may do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A role. Each may do what the ones before it may.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Debug,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads all but users and tokens.
    Viewer,
    /// Changes LUNs, targets, hosts, grants, and ends sessions of hosts.
    Operator,
    /// Changes users, tokens and settings.
    Admin,
}

impl Role {
    /// All roles, the least first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        })
    }
}

impl FromStr for Role {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|role| role.to_string() == text);
        found.ok_or_else(|| format!("\"{text}\" is none of viewer, operator, admin"))
    }
}
