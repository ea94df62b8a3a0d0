//! The planner against an oracle that tries every subset, and on the topologies that have names.

use super::choose::{Solver, choose};
use super::oracle;
use super::test_facts::{Build, GIGABIT, mesh, published};
use super::{
    Ends, Limit, Method, Options, Plan, Priority, Reason, Role, Routed, flow, plan, plan_sticky,
    what_if,
};
use crate::facts::{Element, Facts, PathName, Speed};
use crate::mesh::Mesh;
use proptest::prelude::*;
use scsi::alua::AccessState;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

const TEN: Speed = Speed::gigabits(10);

fn names(paths: &[PathName]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

fn path(text: &str) -> PathName {
    text.parse().unwrap()
}

fn any_facts(hosts: usize, targets: usize) -> impl Strategy<Value = Facts> {
    let speed = prop_oneof![4 => Just(GIGABIT), 2 => Just(TEN), 1 => Just(Speed::megabits(2500)), 1 => Just(Speed::megabits(100))];
    let host = (
        0..3_u8,
        speed.clone(),
        0..2_u8,
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.1),
    );
    let access = prop_oneof![
        6 => Just(AccessState::ActiveOptimized),
        2 => Just(AccessState::ActiveNonOptimized),
        1 => Just(AccessState::Standby),
    ];
    let free = prop::option::weighted(0.5, (0..10_001_u64).prop_map(Speed::megabits));
    let left = (prop::option::weighted(0.2, 0..3_u32), free);
    let target = (
        0..2_u8,
        0..2_u8,
        speed,
        (0..2_u8, prop::bool::weighted(0.1)),
        access,
        left,
    );
    let many_nets = any::<bool>();
    let lists = (
        prop::collection::vec(host, 1..=hosts),
        prop::collection::vec(target, 1..=targets),
        many_nets,
    );
    lists.prop_map(|(hosts, targets, nets)| {
        let mut build = Build::default();
        for (n, (card, speed, net, _, _)) in hosts.iter().enumerate() {
            build = build.host_in(
                &format!("h{n}"),
                &format!("c{card}"),
                *speed,
                if nets { *net } else { 0 },
            );
        }
        for (n, (controller, card, speed, (net, _), access, _)) in targets.iter().enumerate() {
            build = build.target_in(
                &format!("t{n}"),
                &controller.to_string(),
                *speed,
                if nets { *net } else { 0 },
            );
            build = build.target_card(&card.to_string()).access(*access);
        }
        let mut facts = build.initiator("iqn.2026-11.io.causeway:host").facts();
        for (host, (.., link, team)) in facts.hosts.iter_mut().zip(&hosts) {
            host.link = *link;
            host.links = if *team { 2 } else { 1 };
        }
        for (target, (.., (_, team), _, (left, free))) in facts.targets.iter_mut().zip(&targets) {
            target.sessions_left = *left;
            target.free = *free;
            target.links = if *team { 2 } else { 1 };
        }
        facts
    })
}

fn any_options() -> impl Strategy<Value = Options> {
    (1..6_u16, any::<bool>(), any::<bool>()).prop_map(|(max_active, mixed, diversity)| Options {
        max_active,
        mixed,
        priority: if diversity {
            Priority::Diversity
        } else {
            Priority::Bandwidth
        },
        routed: Routed::Never,
        ..Options::default()
    })
}

/// Some paths of `plan`, chosen by `bits`.
fn some_paths(plan: &Plan, bits: u64) -> Vec<PathName> {
    let chosen = plan
        .paths
        .iter()
        .enumerate()
        .filter(|(at, _)| bits >> at & 1 == 1);
    chosen.map(|(_, it)| it.path.clone()).collect()
}

