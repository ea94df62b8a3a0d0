//! The monitor of a plan: quick when something is lost, slow when something is gained, never over a
//! port's speed.

use super::choose::{Solver, choose};
use super::test_facts::{mesh, published};
use super::{Change, MonitorTiming, Options, PlanMonitor, Trouble};
use crate::facts::{Element, Facts, PathName};
use crate::mesh::Mesh;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;
use units::Now;

fn at(milliseconds: u64) -> Now {
    Now::ZERO.after(Duration::from_millis(milliseconds))
}

fn monitor(facts: Facts) -> PlanMonitor {
    PlanMonitor::new(facts, Options::default(), MonitorTiming::default())
}

/// Ticks at every deadline until `until`; what was done, and when.
fn run(monitor: &mut PlanMonitor, mut now: Now, until: Now) -> Vec<(Now, Change)> {
    let mut done = Vec::new();
    while let Some(next) = monitor.deadline().filter(|next| *next <= until) {
        now = now.max(next);
        let changes = monitor.tick(now);
        done.extend(changes.into_iter().map(|change| (now, change)));
    }
    done
}

#[test]
fn a_lost_carrier_is_answered_at_once_and_by_the_table() {
    let mut monitor = monitor(published());
    let plan = monitor.plan().clone();
    let lost = Element::HostPort(plan.active()[0].host.clone());
    let row = plan
        .contingencies
        .iter()
        .find(|row| row.lost == lost)
        .unwrap();
    let changes = monitor.trouble(Trouble::Lost(lost), at(1));
    let promoted: Vec<Change> = row.promote.iter().cloned().map(Change::Promote).collect();
    assert!(!promoted.is_empty() && changes.ends_with(&promoted));
    assert!(changes.contains(&Change::Fail(plan.active()[0].clone())));
    assert_eq!(monitor.active().len(), 2);
    // Nothing else moves afterwards.
    assert_eq!(run(&mut monitor, at(1), at(600_000)), []);
}

#[test]
fn two_paths_of_one_card_that_fail_together_fail_the_card_and_its_warm_paths() {
    let mut monitor = monitor(mesh(4, 4));
    let of_card = |monitor: &PlanMonitor| {
        let of_card = monitor
            .active()
            .iter()
            .filter(|path| ["eth0", "eth1"].contains(&path.host.as_str()));
        of_card.cloned().collect::<Vec<PathName>>()
    };
    let dying = of_card(&monitor);
    assert_eq!(dying.len(), 2);
    let hot: Vec<PathName> = monitor
        .plan()
        .of(super::Role::Hot)
        .filter(|path| path.host.as_str() < "eth2")
        .cloned()
        .collect();
    for path in &hot {
        assert_eq!(monitor.trouble(Trouble::Failed(path.clone()), at(0)), []);
    }
    monitor.trouble(Trouble::Failed(dying[0].clone()), at(10));
    monitor.trouble(Trouble::Failed(dying[1].clone()), at(300));
    assert_eq!(
        monitor.lost().last(),
        Some(&Element::HostCard("card0".to_owned()))
    );
    assert!(of_card(&monitor).is_empty());
}

#[test]
fn a_card_is_failed_as_soon_as_two_of_its_paths_are_even_if_the_third_has_not_noticed() {
    // One warm path of the card has noticed nothing: the monitor fails it.
    let mut monitor = monitor(mesh(4, 4));
    let plan = monitor.plan().clone();
    let card = Element::HostCard("card0".to_owned());
    let unnoticed: BTreeSet<PathName> = plan
        .paths
        .iter()
        .filter(|it| it.path.host.as_str() < "eth2")
        .map(|it| it.path.clone())
        .collect();
    let changes = monitor.trouble(Trouble::Lost(card), at(5));
    for change in &changes {
        if let Change::Fail(path) = change {
            assert!(unnoticed.contains(path));
        }
    }
    let reported = changes
        .iter()
        .filter(|change| matches!(change, Change::Fail(_)))
        .count();
    let warm = plan
        .paths
        .iter()
        .filter(|it| it.role <= super::Role::Hot && unnoticed.contains(&it.path))
        .count();
    assert_eq!(reported, warm);
}

