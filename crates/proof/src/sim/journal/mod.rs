//! Volumes behind a journal, with clients, through every harm that a machine does to them.
//!
//! A run is a pool with one or two volumes and up to three lives. In each, clients work on every
//! volume among faults of the disk; then the power is cut or the process killed: right after a
//! stable write or sync that the seed chooses was begun, or at any other moment, openings included.
//! What a life does besides is its [`Event`].
//!
//! **Oracles.** What each volume does is judged as in all scenes: an acknowledged change is there,
//! whole, in the order of the history, after every cut. An opening without faults serves; one among
//! faults serves or names why not. When work and faults are over, all is destaged.

mod changes;
mod filler;
mod harm;

use super::client::{Client, audit};
use super::lab::wait;
use super::layout::Layout;
use super::oracle::Oracle;
use super::run::FILE_FAULTS;
use super::story::{Stage, Story};
use env::CoreHandle;
use env::sim::{Fault, FaultPlan, Node};
pub use harm::{Lies, Rot};
use volume_test::stamp::Value;

use super::pool::{JOURNAL, Pool, Running};
use changes::{Changes, Noted};
use filler::Filler;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use units::WallClock;
use write_back::{Mode, RingStatus};

/// The story.
#[derive(Default)]
pub struct Journal;

/// What happens in a life beside faults and work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    /// The end comes with a stable write or sync.
    CutAtDurable,
    /// The end comes at any moment.
    CutAnywhere,
    /// Everybody ends; then all is destaged.
    Destaged,
    /// A backing volume hangs until the end, so that the log keeps all.
    BackingHangs,
    /// The journal hangs for a while.
    JournalHangs,
    /// Hours pass at once, and the wall clock says something else.
    ClockJumps,
    /// Another volume, whose backing volume hangs, fills the log.
    Full,
}

impl Event {
    fn class(self) -> &'static str {
        match self {
            Self::CutAtDurable => "cut_at_durable",
            Self::CutAnywhere => "cut_anywhere",
            Self::Destaged => "everybody_ends",
            Self::BackingHangs => "backing_hangs",
            Self::JournalHangs => "journal_hangs",
            Self::ClockJumps => "clock_jumps",
            Self::Full => "filled",
        }
    }
}

/// The pool of a run, and what is known of it.
struct Reported {
    pool: Pool,
    node: Node,
    oracles: Vec<Rc<Oracle>>,
    /// A volume that fills the log, where the seed wants one.
    filler: Option<Filler>,
    believes: Vec<BTreeMap<u64, Value>>,
    /// What was asked of each volume, where its history is kept.
    changes: Vec<Rc<Changes>>,
    /// Something may lie in a cache below that no flush has covered, where a sync that fails loses
    /// it: in a life in volatile mode, and in those of whatever mode that follow a kill, until the
    /// power is cut.
    unflushed: bool,
    /// In this life, what is under way reaches the backing volume before it is stable: a kill
    /// leaves it in a cache.
    reaches_backing: bool,
}

impl Story for Journal {
    fn name(&self) -> &'static str {
        "journal"
    }

    fn classes(&self) -> &'static [&'static str] {
        &[
            "cut_at_durable",
            "cut_anywhere",
            "destaged",
            "backing_hangs",
            "journal_hangs",
            "clock_jumps",
            "full",
            "replayed",
            "opening_cut",
            "named_stop",
            "write_back",
            "write_through",
            "volatile",
            "quiet",
            "span",
            "stripe",
            "exact",
        ]
    }

    fn faults(&self) -> Vec<Fault> {
        FILE_FAULTS.to_vec()
    }

    fn sector_bytes(&self, seed: u64) -> u64 {
        Pool::of(seed).sector_bytes()
    }

    fn play(&self, stage: &mut Stage) -> Result<(), String> {
        let mut reported = Reported::new(stage, Pool::of(stage.seed).with_more(stage.seed))?;
        for _ in 0..stage.rng.between(1, 3) {
            let running = reported.start(stage)?;
            reported.life(stage, &running)?;
            reported.false_alarms(&running)?;
            reported.dies(stage);
            reported.troubled_openings(stage);
            if stage.is_lost() {
                return Ok(());
            }
        }
        let running = reported.start(stage)?;
        reported.is_destaged(stage, &running)?;
        reported.changes_are_exact(stage, &running)
    }
}

