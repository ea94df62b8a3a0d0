//! What an image promises beyond contents: who owns it, what vanishes, what comes back, space.
//! (`proof` compares contents with the model disk, with power cuts.)

use super::*;
use env::sim::{Fault, FaultPlan, Node, World, WorldConfig};
use env::{Access, Create, OpenHow};
use std::path::Path;
use units::{Lba, LbaRange};
use vhdx::{Geometry, Guids, Kind, New};
use volume::{Done, Durability, ExtentKind, Io, IoResult, Op, Origin, Provision};

const HOUR: Duration = Duration::from_secs(3600);
const PATH: &str = "/share/vm.vhdx";
const MIB: u64 = 1 << 20;

fn world() -> (World, Node) {
    let config = WorldConfig {
        faults: FaultPlan::none(),
        ..WorldConfig::default()
    };
    let world = World::new(7, config);
    let node = world.node("node");
    (world, node)
}

async fn made(core: &CoreHandle, path: &str, kind: Kind) {
    core.files().create_dir(Path::new("/share")).await.unwrap();
    let how = OpenHow {
        access: Access::ReadWrite,
        create: Create::New,
        direct: false,
        lock: true,
    };
    let file = core.files().open(Path::new(path), how).await.unwrap();
    let new = New {
        geometry: Geometry::new(8 * MIB, MIB, 512).unwrap(),
        physical_bytes: 4096,
        kind,
        disk_id: None,
        creator: "test".to_owned(),
    };
    let making = new.create(Guids::new([1; 16]));
    Drive::of(&[file]).run(making).await.unwrap();
}

fn spec(core: &CoreHandle, own: Option<Own>) -> ImageSpec {
    ImageSpec {
        path: PathBuf::from(PATH),
        block_size: BlockSize::B512,
        physical_block_exponent: 3,
        own: own.unwrap_or_else(|| Own::new(core)),
    }
}

async fn opened(core: &CoreHandle) -> (Arc<ImageVolume>, Rc<dyn Lane>) {
    let volume = open_image(core, spec(core, None), Fences::new(2))
        .await
        .unwrap();
    let lane = Arc::clone(&volume).open(core).await.unwrap();
    (volume, lane)
}

fn range(start: u64, len: u64) -> LbaRange {
    LbaRange::new(Lba(start), BlockCount(len)).unwrap()
}

fn write(at: u64, byte: u8, durability: Durability) -> Op {
    Op::Write {
        range: range(at, 8),
        data: Buf::copy_of(&[byte; 4096]),
        durability,
    }
}

async fn ask(lane: &Rc<dyn Lane>, op: Op) -> IoResult {
    lane.submit(Io::new(op, Origin::default())).await
}

async fn byte(lane: &Rc<dyn Lane>, at: u64) -> Result<u8, IoError> {
    let op = Op::Read {
        range: range(at, 8),
        into: None,
    };
    let Done::Data(data) = ask(lane, op).await? else {
        panic!("no data")
    };
    Ok(data.to_vec()[100])
}

/// Another program that takes the image without asking for a lock.
async fn taken_by_another(core: &CoreHandle) {
    let how = OpenHow {
        access: Access::ReadWrite,
        create: Create::No,
        direct: false,
        lock: false,
    };
    let file = core.files().open(Path::new(PATH), how).await.unwrap();
    let (files, payload) = ([file], Buf::copy_of(&[9; 512]));
    let access = vhdx::Access::Write(Guids::new([99; 16]));
    let image = Drive::of(&files).run(Image::open(access)).await.unwrap();
    let drive = Drive {
        payload: Some(&payload),
        ..Drive::of(&files)
    };
    drive.run(image.write(4 * MIB, 512)).await.unwrap();
    drive.run(image.close()).await.unwrap();
}

