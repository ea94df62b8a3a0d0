//! What a volume behind a journal knows of its own history: numbers without a gap, cuts, and what
//! changed since them, through power cuts at any moment. The oracle is a list of all that was asked
//! for and acknowledged.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy knows only test functions"
)]

use backends::{FileSpec, Provisioning, create_file, open_file};
use env::sim::{Fault, FaultPlan, Node, Rng, World, WorldConfig};
use env::{CoreHandle, Durable};
use proof::forge::{put, sync_fails};
use proof::plain_pool::{self, JOURNAL, NUMBER};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, BlockSize, Buf, ByteCount, Lba, LbaRange};
use volume::{
    Cut, Done, Durability, ExtentKind, Fences, Io, Lane, Op, Origin, Provision, Volume, Zeroing,
};
use write_back::{Journal, Mode, VolumeId, WriteBack};

const DAY: Duration = Duration::from_secs(86_400);
const BACKING: &str = "/pool/volume";
const HISTORY: &str = "/pool/volume.changes";
/// Blocks of 4096 bytes in one part.
const PART: u64 = 16;
const PARTS: u64 = 160;

fn made(world: &World, rings: u32) -> Node {
    let node = world.node("node");
    let core = node.core(0);
    let make = async move {
        plain_pool::make(&core, rings, PART * 4096).await;
        let size = ByteCount(PARTS * PART * 4096);
        let made = create_file(&core, Path::new(BACKING), size, Provisioning::Thin);
        made.await.unwrap();
    };
    world.block_on(&node, DAY, make).unwrap();
    node
}

fn world(seed: u64) -> World {
    let config = WorldConfig {
        faults: FaultPlan::benign(),
        ..WorldConfig::default()
    };
    World::new(seed, config)
}

struct Open {
    core: CoreHandle,
    journal: Arc<Journal>,
    volume: Arc<WriteBack>,
    lane: Rc<dyn Lane>,
}

async fn open(core: &CoreHandle, mode: Mode) -> Open {
    let journal = Journal::open(core, Path::new(JOURNAL), NUMBER)
        .await
        .unwrap();
    let spec = FileSpec {
        path: BACKING.into(),
        block_size: BlockSize::B4096,
        physical_block_exponent: 0,
        provisioning: Provisioning::Thin,
    };
    let fences = Fences::new(1);
    let backing = open_file(core, spec, fences.clone()).await.unwrap();
    let (id, with) = (VolumeId(100), (fences, mode));
    let volume = WriteBack::with_history(Arc::clone(&journal), id, backing, with, HISTORY.into());
    volume.write_around_from(12 << 10);
    let lane = Arc::clone(&volume).open(core).await.unwrap();
    Open {
        core: Rc::clone(core),
        journal,
        volume,
        lane,
    }
}

fn range(lba: u64, blocks: u64) -> LbaRange {
    LbaRange::new(Lba(lba), BlockCount(blocks)).unwrap()
}

impl Open {
    async fn ask(&self, op: Op) -> Done {
        let answer = self.lane.submit(Io::new(op, Origin::default()));
        answer.await.unwrap()
    }

    async fn write(&self, lba: u64, blocks: u64, byte: u8) {
        let bytes = usize::try_from(blocks * 4096).unwrap();
        let op = Op::Write {
            range: range(lba, blocks),
            data: Buf::copy_of(&vec![byte; bytes]),
            durability: Durability::Stable,
        };
        self.ask(op).await;
    }

    /// The parts that changed since a cut, as the waist reports them.
    async fn changed(&self, since: Cut) -> BTreeSet<u64> {
        let (mut at, mut changed) = (0, BTreeSet::new());
        while at < PARTS * PART {
            let op = Op::Extents {
                range: range(at, PARTS * PART - at),
                since: Some(since),
            };
            let Done::Extents(extents) = self.ask(op).await else {
                panic!("extents answer extents")
            };
            for extent in &extents {
                assert_eq!(extent.range.start().0, at, "no gap");
                at = extent.range.end().0;
                if extent.kind == ExtentKind::Mapped {
                    let parts = extent.range.start().0 / PART..at.div_ceil(PART);
                    changed.extend(parts);
                }
            }
            assert!(!extents.is_empty());
        }
        changed
    }

