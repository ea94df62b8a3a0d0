//! The candidates: every pair of a host port and a target port, and either how it would go or why
//! it cannot.

use crate::facts::{Element, Facts, HostAddress, HostPort, PathName, Speed, Subnet, TargetPort};
use crate::plan::model::Barred;
use crate::plan::options::{Options, Routed};
use scsi::alua::AccessState;
use sha2::{Digest, Sha256};
use std::net::{IpAddr, SocketAddr};

/// Speed of a port of which nobody knows any.
const NOMINAL: Speed = Speed::gigabits(1);

/// Access states that carry I/O; a larger tier only stands by.
pub(crate) const TIERS_WITH_IO: u8 = 2;

/// A port as the planner's arithmetic sees it, in bits per second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// The whole port.
    pub(crate) capacity: u64,
    /// The most that one stream gets.
    pub(crate) stream: u64,
    /// The most sessions.
    pub(crate) sessions: u32,
    /// How many quarters of it were in use.
    pub(crate) busy: u8,
}

/// All quarters.
pub(crate) const BUSY_MAX: u8 = 4;

/// A path that can be logged in.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) name: PathName,
    pub(crate) host: usize,
    pub(crate) host_card: usize,
    pub(crate) target: usize,
    pub(crate) target_card: usize,
    pub(crate) controller: usize,
    pub(crate) fabric: usize,
    pub(crate) source: IpAddr,
    pub(crate) portal: SocketAddr,
    pub(crate) routed: bool,
    pub(crate) access: AccessState,
    pub(crate) tier: u8,
    /// min of what one stream gets at both ends.
    pub(crate) speed: u64,
    /// The last word between equals: differs from host to host.
    pub(crate) spread: u32,
}

/// Names in order of first appearance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Vec<String>);

impl Names {
    fn of(&mut self, name: &str) -> usize {
        let found = self.0.iter().position(|it| it == name);
        found.unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        })
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|it| it == name)
    }
}

/// All pairs.
#[derive(Clone, Debug)]
pub(crate) struct Mesh {
    pub(crate) hosts: Vec<End>,
    pub(crate) targets: Vec<End>,
    pub(crate) paths: Vec<Candidate>,
    pub(crate) barred: Vec<(PathName, Barred)>,
    host_names: Names,
    target_names: Names,
    host_cards: Names,
    target_cards: Names,
    controllers: Names,
    fabrics: Names,
}

/// How a host port reaches a target port.
struct Route {
    source: IpAddr,
    portal: SocketAddr,
    subnet: Subnet,
    routed: bool,
}

pub(crate) const fn tier_of(access: AccessState) -> u8 {
    match access {
        AccessState::ActiveOptimized => 0,
        AccessState::ActiveNonOptimized => 1,
        AccessState::Standby
        | AccessState::Unavailable
        | AccessState::Transitioning
        | AccessState::Offline => TIERS_WITH_IO,
    }
}

impl Mesh {
    pub(crate) fn new(facts: &Facts, options: &Options) -> Self {
        let mut mesh = Self {
            hosts: host_ends(facts),
            targets: Vec::new(),
            paths: Vec::new(),
            barred: Vec::new(),
            host_names: Names::default(),
            target_names: Names::default(),
            host_cards: Names::default(),
            target_cards: Names::default(),
            controllers: Names::default(),
            fabrics: Names::default(),
        };
        mesh.targets = mesh.target_ends(facts);
        match options.routed {
            Routed::Always => mesh.fill(facts, true),
            Routed::Never => mesh.fill(facts, false),
            Routed::LastResort => {
                mesh.fill(facts, false);
                if mesh.paths.is_empty() {
                    mesh.barred.clear();
                    mesh.fill(facts, true);
                }
            }
        }
        mesh
    }

