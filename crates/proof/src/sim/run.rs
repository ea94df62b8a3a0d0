//! One run of one scene from one seed.

use super::client::{Client, audit, write_all};
use super::lab::LIMIT;
use super::oracle::Oracle;
use super::report::{Failure, Marks, Report, caught};
use super::scene::{Scene, Setup};
use env::sim::{Fault, FaultPlan, Rng, World, WorldConfig};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// How soon after room was made on a full disk everything can be written.
const ROOM_IS_SEEN_WITHIN: Duration = Duration::from_secs(30);

struct Run<'a> {
    scene: &'a dyn Scene,
    world: World,
    rng: Rng,
    plan: FaultPlan,
    setup: Setup,
    oracle: Rc<Oracle>,
    marks: Marks,
    /// Clients of this life that are still at work.
    working: Rc<Cell<u32>>,
}

/// Runs `scene` from `seed`.
///
/// # Errors
/// What it found.
pub fn run(scene: &dyn Scene, seed: u64, trace_lines: usize) -> Result<Report, Box<Failure>> {
    caught(scene.name(), seed, || {
        run_to_the_end(scene, seed, trace_lines)
    })
}

fn run_to_the_end(
    scene: &dyn Scene,
    seed: u64,
    trace_lines: usize,
) -> Result<Report, Box<Failure>> {
    let mut rng = Rng::new(seed);
    let mut setup = scene.setup(seed, &mut rng);
    let mut plan = FaultPlan::any(&mut rng).with_stalls_of(seed);
    if scene.fills_up() && !seed.is_multiple_of(3) {
        // Nothing else goes wrong: all is well as soon as there is room.
        plan = FaultPlan::none();
    }
    setup.strict = [Fault::NetReset, Fault::NetHalfOpen]
        .iter()
        .all(|fault| plan.per_million(*fault) == 0);
    let config = WorldConfig {
        faults: FaultPlan::none(),
        sector_bytes: setup.block_size.bytes().into(),
        direct_alignment: setup.block_size.bytes(),
        trace_lines,
        ..WorldConfig::default()
    };
    let mut run = Run {
        scene,
        world: World::new(seed, config),
        rng,
        plan,
        setup,
        oracle: Rc::new(Oracle::new(setup.block_size, trace_lines > 0)),
        marks: Marks::default(),
        working: Rc::default(),
    };
    if scene.asks_in_parts() {
        run.oracle.asked_in_parts();
    }
    scene.prepare(&run.world, setup);
    let ended = run.lives();
    let mut what = run.oracle.violations();
    what.extend(scene.complaints());
    what.extend(ended.err());
    if what.is_empty() {
        return Ok(Report {
            hits: run.world.hits(),
            counts: run.oracle.counts(),
            marks: run.marks,
            hash: run.world.hash(),
            steps: run.world.steps(),
        });
    }
    what.extend(run.scene.made_of());
    let trace = run.world.trace() + &run.oracle.log() + "\n";
    let scene = scene.name();
    Err(Box::new(Failure {
        seed,
        scene,
        what,
        trace,
    }))
}

