//! The syncs of one file that are under way, on all cores.
//!
//! The kernel reports a failed writeback once: to the sync that asks first, of all that share a
//! descriptor, and a device reports a failed flush to whoever asked. Another sync of the same time
//! succeeds, although what it was to make stable is lost, and its core may be notified before the
//! failed one's core does.
//!
//! **Contract.** A sync that has succeeded says so when every one that had begun by then has ended,
//! and has reported where it failed. One that hangs is waited for [`WAIT_MAX`]: it is still in the
//! kernel and has taken no error from anybody.

use env::CoreHandle;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

/// How long a core needs at most to be notified of what the kernel has ended, as far as anybody
/// waits for it.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Syncs of one file.
#[derive(Default)]
pub(crate) struct Syncs(Mutex<State>);

#[derive(Default)]
struct State {
    next: u64,
    under_way: BTreeSet<u64>,
    waiting: Vec<Waker>,
}

/// One that is under way. Dropping it ends it.
pub(crate) struct SyncGuard {
    of: Arc<Syncs>,
    number: u64,
}

impl Syncs {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One begins.
    pub(crate) fn begin(self: &Arc<Self>) -> SyncGuard {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.under_way.insert(number);
        drop(state);
        SyncGuard {
            of: Arc::clone(self),
            number,
        }
    }

    /// Waits until all that have begun so far have ended.
    async fn others(&self, core: &CoreHandle) {
        let end = {
            let state = self.lock();
            if state.under_way.is_empty() {
                return;
            }
            state.next
        };
        let mut timer = core.sleep_until(core.now().after(WAIT_MAX));
        poll_fn(|cx| {
            let mut state = self.lock();
            if state.under_way.first().is_none_or(|first| *first >= end) {
                return Poll::Ready(());
            }
            if !state.waiting.iter().any(|it| it.will_wake(cx.waker())) {
                state.waiting.push(cx.waker().clone());
            }
            drop(state);
            timer.as_mut().poll(cx)
        })
        .await;
    }
}

impl SyncGuard {
    /// It has succeeded. Ready when it may say so, unless one of the others has failed.
    pub(crate) async fn succeeded(self, core: &CoreHandle) {
        let of = Arc::clone(&self.of);
        drop(self);
        of.others(core).await;
    }
}

impl Drop for SyncGuard {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.of.lock();
            state.under_way.remove(&self.number);
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use env::sim::{World, WorldConfig};
    use std::cell::Cell;
    use std::rc::Rc;

    /// One that has succeeded, and whether it has said so.
    fn say(core: &CoreHandle, syncs: &Arc<Syncs>) -> Rc<Cell<bool>> {
        let said = Rc::new(Cell::new(false));
        let (reported, core, syncs) = (Rc::clone(&said), Rc::clone(core), Arc::clone(syncs));
        let own = Rc::clone(&core);
        core.spawn(Box::pin(async move {
            syncs.begin().succeeded(&own).await;
            reported.set(true);
        }));
        said
    }

    #[test]
    fn one_that_succeeds_waits_for_those_that_had_begun_and_no_others() {
        let world = World::new(1, WorldConfig::default());
        let (core, syncs) = (world.node("a").core(0), Arc::new(Syncs::default()));
        let soon = Duration::from_millis(1);
        let alone = say(&core, &syncs);
        world.run_for(soon);
        assert!(alone.get());
        let (first, second) = (syncs.begin(), syncs.begin());
        let said = say(&core, &syncs);
        world.run_for(soon);
        let late = syncs.begin();
        drop(first);
        world.run_for(soon);
        assert!(!said.get());
        drop(second);
        world.run_for(soon);
        assert!(said.get(), "the late one is not its business");
        drop(late);
    }

    #[test]
    fn one_that_hangs_holds_up_others_for_a_second_each() {
        let world = World::new(1, WorldConfig::default());
        let (core, syncs) = (world.node("a").core(0), Arc::new(Syncs::default()));
        let hanging = syncs.begin();
        let said = say(&core, &syncs);
        world.run_for(WAIT_MAX / 2);
        assert!(!said.get());
        world.run_for(WAIT_MAX);
        assert!(said.get());
        drop(hanging);
    }
}
