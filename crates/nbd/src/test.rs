//! The export against a client of its own, and against clients that send anything.

use crate::*;
use backends::MemoryVolume;
use env::real::{Cores, Driver, Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId, LocalFuture};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, BlockSize};
use volume::{Fences, Volume};

const SIZE: u64 = 1 << 20;

fn memory() -> Arc<dyn Volume> {
    MemoryVolume::new(BlockSize::B512, BlockCount(SIZE / 512), 3, Fences::new(1))
}

fn machine() -> (Machine, Vec<u8>) {
    let mut out = Vec::new();
    let machine = Machine::new(Export::new(memory().shape(), "a test", false), &mut out);
    (machine, out)
}

fn option(kind: u32, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap();
    [
        b"IHAVEOPT",
        &kind.to_be_bytes()[..],
        &length.to_be_bytes(),
        data,
    ]
    .concat()
}

fn named(name: &str, rest: &[u8]) -> Vec<u8> {
    let length = u32::try_from(name.len()).unwrap();
    [&length.to_be_bytes()[..], name.as_bytes(), rest].concat()
}

fn request(flags: u16, kind: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    [
        &0x2560_9513_u32.to_be_bytes()[..],
        &flags.to_be_bytes(),
        &kind.to_be_bytes(),
        &cookie.to_be_bytes(),
        &offset.to_be_bytes(),
        &length.to_be_bytes(),
    ]
    .concat()
}

/// Feeds a machine; answers its steps.
fn feed(machine: &mut Machine, bytes: &[u8], out: &mut Vec<u8>) -> Result<Vec<Step>, Violation> {
    let (mut at, mut steps) = (0, Vec::new());
    loop {
        let step = machine.step(&bytes[at..], out)?;
        steps.push(step);
        match step {
            Step::More => return Ok(steps),
            Step::Took(used) | Step::Request(used, _) => at += used,
            Step::Skip(used, length) => at += used + usize::try_from(length).unwrap(),
            Step::Left(_) => return Ok(steps),
        }
    }
}

/// The kinds of option replies in an answer, with their data.
fn option_replies(mut bytes: &[u8]) -> Vec<(u32, u32, Vec<u8>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        assert_eq!(bytes[..8], 0x0003_e889_0455_65a9_u64.to_be_bytes());
        let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        let end = 20 + usize::try_from(number(16)).unwrap();
        all.push((number(8), number(12), bytes[20..end].to_vec()));
        bytes = &bytes[end..];
    }
    all
}

#[test]
fn a_negotiation_reports_what_the_export_is() {
    let (mut machine, greeting) = machine();
    assert_eq!(greeting, b"NBDMAGICIHAVEOPT\x00\x03");
    let mut out = Vec::new();
    let context = [&1_u32.to_be_bytes()[..], &named("base:allocation", &[])].concat();
    let talk = [
        3_u32.to_be_bytes().to_vec(),
        option(8, &[]),
        option(3, &[]),
        option(10, &named("", &context)),
        option(99, b"what"),
        option(6, &named("other", &[0, 0])),
        option(7, &named("", &[0, 1, 0, 3])),
    ]
    .concat();
    let steps = feed(&mut machine, &talk, &mut out).unwrap();
    assert_eq!(steps.last(), Some(&Step::More));
    let replies = option_replies(&out);
    let kinds: Vec<(u32, u32)> = replies
        .iter()
        .map(|(option, kind, _)| (*option, *kind))
        .collect();
    let (unsupported, unknown) = ((1 << 31) + 1, (1 << 31) + 6);
    assert_eq!(
        kinds,
        [
            (8, 1),
            (3, 2),
            (3, 1),
            (10, 4),
            (10, 1),
            (99, unsupported),
            (6, unknown),
            (7, 3),
            (7, 3),
            (7, 1)
        ]
    );
    assert_eq!(replies[1].2, b"\0\0\0\0a test");
    assert_eq!(replies[3].2, b"\0\0\0\x01base:allocation");
    // Size; flags: has flags, flush, FUA, trim, write zeroes, DF, several connections, fast zeroes.
    let info = [
        &[0, 0][..],
        &SIZE.to_be_bytes(),
        &0b1001_1110_1101_u16.to_be_bytes(),
    ]
    .concat();
    assert_eq!(replies[7].2, info);
    let sizes = [512_u32, 4096, 32 << 20].map(u32::to_be_bytes).concat();
    assert_eq!(replies[8].2[2..], sizes);
}

