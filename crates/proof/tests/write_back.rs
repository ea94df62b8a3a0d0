//! Volumes behind a journal against the model disk, with checksums and without: power cut at any
//! point, over files of a simulated machine. Every block must be one that the model allows, and
//! none may be taken for damaged.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy knows only test functions"
)]

use backends::{FileSpec, Provisioning, create_file, open_file};
use env::CoreHandle;
use env::sim::{Fault, FaultPlan, Node, World, WorldConfig};
use layers::integrity::{self, Blank, Finding, Integrity, MapSpec, Options};
use proof::plain_pool::{self, JOURNAL, NUMBER};
use proof::seeds::seeds;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use units::{BlockCount, BlockSize, Buf, ByteCount, Lba, LbaRange};
use volume::{
    Checked, Done, Durability, Fences, Io, IoError, IoResult, Lane, Op, Origin, Volume, over,
};
use volume_test::model::{Model, Plan, conforms, goes_on, verify};
use write_back::{Journal, Mode, VolumeId, WriteBack};

const DAY: Duration = Duration::from_secs(86_400);
const SIZES: [BlockSize; 2] = [BlockSize::B512, BlockSize::B4096];

/// A pool with a journal and two volumes.
#[derive(Clone, Copy, Debug)]
struct Scene {
    block_size: BlockSize,
    provisioning: Provisioning,
    rings: u32,
    shard_bytes: u64,
    /// From so many bytes on writes go around the log.
    past_bytes: usize,
    mode: Mode,
    checksums: Checksums,
}

/// Its volumes' checksums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Checksums {
    None,
    /// Kept, and all of them fit into memory.
    Kept,
    /// Kept, and few pages of them fit into memory.
    Few,
}

/// What is open of a pool.
struct Open {
    journal: Arc<Journal>,
    volumes: [Arc<dyn Volume>; 2],
    checked: Vec<Arc<Integrity>>,
    findings: Arc<Mutex<Vec<Finding>>>,
}

fn number(volume: u64) -> [u8; 16] {
    (100 + u128::from(volume)).to_be_bytes()
}

impl Scene {
    fn path(volume: u64) -> PathBuf {
        format!("/pool/volume-{volume}").into()
    }

    fn checksums(volume: u64) -> PathBuf {
        format!("/pool/volume-{volume}.checksums").into()
    }

    /// What is kept whole: a block in the log, and a sector of the backing volume.
    fn whole_bytes(self) -> u32 {
        let past = self.past_bytes < 1 << 20 || self.mode != Mode::WriteBack;
        if past { 512 } else { self.block_size.bytes() }
    }

    async fn make(self, core: CoreHandle) {
        plain_pool::make(&core, self.rings, self.shard_bytes).await;
        for volume in 0..2 {
            let size = ByteCount(8 << 20);
            let path = Self::path(volume);
            create_file(&core, &path, size, self.provisioning)
                .await
                .unwrap();
            let spec = MapSpec {
                sidecar: Self::checksums(volume).into(),
                volume: number(volume),
                block_size: self.block_size,
                physical_block_bytes: [self.block_size.bytes(), 4096][usize::from(volume > 0)],
                block_count: BlockCount(size.0 / u64::from(self.block_size.bytes())),
                blank: Blank::Zeroes,
            };
            if self.checksums != Checksums::None {
                integrity::create(&core, &spec).await.unwrap();
            }
        }
    }

