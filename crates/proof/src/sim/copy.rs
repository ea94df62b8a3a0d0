//! A story of two units: one host copies between them (EXTENDED COPY), others read and write both;
//! in some lives the disk of one unit hangs, and the other must not notice.
//!
//! **Oracle.** Each unit has its own; a copy is a write of what the source is known to hold. While
//! the one disk hangs and nothing else is wrong, a command of the other unit, a login, and a
//! LOGICAL UNIT RESET of the hanging one are answered within bounds.

use super::client::within;
use super::disk::{file, uses_device};
use super::initiator::{Host, Job, Outcome, Session, Wire};
use super::lab::{Lab, lun};
use super::oracle::{End, Oracle, Ticket};
use super::order::Plain;
use super::report::Marks;
use super::run::{FILE_FAULTS, NET_FAULTS};
use super::story::{Stage, Story};
use super::worker::{Ledger, Shift, Worker};
use env::CoreHandle;
use env::sim::{Fault, FaultPlan, Rng};
use iscsi::bhs::Attribute;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use units::{BlockCount, Buf, Lba, LbaRange, Now};
use volume::{Durability, IoError, Op};
use volume_test::stamp::Value;

const UNITS: [(&str, u64); 2] = [("left", 48), ("right", 48)];
/// The copying host has the blocks from here on of the source for itself.
const OWN: u64 = 24;

/// A command of the unit whose disk is well, or a login, while the other disk hangs.
const PROMPT: Duration = Duration::from_millis(250);
/// A task management function (2 s), and its way.
const FUNCTION_TIME: Duration = Duration::from_millis(2200);

/// The story.
#[derive(Default)]
pub struct ExtendedCopy;

/// A ledger that reads the clock.
struct Timed {
    plain: Rc<Plain>,
    core: CoreHandle,
    hangs: Rc<Cell<bool>>,
    complaints: super::initiator::Complaints,
    marks: Rc<RefCell<Marks>>,
    begun: RefCell<BTreeMap<u64, (Now, bool)>>,
}

impl Ledger for Timed {
    fn begun(&self, host: u32, writes: bool, ticket: Ticket) -> u64 {
        let number = self.plain.begun(host, writes, ticket);
        let now = (self.core.now(), self.hangs.get());
        self.begun.borrow_mut().insert(number, now);
        number
    }

    fn ended(&self, number: u64, outcome: Option<&Outcome>, end: &End) {
        let begun = self.begun.borrow_mut().remove(&number);
        if let Some((since, true)) = begun {
            let took = self.core.now().since(since);
            self.marks.borrow_mut().count("next_to_a_hang");
            if took > PROMPT {
                let what = format!("a command beside a disk that hangs took {took:?}");
                self.complaints.borrow_mut().push(what);
            }
        }
        self.plain.ended(number, outcome, end);
    }
}

/// EXTENDED COPY (LID1) from one unit to another, which may be itself, in segments: from where, to
/// where, how many blocks.
pub(super) fn command(
    naa: [[u8; 16]; 2],
    block_bytes: u32,
    segments: &[(u64, u64, u16)],
) -> ([u8; 16], Buf) {
    let mut list = vec![0; 16];
    list[3] = 64;
    list[8..12].copy_from_slice(
        &u32::try_from(28 * segments.len())
            .expect("few")
            .to_be_bytes(),
    );
    for naa in naa {
        list.extend([0xE4, 0, 0, 0, 1, 3, 0, 16]);
        list.extend(naa);
        list.extend([0; 4]);
        list.extend(block_bytes.to_be_bytes());
    }
    for (from, to, blocks) in segments {
        list.extend([2, 0, 0, 24, 0, 0, 0, 1, 0, 0]);
        list.extend(blocks.to_be_bytes());
        list.extend(from.to_be_bytes());
        list.extend(to.to_be_bytes());
    }
    let mut cdb = [0; 16];
    cdb[0] = 0x83;
    let bytes = u32::try_from(list.len()).expect("a short list");
    cdb[10..14].copy_from_slice(&bytes.to_be_bytes());
    (cdb, Buf::copy_of(&list))
}

/// EXTENDED COPY (SPC-4 6.4) of one segment between two units that are named by their NAA
/// identifiers.
fn extended_copy(naa: [[u8; 16]; 2], through: u8, from: u64, to: u64, blocks: u16) -> Wire {
    let (cdb, data_out) = command(naa, 512, &[(from, to, blocks)]);
    Wire {
        lun: lun(through),
        cdb,
        attribute: Attribute::Simple,
        data_out,
        data_in: 0,
    }
}

/// The host that copies.
struct Copier {
    core: CoreHandle,
    session: Session,
    paths: [Host; 2],
    oracles: [Rc<Oracle>; 2],
    naa: [[u8; 16]; 2],
    marks: Rc<RefCell<Marks>>,
    rng: Rng,
    shift: Shift,
}

