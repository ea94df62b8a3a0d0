//! The differences between two sets of objects, and whom they hit.

use super::{Action, Class, Section, SessionBrief, Surroundings, Verb};
use crate::name::did_you_mean;
use crate::objects::{
    FIELDS, Grant, GrantKey, Host, Lun, MIRRORED_PORTS, ONE_HOST_ANY, Objects, Risk, SECTION_GRANT,
    SECTION_HOST, SECTION_LUN, SECTION_TARGET, Storage, Switched, Target,
};
use crate::problem::Fault;
use crate::size::Size;
use std::collections::BTreeMap;

/// What happens to the LUNs themselves, for whoever keeps their blocks. Identity is the NAA
/// identifier: a renamed LUN is not in here.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LunChanges {
    /// New ones.
    pub created: Vec<Lun>,
    /// Removed ones that come back.
    pub restored: Vec<Lun>,
    /// Those whose size changes, as they will be.
    pub resized: Vec<Lun>,
    /// Those that get a layer between although they have contents, as they will be.
    pub switched_on: Vec<(Switched, Lun)>,
    /// Those that a layer is taken from, as they will be.
    pub switched_off: Vec<(Switched, Lun)>,
    /// Those that go out of service and keep their data.
    pub retired: Vec<Lun>,
    /// Those whose data is destroyed.
    pub purged: Vec<Lun>,
}

impl LunChanges {
    /// What changes of a LUN that stays.
    fn follow(&mut self, was: &Lun, is: &Lun) {
        if was.size != is.size {
            self.resized.push(is.clone());
        }
        for field in FIELDS {
            if let Some(switched) = field.switched(&was.storage, &is.storage) {
                let luns = match switched.is_on {
                    true => &mut self.switched_on,
                    false => &mut self.switched_off,
                };
                luns.push((switched, is.clone()));
            }
        }
    }
}

/// The changes of the LUNs from one set of objects to another.
#[must_use]
pub fn lun_changes(before: &Objects, after: &Objects) -> LunChanges {
    let by_naa = |luns: &BTreeMap<String, Lun>| -> BTreeMap<String, Lun> {
        let entries = luns.values().map(|lun| (lun.naa.clone(), lun.clone()));
        entries.collect()
    };
    let (was, is) = (by_naa(&before.luns), by_naa(&after.luns));
    let (was_removed, is_removed) = (by_naa(&before.removed), by_naa(&after.removed));
    let mut out = LunChanges::default();
    for (naa, lun) in &is {
        match (was.get(naa), was_removed.get(naa)) {
            (Some(known), _) => out.follow(known, lun),
            (None, Some(known)) => {
                out.restored.push(known.clone());
                out.follow(known, lun);
            }
            (None, None) => out.created.push(lun.clone()),
        }
    }
    for (naa, lun) in was.iter().chain(&was_removed) {
        let stays = is.contains_key(naa) || is_removed.contains_key(naa);
        if !stays {
            out.purged.push(lun.clone());
        } else if was.contains_key(naa) && !is.contains_key(naa) {
            out.retired.push(lun.clone());
        }
    }
    out
}

/// Rules that hold between objects (I1 to I4 of [`Objects`]).
pub(super) fn check_together(after: &Objects, faults: &mut Vec<Fault>) {
    let mut devices: BTreeMap<&std::path::Path, &String> = BTreeMap::new();
    for (name, lun) in after.luns.iter().chain(&after.removed) {
        if let Some(path) = lun.backing.device()
            && let Some(other) = devices.insert(path, name)
        {
            let rule = format!("LUN \"{other}\" has this device");
            faults.push(Fault::new(SECTION_LUN, name, "backend", rule));
        }
    }
    let mut names: BTreeMap<&str, &String> = BTreeMap::new();
    for (name, target) in &after.targets {
        if let Some(other) = names.insert(&target.iqn, name) {
            let rule = format!("target \"{other}\" has this iSCSI name");
            faults.push(Fault::new(SECTION_TARGET, name, "iqn", rule));
        }
    }
    let mut names: BTreeMap<&str, &String> = BTreeMap::new();
    for (name, host) in &after.hosts {
        for iqn in &host.iqn {
            let Some(other) = names.insert(iqn, name) else {
                continue;
            };
            let what = if iqn == ONE_HOST_ANY {
                "every initiator"
            } else {
                iqn
            };
            let rule = format!("host \"{other}\" has {what} already");
            faults.push(Fault::new(SECTION_HOST, name, "iqn", rule));
        }
    }
    check_grants(after, faults);
}

