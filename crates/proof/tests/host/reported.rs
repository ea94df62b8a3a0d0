//! What our own target reports of the ports behind its portals, and what the planner makes of it.

use crate::bench::{San, TARGET, Wish, on, options, runtime};
use host::{Credentials, Kind, Options, Prepared, Url, prepare};
use iscsi::chap::Secret;
use iscsi_target::{Hardware, HostChap, PortHardware};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

fn hardware(of: &[(SocketAddr, PortHardware)]) -> Hardware {
    Hardware {
        controller: "san-a".to_owned(),
        ports: of
            .iter()
            .map(|(at, port)| (at.ip(), port.clone()))
            .collect(),
    }
}

fn port(name: &str, card: &str) -> PortHardware {
    PortHardware {
        name: name.to_owned(),
        card: Some(card.to_owned()),
        speed: Some(1_000_000_000),
        links: 1,
        mtu: 9000,
        free: Some(900_000_000),
    }
}

/// A target with so many portals.
fn san(portals: u8) -> San {
    San::start(Wish {
        portals,
        units: 1,
        ..Wish::default()
    })
}

/// It reports that these ports are behind its portals, in their order.
fn report(san: &San, ports: &[PortHardware]) {
    let reported = san.portals.iter().copied().zip(ports.iter().cloned());
    let reported: Vec<(SocketAddr, PortHardware)> = reported.collect();
    san.server.set_hardware(hardware(&reported));
}

/// Two ports on two cards.
fn two_cards() -> [PortHardware; 2] {
    [port("eth1", "left"), port("eth2", "right")]
}

/// The first so many portals of `san`, as hosts name them.
fn url(san: &San, hosts: usize) -> Url {
    let hosts: Vec<String> = san.portals[..hosts]
        .iter()
        .map(ToString::to_string)
        .collect();
    format!("iscsi://{}/{TARGET}/0", hosts.join(","))
        .parse()
        .unwrap()
}

/// What is planned between two ports of this host and the portals of `san`.
fn inspect<T: Send + 'static>(
    san: &San,
    options: Options,
    hosts: usize,
    then: impl FnOnce(&Prepared) -> T + Send + 'static,
) -> T {
    let url = url(san, hosts);
    on(&runtime(1), move |core| async move {
        then(&prepare(&core, &url, &options).await.unwrap())
    })
}

fn discovering(name: &str) -> Options {
    Options {
        no_discover: false,
        ..options(name, 2)
    }
}

/// The portals that would be active.
fn active(prepared: &Prepared) -> Vec<SocketAddr> {
    let plan = prepared.plan();
    let paths = plan
        .paths
        .iter()
        .filter(|it| plan.active().contains(&it.path));
    paths.filter_map(|it| it.portal).collect()
}

#[test]
fn the_planner_takes_ports_of_different_cards_because_the_target_reports_them() {
    let san = san(4);
    let unreported = inspect(&san, discovering("unreported"), 1, active);
    assert_eq!(unreported.len(), 2);
    // Those two are on one card; the planner must give one of them up.
    let on_card = |at: &SocketAddr| {
        if unreported.contains(at) {
            "left"
        } else {
            "right"
        }
    };
    let all = san.portals.iter().zip(1..);
    let reported: Vec<(SocketAddr, PortHardware)> = all
        .map(|(at, n)| (*at, port(&format!("eth{n}"), on_card(at))))
        .collect();
    san.server.set_hardware(hardware(&reported));
    for (name, options, hosts) in [
        ("discovery", discovering("reported"), 1),
        // No discovery is asked for: the facts come by a session of their own.
        ("portals of the URL", options("reported-url", 2), 4),
    ] {
        let (chosen, notices) = inspect(&san, options, hosts, |prepared| {
            let targets = &prepared.facts.targets;
            let known = targets.iter().map(|it| (it.portals[0], it.clone()));
            let known: BTreeMap<_, _> = known.collect();
            let chosen = active(prepared).into_iter().map(|at| known[&at].clone());
            (chosen.collect::<Vec<_>>(), prepared.notices.clone())
        });
        let cards: BTreeSet<_> = chosen.iter().map(|it| it.card.clone()).collect();
        assert_eq!((chosen.len(), cards.len()), (2, 2), "{name}: {chosen:?}");
        for port in chosen {
            assert_eq!(port.controller.as_deref(), Some("san-a"));
            assert_eq!(port.speed.map(|it| it.0), Some(1_000_000_000));
            assert_eq!(port.free.map(|it| it.0), Some(900_000_000));
            assert_eq!((port.mtu, port.sessions_left), (Some(9000), Some(2048)));
        }
        assert_eq!(notices, Vec::<String>::new(), "{name}");
    }
}

