//! LUNs that could not be opened are tried again while the node serves.
//!
//! **Contract.** A LUN is offline for as long as it lacks what it needs, and not longer: its file was moved away and is back, its
//! device appears, a disk has room again for what an opening writes. Where its pool or its pool's journal is missing, whoever
//! looks after those brings it online (`directory.rs`, `members`, `keeper.rs`). One whose stored reservations or mode pages cannot
//! be read stays offline until a restart, because they are read at the start alone.

use super::Inner;
use super::journal::PoolJournal;
use crate::config::Place;
use crate::objects::{Backing, Lun};
use env::CoreHandle;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::time::Duration;
use units::Now;

/// How often it looks.
const LOOK: Duration = Duration::from_secs(1);

/// A LUN is tried again after so long, or so many times as long as the last try took.
const AGAIN: Duration = Duration::from_secs(10);
const AGAIN_TIMES: u32 = 20;

/// Tries again for as long as the node is there.
pub(super) async fn keep(core: CoreHandle, node: Weak<Inner>) {
    let mut due: BTreeMap<String, Now> = BTreeMap::new();
    loop {
        core.sleep_until(core.now().after(LOOK)).await;
        let Some(node) = node.upgrade() else { return };
        let waiting = node.waiting();
        due.retain(|naa, _| waiting.iter().any(|lun| lun.naa == *naa));
        for lun in waiting {
            let begun = core.now();
            let first = begun.after(AGAIN);
            if begun < *due.entry(lun.naa.clone()).or_insert(first) {
                continue;
            }
            let took = node.open_again(&lun.naa).await;
            let wait = AGAIN.max(took * AGAIN_TIMES);
            due.insert(lun.naa, core.now().after(wait));
        }
    }
}

impl Inner {
    /// LUNs that are offline for a reason of their own.
    fn waiting(&self) -> Vec<Lun> {
        let objects = Rc::clone(&self.objects.borrow());
        let waits = |lun: &&Lun| {
            let unit = self.unit(&lun.naa);
            unit.is_some_and(|unit| unit.lacks_storage()) && self.has_ground(lun)
        };
        objects.luns.values().filter(waits).cloned().collect()
    }

    /// What a LUN stands on is there: its pool, and that pool's journal.
    fn has_ground(&self, lun: &Lun) -> bool {
        let Backing::Pool(name) = &lun.backing else {
            return true;
        };
        let pool = self.config.pools.iter().find(|pool| pool.name == *name);
        let stands = match pool.map(|pool| &pool.place) {
            Some(Place::Path(_)) => self.directories.missing(name).is_none(),
            Some(Place::Members { .. }) => self.member_pools().contains_key(name),
            None => false,
        };
        stands && !matches!(self.journals.of(name), PoolJournal::Missing(_))
    }

    /// Tries one, and tells how long that took, without what it waited for its turn.
    async fn open_again(self: &Rc<Self>, naa: &str) -> Duration {
        let _turn = self.turn.lock().await;
        let begun = self.core.now();
        if self.server().is_none() {
            // It stops, or has stopped: nothing is opened that nobody would close.
            return Duration::ZERO;
        }
        let Some(lun) = self.waiting().into_iter().find(|lun| lun.naa == naa) else {
            return Duration::ZERO;
        };
        self.renew(&lun, &self.journal_of(&lun)).await;
        self.core.now().since(begun)
    }
}
