//! Dead within the promised time, never because of a slow store, back only when it has proved
//! itself.

use super::{Cause, Do, PathHealth, Seen, State, Timing, Wanted};
use crate::policy::Use;
use proptest::prelude::*;
use scsi::alua::AccessState;
use std::time::Duration;
use units::Now;

fn at(milliseconds: u64) -> Now {
    Now::ZERO.after(Duration::from_millis(milliseconds))
}

/// Ticks at every deadline until `until`; pings are answered if `answers`.
fn run(path: &mut PathHealth, mut now: Now, until: Now, answers: bool) -> Vec<(Now, Do)> {
    let mut done = Vec::new();
    while let Some(next) = path.deadline().filter(|next| *next <= until) {
        now = now.max(next);
        for effect in path.tick(now) {
            done.push((now, effect));
            if effect == Do::Ping && answers {
                done.extend(
                    path.seen(Seen::PingAnswered, now)
                        .into_iter()
                        .map(|it| (now, it)),
                );
            }
        }
    }
    done
}

fn up() -> PathHealth {
    let mut path = PathHealth::new(Timing::default(), 7);
    path.seen(Seen::Want(Wanted::Active), at(0));
    assert_eq!(path.tick(at(0)), [Do::Connect]);
    assert_eq!(
        path.seen(Seen::LoggedIn, at(1)),
        [Do::Recovered, Do::UsageChanged]
    );
    assert_eq!((path.state(), path.usage()), (State::Up, Use::Active));
    path
}

#[test]
fn a_silent_black_hole_is_noticed_within_two_seconds_and_the_carrier_at_once() {
    let mut path = up();
    path.seen(Seen::Received, at(10_000));
    path.seen(Seen::Sent, at(10_000));
    let done = run(&mut path, at(10_000), at(20_000), false);
    let failed: Vec<Now> = done
        .iter()
        .filter(|(_, it)| matches!(it, Do::Failed(_)))
        .map(|(at, _)| *at)
        .collect();
    assert_eq!(failed, [at(12_000)]);
    assert_eq!(done[..2], [(at(11_000), Do::Ping), (at(12_000), Do::Close)]);
    assert_eq!(path.usage(), Use::No);
    let mut path = up();
    let effects = path.seen(Seen::LinkDown, at(500));
    assert_eq!(
        effects,
        [Do::Close, Do::Failed(Cause::LinkDown), Do::UsageChanged]
    );
    assert_eq!(path.deadline(), None, "without a carrier nothing is tried");
}

#[test]
fn a_store_that_hangs_for_45_seconds_is_no_path_failure_as_long_as_pings_are_answered() {
    let mut path = up();
    path.seen(Seen::Sent, at(100));
    let done = run(&mut path, at(100), at(45_000), true);
    assert!(done.iter().all(|(_, it)| *it == Do::Ping));
    assert!(done.len() >= 40);
}

#[test]
fn data_that_comes_is_as_good_as_an_answer() {
    let mut path = up();
    path.seen(Seen::Sent, at(0));
    assert_eq!(run(&mut path, at(0), at(1_500), false).len(), 1);
    path.seen(Seen::Received, at(1_900));
    let done = run(&mut path, at(1_900), at(2_500), false);
    assert_eq!(done, []);
    assert_eq!(path.state(), State::Up);
}

#[test]
fn attempts_come_slower_and_slower_until_the_link_comes_up() {
    let mut path = up();
    path.seen(Seen::Closed, at(1_000));
    let mut pauses = Vec::new();
    for _ in 0..10 {
        let from = path.deadline().unwrap();
        assert_eq!(path.tick(from), [Do::Connect]);
        path.seen(Seen::Closed, from);
        pauses.push(path.deadline().unwrap().since(from).as_secs_f64());
    }
    for (pause, expected) in pauses
        .iter()
        .zip([0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0])
    {
        assert!(
            (0.75 * expected..=1.25 * expected).contains(pause),
            "{pauses:?}"
        );
    }
    let now = at(200_000);
    path.seen(Seen::LinkUp, now);
    assert_eq!(path.deadline(), Some(now));
}

#[test]
fn a_path_that_came_back_proves_itself_longer_after_every_flap() {
    let mut path = up();
    let mut now = at(10_000);
    let mut holds = Vec::new();
    for _ in 0..9 {
        path.seen(Seen::Closed, now);
        let attempt = path.deadline().unwrap();
        let connect = run(&mut path, now, attempt, true);
        now = connect.last().unwrap().0;
        assert_eq!(path.seen(Seen::LoggedIn, now), []);
        assert_eq!((path.state(), path.usage()), (State::Proving, Use::No));
        let done = run(&mut path, now, now.after(Duration::from_secs(700)), true);
        let recovered = done.iter().find(|(_, it)| *it == Do::Recovered).unwrap().0;
        holds.push(recovered.since(now).as_secs());
        now = recovered.after(Duration::from_secs(1));
    }
    assert_eq!(holds[..3], [5, 10, 20]);
    assert!(holds.windows(2).all(|two| two[1] >= two[0]));
    assert!(*holds.last().unwrap() <= 602, "{holds:?}");
}

