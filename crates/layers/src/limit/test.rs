//! The gate against what it promises, in arbitrary histories; and the layer over cores, in virtual
//! time.

use super::*;
use env::sim::{World, WorldConfig};
use std::sync::Arc;
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};
use volume::{Durability, Origin, TraceId, Volume, over};
use volume_test::draw::Draw;
use volume_test::plain::Plain;

const CLASSES: [Class; 4] = [
    Class::Foreground,
    Class::Repair,
    Class::Resynchronisation,
    Class::Scrub,
];

fn rates(draw: &mut Draw) -> Rates {
    let some = |draw: &mut Draw, most: u64| (draw.below(4) > 0).then(|| 1 + draw.below(most));
    Rates {
        iops: some(draw, 20_000),
        bytes_per_second: some(draw, 100 << 20),
        burst: Duration::from_millis(draw.below(3_000)),
    }
}

/// What went, and when, under one limit.
#[derive(Default)]
struct Gone {
    all: Vec<(Now, u64)>,
    largest: u64,
}

impl Gone {
    fn note(&mut self, now: Now, bytes: u64) {
        self.all.push((now, bytes));
        self.largest = self.largest.max(bytes);
    }

    /// I1, over every span between two operations, by a count of its own.
    fn assert_within(&self, rates: &Rates, carried: u64) {
        for (cost, rate, largest) in [
            (None, rates.iops, 1),
            (Some(()), rates.bytes_per_second, self.largest),
        ] {
            let Some(rate) = rate else { continue };
            let burst = rates.burst.max(MOMENT).as_secs_f64();
            let holds = (rate as f64 * burst).max(1.0) + carried as f64;
            let debt = (largest as f64 - holds).max(0.0) + 1.0;
            let mut sums = vec![0_u64];
            for (_, bytes) in &self.all {
                let last = *sums.last().unwrap();
                sums.push(last + cost.map_or(1, |()| *bytes));
            }
            for from in 0..self.all.len() {
                for to in from..self.all.len() {
                    let span = self.all[to].0.since(self.all[from].0).as_secs_f64();
                    let went = (sums[to + 1] - sums[from]) as f64;
                    let most = rate as f64 * span * 1.000_001 + holds + debt;
                    assert!(went <= most, "{went} in {span} s under {rates:?}");
                }
            }
        }
    }
}

/// Those that wait, by class, in order of arrival: the model.
#[derive(Default)]
struct Queues([VecDeque<(LimitWaiter, u64)>; 4]);

use std::collections::VecDeque;

impl Queues {
    fn first(&self) -> Option<&(LimitWaiter, u64)> {
        self.0.iter().find_map(VecDeque::front)
    }

    fn pop(&mut self) -> Option<(LimitWaiter, u64)> {
        let queue = self.0.iter_mut().find(|queue| !queue.is_empty());
        queue.and_then(VecDeque::pop_front)
    }
}

/// Everything that may go now, in the model's order.
fn drain(gate: &mut Gate, queues: &mut Queues, now: Now, gone: &mut Gone) -> usize {
    let mut count = 0;
    while let Some(waiter) = gate.release(now) {
        let (first, bytes) = queues.pop().expect("what goes was waiting");
        assert_eq!(waiter, first, "I3");
        gone.note(now, bytes);
        count += 1;
    }
    count
}

fn pick(draw: &mut Draw) -> usize {
    usize::try_from(draw.below(4)).unwrap()
}

