//! The scrubs that the node has.

use crate::scrub::due::next_of;
use layers::scrub::{Bad, BadKind, Job, ScrubProgress, ScrubReport};
use manifest::scrub::{BadBlocks, Damage, ScrubFacts};
use manifest::time::rfc3339;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;

const DAY: Duration = Duration::from_secs(86_400);

/// All scrubs, by NAA identifier.
#[derive(Default)]
pub(crate) struct Scrubs(
    pub(crate) RefCell<BTreeMap<String, Entry>>,
    pub(crate) Cell<Option<Duration>>,
);

pub(crate) struct Entry {
    pub(crate) facts: ScrubFacts,
    pub(crate) block_bytes: u64,
    pub(crate) job: Option<Rc<Job>>,
    pub(crate) waiting: Vec<oneshot::Sender<()>>,
}

impl Scrubs {
    /// They begin by themselves so often, in days; `None`: when somebody asks.
    pub(crate) fn repeat(&self, days: Option<u32>) {
        self.1.set(days.map(|days| DAY * days));
    }

    /// How often they begin by themselves.
    pub(crate) fn every(&self) -> Option<Duration> {
        self.1.get()
    }

    /// What is known of a LUN's.
    pub(crate) fn facts(&self, naa: &str) -> Option<ScrubFacts> {
        let entries = self.0.borrow();
        let entry = entries.get(naa)?;
        let mut facts = entry.facts.clone();
        if let Some(job) = &entry.job {
            fill_in(
                &mut facts,
                entry.block_bytes,
                &job.progress(),
                &job.report(),
            );
            facts.next = None;
        } else if let Some(every) = self.1.get() {
            facts.next = next_of(Some(&facts), every).map(rfc3339);
        }
        Some(facts)
    }

    /// Somebody waits for the end of this LUN's scrub.
    pub(crate) fn is_to_end(&self, naa: &str) -> bool {
        let entries = self.0.borrow();
        entries.get(naa).is_some_and(|it| !it.waiting.is_empty())
    }

    /// Asks a scrub to stop, and waits until it has.
    pub(crate) async fn stop(&self, naa: &str) {
        let ended = {
            let mut entries = self.0.borrow_mut();
            let Some(entry) = entries.get_mut(naa) else {
                return;
            };
            let Some(job) = &entry.job else { return };
            job.stop();
            let (ended, ends) = oneshot::channel();
            entry.waiting.push(ended);
            ends
        };
        // A scrub that is gone has ended, too.
        drop(ended.await);
    }
}

pub(crate) fn fill_in(
    facts: &mut ScrubFacts,
    block_bytes: u64,
    progress: &ScrubProgress,
    report: &ScrubReport,
) {
    facts.done_bytes = progress.position.0 * block_bytes;
    facts.bytes_per_second = progress.bytes_per_second;
    facts.seconds_left = progress.left.map(|left| left.as_secs());
    facts.yields = progress.yields;
    facts.unreadable_blocks = report.unreadable;
    facts.mismatched_blocks = report.mismatched;
    facts.map_pages = report.map_pages;
    let place = |bad: &Bad| BadBlocks {
        lba: bad.range.start().0,
        blocks: bad.range.len().0,
        damage: match bad.kind {
            BadKind::Unreadable => Damage::Unreadable,
            BadKind::Mismatch => Damage::Mismatch,
        },
    };
    facts.places = report.places.iter().map(place).collect();
}