fn check_grants(after: &Objects, faults: &mut Vec<Fault>) {
    let mut numbers: BTreeMap<(&str, &str, u16), &GrantKey> = BTreeMap::new();
    for (key, grant) in &after.grants {
        let mut dangling = |section: &str, name: &str, guess: String| {
            let rule = format!("there is no {section} \"{name}\"{guess}");
            faults.push(Fault::new(SECTION_GRANT, &key.to_string(), section, rule));
        };
        if !after.luns.contains_key(&key.lun) {
            let guess = did_you_mean(&key.lun, after.luns.keys().map(String::as_str));
            dangling(SECTION_LUN, &key.lun, guess);
        }
        if !after.targets.contains_key(&key.target) {
            let guess = did_you_mean(&key.target, after.targets.keys().map(String::as_str));
            dangling(SECTION_TARGET, &key.target, guess);
        }
        if !after.hosts.contains_key(&key.host) {
            let guess = did_you_mean(&key.host, after.hosts.keys().map(String::as_str));
            dangling(SECTION_HOST, &key.host, guess);
        }
        if let Some(other) = numbers.insert((&key.host, &key.target, grant.lun_id), key) {
            let id = grant.lun_id;
            let rule = format!(
                "number {id} is LUN \"{}\"'s on this host and target",
                other.lun
            );
            faults.push(Fault::new(SECTION_GRANT, &key.to_string(), "lun_id", rule));
        }
        if let (Some(lun), Some(target)) =
            (after.luns.get(&key.lun), after.targets.get(&key.target))
            && lun.storage.copies.is_some()
            && target.relative_port > MIRRORED_PORTS
        {
            let rule = format!(
                "target \"{}\" has relative target port identifier {}, and a LUN with copies on several nodes can be \
                 shown at {MIRRORED_PORTS} and below only: each node has as many; make another target for it",
                key.target, target.relative_port
            );
            faults.push(Fault::new(
                SECTION_GRANT,
                &key.to_string(),
                SECTION_TARGET,
                rule,
            ));
        }
    }
}

/// The steps from `before` to `after`, in the order in which they are reported: what is made, what
/// changes, what goes.
pub(super) fn compare(before: &Objects, after: &Objects, around: &Surroundings) -> Vec<Action> {
    let mut out = Steps {
        before,
        after,
        around,
        made: Vec::new(),
        gone: Vec::new(),
    };
    out.luns();
    out.targets();
    out.hosts();
    out.grants();
    // Grants go before what they tie together.
    out.gone.reverse();
    out.made.extend(out.gone);
    out.made
}

struct Steps<'a> {
    before: &'a Objects,
    after: &'a Objects,
    around: &'a Surroundings,
    made: Vec<Action>,
    gone: Vec<Action>,
}

