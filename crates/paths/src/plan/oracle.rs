//! The objective as its words say it, over the facts themselves, by trying every subset.
#![expect(clippy::cast_possible_wrap, reason = "small numbers of a test")]

use super::{Options, Priority};
use crate::facts::{Facts, PathName, Speed};
use scsi::alua::AccessState;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

struct One<'a> {
    name: PathName,
    speed: u64,
    host: &'a crate::HostPort,
    target: &'a crate::TargetPort,
}

fn stream(speed: Speed, links: u16) -> u64 {
    speed.0 / u64::from(links)
}

fn all(facts: &Facts) -> Vec<One<'_>> {
    let mut all = Vec::new();
    for host in &facts.hosts {
        for target in &facts.targets {
            let (at, portal) = (host.addresses[0].ip, target.portals[0].ip());
            let same_net = at.to_string().split('.').nth(1) == portal.to_string().split('.').nth(1);
            if host.link && same_net && target.sessions_left != Some(0) {
                let (h, t) = (
                    stream(host.speed.unwrap(), host.links),
                    stream(target.speed.unwrap(), target.links),
                );
                let name = PathName {
                    host: host.name.clone(),
                    target: target.name.clone(),
                };
                all.push(One {
                    name,
                    speed: h.min(t),
                    host,
                    target,
                });
            }
        }
    }
    let tier = |one: &One<'_>| match one.target.access {
        AccessState::ActiveOptimized => 0,
        AccessState::ActiveNonOptimized => 1,
        AccessState::Standby
        | AccessState::Unavailable
        | AccessState::Offline
        | AccessState::Transitioning => 2,
    };
    let best = all.iter().map(tier).min().unwrap_or(2);
    all.retain(|one| best < 2 && tier(one) == best);
    all
}

fn allowed(facts: &Facts, options: &Options, set: &[&One<'_>]) -> bool {
    let sum = |on: &dyn Fn(&One<'_>) -> bool| {
        set.iter()
            .filter(|one| on(one))
            .map(|one| one.speed)
            .sum::<u64>()
    };
    let hosts = facts
        .hosts
        .iter()
        .all(|host| sum(&|one| one.host.name == host.name) <= host.speed.unwrap().0);
    let targets = facts.targets.iter().all(|target| {
        let sessions = set
            .iter()
            .filter(|one| one.target.name == target.name)
            .count();
        sum(&|one| one.target.name == target.name) <= target.speed.unwrap().0
            && target
                .sessions_left
                .is_none_or(|left| sessions <= left as usize)
    });
    let speeds: BTreeSet<u64> = set.iter().map(|one| one.speed).collect();
    set.len() <= usize::from(options.max_active)
        && hosts
        && targets
        && (options.mixed || speeds.len() <= 1)
}

fn groups(set: &[&One<'_>], of: &dyn Fn(&One<'_>) -> String) -> (i64, i64) {
    let mut count: BTreeMap<String, i64> = BTreeMap::new();
    for one in set {
        *count.entry(of(one)).or_default() += 1;
    }
    (
        count.len() as i64,
        -count.values().map(|n| n * n).sum::<i64>(),
    )
}

fn hash(facts: &Facts, name: &PathName) -> i64 {
    let text = format!("{}\0{}\0{}\0", facts.initiator, name.host, name.target);
    let digest = Sha256::digest(text.as_bytes());
    i64::from(u32::from_be_bytes(digest[..4].try_into().unwrap()))
}

fn value(
    facts: &Facts,
    options: &Options,
    current: &[PathName],
    sticky: bool,
    set: &[&One<'_>],
) -> Vec<i64> {
    let bandwidth = set.iter().map(|one| one.speed).sum::<u64>() as i64;
    let hosts = groups(set, &|one| one.host.card.clone());
    let controllers = groups(set, &|one| one.target.controller.clone().unwrap());
    let cards = groups(set, &|one| {
        format!("{:?}{:?}", one.target.controller, one.target.card)
    });
    let fabrics = groups(set, &|one| {
        one.host.addresses[0]
            .ip
            .to_string()
            .split('.')
            .nth(1)
            .unwrap()
            .to_owned()
    });
    let overlap = set.iter().filter(|one| current.contains(&one.name)).count() as i64;
    let sticky_overlap = if sticky { overlap } else { 0 };
    // Free of a port, in quarters that are used up.
    let used = |one: &&One<'_>| {
        let (free, all) = (one.target.free, one.target.speed.unwrap().0);
        free.map_or(0, |free| (all - free.0.min(all)) * 4 / all) as i64
    };
    let busy = -set.iter().map(used).sum::<i64>();
    let spread = -set.iter().map(|one| hash(facts, &one.name)).sum::<i64>();
    let head = match options.priority {
        Priority::Bandwidth => vec![
            bandwidth,
            sticky_overlap,
            hosts.0,
            hosts.1,
            controllers.0,
            controllers.1,
        ],
        Priority::Diversity => vec![
            hosts.0,
            controllers.0,
            bandwidth,
            sticky_overlap,
            hosts.1,
            controllers.1,
        ],
    };
    let tail = [
        cards.0,
        cards.1,
        fabrics.0,
        fabrics.1,
        -(set.len() as i64),
        overlap,
        busy,
        spread,
    ];
    head.into_iter().chain(tail).collect()
}

/// The best set, by trying all of them.
pub(crate) fn best(
    facts: &Facts,
    options: &Options,
    current: &[PathName],
    sticky: bool,
) -> Vec<PathName> {
    let all = all(facts);
    assert!(all.len() <= 14, "too many subsets");
    let mut best: Option<(Vec<i64>, Vec<PathName>)> = None;
    for bits in 0_u32..1 << all.len() {
        let set: Vec<&One<'_>> = all
            .iter()
            .enumerate()
            .filter(|(at, _)| bits >> at & 1 == 1)
            .map(|(_, one)| one)
            .collect();
        if !allowed(facts, options, &set) {
            continue;
        }
        let value = value(facts, options, current, sticky, &set);
        if best.as_ref().is_none_or(|(old, _)| value > *old) {
            best = Some((value, set.iter().map(|one| one.name.clone()).collect()));
        }
    }
    let mut names = best.map(|(_, names)| names).unwrap_or_default();
    names.sort();
    names
}
