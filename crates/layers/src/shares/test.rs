//! The queue against what it promises, in arbitrary histories; and the layer over cores and a disk
//! of a given speed, in virtual time.

use super::*;
use crate::limit::{Limit, Rates};
use env::sim::{Node, World, WorldConfig};
use std::collections::VecDeque;
use units::{BlockCount, BlockSize, Lba, LbaRange};
use volume::{Op, Origin, Volume, over};
use volume_test::draw::Draw;
use volume_test::plain::Plain;

/// A flow as a count of its own knows it.
struct Model {
    flow: Flow,
    shares: u32,
    waiting: VecDeque<(ShareWaiter, u64)>,
    under_way: usize,
    /// What went of it while all flows had something waiting.
    went: u64,
}

/// So many flows of arbitrary shares.
fn flows(queue: &mut Queue, draw: &mut Draw, count: u64) -> Vec<Model> {
    let flow = |_| {
        let shares = 50 + u32::try_from(draw.below(1000)).unwrap();
        Model {
            flow: queue.join(shares),
            shares,
            waiting: VecDeque::new(),
            under_way: 0,
            went: 0,
        }
    };
    (0..count).map(flow).collect()
}

impl Model {
    fn is_active(&self) -> bool {
        self.under_way + self.waiting.len() > 0
    }

    fn arrive(&mut self, queue: &mut Queue, cost: u64, at: Now) {
        match queue.arrive(self.flow, cost, at) {
            None => self.under_way += 1,
            Some(waiter) => self.waiting.push_back((waiter, cost)),
        }
    }
}

/// Lets go who may: each must be the first of its flow (I3), and allowed to (I1). Who went.
fn let_go(queue: &mut Queue, flows: &mut [Model], depth: usize, at: Now) -> Vec<usize> {
    let mut went = Vec::new();
    while let Some(waiter) = queue.release(at) {
        let is_its = |it: &Model| it.waiting.front().is_some_and(|it| it.0 == waiter);
        let which = flows.iter().position(is_its).expect("I3");
        let under_way: usize = flows.iter().map(|it| it.under_way).sum();
        let active = flows.iter().filter(|it| it.is_active()).count();
        assert!(
            active == 1 || under_way < depth || flows[which].under_way == 0,
            "I1"
        );
        let (_, cost) = flows[which].waiting.pop_front().unwrap();
        flows[which].under_way += 1;
        flows[which].went += cost;
        went.push(which);
    }
    went
}

/// Arbitrary arrivals and ends: I1, I2 and I3 after each; how many waited.
fn history(seed: u64) -> usize {
    let mut draw = Draw::new(seed);
    let depth = 1 + usize::try_from(draw.below(12)).unwrap();
    let mut queue = Queue::new(depth);
    let count = 1 + draw.below(4);
    let mut all = flows(&mut queue, &mut draw, count);
    let mut waited = 0;
    for step in 0..2_000 {
        // Too little time for anything to hang.
        let at = Now(1 + step * 400_000);
        let which = usize::try_from(draw.below(count)).unwrap();
        if draw.below(2) == 0 {
            let before = queue.waiting();
            all[which].arrive(&mut queue, 1 + draw.below(100_000), at);
            waited += queue.waiting() - before;
        } else if all[which].under_way > 0 {
            all[which].under_way -= 1;
            queue.ended(all[which].flow, at);
        }
        let_go(&mut queue, &mut all, depth, at);
        let under_way: usize = all.iter().map(|it| it.under_way).sum();
        let waiting: usize = all.iter().map(|it| it.waiting.len()).sum();
        assert_eq!((queue.under_way(), queue.waiting()), (under_way, waiting));
        let active = all.iter().filter(|it| it.is_active()).count();
        if waiting > 0 {
            assert!(active > 1 && under_way >= depth, "I2");
        }
        assert!(
            all.iter()
                .all(|it| it.waiting.is_empty() || it.under_way > 0),
            "I2"
        );
    }
    waited
}

#[test]
fn no_history_goes_deeper_or_idles_while_work_waits_or_changes_a_flows_order() {
    let waited: usize = (0..300).map(history).sum();
    assert!(waited > 10_000, "{waited}");
}

