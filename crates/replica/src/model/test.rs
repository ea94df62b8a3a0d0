use super::world::Event;
use super::{Bounds, Explored, Rule, World, explore, walk};
use crate::record::NodeSlot;
use crate::state::State;
use std::collections::BTreeSet;

pub(super) const A: NodeSlot = NodeSlot(0);
pub(super) const B: NodeSlot = NodeSlot(1);

pub(super) const QUIET: Bounds = Bounds::QUIET;

pub(super) const ROUGH: Bounds = Bounds {
    writes: 3,
    reads: 6,
    crashes: 3,
    cuts: 4,
    lost: 3,
    asks: 3,
    unwell: 1,
    handovers: 2,
    set_backs: 1,
    forgets: 1,
    epochs: 9,
    ..QUIET
};

pub(super) fn well(explored: Explored) -> Explored {
    let Some((wrong, events)) = &explored.wrong else {
        return explored;
    };
    panic!("{wrong} after {}", events.join(", "));
}

#[test]
fn nothing_is_lost_torn_or_stale_in_any_order_of_events() {
    for bounds in [
        QUIET,
        Bounds {
            crashes: 1,
            ..QUIET
        },
        Bounds {
            cuts: 1,
            lost: 1,
            ..QUIET
        },
        Bounds {
            asks: 1,
            unwell: 1,
            ..QUIET
        },
        Bounds {
            handovers: 1,
            ..QUIET
        },
        Bounds {
            set_backs: 1,
            crashes: 1,
            unwell: 1,
            ..QUIET
        },
        Bounds {
            cuts: 1,
            forgets: 1,
            ..QUIET
        },
        Bounds { nodes: 3, ..QUIET },
    ] {
        well(explore(bounds, None, 20_000));
    }
    let seen = well(walk(ROUGH, None, (400, 600))).states;
    let all = BTreeSet::from([
        State::Joining,
        State::Replica,
        State::CatchingUp,
        State::Copying,
        State::Candidate,
        State::Opening,
        State::Owner,
        State::Solo,
        State::Removing,
        State::Holding,
        State::Yielding,
        State::Stopped,
    ]);
    assert_eq!(seen, all, "each state comes about");
    well(walk(Bounds { nodes: 3, ..ROUGH }, None, (100, 900)));
}

#[test]
fn each_rule_is_needed() {
    let asks = Bounds {
        asks: 1,
        unwell: 1,
        ..QUIET
    };
    for (rule, bounds) in [
        (Rule::AllInSyncHaveIt, QUIET),
        (Rule::OwnerReadsByPromise, QUIET),
        (Rule::RemovalAsksTheArbiter, QUIET),
        (Rule::RemovalWaitsForReads, asks),
        (Rule::ReplicaShowsCommitted, asks),
        (Rule::WhoIsAddedIsWaitedFor, QUIET),
        (Rule::PatienceIsLonger, QUIET),
    ] {
        let explored = explore(bounds, Some(rule), 150_000);
        assert!(explored.wrong.is_some(), "{rule:?} makes no difference");
    }
}

/// Runs events that must be possible, and says what was wrong at the end.
fn run(bounds: Bounds, rule: Option<Rule>, events: &[Event]) -> Option<&'static str> {
    let mut world = World::settled(bounds, rule);
    for event in events {
        if !world.events().contains(event) {
            return None;
        }
        world.happens(event);
    }
    world.wrong()
}

/// The same write there and read here, after what makes it wrong.
fn then_written_there(events: &[Event]) -> Vec<Event> {
    let rest = [
        Event::Arbitrate(0),
        Event::Answer(0),
        Event::Stable(B),
        Event::Write(B),
        Event::Stable(B),
        Event::Read(A),
    ];
    [events, &rest].concat()
}

/// An owner believes a store that was set back to before a member was removed.
fn forgotten() -> (Rule, Bounds, Vec<Event>) {
    use Event::{Answer, Arbitrate, Crash, Deliver, Stable, Start, Write};
    // The other one was removed, knows it, and lacks what was acknowledged since.
    let alone = [
        Event::Unwell(A, B),
        Arbitrate(0),
        Answer(0),
        Event::Cut(A, B),
        Event::Mend(A, B),
        Deliver(A, B),
        Write(A),
        Stable(A),
    ];
    let believed = [
        Event::SetBack,
        Crash(A, false),
        Start(A),
        Arbitrate(0),
        Answer(0),
        Arbitrate(0),
    ];
    let set_back = Bounds {
        crashes: 1,
        cuts: 1,
        unwell: 1,
        set_backs: 1,
        ..QUIET
    };
    let events = [&alone[..], &believed].concat();
    (Rule::WhatWasForgottenStands, set_back, events)
}

