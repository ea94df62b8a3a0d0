//! Hosts that were there, and are not any more.
//!
//! A host that logs out was shut down, or asked to leave: that is what somebody wanted, and no
//! loss. So it counts how the session that ended last did that.

use crate::document::LearnedHost;
use crate::evaluate::Sink;
use crate::facts::Facts;
use crate::object::Object;
use crate::time::Moment;
use manifest::time::about;
use std::collections::{BTreeMap, BTreeSet};

/// For so long what was known of a host without sessions stays, in seconds.
const REMEMBERED_SECONDS: u64 = 86_400;

/// When hosts were there last, by their names.
#[derive(Default, Debug)]
pub(crate) struct Away(BTreeMap<String, LearnedHost>);

impl Away {
    /// With what was learned before.
    pub(crate) fn of(learned: BTreeMap<String, LearnedHost>) -> Self {
        Self(learned)
    }

    /// What was learned, for the next start.
    pub(crate) fn learned(&self) -> BTreeMap<String, LearnedHost> {
        self.0.clone()
    }

    /// Takes the sessions of a moment, and those that ended before it.
    pub(crate) fn observe(&mut self, facts: &Facts, at: Moment) {
        let ended = facts.ended.iter().map(|it| (&*it.host, it.logged_out));
        let ended: BTreeMap<&str, bool> = ended.collect();
        for host in &facts.hosts {
            let is_there = !host.paths.is_empty();
            if is_there {
                self.0.entry(host.name.clone()).or_default().last = at.seconds();
            }
            let Some(known) = self.0.get_mut(&host.name) else {
                continue;
            };
            match ended.get(&*host.name) {
                Some(logged_out) => known.logged_out = *logged_out,
                None if is_there || facts.ended_lost => known.logged_out = false,
                None => {}
            }
        }
        let names: BTreeSet<&str> = facts.hosts.iter().map(|it| &*it.name).collect();
        self.0.retain(|name, _| names.contains(&**name));
    }

    /// For so many seconds it has not been there; `None`: it never was.
    fn age(&self, host: &str, at: Moment) -> Option<u64> {
        let known = self.0.get(host)?;
        Some(at.seconds().saturating_sub(known.last))
    }

    /// It was there a short time ago.
    pub(crate) fn was_there(&self, host: &str, at: Moment) -> bool {
        self.age(host, at)
            .is_some_and(|age| age < REMEMBERED_SECONDS)
    }

    /// What there is to say of hosts.
    pub(crate) fn read(&self, facts: &Facts, at: Moment, sink: &mut Sink<'_>) {
        let seconds = sink.bound("hours") * 3_600;
        for host in facts.hosts.iter().filter(|it| it.paths.is_empty()) {
            let logged_out = self.0.get(&host.name).is_some_and(|it| it.logged_out);
            let age = self.age(&host.name, at).filter(|age| *age < seconds);
            if let Some(age) = age.filter(|_| host.is_granted && !logged_out) {
                let (name, age) = (&host.name, about(age));
                let cause = format!(
                    "host {name} has lost all its paths: it had sessions until {age} ago, and did not log out"
                );
                sink.bad(Object::new("host", name), cause);
            }
        }
    }
}
