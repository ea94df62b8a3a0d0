//! The objects as they will be: defaults filled in, references checked.

use super::choice::choose;
use super::{
    Edit, Random, Surroundings, adopt, elsewhere, leads_back, new_identity, removed, rollback,
    single,
};
use crate::code::Code;
use crate::name::{derived_iqn, normal_iscsi_name};
use crate::objects::{
    Backing, Chap, ChapSpec, Grant, GrantKey, GrantSpec, Host, HostSpec, LUN_ID_MAX, Lun, LunSpec,
    MAINTENANCE_GRACE_SECONDS, MutualChap, ObjectSet, Objects, SAME_SECRET, SECTION_GRANT,
    SECTION_HOST, SECTION_LUN, SECTION_TARGET, SecretSpec, Storage, Target, TargetSpec, check_each,
    check_place, check_whole_blocks,
};
use crate::problem::{Fault, Problem};
use crate::secret::Secret;
use crate::size::Size;
use std::collections::{BTreeMap, BTreeSet};

/// The objects after `edit`.
pub(super) fn wanted(
    current: &Objects,
    edit: &Edit,
    around: &Surroundings,
    random: Random<'_>,
) -> Result<Objects, Problem> {
    let mut after = match edit {
        Edit::Apply { set, prune } => {
            let start = if *prune {
                pruned(current, set)
            } else {
                current.clone()
            };
            let mut wanted = Wanted::new(current, start, around);
            wanted.brings_grants_back = !*prune;
            wanted.add(set, random)?
        }
        Edit::ApplyOnly { set, only, prune } => {
            let part = super::only::part(set, only, current, *prune)?;
            let start = if *prune {
                super::only::pruned(current, only, &part)
            } else {
                current.clone()
            };
            let mut wanted = Wanted::new(current, start, around);
            wanted.brings_grants_back = !*prune;
            wanted.add(&part, random)?
        }
        Edit::Create(set) => {
            refuse_existing(current, set)?;
            Wanted::new(current, current.clone(), around).add(set, random)?
        }
        Edit::Set(set) => {
            refuse_absent(current, set)?;
            Wanted::new(current, current.clone(), around).add(set, random)?
        }
        Edit::Patch(patch) => {
            let set = patch.over(current)?;
            Wanted::new(current, current.clone(), around).add(&set, random)?
        }
        Edit::Remove(subject) => single::remove(current, subject)?,
        Edit::Restore(name) => single::restore(current, name)?,
        Edit::Purge(name) => single::purge(current, name)?,
        Edit::Adopt { adopted, .. } => adopt::adopt(current, adopted)?,
        Edit::Copy(one) => adopt::copy(current, one, around)?,
        Edit::Elsewhere(what) => return elsewhere::elsewhere(current, what),
        Edit::RollBack(then) => {
            let after = rollback::roll_back(current, then).0;
            rollback::check(current, &after, around)?;
            return Ok(after);
        }
        // The grants follow their new names, so that none of them looks like one that goes.
        Edit::Rename { subject, to } => return single::rename(current, subject, to),
    };
    removed::keep(current, &mut after);
    Ok(after)
}

/// Only what the set names; LUNs that it does not name keep their data.
fn pruned(current: &Objects, set: &ObjectSet) -> Objects {
    let kept: BTreeSet<&String> = set.lun.iter().map(|lun| &lun.name).collect();
    let mut start = Objects {
        removed: current.removed.clone(),
        removed_grants: current.removed_grants.clone(),
        next_id: current.next_id,
        ..Objects::default()
    };
    for (name, lun) in &current.luns {
        if !kept.contains(name) {
            start.removed.insert(name.clone(), lun.clone());
        }
    }
    start
}

