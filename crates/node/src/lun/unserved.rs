//! What the objects name and the front does not show: of what is in force on every core, not of
//! what was to be.

use crate::inner::Inner;
use iscsi_target::{Export, ExportedTarget};
use logical_unit::UnitId;
use manifest::objects::{GrantKey, Objects};
use manifest::served::Unserved;
use std::collections::{BTreeMap, BTreeSet};

/// What is missing now.
pub(crate) fn unserved(node: &Inner, objects: &Objects) -> Vec<Unserved> {
    // Before there is a front, and after it, nothing is to be served.
    let Some(server) = node.server() else {
        return Vec::new();
    };
    let units = node.units.borrow();
    let unit = |lun: &str| {
        let lun = objects.luns.get(lun)?;
        units.get(&lun.naa).map(|unit| unit.id)
    };
    compare(objects, &server.export(), &unit)
}

/// Who sees a unit under which number.
type Shown<'a> = BTreeSet<(&'a str, u16, UnitId)>;

fn shown(target: &ExportedTarget) -> Shown<'_> {
    let grants = target.grants.iter();
    let shown = grants.map(|grant| (grant.host.name.as_str(), grant.lun, grant.unit));
    shown.collect()
}

/// `unit`: what serves a LUN, where something does.
fn compare(
    objects: &Objects,
    export: &Export,
    unit: &dyn Fn(&str) -> Option<UnitId>,
) -> Vec<Unserved> {
    let mut out = Vec::new();
    let mut missing = |kind, name: &str, cause: String| {
        out.push(Unserved {
            kind,
            name: name.to_owned(),
            cause,
        });
    };
    for name in objects.luns.keys().filter(|name| unit(name).is_none()) {
        let cause = format!("LUN {name} is among the objects, and the node does not serve it");
        missing("lun", name, cause);
    }
    let exported = export.targets.iter();
    let exported: BTreeMap<&str, Shown<'_>> = exported
        .map(|target| (target.name.as_str(), shown(target)))
        .collect();
    for (name, target) in &objects.targets {
        if !exported.contains_key(target.iqn.as_str()) {
            let cause = format!("target {name} is among the objects, and no host can reach it");
            missing("target", name, cause);
        }
    }
    for (key, grant) in &objects.grants {
        let GrantKey { host, target, lun } = key;
        let seen = objects.targets.get(target);
        let seen = seen.and_then(|target| exported.get(target.iqn.as_str()));
        // What its target or its LUN lacks is said of them.
        let (Some(seen), Some(unit)) = (seen, unit(lun)) else {
            continue;
        };
        if !seen.contains(&(host.as_str(), grant.lun_id, unit)) {
            let number = grant.lun_id;
            let cause = format!(
                "host {host} is granted LUN {lun} as number {number} on target {target}, and does not see it there"
            );
            missing("lun", lun, cause);
        }
    }
    out
}

#[cfg(test)]
mod test {
    use super::*;
    use iscsi_target::{Grant, Host};
    use manifest::objects::{Grant as Granted, Host as Named, fixture};
    use std::sync::Arc;
    use std::time::Duration;

    const IQN: &str = "iqn.2026-11.io.causeway:t";

    fn objects() -> Objects {
        let lun = fixture::lun();
        let target = fixture::target(IQN);
        let host = Named {
            id: 1,
            iqn: vec!["iqn.x:h".to_owned()],
            chap: None,
            bytes_in_flight_max: None,
        };
        let key = GrantKey {
            host: "h".to_owned(),
            target: "t".to_owned(),
            lun: "l".to_owned(),
        };
        let grant = Granted {
            lun_id: 3,
            read_only: false,
        };
        let mut objects = Objects::default();
        objects.luns.insert("l".to_owned(), lun);
        objects.targets.insert("t".to_owned(), target);
        objects.hosts.insert("h".to_owned(), host);
        objects.grants.insert(key, grant);
        objects
    }

    fn export(number: u16) -> Export {
        let host = Host {
            name: "h".to_owned(),
            initiators: vec!["iqn.x:h".to_owned()],
            chap: None,
            bytes_in_flight_max: None,
        };
        let grant = Grant {
            host: Arc::new(host),
            lun: number,
            unit: UnitId(7),
            read_only: false,
        };
        let target = ExportedTarget {
            name: IQN.to_owned(),
            alias: None,
            portal_group_tag: 1,
            relative_port: 1,
            grants: vec![grant],
            redirect: None,
            maintenance: false,
            maintenance_grace: Duration::ZERO,
        };
        Export {
            targets: vec![Arc::new(target)],
            ..Export::default()
        }
    }

    #[test]
    fn what_the_objects_name_and_the_front_does_not_show_is_found_and_said_once() {
        let found = |export: &Export, unit: Option<UnitId>| {
            let all = compare(&objects(), export, &|_| unit);
            let all = all
                .into_iter()
                .map(|it| format!("{} {}", it.kind, it.cause));
            all.collect::<Vec<String>>()
        };
        let here = Some(UnitId(7));
        assert_eq!(found(&export(3), here), [""; 0], "all is as it is to be");
        let lacks = |cause: &str| vec![cause.to_owned()];
        assert_eq!(
            found(&export(3), None),
            lacks("lun LUN l is among the objects, and the node does not serve it")
        );
        assert_eq!(
            found(&Export::default(), here),
            lacks("target target t is among the objects, and no host can reach it")
        );
        let other =
            lacks("lun host h is granted LUN l as number 3 on target t, and does not see it there");
        assert_eq!(found(&export(4), here), other, "another number");
        assert_eq!(found(&export(3), Some(UnitId(8))), other, "another unit");
    }
}
