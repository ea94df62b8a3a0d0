//! Records that could not be written down, until they are.
//!
//! **Contract.** What is recorded of LUNs, in pools' directories and in the state directory of
//! journals, pools and scrubs follows what it describes: a disk that is full refuses none of that.
//! A record that fails is logged once and stands in `status`, and it is written as it should be
//! then within [`AGAIN`] of when that goes: nobody has to ask.

use crate::inner::Inner;
use crate::journal::pool_journal::PoolJournal;
use crate::pool::late::Late;
use env::CoreHandle;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// How often what could not be written is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// Tries again for as long as the node is there.
pub(crate) async fn keep(core: CoreHandle, node: Weak<Inner>) {
    loop {
        core.sleep_until(core.now().after(AGAIN)).await;
        let Some(node) = node.upgrade() else { return };
        for record in node.unsaved.late() {
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

    async fn keep_again(self: &Rc<Self>, record: &Late) {
        match record {
            Late::Luns if self.is_older().await => {}
            Late::Luns => {
                let objects = Rc::clone(&self.objects.borrow());
                self.write_records(&objects).await;
            }
            Late::Saved {
                node_id,
                generation,
            } => self.write_saved(node_id, *generation).await,
            Late::Journal(pool) => match self.journals.of(pool) {
                PoolJournal::Open(journal) => self.write_down(pool, &journal).await,
                PoolJournal::None | PoolJournal::Missing(_) => self.unsaved.forget(record),
            },
            Late::Pool(name) => match self.pools().get(name) {
                Some(pool) => pool.write_down().await,
                None => self.unsaved.forget(record),
            },
            Late::Scrub(naa) if self.scrubs.facts(naa).is_some() => self.keep_scrub(naa).await,
            Late::Scrub(_) => self.unsaved.forget(record),
        }
    }
}
