//! That an operation of any kind waits as long as it is to and no longer, in virtual time; and that
//! the model disk allows what comes of it.

use super::*;
use crate::test::{poor, simulate};
use crate::{Emulate, StableWrite};
use env::sim::{Node, World, WorldConfig};
use std::sync::Mutex;
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange, Now};
use volume::{Done, Durability, Op, OpKind, Origin, Provision, Volume, Zeroing, over};
use volume_test::fault::{Faults, Odds};
use volume_test::model::{Plan, conforms};
use volume_test::plain::Plain;

const CORES: u16 = 4;

/// A tick of the timers, and what the simulated core adds to it.
const LATE: Duration = Duration::from_millis(2);

fn range(start: u64, len: u64) -> LbaRange {
    LbaRange::new(Lba(start), BlockCount(len)).unwrap()
}

/// An operation of each kind.
fn one_of_each() -> Vec<Io> {
    let durability = Durability::Cached;
    let (range, data) = (range(8, 1), Buf::copy_of(&[7; 512]));
    let all = [
        Op::Read { range, into: None },
        Op::Write {
            range,
            data: data.clone(),
            durability,
        },
        Op::WriteZeroes {
            range,
            zeroing: Zeroing::MayUnmap,
            durability,
        },
        Op::Discard {
            range,
            to: Provision::Deallocated,
            durability,
        },
        Op::CompareAndWrite {
            range,
            expected: data.clone(),
            data,
            durability,
        },
        Op::Extents { range, since: None },
        Op::Flush,
    ];
    let io = |op| Io::new(op, Origin::default());
    all.into_iter().map(io).collect()
}

fn read(start: u64) -> Io {
    let op = Op::Read {
        range: range(start, 1),
        into: None,
    };
    Io::new(op, Origin::default())
}

/// Notes what comes down and when, and answers it there.
#[derive(Clone, Default)]
struct Arrivals(Arc<Mutex<Vec<(OpKind, Now)>>>);

struct ArrivalsLane(Arrivals, CoreHandle);

impl Wrap for Arrivals {
    fn lane(&self, core: &CoreHandle, _: Rc<dyn Lane>, _: Shape) -> Rc<dyn Lane> {
        Rc::new(ArrivalsLane(self.clone(), Rc::clone(core)))
    }
}

impl Lane for ArrivalsLane {
    fn submit(&self, io: Io) -> IoFuture {
        let arrival = (OpKind::of(io.op()), self.1.now());
        self.0.0.lock().unwrap().push(arrival);
        env::Answer::ready(Ok(Done::Nothing))
    }
}

struct Bench {
    world: World,
    node: Node,
    delay: Delay,
    arrivals: Arrivals,
    /// The delay over a volume that notes what comes down.
    noted: Arc<dyn Volume>,
    /// The delay over bytes.
    kept: Arc<dyn Volume>,
}

impl Bench {
    fn new(seed: u64) -> Self {
        let config = WorldConfig {
            cores: CORES,
            ..WorldConfig::default()
        };
        let world = World::new(seed, config);
        let (delay, arrivals) = (Delay::new(), Arrivals::default());
        let plain = || Plain::make(BlockSize::B512, BlockCount(256));
        Self {
            node: world.node("node"),
            world,
            noted: over(delay.clone(), over(arrivals.clone(), plain())),
            kept: over(delay.clone(), plain()),
            delay,
            arrivals,
        }
    }

    fn run<T: 'static>(&self, work: impl Future<Output = T> + 'static) -> T {
        let span = Duration::from_secs(60);
        self.world.block_on(&self.node, span, work).unwrap()
    }

    fn lane(&self, core: u16, volume: &Arc<dyn Volume>) -> Rc<dyn Lane> {
        let (volume, core) = (Arc::clone(volume), self.node.core(core));
        self.run(async move { volume.open(&core).await.unwrap() })
    }

    fn sleep(&self, span: Duration) {
        let core = self.node.core(0);
        let until = core.now().after(span);
        self.run(async move { core.sleep_until(until).await });
    }
}

