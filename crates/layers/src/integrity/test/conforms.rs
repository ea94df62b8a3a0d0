//! The layer keeps the waist's promises, whatever is below.

use super::disk::{
    EMULATED, KINDS, Kind, PAGES, SECTORS, ask, flush, make, on_file, open, open_with, range, read,
    write,
};
use crate::integrity::Blank;
use crate::test::{poor, simulate};
use env::sim::{FaultPlan, World, WorldConfig};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::BlockCount;
use volume::{IoError, Op, OpKind, Volume, over};
use volume_test::model::{Plan, conforms};
use volume_test::{Action, Faults, Odds};

async fn conforms_and_reopens(core: env::CoreHandle, kind: Kind, blank: Blank, seed: u64) {
    // 251 blocks of 512 bytes: the last checksum of 4 KiB covers three of them.
    let below = if seed.is_multiple_of(2) {
        on_file(kind, 251)
    } else {
        poor(kind.block_size)
    };
    make(&core, &below, blank).await;
    let (volume, findings) = open(&core, &below).await;
    let slow = Faults::new();
    slow.by_chance(
        seed,
        Odds {
            delay: 3,
            ..Odds::default()
        },
    );
    let all: Arc<dyn Volume> = over(slow, Arc::clone(&volume) as Arc<dyn Volume>);
    let mut plan = Plan::new(seed);
    plan.blocks = BlockCount(251);
    let shape = all.shape();
    conforms(&core, all, plan).await.assert_covers(&shape);
    assert_eq!(*findings.lock().unwrap(), []);
    assert_eq!(volume.counts().mismatches, 0);
    volume.close(&core).await.unwrap();
    let (again, _) = open(&core, &below).await;
    let lane = again.lane(&core).await.unwrap();
    read(&lane, range(0, 5)).await.unwrap();
}

#[test]
fn it_conforms_over_files_and_poor_volumes_of_both_block_sizes_and_blanks() {
    for kind in KINDS {
        for blank in [Blank::Zeroes, Blank::Anything] {
            for seed in 0..12 {
                simulate(seed, move |core| {
                    Box::pin(conforms_and_reopens(core, kind, blank, seed))
                });
            }
        }
    }
}

#[test]
fn failures_below_leave_old_or_new_blocks_that_can_be_read() {
    for kind in KINDS {
        for seed in 0..20 {
            simulate(seed, move |core| {
                Box::pin(async move {
                    let faults = Faults::new();
                    let odds = Odds {
                        fail: 15,
                        fail_after: 15,
                        ..Odds::default()
                    };
                    faults.by_chance(seed, odds);
                    let below = over(faults.clone(), on_file(kind, 256));
                    make(&core, &below, Blank::Zeroes).await;
                    let (volume, findings) = open(&core, &below).await;
                    let stop = Faults::new();
                    let all = over(stop, Arc::clone(&volume) as Arc<dyn Volume>);
                    let mut plan = Plan::new(seed);
                    plan.errors = true;
                    plan.steps = 200;
                    let healed = over(Healing(faults), all);
                    conforms(&core, healed, plan).await;
                    assert_eq!(*findings.lock().unwrap(), []);
                })
            });
        }
    }
}

/// Ends the faults when the last lane asks for everything: the test's last read must succeed.
struct Healing(Faults);

impl volume::Wrap for Healing {
    fn lane(
        &self,
        _core: &env::CoreHandle,
        below: Rc<dyn volume::Lane>,
        shape: volume::Shape,
    ) -> Rc<dyn volume::Lane> {
        Rc::new(HealingLane {
            below,
            faults: self.0.clone(),
            all: shape.block_count.0.min(64),
        })
    }
}

struct HealingLane {
    below: Rc<dyn volume::Lane>,
    faults: Faults,
    all: u64,
}

impl volume::Lane for HealingLane {
    fn submit(&self, io: volume::Io) -> volume::IoFuture {
        if matches!(io.op(), Op::Read { range, .. } if range.start().0 == 0 && range.len().0 == self.all)
        {
            self.faults.by_chance(0, Odds::default());
        }
        self.below.submit(io)
    }
}

async fn writer(core: env::CoreHandle, volume: Arc<crate::Integrity>, seed: u64, mark: u8) {
    let lane = volume.lane(&core).await.unwrap();
    let mut draw = volume_test::draw::Draw::new(u64::from(mark) + seed * 7);
    for n in 0..60 {
        let (at, len) = (draw.below(40), 1 + draw.below(20));
        let bytes = vec![mark ^ n; usize::try_from(len).unwrap() * 512];
        write(&lane, range(at, len), &bytes).await.unwrap();
        read(&lane, range(draw.below(40), 9)).await.unwrap();
    }
    flush(&lane).await;
}

#[test]
fn writers_on_two_cores_at_the_same_blocks_leave_checksums_that_fit() {
    for seed in 0..30 {
        let config = WorldConfig {
            faults: FaultPlan::benign(),
            ..WorldConfig::default()
        };
        let world = World::new(seed, config);
        let node = world.node("node");
        let (core, other) = (node.core(0), node.core(1));
        let test = async move {
            let below = on_file([SECTORS, EMULATED][usize::from(seed % 2 == 0)], 512);
            make(&core, &below, Blank::Zeroes).await;
            let (volume, findings) = open(&core, &below).await;
            let theirs = writer(Rc::clone(&other), Arc::clone(&volume), seed, 0x80);
            let done = env::detach(&other, theirs);
            writer(Rc::clone(&core), Arc::clone(&volume), seed, 0).await;
            done.await;
            let lane = volume.lane(&core).await.unwrap();
            ask(&lane, Op::Flush).await.unwrap();
            read(&lane, range(0, 64)).await.unwrap();
            assert_eq!(volume.counts().mismatches, 0);
            assert_eq!(*findings.lock().unwrap(), []);
        };
        world
            .block_on(&node, Duration::from_secs(3600), test)
            .unwrap();
    }
}

