//! A story of persistent reservations: hosts that register, reserve, preempt, clear and release
//! through the wire, several at a time, while all of them read and write; the power is cut in
//! between.
//!
//! **Oracle.** The set of states that the unit may be in ([`Reserved`]), from the changes and their
//! answers. A command that was let through must have been allowed in one of the states of its time,
//! one that was refused must have been forbidden in one; one that was forbidden all the time must
//! not have landed, however it ended. After PREEMPT AND ABORT no write of the preempted lands. What
//! APTPL keeps is there after a power cut, and nothing else is.

use super::client::within;
use super::initiator::{Job, Outcome, Session, Wire};
use super::lab::{Lab, lun};
use super::oracle::{End, Oracle, Ticket};
use super::report::Marks;
use super::reservation_model::{Change, KINDS, Part, Reported, Reserved, after, during};
use super::run::{FILE_FAULTS, NET_FAULTS};
use super::story::{Stage, Story};
use super::worker::{Ledger, Shift, Worker};
use env::CoreHandle;
use env::sim::{Fault, Rng};
use iscsi::bhs::Attribute;
use scsi::cdb::{PrInAction, PrOut, PrOutAction};
use scsi::{AdditionalSense, Command, SenseKey, Status};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;
use units::Buf;
use volume::IoError;

const UNIT: &str = "reserved";
const BLOCKS: u64 = 16;
const HOSTS: u32 = 3;

/// The story.
#[derive(Default)]
pub struct Reservations;

struct Open {
    host: u32,
    writes: bool,
    /// Absent once its effect is known to be over.
    ticket: Option<Ticket>,
    epoch: usize,
}

/// Judges what hosts may do, and reports to the oracle of the data.
struct Judge {
    oracle: Rc<Oracle>,
    marks: Rc<RefCell<Marks>>,
    complaints: super::initiator::Complaints,
    /// The states that were possible, one set for each time span; the last one is now.
    epochs: RefCell<Vec<BTreeSet<Reserved>>>,
    /// What a change that could not be stored may have left for the next start.
    lingering: RefCell<BTreeSet<Reserved>>,
    open: RefCell<BTreeMap<u64, Open>>,
    next: Cell<u64>,
}

impl Judge {
    fn possible(&self) -> BTreeSet<Reserved> {
        let epochs = self.epochs.borrow();
        epochs.last().cloned().unwrap_or_default()
    }

    fn mark(&self, class: &'static str) {
        self.marks.borrow_mut().count(class);
    }

    fn complain(&self, what: String) {
        self.complaints.borrow_mut().push(what);
    }

    fn begin_batch(&self, parts: &[(u32, Change)]) {
        self.oracle.note(|| format!("ask {parts:?}"));
        let led_through = during(&self.possible(), parts);
        self.epochs.borrow_mut().push(led_through);
    }

    fn end_batch(&self, before: &BTreeSet<Reserved>, parts: &[Part]) {
        let now = after(before, parts);
        self.oracle
            .note(|| format!("answered {parts:?}, now {now:?}"));
        if now.is_empty() {
            self.complain(format!(
                "no order of {parts:?} explains these answers from {before:?}"
            ));
            return;
        }
        if parts.iter().any(|part| part.reported.is_none()) {
            self.mark("unknown");
            self.lingering.borrow_mut().extend(now.iter().cloned());
        } else if now.is_disjoint(before) {
            self.lingering.borrow_mut().clear();
        }
        if let [part] = parts {
            self.preempted(before, &now, part);
        }
        self.epochs.borrow_mut().push(now);
    }