fn refuse_existing(current: &Objects, set: &ObjectSet) -> Result<(), Problem> {
    let taken = |section: &str, name: &str| {
        Err(Problem::new(
            Code::AlreadyExists,
            format!("there is a {section} \"{name}\" already"),
        ))
    };
    for lun in &set.lun {
        if current.luns.contains_key(&lun.name) {
            return taken(SECTION_LUN, &lun.name);
        }
        if current.removed.contains_key(&lun.name) {
            let detail = format!("the removed LUN \"{}\" still holds its data", lun.name);
            return Err(Problem::new(Code::KeepsData, detail));
        }
    }
    if let Some(target) = set
        .target
        .iter()
        .find(|target| current.targets.contains_key(&target.name))
    {
        return taken(SECTION_TARGET, &target.name);
    }
    if let Some(host) = set
        .host
        .iter()
        .find(|host| current.hosts.contains_key(&host.name))
    {
        return taken(SECTION_HOST, &host.name);
    }
    for grant in &set.grant {
        let same = |key: &&GrantKey| {
            key.host == grant.host
                && key.lun == grant.lun
                && grant
                    .target
                    .as_ref()
                    .is_none_or(|target| *target == key.target)
        };
        if let Some(key) = current.grants.keys().find(same) {
            let hint = format!("change it: causeway grant set {key} lun_id=N read_only=true|false");
            return taken(SECTION_GRANT, &key.to_string()).map_err(|problem| problem.hint(hint));
        }
    }
    Ok(())
}

fn refuse_absent(current: &Objects, set: &ObjectSet) -> Result<(), Problem> {
    if let Some(lun) = set
        .lun
        .iter()
        .find(|lun| !current.luns.contains_key(&lun.name))
    {
        return Err(Problem::not_found(SECTION_LUN, &lun.name));
    }
    if let Some(target) = set
        .target
        .iter()
        .find(|target| !current.targets.contains_key(&target.name))
    {
        return Err(Problem::not_found(SECTION_TARGET, &target.name));
    }
    if let Some(host) = set
        .host
        .iter()
        .find(|host| !current.hosts.contains_key(&host.name))
    {
        return Err(Problem::not_found(SECTION_HOST, &host.name));
    }
    for grant in &set.grant {
        let key = GrantKey {
            host: grant.host.clone(),
            target: grant.target.clone().unwrap_or_default(),
            lun: grant.lun.clone(),
        };
        if !current.grants.contains_key(&key) {
            return Err(Problem::not_found(SECTION_GRANT, &key.to_string()));
        }
    }
    Ok(())
}

/// The objects being put together.
struct Wanted<'a> {
    current: &'a Objects,
    around: &'a Surroundings,
    after: Objects,
    faults: Vec<Fault>,
    /// A removed LUN that is wanted comes back with the grants that waited for it.
    brings_grants_back: bool,
}

impl<'a> Wanted<'a> {
    fn new(current: &'a Objects, after: Objects, around: &'a Surroundings) -> Self {
        Self {
            current,
            around,
            after,
            faults: Vec::new(),
            brings_grants_back: false,
        }
    }

    fn add(mut self, set: &ObjectSet, random: Random<'_>) -> Result<Objects, Problem> {
        self.faults = check_each(set);
        if !self.faults.is_empty() {
            return Err(invalid(self.faults));
        }
        let mut immutable = None;
        for spec in &set.lun {
            if let Err(problem) = self.add_lun(spec, random) {
                immutable.get_or_insert(problem);
            }
        }
        for spec in &set.target {
            self.add_target(spec);
        }
        for spec in &set.host {
            self.add_host(spec)?;
        }
        self.add_grants(&set.grant);
        super::compare::check_together(&self.after, &mut self.faults);
        if !self.faults.is_empty() {
            return Err(invalid(self.faults));
        }
        if let Some(problem) = immutable {
            return Err(problem);
        }
        Ok(self.after)
    }

