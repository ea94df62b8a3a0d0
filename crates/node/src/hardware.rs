//! What this machine's network ports are, and what they have to spare, reported to the front:
//! initiators that plan their paths ask.
//!
//! Cards, speeds and addresses follow the system at once; head-room is what the ports' own counters
//! say of the last seconds, whoever used them.

use crate::inner::Inner;
use env::CoreHandle;
use futures_util::future::{Either, select};
use iscsi_target::{Hardware, PortHardware};
use machine::{Follower, HostPort, Kind, Machine, Roots, Subnet};
use manifest::facts::{NicAddress, NodeNic};
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Weak;
use std::time::Duration;
use units::Now;

/// How often counters are read while there are connections, and without any.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);
const PROBE_INTERVAL_IDLE: Duration = Duration::from_secs(10);

/// A shorter span says nothing of a rate.
const SPAN_MIN: Duration = Duration::from_millis(500);

/// What a port's counters were, and the rate since the sample before.
#[derive(Clone, Copy)]
struct Meter {
    at: Now,
    bytes: (u64, u64),
    /// Bits per second of the busier direction.
    rate: Option<u64>,
}

impl Meter {
    /// With another sample.
    fn next(self, at: Now, bytes: (u64, u64)) -> Self {
        let span = at.since(self.at);
        if span < SPAN_MIN {
            return self;
        }
        // Counters that went back belong to another port of the same name.
        let moved = |now: u64, before: u64| now.checked_sub(before);
        let busier = moved(bytes.0, self.bytes.0)
            .zip(moved(bytes.1, self.bytes.1))
            .map(|(received, sent)| received.max(sent));
        let rate = busier.map(|bytes| {
            let bits = u128::from(bytes) * 8 * 1000 / span.as_millis().max(1);
            u64::try_from(bits).unwrap_or(u64::MAX)
        });
        Self { at, bytes, rate }
    }
}

/// Reports and follows for as long as the node has a front.
pub(crate) async fn follow(core: CoreHandle, node: Weak<Inner>) {
    let mut follower = match Follower::start(&core, Roots::default()).await {
        Ok(follower) => follower,
        Err(error) => {
            tracing::warn!(%error, "this system does not report its interfaces: initiators are not notified of cards and speeds");
            return;
        }
    };
    let mut meters = BTreeMap::new();
    loop {
        measure(&core, follower.machine(), &mut meters).await;
        let busy = {
            let Some((node, server)) = node
                .upgrade()
                .and_then(|node| node.server().map(|server| (node, server)))
            else {
                return;
            };
            node.nics.replace(nics(follower.machine()));
            server.set_hardware(hardware(
                &node.config.node_name,
                follower.machine(),
                &meters,
            ));
            server.connections() > 0
        };
        let wait = if busy {
            PROBE_INTERVAL
        } else {
            PROBE_INTERVAL_IDLE
        };
        let changed = pin!(follower.changed());
        let timer = core.sleep_until(core.now().after(wait));
        if let Either::Left((Err(_gone), _)) = select(changed, timer).await {
            return;
        }
    }
}

async fn measure(core: &CoreHandle, machine: &Machine, meters: &mut BTreeMap<String, Meter>) {
    let ports = machine.ports();
    meters.retain(|name, _| ports.iter().any(|port| port.name == *name));
    for port in &ports {
        let Some(bytes) = machine::traffic(core, &Roots::default(), &port.name).await else {
            meters.remove(&port.name);
            continue;
        };
        let at = core.now();
        let first = Meter {
            at,
            bytes,
            rate: None,
        };
        let meter = meters.entry(port.name.clone()).or_insert(first);
        *meter = meter.next(at, bytes);
    }
}

/// The ports of this machine. The loopback interface is none: whoever uses it is on this machine.
fn ports(machine: &Machine) -> Vec<HostPort> {
    let mut ports = machine.ports();
    let is_port = |name: &str| {
        let nic = machine.nic(name);
        nic.is_some_and(|nic| nic.kind != Kind::Loopback)
    };
    ports.retain(|port| is_port(&port.name));
    ports
}

