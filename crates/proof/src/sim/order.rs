//! A story of queues: hosts with several commands at once, ORDERED and HEAD OF QUEUE among them,
//! and task management that ends them.
//!
//! **Oracle.** The history, which says which place each command has in its session's queue: an
//! ORDERED one takes effect after all older and before all newer ones of its session.

use super::initiator::{Job, Outcome, Session};
use super::lab::{Lab, lun};
use super::oracle::{End, Oracle, Ticket};
use super::report::Marks;
use super::run::{FILE_FAULTS, NET_FAULTS};
use super::story::{Stage, Story};
use super::worker::{Ledger, Shift, Worker};
use env::CoreHandle;
use env::sim::{Fault, Rng};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

const UNIT: &str = "queue";
/// Few, because all of them are checked together.
const BLOCKS: u64 = 16;

/// The story.
#[derive(Default)]
pub struct Order;

/// Reports to the oracle at once.
pub(super) struct Plain {
    oracle: Rc<Oracle>,
    marks: Rc<RefCell<Marks>>,
    open: RefCell<BTreeMap<u64, Ticket>>,
    next: Cell<u64>,
}

impl Plain {
    pub(super) fn new(oracle: &Rc<Oracle>, marks: &Rc<RefCell<Marks>>) -> Rc<Self> {
        Rc::new(Self {
            oracle: Rc::clone(oracle),
            marks: Rc::clone(marks),
            open: RefCell::default(),
            next: Cell::new(0),
        })
    }
}

impl Ledger for Plain {
    fn begun(&self, _: u32, _: bool, ticket: Ticket) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        self.open.borrow_mut().insert(number, ticket);
        if self.open.borrow().len() > 3 {
            self.marks.borrow_mut().count("deep");
        }
        number
    }

    fn ended(&self, number: u64, outcome: Option<&Outcome>, end: &End) {
        let class = match outcome {
            Some(Outcome::Lost) => "lost",
            Some(Outcome::Aborted) => "aborted",
            Some(Outcome::Ended(_) | Outcome::Function(_)) | None => "ended",
        };
        self.marks.borrow_mut().count(class);
        if let Some(ticket) = self.open.borrow_mut().remove(&number) {
            self.oracle.end(&ticket, end);
        }
    }
}

/// The functions that a host may ask for, and what they are called (RFC 7143 11.5.1 "Function").
const FUNCTIONS: [(u8, &str); 5] = [
    (2, "abort_task_set"),
    (4, "clear_task_set"),
    (5, "logical_unit_reset"),
    (6, "target_warm_reset"),
    (7, "target_cold_reset"),
];

/// Asks for task management functions now and then.
pub(super) async fn disturb(
    core: CoreHandle,
    session: Session,
    mut rng: Rng,
    shift: Shift,
    marks: Rc<RefCell<Marks>>,
    complaints: super::initiator::Complaints,
) {
    while !shift.over.get() {
        let pause = Duration::from_micros(rng.between(100, 10_000));
        core.sleep_until(core.now().after(pause)).await;
        let (function, class) = *rng.pick(&FUNCTIONS);
        match session
            .send(Job::Function {
                function,
                lun: lun(0),
            })
            .await
        {
            Outcome::Function(0) => marks.borrow_mut().count(class),
            Outcome::Function(other) => {
                let what = format!("{class} answered {other}");
                complaints.borrow_mut().push(what);
            }
            Outcome::Ended(_) | Outcome::Aborted | Outcome::Lost => {}
        }
    }
}

impl Story for Order {
    fn name(&self) -> &'static str {
        "order"
    }

    fn classes(&self) -> &'static [&'static str] {
        &[
            "moved",
            "deep",
            "ended",
            "aborted",
            "lost",
            "quiet",
            "abort_task_set",
            "clear_task_set",
            "logical_unit_reset",
            "target_warm_reset",
            "target_cold_reset",
        ]
    }

    fn faults(&self) -> Vec<Fault> {
        FILE_FAULTS.iter().chain(NET_FAULTS).copied().collect()
    }

    fn play(&self, stage: &mut Stage) -> Result<(), String> {
        let lab = Lab::new(stage, 2, &[(UNIT, BLOCKS)]);
        let disturbed = stage.rng.below(3) == 0;
        lab.lives(stage, |stage| life(stage, &lab, disturbed))
    }
}

fn life(stage: &mut Stage, lab: &Lab, disturbed: bool) -> Result<(), String> {
    let shift = Shift::default();
    let oracle = &lab.units[0].oracle;
    let ledger = Plain::new(oracle, &stage.marks);
    for host in 0..2 {
        let session = lab.log_in(stage, host)?;
        let core = lab.hosts[host as usize].core(0);
        let path = lab.path(stage, &session, host, 0)?;
        for _ in 0..stage.rng.between(1, 4) {
            Worker {
                number: host,
                core: Rc::clone(&core),
                host: path.clone(),
                oracle: Rc::clone(oracle),
                ledger: Rc::<Plain>::clone(&ledger),
                rng: stage.rng.fork(),
                blocks: Rc::new(Cell::new(BLOCKS)),
                len_max: 2,
                queues: true,
                flushes: true,
                commands: 20,
                shift: shift.clone(),
            }
            .start();
        }
        if disturbed && host == 1 {
            let (marks, complaints) = (Rc::clone(&stage.marks), Rc::clone(&stage.complaints));
            let disturbing = disturb(
                Rc::clone(&core),
                session,
                stage.rng.fork(),
                shift.clone(),
                marks,
                complaints,
            );
            core.spawn(Box::pin(disturbing));
        }
    }
    stage.world.set_faults(stage.plan.clone());
    let most = match stage.rng.below(6) {
        0 => 20_000_000,
        _ => 30_000,
    };
    let span = Duration::from_micros(stage.rng.between(100, most));
    stage.world.run_for(span);
    if stage.rng.below(3) == 0 {
        shift.over.set(true);
        stage.quiet(&shift.working)?;
    }
    Ok(())
}
