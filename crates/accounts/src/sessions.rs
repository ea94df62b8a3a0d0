//! Cookie sessions: what a login opens.
//!
//! They are kept in memory only: a restart of the daemon ends them all.

use crate::token::digest;
use manifest::secret::Secret;
use std::collections::BTreeMap;
use std::time::Duration;
use units::{Now, hex};

/// How long sessions last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionTimes {
    /// One that is not used for so long is over.
    pub idle: Duration,
    /// One is over so long after its login, however it is used.
    pub life: Duration,
}

impl Default for SessionTimes {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(30 * 60),
            life: Duration::from_secs(12 * 3600),
        }
    }
}

/// The most sessions of one user, and of all; the one that was used longest ago ends for a new one.
const OF_ONE_MAX: usize = 16;
const ALL_MAX: usize = 1024;

/// A session that was just opened.
pub struct Opened {
    /// The value of its cookie.
    pub cookie: Secret,
    /// What each change must bring along.
    pub csrf: Secret,
    /// It lasts no longer.
    pub life: Duration,
}

/// A session as its user sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenSession {
    /// When somebody logged in.
    pub began: Now,
    /// When it was used last.
    pub used: Now,
    /// It is the one that asks.
    pub is_this: bool,
}

struct Session {
    user: String,
    csrf: Secret,
    began: Now,
    used: Now,
}

impl Session {
    fn is_over(&self, now: Now, times: SessionTimes) -> bool {
        now.since(self.used) >= times.idle || now.since(self.began) >= times.life
    }
}

/// The sessions that are open, by the hash of their cookie.
#[derive(Default)]
pub(crate) struct Sessions(BTreeMap<String, Session>, SessionTimes);

impl Sessions {
    pub(crate) fn new(times: SessionTimes) -> Self {
        Self(BTreeMap::new(), times)
    }

    /// Opens a session with a cookie that nobody has seen before.
    pub(crate) fn open(
        &mut self,
        user: &str,
        now: Now,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Opened {
        let times = self.1;
        self.0.retain(|_, session| !session.is_over(now, times));
        while self.count(Some(user)) >= OF_ONE_MAX {
            self.end_oldest(Some(user));
        }
        while self.count(None) >= ALL_MAX {
            self.end_oldest(None);
        }
        let mut secret = || {
            let mut bytes = [0; 32];
            random(&mut bytes);
            Secret::new(hex(&bytes).into_bytes())
        };
        let (cookie, csrf) = (secret(), secret());
        let session = Session {
            user: user.to_owned(),
            csrf: csrf.clone(),
            began: now,
            used: now,
        };
        self.0.insert(digest(&cookie), session);
        let life = self.1.life;
        Opened { cookie, csrf, life }
    }

    /// Whose session it is, and its CSRF token; using it makes its idle time begin anew.
    pub(crate) fn find(&mut self, cookie: &Secret, now: Now) -> Option<(String, Secret)> {
        let key = digest(cookie);
        let session = self.0.get_mut(&key)?;
        if session.is_over(now, self.1) {
            self.0.remove(&key);
            return None;
        }
        session.used = now;
        Some((session.user.clone(), session.csrf.clone()))
    }

    /// Ends a session.
    pub(crate) fn end(&mut self, cookie: &Secret) {
        self.0.remove(&digest(cookie));
    }

    /// Ends the sessions of users for whom `ends` is true.
    pub(crate) fn end_of(&mut self, ends: impl Fn(&str) -> bool) {
        self.0.retain(|_, session| !ends(&session.user));
    }

    /// All sessions of whoever has this cookie, the newest first.
    pub(crate) fn with(&self, cookie: &Secret, now: Now) -> Vec<OpenSession> {
        let key = digest(cookie);
        let user = self.0.get(&key).map(|session| session.user.as_str());
        user.map_or_else(Vec::new, |user| self.list(user, Some(&key), now))
    }

    /// All sessions of a user, the newest first.
    pub(crate) fn of(&self, user: &str, now: Now) -> Vec<OpenSession> {
        self.list(user, None, now)
    }

    fn list(&self, user: &str, this: Option<&String>, now: Now) -> Vec<OpenSession> {
        let mine = self.0.iter();
        let mine = mine.filter(|(_, it)| it.user == *user && !it.is_over(now, self.1));
        let view = |(at, it): (&String, &Session)| OpenSession {
            began: it.began,
            used: it.used,
            is_this: this == Some(at),
        };
        let mut all: Vec<OpenSession> = mine.map(view).collect();
        all.sort_by_key(|it| std::cmp::Reverse(it.began));
        all
    }

    /// Ends them but the one with this cookie; how many ended.
    pub(crate) fn end_others(&mut self, cookie: &Secret) -> usize {
        let key = digest(cookie);
        let Some(user) = self.0.get(&key).map(|session| session.user.clone()) else {
            return 0;
        };
        let before = self.0.len();
        self.0.retain(|at, it| it.user != user || *at == key);
        before - self.0.len()
    }

    fn count(&self, user: Option<&str>) -> usize {
        let sessions = self.0.values();
        sessions
            .filter(|it| user.is_none_or(|user| it.user == user))
            .count()
    }

    fn end_oldest(&mut self, user: Option<&str>) {
        let sessions = self.0.iter();
        let mine = sessions.filter(|(_, it)| user.is_none_or(|user| it.user == user));
        let oldest = mine
            .min_by_key(|(_, it)| it.used)
            .map(|(key, _)| key.clone());
        if let Some(key) = oldest {
            self.0.remove(&key);
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
