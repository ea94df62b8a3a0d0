//! Streams that outlive their connections.

use super::pipe::{hand, opened, taken};
use super::world::{Counts, LIMITS, Random, World};
use super::*;
use crate::rules::{Rule, without};

const SEEDS: u64 = 150;
const STEPS: u64 = 1_500;

fn worlds(seeds: std::ops::Range<u64>) -> Result<Counts, String> {
    let mut all = Counts::default();
    for seed in seeds {
        let mut world = World::new(seed);
        world
            .run(STEPS)
            .map_err(|wrong| format!("seed {seed}: {wrong}"))?;
        let counts = &world.counts;
        let each = [
            (&mut all.given_out, counts.given_out),
            (&mut all.repeated, counts.repeated),
            (&mut all.resumed, counts.resumed),
            (&mut all.anew, counts.anew),
            (&mut all.late, counts.late),
            (&mut all.stopped, counts.stopped),
            (&mut all.full, counts.full),
            (&mut all.takeovers, counts.takeovers),
            (&mut all.not_followed, counts.not_followed),
            (&mut all.no_memory, counts.no_memory),
        ];
        each.into_iter().for_each(|(to, of)| *to += of);
    }
    Ok(all)
}

#[test]
fn each_change_is_given_out_once_in_order_whatever_links_are_lost() {
    let counts = worlds(0..SEEDS).unwrap();
    println!("{SEEDS} seeds: {counts:?}");
    let Counts {
        given_out,
        repeated,
        resumed,
        anew,
        late,
        stopped,
        full,
        takeovers,
        not_followed,
        no_memory,
    } = counts;
    assert!(given_out > 50_000 && repeated > 100 && resumed > 1_000 && anew > 500);
    assert!(late > 10 && stopped > 500 && full > 50 && takeovers > 500);
    assert!(not_followed > 10 && no_memory > 1_000);
}

#[test]
fn each_rule_of_a_stream_is_needed() {
    for rule in [
        Rule::SenderStops,
        Rule::RepeatsAreDropped,
        Rule::GoesOnFromTheAck,
        Rule::AcksAreRepeated,
        Rule::CommitsAreRepeated,
        Rule::AllIsGrantedWhenNothingIsHeld,
        Rule::HeldIsNotGranted,
        Rule::WhatIsHalfHereCounts,
        Rule::EpochIsFollowed,
    ] {
        let found = without(rule, || worlds(0..SEEDS));
        let wrong = found.expect_err(&format!("{rule:?} makes no difference"));
        println!("{rule:?}: {wrong}");
    }
}

#[test]
fn what_is_missing_is_noticed() {
    let come = || {
        let mut stream = RingStream::new(2, LIMITS);
        stream.follow(VolumeId(7), Epoch(4), Sequence(10));
        let first = stream.records(records(7, 4, 10, &[1, 1]));
        assert!(matches!(first, Taken::New(_)));
        stream.records(records(7, 4, 13, &[1]))
    };
    let gap = Breach::Gap {
        volume: VolumeId(7),
        expected: Sequence(12),
        found: Sequence(13),
    };
    assert_eq!(come(), Taken::Gap(gap));
    let taken = without(Rule::GapsAreFound, come);
    assert!(matches!(taken, Taken::New(_)), "{taken:?}");
}

#[test]
fn of_records_that_came_in_part_the_rest_is_new() {
    let mut stream = RingStream::new(2, LIMITS);
    stream.follow(VolumeId(7), Epoch(4), Sequence(10));
    stream.records(records(7, 4, 10, &[1, 8]));
    let taken = stream.records(records(7, 4, 10, &[1, 8, 0, 3]));
    let Taken::New(rest) = taken else {
        panic!("{taken:?}");
    };
    assert_eq!(rest, records(7, 4, 12, &[0, 3]));
    assert_eq!(stream.unstable().records, 4);
    assert_eq!(stream.records(records(7, 4, 10, &[1, 8])), Taken::Repeated);
    assert_eq!(stream.records(records(7, 3, 14, &[1])), Taken::NotFollowed);
    assert_eq!(stream.records(records(8, 4, 14, &[1])), Taken::NotFollowed);
    assert_eq!(stream.unstable().records, 4, "what is dropped is not held");
    stream.stable(VolumeId(7), Epoch(4), Sequence(12));
    assert_eq!(stream.unstable().records, 2);
    stream.leave(VolumeId(7));
    assert_eq!(stream.unstable().records, 2, "until its write has ended");
    stream.stable(VolumeId(7), Epoch(4), Sequence(14));
    assert_eq!(stream.unstable(), Cost::default());
}