impl Reported {
    /// Makes it.
    fn new(stage: &mut Stage, pool: Pool) -> Result<Self, String> {
        let node = stage.world.node("san");
        wait(stage, &node, "make", pool.make(node.clone()))?;
        match pool.setup.layout {
            Layout::One => {}
            Layout::Span => stage.marks.borrow_mut().count("span"),
            Layout::Stripe => stage.marks.borrow_mut().count("stripe"),
        }
        let oracles = (0..pool.volumes).map(|_| stage.oracle(pool.setup.block_size));
        let watched = if pool.history { pool.volumes } else { 0 };
        let changes = (0..watched).map(|_| Changes::new(pool.setup.block_size));
        Ok(Self {
            pool,
            node,
            oracles: oracles.collect(),
            filler: pool.fills.then(|| Filler::new(stage, pool)),
            believes: Vec::new(),
            changes: changes.collect(),
            unflushed: false,
            reaches_backing: false,
        })
    }

    /// Opens everything without faults, and reads it.
    fn start(&mut self, stage: &mut Stage) -> Result<Rc<Running>, String> {
        stage.world.set_faults(FaultPlan::none());
        self.node.restart();
        let mode = self.pool.mode(&mut stage.rng);
        stage.marks.borrow_mut().count(match mode {
            Mode::WriteBack => "write_back",
            Mode::WriteThrough => "write_through",
            Mode::Volatile => "volatile",
        });
        let open = self.pool.open(self.node.core(0), mode);
        let running = Rc::new(wait(stage, &self.node, "start", open)?);
        if running.journal.replayed() > 0 {
            stage.marks.borrow_mut().count("replayed");
        }
        let damaged = running.journal.damaged();
        if !damaged.is_empty() {
            return Err(format!("damage where nothing was damaged: {damaged:?}"));
        }
        for changes in &self.changes {
            changes.life_begins(mode == Mode::Volatile);
        }
        self.audit(stage, &running)?;
        Ok(running)
    }

    /// Reads every volume; a new history begins with what it holds.
    fn audit(&mut self, stage: &mut Stage, running: &Rc<Running>) -> Result<(), String> {
        self.believes.clear();
        for (volume, oracle) in self.oracles.iter().enumerate() {
            oracle.close_history();
            let (core, judge) = (self.node.core(0), Rc::clone(oracle));
            let running = Rc::clone(running);
            let values = wait(stage, &self.node, "audit", async move {
                let opened = running.lane(Rc::clone(&core), volume).await?;
                audit(core, opened, judge).await
            })?;
            oracle.open_history(values.clone());
            self.believes.push(values);
        }
        for (volume, changes) in self.changes.iter().enumerate() {
            for made in changes.cuts() {
                self.asks(stage, running, volume, made)?;
            }
        }
        self.false_alarms(running)?;
        self.filler
            .as_ref()
            .map_or(Ok(()), |filler| filler.audit(stage, &self.node, running))
    }

    /// Nothing is damaged, and nothing may be taken for it.
    fn false_alarms(&self, running: &Rc<Running>) -> Result<(), String> {
        match running.false_alarms().as_slice() {
            [] => Ok(()),
            alarms => Err(format!("taken for damage: {}", alarms.join("; "))),
        }
    }

    /// Lets clients work among faults, and something happen.
    fn life(&mut self, stage: &mut Stage, running: &Rc<Running>) -> Result<(), String> {
        let (stop, working) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
        self.unflushed |= running.mode == Mode::Volatile;
        self.reaches_backing = running.mode != Mode::WriteBack || self.pool.writes_around();
        self.may_lose_what_is_unflushed(stage);
        for volume in 0..self.pool.volumes {
            for number in 0..u32::try_from(stage.rng.between(1, 3)).expect("few") {
                let work = (Rc::clone(&stop), Rc::clone(&working));
                self.client(stage, running, (volume, number), work)?;
            }
        }
        for volume in 0..self.changes.len() {
            let work = (Rc::clone(&stop), Rc::clone(&working));
            self.cutter(stage, running, volume, work)?;
        }
        stage.world.set_faults(stage.plan.clone());
        let usual = *stage.rng.pick(&[
            Event::CutAtDurable,
            Event::CutAtDurable,
            Event::CutAtDurable,
            Event::CutAnywhere,
            Event::Destaged,
            Event::BackingHangs,
            Event::JournalHangs,
            Event::ClockJumps,
        ]);
        let full = self.filler.is_some() && stage.rng.below(2) == 0;
        let event = if full { Event::Full } else { usual };
        stage.marks.borrow_mut().count(event.class());
        self.happens(stage, running, event, (&stop, &working))?;
        stop.set(true);
        Ok(())
    }