fn history(seed: u64) -> (usize, usize) {
    let mut draw = Draw::new(seed);
    let (mut gate, mut queues, mut gone) = (Gate::new(), Queues::default(), Gone::default());
    let mut now = Now(draw.below(1 << 40));
    let mut limit = rates(&mut draw);
    gate.set(now, &limit);
    let (mut waited, mut passed) = (0, 0);
    for _ in 0..300 {
        match draw.below(20) {
            0 => {
                gone.assert_within(&limit, 0);
                gone = Gone::default();
                // Nothing saved up crosses a change in this model: it begins from a limit of
                // nothing.
                gate.set(now, &Rates::default());
                drain(&mut gate, &mut queues, now, &mut Gone::default());
                limit = rates(&mut draw);
                gate.set(now, &limit);
            }
            1..=11 => {
                let class = pick(&mut draw);
                let bytes = [0, 512, 4096, 1 << 20][pick(&mut draw)];
                match gate.arrive(now, CLASSES[class], bytes) {
                    Some(waiter) => {
                        waited += 1;
                        queues.0[class].push_back((waiter, bytes));
                    }
                    None => {
                        let before = queues.0[..=class].iter().all(VecDeque::is_empty);
                        assert!(before, "I3: it went before another one");
                        passed += 1;
                        gone.note(now, bytes);
                    }
                }
            }
            12..=15 => {
                now = now.after(Duration::from_nanos(draw.below(20_000_000)));
                drain(&mut gate, &mut queues, now, &mut gone);
            }
            _ => {
                // Timers that come late by up to a millisecond.
                let Some((first, due)) = gate.due() else {
                    continue;
                };
                assert_eq!(Some(first), queues.first().map(|(waiter, _)| *waiter), "I2");
                if due > now {
                    let early = Now(due.0 - 1);
                    assert_eq!(
                        gate.release(early.max(now)),
                        None,
                        "I2: nothing goes before"
                    );
                }
                now = due.max(now);
                let went = drain(&mut gate, &mut queues, now, &mut gone);
                assert!(went > 0, "I2: it goes when it is due");
            }
        }
        assert_eq!(
            gate.waiting(),
            queues.0.iter().map(VecDeque::len).sum::<usize>()
        );
    }
    gone.assert_within(&limit, 0);
    while let Some((_, due)) = gate.due() {
        drain(&mut gate, &mut queues, due, &mut gone);
    }
    assert!(queues.first().is_none(), "all go in the end");
    (waited, passed)
}

#[test]
fn no_history_exceeds_the_limit_or_idles_while_work_waits_or_changes_the_order() {
    let (mut waited, mut passed) = (0, 0);
    for seed in 0..300 {
        let (some, others) = history(seed);
        waited += some;
        passed += others;
    }
    assert!(waited > 1_000 && passed > 1_000, "{waited} {passed}");
}

const CORES: u16 = 4;

fn read(block: u64, class: Class) -> Io {
    let range = LbaRange::new(Lba(block), BlockCount(8)).unwrap();
    let origin = Origin {
        class,
        trace: TraceId(block),
        ..Origin::default()
    };
    Io::new(Op::Read { range, into: None }, origin)
}

struct Bench {
    world: World,
    node: env::sim::Node,
    limit: Limit,
    volume: Arc<dyn Volume>,
}

impl Bench {
    fn new(seed: u64) -> Self {
        let config = WorldConfig {
            cores: CORES,
            ..WorldConfig::default()
        };
        let world = World::new(seed, config);
        let node = world.node("node");
        let limit = Limit::new();
        let plain = Plain::make(BlockSize::B512, BlockCount(4096));
        Self {
            world,
            node,
            volume: over(limit.clone(), plain),
            limit,
        }
    }

    fn run<T: 'static>(&self, seconds: u64, work: impl Future<Output = T> + 'static) -> T {
        let span = Duration::from_secs(seconds);
        self.world.block_on(&self.node, span, work).unwrap()
    }

    fn set(&self, rates: Rates) {
        let (limit, core) = (self.limit.clone(), self.node.core(0));
        self.run(1, async move { limit.set(&core, rates).await });
    }

    /// As many reads at a time on each core, for so long: how many ended.
    fn load(&self, depth: u16, seconds: u64) -> u64 {
        let done = Arc::new(AtomicU64::new(0));
        let until = self.node.core(0).now().after(Duration::from_secs(seconds));
        for number in 0..CORES {
            for stream in 0..depth {
                let core = self.node.core(number);
                let (volume, done) = (Arc::clone(&self.volume), Arc::clone(&done));
                let worker = Rc::clone(&core);
                let block = u64::from(stream) * 8;
                core.spawn(Box::pin(read_until(worker, volume, block, until, done)));
            }
        }
        let core = self.node.core(0);
        self.run(seconds + 1, async move { core.sleep_until(until).await });
        done.load(Ordering::Relaxed)
    }
}

/// Reads one after the other, counted.
async fn read_until(
    core: CoreHandle,
    volume: Arc<dyn Volume>,
    block: u64,
    until: Now,
    done: Arc<AtomicU64>,
) {
    let lane = volume.open(&core).await.unwrap();
    while core.now() < until {
        lane.submit(read(block, Class::Foreground)).await.unwrap();
        done.fetch_add(u64::from(core.now() < until), Ordering::Relaxed);
        // Without a limit the simulated disk takes no time at all.
        let soon = core.now().after(Duration::from_micros(200));
        core.sleep_until(soon).await;
    }
}

fn per_second(iops: u64) -> Rates {
    Rates {
        iops: Some(iops),
        ..Rates::default()
    }
}

