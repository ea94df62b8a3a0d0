//! 4K random I/O at depth 32 through one lane, against `rbd bench` on the same image, in
//! alternating rounds.
//!
//! `against_rbd_bench CONF`; `ROUNDS` (5), `WRITES` and `READS` (of each in a round), `IMAGE_MIB`
//! (512). Fails below 0.9 of the IOPS of `rbd bench`. Processor time is the client's alone; that of
//! `rbd bench` includes its start.

#![expect(
    clippy::unwrap_used,
    reason = "a measurement has no use for errors but their message"
)]

use env::real::{Cores, Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId, detach};
use rbd::{Cluster, ClusterSpec, Identity, Image, ImageSpec};
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, BlockSize, Buf, ByteCount, Lba, LbaRange};
use volume::{Durability, Fences, Io, Lane, Op, Origin, Volume};
use volume_test::Draw;

const IMAGE: &str = "against-rbd-bench";
const DEPTH: u64 = 32;
const BLOCK: u64 = 4096;
const BAR: f64 = 0.9;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Write,
    Read,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

/// What one turn measured.
#[derive(Clone, Copy)]
struct Figures {
    iops: f64,
    /// Microseconds of processor time an operation.
    cost: f64,
}

struct Plan {
    conf: PathBuf,
    rounds: usize,
    writes: u64,
    reads: u64,
    bytes: u64,
}

impl Plan {
    fn operations(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Write => self.writes,
            Kind::Read => self.reads,
        }
    }

    fn spec(&self) -> ClusterSpec {
        ClusterSpec {
            pool: "rbd".to_owned(),
            conf: Some(self.conf.clone()),
            user: "admin".to_owned(),
            patience: Duration::from_secs(30),
        }
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    let set = std::env::var(name).ok().filter(|it| !it.is_empty());
    set.map_or(otherwise, |it| it.parse().unwrap())
}

/// Processor time of all threads of this process, in nanoseconds.
fn own_time() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let reported = tasks.filter_map(|it| fs::read_to_string(it.path().join("schedstat")).ok());
    reported
        .filter_map(|it| it.split(' ').next()?.parse::<u64>().ok())
        .sum()
}

/// That of children that have ended, in ticks of 10 ms: fields 16 and 17 of `/proc/self/stat`.
fn time_of_children() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = fields.split_whitespace().skip(13).take(2);
    ticks
        .map(|it| it.parse::<u64>().unwrap() * 10_000_000)
        .sum()
}

#[expect(clippy::cast_precision_loss, reason = "figures")]
fn figures(operations: u64, nanos: u64, worked: u64) -> Figures {
    Figures {
        iops: operations as f64 * 1e9 / nanos as f64,
        cost: worked as f64 / 1e3 / operations as f64,
    }
}

/// One after the other, until all together have asked for so many.
async fn one_by_one(lane: Rc<dyn Lane>, kind: Kind, blocks: u64, seed: u64, left: Rc<Cell<u64>>) {
    let data = Buf::from(vec![7; 4096]);
    let mut draw = Draw::new(seed);
    while left.get() > 0 {
        left.set(left.get() - 1);
        let range = LbaRange::new(Lba(draw.below(blocks)), BlockCount(1)).unwrap();
        let op = match kind {
            Kind::Read => Op::Read { range, into: None },
            Kind::Write => Op::Write {
                range,
                data: data.clone(),
                durability: Durability::Stable,
            },
        };
        lane.submit(Io::new(op, Origin::default())).await.unwrap();
    }
}

/// Keeps `DEPTH` operations in flight until so many have ended; answers how long that took.
async fn load(core: &CoreHandle, image: &Arc<Image>, kind: Kind, operations: u64) -> u64 {
    let volume: Arc<dyn Volume> = Arc::clone(image) as Arc<dyn Volume>;
    let blocks = volume.shape().block_count.0;
    let lane = volume.open(core).await.unwrap();
    let left = Rc::new(Cell::new(operations));
    let begun = core.now();
    let all: Vec<_> = (0..DEPTH)
        .map(|number| {
            let (lane, left, seed) = (Rc::clone(&lane), Rc::clone(&left), begun.0 + number);
            detach(core, one_by_one(lane, kind, blocks, seed, left))
        })
        .collect();
    for one in all {
        one.await;
    }
    u64::try_from(core.now().since(begun).as_nanos()).unwrap()
}

async fn open(core: &CoreHandle, spec: ClusterSpec) -> Arc<Image> {
    let cluster = Cluster::connect(core, spec).await.unwrap();
    let spec = ImageSpec {
        name: IMAGE.to_owned(),
        block_size: BlockSize::B4096,
        physical_block_exponent: 0,
    };
    let opened = Image::open(core, &cluster, spec, Fences::new(1)).await;
    opened.unwrap()
}

