//! A journal that holds what cannot be destaged, or what is damaged in it: nothing is lost, others
//! go on, and what is lost is reported by name. The oracle is a list of what each block was given
//! last.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy knows only test functions"
)]

use backends::{Provisioning, create_file};
use env::sim::{FaultPlan, Node, World, WorldConfig};
use env::{Access, CoreHandle, Create, Durable, FileDone, FileOp, OpenHow};
use futures_util::future::{join, join_all};
use layers::ReadCache;
use proof::forge::put;
use proof::plain_pool::{self, JOURNAL, NUMBER, range};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::{BlockSize, Buf, BufMut, ByteCount, Lba};
use volume::{
    Done, Durability, ExtentKind, Io, IoError, IoFuture, Lane, Op, OpKind, Origin, Volume, Zeroing,
};
use volume_test::fault::{Action, FaultRule, Faults};
use write_back::{Journal, Mode, RingStatus, VolumeId, WriteBack};

const DAY: Duration = Duration::from_secs(86_400);
const BLOCKS: u64 = 1024;

fn path(volume: u64) -> PathBuf {
    format!("/pool/volume-{volume}").into()
}

fn world(seed: u64) -> World {
    let config = WorldConfig {
        faults: FaultPlan::benign(),
        ..WorldConfig::default()
    };
    World::new(seed, config)
}

fn made(world: &World) -> Node {
    let node = world.node("node");
    let core = node.core(0);
    let make = async move {
        plain_pool::make(&core, 1, 1 << 30).await;
        for volume in 0..2 {
            let size = ByteCount(BLOCKS * 4096);
            create_file(&core, &path(volume), size, Provisioning::Thin)
                .await
                .unwrap();
        }
    };
    world.block_on(&node, DAY, make).unwrap();
    node
}

/// A pool that is open: two volumes, the first one's backing volume behind faults.
struct Open {
    core: CoreHandle,
    journal: Arc<Journal>,
    volumes: Vec<Arc<WriteBack>>,
    lanes: Vec<Rc<dyn Lane>>,
}

/// What each block of each volume was given last: 0 where never.
type Reported = Rc<RefCell<BTreeMap<(usize, u64), u32>>>;

async fn open(core: &CoreHandle, faults: &Faults) -> Open {
    let journal = Journal::open(core, Path::new(JOURNAL), NUMBER)
        .await
        .unwrap();
    let (mut volumes, mut lanes) = (Vec::new(), Vec::new());
    for volume in 0..2 {
        let (file, fences) = plain_pool::open_thin(core, &path(volume)).await;
        let mut backing: Arc<dyn Volume> = file;
        if volume == 0 {
            backing = volume::over(faults.clone(), backing);
        }
        let id = VolumeId(100 + volume);
        let volume = WriteBack::new(Arc::clone(&journal), id, backing, fences, Mode::WriteBack);
        volumes.push(Arc::clone(&volume));
        lanes.push(volume.open(core).await.unwrap());
    }
    Open {
        core: Rc::clone(core),
        journal,
        volumes,
        lanes,
    }
}

fn block(volume: usize, lba: u64, stamp: u32) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    if stamp > 0 {
        for (at, word) in bytes.chunks_mut(4).enumerate() {
            let word_of =
                stamp ^ (u32::try_from(lba).unwrap() << 12) ^ (u32::try_from(at).unwrap() << 22);
            word.copy_from_slice(&word_of.to_le_bytes());
        }
        bytes[0] = u8::try_from(volume).unwrap();
    }
    bytes
}

impl Open {
    async fn write(
        &self,
        volume: usize,
        lba: u64,
        stamp: u32,
        reported: &Reported,
    ) -> Result<(), IoError> {
        let op = Op::Write {
            range: range(lba, 1),
            data: Buf::copy_of(&block(volume, lba, stamp)),
            durability: Durability::Stable,
        };
        let written = self.lanes[volume].submit(Io::new(op, Origin::default()));
        written.await?;
        reported.borrow_mut().insert((volume, lba), stamp);
        Ok(())
    }