    async fn numbers(&self) -> Vec<u64> {
        let history = self.volume.history(&self.core).await;
        history.iter().map(|it| it.next.0).collect()
    }
}

/// What was asked for, oldest first.
#[derive(Default)]
struct Asked {
    /// Parts, and whether the change was acknowledged.
    changes: Vec<(BTreeSet<u64>, bool)>,
    /// Cuts that were reported, each after so many changes.
    cuts: Vec<(Cut, usize)>,
}

impl Asked {
    /// Acknowledged after the cut: must be reported. Asked for after it: may be.
    fn since(&self, changes: usize) -> (BTreeSet<u64>, BTreeSet<u64>) {
        let after = &self.changes[changes..];
        let must = after.iter().filter(|it| it.1).flat_map(|it| &it.0);
        let may = after.iter().flat_map(|it| &it.0);
        (must.copied().collect(), may.copied().collect())
    }
}

/// One change after the other, and cuts in between, until the power fails.
async fn work(pool: Rc<Open>, mut rng: Rng, asked: Rc<RefCell<Asked>>) {
    loop {
        if rng.below(12) == 0 {
            let before = asked.borrow().changes.len();
            let cut = pool.volume.cut(&pool.core).await.unwrap();
            let newest = asked.borrow().cuts.last().map(|it| it.0);
            assert!(newest < Some(cut), "cuts rise");
            asked.borrow_mut().cuts.push((cut, before));
            continue;
        }
        let (lba, blocks) = (rng.below(PARTS * PART - 20), 1 + rng.below(8));
        let parts = lba / PART..(lba + blocks).div_ceil(PART);
        asked.borrow_mut().changes.push((parts.collect(), false));
        let durability = Durability::Stable;
        let range = range(lba, blocks);
        let op = match rng.below(5) {
            0 => Op::WriteZeroes {
                range,
                zeroing: Zeroing::KeepAllocated,
                durability,
            },
            1 => Op::Discard {
                range,
                to: Provision::Deallocated,
                durability,
            },
            _ => Op::Write {
                range,
                data: Buf::copy_of(&vec![7; usize::try_from(blocks * 4096).unwrap()]),
                durability,
            },
        };
        pool.ask(op).await;
        asked.borrow_mut().changes.last_mut().unwrap().1 = true;
    }
}

