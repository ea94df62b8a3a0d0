//! What metrics report of paths: whether each host can come to each of its LUNs at each portal.

use super::family::{Family, Text};
use controller::Sample;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const STATE: Family<3> = Family::gauge(
    "causeway_path_state",
    ["lun", "host", "portal"],
    "1 where a host that is granted the LUN has a session with its target at this portal, of those that listen, else 0",
);

pub(super) const COUNTS: Family<3> = Family::gauge(
    "causeway_host_paths",
    ["host", "lun", "state"],
    "Paths of a host to a LUN that it is granted: portals of its targets with a session (`up`) and without (`down`)",
);

pub(super) fn paths(out: &mut Text, sample: &Sample) {
    let mut portals: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for portal in sample.portals.iter().filter(|it| it.problem.is_none()) {
        let of_group = portals.entry(&portal.group).or_default();
        of_group.push(&portal.address);
    }
    let sessions = sample.sessions.iter();
    let sessions = sessions.filter_map(|session| {
        let target = session.target.as_deref()?;
        Some((session.host.as_str(), target, session.portal.as_str()))
    });
    let sessions: BTreeSet<(&str, &str, &str)> = sessions.collect();
    let mut paths: BTreeMap<[&str; 3], bool> = BTreeMap::new();
    for key in sample.objects.grants.keys() {
        let target = sample.objects.targets.get(&key.target);
        let group = target.and_then(|target| portals.get(target.portal_group.as_str()));
        for portal in group.into_iter().flatten() {
            let is_up = has(&sessions, &key.host, &key.target, portal);
            *paths.entry([&key.lun, &key.host, portal]).or_default() |= is_up;
        }
    }
    out.family(&STATE);
    for (path, is_up) in &paths {
        out.series(&STATE, *path, u8::from(*is_up));
    }
    let mut counts: BTreeMap<[&str; 3], u64> = BTreeMap::new();
    for ([lun, host, _], is_up) in paths {
        *counts.entry([host, lun, "up"]).or_default() += u64::from(is_up);
        *counts.entry([host, lun, "down"]).or_default() += u64::from(!is_up);
    }
    out.family(&COUNTS);
    for (of, count) in counts {
        out.series(&COUNTS, of, count);
    }
}

/// A listener on every address is reached at any of them.
fn has(sessions: &BTreeSet<(&str, &str, &str)>, host: &str, target: &str, portal: &str) -> bool {
    if sessions.contains(&(host, target, portal)) {
        return true;
    }
    let Some(port) = any_address(portal) else {
        return false;
    };
    let mut all = sessions.range((host, target, "")..);
    all.by_ref()
        .take_while(|it| (it.0, it.1) == (host, target))
        .any(|it| it.2.ends_with(port))
}

/// The port of a listener on every address, with its colon.
fn any_address(portal: &str) -> Option<&str> {
    let rest = portal.strip_prefix("0.0.0.0");
    let rest = rest.or_else(|| portal.strip_prefix("[::]"));
    rest.filter(|it| it.starts_with(':'))
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_session_at_any_address_is_one_with_a_listener_on_every_address() {
        let sessions = BTreeSet::from([("h", "t", "10.0.0.1:3260"), ("i", "t", "10.0.0.1:3261")]);
        let up = |host, portal| has(&sessions, host, "t", portal);
        assert!(up("h", "10.0.0.1:3260") && up("h", "0.0.0.0:3260") && up("h", "[::]:3260"));
        assert!(!up("h", "10.0.0.2:3260") && !up("h", "0.0.0.0:3261") && !up("j", "0.0.0.0:3260"));
        assert!(up("i", "0.0.0.0:3261") && !has(&sessions, "h", "u", "0.0.0.0:3260"));
    }
}