/// What fails with a port; `None`: it is no hardware.
fn card(port: &HostPort) -> Option<String> {
    Some(port.card.clone()).filter(|card| *card != port.name)
}

/// As people see them.
fn nics(machine: &Machine) -> Vec<NodeNic> {
    let nic = |port: &HostPort| NodeNic {
        name: port.name.clone(),
        card: card(port),
        bits_per_second: port.speed.map(|speed| speed.0),
        links: port.links,
        mtu: port.mtu,
        carrier: port.link,
        addresses: port
            .addresses
            .iter()
            .map(|at| NicAddress {
                address: at.ip.to_string(),
                network: Subnet::of(at.ip, at.prefix).to_string(),
            })
            .collect(),
    };
    ports(machine).iter().map(nic).collect()
}

/// As the front reports it.
fn hardware(node: &str, machine: &Machine, meters: &BTreeMap<String, Meter>) -> Hardware {
    let mut reports = BTreeMap::new();
    for port in ports(machine) {
        let speed = port.speed.map(|speed| speed.0);
        let rate = meters.get(&port.name).and_then(|meter| meter.rate);
        let reported = PortHardware {
            card: card(&port),
            speed,
            links: port.links,
            mtu: port.mtu,
            free: speed
                .zip(rate)
                .map(|(speed, rate)| speed.saturating_sub(rate)),
            name: port.name,
        };
        for at in &port.addresses {
            reports.insert(at.ip, reported.clone());
        }
    }
    Hardware {
        controller: node.to_owned(),
        ports: reports,
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use machine::Nic;
    use paths::{HostAddress, Speed};

    fn nic(name: &str, card: Option<&str>, ip: &str) -> Nic {
        Nic {
            name: name.to_owned(),
            kind: if name == "lo" {
                Kind::Loopback
            } else {
                Kind::Physical
            },
            card: card.map(str::to_owned),
            speed: Some(Speed::gigabits(1)),
            up: true,
            carrier: true,
            mtu: 9000,
            addresses: vec![HostAddress {
                ip: ip.parse().unwrap(),
                prefix: 24,
            }],
            ..Nic::default()
        }
    }

    #[test]
    fn head_room_is_what_the_busier_direction_leaves_and_the_loopback_is_no_port() {
        let machine = Machine {
            nics: vec![
                nic("eth0", Some("0000:03:00"), "192.0.2.1"),
                nic("eth1", None, "192.0.2.2"),
                nic("lo", None, "127.0.0.1"),
            ],
            ..Machine::default()
        };
        let seen = nics(&machine);
        let names: Vec<&str> = seen.iter().map(|nic| nic.name.as_str()).collect();
        assert_eq!(names, ["eth0", "eth1"]);
        assert_eq!(
            (seen[0].card.as_deref(), seen[1].card.as_deref()),
            (Some("0000:03:00"), None)
        );
        assert_eq!(seen[0].addresses[0].network, "192.0.2.0/24");
        let start = Meter {
            at: Now(0),
            bytes: (1000, 5000),
            rate: None,
        };
        let later = start.at.after(Duration::from_secs(2));
        // 25 MB and 50 MB in two seconds: 200 Mb/s leave 800 of 1000.
        let meter = start.next(later, (25_001_000, 50_005_000));
        let reported = hardware("san-a", &machine, &[("eth0".to_owned(), meter)].into());
        assert_eq!(reported.controller, "san-a");
        let addresses: Vec<String> = reported.ports.keys().map(ToString::to_string).collect();
        assert_eq!(addresses, ["192.0.2.1", "192.0.2.2"]);
        let ports: Vec<&PortHardware> = reported.ports.values().collect();
        assert_eq!(ports[0].card.as_deref(), Some("0000:03:00"));
        assert_eq!(ports[0].free, Some(800_000_000));
        assert_eq!((ports[1].card.as_deref(), ports[1].free), (None, None));
        // Sooner than a rate can be measured the last one stands; counters that go back give none.
        let soon = meter.next(later.after(Duration::from_millis(100)), (u64::MAX, 0));
        assert_eq!(soon.rate, Some(200_000_000));
        let back = meter.next(later.after(Duration::from_secs(2)), (0, 0));
        assert_eq!(back.rate, None);
    }
}