#[test]
fn what_changed_since_a_cut_and_the_numbers_of_changes_survive_every_power_cut() {
    let (mut exact, mut reported) = (0, 0);
    for seed in 0..24 {
        let world = world(seed);
        let rings = 1 + u32::try_from(seed % 2).unwrap();
        let mode = [Mode::WriteBack, Mode::WriteThrough][usize::try_from(seed / 2 % 2).unwrap()];
        let node = made(&world, rings);
        let asked = Rc::new(RefCell::new(Asked::default()));
        let numbers = Rc::new(RefCell::new(Vec::new()));
        for life in 0..5_u64 {
            let (core, here, before) = (node.core(0), Rc::clone(&asked), Rc::clone(&numbers));
            let running = Rc::new(Cell::new(false));
            let started = Rc::clone(&running);
            node.core(0).spawn(Box::pin(async move {
                let pool = Rc::new(open(&core, mode).await);
                // No number is given twice, and none that was reported is gone.
                let now = pool.numbers().await;
                let then: Vec<u64> = std::mem::replace(&mut before.borrow_mut(), now.clone());
                assert!(then.iter().zip(&now).all(|(then, now)| then <= now));
                started.set(true);
                work(pool, Rng::new(seed * 9 + life), here).await;
            }));
            // Some lives end before they have begun.
            let begun = life % 2 == 0;
            let opened = world.run_until(DAY, || !begun || running.get());
            assert!(opened.is_ok(), "it opens");
            world.run_for(Duration::from_millis(6 + 31 * life + 3 * seed));
            node.crash();
            node.restart();
        }
        let (core, here) = (node.core(0), Rc::clone(&asked));
        let last = async move {
            let pool = open(&core, mode).await;
            let asked = here.take();
            assert!(asked.cuts.len() > 3 && asked.changes.len() > 40);
            let mut answers = Vec::new();
            for (cut, changes) in &asked.cuts {
                let (must, may) = asked.since(*changes);
                let changed = pool.changed(*cut).await;
                assert!(
                    changed.is_superset(&must),
                    "{cut:?}: not {:?}",
                    must.difference(&changed)
                );
                let exact = u32::from(changed.is_subset(&may));
                answers.push((changed, exact));
            }
            // The same when all is destaged, and after another start.
            let numbers = pool.numbers().await;
            pool.journal.drain(&core).await;
            let until = core.now().after(Duration::from_millis(300));
            core.sleep_until(until).await;
            pool.journal.close(&core).await;
            drop(pool);
            let pool = open(&core, mode).await;
            println!(
                "{} batches left of {numbers:?} changes",
                pool.journal.replayed()
            );
            assert_eq!(pool.numbers().await, numbers, "they go on without the log");
            for ((cut, _), (before, _)) in asked.cuts.iter().zip(&answers) {
                assert!(pool.changed(*cut).await.is_superset(before));
            }
            let exact: u32 = answers.iter().map(|it| it.1).sum();
            (exact, u32::try_from(answers.len()).unwrap())
        };
        let (right, all) = world.block_on(&node, DAY, last).unwrap();
        (exact, reported) = (exact + right, reported + all);
    }
    println!("{exact} of {reported} answers reported nothing too much");
    assert!(exact * 10 > reported * 8, "{exact} of {reported}");
}

#[test]
fn numbers_have_no_gap_and_a_cut_is_one_of_them() {
    let world = world(3);
    let node = made(&world, 1);
    let core = node.core(0);
    let run = async move {
        let pool = open(&core, Mode::WriteBack).await;
        assert_eq!(pool.numbers().await, [0]);
        for at in 0..10 {
            pool.write(at * 3, 1, 1).await;
        }
        assert_eq!(pool.numbers().await, [10]);
        let cut = pool.volume.cut(&core).await.unwrap();
        let history = pool.volume.history(&core).await;
        assert_eq!((history[0].next.0, history[0].cut), (11, Some(cut)));
        assert_eq!(history[0].cut_at.map(|it| it.0), Some(10));
        assert_eq!(pool.changed(cut).await, BTreeSet::new());
        pool.write(5, 1, 2).await;
        assert_eq!(pool.changed(cut).await, BTreeSet::from([0]));
        // Around the log, and over the end of a part.
        pool.write(10 * PART - 2, 5, 3).await;
        assert_eq!(pool.changed(cut).await, BTreeSet::from([0, 9, 10]));
        let all: BTreeSet<u64> = (0..PARTS).collect();
        assert_eq!(
            pool.changed(Cut(1)).await,
            all,
            "nothing is known of that cut"
        );
    };
    world.block_on(&node, DAY, run).unwrap();
}

/// Writes first in one ring and then in the other, again and again, while cuts are made.
#[test]
fn a_cut_never_has_a_change_without_one_that_was_acknowledged_before_it() {
    let mut between = 0;
    for seed in 0..30 {
        let world = world(100 + seed);
        let node = made(&world, 2);
        let core = node.core(0);
        let run = async move {
            let pool = Rc::new(open(&core, Mode::WriteBack).await);
            let (here, first_ring) = (Rc::clone(&pool), seed % 2);
            let writer = env::detach(&core, async move {
                for write in 0..PARTS {
                    let (pair, ring) = (write / 2, (first_ring + write) % 2);
                    here.write((pair * 2 + ring) * PART, 1, 5).await;
                }
            });
            let mut cuts = Vec::new();
            for at in 0..6 {
                let until = core
                    .now()
                    .after(Duration::from_micros(180 * (at + 1) + 37 * seed));
                core.sleep_until(until).await;
                cuts.push(pool.volume.cut(&core).await.unwrap());
            }
            writer.await;
            let mut split = 0;
            for cut in cuts {
                let after = pool.changed(cut).await;
                for pair in 0..PARTS / 2 {
                    let (first, second) = (pair * 2 + first_ring, pair * 2 + 1 - first_ring);
                    let (first, second) = (after.contains(&first), after.contains(&second));
                    assert!(
                        second || !first,
                        "{cut:?} has the second of {pair} and not the first"
                    );
                    split += u32::from(first != second);
                }
                let whole: Vec<u64> = after.iter().map(|part| part / 2).collect();
                assert!(whole.is_sorted() && whole.last().is_none_or(|it| *it == PARTS / 2 - 1));
            }
            split
        };
        between += world.block_on(&node, DAY, run).unwrap();
    }
    assert!(between > 10, "some cuts were made between both: {between}");
}

