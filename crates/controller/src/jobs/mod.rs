//! Jobs: storage of LUNs that is made, scrubs, and work that others do.
//!
//! **Contract.** A job of a change begins, and is stored, before the engine is asked; it ends with
//! its answer. So each is known, however short, and also where the daemon is killed. Scrubs go on
//! by themselves, and are seen each few seconds and whenever somebody asks. Work of others begins
//! and ends when they say so.

use crate::{Asked, Controller};
use ::jobs::{Ending, NewJob, Sighting};
use env::CoreHandle;
use manifest::code::Code;
use manifest::job::{JobUnit, JobView};
use manifest::objects::{Lun, Objects};
use manifest::plan::LunChanges;
use manifest::problem::Problem;
use manifest::scrub::{ScrubFacts, ScrubOp, ScrubState};
use std::collections::BTreeMap;
use std::rc::Weak;
use std::time::Duration;

mod registry;

pub(crate) use registry::Registry;

/// How often jobs are stored, where there is anything new.
const STORE_EVERY: Duration = Duration::from_secs(1);

/// How many of these times scrubs are seen once.
const SEE_EVERY: u32 = 5;

/// The storage of smaller LUNs is given back at once.
const PURGE_BYTES_MIN: u64 = 1 << 30;

/// A scrub.
const SCRUB: &str = "scrub";

/// Jobs of a change that is under way, by number.
#[derive(Default)]
pub(crate) struct Begun(Vec<u64>);

/// A scrub, as it is seen.
fn sighting(name: &str, naa: &str, scrub: &ScrubFacts) -> Sighting {
    let ended = match scrub.state {
        ScrubState::Running => None,
        ScrubState::Finished => Some(Ending::Finished),
        ScrubState::Stopped => Some(Ending::Cancelled),
        ScrubState::GivenUp => {
            let why = scrub.reason.clone();
            Some(Ending::Failed(
                why.unwrap_or_else(|| "it was given up".to_owned()),
            ))
        }
    };
    Sighting {
        kind: SCRUB,
        object: name.to_owned(),
        key: naa.to_owned(),
        started: scrub.started.clone(),
        done: scrub.done_bytes,
        total: scrub.total_bytes,
        rate: (scrub.bytes_per_second, scrub.seconds_left),
        link: format!("/api/v1/luns/{name}/scrub"),
        ended,
    }
}

/// How a change has ended.
fn ending(result: &Result<(), Problem>) -> Ending {
    match result {
        Ok(()) => Ending::Finished,
        Err(problem) if problem.code == Code::JobCancelled => Ending::Cancelled,
        Err(problem) => {
            let first = problem.faults.first().map(|fault| fault.message.clone());
            Ending::Failed(first.unwrap_or_else(|| problem.detail.clone()))
        }
    }
}

impl Controller {
    /// What takes long of a change: storage of a thick LUN, or in a pool of members, where what a
    /// LUN gets is made zeroes; giving back what a large one took.
    fn long_work(&self, changes: &LunChanges, after: &Objects, by: &str) -> Vec<NewJob> {
        let before = self.objects();
        let is_long = |lun: &&Lun| {
            let pool = lun.backing.pool();
            let pool = pool.and_then(|name| self.config.pools.iter().find(|it| it.name == name));
            pool.is_some_and(|pool| !lun.thin || pool.place.is_members())
        };
        let job = |kind: &str, lun: &Lun, bytes: u64| {
            let found = after.luns.iter().find(|(_, known)| known.naa == lun.naa);
            let name = found.map_or(&lun.naa, |(name, _)| name);
            NewJob {
                kind: kind.to_owned(),
                object: name.clone(),
                key: lun.naa.clone(),
                by: by.to_owned(),
                unit: JobUnit::Bytes,
                total: bytes,
                link: Some(format!("/api/v1/luns/{name}")),
            }
        };
        let created = changes.created.iter().filter(is_long);
        let created = created.map(|lun| job("lun_create", lun, lun.size.bytes()));
        let grown = changes.resized.iter().filter(is_long).filter_map(|lun| {
            let known = before.luns.values().find(|known| known.naa == lun.naa);
            let had = known.map_or(0, |known| known.size.bytes());
            let more = lun.size.bytes().checked_sub(had).filter(|more| *more > 0)?;
            Some(job("lun_grow", lun, more))
        });
        let purged = changes.purged.iter().filter(|lun| {
            let is_in_pool = lun.backing.pool().is_some();
            is_in_pool && lun.size.bytes() >= PURGE_BYTES_MIN
        });
        // It is among those that were removed, until it is purged.
        let removed = before.removed.iter().chain(&before.luns);
        let removed: BTreeMap<&str, &String> = removed
            .map(|(name, lun)| (lun.naa.as_str(), name))
            .collect();
        let purged = purged.map(|lun| {
            let mut job = job("lun_purge", lun, lun.size.bytes());
            if let Some(name) = removed.get(lun.naa.as_str()) {
                job.object = (*name).clone();
            }
            // Nothing is there when it is done.
            job.link = None;
            job
        });
        created.chain(grown).chain(purged).collect()
    }

