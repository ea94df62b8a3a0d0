//! Two nodes with copies of the same volumes, each on a simulated disk of its own, joined by a
//! connection that delays and is lost. Who owns a volume is decided by hand. Power fails at any
//! moment, on one node or both.
//!
//! Oracles: the model disk for what hosts read; what everybody knows to be committed, for what is
//! read on either node and what lies in a backing volume; at rest both backing volumes are equal,
//! byte by byte, and so are numbers and cuts.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy knows only test functions"
)]

mod node;
mod read_back;
mod wire;

use env::CoreHandle;
use env::sim::{FaultPlan, Node, Rng, World, WorldConfig};
use futures_util::future::{Either, select};
use node::{Broken, Scene, Side, Stream, Truths, VOLUME_BYTES, VOLUMES, make, open, path, without};

use proof::seeds::seeds;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, BlockSize, Lba, LbaRange};
use volume::{Done, Io, IoError, Op, Origin, Volume};
use volume_test::model::{Model, Plan, TAG_ZERO, goes_on, recognise, verify};
use wire::Wire;
use write_back::Mode;

const DAY: Duration = Duration::from_secs(86_400);
/// Blocks that hosts work on.
const BLOCKS: u64 = 64;
const LIVES: u64 = 5;

/// How often what happened that the test is about.
#[derive(Clone, Copy, Default, Debug)]
struct Seen {
    crashes: u64,
    takeovers: u64,
    /// An owner that went on under a later epoch.
    restarts: u64,
    lost: u64,
    read_back: u64,
    given_up: u64,
    cuts: u64,
    reads: u64,
}

struct Host {
    model: Rc<RefCell<Model>>,
    owner: usize,
    epoch: u64,
    /// Ends it, where it works.
    stop: Rc<tokio::sync::Notify>,
    works: Rc<Cell<bool>>,
}

struct Run {
    seed: u64,
    scene: Scene,
    broken: Broken,
    world: World,
    nodes: [Node; 2],
    sides: [Option<Side>; 2],
    wire: Rc<Wire>,
    truths: Truths,
    hosts: Vec<Host>,
    rng: Rng,
    seen: Rc<Cell<Seen>>,
}

fn scene(seed: u64) -> Scene {
    let rings = 1 + u32::try_from(seed % 2).unwrap();
    Scene {
        rings,
        shard_bytes: 16 << 10,
        block_size: [BlockSize::B512, BlockSize::B4096][usize::try_from(seed / 2 % 2).unwrap()],
    }
}

impl Run {
    fn new(seed: u64, broken: Broken) -> Self {
        let scene = scene(seed);
        let config = WorldConfig {
            faults: FaultPlan::benign(),
            cores: 1,
            ..WorldConfig::default()
        };
        let world = World::new(seed, config);
        let nodes = ["one", "other"].map(|name| world.node(name));
        for node in &nodes {
            world
                .block_on(node, DAY, make(node.core(0), scene))
                .unwrap();
        }
        let host = |volume| Host {
            model: Rc::new(RefCell::new(
                Model::new(scene.block_size, BlockCount(BLOCKS)).keeping_whole(512),
            )),
            owner: volume % 2,
            epoch: 0,
            stop: Rc::default(),
            works: Rc::default(),
        };
        Self {
            seed,
            scene,
            broken,
            world,
            nodes,
            sides: [None, None],
            wire: Wire::new(),
            truths: Truths::default(),
            hosts: (0..VOLUMES).map(host).collect(),
            rng: Rng::new(seed ^ 0x5eed),
            seen: Rc::default(),
        }
    }

    fn saw(&self, what: impl FnOnce(&mut Seen)) {
        let mut seen = self.seen.get();
        what(&mut seen);
        self.seen.set(seen);
    }

    fn open(&mut self, at: usize) {
        if self.sides[at].is_some() {
            return;
        }
        self.nodes[at].restart();
        self.wire.lose(false);
        let delay = Duration::from_micros(20 + 80 * (self.seed % 4));
        let (wire, truths) = (Rc::clone(&self.wire), Rc::clone(&self.truths));
        let (core, how) = (self.nodes[at].core(0), (self.broken, delay));
        let opening = open(core, at, self.scene, wire, truths, how);
        let side = self.world.block_on(&self.nodes[at], DAY, opening).unwrap();
        for volume in 0..VOLUMES {
            let reader = Reader {
                side: side.clone(),
                volume,
                scene: self.scene,
                truths: Rc::clone(&self.truths),
                rng: RefCell::new(self.rng.fork()),
                seen: Rc::clone(&self.seen),
            };
            side.core.spawn(Box::pin(reader.run()));
        }
        self.sides[at] = Some(side);
    }

