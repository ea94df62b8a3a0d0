//! The grants of LUNs that were removed: they wait with the data for `lun restore`.
//!
//! **Invariant.** What waits belongs to a removed LUN, a host and a target that are all there. A
//! host or target that goes takes its waiting grants along: another one that gets its name later is
//! another one.

use super::{Edit, Section};
use crate::objects::{Grant, GrantKey, Objects};
use std::collections::BTreeSet;

/// The grants of a LUN that goes out of service wait with it.
pub(super) fn keep(before: &Objects, after: &mut Objects) {
    for (key, grant) in &before.grants {
        if after.removed.contains_key(&key.lun) && !after.grants.contains_key(key) {
            after.removed_grants.insert(key.clone(), *grant);
        }
    }
    let whole = |key: &GrantKey| {
        after.removed.contains_key(&key.lun)
            && after.hosts.contains_key(&key.host)
            && after.targets.contains_key(&key.target)
    };
    let all = std::mem::take(&mut after.removed_grants);
    after.removed_grants = all.into_iter().filter(|(key, _)| whole(key)).collect();
}

/// A LUN that comes back gets its grants again, as far as their numbers are free.
pub(super) fn bring_back(after: &mut Objects, lun: &str) {
    for (key, grant) in waiting(after, lun) {
        if taken(after, &key, grant).is_none() {
            after.grants.insert(key, grant);
        }
    }
}

fn waiting(objects: &Objects, lun: &str) -> Vec<(GrantKey, Grant)> {
    let all = objects.removed_grants.iter();
    all.filter(|(key, _)| key.lun == lun)
        .map(|(key, grant)| (key.clone(), *grant))
        .collect()
}

/// Whose number it is now.
fn taken<'a>(objects: &'a Objects, key: &GrantKey, grant: Grant) -> Option<&'a GrantKey> {
    let same = |(known, has): &(&GrantKey, &Grant)| {
        known.host == key.host && known.target == key.target && has.lun_id == grant.lun_id
    };
    let found = objects.grants.iter().find(same);
    found.map(|(known, _)| known).filter(|known| *known != key)
}

/// The LUNs that are applied come back with their grants, as far as their numbers are free; `named`
/// are those that the set names itself.
pub(super) fn bring_back_unnamed(
    before: &Objects,
    after: &mut Objects,
    named: &BTreeSet<GrantKey>,
) {
    for (key, grant) in &before.removed_grants {
        let comes_back = after.luns.contains_key(&key.lun) && !named.contains(key);
        if comes_back && taken(after, key, *grant).is_none() {
            after.grants.insert(key.clone(), *grant);
        }
    }
}

/// The number that a grant had before its LUN was removed, where it is free.
pub(super) fn number_before(before: &Objects, after: &Objects, key: &GrantKey) -> Option<u16> {
    let grant = before.removed_grants.get(key)?;
    taken(after, key, *grant).is_none().then_some(grant.lun_id)
}

/// What of the waiting grants neither comes back nor waits any more, and why.
pub(super) fn lost(before: &Objects, edit: &Edit, after: &Objects) -> Vec<String> {
    if let Edit::Rename { .. } = edit {
        // They are there, by other names.
        return Vec::new();
    }
    let reported = |(key, grant): (&GrantKey, &Grant)| {
        let there = after.grants.contains_key(key) || after.removed_grants.contains_key(key);
        let lun = before.removed.get(&key.lun)?;
        let mut known = after.luns.values().chain(after.removed.values());
        if there || known.all(|it| it.naa != lun.naa) {
            // Who purges a LUN gives up its grants.
            return None;
        }
        Some(why_lost(after, key, *grant))
    };
    before.removed_grants.iter().filter_map(reported).collect()
}

fn why_lost(after: &Objects, key: &GrantKey, grant: Grant) -> String {
    let gone = |what: &str, name: &str| {
        format!(
            "grant {key}, which waits for `lun restore {}`, goes with {what} {name}",
            key.lun
        )
    };
    if !after.hosts.contains_key(&key.host) {
        return gone("host", &key.host);
    }
    if !after.targets.contains_key(&key.target) {
        return gone("target", &key.target);
    }
    let GrantKey { host, target, lun } = key;
    let why = match taken(after, key, grant) {
        Some(other) => format!("number {} is LUN {}'s now", grant.lun_id, other.lun),
        None => "it is not among what is wanted".to_owned(),
    };
    format!(
        "grant {key} does not come back: {why}; causeway grant create {host} {lun} --target {target}"
    )
}

/// A waiting grant follows the new name of what it ties together.
pub(super) fn rename(objects: &mut Objects, section: Section, from: &str, to: &str) {
    let renamed = |name: String, of: Section| {
        if section == of && name == from {
            to.to_owned()
        } else {
            name
        }
    };
    let all = std::mem::take(&mut objects.removed_grants).into_iter();
    objects.removed_grants = all
        .map(|(key, grant)| {
            let key = GrantKey {
                host: renamed(key.host, Section::Host),
                target: renamed(key.target, Section::Target),
                lun: renamed(key.lun, Section::Lun),
            };
            (key, grant)
        })
        .collect();
}
