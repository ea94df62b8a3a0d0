//! The journals that the node has.

use crate::journal::known_record::JournalRecord;
use crate::journal::news::{News, Reported};
use crate::journal::pool_journal::PoolJournal;
use env::CoreHandle;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use units::Now;
use volume::OpenError;
use write_back::{Journal, RingStatus, VolumeId};

/// How long a rate of destaging is worth.
const RATE_SPAN: Duration = Duration::from_secs(10);

/// All of them, by pool.
#[derive(Default)]
pub(crate) struct Journals {
    all: RefCell<BTreeMap<String, Entry>>,
    records: RefCell<BTreeMap<String, JournalRecord>>,
}

/// A pool's journal.
struct Entry {
    journal: PoolJournal,
    rate: Rate,
    /// One that was open before and may not have ended.
    ending: Option<Arc<Journal>>,
    /// When a journal that is there is to be tried again; `None`: at once.
    again: Option<Now>,
    /// When its record was checked last.
    followed: Option<Now>,
    /// What was reported of it.
    reported: Reported,
    /// It went away, and all that it held was destaged then.
    destaged: bool,
}

impl Entry {
    fn new(journal: PoolJournal) -> Self {
        Self {
            journal,
            rate: Rate::default(),
            ending: None,
            again: None,
            followed: None,
            reported: Reported::default(),
            destaged: false,
        }
    }
}

/// Bytes a second, lately.
#[derive(Default)]
struct Rate {
    seen: Option<(Now, u64)>,
    per_second: f64,
}

impl Rate {
    /// So many bytes were carried until now.
    fn sample(&mut self, now: Now, bytes: u64) {
        if let Some((then, before)) = self.seen {
            let span = now.since(then).as_secs_f64();
            if span <= 0.0 {
                return;
            }
            #[expect(clippy::cast_precision_loss, reason = "a rate that is shown")]
            let here = bytes.saturating_sub(before) as f64 / span;
            let share = (span / RATE_SPAN.as_secs_f64()).min(1.0);
            self.per_second += share * (here - self.per_second);
        }
        self.seen = Some((now, bytes));
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate that is shown; `as` keeps to the bounds of the type"
    )]
    fn bytes(&self) -> u64 {
        self.per_second as u64
    }
}

impl Journals {
    /// Puts a pool's journal in the place of the one before.
    pub(crate) fn set(&self, pool: &str, journal: PoolJournal) {
        let entry = Entry::new(journal);
        self.all.borrow_mut().insert(pool.to_owned(), entry);
    }

    /// A pool's journal is missing from now on; `was`: the one that was open.
    pub(crate) fn lose(&self, pool: &str, why: OpenError, was: Option<Arc<Journal>>) {
        let mut all = self.all.borrow_mut();
        let entry = all.entry(pool.to_owned());
        let entry = entry.or_insert_with(|| Entry::new(PoolJournal::None));
        entry.journal = PoolJournal::Missing(why);
        entry.again = None;
        if was.is_some() {
            entry.ending = was;
        }
    }

    /// One that went away held nothing any more that was not destaged.
    pub(crate) fn set_destaged(&self, pool: &str) {
        self.with(pool, |entry| entry.destaged = true);
    }

    /// Whether [`Self::set_destaged`] was called.
    pub(crate) fn was_destaged(&self, pool: &str) -> bool {
        self.with(pool, |entry| entry.destaged).unwrap_or(false)
    }

    fn with<T>(&self, pool: &str, inspect: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        self.all.borrow_mut().get_mut(pool).map(inspect)
    }

    /// The journal is not there: it is tried as soon as it is.
    pub(crate) fn saw_away(&self, pool: &str) {
        self.with(pool, |entry| entry.again = None);
    }

    /// A journal that is there is to be tried now.
    pub(crate) fn is_due(&self, pool: &str, now: Now) -> bool {
        let due = self.with(pool, |entry| entry.again.is_none_or(|at| at <= now));
        due.unwrap_or(false)
    }

    /// It is to be tried again then, and not before.
    pub(crate) fn wait_until(&self, pool: &str, again: Now) {
        self.with(pool, |entry| entry.again = Some(again));
    }