/// When each path was promoted.
fn promotions(done: &[(Now, Change)]) -> Vec<Now> {
    let promoted = done
        .iter()
        .filter(|(_, it)| matches!(it, Change::Promote(_)));
    promoted.map(|(at, _)| *at).collect()
}

#[test]
fn what_came_back_joins_at_once_where_nothing_has_to_move_for_it() {
    let mut monitor = monitor(mesh(4, 4));
    let before: Vec<PathName> = monitor.active().to_vec();
    monitor.trouble(Trouble::Lost(Element::Controller("A".to_owned())), at(0));
    assert_eq!(monitor.active().len(), 2);
    run(&mut monitor, at(0), at(100_000));
    assert_eq!(monitor.active().len(), 2);
    let of_a = before
        .iter()
        .find(|path| path.target.as_str() < "t2")
        .unwrap();
    assert_eq!(
        monitor.trouble(Trouble::Recovered(of_a.clone()), at(100_000)),
        []
    );
    assert!(monitor.lost().is_empty());
    let done = run(&mut monitor, at(100_000), at(300_000));
    assert_eq!(promotions(&done), [at(100_500), at(100_500)]);
    assert_eq!(done.len(), 2, "nothing drains: {done:?}");
    let now: BTreeSet<&PathName> = monitor.active().iter().collect();
    assert_eq!(now, before.iter().collect());
}

#[test]
fn where_healthy_paths_move_for_what_came_back_it_waits_until_it_is_quiet_and_they_move_one_at_a_time()
 {
    let mut monitor = monitor(mesh(8, 4));
    let on = |monitor: &PlanMonitor, cards: &str| {
        let active = monitor.active().iter();
        let on = active.filter(|path| cards.contains(&path.host[3..]));
        on.cloned().collect::<Vec<_>>()
    };
    // One NIC of each of four cards; then two cards are gone, and the other two carry it all.
    assert_eq!(monitor.active().len(), 4);
    assert_eq!(on(&monitor, "0123").len(), 2);
    for card in ["card0", "card1"] {
        monitor.trouble(Trouble::Lost(Element::HostCard(card.to_owned())), at(0));
    }
    run(&mut monitor, at(0), at(100_000));
    assert_eq!(on(&monitor, "4567").len(), 4);
    for host in ["eth0", "eth2"] {
        let plan = monitor.plan().paths.iter();
        let back = plan.map(|it| &it.path).find(|path| path.host == host);
        let back = back.unwrap().clone();
        monitor.trouble(Trouble::Recovered(back), at(100_000));
    }
    let done = run(&mut monitor, at(100_000), at(300_000));
    assert_eq!(promotions(&done), [at(105_000), at(115_000)], "{done:?}");
    assert_eq!(on(&monitor, "0123").len(), 2);
    assert_eq!(monitor.active().len(), 4);
}

#[test]
fn a_path_that_is_taken_out_for_diversity_drains_and_is_demoted_when_it_is_empty() {
    let mut monitor = monitor(published());
    let gone = monitor
        .active()
        .iter()
        .find(|path| path.host.starts_with('i'))
        .unwrap()
        .clone();
    // The whole card goes, so both active paths are of the other one; then it comes back.
    monitor.trouble(Trouble::Lost(Element::HostCard("intel".to_owned())), at(0));
    assert!(
        monitor
            .active()
            .iter()
            .all(|path| path.host.starts_with('b'))
    );
    monitor.trouble(Trouble::Recovered(gone), at(10_000));
    let done = run(&mut monitor, at(10_000), at(60_000));
    let drained: Vec<&PathName> = done
        .iter()
        .filter_map(|(_, it)| {
            if let Change::Drain(path) = it {
                Some(path)
            } else {
                None
            }
        })
        .collect();
    assert_eq!(drained.len(), 1);
    assert_eq!(
        monitor.drained(drained[0]),
        [Change::Demote(drained[0].clone())]
    );
    assert_eq!(monitor.drained(drained[0]), []);
    assert_eq!(
        monitor
            .active()
            .iter()
            .filter(|path| path.host.starts_with('i'))
            .count(),
        1
    );
}

