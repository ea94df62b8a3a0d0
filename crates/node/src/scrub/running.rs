//! Scrubs of the LUNs in service.
//!
//! **Contract.** One scrub a LUN. What it has done is kept in `scrubs/` of the state directory, at
//! least every ten seconds: one that ran when the daemon ended goes on when it starts, one that was
//! stopped goes on when it is started.

use crate::inner::Inner;
use crate::lun::layers::door::Base;
use crate::lun::unit::Unit;
use crate::pool::late;
use crate::scrub::due::most_due;
use crate::scrub::scrubs::Entry;
use crate::scrub::scrubs::fill_in;
use env::durable::{make_dir, read_file, remove_file, replace_file};
use layers::scrub::{Bad, BadKind, End, Job, Machine, ScrubReport};
use manifest::code::Code;
use manifest::document::{self, DocumentError};
use manifest::objects::Lun;
use manifest::problem::Problem;
use manifest::scrub::{BadBlocks, Damage, ScrubFacts, ScrubOp, ScrubState};
use manifest::time::rfc3339;
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, Lba, LbaRange, WallClock};
use volume::OpKind;

/// The longest record that is read back.
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// What the record of a scrub is called in its file.
const RECORD: &str = "scrub";

/// What a scrub that goes on had found.
fn report_of(facts: &ScrubFacts) -> ScrubReport {
    let bad = |bad: &BadBlocks| {
        let range = LbaRange::new(Lba(bad.lba), BlockCount(bad.blocks))?;
        let kind = match bad.damage {
            Damage::Unreadable => BadKind::Unreadable,
            Damage::Mismatch => BadKind::Mismatch,
        };
        Some(Bad { range, kind })
    };
    ScrubReport {
        unreadable: facts.unreadable_blocks,
        mismatched: facts.mismatched_blocks,
        map_pages: facts.map_pages,
        places: facts.places.iter().filter_map(bad).collect(),
    }
}

/// The record of a scrub, from its file.
fn record_of(text: &[u8]) -> Result<ScrubFacts, DocumentError> {
    document::parse(RECORD, text)
}

impl Inner {
    fn scrub_file(&self, naa: &str) -> PathBuf {
        self.config
            .state_dir
            .join("scrubs")
            .join(format!("{naa}.json"))
    }

    /// Reads what was kept, and goes on with what ran.
    pub(crate) async fn resume_scrubs(self: &Rc<Self>) {
        let units: Vec<(String, Rc<Unit>)> = {
            let units = self.units.borrow();
            units
                .iter()
                .map(|(naa, unit)| (naa.clone(), Rc::clone(unit)))
                .collect()
        };
        for (naa, unit) in units {
            let file = self.scrub_file(&naa);
            let Ok(text) = read_file(&*self.core.files(), &file, RECORD_BYTES_MAX).await else {
                continue;
            };
            let facts = match record_of(&text) {
                Ok(facts) => facts,
                Err(why) => {
                    tracing::warn!(
                        lun = &*unit.name(),
                        "the record of its last scrub in {} cannot be used: {why}",
                        file.display()
                    );
                    continue;
                }
            };
            let runs = facts.state == ScrubState::Running;
            let verified = facts.last_verified().map(str::to_owned);
            let facts = ScrubFacts { verified, ..facts };
            let entry = Entry {
                facts,
                block_bytes: unit.block_bytes,
                job: None,
                waiting: Vec::new(),
            };
            self.scrubs.0.borrow_mut().insert(naa.clone(), entry);
            if runs && let Err(problem) = self.start_scrub(&naa).await {
                tracing::warn!(
                    lun = &*unit.name(),
                    "its scrub does not go on: {}",
                    problem.detail
                );
            }
        }
    }

    /// Does what is asked of a LUN's scrub.
    pub(crate) async fn scrub(
        self: &Rc<Self>,
        naa: &str,
        operation: ScrubOp,
    ) -> Result<ScrubFacts, Problem> {
        match operation {
            ScrubOp::Start => self.start_scrub(naa).await?,
            ScrubOp::Stop => self.scrubs.stop(naa).await,
        }
        let none = || {
            Problem::new(Code::NotFound, "it has never been scrubbed")
                .hint("causeway scrub start LUN")
        };
        self.scrubs.facts(naa).ok_or_else(none)
    }