    /// The writes of a host that PREEMPT AND ABORT shut out have ended.
    fn preempted(&self, before: &BTreeSet<Reserved>, now: &BTreeSet<Reserved>, part: &Part) {
        let aborts = matches!(part.change, Change::Preempt { abort: true, .. });
        if !aborts || part.reported != Some(Reported::Good) {
            return;
        }
        for open in self.open.borrow_mut().values_mut() {
            let host = open.host;
            let was = before.iter().all(|state| state.keys.contains_key(&host));
            let is = now
                .iter()
                .any(|it| it.keys.contains_key(&host) || it.lets(host, true));
            if host != part.host
                && open.writes
                && was
                && !is
                && let Some(ticket) = open.ticket.take()
            {
                self.mark("write_ended_by_preempt");
                self.oracle.end(&ticket, &End::Lost);
            }
        }
    }

    /// A write that PREEMPT AND ABORT ended has no answer yet.
    fn waits_for_ended_writes(&self) -> bool {
        let open = self.open.borrow();
        open.values().any(|open| open.ticket.is_none())
    }

    /// A host saw the registrations and the reservation.
    fn saw(&self, keys: &BTreeMap<u32, u64>, held: Option<(u8, Option<u32>)>) {
        let before = self.possible();
        let fits = |state: &&Reserved| state.keys == *keys && state.held == held;
        let now: BTreeSet<Reserved> = before.iter().filter(fits).cloned().collect();
        if now.is_empty() {
            self.complain(format!("{keys:?} {held:?} is none of {before:?}"));
            return;
        }
        if !keys.is_empty() {
            self.mark("seen");
        }
        self.epochs.borrow_mut().push(now);
    }

    /// The node starts again.
    fn restarted(&self) {
        let mut all = self.possible();
        all.append(&mut self.lingering.borrow_mut());
        if all
            .iter()
            .all(|state| state.aptpl && !state.keys.is_empty())
        {
            self.mark("kept");
        }
        let now = all.iter().map(Reserved::restarted).collect();
        *self.epochs.borrow_mut() = vec![now];
        self.open.borrow_mut().clear();
    }
}

impl Ledger for Judge {
    fn begun(&self, host: u32, writes: bool, ticket: Ticket) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        let open = Open {
            host,
            writes,
            ticket: Some(ticket),
            epoch: self.epochs.borrow().len() - 1,
        };
        self.oracle
            .note(|| format!("command {number} of host {host}, writes {writes}"));
        self.open.borrow_mut().insert(number, open);
        number
    }

    fn ended(&self, number: u64, outcome: Option<&Outcome>, end: &End) {
        let Some(open) = self.open.borrow_mut().remove(&number) else {
            return;
        };
        let states: BTreeSet<Reserved> = (self.epochs.borrow().iter().skip(open.epoch))
            .flatten()
            .cloned()
            .collect();
        let let_through = |state: &Reserved| state.lets(open.host, open.writes);
        let may = states.iter().any(let_through);
        let may_not = !states.iter().all(let_through);
        let status = outcome.and_then(Outcome::status);
        let what = if open.writes { "write" } else { "read" };
        match status {
            Some(Status::Good) if !may => self.complain(format!(
                "a {what} of host {} was let through although it was shut out: {states:?}",
                open.host
            )),
            Some(Status::ReservationConflict) if !may_not => self.complain(format!(
                "a {what} of host {} was refused although it was allowed: {states:?}",
                open.host
            )),
            Some(Status::Good) if states.iter().any(|it| it.held.is_some()) => {
                self.mark("let_through");
            }
            Some(Status::ReservationConflict) => self.mark("refused"),
            Some(_) | None => {}
        }
        self.oracle
            .note(|| format!("{what} {number} of host {}: {status:?}", open.host));
        let Some(ticket) = open.ticket else { return };
        let is_unknown = matches!(
            end,
            End::Error(IoError::Aborted | IoError::Unavailable) | End::Lost
        );
        if !may && open.writes && is_unknown {
            // It was shut out all the time: it must not land, however it ended.
            self.mark("shut_out_and_lost");
            self.oracle
                .end(&ticket, &End::Error(IoError::WriteProtected));
        } else {
            self.oracle.end(&ticket, end);
        }
    }
}