    /// What takes long of a change begins.
    pub(crate) async fn begin_jobs(
        &self,
        changes: &LunChanges,
        after: &Objects,
        asked: Asked,
    ) -> Begun {
        let work = self.long_work(changes, after, &asked.by);
        if work.is_empty() {
            return Begun::default();
        }
        let now = self.core.wall_clock();
        let luns = work.iter().map(|job| job.key.clone()).collect();
        self.registry.change.replace(luns);
        let mut begun = Vec::new();
        for new in work {
            let total = new.total;
            let mut jobs = self.registry.jobs.borrow_mut();
            let id = jobs.begin(new, now);
            jobs.progress(id, 0, total, self.core.now());
            begun.push(id);
        }
        self.registry.store(&self.core).await;
        let first = begun.first().map(|id| self.job(*id));
        if let (Some(waiting), Some(Ok(job))) = (asked.begun, first) {
            // Whoever asked may have gone.
            let _ = waiting.send(job);
        }
        Begun(begun)
    }

    /// That came to its end with this answer of the engine.
    pub(crate) async fn end_jobs(&self, begun: Begun, result: &Result<(), Problem>) {
        if begun.0.is_empty() {
            return;
        }
        self.registry.change.take();
        for id in begun.0 {
            self.end_job(id, &ending(result));
        }
        self.registry.store(&self.core).await;
    }

    /// Work of somebody else begins; its number. Who does it says how far it is, and ends it.
    /// `stop` is called when somebody cancels it, at most once, and must not wait.
    pub fn begin_job(&self, new: NewJob, stop: Box<dyn FnOnce() + Send>) -> u64 {
        let now = self.core.wall_clock();
        let id = self.registry.jobs.borrow_mut().begin(new, now);
        self.registry.stops.borrow_mut().insert(id, stop);
        id
    }

    /// How far work is.
    pub fn job_progress(&self, id: u64, done: u64, total: u64) {
        let mut jobs = self.registry.jobs.borrow_mut();
        jobs.progress(id, done, total, self.core.now());
    }

    /// A line for the log of a job.
    pub fn job_note(&self, id: u64, text: &str) {
        let now = self.core.wall_clock();
        self.registry.jobs.borrow_mut().note(id, text, now);
    }

    /// Where the API has what a job made.
    pub fn job_link(&self, id: u64, link: &str) {
        self.registry.jobs.borrow_mut().link(id, link);
    }

    /// Work has ended; what is said of it later counts for nothing.
    pub fn end_job(&self, id: u64, ending: &Ending) {
        let now = self.core.wall_clock();
        self.registry.stops.borrow_mut().remove(&id);
        self.registry.jobs.borrow_mut().end(id, ending, now);
    }

    /// Sees how far all jobs are.
    fn see_jobs(&self) {
        let at = (self.core.now(), self.core.wall_clock());
        let objects = self.objects();
        let scrubs = self.engine.scrubs();
        let luns = objects.luns.iter();
        let seen: Vec<Sighting> = luns
            .filter_map(|(name, lun)| Some(sighting(name, &lun.naa, scrubs.get(&lun.naa)?)))
            .collect();
        self.registry.jobs.borrow_mut().observe(&seen, &[SCRUB], at);
        self.see_changes();
    }