#[test]
fn an_operation_of_any_kind_goes_down_when_its_delay_has_passed_and_not_before() {
    let bench = Bench::new(1);
    let (core, lane) = (bench.node.core(0), bench.lane(0, &bench.noted));
    for micros in [1, 250, 5_000, 1_000_000] {
        let delay = Duration::from_micros(micros);
        bench.delay.set(delay);
        let begun = core.now();
        let answers: Vec<IoFuture> = one_of_each()
            .into_iter()
            .map(|io| lane.submit(io))
            .collect();
        bench.run(async move {
            for answer in answers {
                answer.await.unwrap();
            }
        });
        let came: Vec<(OpKind, Now)> = std::mem::take(&mut bench.arrivals.0.lock().unwrap());
        for kind in OpKind::ALL {
            let of_kind = came.iter().filter(|(it, _)| *it == kind);
            let spans: Vec<Duration> = of_kind.map(|(_, at)| at.since(begun)).collect();
            let [span] = spans[..] else {
                panic!("{kind:?} came down at {spans:?}")
            };
            // All of them at the same time: none waited for another one.
            assert!(
                span >= delay && span <= delay + LATE,
                "{kind:?} waited {span:?} of {delay:?}"
            );
        }
    }
}

#[test]
fn where_there_is_no_delay_the_answer_is_there_at_once() {
    let bench = Bench::new(2);
    let lane = bench.lane(1, &bench.noted);
    for io in one_of_each() {
        let answer = lane.submit(io).now();
        assert!(matches!(answer, Ok(Ok(_))), "it waited");
    }
    assert_eq!(bench.delay.deferred(), Deferred::default());
}

#[test]
fn a_change_is_for_what_comes_next_on_every_core_and_what_waits_is_counted() {
    let bench = Bench::new(3);
    bench.delay.set(Duration::from_secs(1));
    assert_eq!(bench.delay.get(), Duration::from_secs(1));
    let core = bench.node.core(0);
    let begun = core.now();
    let slow = bench.lane(0, &bench.kept).submit(read(0));
    bench.sleep(Duration::from_millis(300));
    let reported = bench.delay.deferred();
    assert_eq!((reported.operations, reported.waiting), (1, 1));
    assert_eq!(reported.waited, Duration::ZERO);

    // Lifted: the next one passes, and the first one waits as long as it was to.
    bench.delay.set(Duration::ZERO);
    for other in 0..CORES {
        let answer = bench.lane(other, &bench.kept).submit(read(1));
        assert!(answer.now().is_ok(), "core {other} does not know of it");
    }
    bench.run(async move { slow.await.unwrap() });
    let took = core.now().since(begun);
    assert!(took >= Duration::from_secs(1), "{took:?}");
    let reported = bench.delay.deferred();
    assert_eq!((reported.operations, reported.waiting), (1, 0));
    let most = Duration::from_secs(1) + LATE;
    assert!(
        (Duration::from_secs(1)..=most).contains(&reported.waited),
        "{reported:?}"
    );
}

#[test]
fn a_write_that_waits_is_done_even_if_nobody_waits_for_its_answer() {
    let bench = Bench::new(4);
    bench.delay.set(Duration::from_millis(20));
    let lane = bench.lane(2, &bench.kept);
    let write = Op::Write {
        range: range(5, 1),
        data: Buf::copy_of(&[7; 512]),
        durability: Durability::Cached,
    };
    drop(lane.submit(Io::new(write, Origin::default())));
    bench.sleep(Duration::from_millis(30));
    let done = bench.run(async move { lane.submit(read(5)).await.unwrap() });
    let Done::Data(data) = done else {
        panic!("{done:?}")
    };
    assert_eq!(data.to_vec(), [7; 512]);
}

/// Another delay every few milliseconds, none among them.
async fn change(core: CoreHandle, delay: Delay) {
    for micros in [200, 0, 3_000, 40].into_iter().cycle() {
        delay.set(Duration::from_micros(micros));
        let soon = core.now().after(Duration::from_millis(7));
        core.sleep_until(soon).await;
    }
}

#[test]
fn the_model_disk_allows_all_that_it_answers_while_the_delay_changes() {
    for block_size in [BlockSize::B512, BlockSize::B4096] {
        for seed in 0..6 {
            simulate(seed, |core| {
                Box::pin(async move {
                    let (delay, faults) = (Delay::new(), Faults::new());
                    let late = Odds {
                        delay: 3,
                        ..Odds::default()
                    };
                    faults.by_chance(seed, late);
                    let below = over(Emulate, over(StableWrite, poor(block_size)));
                    let volume = over(delay.clone(), over(faults, below));
                    let shape = volume.shape();
                    core.spawn(Box::pin(change(Rc::clone(&core), delay.clone())));
                    let tally = conforms(&core, volume, Plan::new(seed)).await;
                    tally.assert_covers(&shape);
                    assert!(delay.deferred().operations > 50, "{delay:?}");
                })
            });
        }
    }
}
