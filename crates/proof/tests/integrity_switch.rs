//! A volume behind a journal that gets checksums and loses them again and again while it is
//! written, against the model disk: power cut at any point. Every block must be one that the model
//! allows, and none may be taken for damaged.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy knows only test functions"
)]

use backends::{FileSpec, Provisioning, create_file, open_file};
use env::CoreHandle;
use env::sim::{FaultPlan, World, WorldConfig};
use layers::integrity::{self, Blank, Finding, Integrity, IntegrityLane, MapSpec, Options};
use proof::plain_pool::{self, JOURNAL};
use proof::seeds::seeds;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use units::{BlockCount, BlockSize, ByteCount};
use volume::{Checked, Fences, Volume, over};
use volume_test::model::{Model, Plan, goes_on, verify};
use write_back::{Journal, Mode, VolumeId, WriteBack};

const DAY: Duration = Duration::from_secs(86_400);
const DATA: &str = "/pool/volume";
const CHECKSUMS: &str = "/pool/volume.checksums";
const NUMBER: [u8; 16] = [4; 16];
const ID: VolumeId = VolumeId(100);

#[derive(Clone, Copy, Debug)]
struct Scene {
    block_size: BlockSize,
    rings: u32,
    /// From so many bytes on writes go around the log.
    past_bytes: usize,
    mode: Mode,
}

/// What outlives a cut.
#[derive(Default)]
struct Stored {
    /// It is stored that blocks are checked.
    checked: Cell<bool>,
    switches: Cell<u64>,
    given_up: Cell<u64>,
    starts_checked: Cell<u64>,
    findings: Arc<Mutex<Vec<Finding>>>,
}

/// What is open.
struct Open {
    bare: Arc<dyn Volume>,
    volume: Arc<WriteBack>,
}

async fn make_map(core: &CoreHandle, bare: &Arc<dyn Volume>) {
    // As the daemon does: whatever is there is not trusted.
    env::durable::remove_file(&*core.files(), Path::new(CHECKSUMS))
        .await
        .unwrap();
    let spec = MapSpec::of(CHECKSUMS.into(), NUMBER, &bare.shape(), Blank::Anything);
    integrity::create(core, &spec).await.unwrap();
}

async fn open_map(core: &CoreHandle, bare: &Arc<dyn Volume>, stored: &Stored) -> Arc<Integrity> {
    let mut options = Options::new(CHECKSUMS.into(), NUMBER);
    options.covered = true;
    let reported = Arc::clone(&stored.findings);
    options.report = Arc::new(move |finding| reported.lock().unwrap().push(finding.clone()));
    Integrity::open(core, Arc::clone(bare), options)
        .await
        .unwrap()
}

impl Scene {
    /// What is kept whole: a block in the log, and a sector of the backing volume.
    fn whole_bytes(self) -> u32 {
        let past = self.past_bytes < 1 << 20 || self.mode == Mode::WriteThrough;
        if past { 512 } else { self.block_size.bytes() }
    }

    async fn make(self, core: CoreHandle) {
        plain_pool::make(&core, self.rings, 16 << 10).await;
        let size = ByteCount(1 << 20);
        create_file(&core, Path::new(DATA), size, Provisioning::Thin)
            .await
            .unwrap();
    }

    async fn open(self, core: &CoreHandle, stored: &Stored) -> Open {
        let journal = Journal::open(core, Path::new(JOURNAL), plain_pool::NUMBER)
            .await
            .unwrap();
        assert_eq!(journal.damaged(), []);
        let spec = FileSpec {
            path: DATA.into(),
            block_size: self.block_size,
            physical_block_exponent: 0,
            provisioning: Provisioning::Thin,
        };
        let fences = Fences::new(1);
        let file = open_file(core, spec, fences.clone()).await.unwrap();
        let bare: Arc<dyn Volume> = file;
        let backing = if stored.checked.get() {
            let checked = open_map(core, &bare, stored).await;
            if checked.is_replaying() {
                let unverified = journal.unverified_blocks(ID);
                checked
                    .mark_unverified(core, unverified.ranges())
                    .await
                    .unwrap();
                checked.replayed();
            }
            stored.starts_checked.set(stored.starts_checked.get() + 1);
            over(Checked, checked)
        } else {
            Arc::clone(&bare)
        };
        let volume = WriteBack::new(journal, ID, backing, fences, self.mode);
        volume.write_around_from(self.past_bytes);
        if stored.checked.get() {
            volume.log_first();
        }
        Open { bare, volume }
    }
}

