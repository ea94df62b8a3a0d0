//! Volumes with checksums behind a journal, against the model disk: power cut at any point, over files of a simulated machine. Every
//! block must be one that the model allows, and none may be taken for damaged.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy knows only test functions"
)]

use backends::{FileSpec, Provisioning, create_file, open_file};
use env::CoreHandle;
use env::sim::{FaultPlan, Node, World, WorldConfig};
use layers::integrity::{self, Blank, Finding, Integrity, MapSpec, Options};
use layers::model::{Model, Plan, conforms, goes_on, verify};
use layers::write_back::{Journal, JournalSpec, Mode, VolumeId};
use layers::{Checked, WriteBack, over};
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use units::{BlockCount, BlockSize, ByteCount};
use volume::{Fences, Volume};

const DAY: Duration = Duration::from_secs(86_400);
const JOURNAL: &str = "/pool/journal";
const POOL: [u8; 16] = [9; 16];

fn seeds() -> u64 {
    std::env::var("CAUSEWAY_SEEDS").map_or(6, |it| it.parse().unwrap())
}

fn number(volume: u64) -> [u8; 16] {
    (100 + u128::from(volume)).to_be_bytes()
}

/// A pool with a journal and two volumes that have checksums.
#[derive(Clone, Copy, Debug)]
struct Scene {
    block_size: BlockSize,
    rings: u32,
    /// From so many bytes on writes go past the log.
    past_bytes: usize,
    mode: Mode,
    /// Few pages of sums fit into memory.
    small: bool,
}

/// What is open of it.
struct Open {
    journal: Arc<Journal>,
    volumes: [Arc<dyn Volume>; 2],
    checked: [Arc<Integrity>; 2],
    findings: Arc<Mutex<Vec<Finding>>>,
}

impl Scene {
    fn path(volume: u64) -> PathBuf {
        format!("/pool/volume-{volume}").into()
    }

    fn sums(volume: u64) -> PathBuf {
        format!("/pool/volume-{volume}.sums").into()
    }

    /// What is kept whole: a block in the log, and a sector at home.
    fn whole_bytes(self) -> u32 {
        let past = self.past_bytes < 1 << 20 || self.mode == Mode::WriteThrough;
        if past { 512 } else { self.block_size.bytes() }
    }

    async fn make(self, core: CoreHandle) {
        core.files().create_dir(Path::new("/pool")).await.unwrap();
        core.files().sync_dir(Path::new("/")).await.unwrap();
        let spec = JournalSpec {
            path: JOURNAL.into(),
            bytes: layers::write_back::bytes_min(self.rings),
            rings: self.rings,
            pool: POOL,
            shard_bytes: 16 << 10,
        };
        Journal::create(&core, &spec).await.unwrap();
        for volume in 0..2 {
            let size = ByteCount(8 << 20);
            let path = Self::path(volume);
            create_file(&core, &path, size, Provisioning::Thin)
                .await
                .unwrap();
            let spec = MapSpec {
                path: Self::sums(volume),
                volume: number(volume),
                block_size: self.block_size,
                block_count: BlockCount(size.0 / u64::from(self.block_size.bytes())),
                blank: Blank::Zeroes,
            };
            integrity::create(&core, &spec).await.unwrap();
        }
    }

    async fn open(self, core: &CoreHandle) -> Open {
        let journal = Journal::open(core, Path::new(JOURNAL), POOL).await.unwrap();
        assert_eq!(journal.damaged(), []);
        let findings: Arc<Mutex<Vec<Finding>>> = Arc::default();
        let (mut volumes, mut all_checked) = (Vec::new(), Vec::new());
        for volume in 0..2 {
            let spec = FileSpec {
                path: Self::path(volume),
                block_size: self.block_size,
                physical_block_exponent: 0,
                provisioning: Provisioning::Thin,
            };
            let fences = Fences::new(1);
            let home = open_file(core, spec, fences.clone()).await.unwrap();
            let mut options = Options::new(Self::sums(volume), number(volume));
            if self.small {
                options.resident_bytes = 0;
            }
            options.covered = true;
            let told = Arc::clone(&findings);
            options.told = Arc::new(move |finding| told.lock().unwrap().push(finding.clone()));
            let checked = Integrity::open(core, home, options).await.unwrap();
            let id = VolumeId(100 + volume);
            if checked.is_replaying() {
                let doubts = journal.doubts(id);
                checked.doubt(core, doubts.ranges()).await.unwrap();
                checked.replayed();
            }
            let below = over(Checked, Arc::<Integrity>::clone(&checked));
            let volume = WriteBack::new(Arc::clone(&journal), id, below, fences, self.mode);
            volume.go_past_from(self.past_bytes);
            volume.tell_first();
            volumes.push(volume as Arc<dyn Volume>);
            all_checked.push(checked);
        }
        let two = "there are two";
        Open {
            journal,
            volumes: volumes.try_into().map_err(|_| ()).expect(two),
            checked: all_checked.try_into().map_err(|_| ()).expect(two),
            findings,
        }
    }
}

