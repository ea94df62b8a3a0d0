//! Users and tokens as they are shown, and whom the end of one hits.

use crate::{Accounts, Moment, Role, Token, User};
use manifest::ending::{Ending, Hit};
use manifest::time::rfc3339;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Now, WallClock};

/// Seconds since 1970 as RFC 3339 has them.
#[must_use]
pub fn time(seconds: u64) -> String {
    rfc3339(WallClock(seconds.saturating_mul(1_000_000_000)))
}

/// A user, without anything secret.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct UserView {
    /// By which the user logs in.
    pub name: String,
    /// What the user may do.
    pub role: Role,
    /// May log in.
    pub enabled: bool,
    /// The password must be changed before anything else.
    pub must_change: bool,
    /// When the user was made (RFC 3339).
    pub created: String,
    /// When the password was set (RFC 3339).
    pub password_set: String,
}

impl From<&User> for UserView {
    fn from(user: &User) -> Self {
        Self {
            name: user.name.clone(),
            role: user.role,
            enabled: user.enabled,
            must_change: user.must_change,
            created: time(user.created),
            password_set: time(user.password_set),
        }
    }
}

/// A token, without what its holder sends.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct TokenView {
    /// By which it is shown and ended.
    pub id: String,
    /// As people know it: "prometheus", "backup of vm01".
    pub name: String,
    /// What its holder may do.
    pub role: Role,
    /// Who made it.
    pub created_by: String,
    /// When it was made (RFC 3339); of the one of the file, when that was written.
    pub created: String,
    /// When it ends (RFC 3339); `null`: never.
    pub expires: Option<String>,
    /// That time is over.
    pub has_ended: bool,
    /// When it was used last (RFC 3339); of the last minutes before a restart nothing is known.
    pub last_use: Option<String>,
    /// What its holder sends: in the answer to its making only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl TokenView {
    /// As it is at a second since 1970.
    #[must_use]
    pub fn of(accounts: &Accounts, token: &Token, seconds: u64) -> Self {
        Self {
            id: token.id.clone(),
            name: token.name.clone(),
            role: token.role,
            created_by: token.created_by.clone(),
            created: time(token.created),
            expires: token.expires.map(time),
            has_ended: token.expires.is_some_and(|end| end <= seconds),
            last_use: accounts.last_use(token).map(time),
            token: None,
        }
    }

    /// What its end hits.
    #[must_use]
    pub fn ending(&self) -> Ending {
        let mut ending = Ending::of(format!("token {}", self.name));
        let used = self.last_use.as_ref().map_or_else(
            || "never used".to_owned(),
            |at| format!("used last at {at}: whatever sends it is refused"),
        );
        let (role, by) = (self.role, &self.created_by);
        let detail = format!("role {role}, made by {by}, {used}");
        ending.hit(Hit::Token, &self.name, detail);
        ending
    }
}

impl Accounts {
    /// The end of all logins of a user.
    #[must_use]
    pub fn ending_of_logins(&self, name: &str, now: Moment) -> Ending {
        let mut ending = Ending::of(format!("all logins of user {name}"));
        let wall = |at: Now| time(now.seconds().saturating_sub(now.steady.since(at).as_secs()));
        for open in self.sessions_of(name, now) {
            let used = format!("it ends; used last at {}", wall(open.used));
            ending.hit(Hit::Login, format!("of {}", wall(open.began)), used);
        }
        ending
    }

    /// With all that goes, and the tokens that stay until they are revoked.
    #[must_use]
    pub fn ending_of_user(&self, name: &str, now: Moment) -> Ending {
        let mut ending = self.ending_of_logins(name, now);
        ending.ends = format!("user {name}");
        let made = self.document().tokens.iter();
        for token in made.filter(|token| token.created_by == name) {
            let detail = format!("{name} made it, and it stays until it is revoked");
            ending.hit(Hit::Token, &token.name, detail);
        }
        ending
    }
}
