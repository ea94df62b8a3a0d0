//! Power cuts at any moment, with a log above that writes again what no flush had covered.

use super::disk::{KINDS, Kind, flush, make, on_file, open, range, read, write};
use crate::integrity::{Blank, Integrity, IntegrityLane};
use env::sim::{Fault, Hits, World, WorldConfig};
use env::{CoreHandle, detach};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, Lba, LbaRange};
use volume::{Durability, Io, IoFuture, Lane, Op, Origin, Shape, Volume, Wrap, over};
use volume_test::model::{Model, Plan, goes_on, verify};

/// Logical blocks of the model: of 512 bytes each, their checksums take three sectors of a page,
/// which a power cut tears.
const BLOCKS: u64 = 300;

const HOUR: Duration = Duration::from_secs(3600);

struct Entry {
    op: Op,
    /// It was answered.
    done: bool,
    /// It was answered, and was to be stable then.
    stable: bool,
}

/// What a journal above would hold.
#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<Rc<RefCell<Entry>>>>>);

/// Keeps a log of what is asked, which it finds on its core.
struct Logged;

impl Wrap for Logged {
    fn lane(&self, core: &CoreHandle, below: Rc<dyn Lane>, _shape: Shape) -> Rc<dyn Lane> {
        let log = core.locals().get::<RefCell<Log>>().borrow().clone();
        let core = Rc::clone(core);
        Rc::new(LoggedLane { core, below, log })
    }
}

struct LoggedLane {
    core: CoreHandle,
    below: Rc<dyn Lane>,
    log: Log,
}

impl Lane for LoggedLane {
    fn submit(&self, mut io: Io) -> IoFuture {
        let log = Rc::clone(&self.log.0);
        if matches!(io.op(), Op::Flush) {
            let covered: Vec<_> = log
                .borrow()
                .iter()
                .filter(|entry| entry.borrow().done)
                .cloned()
                .collect();
            let answer = self.below.submit(io);
            return detach(&self.core, async move {
                let done = answer.await?;
                log.borrow_mut()
                    .retain(|entry| !covered.iter().any(|it| Rc::ptr_eq(it, entry)));
                Ok(done)
            });
        }
        if !io.op().mutates() {
            return self.below.submit(io);
        }
        let op = io.op().again();
        let stable = io
            .op_mut()
            .durability_mut()
            .is_some_and(|it| *it == Durability::Stable);
        let entry = Rc::new(RefCell::new(Entry {
            op,
            done: false,
            stable: false,
        }));
        log.borrow_mut().push(Rc::clone(&entry));
        let answer = self.below.submit(io);
        detach(&self.core, async move {
            let done = answer.await?;
            let mut entry = entry.borrow_mut();
            entry.done = true;
            entry.stable = stable;
            Ok(done)
        })
    }
}

/// Stable writes that nothing else in the log touches need no replay; everything else is written
/// again, in order.
async fn redo(lane: &Rc<dyn Lane>, log: &Log, unit: u64) -> (u64, u64) {
    let entries = log.0.borrow().clone();
    let checksums = |op: &Op| {
        let range = op.range().unwrap();
        range.start().0 / unit..range.end().0.div_ceil(unit)
    };
    let meets = |a: &Op, b: &Op| {
        let (a, b) = (checksums(a), checksums(b));
        a.start < b.end && b.start < a.end
    };
    let (mut written, mut left) = (0, 0);
    for entry in &entries {
        let alone = entries
            .iter()
            .filter(|other| !Rc::ptr_eq(other, entry))
            .all(|other| !meets(&other.borrow().op, &entry.borrow().op));
        if entry.borrow().stable && alone {
            left += 1;
            continue;
        }
        let op = entry.borrow().op.again();
        lane.submit(Io::new(op, Origin::default())).await.unwrap();
        written += 1;
    }
    lane.submit(Io::new(Op::Flush, Origin::default()))
        .await
        .unwrap();
    log.0.borrow_mut().clear();
    (written, left)
}

/// What was seen.
#[derive(Default, Debug)]
struct Seen {
    cuts: u64,
    before_serving: u64,
    redone: u64,
    not_needed: u64,
    covered: u64,
    hits: Hits,
}

/// Later, all blocks get a checksum; counts where none is left without.
async fn cover(
    core: CoreHandle,
    (lane, volume): (Rc<IntegrityLane>, Arc<Integrity>),
    later: Duration,
    covered: Rc<Cell<u64>>,
) {
    core.sleep_until(core.now().after(later)).await;
    // What the model has not.
    let range = LbaRange::between(Lba(BLOCKS), Lba(BLOCKS + 28)).unwrap();
    let op = Op::Read { range, into: None };
    let read = lane.submit(Io::new(op, Origin::default()));
    read.await.unwrap();
    lane.cover().await.unwrap();
    let all = volume.without_checksum().0 == 0;
    covered.set(covered.get() + u64::from(all));
}