/// The command of a change.
fn pr_out(change: Change) -> Wire {
    let (action, key, other, kind, aptpl) = match change {
        Change::Register {
            key,
            new,
            aptpl,
            ignore,
        } => {
            let action = if ignore {
                PrOutAction::RegisterAndIgnoreExistingKey
            } else {
                PrOutAction::Register
            };
            (action, key, new, 0, aptpl)
        }
        Change::Reserve { key, kind } => (PrOutAction::Reserve, key, 0, kind, false),
        Change::Release { key, kind } => (PrOutAction::Release, key, 0, kind, false),
        Change::Clear { key } => (PrOutAction::Clear, key, 0, 0, false),
        Change::Preempt {
            key,
            victim,
            kind,
            abort,
        } => {
            let action = if abort {
                PrOutAction::PreemptAndAbort
            } else {
                PrOutAction::Preempt
            };
            (action, key, victim, kind, false)
        }
    };
    let mut list = [0; 24];
    list[..8].copy_from_slice(&key.to_be_bytes());
    list[8..16].copy_from_slice(&other.to_be_bytes());
    list[20] = u8::from(aptpl);
    let command = Command::PersistentReserveOut(PrOut {
        action,
        scope: 0,
        kind,
        parameter_list_length: 24,
    });
    wire(&command, Buf::copy_of(&list), 0)
}

fn wire(command: &Command, data_out: Buf, data_in: usize) -> Wire {
    Wire {
        lun: lun(0),
        cdb: command.to_cdb().expect("its fields fit"),
        attribute: Attribute::Simple,
        data_out,
        data_in,
    }
}

/// Sends until it is not a unit attention.
async fn insist(session: &Session, wire: Wire) -> Outcome {
    loop {
        let outcome = session.send(Job::Command(wire.clone())).await;
        if !outcome.is_worth_again() {
            return outcome;
        }
    }
}

fn reported(outcome: &Outcome) -> Option<Reported> {
    match outcome.status() {
        Some(Status::Good) => Some(Reported::Good),
        Some(Status::ReservationConflict) => Some(Reported::Conflict),
        Some(Status::CheckCondition) => {
            let sense = outcome.sense()?;
            // A store that is full says nothing of the command, as one that fails does not.
            let is_full = sense.code == AdditionalSense::INSUFFICIENT_REGISTRATION_RESOURCES;
            let refused = sense.key == SenseKey::IllegalRequest && !is_full;
            refused.then_some(Reported::Check)
        }
        Some(_) | None => None,
    }
}

/// READ FULL STATUS (SPC-4 6.15.5), as keys and reservation.
type Status4 = (BTreeMap<u32, u64>, Option<(u8, Option<u32>)>);

fn full_status(data: &[u8]) -> Option<Status4> {
    let (mut keys, mut held) = (BTreeMap::new(), None);
    let len = u32::from_be_bytes(data.get(4..8)?.try_into().ok()?);
    let mut rest = data.get(8..8 + usize::try_from(len).ok()?)?;
    while !rest.is_empty() {
        let key = u64::from_be_bytes(rest.get(..8)?.try_into().ok()?);
        let (flags, kind) = (*rest.get(12)?, *rest.get(13)? & 0x0F);
        let more = u32::from_be_bytes(rest.get(20..24)?.try_into().ok()?);
        let end = 24 + usize::try_from(more).ok()?;
        let transport = String::from_utf8_lossy(rest.get(24..end)?).into_owned();
        let host = (0..HOSTS).find(|host| transport.contains(&format!(":host{host},")))?;
        keys.insert(host, key);
        if flags & 1 != 0 {
            held = Some((kind, (kind < 7).then_some(host)));
        }
        rest = rest.get(end..)?;
    }
    Some((keys, held))
}

async fn inspect(session: &Session, judge: &Judge) {
    let command = Command::PersistentReserveIn {
        action: PrInAction::ReadFullStatus,
        allocation_length: 2048,
    };
    let outcome = insist(session, wire(&command, Buf::empty(), 2048)).await;
    let Outcome::Ended(completion) = &outcome else {
        return;
    };
    if !outcome.is_good() {
        return;
    }
    match full_status(&completion.data_in.to_vec()) {
        Some((keys, held)) => judge.saw(&keys, held),
        None => judge.complain("READ FULL STATUS makes no sense".to_owned()),
    }
}

