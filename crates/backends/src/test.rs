//! The leaves against what they promise beyond contents: fences, failed syncs, space, sizes.
//! (`proof` compares their contents with the model disk, on real and simulated files and devices.)

use crate::*;
use env::sim::{BlockDevice, Disk, Fault, FaultPlan, World, WorldConfig};
use env::{CoreHandle, CoreId, LocalFuture};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, BlockSize, Buf, ByteCount, Lba, LbaRange};
use volume::{
    Done, Durability, ExtentKind, FenceSlot, Fences, Io, IoError, IoResult, Lane, Op, Origin,
    Provision, Volume, VolumeEvent, Zeroing,
};

const HOUR: Duration = Duration::from_secs(3600);
const PATH: &str = "/pool/lun";

/// Runs a test in a machine of its own, whose disk the test may trouble.
fn simulate(test: impl FnOnce(CoreHandle, Disk) -> LocalFuture<()>) {
    let config = WorldConfig {
        faults: FaultPlan::none(),
        ..WorldConfig::default()
    };
    let world = World::new(7, config);
    let node = world.node("node");
    let test = test(node.core(0), node.disk());
    world.block_on(&node, HOUR, test).unwrap();
}

fn spec(provisioning: Provisioning) -> FileSpec {
    FileSpec {
        path: PathBuf::from(PATH),
        block_size: BlockSize::B512,
        physical_block_exponent: 3,
        provisioning,
    }
}

async fn file(core: &CoreHandle, provisioning: Provisioning, fences: Fences) -> Arc<DiskVolume> {
    core.files().create_dir(Path::new("/pool")).await.unwrap();
    let size = ByteCount(1 << 20);
    create_file(core, Path::new(PATH), size, provisioning)
        .await
        .unwrap();
    open_file(core, spec(provisioning), fences).await.unwrap()
}

fn range(start: u64, len: u64) -> LbaRange {
    LbaRange::new(Lba(start), BlockCount(len)).unwrap()
}

fn write_op(at: LbaRange, byte: u8) -> Op {
    let len = usize::try_from(at.len().0).unwrap() * 512;
    Op::Write {
        range: at,
        data: Buf::copy_of(&vec![byte; len]),
        durability: Durability::Stable,
    }
}

async fn ask(lane: &Rc<dyn Lane>, op: Op) -> IoResult {
    lane.submit(Io::new(op, Origin::default())).await
}

/// The first byte of each block.
async fn bytes(lane: &Rc<dyn Lane>, at: LbaRange) -> Vec<u8> {
    let op = Op::Read {
        range: at,
        into: None,
    };
    let Ok(Done::Data(data)) = ask(lane, op).await else {
        panic!("no data")
    };
    data.to_vec().chunks(512).map(|block| block[0]).collect()
}

/// One operation of each kind that mutates.
fn mutations(at: LbaRange) -> Vec<Op> {
    let durability = Durability::Stable;
    let zeroing = |zeroing| Op::WriteZeroes {
        range: at,
        zeroing,
        durability,
    };
    vec![
        write_op(at, 9),
        zeroing(Zeroing::MayUnmap),
        zeroing(Zeroing::KeepAllocated),
        Op::Discard {
            range: at,
            to: Provision::Deallocated,
            durability,
        },
    ]
}

async fn a_lost_right_stops_everything(core: CoreHandle, volume: Arc<dyn Volume>, fences: Fences) {
    let lane = volume.open(&core).await.unwrap();
    let at = range(0, 8);
    ask(&lane, write_op(at, 1)).await.unwrap();
    let slot = FenceSlot(1);
    let old = fences.current(slot);
    let new = fences.raise(slot);
    for op in mutations(at) {
        let origin = Origin {
            fence: old,
            ..Origin::default()
        };
        let refused = lane.submit(Io::new(op, origin)).await;
        assert_eq!(refused.unwrap_err(), IoError::Fenced);
    }
    assert_eq!(bytes(&lane, at).await, [1; 8]);
    let origin = Origin {
        fence: new,
        ..Origin::default()
    };
    lane.submit(Io::new(write_op(at, 2), origin)).await.unwrap();
    assert_eq!(bytes(&lane, at).await, [2; 8]);
}

