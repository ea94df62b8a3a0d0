//! Entry points for fuzzing, each with an oracle. They take any bytes and panic only if we are
//! wrong.

use crate::first::{First, KnownNode, Own};
use crate::limits::{BODY_BYTES_MAX, Cost, DATA_BYTES_MAX, FIRST_BYTES, HEADER_BYTES};
use crate::{
    ClusterId, Connection, ConnectionNumber, Event, Incarnation, Limits, NodeId, Purpose, Records,
    RingStream, Taken, Want,
};
use formats::{crc32c, seal};
use journal::{Sequence, VolumeId};
use replica::{Epoch, NodeSlot};
use std::collections::BTreeMap;
use units::BufMut;

mod seeds;

pub use seeds::seeds;

const RING: u8 = 2;

fn own(slot: u8) -> Own {
    Own {
        cluster: ClusterId([0xC1; 16]),
        slot: NodeSlot(slot),
        node: NodeId([slot; 16]),
        incarnation: Incarnation(9),
        level: 1,
        level_max: 2,
    }
}

fn known(slot: u8) -> KnownNode {
    let Own { slot, node, .. } = own(slot);
    KnownNode { slot, node }
}

fn accepts() -> Connection {
    Connection::accepts(own(1), vec![known(0)])
}

fn connects(purpose: Purpose) -> Connection {
    Connection::connects(own(0), known(1), ConnectionNumber(1), purpose)
}

fn taken(connection: &mut Connection) -> Vec<u8> {
    let bytes: Vec<u8> = connection.transmit().pieces().flatten().copied().collect();
    connection.sent(bytes.len());
    bytes
}

/// Both know each other; the first one may send anything.
fn opened(purpose: Purpose) -> (Connection, Connection) {
    let (mut a, mut b) = (connects(purpose), accepts());
    let there = taken(&mut a);
    assert_eq!(hand(&mut b, &there, &mut whole).len(), 1);
    let back = taken(&mut b);
    assert_eq!(hand(&mut a, &back, &mut whole).len(), 1);
    if purpose != Purpose::Control {
        let most = Cost {
            bytes: u64::MAX,
            records: u64::MAX,
        };
        assert_eq!(b.grant(most), Ok(()));
        let credits = taken(&mut b);
        assert_eq!(hand(&mut a, &credits, &mut whole), [Event::Credits]);
    }
    (a, b)
}

/// As much as there is.
fn whole() -> usize {
    usize::MAX
}

/// Hands bytes in, in pieces of as many bytes as `piece` says (at least one), until they are used
/// up or the connection is over. What the peer makes us hold is bounded all the time.
fn hand(
    connection: &mut Connection,
    mut bytes: &[u8],
    piece: &mut dyn FnMut() -> usize,
) -> Vec<Event> {
    let mut events = Vec::new();
    while !bytes.is_empty() && connection.want() != Want::Nothing {
        let most = if connection.opened().is_some() || !events.is_empty() {
            BODY_BYTES_MAX.saturating_add(DATA_BYTES_MAX)
        } else {
            FIRST_BYTES
        };
        assert!(connection.held_bytes() <= most, "memory is bounded");
        if let Want::Memory { bytes } = connection.want() {
            connection.give_memory(BufMut::zeroed(bytes));
        }
        let (now, _) = bytes.split_at(piece().clamp(1, bytes.len()));
        let n = connection.receive(now);
        bytes = bytes.get(n..).unwrap_or_default();
        events.extend(std::iter::from_fn(|| connection.poll_event()));
    }
    events
}

/// A first frame is accepted only if it is one that we would have written, but for what version 1
/// does not read. A first byte that is odd has the checksum put right.
///
/// # Panics
/// If not.
pub fn first(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else {
        return;
    };
    let mut bytes = bytes.to_vec();
    if choice & 1 == 1 && bytes.len() >= FIRST_BYTES {
        seal(bytes.get_mut(..FIRST_BYTES).unwrap_or_default());
    }
    let mut b = accepts();
    let events = hand(&mut b, &bytes, &mut whole);
    let read = bytes.get(..FIRST_BYTES).and_then(|it| First::read(it).ok());
    if let Some(Event::Opened(opened)) = events.first() {
        let first = read.expect("what is accepted is understood");
        let again = first.write();
        let (there, here) = (bytes.get(12..75), again.get(12..75));
        assert_eq!(there, here, "accepted is what we would have written");
        assert_eq!(opened.node, known(0).node, "nobody else is let in");
        assert_eq!(first.own.cluster, own(0).cluster, "nor another cluster");
    }
    let answer = taken(&mut b);
    assert!(answer.len() <= FIRST_BYTES.saturating_add(64));
}

