//! What the rules are asked about, from what the node reports: pure, but that it gives way.

use crate::changes::LOGOUT;
use alerts::{
    Done, EndedSeen, Facts, Finding, HostSeen, LunSeen, Object, Path, PortalSeen, Severity,
    TargetSeen,
};
use controller::Sample;
use manifest::disks::{DiskAlert, DiskSeverity};
use manifest::facts::{LunFacts, LunState, PoolFacts, PortalFacts, SessionFacts};
use manifest::objects::Backing;
use manifest::problem::Problem;
use manifest::pulse::EndedSession;
use manifest::redundancy::address;
use manifest::served::Unserved;
use std::collections::{BTreeMap, BTreeSet};

/// Of so many LUNs facts are made in one go, and then whatever else is ready on the core has its
/// turn.
const AT_ONCE: usize = 64;

/// The facts; what is known beside is not in them.
pub async fn facts(
    sample: Sample,
    portals: &[PortalFacts],
    disks: Vec<DiskAlert>,
    damage: Option<&Problem>,
) -> Facts {
    let records = damage.map(|problem| Finding {
        object: Object::new("file", "objects"),
        severity: Severity::Critical,
        cause: problem.detail.clone(),
        next_step: problem.hint.clone(),
    });
    let objects = &sample.objects;
    let mut paths: BTreeMap<&str, Vec<Path>> = BTreeMap::new();
    for session in &sample.sessions {
        if let Some(path) = path(session) {
            paths.entry(&session.host).or_default().push(path);
        }
    }
    let granted: BTreeSet<&str> = objects.grants.keys().map(|it| &*it.host).collect();
    let hosts = objects.hosts.keys().map(|name| HostSeen {
        name: name.clone(),
        is_granted: granted.contains(&**name),
        paths: paths.remove(name.as_str()).unwrap_or_default(),
    });
    let listening = |group: &str| {
        let of_group = portals
            .iter()
            .filter(|it| it.group == group && it.problem.is_none());
        of_group.map(|it| it.address.clone()).collect()
    };
    let targets = objects.targets.iter().map(|(name, target)| TargetSeen {
        name: name.clone(),
        portals: listening(&target.portal_group),
    });
    let mut luns = Vec::with_capacity(sample.luns.len());
    // What is used is let go of here: freeing all of it at the end would be a long piece of work.
    for (number, (name, lun)) in sample.luns.into_iter().enumerate() {
        if number % AT_ONCE == AT_ONCE - 1 {
            env::yield_now().await;
        }
        let known = objects.luns.get(&name);
        let key = known.map_or_else(|| name.clone(), |known| known.naa.clone());
        let backing = known.map(|known| &known.backing);
        let below = backing.map_or_else(String::new, |it| below(it, &sample.pools));
        luns.push(LunSeen {
            below,
            ..of_lun(name, key, &lun)
        });
    }
    Facts {
        hosts: hosts.collect(),
        targets: targets.collect(),
        luns,
        portals: portals.iter().map(of_portal).collect(),
        disks: disks.into_iter().map(of_disk).collect(),
        records: records.into_iter().collect(),
        pools: sample.pools,
        ..Facts::default()
    }
}

fn path(session: &SessionFacts) -> Option<Path> {
    Some(Path {
        session: session.id,
        initiator: session.initiator.clone(),
        target: session.target.clone()?,
        from: address(&session.from).to_owned(),
        portal: session.portal.clone(),
    })
}

/// What a LUN stands on, with the place of its pool.
fn below(backing: &Backing, pools: &[PoolFacts]) -> String {
    let pool = pools
        .iter()
        .find(|pool| backing.pool() == Some(&*pool.name));
    match pool {
        Some(pool) => format!("{backing} at {}", pool.path),
        None => backing.to_string(),
    }
}

fn of_lun(name: String, key: String, facts: &LunFacts) -> LunSeen {
    let done = |op: &str| {
        let of_kind = facts.ops.get(op);
        of_kind.map_or_else(Done::default, |it| Done {
            count: it.latency.total.count,
            us_sum: it.latency.total.us_sum,
            under_way: it.in_flight,
        })
    };
    let checked = facts.layers.checksums.as_ref().and_then(|it| it.problem());
    let damage = match &facts.scrub {
        Some(scrub) => scrub.problems(checked),
        None => checked.into_iter().collect(),
    };
    let mirror = facts.layers.mirror.as_ref();
    LunSeen {
        name,
        key,
        offline: match &facts.state {
            LunState::Online => None,
            LunState::Offline(reason) => Some(reason.clone()),
        },
        read: done("read"),
        write: done("write"),
        stalled: facts.stalled,
        scrub: facts.scrub.clone(),
        damage,
        copies: mirror.and_then(|it| it.problem()).map(str::to_owned),
        ..LunSeen::default()
    }
}

fn of_disk(alert: DiskAlert) -> Finding {
    let (kind, name) = alert
        .object
        .split_once(' ')
        .unwrap_or(("disk", &alert.object));
    Finding {
        object: Object::new(kind, name),
        severity: match alert.severity {
            DiskSeverity::Info => Severity::Info,
            DiskSeverity::Warning => Severity::Warning,
            DiskSeverity::Critical => Severity::Critical,
        },
        cause: alert.cause,
        next_step: alert.next_step,
    }
}

/// Those with a target; discoveries end all the time.
#[must_use]
pub fn of_ended(ended: &[EndedSession]) -> Vec<EndedSeen> {
    let with_target = ended.iter().filter(|it| it.target.is_some());
    let seen = with_target.map(|it| EndedSeen {
        host: it.host.clone(),
        logged_out: it.reason == LOGOUT,
    });
    seen.collect()
}

/// What the node found that hosts cannot use, as a finding.
#[must_use]
pub fn of_unserved(unserved: Unserved) -> Finding {
    Finding {
        object: Object::new(unserved.kind, &unserved.name),
        severity: Severity::Critical,
        cause: unserved.cause,
        next_step: alerts::Rule::named("not_served")
            .map_or_else(String::new, |rule| rule.next_step.to_owned()),
    }
}

fn of_portal(portal: &PortalFacts) -> PortalSeen {
    PortalSeen {
        address: portal.address.clone(),
        group: portal.group.clone(),
        problem: portal.problem.clone(),
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use controller::test_support::session;

    #[test]
    fn what_is_found_of_a_disk_is_of_that_disk_and_as_bad_as_that() {
        let finding = of_disk(DiskAlert {
            severity: DiskSeverity::Critical,
            object: "bay 3".to_owned(),
            cause: "bay 3 of enclosure 0 holds no disk".to_owned(),
            next_step: "see to it".to_owned(),
        });
        assert_eq!(finding.object, Object::new("bay", "3"));
        assert_eq!(finding.severity, Severity::Critical);
        assert_eq!(finding.cause, "bay 3 of enclosure 0 holds no disk");
    }

    #[test]
    fn a_session_with_a_target_is_a_path_without_the_initiators_port() {
        for (from, ip) in [
            ("10.0.0.9:1234", "10.0.0.9"),
            ("[2001:db8::1]:99", "[2001:db8::1]"),
        ] {
            let session = SessionFacts {
                from: from.to_owned(),
                ..session(4)
            };
            let path = path(&session).unwrap();
            assert_eq!((path.from.as_str(), path.session), (ip, 4));
        }
        assert!(
            path(&SessionFacts {
                target: None,
                ..session(4)
            })
            .is_none()
        );
    }
}
