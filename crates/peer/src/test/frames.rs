//! Every frame against the second implementation, in both directions.

use super::decoder::{Frame, crc, frames, number, said};
use super::pipe::{connections, hand, opened, taken};
use super::*;
use proptest::prelude::*;
use replica::{Conversation, CopyId, Message, Moment, NodeSet, Revision, RingSummary, RoleRecord};

/// What a side says, decoded; and what the other one makes of the same bytes.
fn sent_and_heard(purpose: Purpose, say: impl FnOnce(&mut Connection)) -> (Vec<Frame>, Vec<Event>) {
    let (mut a, mut b) = opened(purpose);
    if purpose == Purpose::Ring(2) {
        b.grant(Cost::FRAME_MAX).unwrap();
        let credits = taken(&mut b);
        assert_eq!(hand(&mut a, &credits), [Event::Credits]);
    }
    say(&mut a);
    let bytes = taken(&mut a);
    let decoded = frames(&bytes);
    let again: Vec<u8> = decoded.iter().flat_map(Frame::bytes).collect();
    assert_eq!(again, bytes, "the document says every byte");
    for (at, frame) in (0..).zip(&decoded) {
        assert_eq!((frame.sequence, frame.flags), (at, 0));
    }
    (decoded, hand(&mut b, &bytes))
}

fn one(purpose: Purpose, say: impl FnOnce(&mut Connection)) -> (String, Event) {
    let (decoded, mut events) = sent_and_heard(purpose, say);
    assert_eq!((decoded.len(), events.len()), (1, 1));
    (said(&decoded[0]), events.remove(0))
}

#[test]
fn the_first_frame_has_every_byte_where_the_document_has_it() {
    let purposes = [(Purpose::Control, 0, 0), (Purpose::Ring(200), 1, 200)];
    for (purpose, code, ring) in purposes {
        let (mut a, mut b) = connections(0x0102_0304_0506_0708, purpose);
        let there = taken(&mut a);
        hand(&mut b, &there);
        let back = taken(&mut b);
        for (bytes, slot) in [(&there, 0), (&back, 1)] {
            assert_eq!((bytes.len(), &bytes[..8]), (128, &b"CWSTREAM"[..]));
            assert_eq!(number(bytes, 8, 4), crc(&bytes[12..]).into());
            assert_eq!((number(bytes, 12, 2), number(bytes, 14, 2)), (1, 1));
            assert_eq!(bytes[16..32], [0xC1; 16]);
            assert_eq!(bytes[32..48], [0x10 + slot; 16]);
            assert_eq!(number(bytes, 48, 8), 100 + u64::from(slot));
            assert_eq!(number(bytes, 56, 8), 0x0102_0304_0506_0708);
            assert_eq!((number(bytes, 64, 4), number(bytes, 68, 4)), (3, 5));
            assert_eq!(bytes[72..75], [slot, code, ring]);
            assert_eq!(bytes[75..], [0; 53]);
        }
    }
}

#[test]
fn frames_of_one_moment_reason_or_credit_are_what_the_document_says() {
    let (text, event) = one(Purpose::Control, |a| {
        a.beacon(Moment(7_000_000_000)).unwrap();
    });
    assert_eq!(
        (text.as_str(), event),
        ("beacon 7000000000", Event::Beacon(Moment(7_000_000_000)))
    );
    let (text, event) = one(Purpose::Ring(2), |a| a.answer(Moment(9)).unwrap());
    assert_eq!(
        (text.as_str(), event),
        ("answer 9", Event::Answer(Moment(9)))
    );
    let more = Cost {
        bytes: 1 << 40,
        records: 77,
    };
    let (text, event) = one(Purpose::Ring(2), |a| a.grant(more).unwrap());
    assert_eq!(
        (text.as_str(), event),
        ("credits 1099511627776 77", Event::Credits)
    );
    for code in 0..20 {
        let known = [
            Reason::Stops,
            Reason::Replaced,
            Reason::OtherCluster,
            Reason::SameNode,
            Reason::UnknownNode,
            Reason::Version,
            Reason::Level,
            Reason::OtherPurpose,
            Reason::Damaged,
            Reason::OutOfOrder,
            Reason::UnknownKind,
            Reason::Malformed,
            Reason::Overrun,
        ];
        let place = usize::from(code).checked_sub(1);
        let reason = place.and_then(|at| known.get(at).copied());
        let reason = reason.unwrap_or(Reason::Other(code));
        let (text, event) = one(Purpose::Control, |a| a.bye(reason));
        assert_eq!(text, format!("bye {code}"));
        assert_eq!(event, Event::Closed(Closed::TheyEnd(reason)));
        assert!(!reason.to_string().is_empty());
    }
}