    fn add_lun(&mut self, spec: &LunSpec, random: Random<'_>) -> Result<(), Problem> {
        let known = self
            .current
            .luns
            .get(&spec.name)
            .or_else(|| self.current.removed.get(&spec.name));
        let lun = if let Some(known) = known {
            changed_lun(known, spec)?
        } else {
            let Some(backing) = self.backing(spec) else {
                return Ok(());
            };
            let mut storage = spec.storage.over(Storage::default());
            if let Some(pool) = backing.pool() {
                storage.default_in(self.around.pool(pool));
            }
            let (naa, serial) = new_identity(random);
            let block_size = spec.block_size.unwrap_or(512);
            Lun {
                naa,
                serial,
                size: spec.size,
                block_size,
                physical_block_size: spec.physical_block_size.unwrap_or(block_size),
                thin: spec.thin.unwrap_or(true),
                backing,
                bytes_in_flight_max: limit(spec.bytes_in_flight_max),
                storage,
            }
        };
        if lun.physical_block_size < lun.block_size {
            let rule = "it is less than the logical block";
            self.fault(SECTION_LUN, &spec.name, "physical_block_size", rule);
        }
        let pool = lun.backing.pool();
        let pool = pool.map(|pool| self.around.pool(pool));
        for (key, rule) in check_place(&lun.storage, pool) {
            self.fault(SECTION_LUN, &spec.name, key, rule);
        }
        if let Err(rule) = check_whole_blocks(lun.size, lun.block_size) {
            self.fault(SECTION_LUN, &spec.name, "size", rule);
        }
        self.after.removed.remove(&spec.name);
        self.after.luns.insert(spec.name.clone(), lun);
        Ok(())
    }

    fn backing(&mut self, spec: &LunSpec) -> Option<Backing> {
        if let Some(backend) = &spec.backend {
            return Some(backend.clone().into());
        }
        let pools = &self.around.pools;
        let pool = choose(spec.pool.as_deref(), pools, "pool");
        pool.map(Backing::Pool)
            .map_err(|rule| self.fault(SECTION_LUN, &spec.name, "pool", rule))
            .ok()
    }

    fn add_target(&mut self, spec: &TargetSpec) {
        let known = self.current.targets.get(&spec.name);
        let iqn = match (&spec.iqn, known) {
            (Some(iqn), _) => normal_iscsi_name(iqn).unwrap_or_default(),
            (None, Some(known)) => known.iqn.clone(),
            (None, None) => derived_iqn(&spec.name),
        };
        let kept = known
            .map(|known| known.portal_group.clone())
            .filter(|group| {
                spec.portal_group
                    .as_ref()
                    .is_none_or(|wanted| wanted == group)
            });
        if let Some(redirect) = &spec.redirect
            && let Some((group, _)) = leads_back(redirect, &self.around.portals)
        {
            let rule = format!(
                "{} is this node's own, in portal group \"{group}\": initiators would be sent round in \
                 circles; name the node that serves the target instead, or leave the redirect out",
                redirect.to
            );
            self.fault(SECTION_TARGET, &spec.name, "redirect.to", rule);
        }
        let groups = &self.around.portal_groups;
        let portal_group = kept.map_or_else(
            || choose(spec.portal_group.as_deref(), groups, "portal group"),
            Ok,
        );
        match portal_group {
            Err(rule) => self.fault(SECTION_TARGET, &spec.name, "portal_group", rule),
            Ok(portal_group) => {
                let id = known.map_or_else(|| self.after.new_id(), |known| known.id);
                let port = known.map(|known| known.relative_port);
                let Some(relative_port) = port.or_else(|| self.after.free_relative_port(id)) else {
                    self.fault(
                        SECTION_TARGET,
                        &spec.name,
                        "name",
                        "65535 targets are the most",
                    );
                    return;
                };
                let target = Target {
                    id,
                    relative_port,
                    iqn,
                    portal_group,
                    redirect: spec.redirect.clone(),
                    maintenance: spec.maintenance,
                    maintenance_grace_seconds: spec
                        .maintenance_grace_seconds
                        .unwrap_or(MAINTENANCE_GRACE_SECONDS),
                };
                self.after.targets.insert(spec.name.clone(), target);
            }
        }
    }

    fn add_host(&mut self, spec: &HostSpec) -> Result<(), Problem> {
        let known = self.current.hosts.get(&spec.name);
        let iqn = spec
            .iqn
            .iter()
            .map(|iqn| normal_iscsi_name(iqn).unwrap_or_else(|_| iqn.clone()))
            .collect();
        let known_chap = known.and_then(|known| known.chap.as_ref());
        let chap = match &spec.chap {
            None => None,
            Some(chap) => Some(self.chap(&spec.name, chap, known_chap)?),
        };
        let id = known.map_or_else(|| self.after.new_id(), |known| known.id);
        let host = Host {
            id,
            iqn,
            chap,
            bytes_in_flight_max: limit(spec.bytes_in_flight_max),
        };
        self.after.hosts.insert(spec.name.clone(), host);
        Ok(())
    }

