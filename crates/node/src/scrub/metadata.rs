//! What a scrub reads besides the LUN itself: the journal of its pool, its changed-block map, the
//! superblocks of the pool's members, and what is stored of objects and of the LUN's state.

use crate::inner::Inner;
use crate::journal::pool_journal::PoolJournal;
use crate::lun::layers::journal_id;
use manifest::objects::Lun;
use manifest::scrub::JournalScrub;
use std::time::Duration;
use tokio::sync::MutexGuard;
use write_back::Journal;

/// Between two checks whether a change of LUNs is still under way.
const RETRY_AFTER: Duration = Duration::from_millis(20);

/// What it found there.
#[derive(Default)]
pub(crate) struct Around {
    /// Of the journal; `None`: the pool has none.
    pub(crate) journal: Option<JournalScrub>,
    /// Of the rest: what is wrong, a sentence each.
    pub(crate) metadata: Vec<String>,
}

impl Around {
    pub(crate) fn is_good(&self) -> bool {
        let journal = self.journal.as_ref();
        self.metadata.is_empty()
            && journal.is_none_or(|it| it.damage() == 0 && it.problem.is_none())
    }
}

impl Inner {
    /// Reads all that a LUN depends on besides its blocks and their checksums.
    pub(crate) async fn inspect_metadata(&self, naa: &str) -> Around {
        let lun = {
            let objects = self.objects.borrow();
            objects.luns.values().find(|lun| lun.naa == naa).cloned()
        };
        let Some(lun) = lun else {
            return Around::default();
        };
        let mut found = Around::default();
        if let Some(pool) = lun.backing.pool() {
            if let PoolJournal::Open(journal) = self.journals.of(pool) {
                found.journal = Some(self.verify_journal(pool, &journal, &lun).await);
                found.metadata.extend(self.history_of(&journal, &lun).await);
            }
            let pools = self.pools();
            if let Some(damaged) = pools.get(pool).and_then(|pool| pool.damaged()) {
                // No event is written meanwhile.
                if let Some(_turn) = self.turn_of_scrub(naa).await {
                    found.metadata.extend(damaged.await);
                }
            }
        }
        if let Some(unit) = self.unit(naa)
            && let Err(error) = unit.check_stored(&self.core).await
        {
            found.metadata.push(error.to_string());
        }
        let stored = state::check(&*self.core.files(), &self.config.state_dir).await;
        found.metadata.extend(stored);
        for what in &found.metadata {
            tracing::error!(naa, "a scrub found damage: {what}");
        }
        found
    }

    /// The turn, for the scrub of this LUN; `None` where the scrub is to end: whoever has the turn
    /// may wait for that.
    async fn turn_of_scrub(&self, naa: &str) -> Option<MutexGuard<'_, ()>> {
        loop {
            if let Ok(turn) = self.turn.try_lock() {
                return Some(turn);
            }
            if self.scrubs.is_to_end(naa) {
                return None;
            }
            let next_probe = self.core.now().after(RETRY_AFTER);
            self.core.sleep_until(next_probe).await;
        }
    }

    /// Reads what the journal of the LUN's pool holds.
    async fn verify_journal(&self, pool: &str, journal: &Journal, lun: &Lun) -> JournalScrub {
        let verified = journal.verify(&self.core).await;
        let problem = verified.as_ref().err().map(ToString::to_string);
        let verified = verified.unwrap_or_default();
        let id = journal_id(lun);
        let rings = journal.status(&self.core).await;
        let lost = rings.iter().filter_map(|ring| ring.lost_sectors.get(&id));
        let lost = self.lost_blocks(id, &(0..lost.sum()));
        let found = JournalScrub {
            batches: verified.batches,
            changes: verified.changes,
            damaged_changes: verified.damaged,
            damaged_superblocks: verified.superblocks,
            damaged_checkpoints: verified.checkpoints,
            lost_blocks: lost.blocks,
            problem,
        };
        if found.damage() > 0 || found.problem.is_some() {
            tracing::error!(pool, ?found, "a scrub found damage in the journal");
        }
        found
    }

    async fn history_of(&self, journal: &Journal, lun: &Lun) -> Option<String> {
        match journal.verify_history(&self.core, journal_id(lun)).await {
            Ok(0) => None,
            Ok(lost) => Some(format!(
                "{lost} places of its changed-block map, so that more counts as changed than was: its next backup or resynchronisation \
                 copies more"
            )),
            Err(error) => Some(format!("its changed-block map cannot be read: {error}")),
        }
    }
}
