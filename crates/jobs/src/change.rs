//! What is worth an event: a job begins, or ends.

use crate::job::Job;
use manifest::job::JobState;
use std::collections::VecDeque;

/// The most changes that wait to be taken; the oldest are dropped.
const WAITING_MAX: usize = 1_000;

/// Whether a job began, or how it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// It began, or goes on where it was.
    Began,
    /// All of it is done.
    Finished,
    /// It could not be done, or the daemon ended before it did.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
}

/// A job began or ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Beginning or end, and which end.
    pub what: What,
    /// Its number.
    pub id: u64,
    /// `lun_grow`, for one.
    pub kind: String,
    /// The name of the LUN, or of what else it is done to.
    pub object: String,
    /// Who began it.
    pub by: String,
    /// Why it failed.
    pub reason: Option<String>,
}

impl Change {
    fn of(job: &Job) -> Self {
        let what = match job.state {
            JobState::Running => What::Began,
            JobState::Finished => What::Finished,
            JobState::Cancelled => What::Cancelled,
            JobState::Failed | JobState::Interrupted => What::Failed,
        };
        let interrupted = || "the daemon ended before it did".to_owned();
        let is_interrupted = job.state == JobState::Interrupted;
        Self {
            what,
            id: job.id,
            kind: job.kind.clone(),
            object: job.object.clone(),
            by: job.by.clone(),
            reason: job
                .reason
                .clone()
                .or_else(|| is_interrupted.then(interrupted)),
        }
    }
}

/// Changes that nobody has taken yet.
#[derive(Default, Debug)]
pub(crate) struct Changes {
    waiting: VecDeque<Change>,
    /// What is stored is not what there is.
    is_unstored: bool,
}

impl Changes {
    /// This job began or ended.
    pub(crate) fn add(&mut self, job: &Job) {
        self.waiting.push_back(Change::of(job));
        if self.waiting.len() > WAITING_MAX {
            self.waiting.pop_front();
        }
        self.touch();
    }

    /// Something is to be stored.
    pub(crate) fn touch(&mut self) {
        self.is_unstored = true;
    }

    pub(crate) fn take(&mut self) -> Vec<Change> {
        self.waiting.drain(..).collect()
    }

    pub(crate) fn take_unstored(&mut self) -> bool {
        std::mem::take(&mut self.is_unstored)
    }
}