/// One case in which each of the rest of the rules is needed: a search takes long to find it.
fn scripts() -> Vec<(Rule, Bounds, Vec<Event>)> {
    use Event::{Answer, Arbitrate, Crash, Deliver, Read, Stable, Start, Tick, TimePasses, Write};
    // A beacon has just been answered.
    let early = [
        TimePasses,
        Tick(A),
        Deliver(A, B),
        Deliver(B, A),
        TimePasses,
        Tick(B),
    ];
    // So it had been, by the process before.
    let started = [Crash(B, false), Start(B), Arbitrate(0), Answer(0)];
    let silence = [TimePasses, TimePasses, TimePasses, Tick(B)];
    // The owner stood still; its next beacon finds a node that has just claimed.
    let late = [Tick(A), Deliver(A, B), Deliver(B, A), Deliver(B, A)];
    // It took over, and does not know yet that the last change was acknowledged.
    let known = [Write(A), Deliver(A, B), Stable(A), Stable(B), Deliver(B, A)];
    let opening = [Arbitrate(0), Answer(0), Read(B)];
    // What was read is lost with the node that showed it.
    let shown = [Write(A), Read(A)];
    let lost = [Arbitrate(0), Answer(0), Stable(B), Read(B)];
    let crash = Bounds {
        crashes: 1,
        ..QUIET
    };
    let reads = Bounds { reads: 2, ..QUIET };
    vec![
        forgotten(),
        (Rule::Patience, QUIET, then_written_there(&early)),
        (
            Rule::PatienceAfterStart,
            crash,
            then_written_there(&started),
        ),
        (
            Rule::PromisesAreHeardAnew,
            QUIET,
            then_written_there(&[&silence[..], &late].concat()),
        ),
        (
            Rule::NoReadsWhileOpening,
            QUIET,
            [&known[..], &silence, &opening].concat(),
        ),
        (
            Rule::ReadersSeeCommitted,
            reads,
            [&shown[..], &silence, &lost].concat(),
        ),
    ]
}

#[test]
fn each_rule_is_needed_where_it_takes_long() {
    for (rule, bounds, events) in scripts() {
        let without = run(bounds, Some(rule), &events);
        assert!(without.is_some(), "{rule:?} makes no difference");
        assert_eq!(run(bounds, None, &events), None, "{rule:?}");
    }
}

/// The first node goes on alone while the other one hears nothing, and gives up what it has
/// written; then the other one is made anew, and crashes meanwhile perhaps. Answers what is wrong
/// once it is in sync again.
fn made_anew(rule: Option<Rule>, crashes: bool) -> Option<&'static str> {
    let bounds = Bounds {
        writes: 2,
        crashes: 1,
        cuts: 1,
        forgets: 1,
        ..QUIET
    };
    let mut world = World::settled(bounds, rule);
    world.happens(&Event::Cut(A, B));
    while world.record().in_sync.count() == 2 {
        if !world.goes_on_without_mending() {
            world.ticks();
        }
    }
    world.happens(&Event::Write(A));
    while world.goes_on_without_mending() {}
    world.happens(&Event::Forget(A));
    let (mut is_left, mut seen) = (crashes, false);
    for _ in 0..200 {
        if !world.goes_on() {
            world.ticks();
        }
        let is_copying = world.states().any(|it| it == State::Copying);
        seen |= is_copying;
        if is_copying && std::mem::take(&mut is_left) {
            world.happens(&Event::Crash(B, false));
            world.happens(&Event::Start(B));
        }
        if world.wrong().is_some() || world.record().in_sync.count() == 2 {
            assert!(seen, "it was made anew");
            return world.wrong();
        }
    }
    panic!("it does not come to be in sync: {world:#?}");
}

#[test]
fn a_copy_beyond_the_log_is_made_anew_and_is_none_until_it_is_whole() {
    for crashes in [false, true] {
        assert_eq!(made_anew(None, crashes), None);
    }
    let uncopied = made_anew(Some(Rule::WhoIsNotWholeIsCopied), false);
    assert!(uncopied.is_some(), "it makes no difference");
    let unknown = made_anew(Some(Rule::NotWholeBeforeItsLogGoesOn), true);
    assert!(unknown.is_some(), "it makes no difference");
}