    async fn zero(&self, volume: usize, lba: u64, reported: &Reported) {
        let op = Op::WriteZeroes {
            range: range(lba, 1),
            zeroing: Zeroing::MayUnmap,
            durability: Durability::Stable,
        };
        let zeroed = self.lanes[volume].submit(Io::new(op, Origin::default()));
        zeroed.await.unwrap();
        reported.borrow_mut().insert((volume, lba), 0);
    }

    async fn read(&self, volume: usize, lba: u64) -> Result<Vec<u8>, IoError> {
        plain_pool::read(&*self.lanes[volume], lba).await
    }

    /// Every block reads as it was given last, but those that are `lost`.
    async fn verify(&self, reported: &Reported, lost: &[(usize, u64)]) {
        for volume in 0..2 {
            for lba in 0..BLOCKS {
                let stamp = reported.borrow().get(&(volume, lba)).copied().unwrap_or(0);
                let read = self.read(volume, lba).await;
                if lost.contains(&(volume, lba)) {
                    assert_eq!(read, Err(IoError::Integrity { lba: Lba(lba) }));
                } else {
                    let wanted = block(volume, lba, stamp);
                    assert!(read.unwrap() == wanted, "{volume}: {lba} is not {stamp}");
                }
            }
        }
    }

    async fn status(&self) -> RingStatus {
        self.journal.status(&self.core).await.pop().unwrap()
    }

    async fn pause(&self, time: Duration) {
        let until = self.core.now().after(time);
        self.core.sleep_until(until).await;
    }
}

fn all_fail(error: IoError) -> FaultRule {
    FaultRule {
        kinds: vec![OpKind::Write, OpKind::WriteZeroes, OpKind::Discard],
        range: None,
        skip: 0,
        times: u64::MAX,
        action: Action::Fail(error),
    }
}

/// Ranges that one answer about the allocation covers at most, where the log knows a volume by
/// ranges without data alone.
const RANGES_OF_AN_ANSWER: u64 = 256;

#[test]
fn an_answer_about_allocation_reads_few_of_the_ranges_that_hosts_gave_up_one_by_one() {
    let world = world(9);
    let node = made(&world);
    let faults = Faults::new();
    let core = node.core(0);
    let run = async move {
        let reported = Reported::default();
        let pool = open(&core, &faults).await;
        for lba in 0..BLOCKS {
            pool.write(0, lba, 1, &reported).await.unwrap();
        }
        pool.journal.drain(&pool.core).await;
        faults.add(all_fail(IoError::SpaceExhausted));
        // All but the last one, each by a change of its own.
        for lba in 0..BLOCKS - 1 {
            pool.zero(0, lba, &reported).await;
        }
        assert_eq!(pool.status().await.pages, 0, "the log has ranges alone");
        let (mut at, mut answers) = (0, 0);
        while at < BLOCKS {
            let op = Op::Extents {
                range: range(at, BLOCKS - at),
                since: None,
            };
            let asked = pool.lanes[0].submit(Io::new(op, Origin::default()));
            let Done::Extents(extents) = asked.await.unwrap() else {
                panic!("extents answer extents")
            };
            let from = at;
            for extent in &extents {
                assert_eq!(extent.range.start().0, at, "no gap");
                at = extent.range.end().0;
                let wanted = match at {
                    BLOCKS => ExtentKind::Mapped,
                    _ => ExtentKind::Deallocated,
                };
                assert_eq!(extent.kind, wanted, "{:?}", extent.range);
            }
            answers += 1;
            assert!(from < at && at - from <= RANGES_OF_AN_ANSWER + 1, "{at}");
        }
        assert_eq!(answers, BLOCKS / RANGES_OF_AN_ANSWER);
    };
    world.block_on(&node, DAY, run).unwrap();
}

