//! The journals that the node has, and how they are.

use crate::inner::Inner;
use crate::journal::pool_journal::PoolJournal;
use crate::lun::layers::journal_id;
use manifest::config::Pool;
use manifest::journal::{DestageError, JournalFacts, JournalState, LostBlocks};
use std::collections::BTreeMap;
use std::ops::Range;
use write_back::{Journal, RingStatus, VolumeId};

/// Bytes of a page of the index.
const PAGE_BYTES: u64 = 4096;

/// Bytes of the sectors that a journal counts in.
const SECTOR_BYTES: u64 = 512;

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

/// Bytes of each LUN whose newest data is in a journal that is open, of those that have some.
pub(crate) async fn pending(node: &Inner) -> BTreeMap<VolumeId, u64> {
    let mut all = BTreeMap::new();
    for pool in &node.config.pools {
        if let PoolJournal::Open(journal) = node.journals.of(&pool.name) {
            let pages = journal.pages(&node.core).await;
            all.extend(
                pages
                    .into_iter()
                    .map(|(lun, pages)| (lun, pages * PAGE_BYTES)),
            );
        }
    }
    all
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
        batches: sum(|ring| ring.counts.batches),
        changes: sum(|ring| ring.counts.records),
        written_bytes: sum(|ring| ring.counts.written_bytes),
        destaged_bytes: sum(|ring| ring.counts.destaged_bytes),
        write_around_bytes: sum(|ring| ring.counts.write_around_bytes),
        index_bytes: sum(|ring| ring.index_bytes),
        history_bytes: sum(|ring| ring.history_bytes),
        waiting_changes: sum(|ring| ring.waiting.changes),
        waiting_bytes: sum(|ring| ring.waiting.bytes),
        throttled: sum(|ring| ring.waiting.throttled),
        misreads: sum(|ring| ring.counts.misreads),
        replayed_batches: journal.replayed(),
        replay_ms: u64::try_from(journal.replay_took().as_millis()).unwrap_or(u64::MAX),
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