    fn chap(&mut self, host: &str, spec: &ChapSpec, known: Option<&Chap>) -> Result<Chap, Problem> {
        let keep = |wanted: &SecretSpec, known: Option<&Secret>| match (wanted, known) {
            (SecretSpec::Value(secret), _) => Ok(secret.clone()),
            (SecretSpec::Stored, Some(known)) => Ok(known.clone()),
            (SecretSpec::Stored, None) => {
                let detail = format!("host \"{host}\" has no stored secret that could stay");
                Err(Problem::new(Code::SecretMissing, detail))
            }
        };
        let secret = keep(&spec.secret, known.map(|chap| &chap.secret))?;
        let known_mutual = known.and_then(|chap| chap.mutual.as_ref());
        let mutual = match (&spec.mutual_user, &spec.mutual_secret) {
            (Some(user), Some(wanted)) => Some(MutualChap {
                user: user.clone(),
                secret: keep(wanted, known_mutual.map(|mutual| &mutual.secret))?,
            }),
            _ => None,
        };
        if mutual
            .as_ref()
            .is_some_and(|mutual| mutual.secret == secret)
        {
            self.fault(SECTION_HOST, host, "chap.mutual_secret_file", SAME_SECRET);
        }
        let user = spec.user.clone();
        Ok(Chap {
            user,
            secret,
            mutual,
        })
    }

    /// Grants that say or have their number come first, so that the others find what is left.
    fn add_grants(&mut self, specs: &[GrantSpec]) {
        let mut open = Vec::new();
        let mut seen = BTreeSet::new();
        for spec in specs {
            let Some(key) = self.grant_key(spec) else {
                continue;
            };
            if !seen.insert(key.clone()) {
                self.fault(SECTION_GRANT, &key.to_string(), "", "it stands twice");
            }
            let known = self.current.grants.get(&key).map(|grant| grant.lun_id);
            let read_only = spec.read_only;
            match spec.lun_id.or(known) {
                Some(lun_id) => {
                    self.after.grants.insert(key, Grant { lun_id, read_only });
                }
                None => open.push((key, read_only)),
            }
        }
        if self.brings_grants_back {
            removed::bring_back_unnamed(self.current, &mut self.after, &seen);
        }
        open.retain(|(key, read_only)| {
            let Some(lun_id) = removed::number_before(self.current, &self.after, key) else {
                return true;
            };
            let read_only = *read_only;
            self.after
                .grants
                .insert(key.clone(), Grant { lun_id, read_only });
            false
        });
        self.number(open);
    }

    /// The grants that say no number and have none get the lowest free ones.
    fn number(&mut self, open: Vec<(GrantKey, bool)>) {
        let mut used: BTreeMap<(String, String), Numbers> = BTreeMap::new();
        for (key, grant) in &self.after.grants {
            let numbers = used
                .entry((key.host.clone(), key.target.clone()))
                .or_default();
            numbers.used.insert(grant.lun_id);
        }
        for (key, read_only) in open {
            let numbers = used
                .entry((key.host.clone(), key.target.clone()))
                .or_default();
            let Some(lun_id) = numbers.take() else {
                self.fault(
                    SECTION_GRANT,
                    &key.to_string(),
                    "lun_id",
                    "no number is left",
                );
                continue;
            };
            self.after.grants.insert(key, Grant { lun_id, read_only });
        }
    }

    fn grant_key(&mut self, spec: &GrantSpec) -> Option<GrantKey> {
        let targets: Vec<&String> = self.after.targets.keys().collect();
        let target = match (&spec.target, targets.as_slice()) {
            (Some(target), _) => target.clone(),
            (None, [only]) => (*only).clone(),
            (None, many) => {
                let name = format!("{}:?:{}", spec.host, spec.lun);
                let rule = format!("there are {} targets; say which one", many.len());
                self.fault(SECTION_GRANT, &name, "target", rule);
                return None;
            }
        };
        Some(GrantKey {
            host: spec.host.clone(),
            target,
            lun: spec.lun.clone(),
        })
    }

