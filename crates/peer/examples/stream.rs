//! What the stream between nodes costs: bytes and nanoseconds for a 4 KiB write.
//!
//! `cargo run --release -p peer --example stream -- [ROUNDS]`: so many records of each size of
//! frame, from one machine to another one in the same thread. Encoding takes data by reference;
//! decoding copies it once, as a socket would, and that is also shown alone.

use journal::{Change, Commit, DataChecksums, Kind, Sequence, VolumeId};
use peer::{
    ClusterId, Connection, ConnectionNumber, Cost, Event, Incarnation, KnownNode, Limits, NodeId,
    Origin, Own, Purpose, Records, RingStream, Taken, Want,
};
use replica::{Epoch, NodeSlot};
use std::hint::black_box;
use std::time::{Duration, Instant};
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange, Pool};

const LUN: VolumeId = VolumeId(7);
const EPOCH: Epoch = Epoch(3);
const BYTES: usize = 4096;

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

/// One side with what lies on its way to the other one.
struct Side {
    connection: Connection,
    stream: RingStream,
    pool: Pool,
    /// What it does with bytes and frames, and what a socket does.
    encode: Duration,
    decode: Duration,
    copy: Duration,
    sent: usize,
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn now() -> Instant {
    Instant::now()
}

impl Side {
    fn new(connection: Connection) -> Self {
        let limits = Limits {
            window: Cost {
                bytes: 16 << 20,
                records: 4096,
            },
            held: Cost {
                bytes: 16 << 20,
                records: 4096,
            },
        };
        Self {
            connection,
            stream: RingStream::new(0, limits),
            pool: Pool::new(64 << 20),
            encode: Duration::ZERO,
            decode: Duration::ZERO,
            copy: Duration::ZERO,
            sent: 0,
        }
    }

    /// Everything that waits goes to the other side; answers what came of it there.
    fn send(&mut self, to: &mut Self) -> Vec<Event> {
        let begun = now();
        self.stream.pump(&mut self.connection);
        let pieces: Vec<&[u8]> = self.connection.transmit().pieces().collect();
        black_box(&pieces);
        self.encode += begun.elapsed();
        let bytes = pieces.concat();
        self.sent += bytes.len();
        self.connection.sent(bytes.len());
        to.receive(&bytes)
    }

    fn receive(&mut self, mut bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        while !bytes.is_empty() {
            let begun = now();
            if let Want::Memory { bytes } = self.connection.want() {
                let memory = self.pool.alloc(bytes).expect("the pool is large enough");
                self.connection.give_memory(memory);
            }
            let copied = now();
            let chunk = self.connection.chunk();
            let n = chunk.len().min(bytes.len());
            chunk[..n].copy_from_slice(&bytes[..n]);
            let copied = copied.elapsed();
            self.connection.filled(n);
            self.copy += copied;
            self.decode += begun.elapsed() - copied;
            bytes = &bytes[n..];
            events.extend(std::iter::from_fn(|| self.connection.poll_event()));
        }
        events
    }
}

fn change(number: u64, data: &Buf) -> (Change, Buf) {
    let change = Change {
        volume: LUN,
        sequence: Sequence(number),
        range: LbaRange::new(Lba(number % 1000 * 8), BlockCount(8)).expect("a small number"),
        block_size: BlockSize::B512,
        kind: Kind::Write,
        commit: Commit::Later,
    };
    (change, data.clone())
}

/// Bytes on a 1500 or 9000 byte network: 40 of TCP/IP and 12 of its time stamps in each packet.
fn on_wire(bytes: usize, mtu: usize) -> usize {
    bytes + bytes.div_ceil(mtu - 52) * 52
}

/// The owner, the other node, and what both spent that belongs to neither connection.
struct Pair {
    a: Side,
    b: Side,
    checksums: Duration,
    data: Buf,
}

impl Pair {
    fn opened() -> Self {
        let (number, purpose) = (ConnectionNumber(1), Purpose::Ring(0));
        let mut a = Side::new(Connection::connects(own(0), known(1), number, purpose));
        let mut b = Side::new(Connection::accepts(own(1), vec![known(0)]));
        for _ in 0..2 {
            let of_b = a.send(&mut b);
            attach(&mut b, &of_b);
            let of_a = b.send(&mut a);
            attach(&mut a, &of_a);
        }
        a.stream.begin(LUN, EPOCH, Sequence(0));
        b.stream.follow(LUN, EPOCH, Sequence(0));
        for side in [&mut a, &mut b] {
            (side.encode, side.decode, side.copy, side.sent) = Default::default();
        }
        let byte = |at: usize| u8::try_from(at * 7 % 251).expect("a small number");
        Self {
            a,
            b,
            checksums: Duration::ZERO,
            data: Buf::copy_of(&(0..BYTES).map(byte).collect::<Vec<u8>>()),
        }
    }