/// Every reason that a plan gives is true, and every number adds up.
fn assert_true_reasons(facts: &Facts, options: &Options, plan: &Plan) {
    let active = plan.active();
    assert_eq!(plan.paths.len(), facts.hosts.len() * facts.targets.len());
    for it in &plan.paths {
        let speed = it.stream.map(|stream| stream.speed);
        match &it.reason {
            Reason::Chosen { .. } => assert_eq!(it.role, Role::Active),
            Reason::LimitReached { .. } => {
                assert_eq!(active.len(), usize::from(options.max_active));
            }
            Reason::OtherSpeedClass { active } => assert_ne!(Some(*active), speed),
            Reason::PortFull { end, by, .. } => {
                let host = |name: &str| facts.hosts.iter().find(|host| host.name == name).unwrap();
                let on_host: Vec<&PathName> = active
                    .iter()
                    .filter(|path| path.host == it.path.host)
                    .collect();
                let sum = on_host
                    .iter()
                    .map(|path| plan.path(path).unwrap().stream.unwrap().speed.0)
                    .sum::<u64>();
                let over = sum + speed.unwrap().0 > host(&it.path.host).speed.unwrap().0;
                assert_eq!(over, *end != Ends::Target, "{it:?}");
                assert!(!by.is_empty() && by.iter().all(|path| active.contains(path)));
            }
            Reason::SlowerTier { .. } | Reason::Barred(_) => assert_ne!(it.role, Role::Active),
        }
    }
    let sessions = plan.of(Role::Active).count() + plan.of(Role::Hot).count();
    assert!(sessions <= usize::from(options.max_sessions).max(active.len()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_plan_is_the_best_of_all_subsets(
        facts in any_facts(4, 3), options in any_options(), bits in any::<u64>(), sticky in any::<bool>()
    ) {
        let before = plan(&facts, &options, &[]);
        let current = some_paths(&before, bits);
        let plan = if sticky { plan_sticky(&facts, &options, &current) } else { plan(&facts, &options, &current) };
        prop_assert_eq!(plan.method, Method::Exact);
        let mut active = plan.active();
        active.sort();
        prop_assert_eq!(active, oracle::best(&facts, &options, &current, sticky));
        assert_true_reasons(&facts, &options, &plan);
    }

    #[test]
    fn each_row_of_the_table_is_the_best_plan_without_that_element(facts in any_facts(3, 3), options in any_options()) {
        let plan = plan(&facts, &options, &[]);
        let active = plan.active();
        for row in &plan.contingencies {
            let mut rest = facts.clone();
            let mesh = Mesh::new(&facts, &options);
            let survivors: Vec<PathName> =
                mesh.paths.iter().filter(|path| !mesh.stands_on(path, &row.lost)).map(|path| path.name.clone()).collect();
            match &row.lost {
                Element::HostPort(name) => rest.hosts.retain(|host| host.name != *name),
                Element::HostCard(name) => rest.hosts.retain(|host| host.card != *name),
                Element::TargetPort(name) => rest.targets.retain(|target| target.name != *name),
                Element::TargetCard(_) | Element::Controller(_) | Element::Fabric(_) | Element::Path(_) => continue,
            }
            let mut after: Vec<PathName> = active.iter().filter(|path| !row.dies.contains(path) && !row.drain.contains(path)).cloned().collect();
            after.extend(row.promote.iter().cloned());
            after.sort();
            prop_assert!(after.iter().all(|path| survivors.contains(path)));
            if !row.dies.is_empty() {
                prop_assert_eq!(&after, &oracle::best(&rest, &options, &active, true), "{}", row.lost);
            }
            let asked = what_if(&facts, &options, &active, std::slice::from_ref(&row.lost));
            let mut asked = asked.active();
            asked.sort();
            prop_assert_eq!(asked, after);
        }
    }

    #[test]
    fn the_flow_keeps_every_port_within_its_speed_and_finds_the_largest_bandwidth_of_a_class(
        facts in any_facts(6, 6), options in any_options()
    ) {
        let options = Options { mixed: false, priority: Priority::Bandwidth, ..options };
        let mesh = Mesh::new(&facts, &options);
        let exact = choose(&mesh, &options, &[], false, Solver::Best);
        let flow = choose(&mesh, &options, &[], false, Solver::Flow);
        let bandwidth = |active: &[usize]| active.iter().map(|path| mesh.paths[*path].speed).sum::<u64>();
        prop_assert_eq!(exact.method, Method::Exact);
        prop_assert_eq!(bandwidth(&flow.active), bandwidth(&exact.active));
        prop_assert!(within_ports(&mesh, &flow.active));
    }
}

fn within_ports(mesh: &Mesh, active: &[usize]) -> bool {
    let used = |on: &dyn Fn(usize) -> bool| {
        active
            .iter()
            .filter(|path| on(**path))
            .map(|path| mesh.paths[*path].speed)
            .sum::<u64>()
    };
    let hosts = mesh.hosts.iter().enumerate();
    let mut hosts =
        hosts.map(|(at, end)| used(&|path| mesh.paths[path].host == at) <= end.capacity);
    let targets = mesh.targets.iter().enumerate();
    let mut targets =
        targets.map(|(at, end)| used(&|path| mesh.paths[path].target == at) <= end.capacity);
    hosts.all(|ok| ok) && targets.all(|ok| ok)
}

/// Without fabrics the flow's network says everything that the objective does, so it has to be as
/// good.
#[test]
fn the_flow_finds_the_optimum_itself_where_there_is_one_fabric() {
    for (hosts, targets, max_active) in [
        (2, 2, 4),
        (4, 4, 4),
        (4, 2, 4),
        (8, 8, 4),
        (8, 8, 8),
        (8, 4, 3),
        (5, 7, 6),
        (3, 8, 2),
    ] {
        let facts = mesh(hosts, targets);
        let options = Options {
            max_active,
            ..Options::default()
        };
        let mesh = Mesh::new(&facts, &options);
        let exact = choose(&mesh, &options, &[], false, Solver::Best);
        let flow = choose(&mesh, &options, &[], false, Solver::Flow);
        assert_eq!((exact.method, flow.method), (Method::Exact, Method::Flow));
        assert_eq!(
            exact.active, flow.active,
            "{hosts} x {targets}, {max_active}"
        );
    }
}

#[test]
fn the_published_host_gets_one_port_of_each_card_where_the_vendor_takes_two_of_one() {
    let plan = plan(&published(), &Options::default(), &[]);
    let active = plan.active();
    assert_eq!(active.len(), 2);
    let cards: BTreeSet<char> = active
        .iter()
        .map(|path| path.host.chars().next().unwrap())
        .collect();
    assert_eq!(cards, BTreeSet::from(['b', 'i']));
    let ports: BTreeSet<&str> = active.iter().map(|path| path.target.as_str()).collect();
    assert_eq!(ports, BTreeSet::from(["e0", "e1"]));
    assert_eq!(plan.bandwidth, Speed::gigabits(2));
}

#[test]
fn the_published_host_changes_as_little_as_possible_when_something_is_lost() {
    let options = Options::default();
    let plan = plan(&published(), &options, &[]);
    let (of_b, of_i) = match plan.active().as_slice() {
        [b, i] if b.host.starts_with('b') => (b.clone(), i.clone()),
        [i, b] => (b.clone(), i.clone()),
        other => panic!("{other:?}"),
    };
    let row = |element: Element| {
        plan.contingencies
            .iter()
            .find(|row| row.lost == element)
            .unwrap()
    };
    let nic = row(Element::HostPort(of_b.host.clone()));
    assert_eq!(nic.dies, std::slice::from_ref(&of_b));
    assert_eq!(nic.promote.len(), 1);
    assert!(
        nic.promote[0].host.starts_with('b') && nic.promote[0].target == of_b.target,
        "{nic:?}"
    );
    assert!(nic.drain.is_empty());
    let card = row(Element::HostCard("intel".to_owned()));
    assert_eq!(card.dies, std::slice::from_ref(&of_i));
    assert_eq!(card.promote.len(), 1);
    assert_eq!(card.promote[0].target, of_i.target);
    assert_eq!(card.bandwidth, 2_000_000_000);
    let port = row(Element::TargetPort(of_b.target.clone()));
    assert!(port.promote.is_empty() && port.drain.is_empty());
    assert_eq!(port.bandwidth, 1_000_000_000);
    let controller = row(Element::Controller("active".to_owned()));
    assert_eq!(controller.bandwidth, 0);
    // Whoever is promoted by a single loss is kept warm.
    let hot: Vec<&PathName> = plan.of(Role::Hot).collect();
    assert!(hot.contains(&&nic.promote[0]) && hot.contains(&&card.promote[0]));
}

#[test]
fn a_full_mesh_becomes_one_to_one() {
    for n in [2, 4, 8] {
        let options = Options {
            max_active: 8,
            ..Options::default()
        };
        let plan = plan(&mesh(n, n), &options, &[]);
        let active = plan.active();
        assert_eq!(active.len(), n);
        assert_eq!(
            active
                .iter()
                .map(|path| &path.host)
                .collect::<BTreeSet<_>>()
                .len(),
            n
        );
        assert_eq!(
            active
                .iter()
                .map(|path| &path.target)
                .collect::<BTreeSet<_>>()
                .len(),
            n
        );
        assert_eq!(plan.method, Method::Exact);
    }
}

#[test]
fn a_fast_port_takes_as_many_slow_ones_as_fill_it() {
    let mut build = Build::default().host("eth0", "c", TEN);
    for n in 0..4 {
        build = build.target(&format!("t{n}"), "A", GIGABIT);
    }
    assert_eq!(
        plan(&build.facts(), &Options::default(), &[])
            .active()
            .len(),
        4
    );
    let facts = Build::default()
        .host("eth0", "c", TEN)
        .host("eth1", "d", TEN)
        .target("t0", "A", TEN)
        .facts();
    let plan = plan(&facts, &Options::default(), &[]);
    assert_eq!(plan.active().len(), 1);
    let waits = plan.paths.iter().find(|it| it.role == Role::Hot).unwrap();
    let full = matches!(&waits.reason, Reason::PortFull { end: Ends::Target, by, .. } if *by == plan.active());
    assert!(full, "{waits:?}");
}

#[test]
fn an_array_of_two_controllers_in_four_subnets_gets_four_links_and_both_controllers() {
    let mut build = Build::default();
    for n in 0..4 {
        build = build.host_in(&format!("nic{n}"), &format!("card{}", n / 2), GIGABIT, n);
    }
    for (controller, n) in ["A", "B"]
        .into_iter()
        .flat_map(|it| (0..4).map(move |n| (it, n)))
    {
        build = build.target_in(&format!("{controller}{n}"), controller, GIGABIT, n);
    }
    let plan = plan(&build.facts(), &Options::default(), &[]);
    let active = plan.active();
    assert_eq!(active.len(), 4);
    assert_eq!(
        active
            .iter()
            .filter(|path| path.target.starts_with('A'))
            .count(),
        2
    );
}

#[test]
fn only_the_best_access_state_carries_io_and_others_stand_by() {
    let build = Build::default()
        .host("eth0", "c0", GIGABIT)
        .host("eth1", "c1", GIGABIT);
    let build = build
        .target("a0", "A", GIGABIT)
        .access(AccessState::ActiveNonOptimized);
    let build = build
        .target("a1", "A", GIGABIT)
        .access(AccessState::ActiveNonOptimized);
    let build = build
        .target("b0", "B", GIGABIT)
        .target("b1", "B", GIGABIT)
        .access(AccessState::Standby);
    let facts = build.facts();
    let plan = plan(&facts, &Options::default(), &[]);
    assert!(plan.active().iter().all(|path| path.target == "b0"));
    assert_eq!(plan.active().len(), 1);
    assert_eq!(
        plan.path(&path("eth0>a0")).unwrap().reason,
        Reason::SlowerTier { access: 1 }
    );
    let without = what_if(
        &facts,
        &Options::default(),
        &plan.active(),
        &[Element::Controller("B".to_owned())],
    );
    assert_eq!(without.active().len(), 2);
    assert!(
        without
            .active()
            .iter()
            .all(|path| path.target.starts_with('a'))
    );
}

#[test]
fn speeds_are_not_mixed_unless_the_administrator_says_so() {
    let build = Build::default()
        .host_in("fast", "c0", TEN, 0)
        .host_in("slow", "c1", GIGABIT, 1);
    let facts = build
        .target_in("t0", "A", TEN, 0)
        .target_in("t1", "A", TEN, 1)
        .facts();
    let one = plan(&facts, &Options::default(), &[]);
    assert_eq!(names(&one.active()), ["fast>t0"]);
    assert_eq!(
        one.path(&path("slow>t1")).unwrap().reason,
        Reason::OtherSpeedClass { active: TEN }
    );
    let mixed = Options {
        mixed: true,
        ..Options::default()
    };
    assert_eq!(plan(&facts, &mixed, &[]).active().len(), 2);
}

#[test]
fn a_stream_over_a_team_is_limited_by_one_of_its_links() {
    let mut facts = Build::default()
        .host("bond0", "c0", Speed::gigabits(4))
        .target("t0", "A", GIGABIT)
        .target("t1", "A", GIGABIT)
        .facts();
    facts.hosts[0].links = 4;
    let of_port = plan(&facts, &Options::default(), &[]);
    assert_eq!(of_port.active().len(), 2);
    facts.targets[0].speed = Some(TEN);
    facts.targets.truncate(1);
    let of_team = plan(&facts, &Options::default(), &[]);
    let stream = of_team.path(&path("bond0>t0")).unwrap().stream.unwrap();
    assert_eq!(
        (stream.speed, stream.end, stream.by),
        (GIGABIT, Ends::Host, Limit::TeamMember)
    );
}

#[test]
fn hosts_that_see_the_same_ports_spread_over_them() {
    let mut count = BTreeMap::new();
    for n in 0..200 {
        let build = Build::default()
            .host("eth0", "c", GIGABIT)
            .initiator(&format!("iqn.2026-11.io.causeway:host{n}"));
        let facts = build
            .target("t0", "A", GIGABIT)
            .target("t1", "B", GIGABIT)
            .facts();
        *count
            .entry(
                plan(&facts, &Options::default(), &[]).active()[0]
                    .target
                    .clone(),
            )
            .or_insert(0) += 1;
    }
    assert!(
        count.len() == 2 && count.values().all(|n| *n > 60),
        "{count:?}"
    );
}

#[test]
fn of_equal_ports_those_with_most_to_spare_are_taken_unless_others_run_well() {
    let free = |free: [Option<u64>; 3]| {
        let mut build = Build::default().host("eth0", "c", GIGABIT);
        for (n, free) in free.into_iter().enumerate() {
            build = build.target(&format!("t{n}"), "A", GIGABIT);
            build = build.free(free.map(Speed::megabits));
        }
        build.initiator("iqn.2026-11.io.causeway:host").facts()
    };
    let chosen = |facts: &Facts, now: &[PathName]| {
        let plan = plan(facts, &Options::default(), now);
        plan.active()[0].target.clone()
    };
    for (facts, wanted) in [
        (free([Some(900), Some(100), Some(400)]), "t0"),
        (free([Some(100), Some(950), Some(400)]), "t1"),
        (free([Some(100), Some(400), Some(990)]), "t2"),
    ] {
        assert_eq!(chosen(&facts, &[]), wanted);
        assert_eq!(chosen(&facts, &[path("eth0>t1")]), "t1", "what runs stays");
    }
    // A few percent are no reason: hosts spread as if nothing had been reported.
    let unreported = chosen(&free([None; 3]), &[]);
    for at in 0..3 {
        let mut little = [Some(980); 3];
        little[at] = Some(1000);
        assert_eq!(chosen(&free(little), &[]), unreported);
    }
}

#[test]
fn ports_of_unknown_speed_are_taken_to_be_as_fast_as_their_peers() {
    let mut facts = published();
    for target in &mut facts.targets {
        target.speed = None;
        target.controller = None;
    }
    facts.hosts[1].speed = None;
    let plan = plan(&facts, &Options::default(), &[]);
    assert_eq!(plan.active().len(), 2);
    assert_eq!(plan.bandwidth, Speed::gigabits(2));
    assert!(
        plan.contingencies
            .iter()
            .any(|row| row.lost == Element::Controller("portal-group-1".to_owned()))
    );
}

#[test]
fn routed_paths_are_the_last_resort() {
    let build = Build::default()
        .host_in("eth0", "c", GIGABIT, 1)
        .target_in("t0", "A", GIGABIT, 2);
    let far = plan(&build.clone().facts(), &Options::default(), &[]);
    assert!(far.path(&path("eth0>t0")).unwrap().routed && far.active().len() == 1);
    let near = plan(
        &build.target_in("t1", "A", GIGABIT, 1).facts(),
        &Options::default(),
        &[],
    );
    assert_eq!(names(&near.active()), ["eth0>t1"]);
    assert_eq!(
        near.path(&path("eth0>t0")).unwrap().reason,
        Reason::Barred(super::Barred::NoCommonSubnet)
    );
}

#[test]
fn a_plan_is_json_that_names_paths_and_reasons() {
    let plan = plan(&published(), &Options::default(), &[]);
    let json = serde_json::to_value(&plan).unwrap();
    let first = &json["paths"][0];
    assert_eq!(first["path"], plan.active()[0].to_string());
    assert_eq!(first["role"], "active");
    assert_eq!(first["reason"]["because"], "chosen");
    assert_eq!(json["bandwidth"], 2_000_000_000_u64);
    assert_eq!(json["contingencies"][0]["lost"]["kind"], "host_port");
    for it in &plan.paths {
        assert!(!it.reason.to_string().is_empty());
    }
}

/// The figures are printed, the bounds are loose: they are for a shared machine and an unoptimised
/// build.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a figure about real time is what this test is for"
)]
fn planning_is_quick_at_8_x_8_and_32_x_32() {
    for (ports, max_active, bound_ms) in [
        (8, 4, 4_000),
        (8, 8, 8_000),
        (32, 4, 20_000),
        (32, 32, 60_000),
    ] {
        let facts = mesh(ports, ports);
        let options = Options {
            max_active,
            max_sessions: 64,
            ..Options::default()
        };
        let start = Instant::now();
        let mesh = Mesh::new(&facts, &options);
        let choice = choose(&mesh, &options, &[], false, Solver::Best);
        let chosen = start.elapsed();
        let whole = (ports == 8).then(|| {
            let start = Instant::now();
            assert!(!plan(&facts, &options, &[]).contingencies.is_empty());
            start.elapsed()
        });
        assert_eq!(
            choice.active.len(),
            usize::from(max_active).min(ports).min(flow::PATHS_MAX)
        );
        println!(
            "{ports} x {ports}, {max_active} active, {:?}: set in {chosen:.1?}, with its table {whole:.1?}",
            choice.method
        );
        assert!(chosen.as_millis() + whole.unwrap_or_default().as_millis() < bound_ms);
    }
}

#[test]
fn fast_ports_against_slow_ones_at_8_x_8_stay_exact() {
    let mut build = Build::default();
    for n in 0..8 {
        build = build.host(&format!("eth{n}"), &format!("card{}", n / 2), TEN);
    }
    for n in 0..8 {
        build = build.target(&format!("t{n}"), if n < 4 { "A" } else { "B" }, GIGABIT);
    }
    let options = Options {
        max_active: 8,
        ..Options::default()
    };
    let mesh = Mesh::new(&build.facts(), &options);
    let choice = choose(&mesh, &options, &[], false, Solver::Best);
    assert_eq!(choice.method, Method::Exact);
    let cards: BTreeSet<usize> = choice
        .active
        .iter()
        .map(|path| mesh.paths[*path].host_card)
        .collect();
    assert_eq!((choice.active.len(), cards.len()), (8, 4));
}
