//! The registry of jobs.

use crate::change::{Change, Changes};
use crate::document::Document;
use crate::job::{Ending, Job, NewJob};
use crate::memory::Seen;
use manifest::code::Code;
use manifest::job::JobView;
use manifest::problem::Problem;
use manifest::time::rfc3339;
use std::collections::BTreeMap;
use units::{Now, WallClock};

/// The most jobs that have ended and are kept: the last ones.
const ENDED_MAX: usize = 500;

/// All jobs.
#[derive(Default, Debug)]
pub struct Jobs {
    next_id: u64,
    pub(crate) all: BTreeMap<u64, Job>,
    pub(crate) changes: Changes,
    pub(crate) seen: Seen,
}

impl Jobs {
    /// With what is stored: what ran was interrupted. Work of the kinds of `by_itself` goes on when
    /// it is seen, and is no change before that.
    #[must_use]
    pub fn new(document: Document, by_itself: &[&str], now: WallClock) -> Self {
        let mut jobs = Self {
            next_id: document.next_id.max(1),
            seen: Seen::since(now),
            ..Self::default()
        };
        for mut job in document.jobs {
            jobs.next_id = jobs.next_id.max(job.id.saturating_add(1));
            if job.runs() {
                job.interrupt(now);
                jobs.changes.touch();
                if !by_itself.contains(&job.kind.as_str()) {
                    jobs.changes.add(&job);
                }
            }
            jobs.all.insert(job.id, job);
        }
        jobs
    }

    /// What is to be stored.
    #[must_use]
    pub fn document(&self) -> Document {
        Document {
            next_id: self.next_id,
            jobs: self.all.values().cloned().collect(),
            ..Document::default()
        }
    }

    /// Whether a job began, ended or was written to since this was asked last: then it is stored.
    pub fn take_unstored(&mut self) -> bool {
        self.changes.take_unstored()
    }

    /// It was not stored after all.
    pub fn not_stored(&mut self) {
        self.changes.touch();
    }

    /// What began and ended since this was asked last.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.changes.take()
    }

    /// Work begins of which the caller reports the end; its number.
    pub fn begin(&mut self, new: NewJob, at: WallClock) -> u64 {
        let id = self.insert(new, rfc3339(at), at);
        self.trim();
        id
    }

    pub(crate) fn insert(&mut self, new: NewJob, started: String, at: WallClock) -> u64 {
        let id = self.next_id.max(1);
        self.next_id = id + 1;
        let job = Job::begin(id, new, started, at);
        self.changes.add(&job);
        self.all.insert(id, job);
        id
    }

    /// Forgets the oldest of those that have ended.
    pub(crate) fn trim(&mut self) {
        if self.all.len() <= ENDED_MAX {
            return;
        }
        let ended = self.all.values().filter(|job| !job.runs());
        let ended: Vec<u64> = ended.map(|job| job.id).collect();
        let too_many = ended.len().saturating_sub(ENDED_MAX);
        for id in &ended[..too_many] {
            self.all.remove(id);
        }
    }

    /// What a job that runs lives through; one that has ended, or is none, stays as it is.
    fn alive(&mut self, id: u64) -> Option<&mut Job> {
        self.all.get_mut(&id).filter(|job| job.runs())
    }

    /// How far work is.
    pub fn progress(&mut self, id: u64, done: u64, total: u64, at: Now) {
        if let Some(job) = self.alive(id) {
            job.progress(at, done, total);
        }
    }

    /// A line for the log of a job.
    pub fn note(&mut self, id: u64, text: &str, at: WallClock) {
        if let Some(job) = self.alive(id) {
            job.note(at, text);
            self.changes.touch();
        }
    }

    /// Where the API has what a job is about.
    pub fn link(&mut self, id: u64, link: &str) {
        if let Some(job) = self.alive(id) {
            job.link = Some(link.to_owned());
            self.changes.touch();
        }
    }

    /// Work has ended.
    pub fn end(&mut self, id: u64, ending: &Ending, at: WallClock) {
        if let Some(job) = self.all.get_mut(&id).filter(|job| job.runs()) {
            job.end(at, ending);
            self.changes.add(job);
            self.trim();
        }
    }

    /// Somebody wants a job cancelled: it ends soon, as far as it is.
    ///
    /// # Errors
    /// There is no such job, or it has ended.
    pub fn cancel(&mut self, id: u64, by: &str, at: WallClock) -> Result<&Job, Problem> {
        let job = self.all.get_mut(&id).ok_or_else(|| not_found(id))?;
        may_cancel(job)?;
        if !job.cancelling {
            job.cancelling = true;
            job.note(at, &format!("{by} cancels it"));
            self.changes.touch();
        }
        Ok(job)
    }

    /// The job could not be cancelled after all.
    pub fn not_cancelled(&mut self, id: u64, why: &str, at: WallClock) {
        if let Some(job) = self.alive(id) {
            job.cancelling = false;
            job.note(at, &format!("it cannot be cancelled: {why}"));
            self.changes.touch();
        }
    }

    /// What a cancellation would find.
    ///
    /// # Errors
    /// There is no such job, or it has ended.
    pub fn may_cancel(&self, id: u64) -> Result<JobView, Problem> {
        let job = self.all.get(&id).ok_or_else(|| not_found(id))?;
        may_cancel(job)?;
        Ok(job.view())
    }

    /// Somebody wants it cancelled.
    #[must_use]
    pub fn is_cancelling(&self, id: u64) -> bool {
        self.all.get(&id).is_some_and(|job| job.cancelling)
    }

    /// Jobs that run.
    pub fn running(&self) -> impl Iterator<Item = &Job> {
        self.all.values().filter(|job| job.runs())
    }

    /// All jobs, the newest first.
    #[must_use]
    pub fn list(&self) -> Vec<JobView> {
        self.all.values().rev().map(Job::view).collect()
    }

    /// One job.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn job(&self, id: u64) -> Result<JobView, Problem> {
        let job = self.all.get(&id).map(Job::view);
        job.ok_or_else(|| not_found(id))
    }
}

fn may_cancel(job: &Job) -> Result<(), Problem> {
    if job.runs() {
        return Ok(());
    }
    let detail = format!("job {} has ended: {}", job.id, job.state);
    Err(Problem::new(Code::JobOver, detail).hint("there is nothing to cancel any more"))
}

fn not_found(id: u64) -> Problem {
    let detail = format!("there is no job {id}");
    Problem::new(Code::NotFound, detail).hint("`causeway job ls` lists those that are known")
}
