//! Policies against each other on a modelled network, on virtual time. Figures are printed; the
//! claim that is checked is that `adaptive` is as good as the best of the others on every topology,
//! and that plain round robin over a mesh collapses, which shows that the model has the mechanism
//! in it. These are a model's figures, not measurements.

mod net;

use net::{Happened, Net};
use paths::policy::{Booking, Direction, Ended, Policy, Request, Selector, Settings, Use};
use std::collections::BTreeMap;
use std::time::Duration;
use units::Now;

const GIGABIT: u64 = 125_000_000;

/// Who is connected to whom, and what the target does.
#[derive(Clone)]
struct Topology {
    name: &'static str,
    hosts: Vec<u64>,
    targets: Vec<u64>,
    /// Host port and target port.
    paths: Vec<(usize, usize)>,
    /// Bytes in the switch for each port.
    buffer: u64,
    /// Path whose target answers nothing for 50 ms twice a second.
    spikes: Option<usize>,
    /// Port pair that is a tenth as fast as is reported to the policies.
    brown_out: Option<usize>,
}

#[derive(Clone, Copy)]
struct Load {
    direction: Direction,
    bytes: u64,
    /// Larger I/Os are sent in pieces, each by the policy's choice.
    piece: u64,
    depth: u32,
}

const SMALL: Load = load(Direction::Read, 4 << 10, 16);
const MIDDLE: Load = load(Direction::Read, 64 << 10, 32);
const LARGE: Load = Load {
    piece: 256 << 10,
    ..load(Direction::Write, 4 << 20, 1)
};

const READ: Load = Load {
    piece: 256 << 10,
    ..load(Direction::Read, 4 << 20, 1)
};

const fn load(direction: Direction, bytes: u64, depth: u32) -> Load {
    Load {
        direction,
        bytes,
        piece: bytes,
        depth,
    }
}

/// A piece on its way.
struct Piece {
    booking: Booking,
    io: u64,
    bytes: u64,
}

struct Run<'a> {
    topology: &'a Topology,
    load: Load,
    net: Net,
    /// Streams to the target and to the host, by path.
    streams: Vec<(usize, usize)>,
    selector: Selector,
    pieces: BTreeMap<u64, Piece>,
    /// Pieces that each I/O still waits for.
    left: BTreeMap<u64, u64>,
    waiting: Vec<(u64, Request)>,
    next_id: u64,
    start: u64,
    random: u64,
    done: u64,
}

/// What a message or a time is about: the piece, and how far it is.
const SERVE: u64 = 1 << 62;

impl<'a> Run<'a> {
    fn new(topology: &'a Topology, load: Load, policy: Policy) -> Self {
        let mut net = Net::new(topology.buffer);
        let mut ports = |rates: &[u64]| {
            let browned = |n: usize| if topology.brown_out == Some(n) { 10 } else { 1 };
            let rates = rates.iter().enumerate();
            rates
                .map(|(n, rate)| net.port(rate / browned(n)))
                .collect::<Vec<usize>>()
        };
        let (hosts, targets) = (ports(&topology.hosts), ports(&topology.targets));
        let mut selector = Selector::new(policy);
        let mut streams = Vec::new();
        for (host, target) in &topology.paths {
            streams.push((
                net.stream(hosts[*host], targets[*target]),
                net.stream(targets[*target], hosts[*host]),
            ));
            let (host_speed, target_speed) = (topology.hosts[*host], topology.targets[*target]);
            let speed = host_speed.min(target_speed);
            selector.add(Settings {
                usage: Use::Active,
                rank: 0,
                share: 1,
                throughput: u32::try_from(speed / (GIGABIT / 100)).expect("a small ratio"),
                host_port: u16::try_from(*host).expect("few ports"),
                target_port: u16::try_from(*target).expect("few ports"),
                speed,
                host_speed,
                target_speed,
                window: 128,
            });
        }
        Self {
            topology,
            load,
            net,
            streams,
            selector,
            pieces: BTreeMap::new(),
            left: BTreeMap::new(),
            waiting: Vec::new(),
            next_id: 0,
            start: 0,
            random: 1,
            done: 0,
        }
    }

    fn now(&self) -> Now {
        Now::ZERO.after(Duration::from_nanos(self.net.now()))
    }