fn ours(runtime: &Runtime, plan: &Plan, kind: Kind) -> Figures {
    let (spec, operations) = (plan.spec(), plan.operations(kind));
    let (nanos, worked) = runtime.run(CoreId(0), move |core| {
        Box::pin(async move {
            let image = open(&core, spec).await;
            let before = own_time();
            let nanos = load(&core, &image, kind, operations).await;
            let worked = own_time() - before;
            image.close().await;
            (nanos, worked)
        })
    });
    figures(operations, nanos, worked)
}

fn theirs(plan: &Plan, kind: Kind) -> Figures {
    let operations = plan.operations(kind);
    let before = time_of_children();
    let output = Command::new("rbd")
        .arg("--conf")
        .arg(&plan.conf)
        .args([
            "bench",
            IMAGE,
            "--io-type",
            kind.name(),
            "--io-size",
            "4096",
        ])
        .args(["--io-threads", "32", "--io-pattern", "rand", "--io-total"])
        .arg((operations * BLOCK).to_string())
        .output()
        .unwrap();
    let worked = time_of_children() - before;
    let said = String::from_utf8_lossy(&output.stdout);
    // elapsed: 4   ops: 8192   ops/sec: 1953.31   bytes/sec: 7.6 MiB/s
    let last = said.lines().last().unwrap_or_default();
    let rate = last
        .split("ops/sec:")
        .nth(1)
        .and_then(|it| it.split_whitespace().next());
    let rate: Option<f64> = rate.and_then(|it| it.parse().ok());
    Figures {
        iops: rate.unwrap_or_else(|| panic!("{output:?}")),
        ..figures(operations, 1, worked)
    }
}

fn make(runtime: &Runtime, plan: &Plan) {
    let (spec, size) = (plan.spec(), ByteCount(plan.bytes));
    runtime.run(CoreId(0), move |core| {
        Box::pin(async move {
            let cluster = Cluster::connect(&core, spec.clone()).await.unwrap();
            // What an earlier run has left.
            drop(cluster.remove(IMAGE).await);
            cluster
                .create(IMAGE, size, Identity::default())
                .await
                .unwrap();
            let image = open(&core, spec).await;
            let shape = image.shape();
            let volume: Arc<dyn Volume> = Arc::clone(&image) as Arc<dyn Volume>;
            let lane = volume.open(&core).await.unwrap();
            let step = 1024;
            for at in (0..shape.block_count.0).step_by(step) {
                let range = LbaRange::new(Lba(at), BlockCount(step as u64)).unwrap();
                let op = Op::Write {
                    range,
                    data: Buf::from(vec![5; step * 4096]),
                    durability: Durability::Stable,
                };
                lane.submit(Io::new(op, Origin::default())).await.unwrap();
            }
            image.close().await;
        })
    });
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> ExitCode {
    let Some(conf) = std::env::args().nth(1) else {
        eprintln!("usage: against_rbd_bench CONF");
        return ExitCode::from(2);
    };
    let plan = Plan {
        conf: Path::new(&conf).to_owned(),
        rounds: usize::try_from(number("ROUNDS", 5)).unwrap(),
        writes: number("WRITES", 10_000),
        reads: number("READS", 40_000),
        bytes: number("IMAGE_MIB", 512) << 20,
    };
    let config = RuntimeConfig {
        cores: Cores::List(vec![0]),
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::start(&config).unwrap();
    make(&runtime, &plan);
    println!(
        "| 4K random, depth 32 | IOPS | rbd bench | ratio | us of processor time | rbd bench | |\n|---|---|---|---|---|---|---|"
    );
    let mut all_met = true;
    for kind in [Kind::Write, Kind::Read] {
        let mut rounds = Vec::new();
        for round in 0..plan.rounds {
            rounds.push(if round % 2 == 0 {
                let ours = ours(&runtime, &plan, kind);
                (ours, theirs(&plan, kind))
            } else {
                let theirs = theirs(&plan, kind);
                (ours(&runtime, &plan, kind), theirs)
            });
        }
        let of =
            |figure: fn(&(Figures, Figures)) -> f64| median(rounds.iter().map(figure).collect());
        let ratio = of(|(ours, theirs)| ours.iops / theirs.iops);
        let met = ratio >= BAR;
        all_met &= met;
        println!(
            "| {} | {:.0} | {:.0} | {ratio:.2} | {:.0} | {:.0} | {} |",
            kind.name(),
            of(|(ours, _)| ours.iops),
            of(|(_, theirs)| theirs.iops),
            of(|(ours, _)| ours.cost),
            of(|(_, theirs)| theirs.cost),
            if met { "met" } else { "**not met**" },
        );
    }
    if all_met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