#[test]
fn a_second_writer_is_noticed_before_the_first_change_and_after_a_while() {
    for is_before in [true, false] {
        let (world, node) = world();
        let core = node.core(0);
        let test = async move {
            made(&core, PATH, Kind::Dynamic).await;
            let (volume, lane) = opened(&core).await;
            if !is_before {
                ask(&lane, write(0, 1, Durability::Stable)).await.unwrap();
            }
            taken_by_another(&core).await;
            core.sleep_until(core.now().after(OWNER_INTERVAL)).await;
            // A block that has its place is written past the tables, and asks all the same.
            if !is_before {
                ask(&lane, write(0, 2, Durability::Cached)).await.unwrap();
                core.sleep_until(core.now().after(OWNER_INTERVAL)).await;
            }
            let refused = ask(&lane, write(0, 3, Durability::Cached)).await;
            assert_eq!(refused.unwrap_err(), IoError::Unavailable);
            let why = volume.lost().unwrap();
            assert_eq!(why.kind, OpenErrorKind::Fenced, "{why}");
            assert!(why.cause.contains("another program"), "{why}");
            assert!(volume.close(&core).await.is_err());
            // What this process wrote last is not what the image says: it is not taken back.
            if let Some(own) = volume.unclosed() {
                drop((volume, lane));
                let again = open_image(&core, spec(&core, Some(own)), Fences::new(2)).await;
                let why = again.err().unwrap();
                assert_eq!(why.kind, OpenErrorKind::Fenced, "{why}");
            }
        };
        world.block_on(&node, HOUR, test).unwrap();
    }
}

#[test]
fn a_share_that_vanishes_loses_the_image_and_one_that_is_back_has_all_that_was_flushed() {
    for fault in [
        Fault::FileSyncError,
        Fault::FileReadError,
        Fault::FileWriteError,
    ] {
        let (world, node) = world();
        let core = node.core(0);
        let setup = async move {
            made(&core, PATH, Kind::Dynamic).await;
            let (volume, lane) = opened(&core).await;
            ask(&lane, write(0, 1, Durability::Stable)).await.unwrap();
            ask(&lane, write(4096, 2, Durability::Stable))
                .await
                .unwrap();
            (core, volume, lane)
        };
        let (core, volume, lane) = world.block_on(&node, HOUR, setup).unwrap();
        let all = [
            Fault::FileSyncError,
            Fault::FileReadError,
            Fault::FileWriteError,
        ];
        let plan = all
            .iter()
            .fold(FaultPlan::none(), |plan, it| plan.with(*it, 1_000_000));
        world.set_faults(plan);
        let (failing, there) = (Rc::clone(&lane), Arc::clone(&volume));
        let fail = async move {
            let op = if fault == Fault::FileReadError {
                Op::Read {
                    range: range(0, 8),
                    into: None,
                }
            } else if fault == Fault::FileWriteError {
                write(0, 3, Durability::Cached)
            } else {
                Op::Flush
            };
            assert_eq!(ask(&failing, op).await.unwrap_err(), IoError::Unavailable);
            let why = there.lost().unwrap();
            assert_ne!(why.kind, OpenErrorKind::Fenced, "{why}");
            assert!(why.cause.contains(PATH), "{why}");
            assert_eq!(byte(&failing, 0).await, Err(IoError::Unavailable));
        };
        world.block_on(&node, HOUR, fail).unwrap();
        world.set_faults(FaultPlan::none());
        let after = async move {
            let own = volume.unclosed();
            assert!(own.is_some() && volume.close(&core).await.is_err());
            drop((volume, lane));
            let again = open_image(&core, spec(&core, own), Fences::new(2))
                .await
                .unwrap();
            let lane = Arc::clone(&again).open(&core).await.unwrap();
            assert_eq!(byte(&lane, 4096).await, Ok(2));
            let first = byte(&lane, 0).await.unwrap();
            assert!(first == 1 || (fault == Fault::FileWriteError && first == 3));
            ask(&lane, write(8192, 4, Durability::Stable))
                .await
                .unwrap();
            again.close(&core).await.unwrap();
        };
        world.block_on(&node, HOUR, after).unwrap();
    }
}

