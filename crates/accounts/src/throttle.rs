//! Guessing passwords becomes slow: for each user, and for each address that asks.
//!
//! An attempt counts as a failure from its beginning, so that many at once are no way around it.
//! Names count whether or not such a user exists: the answers show no difference.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use units::Now;

/// The most names, and the most addresses, that are remembered.
const ENTRIES_MAX: usize = 4096;

/// The longest part of a name that is remembered, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Where somebody asks from: an IPv4 address, the first 64 bits of an IPv6 address, or this machine
/// through its unix socket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Source {
    /// This machine.
    Local,
    /// An address.
    V4(u32),
    /// A network of addresses: whoever has one of them has all.
    V6(u64),
}

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                let network = [a, b, c, d].map(u64::from);
                Self::V6(network.into_iter().fold(0, |all, part| (all << 16) | part))
            }
        }
    }
}

/// How failures become waiting.
struct Rule {
    /// So many cost nothing.
    free: u32,
    /// The longest wait.
    wait_max: Duration,
    /// Failures are forgotten when none has come for so long.
    forgotten: Duration,
}

/// A stranger can make any user wait by failing on purpose; so the wait is short.
const OF_USER: Rule = Rule {
    free: 5,
    wait_max: Duration::from_secs(30),
    forgotten: Duration::from_secs(15 * 60),
};

const OF_SOURCE: Rule = Rule {
    free: 10,
    wait_max: Duration::from_secs(15 * 60),
    forgotten: Duration::from_secs(3600),
};

impl Rule {
    /// How long after the last of `count` failures the next attempt may come.
    fn wait(&self, count: u32) -> Duration {
        match count.checked_sub(self.free) {
            None => Duration::ZERO,
            Some(over) => {
                let seconds = 1_u64.checked_shl(over.min(40)).unwrap_or(u64::MAX);
                Duration::from_secs(seconds).min(self.wait_max)
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: Now,
}

struct Table<K> {
    rule: Rule,
    entries: BTreeMap<K, Failures>,
}

impl<K: Ord + Clone> Table<K> {
    fn new(rule: Rule) -> Self {
        Self {
            rule,
            entries: BTreeMap::new(),
        }
    }

    /// How long the next attempt has to wait.
    fn wait(&self, key: &K, now: Now) -> Duration {
        let Some(known) = self.entries.get(key) else {
            return Duration::ZERO;
        };
        let passed = now.since(known.last);
        if passed >= self.rule.forgotten {
            return Duration::ZERO;
        }
        self.rule.wait(known.count).saturating_sub(passed)
    }

    fn count(&mut self, key: K, now: Now) {
        if !self.entries.contains_key(&key) && self.entries.len() >= ENTRIES_MAX {
            self.make_room(now);
        }
        let known = self.entries.entry(key).or_insert(Failures {
            count: 0,
            last: now,
        });
        if now.since(known.last) >= self.rule.forgotten {
            known.count = 0;
        }
        known.count = known.count.saturating_add(1);
        known.last = now;
    }

    /// Forgets what is over; else an eighth, of those with the fewest failures, the oldest first: a
    /// stranger who comes under many names cannot push out the one that is being guessed.
    fn make_room(&mut self, now: Now) {
        let forgotten = self.rule.forgotten;
        self.entries.retain(|_, it| now.since(it.last) < forgotten);
        if self.entries.len() < ENTRIES_MAX {
            return;
        }
        let weights = self
            .entries
            .iter()
            .map(|(key, it)| (it.count, it.last, key.clone()));
        let mut all: Vec<(u32, Now, K)> = weights.collect();
        all.sort_unstable();
        for (_, _, key) in all.iter().take(ENTRIES_MAX / 8) {
            self.entries.remove(key);
        }
    }

    fn undo_one(&mut self, key: &K) {
        if let Some(known) = self.entries.get_mut(key) {
            known.count = known.count.saturating_sub(1);
        }
    }
}

/// What is remembered of failed logins.
pub(crate) struct Throttle {
    users: Table<String>,
    sources: Table<Source>,
}

impl Default for Throttle {
    fn default() -> Self {
        Self {
            users: Table::new(OF_USER),
            sources: Table::new(OF_SOURCE),
        }
    }
}

fn remembered(name: &str) -> String {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or_default().to_lowercase()
}

impl Throttle {
    /// An attempt begins, or has to wait so long.
    pub(crate) fn begin(&mut self, name: &str, source: Source, now: Now) -> Result<(), Duration> {
        let name = remembered(name);
        let wait = self.users.wait(&name, now);
        let wait = wait.max(self.sources.wait(&source, now));
        if wait > Duration::ZERO {
            return Err(wait);
        }
        self.users.count(name, now);
        self.sources.count(source, now);
        Ok(())
    }

    /// The attempt was right. Others of the same address stay counted: else somebody with a
    /// password of their own could guess those of others between two logins.
    pub(crate) fn succeeded(&mut self, name: &str, source: Source) {
        self.users.entries.remove(&remembered(name));
        self.sources.undo_one(&source);
    }

    #[cfg(test)]
    pub(crate) fn entries(&self) -> (usize, usize) {
        (self.users.entries.len(), self.sources.entries.len())
    }
}
