//! What is in force: users and tokens as stored, sessions, and failed logins.

use crate::document::{Document, FileToken, Token, User};
use crate::password::PasswordHash;
use crate::sessions::{OpenSession, Opened, SessionTimes, Sessions};
use crate::throttle::{Source, Throttle};
use crate::token::digest;
use crate::{Edit, Principal, Role, Via};
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::secret::Secret;
use std::collections::BTreeMap;
use std::time::Duration;
use units::{Now, WallClock};

/// The stored time of a token's last use may be so old, in seconds: not every request writes it.
const LAST_USE_STEP: u64 = 300;

/// A moment in both times: spans are measured by `steady`, which never jumps; what is stored has
/// the time of `wall`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// Monotonic time.
    pub steady: Now,
    /// Wall-clock time.
    pub wall: WallClock,
}

impl Moment {
    /// Seconds since 1970.
    #[must_use]
    pub fn seconds(self) -> u64 {
        self.wall.0 / 1_000_000_000
    }
}

/// A login that is under way: `hash` has to be verified, on a thread that may block.
#[derive(Debug)]
pub struct Attempt {
    name: String,
    source: Source,
    /// What to verify the password with. Where there is no such user it is nobody's, so that it
    /// takes as long.
    pub hash: PasswordHash,
}

/// A login that went well.
pub struct LoggedIn {
    /// The user, and how they proved it.
    pub principal: Principal,
    /// They must change their password before anything else.
    pub must_change: bool,
    /// The new session.
    pub opened: Opened,
}

/// Somebody whose cookie is known.
pub struct Known {
    /// The user, and how they proved it.
    pub principal: Principal,
    /// They must change their password before anything else.
    pub must_change: bool,
    /// What their changes must bring along.
    pub csrf: Secret,
}

/// All accounts.
#[derive(Default)]
pub struct Accounts {
    document: Document,
    sessions: Sessions,
    throttle: Throttle,
    /// Uses of tokens that are not stored yet, in seconds since 1970.
    used: BTreeMap<String, u64>,
    /// The token of the file, as far as it is known.
    file_token: Option<FileToken>,
}

fn principal(user: &User) -> Principal {
    Principal {
        name: user.name.clone(),
        role: user.role,
        via: Via::Session,
    }
}

impl Accounts {
    /// With what is stored.
    #[must_use]
    pub fn new(document: Document) -> Self {
        Self {
            document,
            ..Self::default()
        }
    }

    /// With sessions that last so long; those that are open end.
    #[must_use]
    pub fn with_times(mut self, times: SessionTimes) -> Self {
        self.sessions = Sessions::new(times);
        self
    }

    /// The token of the file is this one.
    pub fn know_file_token(&mut self, token: &Secret) {
        let hash = digest(token);
        let stored = self.document.file_token.as_ref();
        let stored = stored.filter(|it| it.hash == hash);
        let last_use = stored.map_or(0, |it| it.last_use);
        self.file_token = Some(FileToken { hash, last_use });
    }

    /// The token of the file is used.
    pub fn use_file_token(&mut self, now: Moment) {
        if let Some(token) = &mut self.file_token {
            token.last_use = now.seconds();
        }
    }

    /// When the token of the file was used last, in seconds since 1970.
    #[must_use]
    pub fn file_token_use(&self) -> Option<u64> {
        let used = self.file_token.as_ref().map(|it| it.last_use);
        used.filter(|at| *at > 0)
    }

    /// All sessions of a user, the newest first.
    #[must_use]
    pub fn sessions_of(&self, user: &str, now: Moment) -> Vec<OpenSession> {
        self.sessions.of(user, now.steady)
    }

    /// Ends them all.
    pub fn end_sessions_of(&mut self, user: &str) {
        self.sessions.end_of(|name| name == user);
    }

    /// The users and tokens that are in force.
    #[must_use]
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// `document` is stored, and in force from now on. Sessions end of users that are gone, may not
    /// log in any more, or have another password; another role is in force at once.
    pub fn adopt(&mut self, document: Document) {
        let before = std::mem::replace(&mut self.document, document);
        let after = &self.document;
        self.sessions.end_of(|name| {
            let (before, after) = (before.user(name), after.user(name));
            let stays = after.is_some_and(|user| user.enabled)
                && before.map(|user| &user.hash) == after.map(|user| &user.hash);
            !stays
        });
        let known = |id: &String| after.tokens.iter().find(|token| token.id == *id);
        self.used
            .retain(|id, at| known(id).is_some_and(|token| token.last_use < Some(*at)));
    }

    /// Somebody wants to log in.
    ///
    /// # Errors
    /// They have to wait so long, users that exist as others.
    pub fn begin_login(
        &mut self,
        name: &str,
        source: Source,
        now: Moment,
    ) -> Result<Attempt, Duration> {
        self.throttle.begin(name, source, now.steady)?;
        let user = self.document.user(name).filter(|user| user.enabled);
        Ok(Attempt {
            name: name.to_owned(),
            source,
            hash: user.map_or_else(PasswordHash::of_nobody, |user| user.hash.clone()),
        })
    }