/// On and off, until the power is cut; now and then in less time than there is, which changes
/// nothing.
async fn switches(core: CoreHandle, open: Rc<Open>, stored: Rc<Stored>, pause: Duration) {
    let mut is_on = stored.checked.get();
    for round in 0_u64.. {
        let rest = if is_on { pause * 20 } else { pause };
        core.sleep_until(core.now().after(rest)).await;
        let time = if round % 4 == 3 {
            Duration::from_micros(20)
        } else {
            Duration::from_secs(60)
        };
        let switched = if is_on {
            switch_off(&core, &open, &stored, time).await
        } else {
            switch_on(&core, &open, &stored, time).await
        };
        is_on ^= switched;
        let counted = if switched {
            &stored.switches
        } else {
            &stored.given_up
        };
        counted.set(counted.get() + 1);
    }
}

async fn switch_off(core: &CoreHandle, open: &Open, stored: &Stored, time: Duration) -> bool {
    stored.checked.set(false);
    let (bare, until) = (Arc::clone(&open.bare), core.now().after(time));
    let off = open.volume.exchange(core, bare, false, until).await;
    if off.is_ok() {
        env::durable::remove_file(&*core.files(), Path::new(CHECKSUMS))
            .await
            .unwrap();
    }
    off.is_ok()
}

async fn switch_on(core: &CoreHandle, open: &Open, stored: &Stored, time: Duration) -> bool {
    make_map(core, &open.bare).await;
    let checked = open_map(core, &open.bare, stored).await;
    let lane: Rc<IntegrityLane> = checked.lane(core).await.unwrap();
    let (on, until) = (over(Checked, checked), core.now().after(time));
    let on = open.volume.exchange(core, on, true, until).await;
    stored.checked.set(on.is_ok());
    if on.is_ok() {
        lane.cover().await.unwrap();
    }
    on.is_ok()
}

async fn check(core: &CoreHandle, open: &Open, model: &Rc<RefCell<Model>>, stored: &Stored) {
    let volume: Arc<dyn Volume> = Arc::<WriteBack>::clone(&open.volume);
    let lane = Arc::clone(&volume).open(core).await.unwrap();
    verify(&lane, &volume.shape(), model).await;
    assert_eq!(*stored.findings.lock().unwrap(), []);
}

/// Lives of one volume, each ended by a power cut.
fn lives(scene: Scene, seed: u64, stored: &Rc<Stored>) {
    println!("seed {seed}: {scene:?}");
    let config = WorldConfig {
        faults: FaultPlan::benign(),
        ..WorldConfig::default()
    };
    let world = World::new(seed, config);
    let node = world.node("node");
    let make = scene.make(node.core(0));
    world.block_on(&node, DAY, make).unwrap();
    stored.checked.set(false);
    let model = Model::new(scene.block_size, BlockCount(64)).keeping_whole(scene.whole_bytes());
    let model = Rc::new(RefCell::new(model));
    for life in 0..5_u64 {
        let (core, kept, judge) = (node.core(0), Rc::clone(stored), Rc::clone(&model));
        node.core(0).spawn(Box::pin(async move {
            let open = Rc::new(scene.open(&core, &kept).await);
            check(&core, &open, &judge, &kept).await;
            let pause = Duration::from_micros(200 + 900 * (seed % 4));
            let switching = switches(Rc::clone(&core), Rc::clone(&open), kept, pause);
            core.spawn(Box::pin(switching));
            let plan = Plan {
                steps: 1_000_000,
                ..Plan::new(seed * 5 + life)
            };
            let volume = Arc::<WriteBack>::clone(&open.volume);
            goes_on(&core, volume, plan, judge).await;
        }));
        world.run_for(Duration::from_millis(9 + 7 * (seed % 5) + 23 * life));
        node.crash();
        model.borrow_mut().cut();
        node.restart();
    }
    let (core, kept) = (node.core(0), Rc::clone(stored));
    let last = async move {
        let open = scene.open(&core, &kept).await;
        check(&core, &open, &model, &kept).await;
        open.volume.destage(&core).await;
        check(&core, &open, &model, &kept).await;
    };
    world.block_on(&node, DAY, last).unwrap();
}

#[test]
fn checksums_come_and_go_while_a_volume_is_written_and_power_cuts_leave_no_wrong_block() {
    let stored = Rc::new(Stored::default());
    for seed in seeds(6) {
        for block_size in [BlockSize::B512, BlockSize::B4096] {
            for (rings, past_bytes, mode) in [
                (1, 1 << 20, Mode::WriteBack),
                (2, 6 << 10, Mode::WriteBack),
                (2, 6 << 10, Mode::Volatile),
                (1, 1 << 20, Mode::WriteThrough),
            ] {
                let scene = Scene {
                    block_size,
                    rings,
                    past_bytes,
                    mode,
                };
                lives(scene, seed, &stored);
            }
        }
    }
    let (switches, starts) = (stored.switches.get(), stored.starts_checked.get());
    let given_up = stored.given_up.get();
    let reported =
        format!("{switches} switches, {given_up} given up, {starts} starts with checksums");
    println!("{reported}");
    assert!(switches > 150 && given_up > 0 && starts > 15, "{reported}");
}
