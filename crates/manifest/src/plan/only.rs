//! A part of a set: some objects with their grants, and what these need to be there.

use super::{Section, Subject};
use crate::code::Code;
use crate::name::did_you_mean;
use crate::objects::{GrantSpec, ObjectSet, Objects, SECTION_GRANT};
use crate::problem::Problem;
use std::str::FromStr;

impl FromStr for Section {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Lun, Self::Target, Self::Host, Self::Grant];
        let found = all.into_iter().find(|section| section.name() == text);
        found.ok_or_else(|| {
            let guess = did_you_mean(text, all.iter().map(|section| section.name()));
            format!("\"{text}\" is no kind of object: write lun, target, host or grant{guess}")
        })
    }
}

impl FromStr for Subject {
    type Err = String;

    /// Reads `KIND=NAME`, such as `target=t1` or `grant=esx01:t1:vm01`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (section, name) = text
            .split_once('=')
            .filter(|(_, name)| !name.is_empty())
            .ok_or_else(|| format!("\"{text}\": write KIND=NAME, such as target=t1"))?;
        let (section, name) = (section.parse()?, name.to_owned());
        Ok(Self { section, name })
    }
}

/// The target of a grant; where it says none, the only one that there is.
fn target_of<'a>(
    grant: &'a GrantSpec,
    set: &'a ObjectSet,
    current: &'a Objects,
) -> Option<&'a str> {
    if let Some(target) = &grant.target {
        return Some(target);
    }
    let mut all: Vec<&str> = set.target.iter().map(|target| &*target.name).collect();
    all.extend(current.targets.keys().map(String::as_str));
    all.sort_unstable();
    all.dedup();
    match all.as_slice() {
        [only] => Some(only),
        _ => None,
    }
}

/// Whether a grant is one of a subject's, or the subject.
fn touches(subject: &Subject, host: &str, target: &str, lun: &str) -> bool {
    let name = subject.name.as_str();
    match subject.section {
        Section::Host => host == name,
        Section::Target => target == name,
        Section::Lun => lun == name,
        Section::Grant => format!("{host}:{target}:{lun}") == name,
    }
}

/// What of `set` is meant by `only`: these objects as the set says them, their grants, and what
/// the grants name and `current` does not have. What `current` has and only the grants name stays
/// as it is there.
///
/// # Errors
/// The set has none of that kind and name, and where `may_go` neither has `current`.
pub(super) fn part(
    set: &ObjectSet,
    only: &[Subject],
    current: &Objects,
    may_go: bool,
) -> Result<ObjectSet, Problem> {
    let mut part = ObjectSet::default();
    for grant in &set.grant {
        let target = target_of(grant, set, current);
        let is_meant = |subject: &Subject| {
            touches(subject, &grant.host, target.unwrap_or_default(), &grant.lun)
        };
        if only.iter().any(is_meant) {
            part.grant.push(GrantSpec {
                target: target.map(str::to_owned),
                ..grant.clone()
            });
        }
    }
    let grants = std::mem::take(&mut part.grant);
    let named = |section, name: &str| {
        only.iter()
            .any(|subject| subject.section == section && subject.name == name)
    };
    for lun in &set.lun {
        let needed = !current.luns.contains_key(&lun.name)
            && grants.iter().any(|grant| grant.lun == lun.name);
        if needed || named(Section::Lun, &lun.name) {
            part.lun.push(lun.clone());
        }
    }
    for target in &set.target {
        let name = Some(target.name.as_str());
        let needed = !current.targets.contains_key(&target.name)
            && grants.iter().any(|grant| grant.target.as_deref() == name);
        if needed || named(Section::Target, &target.name) {
            part.target.push(target.clone());
        }
    }
    for host in &set.host {
        let needed = !current.hosts.contains_key(&host.name)
            && grants.iter().any(|grant| grant.host == host.name);
        if needed || named(Section::Host, &host.name) {
            part.host.push(host.clone());
        }
    }
    part.grant = grants;
    for subject in only {
        let goes = may_go && is_there(current, subject);
        if !goes && !has(&part, subject) {
            return Err(missing(subject));
        }
    }
    Ok(part)
}

fn has(part: &ObjectSet, Subject { section, name }: &Subject) -> bool {
    match section {
        Section::Lun => part.lun.iter().any(|it| it.name == *name),
        Section::Target => part.target.iter().any(|it| it.name == *name),
        Section::Host => part.host.iter().any(|it| it.name == *name),
        Section::Grant => part.grant.iter().any(|it| {
            let target = it.target.as_deref().unwrap_or_default();
            format!("{}:{target}:{}", it.host, it.lun) == *name
        }),
    }
}

fn is_there(current: &Objects, Subject { section, name }: &Subject) -> bool {
    match section {
        Section::Lun => current.luns.contains_key(name),
        Section::Target => current.targets.contains_key(name),
        Section::Host => current.hosts.contains_key(name),
        Section::Grant => current.grants.keys().any(|key| key.to_string() == *name),
    }
}

fn missing(subject: &Subject) -> Problem {
    let Subject { section, name } = subject;
    let detail = format!("there is no {section} \"{name}\" among what is to be taken a part of");
    let hint = if section.name() == SECTION_GRANT {
        "a grant's name is HOST:TARGET:LUN"
    } else {
        "write the name as the file has it; without --only all of the file is meant"
    };
    Problem::new(Code::NotFound, detail).hint(hint)
}

/// What goes with `prune`: those of `only` and their grants that are not in `part`. A LUN keeps its
/// data. Nothing else goes, whatever the grants named.
pub(super) fn pruned(current: &Objects, only: &[Subject], part: &ObjectSet) -> Objects {
    let mut start = current.clone();
    start.grants.retain(|key, _| {
        let is_meant = |it: &Subject| touches(it, &key.host, &key.target, &key.lun);
        let stays = Subject {
            section: Section::Grant,
            name: key.to_string(),
        };
        !only.iter().any(is_meant) || has(part, &stays)
    });
    let gone = only.iter().filter(|subject| !has(part, subject));
    for Subject { section, name } in gone {
        match section {
            Section::Lun => {
                if let Some(lun) = start.luns.remove(name) {
                    start.removed.insert(name.clone(), lun);
                }
            }
            Section::Target => drop(start.targets.remove(name)),
            Section::Host => drop(start.hosts.remove(name)),
            Section::Grant => {}
        }
    }
    start
}

/// The part of an export that stands by itself: `only`, their grants, and all that these name.
///
/// # Errors
/// There is none of that kind and name.
pub fn export_only(set: &ObjectSet, only: &[Subject]) -> Result<ObjectSet, Problem> {
    part(set, only, &Objects::default(), false)
}