/// A change that may mean something in `state`.
fn choose(rng: &mut Rng, state: &Reserved, host: u32) -> Change {
    let own = state.keys.get(&host).copied();
    let key = match (rng.below(12), own) {
        (0, _) => 99,
        (_, Some(own)) => own,
        (_, None) => 0,
    };
    // Two hosts may share a key.
    let new = 10 + u64::from(host) / (1 + rng.below(2));
    let kind = *rng.pick(&KINDS);
    let held = state.held.map_or(kind, |(kind, _)| kind);
    if own.is_none() {
        return Change::Register {
            key,
            new,
            aptpl: rng.below(3) > 0,
            ignore: rng.below(2) == 0,
        };
    }
    match rng.below(20) {
        0..2 => Change::Register {
            key,
            new: if rng.below(3) == 0 { 0 } else { new },
            aptpl: rng.below(3) > 0,
            ignore: rng.below(2) == 0,
        },
        2..8 => Change::Reserve { key, kind },
        8..11 => Change::Release { key, kind: held },
        11 => Change::Clear { key },
        _ => {
            let others: Vec<u64> = (state.keys.iter())
                .filter(|(other, _)| **other != host)
                .map(|(_, key)| *key)
                .chain([0])
                .collect();
            Change::Preempt {
                key,
                victim: *rng.pick(&others),
                kind,
                abort: rng.below(3) > 0,
            }
        }
    }
}

fn class(change: Change) -> &'static str {
    match change {
        Change::Register { new: 0, .. } => "unregister",
        Change::Register { .. } => "register",
        Change::Reserve { .. } => "reserve",
        Change::Release { .. } => "release",
        Change::Clear { .. } => "clear",
        Change::Preempt { abort: false, .. } => "preempt",
        Change::Preempt { abort: true, .. } => "preempt_and_abort",
    }
}

/// Changes reservations, one batch after the other.
async fn administer(
    core: CoreHandle,
    sessions: Vec<Session>,
    judge: Rc<Judge>,
    mut rng: Rng,
    shift: Shift,
) {
    while !shift.over.get() {
        let before = judge.possible();
        let Some(guess) = before.first() else { return };
        let mut hosts: Vec<u32> = (0..HOSTS).collect();
        rng.shuffle(&mut hosts);
        hosts.truncate(if rng.below(3) == 0 { 2 } else { 1 });
        let parts: Vec<(u32, Change)> = (hosts.iter())
            .map(|host| (*host, choose(&mut rng, guess, *host)))
            .collect();
        judge.begin_batch(&parts);
        let mut answers = Vec::new();
        for (host, change) in &parts {
            let (give, answer) = oneshot::channel();
            let (session, wire) = (sessions[*host as usize].clone(), pr_out(*change));
            core.spawn(Box::pin(async move {
                drop(give.send(insist(&session, wire).await));
            }));
            answers.push(answer);
        }
        let mut ended = Vec::new();
        for ((host, change), answer) in parts.iter().zip(answers) {
            let outcome = answer.await.unwrap_or(Outcome::Lost);
            let reported = reported(&outcome);
            if reported == Some(Reported::Good) {
                judge.mark(class(*change));
            }
            ended.push(Part {
                host: *host,
                change: *change,
                reported,
            });
        }
        judge.end_batch(&before, &ended);
        // What was sent before and comes late is refused as long as its host is shut out. So it
        // stays shut out until all is answered: otherwise what came after would be let through
        // rightly, and nobody could notice.
        while judge.waits_for_ended_writes() && !shift.over.get() {
            let soon = core.now().after(Duration::from_micros(100));
            core.sleep_until(soon).await;
        }
        if rng.below(4) == 0 {
            inspect(&sessions[rng.index(sessions.len())], &judge).await;
        }
        let pause = Duration::from_micros(rng.below(3000));
        core.sleep_until(core.now().after(pause)).await;
    }
}