#[test]
fn flows_that_always_want_more_get_what_their_shares_say_whatever_their_operations_cost() {
    for seed in 0..100 {
        let mut draw = Draw::new(1000 + seed);
        let mut queue = Queue::new(64);
        let mut all = flows(&mut queue, &mut draw, 3);
        let costs: Vec<u64> = (0..3).map(|_| 10_000 + draw.below(100_000)).collect();
        let at = Now(1);
        for (flow, cost) in all.iter_mut().zip(&costs) {
            for _ in 0..20_000 {
                flow.arrive(&mut queue, *cost, at);
            }
        }
        // The first one had everything while it was alone.
        let mut under_way: VecDeque<usize> = (0..all[0].under_way).map(|_| 0).collect();
        under_way.extend((1..3).flat_map(|which| vec![which; all[which].under_way]));
        while all.iter().all(|it| it.waiting.len() > 1) {
            under_way.extend(let_go(&mut queue, &mut all, 64, at));
            let ends = under_way.pop_front().unwrap();
            all[ends].under_way -= 1;
            queue.ended(all[ends].flow, at);
        }
        let part = |it: &Model| it.went as f64 / f64::from(it.shares);
        let parts: Vec<f64> = all.iter().map(part).collect();
        let most = parts.iter().copied().fold(0.0, f64::max);
        let least = parts.iter().copied().fold(f64::MAX, f64::min);
        let one = *costs.iter().max().unwrap() as f64 * 10.0;
        let slack = one / f64::from(all.iter().map(|it| it.shares).min().unwrap());
        assert!(
            most <= least + slack,
            "seed {seed}: {parts:?}, slack {slack}"
        );
    }
}

#[test]
fn a_flow_that_hangs_holds_up_no_other() {
    let mut queue = Queue::new(8);
    let mut all = flows(&mut queue, &mut Draw::new(1), 2);
    let begun = Now(1);
    for _ in 0..100 {
        all[0].arrive(&mut queue, 1, begun);
    }
    assert_eq!(all[0].under_way, 100, "it was alone");
    for _ in 0..50 {
        all[1].arrive(&mut queue, 1_000_000, begun);
        all[0].arrive(&mut queue, 1, begun);
    }
    assert_eq!(let_go(&mut queue, &mut all, 8, begun), []);
    assert_eq!(all[1].under_way, 1, "one goes at once");
    // It works, one at a time, until the other one has hung for a second.
    let soon = begun.after(Duration::from_millis(500));
    all[1].under_way -= 1;
    queue.ended(all[1].flow, soon);
    assert_eq!(let_go(&mut queue, &mut all, 8, soon), [1]);
    let later = soon.after(HANGS_AFTER);
    all[1].under_way -= 1;
    queue.ended(all[1].flow, later);
    let mut released = 0;
    while queue.release(later).is_some() {
        released += 1;
    }
    assert_eq!(released, 8, "the depth is its own then");
    // One of the other ends: it counts again.
    queue.ended(all[0].flow, later);
    assert_eq!(queue.release(later), None);
}

const CORES: u16 = 2;

/// Operations a second of the disk that two volumes have in common.
const DISK_IOPS: u64 = 4_000;

struct Bench {
    world: World,
    node: Node,
    shares: [Share; 2],
    volumes: [Arc<dyn Volume>; 2],
}

impl Bench {
    fn new(seed: u64) -> Self {
        let config = WorldConfig {
            cores: CORES,
            ..WorldConfig::default()
        };
        let world = World::new(seed, config);
        let node = world.node("node");
        let (disk, pool) = (Limit::new(), Shares::new());
        let shares = [pool.join(None), pool.join(None)];
        let volumes = [0, 1].map(|which: usize| {
            let plain = Plain::make(BlockSize::B512, BlockCount(4096));
            over(shares[which].clone(), over(disk.clone(), plain))
        });
        let (slow, core) = (disk, node.core(0));
        let rates = Rates {
            iops: Some(DISK_IOPS),
            ..Rates::default()
        };
        let set = async move { slow.set(&core, rates).await };
        world.block_on(&node, Duration::from_secs(1), set).unwrap();
        Self {
            world,
            node,
            shares,
            volumes,
        }
    }