    async fn open(self, core: &CoreHandle) -> Open {
        let journal = Journal::open(core, Path::new(JOURNAL), NUMBER)
            .await
            .unwrap();
        assert_eq!(journal.damaged(), []);
        let findings: Arc<Mutex<Vec<Finding>>> = Arc::default();
        let (mut volumes, mut all_checked) = (Vec::new(), Vec::new());
        for volume in 0..2 {
            let spec = FileSpec {
                path: Self::path(volume),
                block_size: self.block_size,
                physical_block_exponent: 0,
                provisioning: self.provisioning,
            };
            let fences = Fences::new(1);
            let opened = open_file(core, spec, fences.clone()).await.unwrap();
            let mut backing: Arc<dyn Volume> = opened;
            let id = VolumeId(100 + volume);
            if self.checksums != Checksums::None {
                let checked = self.checked(core, volume, backing, &findings).await;
                if checked.is_replaying() {
                    let unverified = journal.unverified_blocks(id);
                    checked
                        .mark_unverified(core, unverified.ranges())
                        .await
                        .unwrap();
                    checked.replayed();
                }
                backing = over(Checked, Arc::<Integrity>::clone(&checked));
                all_checked.push(checked);
            }
            let volume = WriteBack::new(Arc::clone(&journal), id, backing, fences, self.mode);
            volume.write_around_from(self.past_bytes);
            if self.checksums != Checksums::None {
                volume.log_first();
            }
            volumes.push(volume as Arc<dyn Volume>);
        }
        let volumes = volumes.try_into().map_err(|_| ()).expect("there are two");
        Open {
            journal,
            volumes,
            checked: all_checked,
            findings,
        }
    }

    async fn checked(
        self,
        core: &CoreHandle,
        volume: u64,
        backing: Arc<dyn Volume>,
        findings: &Arc<Mutex<Vec<Finding>>>,
    ) -> Arc<Integrity> {
        let mut options = Options::new(Self::checksums(volume).into(), number(volume));
        if self.checksums == Checksums::Few {
            options.resident_bytes = 0;
        }
        options.covered = true;
        let reported = Arc::clone(findings);
        options.report = Arc::new(move |finding| reported.lock().unwrap().push(finding.clone()));
        Integrity::open(core, backing, options).await.unwrap()
    }
}

impl Open {
    /// Reads all that was ever written.
    async fn check(&self, core: &CoreHandle, models: &[Rc<RefCell<Model>>; 2]) {
        for (volume, model) in self.volumes.iter().zip(models) {
            let lane = Arc::clone(volume).open(core).await.unwrap();
            verify(&lane, &volume.shape(), model).await;
        }
        assert_eq!(*self.findings.lock().unwrap(), []);
    }

    /// Checksums that were adopted from what is there.
    fn taken(&self) -> u64 {
        self.checked.iter().map(|it| it.counts().adopted).sum()
    }
}

fn scenes() -> Vec<Scene> {
    let (back, through, volatile) = (Mode::WriteBack, Mode::WriteThrough, Mode::Volatile);
    let plain = [
        (1, 1 << 30, 1 << 20, back, Checksums::None),
        (2, 16 << 10, 1 << 20, back, Checksums::None),
        (2, 16 << 10, 6 << 10, back, Checksums::None),
        (2, 16 << 10, 6 << 10, volatile, Checksums::None),
        (1, 1 << 30, 1 << 20, through, Checksums::None),
    ];
    let checked = [
        (1, 16 << 10, 1 << 20, back, Checksums::Kept),
        (2, 16 << 10, 6 << 10, back, Checksums::Kept),
        (2, 16 << 10, 6 << 10, back, Checksums::Few),
        (2, 16 << 10, 6 << 10, volatile, Checksums::Kept),
        (1, 16 << 10, 1 << 20, through, Checksums::Kept),
    ];
    let (thin, thick) = (Provisioning::Thin, Provisioning::Thick);
    let mut scenes = Vec::new();
    for block_size in SIZES {
        for (provisioning, kinds) in [(thin, plain), (thick, plain), (thin, checked)] {
            let scene = |(rings, shard_bytes, past_bytes, mode, checksums)| Scene {
                block_size,
                provisioning,
                rings,
                shard_bytes,
                past_bytes,
                mode,
                checksums,
            };
            scenes.extend(kinds.map(scene));
        }
    }
    scenes
}

fn world(seed: u64) -> World {
    let config = WorldConfig {
        faults: FaultPlan::benign(),
        ..WorldConfig::default()
    };
    World::new(seed, config)
}

