//! What is read out of a log again is what was heard when it was put in. The oracle is a carrier
//! that keeps all that it hears.

use crate::DAY;
use crate::node::{Scene, make, open_volumes};
use env::CoreHandle;
use env::sim::{FaultPlan, Node, Rng, World, WorldConfig};
use proof::plain_pool::JOURNAL;
use proof::seeds::seeds;
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};
use volume::{Durability, Io, IoFuture, Lane, Op, Origin, Provision, Zeroing};
use write_back::{Carrier, Change, Journal, NotRead, Place, Sequence, WriteBack};

/// All that was heard of a volume.
#[derive(Default)]
struct Heard {
    changes: RefCell<Vec<(Change, Buf)>>,
    stable: RefCell<Sequence>,
    /// What is stable is committed at once.
    commits: RefCell<Option<(CoreHandle, Arc<WriteBack>)>>,
}

struct Ear(Rc<Heard>);

impl Carrier for Ear {
    fn submitted(&self, changes: Vec<(Change, Buf)>) {
        self.0.changes.borrow_mut().extend(changes);
    }

    fn stable(&self, below: Sequence) {
        *self.0.stable.borrow_mut() = below;
        if let Some((core, volume)) = self.0.commits.borrow().clone() {
            let here = Rc::clone(&core);
            core.spawn(Box::pin(async move {
                volume.commit(&here, 0, (1, below)).await.unwrap();
            }));
        }
    }
}

#[derive(Default)]
struct Hears(RefCell<Option<Rc<Heard>>>);

struct Pool {
    core: CoreHandle,
    journal: Arc<Journal>,
    volumes: Vec<Arc<WriteBack>>,
    lanes: Vec<Rc<dyn Lane>>,
    heard: Vec<Rc<Heard>>,
}

async fn open(core: CoreHandle, scene: Scene) -> Pool {
    let (journal, volumes) = open_volumes(&core, scene).await;
    let (mut lanes, mut heard) = (Vec::new(), Vec::new());
    for volume in &volumes {
        let opened = volume::Volume::open(Arc::<WriteBack>::clone(volume), &core);
        lanes.push(opened.await.unwrap());
        let hears = Rc::<Heard>::default();
        *core.locals().get::<Hears>().0.borrow_mut() = Some(Rc::clone(&hears));
        let carried = volume.carry(&core, 0, |core| {
            let hears = core.locals().get::<Hears>().0.borrow_mut().take();
            Rc::new(Ear(hears.unwrap()))
        });
        carried.await.unwrap();
        heard.push(hears);
    }
    Pool {
        core,
        journal,
        volumes,
        lanes,
        heard,
    }
}

fn range(lba: u64, blocks: u64) -> LbaRange {
    LbaRange::new(Lba(lba), BlockCount(blocks)).unwrap()
}

impl Pool {
    /// Its first epoch.
    fn own(&self, volume: usize) {
        let (core, on) = (Rc::clone(&self.core), Arc::clone(&self.volumes[volume]));
        self.core.spawn(Box::pin(async move {
            // It is answered when it is committed.
            let _ = on.begin_epoch(&core, 0, (1, Sequence(0))).await;
        }));
    }

    fn ask(&self, volume: usize, op: Op) -> IoFuture {
        self.lanes[volume].submit(Io::new(op, Origin::default()))
    }

    fn write(&self, volume: usize, range: LbaRange, byte: u64, block: BlockSize) -> IoFuture {
        let bytes = usize::try_from(range.len().0 * u64::from(block.bytes())).unwrap();
        let stamp = byte.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
        let data: Vec<u8> = stamp.into_iter().cycle().take(bytes).collect();
        let op = Op::Write {
            range,
            data: Buf::copy_of(&data),
            durability: Durability::Stable,
        };
        self.ask(volume, op)
    }

    async fn pause(&self, time: Duration) {
        self.core.sleep_until(self.core.now().after(time)).await;
    }