    fn fault(&mut self, section: &str, object: &str, key: &str, rule: impl Into<String>) {
        self.faults.push(Fault::new(section, object, key, rule));
    }
}

/// The LUN numbers of one host on one target.
#[derive(Default)]
struct Numbers {
    used: BTreeSet<u16>,
    /// All below are used.
    next: u16,
}

impl Numbers {
    /// The lowest free one.
    fn take(&mut self) -> Option<u16> {
        while self.used.contains(&self.next) {
            self.next += 1;
        }
        let free = self.next;
        (free <= LUN_ID_MAX).then(|| {
            self.used.insert(free);
            free
        })
    }
}

/// The known LUN with what `spec` says, which can be its size only.
fn changed_lun(known: &Lun, spec: &LunSpec) -> Result<Lun, Problem> {
    let number = |key: &str, is: u32, wanted: Option<u32>, why: &str| match wanted {
        Some(wanted) if wanted != is => {
            let wanted = wanted.to_string();
            Err(immutable(spec, key, &is.to_string(), &wanted, why))
        }
        _ => Ok(()),
    };
    let why = "hosts address the disk in these blocks, and could not read what they keep on it";
    number("block_size", known.block_size, spec.block_size, why)?;
    let why = "hosts have laid out partitions and file systems by it";
    let physical = known.physical_block_size;
    number(
        "physical_block_size",
        physical,
        spec.physical_block_size,
        why,
    )?;
    if let Some(thin) = spec.thin
        && thin != known.thin
    {
        let why = "space is taken once, when the LUN is made";
        let (is, wanted) = (known.thin.to_string(), thin.to_string());
        return Err(immutable(spec, "thin", &is, &wanted, why));
    }
    let wanted = match (&spec.backend, &spec.pool) {
        (Some(backend), _) => Some(backend.clone().into()),
        (None, Some(pool)) => Some(Backing::Pool(pool.clone())),
        (None, None) => None,
    };
    if let Some(wanted) = wanted
        && wanted != known.backing
    {
        let key = if spec.backend.is_some() {
            "backend"
        } else {
            "pool"
        };
        let why = "the data would not move with it";
        let (is, wanted) = (known.backing.to_string(), wanted.to_string());
        return Err(immutable(spec, key, &is, &wanted, why));
    }
    if let Some(wanted) = spec.storage.copies
        && known.storage.copies != Some(wanted)
    {
        let why = "each is made and given up by itself";
        let is = known.storage.copies;
        let is = is.map_or_else(|| "on this node alone".to_owned(), |it| format!("on {it}"));
        let hint = format!(
            "`causeway lun mirror add {name} NODE`, `causeway lun mirror remove {name} NODE`",
            name = spec.name
        );
        return Err(immutable(spec, "copies", &is, &wanted.to_string(), why).hint(hint));
    }
    Ok(Lun {
        size: spec.size,
        bytes_in_flight_max: match spec.bytes_in_flight_max {
            Some(most) => limit(Some(most)),
            None => known.bytes_in_flight_max,
        },
        storage: spec.storage.over(known.storage),
        ..known.clone()
    })
}

/// A limit of nothing is none.
fn limit(most: Option<Size>) -> Option<Size> {
    most.filter(|most| most.bytes() > 0)
}

/// A property that a LUN has for ever: why, and what to do instead.
fn immutable(spec: &LunSpec, key: &str, is: &str, wanted: &str, why: &str) -> Problem {
    let rule = format!("it is {is} and cannot become {wanted}: {why}");
    let detail = format!("a LUN keeps its {key}; nothing was changed");
    Problem::new(Code::Immutable, detail)
        .faults(vec![Fault::new(SECTION_LUN, &spec.name, key, rule)])
        .hint(format!(
            "make a new LUN with the wanted {key}, copy the data on a host, then delete \"{}\"",
            spec.name
        ))
}

fn invalid(faults: Vec<Fault>) -> Problem {
    let many = if faults.len() == 1 {
        "1 rule is".to_owned()
    } else {
        format!("{} rules are", faults.len())
    };
    let detail = format!("{many} broken; nothing was changed");
    Problem::new(Code::InvalidObjects, detail).faults(faults)
}
