//! A change of a setting, and when it comes into force.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a change of a setting comes into force.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum TakesEffect {
    /// At once; what was written into `node.toml` with a reload (`config reload`, SIGHUP).
    Now,
    /// At the next start of the daemon, which ends all sessions.
    Restart,
}

/// A setting whose value in the file is another one than that in force.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct SettingChange {
    /// Its key, such as `pool[0].journal`.
    pub key: String,
    /// What is in force; absent: the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_force: Option<String>,
    /// What the file says; absent: nothing any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_file: Option<String>,
    /// When it comes into force.
    pub takes_effect: TakesEffect,
}