#[test]
fn a_volume_that_cannot_be_destaged_keeps_its_data_in_the_log_and_stops_no_other() {
    for seed in 0..6 {
        let world = world(seed);
        let node = made(&world);
        let reported = Reported::default();
        let faults = Faults::new();
        faults.add(all_fail(IoError::SpaceExhausted));
        let (core, here, failing) = (node.core(0), Rc::clone(&reported), faults.clone());
        let run = async move {
            let pool = open(&core, &failing).await;
            for lba in 0..100 + seed * 20 {
                pool.write(0, lba * 3, 1, &here).await.unwrap();
                pool.zero(0, lba * 3 + 1, &here).await;
            }
            // The other one fills the log again and again.
            for write in 0..6 * BLOCKS {
                let (lba, turn) = (write % BLOCKS, 1 + u32::try_from(write / BLOCKS).unwrap());
                pool.write(1, (lba * 7) % BLOCKS, turn, &here)
                    .await
                    .unwrap();
                if lba % 64 == 0 {
                    pool.write(0, lba * 3 % 900, turn, &here).await.unwrap();
                }
            }
            pool.verify(&here, &[]).await;
            let status = pool.status().await;
            assert!(status.counts.relocated_bytes > 1 << 20, "{status:?}");
            assert!(
                status.destage_errors[0].1.contains("no space"),
                "{status:?}"
            );
        };
        world.block_on(&node, DAY, run).unwrap();
        node.crash();
        node.restart();
        let (core, here, failing) = (node.core(0), Rc::clone(&reported), faults.clone());
        let again = async move {
            let pool = open(&core, &failing).await;
            assert_eq!(pool.journal.damaged(), []);
            pool.verify(&here, &[]).await;
            // It may fill half of the log and is refused then; others go on.
            let mut refused = 0;
            for lba in 0..BLOCKS {
                match pool.write(0, lba, 90, &here).await {
                    Ok(()) => {}
                    Err(error) => {
                        assert_eq!(error, IoError::SpaceExhausted);
                        refused += 1;
                    }
                }
            }
            assert!(refused > 100, "{refused}");
            for turn in 20..26 {
                for lba in 0..BLOCKS {
                    pool.write(1, lba, turn, &here).await.unwrap();
                }
            }
            pool.zero(0, 5, &here).await;
            pool.verify(&here, &[]).await;
            // Waiting for all to be destaged ends, though not all can be.
            pool.journal.drain(&pool.core).await;
            assert!(pool.status().await.pages > 0);
            failing.clear();
            pool.pause(Duration::from_secs(3)).await;
            pool.journal.drain(&pool.core).await;
            let status = pool.status().await;
            assert!(
                status.pages == 0 && status.destage_errors.is_empty(),
                "{status:?}"
            );
            pool.verify(&here, &[]).await;
        };
        world.block_on(&node, DAY, again).unwrap();
    }
}

#[test]
fn what_is_destaged_is_in_the_read_cache_and_never_what_it_was_before() {
    let world = world(70);
    let node = made(&world);
    let reported = Reported::default();
    let (core, here) = (node.core(0), Rc::clone(&reported));
    let run = async move {
        let mut pool = open(&core, &Faults::new()).await;
        let cache = ReadCache::new(16 << 20, BlockSize::B4096);
        pool.volumes[0].offer_to(cache.clone());
        let volume: Arc<dyn Volume> = Arc::<WriteBack>::clone(&pool.volumes[0]);
        pool.lanes[0] = volume::over(cache.clone(), volume)
            .open(&core)
            .await
            .unwrap();
        for lba in 0..200 {
            pool.write(0, lba * 2, 1, &here).await.unwrap();
        }
        assert_eq!(
            cache.tally().bytes,
            0,
            "a write keeps what is there, and nothing was"
        );
        pool.journal.drain(&pool.core).await;
        assert_eq!(cache.tally().bytes, 200 * 4096);
        // Those that were written again meanwhile are there as they are now.
        for lba in 0..100 {
            pool.write(0, lba * 2, 2, &here).await.unwrap();
            pool.write(0, 601 + lba, 2, &here).await.unwrap();
        }
        pool.journal.drain(&pool.core).await;
        pool.verify(&here, &[]).await;
        let tally = cache.tally();
        assert!(tally.hits >= 300, "{tally:?}");
    };
    world.block_on(&node, DAY, run).unwrap();
}

/// Puts another volume on the same file in the place of the first one's backing volume.
async fn exchanged(pool: &Open) -> Result<(), volume::OpenError> {
    let (file, _) = plain_pool::open_thin(&pool.core, &path(0)).await;
    let begun = pool.core.now();
    let until = begun.after(Duration::from_secs(5));
    let volume = &pool.volumes[0];
    let done = volume.exchange(&pool.core, file, false, until).await;
    let took = pool.core.now().since(begun);
    assert!(took < Duration::from_secs(6), "{took:?}");
    done
}