    fn crash(&mut self, at: usize) {
        let Some(side) = self.sides[at].take() else {
            return;
        };
        self.count(&side);
        drop(side);
        self.nodes[at].crash();
        self.wire.lose(false);
        self.saw(|it| it.crashes += 1);
        self.check_backing(at);
        for host in self.hosts.iter().filter(|it| it.owner == at) {
            host.works.set(false);
            host.model.borrow_mut().cut();
        }
    }

    fn count(&self, side: &Side) {
        for stream in side.streams.values() {
            self.saw(|it| {
                it.read_back += stream.read_back.take();
                it.given_up += stream.given_up.take();
            });
        }
    }

    /// What lies in the backing volumes of this node is committed.
    fn check_backing(&self, at: usize) {
        for volume in 0..VOLUMES {
            let Some(image) = self.nodes[at].disk().durable(&path(volume)) else {
                continue;
            };
            let size = self.scene.block_size.bytes() as usize;
            let blocks = image.chunks(size).take(usize::try_from(BLOCKS).unwrap());
            for (lba, block) in blocks.enumerate() {
                let lba = Lba(lba as u64);
                is_committed(&self.truths, self.scene, volume, lba, block);
            }
        }
    }

    /// Another epoch of a volume, with this owner.
    fn own(&mut self, volume: usize, owner: usize) {
        let host = &mut self.hosts[volume];
        if host.works.get() {
            host.stop.notify_one();
        }
        let was = host.owner;
        (host.owner, host.epoch) = (owner, host.epoch + 1);
        let (epoch, side) = (host.epoch, self.sides[owner].clone().unwrap());
        // What was under way is never known to be done.
        self.world.run_for(Duration::from_micros(1));
        self.hosts[volume].model.borrow_mut().cut();
        self.hosts[volume].works.set(false);
        for (of, stream) in &side.streams {
            if of.0 == volume {
                side.core.spawn(Box::pin(Rc::clone(stream).own(epoch)));
            }
        }
        self.saw(|it| {
            if was == owner {
                it.restarts += 1;
            } else {
                it.takeovers += 1;
            }
        });
    }

    /// Hosts work on the volume at its owner.
    fn work(&mut self, volume: usize, steps: u32) {
        let host = &mut self.hosts[volume];
        let Some(side) = self.sides[host.owner].clone() else {
            return;
        };
        if host.works.replace(true) {
            return;
        }
        host.stop = Rc::default();
        let plan = Plan {
            steps,
            errors: true,
            whole_bytes: 512,
            ..Plan::new(self.rng.draw())
        };
        let (stop, works) = (Rc::clone(&host.stop), Rc::clone(&host.works));
        let (core, model) = (Rc::clone(&side.core), Rc::clone(&host.model));
        let on = Arc::clone(&side.volumes[volume]);
        let cuts = Rc::clone(&self.seen);
        let streams = side.streams.iter().filter(|it| it.0.0 == volume);
        let streams: Vec<_> = streams.map(|it| Rc::clone(it.1)).collect();
        let epoch = host.epoch;
        side.core.spawn(Box::pin(async move {
            let work = async {
                serve(&core, &streams, epoch).await;
                if on.cut(&core).await.is_ok() {
                    let mut seen = cuts.get();
                    seen.cuts += 1;
                    cuts.set(seen);
                }
                goes_on(&core, on, plan, model).await;
            };
            if let Either::Left(_) = select(pin!(work), pin!(stop.notified())).await {
                works.set(false);
            }
        }));
    }

    fn life(&mut self, life: u64) {
        let is_down = |at: &usize| self.sides[*at].is_none();
        let late = (0..2)
            .find(is_down)
            .filter(|_| life > 0 && self.rng.below(2) == 0);
        for at in (0..2).filter(|at| Some(*at) != late) {
            self.open(at);
        }
        for volume in 0..VOLUMES {
            let was = self.hosts[volume].owner;
            let works = self.hosts[volume].works.get();
            let moves = self.rng.below(3) == 0;
            if late == Some(was) || (moves && late.is_none()) {
                self.own(volume, 1 - was);
            } else if !works || life == 0 {
                self.own(volume, was);
            }
            self.work(volume, 200);
        }
        for _ in 0..3 {
            let most = 1 + self.seed % 7;
            self.world
                .run_for(Duration::from_micros(300 + self.rng.below(3000 * most)));
            if let Some(at) = late {
                self.open(at);
            }
            if self.rng.below(3) == 0 {
                self.wire.lose(self.rng.below(2) == 0);
                self.saw(|it| it.lost += 1);
                self.world
                    .run_for(Duration::from_micros(self.rng.below(2000)));
                self.wire.mend();
            }
        }
        match self.rng.below(4) {
            0 => self.crash(0),
            1 => self.crash(1),
            2 => {
                self.crash(0);
                self.crash(1);
            }
            _ => {}
        }
    }

