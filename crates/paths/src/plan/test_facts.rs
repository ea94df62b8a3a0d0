//! Facts for tests, and the topologies that have names.

use crate::facts::{Facts, HostAddress, HostPort, Speed, TargetPort};
use scsi::alua::AccessState;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

pub(crate) const GIGABIT: Speed = Speed::gigabits(1);

fn ip(net: u8, last: usize) -> IpAddr {
    Ipv4Addr::new(10, net, 0, u8::try_from(last).unwrap()).into()
}

/// Ports are added one by one; the last one can be changed.
#[derive(Clone, Default)]
pub(crate) struct Build(Facts);

impl Build {
    pub(crate) fn facts(self) -> Facts {
        self.0
    }

    pub(crate) fn host(self, name: &str, card: &str, speed: Speed) -> Self {
        self.host_in(name, card, speed, 0)
    }

    pub(crate) fn host_in(mut self, name: &str, card: &str, speed: Speed, net: u8) -> Self {
        let address = HostAddress {
            ip: ip(net, self.0.hosts.len() + 1),
            prefix: 24,
        };
        self.0.hosts.push(HostPort {
            name: name.to_owned(),
            card: card.to_owned(),
            numa: None,
            speed: Some(speed),
            links: 1,
            link: true,
            mtu: 9000,
            addresses: vec![address],
            fabric: None,
            enabled: true,
        });
        self
    }

    pub(crate) fn target(self, name: &str, controller: &str, speed: Speed) -> Self {
        self.target_in(name, controller, speed, 0)
    }

    pub(crate) fn target_in(mut self, name: &str, controller: &str, speed: Speed, net: u8) -> Self {
        let portal = SocketAddr::new(ip(net, self.0.targets.len() + 100), 3260);
        self.0.targets.push(TargetPort {
            name: name.to_owned(),
            portals: vec![portal],
            portal_group: 1,
            access: AccessState::ActiveOptimized,
            controller: Some(controller.to_owned()),
            card: None,
            speed: Some(speed),
            links: 1,
            mtu: Some(9000),
            sessions_left: None,
            free: None,
            fabric: None,
            enabled: true,
        });
        self
    }

    pub(crate) fn target_card(mut self, card: &str) -> Self {
        self.0.targets.last_mut().unwrap().card = Some(card.to_owned());
        self
    }

    pub(crate) fn free(mut self, free: Option<Speed>) -> Self {
        self.0.targets.last_mut().unwrap().free = free;
        self
    }

    pub(crate) fn access(mut self, access: AccessState) -> Self {
        self.0.targets.last_mut().unwrap().access = access;
        self
    }

    pub(crate) fn initiator(mut self, name: &str) -> Self {
        name.clone_into(&mut self.0.initiator);
        self
    }
}

/// `hosts` x `targets` ports of one speed in one subnet, two host ports a card, half the target
/// ports a controller.
pub(crate) fn mesh(hosts: usize, targets: usize) -> Facts {
    let mut build = Build::default();
    for n in 0..hosts {
        build = build.host(&format!("eth{n}"), &format!("card{}", n / 2), GIGABIT);
    }
    for n in 0..targets {
        let controller = if n < targets.div_ceil(2) { "A" } else { "B" };
        build = build
            .target(&format!("t{n}"), controller, GIGABIT)
            .target_card(&format!("{}", n / 2));
    }
    build.facts()
}

/// The published test host: two Broadcom and two Intel ports, an array with two active ports on one
/// controller.
pub(crate) fn published() -> Facts {
    let build = Build::default()
        .host("b0", "broadcom", GIGABIT)
        .host("b1", "broadcom", GIGABIT);
    let build = build
        .host("i0", "intel", GIGABIT)
        .host("i1", "intel", GIGABIT);
    build
        .target("e0", "active", GIGABIT)
        .target("e1", "active", GIGABIT)
        .facts()
}