/// A history was written and its sync failed; then the process was killed. Who opens it reads from
/// the system's cache what the disk does not have: the log must not be given up on the strength of
/// it.
fn saved_in_a_cache(seed: u64) {
    let world = world(seed);
    world.set_faults(FaultPlan::none());
    let node = made(&world, 1);
    let image = |node: &Node, path: &str| node.disk().durable(Path::new(path)).unwrap();
    let begun = Rc::new(Cell::new(None));
    let (core, cut) = (node.core(0), Rc::clone(&begun));
    let pool = world.block_on(&node, DAY, async move {
        let pool = open(&core, Mode::WriteBack).await;
        pool.write(0, 1, 1).await;
        pool.journal.drain(&core).await;
        pool
    });
    let pool = Rc::new(pool.unwrap());
    let saved = image(&node, HISTORY);
    let here = Rc::clone(&pool);
    let numbers = world.block_on(&node, DAY, async move {
        cut.set(Some(here.volume.cut(&here.core).await.unwrap()));
        here.write(7 * PART, 1, 2).await;
        here.numbers().await
    });
    let logged = image(&node, JOURNAL);
    let here = Rc::clone(&pool);
    let drained = async move { here.journal.drain(&here.core).await };
    world.block_on(&node, DAY, drained).unwrap();
    let newest = image(&node, HISTORY);
    assert!(saved != newest, "it was saved again");
    drop(pool);
    node.crash();
    node.restart();
    let core = node.core(0);
    let forge = async move {
        put(&core, Path::new(JOURNAL), &logged, Durable::Yes).await;
        put(&core, Path::new(HISTORY), &saved, Durable::Yes).await;
        put(&core, Path::new(HISTORY), &newest, Durable::No).await;
    };
    world.block_on(&node, DAY, forge).unwrap();
    world.set_faults(FaultPlan::none().with(Fault::FileSyncError, 1_000_000));
    let core = node.core(0);
    let fails = async move { sync_fails(&core, Path::new(HISTORY)).await };
    world.block_on(&node, DAY, fails).unwrap();
    world.set_faults(FaultPlan::none());
    node.kill();
    for drains in [true, false] {
        node.restart();
        let (core, cut) = (node.core(0), begun.get().unwrap());
        let inspect = async move {
            let pool = open(&core, Mode::WriteBack).await;
            if drains {
                pool.journal.drain(&core).await;
                // Until the log has given up what is destaged.
                let later = core.now().after(Duration::from_secs(60));
                core.sleep_until(later).await;
            }
            (pool.changed(cut).await, pool.numbers().await)
        };
        let (changed, now) = world.block_on(&node, DAY, inspect).unwrap();
        assert!(changed.contains(&7), "seed {seed}, {drains}: {changed:?}");
        // What only the cache had of the page is gone with the power: it may have been the newest,
        // and the page counts as a whole.
        let only = changed == BTreeSet::from([7]);
        assert!(only || !drains, "seed {seed}: {changed:?}");
        assert!(now >= *numbers.as_ref().unwrap(), "seed {seed}: {now:?}");
        node.crash();
    }
}

#[test]
fn a_history_that_an_opening_has_read_from_a_cache_is_on_the_disk_before_the_log_gives_up_what_it_says()
 {
    for seed in 0..16 {
        saved_in_a_cache(200 + seed);
    }
}