    /// Lets a client of each volume work for a moment, without faults, and come to an end.
    fn works(&mut self, stage: &mut Stage, running: &Rc<Running>) -> Result<(), String> {
        let (stop, working) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
        for volume in 0..self.pool.volumes {
            let work = (Rc::clone(&stop), Rc::clone(&working));
            self.client(stage, running, (volume, 0), work)?;
        }
        pause(stage, 20_000);
        stop.set(true);
        stage.quiet(&working)
    }

    /// Starts a client of a volume.
    fn client(
        &self,
        stage: &mut Stage,
        running: &Rc<Running>,
        (volume, number): (usize, u32),
        (stop, working): (Rc<Cell<bool>>, Rc<Cell<u32>>),
    ) -> Result<(), String> {
        let on = u16::try_from(stage.rng.below(2)).expect("below 2");
        let core = self.node.core(on);
        let (through, here) = (Rc::clone(running), Rc::clone(&core));
        let open = async move { through.lane(here, volume).await };
        let mut opened = wait(stage, &self.node, "open", open)?;
        if let Some(changes) = self.changes.get(volume) {
            opened.lane = Rc::new(Noted {
                below: opened.lane,
                changes: Rc::clone(changes),
            });
        }
        working.set(working.get() + 1);
        let client = Client {
            number,
            core: Rc::clone(&core),
            opened,
            commands: 40,
            oracle: Rc::clone(&self.oracles[volume]),
            rng: stage.rng.fork(),
            stop,
            working,
            believes: self.believes[volume].clone(),
            unavailable_is_dead: false,
        };
        core.spawn(Box::pin(client.work()));
        Ok(())
    }

    fn happens(
        &mut self,
        stage: &mut Stage,
        running: &Rc<Running>,
        event: Event,
        (stop, working): (&Rc<Cell<bool>>, &Rc<Cell<u32>>),
    ) -> Result<(), String> {
        let before = self.stops(stage);
        match event {
            Event::CutAtDurable => self.runs_to_a_durable(stage, 60),
            Event::CutAnywhere => pause(stage, 100_000),
            Event::Destaged => {
                pause(stage, 60_000);
                stop.set(true);
                stage.quiet(working)?;
                self.all_is_well(stage, running, before)?;
            }
            Event::Full => {
                self.fills(stage, running, (Rc::clone(stop), Rc::clone(working)))?;
                if stage.rng.below(2) == 0 {
                    pause(stage, 30_000);
                    return Ok(());
                }
                stage.world.set_faults(FaultPlan::none());
                self.node.disk().release();
                stop.set(true);
                stage.quiet(working)?;
                self.all_is_well(stage, running, before)?;
            }
            Event::BackingHangs => {
                for volume in 0..self.pool.volumes {
                    for backing in self.pool.backings(volume) {
                        let hangs = self.node.disk().hang_file(&backing);
                        assert!(hangs, "it was opened");
                    }
                }
                self.runs_to_a_durable(stage, 90);
            }
            Event::JournalHangs => {
                pause(stage, 5_000);
                let hangs = self.node.disk().hang_file(Path::new(JOURNAL));
                assert!(hangs, "it was opened");
                pause(stage, 100_000);
                if stage.rng.below(2) == 0 {
                    self.node.disk().release();
                    self.runs_to_a_durable(stage, 20);
                }
            }
            Event::ClockJumps => {
                pause(stage, 10_000);
                let hours = stage.rng.between(1, 100);
                stage.world.sleep(Duration::from_secs(3600 * hours));
                stage.world.set_wall_clock(WallClock(stage.rng.draw() / 2));
                self.runs_to_a_durable(stage, 40);
            }
        }
        Ok(())
    }