fn made(world: &World, scene: Scene) -> Node {
    let node = world.node("node");
    let make = scene.make(node.core(0));
    world.block_on(&node, DAY, make).unwrap();
    node
}

#[test]
fn a_volume_behind_a_journal_conforms() {
    for (seed, scene) in (0..).zip(scenes()) {
        println!("{scene:?}");
        let world = world(seed);
        let node = made(&world, scene);
        let core = node.core(0);
        let run = async move {
            let open = scene.open(&core).await;
            let volume = Arc::clone(&open.volumes[0]);
            let shape = volume.shape();
            let plan = Plan {
                whole_bytes: scene.whole_bytes(),
                ..Plan::new(seed)
            };
            let tally = conforms(&core, volume, plan).await;
            tally.assert_covers(&shape);
            open.journal.drain(&core).await;
            let status = open.journal.status(&core).await;
            assert!(
                status
                    .iter()
                    .all(|it| it.pages == 0 && it.destage_errors.is_empty())
            );
            assert!(status.iter().any(|it| it.counts.batches > 0));
            open.journal.close(&core).await;
            for checked in &open.checked {
                checked.close(&core).await.unwrap();
            }
            assert_eq!(*open.findings.lock().unwrap(), []);
            let writes = open.checked.first().map(|it| it.counts().page_writes);
            assert!(writes.is_none_or(|it| it > 0), "{writes:?}");
        };
        world.block_on(&node, DAY, run).unwrap();
    }
}

/// What became of lives that were cut.
#[derive(Clone, Copy, Default, Debug)]
struct Cuts {
    /// Cut before their end.
    cut: u64,
    /// Found something in the journal.
    replayed: u64,
    /// Checksums that had to be adopted anew.
    taken: u64,
}

#[test]
fn what_was_acknowledged_survives_power_cuts_at_any_point_and_none_is_taken_for_damaged() {
    let mut all = Cuts::default();
    for seed in seeds(6) {
        for scene in scenes() {
            let one = with_cuts(scene, seed);
            all.cut += one.cut;
            all.replayed += one.replayed;
            all.taken += one.taken;
        }
    }
    println!("{all:?}");
    assert!(
        all.cut > 100 && all.replayed > 60 && all.taken > 50,
        "{all:?}"
    );
}

/// Lives of one pool, each cut after another time.
fn with_cuts(scene: Scene, seed: u64) -> Cuts {
    println!("seed {seed}: {scene:?}");
    let world = world(seed);
    let node = made(&world, scene);
    let models: [Rc<RefCell<Model>>; 2] = [0, 1].map(|_| {
        let model = Model::new(scene.block_size, BlockCount(64)).keeping_whole(scene.whole_bytes());
        Rc::new(RefCell::new(model))
    });
    let cuts = Rc::new(Cell::new(Cuts::default()));
    for life in 0..4_u64 {
        let ended = Rc::new(Cell::new(false));
        let (core, reported) = (node.core(0), Rc::clone(&ended));
        let (models_here, here) = (models.clone(), Rc::clone(&cuts));
        node.core(0).spawn(Box::pin(async move {
            let open = scene.open(&core).await;
            open.check(&core, &models_here).await;
            let mut so_far = here.get();
            so_far.replayed += u64::from(open.journal.replayed() > 0);
            so_far.taken += open.taken();
            here.set(so_far);
            let seed = seed * 4 + life;
            let [one, other] = [0, 1].map(|at: usize| {
                let volume = Arc::clone(&open.volumes[at]);
                let (core, model) = (Rc::clone(&core), Rc::clone(&models_here[at]));
                let plan = Plan::new(seed * 2 + at as u64);
                async move { goes_on(&core, volume, plan, model).await }
            });
            let second = env::detach(&core, other);
            one.await;
            second.await;
            assert_eq!(*open.findings.lock().unwrap(), []);
            reported.set(true);
        }));
        world.run_for(Duration::from_millis(5 + 7 * (seed % 5) + 26 * life));
        let mut so_far = cuts.get();
        so_far.cut += u64::from(!ended.get());
        cuts.set(so_far);
        node.crash();
        for model in &models {
            model.borrow_mut().cut();
        }
        node.restart();
    }
    let core = node.core(0);
    let last = async move {
        let open = scene.open(&core).await;
        open.check(&core, &models).await;
        open.journal.drain(&core).await;
        let status = open.journal.status(&core).await;
        assert!(status.iter().all(|it| it.pages == 0), "{status:?}");
        open.check(&core, &models).await;
    };
    world.block_on(&node, DAY, last).unwrap();
    cuts.get()
}