/// What the first byte of an input says that its connection is for.
const fn purpose_of(choice: u8) -> Purpose {
    match (choice & 1, choice & 0x80) {
        (1, _) => Purpose::Control,
        (_, 0) => Purpose::Ring(RING),
        (_, _) => Purpose::Forward,
    }
}

/// Frames of any kind and contents come, by the first byte on a connection for control (bit 0),
/// forwarding (bit 7) or a ring, with their checksums put right or not (bit 1), in pieces (bits 2
/// to 6).
///
/// What is given out is what the same frames would say if we had sent it, whatever the pieces are;
/// and a stream of records is continued without a gap and without repetition.
///
/// # Panics
/// If not.
pub fn frames(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else {
        return;
    };
    let purpose = purpose_of(*choice);
    let bytes = if choice & 2 == 2 {
        put_right(bytes)
    } else {
        bytes.to_vec()
    };
    let (mut says, mut b) = opened(purpose);
    let events = hand(&mut b, &bytes, &mut whole);
    let size = usize::from(choice >> 2 & 31);
    let mut in_pieces = opened(purpose).1;
    let again = hand(&mut in_pieces, &bytes, &mut || size);
    assert_eq!(events, again, "pieces make no difference");
    let mut sent = bytes.as_slice();
    for event in &events {
        sent = after_ignored(&mut says, sent);
        let Some(frame) = said_again(&mut says, event) else {
            sent = skip(sent);
            continue;
        };
        assert_eq!(
            sent.get(..frame.len()),
            Some(&frame[..]),
            "{event:?} is what it says"
        );
        sent = sent.get(frame.len()..).unwrap_or_default();
    }
    follow(events);
}

/// The same, as we would have sent it; `None` for what says nothing.
fn said_again(says: &mut Connection, event: &Event) -> Option<Vec<u8>> {
    let done = match event {
        Event::Message(volume, message) => says.message(*volume, message),
        Event::Unit(volume, part) => says.unit_part(*volume, part),
        Event::Records(records) => says.records(records),
        Event::Forward(forwarded) => says.forward(forwarded),
        // A frame may have more than we would send.
        Event::Acks(it) if it.positions.len() <= crate::POSITIONS_MAX => says.acks(it),
        Event::Commits(it) if it.positions.len() <= crate::POSITIONS_MAX => says.commits(it),
        Event::Beacon(moment) => says.beacon(*moment),
        Event::Answer(moment) => says.answer(*moment),
        Event::Acks(_)
        | Event::Commits(_)
        | Event::Opened(_)
        | Event::Credits
        | Event::Closed(_) => {
            says.skip_sequence();
            return None;
        }
    };
    assert_eq!(done, Ok(()), "what came may be sent");
    Some(taken(says))
}

/// What comes after frames of kinds that are ignored.
fn after_ignored<'a>(says: &mut Connection, mut frames: &'a [u8]) -> &'a [u8] {
    while frames.first().is_some_and(|kind| !(1..=10).contains(kind)) {
        // One that may not be ignored has ended the connection.
        if frames.get(1) != Some(&1) {
            break;
        }
        says.skip_sequence();
        frames = skip(frames);
    }
    frames
}

/// What comes after the first frame of these.
fn skip(frames: &[u8]) -> &[u8] {
    let (body, data) = lengths(frames);
    let length = HEADER_BYTES.saturating_add(body).saturating_add(data);
    frames.get(length..).unwrap_or_default()
}

fn lengths(frame: &[u8]) -> (usize, usize) {
    let number = |at: usize| {
        let bytes = frame.get(at..)?.first_chunk::<4>()?;
        usize::try_from(u32::from_le_bytes(*bytes)).ok()
    };
    (number(4).unwrap_or(0), number(8).unwrap_or(0))
}

