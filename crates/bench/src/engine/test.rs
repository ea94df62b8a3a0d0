//! The engine on virtual time, over a memory volume whose answers a test bends.

use super::*;
use crate::options::parse;
use crate::verify::Wrong;
use backends::MemoryVolume;
use env::sim::{FaultPlan, World, WorldConfig};
use env::{Answer, LocalFuture, detach};
use std::sync::atomic::AtomicU64;
use units::{BlockCount, BlockSize};
use volume::{Fences, Io, IoError, IoFuture, Lane, Op, OpenError, Shape, Volume, VolumeEvents};

const MIB: u64 = 1 << 20;

/// What happens to the n-th write or read.
#[derive(Clone, Copy, Debug)]
enum Bend {
    Straight,
    /// Every n-th write is acknowledged and not done.
    Lose(u64),
    /// Every n-th write is done once more a second later.
    Ghost(u64),
    /// Every n-th write reaches the medium but for its second half.
    Tear(u64),
    /// Every n-th operation fails.
    Fail(u64),
    /// The n-th operation never comes back.
    Hang(u64),
}

/// Memory that takes its time and does what the test wants.
struct Bent {
    memory: Arc<MemoryVolume>,
    takes: Duration,
    bend: Bend,
    count: AtomicU64,
    offsets: std::sync::Mutex<Vec<(bool, u64)>>,
}

struct BentLane {
    below: Rc<dyn Lane>,
    core: CoreHandle,
    bent: Arc<Bent>,
}

impl Bent {
    fn new(bytes: u64, takes: Duration, bend: Bend) -> Arc<Self> {
        let blocks = BlockCount(bytes / 512);
        Arc::new(Self {
            memory: MemoryVolume::new(BlockSize::B512, blocks, 0, Fences::new(1)),
            takes,
            bend,
            count: AtomicU64::new(0),
            offsets: std::sync::Mutex::default(),
        })
    }
}

impl Volume for Bent {
    fn shape(&self) -> Shape {
        self.memory.shape()
    }

    fn open(self: Arc<Self>, core: &CoreHandle) -> LocalFuture<Result<Rc<dyn Lane>, OpenError>> {
        let core = Rc::clone(core);
        Box::pin(async move {
            let memory: Arc<dyn Volume> = Arc::clone(&self.memory) as Arc<dyn Volume>;
            let below = memory.open(&core).await?;
            let lane: Rc<dyn Lane> = Rc::new(BentLane {
                below,
                core,
                bent: self,
            });
            Ok(lane)
        })
    }

    fn events(self: Arc<Self>, core: &CoreHandle) -> Rc<dyn VolumeEvents> {
        let memory: Arc<dyn Volume> = Arc::clone(&self.memory) as Arc<dyn Volume>;
        memory.events(core)
    }
}

impl Lane for BentLane {
    fn submit(&self, io: Io) -> IoFuture {
        let writes = matches!(io.op(), Op::Write { .. });
        if let Some(range) = io.op().range() {
            let offset = range.start().0 * 512;
            self.bent.offsets.lock().unwrap().push((writes, offset));
        }
        let number = self.bent.count.fetch_add(1, Ordering::Relaxed) + 1;
        let hit = |every: u64| number.is_multiple_of(every);
        let (takes, below, core) = (
            self.bent.takes,
            Rc::clone(&self.below),
            Rc::clone(&self.core),
        );
        let bend = self.bent.bend;
        if takes.is_zero() && matches!(bend, Bend::Straight) {
            return below.submit(io);
        }
        let tears = matches!(bend, Bend::Tear(every) if hit(every));
        let torn = tears.then(|| first_half(&io)).flatten();
        let act = match bend {
            Bend::Hang(which) if number == which => return Answer::wait(std::future::pending()),
            Bend::Lose(every) if writes && hit(every) => Act::Nothing,
            Bend::Ghost(every) if writes && hit(every) => Act::Twice,
            Bend::Fail(every) if hit(every) => Act::Fail,
            Bend::Straight
            | Bend::Lose(_)
            | Bend::Ghost(_)
            | Bend::Tear(_)
            | Bend::Fail(_)
            | Bend::Hang(_) => Act::Once,
        };
        detach(&Rc::clone(&core), async move {
            core.sleep_until(core.now().after(takes)).await;
            match act {
                Act::Nothing => Ok(volume::Done::Nothing),
                Act::Fail => Err(IoError::Unavailable),
                Act::Once => below.submit(torn.unwrap_or(io)).await,
                Act::Twice => {
                    let again = io.fork();
                    let later = Rc::clone(&core);
                    let there = Rc::clone(&below);
                    core.spawn(Box::pin(async move {
                        later
                            .sleep_until(later.now().after(Duration::from_secs(1)))
                            .await;
                        drop(there.submit(again).await);
                    }));
                    below.submit(io).await
                }
            }
        })
    }
}

