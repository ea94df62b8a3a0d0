//! Every backend against the model disk: simulated with power cuts at any point, and real on both
//! disk engines, with and without a store that forgets, on files and on loop devices.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy knows only test functions"
)]

use backends::image::{Drive, ImageSpec, Own, open_image};
use backends::{
    DiskVolume, FileSpec, MemoryVolume, Provisioning, create_file, open_block, open_file,
};
use env::real::{Cores, Driver, FilesMode, Runtime, RuntimeConfig};
use env::sim::{BlockDevice, FaultPlan, Node, World, WorldConfig};
use env::{Access, CoreHandle, CoreId, Create, LocalFuture, OpenHow};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, BlockSize, ByteCount};
use volume::{Fences, Volume};
use volume_test::model::{Model, Plan, conforms, goes_on};

const DAY: Duration = Duration::from_secs(86_400);
/// What files and the smallest sectors keep whole, whatever the blocks are.
const WHOLE_BYTES: u32 = 512;
const SIZES: [BlockSize; 2] = [BlockSize::B512, BlockSize::B4096];

fn fences() -> Fences {
    Fences::new(1)
}

#[derive(Clone, Debug)]
struct Place {
    path: PathBuf,
    block_size: BlockSize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    File(Provisioning),
    Block,
    Image { is_fixed: bool },
}

impl Place {
    async fn make(&self, core: &CoreHandle) {
        if let Kind::Image { is_fixed } = self.kind {
            make_image(core, &self.path, self.block_size, is_fixed).await;
        }
        if let Kind::File(provisioning) = self.kind {
            let directory = self.path.parent().unwrap();
            core.files().create_dir(directory).await.unwrap();
            let above = directory.parent().unwrap();
            core.files().sync_dir(above).await.unwrap();
            let size = ByteCount(4 << 20);
            create_file(core, &self.path, size, provisioning)
                .await
                .unwrap();
        }
    }

    async fn open(&self, core: &CoreHandle) -> Arc<dyn Volume> {
        if let Kind::Image { .. } = self.kind {
            let spec = ImageSpec {
                path: self.path.clone(),
                block_size: self.block_size,
                physical_block_exponent: 0,
                own: Own::new(core),
            };
            return open_image(core, spec, fences()).await.unwrap();
        }
        self.open_disk(core).await
    }

    async fn open_disk(&self, core: &CoreHandle) -> Arc<DiskVolume> {
        let (path, block_size) = (self.path.clone(), self.block_size);
        let opened = match self.kind {
            Kind::File(provisioning) => {
                let spec = FileSpec {
                    path,
                    block_size,
                    physical_block_exponent: 0,
                    provisioning,
                };
                open_file(core, spec, fences()).await
            }
            Kind::Block => open_block(core, &path, block_size, fences()).await,
            Kind::Image { .. } => unreachable!("opened as an image"),
        };
        opened.unwrap()
    }
}

/// An image of 4 MiB with blocks of 1 MiB.
async fn make_image(core: &CoreHandle, path: &Path, block_size: BlockSize, is_fixed: bool) {
    let directory = path.parent().unwrap();
    core.files().create_dir(directory).await.unwrap();
    let above = directory.parent().unwrap();
    core.files().sync_dir(above).await.unwrap();
    let how = OpenHow {
        access: Access::ReadWrite,
        create: Create::New,
        direct: false,
        lock: true,
    };
    let file = core.files().open(path, how).await.unwrap();
    let new = vhdx::New {
        geometry: vhdx::Geometry::new(4 << 20, 1 << 20, block_size.bytes().into()).unwrap(),
        physical_bytes: 4096,
        kind: if is_fixed {
            vhdx::Kind::Fixed
        } else {
            vhdx::Kind::Dynamic
        },
        disk_id: None,
        creator: "proof".to_owned(),
    };
    let made = new.create(vhdx::Guids::new([7; 16]));
    Drive::of(&[file]).run(made).await.unwrap();
    core.files().sync_dir(directory).await.unwrap();
}

/// Conforms, and everything that the shape allows was asked for.
async fn covers(core: CoreHandle, volume: Arc<dyn Volume>, plan: Plan) {
    let shape = volume.shape();
    let tally = conforms(&core, volume, plan).await;
    tally.assert_covers(&shape);
}

#[test]
fn memory_conforms_at_both_block_sizes_over_shards_and_within() {
    for block_size in SIZES {
        for seed in 0..10 {
            let world = World::new(seed, WorldConfig::default());
            let node = world.node("node");
            let volume = MemoryVolume::new(block_size, BlockCount(20_000), 0, fences());
            let run = covers(node.core(0), volume, Plan::new(seed));
            world.block_on(&node, DAY, run).unwrap();
        }
    }
}