#[test]
fn parts_of_what_is_said_of_a_unit_are_what_the_document_says() {
    let subjects = [
        (UnitSubject::Ports, "ports"),
        (UnitSubject::State, "state"),
        (UnitSubject::Stable, "stable"),
        (UnitSubject::Lived, "lived"),
        (UnitSubject::Compare, "compare"),
        (UnitSubject::Compared, "compared"),
    ];
    for (subject, name) in subjects {
        let part = UnitPart {
            subject,
            lived: true,
            epoch: Epoch(7),
            version: 11,
            total: 9,
            at: 4,
            bytes: vec![1, 2, 3],
        };
        let (text, event) = one(Purpose::Control, |a| {
            a.unit_part(VolumeId(5), &part).unwrap();
        });
        let wanted = format!("{name} of 5 lived 1 in 7 as 11: 3 bytes at 4 of 9");
        assert_eq!(text, wanted);
        assert_eq!(event, Event::Unit(VolumeId(5), part));
    }
}

#[test]
fn positions_are_what_the_document_says() {
    for count in [0, 1, 3, 2048] {
        let positions = (0..count).map(|at| position(1 << 60 | at, at + 5, at * at));
        let positions = Positions {
            ring: 2,
            positions: positions.collect(),
        };
        let each = |at: u64| format!(" {}:{}:{}", 1 << 60 | at, at + 5, at * at);
        let wanted = format!("ring 2{}", (0..count).map(each).collect::<String>());
        let (text, event) = one(Purpose::Ring(2), |a| a.acks(&positions).unwrap());
        assert_eq!(text, format!("acks {wanted}"));
        assert_eq!(event, Event::Acks(positions.clone()));
        let (text, event) = one(Purpose::Control, |a| a.commits(&positions).unwrap());
        assert_eq!(text, format!("commits {wanted}"));
        assert_eq!(event, Event::Commits(positions));
    }
}

#[test]
fn records_are_what_the_document_says() {
    let mut all: Vec<_> = (40..)
        .zip([8, 1, 0, 16])
        .map(|(at, blocks)| change(9, at, blocks))
        .collect();
    all[1].0.kind = Kind::WriteAround;
    let large = LbaRange::new(Lba(1 << 50), BlockCount(u32::MAX.into())).unwrap();
    for (number, kind) in [(44, Kind::Deallocate), (45, Kind::Anchor), (46, Kind::Cut)] {
        let (mut change, data) = change(9, number, 0);
        (change.kind, change.range, change.block_size) = (kind, large, BlockSize::B4096);
        all.push((change, data));
    }
    let (mut epoch, data) = change(9, 47, 0);
    (epoch.kind, epoch.range) = (
        Kind::RelocatedEpoch,
        LbaRange::new(Lba(u64::MAX), BlockCount(0)).unwrap(),
    );
    all.push((epoch, data));
    let origin = Origin {
        volume: VolumeId(9),
        epoch: Epoch(6),
        of: Epoch(5),
        ring: 2,
        commit: Sequence(39),
    };
    let records = Records::new(origin, all.clone()).unwrap();
    let (text, event) = one(Purpose::Ring(2), |a| a.records(&records).unwrap());
    let wanted = "records of 9:6 numbered in 5 from 40 committed 39 ring 2 [1 320+8 of 2^9, 4096 bytes] \
        [1 328+1 of 2^9, 512 bytes] [2 336+1 of 2^9, 0 bytes] [1 344+16 of 2^9, 8192 bytes] \
        [3 1125899906842624+4294967295 of 2^12, 0 bytes] [4 1125899906842624+4294967295 of 2^12, 0 bytes] \
        [8 1125899906842624+4294967295 of 2^12, 0 bytes] [10 18446744073709551615+0 of 2^9, 0 bytes]";
    assert_eq!(text, wanted);
    // What others have no use for in that form they get in theirs.
    (all[1].0.kind, all[7].0.kind) = (Kind::Write, Kind::Epoch);
    let Event::Records(came) = event else {
        panic!("{event:?}");
    };
    assert_eq!(came.origin(), origin);
    assert_eq!(came.checksums(), &journal::DataChecksums::of(&all));
    assert_eq!(came.into_changes().0, all);
}

