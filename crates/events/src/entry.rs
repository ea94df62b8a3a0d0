//! What is entered into the audit log.

use crate::event::Object;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What somebody did, or tried to do.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Entry {
    /// Who: a user, a token, or `uid:N` on the unix socket.
    pub who: String,
    /// How they were known: `socket`, `session`, `token`, `token_file`, `nobody`.
    pub via: String,
    /// The address that they came from; absent on the unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The method of the request.
    pub method: String,
    /// Its path, with parameters.
    pub path: String,
    /// What it was about; the first, where that was several objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Object>,
    /// All that it was about, where that was several objects: at most a hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<Object>,
    /// What was there before.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub before: Value,
    /// What was there after.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub after: Value,
    /// What was asked for: the body of the request.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub asked: Value,
    /// The HTTP status of the answer.
    pub status: u16,
    /// The error code, where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The job of work that takes long. It has two entries with the same `request_id`: that it
    /// began (`status` 202), and how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<u64>,
    /// What was sent as a token is none, or one that has ended. Of these not each is entered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bad_token: bool,
    /// The request's identifier.
    pub request_id: String,
}