    /// The password was verified: the login opens a new session, or fails.
    ///
    /// # Errors
    /// The password is wrong, or there is no such user, or no longer with this password; which of
    /// them is not said.
    pub fn finish_login(
        &mut self,
        attempt: &Attempt,
        is_right: bool,
        now: Moment,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<LoggedIn, Problem> {
        let user = self.document.user(&attempt.name);
        let same = |user: &&User| user.enabled && user.hash == attempt.hash;
        let Some(user) = user.filter(same).filter(|_| is_right) else {
            let detail = "user name or password is wrong";
            return Err(Problem::new(Code::LoginFailed, detail));
        };
        self.throttle.succeeded(&attempt.name, attempt.source);
        let (principal, must_change) = (principal(user), user.must_change);
        let opened = self.sessions.open(&attempt.name, now.steady, random);
        Ok(LoggedIn {
            principal,
            must_change,
            opened,
        })
    }

    /// Whose cookie it is; `None` where its session is over, or never was.
    pub fn session(&mut self, cookie: &Secret, now: Moment) -> Option<Known> {
        let (name, csrf) = self.sessions.find(cookie, now.steady)?;
        let user = self.document.user(&name).filter(|user| user.enabled)?;
        Some(Known {
            principal: principal(user),
            must_change: user.must_change,
            csrf,
        })
    }

    /// Ends the session of this cookie.
    pub fn logout(&mut self, cookie: &Secret) {
        self.sessions.end(cookie);
    }

    /// All sessions of the user who has this cookie, the newest first.
    #[must_use]
    pub fn sessions_with(&self, cookie: &Secret, now: Moment) -> Vec<OpenSession> {
        self.sessions.with(cookie, now.steady)
    }

    /// Ends them but the one with this cookie; how many ended.
    pub fn end_other_sessions(&mut self, cookie: &Secret) -> usize {
        self.sessions.end_others(cookie)
    }

    /// A new session for a user, where an old one ended: after a change of the password.
    pub fn open_session(
        &mut self,
        user: &str,
        now: Moment,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Option<Opened> {
        self.document.user(user).filter(|user| user.enabled)?;
        Some(self.sessions.open(user, now.steady, random))
    }

    /// Whose token it is; `None` where it is over, or never was.
    pub fn token(&mut self, secret: &Secret, now: Moment) -> Option<Principal> {
        // Hashes are compared: how long that takes says nothing of the token.
        let hash = digest(secret);
        let token = self.document.tokens.iter().find(|it| it.hash == hash)?;
        let seconds = now.seconds();
        if token.expires.is_some_and(|end| end <= seconds) {
            return None;
        }
        self.used.insert(token.id.clone(), seconds);
        Some(Principal {
            name: token.name.clone(),
            role: token.role,
            via: Via::Token,
        })
    }

    /// The token that this secret is of, also where it has ended.
    #[must_use]
    pub fn token_that_was(&self, secret: &Secret) -> Option<&Token> {
        let hash = digest(secret);
        self.document.tokens.iter().find(|it| it.hash == hash)
    }

    /// When a token was used last, in seconds since 1970.
    #[must_use]
    pub fn last_use(&self, token: &Token) -> Option<u64> {
        self.used.get(&token.id).copied().max(token.last_use)
    }

    /// The change that stores when tokens were used, where that is worth it.
    #[must_use]
    pub fn uses_to_store(&self) -> Option<Edit> {
        let old = |(id, at): (&String, &u64)| {
            let token = self.document.tokens.iter().find(|token| token.id == *id)?;
            let is_old = token
                .last_use
                .is_none_or(|last| last + LAST_USE_STEP <= *at);
            is_old.then(|| (id.clone(), *at))
        };
        let tokens: Vec<(String, u64)> = self.used.iter().filter_map(old).collect();
        let stored = self.document.file_token.as_ref();
        let of_file = self.file_token.clone().filter(|it| {
            let known = stored.filter(|stored| stored.hash == it.hash);
            it.last_use >= known.map_or(1, |known| known.last_use + LAST_USE_STEP)
        });
        let is_worth_it = !tokens.is_empty() || of_file.is_some();
        is_worth_it.then_some(Edit::Used { tokens, of_file })
    }

    /// Whether there is anybody who may log in with this role.
    #[must_use]
    pub fn has(&self, role: Role) -> bool {
        let mut users = self.document.users.iter();
        users.any(|user| user.enabled && user.role >= role)
    }

    #[cfg(test)]
    pub(crate) fn sessions(&self) -> usize {
        self.sessions.len()
    }

    #[cfg(test)]
    pub(crate) fn throttled(&self) -> (usize, usize) {
        self.throttle.entries()
    }
}
