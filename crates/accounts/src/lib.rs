//! Who may use the API: users with passwords, tokens, and what changes them.
//!
//! **Contract.** Time and random bytes come in, decisions go out; nothing here touches a clock, a
//! file, a socket or a thread. The one costly thing is [`password::verify`] (and
//! [`password::hash`]): the caller runs it on a thread that may block.
//!
//! **Invariants.** I1: what is in force is what is stored: an edit makes a new document and changes
//! nothing by itself. I2: where there are users, one of them is an admin that may log in. I3: of
//! passwords and tokens only hashes are kept.

mod document;
mod edit;
pub mod password;
mod principal;
mod role;
mod token;

pub use document::{Document, SCHEMA, Token, User};
pub use edit::Edit;
pub use password::PasswordHash;
pub use principal::{Principal, Via};
pub use role::Role;
pub use token::{NewToken, new_token};