impl Story for Reservations {
    fn name(&self) -> &'static str {
        "reservations"
    }

    fn classes(&self) -> &'static [&'static str] {
        &[
            "moved",
            "register",
            "unregister",
            "reserve",
            "release",
            "clear",
            "preempt",
            "preempt_and_abort",
            "unknown",
            "seen",
            "kept",
            "refused",
            "let_through",
            "write_ended_by_preempt",
            "shut_out_and_lost",
        ]
    }

    fn faults(&self) -> Vec<Fault> {
        FILE_FAULTS.iter().chain(NET_FAULTS).copied().collect()
    }

    fn play(&self, stage: &mut Stage) -> Result<(), String> {
        let lab = Lab::new(stage, HOSTS, &[(UNIT, BLOCKS)]);
        let judge = Rc::new(Judge {
            oracle: Rc::clone(&lab.units[0].oracle),
            marks: Rc::clone(&stage.marks),
            complaints: Rc::clone(&stage.complaints),
            epochs: RefCell::new(vec![BTreeSet::from([Reserved::default()])]),
            lingering: RefCell::default(),
            open: RefCell::default(),
            next: Cell::new(0),
        });
        for _ in 0..stage.rng.between(1, 3) {
            lab.start(stage)?;
            life(stage, &lab, &judge)?;
            lab.end_of_life(stage);
            judge.restarted();
            if stage.is_lost() {
                return Ok(());
            }
        }
        lab.start(stage)?;
        let session = lab.log_in(stage, 0)?;
        first_inspection(stage, &lab, session, &judge)?;
        lab.units[0].oracle.close_history();
        Ok(())
    }
}

/// What is there after the start is what must be there.
fn first_inspection(
    stage: &Stage,
    lab: &Lab,
    session: Session,
    judge: &Rc<Judge>,
) -> Result<(), String> {
    let (core, judge) = (lab.hosts[0].core(0), Rc::clone(judge));
    super::lab::wait(stage, &lab.hosts[0], "inspection", async move {
        let inspected = within(&core, Duration::from_secs(60), inspect(&session, &judge)).await;
        inspected.ok_or("READ FULL STATUS is not answered".to_owned())
    })
}

fn life(stage: &mut Stage, lab: &Lab, judge: &Rc<Judge>) -> Result<(), String> {
    let shift = Shift::default();
    let mut sessions = Vec::new();
    for host in 0..HOSTS {
        sessions.push(lab.log_in(stage, host)?);
    }
    first_inspection(stage, lab, sessions[0].clone(), judge)?;
    for (host, session) in (0..HOSTS).zip(&sessions) {
        let core = lab.hosts[host as usize].core(0);
        let path = lab.path(stage, session, host, 0)?;
        for _ in 0..stage.rng.between(1, 2) {
            Worker {
                number: host,
                core: Rc::clone(&core),
                host: path.clone(),
                oracle: Rc::clone(&judge.oracle),
                ledger: Rc::<Judge>::clone(judge),
                rng: stage.rng.fork(),
                blocks: Rc::new(Cell::new(BLOCKS)),
                len_max: 2,
                queues: false,
                flushes: false,
                commands: 60,
                shift: shift.clone(),
            }
            .start();
        }
    }
    // The sessions live on their hosts' nodes; whoever administers does so on the first.
    let core = lab.hosts[0].core(1);
    let administering = administer(
        Rc::clone(&core),
        sessions,
        Rc::clone(judge),
        stage.rng.fork(),
        shift,
    );
    core.spawn(Box::pin(administering));
    stage.world.set_faults(stage.plan.clone());
    let most = match stage.rng.below(6) {
        0 => 30_000_000,
        _ => 60_000,
    };
    let span = Duration::from_micros(stage.rng.between(100, most));
    stage.world.run_for(span);
    Ok(())
}
