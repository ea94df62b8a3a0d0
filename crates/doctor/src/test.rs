//! Each check on a host that is well, and on one that has exactly what the check is for.

use super::*;
use env::{DriverFacts, Route};
use machine::{Kind, Machine, Nic, TcpSettings};
use paths::facts::TargetPort;
use paths::{Facts, HostAddress, HostPort, Options, Speed};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

const WORDS: &str = "a program's word";

fn nic(name: &str, card: &str, ip: &str) -> Nic {
    Nic {
        name: name.to_owned(),
        kind: Kind::Physical,
        card: Some(card.to_owned()),
        speed: Some(Speed::gigabits(10)),
        duplex: Some(machine::Duplex::Full),
        up: true,
        carrier: true,
        mtu: 9000,
        numa: Some(0),
        arp_ignore: Some(0),
        rp_filter: Some(0),
        addresses: vec![HostAddress {
            ip: ip.parse().unwrap(),
            prefix: 24,
        }],
        driver: DriverFacts {
            driver: Some("ice".to_owned()),
            firmware: Some("4.2".to_owned()),
            receive_ring: Some((4096, 4096)),
            send_ring: Some((4096, 4096)),
            negotiates: Some(false),
            segmentation_offload: Some(true),
            receive_offload: Some(true),
            checksum_offload: Some(true),
            pause: None,
        },
        ..Nic::default()
    }
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn target(portal: &str) -> TargetPort {
    TargetPort {
        name: portal.to_owned(),
        portals: vec![at(portal)],
        portal_group: 1,
        access: scsi_access(),
        controller: None,
        card: None,
        speed: Some(Speed::gigabits(10)),
        links: 1,
        mtu: None,
        sessions_left: None,
        free: None,
        fabric: None,
        enabled: true,
    }
}

fn scsi_access() -> scsi::alua::AccessState {
    scsi::alua::AccessState::ActiveOptimized
}

/// A host with nothing to complain of: two cards, two networks, two portals.
fn well() -> Scene {
    let nics = vec![nic("eth0", "03", "10.0.0.1"), nic("eth1", "04", "10.0.1.1")];
    let tcp = TcpSettings {
        congestion_control: Some("cubic".to_owned()),
        receive_buffer: Some([4096, 131_072, 16 << 20]),
        send_buffer: Some([4096, 131_072, 16 << 20]),
        sack: Some(true),
        window_scaling: Some(true),
        timestamps: Some(true),
        slow_start_after_idle: Some(false),
        ..TcpSettings::default()
    };
    let mut scene = Scene {
        machine: Machine { nics, tcp },
        disks: vec![Disk {
            name: "nvme0n1".to_owned(),
            volatile_cache: false,
            logical: 512,
            physical: 4096,
        }],
        space: vec![Space {
            name: "/".to_owned(),
            used_percent: 80,
        }],
        clock: Some(true),
        default_interface: Some("eth9".to_owned()),
        pools: Pools::Reported,
        open_iscsi: Some(OpenIscsi {
            sessions: vec![Session {
                name: "session1".to_owned(),
                interval: 1,
                timeout: 2,
                recovery: 1,
                ..Session::default()
            }],
            ..OpenIscsi::default()
        }),
        ..Scene::default()
    };
    refresh(&mut scene, &["10.0.0.100:3260", "10.0.1.100:3260"]);
    scene
}

/// Ports, routes and plan anew from the machine.
fn refresh(scene: &mut Scene, portals: &[&str]) {
    scene.ports = scene.machine.ports();
    scene.routes = portals
        .iter()
        .zip(scene.ports.iter().cycle())
        .map(|(portal, port)| RouteProbe {
            port: port.name.clone(),
            from: port.addresses[0].ip,
            portal: at(portal),
            route: Some(Route {
                interface: port.name.clone(),
                gateway: None,
                source: None,
            }),
            mtu: port.mtu,
            small_passes: Some(true),
            large_passes: Some(true),
        })
        .collect();
    let facts = Facts {
        initiator: WORDS.to_owned(),
        hosts: scene.ports.clone(),
        targets: portals.iter().map(|portal| target(portal)).collect(),
        fabrics: Vec::new(),
    };
    let plan = paths::plan::plan(&facts, &Options::default(), &[]);
    scene.plan = Some((facts, plan));
}

fn verdict(scene: &Scene, check: &str) -> Verdict {
    let report = examine(scene);
    let found = report.findings.iter().find(|it| it.check == check);
    found
        .unwrap_or_else(|| panic!("no finding {check}"))
        .verdict
}

#[test]
fn a_host_that_is_well_has_no_problem_and_every_point_is_spoken_of() {
    let report = examine(&well());
    assert_eq!(
        (report.problems, report.advice),
        (0, 0),
        "{}",
        report.text(true)
    );
    let points: BTreeSet<u8> = report
        .findings
        .iter()
        .flat_map(|it| it.points.clone())
        .collect();
    assert_eq!(points, (1..=22).collect());
    for finding in &report.findings {
        let spoken = finding.verdict == Verdict::Good || !finding.remedy.is_empty();
        assert!(spoken, "{finding:?}");
    }
    let checks: BTreeSet<&str> = report.findings.iter().map(|it| &*it.check).collect();
    assert_eq!(checks.len(), report.findings.len(), "a check stands twice");
}

#[test]
fn problems_stand_first_and_what_cannot_be_checked_in_one_line() {
    let empty = examine(&Scene::default());
    let text = empty.text(false);
    assert!(text.starts_with("PROBLEMS\n  "), "{text}");
    let hidden = empty
        .findings
        .iter()
        .find(|it| it.check == "makers-guide")
        .unwrap();
    assert!(
        !text.contains(&hidden.what) && !text.contains("GOOD"),
        "{text}"
    );
    let count = empty
        .findings
        .iter()
        .filter(|it| it.verdict == Verdict::NotCheckable)
        .count();
    let line = format!("\nnot checkable from here: {count} (--all shows)\n");
    assert!(text.contains(&line), "{text}");
    let all = empty.text(true);
    assert!(
        all.contains(&hidden.what) && !all.contains("--all shows"),
        "{all}"
    );
    // A host that is well says so.
    let mut well = empty;
    well.findings.retain(|it| it.verdict > Verdict::Advice);
    assert!(well.text(false).starts_with("no problem, and no advice\n"));
}

/// The list of best practice as the documents have it: number or letter, and the checks that speak
/// of it.
fn documented() -> Vec<(String, Vec<String>)> {
    let text = include_str!("../../../docs/operate/lab.md");
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let (key, _point, checks) = (cells.next()?, cells.next()?, cells.next()?);
        let checks: Vec<String> = checks
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect();
        (!checks.is_empty()).then(|| (key.to_owned(), checks))
    });
    rows.collect()
}

