//! What is stored of users and tokens.

use crate::{PasswordHash, Role};
use manifest::code::Code;
use manifest::name::check_object_name;
use manifest::problem::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The version of the form of [`Document`].
pub const SCHEMA: u32 = 1;

/// The name of the user whom the daemon makes where there is none.
pub const FIRST_USER: &str = "admin";

/// The most users, and the most tokens.
pub(crate) const ENTRIES_MAX: usize = 1000;

/// A person who may log in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// Unique, also where upper and lower case are not distinguished.
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// Of their password.
    pub hash: PasswordHash,
    /// Somebody else knows the password: they must change it before they do anything.
    pub must_change: bool,
    /// They may log in.
    pub enabled: bool,
    /// When they were made, in seconds since 1970.
    pub created: u64,
    /// When the password was set, in seconds since 1970.
    pub password_set: u64,
}

/// What a program may use instead of a password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// By which it is listed and deleted.
    pub id: String,
    /// As people know it: "prometheus", "backup of vm01".
    pub name: String,
    /// What it allows.
    pub role: Role,
    /// SHA-256 of it, in hexadecimal digits.
    pub hash: String,
    /// Who made it.
    pub created_by: String,
    /// When, in seconds since 1970.
    pub created: u64,
    /// From when on it allows nothing, in seconds since 1970.
    pub expires: Option<u64>,
    /// When it was used last, in seconds since 1970; a few minutes old at most.
    pub last_use: Option<u64>,
}

/// The use of the token of the file, which is no entry: its secret is in that file alone.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct FileToken {
    /// SHA-256 of it, in hexadecimal digits: another file has another token.
    pub hash: String,
    /// When it was used last, in seconds since 1970; a few minutes old at most.
    pub last_use: u64,
}

/// All users and tokens, as they are stored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// [`SCHEMA`], or what a newer program wrote.
    pub schema: u32,
    /// In the order of their names.
    pub users: Vec<User>,
    /// In the order of their making.
    pub tokens: Vec<Token>,
    /// Of the token of the file, where it was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_token: Option<FileToken>,
}

impl Default for Document {
    fn default() -> Self {
        Self {
            schema: SCHEMA,
            users: Vec::new(),
            tokens: Vec::new(),
            file_token: None,
        }
    }
}

impl Document {
    /// Reads what [`Document::write`] wrote.
    ///
    /// # Errors
    /// What is wrong with it. None of its values is in the message: they may be hashes.
    pub fn read(bytes: &[u8]) -> Result<Self, Problem> {
        let wrong = |why: String| Problem::new(Code::AccountsDamaged, why);
        let document: Self = serde_json::from_slice(bytes).map_err(|error| {
            // Its own text may quote what stands there.
            let (line, column) = (error.line(), error.column());
            wrong(format!(
                "line {line}, column {column}: not the document of users and tokens"
            ))
        })?;
        document.check().map_err(wrong)?;
        Ok(document)
    }

    /// As it is stored.
    ///
    /// # Panics
    /// Never: it is plain data.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("documents are made of plain data");
        text.push(b'\n');
        text
    }

    /// The user of this name.
    #[must_use]
    pub fn user(&self, name: &str) -> Option<&User> {
        self.users.iter().find(|user| user.name == name)
    }

    /// The user whom the daemon made, whose first password nobody has changed.
    #[must_use]
    pub fn with_first_password(&self) -> Option<&User> {
        let first = self.user(FIRST_USER)?;
        let is_first = first.must_change && first.enabled && first.password_set == first.created;
        is_first.then_some(first)
    }

    /// Somebody may log in who may do everything.
    pub(crate) fn has_admin(&self) -> bool {
        let is_admin = |user: &User| user.enabled && user.role == Role::Admin;
        self.users.iter().any(is_admin)
    }

    fn check(&self) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err(format!("schema {}, this version reads 1", self.schema));
        }
        let mut names = BTreeSet::new();
        for (at, user) in self.users.iter().enumerate() {
            let twice = !names.insert(user.name.to_ascii_lowercase());
            if twice || check_object_name(&user.name).is_err() || !user.hash.is_whole() {
                return Err(format!(
                    "user {at}: a name that is none or stands twice, or no hash"
                ));
            }
        }
        let mut ids = BTreeSet::new();
        for (at, token) in self.tokens.iter().enumerate() {
            let is_hex =
                token.hash.len() == 64 && token.hash.bytes().all(|it| it.is_ascii_hexdigit());
            if !ids.insert(&token.id) || check_object_name(&token.id).is_err() || !is_hex {
                return Err(format!(
                    "token {at}: an id that is none or stands twice, or no hash"
                ));
            }
        }
        if !self.users.is_empty() && !self.has_admin() {
            return Err("no user is an admin that may log in".to_owned());
        }
        Ok(())
    }
}
