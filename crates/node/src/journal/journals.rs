//! The journals that the node has, and how they are.

use crate::data_plane::Inner;
use crate::journal::news::{Known, News};
use crate::journal::opening::PoolJournal;
use crate::journal::record::Record;
use crate::lun::layers::journal_id;
use env::CoreHandle;
use manifest::config::Pool;
use manifest::journal::{DestageError, JournalFacts, JournalState, LostBlocks};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use units::Now;
use volume::OpenError;
use write_back::{Journal, RingStatus, VolumeId};

/// How long a rate of destaging is worth.
const RATE_SPAN: Duration = Duration::from_secs(10);

/// Bytes of a page of the index.
const PAGE_BYTES: u64 = 4096;

/// Bytes of the sectors that a journal counts in.
const SECTOR_BYTES: u64 = 512;

/// All of them, by pool.
#[derive(Default)]
pub(crate) struct Journals {
    all: RefCell<BTreeMap<String, Entry>>,
    records: RefCell<BTreeMap<String, Record>>,
}

/// A pool's journal.
struct Entry {
    journal: PoolJournal,
    rate: Rate,
    /// One that was open before and may not have ended.
    ending: Option<Arc<Journal>>,
    /// When a journal that is there is to be tried again; `None`: at once.
    again: Option<Now>,
    /// When its record was looked at last.
    followed: Option<Now>,
    /// What was told of it.
    told: Known,
    /// It went away, and all that it held was at home then.
    at_home: bool,
}