fn end_of(outcome: &Outcome) -> End {
    match outcome {
        outcome if outcome.is_good() => End::Done(None),
        Outcome::Lost | Outcome::Aborted | Outcome::Ended(_) | Outcome::Function(_) => {
            End::Error(IoError::Aborted)
        }
    }
}

impl Copier {
    async fn insist(&self, wire: Wire) -> Option<Outcome> {
        let span = Duration::from_secs(90);
        within(&self.core, span, async {
            loop {
                let outcome = self.session.send(Job::Command(wire.clone())).await;
                if !outcome.is_worth_again() {
                    return outcome;
                }
            }
        })
        .await
    }

    async fn work(mut self) {
        while !self.shift.over.get() {
            let source = usize::from(self.rng.below(2) == 0);
            self.copy(source).await;
            let pause = Duration::from_micros(self.rng.below(2000));
            self.core.sleep_until(self.core.now().after(pause)).await;
        }
        self.shift.working.set(self.shift.working.get() - 1);
    }

    /// Writes blocks that nobody else writes, and copies them to where everybody does.
    async fn copy(&mut self, source: usize) {
        let blocks = self.rng.between(1, 4);
        let from = OWN + self.rng.below(UNITS[source].1 - OWN - blocks + 1);
        let to = self.rng.below(OWN - blocks + 1);
        let range = |start| LbaRange::new(Lba(start), BlockCount(blocks)).expect("inside the disk");
        let oracle = &self.oracles[source];
        let values = oracle.fresh(9, range(from));
        let ticket = oracle.write(9, range(from), &values, Durability::Cached);
        let op = Op::Write {
            range: range(from),
            data: Value::payload(&values, oracle.block_size()),
            durability: Durability::Cached,
        };
        let wire = self.paths[source].wire(&op, Attribute::Simple);
        let Some(outcome) = self.insist(wire).await else {
            oracle.end(&ticket, &End::Timeout);
            return;
        };
        oracle.end(&ticket, &end_of(&outcome));
        if !outcome.is_good() {
            return;
        }
        let other = 1 - source;
        let oracle = &self.oracles[other];
        let ticket = oracle.write(9, range(to), &values, Durability::Cached);
        let naa = [self.naa[source], self.naa[other]];
        let through = u8::from(self.rng.below(2) == 0);
        let count = u16::try_from(blocks).expect("a few");
        let wire = extended_copy(naa, through, from, to, count);
        let Some(outcome) = self.insist(wire).await else {
            oracle.end(&ticket, &End::Timeout);
            return;
        };
        let class = if outcome.is_good() {
            "copied"
        } else {
            "not_copied"
        };
        self.marks.borrow_mut().count(class);
        oracle.note(|| {
            let how = match &outcome {
                Outcome::Ended(_) => format!("{:?} {:?}", outcome.status(), outcome.sense()),
                Outcome::Lost | Outcome::Aborted | Outcome::Function(_) => format!("{outcome:?}"),
            };
            let now = self.core.now();
            format!("copy of {values:?} to {to} through {through} at {now:?}: {how}")
        });
        oracle.end(&ticket, &end_of(&outcome));
    }
}

impl Story for ExtendedCopy {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn classes(&self) -> &'static [&'static str] {
        &[
            "copied",
            "not_copied",
            "hang",
            "next_to_a_hang",
            "login_next_to_a_hang",
            "reset_of_a_hang",
            "quiet",
        ]
    }

    fn faults(&self) -> Vec<Fault> {
        let all = FILE_FAULTS.iter().chain(NET_FAULTS).copied();
        all.filter(|fault| *fault != Fault::FileSyncError).collect()
    }

    fn play(&self, stage: &mut Stage) -> Result<(), String> {
        let lab = Lab::new(stage, 3, &UNITS);
        for _ in 0..stage.rng.between(1, 2) {
            lab.start(stage)?;
            let hangs = stage.rng.below(2) == 0;
            life(stage, &lab, hangs)?;
            lab.end_of_life(stage);
            if stage.is_lost() {
                return Ok(());
            }
        }
        lab.start(stage)?;
        lab.units
            .iter()
            .for_each(|unit| unit.oracle.close_history());
        Ok(())
    }
}