#[test]
fn a_writer_that_lost_its_right_changes_nothing_in_any_leaf() {
    simulate(|core, _| {
        Box::pin(async move {
            let fences = Fences::new(2);
            let blocks = BlockCount(64);
            let memory = MemoryVolume::new(BlockSize::B512, blocks, 0, fences.clone());
            a_lost_right_stops_everything(Rc::clone(&core), memory, fences).await;
            let fences = Fences::new(2);
            let file = file(&core, Provisioning::Thin, fences.clone()).await;
            a_lost_right_stops_everything(core, file, fences).await;
        })
    });
}

#[test]
fn a_failed_sync_stops_all_mutations_and_flushes_until_the_volume_is_opened_anew() {
    a_failed_sync_stops(Fault::FileSyncError, IoError::WriteProtected);
    a_failed_sync_stops(Fault::FileSyncNoSpace, IoError::SpaceExhausted);
}

/// A flush, and what was under way, is never answered as if it could be done later: a host that
/// waits for room and asks again would take what is lost for stable.
fn a_failed_sync_stops(fault: Fault, refused: IoError) {
    let lost = |lba| IoError::MediumError { lba: Lba(lba) };
    let world = World::new(
        7,
        WorldConfig {
            faults: FaultPlan::none(),
            ..WorldConfig::default()
        },
    );
    let node = world.node("node");
    let core = node.core(0);
    let setup = async move {
        let volume = file(&core, Provisioning::Thin, Fences::new(1)).await;
        let lane = Arc::clone(&volume).open(&core).await.unwrap();
        (core, volume, lane)
    };
    let (core, volume, lane) = world.block_on(&node, HOUR, setup).unwrap();
    world.set_faults(FaultPlan::none().with(fault, 1_000_000));
    let (failing, watched) = (Rc::clone(&lane), Arc::clone(&volume));
    let there = Rc::clone(&core);
    let fail = async move {
        let events = Arc::clone(&watched).events(&there);
        let flushed = ask(&failing, Op::Flush).await;
        assert_eq!(flushed.unwrap_err(), lost(0));
        let VolumeEvent::Lost(why) = events.next().await else {
            panic!("not lost")
        };
        assert!(why.contains(PATH), "{why}");
    };
    let cached = Op::Write {
        range: range(8, 1),
        data: Buf::copy_of(&[2; 512]),
        durability: Durability::Cached,
    };
    let under_way = lane.submit(Io::new(cached, Origin::default()));
    world.block_on(&node, HOUR, fail).unwrap();
    world.set_faults(FaultPlan::none());
    let after = async move {
        assert_eq!(under_way.await.unwrap_err(), lost(8), "it may be gone");
        assert!(volume.is_broken());
        assert_eq!(volume.lacked_space(), fault == Fault::FileSyncNoSpace);
        for op in mutations(range(0, 8)) {
            assert_eq!(ask(&lane, op).await.unwrap_err(), refused);
        }
        assert!(ask(&lane, Op::Flush).await.is_err(), "a flush must not lie");
        assert_eq!(bytes(&lane, range(0, 1)).await, [0], "reading goes on");
        let again = open_file(&core, spec(Provisioning::Thin), Fences::new(1));
        let lane = again.await.unwrap().open(&core).await.unwrap();
        ask(&lane, write_op(range(0, 1), 3)).await.unwrap();
        ask(&lane, Op::Flush).await.unwrap();
    };
    world.block_on(&node, HOUR, after).unwrap();
}