    fn target_ends(&self, facts: &Facts) -> Vec<End> {
        let speed_of = |target: &TargetPort| {
            let reaching = facts.hosts.iter().zip(&self.hosts);
            let reaching = reaching.filter(|(host, _)| route(host, target, false).is_ok());
            let assumed = reaching.map(|(_, end)| end.stream).max();
            known(target.speed).unwrap_or(assumed.unwrap_or(NOMINAL.0))
        };
        let ends = facts.targets.iter();
        let ends = ends.map(|it| {
            let end = end(speed_of(it), it.links);
            End {
                sessions: it.sessions_left.unwrap_or(u32::MAX),
                busy: it.free.map_or(0, |free| busy(free, end.capacity)),
                ..end
            }
        });
        ends.collect()
    }

    fn fill(&mut self, facts: &Facts, routed: bool) {
        for (h, host) in facts.hosts.iter().enumerate() {
            for (t, target) in facts.targets.iter().enumerate() {
                let name = PathName {
                    host: host.name.clone(),
                    target: target.name.clone(),
                };
                match route(host, target, routed) {
                    Ok(route) => self.admit(facts, (h, t), name, &route),
                    Err(barred) => self.barred.push((name, barred)),
                }
            }
        }
    }

    fn admit(&mut self, facts: &Facts, (h, t): (usize, usize), name: PathName, route: &Route) {
        let (host, target) = (&facts.hosts[h], &facts.targets[t]);
        let controller = controller_of(target);
        let card = card_of(target);
        let fabric = host.fabric.clone().or_else(|| target.fabric.clone());
        let fabric = fabric.unwrap_or_else(|| fabric_of(facts, route.subnet));
        self.host_names.of(&host.name);
        let candidate = Candidate {
            host: h,
            host_card: self.host_cards.of(&host.card),
            target: t,
            target_card: self.target_cards.of(&card),
            controller: self.controllers.of(&controller),
            fabric: self.fabrics.of(&fabric),
            source: route.source,
            portal: route.portal,
            routed: route.routed,
            access: target.access,
            tier: tier_of(target.access),
            speed: self.hosts[h].stream.min(self.targets[t].stream),
            spread: spread(&facts.initiator, &name),
            name,
        };
        self.target_names.of(&target.name);
        self.paths.push(candidate);
    }

    /// The elements that the path stands on.
    pub(crate) fn elements(&self, path: &Candidate) -> [Element; 6] {
        [
            Element::HostPort(path.name.host.clone()),
            Element::HostCard(self.host_cards.0[path.host_card].clone()),
            Element::TargetPort(path.name.target.clone()),
            Element::TargetCard(self.target_cards.0[path.target_card].clone()),
            Element::Controller(self.controllers.0[path.controller].clone()),
            Element::Fabric(self.fabrics.0[path.fabric].clone()),
        ]
    }

    /// Every element that some path stands on.
    pub(crate) fn all_elements(&self) -> Vec<Element> {
        let names = |names: &Names, make: fn(String) -> Element| {
            let made: Vec<Element> = names.0.iter().cloned().map(make).collect();
            made
        };
        let mut all = names(&self.host_names, Element::HostPort);
        all.extend(names(&self.host_cards, Element::HostCard));
        all.extend(names(&self.target_names, Element::TargetPort));
        all.extend(names(&self.target_cards, Element::TargetCard));
        all.extend(names(&self.controllers, Element::Controller));
        all.extend(names(&self.fabrics, Element::Fabric));
        all
    }

    /// Whether the path needs `element`.
    pub(crate) fn stands_on(&self, path: &Candidate, element: &Element) -> bool {
        match element {
            Element::HostPort(name) => path.name.host == *name,
            Element::TargetPort(name) => path.name.target == *name,
            Element::HostCard(name) => self.host_cards.position(name) == Some(path.host_card),
            Element::TargetCard(name) => self.target_cards.position(name) == Some(path.target_card),
            Element::Controller(name) => self.controllers.position(name) == Some(path.controller),
            Element::Fabric(name) => self.fabrics.position(name) == Some(path.fabric),
            Element::Path(name) => {
                let ends = name.split_once('>');
                ends == Some((path.name.host.as_str(), path.name.target.as_str()))
            }
        }
    }