fn life(stage: &mut Stage, lab: &Lab, hangs: bool) -> Result<(), String> {
    let shift = Shift::default();
    let is_hanging = Rc::new(Cell::new(false));
    let sick = usize::from(stage.rng.below(2) == 0);
    let mut sessions = Vec::new();
    for host in 0..2 {
        let session = lab.log_in(stage, host)?;
        let core = lab.hosts[host as usize].core(0);
        for (place, unit) in lab.units.iter().enumerate() {
            let number = u8::try_from(place).expect("two units");
            let plain = Plain::new(&unit.oracle, &stage.marks);
            let timed = Rc::new(Timed {
                plain: Rc::clone(&plain),
                core: Rc::clone(&core),
                hangs: Rc::clone(&is_hanging),
                complaints: Rc::clone(&stage.complaints),
                marks: Rc::clone(&stage.marks),
                begun: RefCell::default(),
            });
            let ledger: Rc<dyn Ledger> = if place == sick { plain } else { timed };
            Worker {
                number: host,
                core: Rc::clone(&core),
                host: lab.path(stage, &session, host, number)?,
                oracle: Rc::clone(&unit.oracle),
                ledger,
                rng: stage.rng.fork(),
                blocks: Rc::new(Cell::new(OWN)),
                len_max: 4,
                queues: false,
                flushes: true,
                commands: 200,
                shift: shift.clone(),
            }
            .start();
        }
        sessions.push(session);
    }
    // A copy holds blocks of both units, so none runs while one of them must not notice the other.
    if hangs {
        let run = stage.rng.between(1, 20);
        stage.world.run_for(Duration::from_millis(run));
        hang(stage, lab, sick, &sessions, &is_hanging)?;
    } else {
        start_to_copy(stage, lab, &sessions[0], &shift)?;
        // A failed sync of the source takes back what a copy was to take from there, and nobody
        // knows what it took.
        let plan = (stage.plan.clone())
            .without(Fault::FileSyncError)
            .without(Fault::FileSyncNoSpace);
        stage.world.set_faults(plan);
        let most = match stage.rng.below(6) {
            0 => 30_000_000,
            _ => 60_000,
        };
        let span = Duration::from_micros(stage.rng.between(100, most));
        stage.world.run_for(span);
    }
    if hangs || stage.rng.below(3) == 0 {
        shift.over.set(true);
        stage.quiet(&shift.working)?;
    }
    Ok(())
}

fn start_to_copy(
    stage: &mut Stage,
    lab: &Lab,
    session: &Session,
    shift: &Shift,
) -> Result<(), String> {
    let core = lab.hosts[0].core(1);
    let copier = Copier {
        core: Rc::clone(&core),
        paths: [
            lab.path(stage, session, 0, 0)?,
            lab.path(stage, session, 0, 1)?,
        ],
        session: session.clone(),
        oracles: [0, 1].map(|unit: usize| Rc::clone(&lab.units[unit].oracle)),
        naa: [lab.naa(0)?, lab.naa(1)?],
        marks: Rc::clone(&stage.marks),
        rng: stage.rng.fork(),
        shift: shift.clone(),
    };
    shift.working.set(shift.working.get() + 1);
    core.spawn(Box::pin(copier.work()));
    Ok(())
}

/// The disk of one unit hangs for a while.
fn hang(
    stage: &mut Stage,
    lab: &Lab,
    sick: usize,
    sessions: &[Session],
    is_hanging: &Cell<bool>,
) -> Result<(), String> {
    let unit = &lab.units[sick];
    let path = if uses_device(unit.setup) {
        PathBuf::from(format!("/dev/{}", unit.name))
    } else {
        file(unit.name)
    };
    stage.world.set_faults(
        FaultPlan::benign()
            .without(Fault::FileSlow)
            .without(Fault::NetSlow),
    );
    if !lab.san.disk().hang_file(&path) {
        return Err(format!("there is no {}", path.display()));
    }
    is_hanging.set(true);
    stage.marks.borrow_mut().count("hang");
    stage
        .world
        .run_for(Duration::from_millis(stage.rng.between(1, 50)));
    let before = stage.world.now();
    drop(lab.log_in(stage, 2)?);
    let took = stage.world.now().since(before);
    stage.marks.borrow_mut().count("login_next_to_a_hang");
    if took > PROMPT {
        stage.complain(format!("a login beside a disk that hangs took {took:?}"));
    }
    stage
        .world
        .run_for(Duration::from_millis(stage.rng.between(1, 3000)));
    if stage.rng.below(2) == 0 {
        let before = stage.world.now();
        let number = u8::try_from(sick).expect("two units");
        let reset = sessions[1].send(Job::Function {
            function: 5,
            lun: lun(number),
        });
        let answered = stage
            .world
            .block_on(&lab.hosts[1], Duration::from_secs(60), reset);
        let answered = answered.map_err(|error| format!("reset of a hanging unit: {error}"))?;
        let took = stage.world.now().since(before);
        stage.marks.borrow_mut().count("reset_of_a_hang");
        if !matches!(answered, Outcome::Function(0)) || took > FUNCTION_TIME {
            stage.complain(format!(
                "a reset of a hanging unit: {answered:?} after {took:?}"
            ));
        }
        stage
            .world
            .run_for(Duration::from_millis(stage.rng.between(1, 3000)));
    }
    is_hanging.set(false);
    lab.san.disk().release();
    Ok(())
}
