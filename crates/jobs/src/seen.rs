//! Work that goes on by itself, and the jobs that are made of seeing it.

use crate::job::{Ending, Job, NewJob};
use crate::jobs::Jobs;
use crate::memory::Name;
use manifest::job::{JobState, JobUnit};
use std::collections::{BTreeMap, BTreeSet};
use units::{Now, WallClock};

/// The most jobs that run at a time; more are not kept.
const RUNNING_MAX: usize = 20_000;

/// Work that goes on by itself, as it was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sighting {
    /// `scrub`, for one.
    pub kind: &'static str,
    /// The LUN that it is done to, by its name.
    pub object: String,
    /// Its NAA identifier.
    pub key: String,
    /// When it began (RFC 3339): with kind and key it says which work it is.
    pub started: String,
    /// Bytes that are done.
    pub done: u64,
    /// Bytes that there are to do.
    pub total: u64,
    /// Bytes a second, and seconds left, as whoever does it says.
    pub rate: (u64, Option<u64>),
    /// Where the API has more of it.
    pub link: String,
    /// How it ended, where it has.
    pub ended: Option<Ending>,
}

/// The newest job of each.
type Newest = BTreeMap<Name, u64>;

impl Jobs {
    /// Somebody has work begin that will be seen at once.
    pub fn want(&mut self, kind: &str, key: &str, by: &str) {
        let key = (kind.to_owned(), key.to_owned());
        self.seen.wanted.insert(key, by.to_owned());
    }

    /// It was seen, or did not begin: what begins later is somebody else's.
    pub fn unwant(&mut self, kind: &str, key: &str) {
        self.seen.wanted.remove(&(kind.to_owned(), key.to_owned()));
    }

    /// All work of these kinds, as it is now. What is not seen any more has ended.
    pub fn observe(
        &mut self,
        sightings: &[Sighting],
        kinds: &[&str],
        (steady, wall): (Now, WallClock),
    ) {
        let jobs = self.all.values();
        let of_kinds = jobs.filter(|job| kinds.contains(&job.kind.as_str()));
        let newest = of_kinds.map(|job| ((job.kind.clone(), job.key.clone()), job.id));
        let newest: Newest = newest.collect();
        let mut running = self.running().count();
        let mut seen = BTreeSet::new();
        for sighting in sightings {
            if let Some(id) = self.of(sighting, &newest, &mut running, wall) {
                seen.insert(id);
                self.take(id, sighting, steady, wall);
            }
        }
        let is_gone = |job: &&mut Job| {
            job.runs() && kinds.contains(&job.kind.as_str()) && !seen.contains(&job.id)
        };
        for job in self.all.values_mut().filter(is_gone) {
            job.end(wall, &Ending::Failed("it is not there any more".to_owned()));
            self.changes.add(job);
        }
        let name = |it: &Sighting| (it.kind.to_owned(), it.key.clone());
        let now = sightings.iter().map(|it| (name(it), it.started.clone()));
        self.seen
            .started
            .retain(|(kind, _), _| !kinds.contains(&kind.as_str()));
        self.seen.started.extend(now);
        self.trim();
    }

    /// The job of work that was seen, which is made where there is none.
    fn of(
        &mut self,
        sighting: &Sighting,
        newest: &Newest,
        running: &mut usize,
        wall: WallClock,
    ) -> Option<u64> {
        let name = (sighting.kind.to_owned(), sighting.key.clone());
        let last = newest.get(&name).and_then(|id| self.all.get(id));
        if let Some(last) = last.filter(|last| last.started == sighting.started) {
            return Some(last.id);
        }
        // What had ended when it was first seen is history, unless it is newer than all that is
        // known. The job of what was seen may be forgotten by now.
        let known = self
            .seen
            .started
            .get(&name)
            .or(last.map(|last| &last.started));
        let known = known.unwrap_or(&self.seen.since);
        let is_news = sighting.ended.is_none() || *known < sighting.started;
        if *running >= RUNNING_MAX || !is_news {
            return None;
        }
        *running += 1;
        let by = self.seen.wanted.remove(&name);
        let new = NewJob {
            kind: name.0,
            object: sighting.object.clone(),
            key: name.1,
            by: by.unwrap_or_else(|| "schedule".to_owned()),
            unit: JobUnit::Bytes,
            total: sighting.total,
            link: Some(sighting.link.clone()),
        };
        Some(self.insert(new, sighting.started.clone(), wall))
    }

    fn take(&mut self, id: u64, sighting: &Sighting, steady: Now, wall: WallClock) {
        let Some(job) = self.all.get_mut(&id) else {
            return;
        };
        let name = (sighting.kind.to_owned(), sighting.key.clone());
        job.object.clone_from(&sighting.object);
        job.link = Some(sighting.link.clone());
        match (&sighting.ended, job.state) {
            (_, JobState::Running) => {}
            (None, _) => {
                let by = self.seen.wanted.remove(&name);
                job.go_on(wall, by.as_deref());
                self.changes.add(job);
            }
            // It ended when nobody saw it.
            (Some(_), JobState::Interrupted) => {}
            (Some(_), _) => return,
        }
        job.progress(steady, sighting.done, sighting.total);
        job.reported = Some(sighting.rate);
        if let Some(ending) = &sighting.ended {
            let is_cancelled = job.cancelling && *ending != Ending::Finished;
            let ending = if is_cancelled {
                &Ending::Cancelled
            } else {
                ending
            };
            job.end(wall, ending);
            self.changes.add(job);
        }
    }
}
