//! Edits of one object that is known by its name.

use super::{Section, Subject, removed};
use crate::code::Code;
use crate::name::check_object_name;
use crate::objects::{GrantKey, Objects, SECTION_LUN};
use crate::problem::Problem;
use std::collections::BTreeMap;

pub(super) fn remove(current: &Objects, subject: &Subject) -> Result<Objects, Problem> {
    let mut after = current.clone();
    let name = &subject.name;
    let found = match subject.section {
        Section::Lun => {
            let lun = after.luns.remove(name);
            after.grants.retain(|key, _| key.lun != *name);
            let found = lun.is_some();
            after.removed.extend(lun.map(|lun| (name.clone(), lun)));
            found
        }
        Section::Target => {
            after.grants.retain(|key, _| key.target != *name);
            after.targets.remove(name).is_some()
        }
        Section::Host => {
            after.grants.retain(|key, _| key.host != *name);
            after.hosts.remove(name).is_some()
        }
        Section::Grant => {
            let key = name.parse::<GrantKey>();
            let key = key.map_err(|rule| Problem::new(Code::BadRequest, rule))?;
            after.grants.remove(&key).is_some()
        }
    };
    if found {
        return Ok(after);
    }
    Err(Problem::not_found(subject.section.name(), name))
}

pub(super) fn restore(current: &Objects, name: &str) -> Result<Objects, Problem> {
    let mut after = current.clone();
    let Some(lun) = after.removed.remove(name) else {
        let problem = Problem::not_found(SECTION_LUN, name);
        return Err(problem.hint("`causeway lun ls --removed` shows removed LUNs"));
    };
    after.luns.insert(name.to_owned(), lun);
    removed::bring_back(&mut after, name);
    Ok(after)
}

pub(super) fn purge(current: &Objects, name: &str) -> Result<Objects, Problem> {
    let mut after = current.clone();
    if after.removed.remove(name).is_some() {
        return Ok(after);
    }
    if current.luns.contains_key(name) {
        let detail = format!("LUN \"{name}\" is in service");
        let problem = Problem::new(Code::AlreadyExists, detail);
        return Err(problem.hint(format!("`causeway lun delete {name}` first")));
    }
    let problem = Problem::not_found(SECTION_LUN, name);
    Err(problem.hint("`causeway lun ls --removed` shows removed LUNs"))
}

pub(super) fn rename(current: &Objects, subject: &Subject, to: &str) -> Result<Objects, Problem> {
    let (section, from) = (subject.section.name(), subject.name.as_str());
    if let Err(rule) = check_object_name(to) {
        return Err(Problem::new(Code::BadRequest, rule));
    }
    let mut after = current.clone();
    let taken = match subject.section {
        Section::Lun => current.luns.contains_key(to) || current.removed.contains_key(to),
        Section::Target => current.targets.contains_key(to),
        Section::Host => current.hosts.contains_key(to),
        Section::Grant => {
            let detail = "a grant is named after what it ties together";
            return Err(Problem::new(Code::BadRequest, detail));
        }
    };
    let found = match subject.section {
        Section::Lun => move_entry(&mut after.luns, from, to),
        Section::Target => move_entry(&mut after.targets, from, to),
        Section::Host => move_entry(&mut after.hosts, from, to),
        Section::Grant => false,
    };
    if !found {
        return Err(Problem::not_found(section, from));
    }
    if taken {
        let detail = format!("there is a {section} \"{to}\" already");
        return Err(Problem::new(Code::AlreadyExists, detail));
    }
    let renamed = |name: &str, of: Section| {
        let hit = subject.section == of && name == from;
        if hit { to.to_owned() } else { name.to_owned() }
    };
    after.grants = current
        .grants
        .iter()
        .map(|(key, grant)| {
            let key = GrantKey {
                host: renamed(&key.host, Section::Host),
                target: renamed(&key.target, Section::Target),
                lun: renamed(&key.lun, Section::Lun),
            };
            (key, *grant)
        })
        .collect();
    removed::rename(&mut after, subject.section, from, to);
    Ok(after)
}

fn move_entry<T>(map: &mut BTreeMap<String, T>, from: &str, to: &str) -> bool {
    let Some(entry) = map.remove(from) else {
        return false;
    };
    map.insert(to.to_owned(), entry);
    true
}