/// The other node is made anew, is cut off before it has anything, and then lacks even more of a
/// log in which nothing but an epoch came: what it lacked at first it lacks still.
fn made_anew_twice(rule: Option<Rule>) -> Option<&'static str> {
    let bounds = Bounds {
        writes: 2,
        crashes: 1,
        cuts: 2,
        forgets: 2,
        ..QUIET
    };
    let mut world = World::settled(bounds, rule);
    world.happens(&Event::Cut(A, B));
    let is_alone = |world: &World| world.states().next() == Some(State::Solo);
    let goes_alone = |world: &mut World| {
        while !is_alone(world) {
            if !world.goes_on_without_mending() {
                world.ticks();
            }
        }
    };
    goes_alone(&mut world);
    world.happens(&Event::Write(A));
    while world.goes_on_without_mending() {}
    world.happens(&Event::Forget(A));
    while !world.states().any(|it| it == State::Copying) {
        if !world.goes_on() {
            world.ticks();
        }
    }
    world.happens(&Event::Cut(A, B));
    world.happens(&Event::Crash(A, true));
    world.happens(&Event::Start(A));
    goes_alone(&mut world);
    while world.goes_on_without_mending() {}
    world.happens(&Event::Forget(A));
    // It is found to lack even more before anything is written again for it.
    let first = world.at(B).renewal.anew;
    while world.at(B).renewal.anew == first {
        let is_next = |it: &Event| {
            let is_said = matches!(it, Event::Deliver(..) | Event::Mend(..) | Event::Aware(..));
            is_said || matches!(it, Event::Stable(_))
        };
        match world.events().into_iter().find(is_next) {
            Some(event) => world.happens(&event),
            None => world.ticks(),
        }
    }
    for _ in 0..200 {
        if !world.goes_on() {
            world.ticks();
        }
        if world.wrong().is_some() || world.record().in_sync.count() == 2 {
            return world.wrong();
        }
    }
    panic!("it does not come to be in sync: {world:#?}");
}

#[test]
fn what_a_copy_lacked_when_it_was_made_anew_first_it_gets_however_often_that_begins() {
    assert_eq!(made_anew_twice(None), None);
    let forgotten = made_anew_twice(Some(Rule::WhatItHadStaysUntilItIsWhole));
    assert!(forgotten.is_some(), "it makes no difference");
}

/// Both swap while they hear nothing of each other, and the arbiter answers neither. They hear of
/// each other again, and then one of the two swaps is done: whether the other one reads.
fn both_swap(rule: Option<Rule>) -> Option<&'static str> {
    let bounds = Bounds {
        cuts: 1,
        lost: 1,
        ..QUIET
    };
    let mut world = World::settled(bounds, rule);
    world.happens(&Event::Cut(A, B));
    while !world.events().contains(&Event::Arbitrate(1)) {
        world.happens(&Event::TimePasses);
        for slot in [A, B] {
            world.happens(&Event::Tick(slot));
        }
    }
    // The owner's is the first one: it notices earlier.
    world.happens(&Event::LoseAnswer(0));
    world.happens(&Event::Mend(A, B));
    let passes = |world: &mut World| {
        let is_passed = |it: &&Event| matches!(it, Event::Deliver(..) | Event::Aware(..));
        while let Some(event) = world.events().iter().find(is_passed) {
            world.happens(&event.clone());
        }
    };
    passes(&mut world);
    world.happens(&Event::TimePasses);
    world.happens(&Event::Tick(A));
    passes(&mut world);
    for event in [
        Event::Arbitrate(1),
        // What the owner asked makes no difference any more.
        Event::Answer(0),
        Event::Stable(B),
        Event::Write(B),
        Event::Stable(B),
        Event::Read(A),
    ] {
        if !world.events().contains(&event) {
            assert_eq!(event, Event::Read(A), "{:?}", world.events());
            return None;
        }
        world.happens(&event);
    }
    world.wrong()
}

#[test]
fn an_owner_that_hears_of_a_later_promise_reads_no_more_whatever_it_waits_for() {
    assert_eq!(both_swap(None), None);
    let wrong = both_swap(Some(Rule::WhoPromisedLaterIsNotCounted));
    assert_eq!(wrong, Some("a read saw what no order explains"));
}

/// A node comes back and asks for the record. The owner adds it; that swap is done before the
/// question is answered, so that node knows that it is in sync, and the owner does not. Then the
/// owner stands still for longer than the other one is patient, and reads.
fn added_and_unaware(rule: Option<Rule>) -> Option<&'static str> {
    let bounds = Bounds {
        crashes: 1,
        unwell: 1,
        ..QUIET
    };
    let mut world = World::settled(bounds, rule);
    for event in [
        Event::Unwell(A, B),
        Event::Arbitrate(0),
        Event::Answer(0),
        Event::Crash(B, false),
        Event::Start(B),
        Event::TimePasses,
        Event::Tick(A),
    ] {
        world.happens(&event);
    }
    let passes = |event: &&Event| {
        let is_talk = matches!(
            event,
            Event::Deliver(..) | Event::Aware(..) | Event::Mend(..)
        );
        is_talk || matches!(event, Event::Stable(_))
    };
    // What the node asked at its start is not answered yet.
    while !world.events().contains(&Event::Arbitrate(1)) {
        match world.events().iter().find(passes) {
            Some(event) => world.happens(&event.clone()),
            None => [A, B]
                .iter()
                .for_each(|it| world.happens(&Event::Tick(*it))),
        }
    }
    for event in [Event::Arbitrate(1), Event::Arbitrate(0), Event::Answer(0)] {
        world.happens(&event);
    }
    assert_eq!(states(&world)[1], State::Replica, "it knows");
    for _ in 0..4 {
        world.happens(&Event::TimePasses);
    }
    world.happens(&Event::Tick(B));
    for event in [
        Event::Arbitrate(1),
        Event::Answer(1),
        Event::Stable(B),
        Event::Write(B),
        Event::Stable(B),
        Event::Read(A),
    ] {
        if !world.events().contains(&event) {
            assert_eq!(event, Event::Read(A), "{:?}", world.events());
            return None;
        }
        world.happens(&event);
    }
    world.wrong()
}

