//! Changes of users and tokens: each makes a new document, or says why not.

use crate::document::{Document, ENTRIES_MAX, FileToken, Token, User};
use crate::{PasswordHash, Role};
use manifest::code::Code;
use manifest::name::check_object_name;
use manifest::problem::Problem;

/// A change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Edit {
    /// A new user.
    CreateUser {
        /// Their name.
        name: String,
        /// What they may do.
        role: Role,
        /// Of their password, which was checked.
        hash: PasswordHash,
        /// They must change it at their first login.
        must_change: bool,
    },
    /// Some properties of a user become others.
    SetUser {
        /// Who.
        name: String,
        /// What they may do.
        role: Option<Role>,
        /// They may log in.
        enabled: Option<bool>,
        /// The hash of a new password, and whether they must change it.
        password: Option<(PasswordHash, bool)>,
    },
    /// A user goes.
    DeleteUser {
        /// Who.
        name: String,
    },
    /// A new token.
    CreateToken {
        /// Its identifier.
        id: String,
        /// What it is for.
        name: String,
        /// What it allows.
        role: Role,
        /// SHA-256 of it, in hexadecimal digits.
        hash: String,
        /// Who makes it.
        created_by: String,
        /// From when on it allows nothing, in seconds since 1970.
        expires: Option<u64>,
    },
    /// A token goes.
    DeleteToken {
        /// Its identifier.
        id: String,
    },
    /// Tokens were used.
    Used {
        /// Their identifiers, each with when, in seconds since 1970.
        tokens: Vec<(String, u64)>,
        /// That of the file.
        of_file: Option<FileToken>,
    },
}

impl Document {
    /// What it is after the change, made at `now` (seconds since 1970).
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn edit(&self, edit: &Edit, now: u64) -> Result<Self, Problem> {
        let mut after = self.clone();
        match edit {
            Edit::CreateUser {
                name,
                role,
                hash,
                must_change,
            } => after.add_user(User {
                name: name.clone(),
                role: *role,
                hash: hash.clone(),
                must_change: *must_change,
                enabled: true,
                created: now,
                password_set: now,
            })?,
            Edit::SetUser {
                name,
                role,
                enabled,
                password,
            } => {
                let user = after.user_mut(name)?;
                user.role = role.unwrap_or(user.role);
                user.enabled = enabled.unwrap_or(user.enabled);
                if let Some((hash, must_change)) = password {
                    user.hash = hash.clone();
                    user.must_change = *must_change;
                    user.password_set = now;
                }
            }
            Edit::DeleteUser { name } => {
                after.user_mut(name)?;
                after.users.retain(|user| user.name != *name);
            }
            Edit::CreateToken {
                id,
                name,
                role,
                hash,
                created_by,
                expires,
            } => after.add_token(
                Token {
                    id: id.clone(),
                    name: name.clone(),
                    role: *role,
                    hash: hash.clone(),
                    created_by: created_by.clone(),
                    created: now,
                    expires: *expires,
                    last_use: None,
                },
                now,
            )?,
            Edit::DeleteToken { id } => {
                if !after.tokens.iter().any(|token| token.id == *id) {
                    return Err(Problem::not_found("token", id));
                }
                after.tokens.retain(|token| token.id != *id);
            }
            Edit::Used { tokens, of_file } => after.note_use(tokens, of_file.as_ref()),
        }
        if !self.users.is_empty() && !after.has_admin() {
            return Err(Problem::new(
                Code::LastAdmin,
                "nobody would be left who may log in and may do everything",
            ));
        }
        Ok(after)
    }

    fn user_mut(&mut self, name: &str) -> Result<&mut User, Problem> {
        let found = self.users.iter_mut().find(|user| user.name == name);
        found.ok_or_else(|| Problem::not_found("user", name))
    }

    fn add_user(&mut self, user: User) -> Result<(), Problem> {
        let bad = |why: String| Err(Problem::new(Code::BadRequest, why));
        if let Err(rule) = check_object_name(&user.name) {
            return bad(rule);
        }
        let same = |other: &&User| other.name.eq_ignore_ascii_case(&user.name);
        if let Some(other) = self.users.iter().find(same) {
            let detail = format!("there is a user \"{}\" already", other.name);
            return Err(Problem::new(Code::AlreadyExists, detail));
        }
        if self.users.len() >= ENTRIES_MAX {
            return bad(format!("there are {ENTRIES_MAX} users, the most"));
        }
        if self.users.is_empty() && user.role != Role::Admin {
            return bad("the first user is an admin".to_owned());
        }
        let at = self.users.partition_point(|other| other.name < user.name);
        self.users.insert(at, user);
        Ok(())
    }

    fn add_token(&mut self, token: Token, now: u64) -> Result<(), Problem> {
        let bad = |why: String| Err(Problem::new(Code::BadRequest, why));
        if let Err(rule) = check_object_name(&token.name) {
            return bad(rule);
        }
        if token.expires.is_some_and(|end| end <= now) {
            return bad("the token would have ended already".to_owned());
        }
        if self.tokens.iter().any(|other| other.name == token.name) {
            let detail = format!("there is a token \"{}\" already", token.name);
            return Err(Problem::new(Code::AlreadyExists, detail));
        }
        if self.tokens.len() >= ENTRIES_MAX {
            return bad(format!("there are {ENTRIES_MAX} tokens, the most"));
        }
        self.tokens.push(token);
        Ok(())
    }

    fn note_use(&mut self, used: &[(String, u64)], of_file: Option<&FileToken>) {
        if let Some(token) = of_file {
            self.file_token = Some(token.clone());
        }
        for (id, at) in used {
            if let Some(token) = self.tokens.iter_mut().find(|token| token.id == *id) {
                token.last_use = token.last_use.max(Some(*at));
            }
        }
    }
}
