//! What is exported to whom: one immutable snapshot that every core works with.
//!
//! **Contract.** A snapshot is made whole, published to all cores, and never edited. Nothing is
//! open unless a grant says so: an initiator sees exactly the targets in which it has a grant.

use env::CoreId;
use iscsi::chap::Secret;
use logical_unit::{PortFacts, UnitId};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The snapshot.
#[derive(Clone, Debug, Default)]
pub struct Export {
    /// Counts snapshots.
    pub generation: u64,
    /// Every target.
    pub targets: Vec<Arc<ExportedTarget>>,
    /// Every portal group.
    pub portal_groups: Vec<PortalGroup>,
    /// Limits and times.
    pub settings: Settings,
}

/// Limits and times of the whole front.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Sessions, of all targets together.
    pub sessions_max: usize,
    /// Connections that have not logged in yet, and discovery sessions, of all portals together; of
    /// one source address, half as many. Four times as many for a moment, while all come on.
    pub logins_in_progress_max: usize,
    /// How long a login may take.
    pub login_timeout: Duration,
    /// Silence after which an initiator is pinged.
    pub ping_after: Duration,
    /// Silence after a ping that ends the connection.
    pub ping_timeout: Duration,
    /// How long the data of a write may take from when it may be sent, and a second more for each
    /// MiB that its session is to send.
    pub data_timeout: Duration,
    /// How long a connection may wait for several PDUs at most before it reads them, while its
    /// host has enough other work; zero: it takes each as it comes.
    pub coalesce: Duration,
    /// Commands in progress on one session.
    pub command_depth: u32,
    /// Bytes of writes in progress on one session.
    pub write_bytes_max: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sessions_max: 2048,
            logins_in_progress_max: 256,
            login_timeout: Duration::from_secs(15),
            ping_after: Duration::from_secs(15),
            ping_timeout: Duration::from_secs(10),
            data_timeout: Duration::from_secs(30),
            coalesce: Duration::from_micros(150),
            command_depth: 512,
            write_bytes_max: 64 << 20,
        }
    }
}

/// A target and what it grants.
#[derive(Clone, Debug)]
pub struct ExportedTarget {
    /// Its iSCSI name.
    pub name: String,
    /// What it reports as TargetAlias.
    pub alias: Option<String>,
    /// The portal group that it is reached through.
    pub portal_group_tag: u16,
    /// Relative target port identifier of its port: unique in the SAN, stable, never 0.
    pub relative_port: u16,
    /// Who sees what.
    pub grants: Vec<Grant>,
    /// Logins are sent elsewhere.
    pub redirect: Option<Redirect>,
    /// Logins are refused for now, and sessions are asked to log out.
    pub maintenance: bool,
    /// How long sessions may stay when it goes into maintenance.
    pub maintenance_grace: Duration,
}

/// Where logins are sent instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redirect {
    /// `host:port`.
    pub address: String,
    /// For good, or for this time.
    pub permanent: bool,
}

/// One logical unit for one host.
#[derive(Clone, Debug)]
pub struct Grant {
    /// The host that reaches it.
    pub host: Arc<Host>,
    /// Under which number.
    pub lun: u16,
    /// The logical unit that is behind the number.
    pub unit: UnitId,
    /// What would change the unit ends with DATA PROTECT.
    pub read_only: bool,
}

/// A host: the initiators that are one administrator's machine, and how they prove it.
#[derive(Clone, Debug)]
pub struct Host {
    /// Its name, for people.
    pub name: String,
    /// The initiators' iSCSI names; `*` is every initiator.
    pub initiators: Vec<String>,
    /// How they prove themselves; `None`: by their name alone.
    pub chap: Option<HostChap>,
    /// The most bytes that the commands of each session may hold at a time.
    pub bytes_in_flight_max: Option<u64>,
}

/// CHAP credentials of a host.
#[derive(Clone, Debug)]
pub struct HostChap {
    /// The name that the initiator gives.
    pub user: String,
    /// What the initiator's response is computed from.
    pub secret: Secret,
    /// How we prove ourselves.
    pub mutual: Option<(String, Secret)>,
}

/// Portals that a session may use together (RFC 7143 4.1.1), and which cores serve them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortalGroup {
    /// Its name, for people.
    pub name: String,
    /// TargetPortalGroupTag: unique on the node, 1 to 65535.
    pub tag: u16,
    /// Where it listens.
    pub listens: Vec<Listen>,
    /// The only cores that serve what comes in through it, and each connection stays where it was
    /// placed; none named: every core serves it.
    pub cores: Vec<CoreId>,
}

/// One entry of a portal group.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Listen {
    /// A fixed address; a wildcard address stands for every address of its family.
    Address(SocketAddr),
    /// Every address that an interface has, whenever it has it.
    Interface {
        /// The interface's name.
        name: String,
        /// The TCP port.
        port: u16,
    },
}

/// What a host sees of a target.
#[derive(Clone, Debug)]
pub struct View {
    /// The host that the initiator is.
    pub host: Arc<Host>,
    /// Its logical units.
    pub luns: Luns,
}

/// Logical units by their numbers.
pub(crate) type Luns = BTreeMap<u16, MappedUnit>;

/// A logical unit in a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MappedUnit {
    /// The logical unit that is behind the number.
    pub unit: UnitId,
    /// What would change the unit ends with DATA PROTECT.
    pub read_only: bool,
}

