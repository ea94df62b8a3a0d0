//! Settings that come into force while hosts work: which, and how they get into those that a
//! daemon runs with. Pure.

use super::Config;
use super::change::{SettingChange, TakesEffect};
use super::written::plain;
use crate::fields::node_fields;
use std::collections::BTreeSet;

/// Whether a change of a key, without the numbers of sections, comes into force while hosts work.
pub(super) fn takes_effect(plain_key: &str) -> TakesEffect {
    let mut fields = node_fields().into_iter();
    if fields.any(|field| field.live && field.key == plain_key) {
        TakesEffect::Now
    } else {
        TakesEffect::Restart
    }
}

/// The keys of changes that come into force without a restart.
#[must_use]
pub fn live_keys(changes: &[SettingChange]) -> BTreeSet<String> {
    let live = changes
        .iter()
        .filter(|it| it.takes_effect == TakesEffect::Now);
    live.map(|it| it.key.clone()).collect()
}

impl Config {
    /// When the change of a key from these to `after` comes into force.
    #[must_use]
    pub fn effect(&self, after: &Self, key: &str) -> TakesEffect {
        // A portal group that comes, goes, or is another one by now is the matter of a start.
        if let Some(section) = key.strip_suffix(".listen") {
            let same = ["name", "tag"].map(|name| {
                let key = format!("{section}.{name}");
                let value = |it: &Self| it.written.get(&key).map(|it| it.value.clone());
                value(self) == value(after)
            });
            if key.starts_with("portal_group") && same != [true, true] {
                return TakesEffect::Restart;
            }
        }
        takes_effect(&plain(key))
    }

    /// These, and of the live ones among `keys` what `after` says.
    #[must_use]
    pub fn with_live(&self, after: &Self, keys: &BTreeSet<String>) -> Self {
        let mut next = self.clone();
        for key in keys {
            if self.effect(after, key) == TakesEffect::Now {
                next.take(after, key);
            }
        }
        next
    }

    fn take(&mut self, after: &Self, key: &str) {
        match plain(key).as_str() {
            "portal_group.listen" => {
                let place = after.place_of_group(key);
                let Some(group) = place.and_then(|at| after.portal_groups.get(at)) else {
                    return;
                };
                let known = self.portal_groups.iter_mut();
                for known in known.filter(|it| it.name == group.name) {
                    known.listen.clone_from(&group.listen);
                }
            }
            "api.token_for_reads" => {
                self.api_settings.token_for_reads = after.api_settings.token_for_reads;
            }
            "api.names" => self
                .api_settings
                .names
                .clone_from(&after.api_settings.names),
            "alert_command.name" | "alert_command.argv" | "alert_command.seconds" => {
                self.alert_commands.clone_from(&after.alert_commands);
                // One list: with one of its keys all are taken.
                self.written
                    .retain(|key, _| !key.starts_with("alert_command["));
                let theirs = after.written.iter();
                let theirs = theirs.filter(|(key, _)| key.starts_with("alert_command["));
                let theirs = theirs.map(|(key, value)| (key.clone(), value.clone()));
                self.written.extend(theirs);
            }
            "scrub.every_days" => self.scrub_every_days = after.scrub_every_days,
            "health.every_minutes" => self.health.every = after.health.every,
            "history.max_bytes" => self.history.max_bytes = after.history.max_bytes,
            "session.login_seconds" => self.session.login = after.session.login,
            "session.ping_after_seconds" => self.session.ping_after = after.session.ping_after,
            "session.ping_timeout_seconds" => {
                self.session.ping_timeout = after.session.ping_timeout;
            }
            "session.data_seconds" => self.session.data = after.session.data,
            "runtime.coalesce_us" => self.coalesce = after.coalesce,
            _ => return,
        }
        match after.written.get(key) {
            Some(value) => drop(self.written.insert(key.to_owned(), value.clone())),
            None => drop(self.written.remove(key)),
        }
        if after.own_keys.contains(key) {
            self.own_keys.insert(key.to_owned());
            self.own_file.clone_from(&after.own_file);
        } else {
            self.own_keys.remove(key);
        }
    }