impl Run<'_> {
    fn lives(&mut self) -> Result<(), String> {
        let lives = self.rng.between(1, 4);
        let mut known = self.audited()?;
        for _ in 0..lives {
            self.fill_up();
            self.life(&known)?;
            self.has_room_again("room_while_open")?;
            self.end_of_life()?;
            if !self.oracle.violations().is_empty() {
                return Ok(());
            }
            known = self.audited()?;
            self.has_room_again("room_after_a_start_without")?;
        }
        self.oracle.close_history();
        Ok(())
    }

    /// Starts the victim with no faults, and reads everything.
    fn audited(&mut self) -> Result<BTreeMap<u64, volume_test::stamp::Value>, String> {
        self.world.set_faults(FaultPlan::none());
        let victim = self.scene.victim(&self.world);
        let clients = self.scene.clients(&self.world);
        victim.restart();
        let limit = LIMIT;
        let start = self.scene.start(&victim, self.setup);
        let started = self.world.block_on(&victim, limit, start);
        started.map_err(|error| format!("start: {error}"))??;
        let core = clients.core(0);
        let open = self.scene.open(&core, self.setup, u32::MAX);
        let opened = self.world.block_on(&clients, limit, open);
        let opened = opened.map_err(|error| format!("open: {error}"))??;
        let reading = audit(core, opened, Rc::clone(&self.oracle));
        let values = self.world.block_on(&clients, limit, reading);
        let values = values.map_err(|error| format!("audit: {error}"))??;
        self.oracle.open_history(values.clone());
        Ok(values)
    }

    /// Lets clients work among faults for a while.
    fn life(&mut self, known: &BTreeMap<u64, volume_test::stamp::Value>) -> Result<(), String> {
        let clients = self.scene.clients(&self.world);
        let stop = Rc::new(Cell::new(false));
        if self.scene.syncs_by_itself() {
            let failed = self.world.hits().of(Fault::FileSyncError);
            self.oracle.syncs_by_itself(failed);
        }
        self.working = Rc::default();
        let working = Rc::clone(&self.working);
        for number in 0..u32::try_from(self.rng.between(1, 4)).expect("at most 4") {
            let core = clients.core(u16::try_from(self.rng.below(2)).expect("below 2"));
            let open = self.scene.open(&core, self.setup, number);
            let opened = self.world.block_on(&clients, LIMIT, open);
            let opened = opened.map_err(|error| format!("open: {error}"))??;
            working.set(working.get() + 1);
            let client = Client {
                number,
                core: Rc::clone(&core),
                opened,
                commands: 150,
                oracle: Rc::clone(&self.oracle),
                rng: self.rng.fork(),
                stop: Rc::clone(&stop),
                working: Rc::clone(&working),
                believes: known.clone(),
                unavailable_is_dead: false,
            };
            core.spawn(Box::pin(client.work()));
        }
        self.world.set_faults(self.plan.clone());
        // Most lives are short; in some, timers of seconds matter.
        let most = if self.rng.below(8) == 0 {
            20_000_000
        } else {
            60_000
        };
        let span = Duration::from_micros(self.rng.between(100, most));
        self.world.run_for(span);
        if self.scene.fills_up() || self.rng.below(4) == 0 {
            // A quiet end: everything that was asked is answered or given up.
            stop.set(true);
            let limit = Duration::from_secs(3600);
            let quiet = self.world.run_until(limit, || working.get() == 0);
            quiet.map_err(|error| format!("clients do not come to an end: {error}"))?;
        }
        // Clients beyond this point see the node die, where they are not on it.
        stop.set(true);
        Ok(())
    }

    /// Leaves little or no room on the disk, where the scene is about that.
    fn fill_up(&mut self) {
        if !self.scene.fills_up() {
            return;
        }
        let disk = self.scene.victim(&self.world).disk();
        let room =
            [0, 4096, 16 << 10, 64 << 10][usize::try_from(self.rng.below(4)).expect("below 4")];
        disk.set_capacity(disk.used_bytes() + self.rng.below(room + 1));
    }

    /// Room is made, or not yet. Where nothing else has gone wrong everything can be written then,
    /// without a restart.
    fn has_room_again(&mut self, when: &'static str) -> Result<(), String> {
        if !self.scene.fills_up() || self.rng.below(2) == 0 {
            return Ok(());
        }
        let clients = self.scene.clients(&self.world);
        self.world.set_faults(FaultPlan::none());
        let disk = self.scene.victim(&self.world).disk();
        if disk.capacity() < u64::MAX {
            self.marks.count(when);
        }
        disk.set_capacity(u64::MAX);
        if self.plan != FaultPlan::none() {
            return Ok(());
        }
        let core = clients.core(0);
        let open = self.scene.open(&core, self.setup, u32::MAX);
        let opened = self.world.block_on(&clients, LIMIT, open);
        let opened = opened.map_err(|error| format!("open: {error}"))??;
        let oracle = Rc::clone(&self.oracle);
        let writing = write_all(core, opened, oracle, ROOM_IS_SEEN_WITHIN);
        let written = self.world.block_on(&clients, LIMIT, writing);
        written.map_err(|error| format!("room was made: {error}"))??;
        Ok(())
    }

    fn end_of_life(&mut self) -> Result<(), String> {
        let victim = self.scene.victim(&self.world);
        let quiet = self.working.get() == 0;
        let closing = quiet.then(|| self.scene.close(&victim)).flatten();
        if let Some(closing) = closing
            && self.rng.below(2) == 0
        {
            self.world.set_faults(FaultPlan::none());
            victim.disk().release();
            let closed = self.world.block_on(&victim, LIMIT, closing);
            closed.map_err(|error| format!("close: {error}"))??;
        }
        let failed = self.world.hits().of(Fault::FileSyncError);
        if self.scene.syncs_by_itself() {
            self.oracle.own_syncs_failed(failed);
        } else {
            self.oracle.syncs_failed(failed);
        }
        if self.rng.below(2) == 0 {
            victim.crash();
            self.oracle.life_ended(true);
        } else {
            victim.kill();
            self.oracle.life_ended(false);
        }
        // What the dead left on its way is over before the next life.
        self.world.run_for(Duration::from_millis(1));
        Ok(())
    }
}

/// The faults that a scene with hosts must have met as well.
pub const NET_FAULTS: &[Fault] = &[
    Fault::NetShortSend,
    Fault::NetShortReceive,
    Fault::NetSplit,
    Fault::NetSlow,
    Fault::NetReset,
    Fault::NetHalfOpen,
    Fault::NetRefused,
];

/// The faults that a scene on one node's files must have met over all its seeds.
pub const FILE_FAULTS: &[Fault] = &[
    Fault::FileSlow,
    Fault::FileHung,
    Fault::FileHungForEver,
    Fault::FileReordered,
    Fault::FileReadError,
    Fault::FileWriteError,
    Fault::FileSyncError,
    Fault::FileNoSpace,
    Fault::NodePowerCut,
    Fault::NodeKilled,
    Fault::CutKept,
    Fault::CutDropped,
    Fault::CutTorn,
    Fault::CutReplaced,
    Fault::CoreStalled,
];
