//! Who asks.

use crate::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How somebody proved who they are.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// They opened the unix socket.
    Socket,
    /// The cookie of a login.
    Session,
    /// A token of the list of tokens.
    Token,
    /// The token in the file `api.token`.
    TokenFile,
    /// They came over a loopback address and proved nothing.
    Loopback,
    /// They proved nothing, and ask for what everybody may see: the page, and whether it lives.
    Nobody,
}

/// Who asks, and what they may do.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Principal {
    /// The name of the user or the token; for the socket, of the system's user.
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// How they proved it.
    pub via: Via,
}
