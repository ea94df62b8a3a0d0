//! Which initiators may use which ports of this node for a LUN: what other nodes with copies of it
//! name to their hosts.

use iscsi_target::ExportedTarget;
use logical_unit::{NodeNumber, PortElsewhere, UnitId};
use manifest::objects::{Lun, Target};
use std::collections::BTreeSet;

/// A LUN may be shown in a target: one with copies has room for 1,023 ports on each node.
pub(crate) fn has_room(lun: &Lun, target: &Target) -> bool {
    lun.storage.copies.is_none() || target.relative_port < NodeNumber::PORTS
}

fn port_of(target: &ExportedTarget, unit: UnitId) -> Option<PortElsewhere> {
    let sees = |initiator: &str| {
        let view = target.view(initiator);
        view.is_some_and(|view| view.has(unit))
    };
    let hosts = target.grants.iter().flat_map(|it| &it.host.initiators);
    let named: BTreeSet<String> = hosts
        .filter(|name| *name != "*")
        .map(|name| name.to_ascii_lowercase())
        .collect();
    // What holds for initiators that nobody names; the others are exceptions from it.
    let any = sees("*");
    let names: BTreeSet<String> = named.into_iter().filter(|it| sees(it) != any).collect();
    (any || !names.is_empty()).then(|| PortElsewhere {
        port: target.port(),
        any,
        names,
    })
}

/// The ports to a unit.
pub(crate) fn ports_of<'a>(
    targets: impl Iterator<Item = &'a ExportedTarget>,
    unit: UnitId,
) -> Vec<PortElsewhere> {
    targets.filter_map(|it| port_of(it, unit)).collect()
}

#[cfg(test)]
mod test {
    use super::*;
    use iscsi_target::{Grant, Host};
    use std::sync::Arc;
    use std::time::Duration;

    const UNIT: UnitId = UnitId(7);
    const OTHER: UnitId = UnitId(8);

    fn target(grants: &[(&[&str], UnitId)]) -> ExportedTarget {
        let grant = |(at, (names, unit)): (usize, &(&[&str], UnitId))| Grant {
            host: Arc::new(Host {
                name: names.join(" "),
                initiators: names.iter().map(|it| (*it).to_owned()).collect(),
                chap: None,
                bytes_in_flight_max: None,
            }),
            lun: u16::try_from(at).unwrap(),
            unit: *unit,
            read_only: false,
        };
        ExportedTarget {
            name: "iqn.2026-11.io.causeway:t".to_owned(),
            alias: None,
            portal_group_tag: 1,
            relative_port: 5,
            grants: grants.iter().enumerate().map(grant).collect(),
            redirect: None,
            maintenance: false,
            maintenance_grace: Duration::ZERO,
        }
    }

    #[test]
    fn who_may_use_a_port_elsewhere_is_whoever_sees_the_unit_here() {
        for grants in [
            &[][..],
            &[(&["iqn.A"][..], UNIT)][..],
            &[(&["iqn.a"][..], OTHER)][..],
            &[(&["*"][..], UNIT)][..],
            &[(&["*"][..], OTHER), (&["iqn.A", "iqn.b"][..], UNIT)][..],
            &[(&["*"][..], UNIT), (&["iqn.a"][..], OTHER)][..],
            &[
                (&["*"][..], UNIT),
                (&["iqn.a"][..], OTHER),
                (&["iqn.a"][..], UNIT),
            ][..],
        ] {
            let target = target(grants);
            let port = ports_of([&target].into_iter(), UNIT);
            for initiator in ["iqn.a", "iqn.b", "iqn.c"] {
                let sees = target.view(initiator).is_some_and(|it| it.has(UNIT));
                let said = port.iter().any(|it| it.any != it.names.contains(initiator));
                assert_eq!(said, sees, "{initiator} {grants:?}");
            }
        }
    }
}