    /// Goes on until one of the next stable writes or syncs was begun, and a moment longer.
    fn runs_to_a_durable(&self, stage: &mut Stage, most: u64) {
        let disk = self.node.disk();
        let end = disk.durable_begun() + stage.rng.between(1, most);
        // Where it does not come to so many, any moment is as good.
        let _reached = stage
            .world
            .run_until(Duration::from_millis(300), || disk.durable_begun() >= end);
        if stage.rng.below(2) == 0 {
            stage
                .world
                .run_for(Duration::from_nanos(stage.rng.below(300_000)));
        }
    }

    /// Faults so far after which a backing volume takes nothing until it is opened again: of its
    /// sync, and of a write of its map of checksums.
    fn stops(&self, stage: &Stage) -> u64 {
        let hits = stage.world.hits();
        let of_maps = [Fault::FileWriteError, Fault::FileNoSpace];
        let of_maps = of_maps.iter().map(|fault| hits.of(*fault)).sum::<u64>();
        hits.of(Fault::FileSyncError) + if self.pool.checksums { of_maps } else { 0 }
    }

    /// The faults are over, and everybody has ended. All is destaged, but where a backing volume or
    /// the log takes nothing more.
    fn all_is_well(
        &mut self,
        stage: &mut Stage,
        running: &Rc<Running>,
        before: u64,
    ) -> Result<(), String> {
        stage.world.set_faults(FaultPlan::none());
        self.node.disk().release();
        // What met a fault and is still under way, such as a seal, ends: a slow write takes two
        // seconds.
        stage.world.run_for(Duration::from_secs(3));
        if self.stops(stage) == before && !self.has_failed(stage, running)? {
            stage.marks.borrow_mut().count("destaged");
            self.is_destaged(stage, running)?;
        }
        Ok(())
    }

    /// Has the filler fill the log while nothing of it can be destaged.
    fn fills(
        &self,
        stage: &mut Stage,
        running: &Rc<Running>,
        work: (Rc<Cell<bool>>, Rc<Cell<u32>>),
    ) -> Result<(), String> {
        let filler = self.filler.as_ref().expect("the event asks for it");
        stage.world.set_faults(FaultPlan::none());
        filler.start(stage, &self.node, running, work)?;
        stage.world.set_faults(stage.plan.clone());
        for backing in filler.backings() {
            let hangs = self.node.disk().hang_file(&backing);
            assert!(hangs, "it was opened");
        }
        for _ in 0..40 {
            pause(stage, 2_000);
            let full = self.status(stage, running)?;
            // Up to a half is kept for what is relocated.
            if full.iter().any(|it| it.used_blocks * 20 >= it.blocks * 9) {
                stage.marks.borrow_mut().count("full");
                return Ok(());
            }
        }
        Ok(())
    }

    fn has_failed(&self, stage: &Stage, running: &Rc<Running>) -> Result<bool, String> {
        let status = self.status(stage, running)?;
        Ok(status.iter().any(|it| it.failed.is_some()))
    }

    fn status(&self, stage: &Stage, running: &Rc<Running>) -> Result<Vec<RingStatus>, String> {
        let (core, running) = (self.node.core(0), Rc::clone(running));
        wait(stage, &self.node, "status", async move {
            Ok(running.journal.status(&core).await)
        })
    }

    /// With faults and work over, all that the journal holds is destaged, and still there.
    fn is_destaged(&mut self, stage: &mut Stage, running: &Rc<Running>) -> Result<(), String> {
        let (core, journal) = (self.node.core(0), Rc::clone(running));
        let status = wait(stage, &self.node, "destage", async move {
            // What was refused a moment ago is tried again after a while.
            for _ in 0..5 {
                journal.journal.drain(&core).await;
                let status = journal.journal.status(&core).await;
                if status.iter().all(|it| it.destage_errors.is_empty()) {
                    break;
                }
                let pause = Duration::from_secs(2);
                core.sleep_until(core.now().after(pause)).await;
            }
            Ok(journal.journal.status(&core).await)
        })?;
        if status
            .iter()
            .any(|it| it.pages > 0 || !it.destage_errors.is_empty() || it.failed.is_some())
        {
            return Err(format!("not all is destaged: {status:?}"));
        }
        self.audit(stage, running)?;
        for oracle in &self.oracles {
            oracle.close_history();
        }
        Ok(())
    }