    async fn start_scrub(self: &Rc<Self>, naa: &str) -> Result<(), Problem> {
        if self
            .scrubs
            .0
            .borrow()
            .get(naa)
            .is_some_and(|entry| entry.job.is_some())
        {
            return Ok(());
        }
        let unit = self.unit(naa);
        let offline = || Problem::new(Code::LunOffline, "a LUN that is offline cannot be scrubbed");
        let unit = unit.filter(|unit| unit.offline().is_none());
        let unit = unit.ok_or_else(offline)?;
        let base = unit.base(&self.core).await;
        let base = base.map_err(|error| crate::lun::failed::backing_failed(&error))?;
        let begun = self.begin_scrub(naa, base.ok_or_else(offline)?);
        if let Some((job, from)) = begun {
            tracing::info!(lun = &*unit.name(), from, "scrub runs");
            self.core.spawn(Box::pin(run(
                Rc::clone(self),
                naa.to_owned(),
                unit.name(),
                job,
            )));
        }
        Ok(())
    }

    /// The job of a scrub, new or where the last one was stopped, and its first block; `None` where
    /// another request was faster.
    fn begin_scrub(
        self: &Rc<Self>,
        naa: &str,
        Base { shape, lane, map }: Base,
    ) -> Option<(Rc<Job>, u64)> {
        let mut entries = self.scrubs.0.borrow_mut();
        let before = entries.get(naa);
        if before.is_some_and(|entry| entry.job.is_some()) {
            return None;
        }
        let verified = before.and_then(|entry| entry.facts.last_verified().map(str::to_owned));
        let goes_on = |facts: &&ScrubFacts| facts.state != ScrubState::Finished;
        // One that goes on has what it found; a new one begins at nothing.
        let found_before = before.map_or(0, |entry| match &entry.facts {
            facts if goes_on(&facts) => facts.found_before,
            facts => facts.found_before.saturating_add(facts.found()),
        });
        let before = before.map(|entry| &entry.facts).filter(goes_on);
        let block_bytes = u64::from(shape.block_size.bytes());
        let position = Lba(before.map_or(0, |facts| facts.done_bytes / block_bytes));
        let report = before.map(report_of).unwrap_or_default();
        let bytes = shape.block_size.bytes();
        let physical = bytes << shape.physical_block_exponent;
        let finest = map.as_ref().map_or(physical, |map| map.covered_bytes());
        let machine = Machine::new(shape.block_count, [bytes, finest], position, report);
        let now = || rfc3339(self.core.wall_clock());
        let started = before.map_or_else(now, |facts| facts.started.clone());
        let mut facts = ScrubFacts {
            verified,
            found_before,
            ..ScrubFacts::begun(started, shape.byte_count().0)
        };
        let job = Job::new(
            machine,
            (lane, shape.limits.transfer_blocks_max),
            map,
            count(Rc::downgrade(self)),
            keep(Rc::downgrade(self), naa.to_owned()),
        );
        fill_in(&mut facts, block_bytes, &job.progress(), &job.report());
        let entry = Entry {
            facts,
            block_bytes,
            job: Some(Rc::clone(&job)),
            waiting: Vec::new(),
        };
        entries.insert(naa.to_owned(), entry);
        Some((job, position.0))
    }

    /// The LUN whose scrub is due, where none runs.
    pub(crate) fn scrub_due(&self, every: Duration, now: WallClock) -> Option<String> {
        let entries = self.scrubs.0.borrow();
        if entries.values().any(|entry| entry.job.is_some()) {
            return None;
        }
        let units = self.units.borrow();
        let online = units.iter().filter(|(_, unit)| unit.offline().is_none());
        let luns = online.map(|(naa, _)| {
            let facts = entries.get(naa).map(|entry| &entry.facts);
            (naa.as_str(), facts)
        });
        most_due(luns, every, now).map(str::to_owned)
    }

    /// Begins the scrub of a LUN whose time has come.
    pub(crate) async fn begin_due(self: &Rc<Self>, naa: &str) -> Result<(), Problem> {
        self.start_scrub(naa).await
    }

    /// A LUN goes out of service.
    pub(crate) async fn stop_scrub(&self, naa: &str) {
        self.scrubs.stop(naa).await;
    }

    /// A LUN goes offline for a while: what runs now goes on when it is back.
    pub(crate) async fn rest_scrub(&self, naa: &str) {
        let runs = |entry: &Entry| entry.job.is_some();
        if !self.scrubs.0.borrow().get(naa).is_some_and(runs) {
            return;
        }
        self.scrubs.stop(naa).await;
        if let Some(entry) = self.scrubs.0.borrow_mut().get_mut(naa) {
            entry.facts.state = ScrubState::Running;
            entry.facts.ended = None;
        }
        self.keep_scrub(naa).await;
    }

    /// A LUN is back: a scrub that ran when it went goes on.
    pub(crate) async fn go_on_scrubbing(self: &Rc<Self>, naa: &str) {
        let rests = |entry: &Entry| entry.job.is_none() && entry.facts.state == ScrubState::Running;
        if !self.scrubs.0.borrow().get(naa).is_some_and(rests) {
            return;
        }
        if let Err(problem) = self.start_scrub(naa).await {
            tracing::warn!("the scrub of {naa} does not go on: {}", problem.detail);
        }
    }