/// All kinds of places that a simulated machine has.
fn simulated_places(node: &Node) -> Vec<Place> {
    let mut places = Vec::new();
    for block_size in SIZES {
        for provisioning in [Provisioning::Thin, Provisioning::Thick] {
            places.push(Place {
                path: format!("/pool/{block_size:?}-{provisioning:?}").into(),
                block_size,
                kind: Kind::File(provisioning),
            });
        }
        for is_fixed in [false, true] {
            places.push(Place {
                path: format!("/pool/{block_size:?}-{is_fixed}.vhdx").into(),
                block_size,
                kind: Kind::Image { is_fixed },
            });
        }
        for (physical, discard_granularity) in [(block_size.bytes(), 0), (4096, 4096)] {
            let path = PathBuf::from(format!("/dev/{block_size:?}-{discard_granularity}"));
            let device = BlockDevice {
                bytes: 4 << 20,
                logical_block_bytes: block_size.bytes(),
                physical_block_bytes: physical,
                discard_granularity,
            };
            node.disk().add_block_device(&path, device);
            places.push(Place {
                path,
                block_size,
                kind: Kind::Block,
            });
        }
    }
    places
}

#[test]
fn simulated_files_and_devices_conform_through_power_cuts_at_any_point() {
    let mut cuts = 0;
    for seed in 0..6 {
        let config = WorldConfig {
            faults: FaultPlan::benign(),
            ..WorldConfig::default()
        };
        let world = World::new(seed, config);
        let node = world.node("node");
        for place in simulated_places(&node) {
            println!("seed {seed}: {place:?}");
            cuts += with_cuts(&world, &node, &place, seed);
        }
    }
    assert!(cuts > 50, "only {cuts} runs were cut short");
}

/// Three lives on one place, each cut after another time; answers how many were cut before their
/// end.
fn with_cuts(world: &World, node: &Node, place: &Place, seed: u64) -> u32 {
    let core = node.core(0);
    let made = place.clone();
    let make = async move {
        made.make(&core).await;
    };
    world.block_on(node, DAY, make).unwrap();
    let blocks = BlockCount(64);
    let model = Model::new(place.block_size, blocks).keeping_whole(WHOLE_BYTES);
    let model = Rc::new(RefCell::new(model));
    let mut cuts = 0;
    for life in 0..3_u64 {
        let ended = Rc::new(RefCell::new(false));
        let (core, place, reported) = (node.core(0), place.clone(), Rc::clone(&ended));
        let (model_here, plan) = (Rc::clone(&model), Plan::new(seed * 3 + life));
        node.core(0).spawn(Box::pin(async move {
            let volume = place.open(&core).await;
            goes_on(&core, volume, plan, model_here).await;
            *reported.borrow_mut() = true;
        }));
        world.run_for(Duration::from_millis(3 + 5 * (seed % 5) + 11 * life));
        cuts += u32::from(!*ended.borrow());
        node.crash();
        model.borrow_mut().cut();
        node.restart();
    }
    let (core, place) = (node.core(0), place.clone());
    let last = async move {
        let volume = place.open(&core).await;
        goes_on(&core, volume, Plan::new(seed), model).await;
    };
    world.block_on(node, DAY, last).unwrap();
    cuts
}

/// A directory on a disk that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let base = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let path = base.join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is in the build folder, which may be removed whole.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn start(driver: Driver, files: FilesMode) -> Runtime {
    let runtime = Runtime::start(&RuntimeConfig {
        cores: Cores::List(vec![0]),
        driver,
        files,
        ..RuntimeConfig::default()
    })
    .unwrap();
    for notice in runtime.notices() {
        println!("notice: {notice}");
    }
    runtime
}

fn on_core(runtime: &Runtime, test: impl FnOnce(CoreHandle) -> LocalFuture<()> + Send + 'static) {
    runtime.run(CoreId(0), test);
    for notice in runtime.notices() {
        assert!(!notice.0.contains("panicked"), "{notice}");
    }
}

#[test]
fn real_files_conform_on_both_engines_and_in_a_store_that_forgets() {
    let scratch = Scratch::new("files");
    for driver in [Driver::Auto, Driver::Poll] {
        for mode in [FilesMode::Ordinary, FilesMode::ForgetUnsynced] {
            let runtime = start(driver, mode);
            for block_size in SIZES {
                for provisioning in [Provisioning::Thin, Provisioning::Thick] {
                    let name = format!("{driver:?}-{mode:?}-{block_size:?}-{provisioning:?}");
                    let place = Place {
                        path: scratch.0.join(name),
                        block_size,
                        kind: Kind::File(provisioning),
                    };
                    on_core(&runtime, move |core| Box::pin(make_and_cover(core, place)));
                }
                for is_fixed in [false, true] {
                    let place = Place {
                        path: scratch.0.join(format!(
                            "{driver:?}-{mode:?}-{block_size:?}-{is_fixed}.vhdx"
                        )),
                        block_size,
                        kind: Kind::Image { is_fixed },
                    };
                    on_core(&runtime, move |core| Box::pin(make_and_cover(core, place)));
                }
            }
        }
    }
}

