//! A story of resets: one host works, another resets the unit again and again, on cores that stall,
//! so that a command often ends in the moment in which it is aborted.
//!
//! **Oracle.** Besides the history: every command is answered, or has ended by its own host's
//! function. Hosts check (`initiator/driver.rs`): a command that ABORT TASK does not find was
//! answered before.

use super::lab::Lab;
use super::order::{Plain, disturb};
use super::story::{Stage, Story};
use super::worker::{Shift, Worker};
use env::sim::{Fault, FaultPlan};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

const UNIT: &str = "reset";
const BLOCKS: u64 = 16;

/// The story.
#[derive(Default)]
pub struct Resets;

impl Story for Resets {
    fn name(&self) -> &'static str {
        "resets"
    }

    fn classes(&self) -> &'static [&'static str] {
        &["deep", "ended", "quiet", "logical_unit_reset"]
    }

    fn faults(&self) -> Vec<Fault> {
        vec![Fault::CoreStalled, Fault::FileSlow, Fault::NetSplit]
    }

    fn play(&self, stage: &mut Stage) -> Result<(), String> {
        // No connection is lost and no disk hangs: nothing but a lost answer takes long.
        let often = *stage.rng.pick(&[10_000, 100_000, 300_000]);
        stage.plan = FaultPlan::benign().with(Fault::CoreStalled, often);
        let lab = Lab::new(stage, 2, &[(UNIT, BLOCKS)]);
        lab.lives(stage, |stage| life(stage, &lab))
    }
}

fn life(stage: &mut Stage, lab: &Lab) -> Result<(), String> {
    let shift = Shift::default();
    let oracle = &lab.units[0].oracle;
    let ledger = Plain::new(oracle, &stage.marks);
    let works = lab.log_in(stage, 0)?;
    let path = lab.path(stage, &works, 0, 0)?;
    for _ in 0..8 {
        Worker {
            number: 0,
            core: lab.hosts[0].core(0),
            host: path.clone(),
            oracle: Rc::clone(oracle),
            ledger: Rc::<Plain>::clone(&ledger),
            rng: stage.rng.fork(),
            blocks: Rc::new(Cell::new(BLOCKS)),
            len_max: 2,
            queues: false,
            flushes: true,
            commands: 60,
            shift: shift.clone(),
        }
        .start();
    }
    let (resets, core) = (lab.log_in(stage, 1)?, lab.hosts[1].core(0));
    let disturbing = disturb(
        Rc::clone(&core),
        resets,
        stage.rng.fork(),
        shift.clone(),
        Rc::clone(&stage.marks),
        Rc::clone(&stage.complaints),
    );
    core.spawn(Box::pin(disturbing));
    stage.world.set_faults(stage.plan.clone());
    let span = Duration::from_micros(stage.rng.between(1_000, 50_000));
    stage.world.run_for(span);
    shift.over.set(true);
    stage.quiet(&shift.working)
}
