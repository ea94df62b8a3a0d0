//! Who may use the API: users with passwords, tokens, cookie sessions, and slow logins for whoever
//! guesses.
//!
//! **Contract.** Time and random bytes come in, decisions go out; nothing here touches a clock, a
//! file, a socket or a thread. The one costly thing is [`password::verify`] (and
//! [`password::hash`]): the caller runs it on a thread that may block.
//!
//! ```text
//!   Edit --Document::edit--> a new Document --(the caller stores it)--> Accounts::adopt
//!   begin_login -> Attempt --verify, on a blocking thread--> finish_login -> Opened
//! ```
//!
//! **Invariants.** I1: what is in force is what is stored: an edit makes a new document and changes
//! nothing by itself. I2: where there are users, one of them is an admin that may log in. I3: of
//! passwords, tokens and session cookies only hashes are kept. I4: the memory that strangers can
//! take is bounded.

mod accounts;
mod document;
mod edit;
pub mod password;
mod principal;
mod role;
mod sessions;
mod throttle;
mod token;
mod view;

pub use accounts::{Accounts, Attempt, Known, LoggedIn, Moment};
pub use document::{Document, FIRST_USER, FileToken, SCHEMA, Token, User};
pub use edit::Edit;
pub use password::PasswordHash;
pub use principal::{Principal, Via};
pub use role::Role;
pub use sessions::{OpenSession, Opened, SessionTimes};
pub use throttle::Source;
pub use token::{NewToken, new_token};
pub use view::{TokenView, UserView, time};

#[cfg(test)]
mod test;
