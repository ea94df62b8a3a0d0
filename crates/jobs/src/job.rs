//! A job and what happened to it.

use crate::rate::Rate;
use manifest::job::{JobLine, JobState, JobUnit, JobView};
use manifest::time::{parse, rfc3339};
use serde::{Deserialize, Serialize};
use units::{Now, WallClock};

/// The most lines of a log: the first, and the last ones.
const LINES_MAX: usize = 100;

/// The longest line, in characters.
const LINE_CHARACTERS_MAX: usize = 500;

/// How a job ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// All of it is done.
    Finished,
    /// It could not be done, and why.
    Failed(String),
    /// Somebody cancelled it.
    Cancelled,
}

/// Work that begins.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct NewJob {
    /// What is done: `lun_grow`, for one.
    pub kind: String,
    /// What it is done to, by its name.
    pub object: String,
    /// What stays when that is renamed, where that can be: the NAA identifier of a LUN.
    pub key: String,
    /// A user, a token, or `schedule`.
    pub by: String,
    /// What its figures count.
    pub unit: JobUnit,
    /// How much there is to do; 0: nobody knows.
    pub total: u64,
    /// Where the API has what it is about, or what it makes.
    pub link: Option<String>,
}

/// Work that takes long, from its beginning on.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Job {
    /// Its number.
    pub id: u64,
    /// What is done: `scrub`, `lun_create`, `lun_grow`.
    pub kind: String,
    /// What it is done to, by its name.
    pub object: String,
    /// What stays when that is renamed: the NAA identifier.
    pub key: String,
    /// Whether it runs, or how it ended.
    pub state: JobState,
    /// What is counted.
    #[serde(default)]
    pub unit: JobUnit,
    /// How much is done.
    pub done: u64,
    /// How much there is to do.
    pub total: u64,
    /// When it began (RFC 3339).
    pub started: String,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Who began it: a user, a token, or `schedule`.
    pub by: String,
    /// Somebody wants it cancelled.
    #[serde(default)]
    pub cancelling: bool,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where the API has what it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// What happened to it.
    pub log: Vec<JobLine>,
    /// How fast it goes.
    #[serde(skip)]
    pub rate: Rate,
    /// What whoever does it says of that, instead.
    #[serde(skip)]
    pub reported: Option<(u64, Option<u64>)>,
}

impl Job {
    pub(crate) fn begin(id: u64, new: NewJob, started: String, at: WallClock) -> Self {
        let begun = format!("begun by {}", new.by);
        let mut job = Self {
            id,
            kind: new.kind,
            object: new.object,
            key: new.key,
            state: JobState::Running,
            unit: new.unit,
            done: 0,
            total: new.total,
            started,
            ended: None,
            by: new.by,
            cancelling: false,
            reason: None,
            link: new.link,
            log: Vec::new(),
            rate: Rate::default(),
            reported: None,
        };
        job.note(at, &begun);
        job
    }

    pub(crate) fn note(&mut self, at: WallClock, text: &str) {
        if self.log.len() >= LINES_MAX {
            self.log.remove(1);
        }
        let clean = |letter: char| if letter.is_control() { ' ' } else { letter };
        self.log.push(JobLine {
            at: rfc3339(at),
            text: text.chars().take(LINE_CHARACTERS_MAX).map(clean).collect(),
        });
    }

    /// Takes how far it is.
    pub(crate) fn progress(&mut self, at: Now, done: u64, total: u64) {
        self.done = done;
        self.total = total.max(done);
        self.rate.take(at, done);
    }

    pub(crate) fn end(&mut self, at: WallClock, ending: &Ending) {
        self.ended = Some(rfc3339(at));
        self.cancelling = false;
        self.state = match ending {
            Ending::Finished => {
                self.done = self.total;
                self.note(at, "finished");
                JobState::Finished
            }
            Ending::Cancelled => {
                self.note(at, "cancelled");
                JobState::Cancelled
            }
            Ending::Failed(why) => {
                self.note(at, &format!("failed: {why}"));
                self.reason = Some(why.clone());
                JobState::Failed
            }
        };
    }

    /// The daemon ended before it did.
    pub(crate) fn interrupt(&mut self, at: WallClock) {
        self.state = JobState::Interrupted;
        self.ended = Some(rfc3339(at));
        self.cancelling = false;
        self.note(at, "interrupted: the daemon ended");
    }

    /// It runs again, from where it was.
    pub(crate) fn go_on(&mut self, at: WallClock, by: Option<&str>) {
        self.state = JobState::Running;
        self.ended = None;
        self.reason = None;
        let by = by.map_or_else(String::new, |by| format!(", by {by}"));
        self.note(at, &format!("goes on where it was{by}"));
    }

    /// It has not ended.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.state == JobState::Running
    }

    /// As it is shown.
    #[must_use]
    pub fn view(&self) -> JobView {
        let to_do = self.total - self.done.min(self.total);
        let measured = (self.rate.per_second(), self.rate.seconds_left(to_do));
        let (rate, left) = self.reported.unwrap_or(measured);
        let percent = (u128::from(self.done) * 100).checked_div(u128::from(self.total));
        let unknown = if self.state == JobState::Finished {
            100
        } else {
            0
        };
        JobView {
            id: self.id,
            kind: self.kind.clone(),
            object: self.object.clone(),
            state: self.state,
            cancelling: self.cancelling,
            unit: self.unit,
            done: self.done,
            total: self.total,
            percent: u8::try_from(percent.unwrap_or(unknown)).unwrap_or(100),
            rate: if self.runs() { rate } else { 0 },
            seconds_left: left.filter(|_| self.runs()),
            started: self.started.clone(),
            ended: self.ended.clone(),
            by: self.by.clone(),
            reason: self.reason.clone(),
            link: self.link.clone(),
            log: self.log.clone(),
        }
    }

    /// What of a file may be one.
    pub(crate) fn is_whole(&self) -> bool {
        parse(&self.started).is_some() && self.log.len() <= LINES_MAX
    }
}