#[test]
fn the_only_path_there_is_does_not_have_to_prove_anything() {
    let mut path = up();
    path.seen(Seen::Closed, at(10_000));
    let connect = path.deadline().unwrap();
    path.tick(connect);
    path.seen(Seen::LoggedIn, connect);
    assert_eq!(
        path.seen(Seen::OnlyHope, connect),
        [Do::Recovered, Do::UsageChanged]
    );
    assert_eq!(path.usage(), Use::Active);
}

#[test]
fn while_no_path_lives_each_is_tried_every_second_however_often_it_failed() {
    let mut path = up();
    let mut now = at(1_000);
    for _ in 0..12 {
        path.seen(Seen::Closed, now);
        now = path.deadline().unwrap();
        path.tick(now);
    }
    path.seen(Seen::Closed, now);
    assert!(path.deadline().unwrap() > now.after(Duration::from_secs(10)));
    path.seen(Seen::OnlyHope, now);
    assert_eq!(path.deadline(), Some(now.after(Duration::from_secs(1))));
    // The word is no attempt.
    path.seen(Seen::OnlyHope, now.after(Duration::from_millis(900)));
    assert_eq!(path.deadline(), Some(now.after(Duration::from_secs(1))));
}

#[test]
fn a_path_with_stalls_errors_or_retransmissions_stands_by_until_it_is_pardoned() {
    for (seen, times) in [(Seen::Stall, 3), (Seen::Error, 2)] {
        let mut path = up();
        for n in 0..times - 1 {
            assert_eq!(path.seen(seen, at(1_000 + n)), []);
        }
        assert_eq!(path.seen(seen, at(2_000)), [Do::UsageChanged]);
        assert_eq!((path.usage(), path.marginal()), (Use::Standby, true));
        let done = run(&mut path, at(2_000), at(200_000), true);
        let pardoned = done
            .iter()
            .find(|(_, it)| *it == Do::UsageChanged)
            .unwrap()
            .0;
        assert!(
            pardoned >= at(32_000) && pardoned <= at(70_000),
            "{pardoned:?}"
        );
        assert_eq!(path.usage(), Use::Active);
    }
    let mut path = up();
    path.seen(Seen::Retransmitting(true), at(1_000));
    let done = run(&mut path, at(1_000), at(10_000), true);
    assert!(done.contains(&(at(6_000), Do::UsageChanged)), "{done:?}");
    // A burst that is over soon is none.
    let mut path = up();
    path.seen(Seen::Retransmitting(true), at(1_000));
    path.seen(Seen::Retransmitting(false), at(3_000));
    run(&mut path, at(3_000), at(60_000), true);
    assert!(!path.marginal());
}

#[test]
fn events_far_apart_make_nothing_marginal() {
    let mut path = up();
    for n in 0..20 {
        path.seen(Seen::Stall, at(n * 16_000));
        assert!(!path.marginal());
    }
}

#[test]
fn a_transition_is_polled_waited_for_and_then_taken_for_a_standby() {
    let mut path = up();
    assert_eq!(
        path.seen(Seen::Access(AccessState::Transitioning), at(1_000)),
        [Do::UsageChanged]
    );
    assert!(path.in_transition() && path.usage() == Use::No);
    let done = run(&mut path, at(1_000), at(21_000), true);
    let polls = done.iter().filter(|(_, it)| *it == Do::ReadAccess).count();
    assert!((8..=14).contains(&polls), "{polls}");
    assert!(
        !done.iter().any(|(_, it)| matches!(it, Do::Failed(_))),
        "a transition is no failure"
    );
    path.seen(Seen::Access(AccessState::ActiveNonOptimized), at(21_000));
    assert_eq!(path.usage(), Use::Active);
    // One that never ends.
    path.seen(Seen::TransitionTime(10), at(30_000));
    path.seen(Seen::Access(AccessState::Transitioning), at(30_000));
    run(&mut path, at(30_000), at(39_999), true);
    assert!(path.in_transition());
    run(&mut path, at(39_999), at(50_000), true);
    assert!(!path.in_transition() && path.usage() == Use::No);
    path.seen(Seen::Access(AccessState::Transitioning), at(50_000));
    assert!(!path.in_transition(), "it is not waited for twice");
}