    /// The same mesh without the paths that need one of `elements`; they become barred.
    pub(crate) fn without(&self, elements: &[Element]) -> Self {
        let mut mesh = self.clone();
        let lost = |path: &Candidate| elements.iter().find(|it| self.stands_on(path, it));
        mesh.paths.retain(|path| lost(path).is_none());
        for path in &self.paths {
            if let Some(element) = lost(path) {
                let barred = Barred::Lost {
                    element: element.to_string(),
                };
                mesh.barred.push((path.name.clone(), barred));
            }
        }
        mesh
    }

    pub(crate) fn find(&self, name: &PathName) -> Option<usize> {
        self.paths.iter().position(|path| path.name == *name)
    }
}

fn known(speed: Option<Speed>) -> Option<u64> {
    speed.map(|speed| speed.0).filter(|bits| *bits > 0)
}

fn end(capacity: u64, links: u16) -> End {
    End {
        capacity,
        stream: (capacity / u64::from(links.max(1))).max(1),
        sessions: u32::MAX,
        busy: 0,
    }
}

/// How many quarters of `capacity` are in use where so much is free: coarse, so that plans differ
/// for good reason only.
fn busy(free: Speed, capacity: u64) -> u8 {
    let used = u128::from(capacity.saturating_sub(free.0)) * u128::from(BUSY_MAX);
    u8::try_from(used / u128::from(capacity.max(1))).unwrap_or(BUSY_MAX)
}

/// A host port of unknown speed is taken to be as fast as the slowest that is known.
fn host_ends(facts: &Facts) -> Vec<End> {
    let slowest = facts
        .hosts
        .iter()
        .filter_map(|host| known(host.speed))
        .min();
    let assumed = slowest.unwrap_or(NOMINAL.0);
    let hosts = facts.hosts.iter();
    hosts
        .map(|host| end(known(host.speed).unwrap_or(assumed), host.links))
        .collect()
}

pub(crate) fn controller_of(target: &TargetPort) -> String {
    let by_group = || format!("portal-group-{}", target.portal_group);
    target.controller.clone().unwrap_or_else(by_group)
}

/// A card belongs to its controller, whatever it is called.
pub(crate) fn card_of(target: &TargetPort) -> String {
    format!(
        "{}/{}",
        controller_of(target),
        target.card.as_deref().unwrap_or("0")
    )
}

pub(crate) fn fabric_of(facts: &Facts, subnet: Subnet) -> String {
    let named = facts.fabrics.iter().find(|it| it.subnets.contains(&subnet));
    named.map_or_else(|| subnet.to_string(), |fabric| fabric.name.clone())
}

fn spread(initiator: &str, name: &PathName) -> u32 {
    let mut hash = Sha256::new();
    for part in [initiator, &name.host, &name.target] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let digest: [u8; 32] = hash.finalize().into();
    u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]])
}

fn route(host: &HostPort, target: &TargetPort, routed: bool) -> Result<Route, Barred> {
    if !host.enabled || !target.enabled {
        return Err(Barred::Disabled);
    }
    if !host.link {
        return Err(Barred::LinkDown);
    }
    if host.addresses.is_empty() {
        return Err(Barred::NoAddress);
    }
    if target.sessions_left == Some(0) {
        return Err(Barred::NoSessionsLeft);
    }
    if let (Some(ours), Some(theirs)) = (&host.fabric, &target.fabric)
        && ours != theirs
    {
        return Err(Barred::OtherFabric {
            host: ours.clone(),
            target: theirs.clone(),
        });
    }
    let pairs = || {
        target.portals.iter().flat_map(|portal| {
            host.addresses
                .iter()
                .map(move |address| (*portal, *address))
        })
    };
    let make = |(portal, address): (SocketAddr, HostAddress), routed| Route {
        source: address.ip,
        portal,
        subnet: Subnet::of(address.ip, address.prefix),
        routed,
    };
    let direct = pairs()
        .find(|(portal, address)| Subnet::of(address.ip, address.prefix).contains(portal.ip()));
    if let Some(pair) = direct {
        return Ok(make(pair, false));
    }
    let same_family = pairs().find(|(portal, address)| portal.is_ipv4() == address.ip.is_ipv4());
    match same_family {
        Some(pair) if routed => Ok(make(pair, true)),
        Some(_) | None => Err(Barred::NoCommonSubnet),
    }
}