    /// The daemon ends: what runs now goes on with the next one.
    pub(crate) async fn rest_scrubs(&self) {
        let running: Vec<String> = {
            let entries = self.scrubs.0.borrow();
            let running = entries.iter().filter(|(_, entry)| entry.job.is_some());
            running.map(|(naa, _)| naa.clone()).collect()
        };
        for naa in running {
            self.rest_scrub(&naa).await;
        }
    }

    /// A LUN is destroyed: nothing is known of its blocks any more.
    pub(crate) async fn forget_scrub(&self, lun: &Lun) {
        self.scrubs.0.borrow_mut().remove(&lun.naa);
        let gone = remove_file(&*self.core.files(), &self.scrub_file(&lun.naa)).await;
        if let Err(error) = gone {
            tracing::warn!("the record of a scrub is left behind: {error}");
        }
    }

    pub(crate) async fn keep_scrub(&self, naa: &str) {
        let Some(facts) = self.scrubs.facts(naa) else {
            return;
        };
        let text = serde_json::to_vec(&facts).expect("facts are plain words and numbers");
        let text = document::write(RECORD, &text);
        let file = self.scrub_file(naa);
        let kept = async {
            let directory = file.parent().expect("it was joined to one");
            make_dir(&*self.core.files(), directory).await?;
            replace_file(&*self.core.files(), &file, &text).await
        };
        self.unsaved.note(
            late::Late::Scrub(naa.to_owned()),
            format_args!("how far a scrub is could not be kept in {}", file.display()),
            kept.await.map_err(|error| late::not_taken(&error)),
        );
    }
}

/// What hosts have done on all LUNs: they may share a disk.
fn count(node: Weak<Inner>) -> layers::scrub::Count {
    Box::new(move || {
        let node = node.upgrade();
        Box::pin(async move {
            let Some(node) = node else { return 0 };
            let units: Vec<Rc<Unit>> = node.units.borrow().values().cloned().collect();
            let mut operations = 0;
            for unit in units {
                let counters = unit.parts().meter.read(&node.core).await;
                operations += OpKind::ALL
                    .iter()
                    .map(|kind| counters.of(*kind).started)
                    .sum::<u64>();
            }
            operations
        })
    })
}

fn keep(node: Weak<Inner>, naa: String) -> layers::scrub::Keep {
    Box::new(move |_, _| {
        let (node, naa) = (node.upgrade(), naa.clone());
        Box::pin(async move {
            if let Some(node) = node {
                node.keep_scrub(&naa).await;
            }
        })
    })
}

async fn run(node: Rc<Inner>, naa: String, name: Arc<str>, job: Rc<Job>) {
    let around = node.inspect_metadata(&naa).await;
    let is_whole = around.is_good();
    if let Some(entry) = node.scrubs.0.borrow_mut().get_mut(&naa) {
        (entry.facts.journal, entry.facts.metadata) = (around.journal, around.metadata);
    }
    let end = Rc::clone(&job).run(Rc::clone(&node.core)).await;
    let report = job.report();
    let waiting = {
        let mut entries = node.scrubs.0.borrow_mut();
        let Some(entry) = entries.get_mut(&naa) else {
            return;
        };
        fill_in(
            &mut entry.facts,
            entry.block_bytes,
            &job.progress(),
            &report,
        );
        entry.facts.bytes_per_second = 0;
        entry.facts.seconds_left = None;
        entry.facts.yields = false;
        entry.facts.ended = Some(rfc3339(node.core.wall_clock()));
        (entry.facts.state, entry.facts.reason) = match end {
            End::Finished => (ScrubState::Finished, None),
            End::Stopped => (ScrubState::Stopped, None),
            End::GivenUp(why) => (ScrubState::GivenUp, Some(why.to_owned())),
        };
        if entry.facts.state == ScrubState::Finished {
            entry.facts.verified.clone_from(&entry.facts.ended);
        }
        entry.job = None;
        std::mem::take(&mut entry.waiting)
    };
    node.keep_scrub(&naa).await;
    let (unreadable, mismatched, pages) = (report.unreadable, report.mismatched, report.map_pages);
    if report.is_good() && is_whole {
        tracing::info!(lun = &*name, ?end, "scrub ended");
    } else {
        tracing::error!(
            lun = &*name,
            ?end,
            unreadable,
            mismatched,
            pages,
            "scrub ended, and found damage"
        );
    }
    for ended in waiting {
        // Whoever asked may have gone.
        let _ = ended.send(());
    }
}
