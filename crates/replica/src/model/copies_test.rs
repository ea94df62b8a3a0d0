//! Copies that come and go, disks that are lost, and nodes that go on by force.

use super::test::{A, B, QUIET, ROUGH, well};
use super::world::Event;
use super::{Bounds, Rule, World, explore, walk};
use crate::record::NodeSlot;
use crate::state::State;

/// Copies come and go, and with them what they had.
const CHANGING: Bounds = Bounds {
    changes: 5,
    losses: 1,
    promotes: 1,
    ..ROUGH
};

#[test]
fn copies_come_and_go_and_nothing_that_they_ought_to_have_is_lost() {
    for bounds in [
        Bounds {
            changes: 2,
            asks: 1,
            ..QUIET
        },
        Bounds {
            changes: 2,
            losses: 1,
            ..QUIET
        },
        Bounds {
            crashes: 1,
            promotes: 1,
            ..QUIET
        },
        Bounds {
            cuts: 1,
            min_copies: 2,
            ..QUIET
        },
    ] {
        well(explore(bounds, None, 20_000));
    }
    for nodes in [2, 3] {
        let bounds = Bounds { nodes, ..CHANGING };
        well(walk(bounds, None, (200, 900)));
        let min_copies = 2;
        let bounds = Bounds {
            min_copies,
            ..bounds
        };
        well(walk(bounds, None, (100, 900)));
    }
}

#[test]
fn each_rule_of_copies_that_change_is_needed() {
    let reads = Bounds {
        changes: 1,
        asks: 1,
        ..QUIET
    };
    let two = Bounds {
        min_copies: 2,
        ..QUIET
    };
    for (rule, bounds) in [
        (Rule::WhoIsInSyncIsRemovedFirst, reads),
        (Rule::WhoFallsShortBeginsAnew, two),
    ] {
        let explored = explore(bounds, Some(rule), 150_000);
        assert!(explored.wrong.is_some(), "{rule:?} makes no difference");
    }
}

/// Goes on until it is so.
fn until(world: &mut World, what: &str, is: impl Fn(&World) -> bool) {
    for _ in 0..40 {
        world.calms();
        if is(world) {
            return;
        }
        world.ticks();
    }
    panic!("it is never so that {what}: {:?}", world.record());
}

fn is_owner(world: &World, node: NodeSlot) -> bool {
    let state = world.states().last();
    world.record().owner == node && matches!(state, Some(State::Owner | State::Solo))
}

/// The copy of the second node is removed, and it gets one anew, which then is the only one that
/// answers. Says what is wrong.
fn replaced(rule: Option<Rule>) -> Option<&'static str> {
    let bounds = Bounds {
        changes: 2,
        crashes: 1,
        epochs: 9,
        ..QUIET
    };
    let mut world = World::settled(bounds, rule);
    world.happens(&Event::Change(A, B));
    until(&mut world, "it is removed", |it| {
        it.record().copies.len() == 1
    });
    let states: Vec<State> = world.states().collect();
    assert_eq!(states, [State::Solo, State::NoMember]);
    world.happens(&Event::Change(A, B));
    until(&mut world, "it is added", |it| {
        it.record().copies.len() == 2
    });
    world.happens(&Event::Start(B));
    until(&mut world, "it is in sync", |it| {
        it.record().in_sync.count() == 2
    });
    world.ticks();
    world.calms();
    world.happens(&Event::Crash(A, false));
    for _ in 0..9 {
        world.ticks();
        while let Some(event) = world.next_at_rest() {
            world.happens(&event);
        }
    }
    assert!(is_owner(&world, B), "{:?}", world.record());
    world.happens(&Event::Read(B));
    world.wrong()
}

#[test]
fn a_copy_that_is_added_is_none_before_it_was_given_all_of_it() {
    assert_eq!(replaced(None), None);
    let wrong = replaced(Some(Rule::WhoIsAddedIsNotWhole));
    assert_eq!(wrong, Some("a read saw what no order explains"));
}

#[test]
fn who_goes_on_by_force_has_the_only_copy_and_the_old_owner_is_none() {
    let bounds = Bounds {
        crashes: 1,
        unwell: 1,
        promotes: 1,
        epochs: 9,
        ..QUIET
    };
    let mut world = World::settled(bounds, None);
    // It is behind, and the only one that has all of it is gone.
    world.happens(&Event::Unwell(A, B));
    until(&mut world, "it is removed", |it| {
        it.record().in_sync.count() == 1
    });
    world.happens(&Event::Write(A));
    world.happens(&Event::Stable(A));
    assert_eq!(world.answered(), 1);
    assert!(!world.events().contains(&Event::Promote(B)), "it answers");
    world.happens(&Event::Crash(A, false));
    for _ in 0..4 {
        world.ticks();
    }
    let promote = Event::Promote(B);
    assert!(world.events().contains(&promote), "{:?}", world.events());
    world.happens(&promote);
    while let Some(event) = world.next_at_rest() {
        world.happens(&event);
    }
    assert!(is_owner(&world, B), "{:?}", world.record());
    world.happens(&Event::Read(B));
    // The old one is back: it is none any more.
    world.happens(&Event::Start(A));
    until(&mut world, "it knows", |it| {
        it.states().next() == Some(State::NoMember)
    });
    assert_eq!(world.wrong(), None);
}
