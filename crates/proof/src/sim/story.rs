//! Stories: scenes that need more than one lane and one oracle, and say by themselves how they go.
//!
//! A story has one world from one seed as a scene has, and its own hosts, oracles and classes of
//! events; a class that no seed met fails the test, as a fault does.

use super::initiator::Complaints;
use super::oracle::{Counts, Oracle};
use super::report::{Failure, Marks, Report, caught};
use env::sim::{Fault, FaultPlan, Rng, World, WorldConfig};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// What a story is played in: the world, and what it found so far.
pub struct Stage {
    /// What all of it is drawn from.
    pub seed: u64,
    /// The world, without faults until the story sets them.
    pub world: World,
    /// The story's own draws.
    pub rng: Rng,
    /// The faults that the seed chose.
    pub plan: FaultPlan,
    /// What went wrong.
    pub complaints: Complaints,
    /// What took place.
    pub marks: Rc<RefCell<Marks>>,
    oracles: Vec<Rc<Oracle>>,
    trace: bool,
}

impl Stage {
    /// An oracle whose findings count.
    pub(super) fn oracle(&mut self, block_size: units::BlockSize) -> Rc<Oracle> {
        let oracle = Rc::new(Oracle::new(block_size, self.trace));
        self.oracles.push(Rc::clone(&oracle));
        oracle
    }

    /// One that asks the model disk alone.
    pub(super) fn oracle_without_history(&mut self, block_size: units::BlockSize) -> Rc<Oracle> {
        let oracle = Rc::new(Oracle::without_history(block_size));
        self.oracles.push(Rc::clone(&oracle));
        oracle
    }

    /// Nothing on the network is ever lost for good.
    pub(super) fn is_strict(&self) -> bool {
        let loses = [Fault::NetReset, Fault::NetHalfOpen];
        loses.iter().all(|fault| self.plan.per_million(*fault) == 0)
    }

    /// Something was found already.
    pub(super) fn is_lost(&self) -> bool {
        let of_oracles = self.oracles.iter().any(|it| !it.violations().is_empty());
        of_oracles || !self.complaints.borrow().is_empty()
    }

    /// Waits until nobody works any more: everything that was asked is answered or given up.
    pub(super) fn quiet(&self, working: &Cell<u32>) -> Result<(), String> {
        let limit = Duration::from_secs(3600);
        let quiet = self.world.run_until(limit, || working.get() == 0);
        quiet.map_err(|error| format!("the work does not come to an end: {error}"))?;
        self.marks.borrow_mut().count("quiet");
        Ok(())
    }

    /// Something went wrong.
    pub(super) fn complain(&self, what: String) {
        self.complaints.borrow_mut().push(what);
    }
}

/// A scene that plays itself.
pub trait Story {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// Classes of events that it must have met over all its seeds.
    fn classes(&self) -> &'static [&'static str];

    /// Faults that it must have met over all its seeds.
    fn faults(&self) -> Vec<Fault>;

    /// Bytes that the disks of the world keep whole.
    fn sector_bytes(&self, seed: u64) -> u64 {
        let _ = seed;
        512
    }

    /// Plays it. `Err` where it did not come to its end.
    ///
    /// # Errors
    /// What kept it from its end.
    fn play(&self, stage: &mut Stage) -> Result<(), String>;
}

/// Plays `story` from `seed`.
///
/// # Errors
/// What it found.
pub fn play(story: &dyn Story, seed: u64, trace_lines: usize) -> Result<Report, Box<Failure>> {
    caught(story.name(), seed, || {
        play_to_the_end(story, seed, trace_lines)
    })
}

fn play_to_the_end(
    story: &dyn Story,
    seed: u64,
    trace_lines: usize,
) -> Result<Report, Box<Failure>> {
    let mut rng = Rng::new(seed);
    let plan = FaultPlan::any(&mut rng).with_stalls_of(seed);
    let config = WorldConfig {
        faults: FaultPlan::none(),
        sector_bytes: story.sector_bytes(seed),
        trace_lines,
        ..WorldConfig::default()
    };
    let mut stage = Stage {
        seed,
        world: World::new(seed, config),
        rng,
        plan,
        complaints: Complaints::default(),
        marks: Rc::default(),
        oracles: Vec::new(),
        trace: trace_lines > 0,
    };
    let ended = story.play(&mut stage);
    let mut what: Vec<String> = stage
        .oracles
        .iter()
        .flat_map(|it| it.violations())
        .collect();
    what.append(&mut stage.complaints.borrow_mut());
    what.extend(ended.err());
    let mut counts = Counts::default();
    for oracle in &stage.oracles {
        counts += oracle.counts();
    }
    if what.is_empty() {
        return Ok(Report {
            hits: stage.world.hits(),
            counts,
            marks: stage.marks.borrow().clone(),
            hash: stage.world.hash(),
            steps: stage.world.steps(),
        });
    }
    let logs: Vec<String> = stage.oracles.iter().map(|it| it.log()).collect();
    let trace = stage.world.trace() + &logs.join("\n") + "\n";
    let scene = story.name();
    Err(Box::new(Failure {
        seed,
        scene,
        what,
        trace,
    }))
}