#[test]
fn the_administrators_file_overrides_what_the_target_reports() {
    let san = san(2);
    report(&san, &two_cards());
    let mut options = discovering("facts-file");
    let dir = options.initiator_state.clone().unwrap();
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("facts.toml");
    let text = format!(
        "[[target_port]]\nportal = \"{}\"\ncard = \"mine\"\nspeed = \"10Gb/s\"\n",
        san.portals[0]
    );
    std::fs::write(&file, text).unwrap();
    options.facts = Some(file);
    let ports = inspect(&san, options, 1, |prepared| prepared.facts.targets.clone());
    assert_eq!(ports[0].card.as_deref(), Some("mine"));
    assert_eq!(ports[0].speed.map(|it| it.0), Some(10_000_000_000));
    assert_eq!(ports[0].controller.as_deref(), Some("san-a"));
    assert_eq!(ports[1].card.as_deref(), Some("right"));
}

#[test]
fn portals_that_share_a_port_are_one_port_of_the_plan() {
    let san = san(3);
    let one = port("eth1", "left");
    report(&san, &[one.clone(), one, port("eth2", "left")]);
    let ports = inspect(&san, discovering("shared-port"), 1, |prepared| {
        prepared.facts.targets.clone()
    });
    let portals: Vec<usize> = ports.iter().map(|it| it.portals.len()).collect();
    assert_eq!(portals, [2, 1]);
}

#[test]
fn what_makes_no_sense_is_noticed_left_out_and_hurts_nobody() {
    let san = san(2);
    let liar = PortHardware {
        speed: Some(1),
        links: 0,
        mtu: 3,
        ..port("eth1", "left")
    };
    report(&san, &[liar, port("eth2", "right")]);
    let (ports, notices, active) = inspect(&san, discovering("liar"), 1, |prepared| {
        let (facts, notices) = (prepared.facts.clone(), prepared.notices.clone());
        (facts.targets, notices, active(prepared))
    });
    assert_eq!(active.len(), 2);
    assert_eq!(
        (ports[0].speed, ports[0].links, ports[0].mtu),
        (None, 1, None)
    );
    assert_eq!(ports[0].card.as_deref(), Some("left"));
    assert_eq!(ports[1].speed.map(|it| it.0), Some(1_000_000_000));
    for item in ["speed", "links", "mtu"] {
        let said = format!("is no value of {item}");
        let said = notices
            .iter()
            .any(|it| it.contains("makes no sense") && it.contains(&said));
        assert!(said, "{item}: {notices:?}");
    }
}

/// Nothing is reported before a login has succeeded: without the secret there are portals and
/// nothing else.
#[test]
fn a_target_with_chap_reports_its_ports_to_whoever_proves_himself_and_to_nobody_else() {
    let secret = "a secret of sixteen";
    let wish = Wish {
        portals: 2,
        units: 1,
        chap: Some(HostChap {
            user: "host".to_owned(),
            secret: Secret::new(secret.as_bytes()),
            mutual: None,
        }),
        ..Wish::default()
    };
    let san = San::start(wish);
    report(&san, &two_cards());
    let cards = |prepared: &Prepared| {
        let ports = prepared.facts.targets.iter();
        ports.map(|it| it.card.clone()).collect::<Vec<_>>()
    };
    for no_discover in [false, true] {
        let hosts = if no_discover { 2 } else { 1 };
        let name = format!("chap-ports-{hosts}");
        let stranger = Options {
            no_discover,
            ..options(&name, 2)
        };
        let dir = stranger.initiator_state.clone().unwrap();
        std::fs::create_dir_all(&dir).unwrap();
        let secret_file = dir.join("secret");
        std::fs::write(&secret_file, secret).unwrap();
        let known = Options {
            chap: Some(Credentials {
                user: "host".to_owned(),
                file: secret_file,
            }),
            ..stranger.clone()
        };
        let seen = inspect(&san, known, hosts, cards);
        assert_eq!(seen, [Some("left".to_owned()), Some("right".to_owned())]);
        if no_discover {
            let seen = inspect(&san, stranger, hosts, cards);
            assert!(seen.iter().all(Option::is_none), "{seen:?}");
        } else {
            let url = url(&san, hosts);
            let refused = on(&runtime(1), move |core| async move {
                prepare(&core, &url, &stranger).await.err()
            });
            let refused = refused.expect("discovery wants a login");
            assert_eq!(refused.kind, Kind::Refused, "{refused}");
        }
    }
}