#[test]
fn the_old_style_of_choosing_an_export_works_too() {
    let (mut machine, _) = machine();
    let mut out = Vec::new();
    let talk = [1_u32.to_be_bytes().to_vec(), option(1, &[])].concat();
    feed(&mut machine, &talk, &mut out).unwrap();
    assert_eq!(out.len(), 8 + 2 + 124);
    assert_eq!(out[..8], SIZE.to_be_bytes());
    // Without structured replies a refusal is a simple one.
    out.clear();
    feed(&mut machine, &request(0, 0, 7, SIZE, 512), &mut out).unwrap();
    assert_eq!(
        out,
        [
            &[0x67, 0x44, 0x66, 0x98, 0, 0, 0, 22][..],
            &7_u64.to_be_bytes()
        ]
        .concat()
    );
}

#[test]
fn requests_that_cannot_be_done_are_refused_and_the_connection_goes_on() {
    let (mut machine, _) = machine();
    let mut out = Vec::new();
    let talk = [
        3_u32.to_be_bytes().to_vec(),
        option(8, &[]),
        option(7, &named("", &[0, 0])),
    ]
    .concat();
    feed(&mut machine, &talk, &mut out).unwrap();
    for (what, bytes, error) in [
        ("over the end", request(0, 0, 1, SIZE - 512, 1024), 22),
        ("wraps", request(0, 0, 1, u64::MAX - 511, 512), 22),
        ("half a block", request(0, 0, 1, 0, 100), 22),
        ("nothing", request(0, 0, 1, 512, 0), 22),
        ("too much", request(0, 0, 1, 0, 33 << 20), 22),
        ("no context", request(0, 7, 1, 0, 512), 22),
        ("unknown flag", request(1 << 9, 0, 1, 0, 512), 22),
        ("unknown command", request(0, 55, 1, 0, 512), 22),
        ("cache was not announced", request(0, 5, 1, 0, 512), 22),
        ("a flush of something", request(0, 3, 1, 512, 0), 22),
        ("zeroes over the end", request(0, 6, 1, SIZE, 512), 28),
    ] {
        out.clear();
        let steps = feed(&mut machine, &bytes, &mut out).unwrap();
        assert_eq!(steps, [Step::Took(28), Step::More], "{what}");
        let expected = [
            &[0x66, 0x8e, 0x33, 0xef, 0, 1, 0x80, 1][..],
            &1_u64.to_be_bytes(),
            &[0, 0, 0, 6, 0, 0, 0, error, 0, 0],
        ];
        assert_eq!(out, expected.concat(), "{what}");
    }
    out.clear();
    let write = [
        request(0, 1, 1, SIZE, 512),
        vec![1; 512],
        request(0, 2, 2, 0, 0),
    ]
    .concat();
    let steps = feed(&mut machine, &write, &mut out).unwrap();
    assert_eq!(steps, [Step::Skip(28, 512), Step::Left(28)]);
    // What cannot be skipped ends the connection.
    assert!(feed(&mut machine, &request(0, 1, 1, 0, u32::MAX), &mut out).is_err());
    assert!(feed(&mut machine, &[0; 28], &mut out).is_err());
}

/// xorshift64*, so that a seed gives one sequence.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % sides
    }
}

#[test]
fn whatever_a_client_sends_the_machine_says_something_short_and_never_panics() {
    let context = [&1_u32.to_be_bytes()[..], &named("base:allocation", &[])].concat();
    let parts = [
        option(8, &[]),
        option(3, &[]),
        option(9, &named("", &[0; 4])),
        option(10, &named("", &context)),
        option(6, &named("", &[0, 3, 0, 1, 0, 2, 0, 3])),
        option(7, &named("", &[0, 0])),
        option(1, &[]),
        request(0, 0, 1, 4096, 4096),
        [request(1, 1, 1, 512, 512), vec![9; 512]].concat(),
        request(0, 7, 1, 0, 65536),
        request(0x1f, 6, 1, 0, 512),
    ];
    let mut dice = Dice(1);
    for _ in 0..20_000 {
        let (mut machine, mut out) = machine();
        let mut talk = 3_u32.to_be_bytes().to_vec();
        for _ in 0..dice.roll(8) {
            let part = usize::try_from(dice.roll(parts.len() as u64)).unwrap();
            talk.extend_from_slice(&parts[part]);
        }
        for _ in 0..dice.roll(6) {
            let at = usize::try_from(dice.roll(talk.len() as u64)).unwrap();
            talk[at] = u8::try_from(dice.roll(256)).unwrap();
        }
        let mut at = 0;
        while at < talk.len() {
            let Ok(step) = machine.step(&talk[at..], &mut out) else {
                break;
            };
            match step {
                Step::More | Step::Left(_) => break,
                Step::Took(used) => at += used,
                Step::Skip(used, length) => at += used + usize::try_from(length).unwrap(),
                Step::Request(used, request) => {
                    assert!(request.offset + u64::from(request.length) <= SIZE);
                    let payload = if request.command == Command::Write {
                        request.length
                    } else {
                        0
                    };
                    at += used + usize::try_from(payload).unwrap();
                }
            }
        }
        assert!(out.len() < 4096, "{}", out.len());
    }
}