#[test]
fn a_frame_has_as_many_records_and_bytes_as_a_batch() {
    let most = records(3, 1, 0, &[16; 128]);
    assert_eq!(most.cost(), Cost::FRAME_MAX);
    for records in [most, records(3, 1, 0, &[2048])] {
        let (_, event) = one(Purpose::Ring(2), |a| a.records(&records).unwrap());
        assert_eq!(event, Event::Records(records));
    }
    let of = |changes| Records::new(origin(3, 1, 2), changes);
    let several = |sizes: &[u64]| -> Vec<_> {
        let changes = (0..).zip(sizes);
        changes.map(|(at, blocks)| change(3, at, *blocks)).collect()
    };
    assert_eq!(of(several(&[0; 129])), Err(Unsendable::Size));
    assert_eq!(of(several(&[2048, 1])), Err(Unsendable::Size));
    assert_eq!(of(Vec::new()), Err(Unsendable::Size));
    let parts = Records::several(
        origin(3, 1, 2),
        several(&[[2048, 1, 2047, 0].as_slice(), &[0; 200]].concat()),
    );
    let parts: Vec<_> = parts
        .unwrap()
        .iter()
        .map(|it| (it.first().0, it.next().0))
        .collect();
    assert_eq!(parts, [(0, 1), (1, 129), (129, 204)]);
}

#[test]
fn what_others_cannot_use_is_not_sent() {
    let of = |changes| Records::new(origin(3, 1, 2), changes).unwrap_err();
    let with = |kind| {
        let (mut change, data) = change(3, 0, 0);
        change.kind = kind;
        (change, data)
    };
    for kind in [Kind::WriteAround, Kind::Lost, Kind::Gone, Kind::Touched] {
        assert_eq!(of(vec![with(kind)]), Unsendable::Kind(kind));
    }
    assert_eq!(of(vec![with(Kind::Write)]), Unsendable::Data, "without any");
    let (change_0, data) = change(3, 0, 8);
    assert_eq!(of(vec![(change_0, data.slice(0..512))]), Unsendable::Data);
    assert_eq!(
        of(vec![change(3, 0, 0), change(3, 2, 0)]),
        Unsendable::Numbers
    );
    assert_eq!(of(vec![change(4, 0, 0)]), Unsendable::Numbers);
    let (mut last, data) = change(3, 0, 0);
    last.sequence = Sequence(u64::MAX);
    assert_eq!(of(vec![(last, data)]), Unsendable::Numbers);
    let far = LbaRange::new(Lba(u64::MAX / 8), BlockCount(1)).unwrap();
    let (mut change, data) = change(3, 0, 0);
    (change.range, change.block_size) = (far, BlockSize::B4096);
    assert_eq!(of(vec![(change, data)]), Unsendable::Data);
}

