//! What happens to bytes on their way: cut anywhere, split anywhere, any one bit wrong.

use super::pipe::{connections, hand, opened, pipe, step, taken, whole};
use super::*;
use crate::rules::{Rule, without};
use replica::{Message, Moment};

/// What one side sends in a session with every kind of frame that a ring has, first frame and all.
fn session() -> (Vec<u8>, Vec<Event>) {
    let (mut a, mut b) = opened(Purpose::Ring(2));
    b.grant(Cost::FRAME_MAX).unwrap();
    let credits = taken(&mut b);
    hand(&mut a, &credits);
    // The first frame once more, for a listener that has not heard it.
    let (mut first, _) = connections(1, Purpose::Ring(2));
    let mut bytes = taken(&mut first);
    say(&mut a);
    bytes.extend(taken(&mut a));
    let events = hand(&mut granted(), &bytes);
    assert_eq!(events.len(), 8, "{events:?}");
    (bytes, events)
}

fn say(a: &mut Connection) {
    let positions = Positions {
        ring: 2,
        positions: vec![position(5, 1, 9), position(6, 2, 12)],
    };
    a.records(&records(7, 4, 10, &[1, 0, 2])).unwrap();
    a.acks(&positions).unwrap();
    a.records(&records(8, 4, 3, &[0])).unwrap();
    a.commits(&positions).unwrap();
    a.beacon(Moment(1234)).unwrap();
    a.records(&records(7, 4, 13, &[1])).unwrap();
    a.bye(Reason::Stops);
}

/// A listener that grants as soon as it may: what comes to it was granted.
fn granted() -> Connection {
    let (_, mut b) = connections(1, Purpose::Ring(2));
    b.grant_before(Cost::FRAME_MAX);
    b
}

#[test]
fn a_session_is_the_same_however_its_bytes_are_split() {
    let (bytes, events) = session();
    for size in 1..=bytes.len() {
        let mut b = granted();
        let mut came = Vec::new();
        for piece in bytes.chunks(size) {
            came.extend(hand(&mut b, piece));
        }
        assert_eq!(came, events, "pieces of {size}");
    }
}

#[test]
fn a_session_that_is_cut_anywhere_is_the_beginning_of_it() {
    let (bytes, events) = session();
    let mut most = 0;
    for at in 0..bytes.len() {
        let came = hand(&mut granted(), &bytes[..at]);
        assert_eq!(came, events[..came.len()], "cut at {at}");
        assert!(came.len() >= most);
        most = came.len();
    }
    assert_eq!(most, events.len() - 1, "the last byte brings the last one");
}

/// For each bit of the session: what came is the beginning of what was sent, and then its end by
/// name. Answers how many were found.
fn flip_each_bit() -> Result<usize, String> {
    let (bytes, events) = session();
    let mut found = 0;
    for bit in 0..bytes.len() * 8 {
        let mut hurt = bytes.clone();
        hurt[bit / 8] ^= 1 << (bit % 8);
        let mut came = hand(&mut granted(), &hurt);
        let Some(Event::Closed(closed)) = came.pop() else {
            // It waits for more than there is: a length is not believed before its checksum fits.
            return Err(format!("bit {bit}: nothing was noticed"));
        };
        let is_named = matches!(
            closed,
            Closed::Refused(Refusal::NotAPeer | Refusal::Damaged)
                | Closed::Broken(
                    Breach::HeaderDamaged | Breach::BodyDamaged | Breach::DataDamaged { .. }
                )
        );
        if !is_named || came[..] != events[..came.len()] {
            return Err(format!("bit {bit}: {closed:?} after {} events", came.len()));
        }
        found += 1;
    }
    Ok(found)
}

#[test]
fn any_bit_that_is_wrong_is_found_and_no_wrong_record_is_given_out() {
    let (bytes, _) = session();
    assert_eq!(flip_each_bit(), Ok(bytes.len() * 8));
}

#[test]
fn without_a_checksum_a_wrong_bit_is_not_found() {
    for rule in [
        Rule::FirstIsChecked,
        Rule::HeadersAreChecked,
        Rule::BodiesAreChecked,
        Rule::DataIsChecked,
    ] {
        let found = without(rule, flip_each_bit);
        assert!(found.is_err(), "{rule:?}: {found:?}");
    }
}

/// Frames of a session that are left out, repeated or exchanged: what came of each.
fn disordered() -> Vec<Vec<Event>> {
    let (bytes, _) = session();
    let (first, rest) = bytes.split_at(FIRST_BYTES);
    let frames: Vec<Vec<u8>> = super::decoder::frames(rest)
        .iter()
        .map(super::decoder::Frame::bytes)
        .collect();
    let mut out = Vec::new();
    let mut run = |order: Vec<usize>| {
        let all = order.iter().flat_map(|at| &frames[*at]).copied();
        let bytes: Vec<u8> = first.iter().copied().chain(all).collect();
        out.push(hand(&mut granted(), &bytes));
    };
    let last = frames.len() - 1;
    for at in 0..last {
        run((0..=last).filter(|it| *it != at).collect());
        run((0..=last)
            .flat_map(|it| vec![it; 1 + usize::from(it == at)])
            .collect());
        let mut order: Vec<usize> = (0..=last).collect();
        order.swap(at, at + 1);
        run(order);
    }
    out
}

#[test]
fn frames_that_are_missing_repeated_or_exchanged_are_found() {
    let (_, events) = session();
    for came in disordered() {
        let (last, before) = came.split_last().unwrap();
        assert!(
            matches!(
                last,
                Event::Closed(Closed::Broken(Breach::OutOfOrder { .. }))
            ),
            "{last:?}"
        );
        assert_eq!(before, &events[..before.len()]);
    }
    let wrong = without(Rule::FramesAreInOrder, disordered);
    assert!(wrong.iter().any(|came| {
        matches!(came.last(), Some(Event::Closed(Closed::TheyEnd(_)))) && came[..] != events
    }));
}