#[test]
fn a_lane_of_a_volume_that_has_left_is_reported_so_and_a_new_one_finds_the_data() {
    let scene = scenes()[0];
    let world = world(77);
    let node = made(&world, scene);
    let core = node.core(0);
    let run = async move {
        let journal = Journal::open(&core, Path::new(JOURNAL), NUMBER)
            .await
            .unwrap();
        let spec = FileSpec {
            path: Scene::path(0),
            block_size: scene.block_size,
            physical_block_exponent: 0,
            provisioning: scene.provisioning,
        };
        let fences = Fences::new(1);
        let backing = open_file(&core, spec, fences.clone()).await.unwrap();
        let volume = WriteBack::new(journal, VolumeId(100), backing, fences, scene.mode);
        let range = LbaRange::new(Lba(3), BlockCount(1)).unwrap();
        let write = |byte| Op::Write {
            range,
            data: Buf::copy_of(&vec![byte; scene.block_size.bytes() as usize]),
            durability: Durability::Cached,
        };
        let ask = |op| Io::new(op, Origin::default());
        let lane = Arc::<WriteBack>::clone(&volume).open(&core).await.unwrap();
        lane.submit(ask(write(7))).await.unwrap();
        // One that is under way when it leaves, and one after it.
        let under_way = lane.submit(ask(write(8)));
        volume.release(&core).await;
        under_way.await.unwrap();
        let late = lane.submit(ask(write(9))).await;
        assert_eq!(late.err(), Some(IoError::Unavailable));
        let lane = volume.open(&core).await.unwrap();
        let read = Op::Read { range, into: None };
        let Done::Data(data) = lane.submit(ask(read)).await.unwrap() else {
            panic!("a read gives data");
        };
        assert!(data.to_vec().iter().all(|&byte| byte == 8));
    };
    world.block_on(&node, DAY, run).unwrap();
}

/// What a write and a flush of one block get.
async fn write_and_flush(lane: &Rc<dyn Lane>, scene: Scene, lba: u64) -> [IoResult; 2] {
    let write = Op::Write {
        range: LbaRange::new(Lba(lba), BlockCount(1)).unwrap(),
        data: Buf::copy_of(&vec![5; scene.block_size.bytes() as usize]),
        durability: Durability::Cached,
    };
    let ask = |op| Io::new(op, Origin::default());
    [
        lane.submit(ask(write)).await,
        lane.submit(ask(Op::Flush)).await,
    ]
}