    /// All from this number on, in pieces.
    async fn read(&self, from: u64, bytes: usize) -> Result<Vec<(Change, Vec<u8>)>, NotRead> {
        let (mut place, mut all) = (Place::of(Sequence(from)), Vec::new());
        loop {
            let read = self.volumes[0]
                .read_back(&self.core, 0, (place, bytes))
                .await?;
            if read.changes.is_empty() {
                return Ok(all);
            }
            let sum: usize = read.changes.iter().map(|it| it.1.len()).sum();
            assert!(sum <= bytes || read.changes.len() == 1, "{sum}");
            let both = read.changes.into_iter();
            all.extend(both.map(|(change, data)| (change, data.to_vec())));
            assert_eq!(read.next.number().0, from + all.len() as u64);
            place = read.next;
        }
    }

    fn heard(&self, from: u64) -> Vec<(Change, Vec<u8>)> {
        let all = self.heard[0].changes.borrow();
        let from = usize::try_from(from).unwrap();
        let all = all[from..].iter();
        all.map(|(change, data)| (*change, data.to_vec())).collect()
    }
}

fn made(seed: u64, scene: Scene) -> (World, Node) {
    let config = WorldConfig {
        faults: FaultPlan::benign(),
        cores: 1,
        ..WorldConfig::default()
    };
    let world = World::new(seed, config);
    let node = world.node("node");
    world
        .block_on(&node, DAY, make(node.core(0), scene))
        .unwrap();
    (world, node)
}

/// Some changes of the first volume, all stable, and none committed; answers are not waited for.
async fn change(pool: &Pool, rng: &mut Rng, block: BlockSize) -> Vec<IoFuture> {
    pool.own(0);
    pool.pause(Duration::from_millis(5)).await;
    let durability = Durability::Stable;
    let mut answers = Vec::new();
    for which in 0..40 {
        // So little that its share of the log holds it.
        let range = range(rng.below(200), 1 + rng.below(2));
        answers.push(match rng.below(5) {
            0 => pool.ask(
                0,
                Op::WriteZeroes {
                    range,
                    zeroing: Zeroing::KeepAllocated,
                    durability,
                },
            ),
            1 => pool.ask(
                0,
                Op::Discard {
                    range,
                    to: Provision::Deallocated,
                    durability,
                },
            ),
            _ => pool.write(0, range, which + 1, block),
        });
        if rng.below(4) == 0 {
            pool.pause(Duration::from_millis(1)).await;
        }
    }
    // It is relocated in two.
    let many = (600 << 10) / u64::from(block.bytes());
    answers.push(pool.write(0, range(0, many), 77, block));
    // However slow the disk is.
    while pool.heard[0].stable.borrow().0 < 42 {
        pool.pause(Duration::from_millis(5)).await;
    }
    assert_eq!(pool.heard[0].stable.borrow().0, 42);
    answers
}

/// The neighbour fills the log again and again: what is held is relocated.
async fn fill(pool: &Pool, block: BlockSize) {
    let neighbour = (Rc::clone(&pool.core), Arc::clone(&pool.volumes[1]));
    *pool.heard[1].commits.borrow_mut() = Some(neighbour);
    pool.own(1);
    pool.pause(Duration::from_millis(5)).await;
    let many = (64 << 10) / u64::from(block.bytes());
    for turn in 0..80 {
        pool.write(1, range(turn % 8 * many, many), turn, block)
            .await
            .unwrap();
    }
}

