//! Paths that come back again and again.
//!
//! A path is an initiator, its address, a target and a portal. A return is a session where one of
//! the same path has ended. So a host that boots with eight paths is no flapping one, and one that
//! reboots returns once on each of them.

use crate::evaluate::{Sink, words};
use crate::facts::{HostSeen, Path};
use crate::object::Object;
use crate::time::Moment;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use units::Now;

/// The most paths that are remembered.
const PATHS_MAX: usize = 100_000;

/// The most returns of a path that are remembered.
const RETURNS_MAX: usize = 1_000;

/// A path that has no session for so long is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(4 * 3_600);

/// The host, and the path without its session.
type Key = (String, Path);

#[derive(Default, Debug)]
struct Known {
    sessions: BTreeSet<u64>,
    /// Sessions that have ended and were not followed by others.
    ended: u64,
    returns: VecDeque<Now>,
    seen: Now,
}

/// What is remembered of paths.
#[derive(Default, Debug)]
pub(crate) struct Flapping(BTreeMap<Key, Known>);

fn key(host: &str, path: &Path) -> Key {
    let path = Path {
        session: 0,
        ..path.clone()
    };
    (host.to_owned(), path)
}

impl Flapping {
    /// Takes the sessions of a moment.
    pub(crate) fn observe(&mut self, hosts: &[HostSeen], at: Moment) {
        let mut now: BTreeMap<Key, BTreeSet<u64>> = BTreeMap::new();
        for host in hosts {
            for path in &host.paths {
                let sessions = now.entry(key(&host.name, path)).or_default();
                sessions.insert(path.session);
            }
        }
        for (key, known) in &mut self.0 {
            let sessions = now.remove(key).unwrap_or_default();
            known.take(sessions, at);
        }
        for (key, sessions) in now {
            if self.0.len() < PATHS_MAX {
                let known = Known {
                    sessions,
                    seen: at.steady,
                    ..Known::default()
                };
                self.0.insert(key, known);
            }
        }
        self.0.retain(|_, known| at.since(known.seen) < FORGOTTEN);
    }

    /// What there is to say of hosts.
    pub(crate) fn read(&self, at: Moment, sink: &mut Sink<'_>) {
        let minutes = sink.bound("minutes");
        let span = Duration::from_secs(minutes * 60);
        let mut worst: BTreeMap<&str, (u64, &Path)> = BTreeMap::new();
        for ((host, path), known) in &self.0 {
            let recent = known.returns.iter().filter(|it| at.since(**it) < span);
            let recent = recent.count() as u64;
            let of_host = worst.entry(host).or_insert((0, path));
            if recent > of_host.0 {
                *of_host = (recent, path);
            }
        }
        for (host, (returns, path)) in worst {
            let object = Object::new("host", host);
            let cause = format!(
                "a path of host {host} came back {returns} times within {minutes} minutes: {}",
                words(path)
            );
            if returns >= sink.bound("returns") {
                sink.bad(object, cause);
            } else if returns >= sink.bound("clear_returns") {
                sink.between(object, cause);
            }
        }
    }
}

impl Known {
    fn take(&mut self, sessions: BTreeSet<u64>, at: Moment) {
        self.ended += self.sessions.difference(&sessions).count() as u64;
        let begun = sessions.difference(&self.sessions).count() as u64;
        let returned = begun.min(self.ended);
        self.ended -= returned;
        for _ in 0..returned {
            self.returns.push_back(at.steady);
        }
        while self.returns.len() > RETURNS_MAX {
            self.returns.pop_front();
        }
        if !sessions.is_empty() {
            self.seen = at.steady;
        }
        self.sessions = sessions;
    }
}