impl View {
    /// It has this unit.
    #[must_use]
    pub fn has(&self, unit: UnitId) -> bool {
        self.luns.values().any(|mapped| mapped.unit == unit)
    }
}

impl Host {
    fn names(&self, initiator: &str) -> bool {
        // iSCSI names compare without regard to case (RFC 7143 4.2.7.1: they are normalised to
        // lower case).
        self.initiators
            .iter()
            .any(|name| name.eq_ignore_ascii_case(initiator))
    }

    fn is_wildcard(&self) -> bool {
        self.initiators.iter().any(|name| name == "*")
    }
}

/// For each unit, ports by relative identifier.
pub(crate) type UnitPortMap = BTreeMap<UnitId, Vec<PortFacts>>;

impl ExportedTarget {
    /// What reservations and ALUA name it by.
    #[must_use]
    pub fn port(&self) -> PortFacts {
        PortFacts {
            relative_port: self.relative_port,
            target_name: self.name.clone(),
            portal_group_tag: self.portal_group_tag,
        }
    }

    /// What `initiator` sees of this target; `None` where it is granted nothing. A host that names
    /// the initiator goes before one for every initiator, and then alone decides.
    #[must_use]
    pub fn view(&self, initiator: &str) -> Option<View> {
        let named = self.grants.iter().find(|grant| grant.host.names(initiator));
        let grant = named.or_else(|| self.grants.iter().find(|grant| grant.host.is_wildcard()))?;
        let host = Arc::clone(&grant.host);
        let luns = self
            .grants
            .iter()
            .filter(|grant| Arc::ptr_eq(&grant.host, &host) || grant.host.name == host.name)
            .map(|grant| {
                (
                    grant.lun,
                    MappedUnit {
                        unit: grant.unit,
                        read_only: grant.read_only,
                    },
                )
            })
            .collect();
        Some(View { host, luns })
    }
}

impl Export {
    /// The cores to which connections of a portal group are pinned; none: they are not.
    pub(crate) fn pinned(&self, portal_group_tag: u16) -> &[CoreId] {
        let mut groups = self.portal_groups.iter();
        let group = groups.find(|group| group.tag == portal_group_tag);
        group.map_or(&[], |group| &group.cores)
    }

    /// The ports through which `initiator` can reach each unit, by relative identifier: of every
    /// target that grants it to this initiator, and of no other.
    #[must_use]
    pub(crate) fn ports(&self, initiator: &str) -> UnitPortMap {
        let mut ports = UnitPortMap::new();
        for target in &self.targets {
            let view = target.view(initiator);
            let units: BTreeSet<UnitId> = view
                .iter()
                .flat_map(|view| view.luns.values().map(|mapped| mapped.unit))
                .collect();
            for unit in units {
                ports.entry(unit).or_default().push(target.port());
            }
        }
        for of_unit in ports.values_mut() {
            of_unit.sort_by_key(|port| port.relative_port);
        }
        ports
    }

    /// The target of this name.
    #[must_use]
    pub fn target(&self, name: &str) -> Option<&Arc<ExportedTarget>> {
        self.targets
            .iter()
            .find(|target| target.name.eq_ignore_ascii_case(name))
    }

    /// Some host is this initiator, or every initiator.
    #[must_use]
    pub fn knows(&self, initiator: &str) -> bool {
        self.host_of(initiator).is_some()
    }

    /// The host whose credentials a discovery session of `initiator` must prove: the same as for
    /// the targets that it would see (field lesson 48: discovery is never easier than login). With
    /// different hosts in different targets the one with credentials goes first.
    #[must_use]
    pub fn host_of(&self, initiator: &str) -> Option<Arc<Host>> {
        let mut hosts: Vec<_> = self
            .targets
            .iter()
            .filter_map(|target| target.view(initiator))
            .map(|view| view.host)
            .collect();
        hosts.sort_by_key(|host| (host.chap.is_none(), host.is_wildcard()));
        hosts.into_iter().next()
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn host(name: &str, initiator: &str) -> Arc<Host> {
        Arc::new(Host {
            name: name.to_owned(),
            initiators: vec![initiator.to_owned()],
            chap: None,
            bytes_in_flight_max: None,
        })
    }

    fn target(grants: Vec<Grant>) -> ExportedTarget {
        ExportedTarget {
            name: "iqn.2026-11.io.causeway:t".to_owned(),
            alias: None,
            portal_group_tag: 1,
            relative_port: 1,
            grants,
            redirect: None,
            maintenance: false,
            maintenance_grace: Duration::from_secs(30),
        }
    }

    #[test]
    fn nothing_is_open_unless_granted_and_a_named_host_goes_before_the_wildcard() {
        let (named, every) = (host("esx01", "iqn.a:x"), host("all", "*"));
        let grant = |host: &Arc<Host>, lun| Grant {
            host: Arc::clone(host),
            lun,
            unit: UnitId(u64::from(lun)),
            read_only: false,
        };
        let both = target(vec![grant(&every, 0), grant(&named, 1), grant(&named, 2)]);
        assert_eq!(
            both.view("iqn.A:X")
                .unwrap()
                .luns
                .keys()
                .collect::<Vec<_>>(),
            [&1, &2]
        );
        assert_eq!(
            both.view("iqn.b:y")
                .unwrap()
                .luns
                .keys()
                .collect::<Vec<_>>(),
            [&0]
        );
        assert!(target(vec![grant(&named, 1)]).view("iqn.b:y").is_none());
        assert!(target(vec![]).view("iqn.a:x").is_none());
    }
}