/// On two cores that stall, a flush each at the same time, one of which often fails. A flush that
/// said yes before a power cut did not lie.
fn two_flushes(seed: u64) -> (bool, bool) {
    let world = World::new(
        seed,
        WorldConfig {
            faults: FaultPlan::none(),
            ..WorldConfig::default()
        },
    );
    let node = world.node("node");
    let own = node.core(0);
    let setup = async move {
        let volume = file(&own, Provisioning::Thin, Fences::new(1)).await;
        own.files().sync_dir(Path::new("/")).await.unwrap();
        volume
    };
    let volume = world.block_on(&node, HOUR, setup).unwrap();
    let lanes: Vec<_> = [0, 1]
        .into_iter()
        .map(|core| {
            let (core, volume) = (node.core(core), Arc::clone(&volume));
            let open = async move { volume.open(&core).await.unwrap() };
            world.block_on(&node, HOUR, open).unwrap()
        })
        .collect();
    let lane = Rc::clone(&lanes[0]);
    let write = async move {
        ask(&lane, write_op(range(0, 1), 1)).await.unwrap();
        let cached = Op::Write {
            range: range(0, 1),
            data: Buf::copy_of(&[2; 512]),
            durability: Durability::Cached,
        };
        ask(&lane, cached).await.unwrap();
    };
    world.block_on(&node, HOUR, write).unwrap();
    let faults = FaultPlan::none()
        .with(Fault::FileSyncError, 400_000)
        .with(Fault::CoreStalled, 300_000);
    world.set_faults(faults);
    let said: Rc<RefCell<Vec<bool>>> = Rc::default();
    for (core, lane) in lanes.into_iter().enumerate() {
        let reported = Rc::clone(&said);
        let core = node.core(u16::try_from(core).unwrap());
        core.spawn(Box::pin(async move {
            let flushed = ask(&lane, Op::Flush).await;
            reported.borrow_mut().push(flushed.is_ok());
        }));
    }
    world
        .run_until(HOUR, || {
            said.borrow().iter().any(|yes| *yes) || said.borrow().len() == 2
        })
        .unwrap();
    let yes = said.borrow().contains(&true);
    world.set_faults(FaultPlan::none());
    node.crash();
    node.restart();
    let core = node.core(0);
    let read = async move {
        let again = open_file(&core, spec(Provisioning::Thin), Fences::new(1)).await;
        let lane = again.unwrap().open(&core).await.unwrap();
        bytes(&lane, range(0, 1)).await == [2]
    };
    (yes, world.block_on(&node, HOUR, read).unwrap())
}

#[test]
fn a_flush_says_yes_only_where_none_of_its_time_has_failed() {
    let mut seen = [0; 2];
    for seed in 0..400 {
        let (yes, there) = two_flushes(seed);
        assert!(there || !yes, "seed {seed}: a flush lied");
        seen[usize::from(yes)] += 1;
    }
    assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
}

#[test]
fn a_failed_stable_write_through_the_page_cache_counts_as_a_failed_sync() {
    let world = World::new(
        3,
        WorldConfig {
            faults: FaultPlan::none(),
            direct_alignment: 0,
            ..WorldConfig::default()
        },
    );
    let node = world.node("node");
    let core = node.core(0);
    let setup = async move {
        let volume = file(&core, Provisioning::Thin, Fences::new(1)).await;
        let lane = Arc::clone(&volume).open(&core).await.unwrap();
        (volume, lane)
    };
    let (volume, lane) = world.block_on(&node, HOUR, setup).unwrap();
    assert!(!volume.is_direct());
    world.set_faults(FaultPlan::none().with(Fault::FileWriteError, 1_000_000));
    let failing = Rc::clone(&lane);
    let failed = async move { ask(&failing, write_op(range(0, 1), 1)).await.is_err() };
    assert!(world.block_on(&node, HOUR, failed).unwrap());
    world.set_faults(FaultPlan::none());
    let flush = async move { ask(&lane, Op::Flush).await };
    let flushed = world.block_on(&node, HOUR, flush).unwrap();
    assert!(
        flushed.is_err(),
        "it may have taken the error of what others wrote"
    );
    assert!(volume.is_broken());
}

#[test]
fn a_full_pool_says_so_and_loses_nothing() {
    simulate(|core, disk| {
        Box::pin(async move {
            let volume = file(&core, Provisioning::Thin, Fences::new(1)).await;
            let lane = Arc::clone(&volume).open(&core).await.unwrap();
            ask(&lane, write_op(range(0, 8), 5)).await.unwrap();
            disk.set_capacity(8192);
            let refused = ask(&lane, write_op(range(64, 64), 6)).await;
            assert_eq!(refused.unwrap_err(), IoError::SpaceExhausted);
            assert_eq!(bytes(&lane, range(0, 8)).await, [5; 8]);
            ask(&lane, write_op(range(0, 8), 7)).await.unwrap();
            assert_eq!(bytes(&lane, range(0, 8)).await, [7; 8]);
            disk.set_capacity(1 << 30);
            ask(&lane, write_op(range(64, 64), 6)).await.unwrap();
        })
    });
}