#[test]
fn a_backing_volume_that_hangs_does_not_hold_up_who_wants_another_one_in_its_place() {
    for (seed, kind) in (0..).zip([OpKind::Flush, OpKind::Write, OpKind::Read]) {
        let world = world(60 + seed);
        let node = made(&world);
        let reported = Reported::default();
        let faults = Faults::new();
        let (core, here) = (node.core(0), Rc::clone(&reported));
        let run = async move {
            let pool = open(&core, &faults).await;
            pool.write(0, 7, 1, &here).await.unwrap();
            pool.journal.drain(&pool.core).await;
            faults.add(FaultRule {
                kinds: vec![kind],
                action: Action::Hang,
                ..all_fail(IoError::Busy)
            });
            let mut reads = None;
            if kind == OpKind::Read {
                let op = Op::Read {
                    range: range(7, 1),
                    into: None,
                };
                reads = Some(pool.lanes[0].submit(Io::new(op, Origin::default())));
                pool.pause(Duration::from_millis(1)).await;
            } else {
                pool.write(0, 9, 2, &here).await.unwrap();
                // It is on its way to the backing volume.
                pool.pause(Duration::from_secs(10)).await;
            }
            let refused = exchanged(&pool).await.unwrap_err();
            assert!(refused.cause.contains("does not end"), "{refused}");
            // What it refused changes nothing, and what hung goes on.
            pool.write(0, 11, 3, &here).await.unwrap();
            faults.clear();
            faults.release();
            if let Some(reads) = reads {
                reads.await.unwrap();
            }
            pool.verify(&here, &[]).await;
            exchanged(&pool).await.unwrap();
            pool.write(0, 13, 4, &here).await.unwrap();
            pool.journal.drain(&pool.core).await;
            pool.verify(&here, &[]).await;
        };
        world.block_on(&node, DAY, run).unwrap();
    }
}

#[test]
fn a_place_that_cannot_be_written_holds_only_itself() {
    let world = world(40);
    let node = made(&world);
    let (core, reported, faults) = (node.core(0), Reported::default(), Faults::new());
    let lba = Lba(10);
    let mut rule = all_fail(IoError::MediumError { lba });
    rule.range = Some(range(10, 1));
    faults.add(rule);
    let run = async move {
        let pool = open(&core, &faults).await;
        for turn in 1..=6 {
            for lba in 0..BLOCKS {
                pool.write(0, (lba * 5) % BLOCKS, turn, &reported)
                    .await
                    .unwrap();
            }
        }
        pool.journal.drain(&pool.core).await;
        let status = pool.status().await;
        assert!(
            status.destage_errors.len() == 1 && status.pages <= 256,
            "one run of neighbours: {status:?}"
        );
        pool.verify(&reported, &[]).await;
    };
    world.block_on(&node, DAY, run).unwrap();
}

#[test]
fn a_volume_that_is_destroyed_needs_no_room_in_the_log_any_more() {
    for seed in 0..2 {
        destroyed(seed);
    }
}

fn destroyed(seed: u64) {
    let world = world(60 + seed);
    let node = made(&world);
    let (reported, faults) = (Reported::default(), Faults::new());
    faults.add(all_fail(IoError::Unavailable));
    let (core, here, failing) = (node.core(0), Rc::clone(&reported), faults.clone());
    let run = async move {
        let pool = open(&core, &failing).await;
        for lba in 0..40 {
            pool.write(0, lba, 1, &here).await.unwrap();
            pool.write(1, lba, 1, &here).await.unwrap();
        }
        pool.zero(0, 50, &here).await;
        pool.journal.drain(&core).await;
        assert_eq!(pool.status().await.pages, 40);
        // Whether it has left before or not.
        if seed == 0 {
            pool.volumes[0].release(&core).await;
        }
        pool.journal.forget(&core, VolumeId(100)).await.unwrap();
        assert_eq!(pool.status().await.pages, 0);
    };
    world.block_on(&node, DAY, run).unwrap();
    node.crash();
    node.restart();
    // Nothing of it is found again, and what was its backing volume is as it always was.
    reported.borrow_mut().retain(|(volume, _), _| *volume == 1);
    let core = node.core(0);
    let again = async move {
        let pool = open(&core, &faults).await;
        pool.verify(&reported, &[]).await;
        pool.journal.drain(&core).await;
        let status = pool.status().await;
        assert!(
            status.pages == 0 && status.destage_errors.is_empty(),
            "{status:?}"
        );
    };
    world.block_on(&node, DAY, again).unwrap();
}