    /// However slow the disks are.
    fn all_is_committed(&self, sides: &[Side; 2]) -> bool {
        let has_all = |(node, side): (&Node, &Side)| {
            let all = has_committed_all(side.clone());
            self.world.block_on(node, DAY, all).unwrap()
        };
        self.nodes.iter().zip(sides).all(has_all)
    }

    /// All that hosts asked is answered, both nodes have it, and it is in both backing volumes.
    fn rest(&mut self) {
        for at in 0..2 {
            self.open(at);
        }
        for volume in 0..VOLUMES {
            if !self.hosts[volume].works.get() {
                let owner = usize::try_from(self.rng.below(2)).unwrap();
                self.own(volume, owner);
                self.work(volume, 60);
            }
        }
        let ends = self.world.now().after(Duration::from_secs(600));
        while self.hosts.iter().any(|it| it.works.get()) {
            assert!(self.world.now() < ends, "hosts are not answered");
            self.world.run_for(Duration::from_millis(50));
        }
        let sides = [0, 1].map(|at| self.sides[at].clone().unwrap());
        while !self.all_is_committed(&sides) {
            assert!(self.world.now() < ends, "not all is committed");
            self.world.run_for(Duration::from_millis(50));
        }
        let models = self.hosts.iter().map(|it| Rc::clone(&it.model));
        let models: Vec<_> = models.collect();
        let here = self.nodes[0].core(0);
        let (one, other) = (sides[0].clone(), sides[1].clone());
        let check = async move {
            for (volume, model) in models.iter().enumerate() {
                same_order(&one, &other, volume).await;
                for side in [&one, &other] {
                    let on = &side.volumes[volume];
                    let lane = Arc::<write_back::WriteBack>::clone(on)
                        .open(&side.core)
                        .await;
                    verify(&lane.unwrap(), &on.shape(), model).await;
                }
            }
            one.journal.drain(&here).await;
            other.journal.drain(&other.core).await;
            for side in [&one, &other] {
                let status = side.journal.status(&side.core).await;
                let left: u64 = status.iter().map(|it| it.pages).sum();
                assert_eq!(left, 0, "{status:?}");
            }
        };
        self.world.block_on(&self.nodes[0], DAY, check).unwrap();
        for side in &sides {
            self.count(side);
        }
        for volume in 0..VOLUMES {
            let images = [0, 1].map(|at| self.nodes[at].disk().durable(&path(volume)).unwrap());
            assert_eq!(images[0].len() as u64, VOLUME_BYTES);
            assert!(images[0] == images[1], "volume {volume} differs");
        }
    }
}

/// Until the volume's epoch is committed in all rings: before, hosts would read what is older than
/// what they know.
async fn serve(core: &CoreHandle, streams: &[Rc<Stream>], epoch: u64) {
    while !streams.iter().all(|it| it.serves(epoch)) {
        let soon = core.now().after(Duration::from_micros(50));
        core.sleep_until(soon).await;
    }
}

/// This node knows of nothing that is not.
async fn has_committed_all(side: Side) -> bool {
    for of in side.streams.keys() {
        let order = side.volumes[of.0].order(&side.core, of.1).await.unwrap();
        if order.next != order.committed {
            return false;
        }
    }
    true
}

/// Both nodes know the same numbers, epochs and cuts.
async fn same_order(one: &Side, other: &Side, volume: usize) {
    let history = one.volumes[volume].history(&one.core).await;
    let theirs = other.volumes[volume].history(&other.core).await;
    assert_eq!(history, theirs, "volume {volume}");
    for of in one.streams.keys().filter(|it| it.0 == volume) {
        let ours = one.volumes[volume].order(&one.core, of.1).await.unwrap();
        let theirs = other.volumes[volume]
            .order(&other.core, of.1)
            .await
            .unwrap();
        let known = |it: &write_back::RingOrder| (it.next, it.stable, it.committed);
        assert_eq!(known(&ours), known(&theirs), "{of:?}");
        assert_eq!(ours.next, ours.committed, "{of:?}: all is committed");
        assert_eq!(ours.epochs.last(), theirs.epochs.last(), "{of:?}");
    }
}