/// Frames whose lengths fit what is there, whose numbers are in order, and whose checksums are
/// right, those of the data, too.
fn put_right(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    let mut sequence = 0_u32;
    while let Some((header, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
        let (body, data) = lengths(header);
        let body = body.min(after.len());
        let (body, after) = after.split_at(body);
        let (data, after) = after.split_at(data.min(after.len()));
        rest = after;
        let mut body = body.to_vec();
        if header.first() == Some(&2) {
            check_records(&mut body, data);
        }
        if header.first() == Some(&10)
            && let Some(place) = body.get_mut(12..16)
        {
            place.copy_from_slice(&crc32c(data).to_le_bytes());
        }
        let mut frame = Vec::with_capacity(HEADER_BYTES);
        frame.extend(header.iter().take(2));
        frame.extend([0, 0]);
        let length = |of: &[u8]| u32::try_from(of.len()).unwrap_or(u32::MAX).to_le_bytes();
        frame.extend(length(&body));
        frame.extend(length(data));
        frame.extend(crc32c(&body).to_le_bytes());
        frame.extend(sequence.to_le_bytes());
        frame.extend(crc32c(&frame).to_le_bytes());
        sequence = sequence.wrapping_add(1);
        out.extend(frame);
        out.extend(body);
        out.extend(data);
    }
    out
}

/// Writes the checksums of a frame's data into the records that it belongs to.
fn check_records(body: &mut [u8], mut data: &[u8]) {
    let records = body.get_mut(48..).unwrap_or_default();
    for record in records.chunks_exact_mut(20) {
        let is_write = record.get(12) == Some(&1);
        let shift = record.get(13).copied().unwrap_or(0);
        let blocks = record.get(8..).and_then(|it| it.first_chunk::<4>());
        let blocks = u64::from(blocks.map_or(0, |it| u32::from_le_bytes(*it)));
        let bytes = blocks.checked_shl(shift.into()).unwrap_or(0);
        let bytes = usize::try_from(bytes).unwrap_or(0).min(data.len());
        let (own, after) = data.split_at(if is_write { bytes } else { 0 });
        data = after;
        if let Some(place) = record.get_mut(16..20) {
            place.copy_from_slice(&crc32c(own).to_le_bytes());
        }
    }
}

/// A stream that follows the LUNs 0 to 3 in epoch 1 gives out their changes in order.
fn follow(events: Vec<Event>) {
    let limits = Limits {
        window: Cost::FRAME_MAX,
        held: Cost::FRAME_MAX,
    };
    let mut stream = RingStream::new(RING, limits);
    let mut next: BTreeMap<u64, u64> = (0..4).map(|volume| (volume, 0)).collect();
    for volume in next.keys() {
        stream.follow(VolumeId(*volume), Epoch(1), Sequence(0));
        stream.begin(VolumeId(volume.wrapping_add(4)), Epoch(1), Sequence(0));
    }
    let mut new = |records: Records| {
        let volume = records.origin().volume.0;
        let next = next.get_mut(&volume).expect("nothing else is followed");
        assert_eq!(records.origin().epoch, Epoch(1), "in no other epoch");
        for (change, _) in records.changes() {
            assert_eq!(change.sequence.0, *next, "each once, in order");
            *next = next.wrapping_add(1);
        }
    };
    for event in events {
        match event {
            Event::Records(records) => {
                if let Taken::New(records) = stream.records(records) {
                    new(records);
                }
            }
            Event::Acks(positions) => stream.acks(&positions),
            Event::Opened(_)
            | Event::Message(..)
            | Event::Unit(..)
            | Event::Forward(_)
            | Event::Commits(_)
            | Event::Credits
            | Event::Beacon(_)
            | Event::Answer(_)
            | Event::Closed(_) => {}
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_seeds_reach_every_kind_of_frame() {
        let mut kinds = std::collections::BTreeSet::new();
        for (name, bytes) in seeds() {
            if name == "peer_first" {
                first(&bytes);
                continue;
            }
            frames(&bytes);
            let (choice, bytes) = bytes.split_first().unwrap();
            let purpose = purpose_of(*choice);
            let events = hand(&mut opened(purpose).1, &put_right(bytes), &mut whole);
            kinds.extend(events.iter().map(|it| {
                let name = format!("{it:?}");
                name.split('(').next().unwrap().to_owned()
            }));
        }
        let wanted = [
            "Acks", "Answer", "Beacon", "Closed", "Commits", "Credits", "Forward", "Message",
            "Records", "Unit",
        ];
        assert!(kinds.iter().eq(wanted.iter()), "{kinds:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            first(&bytes);
            frames(&bytes);
        }

        #[test]
        fn seeds_with_some_bytes_changed_keep_every_promise(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            mode in any::<u8>(),
        ) {
            for (name, mut bytes) in seeds() {
                for (at, value) in &changes {
                    let at = at.index(bytes.len());
                    bytes[at] = *value;
                }
                if name == "peer_first" {
                    first(&bytes);
                } else {
                    bytes[0] = bytes[0] & 0x81 | mode & !0x81;
                    frames(&bytes);
                }
            }
        }
    }
}