#[test]
fn a_full_disk_refuses_what_needs_space_and_nothing_else() {
    let (world, node) = world();
    let core = node.core(0);
    let setup = async move {
        made(&core, PATH, Kind::Dynamic).await;
        let (volume, lane) = opened(&core).await;
        ask(&lane, write(0, 1, Durability::Stable)).await.unwrap();
        (core, volume, lane)
    };
    let (core, volume, lane) = world.block_on(&node, HOUR, setup).unwrap();
    world.set_faults(FaultPlan::none().with(Fault::FileNoSpace, 1_000_000));
    let (full, there) = (Rc::clone(&lane), Arc::clone(&volume));
    let fail = async move {
        for _ in 0..3 {
            let refused = ask(&full, write(8192, 2, Durability::Cached)).await;
            assert_eq!(refused.unwrap_err(), IoError::SpaceExhausted);
        }
        assert!(there.lost().is_none());
        assert_eq!(
            (byte(&full, 8192).await, byte(&full, 0).await),
            (Ok(0), Ok(1))
        );
    };
    world.block_on(&node, HOUR, fail).unwrap();
    world.set_faults(FaultPlan::none());
    let after = async move {
        let before = volume.file_bytes();
        ask(&lane, write(8192, 2, Durability::Stable))
            .await
            .unwrap();
        assert_eq!(byte(&lane, 8192).await, Ok(2));
        assert!(
            volume.file_bytes() <= before + 2 * MIB,
            "tries take no space"
        );
        volume.close(&core).await.unwrap();
    };
    world.block_on(&node, HOUR, after).unwrap();
}

#[test]
fn space_that_was_given_back_is_used_again_and_discards_read_as_zeroes() {
    let (world, node) = world();
    let core = node.core(0);
    let test = async move {
        made(&core, PATH, Kind::Dynamic).await;
        let (volume, lane) = opened(&core).await;
        ask(&lane, write(0, 1, Durability::Stable)).await.unwrap();
        let one = volume.file_bytes();
        for round in 1..20 {
            let discard = Op::Discard {
                range: range(0, 2048 * 8),
                to: Provision::Deallocated,
                durability: Durability::Stable,
            };
            ask(&lane, discard).await.unwrap();
            assert_eq!(byte(&lane, 0).await, Ok(0));
            core.sleep_until(core.now().after(Duration::from_millis(50)))
                .await;
            ask(&lane, write(0, round, Durability::Stable))
                .await
                .unwrap();
            assert_eq!(
                (byte(&lane, 0).await, byte(&lane, 8).await),
                (Ok(round), Ok(0))
            );
        }
        assert_eq!(
            volume.file_bytes(),
            one,
            "the place is taken again and again"
        );
        let asked = Op::Extents {
            range: range(0, 2048 * 8),
            since: None,
        };
        let Ok(Done::Extents(found)) = ask(&lane, asked).await else {
            panic!("no extents")
        };
        let kinds: Vec<(u64, ExtentKind)> =
            found.iter().map(|it| (it.range.len().0, it.kind)).collect();
        let wanted = [
            (2048, ExtentKind::Mapped),
            (2048 * 7, ExtentKind::Deallocated),
        ];
        assert_eq!(kinds, wanted);
    };
    world.block_on(&node, HOUR, test).unwrap();
}

#[test]
fn a_place_is_not_used_again_while_a_request_to_it_is_under_way() {
    let (world, node) = world();
    let core = node.core(0);
    let setup = async move {
        made(&core, PATH, Kind::Dynamic).await;
        let (volume, lane) = opened(&core).await;
        ask(&lane, write(0, 1, Durability::Stable)).await.unwrap();
        (core, volume, lane)
    };
    let (core, volume, lane) = world.block_on(&node, HOUR, setup).unwrap();
    let test = async move {
        let rider = volume.grace.ride();
        let before = volume.file_bytes();
        let discard = Op::Discard {
            range: range(0, 2048),
            to: Provision::Deallocated,
            durability: Durability::Stable,
        };
        ask(&lane, discard).await.unwrap();
        core.sleep_until(core.now().after(OWNER_INTERVAL)).await;
        ask(&lane, write(2048, 2, Durability::Stable))
            .await
            .unwrap();
        assert_eq!(volume.file_bytes(), before + MIB, "elsewhere");
        drop(rider);
        core.sleep_until(core.now().after(OWNER_INTERVAL)).await;
        ask(&lane, write(4096, 3, Durability::Stable))
            .await
            .unwrap();
        assert_eq!(
            volume.file_bytes(),
            before + MIB,
            "where nobody is any more"
        );
    };
    world.block_on(&node, HOUR, test).unwrap();
}