    /// One frame there, and its acknowledgement back: the bytes of both.
    fn frame(&mut self, first: u64, count: u64) -> (usize, usize) {
        let (a, b) = (&mut self.a, &mut self.b);
        let before = (a.sent, b.sent);
        let numbers = first..first + count;
        let changes: Vec<_> = numbers.map(|it| change(it, &self.data)).collect();
        let begun = now();
        let of_batch = DataChecksums::of(&changes);
        self.checksums += begun.elapsed();
        let origin = Origin {
            volume: LUN,
            epoch: EPOCH,
            of: EPOCH,
            ring: 0,
            commit: Sequence(0),
        };
        let begun = now();
        let records = Records::with_checksums(origin, changes, of_batch);
        let pushed = a.stream.push(records.expect("they fit"));
        a.encode += begun.elapsed();
        pushed.expect("it is the next");
        a.stream.commit(LUN, EPOCH, Sequence(first));
        for event in a.send(b) {
            if let Event::Records(records) = event {
                let begun = now();
                let taken = b.stream.records(records);
                b.decode += begun.elapsed();
                assert!(matches!(taken, Taken::New(_)));
            }
        }
        b.stream.stable(LUN, EPOCH, Sequence(first + count));
        for event in b.send(a) {
            if let Event::Acks(acks) = event {
                a.stream.acks(&acks);
            }
        }
        (a.sent - before.0, b.sent - before.1)
    }
}

fn attach(side: &mut Side, events: &[Event]) {
    for event in events {
        if let Event::Opened(opened) = event {
            side.stream.attach(opened).expect("it is the first");
        }
    }
}

fn measure(per_frame: u64, rounds: u64) {
    let mut pair = Pair::opened();
    let frames = rounds / per_frame;
    // The first one has credits with it.
    let mut next = 0;
    let (mut to, mut back) = (usize::MAX, usize::MAX);
    for _ in 0..frames {
        let bytes = pair.frame(next, per_frame);
        next += per_frame;
        (to, back) = (to.min(bytes.0), back.min(bytes.1));
    }
    let Pair {
        a, b, checksums, ..
    } = pair;
    let each = |spent: Duration| spent.as_nanos() as f64 / next as f64;
    let wire = |mtu| (on_wire(to, mtu) + on_wire(back, mtu)) as f64 / per_frame as f64;
    println!(
        "{per_frame} a frame: {to} bytes there and {back} back; {:.0} and {:.0} bytes a record with TCP/IP at 1500 and \
         9000 bytes",
        wire(1500),
        wire(9000)
    );
    println!(
        "    ns a record: owner encodes {:.0} (its batch's checksums {:.0}, where they are not known), decodes {:.0}; the \
         other node decodes and checks {:.0} (copying {:.0} more), encodes {:.0}; {:.0} bytes a record with credits",
        each(a.encode),
        each(checksums),
        each(a.decode),
        each(b.decode),
        each(b.copy),
        each(b.encode),
        (a.sent + b.sent) as f64 / next as f64,
    );
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|it| it.parse().ok());
    for per_frame in [1, 4, 16, 64] {
        measure(per_frame, rounds.unwrap_or(400_000));
    }
}