#[test]
fn a_connection_that_is_late_takes_nothing_over() {
    let with = |number, purpose| {
        let (mut a, mut b) = super::pipe::connections(number, purpose);
        let there = taken(&mut a);
        match hand(&mut b, &there)[..] {
            [Event::Opened(opened)] => opened,
            ref other => panic!("{other:?}"),
        }
    };
    let attach = || {
        let mut stream = RingStream::new(2, LIMITS);
        assert_eq!(
            stream.attach(&with(2, Purpose::Ring(2))),
            Ok(Attached::Anew)
        );
        let resumed = stream.attach(&with(3, Purpose::Ring(2)));
        assert_eq!(resumed, Ok(Attached::Resumes));
        (
            stream.next_number(),
            stream.attach(&with(1, Purpose::Ring(2))),
        )
    };
    assert_eq!(attach(), (ConnectionNumber(4), Err(Late::NotNewer)));
    let late = without(Rule::OldConnectionsAreRefused, attach);
    assert_eq!(late.1, Ok(Attached::Resumes), "without the rule");
    let mut stream = RingStream::new(2, LIMITS);
    for purpose in [Purpose::Control, Purpose::Ring(1)] {
        let other = stream.attach(&with(1, purpose));
        assert_eq!(other, Err(Late::NotOfTheRing));
    }
}

#[test]
fn only_the_next_records_of_a_stream_are_taken_and_no_more_than_are_held() {
    let mut stream = RingStream::new(2, LIMITS);
    let not_next = |taken| matches!(taken, Err(NotTaken::NotNext(_)));
    assert!(not_next(stream.push(records(7, 4, 10, &[1]))));
    stream.begin(VolumeId(7), Epoch(4), Sequence(10));
    assert!(not_next(stream.push(records(7, 4, 11, &[1]))));
    assert!(not_next(stream.push(records(7, 3, 10, &[1]))));
    for frame in 0..3 {
        stream
            .push(records(7, 4, 10 + 128 * frame, &[0; 128]))
            .unwrap();
    }
    let full = stream.push(records(7, 4, 10 + 384, &[0; 17]));
    assert!(matches!(full, Err(NotTaken::Full(_))), "{full:?}");
    // Some that are acknowledged in the middle of a frame are let go.
    let acks = |below| Positions {
        ring: 2,
        positions: vec![position(7, 4, below)],
    };
    stream.acks(&acks(10 + 200));
    assert_eq!(stream.held().records, 384 - 200);
    stream.push(records(7, 4, 10 + 384, &[0; 17])).unwrap();
    let late = Positions {
        ring: 2,
        positions: vec![position(7, 3, 10 + 300), position(9, 4, 9)],
    };
    stream.acks(&late);
    assert_eq!(stream.held().records, 201, "of an older epoch");
    without(Rule::AcksNameTheirEpoch, || stream.acks(&late));
    assert_eq!(stream.held().records, 101, "without the rule");
    stream.acks(&acks(u64::MAX));
    assert_eq!(stream.held(), Cost::default(), "no more than was sent");
    stream.push(records(7, 4, 10 + 401, &[0; 5])).unwrap();
    stream.begin(VolumeId(7), Epoch(5), Sequence(3));
    assert_eq!(stream.held(), Cost::default(), "another stream begins");
}

#[test]
fn a_frame_of_the_largest_size_follows_any_other_without_help() {
    // The window is that frame's: it goes when everything before it is let go and granted.
    let random = Random::new(5);
    let (mut a, mut b) = opened(Purpose::Ring(2));
    let (mut owner, mut other) = (RingStream::new(2, LIMITS), RingStream::new(2, LIMITS));
    owner.attach(a.opened().unwrap()).unwrap();
    other.attach(b.opened().unwrap()).unwrap();
    owner.begin(VolumeId(7), Epoch(4), Sequence(0));
    other.follow(VolumeId(7), Epoch(4), Sequence(0));
    let (mut next, mut came) = (0, 0);
    for _ in 0..20 {
        let small = usize::try_from(1 + random.below(20)).unwrap();
        for sizes in [vec![1; small], vec![2048], vec![0; 128]] {
            let frame = records(7, 4, next, &sizes);
            next = frame.next().0;
            owner.push(frame).unwrap();
            let mut rounds = 0;
            while came < next {
                rounds += 1;
                assert!(rounds < 5, "it waits for ever");
                came = round_trip((&mut owner, &mut a), (&mut other, &mut b)).unwrap_or(came);
                other.stable(VolumeId(7), Epoch(4), Sequence(came));
            }
        }
    }
}

type End<'a> = (&'a mut RingStream, &'a mut Connection);

/// What waits goes to the owner and back; answers the number after the last record that came.
fn round_trip((owner, a): End<'_>, (other, b): End<'_>) -> Option<u64> {
    other.pump(b);
    let back = taken(b);
    for event in hand(a, &back) {
        if let Event::Acks(acks) = event {
            owner.acks(&acks);
        }
    }
    owner.pump(a);
    let there = taken(a);
    let mut came = None;
    for event in hand(b, &there) {
        if let Event::Records(records) = event {
            came = Some(records.next().0);
            assert!(matches!(other.records(records), Taken::New(_)));
        }
    }
    came
}
