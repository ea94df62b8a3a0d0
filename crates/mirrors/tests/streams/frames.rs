//! Frames of records that wait to be sent, as an owner of a LUN has them.

use journal::{Change, Commit, Kind, Sequence, VolumeId};
use peer::{
    ClusterId, Connection, ConnectionNumber, Cost, Event, Incarnation, KnownNode, Limits, NodeId,
    Origin, Own, Purpose, Records, RingStream,
};
use replica::{Epoch, NodeSlot};
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};

const LUN: VolumeId = VolumeId(7);
const EPOCH: Epoch = Epoch(3);
const BLOCK: usize = 4096;
const FRAME: u64 = 64;

fn own(slot: u8) -> Own {
    Own {
        cluster: ClusterId([1; 16]),
        slot: NodeSlot(slot),
        node: NodeId([slot; 16]),
        incarnation: Incarnation(slot.into()),
        level: 1,
        level_max: 1,
    }
}

fn known(slot: u8) -> KnownNode {
    let Own { slot, node, .. } = own(slot);
    KnownNode { slot, node }
}

fn moved(from: &mut Connection, to: &mut Connection) -> Vec<Event> {
    let bytes: Vec<u8> = from.transmit().pieces().collect::<Vec<_>>().concat();
    from.sent(bytes.len());
    assert_eq!(to.receive(&bytes), bytes.len());
    std::iter::from_fn(|| to.poll_event()).collect()
}

fn stream(events: &[Event]) -> RingStream {
    let cost = Cost {
        bytes: 16 << 20,
        records: 4096,
    };
    let limits = Limits {
        window: cost,
        held: cost,
    };
    let mut stream = RingStream::new(0, limits);
    for event in events {
        if let Event::Opened(opened) = event {
            stream.attach(opened).unwrap();
        }
    }
    stream
}

/// A connection with some MiB that wait, of 4 KiB writes, whose bytes differ by `seed`.
pub(crate) fn waiting(seed: u8) -> Connection {
    let (number, purpose) = (ConnectionNumber(1), Purpose::Ring(0));
    let mut a = Connection::connects(own(0), known(1), number, purpose);
    let mut b = Connection::accepts(own(1), vec![known(0)]);
    let of_b = moved(&mut a, &mut b);
    let of_a = moved(&mut b, &mut a);
    let (mut sends, mut receives) = (stream(&of_a), stream(&of_b));
    receives.follow(LUN, EPOCH, Sequence(0));
    receives.pump(&mut b);
    moved(&mut b, &mut a);
    sends.begin(LUN, EPOCH, Sequence(0));
    for first in (0..8 * FRAME).step_by(usize::try_from(FRAME).unwrap()) {
        let change = |number: u64| {
            let byte = |at: usize| {
                (at * 7 + usize::from(seed))
                    .wrapping_mul(at >> 3)
                    .to_le_bytes()[0]
            };
            let at = usize::try_from(number).unwrap() * BLOCK;
            let data: Vec<u8> = (at..at + BLOCK).map(byte).collect();
            let change = Change {
                volume: LUN,
                sequence: Sequence(number),
                range: LbaRange::new(Lba(number * 8), BlockCount(8)).unwrap(),
                block_size: BlockSize::B512,
                kind: Kind::Write,
                commit: Commit::Later,
            };
            (change, Buf::copy_of(&data))
        };
        let origin = Origin {
            volume: LUN,
            epoch: EPOCH,
            of: EPOCH,
            ring: 0,
            commit: Sequence(0),
        };
        let changes = (first..first + FRAME).map(change).collect();
        sends.push(Records::new(origin, changes).unwrap()).unwrap();
    }
    sends.pump(&mut a);
    assert!(a.transmit().bytes() > 1 << 20, "{}", a.transmit().bytes());
    a
}