#[test]
fn a_thick_file_that_does_not_fit_is_not_left_behind() {
    simulate(|core, disk| {
        Box::pin(async move {
            core.files().create_dir(Path::new("/pool")).await.unwrap();
            disk.set_capacity(64 << 10);
            let size = ByteCount(1 << 20);
            let path = Path::new(PATH);
            let refused = create_file(&core, path, size, Provisioning::Thick).await;
            assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
            assert_eq!(core.files().list(Path::new("/pool")).await.unwrap(), []);
            create_file(&core, path, size, Provisioning::Thin)
                .await
                .unwrap();
            let again = create_file(&core, path, size, Provisioning::Thin).await;
            assert_eq!(again.unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
            remove(&core, path).await.unwrap();
            assert_eq!(core.files().list(Path::new("/pool")).await.unwrap(), []);
        })
    });
}

#[test]
fn a_thick_file_takes_its_space_at_once_and_a_thin_one_when_written() {
    for (provisioning, empty, mapped) in [
        (Provisioning::Thin, 0, ExtentKind::Deallocated),
        (Provisioning::Thick, 1 << 20, ExtentKind::Mapped),
    ] {
        simulate(move |core, _| {
            Box::pin(async move {
                let volume = file(&core, provisioning, Fences::new(1)).await;
                let lane = Arc::clone(&volume).open(&core).await.unwrap();
                let used = usage(&core, Path::new(PATH)).await.unwrap();
                assert_eq!(used.allocated, ByteCount(empty));
                assert_eq!(used.len, ByteCount(1 << 20));
                let op = Op::Extents {
                    range: range(0, 64),
                    since: None,
                };
                let Ok(Done::Extents(extents)) = ask(&lane, op).await else {
                    panic!("no extents")
                };
                assert_eq!((extents[0].range, extents[0].kind), (range(0, 64), mapped));
                ask(&lane, write_op(range(0, 8), 1)).await.unwrap();
                let used = usage(&core, Path::new(PATH)).await.unwrap();
                assert_eq!(used.allocated, ByteCount(empty.max(4096)));
            })
        });
    }
}

#[test]
fn growing_and_shrinking_make_a_new_epoch_and_old_lanes_keep_to_the_smaller_size() {
    for provisioning in [Provisioning::Thin, Provisioning::Thick] {
        simulate(move |core, _| {
            Box::pin(async move {
                let volume = file(&core, provisioning, Fences::new(1)).await;
                let events = Arc::clone(&volume).events(&core);
                let old = Arc::clone(&volume).open(&core).await.unwrap();
                ask(&old, write_op(range(2040, 8), 4)).await.unwrap();
                let grown = volume.grow(&core, ByteCount(2 << 20)).await.unwrap();
                assert_eq!(events.next().await, VolumeEvent::Reshaped(grown));
                assert_eq!(volume.shape().block_count, BlockCount(4096));
                let new = Arc::clone(&volume).open(&core).await.unwrap();
                assert_eq!(bytes(&new, range(2047, 2)).await, [4, 0]);
                ask(&new, write_op(range(4095, 1), 5)).await.unwrap();
                let shrunk = volume.shrink(&core, ByteCount(512 << 10)).await.unwrap();
                assert_eq!(events.next().await, VolumeEvent::Reshaped(shrunk));
                assert!(shrunk > grown);
                let outside = ask(&old, write_op(range(2040, 8), 6)).await;
                assert_eq!(outside.unwrap_err(), IoError::Unavailable);
                volume.grow(&core, ByteCount(1 << 20)).await.unwrap();
                assert_eq!(bytes(&old, range(2040, 8)).await, [0; 8], "cut off is gone");
                assert!(volume.grow(&core, ByteCount(512)).await.is_err());
                assert!(volume.shrink(&core, ByteCount(0)).await.is_err());
            })
        });
    }
}

#[test]
fn memory_that_was_cut_off_is_gone_and_pages_are_given_back() {
    simulate(|core, _| {
        Box::pin(async move {
            let volume = MemoryVolume::new(BlockSize::B512, BlockCount(64), 0, Fences::new(1));
            let lane = Arc::clone(&volume).open(&core).await.unwrap();
            ask(&lane, write_op(range(0, 64), 4)).await.unwrap();
            assert_eq!(volume.allocated(), ByteCount(32 << 10));
            volume.resize(BlockCount(12));
            assert!(ask(&lane, write_op(range(12, 1), 4)).await.is_err());
            volume.resize(BlockCount(64));
            let mut expected = vec![4; 12];
            expected.resize(64, 0);
            assert_eq!(bytes(&lane, range(0, 64)).await, expected);
            let op = Op::Discard {
                range: range(0, 64),
                to: Provision::Deallocated,
                durability: Durability::Cached,
            };
            ask(&lane, op).await.unwrap();
            assert_eq!(volume.allocated(), ByteCount(0));
        })
    });
}

#[test]
fn what_was_read_from_memory_stays_what_was_read() {
    simulate(|core, _| {
        Box::pin(async move {
            let volume = MemoryVolume::new(BlockSize::B512, BlockCount(64), 0, Fences::new(1));
            let lane = volume.open(&core).await.unwrap();
            ask(&lane, write_op(range(0, 9), 1)).await.unwrap();
            let op = Op::Read {
                range: range(0, 9),
                into: None,
            };
            let Ok(Done::Data(data)) = ask(&lane, op).await else {
                panic!("no data")
            };
            for at in [range(0, 8), range(3, 1), range(8, 1)] {
                ask(&lane, write_op(at, 2)).await.unwrap();
            }
            assert!(data.to_vec().iter().all(|&byte| byte == 1));
        })
    });
}

#[test]
fn a_backing_that_cannot_be_used_says_why_and_what_to_do() {
    simulate(|core, disk| {
        Box::pin(async move {
            let opened = open_file(&core, spec(Provisioning::Thin), Fences::new(1)).await;
            let Err(error) = opened else {
                panic!("it does not exist")
            };
            assert!(error.cause.contains("/pool/lun does not exist"), "{error}");
            let device = BlockDevice {
                bytes: 1 << 20,
                logical_block_bytes: 4096,
                physical_block_bytes: 4096,
                discard_granularity: 4096,
            };
            let path = Path::new("/dev/large");
            disk.add_block_device(path, device);
            let opened = open_block(&core, path, BlockSize::B512, Fences::new(1)).await;
            let Err(error) = opened else {
                panic!("its sectors are too large")
            };
            assert!(error.cause.contains("sectors of 4096 bytes"), "{error}");
            let opened = open_block(&core, path, BlockSize::B4096, Fences::new(1)).await;
            assert_eq!(opened.unwrap().shape().block_count, BlockCount(256));
            let volume = file(&core, Provisioning::Thin, Fences::new(1)).await;
            let opened = open_block(&core, Path::new(PATH), BlockSize::B512, Fences::new(1)).await;
            assert!(opened.is_err_and(|error| error.cause.contains("not a block device")));
            volume.shrink(&core, ByteCount(512)).await.unwrap();
            let stale = file_of_older_size(&core).await;
            assert!(stale.cause.contains("fewer than"), "{stale}");
            assert!(stale.next_step.contains("truncate -s"), "{stale}");
        })
    });
}

/// A volume that was opened before somebody cut its file behind its back.
async fn file_of_older_size(core: &CoreHandle) -> volume::OpenError {
    let volume = open_file(core, spec(Provisioning::Thin), Fences::new(1));
    let (volume, other) = (volume.await.unwrap(), spec(Provisioning::Thin));
    let other = open_file(core, other, Fences::new(1)).await.unwrap();
    other.grow(core, ByteCount(4096)).await.unwrap();
    volume.grow(core, ByteCount(4096)).await.unwrap();
    other.shrink(core, ByteCount(1024)).await.unwrap();
    match volume.open(core).await {
        Err(error) => error,
        Ok(_) => panic!("the file is too short"),
    }
}

#[test]
fn cores_that_write_parts_of_one_page_lose_nothing() {
    let runtime = env::real::Runtime::start(&env::real::RuntimeConfig {
        cores: env::real::Cores::List(vec![0, 1]),
        driver: env::real::Driver::Poll,
        ..env::real::RuntimeConfig::default()
    })
    .unwrap();
    let volume = MemoryVolume::new(BlockSize::B512, BlockCount(64), 0, Fences::new(1));
    let (reported, outcomes) = std::sync::mpsc::channel();
    for number in 0..2_u16 {
        let (volume, reported) = (Arc::clone(&volume), reported.clone());
        runtime.spawn_on(CoreId(number), move |core| {
            Box::pin(async move {
                let lane = volume.open(&core).await.unwrap();
                for turn in 0..2000_u32 {
                    let at = range(u64::from(turn) % 32 * 2 + u64::from(number), 1);
                    let byte = u8::try_from(turn % 251).unwrap();
                    ask(&lane, write_op(at, byte)).await.unwrap();
                    assert_eq!(bytes(&lane, at).await, [byte]);
                }
                reported.send(()).unwrap();
            })
        });
    }
    drop(reported);
    assert_eq!(outcomes.iter().count(), 2, "{:?}", runtime.notices());
}

#[test]
fn a_lun_for_which_no_descriptor_is_left_says_which_limit_to_raise() {
    for errno in [23, 24] {
        let error = std::io::Error::from_raw_os_error(errno);
        let reported = crate::disk::open_error(std::path::Path::new("/pool/a"), &error);
        assert!(reported.cause.contains("/pool/a"), "{reported:?}");
        assert!(reported.next_step.contains("LimitNOFILE"), "{reported:?}");
    }
}

/// Of memory all is done at once, so that what one operation may take bounds how long it keeps its
/// core.
#[test]
fn one_operation_on_memory_is_bounded_however_large_the_volume_is() {
    simulate(|core, _| {
        Box::pin(async move {
            let blocks = BlockCount(1 << 33);
            let volume = MemoryVolume::new(BlockSize::B512, blocks, 0, Fences::new(1));
            let limits = volume.shape().limits;
            for most in [limits.write_zeroes_blocks_max, limits.discard_blocks_max] {
                assert!(most.0 * 512 <= 16 << 20, "{most:?}");
            }
            let lane = volume.open(&core).await.unwrap();
            let op = Op::Extents {
                range: range(0, blocks.0),
                since: None,
            };
            let Ok(Done::Extents(reported)) = ask(&lane, op).await else {
                panic!("no extents")
            };
            let end = reported.last().expect("some").range.end();
            assert!(end.0 * 512 <= 1 << 30, "{end:?}");
        })
    });
}

#[test]
fn work_that_is_stopped_says_how_far_it_was_and_leaves_nothing() {
    simulate(|core, disk| {
        Box::pin(async move {
            core.files().create_dir(Path::new("/pool")).await.unwrap();
            disk.set_capacity(1 << 40);
            let path = Path::new(PATH);
            let size = ByteCount(8 << 30);
            let whole = Rc::new(Progress::of(size.0));
            let watched = Rc::clone(&whole);
            let other = Rc::clone(&core);
            core.spawn(Box::pin(async move {
                while watched.now().0 == 0 {
                    let soon = other.now().after(Duration::from_micros(1));
                    other.sleep_until(soon).await;
                }
                watched.stop();
            }));
            let thick = Provisioning::Thick;
            let stopped = create_file_watched(&core, path, size, thick, &whole).await;
            assert_eq!(stopped.unwrap_err().kind(), std::io::ErrorKind::Interrupted);
            let (done, total) = whole.now();
            assert!(done > 0 && done < total, "{done} of {total}");
            assert_eq!(core.files().list(Path::new("/pool")).await.unwrap(), []);
            let volume = file(&core, thick, Fences::new(1)).await;
            let (before, shape) = (disk.used_bytes(), volume.shape());
            let progress = Progress::of(size.0);
            progress.stop();
            let stopped = volume.grow_watched(&core, size, &progress).await;
            assert_eq!(stopped.unwrap_err().kind(), std::io::ErrorKind::Interrupted);
            // A disk that becomes full half-way: nothing of it stays.
            disk.set_capacity(before + (2 << 30));
            let full = volume.grow(&core, size).await;
            assert_eq!(full.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
            assert_eq!(disk.used_bytes(), before);
            assert_eq!(volume.shape().block_count, shape.block_count);
            disk.set_capacity(1 << 40);
            let progress = Progress::of(size.0 - (1 << 20));
            volume.grow_watched(&core, size, &progress).await.unwrap();
            let (done, total) = progress.now();
            assert_eq!(done, total);
        })
    });
}