async fn make_and_cover(core: CoreHandle, place: Place) {
    place.make(&core).await;
    let volume = place.open(&core).await;
    let plan = Plan {
        whole_bytes: WHOLE_BYTES,
        ..Plan::new(3)
    };
    covers(core, volume, plan).await;
}

/// A loop device over a file, detached at the end.
struct Loop(PathBuf);

impl Loop {
    /// `None`, said plainly, where this machine or user cannot have one.
    fn new(scratch: &Scratch, sector_bytes: u32) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: loop devices need root");
            return None;
        }
        let backing = scratch.0.join(format!("disk-{sector_bytes}"));
        let file = std::fs::File::create(&backing).unwrap();
        file.set_len(16 << 20).unwrap();
        let sector = format!("--sector-size={sector_bytes}");
        let made = Command::new("losetup")
            .args(["--find", "--show", &sector])
            .arg(&backing)
            .output();
        match made {
            Ok(made) if made.status.success() => {
                let name = String::from_utf8(made.stdout).unwrap();
                Some(Self(PathBuf::from(name.trim())))
            }
            other => {
                println!("skipped: losetup does not work here: {other:?}");
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let detached = Command::new("losetup").arg("-d").arg(&self.0).status();
        println!("detach {}: {detached:?}", self.0.display());
    }
}

fn conforms_on(device: &Path, block_size: BlockSize) {
    for driver in [Driver::Auto, Driver::Poll] {
        println!("{} as {block_size:?} on {driver:?}", device.display());
        let runtime = start(driver, FilesMode::Ordinary);
        let place = Place {
            path: device.to_owned(),
            block_size,
            kind: Kind::Block,
        };
        on_core(&runtime, move |core| {
            Box::pin(async move {
                wipe(&core, &place.path).await;
                let volume = place.open_disk(&core).await;
                assert!(volume.is_direct());
                let plan = Plan {
                    whole_bytes: WHOLE_BYTES,
                    ..Plan::new(5)
                };
                covers(core, volume, plan).await;
            })
        });
    }
}

/// The test wants zeroes to begin with.
async fn wipe(core: &CoreHandle, path: &Path) {
    let how = env::OpenHow {
        access: env::Access::ReadWrite,
        create: env::Create::No,
        direct: false,
        lock: true,
    };
    let file = core.files().open(path, how).await.unwrap();
    let op = env::FileOp::ZeroRange {
        offset: 0,
        len: 16 << 20,
    };
    file.submit(op).await.unwrap();
}

#[test]
fn loop_devices_of_512_and_4096_bytes_a_sector_conform_and_misfits_are_refused() {
    let scratch = Scratch::new("loops");
    if let Some(device) = Loop::new(&scratch, 512) {
        conforms_on(&device.0, BlockSize::B512);
        conforms_on(&device.0, BlockSize::B4096);
    }
    if let Some(device) = Loop::new(&scratch, 4096) {
        conforms_on(&device.0, BlockSize::B4096);
        let runtime = start(Driver::Poll, FilesMode::Ordinary);
        let path = device.0.clone();
        on_core(&runtime, move |core| {
            Box::pin(async move {
                let refused = open_block(&core, &path, BlockSize::B512, fences()).await;
                let Err(error) = refused else {
                    panic!("its sectors are too large")
                };
                assert!(error.cause.contains("sectors of 4096 bytes"), "{error}");
            })
        });
    }
}

#[test]
fn a_device_that_is_mounted_is_refused() {
    let scratch = Scratch::new("mounted");
    let Some(device) = Loop::new(&scratch, 512) else {
        return;
    };
    let run = |program: &str, args: &[&str]| {
        let done = Command::new(program).args(args).output();
        done.is_ok_and(|done| done.status.success())
    };
    let at = scratch.0.join("mnt");
    std::fs::create_dir(&at).unwrap();
    let (name, at) = (device.0.to_str().unwrap(), at.to_str().unwrap());
    if !run("mkfs.ext4", &["-q", name]) || !run("mount", &[name, at]) {
        println!("skipped: no mkfs.ext4 or no right to mount");
        return;
    }
    let runtime = start(Driver::Poll, FilesMode::Ordinary);
    let path = device.0.clone();
    let refused = runtime.run(CoreId(0), move |core| {
        Box::pin(async move {
            let opened = open_block(&core, &path, BlockSize::B512, fences()).await;
            opened.err().map(|error| error.cause)
        })
    });
    assert!(run("umount", &[at]));
    let cause = refused.expect("it is mounted");
    assert!(cause.contains("in use"), "{cause}");
}