    /// It was tried, and is to be tried again then. A reason of another kind is logged.
    pub(crate) fn tried(&self, pool: &str, why: OpenError, again: Now) {
        self.with(pool, |entry| {
            let known =
                matches!(&entry.journal, PoolJournal::Missing(before) if before.kind == why.kind);
            if !known {
                tracing::error!(pool, "its journal cannot be used: {why}");
            }
            entry.journal = PoolJournal::Missing(why);
            entry.again = Some(again);
        });
    }

    /// One that was open before and may not have ended.
    pub(crate) fn ending(&self, pool: &str) -> Option<Arc<Journal>> {
        self.with(pool, |entry| entry.ending.clone()).flatten()
    }

    /// What a pool's journal must be, as far as this process knows.
    pub(crate) fn record(&self, pool: &str) -> Option<JournalRecord> {
        self.records.borrow().get(pool).cloned()
    }

    /// The record of a pool's journal was checked so long ago that it is time again.
    pub(crate) fn is_record_due(&self, pool: &str, now: Now, age: Duration) -> bool {
        let due = self.with(pool, |entry| {
            let due = entry.followed.is_none_or(|at| now.since(at) >= age);
            if due {
                entry.followed = Some(now);
            }
            due
        });
        due.unwrap_or(false)
    }

    /// What a pool's journal must be from now on; `None`: whatever is there.
    pub(crate) fn set_record(&self, pool: &str, record: Option<JournalRecord>) {
        let mut all = self.records.borrow_mut();
        match record {
            Some(record) => all.insert(pool.to_owned(), record),
            None => all.remove(pool),
        };
    }

    /// Nothing is under way any more in the one that was open before.
    pub(crate) fn ended(&self, pool: &str) {
        self.with(pool, |entry| entry.ending = None);
    }

    /// What a pool has.
    pub(crate) fn of(&self, pool: &str) -> PoolJournal {
        let all = self.all.borrow();
        all.get(pool)
            .map_or(PoolJournal::None, |entry| entry.journal.clone())
    }

    /// Those that are open, which are gone from here.
    pub(crate) fn take_open(&self) -> Vec<(String, Arc<Journal>)> {
        let all = std::mem::take(&mut *self.all.borrow_mut());
        let open = all.into_iter().filter_map(|(pool, entry)| {
            let PoolJournal::Open(journal) = entry.journal else {
                return None;
            };
            Some((pool, journal))
        });
        open.collect()
    }

    /// Measures how much was destaged, and answers what is new.
    pub(crate) async fn sample(&self, core: &CoreHandle, pool: &str) -> Vec<(VolumeId, News)> {
        let PoolJournal::Open(journal) = self.of(pool) else {
            return Vec::new();
        };
        let status = journal.status(core).await;
        let carried = status.iter().map(|ring| ring.counts.destaged_bytes).sum();
        let news = self.with(pool, |entry| {
            entry.rate.sample(core.now(), carried);
            entry.reported.update(&status)
        });
        news.unwrap_or_default()
    }

    pub(crate) fn rate(&self, pool: &str) -> u64 {
        let all = self.all.borrow();
        all.get(pool).map_or(0, |entry| entry.rate.bytes())
    }
}

/// Whether all that these rings hold is destaged, and nothing was lost.
pub(crate) fn all_destaged(status: &[RingStatus]) -> bool {
    let is_destaged = |ring: &RingStatus| {
        ring.pages == 0
            && ring.waiting.changes == 0
            && ring.failed.is_none()
            && ring.destage_errors.is_empty()
            && ring.lost.is_empty()
            && ring.lost_sectors.is_empty()
    };
    status.iter().all(is_destaged)
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_rate_follows_what_was_carried_lately() {
        let at = |ms: u64| Now(0).after(Duration::from_millis(ms));
        let mut rate = Rate::default();
        rate.sample(at(0), 0);
        assert_eq!(rate.bytes(), 0);
        for second in 1..=60 {
            rate.sample(at(second * 1000), second * 1_000_000);
        }
        assert!(
            (990_000..=1_000_000).contains(&rate.bytes()),
            "{}",
            rate.bytes()
        );
        rate.sample(at(60_000), 60_000_000);
        for second in 61..=120 {
            rate.sample(at(second * 1000), 60_000_000);
        }
        assert!(rate.bytes() < 10_000, "{}", rate.bytes());
    }
}
