//! Nodes whose disks go back to what they were, or had said that something was stable and it was
//! not: in scripts, as nothing can find that in some orders of events.

use super::test::{A, B};
use super::world::{Event, World};
use super::{Bounds, Rule};
use crate::record::NodeSlot;
use crate::state::State;

const BOUNDS: Bounds = Bounds {
    writes: 3,
    reads: 3,
    crashes: 4,
    unwell: 1,
    forgets: 1,
    epochs: 9,
    ..Bounds::QUIET
};

/// A world in which one write was acknowledged, and both know it.
fn written() -> impl Fn(Option<Rule>) -> World {
    |rule| {
        let mut world = World::settled(BOUNDS, rule);
        world.happens(&Event::Write(A));
        world.calms();
        assert_eq!(world.answered(), 1);
        world
    }
}

/// Everything happens that nothing is waited for, and time passes, so many times.
fn goes_on(world: &mut World, times: u64) {
    for _ in 0..times {
        world.calms();
        world.ticks();
    }
    world.calms();
}

fn both_in_sync(world: &mut World) {
    for _ in 0..60 {
        goes_on(world, 1);
        if world.record().in_sync.count() == 2 || world.wrong().is_some() {
            return;
        }
    }
    panic!("they do not come to be in sync: {world:#?}");
}

fn read_by_the_owner(world: &mut World) {
    goes_on(world, 9);
    let owner = world.record().owner;
    world.happens(&Event::Read(owner));
}

fn lead_comes(world: &mut World, from: NodeSlot, to: NodeSlot) {
    for _ in 0..100 {
        if world.next_is_follow(to, from) {
            return;
        }
        assert!(world.goes_on(), "it is not led: {world:#?}");
    }
    panic!("it is not led: {world:#?}");
}

/// A member in sync loses what it acknowledged, and is back at once. When it has followed, the
/// owner dies for good: whoever serves then, nothing acknowledged is missing.
fn member_lost(rule: Option<Rule>) -> Option<&'static str> {
    let mut world = written()(rule);
    world.goes_back(B, 1);
    world.happens(&Event::Start(B));
    lead_comes(&mut world, A, B);
    world.happens(&Event::Crash(A, false));
    for _ in 0..9 {
        world.calms();
        world.ticks();
    }
    if world.events().contains(&Event::Read(B)) {
        world.happens(&Event::Read(B));
    }
    world.wrong()
}

#[test]
fn a_member_with_less_than_it_acknowledged_does_not_take_over() {
    assert_eq!(member_lost(None), None);
    let wrong = member_lost(Some(Rule::WhoLostSomeIsMadeAnew));
    assert_eq!(wrong, Some("a read saw what no order explains"));
}

#[test]
fn a_member_with_less_than_it_acknowledged_is_made_anew_also_where_it_was_removed_before() {
    for is_removed in [false, true] {
        let mut world = written()(None);
        if is_removed {
            world.happens(&Event::Unwell(A, B));
            world.calms();
            assert_eq!(world.record().in_sync.count(), 1);
        }
        world.goes_back(B, 1);
        world.happens(&Event::Start(B));
        let mut is_copied = false;
        for _ in 0..60 {
            if !world.goes_on() {
                world.ticks();
            }
            is_copied |= world.states().any(|it| it == State::Copying);
        }
        assert!(is_copied, "all of it is sent");
        both_in_sync(&mut world);
        // It takes over, and has all of it.
        world.happens(&Event::Crash(A, false));
        goes_on(&mut world, 9);
        read_by_the_owner(&mut world);
        assert_eq!(world.wrong(), None);
    }
}

/// An owner loses what it acknowledged, and is back before the other one takes over.
fn owner_lost(rule: Option<Rule>) -> Option<&'static str> {
    let mut world = written()(rule);
    world.goes_back(A, 1);
    world.happens(&Event::Start(A));
    goes_on(&mut world, 3);
    both_in_sync(&mut world);
    if world.wrong().is_none() {
        read_by_the_owner(&mut world);
    }
    world.wrong()
}

#[test]
fn an_owner_with_less_than_was_committed_is_followed_by_nobody() {
    assert_eq!(owner_lost(None), None);
    assert!(owner_lost(Some(Rule::WhoKnowsMoreDoesNotFollow)).is_some());
}

#[test]
fn who_is_behind_an_owner_that_lost_what_it_knows_follows_nobody_and_says_so() {
    let mut world = written()(None);
    world.happens(&Event::Unwell(A, B));
    world.calms();
    world.goes_back(A, 1);
    world.happens(&Event::Start(A));
    goes_on(&mut world, 9);
    assert!(world.has_owner_lost(B), "{world:#?}");
    let states: Vec<State> = world.states().collect();
    assert_eq!(states, [State::Solo, State::CatchingUp]);
    assert_eq!(world.record().owner, A);
}