    /// As many reads of so many blocks at a time on each volume, spread over the cores, for so
    /// long: how many ended of each.
    fn load(&self, depths: [u64; 2], blocks: [u64; 2], seconds: u64) -> [u64; 2] {
        let until = self.node.core(0).now().after(Duration::from_secs(seconds));
        let done = [0, 1].map(|_| Arc::new(AtomicU64::new(0)));
        for which in 0..2 {
            for stream in 0..depths[which] {
                let core = self.node.core(u16::try_from(stream).unwrap() % CORES);
                let (volume, done) = (Arc::clone(&self.volumes[which]), Arc::clone(&done[which]));
                let worker = Rc::clone(&core);
                let range = LbaRange::new(Lba(stream * 8), BlockCount(blocks[which])).unwrap();
                core.spawn(Box::pin(read_until(worker, volume, range, until, done)));
            }
        }
        let core = self.node.core(0);
        let over = until.after(Duration::from_secs(1));
        let wait = async move { core.sleep_until(over).await };
        self.world
            .block_on(&self.node, Duration::from_secs(seconds + 2), wait)
            .unwrap();
        done.map(|it| it.load(Ordering::Relaxed))
    }
}

/// Reads one after the other, counted.
async fn read_until(
    core: CoreHandle,
    volume: Arc<dyn Volume>,
    range: LbaRange,
    until: Now,
    done: Arc<AtomicU64>,
) {
    let lane = volume.open(&core).await.unwrap();
    while core.now() < until {
        let read = Op::Read { range, into: None };
        lane.submit(Io::new(read, Origin::default())).await.unwrap();
        done.fetch_add(u64::from(core.now() < until), Ordering::Relaxed);
    }
}

fn near(ratio: f64, wanted: f64) -> bool {
    (ratio / wanted - 1.0).abs() < 0.1
}

#[test]
fn volumes_that_compete_get_their_shares_over_all_cores_live_and_one_alone_gets_everything() {
    let bench = Bench::new(1);
    let ratio = |done: [u64; 2]| done[0] as f64 / done[1] as f64;
    // Nobody has shares: who asks for more gets more.
    let free = bench.load([96, 32], [8, 8], 4);
    assert!(near(ratio(free), 3.0), "{free:?}");
    bench.shares[1].set(Some(USUAL));
    let even = bench.load([96, 32], [8, 8], 4);
    assert!(near(ratio(even), 1.0), "{even:?}");
    bench.shares[0].set(Some(400));
    let four = bench.load([64, 64], [8, 8], 4);
    assert!(near(ratio(four), 4.0), "{four:?}");
    let full = DISK_IOPS * 4;
    let all: u64 = four.iter().sum();
    assert!(all > full - full / 50, "nothing idles: {four:?}");
    // Bytes count as well: 20 KiB against 144 KiB of cost. Long, as the disk's first moment is
    // free, and whoever comes first has it alone.
    let large = bench.load([160, 64], [8, 256], 40);
    assert!(near(ratio(large), 4.0 * 144.0 / 20.0), "{large:?}");
    // What one does not use the other has, at any depth.
    let alone = bench.load([0, 128], [8, 8], 4);
    assert!(alone[1] > full - full / 50, "{alone:?}");
    let little = bench.load([1, 64], [8, 8], 4);
    assert!(little[0] > 0 && little.iter().sum::<u64>() > full - full / 50);
    let reported = bench.shares[1].deferred();
    assert!(reported.operations > 1_000 && reported.waited > Duration::from_secs(1));
    // Lifted while it works: what waits goes on.
    for share in &bench.shares {
        share.set(None);
    }
    let free = bench.load([96, 32], [8, 8], 4);
    assert!(near(ratio(free), 3.0), "{free:?}");
}

#[test]
fn what_waits_goes_on_when_shares_are_lifted_and_a_volume_that_leaves_holds_up_nobody() {
    let bench = Bench::new(2);
    bench.shares[0].set(Some(1));
    let core = bench.node.core(0);
    let (share, lift) = (bench.shares[0].clone(), Rc::clone(&core));
    core.spawn(Box::pin(async move {
        lift.sleep_until(lift.now().after(Duration::from_secs(1)))
            .await;
        share.set(None);
    }));
    let done = bench.load([64, 64], [8, 8], 4);
    // A second of next to nothing, and half of the others.
    let half = DISK_IOPS * 3 / 2;
    assert!(done[0].abs_diff(half) < half / 10, "{done:?}");
    let Bench {
        world,
        node,
        shares: [first, second],
        volumes: [_, volume],
    } = bench;
    second.set(Some(50));
    drop(first);
    let (core, range) = (node.core(1), LbaRange::new(Lba(0), BlockCount(8)).unwrap());
    let one = async move {
        let lane = volume.open(&core).await.unwrap();
        let read = Op::Read { range, into: None };
        lane.submit(Io::new(read, Origin::default())).await.unwrap();
    };
    world.block_on(&node, Duration::from_secs(1), one).unwrap();
}