#[test]
fn what_is_read_out_of_the_log_is_what_was_put_in_wherever_it_lies_by_now() {
    let mut relocated = 0;
    for seed in seeds(8) {
        let block_size = [BlockSize::B512, BlockSize::B4096][usize::try_from(seed % 2).unwrap()];
        let scene = Scene {
            rings: 1,
            shard_bytes: 1 << 30,
            block_size,
        };
        let (world, node) = made(seed, scene);
        let core = node.core(0);
        let run = async move {
            let pool = open(core, scene).await;
            let mut rng = Rng::new(seed);
            let answers = change(&pool, &mut rng, block_size).await;
            let half = 20;
            let commit = pool.volumes[0].commit(&pool.core, 0, (1, Sequence(half)));
            commit.await.unwrap();
            for bytes in [1, 10 << 10, 1 << 20] {
                // What is committed may be given up at any moment.
                let all = pool.read(0, bytes).await;
                let from = match all {
                    Ok(all) => {
                        assert_eq!(all, pool.heard(0));
                        0
                    }
                    Err(NotRead::Begins { at }) => at.0,
                    Err(error) => panic!("{error:?}"),
                };
                assert!(from <= half, "what is held is there");
                assert_eq!(pool.read(half, bytes).await.unwrap(), pool.heard(half));
            }
            fill(&pool, block_size).await;
            assert_eq!(pool.read(half, 30 << 10).await.unwrap(), pool.heard(half));
            let at = Sequence(half);
            assert_eq!(pool.read(0, 1).await, Err(NotRead::Begins { at }));
            let status = pool.journal.status(&pool.core).await;
            drop(answers);
            (pool.heard(0), status[0].counts.relocated_bytes)
        };
        let (heard, bytes) = world.block_on(&node, DAY, run).unwrap();
        relocated += bytes;
        node.crash();
        node.restart();
        let core = node.core(0);
        let again = async move {
            let pool = open(core, scene).await;
            let order = pool.volumes[0].order(&pool.core, 0).await.unwrap();
            let held = usize::try_from(order.committed.0).unwrap();
            assert_eq!(
                pool.read(order.committed.0, 1 << 20).await.unwrap(),
                heard[held..]
            );
            let all = pool.volumes[0].commit(&pool.core, 0, (1, order.next));
            all.await.unwrap();
            pool.journal.drain(&pool.core).await;
            // A later one may lie behind what the neighbour holds.
            let gone = pool.read(order.committed.0, 1).await;
            let Err(NotRead::Begins { at }) = gone else {
                panic!("{gone:?} where the log has given it up");
            };
            assert!(at > order.committed && at <= order.next, "{at:?}");
            match pool.read(at.0, 1 << 20).await {
                Ok(rest) => assert_eq!(rest, heard[usize::try_from(at.0).unwrap()..]),
                Err(NotRead::Begins { at: later }) => assert!(later > at, "{later:?}"),
                Err(error) => panic!("{error:?}"),
            }
            assert_eq!(pool.read(order.next.0, 1).await, Ok(Vec::new()));
        };
        world.block_on(&node, DAY, again).unwrap();
    }
    assert!(relocated > 1 << 20, "{relocated}");
}

#[test]
fn what_is_damaged_in_the_log_is_named_and_not_read_as_good() {
    for is_committed in [false, true] {
        let scene = Scene {
            rings: 1,
            shard_bytes: 1 << 30,
            block_size: BlockSize::B4096,
        };
        let (world, node) = made(7, scene);
        let (core, disk) = (node.core(0), node.disk());
        let run = async move {
            let pool = open(core, scene).await;
            let answers = change(&pool, &mut Rng::new(3), scene.block_size).await;
            let heard = pool.heard(0);
            let (number, data) = (0..)
                .zip(&heard)
                .find(|(number, it)| *number > 5 && it.1.len() >= 4096)
                .map(|(number, it)| (number, it.1.clone()))
                .unwrap();
            if is_committed {
                let commit = pool.volumes[0].commit(&pool.core, 0, (1, Sequence(number + 3)));
                commit.await.unwrap();
            }
            let journal = disk.durable(Path::new(JOURNAL)).unwrap();
            let lies = journal.chunks(512).position(|it| *it == data[..512]);
            assert!(disk.rot(Path::new(JOURNAL), lies.unwrap() as u64 * 512 + 100));
            let place = Place::of(Sequence(number - 2));
            let read = pool.volumes[0].read_back(&pool.core, 0, (place, 1 << 20));
            let read = read.await.unwrap();
            assert_eq!(read.changes.len(), 2, "those before it");
            let read = pool.volumes[0].read_back(&pool.core, 0, (read.next, 1 << 20));
            let number = Sequence(number);
            assert_eq!(read.await.err(), Some(NotRead::Damaged { number }));
            let after = pool.read(number.0 + 1, 1 << 20).await.unwrap();
            assert_eq!(after, pool.heard(number.0 + 1));
            drop(answers);
        };
        world.block_on(&node, DAY, run).unwrap();
    }
}