impl Entry {
    fn new(journal: PoolJournal) -> Self {
        Self {
            journal,
            rate: Rate::default(),
            ending: None,
            again: None,
            followed: None,
            told: Known::default(),
            at_home: false,
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

    /// One that went away held nothing any more that was not at home.
    pub(crate) fn set_at_home(&self, pool: &str) {
        self.with(pool, |entry| entry.at_home = true);
    }

    /// As [`Self::set_at_home`] was told.
    pub(crate) fn was_at_home(&self, pool: &str) -> bool {
        self.with(pool, |entry| entry.at_home).unwrap_or(false)
    }

    fn with<T>(&self, pool: &str, look: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        self.all.borrow_mut().get_mut(pool).map(look)
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

    /// It was tried, and is to be tried again then. A new reason is logged.
    pub(crate) fn tried(&self, pool: &str, why: OpenError, again: Now) {
        self.with(pool, |entry| {
            let known = matches!(&entry.journal, PoolJournal::Missing(before) if *before == why);
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
    pub(crate) fn record(&self, pool: &str) -> Option<Record> {
        self.records.borrow().get(pool).cloned()
    }

    /// The record of a pool's journal was looked at so long ago that it is time again.
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
    pub(crate) fn set_record(&self, pool: &str, record: Option<Record>) {
        let mut all = self.records.borrow_mut();
        match record {
            Some(record) => all.insert(pool.to_owned(), record),
            None => all.remove(pool),
        };
    }

    /// It has ended.
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

    /// Looks how much was destaged, and answers what is new.
    pub(crate) async fn sample(&self, core: &CoreHandle, pool: &str) -> Vec<(VolumeId, News)> {
        let PoolJournal::Open(journal) = self.of(pool) else {
            return Vec::new();
        };
        let status = journal.status(core).await;
        let carried = status.iter().map(|ring| ring.destaged_bytes).sum();
        let news = self.with(pool, |entry| {
            entry.rate.sample(core.now(), carried);
            entry.told.look(&status)
        });
        news.unwrap_or_default()
    }

    fn rate(&self, pool: &str) -> u64 {
        let all = self.all.borrow();
        all.get(pool).map_or(0, |entry| entry.rate.bytes())
    }
}

/// Whether all that these rings hold is at home, and nothing was lost.
pub(crate) fn all_at_home(status: &[RingStatus]) -> bool {
    let home = |ring: &RingStatus| {
        ring.pages == 0
            && ring.waiting_changes == 0
            && ring.failed.is_none()
            && ring.destage_errors.is_empty()
            && ring.lost.is_empty()
            && ring.lost_sectors.is_empty()
    };
    status.iter().all(home)
}

/// How the journals of all pools are that have one, by pool.
pub(crate) async fn journals(node: &Inner) -> BTreeMap<String, JournalFacts> {
    let mut out = BTreeMap::new();
    for pool in &node.config.pools {
        let facts = match node.journals.of(&pool.name) {
            PoolJournal::None => continue,
            PoolJournal::Missing(error) => {
                let problem = format!("{} ({})", error.cause, error.next_step);
                JournalFacts::missing(shown(pool), problem)
            }
            PoolJournal::Open(journal) => {
                let status = journal.status(&node.core).await;
                open(node, pool, &journal, &status)
            }
        };
        out.insert(pool.name.clone(), facts);
    }
    out
}

/// The path as messages say it.
fn shown(pool: &Pool) -> String {
    let Some(path) = &pool.journal else {
        return "none".to_owned();
    };
    let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
    path.display().to_string()
}

fn open(node: &Inner, pool: &Pool, journal: &Journal, status: &[RingStatus]) -> JournalFacts {
    let sum = |of: fn(&RingStatus) -> u64| status.iter().map(of).sum();
    let failed = status.iter().find_map(|ring| ring.failed.clone());
    let oldest = status.iter().filter_map(|ring| ring.oldest).max();
    let mut destage_errors: Vec<DestageError> = Vec::new();
    for (volume, reason) in status.iter().flat_map(|ring| &ring.destage_errors) {
        let (lun, reason) = (node.lun_of(*volume), reason.clone());
        if !destage_errors.iter().any(|it| it.lun == lun) {
            destage_errors.push(DestageError { lun, reason });
        }
    }
    let lost = status.iter().flat_map(|ring| &ring.lost);
    let lost = lost.map(|(volume, sectors)| node.lost_blocks(*volume, sectors));
    let mut lost_blocks = BTreeMap::new();
    for (volume, sectors) in status.iter().flat_map(|ring| &ring.lost_sectors) {
        let lost = node.lost_blocks(*volume, &(0..*sectors));
        *lost_blocks.entry(lost.lun).or_default() += lost.blocks;
    }
    let state = if failed.is_some() {
        JournalState::Failed
    } else {
        JournalState::Open
    };
    JournalFacts {
        path: shown(pool),
        state,
        problem: failed,
        full: status.iter().any(|ring| ring.full),
        size_bytes: journal.bytes(),
        used_bytes: sum(|ring| ring.used_blocks * PAGE_BYTES),
        rings: journal.rings(),
        pending_bytes: sum(|ring| ring.pages * PAGE_BYTES),
        oldest_ms: oldest.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
        destaged_bytes_per_second: node.journals.rate(&pool.name),
        batches: sum(|ring| ring.batches),
        changes: sum(|ring| ring.records),
        written_bytes: sum(|ring| ring.written_bytes),
        destaged_bytes: sum(|ring| ring.destaged_bytes),
        write_around_bytes: sum(|ring| ring.write_around_bytes),
        index_bytes: sum(|ring| ring.index_bytes),
        history_bytes: sum(|ring| ring.history_bytes),
        waiting_changes: sum(|ring| ring.waiting_changes),
        waiting_bytes: sum(|ring| ring.waiting_bytes),
        throttled: sum(|ring| ring.throttled),
        misreads: sum(|ring| ring.misreads),
        replayed_batches: journal.replayed(),
        lost: lost.collect(),
        lost_blocks,
        destage_errors,
    }
}

impl Inner {
    /// The name of the LUN that a journal knows by this number; the number, where no LUN has it.
    pub(crate) fn lun_of(&self, volume: VolumeId) -> String {
        self.lun_and_block_bytes(volume).0
    }

    /// The blocks of a LUN that lie in these sectors of 512 bytes.
    pub(crate) fn lost_blocks(&self, volume: VolumeId, sectors: &Range<u64>) -> LostBlocks {
        let (lun, block_bytes) = self.lun_and_block_bytes(volume);
        let in_block = (u64::from(block_bytes) / SECTOR_BYTES).max(1);
        let lba = sectors.start / in_block;
        let blocks = sectors.end.div_ceil(in_block) - lba;
        LostBlocks { lun, lba, blocks }
    }

    fn lun_and_block_bytes(&self, volume: VolumeId) -> (String, u32) {
        let objects = self.objects.borrow();
        let mut known = objects.luns.iter().chain(&objects.removed);
        let found = known.find(|(_, lun)| journal_id(lun) == volume);
        found.map_or_else(
            || (format!("{:016x}", volume.0), 512),
            |(name, lun)| (name.clone(), lun.block_size),
        )
    }
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