    /// Sees how far the change under way is.
    fn see_changes(&self) {
        let now = self.core.now();
        let mut jobs = self.registry.jobs.borrow_mut();
        let made = jobs.running().filter(|job| job.kind != SCRUB);
        let made: Vec<(u64, String)> = made.map(|job| (job.id, job.key.clone())).collect();
        for (id, naa) in made {
            if let Some((done, total)) = self.engine.progress(&naa) {
                jobs.progress(id, done, total, now);
            }
        }
    }

    /// Asks a scrub for somebody, whose job it is then.
    ///
    /// # Errors
    /// The LUN is offline, or was never scrubbed.
    pub(crate) async fn scrub_for(
        &self,
        naa: &str,
        operation: ScrubOp,
        by: &str,
    ) -> Result<ScrubFacts, Problem> {
        self.see_jobs();
        let now = self.core.wall_clock();
        let jobs = &self.registry.jobs;
        match operation {
            ScrubOp::Start => jobs.borrow_mut().want(SCRUB, naa, by),
            ScrubOp::Stop => {
                let is_it = |job: &&::jobs::Job| job.kind == SCRUB && job.key == naa;
                let id = jobs.borrow().running().find(is_it).map(|job| job.id);
                if let Some(id) = id {
                    // It runs: who stops it is in its log.
                    let _ = jobs.borrow_mut().cancel(id, by, now);
                }
            }
        }
        let facts = self.engine.scrub(naa, operation).await;
        self.see_jobs();
        jobs.borrow_mut().unwant(SCRUB, naa);
        facts
    }

    /// All jobs, the newest first.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobView> {
        self.see_jobs();
        self.registry.jobs.borrow().list()
    }

    /// One job.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn job(&self, id: u64) -> Result<JobView, Problem> {
        self.see_jobs();
        self.registry.jobs.borrow().job(id)
    }

    /// Has a job stop where it is; what was made of a LUN is undone.
    ///
    /// # Errors
    /// There is no such job, it has ended, or it cannot be stopped.
    pub async fn cancel_job(&self, id: u64, by: &str) -> Result<JobView, Problem> {
        self.see_jobs();
        let now = self.core.wall_clock();
        let (is_scrub, key) = {
            let mut jobs = self.registry.jobs.borrow_mut();
            let job = jobs.cancel(id, by, now)?;
            (job.kind == SCRUB, job.key.clone())
        };
        let stopped = if is_scrub {
            self.engine.scrub(&key, ScrubOp::Stop).await.map(drop)
        } else {
            self.stop_work(id, &key)
        };
        if let Err(problem) = stopped {
            let mut jobs = self.registry.jobs.borrow_mut();
            jobs.not_cancelled(id, &problem.detail, self.core.wall_clock());
            return Err(problem);
        }
        let view = self.job(id);
        self.registry.store(&self.core).await;
        view
    }

    /// Has work stop that is no scrub.
    fn stop_work(&self, id: u64, naa: &str) -> Result<(), Problem> {
        let stop = self.registry.stops.borrow_mut().remove(&id);
        if let Some(stop) = stop {
            stop();
            return Ok(());
        }
        // A change is done for all of its LUNs or for none: whichever is being made is stopped.
        let change = self.registry.change.borrow().clone();
        let is_of_change = change.iter().any(|lun| lun == naa);
        if is_of_change && change.iter().any(|lun| self.engine.stop_work(lun)) {
            return Ok(());
        }
        let detail = "at this moment it cannot be stopped: what it needs of space is made, and it is nearly done";
        Err(Problem::new(Code::JobOver, detail).hint("wait for its end: `causeway job wait`"))
    }

    /// What a cancellation would find.
    ///
    /// # Errors
    /// There is no such job, or it has ended.
    pub fn may_cancel(&self, id: u64) -> Result<JobView, Problem> {
        self.see_jobs();
        self.registry.jobs.borrow().may_cancel(id)
    }

    /// Sees and stores jobs for as long as the controller lives.
    pub(crate) async fn follow_jobs(this: Weak<Self>) {
        let mut round: u32 = 0;
        loop {
            let Some(controller) = this.upgrade() else {
                return;
            };
            let core = CoreHandle::clone(&controller.core);
            if round.is_multiple_of(SEE_EVERY) {
                controller.see_jobs();
            } else {
                controller.see_changes();
            }
            round = round.wrapping_add(1);
            controller.registry.store(&core).await;
            drop(controller);
            core.sleep_until(core.now().after(STORE_EVERY)).await;
        }
    }
}