#[test]
fn memory_stays_bounded_and_a_sparse_volume_reads_its_map_once_a_page() {
    for kind in [PAGES, SECTORS] {
        simulate(3, move |core| {
            Box::pin(async move {
                // 1 TiB, of which every 8th page of checksums has a block: far more pages than may
                // stay.
                let below = on_file(kind, (1 << 40) / kind.bytes());
                make(&core, &below, Blank::Zeroes).await;
                let (volume, _) =
                    open_with(&core, &below, |options| options.resident_bytes = 1 << 20).await;
                let lane = volume.lane(&core).await.unwrap();
                let base = volume.counts().resident_bytes;
                let places: Vec<u64> = (0..1500).map(|n| n * 8 * 1008 + n % 1008).collect();
                for &at in &places {
                    let bytes = vec![at.to_le_bytes()[0]; usize::try_from(kind.bytes()).unwrap()];
                    write(&lane, range(at, 1), &bytes).await.unwrap();
                }
                flush(&lane).await;
                assert_eq!(
                    volume.counts().page_reads,
                    0,
                    "nothing was there to be read"
                );
                for &at in &places {
                    assert_eq!(
                        read(&lane, range(at, 1)).await.unwrap()[0],
                        at.to_le_bytes()[0]
                    );
                    read(&lane, range(at + 1008 * 3, 1)).await.unwrap();
                }
                let counts = volume.counts();
                assert!(counts.page_reads <= 1500, "{counts:?}");
                assert!(
                    counts.page_reads >= 1000,
                    "they did not all stay: {counts:?}"
                );
                assert!(
                    counts.resident_bytes <= base + (2 << 20),
                    "{base}, then {counts:?}"
                );
                println!(
                    "1500 written, 3000 reads of a sparse 1 TiB: {counts:?}, tree {base} bytes"
                );
            })
        });
    }
}

#[test]
fn a_volume_that_shrinks_and_grows_again_reads_zeroes_at_its_end() {
    simulate(4, |core| {
        Box::pin(async move {
            let sizes = [(5000, 2000), (4096, 17), (3000, 1501)];
            for ((large, small), kind) in sizes
                .into_iter()
                .flat_map(|it| [(it, SECTORS), (it, EMULATED)])
            {
                let below = on_file(kind, large);
                make(&core, &below, Blank::Zeroes).await;
                let (volume, _) = open(&core, &below).await;
                let lane = volume.lane(&core).await.unwrap();
                for at in (0..large).step_by(1000) {
                    let len = 1000.min(large - at);
                    let bytes = vec![9; usize::try_from(len).unwrap() * 512];
                    write(&lane, range(at, len), &bytes).await.unwrap();
                }
                volume.close(&core).await.unwrap();
                let cut = on_file(kind, small);
                let (volume, _) = open(&core, &cut).await;
                volume.close(&core).await.unwrap();
                let file = super::disk::open_raw(&core, super::disk::DATA).await;
                file.submit(env::FileOp::SetLen { len: small * 512 })
                    .await
                    .unwrap();
                let (volume, findings) = open(&core, &below).await;
                let lane = volume.lane(&core).await.unwrap();
                let kept = read(&lane, range(0, small.min(2000))).await.unwrap();
                assert!(kept.iter().all(|&byte| byte == 9));
                for at in (small..large).step_by(1000) {
                    let bytes = read(&lane, range(at, 1000.min(large - at))).await.unwrap();
                    assert!(bytes.iter().all(|&byte| byte == 0));
                }
                assert_eq!(*findings.lock().unwrap(), []);
                for path in [super::disk::DATA, super::disk::CHECKSUMS] {
                    core.files()
                        .remove(std::path::Path::new(path))
                        .await
                        .unwrap();
                }
            }
        })
    });
}

#[test]
fn a_write_that_its_fence_stops_leaves_block_and_checksum_as_they_were() {
    for kind in KINDS {
        simulate(7, move |core| {
            Box::pin(async move {
                let file = on_file(kind, 64);
                make(&core, &file, Blank::Zeroes).await;
                let stop = Faults::new();
                let below: Arc<dyn Volume> = over(stop.clone(), file);
                let (volume, findings) = open(&core, &below).await;
                let lane = volume.lane(&core).await.unwrap();
                let bytes = usize::try_from(kind.block_size.bytes()).unwrap();
                // A whole block, which goes down at once, and a part of one, or two of them.
                for at in [range(0, kind.unit()), range(17, 2)] {
                    let of = |byte| vec![byte; bytes * usize::try_from(at.len().0).unwrap()];
                    write(&lane, at, &of(1)).await.unwrap();
                    stop.once(OpKind::Write, Action::Fail(IoError::Fenced));
                    let refused = write(&lane, at, &of(2)).await;
                    assert_eq!(refused, Err(IoError::Fenced));
                    assert_eq!(read(&lane, at).await.unwrap(), of(1));
                    // The next one who reads what was half done adopts its checksum.
                    let torn = Action::FailAfter(IoError::MediumError { lba: at.start() });
                    stop.once(OpKind::Write, torn);
                    assert!(write(&lane, at, &of(3)).await.is_err());
                    assert_eq!(read(&lane, at).await.unwrap(), of(3));
                }
                assert_eq!(*findings.lock().unwrap(), []);
                assert!(volume.counts().adopted >= 2, "{:?}", volume.counts());
            })
        });
    }
}
