//! Inputs that reach deep, to start a corpus with.

use super::{RING, connects, opened, taken};
use crate::limits::Cost;
use crate::{
    Forward, Forwarded, ForwardedAnswer, ForwardedCommand, ForwardedEnd, ForwardedOrder,
    ForwardedReset, Guest, Origin, Position, Positions, Purpose, Reason, Records, UnitPart,
    UnitSubject,
};
use journal::{Change, Commit, Kind, Sequence, VolumeId};
use replica::{
    Conversation, CopyId, Epoch, Message, Moment, NodeSet, NodeSlot, Revision, RingSummary,
    RoleRecord,
};
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};

/// Each with the target that it is for, and a first byte that has checksums put right.
#[must_use]
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let purposes = [Purpose::Control, Purpose::Ring(RING), Purpose::Forward];
    let firsts = purposes.map(|purpose| {
        let bytes = taken(&mut connects(purpose));
        ("peer_first", [&[1], bytes.as_slice()].concat())
    });
    let frames = [
        ("peer_frames", [&[0xF7], control().as_slice()].concat()),
        ("peer_frames", [&[0x1E], ring().as_slice()].concat()),
        ("peer_frames", [&[0x9E], forwarding().as_slice()].concat()),
    ];
    firsts.into_iter().chain(frames).collect()
}

fn positions() -> Positions {
    let position = |volume: u64| Position {
        volume: VolumeId(volume),
        epoch: Epoch(1),
        below: Sequence(2),
    };
    Positions {
        ring: RING,
        positions: (3..6).map(position).collect(),
    }
}

fn control() -> Vec<u8> {
    let known = RoleRecord {
        epoch: Epoch(1),
        step: 2,
        owner: NodeSlot(0),
        in_sync: NodeSet::of([NodeSlot(0), NodeSlot(1)]),
        copies: vec![(NodeSlot(0), CopyId(5)), (NodeSlot(1), CopyId(6))],
    };
    let known = (Revision(8), known);
    let ring = RingSummary {
        epochs: vec![(Epoch(1), 0), (Epoch(2), 9)],
        next: 12,
    };
    let messages = [
        Message::Hello {
            promised: Epoch(1),
            known: known.clone(),
            conversation: Conversation { own: 8, heard: 9 },
        },
        Message::Lead {
            known,
            rings: vec![ring.clone(), ring],
            acknowledged: vec![7, 8],
        },
        Message::Refuse { promised: Epoch(4) },
        Message::Follow {
            epoch: Epoch(2),
            next: vec![3, 4],
            is_whole: false,
            base: vec![1, 2],
        },
        Message::Renew {
            epoch: Epoch(2),
            from: vec![3, 4],
        },
        Message::Whole { epoch: Epoch(2) },
        Message::Leaves,
        Message::Less { epoch: Epoch(2) },
        Message::Ask { sent: Moment(5) },
        Message::Grant { sent: Moment(5) },
        Message::Yield { epoch: Epoch(6) },
    ];
    let (mut a, _) = opened(Purpose::Control);
    for message in &messages {
        a.message(VolumeId(1), message).expect("it fits");
    }
    let part = UnitPart {
        subject: UnitSubject::State,
        lived: true,
        epoch: Epoch(3),
        version: 2,
        total: 6,
        at: 2,
        bytes: vec![1, 2, 3],
    };
    a.unit_part(VolumeId(1), &part).expect("it fits");
    a.acks(&positions()).expect("they fit");
    a.beacon(Moment(7)).expect("it fits");
    a.answer(Moment(7)).expect("it fits");
    a.bye(Reason::Stops);
    taken(&mut a)
}

fn records(volume: u64, first: u64, kinds: &[Kind]) -> Records {
    let change = |(sequence, kind): (u64, &Kind)| {
        let change = Change {
            volume: VolumeId(volume),
            sequence: Sequence(sequence),
            range: LbaRange::new(Lba(sequence), BlockCount(1)).expect("a small number"),
            block_size: BlockSize::B512,
            kind: *kind,
            commit: Commit::Later,
        };
        let bytes = change.data_bytes().unwrap_or_default();
        (change, Buf::copy_of(&vec![7; bytes]))
    };
    let origin = Origin {
        volume: VolumeId(volume),
        epoch: Epoch(1),
        of: Epoch(1),
        ring: RING,
        commit: Sequence(0),
    };
    let changes = (first..).zip(kinds).map(change).collect();
    Records::new(origin, changes).expect("they may be sent")
}

fn forwarding() -> Vec<u8> {
    let guest = Guest {
        volume: VolumeId(1),
        initiator: "iqn.x:h".to_owned(),
        isid: [1; 6],
        port: 1025,
    };
    let command = ForwardedCommand {
        guest: guest.clone(),
        read_only: false,
        order: ForwardedOrder::Ordered,
        announced: 4,
        cdb: vec![0x2a; 10],
    };
    let respond = ForwardedAnswer::Respond {
        status: 2,
        sense: vec![1, 2, 3],
    };
    let frames = [
        (Forward::Command(Box::new(command), 4), 2),
        (Forward::Data, 2),
        (Forward::Abort, 0),
        (
            Forward::Reset(Box::new(guest.clone()), ForwardedReset::Target),
            0,
        ),
        (Forward::Close(Box::new(guest), ForwardedEnd::Lost), 0),
        (Forward::Answer(respond, 3), 1),
        (Forward::AnswerData, 2),
        (Forward::Answer(ForwardedAnswer::Silent, 0), 0),
    ];
    let (mut a, _) = opened(Purpose::Forward);
    for (request, (what, bytes)) in (1..).zip(frames) {
        let data = Buf::copy_of(&vec![6; bytes]);
        let frame = Forwarded {
            request,
            what,
            data,
        };
        a.forward(&frame).expect("it may go");
    }
    a.grant(Cost::FRAME_MAX).expect("it fits");
    a.bye(Reason::Stops);
    taken(&mut a)
}

fn ring() -> Vec<u8> {
    let (mut a, _) = opened(Purpose::Ring(RING));
    let frames = [
        records(1, 0, &[Kind::Epoch, Kind::Write, Kind::Zeroes]),
        records(2, 0, &[Kind::Cut]),
        records(1, 2, &[Kind::Zeroes, Kind::Write]),
        records(2, 1, &[Kind::Deallocate, Kind::Anchor]),
    ];
    for records in &frames {
        a.records(records).expect("it may go");
    }
    a.acks(&positions()).expect("they fit");
    a.commits(&positions()).expect("they fit");
    a.grant(Cost::FRAME_MAX).expect("it fits");
    a.bye(Reason::Stops);
    taken(&mut a)
}