#[test]
fn an_owner_that_does_not_know_that_one_was_added_reads_by_its_promise() {
    let wrong = added_and_unaware(Some(Rule::WhoIsAddedPromises));
    assert_eq!(wrong, Some("a read saw what no order explains"));
    assert_eq!(added_and_unaware(None), None);
}

#[test]
fn stopping_before_the_swap_makes_no_difference_to_a_claim_of_one() {
    // Who claims keeps only itself in sync, so what it accepts of the old epoch meanwhile it has.
    let broken = Some(Rule::PromiseBeforeSwap);
    well(explore(QUIET, broken, 20_000));
}

#[test]
fn to_read_on_after_a_handover_makes_no_difference_where_clocks_run_alike() {
    // The new owner commits nothing before the old one follows it, or was removed after as long as
    // its right to read lasts. That leaves nothing for clocks that run at different rates.
    let broken = Some(Rule::WhoYieldsStopsReading);
    let bounds = Bounds {
        handovers: 1,
        unwell: 1,
        ..QUIET
    };
    well(explore(bounds, broken, 20_000));
    well(walk(ROUGH, broken, (50, 600)));
}

#[test]
fn an_owner_gives_a_lun_away_and_back_while_all_are_well() {
    let bounds = Bounds {
        handovers: 2,
        epochs: 5,
        ..QUIET
    };
    let mut world = World::settled(bounds, None);
    for (from, to) in [(A, B), (B, A)] {
        world.happens(&Event::HandOver(from, to));
        let is_there =
            |world: &World| world.record().owner == to && world.record().in_sync.count() == 2;
        for _ in 0..20 {
            world.calms();
            if is_there(&world) && world.states().any(|it| it == State::Owner) {
                break;
            }
            world.ticks();
        }
        assert!(is_there(&world), "{:?}", world.record());
        let states: Vec<State> = world.states().collect();
        assert!(states.contains(&State::Owner) && states.contains(&State::Replica));
    }
    assert_eq!(world.wrong(), None);
}

/// Lets time pass, and everything happen that nothing is waited for.
fn goes_on(world: &mut World, times: usize) {
    for _ in 0..times {
        world.calms();
        world.ticks();
    }
    world.calms();
}

fn states(world: &World) -> Vec<State> {
    world.states().collect()
}

#[test]
fn with_a_store_that_forgot_those_in_touch_go_on_and_nobody_changes_a_role() {
    let bounds = Bounds {
        writes: 3,
        crashes: 2,
        set_backs: 1,
        ..QUIET
    };
    let mut world = World::settled(bounds, None);
    let before = world.record().clone();
    world.happens(&Event::SetBack);
    for write in 1..=2 {
        world.happens(&Event::Write(A));
        goes_on(&mut world, 2);
        assert_eq!(world.answered(), write);
    }
    assert_eq!(states(&world), [State::Owner, State::Replica]);
    // Who needs a swap cannot go on, and asks for no other one.
    world.happens(&Event::Crash(B, false));
    goes_on(&mut world, 9);
    world.happens(&Event::Write(A));
    goes_on(&mut world, 3);
    assert_eq!(
        (states(&world), world.answered()),
        (vec![State::Stopped], 2)
    );
    // The other one is back, and in touch.
    world.happens(&Event::Start(B));
    goes_on(&mut world, 4);
    assert_eq!(states(&world), [State::Owner, State::Replica]);
    assert_eq!(world.answered(), 3);
    assert_eq!(*world.record(), before, "nothing was changed");
    // An owner that begins anew needs a swap, and has it when the store is what it was.
    world.happens(&Event::Crash(A, false));
    world.happens(&Event::Start(A));
    goes_on(&mut world, 1);
    assert_eq!(states(&world)[0], State::Stopped);
    world.happens(&Event::Restore);
    goes_on(&mut world, 9);
    assert!(
        states(&world).contains(&State::Owner),
        "{:?}",
        states(&world)
    );
    assert_eq!(world.wrong(), None);
}