#[test]
fn every_point_of_the_list_has_its_checks_and_no_check_is_about_another_point() {
    let rows = documented();
    let keys: Vec<String> = rows.iter().map(|row| row.0.clone()).collect();
    let numbers = (1..=22).map(|number: u8| number.to_string());
    let letters = ('a'..='k').map(String::from);
    assert_eq!(keys, numbers.chain(letters).collect::<Vec<_>>());
    // With a path to spare, so that there is something to say of it.
    let mut scene = well();
    refresh(
        &mut scene,
        &["10.0.0.100:3260", "10.0.1.100:3260", "10.0.0.101:3260"],
    );
    let report = examine(&scene);
    let of = |check: &str| report.findings.iter().find(|it| it.check == check);
    for (key, checks) in &rows {
        for check in checks {
            let finding = of(check).unwrap_or_else(|| panic!("{key}: no check {check}"));
            let number: Option<u8> = key.parse().ok();
            // Points without a number are named by their checks alone.
            assert!(
                number.is_none_or(|number| finding.points.contains(&number)),
                "{key}: {check}"
            );
        }
    }
    for finding in &report.findings {
        for point in &finding.points {
            let row = &rows[usize::from(*point) - 1];
            let named = row.1.iter().any(|check| *check == *finding.check);
            assert!(
                named,
                "{} is about point {point}, whose row lacks it",
                finding.check
            );
        }
    }
}

