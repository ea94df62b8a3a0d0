//! Back to the objects of an earlier generation, as far as that can be done without losing data.
//!
//! **Contract.** No data is lost: a LUN that was not there then is removed and keeps its data, one
//! that was smaller or larger keeps the size that it has, and one that was purged since does not
//! come back. What differs from then is reported.

use super::adopt::free;
use super::choice::choose;
use super::{Surroundings, removed};
use crate::code::Code;
use crate::objects::{GrantKey, Lun, Objects, SECTION_LUN, SECTION_TARGET, check_place};
use crate::problem::{Fault, Problem};
use std::collections::{BTreeMap, BTreeSet};

/// The LUNs by NAA identifier, with their names.
fn by_naa(objects: &Objects) -> BTreeMap<&str, (&String, &Lun)> {
    let all = objects.luns.iter().chain(&objects.removed);
    all.map(|(name, lun)| (lun.naa.as_str(), (name, lun)))
        .collect()
}

/// What it will be, and what of it is not as it was then.
pub(super) fn roll_back(current: &Objects, then: &Objects) -> (Objects, Vec<String>) {
    let known = by_naa(current);
    let mut notices = Vec::new();
    let mut kept = |name: &String, was: &Lun| {
        let Some((_, lun)) = known.get(was.naa.as_str()) else {
            notices.push(format!(
                "LUN {name} does not come back: it was purged since, and its data is gone"
            ));
            return None;
        };
        if lun.size != was.size {
            notices.push(format!(
                "LUN {name} keeps its size of {}: it had {} then",
                lun.size.reported(),
                was.size.reported()
            ));
        }
        let lun = Lun {
            size: lun.size,
            backing: lun.backing.clone(),
            ..was.clone()
        };
        Some((name.clone(), lun))
    };
    let luns: BTreeMap<String, Lun> = then.luns.iter().filter_map(|(n, l)| kept(n, l)).collect();
    let gone: BTreeMap<String, Lun> = then
        .removed
        .iter()
        .filter_map(|(n, l)| kept(n, l))
        .collect();
    let mut after = Objects {
        luns,
        removed: gone,
        next_id: current.next_id.max(then.next_id),
        ..then.clone()
    };
    let there: BTreeSet<String> = by_naa(&after).into_keys().map(ToOwned::to_owned).collect();
    for (naa, (name, lun)) in known {
        if !there.contains(naa) {
            let name = free(&after, name);
            notices.push(format!(
                "LUN {name} was not there then: its data stays until `lun purge`"
            ));
            after.removed.insert(name, lun.clone());
        }
    }
    let served: BTreeSet<String> = after.luns.keys().cloned().collect();
    after.grants.retain(|key, _| served.contains(&key.lun));
    removed::keep(current, &mut after);
    (after, notices)
}

/// What it was may name what node.toml no longer has. What is so now already is no worse
/// afterwards.
pub(super) fn check(
    current: &Objects,
    after: &Objects,
    around: &Surroundings,
) -> Result<(), Problem> {
    let mut faults = Vec::new();
    for (name, target) in &after.targets {
        let group = &target.portal_group;
        let now = current.targets.values().find(|now| now.id == target.id);
        if now.is_some_and(|now| now.portal_group == *group) {
            continue;
        }
        if let Err(rule) = choose(Some(group), &around.portal_groups, "portal group") {
            faults.push(Fault::new(SECTION_TARGET, name, "portal_group", rule));
        }
    }
    let known = by_naa(current);
    for (name, lun) in &after.luns {
        let now = known.get(lun.naa.as_str()).map(|(_, lun)| lun);
        let serves = current.luns.values().any(|now| now.naa == lun.naa);
        if serves && now.is_some_and(|now| now.storage == lun.storage) {
            continue;
        }
        let Some(pool) = lun.backing.pool() else {
            continue;
        };
        if let Err(rule) = choose(Some(pool), &around.pools, "pool") {
            faults.push(Fault::new(SECTION_LUN, name, "pool", rule));
            continue;
        }
        let broken = check_place(&lun.storage, Some(around.pool(pool))).into_iter();
        faults.extend(broken.map(|(key, rule)| Fault::new(SECTION_LUN, name, key, rule)));
    }
    if faults.is_empty() {
        return Ok(());
    }
    let detail = "that generation names what node.toml no longer has; nothing was changed";
    Err(Problem::new(Code::InvalidObjects, detail)
        .faults(faults)
        .hint(
            "give node.toml again what is missing and restart the daemon, or take another generation: `causeway state ls`; then change \
             what differs with `causeway target set`, `causeway lun set`",
        ))
}

/// `current` with the names that its LUNs will have, so that a new name is not reported as one LUN
/// that goes and one that comes.
pub(super) fn renamed(current: &Objects, after: &Objects) -> Objects {
    let will = by_naa(after);
    let name = |name: &String, lun: &Lun| {
        let found = will.get(lun.naa.as_str());
        found.map_or_else(|| name.clone(), |(name, _)| (*name).clone())
    };
    let rename = |luns: &BTreeMap<String, Lun>| {
        let luns = luns.iter().map(|(n, l)| (name(n, l), l.clone()));
        luns.collect::<BTreeMap<String, Lun>>()
    };
    let key = |key: &GrantKey| {
        let lun = current.luns.get(&key.lun);
        GrantKey {
            lun: lun.map_or_else(|| key.lun.clone(), |lun| name(&key.lun, lun)),
            ..key.clone()
        }
    };
    Objects {
        luns: rename(&current.luns),
        removed: rename(&current.removed),
        grants: current.grants.iter().map(|(k, g)| (key(k), *g)).collect(),
        ..current.clone()
    }
}
