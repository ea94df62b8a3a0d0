//! Who is not let in, and what each refusal says.

use super::decoder::crc;
use super::pipe::{connections, hand, opened, taken};
use super::*;
use crate::rules::{Rule, without};
use replica::Moment;

/// What both sides say of a connection that node 0 makes to node 1, as it is changed.
fn ends(of: Own, to: KnownNode, accepts: Own, known: Vec<KnownNode>) -> (Event, Event) {
    let number = ConnectionNumber(1);
    let mut a = Connection::connects(of, to, number, Purpose::Control);
    let mut b = Connection::accepts(accepts, known);
    let there = taken(&mut a);
    let mut at_b = hand(&mut b, &there);
    let back = taken(&mut b);
    let mut at_a = hand(&mut a, &back);
    let there = taken(&mut a);
    at_b.extend(hand(&mut b, &there));
    (at_a.pop().unwrap(), at_b.pop().unwrap())
}

fn refused(refusal: Refusal) -> Event {
    Event::Closed(Closed::Refused(refusal))
}

fn they_end(reason: Reason) -> Event {
    Event::Closed(Closed::TheyEnd(reason))
}

#[test]
fn another_cluster_is_refused_by_both() {
    let theirs = ClusterId([9; 16]);
    let stranger = Own {
        cluster: theirs,
        ..own(0)
    };
    let (at_a, at_b) = ends(stranger, known(1), own(1), vec![known(0)]);
    let ours = CLUSTER;
    assert_eq!(at_b, refused(Refusal::OtherCluster { ours, theirs }));
    let (ours, theirs) = (theirs, ours);
    assert_eq!(at_a, refused(Refusal::OtherCluster { ours, theirs }));
}

#[test]
fn the_same_node_twice_is_refused() {
    // A copy of the disk of node 1 runs as a node that connects with node 1.
    let (at_a, at_b) = ends(own(1), known(1), own(1), vec![known(0)]);
    let node = own(1).node;
    let refusal = refused(Refusal::OwnId { node });
    assert_eq!((at_a, at_b), (refusal.clone(), refusal));
    // Another node that has the same slot.
    let twin = Own {
        node: NodeId([0x77; 16]),
        ..own(1)
    };
    let (_, at_b) = ends(twin, known(1), own(1), vec![known(0)]);
    let (slot, theirs) = (NodeSlot(1), twin.node);
    assert_eq!(at_b, refused(Refusal::OwnSlot { slot, theirs }));
}

#[test]
fn a_node_that_is_not_known_or_has_the_slot_of_another_is_refused() {
    let (at_a, at_b) = ends(own(0), known(1), own(1), vec![known(7)]);
    let (slot, node) = (NodeSlot(0), own(0).node);
    assert_eq!(at_b, refused(Refusal::UnknownNode { slot, node }));
    assert_eq!(at_a, they_end(Reason::UnknownNode));
    let renewed = Own {
        node: NodeId([0x55; 16]),
        ..own(0)
    };
    let (_, at_b) = ends(renewed, known(1), own(1), vec![known(0)]);
    let (theirs, known_id) = (renewed.node, own(0).node);
    let refusal = Refusal::OtherNode {
        slot,
        theirs,
        known: known_id,
    };
    assert_eq!(at_b, refused(refusal));
    // Somebody else answers at the address of node 7.
    let (at_a, at_b) = ends(own(0), known(7), own(1), vec![known(0)]);
    let (slot, node) = (NodeSlot(1), own(1).node);
    assert_eq!(at_a, refused(Refusal::UnknownNode { slot, node }));
    assert_eq!(at_b, they_end(Reason::UnknownNode));
}

#[test]
fn a_level_that_the_program_does_not_know_is_refused() {
    let newer = Own {
        level: 6,
        level_max: 6,
        ..own(0)
    };
    let (at_a, at_b) = ends(newer, known(1), own(1), vec![known(0)]);
    let refusal = Refusal::Level {
        ours_max: 5,
        theirs: 6,
    };
    assert_eq!((at_a, at_b), (they_end(Reason::Level), refused(refusal)));
    // A newer program in a cluster of the old level is none.
    let ready = Own { level: 3, ..newer };
    let (at_a, at_b) = ends(ready, known(1), own(1), vec![known(0)]);
    assert!(matches!((at_a, at_b), (Event::Opened(_), Event::Opened(_))));
}