#[test]
fn one_limit_holds_for_all_cores_together_and_is_changed_and_lifted_live() {
    let bench = Bench::new(1);
    let free = bench.load(4, 2);
    assert!(free > 20_000, "{free}");
    for (rates, wanted) in [
        (per_second(1_000), 2_000),
        (per_second(3_000), 6_000),
        (
            Rates {
                bytes_per_second: Some(4 << 20),
                ..Rates::default()
            },
            2 << 10,
        ),
    ] {
        bench.set(rates);
        let done = bench.load(4, 2);
        let off = done.abs_diff(wanted);
        assert!(off <= wanted / 50, "{done} where {wanted} were wanted");
    }
    bench.set(Rates::default());
    assert!(bench.load(4, 2) > 20_000);
    let reported = bench.limit.deferred();
    assert!(
        reported.operations > 5_000 && reported.waited > Duration::from_secs(1),
        "{reported:?}"
    );
    assert_eq!(reported.waiting, 0);
}

#[test]
fn what_was_not_used_may_be_used_at_once_and_no_more() {
    let bench = Bench::new(2);
    let burst = Duration::from_secs(5);
    bench.set(Rates {
        burst,
        ..per_second(100)
    });
    let core = bench.node.core(0);
    let idle = core.now().after(Duration::from_secs(60));
    bench.run(61, async move { core.sleep_until(idle).await });
    // 500 saved up, and 200 more in two seconds.
    let done = bench.load(8, 2);
    assert!((690..=705).contains(&done), "{done}");
}

#[test]
fn a_scrub_takes_only_what_hosts_leave_and_what_waits_goes_on_when_the_limit_is_lifted() {
    let bench = Bench::new(3);
    bench.set(per_second(10));
    let order = Arc::new(Mutex::new(Vec::new()));
    let submit = |core: u16, class: Class, name: u64| {
        let (core, order) = (bench.node.core(core), Arc::clone(&order));
        let (volume, worker) = (Arc::clone(&bench.volume), Rc::clone(&core));
        let task = async move {
            let lane = volume.open(&worker).await.unwrap();
            lane.submit(read(name, class)).await.unwrap();
            order.lock().unwrap().push(name);
        };
        core.spawn(Box::pin(task));
        let core = bench.node.core(0);
        let moment = core.now().after(Duration::from_millis(1));
        bench.run(1, async move { core.sleep_until(moment).await });
    };
    for name in 0..3 {
        submit(u16::try_from(name).unwrap(), Class::Scrub, name);
    }
    for name in 10..13 {
        submit(3, Class::Foreground, name);
    }
    submit(2, Class::Repair, 20);
    let wait = |millis: u64| {
        let core = bench.node.core(0);
        let until = core.now().after(Duration::from_millis(millis));
        bench.run(60, async move { core.sleep_until(until).await });
    };
    wait(480);
    assert_eq!(*order.lock().unwrap(), [10, 11, 12, 20]);
    bench.set(Rates::default());
    wait(10);
    assert_eq!(*order.lock().unwrap(), [10, 11, 12, 20, 0, 1, 2]);
}

#[test]
fn flushes_pass_and_an_abandoned_answer_does_not_hold_up_the_queue() {
    let bench = Bench::new(4);
    bench.set(per_second(1));
    let (volume, core) = (Arc::clone(&bench.volume), bench.node.core(1));
    let worker = Rc::clone(&core);
    let (volume_at, began) = (Arc::clone(&volume), core.now());
    let took = bench.run(60, async move {
        let lane = volume.open(&worker).await.unwrap();
        drop(lane.submit(read(0, Class::Foreground)));
        let data = Buf::copy_of(&[7; 512]);
        let range = LbaRange::new(Lba(5), BlockCount(1)).unwrap();
        let write = Op::Write {
            range,
            data,
            durability: Durability::Cached,
        };
        drop(lane.submit(Io::new(write, Origin::default())));
        lane.submit(Io::new(Op::Flush, Origin::default()))
            .await
            .unwrap();
        assert!(worker.now().since(began) < Duration::from_millis(1));
        lane.submit(read(0, Class::Foreground)).await.unwrap();
        worker.now().since(began)
    });
    assert!((2..=3).contains(&took.as_secs()), "{took:?}");
    let worker = Rc::clone(&core);
    let byte = bench.run(60, async move {
        let lane = volume_at.open(&worker).await.unwrap();
        let done = lane.submit(read(0, Class::Foreground)).await.unwrap();
        let volume::Done::Data(data) = done else {
            panic!()
        };
        data.to_vec()[5 * 512]
    });
    assert_eq!(byte, 7, "dropping the answer did not drop the write");
}