    /// From now on a sync that fails may lose what no flush has covered, and the error is reported
    /// only to whoever asked for it.
    fn may_lose_what_is_unflushed(&self, stage: &Stage) {
        let failed = stage.world.hits().of(Fault::FileSyncError);
        if self.unflushed {
            let oracles = self.oracles.iter();
            oracles.for_each(|oracle| oracle.syncs_by_itself(failed));
        }
    }

    /// The power is cut, or the process killed.
    fn dies(&mut self, stage: &mut Stage) {
        let failed = stage.world.hits().of(Fault::FileSyncError);
        if self.unflushed {
            let oracles = self.oracles.iter();
            oracles.for_each(|oracle| oracle.own_syncs_failed(failed));
        }
        let power_cut = stage.rng.below(4) != 0;
        self.unflushed |= std::mem::take(&mut self.reaches_backing);
        self.unflushed &= !power_cut;
        if power_cut {
            self.node.crash();
        } else {
            self.node.kill();
        }
        let fillers = self.filler.iter().map(Filler::oracle);
        for oracle in self.oracles.iter().chain(fillers) {
            oracle.life_ended(power_cut);
        }
        for changes in &self.changes {
            changes.life_ended();
        }
        self.node.disk().release();
        // What the dead left on its way is over before the next life.
        stage.world.run_for(Duration::from_millis(1));
    }

    /// Openings that are cut, or meet faults: they end with a pool that serves or with a reason,
    /// and harm nothing.
    fn troubled_openings(&mut self, stage: &mut Stage) {
        while stage.rng.below(3) == 0 {
            self.node.restart();
            self.may_lose_what_is_unflushed(stage);
            let mode = self.pool.mode(&mut stage.rng);
            let (pool, core) = (self.pool, self.node.core(0));
            let opened: Rc<RefCell<Option<Result<Running, String>>>> = Rc::default();
            if stage.rng.below(2) == 0 {
                stage.world.set_faults(stage.plan.clone());
            }
            let (slot, on) = (Rc::clone(&opened), CoreHandle::clone(&core));
            core.spawn(Box::pin(async move {
                let outcome = pool.open(on, mode).await;
                *slot.borrow_mut() = Some(outcome);
            }));
            self.runs_to_a_durable(stage, 6);
            let class = match &*opened.borrow() {
                None => "opening_cut",
                Some(Ok(_)) => "opening_served",
                Some(Err(reason)) => {
                    if !has_cause(reason) {
                        let wrong = format!("a pool does not open, and says only: {reason:?}");
                        stage.complaints.borrow_mut().push(wrong);
                    }
                    "named_stop"
                }
            };
            stage.marks.borrow_mut().count(class);
            self.dies(stage);
        }
    }
}

/// It says why, not only what to do: an [`volume::OpenError`] shows as "cause (next step)".
fn has_cause(reason: &str) -> bool {
    let cause = reason.split(" (").next().unwrap_or_default();
    cause.chars().any(char::is_alphabetic)
}

/// So many microseconds at the most.
fn pause(stage: &mut Stage, most: u64) {
    let span = Duration::from_micros(stage.rng.between(100, most));
    stage.world.run_for(span);
}

#[cfg(test)]
mod test {
    use super::has_cause;

    #[test]
    fn a_stop_without_a_cause_is_known_for_one() {
        let shown = |cause: &str| {
            let (cause, next_step) = (cause.to_owned(), "restart".to_owned());
            volume::OpenError {
                kind: volume::OpenErrorKind::Other,
                cause,
                next_step,
            }
            .to_string()
        };
        assert!(has_cause(&shown("the disk is gone")));
        assert!(!has_cause(&shown("")) && !has_cause(&shown(" ")) && !has_cause(""));
    }
}