/// One life after the other, each ended by a power cut.
fn lives(seed: u64, kind: Kind, seen: &mut Seen) {
    let world = World::new(seed, WorldConfig::default());
    let node = world.node("node");
    let below = on_file(kind, BLOCKS + 28);
    let unit = kind.unit();
    let (core, made) = (node.core(0), Arc::clone(&below));
    // Each third one as one that has got its map later.
    let blank = if seed.is_multiple_of(3) {
        Blank::Anything
    } else {
        Blank::Zeroes
    };
    let first = async move { make(&core, &made, blank).await };
    world.block_on(&node, HOUR, first).unwrap();
    let model = Model::new(kind.block_size, BlockCount(BLOCKS)).keeping_whole(512);
    let model = Rc::new(RefCell::new(model));
    let log = Log::default();
    let mut draw = volume_test::draw::Draw::new(seed);
    let covered = Rc::new(Cell::new(0));
    for life in 0..8 {
        let core = node.core(0);
        core.locals().get::<RefCell<Log>>().replace(log.clone());
        let (below, judge, log) = (Arc::clone(&below), Rc::clone(&model), log.clone());
        let redone = Rc::new(Cell::new(None));
        let counted = Rc::clone(&redone);
        let (covered, later) = (
            Rc::clone(&covered),
            Duration::from_micros(draw.below(3_000)),
        );
        let life = async move {
            let (volume, findings) = open(&core, &below).await;
            let checked = volume.lane(&core).await.unwrap();
            let lane: Rc<dyn Lane> = Rc::<IntegrityLane>::clone(&checked);
            counted.set(Some(redo(&lane, &log, unit).await));
            volume.replayed();
            verify(&lane, &volume.shape(), &judge).await;
            assert_eq!(*findings.lock().unwrap(), [], "nothing was damaged");
            let counts = Arc::clone(&volume);
            core.spawn(Box::pin(cover(
                Rc::clone(&core),
                (checked, counts),
                later,
                covered,
            )));
            let plan = Plan {
                steps: 1_000_000,
                whole_bytes: 512,
                ..Plan::new(seed * 31 + life)
            };
            goes_on(&core, over(Logged, volume as Arc<dyn Volume>), plan, judge).await;
        };
        node.core(0).spawn(Box::pin(life));
        // Many end while they begin, when what was found is written again.
        let most = if draw.below(2) == 0 { 4_000 } else { 40_000 };
        world.run_for(Duration::from_micros(draw.below(most)));
        node.crash();
        model.borrow_mut().cut();
        node.restart();
        seen.cuts += 1;
        match redone.get() {
            None => seen.before_serving += 1,
            Some((written, left)) => {
                seen.redone += written;
                seen.not_needed += left;
            }
        }
    }
    if blank == Blank::Anything {
        seen.covered += covered.get();
    }
    seen.hits.add(&world.hits());
}

#[test]
fn after_a_power_cut_at_any_moment_and_a_replay_every_block_fits_and_is_allowed() {
    let mut seen = Seen::default();
    for kind in KINDS {
        for seed in 0..100 {
            lives(seed, kind, &mut seen);
        }
    }
    let cut = [
        Fault::CutKept,
        Fault::CutDropped,
        Fault::CutTorn,
        Fault::CutReplaced,
    ];
    assert_eq!(seen.hits.missing(&cut), []);
    assert!(seen.covered > 100, "{seen:?}");
    assert!(seen.before_serving > 20 && seen.not_needed > 20, "{seen:?}");
    println!(
        "{} power cuts, {} of them before serving; {} writes redone, {} stable ones found as they were",
        seen.cuts, seen.before_serving, seen.redone, seen.not_needed
    );
}

/// A block is written and flushed twice; after a crash another one of the same page of checksums is
/// written, until the next crash; then the block is read.
fn another_of_its_page(seed: u64, kind: Kind) -> Hits {
    let world = World::new(seed, WorldConfig::default());
    let node = world.node("node");
    let below = on_file(kind, 2048);
    let unit = kind.unit();
    let contents = move |version| vec![version; usize::try_from(kind.bytes()).unwrap()];
    let (core, under) = (node.core(0), Arc::clone(&below));
    let flushed = async move {
        make(&core, &under, Blank::Zeroes).await;
        let (volume, _) = open(&core, &under).await;
        let lane = volume.lane(&core).await.unwrap();
        for version in [1, 2] {
            let written = write(&lane, range(0, unit), &contents(version)).await;
            written.unwrap();
            flush(&lane).await;
        }
    };
    world.block_on(&node, HOUR, flushed).unwrap();
    node.crash();
    node.restart();
    let (core, under) = (node.core(0), Arc::clone(&below));
    let life = async move {
        let (volume, _) = open(&core, &under).await;
        let lane = volume.lane(&core).await.unwrap();
        // Its checksum lies in another sector than that of the first one.
        let written = write(&lane, range(200 * unit, unit), &contents(3)).await;
        written.unwrap();
        flush(&lane).await;
    };
    node.core(0).spawn(Box::pin(life));
    let mut draw = volume_test::draw::Draw::new(seed);
    world.run_for(Duration::from_micros(draw.below(3_000)));
    node.crash();
    node.restart();
    let core = node.core(0);
    let read = async move {
        let (volume, findings) = open(&core, &below).await;
        let lane = volume.lane(&core).await.unwrap();
        let found = read(&lane, range(0, unit)).await;
        assert_eq!(found, Ok(contents(2)), "seed {seed}: {findings:?}");
    };
    world.block_on(&node, HOUR, read).unwrap();
    world.hits()
}

#[test]
fn what_a_flush_has_covered_stays_whatever_becomes_of_the_writes_after_a_crash() {
    let mut hits = Hits::default();
    for kind in KINDS {
        for seed in 0..300 {
            hits.add(&another_of_its_page(seed, kind));
        }
    }
    assert_eq!(hits.missing(&[Fault::CutTorn, Fault::CutReplaced]), []);
}