    /// The number of the portal group whose key it is.
    fn place_of_group(&self, key: &str) -> Option<usize> {
        let (_, number) = key.split_once('[')?;
        let (number, _) = number.split_once(']')?;
        number.parse().ok()
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::config::parse;
    use std::path::Path;

    const HEAD: &str =
        "[node]\nname = \"a\"\nstate_dir = \"d\"\n[[portal_group]]\nname = \"p\"\ntag = 1\n";

    const BEFORE: &str = "listen = [ { ip = \"127.0.0.1\" } ]\n[api]\nlisten = [\"unix:s\"]\n";

    /// Every live key says something else here.
    const AFTER: &str = "listen = [ { ip = \"127.0.0.2\" } ]\n[api]\nlisten = [\"unix:s\"]\ntoken_for_reads = true\n\
        names = [\"san\"]\n[[alert_command]]\nname = \"c\"\nargv = [\"/c\"]\nseconds = 9\n[scrub]\nevery_days = 7\n\
        [health]\nevery_minutes = 5\n[history]\nmax_bytes = \"2GiB\"\n[session]\nlogin_seconds = 2\n\
        ping_after_seconds = 3\nping_timeout_seconds = 4\ndata_seconds = 5\n[runtime]\ncoalesce_us = 6\n";

    fn config(rest: &str) -> Config {
        parse(Path::new("/e/node.toml"), &format!("{HEAD}{rest}")).unwrap()
    }

    #[test]
    fn every_key_that_is_said_to_be_live_is_taken_whole_and_back() {
        let (before, after) = (config(BEFORE), config(AFTER));
        let changes = before.changes_to(&after);
        let keys = live_keys(&changes);
        let plain_keys: BTreeSet<String> = keys.iter().map(|key| plain(key)).collect();
        let all = node_fields().into_iter().filter(|field| field.live);
        let all: BTreeSet<String> = all.map(|field| field.key.to_owned()).collect();
        assert_eq!(plain_keys, all, "the text above has each");
        for (from, to) in [(&before, &after), (&after, &before)] {
            let taken = from.with_live(to, &keys);
            assert_eq!(taken.changes_to(to), [], "nothing waits");
            let lines = |config: &Config| Config {
                lines: Default::default(),
                written: Default::default(),
                ..config.clone()
            };
            assert_eq!(lines(&taken), lines(to));
        }
        let one = BTreeSet::from(["scrub.every_days".to_owned()]);
        let taken = before.with_live(&after, &one);
        assert_eq!(taken.scrub_every_days, Some(7));
        assert_eq!(taken.session, before.session, "nobody asked for it");
    }

    #[test]
    fn what_a_start_alone_does_waits_for_it() {
        let before = config(BEFORE);
        let text = AFTER.replace("[runtime]", "[runtime]\npoll_us = 3");
        let after = config(&text);
        let waits = before.changes_to(&after).into_iter();
        let waits: Vec<_> = waits
            .filter(|it| it.takes_effect == TakesEffect::Restart)
            .map(|it| it.key)
            .collect();
        assert_eq!(waits, ["runtime.poll_us"]);
        let keys = BTreeSet::from(["runtime.poll_us".to_owned()]);
        assert_eq!(before.with_live(&after, &keys), before);
        // Another group at the same place: its portals are no change of the former one's.
        let text = format!("{HEAD}{AFTER}").replace("\"p\"", "\"q\"");
        let other = parse(Path::new("/e/node.toml"), &text).unwrap();
        let changes = before.changes_to(&other);
        let listen = changes.iter().find(|it| it.key == "portal_group[0].listen");
        assert_eq!(listen.unwrap().takes_effect, TakesEffect::Restart);
        let keys = BTreeSet::from(["portal_group[0].listen".to_owned()]);
        assert_eq!(before.with_live(&other, &keys), before);
    }
}