#[test]
fn a_flapping_card_does_not_make_healthy_paths_move_more_than_once_a_minute() {
    let mut monitor = monitor(published());
    let mut moves = 0;
    for round in 0..30_u64 {
        let now = at(round * 20_000);
        let intel = monitor
            .active()
            .iter()
            .find(|path| path.host.starts_with('i'))
            .cloned();
        if let Some(path) = intel {
            monitor.trouble(Trouble::Lost(Element::HostPort(path.host.clone())), now);
            monitor.trouble(Trouble::Lost(Element::HostCard("intel".to_owned())), now);
        }
        let back = monitor
            .plan()
            .paths
            .iter()
            .find(|it| it.path.host.starts_with('i'))
            .unwrap()
            .path
            .clone();
        monitor.trouble(Trouble::Recovered(back), at(round * 20_000 + 1_000));
        let done = run(
            &mut monitor,
            at(round * 20_000 + 1_000),
            at(round * 20_000 + 19_999),
        );
        moves += done
            .iter()
            .filter(|(_, it)| matches!(it, Change::Drain(_)))
            .count();
    }
    assert!((1..=10).contains(&moves), "{moves} moves in 10 minutes");
}

#[derive(Clone, Debug)]
enum Step {
    Lose(usize),
    Fail(usize),
    Recover(usize),
    Wait(u64),
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => (0..64_usize).prop_map(Step::Lose),
        1 => (0..64_usize).prop_map(Step::Fail),
        3 => (0..64_usize).prop_map(Step::Recover),
        3 => (0..20_000_u64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..25)
}

fn carry_out(active: &mut BTreeSet<PathName>, changes: Vec<Change>) {
    for change in changes {
        match change {
            Change::Promote(path) => assert!(active.insert(path)),
            Change::Drain(path) => assert!(active.remove(&path)),
            Change::Fail(path) => drop(active.remove(&path)),
            Change::Demote(path) => assert!(!active.contains(&path)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_active_paths_live_ports_hold_and_the_end_is_the_best_there_is(
        steps in any_steps(), hosts in 1..5_usize, targets in 1..5_usize
    ) {
        let facts = mesh(hosts, targets);
        let options = Options::default();
        let all = Mesh::new(&facts, &options);
        let elements = all.all_elements();
        let mut monitor = monitor(facts);
        let mut active: BTreeSet<PathName> = monitor.active().iter().cloned().collect();
        let mut failed: BTreeSet<PathName> = BTreeSet::new();
        let mut now = at(0);
        for step in steps {
            match step {
                Step::Lose(n) => {
                    let changes = monitor.trouble(Trouble::Lost(elements[n % elements.len()].clone()), now);
                    carry_out(&mut active, changes);
                }
                Step::Fail(n) => {
                    let path = all.paths[n % all.paths.len()].name.clone();
                    active.remove(&path);
                    failed.insert(path.clone());
                    carry_out(&mut active, monitor.trouble(Trouble::Failed(path), now));
                }
                Step::Recover(n) => {
                    let path = all.paths[n % all.paths.len()].name.clone();
                    failed.remove(&path);
                    carry_out(&mut active, monitor.trouble(Trouble::Recovered(path), now));
                }
                Step::Wait(span) => {
                    let until = now.after(Duration::from_millis(span));
                    let done = run(&mut monitor, now, until);
                    carry_out(&mut active, done.into_iter().map(|(_, change)| change).collect());
                    now = until;
                }
            }
            let kept: BTreeSet<PathName> = monitor.active().iter().cloned().collect();
            prop_assert_eq!(&active, &kept);
            let lives = |path: &PathName| {
                let it = &all.paths[all.find(path).unwrap()];
                !failed.contains(path) && !monitor.lost().iter().any(|element| all.stands_on(it, element))
            };
            prop_assert!(active.iter().all(lives));
            let ports: BTreeSet<&String> = active.iter().flat_map(|path| [&path.host, &path.target]).collect();
            prop_assert_eq!(ports.len(), 2 * active.len(), "equal speeds: every port has one path at most");
        }
        run(&mut monitor, now, now.after(Duration::from_secs(600)));
        let mut gone: Vec<Element> = monitor.lost().to_vec();
        gone.extend(failed.iter().map(|path| Element::Path(path.to_string())));
        let rest = all.without(&gone);
        let best = choose(&rest, &options, monitor.active(), false, Solver::Best);
        let mut best: Vec<PathName> = best.active.iter().map(|at| rest.paths[*at].name.clone()).collect();
        best.sort();
        prop_assert_eq!(monitor.active(), best.as_slice());
    }
}