impl Steps<'_> {
    fn luns(&mut self) {
        for (name, lun) in &self.after.luns {
            let removed = self.before.removed.get(name);
            match (self.before.luns.get(name), removed) {
                (Some(was), _) => {
                    self.lun_size(name, was, lun, Verb::Change);
                    self.in_flight(
                        Section::Lun,
                        name,
                        was.bytes_in_flight_max,
                        lun.bytes_in_flight_max,
                    );
                    self.storage(name, &was.storage, &lun.storage);
                }
                (None, Some(was)) if was.size != lun.size => {
                    self.lun_size(name, was, lun, Verb::Restore);
                    self.storage(name, &was.storage, &lun.storage);
                }
                (None, Some(was)) => {
                    self.push(Verb::Restore, Section::Lun, name, describe_lun(lun));
                    self.storage(name, &was.storage, &lun.storage);
                }
                (None, None) => self.new_lun(name, lun),
            }
        }
        for name in self.before.luns.keys() {
            if !self.after.luns.contains_key(name) {
                let grants = match self.before.grants_of_lun(name).count() {
                    0 => "it",
                    1 => "it and its grant",
                    _ => "it and its grants",
                };
                let detail =
                    format!("its data stays until `lun purge`; `lun restore` brings {grants} back");
                let hits = self.using_lun(name);
                self.gone
                    .push(disruptive(Verb::Remove, Section::Lun, name, detail, hits));
            }
        }
        for (name, lun) in &self.before.removed {
            let stays = self.after.removed.contains_key(name) || self.after.luns.contains_key(name);
            if !stays {
                self.gone.push(purged(name, lun));
            }
        }
    }

    /// Who writes `cache = "volatile"` learns what that risks, as with a change. Where nobody
    /// chose, nothing was promised: the LUN is what its pool has without a journal.
    fn new_lun(&mut self, name: &str, lun: &Lun) {
        let mut detail = describe_lun(lun);
        let risks = FIELDS.iter().filter_map(|field| field.risk(&lun.storage));
        let chosen: Vec<Risk> = risks.filter(|risk| risk.is_chosen).collect();
        for risk in &chosen {
            let words = format!(", {} {}: {}", risk.field, risk.value, risk.detail);
            detail.push_str(&words);
        }
        let mut action = live(Verb::Create, Section::Lun, name, detail);
        action.risks_data = !chosen.is_empty();
        self.made.push(action);
    }

    /// A limit of what commands may hold: what is held stays.
    fn in_flight(&mut self, section: Section, name: &str, was: Option<Size>, is: Option<Size>) {
        if was != is {
            let detail = is.map_or_else(
                || "no limit of bytes in flight".to_owned(),
                |most| format!("at most {} in flight", most.reported()),
            );
            self.made.push(live(Verb::Change, section, name, detail));
        }
    }

    fn storage(&mut self, name: &str, was: &Storage, is: &Storage) {
        for changed in FIELDS.iter().filter_map(|field| field.changed(was, is)) {
            let mut action = live(Verb::Change, Section::Lun, name, changed.detail);
            action.risks_data = changed.risks_data;
            self.made.push(action);
        }
    }

    fn lun_size(&mut self, name: &str, was: &Lun, is: &Lun, verb: Verb) {
        if was.size == is.size {
            return;
        }
        let detail = format!("from {} to {}", was.size.reported(), is.size.reported());
        let seen = self.around.seen_larger.get(&was.naa);
        let seen = seen.filter(|seen| **seen > was.size);
        if is.size > was.size {
            let back = seen.map_or_else(String::new, |seen| {
                format!(
                    ": what it held there when it had {} is there again",
                    seen.reported()
                )
            });
            self.push(verb, Section::Lun, name, format!("grow {detail}{back}"));
            return;
        }
        let had = seen.unwrap_or(&was.size);
        let cut = Size::from_bytes(had.bytes() - is.size.bytes());
        let cut = cut.expect("less than a size").reported();
        let more = seen.map_or_else(String::new, |seen| {
            format!(" (its pool has seen it with {})", seen.reported())
        });
        let detail = format!("shrink {detail}{more}: what its last {cut} hold is lost");
        let mut action = disruptive(verb, Section::Lun, name, detail, self.using_lun(name));
        action.loses_data = true;
        self.made.push(action);
    }

    fn targets(&mut self) {
        for (name, target) in &self.after.targets {
            let Some(was) = self.before.targets.get(name) else {
                let detail = describe_target(target);
                self.push(Verb::Create, Section::Target, name, detail);
                continue;
            };
            let mut changes = Vec::new();
            if was.iqn != target.iqn {
                changes.push(format!("iqn from {} to {}", was.iqn, target.iqn));
            }
            if was.portal_group != target.portal_group {
                let (from, to) = (&was.portal_group, &target.portal_group);
                changes.push(format!("portal group from {from} to {to}"));
            }
            if !changes.is_empty() {
                let (detail, hits) = (changes.join(", "), self.on_target(name));
                let action = disruptive(Verb::Change, Section::Target, name, detail, hits);
                self.made.push(action);
            }
            self.target_absence(name, was, target);
        }
        for name in self.before.targets.keys() {
            if !self.after.targets.contains_key(name) {
                let hits = self.on_target(name);
                let action = disruptive(Verb::Remove, Section::Target, name, String::new(), hits);
                self.gone.push(action);
            }
        }
    }

    /// A redirect concerns logins only; maintenance asks sessions to go.
    fn target_absence(&mut self, name: &str, was: &Target, is: &Target) {
        if was.redirect != is.redirect {
            let detail = match &is.redirect {
                Some(redirect) => format!("logins go to {redirect}"),
                None => "logins are served here again".to_owned(),
            };
            let mut action = live(Verb::Change, Section::Target, name, detail);
            action.class = Class::NewSessions;
            self.made.push(action);
        }
        if was.maintenance_grace_seconds != is.maintenance_grace_seconds {
            let (from, to) = (was.maintenance_grace_seconds, is.maintenance_grace_seconds);
            let detail = format!("maintenance grace from {from} to {to} seconds");
            self.push(Verb::Change, Section::Target, name, detail);
        }
        if !was.maintenance && is.maintenance {
            let detail = format!(
                "into maintenance, sessions are asked to log out and ended after {} seconds",
                is.maintenance_grace_seconds
            );
            let hits = self.on_target(name);
            let action = disruptive(Verb::Change, Section::Target, name, detail, hits);
            self.made.push(action);
        }
        if was.maintenance && !is.maintenance {
            let detail = "out of maintenance".to_owned();
            self.push(Verb::Change, Section::Target, name, detail);
        }
    }

    fn hosts(&mut self) {
        for (name, host) in &self.after.hosts {
            let was = self.before.hosts.get(name);
            let Some(was) = was else {
                let hits = self.taken_over_by(name);
                let detail = describe_host(host);
                let action = disruptive(Verb::Create, Section::Host, name, detail, hits);
                self.made.push(action);
                continue;
            };
            if was.iqn != host.iqn {
                let detail = format!("initiators {}", host.iqn.join(", "));
                let mut hits = self.no_longer_of(name);
                hits.extend(self.taken_over_by(name));
                let action = disruptive(Verb::Change, Section::Host, name, detail, hits);
                self.made.push(action);
            }
            if was.chap != host.chap {
                let word = if host.chap.is_some() {
                    "CHAP changes"
                } else {
                    "CHAP is no longer needed"
                };
                let mut action = live(Verb::Change, Section::Host, name, word.to_owned());
                action.class = Class::NewSessions;
                self.made.push(action);
            }
            self.in_flight(
                Section::Host,
                name,
                was.bytes_in_flight_max,
                host.bytes_in_flight_max,
            );
        }
        for name in self.before.hosts.keys() {
            if !self.after.hosts.contains_key(name) {
                let hits = self.no_longer_of(name);
                let action = disruptive(Verb::Remove, Section::Host, name, String::new(), hits);
                self.gone.push(action);
            }
        }
    }

    fn grants(&mut self) {
        for (key, grant) in &self.after.grants {
            let name = key.to_string();
            let Some(was) = self.before.grants.get(key) else {
                let detail = describe_grant(*grant);
                self.push(Verb::Create, Section::Grant, &name, detail);
                continue;
            };
            if was.lun_id != grant.lun_id {
                let detail = format!("number from {} to {}", was.lun_id, grant.lun_id);
                let hits = self.using_grant(key);
                let action = disruptive(Verb::Change, Section::Grant, &name, detail, hits);
                self.made.push(action);
            }
            if was.read_only && !grant.read_only {
                let detail = "writing is allowed".to_owned();
                self.push(Verb::Change, Section::Grant, &name, detail);
            }
            if !was.read_only && grant.read_only {
                let detail = "writing is no longer allowed".to_owned();
                let hits = self.using_grant(key);
                let action = disruptive(Verb::Change, Section::Grant, &name, detail, hits);
                self.made.push(action);
            }
        }
        for key in self.before.grants.keys() {
            if !self.after.grants.contains_key(key) {
                let (name, hits) = (key.to_string(), self.using_grant(key));
                let action = disruptive(Verb::Remove, Section::Grant, &name, String::new(), hits);
                self.gone.push(action);
            }
        }
    }

    fn push(&mut self, verb: Verb, section: Section, name: &str, detail: String) {
        self.made.push(live(verb, section, name, detail));
    }

    fn hit(&self, is_hit: impl Fn(&SessionBrief) -> bool) -> Vec<SessionBrief> {
        let hit = self
            .around
            .sessions
            .iter()
            .filter(|session| is_hit(session));
        hit.cloned().collect()
    }

    fn on_target(&self, target: &str) -> Vec<SessionBrief> {
        self.hit(|session| session.target.as_deref() == Some(target))
    }

    fn using_grant(&self, key: &GrantKey) -> Vec<SessionBrief> {
        self.hit(|session| {
            session.host == key.host && session.target.as_deref() == Some(&key.target)
        })
    }

    fn using_lun(&self, lun: &str) -> Vec<SessionBrief> {
        let keys = self.before.grants_of_lun(lun);
        keys.flat_map(|key| self.using_grant(key)).collect()
    }

    /// Sessions of the host whose initiator will not belong to it.
    fn no_longer_of(&self, host: &str) -> Vec<SessionBrief> {
        self.hit(|session| {
            session.host == host && self.after.host_of(&session.initiator) != Some(host)
        })
    }

    /// Sessions of other hosts whose initiator will belong to this one.
    fn taken_over_by(&self, host: &str) -> Vec<SessionBrief> {
        self.hit(|session| {
            session.host != host && self.after.host_of(&session.initiator) == Some(host)
        })
    }
}