/// Flips a bit of the journal's file, so many bytes after where these bytes are.
async fn flip(core: &CoreHandle, what: &[u8], ahead: usize) -> bool {
    let how = OpenHow {
        access: Access::ReadWrite,
        create: Create::No,
        direct: false,
        lock: false,
    };
    let file = core.files().open(Path::new(JOURNAL), how).await.unwrap();
    let FileDone::Len(len) = file.submit(FileOp::Len).await.unwrap() else {
        panic!("a length")
    };
    for at in (0..len).step_by(512) {
        let into = BufMut::zeroed(4096);
        let read = file.submit(FileOp::Read { offset: at, into }).await;
        let FileDone::Read(read) = read.unwrap() else {
            panic!("data")
        };
        let mut bytes = read.freeze().to_vec();
        if bytes.starts_with(what) {
            bytes[ahead] ^= 4;
            let op = FileOp::Write {
                offset: at,
                data: Buf::from(bytes),
                durable: Durable::Yes,
            };
            file.submit(op).await.unwrap();
            return true;
        }
    }
    false
}

#[test]
fn damage_that_is_met_while_serving_is_reported_for_exactly_its_blocks_and_for_as_long_as_they_are_not_written_anew()
 {
    for (seed, header) in [(50, false), (51, true)] {
        let world = world(seed);
        let node = made(&world);
        let reported = Reported::default();
        let faults = Faults::new();
        faults.add(all_fail(IoError::Unavailable));
        let (core, here, failing) = (node.core(0), Rc::clone(&reported), faults.clone());
        let run = async move {
            let pool = open(&core, &failing).await;
            pool.zero(0, 300, &here).await;
            for lba in 0..20 {
                pool.write(0, lba, 5, &here).await.unwrap();
            }
            // One after the other: each is a batch of its own.
            let hit = block(0, 7, 5);
            if header {
                assert!(flip(&core, b"CWJBATCH", 60).await);
            } else {
                assert!(flip(&core, &hit, 600).await);
                // Whoever reads it before it is destaged hears of it, and of nothing else.
                for lba in [6, 7, 8] {
                    let read = pool.read(0, lba).await;
                    let right = read == Ok(block(0, lba, 5));
                    assert_eq!(right, lba != 7, "{lba}");
                    let integrity = Err(IoError::Integrity { lba: Lba(lba) });
                    assert!(right || read == integrity, "{lba}: {read:?}");
                }
                let status = pool.status().await;
                assert_eq!(
                    (status.counts.misreads, status.lost.len()),
                    (1, 1),
                    "{status:?}"
                );
            }
            pool.pause(Duration::from_secs(3)).await;
            // What is met when it is destaged: the first batch, which has no data, or the one of
            // block 7.
            let lost: &[(usize, u64)] = if header { &[] } else { &[(0, 7)] };
            pool.verify(&here, lost).await;
            for turn in 1..=5 {
                for lba in 0..BLOCKS {
                    pool.write(1, lba, turn, &here).await.unwrap();
                }
            }
            pool.verify(&here, lost).await;
            let status = pool.status().await;
            assert!(
                status.failed.is_none() && status.counts.relocated_bytes > 0,
                "{status:?}"
            );
            assert_eq!(status.lost.len(), lost.len(), "{status:?}");
        };
        world.block_on(&node, DAY, run).unwrap();
        node.crash();
        node.restart();
        let (core, here) = (node.core(0), Rc::clone(&reported));
        let again = async move {
            let pool = open(&core, &faults).await;
            let lost: &[(usize, u64)] = if header { &[] } else { &[(0, 7)] };
            pool.verify(&here, lost).await;
            faults.clear();
            pool.pause(Duration::from_secs(3)).await;
            pool.journal.drain(&pool.core).await;
            // In the backing volume lies what was there before: it is not reported as if it were
            // the data.
            pool.verify(&here, lost).await;
            pool.write(0, 7, 9, &here).await.unwrap();
            pool.verify(&here, &[]).await;
            pool.journal.drain(&pool.core).await;
            let status = pool.status().await;
            assert!(status.pages == 0 && status.lost.is_empty(), "{status:?}");
            pool.verify(&here, &[]).await;
        };
        world.block_on(&node, DAY, again).unwrap();
    }
}