fn start() -> Runtime {
    let config = RuntimeConfig {
        cores: Cores::List(vec![0, 0]),
        driver: Driver::Poll,
        ..RuntimeConfig::default()
    };
    Runtime::start(&config).unwrap()
}

/// A server on a runtime of its own.
struct Bed {
    runtime: Runtime,
    path: PathBuf,
    server: Server,
}

impl Bed {
    fn new(name: &str, volume: Arc<dyn Volume>) -> Self {
        let path = std::env::temp_dir().join(format!("causeway-nbd-{name}-{}", std::process::id()));
        let server = Server::new(Export::new(volume.shape(), name, false), volume);
        let runtime = start();
        let (at, there) = (path.clone(), server.clone());
        runtime.run(CoreId(0), move |core| {
            Box::pin(async move {
                let listener = core.net().listen_local(&at).unwrap();
                let accepting = Rc::clone(&core);
                core.spawn(Box::pin(
                    async move { there.run(accepting, listener).await },
                ));
            })
        });
        Self {
            runtime,
            path,
            server,
        }
    }

    fn client(&self) -> Client {
        Client::new(UnixStream::connect(&self.path).unwrap())
    }

    fn stop(&self) -> bool {
        let server = self.server.clone();
        let stop = move |core: CoreHandle| -> LocalFuture<bool> {
            Box::pin(async move { server.stop(&core, Duration::from_secs(10)).await })
        };
        self.runtime.run(CoreId(0), stop)
    }
}

/// A client that waits for each answer.
struct Client(UnixStream);

impl Client {
    fn new(stream: UnixStream) -> Self {
        let mut client = Self(stream);
        client.take(18);
        let context = [&1_u32.to_be_bytes()[..], &named("base:allocation", &[])].concat();
        let talk = [
            3_u32.to_be_bytes().to_vec(),
            option(8, &[]),
            option(10, &named("", &context)),
            option(7, &named("", &[0, 0])),
        ];
        client.0.write_all(&talk.concat()).unwrap();
        // Two ACKs, a context, two infos, an ACK.
        client.take(20 + 20 + 19 + 20 + 20 + 12 + 20 + 14 + 20);
        client
    }

    fn take(&mut self, bytes: usize) -> Vec<u8> {
        let mut into = vec![0; bytes];
        self.0.read_exact(&mut into).unwrap();
        into
    }

    /// Sends a request; answers the kind of the chunk and what it carries.
    fn ask(&mut self, bytes: &[u8]) -> (u16, Vec<u8>) {
        self.0.write_all(bytes).unwrap();
        let head = self.take(20);
        assert_eq!(head[..6], [0x66, 0x8e, 0x33, 0xef, 0, 1]);
        let length = u32::from_be_bytes(head[16..20].try_into().unwrap());
        let kind = u16::from_be_bytes(head[6..8].try_into().unwrap());
        (kind, self.take(usize::try_from(length).unwrap()))
    }
}

