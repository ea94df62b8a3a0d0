//! The main job, from one end to the other.

use super::pipe::*;
use super::*;
use replica::{Message, Moment};

const LIMITS: Limits = Limits {
    window: Cost {
        bytes: 2 << 20,
        records: 256,
    },
    held: Cost {
        bytes: 16 << 20,
        records: 2048,
    },
};

/// What comes out of a connection until nothing moves any more.
fn run(a: &mut Connection, b: &mut Connection, links: &mut (PipeLink, PipeLink)) {
    while step(a, &mut links.0).unwrap() | step(b, &mut links.1).unwrap() {}
}

fn events(of: &mut Connection) -> Vec<Event> {
    std::iter::from_fn(|| of.poll_event()).collect()
}

fn opened_by(of: &mut Connection) -> Opened {
    match events(of)[..] {
        [Event::Opened(opened)] => opened,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn records_go_across_and_acknowledgements_come_back() {
    let (mut a, mut b) = connections(1, Purpose::Ring(2));
    let mut links = pipe(whole);
    run(&mut a, &mut b, &mut links);
    let mut owner = RingStream::new(2, LIMITS);
    let mut other = RingStream::new(2, LIMITS);
    let (of_a, of_b) = (opened_by(&mut a), opened_by(&mut b));
    assert_eq!((of_a.slot, of_b.slot), (NodeSlot(1), NodeSlot(0)));
    assert_eq!((of_a.version, of_a.level_max), (VERSION, 5));
    assert_eq!(owner.attach(&of_a), Ok(Attached::Anew));
    assert_eq!(other.attach(&of_b), Ok(Attached::Anew));

    owner.begin(VolumeId(7), Epoch(4), Sequence(10));
    other.follow(VolumeId(7), Epoch(4), Sequence(10));
    owner
        .push(records(7, 4, 10, &[8, 0, 2048 - 8 - 1, 1]))
        .unwrap();
    owner.push(records(7, 4, 14, &[1, 3])).unwrap();
    owner.commit(VolumeId(7), Epoch(4), Sequence(9));
    other.pump(&mut b);
    owner.pump(&mut a);
    assert!(owner.is_waiting(), "nothing is granted yet");
    run(&mut a, &mut b, &mut links);
    assert_eq!(events(&mut a), [Event::Credits]);
    owner.pump(&mut a);
    run(&mut a, &mut b, &mut links);

    let mut came = Vec::new();
    for event in events(&mut b) {
        // The owner grants, too.
        if event == Event::Credits {
            continue;
        }
        let Event::Records(records) = event else {
            panic!("{event:?}");
        };
        assert_eq!(records.origin().commit, Sequence(9), "it goes with them");
        let taken = other.records(records);
        let Taken::New(records) = taken else {
            panic!("{taken:?}");
        };
        came.extend(records.into_changes().0);
    }
    let sizes = [8, 0, 2048 - 8 - 1, 1, 1, 3];
    let sent: Vec<_> = (10..)
        .zip(sizes)
        .map(|(number, blocks)| change(7, number, blocks))
        .collect();
    assert_eq!(came, sent);
    assert_eq!(other.unstable().records, 6);

    other.stable(VolumeId(7), Epoch(4), Sequence(14));
    other.pump(&mut b);
    run(&mut a, &mut b, &mut links);
    let acked = Positions {
        ring: 2,
        positions: vec![position(7, 4, 14)],
    };
    let came = events(&mut a);
    assert!(came.contains(&Event::Acks(acked.clone())), "{came:?}");
    owner.acks(&acked);
    assert_eq!(owner.held().records, 2, "the others are let go");
    other.stable(VolumeId(7), Epoch(4), Sequence(16));
    other.pump(&mut b);
    owner.commit(VolumeId(7), Epoch(4), Sequence(14));
    owner.flush(&mut a);
    run(&mut a, &mut b, &mut links);
    let committed = Positions {
        ring: 2,
        positions: vec![position(7, 4, 14)],
    };
    assert_eq!(events(&mut b), [Event::Commits(committed)]);
    let may_come = b.outstanding();
    assert!(Cost::FRAME_MAX.is_within(may_come), "{may_come:?}");
}

#[test]
fn messages_beacons_and_the_end_go_over_control() {
    let (mut a, mut b) = opened(Purpose::Control);
    let ask = Message::Ask { sent: Moment(5) };
    a.message(VolumeId(3), &ask).unwrap();
    a.beacon(Moment(77)).unwrap();
    let positions = Positions {
        ring: 9,
        positions: vec![position(3, 1, 2), position(4, 1, 9)],
    };
    a.acks(&positions).unwrap();
    let there = taken(&mut a);
    let came = [
        Event::Message(VolumeId(3), ask),
        Event::Beacon(Moment(77)),
        Event::Acks(positions),
    ];
    assert_eq!(hand(&mut b, &there), came);
    b.answer(Moment(77)).unwrap();
    b.bye(Reason::Stops);
    assert_eq!(b.want(), Want::Nothing);
    assert_eq!(b.beacon(Moment(1)), Err(NotSent::NotOpen));
    let back = taken(&mut b);
    let came = [
        Event::Answer(Moment(77)),
        Event::Closed(Closed::TheyEnd(Reason::Stops)),
    ];
    assert_eq!(hand(&mut a, &back), came);
    assert_eq!(
        events(&mut b),
        [Event::Closed(Closed::WeEnd(Reason::Stops))]
    );
    assert!(taken(&mut a).is_empty(), "who is left says nothing more");
}
