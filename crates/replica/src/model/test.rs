use super::world::Event;
use super::{Bounds, Explored, Rule, World, explore, walk};
use crate::record::NodeSlot;
use crate::state::State;
use std::collections::BTreeSet;

const A: NodeSlot = NodeSlot(0);
const B: NodeSlot = NodeSlot(1);

const QUIET: Bounds = Bounds::QUIET;

const ROUGH: Bounds = Bounds {
    writes: 3,
    reads: 6,
    crashes: 3,
    cuts: 4,
    lost: 3,
    asks: 3,
    unwell: 1,
    epochs: 9,
    ..QUIET
};

fn well(explored: Explored) -> Explored {
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
        Bounds { nodes: 3, ..QUIET },
    ] {
        well(explore(bounds, None, 20_000));
    }
    let seen = well(walk(ROUGH, None, (400, 600))).states;
    let all = BTreeSet::from([
        State::Joining,
        State::Replica,
        State::CatchingUp,
        State::Candidate,
        State::Opening,
        State::Owner,
        State::Solo,
        State::Removing,
        State::Holding,
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

#[test]
fn stopping_before_the_swap_makes_no_difference_to_a_claim_of_one() {
    // Who claims keeps only itself in sync, so what it accepts of the old epoch meanwhile it has.
    let broken = Some(Rule::PromiseBeforeSwap);
    well(explore(QUIET, broken, 20_000));
}