/// The first half of a write.
fn first_half(io: &Io) -> Option<Io> {
    let Op::Write {
        range,
        data,
        durability,
    } = io.op()
    else {
        return None;
    };
    let half = BlockCount(range.len().0 / 2);
    let range = units::LbaRange::new(range.start(), half)?;
    let (data, durability) = (data.slice(0..data.len() / 2), *durability);
    Some(Io::new(
        Op::Write {
            range,
            data,
            durability,
        },
        io.origin(),
    ))
}

enum Act {
    Once,
    Nothing,
    Twice,
    Fail,
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Runs a line over volumes on virtual time.
fn run_line(line: &str, volumes: &[Arc<Bent>]) -> RunResult {
    try_line(line, volumes).expect(line)
}

fn try_line(line: &str, volumes: &[Arc<Bent>]) -> Result<RunResult, RunError> {
    let options = parse(&words(line)).expect(line);
    let targets = volumes.iter().zip(0..).map(|(volume, number)| Target {
        name: format!("bent{number}"),
        volume: Arc::clone(volume) as Arc<dyn Volume>,
        marked: false,
    });
    let job = Job {
        options,
        targets: targets.collect(),
        source: None,
        shared: Arc::default(),
    };
    let config = WorldConfig {
        faults: FaultPlan::none(),
        ..WorldConfig::default()
    };
    let world = World::new(7, config);
    let node = world.node("node");
    let core = node.core(0);
    let hours = Duration::from_secs(3600);
    let work = async move { run(&core, job, &mut ()).await };
    world.block_on(&node, hours, Box::pin(work)).unwrap()
}

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn counts_and_latencies_are_those_of_the_volume() {
    let volume = Bent::new(16 * MIB, millis(10), Bend::Straight);
    let result = run_line("-b4K -t2 -o4 -r -w50 -d10 -W1 -C1 x", &[volume]);
    let total = result.total();
    // 2 threads x 4 operations, each 10 ms, for 10 s.
    assert!((7900..=8000).contains(&total.ios), "{}", total.ios);
    assert_eq!(total.bytes, total.ios * 4096);
    let median = total.percentile(50.0).unwrap();
    assert!((10.0..10.1).contains(&median), "{median}");
    assert!(
        (7.9..=8.01).contains(&result.mean_queue_depth()),
        "{}",
        result.mean_queue_depth()
    );
    assert!((result.seconds - 10.0).abs() < 1e-9);
    let share = result.write().ios as f64 / total.ios as f64;
    assert!((0.45..0.55).contains(&share), "{share}");
    assert_eq!(result.series().len(), 10);
    assert!(
        result
            .series()
            .iter()
            .all(|at| (780..=800).contains(&at.ios()))
    );
    assert!(result.is_clean() && result.shares.len() == 2);
}

#[test]
fn a_volume_that_answers_at_once_does_not_starve_the_clock() {
    let volume = Bent::new(MIB, Duration::ZERO, Bend::Straight);
    // Virtual time moves by steps only; the run must come to its end all the same.
    let result = run_line("-b4K -o8 -d0.01 -W0 x", &[volume]);
    assert!(result.total().ios > 1000, "{}", result.total().ios);
}

#[test]
fn rates_and_bursts_are_kept() {
    let volume = Bent::new(16 * MIB, millis(1), Bend::Straight);
    let result = run_line("-b4K -t2 -o4 -g50i -d10 -W0 x", &[Arc::clone(&volume)]);
    assert!(
        (990..=1000).contains(&result.total().ios),
        "{}",
        result.total().ios
    );
    let result = run_line("-b4K -o1 -g4i -d10 -W0 x", &[Arc::clone(&volume)]);
    assert!((39..=40).contains(&result.total().ios));
    // Ten operations of a millisecond, then 90 ms of rest.
    let result = run_line("-b4K -o1 -i10 -j90 -d10 -W0 x", &[volume]);
    assert!(
        (980..=1110).contains(&result.total().ios),
        "{}",
        result.total().ios
    );
}

#[test]
fn a_seed_gives_one_sequence_of_operations() {
    let take = |seed: &str| {
        let volume = Bent::new(16 * MIB, millis(1), Bend::Straight);
        run_line(
            &format!("-b4K -o1 -r -w40 -d1 -W0 {seed} x"),
            &[Arc::clone(&volume)],
        );
        volume.offsets.lock().unwrap().clone()
    };
    assert_eq!(take("-z5"), take("-z5"));
    assert_ne!(take("-z5"), take("-z6"));
}

#[test]
fn operations_stay_inside_the_region_and_threads_start_apart() {
    let volume = Bent::new(16 * MIB, millis(1), Bend::Straight);
    run_line(
        "-b64K -t2 -o2 -T1M -B2M:4M -d5 -W0 x",
        &[Arc::clone(&volume)],
    );
    let offsets = volume.offsets.lock().unwrap().clone();
    assert!(
        offsets
            .iter()
            .all(|(_, at)| (2 * MIB..=6 * MIB - 65536).contains(at))
    );
    let mut first: Vec<u64> = offsets[..4].iter().map(|(_, at)| at / 65536).collect();
    first.sort_unstable();
    assert_eq!(first, [32, 33, 48, 49]);
}

#[test]
fn threads_in_all_work_on_all_targets() {
    let volumes = [(); 2].map(|()| Bent::new(MIB, millis(10), Bend::Straight));
    let result = run_line("-b4K -F2 -O6 -d1 -W0 x y", &volumes);
    assert_eq!((result.threads, result.shares.len()), (2, 4));
    let each = |target| {
        let shares = result.shares.iter().filter(|share| share.target == target);
        shares.map(|share| share.read.ios).sum::<u64>()
    };
    // 2 threads x 3 operations x 100 turns on each target.
    assert!((570..=600).contains(&each(0)) && (570..=600).contains(&each(1)));
    let apart = run_line("-b4K -t1 -o1 -d1 -W0 x y", &volumes);
    assert_eq!((apart.threads, apart.shares.len()), (2, 2));
}

#[test]
fn an_operation_that_never_comes_back_is_given_up_and_its_stall_is_reported() {
    let volume = Bent::new(MIB, millis(10), Bend::Hang(21));
    let result = run_line("-b4K -o1 -d10 -W0 --deadline 2 x", &[volume]);
    assert_eq!((result.missing(), result.errors()), (1, 1));
    assert!(
        (9.7..9.9).contains(&result.stall().as_secs_f64()),
        "{:?}",
        result.stall()
    );
    assert!(result.first_error().unwrap().contains("had not come back"));
}

#[test]
fn a_target_that_hangs_in_the_last_pass_does_not_hold_up_the_result() {
    // Two seconds of ten milliseconds each: the hang comes when everything is read back.
    let volume = Bent::new(MIB, millis(10), Bend::Hang(205));
    let result = run_line(
        "-b4K -r -o1 -w100 -d2 -W0 --deadline 3 --verify x",
        &[volume],
    );
    assert_eq!((result.missing(), result.errors()), (0, 1));
    assert!(
        result
            .first_error()
            .unwrap()
            .contains("no answer within 3 s")
    );
    assert!((195..=200).contains(&result.write().ios));
    assert!(result.verify.is_some_and(|tally| tally.bad == 0));
}

#[test]
fn failures_are_counted_and_the_run_goes_on() {
    let volume = Bent::new(MIB, millis(1), Bend::Fail(100));
    let result = run_line("-b4K -o1 -d1 -W0 x", &[volume]);
    assert!(result.errors() > 3 && result.total().ios > 500);
    assert!(result.first_error().unwrap().contains("cannot be reached"));
    assert!(!result.is_clean());
}

fn verified(bend: Bend) -> Tally {
    let volume = Bent::new(MIB, millis(1), bend);
    let result = run_line("-b8K -r4K -t2 -o4 -w60 -d5 -W0 --verify x", &[volume]);
    result.verify.expect("it was asked for")
}

#[test]
fn a_volume_that_keeps_what_it_acknowledged_is_verified_without_a_fault() {
    let tally = verified(Bend::Straight);
    assert!(tally.checked > 10_000 && tally.bad == 0, "{tally:?}");
    // A failed write was not done here, which is one of the two things that it may be.
    let failing = verified(Bend::Fail(50));
    assert_eq!(failing.bad, 0, "{failing:?}");
}

#[test]
fn lost_stale_and_torn_writes_are_caught() {
    let lost = verified(Bend::Lose(97));
    assert!(
        lost.bad > 0 && lost.described.iter().all(|bad| bad.wrong != Wrong::Stale),
        "{lost:?}"
    );
    let stale = verified(Bend::Ghost(97));
    assert!(
        stale.described.iter().any(|bad| bad.wrong == Wrong::Stale),
        "{stale:?}"
    );
    let torn = verified(Bend::Tear(97));
    assert!(torn.bad > 0, "{torn:?}");
}

#[test]
fn what_does_not_fit_the_target_is_refused_before_anything_is_done() {
    let volume = Bent::new(MIB, millis(1), Bend::Straight);
    let refused = |line: &str| {
        let error = try_line(line, &[Arc::clone(&volume)]).expect_err(line);
        assert!(matches!(error, RunError::Unfit(_)), "{error}");
        error.to_string()
    };
    assert!(refused("-b2M x").contains("does not fit"));
    assert!(refused("-b4K -f2M x").contains("fewer than"));
    assert!(refused("-b1000 x").contains("no multiple"));
    assert!(refused("-b4K -r100 x").contains("-r 100 is no multiple"));
    assert!(volume.offsets.lock().unwrap().is_empty());
    assert!(matches!(try_line("x", &[]), Err(RunError::Unfit(_))));
}

#[test]
fn filling_writes_all_of_the_region_once() {
    let volume = Bent::new(3 * MIB + 4096, Duration::ZERO, Bend::Straight);
    let target = Target {
        name: "x".into(),
        volume: Arc::clone(&volume) as Arc<dyn Volume>,
        marked: true,
    };
    let world = World::new(7, WorldConfig::default());
    let node = world.node("node");
    let core = node.core(0);
    let work = async move {
        fill(&core, &Options::default(), &target).await.unwrap();
    };
    world
        .block_on(&node, Duration::from_secs(3600), Box::pin(work))
        .unwrap();
    let offsets: Vec<u64> = volume
        .offsets
        .lock()
        .unwrap()
        .iter()
        .map(|(_, at)| *at)
        .collect();
    assert_eq!(offsets, [MIB, 2 * MIB, 3 * MIB]);
    assert_eq!(volume.memory.allocated().0, 2 * MIB + 4096);
}
