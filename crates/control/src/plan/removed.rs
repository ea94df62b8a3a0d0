//! The grants of LUNs that were removed: they wait with the data for `lun restore`.
//!
//! **Invariant.** What waits belongs to a removed LUN, a host and a target that are all there. A host or target that goes takes its
//! waiting grants along: another one that gets its name later is another one.

use super::{Edit, Section};
use crate::objects::{Grant, GrantKey, Objects};

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

/// What of the waiting grants a restore could not bring back, and why.
pub(super) fn not_brought_back(before: &Objects, edit: &Edit, after: &Objects) -> Vec<String> {
    let Edit::Restore(lun) = edit else {
        return Vec::new();
    };
    let told = |(key, grant): (GrantKey, Grant)| {
        let other = taken(after, &key, grant)?;
        let (id, lun) = (grant.lun_id, &other.lun);
        Some(format!(
            "grant {key} does not come back: number {id} is LUN {lun}'s now; causeway grant create {} {} --target {}",
            key.host, key.lun, key.target
        ))
    };
    waiting(before, lun).into_iter().filter_map(told).collect()
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