    /// Large I/O is sequential, small is random.
    fn issue(&mut self) {
        let Load {
            direction,
            bytes,
            piece,
            ..
        } = self.load;
        let start = if bytes > 1 << 20 {
            self.start += bytes;
            self.start
        } else {
            self.random = self
                .random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.random >> 34) * bytes
        };
        self.next_id += 1;
        let io = self.next_id;
        self.left.insert(io, bytes / piece);
        for n in 0..bytes / piece {
            let start = start + n * piece;
            self.submit(
                io,
                Request {
                    direction,
                    start,
                    bytes: piece,
                },
            );
        }
    }

    fn submit(&mut self, io: u64, request: Request) {
        let Ok(booking) = self.selector.take(request, self.now()) else {
            self.waiting.push((io, request));
            return;
        };
        let (to_target, _) = self.streams[booking.path()];
        self.next_id += 1;
        let id = self.next_id;
        let bytes = request.bytes;
        self.pieces.insert(id, Piece { booking, io, bytes });
        match request.direction {
            // The command travels alone; headers are small and are not modelled.
            Direction::Read => self.net.after(30_000, id),
            Direction::Write => self.net.send(to_target, bytes, id),
        }
    }

    /// The target has the command, and the data of a write.
    fn at_target(&mut self, id: u64) {
        let path = self.pieces[&id].booking.path();
        let into_half_second = self.net.now() % 500_000_000;
        let frozen = self.topology.spikes == Some(path) && into_half_second < 50_000_000;
        let stall = if frozen {
            50_000_000 - into_half_second
        } else {
            0
        };
        self.net.after(60_000 + stall, id | SERVE);
    }

    fn served(&mut self, id: u64) {
        let piece = &self.pieces[&id];
        let (_, to_host) = self.streams[piece.booking.path()];
        match self.load.direction {
            Direction::Read => self.net.send(to_host, piece.bytes, id | SERVE),
            Direction::Write => self.finish(id),
        }
    }

    fn finish(&mut self, id: u64) {
        let Some(piece) = self.pieces.remove(&id) else {
            return;
        };
        let now = self.now();
        self.selector.done(piece.booking, Ended::Carried, now);
        self.done += piece.bytes;
        for (io, request) in std::mem::take(&mut self.waiting) {
            self.submit(io, request);
        }
        let left = self.left.get_mut(&piece.io).expect("its I/O is not over");
        *left -= 1;
        if *left == 0 {
            self.left.remove(&piece.io);
            self.issue();
        }
    }

    /// MB/s over `span`, after a quarter of it to warm up.
    fn measure(mut self, span: Duration) -> f64 {
        for _ in 0..self.load.depth {
            self.issue();
        }
        let end = u64::try_from(span.as_nanos()).expect("seconds");
        let warm = end / 4;
        let mut before = None;
        while self.net.now() < end {
            if before.is_none() && self.net.now() >= warm {
                before = Some((self.done, self.net.now()));
            }
            match self.net.next() {
                Some(Happened::Arrived(id)) if id & SERVE != 0 => self.finish(id & !SERVE),
                Some(Happened::Time(id)) if id & SERVE != 0 => self.served(id & !SERVE),
                Some(Happened::Arrived(id) | Happened::Time(id)) => self.at_target(id),
                None => break,
            }
        }
        let (done, at) = before.unwrap_or((0, 0));
        megabytes(self.done - done) / Duration::from_nanos(self.net.now() - at).as_secs_f64()
    }
}

#[expect(clippy::cast_precision_loss, reason = "printed with three digits")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

const OTHERS: [&str; 8] = [
    "failover",
    "round-robin",
    "round-robin-subset",
    "least-queue-depth",
    "least-bytes",
    "service-time",
    "weighted-min",
    "weighted-share",
];

fn rate(topology: &Topology, load: Load, policy: &str, seconds: u64) -> f64 {
    let policy: Policy = policy.parse().expect("a policy's name");
    Run::new(topology, load, policy).measure(Duration::from_secs(seconds))
}