/// A write was under way when the process was killed, and lies in the system's cache only. The next
/// opening learns that it cannot be synced, the one after it learns that all is well, though the
/// disk never got it.
fn read_from_a_cache(seed: u64) -> bool {
    let world = world(90 + seed);
    let node = made(&world);
    let reported = Reported::default();
    let images = Rc::new(RefCell::new(Vec::new()));
    let (core, here, disk, kept) = (node.core(0), reported, node.disk(), Rc::clone(&images));
    let first = async move {
        let faults = Faults::new();
        faults.add(all_fail(IoError::Unavailable));
        let pool = open(&core, &faults).await;
        for stamp in [1, 2] {
            pool.write(0, 3, stamp, &here).await.unwrap();
            let image = disk.durable(Path::new(JOURNAL)).unwrap();
            kept.borrow_mut().push(image);
        }
    };
    world.block_on(&node, DAY, first).unwrap();
    node.crash();
    node.restart();
    let (core, all) = (node.core(0), Rc::clone(&images));
    let forge = async move {
        let all = all.take();
        let journal = Path::new(JOURNAL);
        put(&core, journal, &all[0], Durable::Yes).await;
        put(&core, journal, &all[1], Durable::No).await;
    };
    world.block_on(&node, DAY, forge).unwrap();
    node.kill();
    node.restart();
    world.set_faults(FaultPlan::none().with(env::sim::Fault::FileSyncError, 1_000_000));
    let core = node.core(0);
    let refused = async move {
        Journal::open(&core, Path::new(JOURNAL), NUMBER)
            .await
            .is_err()
    };
    assert!(world.block_on(&node, DAY, refused).unwrap());
    node.kill();
    world.set_faults(FaultPlan::none());
    let mut seen = Vec::new();
    for _ in 0..2 {
        node.restart();
        let core = node.core(0);
        let inspect = async move {
            let pool = open(&core, &Faults::new()).await;
            assert_eq!(pool.journal.damaged(), []);
            pool.read(0, 3).await.unwrap()
        };
        seen.push(world.block_on(&node, DAY, inspect).unwrap());
        node.crash();
    }
    assert!(
        seen[0] == seen[1],
        "seed {seed}: another one than was read before"
    );
    seen[0] == block(0, 3, 2)
}

#[test]
fn what_an_opening_has_read_from_a_cache_is_on_the_disk_before_anybody_is_reported() {
    let newest = (0..24).filter(|seed| read_from_a_cache(*seed)).count();
    assert!(newest >= 6, "{newest} of 24 found what was in the cache");
}

impl Open {
    /// So many writes at once of so many blocks each, over and over the volume, recorded as if the
    /// last ones came last.
    fn writes(&self, volume: usize, count: u32, blocks: u64, reported: &Reported) -> Vec<IoFuture> {
        let write = |write: u32| {
            let lba = u64::from(write) * blocks % BLOCKS;
            let all = lba..lba + blocks;
            let data: Vec<u8> = all
                .clone()
                .flat_map(|lba| block(volume, lba, write + 1))
                .collect();
            reported
                .borrow_mut()
                .extend(all.map(|lba| ((volume, lba), write + 1)));
            let op = Op::Write {
                range: range(lba, blocks),
                data: Buf::copy_of(&data),
                durability: Durability::Stable,
            };
            self.lanes[volume].submit(Io::new(op, Origin::default()))
        };
        (0..count).map(write).collect()
    }
}