/// A first frame with other versions.
fn with_versions(mut bytes: Vec<u8>, min: u16, max: u16) -> Vec<u8> {
    bytes[12..14].copy_from_slice(&min.to_le_bytes());
    bytes[14..16].copy_from_slice(&max.to_le_bytes());
    // A later version may say more at the end.
    bytes[100..].fill(0xEE);
    let checksum = crc(&bytes[12..]);
    bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn the_highest_common_version_is_spoken_and_without_one_it_is_refused() {
    for (min, max, common) in [
        (1, 1, true),
        (1, 9, true),
        (0, 1, true),
        (2, 9, false),
        (0, 0, false),
    ] {
        let (mut a, mut b) = connections(1, Purpose::Control);
        let there = with_versions(taken(&mut a), min, max);
        let came = hand(&mut b, &there);
        if common {
            assert!(matches!(came[..], [Event::Opened(it)] if it.version == 1));
            continue;
        }
        let theirs = Versions { min, max };
        let ours = Versions { min: 1, max: 1 };
        assert_eq!(came, [refused(Refusal::Version { ours, theirs })]);
        let back = taken(&mut b);
        assert_eq!(back.len(), FIRST_BYTES + HEADER_BYTES + 8, "and why");
    }
    let versions = |min, max| Versions { min, max };
    assert_eq!(versions(2, 5).common(versions(4, 9)), Some(5));
    assert_eq!(versions(4, 9).common(versions(2, 5)), Some(5));
    assert_eq!(versions(4, 9).common(versions(1, 3)), None);
}

#[test]
fn what_speaks_another_protocol_is_answered_nothing() {
    let (mut a, _) = connections(1, Purpose::Control);
    let first = taken(&mut a);
    let mut damaged = first.clone();
    damaged[60] ^= 4;
    let foreign = [b"GET / HTTP/1.1\r\n".as_slice(), &[b'x'; 200]].concat();
    for (bytes, refusal) in [(foreign, Refusal::NotAPeer), (damaged, Refusal::Damaged)] {
        let (_, mut b) = connections(1, Purpose::Control);
        assert_eq!(hand(&mut b, &bytes), [refused(refusal)]);
        assert!(b.transmit().is_empty());
    }
    let (_, mut b) = connections(1, Purpose::Control);
    b.bye(Reason::Stops);
    assert!(b.transmit().is_empty(), "it has not said who it is");
}

#[test]
fn an_answer_for_another_connection_is_refused() {
    for (purpose, number) in [(Purpose::Ring(3), 1), (Purpose::Control, 2)] {
        let (mut other, mut b) = connections(number, purpose);
        let there = taken(&mut other);
        hand(&mut b, &there);
        let answer = taken(&mut b);
        let (mut a, _) = connections(1, Purpose::Control);
        taken(&mut a);
        assert_eq!(hand(&mut a, &answer), [refused(Refusal::OtherPurpose)]);
    }
    let (mut a, mut b) = connections(1, Purpose::Control);
    let mut first = taken(&mut a);
    first[73] = 3;
    let checksum = crc(&first[12..]);
    first[8..12].copy_from_slice(&checksum.to_le_bytes());
    assert_eq!(hand(&mut b, &first), [refused(Refusal::OtherPurpose)]);
    assert!(b.transmit().is_empty());
}

#[test]
fn nothing_is_said_before_both_know_each_other() {
    let (mut a, mut b) = connections(1, Purpose::Ring(2));
    for of in [&mut a, &mut b] {
        assert_eq!(of.beacon(Moment(1)), Err(NotSent::NotOpen));
        assert_eq!(of.grant(Cost::FRAME_MAX), Err(NotSent::NotOpen));
        assert_eq!(of.records(&records(1, 1, 1, &[1])), Err(NotSent::NotOpen));
        assert!(of.held_bytes() <= FIRST_BYTES);
    }
}

#[test]
fn more_than_was_granted_ends_the_connection_before_it_takes_memory() {
    let overrun = || {
        let (mut a, mut b) = opened(Purpose::Ring(2));
        b.grant(Cost {
            bytes: 1024,
            records: 2,
        })
        .unwrap();
        let credits = taken(&mut b);
        hand(&mut a, &credits);
        assert_eq!(a.records(&records(7, 1, 0, &[3])), Err(NotSent::NoCredit));
        a.records(&records(7, 1, 0, &[2])).unwrap();
        assert_eq!(a.records(&records(7, 1, 1, &[1])), Err(NotSent::NoCredit));
        a.records(&records(7, 1, 1, &[0])).unwrap();
        assert_eq!(a.records(&records(7, 1, 2, &[0])), Err(NotSent::NoCredit));
        without(Rule::SenderStops, || a.records(&records(7, 1, 2, &[1]))).unwrap();
        (taken(&mut a), b)
    };
    let (bytes, mut b) = overrun();
    let mut came = hand(&mut b, &bytes);
    let breach = Breach::Overrun {
        granted: Cost {
            bytes: 1024,
            records: 2,
        },
        came: Cost {
            bytes: 1536,
            records: 3,
        },
    };
    assert_eq!(came.pop(), Some(Event::Closed(Closed::Broken(breach))));
    assert_eq!(came.len(), 2);
    assert!(b.held_bytes() < 512, "no memory for the third");
    let (bytes, mut b) = overrun();
    let came = without(Rule::OverrunEnds, || hand(&mut b, &bytes));
    assert_eq!(came.len(), 3, "without the rule it is given out");
}

#[test]
fn credits_that_shrink_end_the_connection() {
    let (_, mut b) = opened(Purpose::Ring(2));
    let credits = |sequence, bytes: u64| {
        let body = [bytes.to_le_bytes(), 5_u64.to_le_bytes()].concat();
        super::decoder::Frame {
            kind: 5,
            flags: 0,
            sequence,
            body,
            data: Vec::new(),
        }
        .bytes()
    };
    assert_eq!(hand(&mut b, &credits(0, 10)), [Event::Credits]);
    assert_eq!(hand(&mut b, &credits(1, 10)), [Event::Credits]);
    let shrink = Event::Closed(Closed::Broken(Breach::CreditsShrink));
    assert_eq!(hand(&mut b, &credits(2, 9)), [shrink]);
}

#[test]
fn what_waits_for_a_peer_that_does_not_receive_is_bounded() {
    let fill = |most: usize| {
        let (mut a, _) = opened(Purpose::Control);
        let positions = Positions {
            ring: 0,
            positions: vec![position(1, 1, 1); POSITIONS_MAX],
        };
        let mut said = 0;
        while a.acks(&positions).is_ok() && said < most {
            said += 1;
        }
        (a.transmit().bytes(), a.beacon(Moment(1)))
    };
    let (bytes, then) = fill(1_000);
    assert_eq!(then, Err(NotSent::Full));
    assert!((SEND_AHEAD_BYTES..SEND_AHEAD_BYTES + (64 << 10)).contains(&bytes));
    let (bytes, then) = without(Rule::SendAheadIsBounded, || fill(1_000));
    assert!(bytes > 40 << 20 && then.is_ok());
}

#[test]
fn every_refusal_says_what_to_do() {
    let (slot, node, cluster) = (NodeSlot(3), NodeId([7; 16]), CLUSTER);
    let versions = Versions { min: 1, max: 2 };
    let said = [
        Closed::Refused(Refusal::NotAPeer),
        Closed::Refused(Refusal::Damaged),
        Closed::Refused(Refusal::OtherCluster {
            ours: cluster,
            theirs: ClusterId([1; 16]),
        }),
        Closed::Refused(Refusal::OwnSlot { slot, theirs: node }),
        Closed::Refused(Refusal::OwnId { node }),
        Closed::Refused(Refusal::UnknownNode { slot, node }),
        Closed::Refused(Refusal::OtherNode {
            slot,
            theirs: node,
            known: node,
        }),
        Closed::Refused(Refusal::Version {
            ours: versions,
            theirs: Versions { min: 4, max: 4 },
        }),
        Closed::Refused(Refusal::Level {
            ours_max: 4,
            theirs: 5,
        }),
        Closed::Refused(Refusal::OtherPurpose),
        Closed::Broken(Breach::DataDamaged {
            volume: VolumeId(0xAB),
            sequence: Sequence(7),
        }),
        Closed::Broken(Breach::OutOfOrder {
            expected: 4,
            found: 6,
        }),
        Closed::Broken(Breach::UnknownKind(9)),
        Closed::TheyEnd(Reason::SameNode),
        Closed::TheyEnd(Reason::Other(77)),
    ];
    let text = said.map(|it| it.to_string()).join("\n");
    assert_eq!(text, include_str!("refusals.txt").trim_end(), "{text}");
}