/// Prints every policy's rate; adaptive's share of the best of the others.
fn compare(topology: &Topology, name: &str, load: Load, seconds: u64) -> f64 {
    let mut best: (f64, &str) = (0.0, "");
    let mut line = format!("{:<14} {name:<18}", topology.name);
    for policy in OTHERS {
        let rate = rate(topology, load, policy, seconds);
        line += &format!(" {policy} {rate:.1},");
        if rate > best.0 {
            best = (rate, policy);
        }
    }
    let adaptive = rate(topology, load, "adaptive", seconds);
    println!(
        "{line} adaptive {adaptive:.1} = {:.2} of the best ({})",
        adaptive / best.0,
        best.1
    );
    adaptive / best.0
}

fn one_to_one(name: &'static str, rates: &[u64]) -> Topology {
    Topology {
        name,
        hosts: rates.to_vec(),
        targets: rates.to_vec(),
        paths: (0..rates.len()).map(|n| (n, n)).collect(),
        buffer: 64 << 10,
        spikes: None,
        brown_out: None,
    }
}

fn assert_as_good_as_the_best(topology: &Topology, loads: &[(&str, Load)], seconds: u64) {
    for (name, load) in loads {
        let share = compare(topology, name, *load, seconds);
        assert!(share >= 0.95, "{} {name}: {share:.2}", topology.name);
    }
}

const ALL: [(&str, Load); 4] = [
    ("4K read depth 16", SMALL),
    ("64K read depth 32", MIDDLE),
    ("4M write depth 1", LARGE),
    ("4M read depth 1", READ),
];

#[test]
fn adaptive_is_as_good_as_the_best_on_equal_paths() {
    assert_as_good_as_the_best(&one_to_one("equal", &[GIGABIT, GIGABIT]), &ALL, 1);
}

#[test]
fn adaptive_is_as_good_as_the_best_with_one_slow_path() {
    assert_as_good_as_the_best(&one_to_one("slow path", &[GIGABIT, GIGABIT / 10]), &ALL, 2);
}

#[test]
fn adaptive_is_as_good_as_the_best_with_asymmetric_speeds() {
    assert_as_good_as_the_best(
        &one_to_one("asymmetric", &[GIGABIT, GIGABIT * 5 / 2, GIGABIT / 2]),
        &ALL,
        1,
    );
}

#[test]
fn adaptive_is_as_good_as_the_best_with_latency_spikes() {
    let spiky = Topology {
        spikes: Some(1),
        ..one_to_one("spikes", &[GIGABIT, GIGABIT])
    };
    assert_as_good_as_the_best(&spiky, &ALL, 2);
}

#[test]
fn adaptive_is_as_good_as_the_best_when_a_path_is_slower_than_its_link() {
    let browned = Topology {
        brown_out: Some(1),
        ..one_to_one("brown-out", &[GIGABIT, GIGABIT])
    };
    assert_as_good_as_the_best(&browned, &ALL, 2);
}

#[test]
fn adaptive_is_as_good_as_the_best_with_a_shared_port() {
    let shared = Topology {
        paths: vec![(0, 0), (1, 0), (2, 1)],
        hosts: vec![GIGABIT; 3],
        ..one_to_one("shared port", &[GIGABIT, GIGABIT])
    };
    assert_as_good_as_the_best(&shared, &ALL, 2);
}

/// The published mesh: four host ports, two target ports, all eight paths.
#[test]
fn a_full_mesh_collapses_under_round_robin_and_not_under_adaptive() {
    let mesh = Topology {
        name: "full mesh",
        hosts: vec![GIGABIT; 4],
        paths: (0..8).map(|n| (n / 2, n % 2)).collect(),
        ..one_to_one("", &[GIGABIT, GIGABIT])
    };
    let planned = rate(
        &one_to_one("planned", &[GIGABIT, GIGABIT]),
        LARGE,
        "round-robin",
        3,
    );
    let round_robin = rate(&mesh, LARGE, "round-robin", 3);
    let adaptive = rate(&mesh, LARGE, "adaptive", 3);
    println!(
        "4M writes: planned 1:1 {planned:.1}, mesh round robin {round_robin:.1}, mesh adaptive {adaptive:.1} MB/s"
    );
    assert!(round_robin <= 0.4 * planned, "the model lacks the collapse");
    assert!(adaptive >= 0.85 * planned, "{:.2}", adaptive / planned);
    assert_as_good_as_the_best(&mesh, &ALL, 2);
}
