//! One object as it was asked for.

use super::Controller;
use manifest::objects::{Chap, ObjectSet, Objects, export};
use manifest::plan::{Section, Subject};
use manifest::secret::Secret;
use std::collections::BTreeMap;

impl Controller {
    /// What an object is meant to be, as `export` has it alone and without anything secret; `None`:
    /// there is none.
    #[must_use]
    pub fn spec(&self, subject: &Subject) -> Option<ObjectSet> {
        let (objects, name) = (self.objects(), &subject.name);
        let mut alone = Objects::default();
        match subject.section {
            Section::Lun => {
                let lun = objects.luns.get(name)?;
                alone.luns.insert(name.clone(), lun.clone());
            }
            Section::Target => {
                let target = objects.targets.get(name)?;
                alone.targets.insert(name.clone(), target.clone());
            }
            Section::Host => {
                let host = objects.hosts.get(name)?;
                alone.hosts.insert(name.clone(), host.clone());
            }
            Section::Grant => {
                let key = name.parse().ok()?;
                let grant = objects.grants.get(&key)?;
                alone.grants.insert(key, *grant);
            }
        }
        Some(export(&alone))
    }
}

impl Controller {
    /// Every CHAP secret that is stored: for whoever makes certain that none of them gets out.
    #[must_use]
    pub fn chap_secrets(&self) -> Vec<Secret> {
        let objects = self.objects();
        let all = objects.hosts.values().filter_map(|host| host.chap.as_ref());
        let of = |chap: &Chap| {
            let mutual = chap.mutual.as_ref().map(|mutual| mutual.secret.clone());
            std::iter::once(chap.secret.clone()).chain(mutual)
        };
        all.flat_map(of).collect()
    }
}

/// The objects that differ between two states, as each has them, without anything secret. Of LUNs
/// that were deleted those count whose data is given up.
pub(crate) fn difference(before: &Objects, after: &Objects) -> [ObjectSet; 2] {
    let mut given_up = before.removed.clone();
    given_up.retain(|name, _| !after.removed.contains_key(name) && !after.luns.contains_key(name));
    let mut was = other_than(before, after);
    was.luns.extend(given_up);
    [export(&was), export(&other_than(after, before))]
}

/// Objects of one state that the other has not, or has otherwise.
fn other_than(of: &Objects, other: &Objects) -> Objects {
    Objects {
        luns: changed(&of.luns, &other.luns),
        targets: changed(&of.targets, &other.targets),
        hosts: changed(&of.hosts, &other.hosts),
        grants: changed(&of.grants, &other.grants),
        ..Objects::default()
    }
}

fn changed<K: Ord + Clone, V: PartialEq + Clone>(
    of: &BTreeMap<K, V>,
    other: &BTreeMap<K, V>,
) -> BTreeMap<K, V> {
    let changed = of.iter().filter(|(name, it)| other.get(name) != Some(it));
    changed
        .map(|(name, it)| (name.clone(), it.clone()))
        .collect()
}