#[test]
fn two_connections_over_one_volume_agree_with_a_vector_of_bytes() {
    let bed = Bed::new("model", memory());
    let mut clients = [bed.client(), bed.client()];
    let mut model = vec![0_u8; usize::try_from(SIZE).unwrap()];
    let mut dice = Dice(99);
    for turn in 0..3000_u64 {
        let client = &mut clients[usize::try_from(dice.roll(2)).unwrap()];
        let offset = dice.roll(SIZE / 512) * 512;
        let blocks = 1 + dice.roll(((SIZE - offset) / 512).min(400));
        let length = u32::try_from(blocks * 512).unwrap();
        let range =
            usize::try_from(offset).unwrap()..usize::try_from(offset + blocks * 512).unwrap();
        match dice.roll(5) {
            0 => {
                let data: Vec<u8> = (0..length)
                    .map(|at| u8::try_from((u64::from(at) + turn) % 251).unwrap())
                    .collect();
                let flags = u16::try_from(dice.roll(2)).unwrap();
                let bytes = [request(flags, 1, turn, offset, length), data.clone()].concat();
                assert_eq!(client.ask(&bytes), (0, vec![]));
                model[range].copy_from_slice(&data);
            }
            1 => {
                let flags = u16::try_from(dice.roll(4)).unwrap();
                assert_eq!(
                    client.ask(&request(flags, 6, turn, offset, length)),
                    (0, vec![])
                );
                model[range].fill(0);
            }
            2 => {
                let (kind, data) = client.ask(&request(0, 7, turn, offset, length));
                assert_eq!((kind, &data[..4]), (5, &[0, 0, 0, 1][..]));
                let mut at = range.start;
                for extent in data[4..].chunks_exact(8) {
                    let number = |from: usize| {
                        u32::from_be_bytes(extent[from..from + 4].try_into().unwrap())
                    };
                    let end = at + usize::try_from(number(0)).unwrap();
                    let zero = number(4) & 2 != 0;
                    assert!(
                        !zero || model[at..end].iter().all(|byte| *byte == 0),
                        "said to be zero"
                    );
                    at = end;
                }
                assert!(at > range.start && at <= range.end);
            }
            3 => assert_eq!(client.ask(&request(0, 3, turn, 0, 0)), (0, vec![])),
            _ => {
                let (kind, data) = client.ask(&request(0, 0, turn, offset, length));
                assert_eq!((kind, &data[..8]), (1, &offset.to_be_bytes()[..]));
                assert!(data[8..] == model[range], "turn {turn} at {offset}");
            }
        }
    }
    // A fast zero that must allocate is not fast, and a hole is.
    let client = &mut clients[0];
    assert_eq!(
        client.ask(&request(0b1_0010, 6, 1, 0, 512)),
        (0x8001, vec![0, 0, 0, 95, 0, 0])
    );
    assert_eq!(client.ask(&request(0b1_0000, 6, 1, 0, 512)), (0, vec![]));
    assert!(bed.stop());
    let mut rest = Vec::new();
    assert_eq!(
        clients[0].0.read_to_end(&mut rest).unwrap(),
        0,
        "closed in order"
    );
    assert!(!bed.path.exists());
}

#[test]
fn many_requests_at_once_and_a_client_that_dies_in_the_middle_of_a_write() {
    let bed = Bed::new("flood", memory());
    let mut client = bed.client();
    let count = 2000_u64;
    let data = vec![7; 4096];
    let mut sender = client.0.try_clone().unwrap();
    let writer = std::thread::Builder::new().spawn(move || {
        for cookie in 0..count {
            let head = request(0, 1, cookie, cookie % 256 * 4096, 4096);
            sender.write_all(&[head, data.clone()].concat()).unwrap();
        }
    });
    let mut seen: Vec<u64> = (0..count)
        .map(|_| {
            let head = client.take(20);
            assert_eq!(head[6..8], [0, 0], "done, without error");
            u64::from_be_bytes(head[8..16].try_into().unwrap())
        })
        .collect();
    writer.unwrap().join().unwrap();
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..count), "each is answered once");
    let mut dying = bed.client();
    dying
        .0
        .write_all(&[request(0, 1, 1, 0, 1 << 20), vec![9; 5000]].concat())
        .unwrap();
    drop(dying);
    let mut rude = UnixStream::connect(&bed.path).unwrap();
    rude.write_all(&[0xff; 64]).unwrap();
    let mut rest = Vec::new();
    // Closed, or reset because what it sent was not read: both is the end.
    let _end = rude.read_to_end(&mut rest);
    assert_eq!(rest.len(), 18, "nothing but the greeting");
    // The others do not notice, and half a write is none.
    let (_, data) = client.ask(&request(0, 0, 1, 0, 4096));
    assert!(data[8..].iter().all(|byte| *byte == 7));
    assert!(bed.stop());
    assert_eq!(
        bed.server
            .counters()
            .violations
            .load(std::sync::atomic::Ordering::Relaxed),
        1
    );
}