#[test]
fn what_waits_for_the_log_is_bounded_in_bytes_and_all_of_it_is_answered() {
    for (blocks, writes, past_bytes) in [
        (1, 5000, usize::MAX),
        (256, 50, usize::MAX),
        (256, 50, 1 << 20),
    ] {
        let world = world(7);
        let node = made(&world);
        let (core, reported) = (node.core(0), Reported::default());
        let run = async move {
            let pool = open(&core, &Faults::new()).await;
            pool.volumes[1].write_around_from(past_bytes);
            let answers = pool.writes(1, writes, blocks, &reported);
            // An eighth of the log, which has 1024 blocks of which nearly half are kept for what
            // moves on, and one write more.
            let status = pool.status().await;
            let most = (1024 * 4096 / 8).max(blocks * 4096);
            assert!(
                status.waiting.bytes > 0 && status.waiting.bytes <= most,
                "{status:?}"
            );
            let let_in = u64::from(writes) - status.waiting.throttled;
            assert_eq!(status.waiting.bytes, let_in * blocks * 4096);
            for answer in join_all(answers).await {
                answer.unwrap();
            }
            let status = pool.status().await;
            assert_eq!((status.waiting.changes, status.waiting.bytes), (0, 0));
            let writes_around = past_bytes < usize::MAX;
            assert_eq!(
                status.counts.write_around_bytes > 0,
                writes_around,
                "{status:?}"
            );
            for lba in 0..BLOCKS {
                let read = pool.read(1, lba).await.unwrap();
                let mut stamps = (0..writes)
                    .filter(|write| u64::from(*write) % (BLOCKS / blocks) == lba / blocks);
                assert!(stamps.any(|it| block(1, lba, it + 1) == read), "{lba}");
            }
        };
        world.block_on(&node, DAY, run).unwrap();
    }
}

#[test]
fn changes_without_data_that_wait_are_bounded_in_number() {
    let world = world(9);
    let node = made(&world);
    let core = node.core(0);
    let run = async move {
        let pool = open(&core, &Faults::new()).await;
        let zero = |lba: u64| {
            let op = Op::WriteZeroes {
                range: range(lba % BLOCKS, 1),
                zeroing: Zeroing::MayUnmap,
                durability: Durability::Stable,
            };
            pool.lanes[1].submit(Io::new(op, Origin::default()))
        };
        let answers: Vec<IoFuture> = (0..5000).map(zero).collect();
        let status = pool.status().await;
        assert_eq!(
            (status.waiting.changes, status.waiting.throttled),
            (2048, 2952)
        );
        for answer in join_all(answers).await {
            answer.unwrap();
        }
        assert_eq!(pool.status().await.waiting.changes, 0);
    };
    world.block_on(&node, DAY, run).unwrap();
}

#[test]
fn those_who_were_throttled_behind_a_volume_that_cannot_destage_all_get_an_answer() {
    for seed in 0..4 {
        let world = world(seed);
        let node = made(&world);
        let (core, reported) = (node.core(0), Reported::default());
        let faults = Faults::new();
        faults.add(all_fail(IoError::SpaceExhausted));
        let run = async move {
            let pool = open(&core, &faults).await;
            // Of a volume that may fill half of the log more than that, and behind them those of
            // another one.
            let failing = pool.writes(0, 5000, 1, &reported);
            let other = pool.writes(1, 3000, 1, &reported);
            let (failing, other) = join(join_all(failing), join_all(other)).await;
            let refused: Vec<IoError> = failing.into_iter().filter_map(Result::err).collect();
            assert!(!refused.is_empty(), "it has its share of the log, not more");
            assert!(refused.iter().all(|it| *it == IoError::SpaceExhausted));
            assert!(other.iter().all(Result::is_ok));
            let status = pool.status().await;
            assert!(status.waiting.throttled > 0, "{status:?}");
            assert_eq!((status.waiting.changes, status.waiting.bytes), (0, 0));
            for lba in 0..BLOCKS {
                let wanted = block(1, lba, reported.borrow()[&(1, lba)]);
                assert!(pool.read(1, lba).await.unwrap() == wanted, "{lba}");
            }
        };
        world.block_on(&node, DAY, run).unwrap();
    }
}