fn known_record() -> impl Strategy<Value = (Revision, RoleRecord)> {
    let copies = proptest::collection::vec((0..64_u8, any::<u128>()), 0..5);
    let numbers = (any::<u64>(), any::<u64>(), any::<u32>());
    (numbers, 0..64_u8, any::<u64>(), copies).prop_map(
        |((revision, epoch, step), owner, in_sync, copies)| {
            let in_sync = (0..64)
                .filter(|slot| in_sync >> slot & 1 == 1)
                .map(NodeSlot);
            let record = RoleRecord {
                epoch: Epoch(epoch),
                step,
                owner: NodeSlot(owner),
                in_sync: NodeSet::of(in_sync),
                copies: copies
                    .into_iter()
                    .map(|(slot, id)| (NodeSlot(slot), CopyId(id)))
                    .collect(),
            };
            (Revision(revision), record)
        },
    )
}

/// A number for each ring.
fn numbers() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec(any::<u64>(), 0..20)
}

fn any_message() -> impl Strategy<Value = Message> {
    let ring = (
        any::<u64>(),
        proptest::collection::vec((any::<u64>(), any::<u64>()), 0..4),
    );
    let ring = ring.prop_map(|(next, epochs)| RingSummary {
        epochs: epochs
            .into_iter()
            .map(|(epoch, first)| (Epoch(epoch), first))
            .collect(),
        next,
    });
    let rings = proptest::collection::vec(ring, 0..5);
    prop_oneof![
        (any::<[u64; 3]>(), known_record()).prop_map(|([promised, own, heard], known)| {
            Message::Hello {
                promised: Epoch(promised),
                known,
                conversation: Conversation { own, heard },
            }
        }),
        (known_record(), rings, numbers()).prop_map(|(known, rings, acknowledged)| {
            Message::Lead {
                known,
                rings,
                acknowledged,
            }
        }),
        any::<u64>().prop_map(|it| Message::Refuse {
            promised: Epoch(it)
        }),
        (any::<u64>(), numbers(), any::<bool>(), numbers()).prop_map(
            |(epoch, next, is_whole, base)| Message::Follow {
                epoch: Epoch(epoch),
                next,
                is_whole,
                base,
            }
        ),
        (any::<u64>(), numbers()).prop_map(|(epoch, from)| Message::Renew {
            epoch: Epoch(epoch),
            from
        }),
        any::<u64>().prop_map(|it| Message::Whole { epoch: Epoch(it) }),
        Just(Message::Leaves),
        any::<u64>().prop_map(|it| Message::Less { epoch: Epoch(it) }),
        any::<u64>().prop_map(|it| Message::Ask { sent: Moment(it) }),
        any::<u64>().prop_map(|it| Message::Grant { sent: Moment(it) }),
        any::<u64>().prop_map(|it| Message::Yield { epoch: Epoch(it) }),
    ]
}