#[test]
fn another_unit_under_our_name_is_quarantined_until_the_administrator_says_so() {
    let mut path = up();
    path.seen(Seen::Closed, at(1_000));
    path.tick(path.deadline().unwrap());
    let effects = path.seen(Seen::OtherIdentity, at(2_000));
    assert_eq!(effects, [Do::LogOut]);
    assert_eq!((path.state(), path.deadline()), (State::Quarantined, None));
    for seen in [
        Seen::LinkUp,
        Seen::LoggedIn,
        Seen::Want(Wanted::Active),
        Seen::OnlyHope,
        Seen::Suspected,
    ] {
        assert_eq!(path.seen(seen, at(3_000)), []);
    }
    path.seen(Seen::Enable, at(4_000));
    assert_eq!(path.deadline(), Some(at(4_000)));
}

#[test]
fn a_path_that_is_not_wanted_logs_out_and_stays_out() {
    let mut path = up();
    assert_eq!(
        path.seen(Seen::Want(Wanted::Cold), at(1_000)),
        [Do::LogOut, Do::UsageChanged]
    );
    assert_eq!(path.seen(Seen::Closed, at(1_001)), []);
    assert_eq!(path.deadline(), None);
    path.seen(Seen::Want(Wanted::Hot), at(2_000));
    assert_eq!(path.tick(at(2_000)), [Do::Connect]);
}

fn any_seen() -> impl Strategy<Value = Seen> {
    let access = prop_oneof![
        Just(AccessState::ActiveOptimized),
        Just(AccessState::ActiveNonOptimized),
        Just(AccessState::Standby),
        Just(AccessState::Transitioning),
    ];
    prop_oneof![
        2 => Just(Seen::LinkUp),
        1 => Just(Seen::LinkDown),
        4 => Just(Seen::LoggedIn),
        1 => Just(Seen::Closed),
        3 => Just(Seen::Received),
        3 => Just(Seen::PingAnswered),
        3 => Just(Seen::Sent),
        2 => Just(Seen::NothingExpected),
        1 => Just(Seen::Stall),
        1 => Just(Seen::DigestError),
        1 => any::<bool>().prop_map(Seen::Retransmitting),
        1 => any::<bool>().prop_map(Seen::Slow),
        1 => access.prop_map(Seen::Access),
        1 => Just(Seen::UnitGone),
        1 => Just(Seen::OnlyHope),
        1 => Just(Seen::Suspected),
        3 => prop_oneof![Just(Wanted::Active), Just(Wanted::Hot), Just(Wanted::Cold)].prop_map(Seen::Want),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_seen_every_wait_has_an_end_and_effects_fit_the_state(
        steps in prop::collection::vec((any_seen(), 0..3_000_u64), 1..80)
    ) {
        let mut path = PathHealth::new(Timing::default(), 3);
        let mut now = at(0);
        let mut connected = false;
        let mut reported = Use::No;
        let mut link = true;
        for (seen, pause) in steps {
            if seen == Seen::LoggedIn && path.state() == State::Connecting {
                connected = true;
            }
            if seen == Seen::Closed {
                connected = false;
            }
            link = (link || seen == Seen::LinkUp) && seen != Seen::LinkDown;
            let mut effects = path.seen(seen, now);
            let until = now.after(Duration::from_millis(pause));
            effects.extend(run(&mut path, now, until, false).into_iter().map(|(_, it)| it));
            now = until;
            for effect in effects {
                match effect {
                    Do::Close | Do::LogOut => connected = false,
                    Do::Connect => prop_assert!(link && !connected),
                    Do::UsageChanged => reported = Use::Standby,
                    Do::Ping | Do::Failed(_) | Do::Recovered | Do::ReadAccess => {}
                }
            }
            let is_up = matches!(path.state(), State::Up | State::Proving);
            prop_assert_eq!(is_up, connected, "{:?}", path.state());
            prop_assert!(path.usage() == Use::No || path.state() == State::Up);
            prop_assert!(path.usage() == Use::No || reported != Use::No, "a usage that was never reported");
            if is_up || path.state() == State::Connecting {
                prop_assert!(path.deadline().is_some(), "waits for ever: {:?}", path.state());
            }
            if let Some(next) = path.deadline() {
                prop_assert!(next > now, "does not get on: {:?}", path.state());
            }
        }
    }
}

#[test]
fn a_suspected_path_is_pinged_at_once_unless_it_was_heard_just_now() {
    let mut path = up();
    let begun = Now::ZERO.after(Duration::from_secs(60));
    path.seen(Seen::Received, begun);
    let soon = begun.after(Duration::from_millis(100));
    assert_eq!(path.seen(Seen::Suspected, soon), []);
    let later = begun.after(Duration::from_secs(2));
    assert_eq!(path.seen(Seen::Suspected, later), [Do::Ping]);
    assert_eq!(path.seen(Seen::Suspected, later), []);
    // Then it has as long as the one that was silent first.
    assert_eq!(path.deadline(), Some(later.after(Timing::default().answer)));
}
