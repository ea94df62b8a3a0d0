//! What the front shows to whom, made from the objects.

use crate::inner::Inner;
use crate::lun::ports::{has_room, ports_of};
use env::CoreId;
use iscsi::chap::Secret;
use iscsi_target::{Export, ExportedTarget, Grant, HostChap, Listen, PortalGroup, Settings};
use manifest::code::Code;
use manifest::config::{self, Config};
use manifest::objects::{Host, Objects};
use manifest::size::Size;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

impl Inner {
    /// The next export. Grants whose LUN has no unit are left out; there are none while I1 holds.
    pub(crate) fn export(&self, objects: &Objects) -> Export {
        self.exports.set(self.exports.get() + 1);
        let hosts: BTreeMap<&str, Arc<iscsi_target::Host>> = objects
            .hosts
            .iter()
            .map(|(name, host)| (name.as_str(), Arc::new(exported_host(name, host))))
            .collect();
        let config = self.settings();
        let units = self.units.borrow();
        let mut grants: BTreeMap<&str, Vec<Grant>> = BTreeMap::new();
        for (key, grant) in &objects.grants {
            let shown = objects.luns.get(&key.lun).filter(|lun| {
                let target = objects.targets.get(&key.target);
                target.is_some_and(|target| has_room(lun, target))
            });
            let unit = shown.and_then(|lun| units.get(&lun.naa));
            if let (Some(unit), Some(host)) = (unit, hosts.get(key.host.as_str())) {
                grants.entry(&key.target).or_default().push(Grant {
                    host: Arc::clone(host),
                    lun: grant.lun_id,
                    unit: unit.id,
                    read_only: grant.read_only,
                });
            }
        }
        let targets = objects.targets.iter().filter_map(|(name, target)| {
            let group = config
                .portal_groups
                .iter()
                .find(|group| group.name == target.portal_group)?;
            Some(Arc::new(ExportedTarget {
                name: target.iqn.clone(),
                alias: Some(name.clone()),
                portal_group_tag: group.tag,
                relative_port: target.relative_port,
                grants: grants.remove(name.as_str()).unwrap_or_default(),
                redirect: target
                    .redirect
                    .as_ref()
                    .map(|redirect| iscsi_target::Redirect {
                        address: redirect.to.clone(),
                        permanent: redirect.permanent,
                    }),
                maintenance: target.maintenance,
                maintenance_grace: Duration::from_secs(target.maintenance_grace_seconds.into()),
            }))
        });
        let targets: Vec<Arc<ExportedTarget>> = targets.collect();
        self.say_ports(objects, &targets);
        Export {
            generation: self.exports.get(),
            targets,
            portal_groups: config.portal_groups.iter().map(exported_group).collect(),
            settings: settings(&config),
        }
    }
}

impl Inner {
    /// Other nodes with copies of LUNs hear through which ports of this one hosts reach them.
    fn say_ports(&self, objects: &Objects, targets: &[Arc<ExportedTarget>]) {
        let Some(mirrors) = self.mirrors.get() else {
            return;
        };
        let units = self.units.borrow();
        let with_copies = objects.luns.values();
        for lun in with_copies.filter(|it| it.storage.copies.is_some()) {
            if let Some(unit) = units.get(&lun.naa) {
                let targets = targets.iter().map(|it| &**it);
                mirrors.say_ports(&lun.naa, ports_of(targets, unit.id));
            }
        }
    }
}

fn settings(config: &Config) -> Settings {
    let times = &config.session;
    Settings {
        login_timeout: times.login,
        ping_after: times.ping_after,
        ping_timeout: times.ping_timeout,
        data_timeout: times.data,
        coalesce: config.coalesce,
        ..Settings::default()
    }
}

/// Targets that cannot be reached because node.toml has lost their portal group.
pub(crate) fn missing_groups(node: &Inner) -> Vec<String> {
    let groups = &node.config.portal_groups;
    let objects = node.objects.borrow();
    let lost = objects
        .targets
        .iter()
        .filter(|(_, target)| groups.iter().all(|group| group.name != target.portal_group));
    lost.map(|(name, target)| {
        let group = &target.portal_group;
        format!("target {name} cannot be reached: node.toml has no portal group \"{group}\"")
    })
    .collect()
}

/// No portal listens at all, so that no host reaches anything.
pub(crate) fn no_portal(node: &Inner) -> Option<String> {
    let server = node.server()?;
    let portals = server.portals();
    let any = portals.iter().any(|portal| portal.error.is_none());
    (!any).then(|| {
        format!(
            "{}: no portal listens, so that hosts reach nothing; each address is tried again every second",
            Code::NoPortal
        )
    })
}

/// Interfaces that have no address now, or are not there, so that their portals listen nowhere.
pub(crate) fn silent_interfaces(node: &Inner) -> Vec<String> {
    let server = node.server();
    let portals = server.map(|server| server.portals()).unwrap_or_default();
    let mut out = Vec::new();
    for group in &node.settings().portal_groups {
        for listen in &group.listen {
            let config::Listen::Interface { name, .. } = listen else {
                continue;
            };
            let here = |portal: &iscsi_target::PortalStatus| {
                portal.portal_group == group.name && portal.interface.as_ref() == Some(name)
            };
            if !portals.iter().any(here) {
                out.push(format!(
                    "portal group {}: interface {name} has no address or is not there; it is listened at as \
                     soon as it has one (ip address show)",
                    group.name
                ));
            }
        }
    }
    out
}

fn exported_host(name: &str, host: &Host) -> iscsi_target::Host {
    iscsi_target::Host {
        name: name.to_owned(),
        initiators: host.iqn.clone(),
        bytes_in_flight_max: host.bytes_in_flight_max.map(Size::bytes),
        chap: host.chap.as_ref().map(|chap| HostChap {
            user: chap.user.clone(),
            secret: Secret::new(chap.secret.reveal()),
            mutual: chap
                .mutual
                .as_ref()
                .map(|mutual| (mutual.user.clone(), Secret::new(mutual.secret.reveal()))),
        }),
    }
}

fn exported_group(group: &config::PortalGroup) -> PortalGroup {
    let listen = |listen: &config::Listen| match listen {
        config::Listen::Address(address) => Listen::Address(*address),
        config::Listen::Interface { name, port } => Listen::Interface {
            name: name.clone(),
            port: *port,
        },
    };
    PortalGroup {
        name: group.name.clone(),
        tag: group.tag,
        listens: group.listen.iter().map(listen).collect(),
        cores: group.cores.iter().map(|core| CoreId(*core)).collect(),
    }
}

#[cfg(test)]
mod test {
    use iscsi_target::Settings;
    use manifest::config::{COALESCE, SessionTimes};

    #[test]
    fn what_nobody_says_in_node_toml_is_as_the_front_has_it() {
        let (front, times) = (Settings::default(), SessionTimes::default());
        assert_eq!(times.login, front.login_timeout);
        assert_eq!(times.ping_after, front.ping_after);
        assert_eq!(times.ping_timeout, front.ping_timeout);
        assert_eq!(times.data, front.data_timeout);
        assert_eq!(COALESCE, front.coalesce);
    }
}