fn scenes() -> Vec<Scene> {
    let mut scenes = Vec::new();
    for block_size in [BlockSize::B512, BlockSize::B4096] {
        for (rings, past_bytes, mode, small) in [
            (1, 1 << 20, Mode::WriteBack, false),
            (2, 6 << 10, Mode::WriteBack, false),
            (2, 6 << 10, Mode::WriteBack, true),
            (2, 6 << 10, Mode::Volatile, false),
            (1, 1 << 20, Mode::WriteThrough, false),
        ] {
            scenes.push(Scene {
                block_size,
                rings,
                past_bytes,
                mode,
                small,
            });
        }
    }
    scenes
}

fn made(seed: u64, scene: Scene) -> (World, Node) {
    let config = WorldConfig {
        faults: FaultPlan::benign(),
        ..WorldConfig::default()
    };
    let world = World::new(seed, config);
    let node = world.node("node");
    let make = scene.make(node.core(0));
    world.block_on(&node, DAY, make).unwrap();
    (world, node)
}

#[test]
fn a_volume_with_checksums_behind_a_journal_conforms() {
    for (seed, scene) in (0..).zip(scenes()) {
        println!("{scene:?}");
        let (world, node) = made(seed, scene);
        let core = node.core(0);
        let run = async move {
            let open = scene.open(&core).await;
            let [volume, _] = open.volumes;
            let shape = volume.shape();
            let plan = Plan {
                whole_bytes: scene.whole_bytes(),
                ..Plan::new(seed)
            };
            let tally = conforms(&core, volume, plan).await;
            tally.assert_covers(&shape);
            open.journal.drain(&core).await;
            let status = open.journal.status(&core).await;
            assert!(status.iter().all(|it| it.pages == 0 && it.stuck.is_empty()));
            open.journal.close(&core).await;
            for checked in &open.checked {
                checked.close(&core).await.unwrap();
            }
            assert_eq!(*open.findings.lock().unwrap(), []);
            let counts = open.checked[0].counts();
            assert!(counts.page_writes > 0, "{counts:?}");
        };
        world.block_on(&node, DAY, run).unwrap();
    }
}

#[test]
fn after_power_cuts_at_any_point_every_block_is_allowed_and_none_is_taken_for_damaged() {
    let (mut cuts, mut doubted) = (0, 0);
    for seed in 0..seeds() {
        for scene in scenes() {
            let (cut, taken) = with_cuts(scene, seed);
            (cuts, doubted) = (cuts + cut, doubted + taken);
        }
    }
    println!("{cuts} lives cut, {doubted} sums taken anew");
    assert!(cuts > 50 && doubted > 50, "{cuts} cut, {doubted} taken");
}

/// Lives of one pool, each cut after another time; how many were cut before their end, and how many sums had to be taken anew.
fn with_cuts(scene: Scene, seed: u64) -> (u32, u64) {
    println!("seed {seed}: {scene:?}");
    let (world, node) = made(seed, scene);
    let models: [Rc<RefCell<Model>>; 2] = [0, 1].map(|_| {
        let model = Model::new(scene.block_size, BlockCount(64)).keeping_whole(scene.whole_bytes());
        Rc::new(RefCell::new(model))
    });
    let mut cuts = 0;
    let taken = Rc::new(Cell::new(0));
    for life in 0..4_u64 {
        let ended = Rc::new(Cell::new(false));
        let (core, told) = (node.core(0), Rc::clone(&ended));
        let (models_here, taken) = (models.clone(), Rc::clone(&taken));
        node.core(0).spawn(Box::pin(async move {
            let open = scene.open(&core).await;
            check(&core, &open, &models_here).await;
            taken.set(taken.get() + open.checked.iter().map(|it| it.counts().taken).sum::<u64>());
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
            told.set(true);
        }));
        world.run_for(Duration::from_millis(5 + 7 * (seed % 5) + 29 * life));
        cuts += u32::from(!ended.get());
        node.crash();
        for model in &models {
            model.borrow_mut().cut();
        }
        node.restart();
    }
    let core = node.core(0);
    let last = async move {
        let open = scene.open(&core).await;
        check(&core, &open, &models).await;
        open.journal.drain(&core).await;
        let status = open.journal.status(&core).await;
        assert!(status.iter().all(|it| it.pages == 0), "{status:?}");
        check(&core, &open, &models).await;
    };
    world.block_on(&node, DAY, last).unwrap();
    (cuts, taken.get())
}

async fn check(core: &CoreHandle, open: &Open, models: &[Rc<RefCell<Model>>; 2]) {
    for (volume, model) in open.volumes.iter().zip(models) {
        let lane = Arc::clone(volume).open(core).await.unwrap();
        verify(&lane, &volume.shape(), model).await;
    }
    assert_eq!(*open.findings.lock().unwrap(), []);
}