#[test]
fn two_machines_over_a_pipe_that_is_cut_after_any_byte_give_out_nothing_wrong() {
    let (bytes, events) = session();
    for cut in 0..bytes.len() {
        let (mut a, mut b) = connections(1, Purpose::Ring(2));
        let mut size = 0;
        let (mut a_link, mut b_link) = pipe(move || {
            size = size % 7 + 1;
            size
        });
        a_link.cut_after(cut);
        let mut came = Vec::new();
        let mut said = (false, false);
        loop {
            let left = step(&mut a, &mut a_link);
            let right = step(&mut b, &mut b_link);
            came.extend(std::iter::from_fn(|| b.poll_event()));
            if b.opened().is_some() && !said.1 {
                said.1 = true;
                b.grant(Cost::FRAME_MAX).unwrap();
            }
            if a.may_send(Cost::FRAME_MAX) && a.opened().is_some() && !said.0 {
                said.0 = true;
                say(&mut a);
            }
            let moved = |it: &std::io::Result<bool>| it.as_ref().is_ok_and(|moved| *moved);
            if !moved(&left) && !moved(&right) {
                assert!(left.is_err() || right.is_err(), "cut after {cut}");
                break;
            }
        }
        assert_eq!(came, events[..came.len()], "cut after {cut}");
    }
    let (mut a, mut b) = connections(1, Purpose::Control);
    let (mut a_link, mut b_link) = pipe(whole);
    while step(&mut a, &mut a_link).unwrap() | step(&mut b, &mut b_link).unwrap() {}
    b_link.cut();
    assert!(
        step(&mut a, &mut a_link).is_err(),
        "the end of a link is one"
    );
}

#[test]
fn kinds_that_may_be_ignored_are_skipped_and_others_end_the_connection() {
    use super::decoder::Frame;
    let frame = |kind, flags, sequence, body: &[u8]| Frame {
        kind,
        flags,
        sequence,
        body: body.to_vec(),
        data: Vec::new(),
    };
    let (_, mut b) = opened(Purpose::Control);
    let long = vec![9; BODY_BYTES_MAX];
    let mut bytes = frame(200, 1, 0, &long).bytes();
    bytes.extend(frame(99, 1, 1, &[]).bytes());
    bytes.extend(frame(6, 0, 2, &5_u64.to_le_bytes()).bytes());
    assert_eq!(hand(&mut b, &bytes), [Event::Beacon(Moment(5))]);
    let ends = |frame: Frame, breach: Breach| {
        let (mut a, mut b) = opened(Purpose::Control);
        let came = hand(&mut b, &frame.bytes());
        assert_eq!(came, [Event::Closed(Closed::Broken(breach))]);
        let back = taken(&mut b);
        let came = hand(&mut a, &back);
        let reason = Reason::from(&breach);
        assert_eq!(came, [Event::Closed(Closed::TheyEnd(reason))]);
    };
    ends(frame(200, 0, 0, &[1]), Breach::UnknownKind(200));
    ends(frame(200, 2, 0, &[1]), Breach::UnknownKind(200));
    let flag = Breach::Malformed("a flag that it has not");
    ends(frame(6, 1, 0, &[0; 8]), flag);
    ends(
        frame(200, 1, 0, &vec![0; BODY_BYTES_MAX + 1]),
        Breach::TooLong,
    );
    ends(frame(6, 0, 0, &[]), Breach::Malformed("it has no body"));
    let fields = Breach::Malformed("its fields are none");
    for kind in [1, 3, 4, 6, 7, 8] {
        ends(frame(kind, 0, 0, &[1; 7]), fields);
        ends(frame(kind, 0, 0, &[1; 9]), fields);
    }
    for kind in [2, 5] {
        ends(
            frame(kind, 0, 0, &[0; 16]),
            Breach::NotHere(Purpose::Control),
        );
    }
    let mut with_data = frame(6, 0, 0, &[0; 8]);
    with_data.data = vec![1];
    ends(with_data, Breach::TooLong);
}

#[test]
fn slots_rings_and_counts_that_cannot_be_are_refused() {
    let (mut a, _) = opened(Purpose::Control);
    let follow = Message::Follow {
        epoch: Epoch(1),
        next: vec![4; 257],
        is_whole: true,
        base: Vec::new(),
    };
    a.message(VolumeId(1), &follow).unwrap();
    let bytes = taken(&mut a);
    let mut frame = super::decoder::frames(&bytes).remove(0);
    let end = |frame: &super::decoder::Frame| {
        let (_, mut b) = opened(Purpose::Control);
        hand(&mut b, &frame.bytes()).pop()
    };
    let fields = Breach::Malformed("its fields are none");
    let broken = Some(Event::Closed(Closed::Broken(fields)));
    assert_eq!(end(&frame), broken, "257 rings");
    frame.body[24..26].copy_from_slice(&[0xFF; 2]);
    assert_eq!(end(&frame), broken, "more than there are");
    let record = [[0; 24].as_slice(), &[0, 0, 0, 0, 64, 0, 0, 0]].concat();
    // A greeting: what was promised, and the numbers of its conversation, stand before the record.
    frame.body = [&[0; 8][..], &[1], &[0; 7], &[0; 24], &record].concat();
    assert_eq!(end(&frame), broken, "slot 64");
    frame.body[16 + 24 + 28] = 63;
    assert!(matches!(end(&frame), Some(Event::Message(..))));
}