/// What a block holds is committed.
fn is_committed(truths: &Truths, scene: Scene, volume: usize, lba: Lba, block: &[u8]) {
    // A block that was being written when the power failed may be torn.
    let Some(tag) = recognise(lba, block).filter(|it| *it != TAG_ZERO) else {
        return;
    };
    let shard = lba.0 * u64::from(scene.block_size.bytes()) / scene.shard_bytes;
    let ring = (shard + 100 + volume as u64) % u64::from(scene.rings);
    let truths = truths.borrow();
    let truth = &truths[&(volume, u32::try_from(ring).unwrap())];
    let number = truth.numbers[&(tag, lba)];
    let committed = truth.committed;
    assert!(
        number < committed,
        "{lba:?} of volume {volume} shows number {number}, {committed} are committed"
    );
}

/// Reads on a node, whether it owns the volume or not.
struct Reader {
    side: Side,
    volume: usize,
    scene: Scene,
    truths: Truths,
    rng: RefCell<Rng>,
    seen: Rc<Cell<Seen>>,
}

impl Reader {
    async fn run(self) {
        let core = Rc::clone(&self.side.core);
        let volume = Arc::clone(&self.side.volumes[self.volume]);
        let lane = volume.open(&core).await.unwrap();
        loop {
            let lba = Lba(self.rng.borrow_mut().below(BLOCKS));
            let range = LbaRange::new(lba, BlockCount(1)).unwrap();
            let read = Io::new(Op::Read { range, into: None }, Origin::default());
            match lane.submit(read).await {
                Ok(Done::Data(data)) => {
                    let block = data.to_vec();
                    is_committed(&self.truths, self.scene, self.volume, lba, &block);
                    let mut seen = self.seen.get();
                    seen.reads += 1;
                    self.seen.set(seen);
                }
                Err(IoError::Unavailable) => {}
                other => panic!("{lba:?}: {other:?}"),
            }
            let pause = Duration::from_micros(50 + self.rng.borrow_mut().below(400));
            core.sleep_until(core.now().after(pause)).await;
        }
    }
}

fn run(seed: u64, broken: Broken) -> Seen {
    let mut run = Run::new(seed, broken);
    for life in 0..LIVES {
        run.life(life);
    }
    run.rest();
    run.seen.get()
}

#[test]
fn what_was_acknowledged_is_on_both_nodes_whatever_fails_and_both_become_equal() {
    let mut all = Seen::default();
    for seed in seeds(60) {
        println!("seed {seed}: {:?}", scene(seed));
        let seen = run(seed, Broken::Nothing);
        all.crashes += seen.crashes;
        all.takeovers += seen.takeovers;
        all.restarts += seen.restarts;
        all.lost += seen.lost;
        all.read_back += seen.read_back;
        all.given_up += seen.given_up;
        all.cuts += seen.cuts;
        all.reads += seen.reads;
    }
    println!("{all:?}");
    assert!(
        all.crashes > 100 && all.takeovers > 60 && all.restarts > 60,
        "{all:?}"
    );
    assert!(
        all.read_back > 500 && all.given_up > 50 && all.cuts > 60,
        "{all:?}"
    );
}

#[test]
fn a_volume_with_copies_has_a_history_and_no_volatile_cache() {
    let world = World::new(1, WorldConfig::default());
    let node = world.node("node");
    let core = node.core(0);
    let scene = scene(0);
    let run = async move {
        make(Rc::clone(&core), scene).await;
        let cause = without(&core, scene, None, Mode::WriteBack).await;
        assert!(cause.contains("no history"), "{cause}");
        let history = Some("/pool/volume-0.changes".into());
        let cause = without(&core, scene, history, Mode::Volatile).await;
        assert!(cause.contains("volatile"), "{cause}");
    };
    world.block_on(&node, DAY, run).unwrap();
}

#[test]
fn each_rule_that_is_broken_is_found() {
    for broken in [
        Broken::AckBeforeStable,
        Broken::CommitAlone,
        Broken::KeepOwn,
    ] {
        let found = (0..200).find(|seed| {
            let run = AssertUnwindSafe(|| run(*seed, broken));
            catch_unwind(run).is_err()
        });
        println!("{broken:?}: found with seed {found:?}");
        assert!(found.is_some(), "{broken:?} makes no difference");
    }
}