#[test]
fn a_log_without_space_says_so_and_whether_there_is_some_again() {
    let scene = scenes()[0];
    for seed in 0..10 {
        let world = world(seed);
        let node = made(&world, scene);
        let core = node.core(0);
        let open = async move {
            let Open {
                journal,
                volumes: [volume, _],
                ..
            } = scene.open(&core).await;
            let lane = volume.open(&core).await.unwrap();
            let [written, _] = write_and_flush(&lane, scene, 4).await;
            written.unwrap();
            (journal, lane)
        };
        let (journal, lane) = world.block_on(&node, DAY, open).unwrap();
        world.set_faults(FaultPlan::none().with(Fault::FileNoSpace, 1_000_000));
        let (core, first, asked) = (node.core(0), Rc::clone(&lane), Arc::clone(&journal));
        let full = async move {
            // The one that is lost, and one that comes later.
            for lba in [3, 7] {
                let ends = write_and_flush(&first, scene, lba).await;
                let ends = ends.map(|end| end.err());
                assert_eq!(ends, [Some(IoError::SpaceExhausted); 2], "{lba}");
            }
            assert!(!asked.has_space_again(&core).await);
        };
        world.block_on(&node, DAY, full).unwrap();
        world.set_faults(FaultPlan::none());
        let core = node.core(0);
        let again = async move {
            assert!(journal.has_space_again(&core).await);
            assert!(journal.status(&core).await.iter().any(|ring| ring.full));
            // Asked for in vain until it is opened anew, and nothing that it has is touched.
            let [written, _] = write_and_flush(&lane, scene, 7).await;
            assert_eq!(written.err(), Some(IoError::SpaceExhausted));
        };
        world.block_on(&node, DAY, again).unwrap();
        node.kill();
        node.restart();
        let core = node.core(0);
        let reads = async move {
            let Open {
                journal,
                volumes: [volume, _],
                ..
            } = scene.open(&core).await;
            assert_eq!(journal.damaged(), []);
            let lane = volume.open(&core).await.unwrap();
            let range = LbaRange::new(Lba(4), BlockCount(1)).unwrap();
            let read = Io::new(Op::Read { range, into: None }, Origin::default());
            let Ok(Done::Data(data)) = lane.submit(read).await else {
                panic!("a read gives data");
            };
            assert!(data.to_vec().iter().all(|&byte| byte == 5));
        };
        world.block_on(&node, DAY, reads).unwrap();
    }
}

#[test]
fn a_write_that_the_log_failed_is_not_read_as_old_and_then_as_new() {
    let scene = scenes()[0];
    let mut came_back = [0, 0];
    for seed in 0..40 {
        let world = world(seed);
        let node = made(&world, scene);
        let read_at = |lba| Op::Read {
            range: LbaRange::new(Lba(lba), BlockCount(1)).unwrap(),
            into: None,
        };
        let write_at = move |lba, byte| Op::Write {
            range: LbaRange::new(Lba(lba), BlockCount(1)).unwrap(),
            data: Buf::copy_of(&vec![byte; scene.block_size.bytes() as usize]),
            durability: Durability::Cached,
        };
        let ask = |op| Io::new(op, Origin::default());
        let core = node.core(0);
        let open = async move {
            let [volume, _] = scene.open(&core).await.volumes;
            let lane = volume.open(&core).await.unwrap();
            lane.submit(ask(write_at(3, 7))).await.unwrap();
            lane.submit(ask(write_at(4, 7))).await.unwrap();
            lane
        };
        let lane = world.block_on(&node, DAY, open).unwrap();
        world.set_faults(FaultPlan::none().with(Fault::FileWriteError, 1_000_000));
        let failing = Rc::clone(&lane);
        let failed = async move { failing.submit(ask(write_at(3, 8))).await };
        let failed = world.block_on(&node, DAY, failed).unwrap();
        assert_eq!(failed.err(), Some(IoError::MediumError { lba: Lba(3) }));
        world.set_faults(FaultPlan::none());
        let reads = async move {
            let unknown = lane.submit(ask(read_at(3))).await;
            assert_eq!(unknown.err(), Some(IoError::Integrity { lba: Lba(3) }));
            // What was acknowledged can still be read.
            assert!(lane.submit(ask(read_at(4))).await.is_ok());
        };
        world.block_on(&node, DAY, reads).unwrap();
        node.kill();
        node.restart();
        let core = node.core(0);
        let again = async move {
            let [volume, _] = scene.open(&core).await.volumes;
            let lane = volume.open(&core).await.unwrap();
            let Ok(Done::Data(data)) = lane.submit(ask(read_at(3))).await else {
                panic!("an opening decides what is there");
            };
            data.to_vec()[0]
        };
        let byte = world.block_on(&node, DAY, again).unwrap();
        came_back[usize::from(byte) - 7] += 1;
    }
    assert!(came_back.iter().all(|&it| it > 0), "{came_back:?}");
}