fn live(verb: Verb, section: Section, name: &str, detail: String) -> Action {
    Action {
        verb,
        section,
        name: name.to_owned(),
        detail,
        class: Class::Live,
        hits: Vec::new(),
        loses_data: false,
        risks_data: false,
    }
}

/// Disruptive where someone is hit.
fn disruptive(
    verb: Verb,
    section: Section,
    name: &str,
    detail: String,
    hits: Vec<SessionBrief>,
) -> Action {
    let mut action = live(verb, section, name, detail);
    if !hits.is_empty() {
        action.class = Class::Disruptive;
    }
    action.hits = hits;
    action
}

/// A device keeps what is on it; everything else is gone.
fn purged(name: &str, lun: &Lun) -> Action {
    let (size, device) = (lun.size.reported(), lun.backing.device());
    let loses_data = device.is_none();
    let detail = match device {
        Some(path) => format!("{} keeps what is on it", path.display()),
        None => format!("its data is destroyed: a LUN of {size} in {}", lun.backing),
    };
    Action {
        loses_data,
        ..live(Verb::Purge, Section::Lun, name, detail)
    }
}

fn describe_lun(lun: &Lun) -> String {
    let (size, backing) = (lun.size.reported(), &lun.backing);
    format!("{size}, {backing}, {}-byte blocks", lun.block_size)
}

fn describe_target(target: &Target) -> String {
    let mut detail = format!("{}, portal group {}", target.iqn, target.portal_group);
    if let Some(redirect) = &target.redirect {
        detail.push_str(&format!(", logins go to {redirect}"));
    }
    if target.maintenance {
        detail.push_str(", in maintenance");
    }
    detail
}

fn describe_host(host: &Host) -> String {
    let chap = match &host.chap {
        None => "no CHAP",
        Some(chap) if chap.mutual.is_some() => "mutual CHAP",
        Some(_) => "CHAP",
    };
    format!("{}, {chap}", host.iqn.join(", "))
}

fn describe_grant(grant: Grant) -> String {
    let writing = if grant.read_only { ", read-only" } else { "" };
    format!("number {}{writing}", grant.lun_id)
}