#[test]
fn a_lun_with_other_blocks_than_the_image_has_sectors_is_refused() {
    let (world, node) = world();
    let core = node.core(0);
    let test = async move {
        made(&core, PATH, Kind::Fixed).await;
        let other = ImageSpec {
            block_size: BlockSize::B4096,
            ..spec(&core, None)
        };
        let why = open_image(&core, other, Fences::new(2))
            .await
            .err()
            .unwrap();
        assert!(why.next_step.contains("block_size = 512"), "{why}");
        let (volume, lane) = opened(&core).await;
        assert_eq!(volume.shape().caps.discard, Support::Absent);
        volume.resize(&core, 16 * MIB).await.unwrap();
        assert_eq!(volume.shape().block_count, BlockCount(16 * MIB / 512));
        assert_eq!(byte(&lane, 0).await, Ok(0));
        volume.cut(&core, 16 * MIB, 8 * MIB).await.unwrap();
        assert_eq!(volume.shape().block_count, BlockCount(8 * MIB / 512));
    };
    world.block_on(&node, HOUR, test).unwrap();
}

#[test]
fn what_is_behind_the_end_of_a_lun_stays_when_the_lun_changes_its_size() {
    let (world, node) = world();
    let core = node.core(0);
    let test = async move {
        made(&core, PATH, Kind::Dynamic).await;
        let (volume, lane) = opened(&core).await;
        let last = 7 * MIB / 512;
        ask(&lane, write(last, 7, Durability::Stable))
            .await
            .unwrap();
        // A LUN of 4 MiB on a disk of 8 becomes larger, and smaller.
        for (was, is) in [(4, 6), (6, 6), (6, 5)] {
            volume.grow(&core, is * MIB).await.unwrap();
            volume.cut(&core, was * MIB, is * MIB).await.unwrap();
            assert_eq!(volume.shape().block_count, BlockCount(8 * MIB / 512));
            assert_eq!(byte(&lane, last).await, Ok(7), "{was} to {is}");
        }
        // One that ends where the disk does gives back what was its own.
        volume.cut(&core, 8 * MIB, 5 * MIB).await.unwrap();
        assert_eq!(volume.shape().block_count, BlockCount(5 * MIB / 512));
        volume.grow(&core, 8 * MIB).await.unwrap();
        assert_eq!(byte(&lane, last).await, Ok(0));
    };
    world.block_on(&node, HOUR, test).unwrap();
}

#[test]
fn what_this_process_wrote_while_an_opening_failed_is_no_other_programs() {
    let (world, node) = world();
    let core = node.core(0);
    let test = async move {
        made(&core, PATH, Kind::Dynamic).await;
        let (volume, lane) = opened(&core).await;
        ask(&lane, write(0, 1, Durability::Stable)).await.unwrap();
        let mut own = volume.unclosed().unwrap();
        drop((volume, lane));
        // Its log is replayed, by which it gets another identifier; then it is refused.
        for _ in 0..3 {
            let refused = ImageSpec {
                block_size: BlockSize::B4096,
                ..spec(&core, Some(own.clone()))
            };
            let why = open_image(&core, refused, Fences::new(2)).await;
            let why = why.err().unwrap();
            assert_eq!(why.kind, OpenErrorKind::Unsupported, "{why}");
            own = own.after_unclosed();
        }
        let again = spec(&core, Some(own.clone()));
        let volume = open_image(&core, again, Fences::new(2)).await.unwrap();
        drop(volume);
        taken_by_another(&core).await;
        let again = spec(&core, Some(own.after_unclosed()));
        let why = open_image(&core, again, Fences::new(2)).await;
        let why = why.err().unwrap();
        assert_eq!(why.kind, OpenErrorKind::Fenced, "{why}");
    };
    world.block_on(&node, HOUR, test).unwrap();
}
