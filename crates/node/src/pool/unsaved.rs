//! Records that could not be written down, until they are.
//!
//! **Contract.** What stands beside LUNs, in pools' directories and in the state directory about
//! journals, pools and scrubs follows what it tells of: a disk that is full refuses none of that. A
//! record that fails is logged once and stands in `status`, and it is written as it should be then
//! within [`AGAIN`] of when that goes: nobody has to ask.

use crate::data_plane::Inner;
use crate::journal::opening::PoolJournal;
use env::CoreHandle;
use manifest::config::Place;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// How often what could not be written is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// What is written down, and may be late.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Record {
    /// What LUNs are, beside them.
    Luns,
    /// Which objects were stored last, in the pools.
    Saved { node_id: String, generation: u64 },
    /// What is stable in a pool's journal.
    Journal(String),
    /// Which pool a directory is.
    Directory(String),
    /// What the members of a pool are.
    Members(String),
    /// How far the scrub of a LUN is, by NAA identifier.
    Scrub(String),
}

/// Those that are late, and why.
#[derive(Default)]
pub(crate) struct Unkept(RefCell<BTreeMap<Record, String>>);

impl Unkept {
    /// A record was written, or was not; `what` is what that costs.
    pub(crate) fn note(&self, record: Record, what: impl Display, written: Result<(), String>) {
        let mut all = self.0.borrow_mut();
        let Err(error) = written else {
            if let Some(why) = all.remove(&record) {
                tracing::info!("it is written now: {why}");
            }
            return;
        };
        let why = format!("{what}: {error}");
        if all.get(&record) != Some(&why) {
            tracing::warn!("{why}");
        }
        if let Record::Saved { .. } = record {
            // The newest counts.
            all.retain(|known, _| !matches!(known, Record::Saved { .. }));
        }
        all.insert(record, why);
    }

    fn forget(&self, record: &Record) {
        self.0.borrow_mut().remove(record);
    }

    fn late(&self) -> Vec<Record> {
        self.0.borrow().keys().cloned().collect()
    }

    /// For `status`.
    pub(crate) fn told(&self) -> Vec<String> {
        let all = self.0.borrow();
        let advice = "it is written as soon as there is space and permission";
        all.values()
            .map(|why| format!("{why} ({advice})"))
            .collect()
    }
}

/// Tries again for as long as the node is there.
pub(crate) async fn keep(core: CoreHandle, node: Weak<Inner>) {
    loop {
        core.sleep_until(core.now().after(AGAIN)).await;
        let Some(node) = node.upgrade() else { return };
        for record in node.unkept.late() {
            let _turn = node.turn.lock().await;
            node.keep_again(&record).await;
        }
    }
}

impl Inner {
    /// A pool has seen newer objects than these, which nobody has accepted: what stands there
    /// stays.
    async fn is_older(self: &Rc<Self>) -> bool {
        let Some((node_id, generation)) = self.stored.borrow().clone() else {
            return true;
        };
        let node = Rc::clone(self);
        let newest = async move { node.newest_saved(&node_id).await };
        match self.ask("newest".to_owned(), newest).await {
            Some(newest) => newest.is_some_and(|(newest, _)| newest > generation),
            // Nobody knows while a pool does not answer.
            None => true,
        }
    }

    async fn keep_again(self: &Rc<Self>, record: &Record) {
        match record {
            Record::Luns if self.is_older().await => {}
            Record::Luns => {
                let objects = Rc::clone(&self.objects.borrow());
                self.write_records(&objects).await;
            }
            Record::Saved {
                node_id,
                generation,
            } => self.write_saved(node_id, *generation).await,
            Record::Journal(pool) => match self.journals.of(pool) {
                PoolJournal::Open(journal) => self.write_down(pool, &journal).await,
                PoolJournal::None | PoolJournal::Missing(_) => self.unkept.forget(record),
            },
            Record::Directory(name) => {
                let pool = self.config.pools.iter().find(|pool| pool.name == *name);
                match pool.map(|pool| (pool, &pool.place)) {
                    Some((pool, Place::Path(path))) if self.directories.missing(name).is_none() => {
                        self.mark(pool, path).await;
                    }
                    _ => self.unkept.forget(record),
                }
            }
            Record::Members(name) => match self.member_pools().get(name).cloned() {
                Some(pool) => pool.remember(&self.core).await,
                None => self.unkept.forget(record),
            },
            Record::Scrub(naa) if self.scrubs.facts(naa).is_some() => self.keep_scrub(naa).await,
            Record::Scrub(_) => self.unkept.forget(record),
        }
    }
}