/// A message as the second implementation puts it.
fn in_words(message: &Message) -> String {
    let record = |(revision, it): &(Revision, RoleRecord)| {
        let in_sync: u64 = it.in_sync.iter().map(|slot| 1 << slot.0).sum();
        let copies = it.copies.iter().map(|(slot, id)| {
            let (high, low) = (id.0 >> 64, id.0 & u128::from(u64::MAX));
            format!(" copy {}={high:x}:{low:x}", slot.0)
        });
        let (copies, owner) = (copies.collect::<String>(), it.owner.0);
        let (revision, epoch, step) = (revision.0, it.epoch.0, it.step);
        format!("({revision}) {epoch}.{step} owner {owner} in sync {in_sync:b}{copies}")
    };
    match message {
        Message::Hello {
            promised,
            known,
            conversation: Conversation { own, heard },
        } => format!("hello {} in {own}/{heard} {}", promised.0, record(known)),
        Message::Lead {
            known,
            rings,
            acknowledged,
        } => {
            let had = acknowledged.iter().map(|it| format!(" {it}"));
            let had = had.collect::<String>();
            let rings = rings.iter().map(|ring| {
                let epochs = ring
                    .epochs
                    .iter()
                    .map(|(epoch, at)| format!(" {}@{at}", epoch.0));
                format!(" ring to {}{}", ring.next, epochs.collect::<String>())
            });
            let rings = rings.collect::<String>();
            format!("lead {}{rings} has{had}", record(known))
        }
        Message::Refuse { promised } => format!("refuse {}", promised.0),
        Message::Follow {
            epoch,
            next,
            is_whole,
            base,
        } => {
            let next = next.iter().map(|it| format!(" {it}"));
            let whole = if *is_whole { " whole" } else { "" };
            let base = base.iter().map(|it| format!(" {it}"));
            let (next, base) = (next.collect::<String>(), base.collect::<String>());
            format!("follow {}{next}{whole} had{base}", epoch.0)
        }
        Message::Renew { epoch, from } => {
            let from = from.iter().map(|it| format!(" {it}"));
            format!("renew {}{}", epoch.0, from.collect::<String>())
        }
        Message::Whole { epoch } => format!("whole {}", epoch.0),
        Message::Less { epoch } => format!("less {}", epoch.0),
        Message::Leaves => "leaves".to_owned(),
        Message::Ask { sent } => format!("ask {}", sent.0),
        Message::Grant { sent } => format!("grant {}", sent.0),
        Message::Yield { epoch } => format!("yield {}", epoch.0),
        Message::Beacon { .. }
        | Message::Answer { .. }
        | Message::Append { .. }
        | Message::Commit { .. }
        | Message::Ack { .. } => panic!("they have frames of their own"),
    }
}

#[test]
fn what_has_a_frame_of_its_own_or_fits_none_is_refused_here() {
    let (mut a, _) = opened(Purpose::Control);
    let own = [
        Message::Beacon { sent: Moment(1) },
        Message::Answer { sent: Moment(1) },
        Message::Append {
            epoch: Epoch(1),
            ring: 0,
            number: 1,
            of: Epoch(1),
        },
        Message::Commit {
            epoch: Epoch(1),
            ring: 0,
            commit: 1,
        },
        Message::Ack {
            epoch: Epoch(1),
            ring: 0,
            stable: 1,
        },
    ];
    for message in own {
        assert_eq!(a.message(VolumeId(1), &message), Err(NotSent::OwnFrame));
    }
    let long = Message::Follow {
        epoch: Epoch(1),
        next: vec![0; 9_000],
        is_whole: true,
        base: Vec::new(),
    };
    assert_eq!(a.message(VolumeId(1), &long), Err(NotSent::TooLong));
    let many = Positions {
        ring: 0,
        positions: vec![position(1, 1, 1); POSITIONS_MAX + 1],
    };
    assert_eq!(a.acks(&many), Err(NotSent::TooLong));
    let one = records(3, 1, 0, &[1]);
    assert_eq!(a.records(&one), Err(NotSent::NotHere));
    assert_eq!(a.grant(Cost::FRAME_MAX), Err(NotSent::NotHere));
    assert!(a.transmit().is_empty(), "nothing of it is on its way");
    let (mut ring, _) = opened(Purpose::Ring(3));
    assert_eq!(ring.records(&one), Err(NotSent::NotHere), "of another ring");
    let ask = Message::Ask { sent: Moment(1) };
    assert_eq!(ring.message(VolumeId(1), &ask), Err(NotSent::NotHere));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn messages_are_what_the_document_says(volume in any::<u64>(), message in any_message()) {
        let (text, event) = one(Purpose::Control, |a| a.message(VolumeId(volume), &message).unwrap());
        prop_assert_eq!(text, format!("of {volume}: {}", in_words(&message)));
        prop_assert_eq!(event, Event::Message(VolumeId(volume), message));
    }
}