#[test]
fn what_is_said_of_space_is_what_df_says() {
    let reported = std::process::Command::new("df")
        .args(["--output=pcent,target"])
        .output()
        .unwrap();
    let reported = String::from_utf8(reported.stdout).unwrap();
    let of_df = |place: &str| -> Option<u8> {
        let mut lines = reported
            .lines()
            .filter_map(|line| line.trim().split_once('%'));
        let line = lines.find(|(_, at)| at.trim() == place)?;
        line.0.trim().parse().ok()
    };
    let runtime = env::real::Runtime::start(&env::real::RuntimeConfig::default()).unwrap();
    let scene = runtime.run(env::CoreId(0), |core| {
        Box::pin(async move {
            inspect(&core, &machine::Roots::default(), &[])
                .await
                .unwrap()
        })
    });
    let compared: Vec<(u8, u8)> = scene
        .space
        .iter()
        .filter_map(|it| Some((it.used_percent, of_df(&it.name)?)))
        .collect();
    assert!(!compared.is_empty(), "{reported}");
    for (ours, dfs) in compared {
        // Others write meanwhile.
        assert!(
            ours.abs_diff(dfs) <= 1,
            "{ours} % and {dfs} %: {:?}\n{reported}",
            scene.space
        );
    }
}

/// Changes one thing of the host, and says which check must see it.
fn host_case(check: &str, expected: Verdict, change: impl FnOnce(&mut Scene)) {
    let mut scene = well();
    assert_ne!(
        verdict(&scene, check),
        expected,
        "{check} complains of a host that is well"
    );
    change(&mut scene);
    refresh_keeping(&mut scene);
    assert_eq!(verdict(&scene, check), expected, "{check}");
    let report = examine(&scene);
    let found = report.findings.iter().find(|it| it.check == check).unwrap();
    assert!(
        !found.cause.is_empty() && !found.remedy.is_empty(),
        "{found:?}"
    );
    assert!(report.text(true).contains(&found.what));
}

/// As [`refresh`], with what the case did to the routes.
fn refresh_keeping(scene: &mut Scene) {
    let routes = std::mem::take(&mut scene.routes);
    let portals: Vec<String> = routes.iter().map(|it| it.portal.to_string()).collect();
    let portals: Vec<&str> = portals.iter().map(String::as_str).collect();
    refresh(scene, &portals);
    scene.routes = routes;
}

#[test]
fn what_is_wrong_with_ports_is_seen() {
    use Verdict::{Advice, Problem};
    host_case("mixed-speeds", Problem, |it| {
        it.machine.nics[1].speed = Some(Speed::gigabits(1));
    });
    host_case("duplex", Problem, |it| {
        it.machine.nics[0].duplex = Some(machine::Duplex::Half);
    });
    host_case("fixed-speed", Advice, |it| {
        it.machine.nics[0].driver.negotiates = Some(true);
    });
    host_case("jumbo-frames", Advice, |it| it.machine.nics[0].mtu = 1500);
    host_case("rings", Advice, |it| {
        it.machine.nics[0].driver.receive_ring = Some((512, 4096));
    });
    host_case("offloads", Advice, |it| {
        it.machine.nics[0].driver.receive_offload = Some(false);
    });
    host_case("own-network", Advice, |it| {
        it.default_interface = Some("eth1".to_owned());
    });
    host_case("numa", Advice, |it| it.machine.nics[0].numa = Some(1));
    host_case("cards", Problem, |it| {
        it.machine.nics[1].card = Some("03".to_owned());
    });
    host_case("second-path", Problem, |it| {
        it.machine.nics[1].carrier = false;
    });
    host_case("teams", Problem, |it| {
        it.machine.nics[0].kind = Kind::Team;
        it.machine.nics[0].lower = vec!["eth5".to_owned(), "eth6".to_owned()];
    });
    host_case("protocols", Advice, |it| {
        let six = HostAddress {
            ip: "fd00::1".parse().unwrap(),
            prefix: 64,
        };
        it.machine.nics[0].addresses.push(six);
    });
    host_case("subnets", Problem, |it| {
        it.machine.nics[1].addresses[0].ip = "10.0.0.2".parse().unwrap();
    });
    host_case("subnets", Advice, |it| {
        it.machine.nics[1].addresses[0].ip = "10.0.0.2".parse().unwrap();
        it.machine
            .nics
            .iter_mut()
            .for_each(|nic| nic.arp_ignore = Some(1));
    });
}

#[test]
fn what_is_wrong_with_the_rest_of_the_host_is_seen() {
    use Verdict::{Advice, Problem};
    host_case("tcp", Problem, |it| it.machine.tcp.sack = Some(false));
    host_case("tcp", Advice, |it| {
        it.machine.tcp.slow_start_after_idle = Some(true);
    });
    host_case("tcp", Advice, |it| {
        it.machine.tcp.send_buffer = Some([4096, 16384, 1 << 20]);
    });
    host_case("clock", Advice, |it| it.clock = Some(false));
    host_case("space", Problem, |it| it.space[0].used_percent = 81);
    host_case("write-caches", Advice, |it| {
        it.disks[0].volatile_cache = true;
    });
    host_case("sector-sizes", Advice, |it| {
        it.disks.push(Disk {
            name: "sdb".to_owned(),
            volatile_cache: false,
            logical: 4096,
            physical: 4096,
        });
    });
}

#[test]
fn what_is_wrong_with_the_routes_is_seen() {
    use Verdict::{Advice, Problem};
    host_case("routers", Problem, |it| {
        let gateway: IpAddr = "10.0.0.254".parse().unwrap();
        it.routes[0].route.as_mut().unwrap().gateway = Some(gateway);
    });
    host_case("source-routes", Problem, |it| {
        it.routes[1].route.as_mut().unwrap().interface = "eth0".to_owned();
    });
    host_case("jumbo-frames", Problem, |it| {
        it.routes[0].large_passes = None;
    });
    host_case("portal-subnets", Advice, |it| {
        it.routes[1].portal = at("10.0.0.101:3260");
    });
    host_case("second-path", Problem, |it| {
        it.routes.truncate(1);
    });
    let mut scene = well();
    scene.target_error = Some(("no portal answers".to_owned(), "see the cable".to_owned()));
    assert_eq!(verdict(&scene, "target"), Problem);
}

#[test]
fn crossing_paths_are_seen_and_a_plans_surplus_ones_are_standby() {
    let mut scene = well();
    scene.machine.nics[1].addresses[0].ip = "10.0.0.2".parse().unwrap();
    refresh(&mut scene, &["10.0.0.100:3260", "10.0.0.101:3260"]);
    assert_eq!(verdict(&scene, "mesh"), Verdict::Good);
    let report = examine(&scene);
    let standby = report
        .findings
        .iter()
        .find(|it| it.check == "standby-paths");
    assert!(standby.unwrap().what.starts_with("2 surplus"));
    // All pairs active, as without a planner.
    let (_, plan) = scene.plan.as_mut().unwrap();
    plan.paths
        .iter_mut()
        .for_each(|path| path.role = paths::Role::Active);
    assert_eq!(verdict(&scene, "mesh"), Verdict::Problem);
}

#[test]
fn without_a_url_the_points_about_paths_say_how_to_ask() {
    let mut scene = well();
    scene.routes.clear();
    scene.plan = None;
    let report = examine(&scene);
    for check in ["mesh", "routers", "portal-subnets", "source-routes"] {
        let found = report.findings.iter().find(|it| it.check == check).unwrap();
        assert_eq!(found.verdict, Verdict::NotCheckable, "{check}");
        assert!(found.remedy.contains("causeway doctor URL"), "{check}");
    }
    assert_eq!(report.problems, 0, "{}", report.text(true));
    let empty = examine(&Scene::default());
    assert!(
        empty.problems >= 1,
        "a host without ports has no second path"
    );
}

#[test]
fn ports_without_facts_are_no_reproach() {
    let mut scene = well();
    for nic in &mut scene.machine.nics {
        (nic.speed, nic.numa) = (None, None);
        nic.driver = DriverFacts::default();
    }
    let plan = scene.plan.take();
    scene.ports = scene.machine.ports();
    assert!(plan.is_some());
    for check in ["mixed-speeds", "numa", "rings", "fixed-speed"] {
        assert_eq!(verdict(&scene, check), Verdict::NotCheckable, "{check}");
    }
    assert_eq!(verdict(&scene, "offloads"), Verdict::Good);
    let port: &HostPort = &scene.ports[0];
    assert_eq!(port.speed, None);
}
